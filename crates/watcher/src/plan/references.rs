//! `spec.resourceRefs[*]`: where in a parent its children are named.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::status::raw;

/// More references than this in one parent are a mistake, or an attack.
const MOST: usize = 10_000;

/// A path to references in the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct References {
    text: Box<str>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(Box<str>),
    Each,
    At(usize),
}

/// One reference, as Kubernetes' own and Crossplane's are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reference {
    /// `apiVersion`; some references have `apiGroup` instead, some neither.
    pub api_version: Option<String>,
    /// `apiGroup`.
    pub api_group: Option<String>,
    /// `kind`; where it is left out, that of the policy is meant.
    pub kind: Option<String>,
    /// `namespace`.
    pub namespace: Option<String>,
    /// `name`; a reference without one refers to nothing yet.
    pub name: Option<String>,
}

/// Why a path is none, or leads to something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferencesError {
    /// Not a path.
    NotAPath(String),
    /// What is there is not a reference.
    NotAReference(String),
    /// More than are taken.
    TooMany(String),
}

impl fmt::Display for ReferencesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReferencesError::NotAPath(text) => {
                write!(f, "{text:?} is not a path: write spec.resourceRefs[*], spec.claimRef, spec.parts[0]")
            }
            ReferencesError::NotAReference(path) => {
                write!(f, "{path} of the parent leads to something that is no reference with a name")
            }
            ReferencesError::TooMany(path) => {
                write!(f, "{path} of the parent has more than {MOST} references")
            }
        }
    }
}

impl std::error::Error for ReferencesError {}

impl References {
    /// Reads a path: members by dots, `[*]` for each element of a list, `[0]` for one.
    pub fn parse(text: &str) -> Result<References, ReferencesError> {
        let wrong = || ReferencesError::NotAPath(text.to_owned());
        let mut steps = Vec::new();
        for part in text.strip_prefix("parent.").unwrap_or(text).split('.') {
            let (name, mut rest) = part.find('[').map_or((part, ""), |at| part.split_at(at));
            if name.is_empty() || name.contains(']') {
                return Err(wrong());
            }
            steps.push(Step::Member(name.into()));
            while !rest.is_empty() {
                let (inside, after) =
                    rest.strip_prefix('[').and_then(|r| r.split_once(']')).ok_or_else(wrong)?;
                steps.push(match inside {
                    "*" => Step::Each,
                    number => Step::At(number.parse().map_err(|_| wrong())?),
                });
                rest = after;
            }
        }
        Ok(References { text: text.into(), steps })
    }

    /// The references of this parent; none where nothing is at the end of the path.
    pub fn read(&self, parent: &RawValue) -> Result<Vec<Reference>, ReferencesError> {
        let other = || ReferencesError::NotAReference(self.text.to_string());
        let mut at = vec![parent];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in at.into_iter().filter(|value| !raw::is_null(value)) {
                match step {
                    Step::Member(_) if !value.get().starts_with('{') => return Err(other()),
                    Step::Member(name) => next.extend(raw::member(value, name)),
                    Step::Each => next.append(&mut raw::elements(value).ok_or_else(other)?),
                    Step::At(index) => next.extend(raw::elements(value).ok_or_else(other)?.get(*index)),
                }
            }
            at = next;
            if at.len() > MOST {
                return Err(ReferencesError::TooMany(self.text.to_string()));
            }
        }
        let read = |value: &RawValue| serde_json::from_str(value.get()).map_err(|_| other());
        at.into_iter().filter(|value| !raw::is_null(value)).map(read).collect()
    }
}

impl Reference {
    /// Does it mean an object of this group and kind?
    pub(crate) fn means(&self, group: &str, kind: &str) -> bool {
        let own = self.api_group.as_deref().or_else(|| {
            let version = self.api_version.as_deref()?;
            Some(version.split_once('/').map_or("", |(group, _)| group))
        });
        own.is_none_or(|own| own == group) && self.kind.as_deref().is_none_or(|own| own == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, parent: &str) -> Result<Vec<String>, ReferencesError> {
        let parent = RawValue::from_string(parent.to_owned()).unwrap();
        let references = References::parse(path)?.read(&parent)?;
        Ok(references.into_iter().filter_map(|reference| reference.name).collect())
    }

    const PARENT: &str = r#"{"spec":{"resourceRefs":[{"apiVersion":"a/v1","kind":"A","name":"x"},{"kind":"B","name":"y"}],
        "claimRef":{"name":"c"},"secret":"s","groups":[{"refs":[{"name":"p"}]},{"refs":[{"name":"q"},{"kind":"C"}]}]}}"#;

    #[test]
    fn paths_lead_through_members_and_lists() {
        for (path, names) in [
            ("spec.resourceRefs[*]", &["x", "y"][..]),
            ("parent.spec.resourceRefs[1]", &["y"]),
            ("spec.claimRef", &["c"]),
            ("spec.groups[*].refs[*]", &["p", "q"]),
            ("spec.nothing[*].at.all", &[]),
        ] {
            assert_eq!(read(path, PARENT).unwrap(), names, "{path}");
        }
    }

    #[test]
    fn what_is_no_reference_is_an_error_that_names_the_path() {
        for path in [
            "spec.secret",
            "spec.secret[*]",
            "spec.claimRef[0]",
            "spec.secret.name",
            "spec.resourceRefs.name",
        ] {
            let error = read(path, PARENT).unwrap_err();
            assert!(error.to_string().contains(path), "{error}");
        }
        for path in ["", "spec..x", "spec.a[", "spec.a[x]", "[*]", "spec.a]"] {
            assert!(References::parse(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_reference_means_what_it_does_not_deny() {
        let reference: Reference =
            serde_json::from_str(r#"{"apiVersion":"apps/v1","kind":"Deployment","name":"x"}"#).unwrap();
        assert!(reference.means("apps", "Deployment"));
        assert!(!reference.means("apps", "StatefulSet") && !reference.means("", "Deployment"));
        assert!(Reference::default().means("apps", "Deployment"));
    }
}
