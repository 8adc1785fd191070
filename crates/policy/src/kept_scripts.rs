//! Health scripts by which policies judge, as they are kept outside the process: where their ConfigMap is gone, the next process
//! judges by the scripts that were read last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::policy_file::is_object_name;
use super::ready_rule::ConfigMapName;

/// Most bytes that all scripts add up to, beside the conditions that policies wrote. 384 KiB.
const MAX_SCRIPTS_SIZE: usize = 384 << 10;
/// Longest key of a ConfigMap, in bytes.
const MAX_KEY: usize = 253;
/// What keys of scripts begin with. No uid does, and neither a namespace nor a name has an underscore.
const KEY_PREFIX: &str = "scripts_";
/// Keys of a ConfigMap that have scripts, as Argo CD names them.
const SCRIPT_KEYS: &str = "resource.customizations";

/// Data of a ConfigMap, as far as it has scripts.
pub type ScriptData = BTreeMap<String, String>;

/// Scripts by the ConfigMaps that have them, as texts of their data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptScripts {
    items: BTreeMap<ConfigMapName, Arc<str>>,
    /// ConfigMaps for whose scripts there was no room.
    left_out: BTreeSet<ConfigMapName>,
}

/// Returns `true` for what has a script in the data of a ConfigMap.
pub fn is_script_key(key: &str) -> bool {
    key.starts_with(SCRIPT_KEYS)
}

/// The text as which these scripts are kept.
pub fn kept_script_text(data: &ScriptData) -> Arc<str> {
    serde_json::to_string(data).unwrap_or_default().into()
}

impl KeptScripts {
    /// Returns `true` for a key that scripts are kept under.
    pub(super) fn is_key(key: &str) -> bool {
        key.starts_with(KEY_PREFIX)
    }

    /// Reads one value; `false` where it is nothing that was kept.
    pub(super) fn read_item(&mut self, key: &str, text: &str) -> bool {
        let name = key.strip_prefix(KEY_PREFIX).and_then(|name| name.split_once('_'));
        let Some((namespace, name)) = name.filter(|(a, b)| is_object_name(a) && is_object_name(b)) else {
            return false;
        };
        let is_read = read_text(text).is_some();
        if is_read {
            let name = ConfigMapName { namespace: namespace.to_owned(), name: name.to_owned() };
            self.items.insert(name, text.into());
        }
        is_read
    }

    /// As it is kept, by key.
    pub(super) fn to_data(&self) -> impl Iterator<Item = (String, String)> {
        self.items.iter().map(|(name, text)| (key_of(name), text.to_string()))
    }

    /// Returns `true` if these values are what is to be kept, and nothing else of scripts is among them.
    pub(super) fn is_kept_in(&self, data: &BTreeMap<String, String>) -> bool {
        let is_there = |(name, text): (&ConfigMapName, &Arc<str>)| {
            data.get(&key_of(name)).is_some_and(|kept| **kept == **text)
        };
        self.items.iter().all(is_there)
            && data.keys().filter(|key| Self::is_key(key)).count() == self.items.len()
    }

    /// Adds what was read again after another writer had changed it. What is known prevails.
    pub(super) fn merge(&mut self, read: KeptScripts) {
        for (name, text) in read.items {
            self.items.entry(name).or_insert(text);
        }
    }

    /// The scripts of this ConfigMap.
    pub fn find(&self, name: &ConfigMapName) -> Option<ScriptData> {
        read_text(self.items.get(name)?)
    }

    /// These ConfigMaps are all by whose scripts policies judge, each with the text of its scripts where they were read. What is
    /// kept of one that was not read goes on to be kept; what nothing judges by is forgotten. Who finds no room takes none from
    /// those who are in.
    pub fn note_scripts(&mut self, needed: BTreeMap<ConfigMapName, Option<Arc<str>>>) {
        let before = std::mem::take(&mut self.items);
        self.left_out.clear();
        let (kept, new): (Vec<_>, Vec<_>) =
            needed.into_iter().partition(|(name, _)| before.contains_key(name));
        let mut size = 0;
        for (name, text) in kept.into_iter().chain(new) {
            let Some(text) = text.or_else(|| before.get(&name).cloned()) else { continue };
            let key = key_of(&name);
            let after = size + key.len() + text.len();
            if after > MAX_SCRIPTS_SIZE || key.len() > MAX_KEY {
                self.left_out.insert(name);
                continue;
            }
            size = after;
            self.items.insert(name, text);
        }
    }

    /// ConfigMaps for whose scripts there was no room.
    pub fn left_out(&self) -> &BTreeSet<ConfigMapName> {
        &self.left_out
    }
}

fn key_of(ConfigMapName { namespace, name }: &ConfigMapName) -> String {
    format!("{KEY_PREFIX}{namespace}_{name}")
}

fn read_text(text: &str) -> Option<ScriptData> {
    let data: ScriptData = serde_json::from_str(text).ok()?;
    data.keys().all(|key| is_script_key(key)).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ConfigMapName {
        ConfigMapName { namespace: "argocd".to_owned(), name: name.to_owned() }
    }

    fn text(script: &str) -> Arc<str> {
        let key = "resource.customizations.health.example.com_Shard".to_owned();
        kept_script_text(&[(key, script.to_owned())].into())
    }

    fn noted(mut kept: KeptScripts, needed: &[(&str, Option<&Arc<str>>)]) -> KeptScripts {
        kept.note_scripts(needed.iter().map(|(map, text)| (name(map), text.cloned())).collect());
        kept
    }

    fn kept(kept: &KeptScripts) -> Vec<&str> {
        kept.items.keys().map(|map| &*map.name).collect()
    }

    fn read(data: &BTreeMap<String, String>) -> KeptScripts {
        let mut read = KeptScripts::default();
        for (key, text) in data {
            assert!(KeptScripts::is_key(key) && read.read_item(key, text), "{key}");
        }
        read
    }

    #[test]
    fn scripts_are_kept_while_something_judges_by_them_also_where_they_are_not_read() {
        let (one, two) = (text("one"), text("two"));
        let first = noted(KeptScripts::default(), &[("a", Some(&one)), ("b", None)]);
        let data: BTreeMap<_, _> = first.to_data().collect();
        assert_eq!(data.keys().collect::<Vec<_>>(), ["scripts_argocd_a"]);
        assert_eq!(read(&data), first);
        assert!(first.is_kept_in(&data) && !first.is_kept_in(&BTreeMap::new()));

        let next = noted(read(&data), &[("a", None), ("b", Some(&two))]);
        assert_eq!(kept(&next), ["a", "b"], "the ConfigMap a is gone, and what was read of it is kept");
        assert_eq!(next.find(&name("a")), first.find(&name("a")));
        assert!(!next.is_kept_in(&data));
        let last = noted(next, &[("b", Some(&one))]);
        assert_eq!(kept(&last), ["b"], "nothing judges by a any more");
        assert_ne!(last.find(&name("b")), None);
        assert!(!last.is_kept_in(&data));
    }

    #[test]
    fn whoever_finds_no_room_takes_none_from_those_who_are_in() {
        let (small, large) = (text("small"), text(&"x".repeat(MAX_SCRIPTS_SIZE - 200)));
        let first = noted(KeptScripts::default(), &[("b", Some(&small)), ("c", Some(&large))]);
        assert_eq!((kept(&first), first.left_out().len()), (vec!["b", "c"], 0));
        let next = noted(first, &[("a", Some(&large)), ("b", Some(&small)), ("c", Some(&large))]);
        assert_eq!(kept(&next), ["b", "c"]);
        assert_eq!(next.left_out().iter().collect::<Vec<_>>(), [&name("a")]);
        let grown = noted(next, &[("b", Some(&text(&"x".repeat(MAX_SCRIPTS_SIZE)))), ("c", Some(&large))]);
        assert_eq!(kept(&grown), ["c"], "what was read before is not in force any more, and is not kept");
    }

    #[test]
    fn what_is_no_scripts_is_not_read() {
        for (key, text) in [
            ("scripts_argocd", "{}"),
            ("scripts_argocd_UPPER", "{}"),
            ("scripts_argocd_a_b", "{}"),
            ("scripts_argocd_a", "[]"),
            ("scripts_argocd_a", r#"{"url":"https://example.com"}"#),
            ("scripts_argocd_a", r#"{"resource.customizations":1}"#),
        ] {
            assert!(!KeptScripts::default().read_item(key, text), "{key} {text}");
        }
    }
}
