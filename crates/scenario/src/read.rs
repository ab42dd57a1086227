//! Serde on the tree: errors come back with the steps that lead to them, and the key decides the type of a `--set`.
//!
//! Two conventions of the format live here: a table that describes one of several kinds names it in `kind`, and
//! `Each` is a value for both directions or a table with `ab` and `ba`.

use std::fmt;

use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};

use crate::error::Problem;
use crate::tree::{Entry, Node, Step, Value};

/// Reads `T` from a node; the problem's steps start at that node.
pub(crate) fn read<'a, T: Deserialize<'a>>(node: &'a Node) -> Result<T, Problem> {
    T::deserialize(Reader { node, tagged: false })
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl std::error::Error for Problem {}

/// In the user's words what serde expected in Rust's.
fn expectation(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    match text.as_str() {
        "u64" | "usize" => "a whole number, 0 or more".into(),
        "u32" => format!("a whole number, 0 to {}", u32::MAX),
        "u8" => "a whole number, 0 to 255".into(),
        "f32" | "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a string" => "a text in double quotes".into(),
        "a sequence" => "a list, such as [\"path1\", \"path2\"]".into(),
        "a map" => "a table".into(),
        other if other.starts_with("struct ") => "a table".into(),
        other => other.into(),
    }
}

impl Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Problem::new(message.to_string())
    }
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Problem::new("wrong type of value").allowed(expectation(expected))
    }
    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Problem::new("value out of range").allowed(expectation(expected))
    }
    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Problem::new("unknown value").choices(variant, expected)
    }
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Problem::new("unknown key").choices(field, expected)
    }
    fn missing_field(field: &'static str) -> Self {
        Problem::new(format!("the key `{field}` is missing"))
    }
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    node: &'a Node,
    /// The table's `kind` has been read already.
    tagged: bool,
}

impl<'a> Reader<'a> {
    fn wrong(&self, visitor: &dyn Expected) -> Problem {
        Problem::invalid_type(Unexpected::Other("value"), visitor)
    }

    fn bare(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Bare(text) => Some(text),
            _ => None,
        }
    }
}

macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            match self.bare() {
                Some(text) => match (text.parse(), text.parse()) {
                    (Ok(n), _) => visitor.visit_i64(n),
                    (_, Ok(x)) => visitor.visit_f64(x),
                    _ => Err(self.wrong(&visitor)),
                },
                None => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match &self.node.value {
            Value::Text(text) => visitor.visit_str(text),
            Value::Bare(text) => match (text.parse(), text.parse(), text.parse()) {
                (Ok(n), _, _) => visitor.visit_i64(n),
                (_, Ok(b), _) => visitor.visit_bool(b),
                (_, _, Ok(x)) => visitor.visit_f64(x),
                _ => visitor.visit_str(text),
            },
            Value::Integer(n) => match u64::try_from(*n) {
                Ok(n) => visitor.visit_u64(n),
                Err(_) => visitor.visit_i64(*n),
            },
            Value::Float(x) => visitor.visit_f64(*x),
            Value::Bool(b) => visitor.visit_bool(*b),
            Value::Other(_) => Err(self.wrong(&visitor)),
            Value::List(items) => visitor.visit_seq(List { items, next: 0 }),
            Value::Table(entries) => visitor.visit_map(Table { entries, next: 0, tagged: self.tagged }),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.bare() {
            Some(text) => visitor.visit_str(text),
            None => self.deserialize_any(visitor),
        }
    }
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.deserialize_str(visitor)
    }
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.deserialize_str(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.bare() {
            // `a,b` is short for a list of texts
            Some(text) => visitor.visit_seq(SeqDeserializer::new(text.split(',').map(str::trim))),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let node = self.node;
        match &node.value {
            _ if name == "Each" => {
                let split = node.entry("ab").is_some() || node.entry("ba").is_some();
                visitor.visit_enum(Kind { node, variant: if split { "split" } else { "same" }, tagged: false })
            }
            Value::Text(text) | Value::Bare(text) if name == "Rate" => visitor.visit_str(text),
            Value::Table(entries) if name == "Rate" => visitor.visit_map(Table { entries, next: 0, tagged: false }),
            // a queue is either a text or a table with a kind, a loss a number or such a table
            Value::Text(text) | Value::Bare(text) if name == "Queue" => visitor.visit_str(text),
            Value::Bare(_) | Value::Integer(_) | Value::Float(_) if name == "Loss" => self.deserialize_f64(visitor),
            Value::Text(_) if name == "Loss" => Err(self.wrong(&visitor)),
            Value::Text(text) | Value::Bare(text) => visitor.visit_enum(Kind { node, variant: text, tagged: false }),
            Value::Table(_) => match node.get("kind") {
                Some(kind) => match kind.text() {
                    Some(text) => visitor.visit_enum(Kind { node, variant: text, tagged: true }),
                    None => Err(self.wrong(&"a string").within(Step::Key("kind".into()))),
                },
                None => Err(Problem::missing_field("kind").allowed(variants.join(", "))),
            },
            _ if ["Queue", "Loss", "Rate"].contains(&name) => Err(self.wrong(&visitor)),
            _ => Err(self.wrong(&visitor).allowed(variants.join(", "))),
        }
    }

    serde::forward_to_deserialize_any! {
        bool char bytes byte_buf unit unit_struct tuple tuple_struct map struct ignored_any
    }
}

struct List<'a> {
    items: &'a [Node],
    next: usize,
}

impl<'a> SeqAccess<'a> for List<'a> {
    type Error = Problem;
    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Problem> {
        let Some(node) = self.items.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(Reader { node, tagged: false }).map(Some).map_err(|problem| problem.within(Step::Index(index)))
    }
}

struct Table<'a> {
    entries: &'a [Entry],
    next: usize,
    tagged: bool,
}

impl<'a> MapAccess<'a> for Table<'a> {
    type Error = Problem;
    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Problem> {
        while self.tagged && self.entries.get(self.next).is_some_and(|entry| entry.key == "kind") {
            self.next += 1;
        }
        let Some(entry) = self.entries.get(self.next) else { return Ok(None) };
        self.next += 1;
        let key: StrDeserializer<'_, Problem> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|problem| problem.within(Step::Key(entry.key.clone())))
    }
    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        let entry = &self.entries[self.next - 1];
        seed.deserialize(Reader { node: &entry.node, tagged: false })
            .map_err(|problem| problem.within(Step::Key(entry.key.clone())))
    }
}

/// One of several kinds: `variant` says which, `node` holds it.
struct Kind<'a> {
    node: &'a Node,
    variant: &'a str,
    tagged: bool,
}

impl<'a> EnumAccess<'a> for Kind<'a> {
    type Error = Problem;
    type Variant = Self;
    fn variant_seed<V: DeserializeSeed<'a>>(self, seed: V) -> Result<(V::Value, Self), Problem> {
        let name: StrDeserializer<'_, Problem> = self.variant.into_deserializer();
        match seed.deserialize(name) {
            Ok(value) => Ok((value, self)),
            Err(problem) if self.tagged => Err(problem.within(Step::Key("kind".into()))),
            Err(problem) => Err(problem),
        }
    }
}

impl<'a> VariantAccess<'a> for Kind<'a> {
    type Error = Problem;
    fn unit_variant(self) -> Result<(), Problem> {
        Ok(())
    }
    fn newtype_variant_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, Problem> {
        seed.deserialize(Reader { node: self.node, tagged: self.tagged })
    }
    fn tuple_variant<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, Problem> {
        Err(Problem::invalid_type(Unexpected::TupleVariant, &visitor))
    }
    fn struct_variant<V: Visitor<'a>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Problem> {
        Reader { node: self.node, tagged: self.tagged }.deserialize_any(visitor)
    }
}
