//! Changing one key of a file that a person wrote, leaving every other byte alone.

/// The text with the value of the top-level key `key` replaced; `None` when no line has that key at its
/// beginning with a plain one-line value. What follows the value (a comment) stays.
#[must_use]
pub fn set(text: &str, key: &str, value: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + value.len());
    let mut done = false;
    for line in text.split_inclusive('\n') {
        let rest = line.strip_prefix(key).and_then(|rest| rest.strip_prefix(':'));
        match rest.filter(|_| !done).and_then(|rest| replaced(rest, value)) {
            Some(rest) => {
                out.push_str(key);
                out.push(':');
                out.push_str(&rest);
                done = true;
            }
            None => out.push_str(line),
        }
    }
    done.then_some(out)
}

/// The same for a key of the top-level mapping `section`, indented by two blanks.
#[must_use]
pub fn set_in(text: &str, section: &str, key: &str, value: &str) -> Option<String> {
    let head = format!("{section}:\n");
    let at = if text.starts_with(&head) { 0 } else { text.find(&format!("\n{head}"))? + 1 };
    let (before, rest) = text.split_at_checked(at + head.len())?;
    let ends = rest
        .match_indices('\n')
        .map(|(at, _)| at + 1)
        .find(|at| rest.get(*at..).is_some_and(|line| !line.starts_with([' ', '#', '\n', '\r'])));
    let (body, after) = rest.split_at_checked(ends.unwrap_or(rest.len()))?;
    Some(format!("{before}{}{after}", set(body, &format!("  {key}"), value)?))
}

/// What stands behind the colon, with another value.
fn replaced(rest: &str, value: &str) -> Option<String> {
    let old = rest.trim_start_matches([' ', '\t']);
    let space = rest.get(..rest.len() - old.len())?;
    let word: usize = old.find(|c: char| c.is_whitespace()).unwrap_or(old.len());
    let (word, tail) = old.split_at_checked(word)?;
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '"' | '\''));
    let ends = tail.trim().is_empty() || tail.trim_start().starts_with('#');
    let separated = !space.is_empty() || word.is_empty();
    (plain && ends && separated)
        .then(|| format!("{}{value}{tail}", if space.is_empty() { " " } else { space }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_changes_and_nothing_else() {
        let text = "# driver: x\ndriver:  orchestrator  # who\r\ncomm: git\n";
        assert_eq!(
            set(text, "driver", "hooks").unwrap(),
            "# driver: x\ndriver:  hooks  # who\r\ncomm: git\n"
        );
        assert_eq!(set("driver: 'hooks'", "driver", "sessions").unwrap(), "driver: sessions");
        assert_eq!(set("driver:\n", "driver", "hooks").unwrap(), "driver: hooks\n");
    }

    #[test]
    fn what_is_not_plain_is_left_alone() {
        for text in [
            "",
            "drivers: x\n",
            " driver: x\n",
            "driver: [a, b]\n",
            "driver: a b\n",
            "driver:x\n",
            "#driver: x\n",
        ] {
            assert_eq!(set(text, "driver", "hooks"), None, "{text:?}");
        }
    }

    #[test]
    fn a_key_of_a_section_changes_there_alone() {
        let text = "b:\n  x: 1\nbudget:\n  # x: 2\n\n  x: 3 # why\nc:\n  x: 4\n";
        let new = text.replace("x: 3", "x: 9");
        assert_eq!(set_in(text, "budget", "x", "9").unwrap(), new);
        assert_eq!(set_in(text, "budget", "y", "9"), None);
        assert_eq!(set_in("budget: {x: 1}\n", "budget", "x", "9"), None);
        assert_eq!(set_in("budget:\n  y: 1\nc:\n  x: 1\n", "budget", "x", "9"), None);
    }

    #[test]
    fn the_template_has_the_key() {
        let text = set(crate::CONFIG, "driver", "sessions").unwrap();
        assert!(text.lines().any(|line| line == "driver: sessions"));
        assert_eq!(text.lines().count(), crate::CONFIG.lines().count());
    }
}
