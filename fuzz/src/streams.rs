//! What a child prints: decoded, searched, priced, and read for the end of a limit.

use std::sync::LazyLock;

use peers_model::outcome::ExitClass;
use peers_model::{Tokens, Usd};
use peers_tools::event::{FAILURE_CHARS, FINAL_BYTES, TEXT_BYTES, WORDS_CHARS};
use peers_tools::{
    CostFrom, Decoder, ExitKind, Facts, FailureKind, HitTime, Meter, Omen, Omens, PatternHit, PatternScanner,
    Patterns, Prices, Stream, ToolEvent, ToolKind, ToolReport, UsageDelta, adapter, brief, classify, cost,
    judge_text, opens_at, other_model, reset_at,
};

/// 2026-11-20 07:52 UTC.
const NOW: i64 = 1_795_161_120;
const EIGHT_DAYS: i64 = 8 * 24 * 3600;
const LINE: usize = 16 * 1024 * 1024;

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::defaults().expect("the defaults compile"));
static PRICES: LazyLock<Prices> = LazyLock::new(Prices::builtin);

/// How one child is played: the first three bytes of an input.
#[derive(Clone, Copy)]
struct Play<'a> {
    tool: &'a str,
    structured: bool,
    exit: ExitKind,
    stdout: &'a [u8],
    stderr: &'a [u8],
}

/// Puts one child through everything. The first byte is a letter for the tool, the next two say how
/// its output is cut to pieces. Standard error begins after a line `==`.
pub fn check(data: &[u8]) {
    let [tool, cut, other_cut, output @ ..] = data else { return };
    // From `a` on.
    let (tool, structured) = match tool % 6 {
        1 => ("claude", true),
        2 => ("codex", true),
        3 => ("claude", false),
        4 => ("opencode", true),
        5 => ("aider", false),
        _ => ("acp", true),
    };
    let end = output.windows(4).position(|part| part == b"\n==\n");
    let (stdout, stderr) = end.map_or((output, &[][..]), |at| (&output[..at + 1], &output[at + 4..]));
    let exit = match cut % 4 {
        0 | 1 => ExitKind::Code(i32::from(cut % 4)),
        2 => ExitKind::Signal(15),
        _ => ExitKind::Unknown,
    };
    let play = Play { tool, structured, exit, stdout, stderr };
    let whole = decode(play, 0);
    let hits = scan(play, 0);
    for seed in [*cut, *other_cut] {
        let pieces = decode(play, seed);
        assert_eq!(pieces, whole, "the events do not depend on the pieces");
        assert_eq!(scan(play, seed), hits, "the hits do not depend on the pieces");
    }
    let (events, report) = whole;
    assert!(events.len() <= data.len() + 8, "{} events", events.len());
    bounded(&events, &report);
    let spent = sum(&events);
    let omen = accounts(play, &events, &report, &spent);
    verdicts(&report, &hits, omen.as_ref());
    times(&String::from_utf8_lossy(output), &[(NOW, -5 * 3600)]);
    times(&report.final_text, &[(NOW, 0), (0, i32::MAX), (i64::MAX, 1), (i64::MIN, -1)]);
}

fn decoder(play: Play<'_>) -> Box<dyn Decoder> {
    let tool = adapter(&ToolKind::from_name(play.tool));
    if play.structured { tool.decoder() } else { tool.decoder_for(&[play.tool.to_owned()]) }
}

/// The pieces of `bytes`: one if `seed` is 0, else of lengths that it makes up.
fn pieces(bytes: &[u8], seed: u8) -> impl Iterator<Item = &[u8]> {
    let mut state = u32::from(seed);
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let most = if state & 0x100 == 0 { 7 } else { 200 };
        let length = if seed == 0 { rest.len() } else { (state >> 16) as usize % most };
        let (piece, tail) = rest.split_at(length.min(rest.len()));
        rest = tail;
        Some(piece)
    })
}

fn decode(play: Play<'_>, seed: u8) -> (Vec<ToolEvent>, ToolReport) {
    let mut decoder = decoder(play);
    let mut events = Vec::new();
    for (stream, bytes) in [(Stream::Stdout, play.stdout), (Stream::Stderr, play.stderr)] {
        for piece in pieces(bytes, seed) {
            decoder.feed(stream, piece, &mut events);
            assert!(decoder.held() <= LINE.min(bytes.len() + play.stdout.len()), "{} held", decoder.held());
        }
    }
    let report = decoder.finish(play.exit, &mut events);
    (events, report)
}

fn scan(play: Play<'_>, seed: u8) -> Vec<PatternHit> {
    let mut scanner = PatternScanner::new(PATTERNS.clone(), play.structured);
    let mut hits = Vec::new();
    for (stream, bytes) in [(Stream::Stdout, play.stdout), (Stream::Stderr, play.stderr)] {
        for piece in pieces(bytes, seed) {
            scanner.feed(stream, piece, &mut hits);
            assert!(scanner.held() <= 128 * 1024);
        }
    }
    scanner.flush_tail(&mut hits);
    assert!(hits.len() <= 16);
    hits.iter().for_each(|hit| line(&hit.snippet));
    hits
}

/// Words of a failure, and what records have of them.
fn line(text: &str) {
    assert!(text.chars().count() <= WORDS_CHARS, "{text:?}");
    let brief = brief(text);
    assert!(brief.chars().count() <= FAILURE_CHARS, "{brief:?}");
    assert!(!brief.contains(char::is_control), "{brief:?}");
}

fn bounded(events: &[ToolEvent], report: &ToolReport) {
    for event in events {
        match event {
            ToolEvent::Text(text) => assert!(text.len() <= TEXT_BYTES),
            ToolEvent::ToolBegun { name, id } => assert!(name.len() <= 80 && id.len() <= 80),
            ToolEvent::ToolEnded { id, .. } => assert!(id.len() <= 80),
            ToolEvent::RetryNotice(retry) => line(&retry.text),
            ToolEvent::Failure(failure) => line(&failure.text),
            ToolEvent::Final { text, .. } => assert!(text.len() <= FINAL_BYTES),
            ToolEvent::Activity
            | ToolEvent::EmptyStep { .. }
            | ToolEvent::Usage(_)
            | ToolEvent::PlanWindow { .. } => {}
        }
    }
    assert!(report.final_text.len() <= FINAL_BYTES);
    assert!(report.session.as_ref().is_none_or(|id| id.len() <= 80));
    assert!(report.usage.model.as_ref().is_none_or(|model| model.len() <= 120));
    if let Some(failure) = &report.failure {
        line(&failure.text);
        assert!(report.terminal.is_some_and(|terminal| !terminal.ok));
    }
}

fn sum(events: &[ToolEvent]) -> UsageDelta {
    events.iter().fold(UsageDelta::default(), |mut sum, event| {
        if let ToolEvent::Usage(more) = event {
            sum.input += more.input;
            sum.output += more.output;
            sum.total += more.total;
        }
        sum
    })
}

/// What was spent: the increments cover the report, a figure has a source, unknown is no figure. Returns
/// the first sign that going on was of no use.
fn accounts(play: Play<'_>, events: &[ToolEvent], report: &ToolReport, spent: &UsageDelta) -> Option<Omen> {
    let usage = &report.usage;
    assert!(spent.input >= usage.input && spent.output >= usage.output && spent.total >= usage.total);
    let kind = ToolKind::from_name(play.tool);
    let mut meter = Meter::new(kind.clone(), Some("gpt-5".to_owned()), PRICES.clone());
    let mut omens = Omens::default();
    let mut first = None;
    let mut before = Tokens::default();
    for event in events {
        meter.feed(event);
        let (tokens, _) = meter.spent();
        assert!(tokens >= before);
        before = tokens;
        if let Some(omen) = omens.feed(event) {
            line(&omen.text);
            let waits = FailureKind::RateLimit { retry_after: None };
            assert!(omen.kind != FailureKind::Other && omen.kind != waits, "{omen:?}");
            first.get_or_insert(omen);
        }
    }
    assert_eq!(before, spent.total);
    for asked in [None, Some("gpt-5"), Some("nobody-knows")] {
        let (usd, from) = cost(&kind, report, asked, &PRICES);
        assert_eq!(usd.is_none(), from == CostFrom::Unknown);
        if usd.is_some_and(|usd| usd > Usd::ZERO) {
            assert!(report.usage.usd.is_some() || asked == Some("gpt-5") || usage.model.is_some());
        }
    }
    if let Some(model) = &usage.model {
        assert!(!other_model(model, model), "{model:?}");
        let _: bool = other_model("opus", model);
        let _: Option<Usd> = PRICES.price(model, usage);
    }
    first
}

/// A structured failure outranks a hit, and whatever is said has a word for the log.
fn verdicts(report: &ToolReport, hits: &[PatternHit], omen: Option<&Omen>) {
    for exit in [ExitClass::Ok, ExitClass::Nonzero, ExitClass::Signal, ExitClass::Idle, ExitClass::Hopeless] {
        let hit = hits.first().map(|hit| (hit, HitTime::PostJoin));
        let verdict = classify(Facts { exit, report, hit, omen });
        assert!(!verdict.label().is_empty());
        if let Some(failure) = &report.failure {
            assert_eq!(verdict.kind, Some(failure.kind));
        }
        if let Some(kind) = verdict.kind {
            let text = verdict.matched.as_ref().map_or("", |matched| matched.snippet.as_str());
            let at = opens_at(kind, text, NOW, 3600);
            assert!(at.is_none_or(|at| at >= NOW) && (kind != FailureKind::Auth || at.is_none()));
        }
    }
}

/// Whatever a text says, the moment is near or none.
fn times(text: &str, clocks: &[(i64, i32)]) {
    for &(now, offset) in clocks {
        if let Some(at) = reset_at(text, now, offset) {
            assert!(at >= now && at - now <= EIGHT_DAYS, "{at} at {now}");
        }
    }
    let kind = judge_text(text);
    assert_eq!(kind, judge_text(text));
    line(kind.as_str());
}
