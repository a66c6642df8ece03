//! `peers-ctl report --html`: one page that needs nothing else, for a browser or a phone.
//!
//! No script, no image, no font from anywhere: the page forbids itself all of them. Every foreign text passes one
//! function that takes its meaning away.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use peers_sys::term;

use super::many::{ReportEntry, ReportHead};
use super::one::Report;
use crate::advice::Level;
use crate::gates::GateRow;
use crate::history::{GateMark, History, PeerCost};
use crate::live::{Stamp, live_words};
use crate::loopview::{Core, LoopView};
use crate::page::{Page, Tone};
use crate::ticks::TickRow;
use crate::words::{count, duration_ms, thousands};
use peers_model::TickNo;

/// Terminal cells of one text.
const TEXT: usize = 600;
/// Bugs of one loop.
const BUGS: usize = 100;

const STYLE: &str = "\
:root{color-scheme:light dark;--good:#2da44e;--bad:#cf222e;--care:#bf8700;--line:#8883;--faint:#777}\
*{box-sizing:border-box}body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:72rem;padding:1rem}\
h1{font-size:1.4rem}h2{font-size:1.2rem;border-top:2px solid var(--line);padding-top:1rem;margin-top:2rem}\
h3{font-size:1rem;margin:1.2rem 0 .4rem}code,pre{font:13px/1.4 ui-monospace,monospace}code{overflow-wrap:anywhere}\
.wrap{overflow-x:auto}table{border-collapse:collapse;min-width:100%}\
th,td{text-align:left;padding:.2rem .6rem .2rem 0;border-bottom:1px solid var(--line);vertical-align:top}\
.act,.bad{color:var(--bad)}.watch,.care{color:var(--care)}.done,.good{color:var(--good)}.faint{color:var(--faint)}\
.strong{font-weight:600}.facts{display:flex;flex-wrap:wrap;gap:.3rem 1.5rem;margin:.5rem 0}\
.heat{border-spacing:1px;border-collapse:separate;min-width:0}.heat td,.heat th{border:0;padding:0}\
.heat th{font-weight:400;padding-right:.6rem;white-space:nowrap}.heat td{width:.9rem;min-width:.7rem;text-align:center}\
.heat .pass{background:var(--good);color:#fff}.heat .fail{background:var(--bad);color:#fff}\
.heat .error{background:var(--care);color:#fff}.heat .none{background:var(--line)}\
.bar{display:block;height:.5rem;background:var(--line);border-radius:3px;min-width:6rem}\
.bar i{display:block;height:100%;border-radius:3px;background:var(--good)}\
svg{display:block;width:100%;max-width:40rem;height:4rem}pre{overflow-x:auto;border:1px solid var(--line);padding:.6rem;margin:.3rem 0}\
details{margin:.3rem 0}summary{cursor:pointer}";

/// What turns changed, by loop and tick, newest last.
pub type Patches = BTreeMap<(String, TickNo), Page>;

/// The report as a page of HTML. `patches` are shown where they are there.
#[must_use]
pub fn reports_html(head: &ReportHead, entries: &[ReportEntry<'_>], patches: &Patches) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    // Nothing is fetched and nothing runs, whatever a text in it says.
    html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n");
    html.raw("<title>peers report</title>\n<style>");
    html.raw(STYLE);
    html.raw("</style>\n</head>\n<body>\n<h1>peers report</h1>\n");
    html.tag("p", "faint", &format!("made {} of {}", head.generated_at, head.scope));
    for warning in &head.warnings {
        html.tag("p", "care", &warning.message);
    }
    if entries.len() > 1 {
        html.raw("<div class=\"wrap\"><table>\n");
        for (n, entry) in entries.iter().enumerate() {
            let top = &entry.row.attention.top;
            let _ = write!(html.0, "<tr><td><a href=\"#loop-{n}\">");
            html.text(&entry.row.name);
            html.raw("</a></td>");
            html.tag("td", level(top.level), top.level.word());
            html.tag("td", "", &top.why);
            html.raw("</tr>\n");
        }
        html.raw("</table></div>\n");
    }
    for (n, entry) in entries.iter().enumerate() {
        one(&mut html, n, entry, patches);
    }
    html.raw("</body>\n</html>\n");
    html.0
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Act => "act strong",
        Level::Watch => "watch strong",
        Level::Done => "done strong",
        Level::Ok => "strong",
        Level::Idle => "faint",
    }
}

/// HTML in the making.
#[derive(Default)]
struct Html(String);

impl Html {
    /// Our own.
    fn raw(&mut self, html: &str) {
        self.0.push_str(html);
    }

    /// A text of anybody's, in which nothing means anything.
    fn text(&mut self, text: &str) {
        escape(&mut self.0, &term::line(text, TEXT));
    }

    /// A text in an element.
    fn tag(&mut self, name: &str, class: &str, text: &str) {
        self.open(name, class);
        self.text(text);
        let _ = write!(self.0, "</{name}>");
        if name != "td" && name != "th" && name != "span" {
            self.0.push('\n');
        }
    }

    fn open(&mut self, name: &str, class: &str) {
        // Writing to a string cannot fail, here and elsewhere.
        let _ = match class {
            "" => write!(self.0, "<{name}>"),
            class => write!(self.0, "<{name} class=\"{class}\">"),
        };
    }

    /// A table with these titles.
    fn table<'a, const N: usize>(
        &mut self,
        titles: [&str; N],
        rows: impl Iterator<Item = [(&'a str, String); N]>,
    ) {
        self.raw("<div class=\"wrap\"><table>\n<tr>");
        for title in titles {
            self.tag("th", "", title);
        }
        self.raw("</tr>\n");
        for row in rows {
            self.raw("<tr>");
            for (class, text) in row {
                self.tag("td", class, &text);
            }
            self.raw("</tr>\n");
        }
        self.raw("</table></div>\n");
    }
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

fn one(html: &mut Html, n: usize, entry: &ReportEntry<'_>, patches: &Patches) {
    let row = entry.row;
    let Report { view, history } = entry.report;
    let _ = write!(html.0, "<section id=\"loop-{n}\">\n<h2>");
    html.text(&row.name);
    html.raw("</h2>\n");
    let top = &row.attention.top;
    html.open("p", "");
    html.tag("span", level(top.level), top.level.word());
    html.raw(": ");
    html.text(&top.why);
    html.raw("</p>\n");
    if let Some(action) = &top.action {
        html.raw("<p>Next: <code>");
        html.text(action);
        html.raw("</code></p>\n");
    }
    html.tag("p", "", &live_words(view, Stamp::Absolute).1);
    if let Some(proof) = super::one::proof(entry.report, str::to_owned) {
        html.tag("p", "good", &proof);
    }
    if !entry.notes.is_empty() {
        html.tag("p", "faint", entry.notes);
    }
    facts(html, view, history.value());
    for why in [view.core.why(), history.why()].into_iter().flatten() {
        html.tag("p", "bad strong", &format!("the journal cannot be read to its end: {why}"));
    }
    if let Some(core) = view.core.value() {
        gates(html, core, history.value());
        reviews(html, core);
        budget(html, core);
    }
    if let Some(history) = history.value() {
        cost(html, history);
        ticks(html, (&row.name, history), patches);
    }
    bugs(html, view);
    html.raw("</section>\n");
}

fn facts(html: &mut Html, view: &LoopView, history: Option<&History>) {
    let mut facts = Vec::new();
    if let Some(core) = view.core.value() {
        facts.push(("ticks", core.ticks.to_string()));
        let head = core.head.as_ref().map_or("not known", |head| head.short());
        facts.push(("head", head.to_owned()));
        facts.extend(core.branch.clone().map(|branch| ("branch", branch)));
        let missing = core.converge.missing.len();
        let text = if missing == 0 { "nothing".to_owned() } else { missing.to_string() };
        facts.push(("missing for complete", text));
    }
    if let Some(history) = history {
        facts.push(("runs", history.runs.to_string()));
    }
    facts.push(("sandbox", view.confinement.words()));
    html.raw("<div class=\"facts\">");
    for (name, text) in facts {
        html.raw("<span>");
        html.tag("span", "faint", &format!("{name} "));
        html.text(&text);
        html.raw("</span>");
    }
    html.raw("</div>\n");
}

fn state_class(gate: &GateRow) -> &'static str {
    match gate.state {
        "pass" if gate.is_green() => "good",
        "pass" | "unknown" | "skipped" => "faint",
        "error" => "care",
        _ => "bad",
    }
}

fn gates(html: &mut Html, core: &Core, history: Option<&History>) {
    if core.gates.is_empty() {
        return;
    }
    html.tag("h3", "", "Gates");
    html.table(
        ["gate", "state", "took", "what it said"],
        core.gates.iter().map(|gate| {
            let stale = if gate.stale == Some(true) { " (stale)" } else { "" };
            [
                ("", gate.id.to_string()),
                (state_class(gate), format!("{}{stale}", gate.state)),
                ("faint", duration_ms(gate.duration_ms)),
                ("", gate.cause()),
            ]
        }),
    );
    let Some(history) = history.filter(|history| !history.gate_ticks.is_empty()) else { return };
    html.tag("h3", "", "Timeline");
    html.raw("<div class=\"wrap\"><table class=\"heat\">\n");
    for gate in &core.gates {
        html.raw("<tr>");
        html.tag("th", "", gate.id.as_str());
        for tick in &history.gate_ticks {
            let (class, sign, word) = match tick.gates.get(&gate.id) {
                Some(GateMark::Pass) => ("pass", "\u{2713}", "pass"),
                Some(GateMark::Fail) => ("fail", "\u{d7}", "fail"),
                Some(GateMark::Error) => ("error", "?", "could not judge"),
                None => ("none", "\u{b7}", "not yet"),
            };
            let _ = write!(html.0, "<td class=\"{class}\" title=\"tick {}: {word}\">{sign}</td>", tick.tick);
        }
        html.raw("</tr>\n");
    }
    html.raw("</table></div>\n");
    let ends = (history.gate_ticks.front(), history.gate_ticks.back());
    if let (Some(first), Some(last)) = ends {
        let text = format!(
            "ticks {} to {}; \u{2713} pass, \u{d7} fail, ? could not judge, \u{b7} not yet",
            first.tick, last.tick
        );
        html.tag("p", "faint", &text);
    }
}

fn reviews(html: &mut Html, core: &Core) {
    if core.soft.is_empty() {
        return;
    }
    html.tag("h3", "", "Reviews");
    html.table(
        ["goal", "passed", "who", "what is missing"],
        core.soft.iter().map(|row| {
            let class = if row.ok { "good" } else { "care" };
            let split = if row.split { " (they differ)" } else { "" };
            [
                ("", row.id.to_string()),
                (class, row.share()),
                ("", format!("{}{split}", row.rule)),
                ("", row.why.clone()),
            ]
        }),
    );
}

fn budget(html: &mut Html, core: &Core) {
    html.tag("h3", "", "Budget");
    html.raw("<div class=\"wrap\"><table>\n");
    for row in &core.budget.rows {
        html.raw("<tr>");
        html.tag("td", "", &row.name);
        html.tag("td", "", &row.words());
        let cap = row.cap.map_or_else(|| "no cap".to_owned(), |cap| format!("of {}", cap.words()));
        html.tag("td", "faint", &cap);
        html.raw("<td>");
        if let Some(percent) = row.percent() {
            let class = if percent >= 90 { "bad" } else { "" };
            let _ = write!(
                html.0,
                "<span class=\"bar\"><i style=\"width:{}%\"></i></span><span class=\"{class}\">{percent}%</span>",
                percent.min(100)
            );
        }
        html.raw("</td></tr>\n");
    }
    html.raw("</table></div>\n");
}

/// What each peer cost, and each tick.
fn cost(html: &mut Html, history: &History) {
    if history.cost.is_empty() {
        return;
    }
    html.tag("h3", "", "Cost");
    let known = |known: Option<String>, least: bool| {
        let known = known.unwrap_or_else(|| "unknown".to_owned());
        if least && known != "unknown" { format!("at least {known}") } else { known }
    };
    html.table(
        ["peer", "turns", "handed over", "run time", "wasted", "tokens", "money"],
        history.cost.iter().map(|(peer, cost)| {
            let PeerCost { ticks, handoffs, ms, wasted_ms, tokens, usd, .. } = cost;
            [
                ("", peer.to_string()),
                ("", ticks.to_string()),
                ("", handoffs.to_string()),
                ("", duration_ms(*ms)),
                (if *wasted_ms > 0 { "care" } else { "faint" }, duration_ms(*wasted_ms)),
                ("", known(tokens.map(|tokens| thousands(tokens.0)), cost.tokens_at_least)),
                ("", known(usd.map(|usd| usd.to_string()), cost.usd_at_least)),
            ]
        }),
    );
    let spent: Vec<Option<u64>> =
        history.timeline.iter().map(|tick| tick.usd.map(peers_model::Usd::as_micros)).collect();
    let most = spent.iter().flatten().copied().max().unwrap_or_default();
    if most == 0 {
        return;
    }
    let width = 100 / spent.len().max(1);
    let _ = write!(
        html.0,
        "<svg viewBox=\"0 0 {} 40\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"money by tick\">",
        spent.len() * width.max(1)
    );
    for (n, micros) in spent.iter().enumerate() {
        // Unknown is not nothing: it has a grey foot.
        let height =
            micros.map_or(2, |micros| micros.saturating_mul(38).checked_div(most).unwrap_or_default());
        let fill = if micros.is_some() { "#2da44e" } else { "#8888" };
        let _ = write!(
            html.0,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{height}\" fill=\"{fill}\"/>",
            n * width.max(1),
            40 - height,
            width.max(2) - 1
        );
    }
    html.raw("</svg>\n");
    html.tag("p", "faint", &format!("money by tick, the newest {} on the right; grey: unknown", spent.len()));
}

fn ticks(html: &mut Html, (name, history): (&str, &History), patches: &Patches) {
    if history.timeline.is_empty() {
        return;
    }
    html.tag("h3", "", "Ticks");
    html.tag("p", "faint", &format!("{}, the newest first", count(history.ticks, "tick")));
    html.table(
        ["tick", "peer", "result", "commits", "took", "cost", "why no success"],
        history.timeline.iter().rev().map(|tick: &TickRow| {
            [
                ("", tick.tick.to_string()),
                ("", tick.peer.to_string()),
                (if tick.success { "good" } else { "care" }, tick.result()),
                ("", tick.commits.len().to_string()),
                ("", duration_ms(tick.duration_ms)),
                ("", tick.cost()),
                ("", tick.reason.clone().unwrap_or_default()),
            ]
        }),
    );
    let mine = patches.iter().filter(|((of, _), _)| of == name);
    let mine: Vec<(TickNo, &Page)> = mine.map(|((_, tick), page)| (*tick, page)).collect();
    if mine.is_empty() {
        return;
    }
    html.tag("h3", "", "What turns changed");
    for (tick, page) in mine.into_iter().rev() {
        let peer = history.timeline.iter().find(|row| row.tick == tick).map(|row| row.peer.to_string());
        html.raw("<details><summary>");
        html.text(&format!("tick {tick} of {}", peer.unwrap_or_default()));
        html.raw("</summary><pre>");
        for line in page.lines() {
            for cell in line {
                let class = match cell.tone() {
                    Tone::Plain => "",
                    Tone::Good => "good",
                    Tone::Bad => "bad",
                    Tone::Care => "care",
                    Tone::Faint => "faint",
                    Tone::Strong => "strong",
                };
                html.open("span", class);
                // Whoever made the page made it harmless and short.
                escape(&mut html.0, cell.text());
                html.raw("</span>");
            }
            html.raw("\n");
        }
        html.raw("</pre></details>\n");
    }
}

fn bugs(html: &mut Html, view: &LoopView) {
    if let Some(why) = view.bugs.why() {
        html.tag("h3", "", "Bugs");
        html.tag("p", "bad", &format!("they cannot be read: {why}"));
    }
    let Some(bugs) = view.bugs.value().filter(|bugs| bugs.total > 0) else { return };
    html.tag("h3", "", "Bugs");
    let text = format!("{} open, {} of them blocking, {} reported", bugs.open, bugs.blocking, bugs.total);
    html.tag("p", "faint", &text);
    html.table(
        ["bug", "severity", "standing", "where", "title"],
        bugs.rows.iter().take(BUGS).map(|bug| {
            [
                ("", bug.id.to_string()),
                (if bug.open.is_some() { "bad" } else { "faint" }, bug.severity.as_str().to_owned()),
                ("", bug.open.unwrap_or_else(|| bug.status.as_str()).to_owned()),
                ("faint", bug.location.clone().unwrap_or_default()),
                ("", bug.title.clone()),
            ]
        }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_an_element() {
        let mut html = Html::default();
        html.tag("p", "faint", "<script>alert('x')</script> & \"y\" \u{1b}[2J");
        assert_eq!(
            html.0,
            "<p class=\"faint\">&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;y&quot; </p>\n"
        );
    }
}
