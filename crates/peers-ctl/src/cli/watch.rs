//! `peers-ctl watch`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_fleet::notify::{Channel, Notice};
use peers_fleet::supervise::{Verdict, recent, supervise};
use peers_fleet::{ConfigDir, Project, ProjectName, registry};
use peers_model::exit;
use peers_sys::clock;
use peers_sys::interrupts::Interrupts;
use peers_view::{Level, LoopRow};
use serde_json::json;

use super::duration;
use super::start::BudgetArgs;
use crate::board::{Board, Looked};
use crate::ctl::{Ctl, failed};
use crate::many::Which;

/// Watch over loops in the foreground: start those again that died, and tell when one needs somebody
///
/// Which loops are started again is said by `peers-ctl start --restart on-crash`: only those that died or
/// failed, never one that stopped for a reason, first after 30 seconds, later after up to half an hour, at most
/// five times in an hour. Ctrl-C ends the watching; the loops go on.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Look every DURATION
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    every: Duration,
    /// Run CMD by /bin/sh when a loop comes to need somebody; the notice is JSON on its standard input, and in
    /// `$PEERS_PROJECT`, `$PEERS_LEVEL`, `$PEERS_CODE`, `$PEERS_WHY`, `$PEERS_ACTION`
    #[arg(long, value_name = "CMD", verbatim_doc_comment)]
    notify_cmd: Vec<String>,
    /// Post the notice as JSON to the address in this file, by `curl`; a file, since addresses are secrets
    #[arg(long, value_name = "FILE")]
    webhook_file: Option<std::path::PathBuf>,
    /// Show the notice on the desktop
    #[arg(long)]
    desktop: bool,
    /// From which urgency on somebody is told
    #[arg(long, value_enum, default_value_t = From::Act, value_name = "LEVEL")]
    from: From,
    /// Start no loop again, only tell
    #[arg(long)]
    no_restart: bool,
    /// Look once, do what is to be done, and end; for timers
    #[arg(long)]
    once: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum From {
    /// What somebody has to do something about
    Act,
    /// Also what is worth a look
    Watch,
    /// Also what is done
    Done,
}

impl From {
    fn wants(self, level: Level) -> bool {
        match level {
            Level::Act => true,
            Level::Watch => self != Self::Act,
            Level::Done => self == Self::Done,
            Level::Ok | Level::Idle => false,
        }
    }
}

/// Most of a file with an address, bytes.
const ADDRESS: u64 = 4096;

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let config = ctl.config()?;
    let channels = channels(args, ctl)?;
    for channel in &channels {
        channel.check(&ctl.env).map_err(failed)?;
    }
    if args.every < Duration::from_millis(500) {
        return Err(CommandError::usage("--every is at least 1s"));
    }
    let interrupts = Interrupts::take()?;
    let mut watch = Watch {
        args,
        ctl,
        config,
        channels,
        board: Board::default(),
        told: BTreeMap::new(),
        begun: Vec::new(),
    };
    loop {
        match watch.look() {
            Ok(()) => {}
            Err(error) if error.is_silent() || args.once => return Err(error),
            // A full disk, a registry that somebody holds: whoever watches goes on, and says so.
            Err(error) => {
                ctl.out.talk(&format!("warning: this look did not come to its end: {}", error.summary()));
            }
        }
        if args.once {
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(signal) = interrupts.wait(args.every) {
            ctl.say("the watching ends; the loops go on");
            return Ok(ExitCode::from(exit::signalled(signal)));
        }
    }
}

fn channels(args: &Args, ctl: &Ctl) -> Result<Vec<Channel>, CommandError> {
    let mut channels: Vec<Channel> = args.notify_cmd.iter().cloned().map(Channel::Command).collect();
    if let Some(file) = &args.webhook_file {
        let path = std::path::absolute(peers_sys::env::expand_home(file, &ctl.env))?;
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(CommandError::usage("--webhook-file names a file"));
        };
        let text = peers_sys::SafeDir::open_shared(dir)?.read_text(name, ADDRESS)?;
        channels.push(Channel::Webhook(text.trim().to_owned()));
    }
    if args.desktop {
        channels.push(Channel::Desktop);
    }
    Ok(channels)
}

struct Watch<'a> {
    args: &'a Args,
    ctl: &'a Ctl,
    config: ConfigDir,
    channels: Vec<Channel>,
    board: Board,
    /// Of what somebody was told last.
    told: BTreeMap<String, (Level, &'static str)>,
    /// Loops that were started here: who waits for them learns when they end.
    begun: Vec<peers_sys::detach::Launched>,
}

impl Watch<'_> {
    fn look(&mut self) -> Result<(), CommandError> {
        // Those that have ended are laid to rest.
        self.begun.retain_mut(|launched| !matches!(launched.ended(), Ok(Some(_))));
        let registry = registry::load(&self.config).map_err(failed)?.registry;
        let names = match self.args.which.or_all().of(&registry, None) {
            Ok(names) => names,
            Err(finding) if finding.exit == exit::NEGATIVE => Vec::new(),
            Err(finding) => return Err(failed(finding)),
        };
        let Looked { rows, seen, .. } =
            self.board.rows(self.ctl, &self.config, |project| names.contains(&project.name))?;
        for one in &seen {
            if let Some(change) = &one.change {
                self.event("state", change.name.as_str(), &change.words())?;
            }
        }
        for row in &rows {
            self.attend(row)?;
        }
        if !self.args.no_restart {
            for one in &seen {
                self.restart(&one.project)?;
            }
        }
        Ok(())
    }

    /// Tells of a loop that has come to need somebody.
    fn attend(&mut self, row: &LoopRow) -> Result<(), CommandError> {
        let top = &row.attention.top;
        let now = (top.level, top.code);
        let before = self.told.insert(row.name.clone(), now);
        if before == Some(now) || !self.args.from.wants(top.level) {
            return Ok(());
        }
        let notice = Notice::new(&row.name, top.level.word(), top.code, &top.why, top.action.as_deref());
        let action = notice.action.as_ref().map(|action| format!(" -> {action}")).unwrap_or_default();
        self.event(top.level.word(), &row.name, &format!("{}{action}", notice.why))?;
        for channel in &self.channels {
            if let Err(why) = channel.tell(&notice, &self.ctl.env) {
                self.ctl.out.talk(&format!("warning: {} could not be told: {why}", channel.words()));
            }
        }
        Ok(())
    }

    fn restart(&mut self, project: &Project) -> Result<(), CommandError> {
        match supervise(project, clock::now()) {
            Verdict::Leave | Verdict::Wait(_) => return Ok(()),
            Verdict::GiveUp => {
                let known = self.told.insert(format!("{} ", project.name), (Level::Act, "given-up"));
                if known.is_none() {
                    let why = "it died too often within an hour and is not started again before that is over";
                    self.event("given-up", project.name.as_str(), why)?;
                }
                return Ok(());
            }
            Verdict::Start => {}
        }
        self.told.remove(&format!("{} ", project.name));
        note(&self.config, &project.name)?;
        let options = super::restart::as_last(
            &project.last_argv,
            BudgetArgs::default().options(&super::start::RunArgs::default(), self.ctl),
        )?;
        match super::start::launch(self.ctl, &self.config, &project.name, &options) {
            Ok(started) => {
                self.event(
                    "restarted",
                    project.name.as_str(),
                    &format!("run {}, process {}", started.run_id, started.pid),
                )?;
                self.begun.push(started.launched);
            }
            Err(error) => {
                self.event("not-restarted", project.name.as_str(), &error.summary())?;
            }
        }
        Ok(())
    }

    fn event(&self, kind: &str, project: &str, text: &str) -> Result<(), CommandError> {
        let text = peers_sys::term::line(text, 400);
        let line = if self.ctl.json {
            let line = json!({"schema": "peers-ctl.watch/1", "ts": clock::now(), "kind": kind, "project": project, "text": text});
            peers_view::terminal_safe(&format!("{line}\n"))
        } else {
            format!("{} {kind:<12} {project}: {text}\n", clock::now())
        };
        self.ctl.out.stream(line.as_bytes())
    }
}

/// Notes down that a loop is started again.
fn note(config: &ConfigDir, name: &ProjectName) -> Result<(), CommandError> {
    let now = clock::now();
    registry::edit(config, |registry| {
        if let Some(project) = registry.get_mut(name) {
            project.restart.times = recent(&project.restart.times, now);
            project.restart.times.push(now);
        }
        Ok(())
    })
    .map_err(failed)
}
