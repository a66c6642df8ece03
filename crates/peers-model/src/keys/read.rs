//! A declared mapping from its values. What a file holds was checked before, with places.

use serde::de::{DeserializeOwned, Deserializer, Error};
use serde_json::{Map, Value};

use super::{Described, of};

/// The keys that are there.
pub(crate) struct Given(Map<String, Value>);

impl Given {
    pub(crate) fn read<'de, T: Described, D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let given: Map<String, Value> = serde::Deserialize::deserialize(reader)?;
        let table = of::<T>();
        match given.keys().find(|name| table.key(name).is_none()) {
            Some(name) => Err(D::Error::custom(format_args!("unknown key `{name}`"))),
            None => Ok(Self(given)),
        }
    }

    pub(crate) fn needed<T: DeserializeOwned, E: Error>(&mut self, name: &'static str) -> Result<T, E> {
        let value = self.0.remove(name).ok_or_else(|| E::missing_field(name))?;
        typed(name, value)
    }

    pub(crate) fn or<T: DeserializeOwned, E: Error>(
        &mut self,
        name: &'static str,
        default: impl FnOnce() -> T,
    ) -> Result<T, E> {
        self.0.remove(name).map_or_else(|| Ok(default()), |value| typed(name, value))
    }
}

fn typed<T: DeserializeOwned, E: Error>(name: &str, value: Value) -> Result<T, E> {
    serde_json::from_value(value).map_err(|error| E::custom(format_args!("`{name}`: {error}")))
}
