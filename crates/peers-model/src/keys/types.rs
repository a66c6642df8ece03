//! What the file holds for types that many keys have.

use std::collections::BTreeMap;
use std::num::{NonZeroU8, NonZeroU32, NonZeroU64};

use serde::Serialize;
use serde_json::Value;

use super::{Described, Shape, TEXT, Text, U32};

macro_rules! whole {
    ($($type:ty: $least:literal to $most:expr,)*) => {$(
        impl Described for $type {
            const SHAPE: Shape = Shape::Whole { least: $least, most: $most };
        }
    )*};
}

whole! {
    u8: 0 to 255,
    NonZeroU8: 1 to 255,
    u32: 0 to U32,
    NonZeroU32: 1 to U32,
    NonZeroU64: 1 to u64::MAX,
}

impl Described for bool {
    const SHAPE: Shape = Shape::Switch;
}

impl Described for String {
    const SHAPE: Shape = Shape::Text(TEXT);
}

impl<T: Described> Described for Option<T> {
    const SHAPE: Shape = Shape::Maybe(&T::SHAPE);
}

impl<T: Described> Described for Vec<T> {
    const SHAPE: Shape = Shape::List { of: &T::SHAPE, least: 0, most: usize::MAX };
}

impl<K: Described, V: Described> Described for BTreeMap<K, V> {
    const SHAPE: Shape = Shape::Named { name: name(&K::SHAPE), of: &V::SHAPE };
}

const fn name(shape: &Shape) -> Text {
    match shape {
        Shape::Text(text) => *text,
        _ => TEXT,
    }
}

/// A default, as it would stand in the file.
pub(crate) fn json<T: Serialize>(value: &T) -> Value {
    // Our own types serialise.
    serde_json::to_value(value).unwrap_or_default()
}

/// The name of a field without the mark of a raw one.
pub(crate) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// A doc comment as a sentence.
pub(crate) const fn said(comment: &'static str) -> &'static str {
    comment.trim_ascii_start()
}
