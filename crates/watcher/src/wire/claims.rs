//! What a StatefulSet makes volume claims of.

use super::cursor::Cursor;

/// So many claims of one StatefulSet are known by name: enough for a thousand pods, and not for an attack.
const MOST: usize = 10_000;

/// The claims that a StatefulSet has made by its templates, one of each for every pod: TEMPLATE-NAME-ORDINAL. They have no
/// ownerReference unless it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    templates: Vec<Box<str>>,
    start: u64,
}

impl Claims {
    /// The names of those that belong to its pods now: `replicas` of them, from `spec.ordinals.start` on. What it had
    /// before it was scaled down stays behind, and is not among them.
    pub fn names(&self, set: &str, replicas: Option<i64>) -> impl Iterator<Item = String> {
        let pods = u64::try_from(replicas.unwrap_or(1)).unwrap_or(0);
        let ordinals = self.start..self.start.saturating_add(pods);
        let of = move |ordinal: u64| self.templates.iter().map(move |t| format!("{t}-{set}-{ordinal}"));
        ordinals.flat_map(of).take(MOST)
    }
}

/// `true` where this field of `spec` is read here.
pub(super) fn field(key: &str, value: &mut Cursor<'_>, claims: &mut Option<Box<Claims>>) -> bool {
    match key {
        "volumeClaimTemplates" => {
            let templates = &mut claims.get_or_insert_default().templates;
            value.elements(|template| {
                template.members(|key, value| {
                    if key == "metadata" {
                        value.members(|key, value| {
                            if key == "name" {
                                templates.push(value.boxed());
                            }
                        });
                    }
                });
            });
        }
        "ordinals" => {
            value.members(|key, value| {
                if key == "start" {
                    let start = value.integer().and_then(|start| u64::try_from(start).ok());
                    claims.get_or_insert_default().start = start.unwrap_or(0);
                }
            });
        }
        _ => return false,
    }
    true
}

/// TEMPLATE-NAME-ORDINAL: might a claim of this name be one of a StatefulSet's?
pub fn may_be_claimed(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(of, ordinal)| {
        of.contains('-') && !ordinal.is_empty() && ordinal.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::wire::Child;

    fn names(set: &str, spec: &str) -> Vec<String> {
        let text = format!(r#"{{"metadata":{{"name":"{set}"}},"spec":{spec}}}"#);
        let child = Child::read(&RawValue::from_string(text).unwrap());
        child.claims.iter().flat_map(|c| c.names(set, child.facts.spec.replicas)).collect()
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
        assert_eq!(names("db", &endless).len(), MOST);
    }

    #[test]
    fn only_a_name_with_an_ordinal_may_be_claimed() {
        let some = ["data-db-0", "data-my-db-12"];
        let none = ["data", "data-0", "data-db", "data-db-", "data-db-x1", "-0", ""];
        assert!(some.iter().all(|name| may_be_claimed(name)));
        assert!(!none.iter().any(|name| may_be_claimed(name)));
    }
}
