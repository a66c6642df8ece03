//! The smallest program that a loop can run on: the spawn stub, the bridge, the scripted peer, a check, `run`, `verify`,
//! `land` and `undo`.
//! For the tests of this crate.

use peers_model::RunRequest;
use peers_model::request::Worktree;
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use peers_acts::land::{self, LandOptions};
use peers_acts::oneshot::{self, VerifyOptions};
use peers_core::machine::{Notice, Now};
use peers_core::state::State;
use peers_fake::{Io, Options, Prompt};
use peers_place::Place;
use peers_run::boot::{self, BootError, RunOptions};
use peers_run::ports::Observer;
use peers_run::procs::{Live, Progress};
use peers_sys::env::{Env, current_dir};

struct Silent;

impl Observer for Silent {
    fn notice(&mut self, notice: &Notice, _state: &State, _at: Now) {
        if let Notice::TickEnded(tick) = notice {
            let line =
                format!("tick {} {} {:?} {}", tick.iteration, tick.peer, tick.outcome, tick.classification);
            // Whoever reads this may be gone.
            let _gone = writeln!(io::stdout(), "{line} {}", tick.soft_fail_reason.as_deref().unwrap_or(""));
        }
        if let Notice::Warning(text) = notice {
            let _gone = writeln!(io::stderr(), "{text}");
        }
    }
}

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(OsStr::to_str) {
        Some("__spawn") => peers_sys::stub::main(args),
        Some("__acp") => peers_acp::main(args),
        Some("__measure") => peers_run::measure::main(io::stdin(), io::stdout()),
        Some("__primer") => peers_run::primer::main(args),
        Some("fake-peer") => fake_peer(args),
        Some("check") => check(),
        Some("run") => run(args),
        Some("verify") => verify(args),
        Some("land") => land(args),
        Some("undo") => undo(args),
        _ => ExitCode::from(2),
    }
}

fn fake_peer(mut args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let script = args.next().map(PathBuf::from).unwrap_or_default();
    let peer = args.next().and_then(|p| p.into_string().ok());
    let Ok(cwd) = current_dir() else { return ExitCode::FAILURE };
    let env = Env::current();
    let switches = args.filter_map(|a| a.into_string().ok()).collect();
    let options =
        Options { script, peer, turn: None, state: None, prompt: Prompt::Stdin, cwd, env, switches };
    let io = Io { stdin: &mut io::stdin(), stdout: &mut io::stdout(), stderr: &mut io::stderr() };
    ExitCode::from(peers_fake::run(&options, io))
}

/// Every check passes where `deps/ready` is, and cannot judge where it is not.
fn check() -> ExitCode {
    let ready = current_dir().is_ok_and(|dir| dir.join("deps/ready").exists());
    ExitCode::from(if ready { 0 } else { 3 })
}

fn run(mut args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let target = args.next().map(Into::into).unwrap_or_default();
    // Gates are tried beforehand only where a test is about that; nobody waits for a network.
    let setup_pause = Some(std::time::Duration::ZERO);
    let mut request = RunRequest { anyway: true, ..RunRequest::default() };
    for arg in args.filter_map(|a| a.into_string().ok()) {
        match arg.split_once('=') {
            Some(("--max-ticks", n)) => request.max_ticks = n.parse().ok(),
            Some(("--branch", b)) => request.branch = Some(b.to_owned()),
            Some(("--worktree", dir)) => request.worktree = Some(Worktree::At(dir.to_owned())),
            None if arg == "--dry-run" => request.dry_run = true,
            None if arg == "--trial" => request.anyway = false,
            None if arg == "--worktree" => request.worktree = Some(Worktree::Default),
            None if arg == "--no-codemap" => request.no_codemap = true,
            None if arg == "--without-recon" => request.no_recon = true,
            None if arg == "--no-skeptic" => request.no_skeptic = true,
            _ => return ExitCode::from(2),
        }
    }
    let options = RunOptions { target, request, setup_pause, ..RunOptions::default() };
    match boot::run(&options, &Env::current(), Box::new(Silent), None) {
        Ok(done) => {
            let _gone = writeln!(io::stdout(), "{}\nStopped: {}", done.detail, done.reason);
            ExitCode::from(done.reason.exit_code())
        }
        Err(error) => refused(&error),
    }
}

fn refused(error: &BootError) -> ExitCode {
    for finding in &error.findings {
        let hint = finding.hint.clone().unwrap_or_default();
        let _gone = writeln!(io::stderr(), "{}: {}\nhint: {hint}", finding.exit, finding.message);
    }
    ExitCode::from(error.exit_code())
}

fn done(what: Result<String, BootError>) -> ExitCode {
    match what {
        Ok(what) => {
            let _gone = writeln!(io::stdout(), "{what}");
            ExitCode::SUCCESS
        }
        Err(error) => refused(&error),
    }
}

/// Says of each gate how far the round is when it runs. Gates wait until it was said: they read `held`.
fn verify(mut args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let target = PathBuf::from(args.next().unwrap_or_default());
    let held = PathBuf::from(args.next().unwrap_or_default());
    let options = VerifyOptions { pristine: args.any(|arg| arg == "--pristine"), ..VerifyOptions::default() };
    let env = Env::current();
    let (mut since, mut shown) = (None, None);
    let show = move |progress: &Progress| {
        let Some(Live::Gates(live)) = progress.now() else { return };
        let Some(gate) = live.running.first() else { return };
        if shown.replace(gate.clone()).as_ref() == Some(gate) {
            return;
        }
        let clock =
            if *since.get_or_insert(live.since) == live.since { "one clock" } else { "another clock" };
        let _gone = writeln!(io::stdout(), "{gate}: {} of {}, {clock}", live.done, live.of);
        let held = held.clone();
        // Waits for its reader.
        std::thread::spawn(move || std::fs::write(held, ""));
    };
    let verifying = || -> Result<String, BootError> {
        let place = Place::locate(&target, &env).map_err(boot::Finding::from)?;
        let loaded = boot::load(&mut place.open_store_disk().map_err(boot::Finding::from)?)?;
        let verified = oneshot::verify(&place, &env, &loaded, &options, Box::new(show))?;
        let words: Vec<&str> = verified.gates.iter().map(|judged| judged.verdict.word()).collect();
        Ok(words.join(" "))
    };
    done(verifying())
}

fn land(mut args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let target = PathBuf::from(args.next().unwrap_or_default());
    let squash = args.any(|arg| arg == "--squash");
    let options = LandOptions { squash, by: "test".to_owned(), ..LandOptions::default() };
    let env = Env::current();
    let landing = || -> Result<String, BootError> {
        let place = Place::locate(&target, &env).map_err(boot::Finding::from)?;
        let loaded = boot::load(&mut place.open_store_disk().map_err(boot::Finding::from)?)?;
        let landing = land::land(&place, &env, &loaded, &options, Box::new(|_| {}))?;
        Ok(format!("{landing:?}"))
    };
    done(landing())
}

fn undo(mut args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let target = PathBuf::from(args.next().unwrap_or_default());
    let env = Env::current();
    let undoing = || -> Result<String, BootError> {
        let place = Place::locate(&target, &env).map_err(boot::Finding::from)?;
        let undone = land::undo(&place, &env, "last", "test")?;
        Ok(format!("{undone:?}"))
    };
    done(undoing())
}
