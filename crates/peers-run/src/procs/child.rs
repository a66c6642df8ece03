//! One peer from its start until nothing is left of it.
//!
//! The watch machine of `peers-core` decides; this file carries bytes, exits and deadlines to it and
//! signals back. The order at the end is fixed: the exit is seen, then whatever the child left is
//! ended, and only then is the child itself reaped, so that its group id is never somebody else's.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use peers_core::machine::{Ceiling, Event, RunPeer};
use peers_core::watch::{
    EndReason, StopHow, Watch, WatchAct, WatchIn, WatchLimits, WatchOutcome, WatchSignal,
};
use peers_model::outcome::{ApiClass, ErrorKind, ExitClass, PeerExit, Usage};
use peers_model::record::PeerSpawned;
use peers_model::time::human;
use peers_model::{Mono, Timestamp, Tokens, Usd, limits};
use peers_store::{artifacts, layout};
use peers_sys::reap::{self, Stillness};
use peers_sys::redact::Rules;
use peers_sys::spawn::{Child, RawExit};
use peers_sys::{clock, term};
use peers_tools::event::WORDS_CHARS;
use peers_tools::{
    CostFrom, ExitKind, Facts, FailureKind, Stream, ToolKind, ToolReport, classify, cost, opens_at,
    other_model,
};
use tokio::sync::{Notify, mpsc};

use super::ending::{Ending, Exit, Woken, doze};
use super::launch::{self, Launch, LaunchError};
use super::leftover::{Cleared, Known, number};
use super::output::Output;
use super::progress::Progress;
use super::streams::Streams;
use super::transcript::Transcripts;
use super::{Book, Events, Site};
use crate::outlets::Metered;

/// A peer may overrun the run's time budget by this much, so that it can still hand over.
const RUNTIME_GRACE: Duration = Duration::from_mins(1);
/// A graceful stop turns into a kill after this, so that the whole way out takes 8 s at most.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// How long leftovers are hunted: after a turn, and when the loop is asked to stop.
const SWEEP: Duration = Duration::from_secs(5);
const SWEEP_STOPPING: Duration = Duration::from_millis(1500);
/// Between two looks at adopted processes.
const TIDY: Duration = Duration::from_secs(2);
/// The live copy may be behind by this much at the end.
const TEE_WAIT: Duration = Duration::from_secs(2);

/// Why a turn was cut short whose way out ended.
const LOST: &str = "ended in its middle: a proxy of the sandbox ended (sandbox-lost), and is started anew";

/// One turn of a peer, to be run.
pub(super) struct Turn {
    pub(super) site: Rc<Site>,
    pub(super) book: Rc<Book>,
    pub(super) launch: RunPeer,
    pub(super) events: Events,
    pub(super) progress: Progress,
}

/// Why the peer's turn could not even be tried.
type Ours = (ErrorKind, String);

impl Turn {
    /// Runs it and reports: `PeerSpawned` if it could be started, then `PeerExited`.
    pub(super) async fn run(self, orders: mpsc::UnboundedReceiver<StopHow>) {
        let event = match self.supervise(orders).await {
            Ok(exit) => Event::PeerExited(Box::new(exit)),
            Err((kind, detail)) => Event::Failed { kind, detail },
        };
        self.progress.idle();
        // The receiver goes only with the whole loop.
        let _gone = self.events.send(event);
    }

    async fn supervise(&self, mut orders: mpsc::UnboundedReceiver<StopHow>) -> Result<PeerExit, Ours> {
        let Self { site, book, launch, events, progress } = self;
        let from = clock::mono();
        let mut launched = match launch::launch(site, book, launch) {
            Ok(launched) => launched,
            Err(error) => return not_launched(&error, from),
        };
        let state = launched.state.clone();
        let sessions = (launched.tool.kind() == ToolKind::Claude)
            .then(|| Transcripts::before(&site.host, state))
            .flatten();
        let lost = site.spec.outlets.lost(&launch.peer);
        let helpers = site.spec.outlets.pids();
        let _helpers: Vec<Known> = helpers.into_iter().map(|pid| site.kin.know(pid)).collect();
        let mut child = match launched.spawn.start() {
            Ok(child) => child,
            Err(error) => {
                let text = with_cause(&error);
                return Ok(not_started(i32::from(error.exit_code()), &text, from));
            }
        };
        let known = site.kin.know(child.pid());
        // The receiver goes only with the whole loop.
        let _gone = events.send(Event::PeerSpawned(spawned(launch, &child)));
        progress.peer(launch.tick, launch.peer.clone(), from);
        let mut streams = Streams::open(self, &launched, &mut child);
        if let (Some(text), Some(pipe)) = (launched.stdin.take(), child.take_stdin()) {
            streams.prompt(text, pipe.into());
        }
        let mut watch = Watch::new(self.limits(), from);
        watch.on(clock::mono(), WatchIn::Started);
        let mut run = Supervised {
            turn: self,
            child,
            known: Some(known),
            watch,
            streams,
            exit: Exit::Unseen,
            cleared: Cleared::default(),
            stopping: false,
            lost,
            is_lost: false,
            kill_at: None,
            tidy_at: from.plus(TIDY),
            sessions,
            sessions_at: from,
            session_signs: 0,
            since_signal: from,
        };
        let outcome = run.watch_over(&mut orders).await;
        Ok(run.report(&launched, outcome, from).await)
    }

    fn limits(&self) -> WatchLimits {
        let health = &self.book.config.health;
        let idle = Duration::from_secs(health.idle_timeout_s.get().into());
        let absolute = Duration::from_secs(health.absolute_max_runtime_s.get().into());
        let left = self.launch.runtime_left_s.map(Duration::from_secs);
        WatchLimits {
            budget: left.map(|left| left.saturating_add(RUNTIME_GRACE)),
            hang: health.hang_kill_s.map(|s| Duration::from_secs(s.get().into())),
            ..WatchLimits::new(idle, absolute)
        }
    }
}

/// Waits until somebody tells, for ever where nobody can.
async fn heard_of(by: Option<&Notify>) {
    match by {
        Some(by) => by.notified().await,
        None => std::future::pending().await,
    }
}

fn spawned(launch: &RunPeer, child: &Child) -> PeerSpawned {
    let identity = child.identity();
    PeerSpawned {
        tick: launch.tick,
        pid: number(identity.pid),
        start_time: identity.start_time.unwrap_or(0),
        boot_id: identity.boot_id.as_ref().map(ToString::to_string).unwrap_or_default(),
    }
}

/// A running child with all that belongs to it.
struct Supervised<'a> {
    turn: &'a Turn,
    child: Child,
    known: Option<Known>,
    watch: Watch,
    streams: Streams,
    exit: Exit,
    cleared: Cleared,
    /// The loop is on its way out.
    stopping: bool,
    /// Told when the sandbox loses a way out.
    lost: Option<Arc<Notify>>,
    /// It did.
    is_lost: bool,
    /// When a graceful stop turns into a kill.
    kill_at: Option<Mono>,
    /// When adopted processes are looked after again.
    tidy_at: Mono,
    /// What the agent writes besides its output, and when that is looked at again.
    sessions: Option<Transcripts>,
    sessions_at: Mono,
    /// Times that this alone showed it alive.
    session_signs: u32,
    /// No input is older than this: whatever is seen after a signal was sent may come of it.
    since_signal: Mono,
}

impl Supervised<'_> {
    async fn watch_over(&mut self, orders: &mut mpsc::UnboundedReceiver<StopHow>) -> WatchOutcome {
        let ending = Ending::of(&self.child);
        let mut orders_open = true;
        loop {
            self.act().await;
            if let Some(outcome) = self.watch.outcome() {
                return outcome;
            }
            let deadline = self.watch.poll_deadline().unwrap_or_else(clock::mono);
            let deadline = self.kill_at.map_or(deadline, |at| at.min(deadline));
            let deadline = self.sessions.as_ref().map_or(deadline, |_| self.sessions_at.min(deadline));
            let heard = Rc::clone(&self.streams.heard);
            let lost = self.lost.clone().filter(|_| !self.is_lost);
            // All arms can be dropped at any await: none holds anything back.
            tokio::select! {
                biased;
                order = orders.recv(), if orders_open => match order {
                    Some(how) => self.stop(how),
                    None => orders_open = false,
                },
                () = ending.look(), if self.exit == Exit::Unseen => self.look_for_exit(),
                () = heard.notified() => {}
                () = heard_of(lost.as_deref()) => {
                    self.is_lost = true;
                    self.watch.on(self.now(), WatchIn::Stop(StopHow::Now));
                }
                woken = doze(deadline) => self.wake(woken),
            }
            self.hear();
            // Here and not with the timer, which a flood of output could keep from being asked.
            self.due();
            self.tidy().await;
        }
    }

    /// Carries out what the machine asks for.
    async fn act(&mut self) {
        while let Some(action) = self.watch.poll_action() {
            match action {
                WatchAct::SignalGroup(signal) => {
                    // It may have ended by itself; the machine will hear of it.
                    let _sent = match signal {
                        WatchSignal::Term => self.child.terminate(),
                        WatchSignal::Kill => self.child.kill(),
                    };
                    self.since_signal = clock::mono().plus(Duration::from_millis(1));
                }
                WatchAct::ScanTail(_) => {
                    self.streams.output.borrow_mut().scan_tails();
                    self.hear();
                }
                WatchAct::Probe => self.probe().await,
                WatchAct::SweepGroup => self.sweep().await,
                WatchAct::Reap => {
                    // Somebody else may have reaped it, which was noticed when its exit was looked at.
                    let _reaped = self.child.reap();
                    self.known = None;
                }
                WatchAct::StopReading => self.streams.stop(),
                WatchAct::Report => {}
            }
        }
    }

    async fn probe(&mut self) {
        let leader = self.child.pid();
        // It reads a few files of each process.
        let found = tokio::task::spawn_blocking(move || reap::stillness(leader)).await;
        let still = match found {
            Ok(Stillness::Still) => true,
            Ok(Stillness::Alive(sign)) => {
                tracing::debug!(sign, "a silent peer is alive");
                false
            }
            Err(error) => {
                tracing::error!(%error, "the look at a silent peer broke off");
                false
            }
        };
        self.watch.on(self.now(), WatchIn::Probed { still });
    }

    async fn sweep(&mut self) {
        let limit = if self.stopping { SWEEP_STOPPING } else { SWEEP };
        let Turn { site, launch, .. } = self.turn;
        if site.kin.strangers() {
            let cleared = site.kin.clear(launch.tick, Some(self.child.pid()), limit).await;
            self.cleared.add(cleared);
        }
        // As long as the leader is not reaped this reaches its group or nobody.
        let _empty = self.child.sweep_group(peers_sys::signal::Signal::Kill);
    }

    fn look_for_exit(&mut self) {
        self.exit = Exit::look(&mut self.child);
        if self.exit != Exit::Unseen {
            self.streams.output.borrow_mut().child_exited();
            self.watch.on(self.now(), WatchIn::Exited);
        }
    }

    fn now(&self) -> Mono {
        clock::mono().max(self.since_signal)
    }

    fn stop(&mut self, how: StopHow) {
        let now = self.now();
        if !std::mem::replace(&mut self.stopping, true) {
            self.kill_at = Some(now.plus(STOP_GRACE));
        }
        self.watch.on(now, WatchIn::Stop(how));
    }

    fn wake(&mut self, woken: Woken) {
        if let Woken::Late(late) = woken {
            tracing::warn!(
                seconds = late.as_secs(),
                "this machine or process slept; silence is measured anew"
            );
            self.watch.on(self.now(), WatchIn::Activity);
        }
    }

    fn due(&mut self) {
        let now = self.now();
        // Before silence is judged.
        if let Some(sessions) = self.sessions.as_mut().filter(|_| self.sessions_at <= now) {
            self.sessions_at = now.plus(Transcripts::interval(self.turn.limits().idle));
            if sessions.moved() {
                // Only where its output would not have shown it.
                self.session_signs = self.session_signs.saturating_add(u32::from(!self.streams.spoke()));
                self.watch.on(now, WatchIn::Activity);
            }
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = None;
            if self.exit == Exit::Unseen {
                self.watch.on(now, WatchIn::Stop(StopHow::Now));
            }
        }
        self.watch.on(now, WatchIn::Deadline);
    }

    /// Helpers of the agent that died after we adopted them would pile up as zombies.
    async fn tidy(&mut self) {
        let now = clock::mono();
        if self.tidy_at <= now {
            self.tidy_at = now.plus(TIDY);
            self.turn.site.kin.reap_adopted().await;
        }
    }

    fn hear(&mut self) {
        let news = self.streams.output.borrow_mut().news();
        let now = self.now();
        for input in news {
            self.watch.on(now, input);
        }
    }

    /// Everything is over: what does it amount to?
    async fn report(mut self, launched: &Launch, outcome: WatchOutcome, from: Mono) -> PeerExit {
        self.streams.stop();
        let exit = self.sum_up(launched, outcome, from);
        for written in self.streams.written.drain(..) {
            written.within(TEE_WAIT).await;
        }
        exit
    }

    fn sum_up(&mut self, launched: &Launch, outcome: WatchOutcome, from: Mono) -> PeerExit {
        let Self { turn, child, streams, exit, cleared, session_signs, is_lost, .. } = self;
        let raw = exit.raw();
        let mut output = streams.output.borrow_mut();
        for stream in [Stream::Stdout, Stream::Stderr] {
            output.close(stream);
        }
        let stub = raw.and_then(|raw| child.stub_failure(raw, output.first_words()));
        let (code, signal) = match raw {
            Some(RawExit::Code(code)) => (Some(code), None),
            Some(RawExit::Signal(signal)) => (None, Some(signal)),
            None => (None, None),
        };
        let kind = match raw {
            _ if stub.is_some() => ExitKind::NotStarted,
            Some(RawExit::Code(code)) => ExitKind::Code(code),
            Some(RawExit::Signal(signal)) => ExitKind::Signal(signal),
            None => ExitKind::Unknown,
        };
        let report = output.finish(kind);
        let class = if stub.is_some() { ExitClass::SpawnFail } else { exit_class(outcome.end, raw) };
        let confirmed = outcome.end == (EndReason::Pattern { halt: true }) || class != ExitClass::Ok;
        let facts =
            Facts { exit: class, report: &report, hit: output.decisive(confirmed), omen: output.omen() };
        let verdict = classify(facts);
        let rules = &launched.rules;
        let matched = verdict.matched.map(|mut matched| {
            // In this order: what a cut leaves of a secret is not recognised.
            matched.snippet = peers_tools::brief(&without_secrets(rules, &matched.snippet));
            matched
        });
        let said = report.failure.as_ref().map(|failure| failure.text.clone());
        let said =
            said.or_else(|| matched.as_ref().map(|matched| matched.snippet.clone())).unwrap_or_default();
        let (usage, at_least) = self::usage(launched, &report, &output, &turn.book);
        let metered = turn.site.spec.outlets.used(&turn.launch.peer);
        let (usage, at_least) = metered.map_or((usage, at_least), |metered| {
            self::metered((usage, at_least), &metered, launched, &turn.book)
        });
        let well = verdict.exit == ExitClass::Ok && verdict.api == ApiClass::None;
        let tails = if well { (200, 400) } else { (400, 800) };
        turn.keep(&output);
        PeerExit {
            class: verdict.exit,
            api: verdict.api,
            code,
            signal,
            duration_ms: millis(clock::mono().since(from)),
            usage,
            model: report.usage.model.as_deref().map(|model| told(rules, model)),
            matched,
            retry_after_s: verdict.kind.and_then(retry_after),
            resets_at: verdict.kind.and_then(|kind| turn.resets_at(kind, &said)),
            at_least,
            session_signs: *session_signs,
            unfinished_tool: report
                .unfinished_tool
                .as_deref()
                .filter(|_| class != ExitClass::Ok)
                .map(|name| told(rules, name)),
            remarks: turn
                .cut_short(outcome.end, &output)
                .into_iter()
                .chain(remarks(launched, &report))
                .chain(is_lost.then(|| LOST.to_owned()))
                .collect(),
            stdout_tail: tail(&output.capture(Stream::Stdout).last(tails.0 * 8), tails.0),
            stderr_tail: match &stub {
                Some(failure) => tail(&failure.to_string(), tails.1),
                None => tail(&output.capture(Stream::Stderr).last(tails.1 * 8), tails.1),
            },
            truncated: output.capture(Stream::Stdout).truncated()
                || output.capture(Stream::Stderr).truncated(),
            bytes_out: outcome.bytes_out,
            bytes_err: outcome.bytes_err,
            leaked: cleared.killed,
            survivors: std::mem::take(&mut cleared.survivors),
            redactions: output.redactions(),
        }
    }
}

impl Turn {
    /// When a usage cap is over, by numbers or by the words of the failure.
    fn resets_at(&self, kind: FailureKind, said: &str) -> Option<Timestamp> {
        let FailureKind::UsageCap { .. } = kind else { return None };
        let now = clock::now();
        // A clock time in words is the operator's; without a zone that is known it says nothing.
        let tz = self.site.host.operator("TZ").and_then(|tz| tz.to_str());
        let seconds = now.as_millis().div_euclid(1000);
        let at = match clock::local_offset(tz, now) {
            Some(offset) => opens_at(kind, said, seconds, offset),
            None => opens_at(kind, "", seconds, 0),
        };
        Some(Timestamp::from_millis(at?.saturating_mul(1000)))
    }

    /// By which limit a turn was ended that the class alone does not name, with the key that sets it.
    fn cut_short(&self, end: EndReason, output: &Output) -> Option<String> {
        match end {
            EndReason::Hung => {
                let after = human(Duration::from_secs(self.book.config.health.hang_kill_s?.get().into()));
                Some(format!(
                    "ended: it was silent for {after} (`health.hang_kill_s`), and none of its processes ran or waited for anything"
                ))
            }
            EndReason::Budget => {
                let Ceiling { tokens: most, usd: most_usd } = self.launch.ceiling;
                let (tokens, usd) = output.spent();
                let beyond = most
                    .map(Tokens)
                    .filter(|most| tokens > *most)
                    .map(|most| format!("{tokens} of {most} tokens"));
                let beyond = beyond.or_else(|| {
                    let (usd, most) = usd.zip(most_usd).filter(|(usd, most)| usd > most)?;
                    Some(format!("{usd} of {most}"))
                });
                Some(match beyond {
                    Some(beyond) => {
                        format!("ended in its middle: it had used {beyond} that it may use (a cap in `budget` and a tenth)")
                    }
                    None => "ended in its middle: the time of the run is over (`budget.max_runtime_s`, `max_wall_s` or `deadline`)".to_owned(),
                })
            }
            _ => None,
        }
    }

    /// Keeps what was captured, for people. Best effort.
    fn keep(&self, output: &Output) {
        let Some(peers) = &self.site.spec.peers else { return };
        for (stream, suffix) in [(Stream::Stdout, ".stdout.log"), (Stream::Stderr, ".stderr.log")] {
            let text = output.capture(stream).text();
            if text.is_empty() {
                continue;
            }
            let name = artifacts::tick_file(self.launch.tick, self.launch.peer.as_str(), suffix);
            let kept = peers
                .create_path(layout::peers::LOG_PEERS)
                .and_then(|dir| dir.publish_unsynced(&name, text.as_bytes()));
            if let Err(error) = kept {
                tracing::warn!(file = name, %error, "the output of a peer was not kept");
            }
        }
    }
}

fn exit_class(end: EndReason, raw: Option<RawExit>) -> ExitClass {
    match end {
        EndReason::Idle | EndReason::Hung => ExitClass::Idle,
        EndReason::Hopeless => ExitClass::Hopeless,
        EndReason::Budget => ExitClass::Budget,
        EndReason::Absolute => ExitClass::Absolute,
        EndReason::Pattern { .. } => ExitClass::Pattern,
        EndReason::StoppedGraceful | EndReason::StoppedNow => ExitClass::Interrupted,
        EndReason::Exited => match raw {
            Some(RawExit::Code(0)) => ExitClass::Ok,
            Some(RawExit::Code(_)) | None => ExitClass::Nonzero,
            Some(RawExit::Signal(_)) => ExitClass::Signal,
        },
    }
}

/// What it used, and whether that is a lower bound.
fn usage(launched: &Launch, report: &ToolReport, output: &Output, book: &Book) -> (Usage, bool) {
    let (counted, priced) = output.spent();
    // What was counted before a stream broke off was spent, even if it is not all.
    let seen = report.usage.total.max(counted);
    let (told, from) = cost(&launched.tool.kind(), report, launched.asked.as_deref(), &book.prices);
    // What was priced on the way stands, whatever an account at the end says or whether there is one: a line
    // that looks like an account may come from the agent.
    let usd = told.max(priced);
    let usage = believed(Usage { tokens: (report.usage_known || seen.0 > 0).then_some(seen), usd });
    let some = usage.tokens.is_some() || usage.usd.is_some();
    let bound = from == CostFrom::AtLeast || !report.usage_known || (told.is_none() && usd.is_some());
    (usage, some && bound)
}

/// The same with what the auth proxy saw: nothing that was seen is less for what the tool says.
fn metered((told, at_least): (Usage, bool), seen: &Metered, launched: &Launch, book: &Book) -> (Usage, bool) {
    let tokens = seen.values().fold(Tokens::default(), |sum, usage| sum + usage.total);
    let price = |(model, usage): (&String, &peers_tools::Usage)| {
        let model = Some(model.as_str()).filter(|model| !model.is_empty()).or(launched.asked.as_deref())?;
        book.prices.price(model, usage)
    };
    // A model without a price makes the sum a lower bound.
    let prices: Vec<Option<Usd>> = seen.iter().map(price).collect();
    let usd = prices.iter().copied().flatten().reduce(|sum, usd| sum + usd);
    let usage = believed(Usage { tokens: told.tokens.max(Some(tokens)), usd: told.usd.max(usd) });
    let whole = prices.iter().all(Option::is_some) || told.usd.is_some();
    (usage, at_least && !(whole && usage.tokens == Some(tokens)))
}

/// What of these figures a turn can have used.
pub(super) fn believed(usage: Usage) -> Usage {
    let most = Usd::from_micros(limits::TURN_USD.saturating_mul(1_000_000));
    Usage {
        tokens: usage.tokens.map(|tokens| tokens.min(Tokens(limits::TURN_TOKENS))),
        usd: usage.usd.map(|usd| usd.min(most)),
    }
}

/// Words of a failure with secrets out of them. Where the words are as long as they may be, what a cut leaves
/// of a secret stays back, also before a phrase that was kept from behind the cut.
fn without_secrets(rules: &Rules, words: &str) -> String {
    const BEHIND: &str = " \u{2026} ";
    if words.chars().count() + BEHIND.len() < WORDS_CHARS {
        return rules.redact(words).into_owned();
    }
    let (head, phrase) =
        words.rsplit_once(BEHIND).map_or((words, None), |(head, phrase)| (head, Some(phrase)));
    let mut clean = Vec::with_capacity(head.len());
    rules.redactor().feed(head.as_bytes(), &mut clean);
    let clean = String::from_utf8_lossy(&clean);
    phrase.map_or_else(|| clean.to_string(), |phrase| format!("{clean}{BEHIND}{}", rules.redact(phrase)))
}

/// A name from the stream, fit to be recorded. What steers a terminal may stand within a secret, and be
/// part of one.
fn told(rules: &Rules, name: &str) -> String {
    term::line(&rules.redact(&term::inline(&rules.redact(name))), 80)
}

/// What is worth knowing of how it ran.
fn remarks(launched: &Launch, report: &ToolReport) -> Vec<String> {
    let asked_and_used = launched.asked.as_deref().zip(report.usage.model.as_deref());
    let other = asked_and_used.filter(|(asked, used)| other_model(asked, used)).map(|(asked, used)| {
        format!(
            "asked for the model `{}`, and `{}` answered: its price and its work are those of that one",
            told(&launched.rules, asked),
            told(&launched.rules, used)
        )
    });
    let dropped = (report.lines_dropped > 0).then(|| {
        format!(
            "{} lines of its output were too long to be read, so its account may lack something",
            report.lines_dropped
        )
    });
    other.into_iter().chain(dropped).collect()
}

fn retry_after(kind: FailureKind) -> Option<u64> {
    match kind {
        FailureKind::RateLimit { retry_after } => {
            retry_after.map(|wait| millis(wait).div_ceil(1000)).filter(|wait| *wait <= limits::SERVICE_WAIT_S)
        }
        FailureKind::UsageCap { .. }
        | FailureKind::Auth
        | FailureKind::Quota
        | FailureKind::Overload
        | FailureKind::Other => None,
    }
}

fn not_launched(error: &LaunchError, from: Mono) -> Result<PeerExit, Ours> {
    let text = with_cause(error);
    match error.ours() {
        Some(kind) => Err((kind, text)),
        None => Ok(not_started(i32::from(error.exit_code()), &text, from)),
    }
}

fn not_started(code: i32, why: &str, from: Mono) -> PeerExit {
    PeerExit {
        class: ExitClass::SpawnFail,
        code: Some(code),
        stderr_tail: tail(why, 800),
        ..PeerExit::interrupted(millis(clock::mono().since(from)))
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The last `chars` characters, fit to be shown.
fn tail(text: &str, chars: usize) -> String {
    let shown = term::block(text);
    let excess = shown.chars().count().saturating_sub(chars);
    shown.chars().skip(excess).collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
