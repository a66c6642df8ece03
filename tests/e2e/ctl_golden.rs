//! The JSON of every command that looks, as it was agreed on, and the completions of every shell.
//!
//! `PEERS_UPDATE=1` writes the files below `tests/golden/ctl` anew; a difference is a change of the interface.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Map, Value};

use crate::ctl_fleet::{Fleet, controller};
use crate::support::{Ended, World, program};

/// Every command that looks: the name of its file, its arguments, its exit code, its schema.
const COMMANDS: [(&str, &str, i32, &str); 20] = [
    ("list", "list", 0, "peers-ctl.list/1"),
    ("list-wide", "list --wide", 0, "peers-ctl.list/1"),
    ("status", "status demo", 0, "peers-ctl.status/1"),
    ("dashboard", "dashboard", 0, "peers-ctl.dashboard/1"),
    ("dashboard-project", "dashboard --project demo", 0, "peers-ctl.dashboard/1"),
    ("events", "events", 0, "peers-ctl.events/1"),
    ("tail", "tail demo --once", 0, "peers-ctl.tail/1"),
    ("logs", "logs demo", 0, "peers-ctl.logs/1"),
    ("logs-tick", "logs demo --tick 1", 0, "peers-ctl.logs/1"),
    ("report", "report demo", 0, "peers-ctl.report/1"),
    ("review", "review demo", 0, "peers-ctl.review/1"),
    ("compare", "compare demo demo", 0, "peers-ctl.compare/1"),
    ("replay", "replay demo", 0, "peers-ctl.replay/1"),
    ("peek", "peek demo --no-follow", 0, "peers-ctl.peek/1"),
    ("doctor", "doctor demo", 0, "peers-ctl.doctor/1"),
    ("registry-check", "registry check", 0, "peers-ctl.registry-check/1"),
    ("reconcile", "reconcile", 0, "peers-ctl.reconcile/1"),
    ("wait", "wait demo", 0, "peers-ctl.wait/1"),
    ("start-dry-run", "start demo --dry-run", 0, "peers-ctl.start/1"),
    ("error", "status nobody", 3, "peers-ctl.error/1"),
];

/// What differs from one run to the next, in one place.
struct Redacted {
    world: String,
    bin: String,
}

impl Redacted {
    fn of(fleet: &Fleet) -> Self {
        let world = fleet.path("").canonicalize().unwrap().to_str().unwrap().to_owned();
        Self { world, bin: program().parent().unwrap().to_str().unwrap().to_owned() }
    }

    fn value(&self, key: &str, value: Value) -> Value {
        match value {
            Value::String(_) if key == "boot_id" => "<boot>".into(),
            Value::String(text) => Value::String(self.text(&text)),
            Value::Number(_) if measured(key) => "<n>".into(),
            Value::Array(list) => list.into_iter().map(|one| self.value(key, one)).collect(),
            Value::Object(map) => {
                // A cell whose unit is time.
                let timed = map.get("unit").is_some_and(|unit| unit == "ms");
                let of = |(key, value): (String, Value)| {
                    let time = timed && matches!(key.as_str(), "spent" | "values" | "deltas");
                    let value = self.value(if time { "ms" } else { &key }, value);
                    (self.text(&key), value)
                };
                map.into_iter().map(of).collect::<Map<_, _>>().into()
            }
            value => value,
        }
    }

    fn text(&self, text: &str) -> String {
        let config = [self.world.as_str(), "home", "config"].join("/");
        let text =
            text.replace(&config, "<config>").replace(&self.world, "<world>").replace(&self.bin, "<bin>");
        let mut text = text.replace(env!("CARGO_PKG_VERSION"), "<version>");
        for (pattern, with) in [
            (r"\b\d{4}-\d\d-\d\dT[0-9:.]+Z", "<time>"),
            // A commit, a digest, the id of a run.
            (r"\b[0-9a-f]{7,}\b", "<hex>"),
            (r"\b\d+(ms|s|m|h)\b", "<span>"),
            (r"\bprocess \d+\b", "process <pid>"),
        ] {
            text = regex::Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
        }
        text
    }
}

/// Whether a number is what a clock, the system or the size of a path made of it.
fn measured(key: &str) -> bool {
    let ends =
        ["_ms", "_s", "bytes", "pid", "pgid", "starttime", "start_time", "dev", "ino", "ms", "revision"];
    ends.iter().any(|end| key.ends_with(end)) && !key.starts_with("max_")
}

/// Kinds instead of values, of lists what their first entry is: for what depends on the machine.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null | Value::String(_) => "null or text".into(),
        Value::Number(_) => "number".into(),
        Value::Bool(_) => "truth".into(),
        Value::Array(list) => list.first().map(shape).into_iter().collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), shape(value))).collect(),
    }
}

/// One document, or those of each line.
fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| {
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    })
}

/// A project that has run two ticks, with a bug, a review and handoffs.
fn ran() -> Fleet {
    let world = World::ready("test -d .");
    for peer in ["ann", "ben"] {
        let script = format!(
            "after: repeat\nturns:\n- - say: I work\n  - write: {{path: {peer}.txt, append: \"{{{{turn}}}}\\n\"}}\n  \
             - bug_report: {{id: bug-{peer}, severity: low, title: Odd, description: It is odd}}\n  \
             - handoff: Work of {peer}\n"
        );
        world.script(peer, &script);
    }
    let fleet = Fleet::of(world);
    fleet.ran(&["--max-ticks", "2"]);
    fleet
}

#[test]
fn the_json_of_every_command_that_looks_is_what_was_agreed_on() {
    let fleet = ran();
    let redacted = Redacted::of(&fleet);
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/ctl");
    let update = std::env::var_os("PEERS_UPDATE").is_some();
    let mut wrong = Vec::new();
    for (name, line, code, schema) in COMMANDS {
        let words: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        let done = fleet.ctl(&words);
        if name != "doctor" {
            assert_eq!(done.code, Some(code), "{line}: {}{}", done.out, done.err);
        }
        let found = document(&done.out);
        let said = if found.is_array() { &found[0]["schema"] } else { &found["schema"] };
        assert_eq!(said, schema, "{line}");
        let found = if name == "doctor" { shape(&found) } else { redacted.value("", found) };
        let text = format!("{found:#}\n");
        let file = dir.join(format!("{name}.json"));
        if update {
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(&file, &text).unwrap();
        }
        let golden: Value = std::fs::read(&file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        if golden != found {
            let golden = format!("{golden:#}\n");
            let at = golden.lines().zip(text.lines()).find(|(old, new)| old != new);
            wrong.push(format!("{name}: {at:?}"));
        }
    }
    assert!(wrong.is_empty(), "PEERS_UPDATE=1 writes them anew: {wrong:#?}");
}

#[test]
fn what_is_agreed_on_is_described() {
    let docs = include_str!("../../docs/formats/ctl-json.md");
    let missing: Vec<&str> =
        COMMANDS.iter().map(|(_, _, _, schema)| *schema).filter(|schema| !docs.contains(schema)).collect();
    assert!(missing.is_empty(), "docs/formats/ctl-json.md says nothing of {missing:?}");
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let fleet = World::bare();
    for (shell, check) in [("bash", &["-n"][..]), ("zsh", &["-n"]), ("fish", &["--no-execute"])] {
        let script = fleet.ctl(&["completions", shell]).exits(0).out;
        assert!(script.contains("COMPLETE") && script.contains("peers-ctl"), "{shell}");
        let file = fleet.path(&format!("completions.{shell}"));
        std::fs::write(&file, &script).unwrap();
        let mut command: Command = fleet.command(shell);
        let Ok(output) = command.args(check).arg(&file).output() else {
            eprintln!("skipped: {shell} is not installed, its completions were not parsed");
            continue;
        };
        assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
    }
    for shell in ["elvish", "powershell"] {
        fleet.ctl(&["completions", shell]).exits(0);
    }
}

/// What bash offers for this line, whose last word is being typed.
fn offered(fleet: &Fleet, script: &std::path::Path, line: &[&str]) -> Vec<String> {
    // What tells readline more of what is offered works in a completion alone.
    let program = r#"compopt() { :; }; source "$1"; shift
        function=$(complete -p peers-ctl | sed 's/.*-F \([^ ]*\) .*/\1/')
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        "$function" peers-ctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let path = format!("{}:/usr/bin:/bin", controller().parent().unwrap().display());
    let mut bash = fleet.command("bash");
    bash.env("PATH", path).args(["--norc", "-c", program, "bash"]).arg(script).args(line);
    let done = Ended::of(&bash.output().unwrap()).exits(0);
    assert_eq!(done.err, "");
    done.out.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_values_and_names() {
    let fleet = Fleet::new();
    let script = fleet.path("completion.bash");
    std::fs::write(&script, fleet.ctl(&["completions", "bash"]).exits(0).out).unwrap();
    let offered = |line: &[&str]| offered(&fleet, &script, line);
    assert_eq!(offered(&["peers-ctl", "sta"]), ["start", "status"]);
    assert_eq!(offered(&["peers-ctl", "start", "--max-u"]), ["--max-usd"]);
    for line in [&["start", "d"][..], &["budget", "raise", "d"], &["dashboard", "--project", "d"]] {
        assert_eq!(offered(&[&["peers-ctl"], line].concat()), ["demo"], "{line:?}");
    }
    assert_eq!(offered(&["peers-ctl", "list", "--state", "cr"]), ["crashed"]);
    assert_eq!(offered(&["peers-ctl", "list", "--sort", "na"]), ["name"]);
    assert_eq!(offered(&["peers-ctl", "start", "--restart", ""]), ["never", "on-crash"]);
    assert_eq!(offered(&["peers-ctl", "replay", "--class", "a"]), ["api-error", "absolute-timeout"]);
    assert_eq!(offered(&["peers-ctl", "man", "reg"]), ["registry"]);
    let commands = offered(&["peers-ctl", ""]);
    assert!(commands.iter().any(|word| word == "new"));
    // No file is offered where none can be meant.
    for option in ["--label", "--max-usd"] {
        assert_eq!(offered(&["peers-ctl", "start", option, ""]), [""], "{option}");
    }
}
