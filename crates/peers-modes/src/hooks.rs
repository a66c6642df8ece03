//! Snippets for the stop hooks of agents: each calls one tick of one repository.

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
    let command = format!("peers -C {} tick --after {tool} # peers:{target}", quoted(target));
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
        assert_eq!(command(claude), "peers -C /srv/app tick --after claude # peers:/srv/app");
        assert_eq!(command(codex), "peers -C /srv/app tick --after codex # peers:/srv/app");
    }

    #[test]
    fn a_hostile_path_stays_one_word_and_valid_json() {
        let path = "/tmp/it's \"$(touch x)\" `y`\\";
        let files = snippets(Path::new(path)).unwrap();
        assert!(
            command(&files[1])
                .starts_with(r#"peers -C '/tmp/it'\''s "$(touch x)" `y`\' tick --after claude # "#)
        );
    }

    #[test]
    fn a_line_end_in_the_path_cannot_end_the_comment() {
        assert_eq!(snippets(Path::new("/tmp/a\nrm -rf x")), None);
    }
}
