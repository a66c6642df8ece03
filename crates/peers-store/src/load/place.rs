//! Finds the line that a checked value came from.
//!
//! A reading of the text that knows keys, list entries, comments, block scalars and simple flow
//! collections. It is only ever used to point at a line of a file that the real parser has read: what
//! it does not understand costs a line number and nothing else.

/// A place, both numbers from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub(super) line: u64,
    pub(super) column: u64,
}

/// Which of several equal places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    First,
    Last,
}

/// A value as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value<'t> {
    /// Its first character, behind a quote.
    pub(super) at: At,
    /// From there to the end of the line.
    pub(super) raw: &'t str,
}

/// One `key: value`.
#[derive(Debug, Clone, Copy)]
struct Pair<'t> {
    at: At,
    key: &'t str,
    value: Value<'t>,
    /// The text of a plain or simply quoted value.
    word: &'t str,
    /// A dash stands directly before it.
    starts_item: bool,
    /// It stands inside `{}` or `[]`.
    in_flow: bool,
}

/// The pairs and list entries of a text.
#[derive(Debug)]
pub(super) struct Outline<'t> {
    pairs: Vec<Pair<'t>>,
    /// Where each dash of a block list stands.
    dashes: Vec<At>,
}

impl<'t> Outline<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        Self::until(text, u64::MAX)
    }

    /// The outline of the lines up to this one. A line that no person wrote is left out: to look for
    /// places in it takes longer than they are worth.
    pub(super) fn until(text: &'t str, last: u64) -> Self {
        const LONGEST: usize = 16 * 1024;
        let mut outline = Self { pairs: Vec::new(), dashes: Vec::new() };
        // Inside a block scalar: the indentation of the line that began it.
        let mut scalar: Option<usize> = None;
        for (number, line) in (1..=last).zip(text.lines()) {
            if line.len() > LONGEST {
                scalar = None;
                continue;
            }
            let indent = line.len() - line.trim_start().len();
            let blank = line.trim().is_empty();
            match scalar {
                Some(outer) if blank || indent > outer => continue,
                _ => scalar = None,
            }
            if blank || line.trim_start().starts_with('#') {
                continue;
            }
            if outline.line(number, line, indent) {
                scalar = Some(indent);
            }
        }
        outline
    }

    /// `key:`, `key: value` or `key` as the model names places.
    pub(super) fn needle(&self, needle: &str, which: Which) -> Option<At> {
        let (key, value) = match needle.split_once(':') {
            Some((key, value)) => (key.trim(), value.trim()),
            None => (needle.trim(), ""),
        };
        let fits = |pair: &&Pair<'t>| pair.key == key && (value.is_empty() || pair.word == value);
        Some(self.pick(fits, which)?.at)
    }

    /// The key of a goal; the goal's id where that key is not there.
    pub(super) fn in_goal(&self, id: &str, key: &str, which: Which) -> Option<At> {
        let item = self.item(id, which)?;
        let named = item.iter().find(|pair| pair.key == "id" && pair.word == id);
        item.iter().find(|pair| pair.key == key).or(named).map(|pair| pair.at)
    }

    /// The value of a key of a goal.
    pub(super) fn value_in_goal(&self, id: &str, key: &str) -> Option<Value<'t>> {
        self.item(id, Which::First)?.iter().find(|pair| pair.key == key).map(|pair| pair.value)
    }

    /// The entry `index` (from 0) of the block list below `key`.
    pub(super) fn list_item(&self, key: &str, index: usize) -> Option<At> {
        let key = self.pick(|pair| pair.key == key, Which::First)?.at;
        let mut below = self.dashes.iter().filter(|dash| dash.line > key.line).copied();
        let first = below.next()?;
        std::iter::once(first)
            .chain(
                below
                    .take_while(|dash| dash.column >= first.column)
                    .filter(|dash| dash.column == first.column),
            )
            .nth(index)
    }

    /// The id of the goal that the line `number` belongs to.
    pub(super) fn goal_at(&self, number: u64) -> Option<String> {
        let ids = self.pairs.iter().enumerate().filter(|(_, pair)| pair.key == "id" && !pair.in_flow);
        for (at, id) in ids {
            let range = self.around(at);
            let lines = range.iter().map(|pair| pair.at.line);
            if lines.clone().min()? <= number && number <= lines.max()? {
                return Some(id.word.to_owned());
            }
        }
        None
    }

    fn pick(&self, fits: impl Fn(&&Pair<'t>) -> bool, which: Which) -> Option<&Pair<'t>> {
        match which {
            Which::First => self.pairs.iter().find(fits),
            Which::Last => self.pairs.iter().rfind(fits),
        }
    }

    /// The pairs of the list entry whose `id` is this.
    fn item(&self, id: &str, which: Which) -> Option<Vec<&Pair<'t>>> {
        let fits = |pair: &Pair<'t>| pair.key == "id" && pair.word == id;
        let at = match which {
            Which::First => self.pairs.iter().position(fits),
            Which::Last => self.pairs.iter().rposition(fits),
        }?;
        Some(self.around(at))
    }

    /// The pair at this index with its siblings.
    fn around(&self, at: usize) -> Vec<&Pair<'t>> {
        let Some(own) = self.pairs.get(at) else { return Vec::new() };
        if own.in_flow {
            return self.pairs.iter().filter(|pair| pair.in_flow && pair.at.line == own.at.line).collect();
        }
        let column = own.at.column;
        let sibling = |pair: &&Pair<'t>| pair.at.column == column && !pair.in_flow;
        let mut before: Vec<&Pair<'t>> = Vec::new();
        let mut open = !own.starts_item;
        for pair in self.pairs.iter().take(at).rev() {
            if !open || pair.at.column < column {
                break;
            }
            if sibling(&pair) {
                before.push(pair);
                open = !pair.starts_item;
            }
        }
        before.reverse();
        let after = self
            .pairs
            .iter()
            .skip(at + 1)
            .take_while(|pair| pair.at.column > column || (pair.at.column == column && !pair.starts_item))
            .filter(sibling);
        before.into_iter().chain(std::iter::once(own)).chain(after).collect()
    }

    /// Takes one line. Returns whether a block scalar begins on it.
    fn line(&mut self, number: u64, line: &'t str, indent: usize) -> bool {
        let mut rest = line.get(indent..).unwrap_or_default();
        let mut starts_item = false;
        while let Some(after) =
            rest.strip_prefix('-').filter(|after| after.is_empty() || after.starts_with(' '))
        {
            self.dashes.push(place(number, line, rest));
            rest = after.trim_start();
            starts_item = true;
        }
        let Some((key, value)) = split(rest) else {
            self.flow(number, line, rest);
            return rest.trim_start().starts_with(['|', '>']);
        };
        let in_flow = false;
        self.pairs.push(pair(number, line, rest, (key, value), starts_item, in_flow));
        self.flow(number, line, value);
        value.starts_with(['|', '>'])
    }

    /// Takes what looks like pairs inside `{}` or `[]`.
    fn flow(&mut self, number: u64, line: &'t str, text: &'t str) {
        if !text.starts_with(['{', '[']) {
            return;
        }
        for piece in text.split(['{', '}', '[', ']', ',']) {
            let piece = piece.trim_start();
            if let Some(found) = split(piece) {
                self.pairs.push(pair(number, line, piece, found, false, true));
            }
        }
    }
}

/// `key: value`, the key without quotes.
fn split(text: &str) -> Option<(&str, &str)> {
    let (key, value) = match text.find(": ") {
        Some(at) => (text.get(..at)?, text.get(at + 2..)?.trim_start()),
        None => (text.trim_end().strip_suffix(':')?, ""),
    };
    let key = key.trim().trim_matches(['"', '\'']);
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    plain.then_some((key, value))
}

fn pair<'t>(
    number: u64,
    line: &'t str,
    rest: &'t str,
    (key, value): (&'t str, &'t str),
    starts_item: bool,
    in_flow: bool,
) -> Pair<'t> {
    let raw = value.strip_prefix(['"', '\'']).unwrap_or(value);
    let word = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => raw.split(quote).next().unwrap_or_default(),
        _ => value.split(" #").next().unwrap_or_default().trim_end(),
    };
    let value = Value { at: place(number, line, raw), raw };
    Pair { at: place(number, line, rest), key, value, word, starts_item, in_flow }
}

/// The place of `part`, which is a piece of `line`.
fn place(number: u64, line: &str, part: &str) -> At {
    let offset = part.as_ptr().addr().saturating_sub(line.as_ptr().addr());
    let before = line.get(..offset).unwrap_or_default().chars().count();
    At { line: number, column: u64::try_from(before).unwrap_or(u64::MAX).saturating_add(1) }
}
