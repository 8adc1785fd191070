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
    Field(Vec<Box<str>>),
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
            parts.push(TemplatePart::Field(parse_field_path(field)?));
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
            TemplatePart::Field(path) => path.first().map(|root| &**root),
        })
    }

    /// Renders the template for this parent, as far as the budget allows.
    pub fn render(&self, parent: &RawValue, budget: &ReadBudget) -> Result<String, ParentTemplateError> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Field(path) => {
                    let value = read_field(parent, path, budget)?.and_then(raw_json::scalar_text);
                    let missing = || ParentTemplateError::NoSuchField(format!("parent.{}", path.join(".")));
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
    path: &[Box<str>],
    budget: &ReadBudget,
) -> Result<Option<&'p RawValue>, ParentTemplateError> {
    let mut value = parent;
    for name in path {
        if !budget.spend(value.get().len()) {
            return Err(ParentTemplateError::TooLarge);
        }
        let Some(member) = raw_json::get_member(value, name) else { return Ok(None) };
        value = member;
    }
    Ok(Some(value))
}

fn parse_field_path(field: &str) -> Result<Vec<Box<str>>, ParentTemplateError> {
    let not_a_field = || ParentTemplateError::NotAField(field.to_owned());
    let path = field.trim().strip_prefix("parent.").ok_or_else(not_a_field)?;
    let segments: Vec<Box<str>> = path.split('.').map(Into::into).collect();
    if segments.iter().any(|s| s.is_empty()) { Err(not_a_field()) } else { Ok(segments) }
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
        for bad in ["{", "}", "{name}", "{parent.}", "{parent..x}", "a{parent.x"] {
            assert!(ParentTemplate::parse(bad).is_err(), "{bad}");
        }
    }
}
