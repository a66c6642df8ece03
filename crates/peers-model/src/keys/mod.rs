//! What the files of an operator may hold, key by key, as data.
//!
//! One description drives both the reader of the files, which tells every mistake at its place
//! (`peers-sys::yaml`), and the JSON Schemas that `peers schema` prints ([`schema`]). That serde takes
//! the same keys is tested where the files are loaded (`peers-store::load`).

pub mod config;
pub mod goals;
pub mod schema;

/// What a value may be.
#[derive(Debug)]
pub enum Shape {
    /// `true` or `false`.
    Switch,
    /// A whole number.
    Whole {
        /// The smallest.
        least: u64,
        /// The greatest.
        most: u64,
    },
    /// An amount of dollars above zero, fractions allowed.
    Amount,
    /// A price in dollars, fractions and zero allowed.
    Price,
    /// A text.
    Text(Text),
    /// One of a few words.
    Word {
        /// The words, each with its meaning.
        words: &'static [(&'static str, &'static str)],
        /// Capital letters do not matter.
        any_case: bool,
    },
    /// A list.
    List {
        /// Each entry.
        of: &'static Shape,
        /// The fewest entries.
        least: usize,
        /// The most entries.
        most: usize,
    },
    /// A mapping with known keys.
    Table(&'static Table),
    /// A mapping whose keys are names that the operator chooses.
    Named {
        /// The names.
        name: Text,
        /// Each value.
        of: &'static Shape,
    },
}

/// A text and what it may be.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    /// A regular expression that it matches as a whole, as far as one can say it.
    pub pattern: Option<&'static str>,
    /// Bytes at most.
    pub most: usize,
    /// It is not blank.
    pub filled: bool,
    /// What else is wrong with it, readable after its name. `None` where all is well.
    pub wrong: Option<fn(&str) -> Option<String>>,
}

/// Any text.
pub const TEXT: Text = Text { pattern: None, most: usize::MAX, filled: false, wrong: None };
/// A text that says something.
pub const FILLED: Text = Text { filled: true, ..TEXT };
/// The largest number that a key of 32 bits takes.
pub const U32: u64 = 4_294_967_295;

/// A mapping with known keys.
#[derive(Debug)]
pub struct Table {
    /// The keys, in the order in which they are shown.
    pub keys: &'static [Key],
    /// Keys that people know from elsewhere and that do not exist here: what to do instead.
    pub gone: &'static [(&'static str, &'static str)],
    /// Exactly one of these is there.
    pub either: &'static [&'static str],
}

/// One key.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub shape: Shape,
    /// The file is wrong without it.
    pub required: bool,
    /// `null` (or nothing) stands for "not set".
    pub null: bool,
    /// The value of an absent key, as JSON.
    pub default: Option<&'static str>,
    /// What it means, one or two sentences.
    pub about: &'static str,
}

impl Table {
    /// The key of that name.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// What to do instead of a key that this version does not have.
    #[must_use]
    pub fn instead(&self, name: &str) -> Option<&'static str> {
        self.gone.iter().find(|(gone, _)| *gone == name).map(|(_, what)| *what)
    }
}

/// Calls `each` with every key below `table`, by its path: `budget.max_usd`, `peers[].name`,
/// `budget.per_peer.*.max_usd`.
pub fn every(table: &'static Table, each: &mut dyn FnMut(&str, &'static Key)) {
    below(table, "", each);
}

fn below(table: &'static Table, path: &str, each: &mut dyn FnMut(&str, &'static Key)) {
    for key in table.keys {
        let path = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
        each(&path, key);
        inside(&key.shape, path, each);
    }
}

fn inside(shape: &'static Shape, path: String, each: &mut dyn FnMut(&str, &'static Key)) {
    match shape {
        Shape::Table(table) => below(table, &path, each),
        Shape::List { of, .. } => inside(of, path + "[]", each),
        Shape::Named { of, .. } => inside(of, path + ".*", each),
        Shape::Switch
        | Shape::Whole { .. }
        | Shape::Amount
        | Shape::Price
        | Shape::Text(_)
        | Shape::Word { .. } => {}
    }
}
