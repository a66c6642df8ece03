//! Scripts to start from, printed by `peers fake-peer --example NAME`.

/// Every example: its name, what it shows, its text.
pub const EXAMPLES: [(&str, &str, &str); 7] = [
    ("basic", "two turns of honest work that end in handoffs", include_str!("../templates/basic.yaml")),
    ("bugs", "report a bug, reproduce it, fix it", include_str!("../templates/bugs.yaml")),
    (
        "reviewer",
        "review goals and give the skeptic's verdict when asked",
        include_str!("../templates/reviewer.yaml"),
    ),
    (
        "faults",
        "what a provider does: limits, quota, bad login, retries, a cut stream",
        include_str!("../templates/faults.yaml"),
    ),
    (
        "unruly",
        "a process that hangs, floods, refuses to die and leaves children",
        include_str!("../templates/unruly.yaml"),
    ),
    (
        "cheat",
        "weakened tests, edited goals, rewritten history, forged trailers",
        include_str!("../templates/cheat.yaml"),
    ),
    ("pair", "one script for two peers that work by the loop's tick", include_str!("../templates/pair.yaml")),
];

/// The text of an example.
#[must_use]
pub fn example(name: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(known, _, _)| *known == name).map(|(_, _, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    #[test]
    fn every_example_is_a_valid_script() {
        for (name, _, text) in EXAMPLES {
            let script = Script::parse(name, text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!script.turns.is_empty(), "{name}");
        }
        assert!(example("nothing").is_none());
    }
}
