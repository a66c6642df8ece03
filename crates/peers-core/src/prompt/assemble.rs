//! Order and byte budget.

use std::fmt::Write as _;
use std::time::Duration;

use peers_model::Tokens;
use peers_model::time::human;
use sha2::{Digest, Sha256};

use super::blocks::{Block, Part};
use super::fence::Fence;
use super::input::{BudgetLeft, PromptInput, StandstillLine};
use super::share::share;
use super::stable;

/// A prompt, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// What was shortened or left out, one sentence fragment each.
    pub cut: Vec<String>,
    /// The blocks in order with their sizes in bytes, separators not counted.
    pub blocks: Vec<(&'static str, usize)>,
    /// SHA-256 of the text, lower-case hex.
    pub sha256: String,
    /// How many of the input's messages, from the first on, the text shows. The rest is still due.
    pub messages_shown: usize,
}

/// Assembles a prompt. Equal input gives equal bytes; the text keeps to `max_bytes` (see there).
#[must_use]
pub fn assemble(input: &PromptInput) -> Prompt {
    let fence = Fence::new(&input.nonce);
    let mut before = stable::blocks(input);
    before.push(("tick", tick(input)));
    let mut between = vec![("data", stable::DATA.replace("{nonce}", fence.nonce()))];
    if let Some(why) = &input.own_last {
        let safe = fence.safe_line(why, 500);
        let text =
            format!("## Your previous turn did not count\n\n{}", fence.wrap("your previous turn", &safe));
        between.push(("own-last", text));
    }
    let after = (
        "end",
        "End of the data. Now do your task: one concrete step, verified, committed, handed off.\n".to_owned(),
    );

    let fixed: usize = before.iter().chain(&between).chain([&after]).map(|(_, text)| text.len() + 1).sum();
    let parts: Vec<Part> = Part::ASKED.into_iter().chain(Part::DATA).collect();
    let rendered = render(&parts, input, &fence, input.max_bytes.saturating_sub(fixed));

    let mut prompt = Prompt {
        text: String::new(),
        cut: Vec::new(),
        blocks: Vec::new(),
        sha256: String::new(),
        messages_shown: 0,
    };
    let (asked, data) = rendered.split_at(Part::ASKED.len().min(rendered.len()));
    for (name, text) in before {
        prompt.push(name, &text);
    }
    for (part, block) in asked {
        prompt.take(*part, block);
    }
    for (name, text) in between {
        prompt.push(name, &text);
    }
    for (part, block) in data {
        prompt.take(*part, block);
    }
    prompt.push(after.0, &after.1);
    prompt.sha256 = hex(&Sha256::digest(prompt.text.as_bytes()));
    prompt
}

impl Prompt {
    fn push(&mut self, name: &'static str, text: &str) {
        if text.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        self.blocks.push((name, text.len()));
    }

    fn take(&mut self, part: Part, block: &Block) {
        let Block { text, cut, shown } = block;
        self.push(part.name(), text);
        self.cut.extend(cut.clone());
        if part == Part::Messages {
            self.messages_shown = *shown;
        }
    }
}

/// Renders each part at its cap; if that is too much in all, shares what is available fairly.
fn render(parts: &[Part], input: &PromptInput, fence: &Fence, available: usize) -> Vec<(Part, Block)> {
    let mut blocks: Vec<(Part, Block)> =
        parts.iter().map(|part| (*part, part.render(input, fence, part.cap()))).collect();
    let wants: Vec<usize> = blocks
        .iter()
        .map(|(_, block)| if block.text.is_empty() { 0 } else { block.text.len() + 1 })
        .collect();
    for (((part, block), want), given) in blocks.iter_mut().zip(&wants).zip(share(available, &wants)) {
        if given < *want {
            *block = part.render(input, fence, given.saturating_sub(1));
        }
    }
    blocks
}

fn tick(input: &PromptInput) -> String {
    let BudgetLeft { iterations, runtime_s, tokens, usd, idle_s, absolute_s } = input.budget;
    let span = |s: u64| human(Duration::from_secs(s));
    let mut left = Vec::new();
    if let Some(n) = iterations {
        left.push(format!("{n} ticks"));
    }
    if let Some(s) = runtime_s {
        left.push(format!("{} of run time", span(s)));
    }
    if let Some(n) = tokens {
        left.push(format!("{} tokens", Tokens(n)));
    }
    if let Some(usd) = usd {
        left.push(usd.to_string());
    }
    let mut text = format!("## Tick {}\n\n", input.tick);
    if !left.is_empty() {
        let _infallible = writeln!(text, "Left for the whole run: {}.", left.join(", "));
    }
    let _infallible = writeln!(
        text,
        "Your process is ended after {} without any output, and after {} in all. Commit early enough.",
        span(idle_s),
        span(absolute_s)
    );
    if let Some(StandstillLine { ticks, of, missing }) = &input.standstill {
        let _infallible = writeln!(
            text,
            "The run gets nowhere: {ticks} turns in a row without progress, and after {of} it stops. Missing: {missing}. \
             Give what is asked of you, do something that was not tried, or say what is in your way."
        );
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _infallible = write!(out, "{byte:02x}");
        out
    })
}
