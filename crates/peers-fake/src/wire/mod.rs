//! The output, in the format of the tool that is played.

mod acp;
mod claude;
mod codex;
mod opencode;
mod plain;

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) use acp::Asked;
use peers_model::Timestamp;

use crate::script::Dialect;
use crate::step::{Fault, FaultKind, Retry, Stream, Usage, Window};

/// What all formats need to know.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) peer: String,
    pub(crate) turn: u64,
    pub(crate) cwd: String,
    pub(crate) model: String,
    /// Sixteen hex digits, different for each invocation.
    pub(crate) tag: String,
    /// What the local zone is ahead of UTC, in seconds.
    pub(crate) zone: i32,
    /// What a client of the protocol asked; only where one is spoken to.
    pub(crate) asked: Option<Asked>,
}

impl Session {
    /// A name in the shape of a UUID.
    fn uuid(&self) -> String {
        let (a, b) = self.tag.split_at_checked(8).unwrap_or(("00000000", "00000000"));
        let (b, c) = b.split_at_checked(4).unwrap_or(("0000", "0000"));
        format!("{a}-{b}-4{}-8000-{:012x}", c.get(1..).unwrap_or("000"), self.turn)
    }
}

/// One call of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) number: u32,
    pub(crate) command: String,
}

/// What a call brought.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) output: String,
    pub(crate) code: i32,
}

/// A format: each method gives the lines to print.
trait Format {
    fn open(&mut self, session: &Session) -> Vec<String>;
    fn say(&mut self, session: &Session, text: &str, so_far: &Usage) -> Vec<String>;
    fn begin(&mut self, session: &Session, call: &Call) -> Vec<String>;
    fn end(&mut self, session: &Session, call: &Call, outcome: &Outcome) -> Vec<String>;
    fn retry(&mut self, session: &Session, retry: &Retry) -> Vec<String>;
    fn window(&mut self, session: &Session, window: &Window) -> Vec<String>;
    fn empty_step(&mut self, session: &Session) -> Vec<String>;
    fn done(&mut self, session: &Session, usage: &Usage) -> Vec<String>;
    fn failed(&mut self, session: &Session, fault: &Fault, usage: &Usage) -> Vec<String>;
}

/// The two output streams of the peer.
pub(crate) struct Wire<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    format: Box<dyn Format>,
    dialect: Dialect,
    session: Session,
    usage: Usage,
    stated: bool,
    calls: u32,
    said: u64,
    silent: bool,
}

impl<'a> Wire<'a> {
    pub(crate) fn new(
        dialect: Dialect,
        session: Session,
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
    ) -> Self {
        let format: Box<dyn Format> = match dialect {
            Dialect::Claude => Box::new(claude::Claude::default()),
            Dialect::Codex => Box::new(codex::Codex::default()),
            Dialect::Opencode => Box::new(opencode::Opencode::default()),
            Dialect::Plain | Dialect::Acp => Box::new(plain::Plain),
        };
        let format = match &session.asked {
            Some(asked) => Box::new(acp::Acp::new(asked.clone())),
            None => format,
        };
        Self {
            out,
            err,
            format,
            dialect,
            session,
            usage: Usage::default(),
            stated: false,
            calls: 0,
            said: 0,
            silent: false,
        }
    }

    pub(crate) fn open(&mut self) -> io::Result<()> {
        let lines = self.format.open(&self.session);
        self.print(&lines)
    }

    /// Nothing more is printed, not even the end.
    pub(crate) fn silence(&mut self) {
        self.silent = true;
    }

    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        self.said = self.said.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        let lines = self.format.say(&self.session, text, &self.usage);
        self.print(&lines)
    }

    pub(crate) fn begin(&mut self, command: &str) -> io::Result<Call> {
        self.calls = self.calls.saturating_add(1);
        let call = Call { number: self.calls, command: command.to_owned() };
        let lines = self.format.begin(&self.session, &call);
        self.print(&lines)?;
        Ok(call)
    }

    pub(crate) fn end(&mut self, call: &Call, outcome: &Outcome) -> io::Result<()> {
        let lines = self.format.end(&self.session, call, outcome);
        self.print(&lines)
    }

    /// Adds to the cost of the turn.
    pub(crate) fn spend(&mut self, usage: &Usage) {
        self.stated = true;
        self.usage.input = self.usage.input.saturating_add(usage.input);
        self.usage.cached = self.usage.cached.saturating_add(usage.cached);
        self.usage.output = self.usage.output.saturating_add(usage.output);
        self.usage.reasoning = self.usage.reasoning.saturating_add(usage.reasoning);
        self.usage.usd += usage.usd;
    }

    pub(crate) fn retry(&mut self, retry: &Retry) -> io::Result<()> {
        let lines = self.format.retry(&self.session, retry);
        self.print(&lines)
    }

    pub(crate) fn window(&mut self, window: &Window) -> io::Result<()> {
        let lines = self.format.window(&self.session, window);
        self.print(&lines)
    }

    pub(crate) fn empty_step(&mut self) -> io::Result<()> {
        let lines = self.format.empty_step(&self.session);
        self.print(&lines)
    }

    pub(crate) fn done(&mut self) -> io::Result<()> {
        let usage = self.account();
        let lines = self.format.done(&self.session, &usage);
        self.print(&lines)
    }

    /// Prints the failure; the plain format does so on standard error, as programs do.
    pub(crate) fn failed(&mut self, fault: &Fault) -> io::Result<()> {
        let usage = if self.stated { self.usage } else { Usage::default() };
        let lines = self.format.failed(&self.session, fault, &usage);
        match self.dialect {
            Dialect::Plain if !self.silent => {
                for line in &lines {
                    writeln!(self.err, "{line}")?;
                }
                self.err.flush()
            }
            Dialect::Plain | Dialect::Claude | Dialect::Codex | Dialect::Opencode | Dialect::Acp => {
                self.print(&lines)
            }
        }
    }

    /// Half an event, without a line feed.
    pub(crate) fn cut(&mut self) -> io::Result<()> {
        let lines = self.format.say(&self.session, "This sentence is never finished", &self.usage);
        let Some(line) = lines.last() else { return Ok(()) };
        let half = line.get(..line.floor_char_boundary(line.len() / 2)).unwrap_or_default();
        self.raw(Stream::Stdout, half.as_bytes())
    }

    /// Bytes as they are.
    pub(crate) fn raw(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        if self.silent {
            return Ok(());
        }
        let sink = match stream {
            Stream::Stdout => &mut *self.out,
            Stream::Stderr => &mut *self.err,
        };
        sink.write_all(bytes)?;
        sink.flush()
    }

    /// A word to whoever debugs a script. It is no part of the played output.
    pub(crate) fn complain(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.err, "fake-peer: {text}")?;
        self.err.flush()
    }

    fn print(&mut self, lines: &[String]) -> io::Result<()> {
        if self.silent || lines.is_empty() {
            return Ok(());
        }
        for line in lines {
            self.out.write_all(line.as_bytes())?;
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }

    /// What the script stated, else something plausible made of the output's size.
    fn account(&self) -> Usage {
        if self.stated {
            return self.usage;
        }
        let input = 1000 + 200 * u64::from(self.calls);
        let output = 20 + self.said / 4 + 30 * u64::from(self.calls);
        let micros = u32::try_from(3 * input + 15 * output).unwrap_or(u32::MAX);
        Usage { input, cached: 0, output, reasoning: 0, usd: f64::from(micros) / 1e6 }
    }
}

/// Milliseconds since the epoch.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// When a usage cap is lifted, seconds since the epoch.
fn resets_at(at: Option<i64>, after: Option<Duration>) -> i64 {
    at.unwrap_or_else(|| {
        let after = after.unwrap_or(Duration::from_mins(90)).as_secs();
        i64::try_from((now_ms() / 1000).saturating_add(after)).unwrap_or(i64::MAX)
    })
}

/// A moment as codex words it: `9:10 AM`, on another day than today `Nov 25th, 2026 9:10 AM`.
fn wall_clock(at: i64, zone: i32) -> String {
    let local = |seconds: i64| {
        let moment =
            Timestamp::from_millis(seconds.saturating_add(zone.into()).saturating_mul(1000)).to_string();
        let number = |from: usize, to: usize| moment.get(from..to).and_then(|digits| digits.parse().ok());
        [(0, 4), (5, 7), (8, 10), (11, 13), (14, 16)].map(|(from, to)| number(from, to).unwrap_or(0usize))
    };
    let [year, month, day, hour, minute] = local(at);
    let half = if hour < 12 { "AM" } else { "PM" };
    let time = format!("{}:{minute:02} {half}", (hour + 11) % 12 + 1);
    if local(i64::try_from(now_ms() / 1000).unwrap_or(i64::MAX)).starts_with(&[year, month, day]) {
        return time;
    }
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.get(month.wrapping_sub(1)).copied().unwrap_or("Jan");
    let nth = match day {
        1 | 21 | 31 => "st",
        2 | 22 => "nd",
        3 | 23 => "rd",
        _ => "th",
    };
    format!("{month} {day}{nth}, {year} {time}")
}

/// A hash for names that need not be secret.
pub(crate) fn tag(parts: &[&str]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in parts.iter().flat_map(|part| part.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// The status that the provider would have sent.
fn status(kind: FaultKind) -> u16 {
    match kind {
        FaultKind::RateLimit | FaultKind::UsageCap => 429,
        FaultKind::Quota | FaultKind::Error => 400,
        FaultKind::Auth => 401,
        FaultKind::Overload => 529,
    }
}
