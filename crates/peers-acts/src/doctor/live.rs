//! One word from each peer, by the launcher of the loop.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use peers_model::command::Step;
use peers_model::config::PeerSpec;
use peers_model::exit;
use peers_model::outcome::{ApiClass, ExitClass, PeerExit, classification};
use peers_model::time::human;
use peers_run::boot::{self, BootError, Finding, Loaded};
use peers_run::drive;
use peers_run::procs::{self, Book, Site};
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::term;
use peers_tools::ToolKind;

use super::check::{Answer, Check};
use super::peers::log_in;

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
    let git = boot::git_program(env)?;
    let repo = dir.create_subdir("repo")?;
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

/// What that says of the peer, which is a tool of this kind.
pub(super) fn check(answer: &Answer, kind: &ToolKind) -> Check {
    let by_protocol = *kind == ToolKind::Acp;
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
    let said = said(exit).map(|said| format!(": {said}")).unwrap_or_default();
    let (code, fix) = match exit.api {
        ApiClass::Auth => (exit::PEER, Step::from(log_in(kind))),
        ApiClass::UsageCap => (exit::PEER, "wait until its subscription's window opens again".into()),
        ApiClass::Quota => (exit::PEER, "wait for the quota, or buy more".into()),
        ApiClass::Transient => (exit::PEER, "its service is busy: try again later".into()),
        ApiClass::Other => (exit::PEER, "read what it said; its service refused".into()),
        ApiClass::None if by_protocol && exit.code == Some(NO_SESSION) => (
            exit::ENVIRONMENT,
            "see that its `argv` starts an agent that speaks the Agent Client Protocol, version 1, on standard input"
                .into(),
        ),
        ApiClass::None => (exit::ENVIRONMENT, "run the command of this peer by hand in an empty repository".into()),
    };
    Check::error(&about, code, format!("no answer after {took} ({class}){said}"), fix)
}

/// Why there was no answer, in the words of a run; a tool's stream is for programs and is not shown.
fn said(exit: &PeerExit) -> Option<String> {
    let known = match (exit.api, exit.resets_at) {
        (ApiClass::Auth, _) => Some("it is not logged in".to_owned()),
        (ApiClass::Quota, _) => Some("its quota is used up".to_owned()),
        (ApiClass::UsageCap, Some(at)) => Some(format!("its usage cap lasts until {at}")),
        (ApiClass::UsageCap, None) => Some("the usage cap of its subscription is reached".to_owned()),
        (ApiClass::Transient | ApiClass::Other | ApiClass::None, _) => None,
    };
    let told = exit.matched.as_ref().map(|matched| matched.snippet.as_str()).filter(|text| is_prose(text));
    let last = || {
        let mut tails = [&exit.stderr_tail, &exit.stdout_tail].into_iter();
        tails.find_map(|tail| tail.lines().map(str::trim).rfind(|line| is_prose(line)))
    };
    let words = told.or_else(|| last().filter(|_| known.is_none()));
    let words = words.map(|words| term::line(words.trim(), SAID));
    let all: Vec<String> = known.into_iter().chain(words).collect();
    (!all.is_empty()).then(|| all.join(": "))
}

/// Whether a line is for people, and neither a line of a stream nor what is left of one that was cut.
fn is_prose(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with(['{', '[']) && !line.ends_with(['}', ']'])
}

fn used(exit: &PeerExit) -> String {
    let model = exit.model.as_ref().map(|model| format!("; model {}", term::line(model, 80)));
    let least = if exit.at_least { "at least " } else { "" };
    let tokens = exit.usage.tokens.map(|tokens| format!("; {least}{tokens} tokens"));
    let usd = exit.usage.usd.map(|usd| format!("; {least}{usd}"));
    [model, tokens, usd].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use peers_model::PeerName;
    use peers_model::outcome::Matched;

    use super::*;

    const STREAM: &str = "ult\",\"x\":1}\n{\"type\":\"result\",\"is_error\":true}\n";

    fn failed(api: ApiClass, told: Option<&str>) -> PeerExit {
        let matched = told.map(|text| Matched {
            pattern: "x".into(),
            key: None,
            snippet: text.into(),
            source: "structured".into(),
        });
        let stdout_tail = STREAM.to_owned();
        PeerExit { class: ExitClass::Nonzero, api, matched, stdout_tail, ..PeerExit::interrupted(1) }
    }

    fn words(exit: PeerExit, kind: &ToolKind) -> (String, String) {
        let answer = Answer { peer: PeerName::new("ann").unwrap(), exit: Ok(exit) };
        let check = check(&answer, kind);
        (
            check.message.split_once("): ").map(|(_, said)| said.to_owned()).unwrap_or_default(),
            check.fix.unwrap().to_string(),
        )
    }

    #[test]
    fn a_peer_without_a_login_is_told_in_words_with_the_command_of_its_tool() {
        let (said, fix) = words(failed(ApiClass::Auth, Some("Invalid API key")), &ToolKind::Claude);
        assert_eq!(said, "it is not logged in: Invalid API key");
        assert!(
            fix.contains("`claude` and type `/login`") && fix.contains("CLAUDE_CODE_OAUTH_TOKEN"),
            "{fix}"
        );
        let (said, fix) = words(failed(ApiClass::Auth, None), &ToolKind::Codex);
        assert_eq!((said.as_str(), fix.contains("`codex login`")), ("it is not logged in", true));
    }

    #[test]
    fn no_line_of_a_stream_is_shown_and_the_last_line_for_people_is() {
        assert_eq!(words(failed(ApiClass::Other, None), &ToolKind::Claude).0, "");
        assert_eq!(words(failed(ApiClass::Other, Some(r#"{"a":1}"#)), &ToolKind::Claude).0, "");
        let exit = PeerExit { stderr_tail: "a\nno such model\n{}\n".into(), ..failed(ApiClass::Other, None) };
        assert_eq!(words(exit, &ToolKind::Claude).0, "no such model");
        let at = peers_model::Timestamp::from_millis(0);
        let capped = PeerExit { resets_at: Some(at), ..failed(ApiClass::UsageCap, None) };
        assert_eq!(words(capped, &ToolKind::Claude).0, format!("its usage cap lasts until {at}"));
    }
}
