//! `--set KEY=VALUE`: puts values into the tree before it is read, so that they meet the same checks as the file's.
//!
//! A key is a way into the file; the tables of a list are found by their name (a `change`: by its number, from 1).

use crate::error::{Place, Problem, ScenarioError};
use crate::tree::{Node, Value};

/// Keys that need no `flow.NAME.` in front while there is a single flow.
const SHORT: [&str; 3] = ["control", "subflows", "bytes"];
const PLAIN: [&str; 3] = ["name", "seed", "end"];
pub(crate) const LISTS: [&str; 6] = ["link", "path", "switch", "traffic", "flow", "change"];

/// Applies every set in its order; a later one wins.
pub(crate) fn apply(root: &mut Node, sets: &[(String, String)]) -> Result<(), ScenarioError> {
    for (key, value) in sets {
        let place = Place::Set(format!("{key}={value}"));
        set(root, key, value, &place).map_err(|problem| problem.placed(place, String::new(), None))?;
    }
    Ok(())
}

fn set(root: &mut Node, key: &str, value: &str, place: &Place) -> Result<(), Problem> {
    let mut steps: Vec<&str> = key.trim().split('.').collect();
    if steps.iter().any(|step| step.is_empty()) {
        return Err(Problem::new(format!("`{key}` is not a key: a name is missing")).allowed(forms(root)));
    }
    let single;
    if steps.len() == 1 && SHORT.contains(&steps[0]) {
        single = single_flow(root, steps[0])?;
        steps = vec!["flow", &single, steps[0]];
    }
    let new =
        Node::parse_set(value, place).map_err(|reason| Problem::new(format!("the value is not TOML: {reason}")))?;
    let keep = !value.trim().is_empty();
    let (table, rest) = target(root, &steps)?;
    insert(table, rest, keep.then_some(new), place)
}

/// The table that the key leads to and what is left of the key.
fn target<'a, 'k>(root: &'a mut Node, steps: &'k [&'k str]) -> Result<(&'a mut Node, &'k [&'k str]), Problem> {
    let section = steps[0];
    if LISTS.contains(&section) {
        let names = names(root, section);
        let [_, name, rest @ ..] = steps else {
            let example = names.first().map_or("NAME", String::as_str);
            return Err(Problem::new(format!("`{section}` needs a name and a key, as in `{section}.{example}.KEY`"))
                .allowed(names.join(", ")));
        };
        let Some(index) = names.iter().position(|known| known == name) else {
            return Err(Problem::new(format!("there is no {section} `{name}`")).choices(name, &names));
        };
        if rest.is_empty() {
            return Err(Problem::new(format!("a key of the {section} is missing, as in `{section}.{name}.KEY`")));
        }
        if rest == ["name"] {
            return Err(Problem::new("a name cannot be set: other tables refer to it"));
        }
        match root.get_mut(section).map(|node| &mut node.value) {
            Some(Value::List(items)) => Ok((&mut items[index], rest)),
            _ => unreachable!("`names` found it in a list"),
        }
    } else if Some(steps.len()) == depth(section) {
        Ok((root, steps))
    } else if depth(section).is_some() {
        Err(Problem::new(format!("`{}` is not a key that can be set", steps.join("."))).allowed(forms(root)))
    } else if PLAIN.contains(&section) && steps.len() == 1 {
        Ok((root, steps))
    } else {
        let known: Vec<&str> = LISTS.into_iter().chain(["tcp", "host", "control"]).chain(PLAIN).collect();
        let problem = Problem::new(format!("there is no key `{}`", steps.join("."))).choices(section, &known);
        Err(problem.allowed(forms(root)))
    }
}

/// How many steps lead to a value in a section of tables that are not a list.
fn depth(section: &str) -> Option<usize> {
    match section {
        "tcp" => Some(2),
        "host" | "control" => Some(3),
        _ => None,
    }
}

/// Follows `steps` through tables, making those that are missing, and puts the value there (none: takes it out).
fn insert(table: &mut Node, steps: &[&str], new: Option<Node>, place: &Place) -> Result<(), Problem> {
    let (key, rest) = steps.split_first().expect("the callers leave at least one step");
    if !matches!(table.value, Value::Table(_)) {
        return Err(Problem::new(format!("`{key}` is a key of a table, but the file has {table} there")));
    }
    if rest.is_empty() {
        match new {
            Some(node) => table.put(key, node),
            None => table.remove(key),
        }
        return Ok(());
    }
    let old = table.get(key).cloned();
    let split = |node: &Node| node.entry("ab").is_some() || node.entry("ba").is_some();
    let inner = match old {
        // `link.x.rate.ab=…` on `rate = "5Mbit"`: the other direction keeps what it had
        Some(old) if (rest == ["ab"] || rest == ["ba"]) && !split(&old) => {
            let mut table = Node { value: Value::Table(Vec::new()), place: place.clone() };
            table.put("ab", old.clone());
            table.put("ba", old);
            table
        }
        Some(old) => old,
        None => Node { value: Value::Table(Vec::new()), place: place.clone() },
    };
    if table.get(key).is_none_or(|_| rest == ["ab"] || rest == ["ba"]) {
        table.put(key, inner);
    }
    insert(table.get_mut(key).expect("just put there"), rest, new, place)?;
    // `link.x.rate.ab=` where the other direction has none either
    if (rest == ["ab"] || rest == ["ba"]) && table.get(key).is_some_and(Node::is_empty) {
        table.remove(key);
    }
    Ok(())
}

/// What `--set` calls the tables of a list.
fn names(root: &Node, section: &str) -> Vec<String> {
    let items = root.get(section).map_or(&[][..], Node::items);
    let name = |(i, item): (usize, &Node)| match (item.get("name").and_then(Node::text), section) {
        (Some(name), _) => name.to_owned(),
        (None, "traffic") => traffic_name(i),
        (None, _) => (i + 1).to_string(),
    };
    items.iter().enumerate().map(name).collect()
}

/// What the `i`th traffic (from 0) is called if the file does not say.
pub(crate) fn traffic_name(i: usize) -> String {
    format!("traffic{}", i + 1)
}

fn single_flow(root: &Node, key: &str) -> Result<String, Problem> {
    let flows = names(root, "flow");
    match &flows[..] {
        [one] => Ok(one.clone()),
        [] => Err(Problem::new(format!("`{key}` is short for `flow.NAME.{key}`, but the scenario has no flow"))),
        _ => {
            let long: Vec<String> = flows.iter().map(|name| format!("flow.{name}.{key}")).collect();
            Err(Problem::new(format!("`{key}` is only for scenarios with a single flow")).allowed(long.join(", ")))
        }
    }
}

/// The forms that a key can take in this file.
fn forms(root: &Node) -> String {
    let mut forms: Vec<String> = PLAIN.iter().map(|&key| key.to_owned()).collect();
    if names(root, "flow").len() == 1 {
        forms.extend(SHORT.iter().map(|&key| key.to_owned()));
    }
    for section in LISTS {
        forms.extend(names(root, section).iter().map(|name| format!("{section}.{name}.KEY")));
    }
    forms.extend(["tcp.KEY", "host.client.KEY", "host.server.KEY", "control.NAME.KEY"].map(str::to_owned));
    forms.join(", ")
}

/// The line of a dotted key in a tree.
pub(crate) fn line_of(root: &Node, key: &str) -> Option<usize> {
    let mut steps: Vec<&str> = key.split('.').collect();
    let mut node = root;
    if LISTS.contains(&steps[0]) {
        let name = steps.get(1)?;
        let index = names(root, steps[0]).iter().position(|known| known == name)?;
        node = root.get(steps[0])?.items().get(index)?;
        steps.drain(..2);
    }
    let mut place = &node.place;
    for step in steps {
        let entry = node.entry(step)?;
        (node, place) = (&entry.node, &entry.place);
    }
    match place {
        Place::Line(line) => Some(*line),
        Place::Set(_) => None,
    }
}
