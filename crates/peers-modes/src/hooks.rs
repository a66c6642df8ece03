//! What takes the place of the snippets for the agents' stop hooks, which this version does not drive:
//! a directory of them that an older version laid down gets hooks that do nothing.

use std::path::Path;

use serde_json::{Value, json};

/// A file of `.peers/hooks/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// The file's name.
    pub name: &'static str,
    /// Its content.
    pub text: String,
}

/// The files for the repository at `target`, an absolute path. `None` when the path is not UTF-8, which
/// JSON cannot hold, or has control characters, which could end the comment that marks our command.
#[must_use]
pub fn snippets(target: &Path) -> Option<Vec<Snippet>> {
    let target = target.to_str().filter(|target| !target.chars().any(char::is_control))?;
    let json = |name: &'static str, tool: &str| {
        let hook = json!({ "hooks": { "Stop": [entry(target, tool)] } });
        Snippet { name, text: format!("{hook:#}\n") }
    };
    Some(vec![
        Snippet { name: "README.md", text: crate::HOOKS_README.to_owned() },
        json("claude-stop-hook.json", "claude"),
        json("codex-hooks.json", "codex"),
    ])
}

/// The entry of the list of stop hooks. Its comment is the mark by which it is found again.
fn entry(target: &str, tool: &str) -> Value {
    let command = format!("true # peers:{target} ({tool}): not driven by hooks in this version");
    json!({ "matcher": "", "hooks": [{ "type": "command", "command": command }] })
}

/// `text` as one word of a POSIX shell.
#[must_use]
pub fn quoted(text: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ':' | ',' | '@');
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(snippet: &Snippet) -> String {
        let value: Value = serde_json::from_str(&snippet.text).unwrap();
        value["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap().to_owned()
    }

    #[test]
    fn there_is_one_snippet_for_each_tool_and_a_page_about_them() {
        let files = snippets(Path::new("/srv/app")).unwrap();
        let [readme, claude, codex] = files.as_slice() else { panic!("{files:?}") };
        assert!(readme.text.contains(claude.name) && readme.text.contains(codex.name));
        for snippet in [claude, codex] {
            assert!(command(snippet).starts_with("true # peers:/srv/app "), "{snippet:?}");
        }
    }

    #[test]
    fn a_hostile_path_stays_one_word() {
        let path = "/tmp/it's \"$(touch x)\" `y`\\";
        assert_eq!(quoted(path), r#"'/tmp/it'\''s "$(touch x)" `y`\'"#);
        assert_eq!((quoted("/srv/app").as_str(), quoted("").as_str()), ("/srv/app", "''"));
        assert!(command(&snippets(Path::new(path)).unwrap()[1]).starts_with("true # "));
    }

    #[test]
    fn a_line_end_in_the_path_cannot_end_the_comment() {
        assert_eq!(snippets(Path::new("/tmp/a\nrm -rf x")), None);
    }
}
