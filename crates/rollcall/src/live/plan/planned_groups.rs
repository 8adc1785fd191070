//! The ReadinessGroups that a plan applies, as the cluster would have them then.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use policy::{
    FoundGroup, FoundPolicy, GROUP_KIND, PolicySettings, document_objects, policies_of_groups, read_group,
};
use readiness::Time;
use serde_json::{Value, json};
use watcher::plan::LabelMatcher;
use watcher::{ApiKind, LivePage, ParentObject};

use super::super::listed_policies::{GroupKey, ListedPolicies};
use crate::limits::STUCK_AFTER;

/// Groups of files, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct PlannedGroups {
    groups: BTreeMap<GroupKey, Value>,
    /// Those that the cluster has.
    held: BTreeSet<GroupKey>,
}

impl PlannedGroups {
    /// Adds the groups of a text; those without a namespace are applied to this one.
    pub(super) fn add_text(&mut self, text: &str, namespace: &str) -> anyhow::Result<()> {
        for document in rollcall_yaml::read_all(text.as_bytes())? {
            let document = serde_json::from_str(&document.json)?;
            let objects = document_objects(document).into_iter().map(|(_, object)| object);
            for mut group in objects.filter(|object| object["kind"] == GROUP_KIND.1) {
                let name = group["metadata"]["name"].as_str().context("metadata.name is missing")?.to_owned();
                let namespace = group["metadata"]["namespace"].as_str().unwrap_or(namespace).to_owned();
                group["metadata"]["namespace"] = json!(namespace);
                self.groups.insert((namespace.into(), name.into()), group);
            }
        }
        Ok(())
    }

    /// The policies that would stand for all groups.
    pub(super) fn policies(&self, listed: &ListedPolicies, now: Time) -> anyhow::Result<Vec<FoundPolicy>> {
        let mut groups: BTreeMap<GroupKey, FoundGroup> = listed.groups().clone();
        for (key, group) in &self.groups {
            // Of those that ask for too much the oldest come first: a group that is edited is as old as before.
            let created = groups.get(key).and_then(|held| held.created);
            groups.insert(key.clone(), read_group(&new_object(group, created.unwrap_or(now))?));
        }
        let settings = PolicySettings::with_stuck_after(STUCK_AFTER);
        Ok(policies_of_groups(groups.values(), &LabelMatcher::default(), listed.served(), &settings))
    }

    /// The page as it would be, where it is one of groups: those that are applied have the spec of their file.
    pub(super) fn edit_page(
        &mut self,
        api: &ApiKind,
        page: &LivePage<ParentObject>,
    ) -> Option<LivePage<ParentObject>> {
        if (&*api.group, &*api.kind) != GROUP_KIND {
            return None;
        }
        let LivePage::Objects(objects) = page else {
            self.held.clear();
            return None;
        };
        let mut edited = objects.clone();
        for object in &mut edited {
            let meta = &object.child.meta;
            let key: GroupKey = ((*meta.namespace).into(), (*meta.name).into());
            if let Some(group) = self.groups.get(&key) {
                if let Some(applied) = apply_group(object, group) {
                    *object = applied;
                }
                self.held.insert(key);
            }
        }
        Some(LivePage::Objects(edited))
    }

    /// The groups that the cluster does not have, once all pages were edited.
    pub(super) fn new_objects(&self, now: Time) -> anyhow::Result<Vec<ParentObject>> {
        let new = self.groups.iter().filter(|(key, _)| !self.held.contains(*key));
        new.map(|(_, group)| new_object(group, now)).collect()
    }
}

/// The object with the spec and the labels of a file; `None` if it cannot be read.
fn apply_group(object: &ParentObject, group: &Value) -> Option<ParentObject> {
    let mut applied: Value = serde_json::from_str(object.text.get()).ok()?;
    if applied["spec"] != group["spec"] {
        applied["spec"] = group["spec"].clone();
        applied["metadata"]["generation"] = json!(object.child.meta.generation + 1);
    }
    for (label, value) in group["metadata"]["labels"].as_object().into_iter().flatten() {
        applied["metadata"]["labels"][label] = value.clone();
    }
    serde_json::from_value(applied).ok()
}

/// A group of a file as the server would create it.
fn new_object(group: &Value, created: Time) -> anyhow::Result<ParentObject> {
    let mut object = group.clone();
    let meta = &mut object["metadata"];
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    meta["uid"] = json!(format!("new:{}/{}", text(&meta["namespace"]), text(&meta["name"])));
    meta["generation"] = json!(1);
    meta["creationTimestamp"] = json!(created.to_string());
    object["status"] = Value::Null;
    serde_json::from_value(object).context("a ReadinessGroup cannot be read")
}
