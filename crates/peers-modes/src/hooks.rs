//! The stop hooks of agents: snippets for `.peers/hooks/`, and our entry in the settings of a tool.
//!
//! A hook runs `peers tick --after TOOL` when an agent of the operator's has ended its turn. The comment behind
//! the command, `# peers:` and the path of the repository, is the mark by which an entry is found again.

mod merge;
mod ordered;

use std::path::Path;

use peers_sys::term::quoted;
use serde_json::json;

pub use merge::{Merged, merge, unmerge};

/// Seconds that a tool lets our hook run, which holds a turn of the next peer and the gates. The tools' own
/// default, ten minutes at most, would end it in the middle of that.
const TIMEOUT_S: u64 = 21_600;

/// Stands before the path in the mark of a command.
const MARK: &str = " # peers:";

/// A tool whose stop hooks can call us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Claude Code: `settings.json`.
    Claude,
    /// Codex: `hooks.json`.
    Codex,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Claude, Self::Codex];

    /// Its name, as `tick --after` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// The file of `.peers/hooks/` that is for it.
    #[must_use]
    pub fn snippet(self) -> &'static str {
        match self {
            Self::Claude => "claude-stop-hook.json",
            Self::Codex => "codex-hooks.json",
        }
    }
}

/// A file of `.peers/hooks/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// The file's name.
    pub name: &'static str,
    /// Its content.
    pub text: String,
}

/// The files for the repository at `target`, an absolute path. `None` where [`usable`] has none.
#[must_use]
pub fn snippets(target: &Path) -> Option<Vec<Snippet>> {
    let target = usable(target)?;
    let readme = Snippet { name: "README.md", text: crate::HOOKS_README.to_owned() };
    let of = |tool: Tool| {
        let hook = json!({ "type": "command", "command": command(target, tool), "timeout": TIMEOUT_S });
        let file = json!({ "hooks": { "Stop": [{ "matcher": "", "hooks": [hook] }] } });
        Snippet { name: tool.snippet(), text: format!("{file:#}\n") }
    };
    Some([readme].into_iter().chain(Tool::ALL.map(of)).collect())
}

/// The path as it can stand in a hook. `None` when it is not UTF-8, which JSON cannot hold, or has control
/// characters, which could end the comment that marks our command, or a mark itself.
#[must_use]
pub fn usable(target: &Path) -> Option<&str> {
    target.to_str().filter(|target| !target.chars().any(char::is_control) && !target.contains(MARK))
}

/// The command of a hook, with its mark.
#[must_use]
pub fn command(target: &str, tool: Tool) -> String {
    format!("peers -C {} tick --after {}{MARK}{target}", quoted(target), tool.name())
}

/// Whether a command has the mark of this repository, and not of one whose path only begins alike. Hooks that
/// do nothing, of a version that was not driven by them, count.
fn is_ours(command: &str, target: &str) -> bool {
    let Some((_, marked)) = command.split_once(MARK) else { return false };
    let idle = |tool: Tool| format!("{target} ({}): not driven by hooks in this version", tool.name());
    marked == target || Tool::ALL.into_iter().any(|tool| marked == idle(tool))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{Path, Snippet, is_ours, quoted, snippets};

    fn command(snippet: &Snippet) -> String {
        let value: Value = serde_json::from_str(&snippet.text).unwrap();
        value["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap().to_owned()
    }

    #[test]
    fn there_is_one_snippet_for_each_tool_and_a_page_about_them() {
        let files = snippets(Path::new("/srv/app")).unwrap();
        let [readme, claude, codex] = files.as_slice() else { panic!("{files:?}") };
        assert!(readme.text.contains(claude.name) && readme.text.contains(codex.name));
        for (snippet, tool) in [(claude, "claude"), (codex, "codex")] {
            let says = format!("peers -C /srv/app tick --after {tool} # peers:/srv/app");
            assert_eq!(command(snippet), says);
        }
    }

    #[test]
    fn a_hostile_path_stays_one_word() {
        let path = "/tmp/it's \"$(touch x)\" `y`\\";
        assert_eq!(quoted(path), r#"'/tmp/it'\''s "$(touch x)" `y`\'"#);
        let hook = command(&snippets(Path::new(path)).unwrap()[1]);
        assert!(hook.starts_with(&format!("peers -C {} tick ", quoted(path))), "{hook}");
        assert!(is_ours(&hook, path));
    }

    #[test]
    fn a_line_end_in_the_path_cannot_end_the_comment() {
        assert_eq!(snippets(Path::new("/tmp/a\nrm -rf x")), None);
        assert_eq!(snippets(Path::new("/tmp/a # peers:/p")), None, "nor have a mark of its own");
    }
}
