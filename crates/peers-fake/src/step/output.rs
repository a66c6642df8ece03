//! Steps that print.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::args::{FromText, TextOr, duration, duration_opt, size};

/// Prints much.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flood {
    /// How much.
    #[serde(deserialize_with = "size")]
    pub bytes: u64,
    /// Where to.
    #[serde(default)]
    pub stream: Stream,
    /// Lines of 80 bytes, or one endless line.
    #[serde(default = "yes")]
    pub newline: bool,
    /// As the text of one event of the format, in place of raw bytes.
    #[serde(default)]
    pub event: bool,
}

fn yes() -> bool {
    true
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Stream {
    #[default]
    Stdout,
    Stderr,
}

/// Prints a little, again and again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drip {
    /// What, without a line feed of its own.
    #[serde(default = "dot")]
    pub text: String,
    /// The pause between two.
    #[serde(deserialize_with = "duration")]
    pub every: Duration,
    /// How often.
    pub times: u32,
    /// Where to.
    #[serde(default)]
    pub stream: Stream,
}

fn dot() -> String {
    ".".to_owned()
}

/// Prints events of the tool's format.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is described in docs/formats/fake-peer.md")]
pub enum Emit {
    Usage(Usage),
    Fault(Fault),
    Retry(Retry),
    Window(Window),
    EmptySteps(u32),
    Cut,
    Line(String),
    Stderr(String),
    Hex(Vec<u8>),
}

pub(crate) const EMITS: &[&str] = &[
    "usage",
    "rate_limit",
    "quota",
    "usage_cap",
    "auth",
    "overload",
    "error",
    "retry",
    "window",
    "empty_steps",
    "cut",
    "line",
    "stderr",
    "hex",
];

impl<'de> Deserialize<'de> for Emit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EmitVisitor;
        impl<'de> Visitor<'de> for EmitVisitor {
            type Value = Emit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "one of {}", EMITS.join(", "))
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Emit, E> {
                if name == "cut" {
                    return Ok(Emit::Cut);
                }
                match FaultKind::named(name) {
                    Some(kind) => Ok(Emit::Fault(Fault { kind, ..Fault::default() })),
                    None => Err(E::unknown_variant(name, EMITS)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Emit, A::Error> {
                let Some(name) = map.next_key::<String>()? else {
                    return Err(A::Error::custom("an empty mapping is no event"));
                };
                let emit = match (name.as_str(), FaultKind::named(&name)) {
                    (_, Some(kind)) => {
                        let fault = map.next_value::<TextOr<Fault>>()?.0;
                        Emit::Fault(Fault { kind, ..fault })
                    }
                    ("usage", _) => Emit::Usage(map.next_value()?),
                    ("retry", _) => Emit::Retry(map.next_value()?),
                    ("window", _) => Emit::Window(map.next_value()?),
                    ("empty_steps", _) => Emit::EmptySteps(map.next_value()?),
                    ("line", _) => Emit::Line(map.next_value()?),
                    ("stderr", _) => Emit::Stderr(map.next_value()?),
                    ("hex", _) => Emit::Hex(hex(&map.next_value::<String>()?).map_err(A::Error::custom)?),
                    _ => return Err(A::Error::unknown_variant(&name, EMITS)),
                };
                match map.next_key::<String>()? {
                    None => Ok(emit),
                    Some(more) => Err(A::Error::custom(format!(
                        "`{name}` and `{more}` stand in one `emit`; write two steps"
                    ))),
                }
            }
        }
        deserializer.deserialize_any(EmitVisitor)
    }
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let bad = || format!("`{text}` is not an even number of hex digits");
    if !digits.len().is_multiple_of(2) {
        return Err(bad());
    }
    digits
        .chunks(2)
        .map(|pair| {
            std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or_else(bad)
        })
        .collect()
}

/// What the turn cost, as the format can tell it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Input tokens, cached ones included.
    pub input: u64,
    /// Cached input tokens.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
    /// Reasoning tokens, a part of the output.
    pub reasoning: u64,
    /// Dollars; codex tells none.
    pub usd: f64,
}

/// A failure that ends the turn in the tool's own words, with exit code 1.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fault {
    /// Which; set by the name of the event.
    #[serde(skip)]
    pub kind: FaultKind,
    /// Other words.
    pub message: Option<String>,
    /// The wait that the provider asks for.
    #[serde(deserialize_with = "duration_opt")]
    pub retry_after: Option<Duration>,
    /// When a usage cap is lifted, from now.
    #[serde(deserialize_with = "duration_opt")]
    pub resets_in: Option<Duration>,
    /// When a usage cap is lifted, seconds since the epoch.
    pub resets_at: Option<i64>,
}

impl FromText for Fault {
    const WANTED: &'static str =
        "a message, or a mapping with `message`, `retry_after`, `resets_in`, `resets_at`";
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self { message: Some(text.to_owned()).filter(|text| !text.is_empty()), ..Self::default() })
    }
}

/// The kinds of failure that all tools know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each is described in docs/formats/fake-peer.md")]
pub enum FaultKind {
    RateLimit,
    Quota,
    UsageCap,
    Auth,
    Overload,
    #[default]
    Error,
}

impl FaultKind {
    /// The kind called `name` in scripts.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "rate_limit" => Self::RateLimit,
            "quota" => Self::Quota,
            "usage_cap" => Self::UsageCap,
            "auth" => Self::Auth,
            "overload" => Self::Overload,
            "error" => Self::Error,
            _ => return None,
        })
    }
}

/// A notice that the tool tries again by itself; opencode prints none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// The number of the attempt.
    #[serde(default = "one")]
    pub attempt: u32,
    /// Of how many.
    #[serde(default = "five")]
    pub of: u32,
    /// Why: the name of a failure.
    #[serde(default = "overload")]
    pub why: String,
    /// How long it waits first.
    #[serde(default, deserialize_with = "duration_opt")]
    pub delay: Option<Duration>,
}

fn one() -> u32 {
    1
}

fn five() -> u32 {
    5
}

fn overload() -> String {
    "overload".to_owned()
}

/// The state of the subscription's window; only claude prints it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The used part, from 0 to 1.
    pub used: f64,
    /// When it begins anew, from now.
    #[serde(default, deserialize_with = "duration_opt")]
    pub resets_in: Option<Duration>,
}
