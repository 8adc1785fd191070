#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::fmt::Write;

use super::*;

fn json(yaml: &str) -> Result<String, YamlReadError> {
    let mut all = Vec::new();
    read_documents(yaml.as_bytes(), false, |piece| {
        all.push(match piece {
            YamlPiece::Item(json) => json,
            YamlPiece::Document(document) => document.json,
        });
    })?;
    Ok(all.join(" "))
}

#[test]
fn yaml_becomes_the_json_that_kubectl_makes_of_it() {
    let cases = [
        ("a: 1\nb: [x, 'yes', yes, ~]\n", r#"{"a":1,"b":["x","yes",true,null]}"#),
        ("on: push\n1: x\n1.5: z\n", r#"{"true":"push","1":"x","1.5":"z"}"#),
        ("a: |2\n   x\n  \n   y  \n\nb: >-\n  folded\n  text\n", r#"{"a":" x\n\n y  \n","b":"folded text"}"#),
        ("a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n", r#"{"a":{"b":1},"c":{"b":1},"d":{"e":2,"b":1}}"#),
        ("a: \"\\u00e4\\0\"\n", "{\"a\":\"ä\\u0000\"}"),
        ("a: 2026-08-14T09:12:33Z\n", r#"{"a":"2026-08-14T09:12:33Z"}"#),
        ("a:\r\n- b: c\r\n", r#"{"a":[{"b":"c"}]}"#),
        ("a: 1\n...\n---\nb: 2\n", r#"{"a":1} {"b":2}"#),
        ("--- # only a comment\n", "null"),
        ("", ""),
    ];
    for (yaml, expected) in cases {
        assert_eq!(json(yaml).as_deref(), Ok(expected), "{yaml}");
    }
}

#[test]
fn a_text_without_a_line_break_at_its_end_is_read_as_it_stands() {
    for (yaml, expected) in [
        ("a: |\n  x", r#"{"a":"x"}"#),
        ("a: |\n  x\n  yz", r#"{"a":"x\nyz"}"#),
        ("a: |+\n  x", r#"{"a":"x"}"#),
        ("a: |-\n  x", r#"{"a":"x"}"#),
        ("a: >\n  x\n  y", r#"{"a":"x y"}"#),
        ("\u{feff}- |\n  ä", r#"["ä"]"#),
        ("a: |\n  x\n ", r#"{"a":"x\n"}"#),
        ("a: |\n  x\nb", ""),
        ("a: |\n  x\nb: c", r#"{"a":"x\n","b":"c"}"#),
        ("a: |\r\n  x\r\n  y", r#"{"a":"x\ny"}"#),
        ("a: b", r#"{"a":"b"}"#),
        ("a: 'b'", r#"{"a":"b"}"#),
    ] {
        assert_eq!(json(yaml).unwrap_or_default(), expected, "{yaml:?}");
        assert_eq!(read_positions(yaml.as_bytes()).len(), 1, "{yaml:?}");
    }
}

#[test]
fn a_text_that_is_cut_off_anywhere_is_read_or_refused() {
    let whole = "%YAML 1.1\n%TAG !e! tag:e,2000:\n---\na: &x !e!t \"\\x41\\\n \\u00e4\"\nb: |2-\n   x\n  y\nc: >+\n                   z\n\n  z\n? [k, 'l''m', *x]\n: {n: !!binary aGk=, <<: *x}\n# end\n...\n";
    for end in 0..whole.len() {
        _ = json(&whole[..end]);
        read_positions(&whole.as_bytes()[..end]);
    }
}

#[test]
fn what_is_wrong_has_a_line() {
    let cases = [
        ("a: 1\nb: [1, 2\nc: 3\n", 3),
        ("a: *x\n", 1),
        ("x: 1\na: &x [*x]\n", 2),
        ("{a: 1}: b\n", 1),
        ("a: 1\n? [x]\n: 2\n", 2),
        ("a: 1\nb: .inf\n", 2),
        ("a: {{ .Values.x }}\n", 1),
        ("a: 1\n<<: 3\n", 2),
        ("\ta: 1\n", 1),
    ];
    for (yaml, line) in cases {
        let wrong = json(yaml).unwrap_err();
        assert!(wrong.line >= line && wrong.line <= line + 1, "{yaml}: {wrong:?}");
    }
}

#[test]
fn of_equal_keys_the_last_one_counts_and_is_noted() {
    let mut all = Vec::new();
    read_documents(b"a: 1\nb: {c: 1, c: 2}\na: 3\na: 4\n", false, |piece| all.push(piece)).unwrap();
    let YamlPiece::Document(document) = &all[0] else { panic!("{all:?}") };
    assert_eq!(document.json, r#"{"b":{"c":2},"a":4}"#);
    let mut keys = document.duplicate_keys.clone();
    keys.sort();
    let keys: Vec<_> = keys.iter().map(|key| (key.line, key.column, &*key.key)).collect();
    assert_eq!(keys, [(2, 11, "c"), (3, 1, "a"), (4, 1, "a")]);
    assert_eq!(document.duplicate_keys[0].to_string(), "duplicate key \"c\"; the last one counts");
}

#[test]
fn items_come_one_by_one() {
    let items = |yaml: &str| {
        let mut all = String::new();
        let done = read_documents(yaml.as_bytes(), true, |piece| match piece {
            YamlPiece::Item(json) => all.extend([json.as_str(), " "]),
            YamlPiece::Document(document) => all += &document.json,
        });
        (all, done.is_ok())
    };
    let text = "v: 1\nitems:\n- {a: [1, {items: [2]}]}\n- b: 3\n-\nkind: List\n";
    let expected = r#"{"a":[1,{"items":[2]}]} {"b":3} null {"v":1,"items":[],"kind":"List"}"#;
    assert_eq!(items(text), (expected.to_owned(), true));
    let shared = "items:\n- &x {a: 1}\n- {b: *x}\n- *x\nkind: List\n";
    let expected = r#"{"a":1} {"b":{"a":1}} {"a":1} {"items":[],"kind":"List"}"#;
    assert_eq!(items(shared), (expected.to_owned(), true));
    assert_eq!(items("items:\n- {a: 1}\n- {b\n"), (r#"{"a":1} "#.to_owned(), false));
}

#[test]
fn positions_of_what_is_nested_without_end_cost_no_more_than_its_text() {
    let lists = |depth: usize| format!("[{}", "[".repeat(depth));
    let maps = |depth: usize| format!("{{x: {}", "{a: ".repeat(depth));
    let long_keys = |depth: usize| format!("{{x: {}", format!("{{{}: ", "k".repeat(300)).repeat(depth));
    for text in [lists(3_000), maps(3_000), long_keys(500)] {
        let documents = read_positions(format!("a: 1\nb: {text}").as_bytes());
        let document = &documents[0];
        assert_eq!(document.find_field("a"), SourcePosition { line: 1, column: 1 });
        assert_eq!(document.find_field("b"), SourcePosition { line: 2, column: 1 });
        assert!(document.kept_bytes() < 1 << 20, "{}", document.kept_bytes());
    }
    // What comes after it has its place.
    let text = format!("b: {}{}\nc: 1", "[".repeat(1_000), "]".repeat(1_000));
    assert_eq!(read_positions(text.as_bytes())[0].find_field("c"), SourcePosition { line: 2, column: 1 });
}

#[test]
fn depth_costs_no_stack_and_has_an_end() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(json(&nested(5_000)).as_deref(), Ok(&*nested(5_000)));
    assert!(json(&nested(10_001)).unwrap_err().what.contains("10000"));
}

#[test]
fn a_bomb_of_aliases_is_refused() {
    let mut yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let refs = vec![format!("*a{}", n - 1); 10].join(", ");
        writeln!(yaml, "a{n}: &a{n} [{refs}]").unwrap();
    }
    assert!(json(&yaml).unwrap_err().what.contains("aliases"));
}

#[test]
fn what_aliases_write_is_bounded_in_bytes_too() {
    let long = |aliases: usize| format!("a: &a {}\nb: [{}]\n", "x".repeat(500_000), "*a,".repeat(aliases));
    assert_eq!(json(&long(30)).unwrap().len(), 31 * 500_002 + "{'a':,'b':[]}".len() + 29);
    assert!(json(&long(160_000)).unwrap_err().what.contains("too many bytes"));
    // A key is written as often as its map.
    let key = format!("a: &a\n  ? {}\n  : 1\nb: [{}]\n", "x".repeat(500_000), "*a,".repeat(1_000));
    assert!(json(&key).unwrap_err().what.contains("too many bytes"));
    // Each document, and each item, takes of the same.
    let documents = format!("---\n{}", long(10)).repeat(4);
    assert!(json(&documents).unwrap_err().what.contains("too many bytes"));
    let items = format!("a: &a {}\nitems:\n{}", "x".repeat(500_000), "- [*a]\n".repeat(1_000));
    let mut count = 0;
    let refused = read_documents(items.as_bytes(), true, |_| count += 1).unwrap_err();
    assert!(refused.what.contains("too many bytes") && (30..40).contains(&count), "{count}");
}

#[test]
fn a_text_without_aliases_is_never_too_long() {
    assert!(json(&"x".repeat(17 << 20)).is_ok());
    // Nearly all that aliases may add is used up, and the rest is longer than what is left.
    let aliases = "*a,".repeat(33);
    let rest = "[],{a: },".repeat(60_000);
    assert!(json(&format!("- &a {}\n- [{aliases}]\n- [{rest}]\n", "x".repeat(500_000))).is_ok());
}

#[test]
fn of_merged_keys_the_first_one_counts() {
    for (yaml, expected) in [
        ("- &x {a: 1, b: 2}\n- {<<: *x, b: 3}\n", r#"[{"a":1,"b":2},{"b":3,"a":1}]"#),
        ("- &x {a: 1}\n- &y {a: 2, c: 3}\n- <<: [*x, *y]\n", r#"[{"a":1},{"a":2,"c":3},{"a":1,"c":3}]"#),
        ("- &x {a: 1}\n- {<<: *x, <<: {a: 2, c: 3}}\n", r#"[{"a":1},{"a":1,"c":3}]"#),
        ("- &x [{a: 1}, {b: 2}]\n- <<: *x\n", r#"[[{"a":1},{"b":2}],{"a":1,"b":2}]"#),
    ] {
        assert_eq!(json(yaml).as_deref(), Ok(expected), "{yaml}");
    }
}

#[test]
fn merging_costs_what_it_looks_at_and_has_an_end() {
    let keys = |count: usize| (0..count).map(|at| format!("k{at}: 1,")).collect::<Vec<_>>().concat();
    // So many that looking at each for each of the others would take minutes.
    let wide = format!("- &a {{{}}}\n- {{<<: *a, b: 1}}\n", keys(200_000));
    assert_eq!(json(&wide).unwrap().matches("\"k199999\":1").count(), 2);
    let often = format!("- &a {{{}}}\n- {{<<: [{}]}}\n", keys(1_000), "*a,".repeat(150_000));
    let empty = format!("- &a [{}]\n{}", "{},".repeat(100_000), "- {<<: *a}\n".repeat(50_000));
    for yaml in [often, empty] {
        assert!(json(&yaml).unwrap_err().what.contains("too many bytes"));
    }
}

#[test]
fn the_depth_that_a_reader_allows_holds_whatever_strings_and_comments_close() {
    let refused = |yaml: &str| read_all_to_depth(yaml.as_bytes(), 20).unwrap_err().what;
    for open in ["[", "{a: ", "[']', ", "{a: # }\n", "- ", "? "] {
        assert_eq!(refused(&open.repeat(30)), "nested deeper than 20 levels", "{open}");
    }
    let flat = format!("a: '{}'\nb: [{}]\n", "[".repeat(1_000), "[],".repeat(1_000));
    assert!(read_all_to_depth(flat.as_bytes(), 20).is_ok());
}

#[test]
fn a_text_on_which_the_parser_itself_fails_is_refused_like_any_other() {
    for text in ["{!a,b: c}", "[!a,b]"] {
        let refused = read_all(text.as_bytes()).unwrap_err().to_string();
        assert!(refused.contains("not YAML: the parser failed"), "{text}: {refused}");
    }
}
