//! The manual says everything that the schema has, and its examples are good.

use std::collections::BTreeSet;

use pathcast_scenario::{Scenario, schema};
use serde_json::Value;

const MANUAL: &str = include_str!("../../../../docs/scenario.md");

fn keys(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                found.extend(properties.keys().cloned());
            }
            object.values().for_each(|value| keys(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

/// The words that a text value may be.
fn words(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::String(word)) = object.get("const") {
                found.insert(word.clone());
            }
            if let Some(Value::Array(list)) = object.get("enum") {
                found.extend(list.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            object.values().for_each(|value| words(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| words(value, found)),
        _ => {}
    }
}

#[test]
fn every_key_and_every_word_is_in_the_manual() {
    let (mut all, mut values) = (BTreeSet::new(), BTreeSet::new());
    keys(&schema(), &mut all);
    words(&schema(), &mut values);
    assert!(all.len() > 50 && values.len() > 12, "{all:?} {values:?}");
    let missing: Vec<&String> = all.iter().filter(|key| !MANUAL.contains(&format!("| `{key}` |"))).collect();
    assert!(missing.is_empty(), "not in a table of docs/scenario.md: {missing:?}");
    let unsaid: Vec<&String> = values.iter().filter(|word| !MANUAL.contains(word.as_str())).collect();
    assert!(unsaid.is_empty(), "not in docs/scenario.md: {unsaid:?}");
}

#[test]
fn the_schema_describes_every_key() {
    fn check(schema: &Value) {
        if let Some(Value::Object(properties)) = schema.get("properties") {
            for (key, value) in properties {
                assert!(value.get("description").is_some() || value.get("const").is_some(), "{key}: {value}");
            }
        }
        match schema {
            Value::Object(object) => object.values().for_each(check),
            Value::Array(list) => list.iter().for_each(check),
            _ => {}
        }
    }
    check(&schema());
}

#[test]
fn the_examples_are_good() {
    let examples: Vec<&str> = MANUAL.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() >= 3);
    for example in examples {
        if let Err(error) = Scenario::parse(example, &[]) {
            panic!("{error}\n{example}");
        }
    }
}
