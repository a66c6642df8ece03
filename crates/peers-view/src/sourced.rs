//! A value together with whether it could be read.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// What a source gave. Unknown is not zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Sourced<T> {
    /// As it is now.
    Fresh(T),
    /// From before; the newest could not be read.
    Stale {
        /// What was read.
        value: T,
        /// Why there is nothing newer.
        why: String,
    },
    /// There is no such thing, or nobody asked for it.
    #[default]
    Missing,
    /// It is there and cannot be read; why.
    Unreadable(String),
}

impl<T> Sourced<T> {
    /// The value, fresh or stale.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Fresh(value) | Self::Stale { value, .. } => Some(value),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }

    /// What keeps it from being fresh, if something does.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Fresh(_) | Self::Missing => None,
            Self::Stale { why, .. } | Self::Unreadable(why) => Some(why),
        }
    }

    /// The same standing of a reference.
    pub fn as_ref(&self) -> Sourced<&T> {
        match self {
            Self::Fresh(value) => Sourced::Fresh(value),
            Self::Stale { value, why } => Sourced::Stale { value, why: why.clone() },
            Self::Missing => Sourced::Missing,
            Self::Unreadable(why) => Sourced::Unreadable(why.clone()),
        }
    }

    /// The same standing with another value.
    pub fn map<U>(self, with: impl FnOnce(T) -> U) -> Sourced<U> {
        match self {
            Self::Fresh(value) => Sourced::Fresh(with(value)),
            Self::Stale { value, why } => Sourced::Stale { value: with(value), why },
            Self::Missing => Sourced::Missing,
            Self::Unreadable(why) => Sourced::Unreadable(why),
        }
    }

    /// From what a reader gave: nothing there, the value, or why not.
    pub fn from_read(read: Result<Option<T>, String>) -> Self {
        match read {
            Ok(Some(value)) => Self::Fresh(value),
            Ok(None) => Self::Missing,
            Err(why) => Self::Unreadable(why),
        }
    }
}

impl<T: Serialize> Serialize for Sourced<T> {
    /// `{"source": "fresh|stale|missing|unreadable", "value": …, "why": …}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let word = match self {
            Self::Fresh(_) => "fresh",
            Self::Stale { .. } => "stale",
            Self::Missing => "missing",
            Self::Unreadable(_) => "unreadable",
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("source", word)?;
        if let Some(value) = self.value() {
            map.serialize_entry("value", value)?;
        }
        if let Some(why) = self.why() {
            map.serialize_entry("why", why)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_standing_is_told_apart_in_json() {
        let value = |sourced: &Sourced<u32>| serde_json::to_value(sourced).unwrap();
        assert_eq!(value(&Sourced::Fresh(0)), json!({"source": "fresh", "value": 0}));
        let stale = Sourced::Stale { value: 1, why: "torn".into() };
        assert_eq!(value(&stale), json!({"source": "stale", "value": 1, "why": "torn"}));
        assert_eq!(value(&Sourced::Missing), json!({"source": "missing"}));
        assert_eq!(value(&Sourced::Unreadable("x".into())), json!({"source": "unreadable", "why": "x"}));
    }

    #[test]
    fn a_reader_that_failed_is_not_a_reader_that_found_nothing() {
        assert_eq!(Sourced::<u32>::from_read(Ok(None)), Sourced::Missing);
        assert_eq!(Sourced::<u32>::from_read(Err("no".into())), Sourced::Unreadable("no".into()));
        assert_eq!(Sourced::Fresh(2).map(|n| n + 1).value(), Some(&3));
    }
}
