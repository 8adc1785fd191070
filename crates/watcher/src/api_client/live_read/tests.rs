use super::*;

#[test]
fn an_answer_about_another_object_is_refused_and_says_which() {
    let read = |namespace: &str, name: &str, asked: Option<&str>| {
        let meta = WireMeta { namespace: namespace.into(), name: name.into(), ..WireMeta::default() };
        refuse_other("get Pod shop/db", &meta, asked, "db").map_err(|error| error.to_string())
    };
    assert_eq!(read("shop", "db", Some("shop")), Ok(()));
    assert_eq!(read("", "db", None), Ok(()), "a cluster-scoped one has no namespace");
    for (namespace, name) in [("shop", "cache"), ("other", "db"), ("shop", "")] {
        let refused = read(namespace, name, Some("shop")).unwrap_err();
        assert!(refused.contains(&format!("{namespace}/{name}")), "{refused}");
    }
}

#[test]
fn an_object_is_no_empty_list() {
    let decode = |text: &str| {
        serde_json::from_str::<LiveListPart<Box<RawValue>>>(text)
            .map(|part| part.items.map_or(0, |i| i.len()))
            .ok()
    };
    assert_eq!(decode(r#"{"kind":"PodList","metadata":{},"items":[{}]}"#), Some(1));
    assert_eq!(decode(r#"{"kind":"PodList","metadata":{},"items":null}"#), Some(0));
    for other in [r#"{"kind":"Pod","metadata":{"name":"db"}}"#, r#"{"kind":"Status","metadata":{}}"#, "{}"] {
        assert_eq!(decode(other), None, "{other}");
    }
}

#[test]
fn only_one_segment_of_a_path_is_a_name() {
    for good in ["db-0", "system:node", "a.b.c", "x_y"] {
        assert!(is_name(good), "{good}");
    }
    for bad in ["", ".", "..", "../secrets/x", "a/b", "a?b", "a%2fb", "a b", "ä"] {
        assert!(!is_name(bad), "{bad}");
    }
}
