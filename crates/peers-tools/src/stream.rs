//! Decoding of a structured stream: one JSON value a line, on standard output, and for some tools a log
//! beside it.

use std::fmt;

use peers_model::limits::STREAM_LINE;

use crate::event::{Stream, ToolEvent, ToolReport};
use crate::jsonl::{Line, LineSplitter};
use crate::ledger::Ledger;
use crate::tool::{Decoder, ExitKind, byte_cap};

/// What the lines of one tool's stream mean.
pub(crate) trait Lines: Default + fmt::Debug + Send {
    /// Takes a line.
    fn line(&mut self, line: Line<'_>, out: &mut Vec<ToolEvent>);

    /// Takes a line of standard error.
    fn aside(&mut self, _line: Line<'_>, _out: &mut Vec<ToolEvent>) {}

    /// Takes the end of the child, after the last line.
    fn ended(&mut self, _exit: ExitKind, _out: &mut Vec<ToolEvent>) {}

    /// What was booked.
    fn into_ledger(self) -> Ledger;
}

/// The decoder of a stream whose lines `S` understands.
#[derive(Debug)]
pub(crate) struct StreamDecoder<S> {
    lines: LineSplitter,
    asides: LineSplitter,
    state: S,
}

/// How much of a line of standard error is read, in bytes.
const ASIDE_BYTES: usize = 16 * 1024;

impl<S: Lines> StreamDecoder<S> {
    pub(crate) fn new() -> Self {
        Self {
            lines: LineSplitter::new(byte_cap(STREAM_LINE)),
            asides: LineSplitter::new(ASIDE_BYTES),
            state: S::default(),
        }
    }
}

impl<S: Lines> Decoder for StreamDecoder<S> {
    fn feed(&mut self, from: Stream, chunk: &[u8], out: &mut Vec<ToolEvent>) {
        let Self { lines, asides, state } = self;
        match from {
            Stream::Stdout => lines.feed(chunk, |line| state.line(line, out)),
            Stream::Stderr => asides.feed(chunk, |line| state.aside(line, out)),
        }
    }

    fn held(&self) -> usize {
        self.lines.held() + self.asides.held()
    }

    fn finish(mut self: Box<Self>, exit: ExitKind, out: &mut Vec<ToolEvent>) -> ToolReport {
        let Self { lines, asides, state } = &mut *self;
        // A failure is told on standard output, after what is told beside it.
        asides.finish(|line| state.aside(line, out));
        lines.finish(|line| state.line(line, out));
        state.ended(exit, out);
        self.state.into_ledger().into_report()
    }
}
