//! What opencode tells of a request that failed, on standard error with `--print-logs`.
//!
//! `timestamp=T level=ERROR run=R message="stream error" ... small=false ... error.error="NAME: words"`, one
//! such line for each failed request, whether it is made again or not. Nothing else tells of a retry, and
//! not even this how long it waits. Where it is not made again, a line with `message=process` says it once
//! more, before the error event.

use std::str;

/// Whether a line, or the beginning of one, tells of a failed request.
pub(crate) fn is_failed_request(line: &[u8]) -> bool {
    is_error(line) && [REQUEST, b" message=process ".as_slice()].iter().any(|message| has(line, message))
}

const REQUEST: &[u8] = b" message=\"stream error\" ";

fn is_error(line: &[u8]) -> bool {
    line.starts_with(b"timestamp=") && has(line, b" level=ERROR ")
}

/// The error of such a line, if it is one of the conversation; the title of a session is asked for beside it.
pub(super) fn failed_request(line: &[u8]) -> Option<String> {
    if !is_error(line) || !has(line, REQUEST) {
        return None;
    }
    let mut rest = str::from_utf8(line).ok()?;
    let mut error = None;
    while let Some((key, value)) = next(&mut rest) {
        match key {
            "small" if value == "true" => return None,
            "error" | "error.error" => error = Some(value),
            _ => {}
        }
    }
    error
}

/// The next `key=value` or `key="value"`, whose escapes are those of JSON.
fn next<'a>(rest: &mut &'a str) -> Option<(&'a str, String)> {
    let (key, tail) = rest.trim_start().split_once('=')?;
    if !tail.starts_with('"') {
        let (value, tail) = tail.split_once(' ').unwrap_or((tail, ""));
        *rest = tail;
        return Some((key, value.to_owned()));
    }
    let mut words = serde_json::Deserializer::from_str(tail).into_iter::<String>();
    let value = words.next()?.ok()?;
    *rest = tail.get(words.byte_offset()..)?;
    Some((key, value))
}

fn has(line: &[u8], words: &[u8]) -> bool {
    line.windows(words.len()).any(|part| part == words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As opencode 1.18.33 wrote it.
    const REFUSED: &str = "timestamp=2026-11-22T16:10:50.275Z level=ERROR run=c2dfacbb message=\"stream error\" \
        providerID=scripted modelID=fake-model session.id=ses_dfbf9d13fffeTUMkkqYSrlJu2m small=false agent=build \
        mode=primary error.error=\"AI_APICallError: Rate limit reached for requests.\"";

    fn told(line: &str) -> Option<String> {
        failed_request(line.as_bytes())
    }

    #[test]
    fn a_failed_request_is_told_with_its_words() {
        assert_eq!(told(REFUSED).as_deref(), Some("AI_APICallError: Rate limit reached for requests."));
        let quoted = REFUSED.replace("Rate limit", "The \\\"Rate\\\" = limit");
        assert_eq!(
            told(&quoted).as_deref(),
            Some("AI_APICallError: The \"Rate\" = limit reached for requests.")
        );
        let bare = REFUSED.replace("\"AI_APICallError: Rate limit reached for requests.\"", "refused x=1");
        assert_eq!(told(&bare).as_deref(), Some("refused"));
    }

    #[test]
    fn another_line_tells_nothing() {
        for line in [
            "",
            "ERROR rate limit",
            &REFUSED.replace("timestamp=", "time="),
            &REFUSED.replace("level=ERROR", "level=INFO"),
            &REFUSED.replace("stream error", "tool error"),
            &REFUSED.replace("\"stream error\"", "process"),
            &REFUSED.replace("small=false", "small=true"),
            REFUSED.split_once(" error.error").unwrap().0,
            &REFUSED.replace("requests.\"", "requests."),
        ] {
            assert_eq!(told(line), None, "{line}");
        }
        assert_eq!(failed_request(b"timestamp=1 level=ERROR message=\"stream error\" error=\"\xff\""), None);
    }

    #[test]
    fn its_beginning_is_known_before_its_error_is_there() {
        let beginning = REFUSED.split_once("providerID").unwrap().0;
        assert!(is_failed_request(beginning.as_bytes()));
        assert!(is_failed_request(beginning.replace("\"stream error\"", "process").as_bytes()));
        assert!(!is_failed_request(beginning.replace("\"stream error\"", "other").as_bytes()));
    }
}
