//! `{parent.metadata.name}`: text with fields of the parent in it.

use std::fmt;

use serde_json::value::RawValue;

use crate::status::raw;

/// Text with references to fields of the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Field(Vec<Box<str>>),
}

/// Why a template is not one, or cannot be rendered for a parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// A brace is not closed, or closed without having been opened.
    Unbalanced(String),
    /// A reference does not begin with `parent.`, or has an empty part.
    NotAField(String),
    /// The parent has no such field, or it is not a string, number or boolean.
    NoSuchField(String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::Unbalanced(text) => write!(f, "unbalanced braces in {text:?}"),
            TemplateError::NotAField(text) => {
                write!(
                    f,
                    "{text:?} is not a field of the parent: write {{parent.metadata.name}}, {{parent.spec.…}}"
                )
            }
            TemplateError::NoSuchField(path) => {
                write!(f, "the parent has no field {path} that can be put into text")
            }
        }
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some(open) = rest.find(['{', '}']) {
            let unbalanced = || TemplateError::Unbalanced(text.to_owned());
            let (before, after) = rest.split_at(open);
            if after.starts_with('}') {
                return Err(unbalanced());
            }
            let close = after.find('}').ok_or_else(unbalanced)?;
            let field = &after[1..close];
            if !before.is_empty() {
                parts.push(Part::Text(before.into()));
            }
            parts.push(Part::Field(path(field)?));
            rest = &after[close + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.into()));
        }
        Ok(Template { parts })
    }

    /// The text for this parent.
    pub fn render(&self, parent: &RawValue) -> Result<String, TemplateError> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Field(path) => {
                    let value = raw::at(parent, path).and_then(raw::scalar);
                    let missing = || TemplateError::NoSuchField(format!("parent.{}", path.join(".")));
                    out.push_str(&value.ok_or_else(missing)?);
                }
            }
        }
        Ok(out)
    }
}

fn path(field: &str) -> Result<Vec<Box<str>>, TemplateError> {
    let not_a_field = || TemplateError::NotAField(field.to_owned());
    let path = field.trim().strip_prefix("parent.").ok_or_else(not_a_field)?;
    let segments: Vec<Box<str>> = path.split('.').map(Into::into).collect();
    if segments.iter().any(|s| s.is_empty()) { Err(not_a_field()) } else { Ok(segments) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(template: &str, parent: &str) -> Result<String, TemplateError> {
        let raw = RawValue::from_string(parent.to_owned()).unwrap();
        Template::parse(template)?.render(&raw)
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
    fn bad_templates_are_refused() {
        for bad in ["{", "}", "{name}", "{parent.}", "{parent..x}", "a{parent.x"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }
}
