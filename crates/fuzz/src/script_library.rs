//! Keys of `argocd-cm`: patterns of kinds, and the older block of YAML.

use std::collections::BTreeMap;

use rules::lua::ScriptLibrary;

use crate::input_parts::split_parts;

/// Any script.
const SCRIPT: &str = "return {status = 'Healthy'}";

pub(crate) const SCRIPT_LIBRARY_WORDS: &[&str] = &[
    "*",
    "**",
    "?",
    "[a-z]",
    "[!",
    "]",
    "{a,b}",
    "{",
    "}",
    ",",
    "\\",
    "_",
    "/",
    "all",
    ".example.com",
    "health.lua: |\n  return {}\n",
    "health.lua.useOpenLibs: true",
    "\n---\n",
    "&a ",
    "*a",
    "<<: ",
    "[",
    "'",
    " # ",
];

/// The first line is a kind, the others are patterns; then comes the older block. A library ends up with at most one
/// script for a kind, and a pattern of stars and question marks matches what it says.
pub(crate) fn run(data: &[u8]) {
    let Some((lines, block)) = split_parts(data) else { return };
    let mut lines = lines.lines();
    let (group, kind) = lines.next().and_then(|line| line.split_once(' ')).unwrap_or(("example.com", "Kind"));
    let block_of = |pattern: &str| {
        let key = serde_json::to_string(pattern).unwrap();
        format!("{key}:\n  health.lua: |\n    {SCRIPT}\n")
    };
    for pattern in lines.clone() {
        let data = BTreeMap::from([("resource.customizations".to_owned(), block_of(pattern))]);
        let Ok(library) = ScriptLibrary::from_config_map(&data) else { continue };
        let found = library.find_script(group, kind).is_some_and(|script| script.is_ok());
        let is_plain =
            pattern.len() <= 512 && pattern.chars().all(|c| c.is_ascii_graphic() && !"[{\\".contains(c));
        if is_plain {
            let name = if group.is_empty() { kind.to_owned() } else { format!("{group}/{kind}") };
            assert_eq!(found, matches_plainly(pattern, &name), "{pattern:?} {name:?}");
        }
    }
    let keys = lines.map(|pattern| (format!("resource.customizations.health.{pattern}"), SCRIPT.to_owned()));
    let mut data: BTreeMap<_, _> = keys.collect();
    data.insert("resource.customizations".to_owned(), block.to_owned());
    if let Ok(library) = ScriptLibrary::from_config_map(&data) {
        let first = library.find_script(group, kind).map(|script| script.is_ok());
        assert_eq!(first, library.find_script(group, kind).map(|script| script.is_ok()), "remembered");
        assert!(library.broken_scripts().count() <= library.len());
    }
}

/// Stars and question marks, by the table of all positions.
fn matches_plainly(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for wanted in pattern.chars() {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            if wanted == '*' {
                next[at] = reached[at] || (at > 0 && next[at - 1]);
            } else if at > 0 {
                next[at] = reached[at - 1] && (wanted == '?' || wanted == name[at - 1]);
            }
        }
        reached = next;
    }
    reached[name.len()]
}
