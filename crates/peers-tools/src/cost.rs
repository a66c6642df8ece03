//! What a turn cost: the tool's own figure where it has one, else the price table.

use peers_model::{Tokens, Usd};

use crate::event::{ToolEvent, ToolReport, Usage, UsageDelta};
use crate::prices::Prices;
use crate::tool::ToolKind;

/// How many models of one stream are kept apart.
const MODELS: usize = 16;

/// Where the figure of [`cost`] comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CostFrom {
    /// The tool gave it.
    Tool,
    /// Tokens times the price table.
    Table,
    /// As one of the others, but of what the stream told before it broke off: a lower bound.
    AtLeast,
    /// Nobody can tell. There is no figure.
    Unknown,
}

impl CostFrom {
    /// The name used in records: `tool`, `table`, `at-least`, `unknown`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Table => "table",
            Self::AtLeast => "at-least",
            Self::Unknown => "unknown",
        }
    }
}

/// What a finished turn cost, and how that is known. There is a figure unless it is
/// [`CostFrom::Unknown`].
///
/// The table is asked for the model that the stream names, else for the one that was `asked` for
/// ([`crate::Tool::model_asked`]). Tools that run on a subscription are charged by the same lists,
/// so the figure says what was used and not what will be billed.
#[must_use]
pub fn cost(
    kind: &ToolKind,
    report: &ToolReport,
    asked: Option<&str>,
    prices: &Prices,
) -> (Option<Usd>, CostFrom) {
    let usage = &report.usage;
    if let Some(usd) = usage.usd.filter(|usd| is_figure(kind, *usd)) {
        return (Some(usd), if report.no_end_event { CostFrom::AtLeast } else { CostFrom::Tool });
    }
    let by_table = usage
        .model
        .as_deref()
        .or(asked)
        .filter(|_| counted(usage))
        .and_then(|model| prices.price(model, usage));
    let from = match by_table {
        None => CostFrom::Unknown,
        Some(_) if report.usage_known && !report.no_end_event => CostFrom::Table,
        Some(_) => CostFrom::AtLeast,
    };
    (by_table, from)
}

/// opencode says 0 when it knows no price; a model that costs nothing has a 0 in the price table.
fn is_figure(kind: &ToolKind, usd: Usd) -> bool {
    *kind != ToolKind::Opencode || usd > Usd::ZERO
}

/// An account without a token is none.
fn counted(usage: &Usage) -> bool {
    usage.input.0 > 0 || usage.output.0 > 0
}

/// Counts what a turn spends while it runs.
#[derive(Debug, Clone)]
pub struct Meter {
    kind: ToolKind,
    asked: Option<String>,
    prices: Prices,
    tokens: Tokens,
    /// Money that the tool stated.
    stated: Option<Usd>,
    /// The money that is not open any more: what was stated, and never less than what was counted before.
    settled: Option<Usd>,
    /// Tokens that no statement covers yet, by model.
    open: Vec<(Option<String>, Usage)>,
}

impl Meter {
    /// A meter for one child. `asked`: the model that its command line asks for.
    #[must_use]
    pub fn new(kind: ToolKind, asked: Option<String>, prices: Prices) -> Self {
        Self { kind, asked, prices, tokens: Tokens::default(), stated: None, settled: None, open: Vec::new() }
    }

    /// Takes an event of the child, in order.
    pub fn feed(&mut self, event: &ToolEvent) {
        let ToolEvent::Usage(more) = event else { return };
        self.tokens += more.total;
        if let Some(usd) = more.usd.filter(|usd| is_figure(&self.kind, *usd)) {
            let stated = self.stated.unwrap_or_default() + usd;
            self.stated = Some(stated);
            if self.kind == ToolKind::Opencode {
                // One step's; others are accounts of all that was before.
                self.settled = self.stated;
            } else {
                // A line that looks like an account may come from the agent, so it takes nothing back.
                self.settled = self.spent().1.max(Some(stated));
                self.open.clear();
            }
            return;
        }
        let model = more.model.as_ref().or(self.asked.as_ref());
        let known = self.open.iter().position(|(name, _)| name.as_ref() == model);
        let at = match known {
            Some(at) => at,
            // What has no price takes no place from what has.
            None if !model.is_some_and(|model| self.prices.knows(model)) => return,
            None => {
                if self.open.len() >= MODELS {
                    self.settled = self.spent().1;
                    self.open.clear();
                }
                self.open.push((model.cloned(), Usage::default()));
                self.open.len() - 1
            }
        };
        if let Some((_, usage)) = self.open.get_mut(at) {
            add(usage, more);
        }
    }

    /// Tokens and money so far. The money is `None` as long as nothing is known of it, and a lower
    /// bound where a model has no price. A tool's own account replaces what was priced before it where
    /// it is more: neither figure ever falls.
    #[must_use]
    pub fn spent(&self) -> (Tokens, Option<Usd>) {
        let priced = self
            .open
            .iter()
            .filter(|(_, usage)| counted(usage))
            .filter_map(|(model, usage)| self.prices.price(model.as_deref()?, usage));
        (self.tokens, priced.chain(self.settled).reduce(|sum, usd| sum + usd))
    }
}

fn add(usage: &mut Usage, more: &UsageDelta) {
    let UsageDelta { input, cached_input, cache_write, output, reasoning, total, usd: _, model: _ } = more;
    usage.input += *input;
    usage.cached_input += *cached_input;
    usage.cache_write += *cache_write;
    usage.output += *output;
    usage.reasoning += *reasoning;
    usage.total += *total;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Terminal;
    use crate::prices::Price;

    fn report(tokens: u64, usd: Option<u64>) -> ToolReport {
        ToolReport {
            usage: Usage {
                input: Tokens(tokens),
                total: Tokens(tokens),
                usd: usd.map(Usd::from_micros),
                ..Usage::default()
            },
            usage_known: true,
            terminal: Some(Terminal { ok: true }),
            ..ToolReport::default()
        }
    }

    fn of(tool: &str, report: &ToolReport, asked: &str) -> (Option<u64>, CostFrom) {
        let asked = Some(asked).filter(|asked| !asked.is_empty());
        let (usd, from) = cost(&ToolKind::from_name(tool), report, asked, &Prices::builtin());
        (usd.map(Usd::as_micros), from)
    }

    #[test]
    fn the_tools_own_figure_wins() {
        assert_eq!(of("claude", &report(1000, Some(7)), "gpt-5"), (Some(7), CostFrom::Tool));
        assert_eq!(of("claude", &report(0, Some(0)), ""), (Some(0), CostFrom::Tool));
        assert_eq!(of("opencode", &report(1000, Some(7)), "gpt-5"), (Some(7), CostFrom::Tool));
    }

    #[test]
    fn the_table_prices_the_model_of_the_stream_else_the_one_asked_for() {
        assert_eq!(of("codex", &report(1000, None), "gpt-5"), (Some(1250), CostFrom::Table));
        let mut named = report(1000, None);
        named.usage.model = Some("gpt-5-mini".to_owned());
        assert_eq!(of("codex", &named, "gpt-5"), (Some(250), CostFrom::Table));
        named.usage.model = Some("nobody-knows".to_owned());
        assert_eq!(of("codex", &named, "gpt-5"), (None, CostFrom::Unknown), "not what was asked for");
    }

    #[test]
    fn an_unknown_model_costs_an_unknown_amount() {
        for asked in ["", "fake-model", "gpt"] {
            assert_eq!(of("codex", &report(1000, None), asked), (None, CostFrom::Unknown), "{asked}");
        }
        assert_eq!(of("codex", &report(0, None), "gpt-5"), (None, CostFrom::Unknown), "no account at all");
    }

    #[test]
    fn a_zero_of_opencode_is_no_figure_and_a_zero_of_the_table_is() {
        let zero = report(1000, Some(0));
        assert_eq!(of("opencode", &zero, "openai/gpt-5"), (Some(1250), CostFrom::Table));
        assert_eq!(of("opencode", &zero, "ollama/llama"), (None, CostFrom::Unknown));
        assert_eq!(of("opencode", &report(0, Some(0)), "openai/gpt-5"), (None, CostFrom::Unknown));
        let free = Price { input: Usd::ZERO, cached_input: None, cache_write: None, output: Usd::ZERO };
        let prices = Prices::builtin().with([("ollama/llama".to_owned(), free)]);
        let own = cost(&ToolKind::Opencode, &zero, Some("ollama/llama"), &prices);
        assert_eq!(own, (Some(Usd::ZERO), CostFrom::Table));
    }

    #[test]
    fn what_a_killed_turn_told_is_a_lower_bound() {
        let killed = |usd| ToolReport { terminal: None, no_end_event: true, ..report(1000, usd) };
        assert_eq!(of("opencode", &killed(Some(9)), ""), (Some(9), CostFrom::AtLeast));
        assert_eq!(of("claude", &killed(None), "claude-opus-5-5"), (Some(4000), CostFrom::AtLeast));
        let unstated = ToolReport { usage_known: false, ..report(1000, None) };
        assert_eq!(of("codex", &unstated, "gpt-5"), (Some(1250), CostFrom::AtLeast));
    }

    fn spend(tokens: u64, usd: Option<u64>, model: Option<&str>) -> ToolEvent {
        ToolEvent::Usage(UsageDelta {
            input: Tokens(tokens),
            total: Tokens(tokens),
            usd: usd.map(Usd::from_micros),
            model: model.map(str::to_owned),
            ..UsageDelta::default()
        })
    }

    fn meter(tool: &str, asked: Option<&str>) -> Meter {
        Meter::new(ToolKind::from_name(tool), asked.map(str::to_owned), Prices::builtin())
    }

    fn spent(meter: &Meter) -> (u64, Option<u64>) {
        let (tokens, usd) = meter.spent();
        (tokens.0, usd.map(Usd::as_micros))
    }

    #[test]
    fn a_meter_prices_each_model_until_the_tool_gives_its_account() {
        let mut meter = meter("claude", Some("opus"));
        assert_eq!(spent(&meter), (0, None), "nothing is known yet");
        meter.feed(&ToolEvent::Activity);
        meter.feed(&spend(1000, None, Some("claude-opus-5-5")));
        assert_eq!(spent(&meter), (1000, Some(4000)));
        meter.feed(&spend(1000, None, Some("claude-haiku-4-5")));
        assert_eq!(spent(&meter), (2000, Some(5000)));
        meter.feed(&spend(10, Some(5100), Some("claude-opus-5-5")));
        assert_eq!(spent(&meter), (2010, Some(5100)));
        meter.feed(&spend(1000, None, Some("claude-haiku-4-5")));
        assert_eq!(spent(&meter), (3010, Some(6100)), "another conversation in the same stream");
        meter.feed(&spend(0, Some(1200), None));
        assert_eq!(spent(&meter), (3010, Some(6300)), "its account covers what was open");
    }

    #[test]
    fn any_number_of_models_takes_no_price_from_one_that_has_one() {
        let mut meter = meter("claude", Some("opus"));
        for n in 0..100 {
            meter.feed(&spend(1, None, Some(&format!("invented-{n}"))));
        }
        meter.feed(&spend(1000, None, Some("claude-opus-5-5")));
        assert_eq!(spent(&meter), (1100, Some(4000)));
    }

    #[test]
    fn an_account_that_says_less_than_was_counted_takes_nothing_back() {
        let mut meter = meter("claude", Some("opus"));
        for _ in 0..10 {
            meter.feed(&spend(1000, None, Some("claude-opus-5-5")));
            meter.feed(&spend(0, Some(1), None));
        }
        assert_eq!(spent(&meter), (10_000, Some(40_000)));
    }

    #[test]
    fn a_meter_adds_opencodes_steps_and_prices_those_without_a_figure() {
        let mut meter = meter("opencode", Some("openai/gpt-5"));
        meter.feed(&spend(1000, Some(0), None));
        assert_eq!(spent(&meter), (1000, Some(1250)));
        meter.feed(&spend(1000, Some(300), None));
        assert_eq!(spent(&meter), (2000, Some(1550)));
    }

    #[test]
    fn a_meter_without_a_price_knows_tokens_only() {
        let mut meter = meter("codex", None);
        meter.feed(&spend(1000, None, None));
        assert_eq!(spent(&meter), (1000, None));
        let mut many = self::meter("claude", None);
        for n in 0..1000 {
            many.feed(&spend(1, None, Some(&format!("m{n}"))));
        }
        assert_eq!((spent(&many), many.open.len()), ((1000, None), 0));
    }
}
