//! JSON fields that never make a line unreadable: a field of the wrong shape reads as absent.
//!
//! Whatever is not asked for is skipped without being stored, so that a hostile line costs no more
//! memory than its own bytes. Lists are bounded, strings are cut, nesting is limited by the parser.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use peers_model::Usd;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Larger token counts are nonsense and would only overflow sums.
const COUNT_CAP: u64 = 1_000_000_000_000_000;

/// Parses one line that is meant to be a JSON object. `None`: it is not one.
pub(crate) fn parse_line<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let line = line.trim_ascii();
    if line.first() != Some(&b'{') {
        return None;
    }
    if let Ok(value) = serde_json::from_slice(line) {
        return Some(value);
    }
    // Lone surrogate escapes and bytes that are no UTF-8 come from cut strings; an agent must not be
    // able to hide the tool's account behind one of them.
    serde_json::from_str(&repair(line)).ok()
}

fn repair(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut out = String::with_capacity(text.len());
    let mut rest: &str = &text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let taken = match surrogate(escape) {
            Some(0xdc00..=0xdfff) => lone(&mut out, 6),
            Some(_) => match escape.get(6..).and_then(surrogate) {
                Some(0xdc00..=0xdfff) => {
                    out.push_str(escape.get(..12).unwrap_or_default());
                    12
                }
                _ => lone(&mut out, 6),
            },
            None => {
                let two = escape.char_indices().nth(2).map_or(escape.len(), |(i, _)| i);
                out.push_str(escape.get(..two).unwrap_or_default());
                two
            }
        };
        rest = escape.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

fn lone(out: &mut String, taken: usize) -> usize {
    out.push_str("\\ufffd");
    taken
}

/// The value of a `\uXXXX` escape at the start of `text` if it is half a surrogate pair.
fn surrogate(text: &str) -> Option<u16> {
    let hex = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(hex, 16).ok().filter(|unit| (0xd800..=0xdfff).contains(unit))
}

/// Cuts `text` to at most `cap` bytes at a character boundary.
pub(crate) fn cut(text: &str, cap: usize) -> &str {
    text.get(..text.floor_char_boundary(cap)).unwrap_or(text)
}

/// Puts `text` on one line: control characters become blanks, at most `chars` characters remain.
pub(crate) fn one_line(text: &str, chars: usize) -> String {
    let mut out: String =
        text.trim().chars().take(chars).map(|c| if c.is_control() { ' ' } else { c }).collect();
    out.truncate(out.trim_end().len());
    out
}

/// Reads any scalar through `$arms` and skips everything else.
macro_rules! lenient {
    ($(#[$doc:meta])* $name:ident<$($konst:ident)?>($inner:ty), { $($arms:item)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub(crate) struct $name<$(const $konst: usize)?>(pub(crate) $inner);

        impl<'de $(, const $konst: usize)?> Deserialize<'de> for $name<$($konst)?> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Lenient<$(const $konst: usize)?>;
                impl<'de $(, const $konst: usize)?> Visitor<'de> for Lenient<$($konst)?> {
                    type Value = $name<$($konst)?>;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("any value")
                    }
                    $($arms)*
                    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                        Ok(Self::Value::default())
                    }
                    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                        while seq.next_element::<IgnoredAny>()?.is_some() {}
                        Ok(Self::Value::default())
                    }
                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                        Ok(Self::Value::default())
                    }
                }
                deserializer.deserialize_any(Lenient::<$($konst)?>)
            }
        }
    };
}

macro_rules! absent {
    ($($visit:ident: $ty:ty),*) => {
        $(fn $visit<E: Error>(self, _: $ty) -> Result<Self::Value, E> { Ok(Self::Value::default()) })*
    };
}

lenient!(
    /// A string, cut to `CAP` bytes.
    Text<CAP>(Option<String>),
    {
        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Text(Some(cut(text, CAP).to_owned())))
        }
        absent! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64 }
    }
);

impl<const CAP: usize> Text<CAP> {
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

lenient!(
    /// A number that counts something: finite, not negative, not a boolean; anything else is absent.
    Count<>(Option<u64>),
    {
        fn visit_u64<E: Error>(self, n: u64) -> Result<Self::Value, E> {
            Ok(Count(Some(n.min(COUNT_CAP))))
        }
        fn visit_f64<E: Error>(self, n: f64) -> Result<Self::Value, E> {
            Ok(Count(whole(n)))
        }
        absent! { visit_bool: bool, visit_i64: i64, visit_str: &str }
    }
);

impl Count {
    /// The count, or zero.
    pub(crate) fn or_zero(&self) -> u64 {
        self.0.unwrap_or(0)
    }
}

fn whole(n: f64) -> Option<u64> {
    if !n.is_finite() || n < 0.0 {
        return None;
    }
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "finite and not negative; the cast saturates and the cap is far below 2^63"
    )]
    let n = n as u64;
    Some(n.min(COUNT_CAP))
}

lenient!(
    /// A whole number of either sign.
    Int<>(Option<i64>),
    {
        fn visit_i64<E: Error>(self, n: i64) -> Result<Self::Value, E> {
            Ok(Int(Some(n)))
        }
        fn visit_u64<E: Error>(self, n: u64) -> Result<Self::Value, E> {
            Ok(Int(i64::try_from(n).ok()))
        }
        absent! { visit_bool: bool, visit_f64: f64, visit_str: &str }
    }
);

lenient!(
    /// An amount of dollars.
    Amount<>(Option<Usd>),
    {
        fn visit_u64<E: Error>(self, n: u64) -> Result<Self::Value, E> {
            Ok(Amount(u32::try_from(n).ok().and_then(|n| Usd::from_f64(f64::from(n)))))
        }
        fn visit_f64<E: Error>(self, n: f64) -> Result<Self::Value, E> {
            Ok(Amount(Usd::from_f64(n)))
        }
        absent! { visit_bool: bool, visit_i64: i64, visit_str: &str }
    }
);

lenient!(
    /// A fraction between 0 and 1, as whole percent.
    Percent<>(Option<u8>),
    {
        fn visit_u64<E: Error>(self, n: u64) -> Result<Self::Value, E> {
            Ok(Percent(u8::try_from(n.saturating_mul(100)).ok()))
        }
        fn visit_f64<E: Error>(self, n: f64) -> Result<Self::Value, E> {
            Ok(Percent(whole((n * 100.0).round()).and_then(|n| u8::try_from(n).ok())))
        }
        absent! { visit_bool: bool, visit_i64: i64, visit_str: &str }
    }
);

lenient!(
    /// A real boolean.
    Flag<>(bool),
    {
        fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
            Ok(Flag(flag))
        }
        absent! { visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }
    }
);

/// An object, or nothing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Obj<T>(pub(crate) Option<T>);

impl<T> Default for Obj<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Obj<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(ShapeVisitor::<T, 0>(PhantomData))? {
            Shape::Object(value) => Ok(Self(Some(value))),
            Shape::Text(_) | Shape::Neither => Ok(Self(None)),
        }
    }
}

/// An object, or a string of at most 4 KiB, or neither.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Shape<T> {
    Object(T),
    Text(String),
    #[default]
    Neither,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shape<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor::<T, 4096>(PhantomData))
    }
}

struct ShapeVisitor<T, const CAP: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const CAP: usize> Visitor<'de> for ShapeVisitor<T, CAP> {
    type Value = Shape<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Shape::Object)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Shape::Neither)
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Shape::Text(cut(text, CAP).to_owned()))
    }
    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Shape::Neither)
    }
    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Shape::Neither)
    }
    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Shape::Neither)
    }
    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Shape::Neither)
    }
    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Shape::Neither)
    }
}

/// The first `MAX` objects of a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct List<T, const MAX: usize>(pub(crate) Vec<T>);

impl<T, const MAX: usize> Default for List<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T, const MAX: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for ListVisitor<T, MAX> {
            type Value = List<T, MAX>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while items.len() < MAX {
                    match seq.next_element::<Obj<T>>()? {
                        Some(item) => items.extend(item.0),
                        None => return Ok(List(items)),
                    }
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(List(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(List::default())
            }
            fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
                Ok(List::default())
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
                Ok(List::default())
            }
            fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
                Ok(List::default())
            }
            fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
                Ok(List::default())
            }
            fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
                Ok(List::default())
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(List::default())
            }
        }
        deserializer.deserialize_any(ListVisitor::<T, MAX>(PhantomData))
    }
}

/// The sum of one money field over the values of an object: `{"model-a": {"costUSD": 0.1}, ...}`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CostByModel(pub(crate) Option<Usd>);

impl<'de> Deserialize<'de> for CostByModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Model {
            #[serde(rename = "costUSD")]
            cost: Amount,
        }
        struct Sum(Option<Usd>);
        impl<'de> Deserialize<'de> for Sum {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct SumVisitor;
                impl<'de> Visitor<'de> for SumVisitor {
                    type Value = Sum;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sum, A::Error> {
                        let mut sum = Some(Usd::ZERO);
                        while let Some((_, model)) = map.next_entry::<Cow<'de, str>, Obj<Model>>()? {
                            let cost = model.0.and_then(|model| model.cost.0);
                            sum = sum.zip(cost).map(|(sum, cost)| sum + cost);
                        }
                        Ok(Sum(sum))
                    }
                }
                deserializer.deserialize_map(SumVisitor)
            }
        }
        Ok(Self(Obj::<Sum>::deserialize(deserializer)?.0.and_then(|sum| sum.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Probe {
        n: Count,
        t: Text<4>,
        list: List<Item, 2>,
        nested: Obj<Item>,
        usd: Amount,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Item {
        n: Count,
    }

    fn probe(json: &str) -> Probe {
        parse_line(json.as_bytes()).expect(json)
    }

    #[test]
    fn only_finite_numbers_that_are_not_negative_count() {
        for zero in ["true", "-1", "-0.5", "\"7\"", "null", "[1]", "{\"a\":1}"] {
            assert_eq!(probe(&format!("{{\"n\":{zero}}}")).n.0, None, "{zero}");
        }
        assert_eq!(probe("{\"n\":7}").n.0, Some(7));
        assert_eq!(probe("{\"n\":7.9}").n.0, Some(7));
        assert_eq!(probe("{\"n\":1e300}").n.0, Some(COUNT_CAP));
    }

    #[test]
    fn money_is_never_negative_and_never_a_guess() {
        for absent in ["true", "-1", "null", "\"1\"", "1e30"] {
            assert_eq!(probe(&format!("{{\"usd\":{absent}}}")).usd.0, None, "{absent}");
        }
        assert_eq!(probe("{\"usd\":0.25}").usd.0, Usd::from_f64(0.25));
        assert_eq!(probe("{\"usd\":2}").usd.0, Usd::from_f64(2.0));
    }

    #[test]
    fn strings_are_cut_at_a_character_boundary() {
        assert_eq!(probe("{\"t\":\"abcé\"}").t.as_str(), "abc");
    }

    #[test]
    fn lists_are_bounded_and_wrong_shapes_read_as_absent() {
        assert_eq!(probe("{\"list\":[{\"n\":1},{\"n\":2},{\"n\":3}]}").list.0.len(), 2);
        assert!(probe("{\"list\":\"no\",\"nested\":[1]}").nested.0.is_none());
        assert_eq!(probe("{\"nested\":{\"n\":5}}").nested.0.map(|i| i.n.0), Some(Some(5)));
    }

    #[test]
    fn a_lone_surrogate_or_a_bad_byte_hides_nothing() {
        assert_eq!(probe(r#"{"t":"\ud83d","n":3}"#).n.0, Some(3));
        assert_eq!(probe(r#"{"t":"a\udc00","n":3}"#).n.0, Some(3));
        assert_eq!(probe(r#"{"t":"\\ud83d \ud83d","n":3}"#).n.0, Some(3));
        let mut bytes = b"{\"t\":\"".to_vec();
        bytes.extend([0xff, b'"', b',']);
        bytes.extend(b"\"n\":3}");
        assert_eq!(parse_line::<Probe>(&bytes).expect("repaired").n.0, Some(3));
    }

    #[test]
    fn a_depth_bomb_is_refused_or_skipped_without_a_stack_overflow() {
        let bomb = format!("{{\"nested\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert!(parse_line::<Probe>(bomb.as_bytes()).is_some_and(|probe| probe.nested.0.is_none()));
        let skipped = format!("{{\"other\":{}{},\"n\":1}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(parse_line::<Probe>(skipped.as_bytes()).and_then(|probe| probe.n.0), Some(1));
        let objects = format!("{{\"nested\":{}1{}}}", "{\"nested\":".repeat(100_000), "}".repeat(100_000));
        assert_eq!(parse_line::<Probe>(objects.as_bytes()).and_then(|probe| probe.n.0), None);
    }

    #[test]
    fn one_line_flattens_and_cuts() {
        assert_eq!(one_line("  a\nb\u{1b}[31mc  ", 80), "a b [31mc");
        assert_eq!(one_line("ééé", 2), "éé");
    }
}
