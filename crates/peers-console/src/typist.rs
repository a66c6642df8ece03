//! How the cockpit has commands run.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use peers_model::limits;
use peers_sys::env::Env;
use peers_sys::{signal, term};
use peers_tui::{Acts, At, Done};

/// What a command printed is kept so far, bytes.
const OUTPUT: u64 = 64 * limits::KIB;

/// Runs commands for the cockpit as somebody would type them.
#[derive(Debug)]
pub struct Typist {
    env: Env,
    /// Where programs of ours are, by their names.
    ours: BTreeMap<&'static str, PathBuf>,
}

impl Typist {
    /// `ours` says where `peers` and `peers-ctl` are; others are found as a shell finds them.
    #[must_use]
    pub fn new(env: &Env, ours: impl IntoIterator<Item = (&'static str, PathBuf)>) -> Self {
        Self { env: env.clone(), ours: ours.into_iter().collect() }
    }

    fn command(&self, argv: &[String]) -> Command {
        // Nothing said is the operator's shell.
        let shell = [self.env.text("SHELL").unwrap_or("/bin/sh").to_owned()];
        let words = if argv.is_empty() { &shell } else { argv };
        let (program, rest) =
            words.split_first().map_or(("", [].as_slice()), |(first, rest)| (first.as_str(), rest));
        let known = self.ours.get(program).map(PathBuf::as_path);
        let mut command = Command::new(known.unwrap_or(Path::new(program)));
        command.args(rest);
        command
    }

    fn on_terminal(&self, argv: &[String], at: &At) -> Command {
        let mut command = self.command(argv);
        match at {
            At::Here => {}
            At::Home => drop(command.current_dir(self.env.home().unwrap_or_else(|| "/".into()))),
            At::Dir(dir) => drop(command.current_dir(dir)),
        }
        // A pager shows what agents wrote: no raw bytes, no filter, no command of it.
        command.env_remove("LESS").env_remove("LESSOPEN").env("LESSSECURE", "1");
        command
    }
}

impl Acts for Typist {
    fn run(&self, argv: &[String]) -> Done {
        let failed = |why: String| Done { code: None, output: why };
        let mut command = self.command(argv);
        // Both streams into one pipe, in the order in which they are written.
        let (mut from, to) = match std::io::pipe() {
            Ok(pipe) => pipe,
            Err(error) => return failed(error.to_string()),
        };
        let spawned = to.try_clone().and_then(|both| {
            command
                .stdin(Stdio::null())
                .stdout(both)
                .stderr(to)
                .env("NO_COLOR", "1")
                .env("PAGER", "cat")
                .spawn()
        });
        drop(command);
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => return failed(error.to_string()),
        };
        let mut kept = Vec::new();
        // What is beyond the cap is read and dropped, so that nobody waits for a reader.
        let read = from.by_ref().take(OUTPUT).read_to_end(&mut kept);
        let _rest = std::io::copy(&mut from, &mut std::io::sink());
        let code = child.wait().ok().and_then(|status| status.code());
        let mut output = term::block_bytes(&kept);
        if let Err(error) = read {
            output.push('\n');
            output.push_str(&error.to_string());
        }
        Done { code, output }
    }

    fn show(&self, argv: &[String], at: &At) -> Result<(), String> {
        let mut command = self.on_terminal(argv, at);
        let named = argv.first().map_or("the shell", String::as_str);
        // The terminal is an ordinary one by now: a signal that comes within this moment does no harm.
        let mut child = signal::with_none_blocked(|| command.spawn())
            .and_then(|spawned| spawned)
            .map_err(|error| format!("{named}: {error}"))?;
        let status = child.wait().map_err(|error| format!("{named}: {error}"))?;
        if !argv.is_empty() {
            // What it printed is gone with the next picture.
            let code = status.code().map(|code| format!(" (exit code {code})")).unwrap_or_default();
            crate::screen::aloud(&format!("\nEnter goes back to peers{code} "));
            let mut line = String::new();
            let _whatever = std::io::stdin().read_line(&mut line);
        }
        Ok(())
    }

    fn suspend(&self) {
        signal::stop_self();
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn typist() -> Typist {
        Typist::new(
            &Env::from_pairs([("HOME", "/home/op"), ("SHELL", "/bin/ksh")]),
            [("peers", "/opt/peers".into())],
        )
    }

    #[test]
    fn a_command_runs_where_it_is_asked_for_and_a_line_at_home() {
        let argv = ["peers".to_owned(), "status".to_owned()];
        let at = |at: At| typist().on_terminal(&argv, &at).get_current_dir().map(Path::to_owned);
        assert_eq!(at(At::Here), None);
        assert_eq!(at(At::Home), Some("/home/op".into()));
        assert_eq!(at(At::Dir("/srv/x".to_owned())), Some("/srv/x".into()));
        assert_eq!(typist().command(&argv).get_program(), "/opt/peers");
        assert_eq!(typist().command(&[]).get_program(), "/bin/ksh");
    }

    #[test]
    fn a_pager_takes_no_settings_that_run_something() {
        let command = typist().on_terminal(&["less".to_owned(), "x.log".to_owned()], &At::Here);
        let set: BTreeMap<&OsStr, Option<&OsStr>> = command.get_envs().collect();
        for (name, value) in [("LESS", None), ("LESSOPEN", None), ("LESSSECURE", Some("1"))] {
            assert_eq!(set.get(OsStr::new(name)), Some(&value.map(OsStr::new)), "{name}");
        }
    }
}
