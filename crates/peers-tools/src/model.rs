//! Names of models: what belongs to the model itself, and whether two names clearly mean two models.

/// `id` without a date at its end: `-2025-08-07`, `-20250514` or `@20250514`. `None`: there is none.
pub(crate) fn undated(id: &str) -> Option<&str> {
    [10, 8].into_iter().find_map(|length| {
        let (rest, date) = id.split_at_checked(id.len().checked_sub(length)?)?;
        let bare = rest.strip_suffix('-').or_else(|| rest.strip_suffix('@').filter(|_| length == 8))?;
        (is_date(date) && !bare.is_empty()).then_some(bare)
    })
}

fn is_date(text: &str) -> bool {
    let part = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u16>().ok())?
    };
    let parts = match text.len() {
        8 => [part(0, 4), part(4, 6), part(6, 8)],
        10 if text.get(4..5) == Some("-") && text.get(7..8) == Some("-") => {
            [part(0, 4), part(5, 7), part(8, 10)]
        }
        _ => return false,
    };
    matches!(parts, [Some(2000..=2099), Some(1..=12), Some(1..=31)])
}

/// Names that a tool turns into whatever it likes best.
const CHOICES: [&str; 7] = ["default", "best", "auto", "inherit", "latest", "opusplan", "sonnetplan"];

/// Words that tell the house a model comes from.
const HOUSES: [(&str, &[&str]); 10] = [
    ("anthropic", &["claude", "opus", "sonnet", "haiku", "fable"]),
    ("openai", &["gpt", "o", "codex", "chatgpt"]),
    ("google", &["gemini", "gemma"]),
    ("alibaba", &["qwen"]),
    ("deepseek", &["deepseek"]),
    ("xai", &["grok"]),
    ("moonshot", &["kimi"]),
    ("zhipu", &["glm"]),
    ("mistral", &["mistral", "devstral", "codestral"]),
    ("meta", &["llama"]),
];

/// Words that tell models of one house apart.
const KINDS: [&str; 16] = [
    "opus", "sonnet", "haiku", "fable", "mini", "nano", "pro", "codex", "max", "flash", "lite", "spark",
    "sol", "terra", "luna", "astra",
];

/// Whether `used` is clearly another model than the one that was `asked` for.
///
/// Short names (`opus`), providers before a `/`, dates and missing parts of a version are no
/// difference, and neither is a name that nobody here has heard of: when in doubt, no.
#[must_use]
pub fn other_model(asked: &str, used: &str) -> bool {
    let (Some(asked), Some(used)) = (Name::read(asked), Name::read(used)) else { return false };
    if asked.house != used.house {
        return true;
    }
    if asked.kinds.is_empty() && asked.version.is_empty() {
        return false;
    }
    // A house alone with a version may still be a short name, unless both have a version.
    let comparable = !asked.version.is_empty() && !used.version.is_empty();
    if asked.kinds != used.kinds && (comparable || !asked.kinds.is_empty()) {
        return true;
    }
    asked.version.iter().zip(&used.version).any(|(a, b)| a != b)
}

/// What tells a model apart.
struct Name<'a> {
    house: &'static str,
    kinds: Vec<&'static str>,
    version: Vec<&'a str>,
}

impl<'a> Name<'a> {
    /// `None`: the name of a choice, or of a house that nobody has heard of.
    fn read(id: &'a str) -> Option<Self> {
        let id = id.trim();
        let bare = id.rsplit('/').next().unwrap_or(id);
        let bare = bare.split(['[', ':']).next().unwrap_or(bare);
        let bare = undated(bare).unwrap_or(bare);
        if CHOICES.iter().any(|choice| bare.eq_ignore_ascii_case(choice)) {
            return None;
        }
        let words: Vec<&str> = words(bare).collect();
        let known = |word: &&str, list: &[&str]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
        let house = words
            .iter()
            .find_map(|word| HOUSES.iter().find(|(_, names)| known(word, names)).map(|&(house, _)| house))?;
        let kinds = KINDS.into_iter().filter(|kind| words.iter().any(|w| w.eq_ignore_ascii_case(kind)));
        let numbers = words.iter().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        Some(Self { house, kinds: kinds.collect(), version: numbers.copied().collect() })
    }
}

/// Runs of letters and runs of digits.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        let digits = rest.starts_with(|c: char| c.is_ascii_digit());
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() || c.is_ascii_digit() != digits)
            .unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        rest = tail;
        (!word.is_empty()).then_some(word)
    })
    // The start of a name says which model it is; the rest of a hostile one is not looked at.
    .take(24)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_date_is_cut_off_and_nothing_else() {
        for (id, bare) in [
            ("gpt-5-2025-08-07", "gpt-5"),
            ("claude-opus-4-20250514", "claude-opus-4"),
            ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ] {
            assert_eq!(undated(id), Some(bare), "{id}");
        }
        for id in
            ["gpt-5", "gpt-52025-08-07", "-20250514", "x-20251514", "x-2025-00-07", "x-1999-01-01", "é-é-é"]
        {
            assert_eq!(undated(id), None, "{id}");
        }
    }

    #[test]
    fn another_spelling_of_a_name_is_the_same_model() {
        for (asked, used) in [
            ("opus", "claude-opus-5-5"),
            ("sonnet[1m]", "claude-sonnet-5-5"),
            ("Haiku", "claude-haiku-4-5-20251001"),
            ("claude-opus-4", "claude-opus-4-5"),
            ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
            ("claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
            ("claude-3-5-haiku-latest", "claude-3-5-haiku-20241022"),
            ("anthropic/claude-opus-4.5", "claude-opus-4-5"),
            ("openai/gpt-5", "gpt-5-2025-08-07"),
            ("gpt-5", "gpt-5.4"),
            ("default", "claude-opus-5-5"),
            ("opusplan", "claude-sonnet-5-5"),
            ("claude", "claude-opus-5-5"),
            ("my-alias", "claude-opus-5-5"),
            ("opus", "my-model"),
            ("", "gpt-5"),
            ("fake-model", "fake-model-2"),
        ] {
            assert!(!other_model(asked, used), "{asked} {used}");
        }
    }

    #[test]
    fn a_clear_difference_is_another_model() {
        for (asked, used) in [
            ("opus", "claude-sonnet-5-5"),
            ("opus", "gpt-5"),
            ("claude-opus-5-5", "claude-opus-4-5"),
            ("claude-opus-4-5", "claude-haiku-4-5"),
            ("gpt-5", "gpt-5-mini"),
            ("gpt-5-codex", "gpt-5"),
            ("gpt-5.6-sol", "gpt-5.6-luna"),
            ("gpt-5.4", "gpt-4.1"),
            ("o3", "o4-mini"),
            ("gpt-5", "claude-opus-5-5"),
        ] {
            assert!(other_model(asked, used), "{asked} {used}");
        }
    }

    proptest! {
        #[test]
        fn no_name_is_another_than_itself(name in "\\PC{0,60}") {
            prop_assert!(!other_model(&name, &name));
        }
    }
}
