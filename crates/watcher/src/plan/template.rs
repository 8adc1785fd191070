//! Templates such as `{parent.metadata.name}`: text with fields of the parent.

use std::fmt;

use serde_json::value::RawValue;

use super::read_budget::ReadBudget;
use crate::status::raw_json;

/// Text with references to fields of the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentTemplate {
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(Box<str>),
    Field { text: Box<str>, path: Vec<FieldStep> },
}

/// A step of the path to a field: `.name`, `['name']` or `[0]`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FieldStep {
    Member(Box<str>),
    Element(usize),
}

/// An invalid template, or one that cannot be rendered for a parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentTemplateError {
    /// A brace is not closed, or closed without being opened.
    Unbalanced(String),
    /// A reference does not begin with `parent.`, or has an empty segment.
    NotAField(String),
    /// The parent does not have this field, or it is not a string, number or boolean.
    NoSuchField(String),
    /// The parent is too large for what the policy reads of it.
    TooLarge,
}

/// Message about a parent on which the budget was spent.
pub(super) const TOO_LARGE: &str = "the parent is too large for so many templates and references";

impl fmt::Display for ParentTemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParentTemplateError::Unbalanced(text) => write!(f, "unbalanced braces in {text:?}"),
            ParentTemplateError::NotAField(text) => {
                write!(
                    f,
                    "{text:?} is not a field of the parent: write {{parent.metadata.name}}, {{parent.spec.…}}"
                )
            }
            ParentTemplateError::NoSuchField(path) => {
                write!(f, "the parent has no field {path} that is a string, number or boolean")
            }
            ParentTemplateError::TooLarge => f.write_str(TOO_LARGE),
        }
    }
}

impl std::error::Error for ParentTemplateError {}

impl ParentTemplate {
    /// Parses a template.
    pub fn parse(text: &str) -> Result<ParentTemplate, ParentTemplateError> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some(open) = rest.find(['{', '}']) {
            let unbalanced = || ParentTemplateError::Unbalanced(text.to_owned());
            let (before, after) = rest.split_at(open);
            if after.starts_with('}') {
                return Err(unbalanced());
            }
            let close = after.find('}').ok_or_else(unbalanced)?;
            let field = &after[1..close];
            if !before.is_empty() {
                parts.push(TemplatePart::Text(before.into()));
            }
            parts.push(TemplatePart::Field { text: field.trim().into(), path: parse_field_path(field)? });
            rest = &after[close + 1..];
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Text(rest.into()));
        }
        Ok(ParentTemplate { parts })
    }

    /// Returns `true` if it is the same text for every parent.
    pub fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, TemplatePart::Text(_)))
    }

    /// The top-level fields of the parent that it reads.
    pub fn root_fields(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Text(_) => None,
            TemplatePart::Field { path, .. } => match path.first() {
                Some(FieldStep::Member(root)) => Some(&**root),
                _ => None,
            },
        })
    }

    /// Renders the template for this parent, as far as the budget allows.
    pub fn render(&self, parent: &RawValue, budget: &ReadBudget) -> Result<String, ParentTemplateError> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Field { text, path } => {
                    let value = read_field(parent, path, budget)?.and_then(raw_json::scalar_text);
                    let missing = || ParentTemplateError::NoSuchField(text.to_string());
                    out.push_str(&value.ok_or_else(missing)?);
                }
            }
        }
        Ok(out)
    }
}

/// Reads a field. Each step of its path reads the whole value in which it is looked up.
fn read_field<'p>(
    parent: &'p RawValue,
    path: &[FieldStep],
    budget: &ReadBudget,
) -> Result<Option<&'p RawValue>, ParentTemplateError> {
    let mut value = parent;
    for step in path {
        if !budget.spend(value.get().len()) {
            return Err(ParentTemplateError::TooLarge);
        }
        let found = match step {
            FieldStep::Member(name) => raw_json::get_member(value, name),
            FieldStep::Element(index) => {
                raw_json::list_elements(value).and_then(|elements| elements.get(*index).copied())
            }
        };
        let Some(found) = found else { return Ok(None) };
        value = found;
    }
    Ok(Some(value))
}

/// Parses `parent.metadata.labels['app.kubernetes.io/name']` or `parent.spec.parts[0].name`.
fn parse_field_path(field: &str) -> Result<Vec<FieldStep>, ParentTemplateError> {
    let not_a_field = || ParentTemplateError::NotAField(field.to_owned());
    let mut rest = field.trim().strip_prefix("parent").ok_or_else(not_a_field)?;
    let mut path = Vec::new();
    while !rest.is_empty() {
        let (step, after) = parse_field_step(rest).ok_or_else(not_a_field)?;
        path.push(step);
        rest = after;
    }
    if matches!(path.first(), Some(FieldStep::Member(_))) { Ok(path) } else { Err(not_a_field()) }
}

/// Parses one step; returns it with the text that follows.
fn parse_field_step(text: &str) -> Option<(FieldStep, &str)> {
    if let Some(quoted) = text.strip_prefix("['") {
        let (name, after) = quoted.split_once("']")?;
        return (!name.is_empty()).then(|| (FieldStep::Member(name.into()), after));
    }
    if let Some(numbered) = text.strip_prefix('[') {
        let (index, after) = numbered.split_once(']')?;
        return Some((FieldStep::Element(index.parse().ok()?), after));
    }
    let named = text.strip_prefix('.')?;
    let (name, after) = named.split_at(named.find(['.', '[']).unwrap_or(named.len()));
    (!name.is_empty() && !name.contains(']')).then(|| (FieldStep::Member(name.into()), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(template: &str, parent: &str) -> Result<String, ParentTemplateError> {
        let raw = RawValue::from_string(parent.to_owned()).unwrap();
        ParentTemplate::parse(template)?.render(&raw, &ReadBudget::default())
    }

    #[test]
    fn fields_of_the_parent_are_put_into_text() {
        let parent = r#"{"metadata":{"name":"db"},"spec":{"shards":3,"tls":true}}"#;
        assert_eq!(render("{parent.metadata.name}-x-{parent.spec.shards}", parent).unwrap(), "db-x-3");
        assert_eq!(render("plain", parent).unwrap(), "plain");
        assert_eq!(render("{parent.spec.tls}", parent).unwrap(), "true");
    }

    #[test]
    fn a_field_may_be_an_element_of_a_list_or_have_any_name() {
        let parent = r#"{"metadata":{"labels":{"app.kubernetes.io/part-of":"shop"}},"spec":{"parts":[{"name":"a"},{"name":"b"}]}}"#;
        assert_eq!(render("{parent.metadata.labels['app.kubernetes.io/part-of']}", parent).unwrap(), "shop");
        assert_eq!(
            render("{parent.spec.parts[1].name}-{parent['spec'].parts[0]['name']}", parent).unwrap(),
            "b-a"
        );
        let error = render("{parent.spec.parts[2].name}", parent).unwrap_err();
        assert!(error.to_string().contains("no field parent.spec.parts[2].name"), "{error}");
    }

    #[test]
    fn what_is_not_there_is_an_error_that_names_it() {
        let error = render("{parent.spec.size}", "{}").unwrap_err();
        assert!(error.to_string().contains("parent.spec.size"), "{error}");
        assert!(render("{parent.spec}", r#"{"spec":{}}"#).is_err());
    }

    #[test]
    fn what_templates_read_of_a_parent_is_bounded_whatever_its_size() {
        let parent = format!(r#"{{"metadata":{{"name":"db"}},"spec":{{"text":"{}"}}}}"#, "x".repeat(1 << 20));
        let parent = RawValue::from_string(parent).unwrap();
        let template = ParentTemplate::parse("{parent.metadata.name}").unwrap();
        let budget = ReadBudget::default();
        let rendered = (0..1_000).take_while(|_| template.render(&parent, &budget).is_ok()).count();
        assert_eq!(rendered, 31, "each reads the parent once");
        assert_eq!(template.render(&parent, &budget), Err(ParentTemplateError::TooLarge));
        assert_eq!(budget.left_bytes(), 0);
    }

    #[test]
    fn bad_templates_are_refused() {
        for bad in [
            "{",
            "}",
            "{name}",
            "{parent}",
            "{parents.x}",
            "{parent.}",
            "{parent..x}",
            "a{parent.x",
            "{parent[0]}",
            "{parent.x[}",
            "{parent.x[]}",
            "{parent.x[-1]}",
            "{parent.x['']}",
            "{parent.x['a'}",
            "{parent.x]}",
        ] {
            assert!(ParentTemplate::parse(bad).is_err(), "{bad}");
        }
    }
}
