//! A document held against the description of its keys: every mistake, each at its place.
//!
//! What is found sound is what the program goes on with: nothing that could not be read is left out in
//! silence.

use std::collections::BTreeMap;

use peers_model::config::Step;
use peers_model::keys::{Shape, Table, Text, U32};
use serde::de::{Deserialize, Deserializer, IgnoredAny, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::DuplicateKeyPolicy;

use super::error::place_in;
use super::tree::{self, At, Content, Node};
use super::{REPLAYED, YamlError, closest, is_empty, options};

/// Longest piece of a value in a message, in characters.
const SHOWN: usize = 60;
/// Mistakes that are looked for.
const ENOUGH: usize = 10_000;

/// A document and its places.
#[derive(Debug)]
pub struct Document<'t> {
    name: &'t str,
    text: &'t str,
    root: Option<Node>,
}

/// What became of a document that was held against a description.
#[derive(Debug)]
pub struct Findings {
    /// Every mistake, in the order in which it was found.
    pub mistakes: Vec<Mistake>,
    /// The document without what is wrong. An entry of a list that has a mistake in it is `null`.
    pub sound: Value,
}

/// One thing that is wrong. [`Document::show`] makes an error of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where; `None` for what is not there.
    pub at: Option<At>,
    /// What is wrong.
    pub message: String,
    /// What may have been meant, or what to do.
    pub hint: Option<String>,
}

impl<'t> Document<'t> {
    /// Reads `text`, which came from the file `name` (for messages).
    ///
    /// # Errors
    /// [`YamlError`] for what keeps the whole text from being read: broken syntax, limits, a second
    /// document.
    pub fn read(name: &'t str, text: &'t str) -> Result<Self, YamlError> {
        // Told with all others.
        Self::with(name, text, DuplicateKeyPolicy::FirstWins)
    }

    pub(super) fn with(
        name: &'t str,
        text: &'t str,
        duplicate_keys: DuplicateKeyPolicy,
    ) -> Result<Self, YamlError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if is_empty(text) {
            return Ok(Self { name, text, root: None });
        }
        let mut limits = options(text.len());
        limits.duplicate_keys = duplicate_keys;
        // To its end with all its aliases.
        serde_saphyr::with_deserializer_from_str_with_options(text, limits, |de| IgnoredAny::deserialize(de))
            .map_err(|e| YamlError::new(name, text, &e))?;
        let unread = || YamlError::told(name, text, None, "the file cannot be read as YAML", None);
        Ok(Self { name, text, root: Some(tree::read(text).ok_or_else(unread)?) })
    }

    /// Holds it against the description of its top level.
    #[must_use]
    pub fn check(&self, table: &'static Table) -> Findings {
        let fuel = self.text.len().saturating_add(REPLAYED).saturating_mul(2);
        let mut walk = Walk { mistakes: Vec::new(), fuel };
        let sound = if let Some(root) = &self.root {
            walk.table(table, root, "").unwrap_or(Value::Object(Map::new()))
        } else {
            walk.required(table, None, &BTreeMap::new(), "");
            Value::Object(Map::new())
        };
        Findings { mistakes: walk.mistakes, sound }
    }

    /// All of it; an empty one is an empty mapping.
    pub(super) fn root(&self) -> Node {
        let empty = || Node { at: At { line: 1, column: 1 }, content: Content::Map(Vec::new()).into() };
        self.root.clone().unwrap_or_else(empty)
    }

    /// Where a value stands: the deepest part of the way to it that is there.
    #[must_use]
    pub fn place(&self, path: &[Step]) -> Option<At> {
        let mut node = self.root.as_ref()?;
        let mut at = None;
        for step in path {
            let below = match (step, &*node.content) {
                (Step::Key(key), Content::Map(_)) => node.get(key),
                (Step::Entry(entry), Content::List(list)) => list.get(*entry),
                _ => None,
            };
            let Some(below) = below else { break };
            node = below;
            at = Some(node.at);
        }
        at
    }

    /// Where the key of that name stands in the mapping at `path`.
    #[must_use]
    pub fn key(&self, path: &[Step], key: &str) -> Option<At> {
        self.find(path)?
            .entries()
            .into_iter()
            .find(|(name, _, _)| name.text() == Some(key))
            .map(|(name, _, _)| name.at)
    }

    /// Where the first character of a text stands, if the text stands in the file as it is.
    #[must_use]
    pub fn verbatim(&self, path: &[Step]) -> Option<At> {
        let node = self.find(path)?;
        let Content::Scalar { text, verbatim: Some(quotes), .. } = &*node.content else { return None };
        let at = At { line: node.at.line, column: node.at.column.saturating_add(*quotes) };
        let line = self.text.lines().nth(usize::try_from(at.line).ok()?.checked_sub(1)?)?;
        let from = line.char_indices().nth(usize::try_from(at.column).ok()?.checked_sub(1)?)?.0;
        line.get(from..)?.starts_with(text.as_str()).then_some(at)
    }

    /// The entry of the list at `path` in which a place lies.
    #[must_use]
    pub fn entry_at(&self, path: &[Step], at: At) -> Option<usize> {
        let Content::List(list) = &*self.find(path)?.content else { return None };
        list.iter().rposition(|entry| entry.at <= at)
    }

    /// The text of a scalar.
    #[must_use]
    pub fn text(&self, path: &[Step]) -> Option<&str> {
        self.find(path)?.text()
    }

    /// The mistake with its line of this document.
    #[must_use]
    pub fn show(&self, mistake: Mistake) -> YamlError {
        let Mistake { at, message, hint } = mistake;
        let at = at.map(|at| place_in(self.text, at.line.into(), at.column.into()));
        YamlError::told(self.name, self.text, at, &message, hint)
    }

    fn find(&self, path: &[Step]) -> Option<&Node> {
        let mut node = self.root.as_ref()?;
        for step in path {
            node = match (step, &*node.content) {
                (Step::Key(key), Content::Map(_)) => node.get(key)?,
                (Step::Entry(entry), Content::List(list)) => list.get(*entry)?,
                _ => return None,
            };
        }
        Some(node)
    }
}

struct Walk {
    mistakes: Vec<Mistake>,
    /// Nodes that may still be looked at: aliases stand for many.
    fuel: usize,
}

impl Walk {
    fn tell(&mut self, at: impl Into<Option<At>>, message: String, hint: Option<String>) {
        if self.mistakes.len() < ENOUGH {
            self.mistakes.push(Mistake { at: at.into(), message, hint });
        }
    }

    /// Whether an entry is without a mistake; its value, if so.
    fn whole_entry(&mut self, value: impl FnOnce(&mut Self) -> Option<Value>) -> Option<Value> {
        let before = self.mistakes.len();
        let value = value(self);
        value.filter(|_| self.mistakes.len() == before)
    }

    fn table(&mut self, table: &'static Table, node: &Node, path: &str) -> Option<Value> {
        let Content::Map(_) = &*node.content else {
            self.mismatch(node, path, "a mapping (`key: value`)");
            return None;
        };
        let mut out = Map::new();
        let entries = self.entries(node);
        for (text, name, value) in &entries {
            let Some(key) = table.key(text) else {
                if let Some(what) = table.instead(text) {
                    self.tell(name.at, format!("unknown key `{text}`"), Some(what.to_owned()));
                } else {
                    self.unknown("unknown key", text, name.at, table.keys.iter().map(|key| key.name));
                }
                continue;
            };
            if let Some(value) = self.shape(&key.shape, value, &join(path, key.name)) {
                out.insert((*text).to_owned(), value);
            }
        }
        let seen = entries.iter().map(|(text, name, _)| (*text, name.at)).collect();
        self.required(table, Some(node.at), &seen, path);
        Some(Value::Object(out))
    }

    /// What must be there and is not.
    fn required(&mut self, table: &Table, at: Option<At>, seen: &BTreeMap<&str, At>, path: &str) {
        let within = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
        for key in table.keys.iter().filter(|key| key.default.is_none() && !seen.contains_key(key.name)) {
            self.tell(at, format!("missing key `{}`{within}", key.name), None);
        }
        let mut given: Vec<_> = table.either.iter().filter_map(|name| seen.get(name)).copied().collect();
        given.sort_unstable();
        match (table.either, given.as_slice()) {
            ([], _) | (_, [_]) => {}
            ([first, ..], []) => {
                let hint = "the agents are listed there, at least two of them".to_owned();
                self.tell(None, format!("missing key `{first}`"), Some(hint));
            }
            (names, [_, second, ..]) => {
                let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                let message = format!("{} are two forms of the same; keep one of them", names.join(" and "));
                self.tell(*second, message, None);
            }
        }
    }

    /// The entries of a mapping by name, without those that stand twice.
    fn entries<'n>(&mut self, node: &'n Node) -> Vec<(&'n str, &'n Node, &'n Node)> {
        let mut entries = Vec::new();
        let mut seen: BTreeMap<&str, At> = BTreeMap::new();
        for (name, value, merged) in node.entries() {
            let Some(text) = name.text() else {
                self.tell(name.at, "a key must be a word, found a list or a mapping".to_owned(), None);
                continue;
            };
            if !merged && let Some(first) = seen.get(text) {
                let hint = format!("the first one stands in line {}; keep one of them", first.line);
                self.tell(name.at, format!("duplicate key `{}`", short(text)), Some(hint));
                continue;
            }
            seen.insert(text, name.at);
            entries.push((text, name, value));
        }
        entries
    }

    fn shape(&mut self, shape: &'static Shape, node: &Node, path: &str) -> Option<Value> {
        if self.mistakes.len() >= ENOUGH {
            return None;
        }
        let Some(left) = self.fuel.checked_sub(1) else {
            self.tell(node.at, "aliases stand for too many values".to_owned(), None);
            return None;
        };
        self.fuel = left;
        if matches!(&*node.content, Content::Scalar { tagged: true, .. }) {
            self.tell(node.at, format!("`{path}` has a tag (`!...`); write the value without it"), None);
            return None;
        }
        match shape {
            Shape::Maybe(_) if is_null(node) => Some(Value::Null),
            Shape::Maybe(of) => self.shape(of, node, path),
            Shape::Switch => match scalar(node) {
                Scalar::Switch(value) => Some(Value::Bool(value)),
                _ => self.mismatch(node, path, "`true` or `false`"),
            },
            Shape::Whole { least, most } => self.whole(node, path, *least, *most),
            Shape::Amount | Shape::Price => {
                const MOST: f64 = 1e9;
                let free = matches!(shape, Shape::Price);
                let wanted =
                    if free { "a price in dollars, 0 or more" } else { "an amount of dollars above zero" };
                match number(node) {
                    Some(value) if (value > 0.0 || free && value == 0.0) && value <= MOST => {
                        serde_json::Number::from_f64(value).map(Value::Number)
                    }
                    Some(value) if value > MOST => {
                        self.mismatch(node, path, "an amount of at most a billion dollars")
                    }
                    _ => self.mismatch(node, path, wanted),
                }
            }
            Shape::Text(text) => self.text(text, node, path),
            Shape::Word { words, any_case } => self.word(words, *any_case, node, path),
            Shape::List { of, least, most } => self.list(of, (*least, *most), node, path),
            Shape::Table(table) => self.table(table, node, path),
            Shape::Named { name, of } => self.named(name, of, node, path),
        }
    }

    fn whole(&mut self, node: &Node, path: &str, least: u64, most: u64) -> Option<Value> {
        let bounds = || match (least, most) {
            (0, U32) => "a whole number of at least 0".to_owned(),
            (least, U32 | u64::MAX) => format!("a whole number of at least {least}"),
            (least, most) => format!("a whole number from {least} to {most}"),
        };
        match scalar(node) {
            Scalar::Whole(value) if value < i128::from(least) => self.mismatch(node, path, &bounds()),
            Scalar::Whole(value) if value > i128::from(most) => {
                self.mismatch(node, path, &format!("a whole number from {least} to {most}"))
            }
            Scalar::Whole(value) => u64::try_from(value).ok().map(Value::from),
            _ => self.mismatch(node, path, &bounds()),
        }
    }

    fn text(&mut self, rule: &Text, node: &Node, path: &str) -> Option<Value> {
        let Some(text) = node.text().filter(|_| !is_null(node)) else {
            return self.mismatch(node, path, "text");
        };
        let what = if rule.filled && text.trim().is_empty() {
            Some("is empty; give a value or remove the key".to_owned())
        } else {
            (rule.wrong.and_then(|wrong| wrong(text))).or_else(|| {
                (text.len() > rule.most)
                    .then(|| format!("is {} bytes long; at most {}", text.len(), rule.most))
            })
        };
        let Some(what) = what else { return Some(Value::from(text)) };
        let shown = short(text);
        let message = if shown.is_empty() || what.contains("bytes long") || what.starts_with("has a") {
            format!("`{path}` {what}")
        } else {
            format!("`{path}`: `{shown}` {what}")
        };
        self.tell(node.at, message, None);
        None
    }

    fn word(
        &mut self,
        words: &'static [(&'static str, &'static str)],
        any_case: bool,
        node: &Node,
        path: &str,
    ) -> Option<Value> {
        let same = |word: &str, text: &str| word == text || (any_case && word.eq_ignore_ascii_case(text));
        let Some(text) = node.text().filter(|_| !is_null(node)) else {
            let known: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            return self.mismatch(node, path, &format!("one of {}", known.join(", ")));
        };
        let found = words.iter().find(|(word, _)| same(word, text));
        if found.is_none() {
            let what = format!("unknown value of `{path}`:");
            self.unknown(&what, text, node.at, words.iter().map(|(word, _)| *word));
        }
        found.map(|(word, _)| Value::from(*word))
    }

    fn list(
        &mut self,
        of: &'static Shape,
        (least, most): (usize, usize),
        node: &Node,
        path: &str,
    ) -> Option<Value> {
        let Content::List(list) = &*node.content else {
            return self.mismatch(node, path, "a list (`- entry`)");
        };
        let fits = (least..=most).contains(&list.len());
        if !fits {
            let bound =
                if list.len() < least { format!("at least {least}") } else { format!("at most {most}") };
            self.tell(
                node.at,
                format!(
                    "`{path}` needs {bound} {}, has {}",
                    if least == 1 { "entry" } else { "entries" },
                    list.len()
                ),
                None,
            );
        }
        let values = list.iter().enumerate().map(|(i, each)| {
            let path = format!("{path}[{i}]");
            self.whole_entry(|walk| walk.shape(of, each, &path))
        });
        // An entry that is wrong stays as a gap, so that the numbers of the others are right.
        let values = values.map(Option::unwrap_or_default).collect();
        fits.then_some(Value::Array(values))
    }

    fn named(&mut self, rule: &Text, of: &'static Shape, node: &Node, path: &str) -> Option<Value> {
        let Content::Map(_) = &*node.content else {
            return self.mismatch(node, path, "a mapping (`key: value`)");
        };
        let mut out = Map::new();
        for (text, name, value) in self.entries(node) {
            let below = format!("{path}.{}", short(text));
            let value = self.whole_entry(|walk| {
                let sound = walk.text(rule, name, path).is_some();
                walk.shape(of, value, &below).filter(|_| sound)
            });
            if let Some(value) = value {
                out.insert(text.to_owned(), value);
            }
        }
        Some(Value::Object(out))
    }

    fn unknown(&mut self, what: &str, text: &str, at: At, known: impl Iterator<Item = &'static str>) {
        let known: Vec<_> = known.collect();
        let hint = if let Some(near) = closest(text, known.iter().copied()) {
            format!("did you mean `{near}`?")
        } else {
            let known: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("known are {}", known.join(", "))
        };
        self.tell(at, format!("{what} `{}`", short(text)), Some(hint));
    }

    fn mismatch(&mut self, node: &Node, path: &str, wanted: &str) -> Option<Value> {
        let (found, quoted) = found(node);
        let subject = if path.is_empty() { "the file".to_owned() } else { format!("`{path}`") };
        // Text that would be right without its quotes is the usual mistake.
        let bare = quoted && fits_bare(node.text().unwrap_or_default(), wanted);
        let tip = if bare { "; write it without quotes" } else { "" };
        self.tell(node.at, format!("{subject} must be {wanted}, found {found}{tip}"), None);
        None
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn short(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

/// What is found, for people, and whether it is a text in quotes.
fn found(node: &Node) -> (String, bool) {
    match &*node.content {
        Content::List(_) => ("a list".to_owned(), false),
        Content::Map(_) => ("a mapping".to_owned(), false),
        Content::Scalar { text, plain, .. } => match scalar(node) {
            Scalar::Null => ("nothing".to_owned(), false),
            Scalar::Switch(value) if text.eq_ignore_ascii_case(&value.to_string()) => {
                (format!("`{value}`"), false)
            }
            Scalar::Switch(value) => (format!("`{}`, which is `{value}`", short(text)), false),
            Scalar::Whole(_) | Scalar::Fraction(_) => (format!("the number `{}`", short(text)), false),
            Scalar::Text => (format!("the text `{}`", short(text)), !plain),
        },
    }
}

fn fits_bare(text: &str, wanted: &str) -> bool {
    match classify(text) {
        Scalar::Switch(_) => wanted.contains("`true` or `false`"),
        Scalar::Whole(_) => wanted.contains("number") || wanted.contains("amount"),
        Scalar::Fraction(_) => wanted.contains("amount"),
        Scalar::Null | Scalar::Text => false,
    }
}

/// What the parser takes a scalar for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scalar {
    Null,
    Switch(bool),
    Whole(i128),
    Fraction(f64),
    Text,
}

pub(super) fn is_null(node: &Node) -> bool {
    // Nothing longer stands for nothing.
    node.text().is_some_and(|text| text.len() <= "null".len()) && matches!(scalar(node), Scalar::Null)
}

fn number(node: &Node) -> Option<f64> {
    match scalar(node) {
        Scalar::Fraction(value) => Some(value),
        // Amounts are far smaller than what a float holds exactly.
        Scalar::Whole(value) => value.to_string().parse().ok(),
        Scalar::Null | Scalar::Switch(_) | Scalar::Text => None,
    }
}

pub(super) fn scalar(node: &Node) -> Scalar {
    match &*node.content {
        Content::Scalar { text, plain: true, tagged: false, .. } => classify(text),
        Content::Scalar { .. } | Content::List(_) | Content::Map(_) => Scalar::Text,
    }
}

/// Asks the parser itself, so that the two cannot differ.
fn classify(text: &str) -> Scalar {
    if text.is_empty() {
        return Scalar::Null;
    }
    // No longer text is a number or a switch.
    if text.len() > 80 || text.contains(['\n', '#']) {
        return Scalar::Text;
    }
    let asked = |de: serde_saphyr::Deserializer<'_, '_>| Scalar::deserialize(de);
    serde_saphyr::with_deserializer_from_str_with_options(text, options(text.len()), asked)
        .unwrap_or(Scalar::Text)
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a scalar")
            }
            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar::Null)
            }
            fn visit_none<E>(self) -> Result<Scalar, E> {
                Ok(Scalar::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar::Switch(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar::Whole(value.into()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
                Ok(Scalar::Whole(value.into()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar::Fraction(value))
            }
            fn visit_str<E>(self, _: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text)
            }
        }
        d.deserialize_any(Any)
    }
}
