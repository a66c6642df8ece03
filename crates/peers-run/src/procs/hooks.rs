//! The operator's hooks: one at a time, in the order in which they were asked for.
//!
//! Nothing else of ours runs beside them: whoever would start a peer or gates waits until [`Queue::runs`]
//! says no. So what moved while a hook ran was the hook's doing, or the operator's.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use peers_model::config::{Hook, HookCommand};
use peers_model::record::HookFailed;
use peers_model::time::human;
use peers_model::{TickNo, limits};
use peers_store::{artifacts, layout};
use peers_sys::spawn::{RawExit, Spawn, Stdin};
use peers_sys::{clock, term};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::command::{Company, Finished, Running};
use super::gate_log::GateLog;
use super::gates::{self, Cancel, Home};
use super::progress::Progress;
use super::{Book, Site};
use crate::hooks::HookEvent;

/// Cells of a program's name in a warning.
const PROGRAM: usize = 80;
/// Cells of what became of it.
const WHY: usize = 200;

/// Tells when something about hooks is to be looked at. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct HookNews(Rc<News>);

#[derive(Debug, Default)]
struct News {
    running: Cell<usize>,
    told: RefCell<Vec<HookFailed>>,
    changed: Notify,
}

impl HookNews {
    /// Comes back after a hook has ended, also one that ended before this was called. Cancel-safe.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Comes back when no hook runs and none waits. Cancel-safe.
    pub async fn idle(&self) {
        while self.0.running.get() > 0 {
            self.changed().await;
        }
    }
}

/// A hook that runs or waits, as long as this is not dropped.
struct Counted(HookNews);

impl Counted {
    fn new(news: &HookNews) -> Self {
        news.0.running.set(news.0.running.get().saturating_add(1));
        Self(news.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let News { running, changed, .. } = &*self.0.0;
        running.set(running.get().saturating_sub(1));
        changed.notify_one();
    }
}

/// The hooks that run and wait.
#[derive(Debug)]
pub(super) struct Queue {
    news: HookNews,
    last: Option<JoinHandle<()>>,
    cancel: watch::Sender<bool>,
    /// The loop is on its way out: none begins but those of its end.
    leaving: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Self { news: HookNews::default(), last: None, cancel: watch::channel(false).0, leaving: false }
    }
}

impl Queue {
    pub(super) fn news(&self) -> HookNews {
        self.news.clone()
    }

    /// Whether one runs or waits.
    pub(super) fn runs(&self) -> bool {
        self.news.0.running.get() > 0
    }

    /// What is to be told of those that have ended.
    pub(super) fn told(&self) -> Vec<HookFailed> {
        self.news.0.told.take()
    }

    /// Ends the one that runs, and none begins any more but those of the end of the loop.
    pub(super) fn end(&mut self) {
        self.leaving = true;
        // Nobody listens once they have ended.
        let _ended = self.cancel.send(true);
    }

    /// Whether hooks of this kind are started now.
    pub(super) fn takes(&self, book: &Book, hook: Hook) -> bool {
        (!self.leaving || hook.is_last()) && !book.config.hooks.of(hook).is_empty()
    }

    /// Starts the commands of a hook, after those that run and wait.
    pub(super) fn start(
        &mut self,
        site: &Rc<Site>,
        book: &Rc<Book>,
        event: &HookEvent,
        (company, progress): (Company, &Progress),
    ) {
        let hook = event.about.hook();
        if !self.takes(book, hook) {
            return;
        }
        if self.leaving {
            // It is not what was to be ended.
            self.cancel = watch::channel(false).0;
        }
        let spec = &site.spec;
        let one = OneHook {
            site: Rc::clone(site),
            book: Rc::clone(book),
            hook,
            tick: event.tick,
            peer: event.about.peer().map(ToString::to_string),
            input: event.json(&spec.run_id, &spec.project, clock::now(), &site.rules),
            cancel: Cancel::by(self.cancel.subscribe()),
            company,
            progress: progress.clone(),
        };
        let (before, counted) = (self.last.take(), Counted::new(&self.news));
        self.last = Some(tokio::task::spawn_local(async move {
            if let Some(before) = before {
                // How it ended was told.
                let _ended = before.await;
            }
            let told = one.run().await;
            counted.0.0.told.borrow_mut().extend(told);
        }));
    }
}

/// The commands of one hook, to be run.
struct OneHook {
    site: Rc<Site>,
    book: Rc<Book>,
    hook: Hook,
    tick: TickNo,
    peer: Option<String>,
    input: String,
    cancel: Cancel,
    company: Company,
    progress: Progress,
}

impl OneHook {
    /// Runs them one after the other. One that fails is told and the next one runs.
    async fn run(self) -> Vec<HookFailed> {
        let mut told = Vec::new();
        let commands = self.book.config.hooks.of(self.hook);
        for (i, command) in commands.iter().enumerate() {
            if self.cancel.is_asked() {
                break;
            }
            let name = artifacts::tick_file(self.tick, self.hook.word(), ".log");
            let peers = self.site.spec.peers.as_ref();
            let mut log = GateLog::new(peers, layout::peers::LOG_HOOKS, name.clone(), limits::HOOK_LOG);
            log.go_on();
            let head = format!("[peers: command {} of {}, {}]\n", i + 1, commands.len(), clock::now());
            log.write(head.as_bytes());
            let rules = &self.site.rules;
            let program = command.cmd.first().map(|word| term::line(&rules.redact(word), PROGRAM));
            let program = program.unwrap_or_default();
            self.progress.hook(self.hook, &program, clock::mono());
            let failed = self.one(command, &mut log).await;
            self.progress.hook_done();
            if let Some(why) = failed {
                let kept =
                    peers.map(|_| format!("; its output is in .peers/{}/{name}", layout::peers::LOG_HOOKS));
                let why = term::line(&rules.redact(&why), WHY);
                let what = format!("`{program}` {why}{}", kept.unwrap_or_default());
                told.push(HookFailed { tick: self.tick, hook: self.hook, what, times: 1 });
            }
        }
        told
    }

    /// Why it failed, if it did.
    async fn one(&self, command: &HookCommand, log: &mut GateLog) -> Option<String> {
        let (spawn, _home) = match self.spawn(command) {
            Ok(spawn) => spawn,
            Err(why) => return Some(format!("could not be started: {why}")),
        };
        let limit = Duration::from_secs(command.timeout_s.get().into());
        let running = Running {
            site: &self.site,
            tick: self.tick,
            limit,
            cancel: self.cancel.clone(),
            company: self.company,
        };
        let Finished { exit, timed_out, cancelled, stub, .. } =
            match running.run_fed(&spawn, Some(self.input.clone()), log).await {
                Ok(finished) => finished,
                Err(error) => {
                    return Some(format!("could not be started: {}", peers_sys::error::chain(&error)));
                }
            };
        match exit {
            _ if cancelled => Some("was ended, since the loop stops".to_owned()),
            _ if timed_out => Some(format!("was ended at its limit of {}", human(limit))),
            _ if stub.is_some() => stub.map(|failure| format!("could not be started: {failure}")),
            Some(RawExit::Code(0)) => None,
            Some(RawExit::Code(code)) => Some(format!("ended with exit code {code}")),
            Some(RawExit::Signal(signal)) => Some(format!("died of signal {signal}")),
            None => Some("ended in an unknown way".to_owned()),
        }
    }

    /// What to start, with the home directory that it gets.
    fn spawn(&self, command: &HookCommand) -> Result<(Spawn, Home), String> {
        let spec = &self.site.spec;
        let place = (spec.repo.as_path(), "gitconfig-hooks");
        let (mut vars, home) = gates::surroundings(&self.site, &self.book, self.tick, place)?;
        vars.push(("PEERS_HOOK".into(), self.hook.word().into()));
        if let Some(peer) = &self.peer {
            vars.push(("PEERS_PEER_NAME".into(), peer.into()));
        }
        let (program, args) = command.cmd.split_first().ok_or("it names no program")?;
        let mut spawn = Spawn::new(spec.stub.clone(), program, &spec.repo);
        spawn.args = args.iter().map(Into::into).collect();
        spawn.env = vars;
        spawn.stdin = Stdin::Piped;
        Ok((spawn, home))
    }
}
