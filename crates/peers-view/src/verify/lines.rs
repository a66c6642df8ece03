//! In which lines of their files goals and commands are defined.

use super::Source;

/// The lines of `goals.yaml` and `config.yaml`. Found by the look of the text, for readers to jump to: a
/// definition that is not found is in line 1.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    /// `goals.yaml`.
    pub goals: &'a str,
    /// `config.yaml`.
    pub config: &'a str,
}

impl Lines<'_> {
    /// Where a goal is defined.
    #[must_use]
    pub fn goal(&self, id: &str) -> Source {
        let line = number(self.goals, |line| has(line, "id", id));
        Source { file: ".peers/goals.yaml", line: line.unwrap_or(1) }
    }

    /// Where an extra command is defined, by its name or, without one, its text.
    #[must_use]
    pub fn command(&self, name: &str) -> Source {
        let line = number(self.config, |line| has(line, "name", name))
            .or_else(|| number(self.config, |line| has(line, "cmd", name)))
            .or_else(|| number(self.config, |line| line.trim_start().starts_with("commands:")));
        Source { file: ".peers/config.yaml", line: line.unwrap_or(1) }
    }
}

fn number(text: &str, is: impl Fn(&str) -> bool) -> Option<u64> {
    let at = text.lines().position(|line| !line.trim_start().starts_with('#') && is(line))?;
    u64::try_from(at).ok()?.checked_add(1)
}

/// Whether a line gives this key this value, in any of the forms of YAML that fit on one line.
fn has(line: &str, key: &str, value: &str) -> bool {
    if value.is_empty() {
        return false;
    }
    let bare = |c: char| matches!(c, ' ' | '\t' | '{' | ',' | '-' | '"' | '\'');
    line.match_indices(key).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        let after = line.get(at + key.len()..).unwrap_or_default();
        let after = after.trim_start_matches(['"', '\'']).trim_start();
        let Some(after) = after.strip_prefix(':') else { return false };
        let Some(rest) = after.trim_start().trim_start_matches(['"', '\'']).strip_prefix(value) else {
            return false;
        };
        (before.is_empty() || before.ends_with(bare))
            && (rest.is_empty() || rest.starts_with([' ', '\t', ',', '}', '"', '\'', '\r']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_found_by_its_id_in_every_form_of_the_file() {
        let goals = "# id: real\ngoals:\n- {id: real-2, type: hard}\n- {type: hard, id: real}\n- type: hard\n  id: 'quoted'\n- {\"id\": \"json\", x: 1}\n- id: last";
        let lines = Lines { goals, config: "" };
        for (id, line) in [("real", 4), ("real-2", 3), ("quoted", 6), ("json", 7), ("last", 8), ("gone", 1)] {
            assert_eq!(lines.goal(id).line, line, "{id}");
        }
    }

    #[test]
    fn a_command_is_found_by_its_name_its_text_or_its_list() {
        let config = "peers: []\nverify:\n  commands:\n  - {name: lint, cmd: 'x'}\n  - cmd: make all\n";
        let lines = Lines { goals: "", config };
        for (name, line) in [("lint", 4), ("make all", 5), ("a\nb", 3)] {
            assert_eq!(lines.command(name).line, line, "{name}");
        }
        assert_eq!(Lines { goals: "", config: "" }.command("").line, 1);
    }
}
