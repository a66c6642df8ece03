//! The messages of JSON-RPC 2.0, one a line.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Longest id that is given back to an agent, in bytes.
pub(crate) const ECHOED_ID: usize = 1024;

/// A message of the agent, its payload unread.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// An answer to our request of this number.
    Answer { id: u64, outcome: Result<&'a str, &'a str> },
    /// A request of the agent's own; `id` is given back as it stands.
    Request { id: &'a RawValue, method: String, params: &'a str },
    /// A request whose id is longer than [`ECHOED_ID`].
    LongId,
    /// Something that needs no answer.
    Notification { method: String, params: &'a str },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    /// Reads a line; `None`: it is no message, or an answer to nothing that we asked.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let Envelope { id, method, params, result, error } = serde_json::from_slice(line).ok()?;
        let params = params.map_or("null", RawValue::get);
        match (method, id) {
            (Some(_), Some(id)) if id.get().len() > ECHOED_ID => Some(Self::LongId),
            (Some(method), Some(id)) => Some(Self::Request { id, method, params }),
            (Some(method), None) => Some(Self::Notification { method, params }),
            (None, Some(id)) => {
                let id = id.get().parse().ok()?;
                let outcome = match (error, result) {
                    (Some(error), _) => Err(error.get()),
                    (None, Some(result)) => Ok(result.get()),
                    (None, None) => Ok("null"),
                };
                Some(Self::Answer { id, outcome })
            }
            (None, None) => None,
        }
    }
}

const VERSION: &str = "2.0";

/// A request of ours, as a line.
pub(crate) fn request<P: Serialize>(id: u64, method: &str, params: &P) -> Vec<u8> {
    #[derive(Serialize)]
    struct Request<'a, P> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: &'a P,
    }
    line(&Request { jsonrpc: VERSION, id, method, params })
}

/// Our answer to a request of the agent, as a line.
pub(crate) fn answer<R: Serialize, E: Serialize>(id: &RawValue, outcome: Result<&R, &E>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Answer<'a, R, E> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a R>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a E>,
    }
    line(&Answer { jsonrpc: VERSION, id, result: outcome.ok(), error: outcome.err() })
}

fn line<T: Serialize>(message: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_kinds_of_message_are_told_apart() {
        let parse = |line: &'static str| Message::parse(line.as_bytes());
        assert!(matches!(
            parse(r#"{"id":3,"result":{"a":1}}"#),
            Some(Message::Answer { id: 3, outcome: Ok("{\"a\":1}") })
        ));
        assert!(matches!(
            parse(r#"{"id":3,"error":{},"result":1}"#),
            Some(Message::Answer { id: 3, outcome: Err("{}") })
        ));
        assert!(matches!(parse(r#"{"id":null,"method":"m"}"#), Some(Message::Notification { .. })));
        let Some(Message::Request { id, method, params }) = parse(r#"{"id":"x","method":"m","params":[1]}"#)
        else {
            panic!("a request")
        };
        assert_eq!((id.get(), method.as_str(), params), ("\"x\"", "m", "[1]"));
    }

    #[test]
    fn what_is_no_message_is_none() {
        for line in [
            "",
            "words",
            "[]",
            "17",
            "{}",
            r#"{"id":"3","result":1}"#,
            r#"{"id":-1,"result":1}"#,
            "{\"id\":3",
        ] {
            assert!(Message::parse(line.as_bytes()).is_none(), "{line}");
        }
        assert!(Message::parse(b"{\"method\":\"\xff\"}").is_none());
    }

    #[test]
    fn an_id_is_given_back_up_to_a_length() {
        let id = |length: usize| format!(r#"{{"id":"{}","method":"m"}}"#, "x".repeat(length - 2));
        assert!(matches!(Message::parse(id(ECHOED_ID).as_bytes()), Some(Message::Request { .. })));
        assert!(matches!(Message::parse(id(ECHOED_ID + 1).as_bytes()), Some(Message::LongId)));
    }

    #[test]
    fn a_depth_bomb_costs_no_stack() {
        let bomb = format!("{{\"method\":\"m\",\"params\":{}{}}}", "[".repeat(1 << 20), "]".repeat(1 << 20));
        assert!(matches!(Message::parse(bomb.as_bytes()), Some(Message::Notification { .. }) | None));
    }
}
