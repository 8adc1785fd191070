//! Reference paths such as `spec.resourceRefs[*]`: fields of a parent that name its children.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::read_budget::ReadBudget;
use super::template::TOO_LARGE;
use crate::status::raw_json;

/// Largest number of references read from one parent; more are a mistake or an attack.
const MAX_PARENT_REFERENCES: usize = 10_000;

/// A path to the references in a parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencePath {
    text: Box<str>,
    steps: Vec<ReferencePathStep>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ReferencePathStep {
    Member(Box<str>),
    Each,
    At(usize),
}

/// One reference, in the format of Kubernetes or of Crossplane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChildReference {
    /// `apiVersion`; some references have `apiGroup` instead, some have neither.
    pub api_version: Option<String>,
    /// `apiGroup`.
    pub api_group: Option<String>,
    /// `kind`; the policy's kind if absent.
    pub kind: Option<String>,
    /// `namespace`.
    pub namespace: Option<String>,
    /// `name`; a reference without a name refers to nothing yet.
    pub name: Option<String>,
}

/// An invalid path, or a path that does not lead to references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferencePathError {
    /// The text is not a path.
    NotAPath(String),
    /// The value at the path is not a reference.
    NotAReference(String),
    /// There are more references than allowed.
    TooMany(String),
    /// The parent is too large for what the policy reads of it.
    TooLarge,
}

impl fmt::Display for ReferencePathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReferencePathError::NotAPath(text) => {
                write!(f, "{text:?} is not a path: write spec.resourceRefs[*], spec.claimRef, spec.parts[0]")
            }
            ReferencePathError::NotAReference(path) => {
                write!(f, "{path} of the parent does not lead to references with a name")
            }
            ReferencePathError::TooMany(path) => {
                write!(f, "{path} of the parent has more than {MAX_PARENT_REFERENCES} references")
            }
            ReferencePathError::TooLarge => f.write_str(TOO_LARGE),
        }
    }
}

impl std::error::Error for ReferencePathError {}

impl ReferencePath {
    /// Parses a path: members separated by dots, `[*]` for each element of a list, `[0]` for one.
    pub fn parse(text: &str) -> Result<ReferencePath, ReferencePathError> {
        let wrong = || ReferencePathError::NotAPath(text.to_owned());
        let mut steps = Vec::new();
        for part in text.strip_prefix("parent.").unwrap_or(text).split('.') {
            let (name, mut rest) = part.find('[').map_or((part, ""), |at| part.split_at(at));
            if name.is_empty() || name.contains(']') {
                return Err(wrong());
            }
            steps.push(ReferencePathStep::Member(name.into()));
            while !rest.is_empty() {
                let (inside, after) =
                    rest.strip_prefix('[').and_then(|r| r.split_once(']')).ok_or_else(wrong)?;
                steps.push(match inside {
                    "*" => ReferencePathStep::Each,
                    number => ReferencePathStep::At(number.parse().map_err(|_| wrong())?),
                });
                rest = after;
            }
        }
        Ok(ReferencePath { text: text.into(), steps })
    }

    /// Reads the references of a parent, as far as the budget allows; none if the path leads to nothing.
    pub fn read_references(
        &self,
        parent: &RawValue,
        budget: &ReadBudget,
    ) -> Result<Vec<ChildReference>, ReferencePathError> {
        let other = || ReferencePathError::NotAReference(self.text.to_string());
        let mut at = vec![parent];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in at.into_iter().filter(|value| !raw_json::is_null(value)) {
                if !budget.spend(value.get().len()) {
                    return Err(ReferencePathError::TooLarge);
                }
                match step {
                    ReferencePathStep::Member(_) if !value.get().starts_with('{') => return Err(other()),
                    ReferencePathStep::Member(name) => next.extend(raw_json::get_member(value, name)),
                    ReferencePathStep::Each => {
                        next.append(&mut raw_json::list_elements(value).ok_or_else(other)?);
                    }
                    ReferencePathStep::At(index) => {
                        next.extend(raw_json::list_elements(value).ok_or_else(other)?.get(*index));
                    }
                }
            }
            at = next;
            if at.len() > MAX_PARENT_REFERENCES {
                return Err(ReferencePathError::TooMany(self.text.to_string()));
            }
        }
        let read = |value: &RawValue| serde_json::from_str(value.get()).map_err(|_| other());
        at.into_iter().filter(|value| !raw_json::is_null(value)).map(read).collect()
    }
}

impl ChildReference {
    /// Returns `true` if the reference is to an object of this group and kind.
    pub(crate) fn refers_to(&self, group: &str, kind: &str) -> bool {
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

    fn read(path: &str, parent: &str) -> Result<Vec<String>, ReferencePathError> {
        let parent = RawValue::from_string(parent.to_owned()).unwrap();
        let references = ReferencePath::parse(path)?.read_references(&parent, &ReadBudget::default())?;
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
            assert!(ReferencePath::parse(path).is_err(), "{path}");
        }
    }

    #[test]
    fn what_a_path_reads_of_a_parent_is_bounded_whatever_its_length() {
        let parent = format!(r#"{{"a":{}1{}}}"#, r#"{"a":"#.repeat(100), "}".repeat(100));
        let filled = parent.replace("1}", &format!("\"{}\"}}", "x".repeat(1 << 20)));
        let filled = RawValue::from_string(filled).unwrap();
        let path = ReferencePath::parse(&["a"; 60].join(".")).unwrap();
        let read = path.read_references(&filled, &ReadBudget::default());
        assert_eq!(read, Err(ReferencePathError::TooLarge));
    }

    #[test]
    fn a_reference_means_what_it_does_not_deny() {
        let reference: ChildReference =
            serde_json::from_str(r#"{"apiVersion":"apps/v1","kind":"Deployment","name":"x"}"#).unwrap();
        assert!(reference.refers_to("apps", "Deployment"));
        assert!(!reference.refers_to("apps", "StatefulSet") && !reference.refers_to("", "Deployment"));
        assert!(ChildReference::default().refers_to("apps", "Deployment"));
    }
}
