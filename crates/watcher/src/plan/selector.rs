//! Label selectors, as the API has them.

/// `matchLabels` and `matchExpressions`, all of which must hold. The empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// What must hold.
    pub requirements: Vec<Requirement>,
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The label is there with one of these values.
    In(Box<str>, Vec<Box<str>>),
    /// The label is not there, or has none of these values.
    NotIn(Box<str>, Vec<Box<str>>),
    /// The label is there.
    Exists(Box<str>),
    /// The label is not there.
    DoesNotExist(Box<str>),
}

/// The value of a label.
pub(crate) fn value<'a>(labels: &'a [(Box<str>, Box<str>)], key: &str) -> Option<&'a str> {
    labels.iter().find(|(k, _)| **k == *key).map(|(_, v)| &**v)
}

impl Selector {
    /// Does it match an object with these labels?
    pub fn matches(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.requirements.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => {
                value(labels, key).is_some_and(|v| values.iter().any(|w| **w == *v))
            }
            Requirement::NotIn(key, values) => {
                value(labels, key).is_none_or(|v| values.iter().all(|w| **w != *v))
            }
            Requirement::Exists(key) => value(labels, key).is_some(),
            Requirement::DoesNotExist(key) => value(labels, key).is_none(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<(Box<str>, Box<str>)> {
        text.split_whitespace().filter_map(|p| p.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
    }

    #[test]
    fn the_empty_selector_matches_everything() {
        assert!(Selector::default().matches(&[]));
        assert!(Selector::default().matches(&labels("a=b")));
    }

    #[test]
    fn every_requirement_must_hold() {
        let values = |v: &str| v.split(',').map(Into::into).collect();
        let s = Selector {
            requirements: vec![
                Requirement::In("tier".into(), values("gold,silver")),
                Requirement::NotIn("env".into(), values("dev")),
                Requirement::Exists("team".into()),
                Requirement::DoesNotExist("skip".into()),
            ],
        };
        for (given, expected) in [
            ("tier=gold team=a", true),
            ("tier=gold team=a env=prod", true),
            ("tier=gold team=a env=dev", false),
            ("tier=bronze team=a", false),
            ("tier=gold", false),
            ("tier=gold team=a skip=", false),
        ] {
            assert_eq!(s.matches(&labels(given)), expected, "{given}");
        }
    }
}
