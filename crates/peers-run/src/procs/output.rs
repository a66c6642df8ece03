//! What a peer prints: decoded, searched, redacted, kept.
//!
//! Shared by the two readers of a child, which run on the same thread. Only the decoder and the
//! pattern scanner see the bytes as they are; everything that is kept or shown is redacted first.

use peers_core::machine::Ceiling;
use peers_core::watch::{Stream as Channel, WatchIn};
use peers_model::{Mono, Tokens, Usd};
use peers_sys::redact::{Redactor, Rules};
use peers_tools::event::TEXT_BYTES;
use peers_tools::{
    Decoder, ExitKind, HitClass, HitTime, Meter, Omen, Omens, PatternHit, PatternScanner, Stream, ToolEvent,
    ToolReport,
};

use super::capture::Capture;
use super::progress::Progress;

/// So much of the beginning of standard error is kept as it is: the spawn stub's word.
const FIRST_WORDS: usize = 1024;

/// One child's output so far.
pub(super) struct Output {
    decoder: Option<Box<dyn Decoder>>,
    accounts: Accounts,
    scanner: PatternScanner,
    out: Side,
    err: Side,
    rules: Rules,
    events: Vec<ToolEvent>,
    found: Vec<PatternHit>,
    hits: Vec<(PatternHit, HitTime)>,
    /// Output came after the chunk with the first halt pattern.
    spoke_after_halt: bool,
    exited: bool,
    news: News,
    progress: Progress,
    first_words: Vec<u8>,
    taken: u64,
}

/// What is counted and looked out for while a child runs.
#[derive(Debug)]
pub(super) struct Accounts {
    pub(super) meter: Meter,
    /// Beyond it the child is ended.
    pub(super) ceiling: Ceiling,
    pub(super) omens: Omens,
    /// The first of them.
    omen: Option<Omen>,
    over: bool,
    /// What was read last went beyond the ceiling; whether the tool ends with it is not known yet.
    beyond: bool,
}

impl Accounts {
    pub(super) fn new(meter: Meter, ceiling: Ceiling, omens: Omens) -> Self {
        Self { meter, ceiling, omens, omen: None, over: false, beyond: false }
    }

    fn take(&mut self, event: &ToolEvent) {
        self.meter.feed(event);
        if let Some(omen) = self.omens.feed(event) {
            self.omen.get_or_insert(omen);
        }
        if let ToolEvent::Usage(more) = event {
            let (tokens, usd) = self.meter.spent();
            let Ceiling { tokens: most, usd: most_usd } = self.ceiling;
            let beyond = most.is_some_and(|most| tokens.0 > most)
                || usd.zip(most_usd).is_some_and(|(usd, most)| usd > most);
            // Only an account in money can be the one that comes with the end.
            if more.usd.is_some() {
                self.beyond |= beyond;
            } else {
                self.over |= beyond;
            }
        }
        // An account that comes with the end has nothing left to cut short.
        if let ToolEvent::Final { .. } = event {
            self.beyond = false;
        }
    }

    /// Whether it has to be ended, once all that was read is taken in.
    fn over(&mut self) -> bool {
        self.over |= std::mem::take(&mut self.beyond);
        self.over
    }
}

/// One stream.
struct Side {
    redactor: Redactor,
    capture: Capture,
}

/// What the watch machine does not know yet. Chunks of a flood add up, so this stays small.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "plain facts, each told once")]
struct News {
    out: u64,
    err: u64,
    active: bool,
    begun: u32,
    ended: u32,
    halts: u32,
    errors: u32,
    out_closed: bool,
    err_closed: bool,
    hopeless: bool,
    spent: bool,
}

impl Output {
    pub(super) fn new(
        decoder: Box<dyn Decoder>,
        accounts: Accounts,
        scanner: PatternScanner,
        rules: &Rules,
        cap: usize,
        progress: Progress,
    ) -> Self {
        let side = || Side { redactor: rules.redactor(), capture: Capture::mostly_tail(cap) };
        Self {
            decoder: Some(decoder),
            accounts,
            scanner,
            out: side(),
            err: side(),
            rules: rules.clone(),
            events: Vec::new(),
            found: Vec::new(),
            hits: Vec::new(),
            spoke_after_halt: false,
            exited: false,
            news: News::default(),
            progress,
            first_words: Vec::new(),
            taken: 0,
        }
    }

    /// Takes the next bytes; returns them without secrets, for the live copy.
    pub(super) fn take(&mut self, from: Stream, chunk: &[u8], now: Mono) -> Vec<u8> {
        // Before anything that could fail or take its time: it is alive.
        let n = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        let bytes = if from == Stream::Stdout { &mut self.news.out } else { &mut self.news.err };
        *bytes = bytes.saturating_add(n);
        self.taken = self.taken.saturating_add(n);
        self.progress.heard(n, now);
        self.spoke_after_halt |= self.halted();
        if from == Stream::Stderr && self.first_words.len() < FIRST_WORDS {
            let room = FIRST_WORDS - self.first_words.len();
            self.first_words.extend(chunk.iter().take(room));
        }
        if let Some(decoder) = &mut self.decoder {
            decoder.feed(from, chunk, &mut self.events);
        }
        self.digest_events();
        self.scanner.feed(from, chunk, &mut self.found);
        self.digest_hits();
        let side = self.side(from);
        let mut clean = Vec::with_capacity(chunk.len());
        side.redactor.feed(chunk, &mut clean);
        side.capture.push(&clean);
        clean
    }

    /// The stream has ended, or is not read any more; returns what was held back of it.
    pub(super) fn close(&mut self, from: Stream) -> Vec<u8> {
        match from {
            Stream::Stdout => self.news.out_closed = true,
            Stream::Stderr => self.news.err_closed = true,
        }
        let side = self.side(from);
        let mut clean = Vec::new();
        side.redactor.finish(&mut clean);
        side.capture.push(&clean);
        clean
    }

    /// Looks for patterns in lines that have no end yet.
    pub(super) fn scan_tails(&mut self) {
        self.scanner.flush_tail(&mut self.found);
        self.digest_hits();
    }

    /// From now on what is found was found too late to end the child for it.
    pub(super) fn child_exited(&mut self) {
        self.exited = true;
    }

    /// What the watch machine has to know, each once.
    pub(super) fn news(&mut self) -> Vec<WatchIn> {
        let news = std::mem::take(&mut self.news);
        let mut inputs = Vec::new();
        for (stream, n) in [(Channel::Out, news.out), (Channel::Err, news.err)] {
            if n > 0 {
                inputs.push(WatchIn::Bytes { stream, n });
            }
        }
        if news.active {
            inputs.push(WatchIn::Activity);
        }
        inputs.extend((0..news.begun).map(|_| WatchIn::ToolBegun));
        inputs.extend((0..news.ended).map(|_| WatchIn::ToolEnded));
        if news.hopeless {
            inputs.push(WatchIn::Hopeless);
        }
        if news.spent {
            inputs.push(WatchIn::Spent);
        }
        inputs.extend((0..news.halts).map(|_| WatchIn::PatternHit { halt: true }));
        inputs.extend((0..news.errors).map(|_| WatchIn::PatternHit { halt: false }));
        for (stream, closed) in [(Channel::Out, news.out_closed), (Channel::Err, news.err_closed)] {
            if closed {
                inputs.push(WatchIn::PipesClosed { stream });
            }
        }
        inputs
    }

    /// Ends the conversation.
    pub(super) fn finish(&mut self, exit: ExitKind) -> ToolReport {
        self.scan_tails();
        let report = self.decoder.take().map(|decoder| decoder.finish(exit, &mut self.events));
        for event in self.events.drain(..) {
            self.accounts.take(&event);
        }
        report.unwrap_or_default()
    }

    /// The pattern hit that decides, if any. `confirmed`: the child was ended for a halt pattern, or
    /// it failed. Without that a halt pattern counts only if nothing was printed after it.
    pub(super) fn decisive(&self, confirmed: bool) -> Option<(&PatternHit, HitTime)> {
        let first = |class| self.hits.iter().find(|(hit, _)| hit.class == class);
        let halt = first(HitClass::Halt).filter(|_| confirmed || !self.spoke_after_halt);
        halt.or_else(|| first(HitClass::Error)).map(|(hit, time)| (hit, *time))
    }

    /// The sign that going on was of no use, if there was one.
    pub(super) fn omen(&self) -> Option<&Omen> {
        self.accounts.omen.as_ref()
    }

    /// Tokens and money as they were counted while it ran.
    pub(super) fn spent(&self) -> (Tokens, Option<Usd>) {
        self.accounts.meter.spent()
    }

    /// What is kept of a stream.
    pub(super) fn capture(&self, from: Stream) -> &Capture {
        match from {
            Stream::Stdout => &self.out.capture,
            Stream::Stderr => &self.err.capture,
        }
    }

    /// The very first bytes of standard error, as they were written.
    pub(super) fn first_words(&self) -> &[u8] {
        &self.first_words
    }

    /// Bytes of both streams.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Secrets that were hidden.
    pub(super) fn redactions(&self) -> u64 {
        self.out.redactor.count().saturating_add(self.err.redactor.count())
    }

    fn side(&mut self, from: Stream) -> &mut Side {
        match from {
            Stream::Stdout => &mut self.out,
            Stream::Stderr => &mut self.err,
        }
    }

    fn halted(&self) -> bool {
        self.hits.iter().any(|(hit, _)| hit.class == HitClass::Halt)
    }

    fn digest_events(&mut self) {
        // Of what a chunk says only the last is shown: a flood must not cost a sanitiser for each line.
        let mut words = None;
        for event in self.events.drain(..) {
            self.accounts.take(&event);
            match event {
                ToolEvent::ToolBegun { name, .. } => {
                    self.news.begun = self.news.begun.saturating_add(1);
                    words = Some(name);
                }
                ToolEvent::ToolEnded { .. } => self.news.ended = self.news.ended.saturating_add(1),
                ToolEvent::Text(text) => {
                    self.news.active = true;
                    words = Some(text);
                }
                ToolEvent::Activity
                | ToolEvent::EmptyStep { .. }
                | ToolEvent::Usage(_)
                | ToolEvent::PlanWindow { .. }
                | ToolEvent::RetryNotice(_)
                | ToolEvent::Failure(_)
                | ToolEvent::Final { .. } => self.news.active = true,
            }
        }
        self.news.hopeless |= self.accounts.omen.is_some();
        self.news.spent |= self.accounts.over();
        let words = words.unwrap_or_default();
        let mut clean = Vec::with_capacity(words.len());
        let mut redactor = self.rules.redactor();
        redactor.feed(words.as_bytes(), &mut clean);
        // What a cut leaves of a secret stays back.
        if words.len() + 3 < TEXT_BYTES {
            redactor.finish(&mut clean);
        }
        // The end of what it said is the news.
        let clean = String::from_utf8_lossy(&clean);
        if let Some(line) = clean.lines().rfind(|line| !line.trim().is_empty()) {
            self.progress.said(line);
        }
    }

    fn digest_hits(&mut self) {
        let time = if self.exited { HitTime::PostJoin } else { HitTime::InLoop };
        for hit in self.found.drain(..) {
            let count = match hit.class {
                HitClass::Halt => &mut self.news.halts,
                HitClass::Error => &mut self.news.errors,
            };
            *count = count.saturating_add(1);
            self.hits.push((hit, time));
        }
    }
}

#[cfg(test)]
mod tests {
    use peers_model::{PeerName, TickNo};
    use peers_tools::{Patterns, ToolKind, adapter};

    use super::super::progress::Live;
    use super::*;

    fn output(secrets: &[&str]) -> Output {
        let rules = Rules::new(secrets);
        let scanner = PatternScanner::new(Patterns::defaults().unwrap(), false);
        let decoder = adapter(&ToolKind::from_name("other")).decoder();
        let meter = Meter::new(ToolKind::from_name("other"), None, peers_tools::Prices::builtin());
        let accounts = Accounts::new(meter, Ceiling::default(), Omens::default());
        Output::new(decoder, accounts, scanner, &rules, 1 << 16, Progress::default())
    }

    fn feed(output: &mut Output, from: Stream, text: &str) -> String {
        String::from_utf8(output.take(from, text.as_bytes(), Mono::from_millis(0))).unwrap()
    }

    #[test]
    fn a_secret_that_is_split_over_two_chunks_never_leaves() {
        let mut output = output(&["hunter2-hunter2"]);
        let first = feed(&mut output, Stream::Stdout, "it is hunter2-");
        let second = feed(&mut output, Stream::Stdout, "hunter2 indeed");
        let rest = String::from_utf8(output.close(Stream::Stdout)).unwrap();
        let all = format!("{first}{second}{rest}");
        assert!(all.starts_with("it is [redacted:secret:") && all.ends_with(" indeed"), "{all}");
        assert_eq!(output.capture(Stream::Stdout).text(), all);
        assert_eq!(output.redactions(), 1);
    }

    #[test]
    fn a_secret_that_a_cut_leaves_a_part_of_is_not_shown_live() {
        let mut output = output(&["hunter2-hunter2"]);
        let at = Mono::from_millis(0);
        output.progress.peer(TickNo(1), PeerName::new("ann").unwrap(), at);
        for room in 0..20 {
            let text = format!("{}\nit is hunter2-hunter2", "x".repeat(TEXT_BYTES - 7 - room));
            output.events.push(ToolEvent::Text(text.get(..TEXT_BYTES).unwrap_or(&text).to_owned()));
            output.digest_events();
            let Some(Live::Peer(live)) = output.progress.now() else { panic!("a peer runs") };
            assert!(!live.last.contains("hunter"), "{room}: {}", live.last);
        }
        output.events.push(ToolEvent::Text("its class".to_owned()));
        output.digest_events();
        assert!(matches!(output.progress.now(), Some(Live::Peer(live)) if live.last == "its class"));
    }

    #[test]
    fn a_flood_adds_up_to_one_input_per_stream() {
        let mut output = output(&[]);
        for _ in 0..100 {
            feed(&mut output, Stream::Stdout, "dots without an end ");
        }
        feed(&mut output, Stream::Stderr, "x");
        let news = output.news();
        assert_eq!(news[0], WatchIn::Bytes { stream: Channel::Out, n: 2000 });
        assert_eq!(news[1], WatchIn::Bytes { stream: Channel::Err, n: 1 });
        assert_eq!(news.len(), 2, "{news:?}");
        assert_eq!(output.news(), []);
    }

    #[test]
    fn a_halt_pattern_needs_a_failure_or_to_be_the_last_word() {
        let halt = "ERROR usage limit reached\n";
        let mut last_word = output(&[]);
        feed(&mut last_word, Stream::Stderr, halt);
        assert_eq!(last_word.decisive(false).unwrap().0.class, HitClass::Halt);

        let mut went_on = output(&[]);
        feed(&mut went_on, Stream::Stderr, halt);
        feed(&mut went_on, Stream::Stdout, "all is well\n");
        assert_eq!(went_on.decisive(false), None);
        assert!(went_on.decisive(true).is_some());
    }

    #[test]
    fn an_unterminated_error_line_is_found_when_its_tail_is_scanned() {
        let mut output = output(&[]);
        feed(&mut output, Stream::Stderr, "ERROR rate lim");
        feed(&mut output, Stream::Stderr, "it hit");
        output.scan_tails();
        let hits = output.news().iter().filter(|i| matches!(i, WatchIn::PatternHit { halt: false })).count();
        assert_eq!(hits, 1);
        output.child_exited();
        feed(&mut output, Stream::Stderr, "\nERROR rate limit again\n");
        let times: Vec<HitTime> = output.hits.iter().map(|(_, time)| *time).collect();
        assert_eq!(times, [HitTime::InLoop, HitTime::PostJoin]);
    }
}
