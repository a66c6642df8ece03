//! Writing a setting of one peer into a configuration that a person wrote, leaving the rest alone.

/// The text with `key` of the peer `name` set; `None` when no entry of a block list begins with that name.
/// A commented example of the key gives way to it.
#[must_use]
pub fn set(text: &str, name: &str, key: &str, value: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let start = lines.iter().position(|line| begins(line, name))?;
    let body = indent(lines.get(start)?) + 2;
    let inside = |line: &&&str| line.trim().is_empty() || indent(line) >= body;
    let end = start + 1 + lines.iter().skip(start + 1).take_while(inside).count();
    let is_key = |line: &str| {
        let plain = line.trim_start();
        let plain = plain.strip_prefix('#').map_or(plain, str::trim_start);
        indent(line) == body && plain.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'))
    };
    let found = (start + 1..end).find(|at| lines.get(*at).is_some_and(|line| is_key(line)));
    let ending = if lines.get(start)?.ends_with("\r\n") { "\r\n" } else { "\n" };
    let new = format!("{:body$}{key}: {}{ending}", "", scalar(value));
    let mut out = String::with_capacity(text.len() + new.len());
    for (at, line) in lines.iter().enumerate() {
        if found == Some(at) {
            out.push_str(&new);
            continue;
        }
        out.push_str(line);
        if found.is_none() && at == start {
            if !line.ends_with('\n') {
                out.push_str(ending);
            }
            out.push_str(&new);
        }
    }
    Some(out)
}

/// `- name: NAME`.
fn begins(line: &str, name: &str) -> bool {
    let Some(rest) = line.trim().strip_prefix("- name:") else { return false };
    let rest = rest.split(" #").next().unwrap_or_default().trim();
    rest.trim_matches(['"', '\'']) == name
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// A text as YAML: plain where that is safe, else in quotes.
fn scalar(value: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let word = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let plain = value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value.chars().all(safe)
        && !word.iter().any(|word| word.eq_ignore_ascii_case(value));
    // A JSON text is one of YAML in double quotes too.
    if plain { value.to_owned() } else { serde_json::Value::from(value).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
peers:
  - name: claude   # the first
    tool: claude
    # model: opus   # none by default

  - name: codex
    argv: [codex]
budget:
  model: x
";

    #[test]
    fn an_example_gives_way_and_a_key_that_is_not_there_follows_the_name() {
        let text = set(TEXT, "claude", "model", "opus").unwrap();
        assert_eq!(text, TEXT.replace("    # model: opus   # none by default\n", "    model: opus\n"));
        let text = set(TEXT, "codex", "model", "gpt 5: \"x\"").unwrap();
        assert_eq!(
            text,
            TEXT.replace("  - name: codex\n", "  - name: codex\n    model: \"gpt 5: \\\"x\\\"\"\n")
        );
        let twice = set(&set(TEXT, "claude", "model", "a").unwrap(), "claude", "model", "on").unwrap();
        assert!(twice.contains("    model: \"on\"\n") && !twice.contains("model: a"), "{twice}");
    }

    #[test]
    fn another_shape_is_left_alone() {
        for text in ["peers: [{name: claude}]\n", "peers:\n- {name: claude}\n", "", "- name: claude2\n"] {
            assert_eq!(set(text, "claude", "model", "m"), None, "{text}");
        }
        assert_eq!(set("- name: a", "a", "model", "m").unwrap(), "- name: a\n  model: m\n");
    }

    #[test]
    fn each_field_of_the_template_can_be_set_and_no_line_is_lost() {
        for name in ["claude", "codex"] {
            for key in ["model", "reasoning", "provider"] {
                let text = set(crate::CONFIG, name, key, "word").unwrap();
                assert_eq!(text.lines().count(), crate::CONFIG.lines().count(), "{name} {key}");
                assert!(text.contains(&format!("    {key}: word\n")));
            }
        }
    }
}
