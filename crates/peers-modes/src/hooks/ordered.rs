//! A JSON document whose keys stay in the order in which somebody wrote them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ordered {
    Leaf(Value),
    List(Vec<Ordered>),
    Map(Vec<(String, Ordered)>),
}

impl Ordered {
    pub(super) fn text(text: &str) -> Self {
        Self::Leaf(Value::String(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        if let Self::Leaf(Value::String(text)) = self { Some(text) } else { None }
    }

    /// The value of a key; nothing in what is no object.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(pairs) = self else { return None };
        pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        let Self::Map(pairs) = self else { return None };
        pairs.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Adds a key, at the end, to an object that has none of that name.
    pub(super) fn put(&mut self, key: &str, value: Self) {
        if let Self::Map(pairs) = self {
            pairs.push((key.to_owned(), value));
        }
    }

    /// Removes a key from an object.
    pub(super) fn remove(&mut self, key: &str) {
        if let Self::Map(pairs) = self {
            pairs.retain(|(name, _)| name != key);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Leaf(_) => false,
            Self::List(items) => items.is_empty(),
            Self::Map(pairs) => pairs.is_empty(),
        }
    }
}

impl Serialize for Ordered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Leaf(value) => value.serialize(serializer),
            Self::List(items) => items.serialize(serializer),
            Self::Map(pairs) => {
                let mut map = serializer.serialize_map(Some(pairs.len()))?;
                for (key, value) in pairs {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Ordered;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
        Ok(Ordered::Leaf(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
        Ok(Ordered::Leaf(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
        Ok(Ordered::Leaf(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
        Ok(Ordered::Leaf(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
        Ok(Ordered::text(value))
    }

    fn visit_unit<E>(self) -> Result<Ordered, E> {
        Ok(Ordered::Leaf(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Ordered, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Ordered::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Ordered, A::Error> {
        let mut map = Vec::new();
        while let Some(pair) = pairs.next_entry()? {
            map.push(pair);
        }
        Ok(Ordered::Map(map))
    }
}
