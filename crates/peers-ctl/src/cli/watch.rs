//! `peers-ctl watch`.

use std::process::ExitCode;
use std::time::Duration;

use peers_console::error::CommandError;
use peers_fleet::notify::{Channel, Notice};
use peers_fleet::start::Started;
use peers_fleet::supervise::{Refused, Verdict, recent, supervise};
use peers_fleet::told::{self, Due, Told};
use peers_fleet::{ConfigDir, Project, ProjectName, registry};
use peers_model::command::Command;
use peers_model::{Timestamp, exit};
use peers_sys::clock;
use peers_sys::digest::sha256_hex;
use peers_sys::interrupts::Interrupts;
use peers_sys::spawn::StubProgram;
use peers_view::{Level, LoopRow};
use serde_json::json;

use super::duration;
use super::start::BudgetArgs;
use crate::board::{Board, Looked};
use crate::ctl::{Ctl, failed};
use crate::many::{OR_ALL, Which};

/// Supervise loops in the foreground: restart those that died, and notify when one needs you
///
/// Restarts the loops that were started with `peers-ctl start --restart on-crash`: only those that died or
/// failed, never one that stopped for a reason; first after 30 seconds, later after up to half an hour, at
/// most five times in an hour. A refused start does not count; it is reported once and tried again later.
///
/// Each channel is notified once of each problem, also across calls: a file beside the registry records
/// who was notified. A channel that fails is tried five times. Ctrl-C stops watching; the loops keep
/// running.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("names", |names| names.help(OR_ALL)))]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[arg(help = lasting!("Look every DURATION"))]
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    every: Duration,
    /// Run CMD by /bin/sh when a loop needs you; the notice is JSON on its standard input, and in
    /// `$PEERS_PROJECT`, `$PEERS_LEVEL`, `$PEERS_CODE`, `$PEERS_WHY`, `$PEERS_ACTION`
    #[arg(long, value_name = "CMD", verbatim_doc_comment)]
    notify_cmd: Vec<String>,
    /// Post the notice as JSON to the address in this file, by `curl`; a file that nobody else can read, since
    /// addresses are secrets
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    webhook_file: Option<std::path::PathBuf>,
    /// Show the notice on the desktop
    #[arg(long)]
    desktop: bool,
    /// Lowest urgency that is notified
    #[arg(long, value_enum, default_value_t = From::Act, value_name = "LEVEL")]
    from: From,
    #[arg(help = lasting!("Repeat an alert that is still open after this long"))]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    remind: Option<Duration>,
    /// Restart no loop, only notify
    #[arg(long)]
    no_restart: bool,
    /// Check once, act, and exit; for timers
    #[arg(long)]
    once: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum From {
    /// What needs you
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
    if args.every < Duration::from_secs(1) {
        return Err(CommandError::usage("--every is at least 1s"));
    }
    if args.remind.is_some_and(|remind| remind < Duration::from_mins(1)) {
        return Err(CommandError::usage("--remind is at least 1m"));
    }
    let interrupts = Interrupts::take()?;
    let mut watch = Watch {
        args,
        ctl,
        config,
        interrupts: &interrupts,
        signal: None,
        channels,
        stub: StubProgram::this_program()?,
        board: Board::live(),
        kept: Told::default(),
        own: Told::default(),
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
        if args.once && watch.signal.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(signal) = watch.signal.or_else(|| interrupts.wait(args.every)) {
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
        let dir = peers_sys::SafeDir::open_shared(dir)?;
        let text = dir.read_text(name, ADDRESS)?;
        if dir.stat(name)?.is_some_and(|stat| stat.mode & 0o077 != 0) {
            let shown = path.to_string_lossy();
            let what = format!("others can read the address in {}", peers_sys::term::inline(&shown));
            return Err(CommandError::new(exit::REFUSED, what)
                .hint(format!("chmod 600 {}", peers_sys::term::quoted(&shown))));
        }
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
    interrupts: &'a Interrupts,
    /// The signal that came within a look.
    signal: Option<i32>,
    channels: Vec<Channel>,
    stub: StubProgram,
    board: Board,
    /// Who was told what, as the file has it.
    kept: Told,
    /// The same of this process, which also knows what could not be written, and what it printed.
    own: Told,
    /// Loops that were started here: who waits for them learns when they end.
    begun: Vec<peers_sys::detach::Launched>,
}

/// What is printed here.
const PRINTED: &str = "output";
/// What a loop asks of its operator.
const ATTENTION: &str = "attention";
/// What became of starting it again.
const RESTART: &str = "restart";

impl Watch<'_> {
    fn look(&mut self) -> Result<(), CommandError> {
        // Those that have ended are laid to rest.
        self.begun.retain_mut(|launched| !matches!(launched.ended(), Ok(Some(_))));
        let asked = self.args.which.or_all();
        self.ctl.bring_up(&self.config, &asked)?;
        let registry = registry::load(&self.config).map_err(failed)?.registry;
        let names = match asked.of(&registry, None) {
            Ok(names) => names,
            Err(finding) if finding.exit == exit::NEGATIVE => Vec::new(),
            Err(finding) => return Err(failed(finding)),
        };
        let Looked { rows, seen, .. } =
            self.board.rows(self.ctl, &self.config, |project| names.contains(&project.name))?;
        self.kept = Told::load(&self.config);
        for one in &seen {
            if let Some(change) = &one.change {
                self.event("state", change.name.as_str(), &change.nameless())?;
            }
        }
        // What is told may take its time; a loop that is to be started again does not wait for that.
        for one in seen.iter().filter(|_| !self.args.no_restart) {
            if self.interrupted() {
                return Ok(());
            }
            self.restart(&one.project)?;
        }
        for (row, one) in rows.iter().zip(&seen) {
            if self.interrupted() {
                return Ok(());
            }
            self.attend(row, &one.project)?;
        }
        Ok(())
    }

    fn interrupted(&mut self) -> bool {
        self.signal = self.signal.or_else(|| self.interrupts.wait(Duration::ZERO));
        self.signal.is_some()
    }

    /// Tells of a loop that has come to need somebody.
    fn attend(&mut self, row: &LoopRow, project: &Project) -> Result<(), CommandError> {
        let top = &row.attention.top;
        if !self.args.from.wants(top.level) {
            self.forget(project, ATTENTION);
            return Ok(());
        }
        let level = top.level.word();
        let notice = Notice::new(&row.name, level, top.code, &top.why, top.action.as_deref());
        // The same of another run is another thing, also where nobody looked in between.
        let of = match (&row.run_id, top.since) {
            (Some(run), _) => format!("/{run}"),
            (None, Some(since)) => format!("/{since}"),
            (None, None) => String::new(),
        };
        self.tell(project, (ATTENTION, &format!("{level}/{}{of}", top.code)), (level, &notice))
    }

    /// Tells those that are to be told, and notes that down before.
    fn tell(
        &mut self,
        project: &Project,
        (subject, what): (&str, &str),
        (kind, notice): (&str, &Notice),
    ) -> Result<(), CommandError> {
        let remind = self.args.remind.filter(|_| notice.level == Level::Act.word());
        let due = Due { project, subject, what, remind, now: clock::now() };
        let printed = || PRINTED.to_owned();
        let mut ids: Vec<String> = self.channels.iter().map(Channel::id).collect();
        // Whoever looks once is asked again and again; whoever stays says at his start what stands.
        ids.extend(self.args.once.then(printed));
        let mut claimed = self.kept.due(due, &ids);
        claimed.retain(|id| !self.own.due(due, std::slice::from_ref(id)).is_empty());
        if !claimed.is_empty() {
            claimed = match told::edit(&self.config, |told| told.claim(due, &claimed)) {
                Ok(claimed) => claimed,
                // Better told twice than never.
                Err(error) => {
                    self.unkept(&error);
                    claimed
                }
            };
        }
        claimed.extend((!self.args.once).then(printed));
        let claimed = self.own.claim(due, &claimed);
        let mut done = Vec::new();
        if claimed.iter().any(|id| id == PRINTED) {
            let action = notice.action.as_ref().map(|action| format!(" -> {action}")).unwrap_or_default();
            self.event(kind, &notice.project, &format!("{}{action}", notice.why))?;
            done.push(printed());
        }
        for channel in &self.channels {
            let id = channel.id();
            if !claimed.contains(&id) {
                continue;
            }
            let Err(why) = channel.tell(notice, &self.ctl.env, &self.stub) else {
                done.push(id);
                continue;
            };
            let given_up = self.own.gave_up(due, &id);
            let next = if given_up { "; it is not tried again" } else { "" };
            self.ctl.out.talk(&format!(
                "warning: {} could not be told of {}: {why}{next}",
                channel.words(),
                notice.project
            ));
        }
        if done.is_empty() {
            return Ok(());
        }
        let note = |told: &mut Told| done.iter().for_each(|id| told.done(due, id));
        note(&mut self.own);
        if (self.args.once || done.iter().any(|id| id != PRINTED))
            && let Err(error) = told::edit(&self.config, note)
        {
            self.unkept(&error);
        }
        Ok(())
    }

    /// There is nothing to say of this any more.
    fn forget(&mut self, project: &Project, subject: &str) {
        self.own.forget(project, subject);
        if self.kept.knows(project, subject)
            && let Err(error) = told::edit(&self.config, |told| told.forget(project, subject))
        {
            self.unkept(&error);
        }
    }

    fn unkept(&self, error: &peers_run::boot::Finding) {
        self.ctl.out.talk(&format!("warning: who was told what cannot be kept: {}", error.message));
    }

    fn restart(&mut self, project: &Project) -> Result<(), CommandError> {
        let now = clock::now();
        let refused = self.own.refused(project).or_else(|| self.kept.refused(project));
        match supervise(project, refused, now) {
            Verdict::Leave => {
                self.forget(project, RESTART);
                return Ok(());
            }
            Verdict::Wait(_) => return Ok(()),
            Verdict::GiveUp => {
                let why = "it died too often within an hour and is not started again before that is over";
                return self.stays(project, "given-up", "given-up", why);
            }
            Verdict::Start => {}
        }
        match self.start_again(project, now) {
            Ok(started) => {
                self.event(
                    "restarted",
                    project.name.as_str(),
                    &format!("run {}, process {}", started.run_id, started.pid),
                )?;
                self.begun.push(started.launched);
                self.set_refused(project, refused, None);
                self.forget(project, RESTART);
                Ok(())
            }
            Err(Failed { error, ran }) => {
                if !ran {
                    // It is asked again, later each time.
                    let times = refused.map_or(0, |refused| refused.times).saturating_add(1);
                    let since = project.last_stopped_at;
                    self.set_refused(project, refused, Some(Refused { since, at: now, times }));
                }
                let why = format!("it is not started again: {}", error.summary());
                let what = format!("not-restarted/{}", sha256_hex(why.as_bytes()));
                self.stays(project, "not-restarted", &what, &why)
            }
        }
    }

    /// Starts a loop with the arguments of its last start. An attempt is noted down before.
    fn start_again(&self, project: &Project, now: Timestamp) -> Result<Started, Failed> {
        let nothing_ran = |error| Failed { error, ran: false };
        let options = BudgetArgs::default().options(project.last_request.clone().again(), self.ctl);
        note(&self.config, &project.name, now).map_err(nothing_ran)?;
        super::start::launch(self.ctl, &self.config, &project.name, &options).map_err(|error| {
            let refused = REFUSALS.contains(&error.exit_code());
            // What cannot be taken back counts as an attempt.
            let ran = !refused || take_back(&self.config, &project.name, now).is_err();
            Failed { error, ran }
        })
    }

    /// Tells that a loop that died is not started again.
    fn stays(&mut self, project: &Project, code: &str, what: &str, why: &str) -> Result<(), CommandError> {
        let action = crate::board::spelling(self.ctl, project).spell(&Command::run());
        let notice = Notice::new(project.name.as_str(), Level::Act.word(), code, why, action.as_deref());
        // Another run that died is another thing.
        let died = project.last_exit.as_ref().and_then(|exit| exit.run_id.as_ref());
        let what = died.map_or_else(|| what.to_owned(), |run| format!("{run}/{what}"));
        self.tell(project, (RESTART, &what), (code, &notice))
    }

    fn set_refused(&mut self, project: &Project, before: Option<Refused>, refused: Option<Refused>) {
        self.own.set_refused(project, refused);
        if before != refused
            && let Err(error) = told::edit(&self.config, |told| told.set_refused(project, refused))
        {
            self.unkept(&error);
        }
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

/// Why a loop is not started again.
struct Failed {
    error: CommandError,
    /// Something may have run, so that it counts as an attempt.
    ran: bool,
}

/// The codes of a start that was refused before anything ran: something is not valid, somebody is in the way, a
/// policy forbids it, the budget is used up.
const REFUSALS: [u8; 4] = [exit::INVALID, exit::CONFLICT, exit::REFUSED, exit::BUDGET];

/// Notes down that a loop is started again.
fn note(config: &ConfigDir, name: &ProjectName, now: Timestamp) -> Result<(), CommandError> {
    registry::edit(config, |registry| {
        if let Some(project) = registry.get_mut(name) {
            project.restart.times = recent(&project.restart.times, now);
            project.restart.times.push(now);
        }
        Ok(())
    })
    .map_err(failed)
}

/// Takes that back: nothing was started.
fn take_back(config: &ConfigDir, name: &ProjectName, noted: Timestamp) -> Result<(), CommandError> {
    registry::edit(config, |registry| {
        if let Some(project) = registry.get_mut(name) {
            project.restart.times.retain(|at| *at != noted);
        }
        Ok(())
    })
    .map_err(failed)
}
