//! The file as a tree of values that remember where they were written, so that every refusal can name its line.
//! Values given with `--set` are put into the same tree and remember that instead.

use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Place, ScenarioError};

/// One step from a value to one inside it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub value: Value,
    pub place: Place,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    /// From `--set`: the key that it is read for decides its type.
    Bare(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// What TOML has and no key takes: dates, integers beyond 64 bits.
    Other(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    /// Of the key; the value may start on a later line.
    pub place: Place,
    pub node: Node,
}

impl Node {
    /// Reads a whole file.
    pub fn parse(text: &str) -> Result<Node, ScenarioError> {
        let lines = Lines::new(text);
        let table = DeTable::parse(text).map_err(|error| {
            let (line, column) = lines.position(error.span().map_or(0, |span| span.start));
            ScenarioError::syntax(line, column, error.message())
        })?;
        let place = |span: std::ops::Range<usize>| Place::Line(lines.position(span.start).0);
        let root = Node { value: convert_table(table.get_ref(), &place), place: Place::Line(1) };
        Ok(root)
    }

    /// Reads the value of a `--set`: TOML where it looks like a table, a list or a quoted text, otherwise bare.
    pub fn parse_set(text: &str, place: &Place) -> Result<Node, String> {
        let text = text.trim();
        let value = if text.starts_with(['{', '[', '"', '\'']) {
            let value = DeValue::parse(text).map_err(|error| error.message().to_owned())?;
            convert(value.get_ref(), &|_| place.clone())
        } else {
            Value::Bare(text.to_owned())
        };
        Ok(Node { value, place: place.clone() })
    }

    /// The values that the value of a `--set` has for `ab` and `ba`, each as it is written there; none where it is one for both.
    pub fn parts_of_set(text: &str) -> Option<Vec<(String, String)>> {
        let text = text.trim();
        let value = DeValue::parse(text).ok().filter(|_| text.starts_with('{'))?;
        let DeValue::Table(table) = value.get_ref() else { return None };
        let part = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
            let key = key.get_ref().to_string();
            ["ab", "ba"].contains(&key.as_str()).then(|| Some((key, text.get(value.span())?.to_owned())))?
        };
        table.iter().map(part).collect::<Option<Vec<_>>>().filter(|parts| !parts.is_empty())
    }

    /// Whether it is a table of nothing.
    pub fn is_empty(&self) -> bool {
        matches!(&self.value, Value::Table(entries) if entries.is_empty())
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Table(entries) => entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node),
            _ => None,
        }
    }

    /// Puts `node` under `key` of a table; an existing value is replaced. Does nothing to what is not a table.
    pub fn put(&mut self, key: &str, node: Node) {
        if let Value::Table(entries) = &mut self.value {
            entries.retain(|entry| entry.key != key);
            entries.push(Entry { key: key.to_owned(), place: node.place.clone(), node });
        }
    }

    /// Takes `key` out of a table.
    pub fn remove(&mut self, key: &str) {
        if let Value::Table(entries) = &mut self.value {
            entries.retain(|entry| entry.key != key);
        }
    }

    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) | Value::Bare(text) => Some(text),
            _ => None,
        }
    }

    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// Where `steps` lead: the place, the dotted key as a user writes it, and the value if there is one.
    pub fn locate(&self, steps: &[Step]) -> (Place, String, Option<String>) {
        let (mut node, mut place, mut found) = (Some(self), self.place.clone(), None);
        let mut dotted: Vec<String> = Vec::new();
        for step in steps {
            let next = match step {
                Step::Key(key) => {
                    dotted.push(key.clone());
                    node.and_then(|node| node.entry(key)).map(|entry| (&entry.node, &entry.place))
                }
                Step::Index(index) => {
                    let item = node.and_then(|node| node.items().get(*index));
                    let name = item.and_then(|item| item.get("name")).and_then(Node::text);
                    dotted.push(name.map_or_else(|| (index + 1).to_string(), str::to_owned));
                    item.map(|item| (item, &item.place))
                }
            };
            // a value of --set that is split into a list has no nodes of its own: the whole stays the wrong value
            found = next.map(|(node, _)| node).or(found.filter(|node: &&Node| matches!(node.value, Value::Bare(_))));
            node = next.map(|(node, _)| node);
            if let Some((_, at)) = next {
                place = at.clone();
            }
        }
        (place, dotted.join("."), found.filter(|node| !matches!(node.value, Value::Table(_))).map(Node::to_string))
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match &self.value {
            Value::Text(text) => format!("{text:?}"),
            Value::Bare(text) | Value::Other(text) => text.clone(),
            Value::Integer(n) => n.to_string(),
            Value::Float(x) => format!("{x:?}"),
            Value::Bool(b) => b.to_string(),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(Node::to_string).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Table(_) => "{ … }".to_owned(),
        };
        if text.chars().count() > 60 {
            write!(f, "{}…", text.chars().take(60).collect::<String>())
        } else {
            f.write_str(&text)
        }
    }
}

fn convert_table(table: &DeTable<'_>, place: &dyn Fn(std::ops::Range<usize>) -> Place) -> Value {
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| Entry {
        key: std::borrow::Cow::<str>::to_string(key.get_ref()),
        place: place(key.span()),
        node: Node { value: convert(value.get_ref(), place), place: place(value.span()) },
    };
    Value::Table(table.iter().map(entry).collect())
}

fn convert(value: &DeValue<'_>, place: &dyn Fn(std::ops::Range<usize>) -> Place) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(n) => match i64::from_str_radix(n.as_str(), n.radix()) {
            Ok(n) => Value::Integer(n),
            Err(_) => Value::Other(n.to_string()),
        },
        DeValue::Float(x) => Value::Float(x.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(b) => Value::Bool(*b),
        DeValue::Datetime(time) => Value::Other(time.to_string()),
        DeValue::Array(items) => {
            let node = |item: &Spanned<_>| Node { value: convert(item.get_ref(), place), place: place(item.span()) };
            Value::List(items.iter().map(node).collect())
        }
        DeValue::Table(table) => convert_table(table, place),
    }
}

/// Turns byte offsets into lines and columns, both counted from 1.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { text, starts }
    }

    fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|&start| start <= offset).max(1);
        let start = self.starts[line - 1];
        let before = self.text.get(start..offset).map_or(0, |text| text.chars().count());
        (line, before + 1)
    }
}
