//! How the arguments of steps are written: a scalar or a mapping, durations, sizes, lists.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use peers_model::time::parse_duration;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// What a scalar stands for, where a mapping can be written as well.
pub(crate) trait FromText: Sized {
    /// What may be written, for messages.
    const WANTED: &'static str;
    /// Reads the short form.
    fn from_text(text: &str) -> Result<Self, String>;
}

/// A value in its short form (a scalar) or its long form (a mapping or a list).
pub(crate) struct TextOr<T>(pub(crate) T);

impl<'de, T: Deserialize<'de> + FromText> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + FromText> Visitor<'de> for TextOrVisitor<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::WANTED)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
                T::from_text(text).map_err(E::custom)
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
                self.visit_str(if value { "true" } else { "false" })
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
                self.visit_str(&value.to_string())
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
                self.visit_str(&value.to_string())
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
                self.visit_str(&value.to_string())
            }
            fn visit_unit<E: Error>(self) -> Result<T, E> {
                T::from_text("").map_err(E::custom)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<T, A::Error> {
                T::deserialize(SeqAccessDeserializer::new(seq))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(TextOrVisitor(PhantomData)).map(Self)
    }
}

/// Reads `200ms`, `2`, `2s`, `1m30s`.
pub(crate) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    TextOr::<Wait>::deserialize(deserializer).map(|wait| wait.0.0)
}

/// Reads an optional duration.
pub(crate) fn duration_opt<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

pub(crate) struct Wait(pub(crate) Duration);

impl FromText for Wait {
    const WANTED: &'static str = "a duration such as `200ms`, `2s` or `1m30s`";

    fn from_text(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text.strip_suffix("ms").map(|n| n.trim().parse()) {
            Some(Ok(ms)) => Ok(Self(Duration::from_millis(ms))),
            Some(Err(_)) => Err(format!("`{text}` is not a duration")),
            None => parse_duration(text).map(Self).map_err(|error| error.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for Wait {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom(format!("expected {}", Self::WANTED)))
    }
}

/// Reads `4096`, `64KiB`, `5MiB`, `300MB`.
pub(crate) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    TextOr::<Size>::deserialize(deserializer).map(|size| size.0.0)
}

struct Size(u64);

impl FromText for Size {
    const WANTED: &'static str = "a size such as `4096`, `64KiB` or `300MB`";

    fn from_text(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let factor: Option<u64> = match unit.trim() {
            "" | "B" => Some(1),
            "KiB" | "K" => Some(1 << 10),
            "MiB" | "M" => Some(1 << 20),
            "GiB" | "G" => Some(1 << 30),
            "KB" | "kB" => Some(1_000),
            "MB" => Some(1_000_000),
            "GB" => Some(1_000_000_000),
            _ => None,
        };
        let bytes = number.parse::<u64>().ok().zip(factor).and_then(|(n, factor)| n.checked_mul(factor));
        bytes.map(Self).ok_or_else(|| format!("`{text}` is not a size"))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom(format!("expected {}", Self::WANTED)))
    }
}

/// One text or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Texts(pub Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Long(Vec<String>);
        impl FromText for Long {
            const WANTED: &'static str = "a text or a list of texts";
            fn from_text(text: &str) -> Result<Self, String> {
                Ok(Self(vec![text.to_owned()]))
            }
        }
        impl<'de> Deserialize<'de> for Long {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Vec::<String>::deserialize(deserializer).map(Self)
            }
        }
        TextOr::<Long>::deserialize(deserializer).map(|texts| Self(texts.0.0))
    }
}

/// A mapping in the order in which it is written: `{Peer: a, Bug-Report: [x, y]}`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pairs(pub Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of names to a text or a list of texts")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some((key, values)) = map.next_entry::<String, Texts>()? {
                    pairs.extend(values.0.into_iter().map(|value| (key.clone(), value)));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}

/// Which files a commit takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Files {
    /// Everything in the work tree, new files included.
    #[default]
    All,
    /// Changes of files that git already knows.
    Tracked,
    /// Nothing; what is staged stays staged.
    None,
    /// These paths.
    Paths(Vec<String>),
}

impl FromText for Files {
    const WANTED: &'static str = "`all`, `tracked`, `none` or a list of paths";

    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "tracked" => Ok(Self::Tracked),
            "none" => Ok(Self::None),
            _ => Err(format!("`{text}` is not {}", Self::WANTED)),
        }
    }
}

struct FileList(Files);

impl FromText for FileList {
    const WANTED: &'static str = Files::WANTED;
    fn from_text(text: &str) -> Result<Self, String> {
        Files::from_text(text).map(Self)
    }
}

impl<'de> Deserialize<'de> for FileList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<String>::deserialize(deserializer).map(|paths| Self(Files::Paths(paths)))
    }
}

impl<'de> Deserialize<'de> for Files {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        TextOr::<FileList>::deserialize(deserializer).map(|files| files.0.0)
    }
}
