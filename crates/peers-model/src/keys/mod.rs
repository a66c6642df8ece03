//! Keys of the operator's files, each declared once.
//!
//! `keys!` declares a mapping: its Rust type, its reader and defaults, and its description as data
//! ([`Table`]). The doc comment of a field is the sentence that people read about the key. `words!` does
//! the same for a choice of words. From the description come the check of a file, which tells every
//! mistake at its place (`peers-sys::yaml`), the JSON Schemas that `peers schema` prints ([`schema`]),
//! and the words of `peers goals diff`.

mod read;
pub mod schema;
mod types;

use serde_json::Value;

pub(crate) use self::read::Given;
pub(crate) use self::types::{json, plain, said};

/// A type that a key can have.
pub trait Described {
    /// What stands in the file.
    const SHAPE: Shape;
}

/// The description of a file whose top is `T`.
#[must_use]
pub fn of<T: Described>() -> &'static Table {
    match const { &T::SHAPE } {
        Shape::Table(table) => table,
        _ => const { &Table { keys: &[], gone: &[], either: &[] } },
    }
}

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
    /// That, or `null` (or nothing) for "not set".
    Maybe(&'static Shape),
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
    /// The value of an absent key; `None`: the file is wrong without it.
    pub default: Option<fn() -> Value>,
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

/// Declares a mapping: `name: Type = default,`, and `name: Type,` where the file is wrong without the key.
/// `as SHAPE` narrows what the type allows. With `: Default` behind its name the type has one.
macro_rules! keys {
    (@default $value:ty) => { None };
    (@default $value:ty, $default:expr) => { Some(|| $crate::keys::json::<$value>(&$default)) };
    (@shape $value:ty) => { <$value as $crate::keys::Described>::SHAPE };
    (@shape $value:ty, $shape:ident) => { $shape };
    (@take $given:ident, $name:expr) => { $given.needed($name)? };
    (@take $given:ident, $name:expr, $default:expr) => { $given.or($name, || $default)? };
    (
        $(#[$($meta:tt)*])*
        $vis:vis struct $type:ident: Default {
            $($(#[$($attr:tt)*])* $name:ident: $value:ty $(as $shape:ident)? = $default:expr,)*
        }
        $($rest:tt)*
    ) => {
        impl Default for $type {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }
        $crate::keys::keys! {
            $(#[$($meta)*])*
            $vis struct $type {
                $($(#[$($attr)*])* $name: $value $(as $shape)? = $default,)*
            }
            $($rest)*
        }
    };
    (
        $(#[$($meta:tt)*])*
        $vis:vis struct $type:ident {
            $($(#[$($attr:tt)*])* $name:ident: $value:ty $(as $shape:ident)? $(= $default:expr)?,)*
        }
        $(gone { $($gone:literal => $instead:literal,)* })?
        $(either [$($either:literal),*])?
    ) => {
        $(#[$($meta)*])*
        #[derive(Debug, Clone, serde::Serialize)]
        $vis struct $type {
            $($(#[$($attr)*])* $vis $name: $value,)*
        }

        impl $crate::keys::Described for $type {
            const SHAPE: $crate::keys::Shape = $crate::keys::Shape::Table(&$crate::keys::Table {
                keys: &[$($crate::keys::Key {
                    name: $crate::keys::plain(stringify!($name)),
                    shape: $crate::keys::keys!(@shape $value $(, $shape)?),
                    default: $crate::keys::keys!(@default $value $(, $default)?),
                    about: $crate::keys::about!($(#[$($attr)*])*),
                },)*],
                gone: &[$($(($gone, $instead),)*)?],
                either: &[$($($either),*)?],
            });
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                let mut given = $crate::keys::Given::read::<Self, D>(reader)?;
                Ok(Self {
                    $($name: $crate::keys::keys!(
                        @take given, $crate::keys::plain(stringify!($name)) $(, $default)?
                    ),)*
                })
            }
        }
    };
}

/// Declares a choice of words: `Variant = "word",`. `[any_case]` behind its name: capital letters do not matter.
macro_rules! words {
    (@case) => { false };
    (@case any_case) => { true };
    (
        $(#[$($meta:tt)*])*
        $vis:vis enum $type:ident $([$case:ident])? {
            $($(#[$($attr:tt)*])* $variant:ident = $word:literal,)*
        }
    ) => {
        $(#[$($meta)*])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        $vis enum $type {
            $($(#[$($attr)*])* #[serde(rename = $word)] $variant,)*
        }

        impl $crate::keys::Described for $type {
            const SHAPE: $crate::keys::Shape = $crate::keys::Shape::Word {
                words: &[$(($word, $crate::keys::about!($(#[$($attr)*])*)),)*],
                any_case: $crate::keys::words!(@case $($case)?),
            };
        }
    };
}

/// The text of a doc comment among other attributes.
macro_rules! about {
    (@ [$($said:literal)*]) => { $crate::keys::said(concat!($($said),*)) };
    (@ [$($said:literal)*] #[doc = $next:literal] $($rest:tt)*) => {
        $crate::keys::about!(@ [$($said)* $next] $($rest)*)
    };
    (@ [$($said:literal)*] #[$($other:tt)*] $($rest:tt)*) => { $crate::keys::about!(@ [$($said)*] $($rest)*) };
    ($($attributes:tt)*) => { $crate::keys::about!(@ [] $($attributes)*) };
}

pub(crate) use {about, keys, words};
