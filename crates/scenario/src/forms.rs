//! The forms of the format that are not plain TOML types: a value for one or both directions, a queue, a duration with
//! a sign, and a controller's parameter.

use std::borrow::Cow;
use std::fmt;

use pathcast_base::{Bytes, Nanos, Rate};
use pathcast_link::{Codel, Fair, Format, FqCodel, GilbertElliott, Loss, Pie, Queue, Red};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, EnumAccess, MapAccess, VariantAccess, Visitor};

use crate::model::{Direction, Value};

/// One value for both directions, or one for each.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(untagged)]
pub(crate) enum Each<T> {
    /// For both directions.
    Same(T),
    /// Per direction.
    Split(Split<T>),
}

/// A value per direction; a direction left out keeps what it had (in a link: the default).
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Split<T> {
    /// From `a` to `b`.
    ab: Option<T>,
    /// From `b` to `a`.
    ba: Option<T>,
}

impl<T> Each<T> {
    /// The value for `direction`, if there is one.
    pub fn get(&self, direction: Direction) -> Option<&T> {
        match (self, direction) {
            (Each::Same(value), _) => Some(value),
            (Each::Split(split), Direction::Ab) => split.ab.as_ref(),
            (Each::Split(split), Direction::Ba) => split.ba.as_ref(),
        }
    }
}

/// `"50 packets"`, `"150KB"`, or a table with its `kind`.
#[derive(Clone, Debug)]
pub(crate) struct QueueForm(pub Queue);

const FORMS: &str = "\"50 packets\", \"150KB\", { kind = \"red\", min = 5, max = 15, limit = 50 }, \
                     { kind = \"fair\", packets = 100 }, { kind = \"codel\" }, { kind = \"fq_codel\" } or { kind = \"pie\" }";

fn drop_tail(text: &str) -> Option<Queue> {
    let text = text.trim();
    let count = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
    match count {
        Some(count) => count.trim().parse().ok().map(Queue::Packets),
        // a bare 0 is a size for `Bytes`, but here it would be 0 of what?
        None if text == "0" => None,
        None => text.parse::<Bytes>().ok().map(Queue::Bytes),
    }
}

impl<'de> Deserialize<'de> for QueueForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Kind {
            Red,
            Fair,
            Codel,
            FqCodel,
            Pie,
        }
        impl<'de> Visitor<'de> for Form {
            type Value = QueueForm;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(FORMS)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<QueueForm, E> {
                drop_tail(text).map(QueueForm).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
            fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<QueueForm, A::Error> {
                let (kind, table) = data.variant()?;
                let queue = match kind {
                    Kind::Red => Queue::Red(table.newtype_variant()?),
                    Kind::Fair => Queue::Fair(table.newtype_variant()?),
                    Kind::Codel => Queue::Codel(table.newtype_variant()?),
                    Kind::FqCodel => Queue::FqCodel(table.newtype_variant()?),
                    Kind::Pie => Queue::Pie(table.newtype_variant()?),
                };
                Ok(QueueForm(queue))
            }
        }
        deserializer.deserialize_enum("Queue", &["red", "fair", "codel", "fq_codel", "pie"], Form)
    }
}

impl JsonSchema for QueueForm {
    fn schema_name() -> Cow<'static, str> {
        "Queue".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        #[derive(JsonSchema)]
        #[schemars(tag = "kind", rename_all = "snake_case")]
        #[allow(dead_code)]
        enum Table {
            /// Random early detection.
            Red(Red),
            /// A queue per flow, in turns.
            Fair(Fair),
            /// Controlled delay.
            Codel(Codel),
            /// A queue per hash of the flow, each with controlled delay.
            FqCodel(FqCodel),
            /// Proportional integral controller.
            Pie(Pie),
        }
        json_schema!({
            "description": format!("where packets wait, in addition to the one in transmission: {FORMS}"),
            "anyOf": [
                { "type": "string", "pattern": r"^\d+(\.\d+)?\s*(packets?|B|kB|KB|KiB|MB|MiB|GB|GiB|TB|TiB)$" },
                Table::json_schema(generator),
            ]
        })
    }
}

/// `"5Mbit"` or `{ trace = "FILE", … }`.
#[derive(Clone, Debug)]
pub(crate) enum RateForm {
    Fixed(Rate),
    Trace(TraceForm),
}

/// A rate that follows a file.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceForm {
    /// The file; a relative path is relative to the scenario's file.
    pub trace: String,
    /// Where in the file the run begins; default 0s.
    pub offset: Option<Nanos>,
    /// What all rates are multiplied by; default 1.
    pub scale: Option<f64>,
    /// How the file is written; default: csv if its name ends so, else mahimahi.
    pub format: Option<Format>,
}

const RATE: &str = "a rate such as `100kbit`, `5Mbit` or `1.5Gbit`, or { trace = \"FILE\" }";

impl<'de> Deserialize<'de> for RateForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = RateForm;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(RATE)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<RateForm, E> {
                text.parse().map(RateForm::Fixed).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RateForm, A::Error> {
                TraceForm::deserialize(MapAccessDeserializer::new(map)).map(RateForm::Trace)
            }
        }
        deserializer.deserialize_enum("Rate", &[], Form)
    }
}

impl JsonSchema for RateForm {
    fn schema_name() -> Cow<'static, str> {
        "RateOrTrace".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": RATE,
            "anyOf": [generator.subschema_for::<Rate>(), generator.subschema_for::<TraceForm>()]
        })
    }
}

/// `0.01` or `{ kind = "gilbert-elliott", … }`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossForm(pub Loss);

const LOSS: &str = "a number from 0 to 1, or { kind = \"gilbert-elliott\", p = 0.01, r = 0.25 }";

impl<'de> Deserialize<'de> for LossForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        enum Kind {
            GilbertElliott,
        }
        /// The table without its kind, which the reader has taken out.
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            p: f64,
            r: f64,
            good: Option<f64>,
            bad: Option<f64>,
        }
        impl<'de> Visitor<'de> for Form {
            type Value = LossForm;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(LOSS)
            }
            fn visit_f64<E: de::Error>(self, p: f64) -> Result<LossForm, E> {
                Ok(LossForm(Loss::Random(p)))
            }
            fn visit_u64<E: de::Error>(self, p: u64) -> Result<LossForm, E> {
                self.visit_f64(p as f64)
            }
            fn visit_i64<E: de::Error>(self, p: i64) -> Result<LossForm, E> {
                self.visit_f64(p as f64)
            }
            fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<LossForm, A::Error> {
                let (Kind::GilbertElliott, table) = data.variant()?;
                let Table { p, r, good, bad } = table.newtype_variant()?;
                let (good, bad) = (good.unwrap_or(0.0), bad.unwrap_or(1.0));
                Ok(LossForm(Loss::Bursts(GilbertElliott { p, r, good, bad })))
            }
        }
        deserializer.deserialize_enum("Loss", &["gilbert-elliott"], Form)
    }
}

impl JsonSchema for LossForm {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": format!("loss on the wire: {LOSS}"),
            "anyOf": [{ "type": "number", "minimum": 0, "maximum": 1 }, GilbertElliott::json_schema(generator)]
        })
    }
}

/// A duration that may be negative [ns].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offset(pub i64);

const OFFSET: &str = "a duration such as `-3ms`, `250us` or `1.5s`";

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl Visitor<'_> for Form {
            type Value = Offset;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(OFFSET)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Offset, E> {
                let text = text.trim();
                let (size, sign) = text.strip_prefix('-').map_or((text, 1), |size| (size, -1));
                let size: Nanos = size.parse().map_err(E::custom)?;
                // what does not fit is out of range anyway
                Ok(Offset(sign * i64::try_from(size.0).unwrap_or(i64::MAX)))
            }
        }
        deserializer.deserialize_str(Form)
    }
}

impl JsonSchema for Offset {
    fn schema_name() -> Cow<'static, str> {
        "Offset".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = r"^-?\s*(0|(\d+(\.\d+)?\s*(ns|us|µs|ms|s|m|h))+)$";
        json_schema!({ "type": "string", "pattern": pattern, "description": OFFSET })
    }
}

// by hand, because serde's own for untagged enums does not say what it expected
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl Visitor<'_> for Form {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, true, false or a text in double quotes")
            }
            fn visit_bool<E: de::Error>(self, b: bool) -> Result<Value, E> {
                Ok(Value::Bool(b))
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Value, E> {
                Ok(Value::Integer(n))
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Value, E> {
                i64::try_from(n).map(Value::Integer).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(n), &self))
            }
            fn visit_f64<E: de::Error>(self, x: f64) -> Result<Value, E> {
                Ok(Value::Float(x))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Form)
    }
}
