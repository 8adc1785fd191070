use std::collections::BTreeMap;

use serde_json::json;

use super::*;

const NOW: Time = Time(1_709_209_845_000);

/// Returns level, token, message and branch.
fn shown(rule: &CompiledRule, object: &Value) -> (Level, String, String, String) {
    let text = object.to_string();
    let judged = rule.judge_object(ObjectJson::Text(&text), NOW);
    assert_eq!(judged, rule.judge_object(ObjectJson::Tree(object), NOW), "{text}");
    let verdict = judged.assessment.verdict;
    (
        verdict.level,
        verdict.reason.as_token().to_owned(),
        verdict.reason.to_string(),
        judged.branch.to_string(),
    )
}

fn cel(current: &str) -> CompiledRule {
    CompiledRule::compile(&RuleDefinition::Cel {
        current,
        in_progress: Some("status.p == 'Going'"),
        failed: Some("status.p == 'Bad'"),
    })
    .unwrap()
}

fn lua(source: &str) -> CompiledRule {
    CompiledRule::compile(&RuleDefinition::Lua { name: "health.lua", source }).unwrap()
}

fn says(level: Level, token: &str, words: &str, branch: &str) -> (Level, String, String, String) {
    (level, token.to_owned(), words.to_owned(), branch.to_owned())
}

#[test]
fn cel_says_what_flux_would_say_and_which_expression_decided() {
    let rule = cel("status.p == 'Up'");
    for (object, expected) in [
        (json!({"status": {"p": "Up"}}), says(Level::Ready, "Ready", "ready", "current is true")),
        (
            json!({"status": {"p": "Going"}}),
            says(Level::Progressing, "InProgress", "in progress by its rule", "inProgress is true"),
        ),
        (
            json!({"status": {"p": "Bad"}}),
            says(Level::Failed, "Failed", "failed by its rule", "failed is true"),
        ),
        (
            json!({"status": {"p": "?"}}),
            says(Level::Progressing, "InProgress", "not ready by its rule", "no expression is true"),
        ),
        (
            json!({"metadata": {"generation": 3}, "status": {"p": "Up", "observedGeneration": 2}}),
            says(
                Level::Progressing,
                "StaleGeneration",
                "its controller has not observed its current generation",
                "status.observedGeneration is 2, metadata.generation is 3",
            ),
        ),
        (
            json!({"status": {}}),
            says(Level::Unknown, "RuleFailed", "inProgress: no such key: p", "the rule failed"),
        ),
        (
            json!({"status": 5}),
            says(Level::Unknown, "RuleFailed", "inProgress: no such key: p", "the rule failed"),
        ),
    ] {
        assert_eq!(shown(&rule, &object), expected, "{object}");
    }
}

#[test]
fn a_result_that_is_no_boolean_is_unknown() {
    let expected = says(
        Level::Unknown,
        "RuleFailed",
        "current: the expression yields 'string', not 'bool'",
        "the rule failed",
    );
    assert_eq!(shown(&cel("status.p"), &json!({"status": {"p": "x"}})), expected);
}

#[test]
fn kro_waits_for_what_is_not_there_yet() {
    let expressions = ["${db.status.ready}", "${db.status.replicas > 2}"];
    let rule =
        CompiledRule::compile(&RuleDefinition::ReadyWhen { expressions: &expressions, id: Some("db") })
            .unwrap();
    for (object, level, branch) in [
        (json!({"status": {"ready": true, "replicas": 3}}), Level::Ready, "all of readyWhen are true"),
        (json!({"status": {"ready": true, "replicas": 1}}), Level::Progressing, "readyWhen[1] is not true"),
        (json!({}), Level::Progressing, "readyWhen[0] is not true"),
        (json!({"status": {"ready": true, "replicas": "3"}}), Level::Unknown, "the rule failed"),
    ] {
        let (said, .., why) = shown(&rule, &object);
        assert_eq!((said, why.as_str()), (level, branch), "{object}");
    }
}

#[test]
fn a_script_says_its_word_its_message_and_its_line() {
    let rule =
        lua("if obj.status == nil then return nil end\nreturn {status = obj.status.s, message = 'since 5m'}");
    for (status, expected) in [
        ("Healthy", (Level::Ready, "Healthy", "since #")),
        ("Progressing", (Level::Progressing, "Progressing", "since #")),
        ("Degraded", (Level::Failed, "Degraded", "since #")),
        ("Suspended", (Level::Suspended, "Suspended", "since #")),
        ("Missing", (Level::Missing, "Missing", "since #")),
        ("Unknown", (Level::Unknown, "SaysUnknown", "since #")),
    ] {
        let (level, token, words, branch) = shown(&rule, &json!({"status": {"s": status}}));
        assert_eq!((level, token.as_str(), words.as_str()), expected);
        assert_eq!(branch, "health.lua line 2");
    }
    assert_eq!(shown(&rule, &json!({})).1, "NoSignal");
    assert_eq!(shown(&lua("return {status = 'Healthy'}"), &json!({})).1, "Ready");
    let (level, token, words, _) = shown(&lua("return obj.a.b"), &json!({}));
    assert_eq!((level, token.as_str()), (Level::Unknown, "RuleFailed"));
    assert!(words.contains("health.lua:1"), "{words}");
}

#[test]
fn a_limit_is_unknown_in_either_language() {
    let rules = [lua("while true do end"), cel("self.n.all(x, self.n.all(y, self.n.all(z, true)))")];
    let object = json!({"n": (0..500).collect::<Vec<_>>(), "status": {"p": "x"}});
    for rule in rules {
        let (level, token, words, _) = shown(&rule, &object);
        assert_eq!((level, token.as_str()), (Level::Unknown, "RuleLimit"), "{words}");
    }
}

#[test]
fn a_peer_is_asked_for_the_whole_object() {
    let rule = CompiledRule::compile(&RuleDefinition::Profile(PeerProfile::Kstatus)).unwrap();
    let object = json!({"apiVersion": "example.com/v1", "kind": "X", "metadata": {"generation": 2},
        "status": {"observedGeneration": 1}});
    let (level, token, _, branch) = shown(&rule, &object);
    assert_eq!((level, token.as_str(), branch.as_str()), (Level::Progressing, "InProgress", "kstatus"));
    let argo = CompiledRule::compile(&RuleDefinition::Profile(PeerProfile::Argocd)).unwrap();
    assert_eq!(shown(&argo, &object).1, "NoSignal");
}

#[test]
fn a_library_answers_by_kind_and_says_where_it_has_no_answer() {
    let data: BTreeMap<_, _> = [
        ("resource.customizations.health.example.com_Db", "return {status = 'Healthy', message = obj.kind}"),
        ("resource.customizations.health.example.com_Broken", "return {"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    let scripts = Arc::new(ScriptLibrary::from_config_map(&data).unwrap());
    let rule = CompiledRule::compile(&RuleDefinition::Library { name: "argocd-cm", scripts }).unwrap();
    let of = |kind: &str| shown(&rule, &json!({"apiVersion": "example.com/v1", "kind": kind}));
    assert_eq!(of("Db"), says(Level::Ready, "Healthy", "Db", "argocd-cm example.com/Db line 1"));
    assert_eq!(
        of("Other").2,
        "argocd-cm has no script for Other of example.com/v1: no resource.customizations.health.example.com_Other, no wildcard"
    );
    assert_eq!(of("Broken").1, "RuleFailed");
    let twice = r#"{"kind": "Other", "apiVersion": "example.com/v1", "kind": "Db", "metadata": null}"#;
    assert_eq!(rule.judge_object(ObjectJson::Text(twice), NOW).assessment.verdict.level, Level::Ready);
    assert_eq!(shown(&rule, &json!({"apiVersion": null, "kind": 5})).1, "RuleFailed");
}

#[test]
fn a_rule_that_is_wrong_says_which_part_and_where() {
    for (spec, error) in [
        (
            RuleDefinition::Cel { current: "true", in_progress: Some("tru"), failed: None },
            "inProgress:1:1: undeclared reference to 'tru'",
        ),
        (
            RuleDefinition::ReadyWhen { expressions: &["true", "\n 1"], id: None },
            "readyWhen[1]:2:2: the expression yields 'int', not 'bool'",
        ),
        (RuleDefinition::Lua { name: "db.lua", source: "\nreturn {" }, "db.lua:2:1: "),
    ] {
        let found = CompiledRule::compile(&spec).unwrap_err();
        assert!(found.to_string().starts_with(error), "{found}");
        assert_eq!(found.to_verdict().reason.as_token(), "RuleFailed");
    }
    let long = "x".repeat(100_000);
    let error =
        CompiledRule::compile(&RuleDefinition::Cel { current: &long, in_progress: None, failed: None })
            .unwrap_err();
    assert_eq!(error.to_verdict().reason.as_token(), "RuleLimit");
}

#[test]
fn a_rule_tells_which_fields_it_reads() {
    assert_eq!(cel("spec.a == status.p").referenced_fields(), Some(vec!["metadata", "spec", "status"]));
    assert_eq!(cel("size(self) > 1").referenced_fields(), None);
    assert_eq!(lua("return nil").referenced_fields(), None);
}

#[test]
fn what_is_no_object_is_unknown() {
    let rule = cel("true");
    for text in ["", "null", "[]", "{\"status\": ", "5", "{\"status\": {\"p\": \"\\ud800\"}}"] {
        let verdict = rule.judge_object(ObjectJson::Text(text), NOW).assessment.verdict;
        assert_eq!((verdict.level, verdict.reason.as_token()), (Level::Unknown, "RuleFailed"), "{text}");
    }
}
