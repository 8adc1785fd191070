//! What a write of ours did to the store: nothing but what it may.

use controller::core::Write;
use readiness::rollup::ParentReason;
use serde_json::{Value, json};

use crate::scenario::PolicyDef;
use crate::sim::Sim;
use crate::thing::{Said, Thing, conditions};

/// A message has at most so many bytes.
const LONGEST: usize = 1_024;

/// The object without what a write of ours may change.
fn theirs(object: &Value, types: &[&str]) -> Value {
    let mut object = object.clone();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("resourceVersion");
        meta.remove("managedFields");
    }
    let foreign: Vec<Value> = conditions(&object["status"])
        .iter()
        .filter(|c| !types.iter().any(|t| c["type"] == *t))
        .cloned()
        .collect();
    if let Some(status) = object["status"].as_object_mut() {
        status.remove("conditions");
        if !foreign.is_empty() {
            status.insert("conditions".into(), json!(foreign));
        }
    }
    if object["status"].as_object().is_none_or(serde_json::Map::is_empty)
        && let Some(object) = object.as_object_mut()
    {
        object.remove("status");
    }
    object
}

impl Sim {
    /// A write of ours was committed.
    pub(crate) fn check_commit(&mut self, write: &Write, before: &Value, after: &Value, revision: u64) {
        let name = format!("{}/{}", write.namespace, write.name);
        let kind = usize::from(write.kind.0);
        let def = &self.scenario.kinds[kind];
        let (old, new) = (Thing::read(kind, def, before), Thing::read(kind, def, after));
        if old.uid != write.uid {
            return self
                .fail("identity is the uid", format_args!("{name}: the write was for another object"));
        }
        match self.store.revision() - revision {
            0 => return self.fail("no echo", format_args!("{name}: a write that changed nothing")),
            1 => {}
            _ => {
                return self.fail("only our own entries", format_args!("{name}: more than one object moved"));
            }
        }
        let ours: Vec<&str> = old.ours.keys().chain(new.ours.keys()).map(String::as_str).collect();
        if theirs(before, &ours) != theirs(after, &ours) {
            let (was, is) = (theirs(before, &ours), theirs(after, &ours));
            return self.fail("only our own entries", format_args!("{name}: {was} became {is}"));
        }
        if let Some(taken) = new.ours.keys().find(|kind| old.foreign.contains(*kind)) {
            return self
                .fail("only our own entries", format_args!("{name}: took {taken} from somebody else"));
        }
        self.check_entries(&name, &old, &new);
        for policy in self.scenario.policies.clone().iter().filter(|p| write.policies.contains(&p.id)) {
            self.check_first_word(policy, &name, &new);
        }
    }

    fn check_entries(&mut self, name: &str, old: &Thing, new: &Thing) {
        let undated = |said: &Said| Said { since: 0, ..said.clone() };
        let all = |thing: &Thing| -> Vec<(String, Said)> {
            thing.ours.iter().map(|(kind, said)| (kind.clone(), undated(said))).collect()
        };
        if all(old) == all(new) {
            self.fail("no echo", format_args!("{name}: it said so already"));
        }
        for (kind, said) in &new.ours {
            let before = old.ours.get(kind);
            if before.is_some_and(|b| b.status == said.status && b.since != said.since) {
                self.fail("lastTransitionTime moves with the status", format_args!("{name}: {kind}"));
            }
            if said.message.len() > LONGEST {
                self.fail("messages are bounded", format_args!("{name}: {} bytes", said.message.len()));
            }
            if before != Some(said) && said.observed != new.generation {
                self.fail("observedGeneration always", format_args!("{name}: {kind} {}", said.observed));
            }
            self.counts.trues +=
                u64::from(said.status == "True" && before.is_none_or(|b| b.status != "True"));
        }
    }

    fn check_first_word(&mut self, policy: &PolicyDef, name: &str, new: &Thing) {
        let Some(said) = crate::check::entry_of(policy, new) else { return };
        let key = (policy.id, new.uid.clone(), new.generation);
        let first = said.observed == new.generation && self.watch.told.insert(key);
        let may = match said.reason {
            ParentReason::ChildrenPending => true,
            ParentReason::Terminating => new.deleted.is_some(),
            _ => false,
        };
        if first && !may {
            self.fail("first word is Unknown", format_args!("{name}: {:?}", said.reason));
        }
    }
}
