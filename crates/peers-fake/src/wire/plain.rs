//! Plain text, as a program without a structured output prints it.

use super::{Call, Format, Outcome, Session};
use crate::step::{Fault, FaultKind, Retry, Usage, Window};

#[derive(Debug)]
pub(super) struct Plain;

impl Format for Plain {
    fn open(&mut self, session: &Session) -> Vec<String> {
        vec![format!("{}: turn {}", session.peer, session.turn)]
    }

    fn say(&mut self, _session: &Session, text: &str, _so_far: &Usage) -> Vec<String> {
        vec![text.to_owned()]
    }

    fn begin(&mut self, _session: &Session, call: &Call) -> Vec<String> {
        vec![format!("$ {}", call.command)]
    }

    fn end(&mut self, _session: &Session, _call: &Call, outcome: &Outcome) -> Vec<String> {
        let mut lines: Vec<String> = outcome.output.lines().map(str::to_owned).collect();
        if outcome.code != 0 {
            lines.push(format!("exit code {}", outcome.code));
        }
        lines
    }

    fn retry(&mut self, _session: &Session, retry: &Retry) -> Vec<String> {
        vec![format!("retrying ({}/{}): {}", retry.attempt, retry.of, retry.why)]
    }

    fn window(&mut self, _session: &Session, _window: &Window) -> Vec<String> {
        Vec::new()
    }

    fn empty_step(&mut self, _session: &Session) -> Vec<String> {
        vec![String::new()]
    }

    fn done(&mut self, _session: &Session, _usage: &Usage) -> Vec<String> {
        Vec::new()
    }

    fn failed(&mut self, _session: &Session, fault: &Fault, _usage: &Usage) -> Vec<String> {
        let words = match fault.kind {
            FaultKind::RateLimit => "rate limit reached",
            FaultKind::Quota => "quota exhausted",
            FaultKind::UsageCap => "usage limit reached",
            FaultKind::Auth => "invalid API key",
            FaultKind::Overload => "API error: 529 overloaded",
            FaultKind::Error => "something went wrong",
        };
        vec![format!("ERROR {}", fault.message.as_deref().unwrap_or(words))]
    }
}
