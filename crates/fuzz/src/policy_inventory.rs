//! The inventory of conditions that policies wrote, as a ConfigMap keeps it, beside policies that are there.

use std::collections::{BTreeMap, BTreeSet};

use policy::{
    ConditionInventory, KeptState, PresentPolicy, Released, is_object_name, is_status_owned_by_others,
};

use crate::input_parts::split_parts;

pub(crate) const POLICY_INVENTORY_WORDS: &[&str] = &[
    "\"policy\":\"db\"",
    "\"written\":[",
    "{\"group\":\"example.com\",\"kind\":\"Database\",\"types\":[\"Ready\"]}",
    "\"types\":[\"Ready\",\"Stalled\"]",
    "\"group\":\"apps\"",
    "\"kind\":\"Secret\"",
    "u1 ",
    "u2 ",
    "scripts_argocd_argocd-cm ",
    "{\"resource.customizations\":\"return nil\"}",
    "\n---\n",
    "u1 writes example.com Database Ready\n",
    "u2 shadows example.com Database Ready Stalled\n",
    "u3 refused\n",
    "../",
    "*",
    "\u{1b}",
    "\n",
];

/// Longest value that a policy's conditions add up to. As the inventory has it.
const MAX_POLICY_SIZE: usize = 8 << 10;

/// A policy of the second part of an input.
struct PolicyLine<'l> {
    uid: &'l str,
    names: Option<Released>,
    writes: bool,
}

/// The first part has a value of the ConfigMap on each line, the second one a policy. What is read is read again, is
/// nothing that a policy cannot have written, and takes nothing off any parent before the server was asked; what a
/// policy writes that is there is never taken off, whatever was read.
pub(crate) fn run(data: &[u8]) {
    let Some((kept, present)) = split_parts(data) else { return };
    let data: BTreeMap<String, String> =
        kept.lines().filter_map(|line| line.split_once(' ')).map(|(k, v)| (k.into(), v.into())).collect();
    let (kept, unreadable) = KeptState::read(&data);
    let read = kept.to_data();
    assert!(kept.is_kept_in(&read), "and is what is to be kept");
    let uids: BTreeSet<&String> = read.keys().chain(&unreadable).collect();
    assert_eq!(uids, data.keys().collect(), "each value is read or named");
    assert!(unreadable.iter().all(|uid| !read.contains_key(uid)));
    assert_eq!(KeptState::read(&read), (kept.clone(), BTreeSet::new()), "and read again");
    let inventory = kept.conditions;
    assert_eq!(inventory.left_behind(), Released::new(), "nobody was asked yet");
    check_release(inventory.clone());

    let policies: BTreeMap<&str, PolicyLine<'_>> =
        present.lines().filter_map(parse_policy).map(|policy| (policy.uid, policy)).collect();
    check_beside_policies(inventory, &policies.into_values().collect::<Vec<_>>());
}

/// All of its policies are gone: what they left is named, and once it is found on no parent nothing is kept.
fn check_release(mut inventory: ConditionInventory) {
    while let Some((uid, policy)) = inventory.next_unconfirmed().map(|(u, p)| (u.to_owned(), p.to_owned())) {
        assert!(is_object_name(&policy), "{policy:?}");
        assert_eq!(inventory.confirm(&uid, true), Some(policy.as_str()));
    }
    let left = inventory.left_behind();
    for ((group, kind), types) in &left {
        let words = types.iter().map(String::as_str).chain([group.as_str(), kind.as_str()]);
        let is_plain = |word: &str| {
            !word.is_empty() && !word.contains(|c: char| c.is_control() || "*{}\"' ".contains(c))
        };
        assert!(words.into_iter().all(is_plain), "{group:?} {kind:?} {types:?}");
        assert!(!is_status_owned_by_others(group), "{group}");
    }
    for (kind, types) in &left {
        inventory.settle_release(kind, types);
    }
    assert_eq!(inventory.to_data(), BTreeMap::new());
}

fn check_beside_policies(mut inventory: ConditionInventory, policies: &[PolicyLine<'_>]) {
    let before = inventory.to_data();
    let again = inventory.clone();
    inventory.merge(again);
    assert_eq!(inventory.to_data(), before, "what is read twice is there once");
    let present: Vec<_> = policies
        .iter()
        .map(|policy| PresentPolicy {
            uid: policy.uid,
            name: policy.uid,
            names: policy.names.clone(),
            writes: policy.writes,
        })
        .collect();
    inventory.note_policies(&present);
    while let Some(uid) = inventory.next_unconfirmed().map(|(uid, _)| uid.to_owned()) {
        assert!(policies.iter().all(|policy| policy.uid != uid), "{uid} is there");
        inventory.confirm(&uid, true);
    }
    inventory.note_policies(&present);
    let left = inventory.left_behind();
    for policy in policies.iter().filter(|policy| policy.writes && !inventory.left_out().contains(policy.uid))
    {
        for (kind, types) in policy.names.iter().flatten() {
            let of_kind = left.get(kind).into_iter().flatten();
            assert!(
                of_kind.clone().all(|of| !types.contains(of)),
                "{} writes {types:?}: {left:?}",
                policy.uid
            );
        }
    }
    for (uid, text) in inventory.to_data() {
        let known = before.get(&uid).map_or(0, String::len);
        // It may have had more types before than one policy can have now, or another name.
        assert!(text.len() <= MAX_POLICY_SIZE.max(known + uid.len()), "{uid}: {} bytes", text.len());
    }
}

/// `UID writes GROUP KIND TYPE…`, `UID shadows GROUP KIND TYPE…`, or `UID refused`.
fn parse_policy(line: &str) -> Option<PolicyLine<'_>> {
    let mut words = line.split_whitespace();
    let (uid, does) = (words.next()?, words.next()?);
    let names = match (words.next(), words.next()) {
        (Some(group), Some(kind)) => {
            let types: BTreeSet<String> = words.map(str::to_owned).collect();
            let written = BTreeMap::from([((group.to_owned(), kind.to_owned()), types)]);
            written.into_iter().filter(|(_, types)| !types.is_empty()).collect()
        }
        _ => Released::new(),
    };
    let names = (does != "refused").then_some(names);
    Some(PolicyLine { uid, names, writes: does == "writes" })
}
