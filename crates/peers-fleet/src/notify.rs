//! Telling an operator who is not looking: by a command, a webhook, or a notice on the desktop.
//!
//! Texts that come from agents are sanitised before they leave. The address of a webhook is a secret in most
//! cases, so it is handed to the program that calls it by its standard input, never on its command line.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use peers_model::exit;
use peers_run::boot::Finding;
use peers_sys::env::Env;
use peers_sys::spawn::resolve_program;
use peers_sys::{clock, term};
use serde::Serialize;

/// Whoever is told has so long.
const LIMIT: Duration = Duration::from_secs(20);
/// How often it is looked at whether he is done.
const LOOK: Duration = Duration::from_millis(50);

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

    /// Tells it. Nobody waits longer than 20 seconds for whoever is told.
    ///
    /// # Errors
    /// A sentence about what went wrong.
    pub fn tell(&self, notice: &Notice, env: &Env) -> Result<(), String> {
        let body = serde_json::to_string(notice).unwrap_or_default();
        match self {
            Self::Command(command) => {
                let mut told = Command::new("/bin/sh");
                told.arg("-c")
                    .arg(command)
                    .env_clear()
                    .envs(env.vars().iter().cloned())
                    .envs(variables(notice));
                run(told, body.as_bytes())
            }
            Self::Webhook(url) => {
                let curl = program("curl", env).map_err(|finding| finding.message)?;
                let quoted = body.replace('\\', "\\\\").replace('"', "\\\"");
                let config = format!(
                    "url = \"{url}\"\nheader = \"Content-Type: application/json\"\ndata-raw = \"{quoted}\"\nmax-time = 15\n"
                );
                let mut told = Command::new(curl);
                told.args([
                    "--config",
                    "-",
                    "--fail",
                    "--silent",
                    "--show-error",
                    "--output",
                    "/dev/null",
                    "--proto",
                    "=http,https",
                ]);
                told.env_clear().envs(env.vars().iter().cloned());
                run(told, config.as_bytes())
            }
            Self::Desktop => {
                let notifier = program(NOTIFIER, env).map_err(|finding| finding.message)?;
                let mut told = Command::new(notifier);
                told.args(desktop(notice)).env_clear().envs(env.vars().iter().cloned());
                run(told, b"")
            }
        }
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

/// Runs it with this on its standard input, for as long as it may take.
fn run(mut command: Command, input: &[u8]) -> Result<(), String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // It need not read it.
        let _unread = stdin.write_all(input);
    }
    let until = clock::mono().plus(LIMIT);
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("it ended with {status}")),
            Ok(None) if clock::mono() < until => std::thread::sleep(LOOK),
            Ok(None) => {
                // It is our child and not reaped.
                let _gone = child.kill();
                let _reaped = child.wait();
                return Err(format!("it took longer than {} seconds", LIMIT.as_secs()));
            }
            Err(error) => return Err(format!("how it ended is not known: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice() -> Notice {
        Notice::new(
            "billing",
            "act",
            "budget",
            "the \u{1b}[2Jmoney\nis \"gone\"",
            Some("peers-ctl budget raise billing --usd +5"),
        )
    }

    #[test]
    fn a_command_is_told_in_variables_and_on_its_input_and_nothing_in_it_steers_a_terminal() {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("told");
        let env = Env::from_pairs([("PATH", "/usr/bin:/bin"), ("OUT", file.to_str().unwrap())]);
        let command = Channel::Command(
            "{ echo \"$PEERS_PROJECT/$PEERS_LEVEL/$PEERS_CODE/$PEERS_WHY/$PEERS_ACTION\"; cat; } > \"$OUT\""
                .into(),
        );
        command.tell(&notice(), &env).unwrap();
        let told = std::fs::read_to_string(file).unwrap();
        let (first, json) = told.split_once('\n').unwrap();
        assert!(
            first.starts_with("billing/act/budget/the ")
                && first.ends_with("/peers-ctl budget raise billing --usd +5")
        );
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!((&value["schema"], &value["level"]), (&"peers-ctl.notice/1".into(), &"act".into()));
        assert!(!told.contains('\u{1b}'));
    }

    #[test]
    fn who_cannot_be_told_is_said() {
        let env = Env::from_pairs([("PATH", "/usr/bin:/bin")]);
        assert!(Channel::Command("exit 3".into()).tell(&notice(), &env).unwrap_err().contains('3'));
        assert_eq!(Channel::Webhook("ftp://x".into()).check(&env).unwrap_err().exit, 2);
        assert_eq!(Channel::Webhook("https://x/\" y".into()).check(&env).unwrap_err().exit, 2);
        let nowhere = Env::from_pairs([("PATH", "/nowhere")]);
        assert_eq!(Channel::Webhook("https://x".into()).check(&nowhere).unwrap_err().exit, 6);
        assert_eq!(Channel::Desktop.check(&nowhere).unwrap_err().exit, 6);
        assert!(!Channel::Webhook("https://secret".into()).words().contains("secret"));
    }
}
