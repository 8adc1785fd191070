//! Which roles are bound, by tables, and for any roles and needs against a count of all sets.

use serde_json::{Value, json};
use timer::Seed;

use super::*;

/// Rules as `group/resource verb,verb [name]`, one after the other by semicolons.
fn role(name: &str, rules: &str) -> ListedRole {
    let rule = |text: &str| {
        let mut words = text.split(' ');
        let (group, resource) = words.next().and_then(|word| word.split_once('/')).expect("group/resource");
        let verbs: Vec<_> = words.next().expect("verbs").split(',').collect();
        let names: Vec<_> = words.collect();
        json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs, "resourceNames": names })
    };
    let rules: Vec<Value> = rules.split("; ").map(rule).collect();
    ListedRole::from_manifest(name, &json!({ "rules": rules }))
}

/// A right as `policy: verb group/resource [in namespace] [name]`; a leading `!` says that it is denied.
fn right(text: &str) -> DemandedRight {
    let (lacking, text) = text.strip_prefix('!').map_or((false, text), |text| (true, text));
    let (policy, need) = text.split_once(": ").expect("a policy");
    let (need, namespace) = need.split_once(" in ").map_or((need, None), |(need, home)| (need, Some(home)));
    let mut words = need.split(' ');
    let verb = ["get", "list", "watch", "patch"].into_iter().find(|verb| words.clone().next() == Some(verb));
    let (group, resource) = words.nth(1).and_then(|word| word.split_once('/')).expect("group/resource");
    let need = AccessNeed {
        verb: verb.expect("a verb"),
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: words.next().map(str::to_owned),
        purpose: "a test",
        essential: true,
    };
    DemandedRight { policy: policy.to_owned(), need, lacking }
}

fn demand(rights: &[&str]) -> GrantDemand {
    GrantDemand { rights: rights.iter().map(|text| right(text)).collect(), ..GrantDemand::default() }
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// These roles, bound for nobody who is there.
fn bound_roles(roles: &[&str]) -> BoundRoles {
    roles.iter().map(|&role| (role.to_owned(), BTreeSet::new())).collect()
}

fn chosen(rights: &[&str], listed: &[ListedRole], bound: &[&str]) -> Vec<String> {
    decide_grants(&demand(rights), listed, &bound_roles(bound)).roles.into_keys().collect()
}

#[test]
fn what_serves_explanations_keeps_a_role_for_those_alone_for_whom_it_was_bound() {
    let roles = [role("dbs", "g/dbs get; events.k8s.io/events patch")];
    let events = |policy: &str, lacking: bool| {
        let DemandedRight { need, .. } = right("x: patch events.k8s.io/events");
        DemandedRight { policy: policy.to_owned(), need: AccessNeed { essential: false, ..need }, lacking }
    };
    for (rights, granted_for, stays) in [
        // The policy it was bound for is gone. Another holds the right to Events from elsewhere.
        (vec![events("q", false)], &["p"][..], false),
        (vec![events("p", false)], &["p"], true),
        // Should it have held that from this role, it is denied then, and granted again for it.
        (vec![events("q", true)], &[], true),
        (vec![events("q", false)], &["q"], true),
        (vec![right("q: get g/dbs"), events("q", false)], &["p"], true),
    ] {
        let demand = GrantDemand { rights, ..GrantDemand::default() };
        let bound = [("dbs".to_owned(), names(granted_for))].into();
        let decision = decide_grants(&demand, &roles, &bound);
        assert_eq!(decision.roles.contains_key("dbs"), stays, "{demand:?} {granted_for:?}");
    }
}

#[test]
fn a_role_grants_what_the_api_server_says_that_it_grants() {
    for (rules, need, grants) in [
        ("g/dbs get", "get g/dbs", true),
        ("g/dbs get", "list g/dbs", false),
        ("g/dbs get", "get h/dbs", false),
        ("g/dbs get", "get g/dbs/status", false),
        ("g/dbs/status patch", "patch g/dbs/status", true),
        ("g/dbs/status patch", "patch g/dbs", false),
        ("g/*/status patch", "patch g/dbs/status", true),
        ("g/*/status patch", "patch g/dbs", false),
        ("g/* patch", "patch g/dbs/status", true),
        ("*/dbs *", "watch g/dbs", true),
        ("/pods get", "get /pods", true),
        ("g/dbs get one", "get g/dbs", false),
        ("g/dbs get one", "get g/dbs one", true),
        ("g/dbs get one", "get g/dbs two", false),
        ("g/dbs get", "get g/dbs one", true),
        ("h/dbs get; g/dbs get", "get g/dbs", true),
        ("*/* *", "get /configmaps in argocd", false),
    ] {
        let need = right(&format!("p: {need}")).need;
        assert_eq!(role("r", rules).grants(&need), grants, "{rules} / {need}");
    }
}

#[test]
fn the_narrowest_roles_that_grant_what_lacks_are_bound() {
    let roles = [
        role("everything", "*/* *"),
        role("group", "g/* get,list"),
        role("both", "g/dbs get,list; h/sites get"),
        role("dbs", "g/dbs get,list"),
        role("one", "g/dbs get orders"),
        role("sites", "h/sites get"),
    ];
    for (rights, expected) in [
        (&["!p: get g/dbs"][..], &["dbs"][..]),
        (&["!p: get g/dbs", "!p: list g/dbs"], &["dbs"]),
        // As narrow together as the two, and fewer.
        (&["!p: get g/dbs", "!q: get h/sites"], &["both"]),
        (&["!p: get g/dbs orders"], &["one"]),
        (&["!p: get g/caches"], &["group"]),
        (&["!p: watch g/dbs"], &["everything"]),
        (&["p: get g/dbs"], &[]),
        (&["!p: get g/dbs in shop"], &[]),
        (&[], &[]),
    ] {
        assert_eq!(chosen(rights, &roles, &[]), expected, "{rights:?}");
    }
    assert_eq!(chosen(&["!p: get g/dbs"], &roles[4..], &[]), [""; 0], "no listed role grants it");
}

#[test]
fn of_equal_roles_the_one_listed_first_is_bound() {
    let roles = |first: &str, second: &str| [role(first, "g/dbs get"), role(second, "g/dbs get")];
    assert_eq!(chosen(&["!p: get g/dbs"], &roles("b", "a"), &[]), ["b"]);
    assert_eq!(chosen(&["!p: get g/dbs"], &roles("a", "b"), &[]), ["a"]);
}

#[test]
fn a_bound_role_stays_while_a_policy_needs_it_and_goes_with_the_last() {
    let roles = [role("wide", "g/dbs get,list; g/caches get"), role("dbs", "g/dbs get,list")];
    for (rights, bound, expected) in [
        // It is what the policy holds the right by.
        (&["p: get g/dbs"][..], &["dbs"][..], &["dbs"][..]),
        (&["p: get g/sites"], &["dbs"], &[]),
        (&[], &["wide", "dbs"], &[]),
        // What needed the wide one is gone: the narrow one takes its place.
        (&["p: get g/dbs"], &["wide"], &["dbs"]),
        (&["p: get g/dbs", "q: get g/caches"], &["wide", "dbs"], &["wide"]),
        // A role that does not exist any more grants nothing.
        (&["p: get g/dbs"], &["gone"], &[]),
    ] {
        assert_eq!(chosen(rights, &roles, bound), expected, "{rights:?} with {bound:?}");
    }
}

#[test]
fn what_a_kind_is_called_that_was_not_discovered_takes_no_role_away() {
    let roles = [role("dbs", "g/dbs get"), role("sites", "h/sites get")];
    let demand = GrantDemand { unresolved_groups: names(&["g"]), ..demand(&["p: get g/databases"]) };
    let decision = decide_grants(&demand, &roles, &bound_roles(&["dbs", "sites"]));
    assert_eq!(decision.roles.into_keys().collect::<Vec<_>>(), ["dbs"]);
    let decision = decide_grants(&demand, &roles, &bound_roles(&[]));
    assert!(decision.roles.is_empty(), "nor does it bind one");
}

#[test]
fn before_it_is_known_what_is_to_be_released_no_role_is_taken_away() {
    let roles = [role("dbs", "g/dbs get"), role("sites", "h/sites get")];
    let demand = GrantDemand { awaits_releases: true, ..demand(&[]) };
    let decision = decide_grants(&demand, &roles, &bound_roles(&["dbs"]));
    assert_eq!(decision.roles.into_keys().collect::<Vec<_>>(), ["dbs"]);
    assert!(decide_grants(&GrantDemand::default(), &roles, &bound_roles(&["dbs"])).roles.is_empty());
}

#[test]
fn each_role_has_the_policies_that_need_it_and_each_policy_what_no_role_grants() {
    let roles = [role("dbs", "g/dbs get"), role("sites", "h/sites get")];
    let rights = ["!p: get g/dbs", "!p: get h/sites", "!q: get h/sites", "!q: get /secrets", "r: get /pods"];
    let decision = decide_grants(&demand(&rights), &roles, &bound_roles(&[]));
    assert_eq!(decision.roles["dbs"], names(&["p"]));
    assert_eq!(decision.roles["sites"], names(&["p", "q"]));
    let ungranted: Vec<_> =
        decision.ungranted.iter().map(|(policy, needs)| format!("{policy}: {}", needs[0])).collect();
    assert_eq!(ungranted, ["q: get secrets"]);
}

/// Draws, the same in every run.
struct GrantDraws(u64);

impl GrantDraws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 += 1;
        Seed(17).number_for(self.0) % limit
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.below(of.len() as u64)).expect("small")]
    }

    fn roles(&mut self) -> Vec<ListedRole> {
        let rule = |draws: &mut GrantDraws| {
            let group = draws.pick(&["g", "g", "h", "*"]);
            let resource = draws.pick(&["a", "b", "c", "a/status", "*", "*/status"]);
            let verbs = draws.pick(&["get", "list", "get,list", "patch", "*"]);
            let name = draws.pick(&["", "", "", " one"]);
            format!("{group}/{resource} {verbs}{name}")
        };
        let count = self.below(6);
        let rules = |draws: &mut GrantDraws| {
            let rules = 1 + draws.below(3);
            (0..rules).map(|_| rule(draws)).collect::<Vec<_>>().join("; ")
        };
        (0..count).map(|at| role(&format!("r{at}"), &rules(self))).collect()
    }

    fn rights(&mut self) -> Vec<String> {
        let count = self.below(8);
        let right = |draws: &mut GrantDraws| {
            let (lacks, policy) = (draws.pick(&["!", ""]), draws.pick(&["p", "q"]));
            let (verb, group) = (draws.pick(&["get", "list", "patch"]), draws.pick(&["g", "h"]));
            let (resource, name) = (draws.pick(&["a", "b", "c", "a/status"]), draws.pick(&["", "", " one"]));
            format!("{lacks}{policy}: {verb} {group}/{resource}{name}")
        };
        (0..count).map(|_| right(self)).collect()
    }
}

/// All rights that the roles have to grant: those denied, and those that bound ones grant; as far as any role does.
fn to_cover<'d>(demand: &'d GrantDemand, roles: &[ListedRole], bound: &BoundRoles) -> Vec<&'d AccessNeed> {
    let by = |need: &AccessNeed, chosen: &dyn Fn(&ListedRole) -> bool| {
        roles.iter().any(|role| chosen(role) && role.grants(need))
    };
    let asked = demand.rights.iter().filter(|right| {
        by(&right.need, &|_| true)
            && (right.lacking || by(&right.need, &|role| bound.contains_key(&role.name)))
    });
    asked.map(|right| &right.need).collect()
}

#[test]
fn for_any_roles_and_needs_it_is_the_narrowest_of_all_sets_that_cover_and_it_stands() {
    let (mut draws, mut bindings) = (GrantDraws(0), 0);
    for round in 0..5_000 {
        let (roles, rights) = (draws.roles(), draws.rights());
        let rights: Vec<&str> = rights.iter().map(String::as_str).collect();
        let demand = demand(&rights);
        let bound: Vec<&str> =
            roles.iter().filter(|_| draws.below(3) == 0).map(|role| role.name.as_str()).collect();
        let bound = bound_roles(&bound);
        let decision = decide_grants(&demand, &roles, &bound);
        let of = |set: &[&ListedRole]| {
            set.iter().fold(RoleBreadth::default(), |sum, role| sum.plus(role.breadth()))
        };
        let needed = to_cover(&demand, &roles, &bound);
        let covers = |set: &[&ListedRole]| needed.iter().all(|need| set.iter().any(|role| role.grants(need)));
        let chosen: Vec<&ListedRole> =
            roles.iter().filter(|role| decision.roles.contains_key(&role.name)).collect();
        assert!(covers(&chosen), "round {round}: {rights:?} {roles:?}");
        // Every set, one role after the other in or out: none that covers is better.
        let mut sets: Vec<Vec<&ListedRole>> = vec![Vec::new()];
        for role in &roles {
            let with: Vec<_> = sets.iter().map(|set| [&set[..], &[role]].concat()).collect();
            sets.extend(with);
        }
        for set in sets.iter().filter(|set| covers(set)) {
            assert!((of(&chosen), chosen.len()) <= (of(set), set.len()), "round {round}: {set:?}");
        }
        bindings += chosen.len();
        // Carried out, it stands: with what is granted now, and before the server knows of it.
        let now = decision.roles.clone();
        let mut granted = demand.clone();
        for right in &mut granted.rights {
            right.lacking &= !chosen.iter().any(|role| role.grants(&right.need));
        }
        for demand in [&demand, &granted] {
            let again = decide_grants(demand, &roles, &now);
            assert_eq!(again.roles.keys().collect::<Vec<_>>(), decision.roles.keys().collect::<Vec<_>>());
        }
    }
    assert!(bindings > 2_000, "{bindings}: something was decided");
}
