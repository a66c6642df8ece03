//! Bookkeeping that all decoders share: spending, open tool calls, the report in the making.

use peers_model::{Tokens, Usd};

use crate::event::{FINAL_BYTES, TEXT_BYTES, Terminal, ToolEvent, ToolReport, UsageDelta};
use crate::event::{Failure, Retry, Usage};
use crate::lenient::cut;

/// How many open tool calls are remembered.
const OPEN_TOOLS: usize = 64;

/// One account of tokens and money, as a tool states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Account {
    pub(crate) input: u64,
    pub(crate) cached_input: u64,
    pub(crate) cache_write: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
    pub(crate) total: u64,
    pub(crate) usd: Option<Usd>,
}

impl Account {
    /// The part of `self` that `before` lacks, field by field.
    pub(crate) fn beyond(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached_input: self.cached_input.saturating_sub(before.cached_input),
            cache_write: self.cache_write.saturating_sub(before.cache_write),
            output: self.output.saturating_sub(before.output),
            reasoning: self.reasoning.saturating_sub(before.reasoning),
            total: self.total.saturating_sub(before.total),
            usd: self.usd.map(|usd| {
                let before = before.usd.unwrap_or_default();
                Usd::from_micros(usd.as_micros().saturating_sub(before.as_micros()))
            }),
        }
    }

    /// Field by field the larger of both.
    fn at_least(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            cached_input: self.cached_input.max(other.cached_input),
            cache_write: self.cache_write.max(other.cache_write),
            output: self.output.max(other.output),
            reasoning: self.reasoning.max(other.reasoning),
            total: self.total.max(other.total),
            usd: self.usd.max(other.usd),
        }
    }

    pub(crate) fn plus(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            cached_input: self.cached_input.saturating_add(more.cached_input),
            cache_write: self.cache_write.saturating_add(more.cache_write),
            output: self.output.saturating_add(more.output),
            reasoning: self.reasoning.saturating_add(more.reasoning),
            total: self.total.saturating_add(more.total),
            usd: match (self.usd, more.usd) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or_default() + b.unwrap_or_default()),
            },
        }
    }

    /// No field of `self` is smaller than in `other`.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.input >= other.input && self.cached_input >= other.cached_input && self.output >= other.output
    }
}

/// The report in the making, and the events that go with each change of it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    account: Account,
    report: ToolReport,
    open: Vec<(String, String)>,
    empty_steps: u32,
    step_was_useful: bool,
}

impl Ledger {
    /// Any event but a retry notice: whatever was retried goes on.
    pub(crate) fn progress(&mut self) {
        self.report.retrying = None;
    }

    pub(crate) fn session(&mut self, id: Option<&String>) {
        if let (None, Some(id)) = (&self.report.session, id) {
            self.report.session = Some(id.clone());
        }
    }

    pub(crate) fn model(&mut self, model: Option<&String>) {
        if let Some(model) = model.filter(|model| !model.starts_with('<')) {
            self.report.usage.model = Some(model.clone());
        }
    }

    pub(crate) fn text(&mut self, text: &str, out: &mut Vec<ToolEvent>) {
        self.step_was_useful = true;
        self.empty_steps = 0;
        out.push(ToolEvent::Text(cut(text, TEXT_BYTES).to_owned()));
    }

    pub(crate) fn last_words(&mut self, text: &str) {
        cut(text, FINAL_BYTES).clone_into(&mut self.report.final_text);
    }

    pub(crate) fn begun(&mut self, id: &str, name: &str, out: &mut Vec<ToolEvent>) {
        self.step_was_useful = true;
        self.empty_steps = 0;
        if self.open.len() >= OPEN_TOOLS {
            self.open.remove(0);
        }
        self.open.push((id.to_owned(), name.to_owned()));
        out.push(ToolEvent::ToolBegun { name: name.to_owned(), id: id.to_owned() });
    }

    /// Ends a call. A call whose beginning the stream did not show begins here.
    pub(crate) fn ended(&mut self, id: &str, name: &str, is_error: bool, out: &mut Vec<ToolEvent>) {
        if let Some(at) = self.open.iter().position(|(open, _)| open == id) {
            self.open.remove(at);
        } else {
            self.begun(id, name, out);
            self.open.pop();
        }
        out.push(ToolEvent::ToolEnded { id: id.to_owned(), is_error });
    }

    pub(crate) fn step_begun(&mut self) {
        self.step_was_useful = false;
    }

    /// Ends a model step; says so if nothing came of it.
    pub(crate) fn step_ended(&mut self, out: &mut Vec<ToolEvent>) {
        if !self.step_was_useful {
            self.empty_steps = self.empty_steps.saturating_add(1);
            out.push(ToolEvent::EmptyStep { in_a_row: self.empty_steps });
        }
    }

    /// Adds to what was spent.
    pub(crate) fn spend(&mut self, more: Account, out: &mut Vec<ToolEvent>) {
        if more != Account::default() {
            self.account = self.account.plus(more);
            out.push(ToolEvent::Usage(self.delta(more)));
        }
    }

    /// Takes over the tool's own account. What it leaves out of what was counted on the way was spent all
    /// the same: a line that looks like a tool's account may come from the agent.
    pub(crate) fn settle(&mut self, account: Account, out: &mut Vec<ToolEvent>) {
        let more = account.beyond(self.account);
        if more != Account::default() {
            out.push(ToolEvent::Usage(self.delta(more)));
        }
        self.account = account.at_least(self.account);
        self.report.usage_known = true;
    }

    fn delta(&self, account: Account) -> UsageDelta {
        UsageDelta {
            input: Tokens(account.input),
            cached_input: Tokens(account.cached_input),
            cache_write: Tokens(account.cache_write),
            output: Tokens(account.output),
            reasoning: Tokens(account.reasoning),
            total: Tokens(account.total),
            usd: account.usd,
            model: self.report.usage.model.clone(),
        }
    }

    pub(crate) fn spent(&self) -> Account {
        self.account
    }

    pub(crate) fn usage_known(&mut self) {
        self.report.usage_known = true;
    }

    pub(crate) fn turns(&mut self, turns: u32) {
        self.report.usage.turns = turns;
    }

    pub(crate) fn one_more_turn(&mut self) {
        self.report.usage.turns = self.report.usage.turns.saturating_add(1);
    }

    pub(crate) fn retry(&mut self, retry: Retry, out: &mut Vec<ToolEvent>) {
        self.report.retrying = Some(retry.clone());
        out.push(ToolEvent::RetryNotice(retry));
    }

    pub(crate) fn end_well(&mut self, out: &mut Vec<ToolEvent>) {
        self.report.terminal = Some(Terminal { ok: true });
        self.report.failure = None;
        out.push(ToolEvent::Final { ok: true, text: self.report.final_text.clone() });
    }

    pub(crate) fn end_badly(&mut self, failure: Failure, out: &mut Vec<ToolEvent>) {
        self.report.terminal = Some(Terminal { ok: false });
        self.report.failure = Some(failure.clone());
        out.push(ToolEvent::Failure(failure));
        out.push(ToolEvent::Final { ok: false, text: self.report.final_text.clone() });
    }

    /// The conversation goes on after what looked like its end.
    pub(crate) fn reopen(&mut self) {
        self.report.terminal = None;
        self.report.failure = None;
    }

    pub(crate) fn line_dropped(&mut self) {
        self.report.lines_dropped = self.report.lines_dropped.saturating_add(1);
    }

    pub(crate) fn into_report(self) -> ToolReport {
        let Self { account, mut report, mut open, empty_steps: _, step_was_useful: _ } = self;
        report.usage = Usage {
            input: Tokens(account.input),
            cached_input: Tokens(account.cached_input),
            cache_write: Tokens(account.cache_write),
            output: Tokens(account.output),
            reasoning: Tokens(account.reasoning),
            total: Tokens(account.total),
            usd: account.usd,
            turns: report.usage.turns,
            model: report.usage.model,
        };
        report.no_end_event = report.terminal.is_none();
        report.unfinished_tool = open.pop().map(|(_, name)| name);
        report
    }
}
