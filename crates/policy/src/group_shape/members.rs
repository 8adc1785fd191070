//! What a group selects, as the children of a policy.

use std::collections::{BTreeMap, BTreeSet};

use api::policy::{
    AvailabilityMode, ChildRole, ChildSpec, ConditionSpec, DebounceSpec, EvidenceMode, ExpectSpec, FindSpec,
    KindRef, LimitsSpec, ObservedGenerationMode, OwnStatusMode, ParentSpec, WriteMode,
};
use api::{GroupMember, ReadinessGroupSpec, ReadinessPolicySpec};

use watcher::wire::{HELM_RELEASE_ANNOTATION, INVENTORY_ANNOTATION, TRACKING_ANNOTATION};

use super::categories::category_kind;
use crate::group_selection::{EARLIER_GROUPS, GROUP_KIND, MEMBERS};
use crate::groups::MAX_GROUPS;
use crate::problem::PolicyProblem;

/// Labels by which objects name the Kustomization that applied them.
const KUSTOMIZATION: [&str; 2] =
    ["kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace"];
/// Template of the group's own namespace.
const OWN_NAMESPACE: &str = "{parent.metadata.namespace}";
/// Label by which objects name their ApplySet (KEP-3659).
const APPLY_SET: &str = "applyset.kubernetes.io/part-of";

/// Most bytes of what groups select by, as a policy: it is held for as long as there is such a group. 64 KiB.
const MAX_SHAPE_BYTES: usize = 64 << 10;
/// Longest key of a label: prefix, slash and name (`k8s.io/apimachinery/pkg/util/validation`, qualified names).
const MAX_LABEL_KEY_BYTES: usize = 317;

/// About as many bytes as the policy for this group has, without making it.
fn shape_bytes(group: &ReadinessGroupSpec) -> usize {
    let of_member = |member: &GroupMember| {
        // The key stands in the template of its value as well.
        let labels = member.labels.keys().map(|key| 2 * key.len() + 40).sum::<usize>();
        let bytes = |text: serde_json::Result<String>| text.map_or(0, |text| text.len());
        let ignored = bytes(serde_json::to_string(&member.ignore));
        let rule = bytes(serde_json::to_string(&member.ready)) + bytes(serde_json::to_string(&member.expect));
        let named = member.kinds.len().max(kinds_of_objects(member).len());
        let kinds = if member.category.is_some() { usize::from(MAX_GROUPS) } else { named };
        kinds.saturating_mul(labels + ignored + rule + 50 * member.namespaces.len() + 200)
    };
    group.members.iter().map(of_member).fold(0, usize::saturating_add)
}

/// The policy for groups that select as this one does. Values are read from each group.
pub(super) fn policy_spec(group: &ReadinessGroupSpec) -> Result<ReadinessPolicySpec, PolicyProblem> {
    let problem = |field: String, what: String| PolicyProblem { field, what, at: None };
    for (at, member) in group.members.iter().enumerate() {
        if let Some(key) = member.labels.keys().find(|key| !is_label_key(key)) {
            let what = format!("{key:?} is not the key of a label");
            return Err(problem(format!("spec.members[{at}].labels"), what));
        }
    }
    if shape_bytes(group) > MAX_SHAPE_BYTES {
        let what = format!(
            "with every kind go the labels of its member, what it ignores and its rule, and together they have more than \
             {} KiB: make it several groups, and one whose members they are",
            MAX_SHAPE_BYTES >> 10
        );
        return Err(problem("spec.members".to_owned(), what));
    }
    let members = group.members.iter().enumerate();
    let mut children: Vec<_> = members.flat_map(|(at, member)| children_of(at, member)).collect();
    children.extend((!group.after.is_empty()).then(earlier_groups));
    if children.len() > usize::from(MAX_GROUPS) {
        let what = format!(
            "members and their kinds together select in {} ways, and may in {MAX_GROUPS}: make it several \
             groups, and one whose members they are",
            children.len()
        );
        return Err(problem("spec.members".to_owned(), what));
    }
    Ok(ReadinessPolicySpec {
        children,
        debounce: group.debounce.clone().unwrap_or_default(),
        settle: group.settle.clone(),
        hold: group.hold.clone(),
        availability: group.availability,
        grace: group.grace.clone(),
        limits: group.limits.clone(),
        ..empty_policy_spec()
    })
}

fn any_number() -> ExpectSpec {
    ExpectSpec { min: Some(0), ..ExpectSpec::default() }
}

/// The groups that come first, which are awaited as members are.
fn earlier_groups() -> ChildSpec {
    ChildSpec {
        kind: kind_of(GROUP_KIND.0, GROUP_KIND.1),
        find: Some(FindSpec { refs: Some(EARLIER_GROUPS.to_owned()), ..FindSpec::default() }),
        expect: Some(any_number()),
        role: ChildRole::Critical,
        after_deletion: None,
        ignore: None,
        quorum: None,
        ready: None,
    }
}

/// A policy for groups that cannot be judged.
pub(super) fn empty_policy_spec() -> ReadinessPolicySpec {
    ReadinessPolicySpec {
        parent: group_parent(),
        children: Vec::new(),
        condition: ConditionSpec::default(),
        debounce: DebounceSpec::default(),
        settle: "0s".to_owned(),
        // No operator handles a group: whatever looks like its mark is somebody's edit.
        evidence: EvidenceMode::Own,
        own_status: Some(OwnStatusMode::Ignore),
        proof: None,
        hold: "0s".to_owned(),
        availability: AvailabilityMode::default(),
        grace: "0s".to_owned(),
        limits: LimitsSpec::default(),
        observed_generation: ObservedGenerationMode::Write,
        mode: WriteMode::Write,
    }
}

fn group_parent() -> ParentSpec {
    ParentSpec { group: GROUP_KIND.0.to_owned(), kind: GROUP_KIND.1.to_owned(), ..ParentSpec::default() }
}

fn children_of(at: usize, member: &GroupMember) -> Vec<ChildSpec> {
    let (kinds, find) = if member.objects.is_empty() {
        let named = member.kinds.iter().map(|kind| kind_of(&kind.group, &kind.kind));
        let listed = member.category.as_deref().map(category_kind);
        (
            named.chain(listed).collect(),
            FindSpec {
                labels: label_templates(at, member),
                namespaces: namespace_templates(at, member),
                ..FindSpec::default()
            },
        )
    } else {
        let refs = Some(format!("{MEMBERS}[{at}].objects[*]"));
        // References say themselves where they lead; this says that it may be another namespace.
        let leads_elsewhere = member.objects.iter().any(|object| object.namespace.is_some());
        let namespaces = leads_elsewhere.then(|| OWN_NAMESPACE.to_owned()).into_iter().collect();
        (kinds_of_objects(member), FindSpec { refs, namespaces, ..FindSpec::default() })
    };
    let child = |kind: KindRef| ChildSpec {
        kind,
        find: Some(find.clone()),
        expect: match member.objects.as_slice() {
            [] => member.expect.as_ref().map(ExpectSpec::from),
            // Each of them is expected by its name.
            _ => Some(any_number()),
        },
        role: member.role,
        after_deletion: member.after_deletion,
        ignore: member.ignore.clone(),
        quorum: member.quorum.clone(),
        ready: member.ready.clone(),
    };
    kinds.into_iter().map(child).collect()
}

/// Returns `true` for what may be the key of a label: it becomes part of a template.
fn is_label_key(key: &str) -> bool {
    (1..=MAX_LABEL_KEY_BYTES).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
}

/// The labels of a member, with templates that read their values from the group.
fn label_templates(at: usize, member: &GroupMember) -> BTreeMap<String, String> {
    let field = |path: &str| format!("{{parent.{MEMBERS}[{at}].{path}}}");
    let text = |text: &str| text.to_owned();
    if member.helm_release.is_some() {
        return [(text(HELM_RELEASE_ANNOTATION), field("helmRelease"))].into();
    }
    if member.application.is_some() {
        return [(text(TRACKING_ANNOTATION), field("application"))].into();
    }
    if member.inventory.is_some() {
        return [(text(INVENTORY_ANNOTATION), field("inventory"))].into();
    }
    if let Some(kustomization) = &member.kustomization {
        let namespace = match kustomization.namespace {
            Some(_) => field("kustomization.namespace"),
            None => text(OWN_NAMESPACE),
        };
        let [by_name, by_namespace] = KUSTOMIZATION.map(text);
        return [(by_name, field("kustomization.name")), (by_namespace, namespace)].into();
    }
    if member.apply_set.is_some() {
        return [(text(APPLY_SET), field("applySet"))].into();
    }
    member.labels.keys().map(|key| (key.clone(), field(&format!("labels['{key}']")))).collect()
}

/// The namespaces of a member, with templates that read their names from the group.
fn namespace_templates(at: usize, member: &GroupMember) -> Vec<String> {
    (0..member.namespaces.len())
        .map(|number| format!("{{parent.{MEMBERS}[{at}].namespaces[{number}]}}"))
        .collect()
}

/// Namespaces that the members of a group name.
pub(super) fn named_namespaces(group: &ReadinessGroupSpec) -> Box<[Box<str>]> {
    let of_member = |member: &GroupMember| {
        let of_objects = member.objects.iter().filter_map(|object| object.namespace.clone());
        member.namespaces.iter().cloned().chain(of_objects).map(Box::from).collect::<Vec<_>>()
    };
    group.members.iter().flat_map(of_member).collect::<BTreeSet<_>>().into_iter().collect()
}

/// All policies follow a kind in one version, which is not for the author of a group to choose.
fn kind_of(group: &str, kind: &str) -> KindRef {
    KindRef { group: group.to_owned(), version: None, kind: kind.to_owned() }
}

fn kinds_of_objects(member: &GroupMember) -> Vec<KindRef> {
    let of_object = |object: &api::MemberRef| {
        let (group, _) = object.api_version.split_once('/').unwrap_or(("", &object.api_version));
        kind_of(group, &object.kind)
    };
    member.objects.iter().map(of_object).collect::<BTreeSet<_>>().into_iter().collect()
}
