//! What a person calls an object: `database/orders`, `Database.example.com/orders`, `databases orders`.

use anyhow::{Context, bail};
use kube::discovery::Discovery;

/// A kind as it was found in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KindName {
    pub(super) group: String,
    pub(super) kind: String,
}

/// One or all objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) kind: KindName,
    pub(super) name: Option<String>,
}

/// Splits `KIND/NAME…` or `KIND NAME…` into kinds and names, as kubectl does.
pub(super) fn split(words: &[String]) -> anyhow::Result<Vec<(String, Option<String>)>> {
    if words.iter().any(|word| word.contains('/')) {
        let pair = |word: &String| match word.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() => {
                Ok((kind.to_owned(), Some(name.to_owned())))
            }
            _ => bail!("{word:?} is not KIND/NAME"),
        };
        return words.iter().map(pair).collect();
    }
    Ok(match words {
        [] => Vec::new(),
        [kind] => vec![(kind.clone(), None)],
        [kind, names @ ..] => names.iter().map(|name| (kind.clone(), Some(name.clone()))).collect(),
    })
}

/// Finds out which kinds are meant: by kind or plural, in any case, with the group behind a dot where it is not clear.
pub(super) async fn find(client: &kube::Client, words: &[String]) -> anyhow::Result<Vec<Target>> {
    let split = split(words)?;
    if split.is_empty() {
        return Ok(Vec::new());
    }
    let discovery = Discovery::new(client.clone()).run_aggregated().await;
    let discovery = match discovery {
        Ok(discovery) => discovery,
        Err(_) => {
            Discovery::new(client.clone()).run().await.context("failed to ask the cluster for its kinds")?
        }
    };
    let mut known = Vec::new();
    for group in discovery.groups() {
        for (resource, _) in group.recommended_resources() {
            let name = KindName { group: resource.group.clone(), kind: resource.kind.clone() };
            known.push((resource.plural.clone(), name));
        }
    }
    split.into_iter().map(|(word, name)| Ok(Target { kind: choose(&word, &known)?, name })).collect()
}

/// The kind that a word means, among plurals and kinds that there are.
fn choose(word: &str, known: &[(String, KindName)]) -> anyhow::Result<KindName> {
    let (name, group) = word.split_once('.').map_or((word, None), |(name, group)| (name, Some(group)));
    let means = |(plural, kind): &&(String, KindName)| {
        let named = name.eq_ignore_ascii_case(plural) || name.eq_ignore_ascii_case(&kind.kind);
        named && group.is_none_or(|group| group == kind.group)
    };
    let mut found: Vec<&KindName> = known.iter().filter(means).map(|(_, kind)| kind).collect();
    found.dedup();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => bail!("the cluster serves no kind {word:?}; `kubectl api-resources` lists what it serves"),
        many => {
            let names: Vec<String> =
                many.iter().map(|kind| format!("{}.{}", kind.kind, kind.group)).collect();
            bail!("{word:?} could be {}: write which", names.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<(String, KindName)> {
        let kind = |plural: &str, group: &str, kind: &str| {
            (plural.to_owned(), KindName { group: group.to_owned(), kind: kind.to_owned() })
        };
        vec![
            kind("databases", "example.com", "Database"),
            kind("clusters", "a.io", "Cluster"),
            kind("clusters", "b.io", "Cluster"),
        ]
    }

    #[test]
    fn a_kind_is_known_by_its_kind_or_its_plural_in_any_case() {
        for word in ["Database", "databases", "DATABASE", "database.example.com"] {
            assert_eq!(
                choose(word, &known()).map(|kind| kind.group).ok().as_deref(),
                Some("example.com"),
                "{word}"
            );
        }
    }

    #[test]
    fn what_could_be_two_is_asked_back_with_both() {
        let error = choose("cluster", &known()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("Cluster.a.io or Cluster.b.io"), "{error}");
        assert_eq!(choose("clusters.b.io", &known()).map(|kind| kind.group).ok().as_deref(), Some("b.io"));
        assert!(choose("nothing", &known()).is_err());
    }

    #[test]
    fn names_come_behind_a_slash_or_a_space() {
        let split = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            split(&words).map(|all| {
                all.into_iter().map(|(k, n)| format!("{k}:{}", n.unwrap_or_default())).collect::<Vec<_>>()
            })
        };
        assert_eq!(split(&["db/one", "db/two"]).unwrap(), ["db:one", "db:two"]);
        assert_eq!(split(&["db", "one", "two"]).unwrap(), ["db:one", "db:two"]);
        assert_eq!(split(&["db"]).unwrap(), ["db:"]);
        assert!(split(&["db/one", "two"]).is_err());
    }
}
