//! The parser's errors in our words.

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{DefaultMessageFormatter, Error as Saphyr, MessageFormatter};

use super::hint::closest;
use super::{ALIASES, DEPTH, REPLAYED};

pub(super) const MAPPING: &str = "a mapping (`key: value`)";
pub(super) const LIST: &str = "a list (`- entry`)";

/// What is wrong.
pub(super) fn explain(error: &Saphyr) -> String {
    match error {
        Saphyr::WithSnippet { error, .. } | Saphyr::AliasError { error, .. } => explain(error),
        Saphyr::DuplicateMappingKey { key, .. } => {
            let key = key.as_ref().map(|key| format!(" `{key}`")).unwrap_or_default();
            format!("duplicate key{key}")
        }
        Saphyr::Unexpected { expected, .. } => format!("expected {}", node(expected)),
        Saphyr::Eof { .. } => "the file ends too early".to_owned(),
        Saphyr::MultipleDocuments { .. } => second_document(),
        Saphyr::UnknownAnchor { .. } => {
            "an alias (`*name`) without an anchor (`&name`) before it; text that begins with `*` needs quotes"
                .to_owned()
        }
        Saphyr::AliasReplayLimitExceeded { .. }
        | Saphyr::AliasExpansionLimitExceeded { .. }
        | Saphyr::AliasReplayCounterOverflow { .. } => replayed(),
        Saphyr::AliasReplayStackDepthExceeded { .. } => "aliases lead to aliases too deeply".to_owned(),
        Saphyr::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias (`*name`) inside of what its own anchor (`&name`) names".to_owned()
        }
        Saphyr::Budget { breach, .. } => budget(breach),
        other => {
            let text = DefaultMessageFormatter.format_message(other).into_owned();
            if text.contains("recursion limit exceeded") { nested() } else { text }
        }
    }
}

/// What may have been meant by a word that is none of these.
pub(super) fn suggestion(word: &str, expected: &[&'static str]) -> Option<String> {
    if let Some(near) = closest(word, expected.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let known: Vec<_> = expected.iter().map(|name| format!("`{name}`")).collect();
    (!known.is_empty()).then(|| format!("known are {}", known.join(", ")))
}

/// What a value must be and what it is, from how serde puts it.
pub(super) fn wanted_and_found(found: &str, expected: &str) -> (String, String) {
    let found = thing(found);
    let wanted = match range(expected) {
        Some((least, most)) => {
            let number: Option<i128> =
                found.rsplit_once('`').and_then(|(head, _)| head.rsplit_once('`')?.1.parse().ok());
            let bounds = match number {
                Some(number) if number < least => format!(" of at least {least}"),
                _ => format!(" from {least} to {most}"),
            };
            format!("a whole number{bounds}")
        }
        None => node(expected).to_owned(),
    };
    (wanted, found)
}

/// The least and the greatest value of a number type, as serde names it.
fn range(expected: &str) -> Option<(i128, i128)> {
    let (least, name) = match expected.strip_prefix("a nonzero ") {
        Some(name) => (1, name),
        None => (0, expected),
    };
    let most = match name {
        "u8" => u8::MAX.into(),
        "u16" => u16::MAX.into(),
        "u32" => u32::MAX.into(),
        "u64" | "usize" => u64::MAX.into(),
        _ => return None,
    };
    Some((least, most))
}

/// What is expected, for people.
fn node(expected: &str) -> &str {
    match expected {
        "mapping start" | "a map" | "a mapping" => MAPPING,
        "sequence start" | "a sequence" => LIST,
        "string scalar" | "scalar" | "a string" | "a scalar string node" => "text",
        "non-scalar key" | "value" => "a value",
        other if other.starts_with("struct ") => MAPPING,
        other => other,
    }
}

/// What was found, for people.
fn thing(found: &str) -> String {
    match found {
        "sequence" => "a list".to_owned(),
        "map" => "a mapping".to_owned(),
        "unit value" | "null" | "Option value" => "nothing".to_owned(),
        other => match other.split_once(' ') {
            Some(("integer", number)) => format!("the number {number}"),
            Some(("string", text)) => format!("the text `{}`", text.trim_matches('"')),
            Some(("boolean", word)) => word.to_owned(),
            _ => {
                other.strip_prefix("floating point ").map_or(other.to_owned(), |n| format!("the number {n}"))
            }
        },
    }
}

fn budget(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Depth { .. } => nested(),
        BudgetBreach::Documents { .. } => second_document(),
        BudgetBreach::Aliases { .. } => format!("more than {ALIASES} aliases (`*name`)"),
        BudgetBreach::Anchors { .. } => format!("more than {ALIASES} anchors (`&name`)"),
        BudgetBreach::MergeKeys { .. } => format!("more than {ALIASES} merge keys (`<<`)"),
        BudgetBreach::RecordedAnchorEvents { .. } | BudgetBreach::RecordedAnchorBytes { .. } => replayed(),
        BudgetBreach::SequenceUnbalanced => "a list or a mapping ends that never began".to_owned(),
        _ => "holds more values than its length allows".to_owned(),
    }
}

fn nested() -> String {
    format!("nested deeper than {DEPTH} levels")
}

fn replayed() -> String {
    format!("aliases (`*name`) stand for more than {REPLAYED} values")
}

fn second_document() -> String {
    "a second document begins; the file must be a single one (remove the `---` or `...` before it)".to_owned()
}
