//! Values of Rust types from the nodes of a document.
//!
//! Stricter than the parser, which reads `'false'` into a `bool` and `'5'` into an integer since it knows what
//! is asked for: here booleans and numbers come from plain scalars alone. It is also the smaller half of the
//! program: the parser's own deserializer would be compiled anew for each type.

use std::fmt;
use std::vec;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};

use super::described::{Mistake, Scalar, is_null, scalar};
use super::tree::{At, Content, Node};
use super::words::{LIST, MAPPING, suggestion, wanted_and_found};

/// A node that becomes a value.
#[derive(Clone, Copy)]
pub(super) struct Typed<'n>(pub(super) &'n Node);

/// Why it does not.
#[derive(Debug)]
pub(super) struct Misfit {
    /// Where and what.
    pub(super) mistake: Mistake,
    /// What a value must be and what it is, for a message that begins with its key.
    must: Option<String>,
}

impl Misfit {
    fn new(message: String, hint: Option<String>) -> Self {
        Self { mistake: Mistake { at: None, message, hint }, must: None }
    }

    fn at(mut self, at: At) -> Self {
        self.mistake.at.get_or_insert(at);
        self
    }

    /// Of the value of this key, if the whole value is meant.
    fn of(mut self, key: &Node, value: &Node) -> Self {
        self = self.at(value.at);
        if let (Some(must), Some(key)) = (self.must.take(), key.text())
            && self.mistake.at == Some(value.at)
        {
            self.mistake.message = format!("`{key}` must be {must}");
        }
        self
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mistake.message)
    }
}

impl std::error::Error for Misfit {}

impl Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string(), None)
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let (wanted, found) = wanted_and_found(&found.to_string(), &wanted.to_string());
        let must = format!("{wanted}, found {found}");
        Self { must: Some(must.clone()), ..Self::new(format!("expected {must}"), None) }
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::invalid_type(found, wanted)
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        Self::new(format!("unknown value `{variant}`"), suggestion(variant, known))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::new(format!("unknown key `{field}`"), suggestion(field, known))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("missing key `{field}`"), None)
    }
}

impl Typed<'_> {
    fn scalar(self) -> Result<Scalar, Misfit> {
        match &*self.0.content {
            Content::Scalar { tagged: true, .. } => {
                Err(Misfit::custom("a tag (`!...`); write the value without it").at(self.0.at))
            }
            Content::Scalar { .. } | Content::List(_) | Content::Map(_) => Ok(scalar(self.0)),
        }
    }

    fn refused<T>(self, wanted: &str) -> Result<T, Misfit> {
        let found = match (&*self.0.content, self.scalar()?) {
            (Content::List(_), _) => "a list".to_owned(),
            (Content::Map(_), _) => "a mapping".to_owned(),
            (_, Scalar::Null) => "nothing".to_owned(),
            (_, Scalar::Switch(value)) => Unexpected::Bool(value).to_string(),
            (_, Scalar::Whole(value)) => format!("the number `{value}`"),
            (_, Scalar::Fraction(value)) => format!("`{value}`, {}", not_whole(value)),
            (Content::Scalar { text, .. }, Scalar::Text) => {
                let short: String = text.chars().take(40).collect();
                // Text that would be right without its quotes is the usual mistake.
                let bare = match wanted {
                    SWITCH => matches!(text.as_str(), "true" | "false" | "yes" | "no" | "on" | "off"),
                    WHOLE | NUMBER => text.parse::<f64>().is_ok(),
                    _ => false,
                };
                format!("the text `{short}`{}", if bare { "; write it without quotes" } else { "" })
            }
        };
        Err(Misfit::custom(format_args!("expected {wanted}, found {found}")).at(self.0.at))
    }

    fn whole<'de, V: Visitor<'de>>(self, value: i128, visitor: V) -> Result<V::Value, Misfit> {
        let visited = match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => visitor.visit_u64(value),
            (_, Ok(value)) => visitor.visit_i64(value),
            _ => return self.refused(WHOLE),
        };
        visited.map_err(|error: Misfit| error.at(self.0.at))
    }

    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.scalar()?;
        match self.0.text() {
            Some(text) if !is_null(self.0) => {
                visitor.visit_str(text).map_err(|error: Misfit| error.at(self.0.at))
            }
            _ => self.refused("text"),
        }
    }

    fn list<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let Content::List(list) = &*self.0.content else { return self.refused(LIST) };
        let mut entries = List(list.iter());
        visitor.visit_seq(&mut entries).map_err(|error| error.at(self.0.at))
    }

    fn mapping<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let Content::Map(_) = &*self.0.content else { return self.refused(MAPPING) };
        let mut entries = Entries { left: self.0.entries().into_iter(), value: None };
        visitor.visit_map(&mut entries).map_err(|error| error.at(self.0.at))
    }
}

fn not_whole(value: f64) -> &'static str {
    if !value.is_finite() {
        "which is not a finite number"
    } else if value.fract() == 0.0 {
        "which is too large or has an exponent"
    } else {
        "which is none"
    }
}

const SWITCH: &str = "`true` or `false`";
const WHOLE: &str = "a whole number";
const NUMBER: &str = "a number";

macro_rules! as_one {
    ($($method:ident)* => $as:ident) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            self.$as(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Typed<'_> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &*self.0.content {
            Content::List(_) => return self.list(visitor),
            Content::Map(_) => return self.mapping(visitor),
            Content::Scalar { .. } => {}
        }
        let visited = match self.scalar()? {
            Scalar::Null => visitor.visit_unit(),
            Scalar::Switch(value) => visitor.visit_bool(value),
            Scalar::Whole(value) => return self.whole(value, visitor),
            Scalar::Fraction(value) => visitor.visit_f64(value),
            Scalar::Text => visitor.visit_str(self.0.text().unwrap_or_default()),
        };
        visited.map_err(|error: Misfit| error.at(self.0.at))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.scalar()? {
            Scalar::Switch(value) => visitor.visit_bool(value),
            _ => self.refused(SWITCH),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.scalar()? {
            Scalar::Whole(value) => self.whole(value, visitor),
            _ => self.refused(WHOLE),
        }
    }

    as_one!(
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i128 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_u128 => deserialize_i64
    );

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.scalar()? {
            Scalar::Whole(value) => self.whole(value, visitor),
            Scalar::Fraction(value) if value.is_finite() => visitor.visit_f64(value),
            _ => self.refused(NUMBER),
        }
    }

    as_one!(deserialize_f32 => deserialize_f64);
    as_one!(
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
        deserialize_identifier => text
    );
    as_one!(deserialize_seq => list);
    as_one!(deserialize_map => mapping);

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if is_null(self.0) { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if is_null(self.0) { visitor.visit_unit() } else { self.refused("nothing") }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self).map_err(|error| error.at(self.0.at))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.list(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.list(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.mapping(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        let variant = match &*self.0.content {
            Content::Map(_) => match self.0.entries().as_slice() {
                [(name, value, _)] => Variant { name, value: Some(value) },
                _ => return self.refused("a word, or a mapping with one key"),
            },
            Content::Scalar { .. } | Content::List(_) => Variant { name: self.0, value: None },
        };
        visitor.visit_enum(variant).map_err(|error| error.at(self.0.at))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }
}

struct List<'n>(std::slice::Iter<'n, Node>);

impl<'de> SeqAccess<'de> for &mut List<'_> {
    type Error = Misfit;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Misfit> {
        let value = |node| seed.deserialize(Typed(node)).map_err(|error| error.at(node.at));
        self.0.next().map(value).transpose()
    }
}

struct Entries<'n> {
    left: vec::IntoIter<(&'n Node, &'n Node, bool)>,
    value: Option<(&'n Node, &'n Node)>,
}

impl<'de> MapAccess<'de> for &mut Entries<'_> {
    type Error = Misfit;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Misfit> {
        let Some((key, value, _)) = self.left.next() else { return Ok(None) };
        self.value = Some((key, value));
        seed.deserialize(Typed(key)).map(Some).map_err(|error| error.at(key.at))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Misfit> {
        let Some((key, value)) = self.value.take() else {
            return Err(Misfit::custom("a value without a key"));
        };
        seed.deserialize(Typed(value)).map_err(|error| error.of(key, value))
    }
}

/// A word, or a key with what belongs to it.
struct Variant<'n> {
    name: &'n Node,
    value: Option<&'n Node>,
}

impl<'n> Variant<'n> {
    fn value(&self) -> Result<Typed<'n>, Misfit> {
        let name = self.name.text().unwrap_or_default();
        let missing =
            || Misfit::new(format!("`{name}` needs a value (`{name}: ...`)"), None).at(self.name.at);
        self.value.map(Typed).ok_or_else(missing)
    }
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Misfit;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Misfit> {
        let name = match self.name.text() {
            Some(text) if !is_null(self.name) => text,
            _ => return Typed(self.name).refused("text"),
        };
        let variant =
            seed.deserialize(StrDeserializer::new(name)).map_err(|error: Misfit| error.at(self.name.at));
        Ok((variant?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Misfit;

    fn unit_variant(self) -> Result<(), Misfit> {
        self.value.map_or(Ok(()), |value| serde::Deserialize::deserialize(Typed(value)))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Misfit> {
        let value = self.value()?;
        seed.deserialize(value).map_err(|error| error.of(self.name, value.0))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.value()?.list(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.value()?.mapping(visitor)
    }
}
