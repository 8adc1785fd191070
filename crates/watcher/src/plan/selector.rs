//! Label selectors, as defined by the API.

/// `matchLabels` and `matchExpressions`, all of which must hold. The empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelMatcher {
    /// Terms that must all match.
    pub requirements: Vec<LabelMatchTerm>,
}

/// One term on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelMatchTerm {
    /// The label has one of these values.
    In(Box<str>, Vec<Box<str>>),
    /// The label is absent or has none of these values.
    NotIn(Box<str>, Vec<Box<str>>),
    /// The label exists.
    Exists(Box<str>),
    /// The label does not exist.
    DoesNotExist(Box<str>),
}

/// Returns the value of a label.
pub(crate) fn label_value<'a>(labels: &'a [(Box<str>, Box<str>)], key: &str) -> Option<&'a str> {
    labels.iter().find(|(k, _)| **k == *key).map(|(_, v)| &**v)
}

impl LabelMatcher {
    /// Returns `true` if the selector matches these labels.
    pub fn matches(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.requirements.iter().all(|requirement| match requirement {
            LabelMatchTerm::In(key, values) => {
                label_value(labels, key).is_some_and(|v| values.iter().any(|w| **w == *v))
            }
            LabelMatchTerm::NotIn(key, values) => {
                label_value(labels, key).is_none_or(|v| values.iter().all(|w| **w != *v))
            }
            LabelMatchTerm::Exists(key) => label_value(labels, key).is_some(),
            LabelMatchTerm::DoesNotExist(key) => label_value(labels, key).is_none(),
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
        assert!(LabelMatcher::default().matches(&[]));
        assert!(LabelMatcher::default().matches(&labels("a=b")));
    }

    #[test]
    fn every_requirement_must_hold() {
        let values = |v: &str| v.split(',').map(Into::into).collect();
        let s = LabelMatcher {
            requirements: vec![
                LabelMatchTerm::In("tier".into(), values("gold,silver")),
                LabelMatchTerm::NotIn("env".into(), values("dev")),
                LabelMatchTerm::Exists("team".into()),
                LabelMatchTerm::DoesNotExist("skip".into()),
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
