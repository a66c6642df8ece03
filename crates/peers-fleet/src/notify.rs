//! Telling an operator who is not looking: by a command, a webhook, or a notice on the desktop.
//!
//! Texts that come from agents are sanitised before they leave. The address of a webhook is a secret in most
//! cases, so it is handed to the program that calls it by its standard input, never on its command line.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use peers_model::exit;
use peers_run::boot::Finding;
use peers_sys::digest::sha256_hex;
use peers_sys::env::Env;
use peers_sys::spawn::{RawExit, Spawn, Stdin, StubProgram, resolve_program};
use peers_sys::term;
use serde::Serialize;

/// Whoever is told has so long.
const LIMIT: Duration = Duration::from_secs(20);
/// What becomes the program: what that prints is nobody's.
const SILENT: &str = r#"exec "$@" >/dev/null 2>&1"#;

/// How an operator is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Channel {
    /// A command for `/bin/sh -c`, with the notice in `PEERS_*` variables and as JSON on its standard input.
    Command(String),
    /// The notice as JSON, posted to this address by `curl`.
    Webhook(String),
    /// A notice on the desktop.
    Desktop,
}

/// What is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// The format.
    pub schema: &'static str,
    /// Which project.
    pub project: String,
    /// How urgent: `act`, `watch`, `ok`, `done`, `idle`.
    pub level: String,
    /// One word.
    pub code: String,
    /// For people, one line.
    pub why: String,
    /// The command that comes next.
    pub action: Option<String>,
}

impl Channel {
    /// What it needs on this machine.
    ///
    /// # Errors
    /// A [`Finding`], exit 6, where that is missing, 2 for an address that is none.
    pub fn check(&self, env: &Env) -> Result<(), Finding> {
        match self {
            Self::Command(_) => Ok(()),
            Self::Webhook(url) => {
                let known = ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme));
                if !known
                    || url.chars().any(|c| c.is_control() || c.is_whitespace() || matches!(c, '"' | '\\'))
                {
                    return Err(Finding::plain(
                        exit::USAGE,
                        "the address of a webhook begins with https:// or http:// and has no blanks",
                    ));
                }
                program("curl", env).map(drop)
            }
            Self::Desktop => program(NOTIFIER, env).map(drop),
        }
    }

    /// Tells it. Nobody waits longer than 20 seconds for whoever is told: then it and all that it started is ended.
    ///
    /// # Errors
    /// A sentence about what went wrong.
    pub fn tell(&self, notice: &Notice, env: &Env, stub: &StubProgram) -> Result<(), String> {
        let body = serde_json::to_string(notice).unwrap_or_default();
        let mut vars = env.vars().to_vec();
        match self {
            Self::Command(command) => {
                vars.extend(variables(notice).map(|(name, value)| (name.into(), value.into())));
                run(stub, vec!["/bin/sh".into(), "-c".into(), command.into()], vars, body.as_bytes())
            }
            Self::Webhook(url) => {
                let curl = program("curl", env).map_err(|finding| finding.message)?;
                let quoted = body.replace('\\', "\\\\").replace('"', "\\\"");
                let config = format!(
                    "url = \"{url}\"\nheader = \"Content-Type: application/json\"\ndata-raw = \"{quoted}\"\nmax-time = 15\n"
                );
                let mut words: Vec<OsString> = vec![curl.into_os_string()];
                words.extend(CURL.map(OsString::from));
                run(stub, words, vars, config.as_bytes())
            }
            Self::Desktop => {
                let notifier = program(NOTIFIER, env).map_err(|finding| finding.message)?;
                let mut words: Vec<OsString> = vec![notifier.into_os_string()];
                words.extend(desktop(notice));
                run(stub, words, vars, b"")
            }
        }
    }

    /// What tells it from other channels, where an address is not shown.
    #[must_use]
    pub fn id(&self) -> String {
        let (kind, what) = match self {
            Self::Command(command) => ("command", command.as_str()),
            Self::Webhook(url) => ("webhook", url.as_str()),
            Self::Desktop => ("desktop", ""),
        };
        let digest = sha256_hex(what.as_bytes());
        format!("{kind}:{}", digest.get(..16).unwrap_or_default())
    }

    /// For people; an address is not shown.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Command(command) => format!("the command `{}`", term::line(command, 60)),
            Self::Webhook(_) => "the webhook".to_owned(),
            Self::Desktop => "the desktop".to_owned(),
        }
    }
}

impl Notice {
    /// A notice; foreign text in it is made fit to be shown.
    #[must_use]
    pub fn new(project: &str, level: &str, code: &str, why: &str, action: Option<&str>) -> Self {
        Self {
            schema: "peers-ctl.notice/1",
            project: term::line(project, 80),
            level: level.to_owned(),
            code: code.to_owned(),
            why: term::line(why, 400),
            action: action.map(|action| term::line(action, 400)),
        }
    }
}

/// The program that shows a notice on the desktop.
const NOTIFIER: &str = if cfg!(target_os = "macos") { "osascript" } else { "notify-send" };

fn desktop(notice: &Notice) -> Vec<OsString> {
    let title = format!("peers: {} ({})", notice.project, notice.level);
    let text = notice
        .action
        .as_ref()
        .map_or_else(|| notice.why.clone(), |action| format!("{}\n{action}", notice.why));
    if cfg!(target_os = "macos") {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let script = format!("display notification \"{}\" with title \"{}\"", quoted(&text), quoted(&title));
        return vec!["-e".into(), script.into()];
    }
    let urgency = if notice.level == "act" { "critical" } else { "normal" };
    // A body may hold marks of its own kind on some desktops.
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    vec![
        format!("--urgency={urgency}").into(),
        "--app-name=peers".into(),
        "--".into(),
        title.into(),
        escaped.into(),
    ]
}

/// How `curl` is called. First of all: without the settings that lie in a home directory.
const CURL: [&str; 10] = [
    "-q",
    "--config",
    "-",
    "--fail",
    "--silent",
    "--show-error",
    "--output",
    "/dev/null",
    "--proto",
    "=http,https",
];

fn variables(notice: &Notice) -> [(&'static str, String); 5] {
    [
        ("PEERS_PROJECT", notice.project.clone()),
        ("PEERS_LEVEL", notice.level.clone()),
        ("PEERS_CODE", notice.code.clone()),
        ("PEERS_WHY", notice.why.clone()),
        ("PEERS_ACTION", notice.action.clone().unwrap_or_default()),
    ]
}

fn program(name: &str, env: &Env) -> Result<std::path::PathBuf, Finding> {
    resolve_program(name.as_ref(), env.var("PATH"), Path::new("/")).map_err(|_| {
        Finding::new(
            exit::ENVIRONMENT,
            format!("there is no program `{name}`"),
            "install it, or be told another way: --notify-cmd CMD",
        )
    })
}

/// Runs it with this on its standard input, for as long as it may take: in a group of its own, with no signal
/// blocked, whatever whoever watches listens for.
fn run(
    stub: &StubProgram,
    words: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    input: &[u8],
) -> Result<(), String> {
    let here = peers_sys::env::current_dir().unwrap_or_else(|_| "/".into());
    let mut spawn = Spawn::new(stub.clone(), "/bin/sh", here);
    spawn.args = ["-c", SILENT, "sh"].iter().map(OsString::from).chain(words).collect();
    spawn.env = env;
    spawn.stdin = Stdin::Piped;
    let mut child = spawn.start().map_err(|error| format!("it cannot be started: {error}"))?;
    if let Some(mut stdin) = child.take_stdin() {
        // It need not read it. What is written is less than a pipe holds.
        let _unread = stdin.write_all(input);
    }
    let unknown = |error: peers_sys::spawn::WaitError| format!("how it ended is not known: {error}");
    let ended = child.wait_exited(Some(LIMIT)).map_err(unknown)?;
    if ended.is_none() {
        // It is our child and not reaped. Whoever is gone already need not be ended.
        let _gone = child.kill();
        child.wait_exited(None).map_err(unknown)?;
    }
    let exit = child.reap().map_err(unknown)?;
    match exit {
        _ if ended.is_none() => Err(format!("it took longer than {} seconds", LIMIT.as_secs())),
        RawExit::Code(0) => Ok(()),
        RawExit::Code(code) => Err(format!("it ended with exit code {code}")),
        RawExit::Signal(signal) => Err(format!("it died of signal {signal}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_notice_steers_a_terminal() {
        let notice = Notice::new("billing", "act", "budget", "the \u{1b}[2Jmoney\nis gone", Some("x\u{7}y"));
        let told = format!("{notice:?}{:?}{:?}", variables(&notice), desktop(&notice));
        assert!(!notice.why.contains('\n') && !told.contains('\u{1b}') && !told.contains("u{"), "{told}");
    }

    #[test]
    fn channels_are_told_apart_without_their_secrets() {
        let one = Channel::Webhook("https://secret/1".into());
        assert_ne!(one.id(), Channel::Webhook("https://secret/2".into()).id());
        assert!(!one.id().contains("secret"));
        assert_ne!(Channel::Command("a".into()).id(), Channel::Desktop.id());
    }

    #[test]
    fn who_cannot_be_told_is_said() {
        let env = Env::from_pairs([("PATH", "/usr/bin:/bin")]);
        assert_eq!(Channel::Webhook("ftp://x".into()).check(&env).unwrap_err().exit, 2);
        assert_eq!(Channel::Webhook("https://x/\" y".into()).check(&env).unwrap_err().exit, 2);
        let nowhere = Env::from_pairs([("PATH", "/nowhere")]);
        assert_eq!(Channel::Webhook("https://x".into()).check(&nowhere).unwrap_err().exit, 6);
        assert_eq!(Channel::Desktop.check(&nowhere).unwrap_err().exit, 6);
        assert!(!Channel::Webhook("https://secret".into()).words().contains("secret"));
    }
}
