//! A layer around the parser's deserializer that takes booleans and numbers only from real ones.
//!
//! The parser reads `'false'` into a `bool` and `'5'` into an integer, since it knows what is asked
//! for. Here it is asked what is there, and the answer is compared. Everything nested goes through
//! the same layer.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// The layer.
pub(super) struct Strict<T>(pub(super) T);

macro_rules! only {
    ($kind:expr, $($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.deserialize_any(Only { kind: $kind, visitor })
        }
    )*};
}

macro_rules! forward {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Strict(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<D> {
    type Error = D::Error;

    only!(Kind::Boolean, deserialize_bool);
    only!(
        Kind::Integer,
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    );
    only!(Kind::Number, deserialize_f32 deserialize_f64);
    forward!(
        deserialize_any deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_option deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier deserialize_ignored_any
    );

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Strict(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Strict(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(len, Strict(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, len, Strict(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Strict(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Strict(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! pass {
    ($($method:ident: $type:ty,)*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.0.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Strict<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    pass! {
        visit_bool: bool, visit_char: char,
        visit_i8: i8, visit_i16: i16, visit_i32: i32, visit_i64: i64, visit_i128: i128,
        visit_u8: u8, visit_u16: u16, visit_u32: u32, visit_u64: u64, visit_u128: u128,
        visit_f32: f32, visit_f64: f64,
        visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
        visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>,
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Strict(inner))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Strict(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Strict(access))
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Strict(access))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Strict(access))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Strict(inner))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Strict(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Strict<A> {
    type Error = A::Error;
    type Variant = Strict<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        self.0.variant_seed(Strict(seed)).map(|(value, variant)| (value, Strict(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Strict(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Strict(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Strict(visitor))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Boolean,
    Integer,
    Number,
}

impl Kind {
    fn wanted(self) -> &'static str {
        match self {
            Self::Boolean => "`true` or `false`",
            Self::Integer => "a whole number",
            Self::Number => "a number",
        }
    }
}

/// Lets a scalar of one kind through.
struct Only<V> {
    kind: Kind,
    visitor: V,
}

impl<V> Only<V> {
    // Not as `invalid_type`: the parser places that at the key, a custom error at the value.
    fn refuse<T, E: Error>(&self, found: &str) -> Result<T, E> {
        let wanted = self.kind.wanted();
        Err(E::custom(format_args!("expected {wanted}, found {found}")))
    }

    fn pass<'de, E: Error>(
        self,
        allowed: &[Kind],
        found: serde::de::Unexpected<'_>,
        then: impl FnOnce(V) -> Result<V::Value, E>,
    ) -> Result<V::Value, E>
    where
        V: Visitor<'de>,
    {
        if allowed.contains(&self.kind) { then(self.visitor) } else { self.refuse(&found.to_string()) }
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Only<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.wanted())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<V::Value, E> {
        let found = serde::de::Unexpected::Bool(value);
        self.pass(&[Kind::Boolean], found, |v| v.visit_bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<V::Value, E> {
        let found = serde::de::Unexpected::Signed(value);
        self.pass(&[Kind::Integer, Kind::Number], found, |v| v.visit_i64(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<V::Value, E> {
        let found = serde::de::Unexpected::Unsigned(value);
        self.pass(&[Kind::Integer, Kind::Number], found, |v| v.visit_u64(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<V::Value, E> {
        if self.kind == Kind::Integer && value.is_finite() {
            let what =
                if value.fract() == 0.0 { "which is too large or has an exponent" } else { "which is none" };
            return self.refuse(&format!("`{value}`, {what}"));
        }
        let found = serde::de::Unexpected::Float(value);
        self.pass(&[Kind::Number], found, |v| v.visit_f64(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<V::Value, E> {
        // Text that would be right without its quotes is the usual mistake.
        let bare = match self.kind {
            Kind::Boolean => matches!(value, "true" | "false" | "yes" | "no" | "on" | "off"),
            Kind::Integer | Kind::Number => value.parse::<f64>().is_ok(),
        };
        let value: String = value.chars().take(40).collect();
        self.refuse(&format!("the text `{value}`{}", if bare { "; write it without quotes" } else { "" }))
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.refuse("nothing")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _access: A) -> Result<V::Value, A::Error> {
        self.refuse("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, _access: A) -> Result<V::Value, A::Error> {
        self.refuse("a mapping")
    }
}
