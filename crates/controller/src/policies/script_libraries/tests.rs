use serde_json::{Value, json};

use super::*;

fn name() -> ConfigMapName {
    ConfigMapName { namespace: "argocd".to_owned(), name: "argocd-cm".to_owned() }
}

fn followed() -> ScriptLibraries {
    ScriptLibraries {
        loaded: [(name(), FollowedLibrary::unread(&name()))].into(),
        ..ScriptLibraries::default()
    }
}

fn map(version: u32, data: &Value) -> ParentObject {
    let map = json!({ "metadata": { "name": "argocd-cm", "uid": "u", "resourceVersion": version.to_string() }, "data": data });
    serde_json::from_value(map).expect("a ConfigMap")
}

fn says(libraries: &ScriptLibraries) -> String {
    let text = r#"{"apiVersion":"example.com/v1","kind":"Shard"}"#;
    let (rule, _) = libraries.library_rule(&name());
    rule.judge_object(rollcall_cel::ObjectJson::Text(text), readiness::Time::default())
        .assessment
        .verdict
        .reason
        .to_string()
}

#[test]
fn only_a_change_of_scripts_is_news() {
    let mut libraries = followed();
    let data = json!({ "resource.customizations.health.example.com_Shard": "return nil", "url": "a" });
    assert!(!libraries.is_read(&name()), "before its list was through");
    assert!(!libraries.apply_event(&name(), FollowEvent::Init));
    assert!(!libraries.apply_event(&name(), FollowEvent::InitApply(map(1, &data))));
    assert!(!libraries.is_read(&name()), "half a list");
    assert!(libraries.apply_event(&name(), FollowEvent::InitDone));
    let mut other = data.clone();
    other["url"] = json!("b");
    assert!(!libraries.apply_event(&name(), FollowEvent::Apply(map(2, &other))));
    other["resource.customizations.health.example.com_Shard"] = json!("return {}");
    assert!(libraries.apply_event(&name(), FollowEvent::Apply(map(3, &other))));
    assert!(libraries.apply_event(&name(), FollowEvent::Delete(map(4, &other))));
}

#[test]
fn one_that_does_not_exist_is_known_not_to_when_the_list_is_through() {
    let mut libraries = followed();
    assert!(!libraries.apply_event(&name(), FollowEvent::Init));
    assert!(libraries.apply_event(&name(), FollowEvent::InitDone));
    assert!(libraries.is_read(&name()));
    let expected = "ConfigMap argocd/argocd-cm (not found) has no script for Shard of example.com/v1: \
                    no resource.customizations.health.example.com_Shard, no wildcard";
    assert_eq!(says(&libraries), expected);
    assert!(!libraries.apply_event(&name(), FollowEvent::Init));
    assert!(!libraries.apply_event(&name(), FollowEvent::InitDone), "still not there");
}

fn list(libraries: &mut ScriptLibraries, maps: impl IntoIterator<Item = ParentObject>) -> bool {
    libraries.apply_event(&name(), FollowEvent::Init);
    for map in maps {
        libraries.apply_event(&name(), FollowEvent::InitApply(map));
    }
    libraries.apply_event(&name(), FollowEvent::InitDone)
}

#[test]
fn scripts_of_a_map_that_is_gone_or_cannot_be_read_stay_in_force_until_it_is_mended() {
    let script = |script: &str| json!({ "resource.customizations.health.example.com_Shard": script });
    let mut libraries = followed();
    assert!(list(&mut libraries, [map(1, &script("return { status = 'Healthy', message = 'one' }"))]));
    let before = says(&libraries);
    assert_eq!(libraries.state(&name()), LibraryState::Current);
    assert!(list(&mut libraries, []), "a deletion that no watch brought is seen by the next list");
    assert_eq!(libraries.state(&name()), LibraryState::Outdated("not found".to_owned()));
    assert_eq!(says(&libraries), before);
    assert!(!list(&mut libraries, []), "still not there");
    assert!(
        libraries
            .apply_event(&name(), FollowEvent::Apply(map(2, &json!({ "resource.customizations": "a: [" }))))
    );
    assert_eq!(says(&libraries), before);
    assert!(libraries.apply_event(
        &name(),
        FollowEvent::Apply(map(3, &script("return { status = 'Degraded', message = 'two' }")))
    ));
    assert_eq!(libraries.state(&name()), LibraryState::Current);
    assert_ne!(says(&libraries), before);
}

#[test]
fn a_list_that_breaks_off_takes_no_scripts_away() {
    let mut libraries = followed();
    let data = json!({ "resource.customizations.health.example.com_Shard": "return nil" });
    list(&mut libraries, [map(1, &data)]);
    libraries.apply_event(&name(), FollowEvent::Init);
    libraries.apply_event(&name(), FollowEvent::Init);
    assert_eq!(libraries.state(&name()), LibraryState::Current);
}

#[test]
fn a_block_that_cannot_be_read_says_why() {
    let mut libraries = followed();
    list(&mut libraries, [map(1, &json!({ "resource.customizations": "a: [" }))]);
    assert!(
        says(&libraries).starts_with("ConfigMap argocd/argocd-cm (failed to read resource.customizations"),
        "{}",
        says(&libraries)
    );
}

fn kept(script: &str) -> KeptScripts {
    let data = [("resource.customizations.health.example.com_Shard".to_owned(), script.to_owned())];
    let mut kept = KeptScripts::default();
    kept.note_scripts([(name(), Some(kept_script_text(&data.into())))].into());
    kept
}

#[test]
fn where_the_map_is_gone_what_another_process_has_read_is_in_force_whichever_is_known_first() {
    let script = "return { status = 'Healthy', message = 'kept' }";
    for is_kept_first in [true, false] {
        let mut libraries = followed();
        assert!(!is_kept_first || !libraries.recall(&kept(script)), "nothing is known to be gone yet");
        assert!(list(&mut libraries, []));
        assert!(is_kept_first || libraries.recall(&kept(script)));
        assert_eq!(libraries.state(&name()), LibraryState::Outdated("not found".to_owned()));
        assert!(says(&libraries).contains("kept"), "{}", says(&libraries));
        assert!(!libraries.recall(&kept(script)), "known already");
        let now = json!({ "resource.customizations.health.example.com_Shard": "return { status = 'Healthy', message = 'now' }" });
        assert!(libraries.apply_event(&name(), FollowEvent::Apply(map(2, &now))));
        assert_eq!(libraries.state(&name()), LibraryState::Current);
        assert!(says(&libraries).contains("now"), "{}", says(&libraries));
    }
}

#[test]
fn where_the_map_is_there_what_is_kept_is_not_looked_at() {
    let mut libraries = followed();
    libraries.recall(&kept("return { status = 'Healthy', message = 'kept' }"));
    let now = json!({ "resource.customizations.health.example.com_Shard": "return { status = 'Healthy', message = 'now' }" });
    assert!(list(&mut libraries, [map(1, &now)]));
    assert!(says(&libraries).contains("now"), "{}", says(&libraries));
    assert!(!libraries.recall(&kept("return { status = 'Healthy', message = 'other' }")));
    assert!(list(&mut libraries, []), "and what was read here last prevails where it is gone");
    assert!(says(&libraries).contains("now"), "{}", says(&libraries));
}

#[test]
fn what_is_kept_and_cannot_be_compiled_is_as_if_nothing_were() {
    let mut libraries = followed();
    let mut broken = KeptScripts::default();
    let data = [("resource.customizations".to_owned(), "a: [".to_owned())];
    broken.note_scripts([(name(), Some(kept_script_text(&data.into())))].into());
    libraries.recall(&broken);
    assert!(list(&mut libraries, []));
    assert_eq!(libraries.state(&name()), LibraryState::Missing("not found".to_owned()));
}
