//! Programs that gates start with and that are not there: cheap to see, and a whole turn is lost without them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use peers_model::goal::{GateRun, Goal};
use peers_sys::env::Env;
use peers_sys::spawn::resolve_program;

/// What the shell knows by itself, and what begins more than a command.
const SHELL: [&str; 24] = [
    "[", "alias", "case", "cd", "command", "echo", "eval", "exec", "exit", "export", "false", "for", "if",
    "printf", "read", "return", "set", "test", "trap", "true", "ulimit", "umask", "until", "while",
];

/// The programs that are missing, each with the gates that begin with it.
pub(super) fn missing(goals: &[Goal], dir: &Path, env: &Env) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for goal in goals {
        let Some(GateRun::Shell { cmd, .. }) = goal.gate().map(|gate| &gate.run) else { continue };
        let Some(program) = first(cmd) else { continue };
        if resolve_program(OsStr::new(program), env.var("PATH"), dir).is_err() {
            found.entry(program.to_owned()).or_default().push(goal.id.to_string());
        }
    }
    found
}

/// The program that a command begins with, where that is one of the search path and can be seen without a shell.
fn first(cmd: &str) -> Option<&str> {
    let mut rest = cmd.trim();
    // As a proposal for a directory below begins.
    if rest.starts_with("cd ") {
        rest = rest.split_once("&&")?.1.trim_start();
    }
    let assigns = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    let word = rest.split_whitespace().find(|word| !assigns(word))?;
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-'));
    (plain && !word.starts_with('-') && !SHELL.contains(&word)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn the_first_program_is_seen_where_no_shell_is_needed_for_that() {
        for (cmd, program) in [
            ("cargo test --all", Some("cargo")),
            ("CI=1 FOO= npm test", Some("npm")),
            ("cd 'a b' && go test ./...", Some("go")),
            ("test -f x", None),
            ("cd x; make", None),
            ("./gradlew test", None),
            ("$RUN it", None),
            ("! grep x y", None),
            ("(make)", None),
            ("", None),
        ] {
            assert_eq!(first(cmd), program, "{cmd}");
        }
    }
}
