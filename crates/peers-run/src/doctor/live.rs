//! One word from each peer, by the launcher of the loop.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use peers_model::config::PeerSpec;
use peers_model::exit;
use peers_model::outcome::{ApiClass, ExitClass, PeerExit, classification};
use peers_model::time::human;
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::term;

use super::{Answer, Check};
use crate::boot::{BootError, Finding, Loaded};
use crate::drive;
use crate::gitrepo::chain;
use crate::oneshot::{file, locate};
use crate::procs::{self, Book, Site};

/// What is sent.
const PROMPT: &str = "Answer with the one word OK. Use no tools and change no files.\n";
/// So long a peer may take, seconds.
const LIMIT_S: NonZeroU32 = NonZeroU32::new(120).unwrap();
/// The exit code of the bridge to an agent that did not begin, or broke off (`docs/formats/acp-bridge.md`).
const NO_SESSION: i32 = 3;
/// Characters of what it said last.
const SAID: usize = 200;

/// An empty repository: some tools refuse to work outside of one.
pub(super) fn repository(dir: &SafeDir, env: &Env) -> Result<PathBuf, BootError> {
    let git = locate(env)?;
    let repo = dir.create_subdir("repo").map_err(|e| file(&e))?;
    let said = |what: String| Finding::plain(exit::ENVIRONMENT, what);
    let done = Command::new(git.program())
        .args(["-c", "init.defaultBranch=main", "init", "-q", "--template="])
        .current_dir(repo.path())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| said(format!("git does not start: {error}")))?;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr);
        return Err(said(format!("git init: {}", term::line(&why, SAID))).into());
    }
    Ok(repo.path().to_owned())
}

/// Asks one peer.
pub(super) fn ask(site: Rc<Site>, loaded: &Loaded, peer: &PeerSpec) -> Result<Answer, BootError> {
    let mut config = loaded.config.clone();
    config.health.idle_timeout_s = LIMIT_S;
    config.health.absolute_max_runtime_s = LIMIT_S;
    let book = Book::new(config, &[]).map_err(|e| Finding::plain(exit::INVALID, chain(&e)))?;
    let exit = drive::on_this_thread(procs::ask(site, book, peer, PROMPT))
        .map_err(|e| Finding::plain(exit::BUG, format!("the runtime does not start: {e}")))?;
    Ok(Answer { peer: peer.name.clone(), exit })
}

/// What that says of the peer, of which `by_protocol` tells whether it speaks the Agent Client Protocol.
pub(super) fn check(answer: &Answer, by_protocol: bool) -> Check {
    let about = format!("peer {}", answer.peer);
    let exit = match &answer.exit {
        Ok(exit) => exit,
        Err(why) => {
            return Check::error(&about, exit::BUG, format!("it could not be asked: {why}"), "try again");
        }
    };
    let took = human(Duration::from_millis(exit.duration_ms));
    if exit.class == ExitClass::Ok && exit.api == ApiClass::None {
        let began = if by_protocol { "it began a session by the Agent Client Protocol and" } else { "it" };
        return Check::ok(&about, format!("{began} answered in {took}{}", used(exit)));
    }
    let class = classification(exit.class, exit.api);
    let said = [&exit.stderr_tail, &exit.stdout_tail].into_iter().map(|tail| term::line(tail.trim(), SAID));
    let said =
        said.into_iter().find(|tail| !tail.is_empty()).map(|tail| format!(": {tail}")).unwrap_or_default();
    let (code, fix) = match exit.api {
        ApiClass::Auth => (exit::PEER, "log in with this tool, or give it a key"),
        ApiClass::UsageCap => (exit::PEER, "wait until its subscription's window opens again"),
        ApiClass::Quota => (exit::PEER, "wait for the quota, or buy more"),
        ApiClass::Transient => (exit::PEER, "its service is busy: try again later"),
        ApiClass::Other => (exit::PEER, "read what it said; its service refused"),
        ApiClass::None if by_protocol && exit.code == Some(NO_SESSION) => (
            exit::ENVIRONMENT,
            "see that its `argv` starts an agent that speaks the Agent Client Protocol, version 1, on standard input",
        ),
        ApiClass::None => (exit::ENVIRONMENT, "run the command of this peer by hand in an empty repository"),
    };
    Check::error(&about, code, format!("no answer after {took} ({class}){said}"), fix)
}

fn used(exit: &PeerExit) -> String {
    let model = exit.model.as_ref().map(|model| format!("; model {}", term::line(model, 80)));
    let least = if exit.at_least { "at least " } else { "" };
    let tokens = exit.usage.tokens.map(|tokens| format!("; {least}{tokens} tokens"));
    let usd = exit.usage.usd.map(|usd| format!("; {least}{usd}"));
    [model, tokens, usd].into_iter().flatten().collect()
}
