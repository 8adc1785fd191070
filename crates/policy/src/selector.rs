//! Label selectors as kubectl writes them: `team=a,tier in (gold,silver),!legacy,env!=dev,owner`.

use anyhow::{Context, bail};
use watcher::plan::{LabelMatchTerm, LabelMatcher};

/// Parses a label selector.
pub fn parse_label_selector(text: &str) -> anyhow::Result<LabelMatcher> {
    let mut requirements = Vec::new();
    for part in split_requirements(text) {
        requirements
            .push(parse_requirement(part.trim()).with_context(|| format!("in the label selector {text:?}"))?);
    }
    Ok(LabelMatcher { requirements })
}

/// Splits at commas outside of parentheses.
fn split_requirements(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn parse_requirement(text: &str) -> anyhow::Result<LabelMatchTerm> {
    let values = |list: &str| -> anyhow::Result<Vec<Box<str>>> {
        let inner = list.trim().strip_prefix('(').and_then(|l| l.strip_suffix(')'));
        let inner = inner.with_context(|| format!("{list:?} is not a list such as (a,b)"))?;
        Ok(inner.split(',').map(|v| v.trim().into()).collect())
    };
    if let Some((key, list)) = text.split_once(" notin ") {
        return Ok(LabelMatchTerm::NotIn(parse_label_key(key)?, values(list)?));
    }
    if let Some((key, list)) = text.split_once(" in ") {
        return Ok(LabelMatchTerm::In(parse_label_key(key)?, values(list)?));
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Ok(LabelMatchTerm::NotIn(parse_label_key(key)?, vec![value.trim().into()]));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(LabelMatchTerm::In(parse_label_key(key)?, vec![value.trim().into()]));
    }
    match text.strip_prefix('!') {
        Some(key) => Ok(LabelMatchTerm::DoesNotExist(parse_label_key(key)?)),
        None => Ok(LabelMatchTerm::Exists(parse_label_key(text)?)),
    }
}

fn parse_label_key(key: &str) -> anyhow::Result<Box<str>> {
    let key = key.trim();
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if key.is_empty() || !key.chars().all(legal) {
        bail!("{key:?} is not a label key");
    }
    Ok(key.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_as_kubectl_reads_them() {
        let labels = |text: &str| -> Vec<(Box<str>, Box<str>)> {
            text.split(' ').filter_map(|p| p.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
        };
        for (selector, given, expected) in [
            ("", "a=b", true),
            ("team=a", "team=a", true),
            ("team==a,env!=dev", "team=a env=dev", false),
            ("tier in (gold, silver),!legacy", "tier=silver", true),
            ("tier notin (gold)", "tier=gold", false),
            ("owner", "x=y", false),
        ] {
            assert_eq!(
                parse_label_selector(selector).unwrap().matches(&labels(given)),
                expected,
                "{selector} on {given}"
            );
        }
        for bad in ["a b c", "=x", "tier in gold", "!"] {
            assert!(parse_label_selector(bad).is_err(), "{bad}");
        }
    }
}
