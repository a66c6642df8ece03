//! What a person sees while the loop runs: permanent lines for what happened, and on a terminal one
//! line, drawn again and again, for what is going on.

mod wording;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use peers_console::output::Out;
use peers_console::screen::screen;
use peers_core::machine::{Notice, Now, StopRequest};
use peers_core::state::State;
use peers_model::command::Step;
use peers_model::verdict::{Place, Verdict};
use peers_model::{GoalId, Mono};
use peers_run::inputs::Signals;
use peers_run::ports::Observer;
use peers_run::procs::{self, Progress};
use peers_sys::{clock, term};

/// The live line is drawn this often.
const REDRAW: Duration = Duration::from_millis(500);
/// A signal is acknowledged within this time.
const HEARD: Duration = Duration::from_millis(100);
/// The view of one run.
#[derive(Debug)]
pub(crate) struct Live {
    verbose: bool,
    out: Out,
}

impl Live {
    pub(crate) fn new(out: &Out, verbose: bool) -> Self {
        screen().open(out);
        Self { verbose, out: out.clone() }
    }

    /// Who watches the loop. `notes` are printed once, when it begins.
    pub(crate) fn observer(&self, notes: Vec<String>) -> Watcher {
        let (verbose, out) = (self.verbose, self.out.clone());
        Watcher { verbose, notes, states: BTreeMap::new(), doing: Rc::default(), out }
    }

    /// Takes the live line away, and waits a little until everything is written. What nobody reads even then
    /// holds up no end.
    #[expect(clippy::unused_self, reason = "whoever opened the view closes it")]
    pub(crate) fn close(&self) {
        screen().close();
    }
}

/// Draws what gates and extra commands are doing; for commands that run gates without a loop.
pub(crate) fn show_gates(progress: &Progress, what: &str) {
    if let Some(procs::Live::Gates(live)) = progress.now() {
        screen().draw(&format!("{what} · {}", wording::gates(&live, clock::mono())));
    }
}

/// Prints what happens.
#[derive(Debug)]
pub(crate) struct Watcher {
    verbose: bool,
    notes: Vec<String>,
    /// The last known word of each gate.
    states: BTreeMap<GoalId, &'static str>,
    doing: Rc<std::cell::RefCell<Doing>>,
    out: Out,
}

impl Watcher {
    /// Writes a permanent line, whose commands work where this one was typed.
    fn line(&self, text: impl Into<Step>) {
        screen().line(&self.out.spelling().tell(&text.into()));
    }
}

/// What the live line says when no child tells more.
#[derive(Debug, Default)]
struct Doing {
    skeptic: bool,
    /// Gates are tried before the first turn.
    trial: bool,
    /// When that ended.
    trial_ended: Option<Mono>,
    place: Option<Place>,
    spend: String,
    waiting: Option<peers_model::Timestamp>,
}

impl Observer for Watcher {
    fn notice(&mut self, notice: &Notice, state: &State, at: Now) {
        {
            let mut doing = self.doing.borrow_mut();
            doing.spend = peers_view::spend(state);
            doing.waiting = None;
        }
        match notice {
            Notice::RunStarted => {
                let notes = std::mem::take(&mut self.notes).into_iter().map(Step::from);
                for line in wording::start(state).into_iter().chain(notes) {
                    self.line(line);
                }
            }
            Notice::Recovering(recovery) => self.line(peers_view::recovery_words(recovery)),
            Notice::GatesStarted { place, .. } => self.doing.borrow_mut().place = Some(*place),
            Notice::TrialStarted { limit, .. } => {
                let mut doing = self.doing.borrow_mut();
                (doing.place, doing.trial) = (Some(Place::Pristine), true);
                drop(doing);
                let limit = peers_model::time::human(*limit);
                self.line(format!(
                    "trying the gates in a clean checkout before the first turn, {limit} at most; Ctrl-C skips it"
                ));
            }
            Notice::TrialEnded { verdicts, took_ms } => {
                let mut doing = self.doing.borrow_mut();
                (doing.trial, doing.trial_ended) = (false, Some(at.mono));
                drop(doing);
                if !verdicts.is_empty() {
                    self.line(wording::trial(verdicts, *took_ms));
                }
            }
            Notice::GatesDone { verdicts, took_ms, place } => {
                self.line(wording::gates_done(state, verdicts, *took_ms, *place));
                // What the check of a review finds is for its reviewers.
                let gates = &state.rules.gates;
                for judged in verdicts.iter().filter(|judged| gates.iter().any(|g| g.id == judged.goal)) {
                    let word = judged.verdict.word();
                    let before = self.states.insert(judged.goal.clone(), word);
                    let turned = before.is_some_and(|before| before != word);
                    if turned || (before.is_none() && !matches!(judged.verdict, Verdict::Pass)) {
                        self.line(wording::turned(judged, turned));
                    }
                }
            }
            Notice::TickStarted { tick, peer, skeptic } => {
                self.doing.borrow_mut().skeptic = *skeptic;
                if !screen().is_live() {
                    let part = if *skeptic { " as the skeptic" } else { "" };
                    self.line(format!("tick {tick}: {peer} begins{part}"));
                }
            }
            Notice::TickEnded(tick) => {
                self.line(wording::tick(tick, self.doing.borrow().skeptic));
                for warning in peers_view::warnings(tick) {
                    self.line(format!("  {warning}"));
                }
                for judged in &tick.verdicts {
                    let before = self.states.insert(judged.goal.clone(), judged.verdict.word());
                    if before != Some(judged.verdict.word()) {
                        self.line(wording::turned(judged, before.is_some()));
                    }
                }
                if self.verbose {
                    for line in wording::tails(tick) {
                        self.line(line);
                    }
                }
            }
            Notice::PeerDegraded { peer, state, reason } => {
                self.line(wording::worse(peer, *state, reason));
            }
            Notice::PeerCapped { peer, reached } => {
                self.line(format!("{peer} takes no more turns: it reached {}", term::line(reached, 200)));
            }
            Notice::PeerPassedOver { peer, why } => {
                self.line(format!("{peer} is passed over: {}", term::line(why, 200)));
            }
            Notice::PeerWaits(cooling) => {
                let until = peers_view::ahead(at.wall, cooling.until);
                self.line(format!("{} waits until {until} ({})", cooling.peer, cooling.cause.word()));
            }
            Notice::Waiting { until, why } => {
                self.doing.borrow_mut().waiting = Some(*until);
                let when = peers_view::ahead(at.wall, *until);
                let why = if why.is_empty() { String::new() } else { format!(": {}", term::line(why, 300)) };
                self.line(format!("no peer can have a turn before {when}{why}"));
            }
            Notice::Warning(text) => self.line(format!("warning: {}", term::line(text, 300))),
            Notice::Note(text) => self.line(format!("note: {}", term::line(text, 300))),
            // Said by whoever started the loop, on standard output.
            Notice::Stopped { .. } => screen().clear(),
        }
    }

    fn progress(&mut self, progress: Progress) {
        acknowledge_signals(Rc::clone(&self.doing));
        if !screen().is_live() {
            return;
        }
        let doing = Rc::clone(&self.doing);
        peers_run::pulse::every(REDRAW, move || screen().draw(&wording::live(&progress, &doing.borrow())));
    }
}

/// A signal is heard so long after it came, at most.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// The signal of Ctrl-C.
const SIGINT: i32 = 2;

/// Says that a signal was heard, at once: what it asks for may take its time.
fn acknowledge_signals(doing: Rc<std::cell::RefCell<Doing>>) {
    // The loop has its own ear for them; every listener hears each signal.
    let Ok(mut signals) = Signals::take() else { return };
    let mut listening = Box::pin(async move {
        loop {
            let text = match signals.next().await {
                StopRequest::AfterTick => "stopping after this turn",
                StopRequest::Graceful(SIGINT) if doing.borrow().tried(clock::mono()) => {
                    "skipping the trial; the same again stops"
                }
                StopRequest::Graceful(_) => {
                    "stopping: what runs is ended first; the same again stops at once"
                }
                StopRequest::Now(_) => "stopping at once",
            };
            screen().line(text);
        }
    });
    peers_run::pulse::every(HEARD, move || {
        let mut context = Context::from_waker(Waker::noop());
        // It never ends: each beat looks whether a signal came since the last one.
        let Poll::Pending = listening.as_mut().poll(&mut context);
    });
}

impl Doing {
    /// Whether a signal that is heard now came in the trial, which ends on it before anybody listens.
    fn tried(&self, now: Mono) -> bool {
        self.trial || self.trial_ended.is_some_and(|ended| now.since(ended) < AFTERWARDS)
    }

    fn what(&self) -> &'static str {
        match self.place {
            Some(Place::Pristine) if self.trial => "trial in a clean checkout",
            Some(Place::Pristine) => "proof in a clean checkout",
            Some(Place::Live | Place::GateTree) | None => "gates",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_only_the_operator_can_help_is_not_called_degraded() {
        let ann = peers_model::PeerName::new("ann").unwrap();
        let says = |state| wording::worse(&ann, state, "not \u{1b}[31mlogged in");
        assert_eq!(says(peers_core::state::PeerState::Unavailable), "ann is unavailable: not logged in");
        assert_eq!(says(peers_core::state::PeerState::Degraded), "ann is degraded: not logged in");
    }
}
