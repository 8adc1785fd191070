//! The rights of policies, as they are printed.

use serde_json::{Value, json};

use super::*;
use crate::compile::{CompiledPolicy, compile};
use crate::problem::PolicyProblem;

fn policy(parent: &str, children: &Value) -> Result<CompiledPolicy, Vec<PolicyProblem>> {
    let spec = json!({ "parent": { "group": "example.com", "kind": parent }, "children": children });
    let spec = serde_json::from_value(spec).expect("a policy");
    compile(&spec, std::time::Duration::from_mins(10))
}

fn options(namespaces: &[&str]) -> RoleOptions {
    RoleOptions {
        subject: RoleSubject { name: "rollcall".to_owned(), namespace: "home".to_owned() },
        namespaces: namespaces.iter().map(|&namespace| namespace.to_owned()).collect(),
        aggregate_to: "rollcall".to_owned(),
        records_namespace: "home".to_owned(),
        lease: "rollcall".to_owned(),
    }
}

fn printed(name: &str, compiled: &CompiledPolicy, namespaces: &[&str]) -> Vec<Value> {
    let rights = policy_rights(compiled, &CrdNames::default());
    let text = manifests_yaml(&policy_manifests(name, &rights, &options(namespaces))).expect("YAML");
    serde_saphyr::from_multiple(&text).expect("YAML that is read as it was written")
}

fn names(manifests: &[Value]) -> Vec<String> {
    let name = |manifest: &Value| {
        let metadata = &manifest["metadata"];
        let namespace = metadata["namespace"].as_str().map_or(String::new(), |n| format!("{n}/"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{} {namespace}{}", text(&manifest["kind"]), text(&metadata["name"]))
    };
    manifests.iter().map(name).collect()
}

#[test]
fn two_policies_have_roles_of_their_own_and_their_rights_add_up() {
    let children = json!([{ "kind": { "group": "apps", "kind": "Deployment" } }]);
    let (one, two) = (policy("Site", &children).expect("one"), policy("Store", &children).expect("two"));
    let (one, two) = (printed("one", &one, &[]), printed("two", &two, &[]));
    assert_eq!(names(&one), ["ClusterRole rollcall-policy-one"]);
    assert_eq!(names(&two), ["ClusterRole rollcall-policy-two"]);
    for role in [&one[0], &two[0]] {
        assert_eq!(role["metadata"]["labels"]["rollcall.dev/aggregate-to"], "rollcall");
    }
    let own = own_manifests(&options(&[]));
    assert_eq!(
        own[0]["aggregationRule"]["clusterRoleSelectors"],
        json!([{ "matchLabels": { "rollcall.dev/aggregate-to": "rollcall" } }])
    );
    assert!(own[0].get("rules").is_none(), "the server's own controller fills them in");
    assert_eq!(own[2]["roleRef"]["name"], own[0]["metadata"]["name"]);
}

#[test]
fn every_rule_says_what_it_is_for() {
    let job = json!([{ "kind": { "group": "batch", "kind": "Job" }, "afterDeletion": "remember" },
        { "kind": { "kind": "Pod" }, "ready": { "rules": "argocd-cm" } }]);
    let roles = printed("db", &policy("Database", &job).expect("a policy"), &[]);
    for role in roles.iter().filter(|role| !role["rules"].is_null()) {
        let said = role["metadata"]["annotations"]["rollcall.dev/rules"].as_str().expect("purposes");
        assert_eq!(said.lines().count(), role["rules"].as_array().map_or(0, Vec::len), "{said}");
        assert!(
            said.lines().all(|line| line.split_once(": ").is_some_and(|(_, why)| !why.is_empty())),
            "{said}"
        );
        assert_eq!(role["metadata"]["annotations"]["rollcall.dev/policy"], "db");
    }
    let said = roles[0]["metadata"]["annotations"]["rollcall.dev/rules"].as_str().expect("purposes");
    assert!(said.contains("patch databases/status.example.com: conditions of the parents"), "{said}");
}

#[test]
fn in_namespaces_there_are_only_roles() {
    let children = json!([{ "kind": { "group": "batch", "kind": "Job" }, "afterDeletion": "remember" }]);
    let roles = printed("db", &policy("Database", &children).expect("a policy"), &["a", "home"]);
    let role = "rollcall-policy-db";
    let expected = [
        format!("Role a/{role}"),
        format!("RoleBinding a/{role}"),
        format!("Role home/{role}"),
        format!("RoleBinding home/{role}"),
    ];
    assert_eq!(names(&roles), expected);
    assert!(roles[2].to_string().contains("readinessrecords"), "{}", roles[2]);
    assert!(!roles[0].to_string().contains("readinessrecords"), "{}", roles[0]);
    assert_eq!(
        names(&own_manifests(&options(&["a"]))),
        ["Role home/rollcall-lease", "RoleBinding home/rollcall-lease"]
    );
}

#[test]
fn only_who_remembers_may_keep_records_and_only_at_home() {
    for (after, remembers) in [("forget", false), ("remember", true), ("rememberGeneration", true)] {
        let job = json!([{ "kind": { "group": "batch", "kind": "Job" }, "afterDeletion": after }]);
        let roles = printed("db", &policy("Database", &job).expect(after), &[]);
        let records: Vec<_> =
            roles.iter().filter(|role| role["rules"].to_string().contains("readinessrecords")).collect();
        assert_eq!(records.len(), usize::from(remembers), "{roles:?}");
        assert!(records.iter().all(|role| role["metadata"]["namespace"] == "home"), "{roles:?}");
        let ends = json!({ "apiGroups": [""], "resources": ["events"], "verbs": ["list"] });
        let has_ends = |roles: &[Value]| roles[0]["rules"].as_array().is_some_and(|all| all.contains(&ends));
        assert!(has_ends(&roles), "how it ended, and why it has no pod: {roles:?}");
        let web = json!([{ "kind": { "group": "apps", "kind": "Deployment" } }]);
        let roles = printed("web", &policy("Web", &web).expect("a policy"), &[]);
        assert!(!has_ends(&roles), "a Deployment says so itself: {roles:?}");
    }
}

#[test]
fn what_is_no_name_never_becomes_a_rule() {
    for (group, kind) in [
        ("*", "Database"),
        ("x\"]\n    resources: [\"*\"]\n    verbs: [\"*\"]\n  - apiGroups: [\"y", "Database"),
        ("example.com", "*"),
        ("example.com", "Database/status"),
        ("example.com", "Da\u{1b}[31mtabase"),
        ("Example.com", "Database"),
    ] {
        for shadow in ["write", "shadow"] {
            let kind = json!({ "group": group, "kind": kind });
            let parent = json!({ "parent": kind, "mode": shadow });
            let child = json!({ "parent": { "group": "example.com", "kind": "Database" }, "mode": shadow,
                "children": [{ "kind": kind }] });
            for spec in [parent, child] {
                let spec = serde_json::from_value(spec).expect("a policy");
                let problems = compile(&spec, std::time::Duration::ZERO).expect_err("no name");
                assert!(problems.iter().any(|p| p.what.starts_with("must be ")), "{problems:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_remembered_is_refused_by_name() {
    let child = |group: &str, kind: &str| json!({ "kind": { "group": group, "kind": kind }, "afterDeletion": "remember" });
    let mut labelled = child("batch", "Job");
    labelled["find"] = json!({ "labels": { "app": "db" } });
    let mut judged = child("batch", "Job");
    judged["ready"] = json!({ "cel": { "current": "true" } });
    for (child, word) in [(child("", "Pod"), "Job"), (labelled, "ownerReference"), (judged, "ready")] {
        let problems = policy("Database", &json!([child])).expect_err(word);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].field, "spec.children[0].afterDeletion");
        assert!(problems[0].what.contains(word), "{problems:?}");
    }
}

#[test]
fn records_and_what_policies_wrote_are_kept_where_the_service_keeps_them() {
    let elsewhere =
        |namespaces: &[&str]| RoleOptions { records_namespace: "records".to_owned(), ..options(namespaces) };
    let granted = |manifests: &[Value], name: &str| {
        let at = names(manifests).iter().position(|found| found == name);
        at.map(|at| manifests[at]["rules"].to_string()).unwrap_or_default()
    };
    let children = json!([{ "kind": { "group": "batch", "kind": "Job" }, "afterDeletion": "remember" }]);
    let rights = policy_rights(&policy("Database", &children).expect("a policy"), &CrdNames::default());
    for namespaces in [&[][..], &["a"]] {
        let roles = policy_manifests("db", &rights, &elsewhere(namespaces));
        assert!(granted(&roles, "Role records/rollcall-policy-db").contains("readinessrecords"), "{roles:?}");
        let binding = roles
            .iter()
            .find(|role| role["kind"] == "RoleBinding" && role["metadata"]["namespace"] == "records");
        let subject = binding.map(|binding| &binding["subjects"][0]["namespace"]);
        assert_eq!(subject, Some(&json!("home")), "to the account, wherever it lives: {roles:?}");
        assert_eq!(
            granted(&roles, "Role home/rollcall-policy-db"),
            "",
            "nothing else than records: {roles:?}"
        );
    }

    let own = own_manifests(&elsewhere(&[]));
    let (home, kept) =
        (granted(&own, "Role home/rollcall-lease"), granted(&own, "Role records/rollcall-inventory"));
    assert!(home.contains("leases") && !home.contains("configmaps"), "{home}");
    assert!(kept.contains("rollcall-inventory") && !kept.contains("leases"), "{kept}");
    assert!(names(&own).contains(&"RoleBinding records/rollcall-inventory".to_owned()), "{own:?}");
    let own = names(&own_manifests(&elsewhere(&["a"])));
    assert_eq!(own, ["Role home/rollcall-lease", "RoleBinding home/rollcall-lease"], "it keeps no inventory");
}

#[test]
fn each_right_is_a_question_that_a_server_can_answer() {
    let children = json!([{ "kind": { "kind": "Pod" }, "ready": { "rules": "gitops/rules" } },
        { "kind": { "group": "batch", "kind": "Job" }, "afterDeletion": "remember" }]);
    let rights = policy_rights(&policy("Database", &children).expect("a policy"), &CrdNames::default());
    let asked: Vec<String> = access_needs(&rights, &[], "home").iter().map(ToString::to_string).collect();
    for right in [
        "list databases.example.com",
        "patch databases/status.example.com",
        "watch pods",
        "create readinessrecords.rollcall.dev in namespace home",
        "watch configmaps rules in namespace gitops",
    ] {
        assert!(asked.iter().any(|asked| asked == right), "{right}: {asked:?}");
    }
    let asked = access_needs(&rights, &["a".to_owned()], "home");
    assert!(asked.iter().all(|need| need.namespace.is_some()), "{asked:?}");
}
