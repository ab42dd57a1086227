//! A scenario's text, read once, from which scenarios are made with other values each.

use std::path::{Path, PathBuf};

use pathcast_link::Trace;

use crate::error::{Problem, ScenarioError};
use crate::model::Scenario;
use crate::trace::Traces;
use crate::tree::{Node, Step, Value};
use crate::{check, read, sets};

/// The text as a tree, and the files of rates that it names, each of which is read once.
#[derive(Debug)]
pub struct Template {
    root: Node,
    name: String,
    file: Option<PathBuf>,
    traces: Traces,
}

impl Template {
    /// As [`Scenario::parse_in`].
    ///
    /// # Errors
    /// Text that is no TOML.
    pub fn parse_in(text: &str, base: Option<&Path>) -> Result<Template, ScenarioError> {
        Template::named(text, "scenario", base)
    }

    /// The same; `name` is what the scenario is called if the text does not say it.
    ///
    /// # Errors
    /// Text that is no TOML.
    pub fn named(text: &str, name: &str, base: Option<&Path>) -> Result<Template, ScenarioError> {
        Ok(Template { root: Node::parse(text)?, name: name.into(), file: None, traces: Traces::new(base) })
    }

    /// As [`Scenario::from_text`].
    ///
    /// # Errors
    /// Text that is no TOML.
    pub fn from_text(text: &str, file: Option<&Path>) -> Result<Template, ScenarioError> {
        let Some(file) = file else { return Template::parse_in(text, None) };
        let name = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let root = Node::parse(text).map_err(|error| error.in_file(file))?;
        Ok(Template { root, name, file: Some(file.into()), traces: Traces::new(file.parent()) })
    }

    /// The scenario with `sets` over it, the same as if the text were read again.
    ///
    /// # Errors
    /// What its checks refuse.
    pub fn scenario(&self, sets: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        self.build(sets).map_err(|error| match &self.file {
            Some(file) => error.in_file(file),
            None => error,
        })
    }

    /// The same, with the files of these traces read again.
    pub(crate) fn again<'a>(
        &self,
        traces: impl Iterator<Item = &'a Trace>,
        sets: &[(String, String)],
    ) -> Result<Scenario, ScenarioError> {
        let before: Vec<_> = traces.filter_map(|trace| self.traces.forget(trace)).collect();
        let found = self.scenario(sets);
        if found.is_err() {
            self.traces.keep(before);
        }
        found
    }

    fn build(&self, sets: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        let mut root = self.root.clone();
        lists(&root).map_err(|problem| problem.finish(&root))?;
        sets::apply(&mut root, sets)?;
        let file = read::read(&root).map_err(|problem| problem.finish(&root))?;
        check::check(&file, &self.name, &self.traces).map_err(|problem| problem.finish(&root))
    }
}

/// Refuses what is no list where tables are: `[link]` in place of `[[link]]`.
fn lists(root: &Node) -> Result<(), Problem> {
    for section in sets::LISTS {
        let Some(node) = root.get(section).filter(|node| !matches!(node.value, Value::List(_))) else { continue };
        let mut problem = Problem::new("wrong type of value").within(Step::Key(section.into()));
        if matches!(node.value, Value::Table(_)) {
            problem.hint = Some(format!("write [[{section}]] in place of [{section}]"));
        }
        return Err(problem.allowed(format!("a list of tables, each begins with [[{section}]]")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[[link]]\nname = \"l\"\na = \"client\"\nb = \"server\"\nrate = { trace = \"TRACE\" }\n\
                        [[path]]\nname = \"p\"\nlinks = [\"l\"]\n";

    fn sets(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    #[test]
    fn scenarios_of_a_template_are_those_of_its_text_and_files_are_read_once() {
        let trace = std::env::temp_dir().join(format!("pathcast-template-{}.csv", std::process::id()));
        std::fs::write(&trace, "0,5Mbit\n1,2Mbit\n").unwrap();
        let text = TEXT.replace("TRACE", trace.to_str().unwrap());
        let template = Template::parse_in(&text, None).unwrap();
        let all = [sets(&[("seed", "7"), ("link.l.delay", "3ms")]), sets(&[]), sets(&[("link.l.loss", "0.1")])];
        let fresh: Vec<Scenario> = all.iter().map(|sets| Scenario::parse(&text, sets).unwrap()).collect();
        assert_eq!(template.scenario(&all[0]).unwrap(), fresh[0]);
        std::fs::remove_file(&trace).unwrap();
        // a refusal leaves the template as it was
        let refusal = template.scenario(&sets(&[("link.l.loss", "2")])).unwrap_err().to_string();
        assert!(refusal.contains("link.l.loss=2"), "{refusal}");
        for (sets, fresh) in all.iter().zip(&fresh) {
            assert_eq!(template.scenario(sets).unwrap(), *fresh);
        }
    }

    #[test]
    fn of_a_file_it_names_the_file() {
        let file = Path::new("/nowhere/lines.toml");
        let template = Template::from_text(&TEXT.replace("{ trace = \"TRACE\" }", "\"1Mbit\""), Some(file)).unwrap();
        assert_eq!(template.scenario(&[]).unwrap().name, "lines");
        let wrong = Template::from_text("seed = \"x\"", Some(file)).unwrap().scenario(&[]).unwrap_err().to_string();
        assert!(wrong.contains("/nowhere/lines.toml"), "{wrong}");
        assert!(Template::from_text("[[", Some(file)).unwrap_err().to_string().contains("/nowhere/lines.toml"));
    }
}
