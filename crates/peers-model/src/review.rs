//! Reviews of soft goals, and the skeptic's verdict, as one commit claims them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::ids::GoalId;
use crate::limits;
use crate::trailer::{JsonObject, Message, json_objects, list_items};

/// Failure modes that a skeptic must name as excluded.
pub const SKEPTIC_EXCLUSIONS: usize = 5;

/// Entries kept of `checked` and of `issues`.
const ENTRIES: usize = 50;
/// Characters kept of one entry.
const ENTRY_CHARS: usize = 300;

/// Whose reviews make a soft goal green.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SoftRule {
    /// Any `needed` distinct reviewers.
    Other {
        /// Distinct passes needed.
        needed: u8,
    },
    /// Every peer that is neither a spare nor unavailable, and at least two.
    Both {
        /// Passes needed of each; a tree counts once, so this is 1.
        needed: u8,
    },
    /// As `Other`, but peers are asked in turn and only the one asked may answer.
    Alternating {
        /// Distinct passes needed.
        needed: u8,
    },
    /// `pass` distinct passes among the last `of` reviews.
    Quorum {
        /// Passes needed.
        pass: u8,
        /// Reviews looked at.
        of: u8,
    },
}

/// A review that has the right form. Who wrote it is for the caller to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewClaim {
    /// The soft goal; whether it exists is not known here.
    pub goal: GoalId,
    /// The answer.
    pub pass: bool,
    /// Notes, at most [`limits::NOTES`] bytes. Untrusted.
    pub notes: String,
    /// What the reviewer says that he looked at (`file:line …`). Untrusted, bounded.
    pub checked: Vec<String>,
    /// What he found. Untrusted, bounded.
    pub issues: Vec<String>,
}

impl ReviewClaim {
    /// The paths that the entries of `checked` may begin with (`file:line ...`), as they were written.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.checked.iter().flat_map(|entry| {
            let entry = entry.trim_start_matches(['`', '\'', '"']).trim();
            let to = |end: &[char]| entry.split(end).next().unwrap_or_default();
            let whole = [entry, to(&[':']), to(&[':', ' ', '\t', ',', ';', '`', '\'', '"'])];
            whole.map(|path| path.trim_start_matches("./").trim_end_matches('/'))
        })
    }
}

/// A review trailer whose review does not count.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("review of `{goal}` does not count: {reason}")]
pub struct ReviewRejection {
    /// The goal it was meant for.
    pub goal: GoalId,
    /// Why.
    pub reason: ReviewDefect,
}

/// Why a review does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReviewDefect {
    /// No `## Review` line.
    #[error("the message has no `## Review` section")]
    NoSection,
    /// No JSON object for this goal after the heading.
    #[error("`## Review` holds no JSON object for it")]
    NoJson,
    /// `pass` is missing or no boolean.
    #[error("`pass` must be true or false, without quotes")]
    PassNotBool,
}

/// Reads all `Peer-Review-Of:` trailers: one review or rejection for each goal named, and warnings
/// about values that are neither a goal id nor a commit.
///
/// A value of 7 to 64 hex digits is a review of a commit and means nothing here. With several
/// trailers in one message an object may say by `goal` which one it answers; an object without
/// that key answers all that no other object does.
#[must_use]
pub fn read_reviews(message: &Message<'_>) -> (Vec<Result<ReviewClaim, ReviewRejection>>, Vec<String>) {
    let mut goals: Vec<GoalId> = Vec::new();
    let mut warnings = Vec::new();
    for value in message.trailers.all("Peer-Review-Of") {
        if (7..=64).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_hexdigit()) {
            continue;
        }
        match GoalId::new(value) {
            Ok(goal) if goals.contains(&goal) => {}
            Ok(goal) => goals.push(goal),
            Err(why) => warnings.push(format!("`Peer-Review-Of:` is ignored: {why}")),
        }
    }
    if goals.is_empty() {
        return (Vec::new(), warnings);
    }
    let has_section = message.has_section("Review");
    let objects: Vec<JsonObject> = message.sections("Review").flat_map(json_objects).collect();
    let reviews = goals
        .into_iter()
        .map(|goal| match review(&goal, has_section, &objects) {
            Ok(claim) => Ok(claim),
            Err(reason) => Err(ReviewRejection { goal, reason }),
        })
        .collect();
    (reviews, warnings)
}

fn review(goal: &GoalId, has_section: bool, objects: &[JsonObject]) -> Result<ReviewClaim, ReviewDefect> {
    if !has_section {
        return Err(ReviewDefect::NoSection);
    }
    let named = |o: &&JsonObject| o.get("goal").and_then(Value::as_str) == Some(goal.as_str());
    let object = objects.iter().find(named).or_else(|| objects.iter().find(|o| !o.contains_key("goal")));
    let object = object.ok_or(ReviewDefect::NoJson)?;
    let pass = object.get("pass").and_then(Value::as_bool).ok_or(ReviewDefect::PassNotBool)?;
    Ok(ReviewClaim {
        goal: goal.clone(),
        pass,
        notes: object.get("notes").map(|v| cut(&entry(v), limits::NOTES)).unwrap_or_default(),
        checked: entries(object.get("checked")),
        issues: entries(object.get("issues")),
    })
}

/// A list, or a single thing, as bounded texts; blank ones are left out.
fn entries(value: Option<&Value>) -> Vec<String> {
    let all: &[Value] = match value {
        None | Some(Value::Null) => &[],
        Some(Value::Array(items)) => items,
        Some(one) => std::slice::from_ref(one),
    };
    let texts = all.iter().map(|v| entry(v).trim().chars().take(ENTRY_CHARS).collect::<String>());
    texts.filter(|t| !t.is_empty()).take(ENTRIES).collect()
}

fn entry(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// At most `bytes` bytes of a text, cut between characters.
fn cut(text: &str, bytes: usize) -> String {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// What the message says as the skeptic's verdict.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkepticClaim {
    /// The last `Skeptic:` trailer says `clean`.
    pub clean: bool,
    /// There is a `## Skeptic` section.
    pub has_section: bool,
    /// Distinct list items of the section: the failure modes it excludes.
    pub excluded: usize,
}

impl SkepticClaim {
    /// Reads the skeptic's verdict.
    #[must_use]
    pub fn read(message: &Message<'_>) -> Self {
        let items: BTreeSet<String> =
            message.sections("Skeptic").flat_map(list_items).map(str::to_lowercase).collect();
        Self {
            clean: message.trailers.last("Skeptic").is_some_and(|v| v.eq_ignore_ascii_case("clean")),
            has_section: message.has_section("Skeptic"),
            excluded: items.len(),
        }
    }

    /// Whether the claim is complete: clean, with at least [`SKEPTIC_EXCLUSIONS`] failure modes.
    /// Whether the turn really was clean is for the loop to measure.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.clean && self.excluded >= SKEPTIC_EXCLUSIONS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = Vec<Result<ReviewClaim, ReviewRejection>>;

    fn reviews(body: &str, targets: &[&str]) -> Read {
        let trailers = targets.join("\nPeer-Review-Of: ");
        read_reviews(&Message::parse(&format!("s\n\n{body}\n\nPeer: a\nPeer-Review-Of: {trailers}\n"))).0
    }

    fn defect(body: &str) -> ReviewDefect {
        reviews(body, &["docs-read"]).remove(0).unwrap_err().reason
    }

    #[test]
    fn row_50_nested_json_is_in() {
        let read = reviews(
            r#"## Review
{"pass": true, "detail": {"pass": false}, "notes": "ok", "checked": ["a.rs:1 read"]}"#,
            &["docs-read"],
        );
        let claim = read[0].as_ref().unwrap();
        assert!(claim.pass);
        assert_eq!(
            (claim.notes.as_str(), claim.checked.as_slice()),
            ("ok", ["a.rs:1 read".to_owned()].as_slice())
        );
    }

    #[test]
    fn row_50_fenced_json_is_in() {
        assert!(
            !reviews("## review\n```json\n{\"pass\": false}\n```", &["docs-read"])[0].as_ref().unwrap().pass
        );
    }

    #[test]
    fn row_50_a_pass_that_is_no_boolean_is_rejected() {
        for value in ["\"true\"", "1", "null", "[true]"] {
            assert_eq!(
                defect(&format!("## Review\n{{\"pass\": {value}}}")),
                ReviewDefect::PassNotBool,
                "{value}"
            );
        }
        assert_eq!(defect("## Review\n{\"passes\": true}"), ReviewDefect::PassNotBool);
    }

    #[test]
    fn row_50_no_heading_or_no_json_is_rejected() {
        assert_eq!(defect("Review\n{\"pass\": true}"), ReviewDefect::NoSection);
        assert_eq!(defect("## Review\nlooks good"), ReviewDefect::NoJson);
        assert_eq!(defect("{\"pass\": true}\n\n## Review\n"), ReviewDefect::NoJson);
    }

    #[test]
    fn row_50_a_commit_as_target_is_ignored() {
        for sha in ["deadbeef", "DEADBEE", &"a".repeat(64)] {
            let message = format!("s\n\n## Review\n{{\"pass\":true}}\n\nPeer-Review-Of: {sha}\n");
            assert_eq!(read_reviews(&Message::parse(&message)), (vec![], vec![]), "{sha}");
        }
    }

    #[test]
    fn a_target_that_is_no_goal_id_is_warned_about() {
        let (reviews, warnings) =
            read_reviews(&Message::parse("s\n\nPeer-Review-Of: The Docs\nPeer-Review-Of: ab\n"));
        assert_eq!(warnings.len(), 1);
        assert_eq!(reviews.len(), 1, "a short id may be a goal");
    }

    #[test]
    fn several_trailers_are_answered_by_goal() {
        let body = "## Review\n{\"goal\":\"g-one\",\"pass\":false}\n{\"pass\":true}";
        let read = reviews(body, &["g-two", "g-one", "g-one"]);
        let passes: Vec<_> =
            read.iter().map(|r| r.as_ref().map(|c| (c.goal.as_str(), c.pass)).unwrap()).collect();
        assert_eq!(passes, [("g-two", true), ("g-one", false)]);
        assert_eq!(
            reviews("## Review\n{\"goal\":\"other\",\"pass\":true}", &["g-one"])[0]
                .as_ref()
                .unwrap_err()
                .reason,
            ReviewDefect::NoJson,
            "an answer to another goal is none to this one"
        );
    }

    #[test]
    fn notes_and_lists_are_bounded() {
        let body = format!(
            "## Review\n{{\"pass\":true,\"notes\":\"{}\",\"checked\":[{}\"x\"],\"issues\":{{\"a\":1}}}}",
            "é".repeat(5000),
            "\"y\",".repeat(200),
        );
        let read = reviews(&body, &["g-one"]);
        let claim = read[0].as_ref().unwrap();
        assert!(claim.notes.len() <= limits::NOTES);
        assert_eq!(claim.checked.len(), ENTRIES);
        assert_eq!(claim.issues, ["{\"a\":1}"]);
    }

    fn skeptic(section: &str, trailer: &str) -> SkepticClaim {
        SkepticClaim::read(&Message::parse(&format!("s\n\n{section}\n\nPeer: a\n{trailer}\n")))
    }

    #[test]
    fn row_53_a_skeptic_verdict_names_five_distinct_failure_modes() {
        let five = "## Skeptic\n- a race\n- an overflow\n* a leak\n1. a timeout\n2) a panic";
        assert!(skeptic(five, "Skeptic: clean").is_clean());
        assert!(!skeptic(five, "Skeptic: dirty").is_clean());
        assert!(!skeptic(five, "Skeptic: clean\nSkeptic: found").is_clean());
        assert!(!skeptic(five, "Note: x").is_clean());
        assert!(!skeptic(&five.replace("a leak", "A RACE"), "Skeptic: clean").is_clean());
        assert!(!skeptic(&five.replace("## Skeptic", "## Other"), "Skeptic: clean").is_clean());
    }
}
