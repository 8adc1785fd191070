//! `rollcall rbac`, run without a cluster.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Exit code, standard output and standard error.
fn rbac(policies: &str, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    command.arg("rbac").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    running.stdin.take().unwrap().write_all(policies.as_bytes()).unwrap();
    let output = running.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn policy(name: &str, kind: &str) -> String {
    format!(
        "---\napiVersion: rollcall.dev/v1alpha1\nkind: ReadinessPolicy\nmetadata: {{ name: {name} }}\nspec:\n  parent: {{ group: example.com, kind: {kind} }}\n"
    )
}

fn objects(text: &str) -> Vec<(String, Value)> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let named = |object: Value| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"])), object)
    };
    objects.into_iter().map(named).collect()
}

#[test]
fn each_policy_has_a_role_and_rollcall_one_that_aggregates_them() {
    let both = policy("one", "Site") + &policy("two", "Store");
    let (code, printed, errors) = rbac(&both, &["-f", "-"]);
    assert_eq!(code, 0, "{errors}");
    let roles = objects(&printed);
    let names: Vec<_> = roles.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ClusterRole/rollcall-policy-one", "ClusterRole/rollcall-policy-two"]);
    assert!(roles[0].1.to_string().contains("sites") && !roles[0].1.to_string().contains("stores"));
    let alone = rbac(&policy("two", "Store"), &["-f", "-"]).1;
    assert_eq!(objects(&alone)[0], roles[1], "a policy's role is the same whoever is printed beside it");

    let (_, printed, _) = rbac("", &[]);
    let own = objects(&printed);
    let selector = &own[0].1["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"];
    for (label, value) in selector.as_object().unwrap() {
        assert!(roles.iter().all(|(_, role)| role["metadata"]["labels"][label] == *value), "{label}");
    }
    let names: Vec<_> = own.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "ClusterRole/rollcall",
        "ClusterRole/rollcall-own",
        "ClusterRoleBinding/rollcall",
        "Role/rollcall-lease",
        "RoleBinding/rollcall-lease",
    ];
    assert_eq!(names, expected);
}

#[test]
fn the_right_to_grant_is_a_role_of_its_own_that_names_each_role_and_each_binding() {
    let (code, printed, errors) =
        rbac("", &["--grant-roles", "view,sites", "--grant-roles=view", "-n", "home"]);
    assert_eq!(code, 0, "{errors}");
    let roles = objects(&printed);
    let (last, plain) = (roles.last().unwrap(), objects(&rbac("", &["-n", "home"]).1));
    assert_eq!(roles.len(), plain.len() + 1, "nothing else is printed than without it: {printed}");
    assert_eq!(last.0, "ClusterRole/rollcall-grant");
    assert_eq!(last.1["metadata"]["labels"]["rollcall.dev/aggregate-to"], "rollcall");
    let group = "rbac.authorization.k8s.io";
    let expected = json!([
        { "apiGroups": [group], "resources": ["clusterroles"], "verbs": ["get", "bind"],
            "resourceNames": ["view", "sites"] },
        { "apiGroups": [group], "resources": ["clusterrolebindings"], "verbs": ["create"] },
        { "apiGroups": [group], "resources": ["clusterrolebindings"], "verbs": ["get", "delete"],
            "resourceNames": ["rollcall:home:rollcall:view", "rollcall:home:rollcall:sites"] },
    ]);
    assert_eq!(last.1["rules"], expected);
    assert!(
        !objects(&rbac("", &[]).1).iter().any(|(_, role)| role.to_string().contains("bind\"")),
        "off by default"
    );
    let many = (0..17).map(|at| format!("r{at}")).collect::<Vec<_>>().join(",");
    for (args, words) in [
        (["--grant-roles", "*"], "must be the name of a ClusterRole"),
        (["--grant-roles", many.as_str()], "at most 16"),
        (["--grant-roles=view", "--namespaces=a"], "cannot be used with"),
    ] {
        let (code, printed, errors) = rbac("", &args);
        assert_eq!((code, printed.as_str()), (2, ""), "{errors}");
        assert!(errors.contains(words), "{errors}");
    }
}

#[test]
fn the_rights_of_a_release_name_its_own_lease_and_inventory() {
    let (code, printed, errors) = rbac("", &["--lease-name", "team-a"]);
    assert_eq!(code, 0, "{errors}");
    let own = objects(&printed);
    let (_, role) = own.iter().find(|(name, _)| name == "Role/team-a-lease").unwrap();
    let named: Vec<_> = role["rules"].as_array().unwrap().iter().map(|rule| &rule["resourceNames"]).collect();
    assert_eq!(named, [&json!(["team-a"]), &Value::Null, &json!(["team-a-inventory"]), &Value::Null]);
    assert!(own.iter().any(|(name, _)| name == "RoleBinding/team-a-lease"), "{printed}");
}

#[test]
fn rights_to_keep_records_are_granted_in_the_namespace_of_records() {
    let remembering = policy("db", "Database")
        + "  children: [{ kind: { group: batch, kind: Job }, afterDeletion: remember }]\n";
    let keeps = |printed: &str, resource: &str| {
        let all = objects(printed);
        let within = all
            .iter()
            .filter(|(name, role)| name.starts_with("Role/") && role["rules"].to_string().contains(resource));
        within.map(|(_, role)| role["metadata"]["namespace"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (args, namespace) in [
        (&["-n", "home"][..], "home"),
        (&["-n", "home", "--records-namespace", "home"], "home"),
        (&["-n", "home", "--records-namespace", "records"], "records"),
    ] {
        let (code, printed, errors) = rbac(&remembering, &[args, &["-f", "-"]].concat());
        assert_eq!((code, keeps(&printed, "readinessrecords")), (0, vec![namespace.to_owned()]), "{errors}");
        let (code, printed, errors) = rbac("", args);
        assert_eq!(
            (code, keeps(&printed, "rollcall-inventory")),
            (0, vec![namespace.to_owned()]),
            "{errors}"
        );
        assert_eq!(keeps(&printed, "leases"), ["home"], "the lease is in the service's own: {printed}");
        assert!(
            objects(&printed)
                .iter()
                .filter(|(name, _)| name.contains("Binding"))
                .all(|(_, binding)| { binding["subjects"][0]["namespace"] == "home" })
        );
    }
}

#[test]
fn what_is_not_valid_prints_no_role() {
    for (name, kind) in [
        (r#""db\n---\nkind: ClusterRole""#, "Database"),
        (r#""Db""#, "Database"),
        ("db", r#""*""#),
        ("db", r#""Data\e[31mbase""#),
    ] {
        let (code, printed, errors) = rbac(&policy(name, kind), &["-f", "-"]);
        assert_eq!((code, printed.as_str()), (2, ""), "{errors}");
        assert!(!errors.contains('\u{1b}') && errors.lines().count() == 1, "{errors:?}");
    }
    for args in [
        ["--namespaces", "a,*"],
        ["--service-account", "a\n- b"],
        ["--namespace", "A"],
        ["--aggregate-to", "x: y"],
        ["--lease-name", "a b"],
        ["--records-namespace", "a/b"],
    ] {
        let (code, printed, errors) = rbac("", &args);
        assert_eq!((code, printed.as_str()), (2, ""), "{errors}");
        assert!(errors.contains("RFC 1123"), "{errors}");
    }
}
