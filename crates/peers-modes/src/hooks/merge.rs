//! Our entry in the stop hooks of a tool, among those of others.

use super::ordered::Ordered;
use super::{TIMEOUT_S, Tool, command, is_ours};

/// What became of a file of settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// It is as it should be.
    Same,
    /// Our entry was there with another command; the file with ours.
    Updated(String),
    /// The file with our entry.
    Installed(String),
}

/// Adds the entry of the repository at `target`, or brings it up to date. `text` is the file; absent or blank
/// where there is none. All else stays, in its order.
///
/// # Errors
/// Why the file is none of which an entry can be added, in words that go on after its name.
pub fn merge(text: Option<&str>, target: &str, tool: Tool) -> Result<Merged, &'static str> {
    let mut root = read(text)?.unwrap_or(Ordered::Map(Vec::new()));
    let wanted = command(target, tool);
    let stop = stop_list(&mut root)?;
    let mut found = false;
    let mut changed = false;
    for hook in stop.iter_mut().flat_map(hooks_mut) {
        let Some(text) = hook.get_mut("command") else { continue };
        if !text.as_str().is_some_and(|text| is_ours(text, target)) {
            continue;
        }
        found = true;
        if text.as_str() != Some(&wanted) {
            *text = Ordered::text(&wanted);
            changed = true;
        }
        // A limit that somebody chose stays.
        if hook.get("timeout").is_none() {
            hook.put("timeout", limit());
            changed = true;
        }
    }
    if found {
        return Ok(if changed { Merged::Updated(written(&root)?) } else { Merged::Same });
    }
    let hook = Ordered::Map(vec![
        ("type".to_owned(), Ordered::text("command")),
        ("command".to_owned(), Ordered::text(&wanted)),
        ("timeout".to_owned(), limit()),
    ]);
    stop.push(Ordered::Map(vec![
        ("matcher".to_owned(), Ordered::text("")),
        ("hooks".to_owned(), Ordered::List(vec![hook])),
    ]));
    Ok(Merged::Installed(written(&root)?))
}

/// Takes the entries of the repository at `target` out, and what is empty then. `None`: there are none. An
/// empty text: nothing is left in the file.
///
/// # Errors
/// As [`merge`].
pub fn unmerge(text: &str, target: &str) -> Result<Option<String>, &'static str> {
    let Some(mut root) = read(Some(text))? else { return Ok(None) };
    if root.get("hooks").and_then(|hooks| hooks.get("Stop")).is_none() {
        return Ok(None);
    }
    let stop = stop_list(&mut root)?;
    let mut removed = false;
    stop.retain_mut(|group| {
        let Some(Ordered::List(hooks)) = group.get_mut("hooks") else { return true };
        let before = hooks.len();
        let ours = |hook: &Ordered| {
            hook.get("command").and_then(Ordered::as_str).is_some_and(|c| is_ours(c, target))
        };
        hooks.retain(|hook| !ours(hook));
        let touched = hooks.len() != before;
        removed |= touched;
        !(touched && hooks.is_empty())
    });
    if !removed {
        return Ok(None);
    }
    if stop.is_empty()
        && let Some(hooks) = root.get_mut("hooks")
    {
        hooks.remove("Stop");
        if hooks.is_empty() {
            root.remove("hooks");
        }
    }
    if root.is_empty() { Ok(Some(String::new())) } else { written(&root).map(Some) }
}

fn read(text: Option<&str>) -> Result<Option<Ordered>, &'static str> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    let root: Ordered = serde_json::from_str(text).map_err(|_| "is not valid JSON")?;
    if matches!(root, Ordered::Map(_)) { Ok(Some(root)) } else { Err("is not a JSON object") }
}

/// The list `hooks.Stop`, made where it is missing.
fn stop_list(root: &mut Ordered) -> Result<&mut Vec<Ordered>, &'static str> {
    let hooks = child(root, "hooks", Ordered::Map(Vec::new())).ok_or("is not a JSON object")?;
    let stop = child(hooks, "Stop", Ordered::List(Vec::new())).ok_or("has `hooks` that are not an object")?;
    if let Ordered::List(stop) = stop { Ok(stop) } else { Err("has `hooks.Stop` that is not a list") }
}

fn child<'a>(of: &'a mut Ordered, key: &str, missing: Ordered) -> Option<&'a mut Ordered> {
    let Ordered::Map(pairs) = of else { return None };
    if !pairs.iter().any(|(name, _)| name == key) {
        pairs.push((key.to_owned(), missing));
    }
    pairs.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)
}

/// The hooks of a group.
fn hooks_mut(group: &mut Ordered) -> &mut [Ordered] {
    match group.get_mut("hooks") {
        Some(Ordered::List(hooks)) => hooks,
        _ => &mut [],
    }
}

fn limit() -> Ordered {
    Ordered::Leaf(TIMEOUT_S.into())
}

fn written(root: &Ordered) -> Result<String, &'static str> {
    serde_json::to_string_pretty(root).map(|text| text + "\n").map_err(|_| "cannot be written as JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = r#"{"model": "x", "zeta": [1, 2.5, null, true], "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}], "Start": []}, "alpha": {"b": 1, "a": 2}}"#;

    fn installed(text: Option<&str>, target: &str) -> String {
        match merge(text, target, Tool::Claude).unwrap() {
            Merged::Installed(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn our_entry_comes_last_and_all_else_stays_in_its_order() {
        let text = installed(Some(OWN), "/p/a");
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(at("model") < at("zeta") && at("zeta") < at("hooks") && at("hooks") < at("alpha"));
        assert!(at("\"b\"") < at("\"a\"") && at("say done") < at("# peers:/p/a\""));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let ours = &value["hooks"]["Stop"][1];
        assert_eq!((&ours["matcher"], &ours["hooks"][0]["type"]), (&"".into(), &"command".into()));
        assert_eq!(ours["hooks"][0]["command"], "peers -C /p/a tick --after claude # peers:/p/a");
        assert_eq!(ours["hooks"][0]["timeout"], super::TIMEOUT_S);
        assert_eq!(merge(Some(&text), "/p/a", Tool::Claude), Ok(Merged::Same));
        let gone = unmerge(&text, "/p/a").unwrap().unwrap();
        let was: serde_json::Value = serde_json::from_str(OWN).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&gone).unwrap(), was);
        assert_eq!(unmerge(&gone, "/p/a"), Ok(None));
    }

    #[test]
    fn an_entry_without_a_time_limit_gets_ours_and_one_with_another_keeps_it() {
        let text = installed(None, "/p/a");
        let ours = format!(",\n            \"timeout\": {TIMEOUT_S}");
        assert!(text.contains(&ours), "{text}");
        let without = text.replace(&ours, "");
        assert_eq!(merge(Some(&without), "/p/a", Tool::Claude), Ok(Merged::Updated(text.clone())));
        let other = text.replace(&TIMEOUT_S.to_string(), "90");
        assert_eq!(merge(Some(&other), "/p/a", Tool::Claude), Ok(Merged::Same));
    }

    #[test]
    fn a_repository_whose_path_begins_alike_keeps_its_entry() {
        let both = installed(Some(&installed(None, "/p/ab")), "/p/a");
        assert!(both.contains("-C /p/ab ") && both.contains("-C /p/a "), "{both}");
        let left = unmerge(&both, "/p/a").unwrap().unwrap();
        assert!(left.contains("-C /p/ab ") && !left.contains("-C /p/a "), "{left}");
        assert_eq!(unmerge(&left, "/p/ab"), Ok(Some(String::new())), "nothing of ours is left");
    }

    #[test]
    fn another_command_behind_our_mark_is_replaced_where_it_stands() {
        for old in
            ["peers tick # peers:/p/a", "true # peers:/p/a (claude): not driven by hooks in this version"]
        {
            let text = format!(
                r#"{{"hooks": {{"Stop": [{{"matcher": "x", "hooks": [{{"command": "{old}", "timeout": 5}}]}}, 7]}}}}"#
            );
            let Merged::Updated(text) = merge(Some(&text), "/p/a", Tool::Claude).unwrap() else {
                panic!("{old}")
            };
            assert!(
                text.contains("tick --after claude # peers:/p/a") && text.contains("\"timeout\": 5"),
                "{text}"
            );
            assert_eq!(text.matches("peers:").count(), 1);
        }
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        for (text, why) in [
            ("{", "is not valid JSON"),
            ("[]", "is not a JSON object"),
            (r#"{"hooks": []}"#, "has `hooks` that are not an object"),
            (r#"{"hooks": {"Stop": {}}}"#, "has `hooks.Stop` that is not a list"),
        ] {
            assert_eq!(merge(Some(text), "/p/a", Tool::Codex), Err(why), "{text}");
        }
        assert!(matches!(merge(Some(" \n"), "/p/a", Tool::Codex), Ok(Merged::Installed(_))));
        assert!(unmerge("{", "/p/a").is_err());
        assert_eq!(unmerge("{}", "/p/a"), Ok(None));
    }
}
