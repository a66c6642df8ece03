//! Which programs of the gates are not here.

use std::collections::BTreeSet;

use peers_modes::setup;
use peers_sys::env::Env;

/// A note for each program that a command begins with and that is not on the search path.
pub(crate) fn missing(commands: &[&str], env: &Env) -> Vec<String> {
    if env.var("PATH").is_none() {
        return Vec::new();
    }
    let installed = setup::installed(env);
    let programs: BTreeSet<&str> = commands.iter().filter_map(|cmd| program(cmd)).collect();
    let missing = programs.into_iter().filter(|program| !installed(program));
    missing
        .map(|program| {
            format!(
                "`{program}` is not installed here, and a gate runs it: install it, let `setup` in .peers/config.yaml do so, or name another command with --test"
            )
        })
        .collect()
}

/// The program that a command begins with; nothing where that is a word of the shell, or a path.
fn program(cmd: &str) -> Option<&str> {
    const OF_THE_SHELL: [&str; 9] = ["cd", "exec", "exit", "export", "for", "if", "set", "until", "while"];
    let word = cmd.split_whitespace().next()?;
    let plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    (plain && word != "." && !OF_THE_SHELL.contains(&word)).then_some(word)
}
