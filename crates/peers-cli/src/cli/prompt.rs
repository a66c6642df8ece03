//! `peers prompt`.

use std::process::ExitCode;

use peers_acts::preview::{self, Median, Next, Open, Past, Preview};
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::output;
use peers_model::command::Step;
use peers_run::boot;
use peers_sys::term;
use peers_view::{count, thousands};
use serde_json::json;

use super::watch;

/// Lines of the prompt that are shown without `--full`.
const LINES: usize = 12;
/// Cells of each of them.
const WIDTH: usize = 100;

/// Show the next prompt, its size by block and what a turn costs; send nothing
///
/// Composes the prompt that the next peer would get now, and writes nothing: no turn begins, no message
/// counts as delivered. It works beside a running loop. Gates are not run: the prompt has their last
/// results, and a note names those that a loop would run first. The cost of a turn is the median of this
/// peer's last 10 turns, as its tool reported it; "at least" if it reported only a part.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Compose for this peer instead of the next one
    #[arg(long, value_name = "PEER")]
    peer: Option<String>,
    /// Print only the prompt, in full; with --json, as `text`
    #[arg(long)]
    full: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (place, mut disk) = cx.view()?;
    let loaded = boot::load(&mut disk)?;
    let asked = args.peer.as_deref().map(|name| watch::peer_of(name, &loaded.config)).transpose()?;
    let found = preview::next_prompt(&place, &cx.env, &loaded, asked.as_ref())?;
    if let Some(changed) = loaded.changed() {
        cx.out.advise(Step::text(
            "warning: a start would refuse: {}; `peers goals diff` shows it",
            &[&changed],
        ));
    }
    for note in found.notes() {
        cx.out.talk(&format!("note: {note}"));
    }
    if args.json {
        cx.out.json("peers.prompt/1", &as_json(&found, args.full))?;
    } else if args.full {
        cx.out.data(&found.prompt.text)?;
    } else {
        cx.out.data(&text(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(found: &Preview) -> String {
    let Preview { peer, tick, skeptic, prompt, past, .. } = found;
    let kind = if *skeptic { ", a skeptic turn" } else { "" };
    let mut rows = vec![vec!["block".to_owned(), "bytes".to_owned()]];
    rows.extend(prompt.blocks.iter().map(|(name, bytes)| vec![(*name).to_owned(), bytes.to_string()]));
    let bytes = u64::try_from(prompt.text.len()).unwrap_or(u64::MAX);
    let (bytes, tokens) = (thousands(bytes), thousands(found.tokens().0));
    let mut lines = vec![
        format!("Prompt of tick {tick} for `{peer}`{kind}"),
        String::new(),
        output::table(&rows),
        format!("size:  {bytes} bytes, about {tokens} tokens; what the tool adds is not known"),
    ];
    lines.extend(prompt.cut.iter().map(|cut| format!("cut:   {cut}")));
    lines.extend([format!("turn:  {}", cost(peer.as_str(), past)), String::new()]);
    let shown = prompt.text.lines().take(LINES).map(|line| format!("  {}", term::line(line, WIDTH)));
    lines.extend(shown.map(|line| line.trim_end().to_owned()));
    let left = u64::try_from(prompt.text.lines().skip(LINES).count()).unwrap_or(u64::MAX);
    if left > 0 {
        lines.push(format!("  ... {} more; --full prints all", count(left, "line")));
    }
    lines.join("\n") + "\n"
}

fn cost(peer: &str, past: &Past) -> String {
    let Past { turns, tokens, usd } = past;
    if *turns == 0 {
        return format!("nothing is known of what one costs: `{peer}` had none yet");
    }
    let tokens = tokens.map(|found| middle(&format!("{} tokens", thousands(found.middle.0)), &found));
    let usd = usd.map(|found| middle(&found.middle.to_string(), &found));
    match (usd, tokens) {
        (Some(usd), Some(tokens)) => format!("the last ones of `{peer}` cost {usd} and used {tokens}"),
        (Some(usd), None) => format!("the last ones of `{peer}` cost {usd}; tokens are not known"),
        (None, Some(tokens)) => {
            format!("the last ones of `{peer}` used {tokens}; what they cost is not known")
        }
        (None, None) => {
            format!("what they cost is not known: the tool of `{peer}` tells neither tokens nor money")
        }
    }
}

/// A median that was worded already.
fn middle<T>(words: &str, found: &Median<T>) -> String {
    let Median { middle: _, at_least, of } = found;
    if *at_least {
        format!("at least {words} (median of {of}; its tool tells a part)")
    } else {
        format!("{words} (median of {of})")
    }
}

fn as_json(found: &Preview, full: bool) -> serde_json::Value {
    let Preview { peer, tick, skeptic, prompt, next, owed, open, past } = found;
    let next = match next {
        Next::Turn(peer) => json!({"kind": "turn", "peer": peer}),
        Next::Proof => json!({"kind": "proof"}),
        Next::Wait(until) => json!({"kind": "wait", "until": until}),
        Next::Stop(reason) => json!({"kind": "stop", "reason": reason.to_string()}),
    };
    let open =
        open.as_ref().map(|Open { tick, peer, live }| json!({"tick": tick, "peer": peer, "live": live}));
    let blocks: Vec<_> =
        prompt.blocks.iter().map(|(name, bytes)| json!({"name": name, "bytes": bytes})).collect();
    json!({
        "peer": peer,
        "tick": tick,
        "skeptic": skeptic,
        "bytes": prompt.text.len(),
        "tokens": found.tokens(),
        "blocks": blocks,
        "cut": prompt.cut,
        "next": next,
        "owed": owed,
        "open": open,
        "past": {
            "turns": past.turns,
            "tokens": past.tokens.map(|found| found.middle),
            "tokens_at_least": past.tokens.is_some_and(|found| found.at_least),
            "tokens_of": past.tokens.map_or(0, |found| found.of),
            "usd": past.usd.map(|found| found.middle),
            "usd_at_least": past.usd.is_some_and(|found| found.at_least),
            "usd_of": past.usd.map_or(0, |found| found.of),
        },
        "notes": found.notes(),
        "text": full.then_some(&prompt.text),
    })
}

#[cfg(test)]
mod tests {
    use peers_model::{Tokens, Usd};

    use super::*;

    #[test]
    fn what_is_known_in_part_is_said_to_be_a_lower_bound() {
        let usd = Median { middle: Usd::from_micros(250_000), at_least: true, of: 3 };
        let past = Past { turns: 4, tokens: None, usd: Some(usd) };
        assert_eq!(
            cost("ann", &past),
            "the last ones of `ann` cost at least $0.25 (median of 3; its tool tells a part); tokens are not known"
        );
        let tokens = Median { middle: Tokens(12_000), at_least: false, of: 4 };
        assert_eq!(
            cost("ann", &Past { tokens: Some(tokens), ..past }),
            "the last ones of `ann` cost at least $0.25 (median of 3; its tool tells a part) and used 12,000 tokens (median of 4)"
        );
    }
}
