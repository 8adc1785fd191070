//! Volume claims of a StatefulSet, from its claim templates.

use super::cursor::JsonCursor;

/// Largest number of claim names of one StatefulSet: enough for a thousand pods, and a bound against attacks.
const MAX_CLAIM_NAMES: usize = 10_000;

/// The claims that a StatefulSet creates from its templates, one of each for every pod: TEMPLATE-NAME-ORDINAL. They
/// have no owner reference unless the StatefulSet requests it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeClaims {
    templates: Vec<Box<str>>,
    start: u64,
}

impl VolumeClaims {
    /// Returns the names of the claims of the current pods: `replicas` of them, from `spec.ordinals.start` on. Claims
    /// left over from before a scale-down are not included.
    pub fn claim_names(&self, set: &str, replicas: Option<i64>) -> impl Iterator<Item = String> {
        let pods = u64::try_from(replicas.unwrap_or(1)).unwrap_or(0);
        let ordinals = self.start..self.start.saturating_add(pods);
        let of = move |ordinal: u64| self.templates.iter().map(move |t| format!("{t}-{set}-{ordinal}"));
        ordinals.flat_map(of).take(MAX_CLAIM_NAMES)
    }
}

/// Reads a field of `spec`; returns `true` if it belongs to the claims.
pub(super) fn read_claim_field(
    key: &str,
    value: &mut JsonCursor<'_>,
    claims: &mut Option<Box<VolumeClaims>>,
) -> bool {
    match key {
        "volumeClaimTemplates" => {
            let templates = &mut claims.get_or_insert_default().templates;
            value.each_element(|template| {
                template.each_member(|key, value| {
                    if key == "metadata" {
                        value.each_member(|key, value| {
                            if key == "name" {
                                templates.push(value.read_boxed());
                            }
                        });
                    }
                });
            });
        }
        "ordinals" => {
            value.each_member(|key, value| {
                if key == "start" {
                    let start = value.read_integer().and_then(|start| u64::try_from(start).ok());
                    claims.get_or_insert_default().start = start.unwrap_or(0);
                }
            });
        }
        _ => return false,
    }
    true
}

/// Returns `true` if a claim of this name might belong to a StatefulSet: TEMPLATE-NAME-ORDINAL.
pub fn may_be_claim_name(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(of, ordinal)| {
        of.contains('-') && !ordinal.is_empty() && ordinal.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::wire::ChildObject;

    fn names(set: &str, spec: &str) -> Vec<String> {
        let text = format!(r#"{{"metadata":{{"name":"{set}"}},"spec":{spec}}}"#);
        let child = ChildObject::from_raw(&RawValue::from_string(text).unwrap());
        child.claims.iter().flat_map(|c| c.claim_names(set, child.facts.spec.replicas)).collect()
    }

    #[test]
    fn claims_are_named_by_template_set_and_ordinal() {
        let two = r#"[{"spec":{},"metadata":{"name":"data"}},{"metadata":{"name":"wal"}}]"#;
        let spec = format!(r#"{{"replicas":2,"volumeClaimTemplates":{two}}}"#);
        assert_eq!(names("db", &spec), ["data-db-0", "wal-db-0", "data-db-1", "wal-db-1"]);
        let later = format!(r#"{{"ordinals":{{"start":5}},"volumeClaimTemplates":{two}}}"#);
        assert_eq!(names("db", &later), ["data-db-5", "wal-db-5"]);
    }

    #[test]
    fn what_makes_no_sense_claims_nothing_and_too_much_is_cut() {
        let one = r#"[{"metadata":{"name":"data"}}]"#;
        for spec in [
            r#"{"replicas":3}"#.to_owned(),
            r#"{"volumeClaimTemplates":[{"metadata":{}}, 7, null]}"#.to_owned(),
            r#"{"volumeClaimTemplates":"data"}"#.to_owned(),
            format!(r#"{{"replicas":0,"volumeClaimTemplates":{one}}}"#),
            format!(r#"{{"replicas":-3,"volumeClaimTemplates":{one}}}"#),
        ] {
            assert_eq!(names("db", &spec), Vec::<String>::new(), "{spec}");
        }
        let endless = format!(r#"{{"replicas":2147483647,"volumeClaimTemplates":{one}}}"#);
        assert_eq!(names("db", &endless).len(), MAX_CLAIM_NAMES);
    }

    #[test]
    fn only_a_name_with_an_ordinal_may_be_claimed() {
        let some = ["data-db-0", "data-my-db-12"];
        let none = ["data", "data-0", "data-db", "data-db-", "data-db-x1", "-0", ""];
        assert!(some.iter().all(|name| may_be_claim_name(name)));
        assert!(!none.iter().any(|name| may_be_claim_name(name)));
    }
}
