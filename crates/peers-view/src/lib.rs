//! The read-model for all observers: what a loop is doing, did, and still lacks.
//!
//! Everything is read from the trusted store with the fold that the loop itself uses; git facts come in
//! from the caller. A source that cannot be read is shown as such, never as zero. Nothing here writes,
//! takes a lock, or prints; every text form is fit for a terminal, every JSON form says its schema.
//! Start reading at [`LoopView::read`].

mod accounting;
mod advice;
mod asked;
mod backwards;
mod budget;
mod bugs;
mod caveats;
mod closing;
mod compare;
mod converge;
mod death;
mod diagnostic;
mod excluded;
mod facts;
mod feed;
mod fleet;
mod gates;
mod halted;
mod handoffs;
mod history;
mod info;
mod json;
mod live;
mod liveness;
mod loopview;
mod markdown;
mod notable;
mod page;
mod peers;
mod plan;
mod reader;
mod replay;
mod report;
mod row;
mod setup;
mod soft;
mod sourced;
mod sources;
mod standing;
mod status;
mod tail;
mod ticks;
mod verify;
mod watch;
mod words;

#[cfg(test)]
mod tests;

pub use accounting::{Accounting, Doubt, doubts};
pub use advice::{Attention, Cause, Level, Spelling, Typed};
pub use asked::{Adrift, Asked, HeadFact, Listed, Unknown};
pub use budget::{Amount, BudgetRow, BudgetView, CapSetByHand, cap_words, set_by_hand, spend, uncounted};
pub use bugs::{BugRow, BugsView};
pub use caveats::Caveats;
pub use closing::{closing, next_step, red_gate};
pub use compare::*;
pub use converge::{ConvergeView, Missing};
pub use diagnostic::complaint;
pub use facts::{GitFacts, Paths};
pub use feed::{Feed, FeedItem, Polled};
pub use fleet::*;
pub use gates::{GateRow, ProofFact};
pub use halted::halted_markdown;
pub use handoffs::{
    Handoff, HandoffMessage, HandoffsAsked, PeerReview, Section, handoffs, handoffs_json, handoffs_page,
    handoffs_text,
};
pub use history::{
    AcceptanceRow, CorrectionRow, ExitRow, GateHistory, GateMark, GateTick, History, OperatorRow, PeerCost,
    ReviewRow, StartRow, When, recovery_words,
};
pub use info::{Info, info_json, info_page, info_text, keys};
pub use json::terminal_safe;
pub use liveness::{Confinement, CrashKind, Liveness, Lock, OpenTurn, wall_words};
pub use loopview::{Alert, LoopView, Silence};
pub use notable::{AcceptedRow, HookRow, LandedRow, Notable, UndoneRow, WeakenedRow};
pub use page::{Cell, Colour, Page, Tone, fold};
pub use peers::PeerRow;
pub use peers_core::failed::why as why_failed;
pub use peers_core::test_output::{cause, last_words};
pub use plan::plan_page;
pub use reader::LoopReader;
pub use replay::*;
pub use report::*;
pub use row::*;
pub use setup::{Broken, PLACEHOLDER, Setup};
pub use soft::SoftRow;
pub use sourced::Sourced;
pub use standing::{Core, RunBrief};
pub use status::{status_json, status_text};
pub use tail::{JournalTail, LastEvent};
pub use ticks::{TickRow, warnings};
pub use verify::*;
pub use watch::{watch_cells, watch_json, watch_line};
pub use words::{ago, ahead, bytes, clock, count, duration_ms, gates_green, percent, thousands};
