//! The text of a login file: finding the tokens, and replacing them without touching any other byte.

use std::ops::Range;
use std::time::Duration;

use peers_model::{Timestamp, limits};
use secrecy::{ExposeSecret, SecretString};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

const ACCESS: [&str; 3] = ["accessToken", "access_token", "oauth_token"];
const REFRESH: [&str; 3] = ["refreshToken", "refresh_token", "oauth_refresh_token"];
const EXPIRES: [&str; 3] = ["expiresAt", "expires_at", "expires"];
/// Numbers from here on are milliseconds, smaller ones seconds.
const MILLIS: i64 = 100_000_000_000;
/// The tool that keeps no expiry renews its tokens after so long.
const REFRESH_AFTER: Duration = Duration::from_hours(8 * 24);
/// Tokens of other services: tools keep those of MCP servers in the same file.
const FOREIGN: &str = "mcp";

/// The tokens of a login.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    pub(super) access: SecretString,
    pub(super) refresh: Option<SecretString>,
    pub(super) expires: Option<Timestamp>,
    /// When they should be renewed, where that does not follow from `expires`.
    pub(super) renew_at: Option<Timestamp>,
    pub(super) account: Option<String>,
}

/// What a token endpoint gave.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) access: SecretString,
    /// Absent: the old one stays valid.
    pub(super) refresh: Option<SecretString>,
    pub(super) id: Option<SecretString>,
    pub(super) lifetime: Option<Duration>,
}

/// The members of a JSON object in their order, each value as it is written.
struct Members<'t>(Vec<(String, &'t RawValue)>);

/// Where in a file the tokens are.
struct Slots<'t> {
    access: &'t RawValue,
    refresh: Option<&'t RawValue>,
    expires: Option<&'t RawValue>,
    id: Option<&'t RawValue>,
    account: Option<&'t RawValue>,
    /// At the top level, as a time.
    last_refresh: Option<&'t RawValue>,
}

impl Tokens {
    /// Whether these are the same tokens.
    pub(super) fn are(&self, other: &Self) -> bool {
        let text = |refresh: &Option<SecretString>| refresh.as_ref().map(|r| r.expose_secret().to_owned());
        self.access.expose_secret() == other.access.expose_secret()
            && text(&self.refresh) == text(&other.refresh)
    }

    /// The tokens after a renewal at `now`.
    pub(super) fn renewed(&self, fresh: &Fresh, now: Timestamp) -> Self {
        Self {
            access: fresh.access.clone(),
            refresh: fresh.refresh.clone().or_else(|| self.refresh.clone()),
            expires: fresh.lifetime.map(|lifetime| now.plus(lifetime)),
            renew_at: self.renew_at.map(|_| now.plus(REFRESH_AFTER)),
            account: self.account.clone(),
        }
    }
}

/// The tokens in `text`: those of the member `preferred`, else those of the first object that holds both kinds.
pub(super) fn tokens(text: &str, preferred: &str) -> Option<Tokens> {
    let slots = slots(text, preferred)?;
    let last_refresh = slots.last_refresh.and_then(string).and_then(|at| Timestamp::parse(&at).ok());
    Some(Tokens {
        access: string(slots.access)?.into(),
        refresh: slots.refresh.and_then(string).map(SecretString::from),
        expires: slots.expires.and_then(time),
        renew_at: last_refresh.map(|at| at.plus(REFRESH_AFTER)),
        account: slots.account.and_then(string),
    })
}

/// The text of the member `name` of the top-level object, if it is a string and not empty.
pub(super) fn top_level(text: &str, name: &str) -> Option<String> {
    let Members(members) = serde_json::from_str(text).ok()?;
    pick(&members, &[name]).and_then(string)
}

/// `text` with the tokens replaced; all other bytes stay as they are.
pub(super) fn replace(text: &str, preferred: &str, fresh: &Fresh, now: Timestamp) -> Option<SecretString> {
    let slots = slots(text, preferred)?;
    let quoted = |secret: &SecretString| serde_json::to_string(secret.expose_secret()).ok();
    let mut edits = vec![(span(text, slots.access)?, quoted(&fresh.access)?)];
    for (slot, secret) in [(slots.refresh, &fresh.refresh), (slots.id, &fresh.id)] {
        if let (Some(slot), Some(secret)) = (slot, secret) {
            edits.push((span(text, slot)?, quoted(secret)?));
        }
    }
    if let (Some(slot), Some(lifetime)) = (slots.expires, fresh.lifetime)
        && let Some(unit) = number(slot)
    {
        let at = now.plus(lifetime).as_millis();
        let at = if unit >= MILLIS { at } else { at / 1000 };
        edits.push((span(text, slot)?, at.to_string()));
    }
    if let Some(slot) = slots.last_refresh {
        edits.push((span(text, slot)?, serde_json::to_string(&now).ok()?));
    }
    edits.sort_by_key(|(range, _)| range.start);
    let (mut out, mut from) = (String::with_capacity(text.len() + 256), 0);
    for (range, new) in edits {
        out.push_str(text.get(from..range.start)?);
        out.push_str(&new);
        from = range.end;
    }
    out.push_str(text.get(from..)?);
    Some(out.into())
}

fn slots<'t>(text: &'t str, preferred: &str) -> Option<Slots<'t>> {
    let Members(top) = serde_json::from_str(text).ok()?;
    let home =
        pick(&top, &[preferred]).and_then(|home| members(home.get())).and_then(|home| in_object(&home, true));
    let mut slots = home.or_else(|| search(text, limits::JSON_DEPTH))?;
    slots.last_refresh = pick(&top, &["last_refresh"]).filter(|slot| string(slot).is_some());
    Some(slots)
}

fn search(json: &str, depth: usize) -> Option<Slots<'_>> {
    let depth = depth.checked_sub(1)?;
    if let Some(members) = members(json) {
        return in_object(&members, false).or_else(|| {
            let mut own = members.iter().filter(|(name, _)| !name.starts_with(FOREIGN));
            own.find_map(|(_, value)| search(value.get(), depth))
        });
    }
    let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    items.into_iter().find_map(|item| search(item.get(), depth))
}

/// The tokens in one object. `home`: it is known to be the place, so an access token is enough.
fn in_object<'t>(members: &[(String, &'t RawValue)], home: bool) -> Option<Slots<'t>> {
    let text = |names: &[&str]| pick(members, names).filter(|slot| string(slot).is_some());
    let (access, refresh) = (text(&ACCESS)?, text(&REFRESH));
    (home || refresh.is_some()).then(|| Slots {
        access,
        refresh,
        expires: pick(members, &EXPIRES),
        id: text(&["id_token"]),
        account: text(&["account_id"]),
        last_refresh: None,
    })
}

fn members(json: &str) -> Option<Vec<(String, &RawValue)>> {
    serde_json::from_str(json).ok().map(|Members(members)| members)
}

/// The value of the first of `names` that is there. Of two members of one name the last counts, as in JavaScript.
fn pick<'t>(members: &[(String, &'t RawValue)], names: &[&str]) -> Option<&'t RawValue> {
    names.iter().find_map(|name| members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value))
}

fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str::<String>(raw.get()).ok().filter(|text| !text.is_empty())
}

fn number(raw: &RawValue) -> Option<i64> {
    raw.get().split('.').next().and_then(|whole| whole.parse().ok())
}

fn time(raw: &RawValue) -> Option<Timestamp> {
    let number = number(raw)?;
    Some(Timestamp::from_millis(if number >= MILLIS { number } else { number.saturating_mul(1000) }))
}

/// Where `raw` stands in `text`, of which it is a part.
fn span(text: &str, raw: &RawValue) -> Option<Range<usize>> {
    let start = raw.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let end = start.checked_add(raw.get().len()).filter(|end| *end <= text.len())?;
    Some(start..end)
}

impl<'de: 't, 't> Deserialize<'de> for Members<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(InOrder).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAUDE: &str = "{\n  \"mcpOAuth\": {\"x|1\": {\"accessToken\": \"foreign\", \"refreshToken\": \"foreign-r\"}},\n\
        \x20 \"claudeAiOauth\" : {\"scopes\":[\"a\", \"b\"],\"accessToken\":\"old-a\",  \"refreshToken\":\"old-r\",\n\
        \t\"expiresAt\":1700000000000,\"subscriptionType\":\"max\"},\"z\":1.50, \"a\":{\"accessToken\":\"old-a\"}}\n";
    const CODEX: &str = "{\"auth_mode\":\"chatgpt\",\"OPENAI_API_KEY\":null,\"tokens\":{\"id_token\":\"i\",\
        \"access_token\":\"a\",\"refresh_token\":\"r\",\"account_id\":\"acc\"},\"last_refresh\":\"2026-01-01T00:00:00Z\"}";

    fn fresh(refresh: Option<&str>) -> Fresh {
        Fresh {
            access: "new-\"a".into(),
            refresh: refresh.map(Into::into),
            id: Some("new-i".into()),
            lifetime: Some(Duration::from_hours(8)),
        }
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn tokens_of_other_services_in_the_file_are_not_taken() {
        let tokens = tokens(CLAUDE, "claudeAiOauth").unwrap();
        assert_eq!(tokens.access.expose_secret(), "old-a");
        assert_eq!(tokens.refresh.unwrap().expose_secret(), "old-r");
        assert_eq!(tokens.expires, Some(Timestamp::from_millis(1_700_000_000_000)));
        let foreign = r#"{"mcpOAuth":{"accessToken":"f","refreshToken":"f"}}"#;
        assert!(super::tokens(foreign, "claudeAiOauth").is_none());
    }

    #[test]
    fn replacing_keeps_all_other_bytes() {
        let now = at("2026-01-02T00:00:00Z");
        let new = replace(CLAUDE, "claudeAiOauth", &fresh(Some("new-r")), now).unwrap();
        let expected = CLAUDE
            .replacen("\"old-a\",  ", "\"new-\\\"a\",  ", 1)
            .replace("old-r", "new-r")
            .replace("1700000000000", "1767340800000");
        assert_eq!(new.expose_secret(), expected);
    }

    #[test]
    fn a_login_without_expiry_keeps_its_own_time() {
        let before = tokens(CODEX, "tokens").unwrap();
        assert_eq!((before.account.as_deref(), before.expires), (Some("acc"), None));
        assert_eq!(before.renew_at, Some(at("2026-01-09T00:00:00Z")));
        let now = at("2026-02-01T00:00:00Z");
        let new = replace(CODEX, "tokens", &fresh(None), now).unwrap();
        let expected = CODEX
            .replace("\"a\"", "\"new-\\\"a\"")
            .replace("\"i\"", "\"new-i\"")
            .replace("2026-01-01T00:00:00Z", "2026-02-01T00:00:00.000Z");
        assert_eq!(new.expose_secret(), expected);
        let after = before.renewed(&fresh(None), now);
        assert_eq!(after.refresh.unwrap().expose_secret(), "r");
        assert_eq!(after.renew_at, Some(at("2026-02-09T00:00:00Z")));
    }

    #[test]
    fn times_are_written_in_the_unit_that_was_found() {
        let now = at("2026-01-02T00:00:00Z");
        for (found, read, written) in [
            ("1700000000", 1_700_000_000_000, "1767340800"),
            ("1700000000000", 1_700_000_000_000, "1767340800000"),
            ("1700000000.5", 1_700_000_000_000, "1767340800"),
            ("99999999999", 99_999_999_999_000, "1767340800"),
            ("100000000000", 100_000_000_000, "1767340800000"),
        ] {
            let text = format!(r#"{{"access_token":"a","refresh_token":"r","expires_at":{found}}}"#);
            let tokens = tokens(&text, "tokens").unwrap();
            assert_eq!(tokens.expires, Some(Timestamp::from_millis(read)), "{found}");
            let new = replace(&text, "tokens", &fresh(None), now).unwrap();
            assert!(new.expose_secret().contains(&format!("\"expires_at\":{written}}}")), "{found}");
        }
    }

    #[test]
    fn the_first_object_with_both_tokens_counts_however_deep_and_however_named() {
        let text = r#"{"a":{"oauth_token":"x"},"b":[1,{"c":{"oauth_token":"t","oauth_refresh_token":"r","expires":5}}]}"#;
        let tokens = tokens(text, "claudeAiOauth").unwrap();
        assert_eq!(
            (tokens.access.expose_secret(), tokens.expires),
            ("t", Some(Timestamp::from_millis(5000)))
        );
    }

    #[test]
    fn what_holds_no_tokens_is_no_login() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        for text in
            ["", "null", "[]", "{}", "{\"tokens\":null}", "{\"tokens\":{\"access_token\":\"\"}}", "{", &deep]
        {
            assert!(tokens(text, "tokens").is_none(), "{text}");
        }
    }

    #[test]
    fn debug_output_shows_no_token() {
        let shown = format!("{:?}{:?}", tokens(CLAUDE, "claudeAiOauth"), fresh(Some("new-r")));
        assert!(!shown.contains("old-") && !shown.contains("new-"), "{shown}");
    }
}
