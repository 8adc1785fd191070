//! Kinds of Kubernetes itself: verdict, reason, words, the branch that decided, and what becomes of it by itself and when.
//!
//! `LEVEL/REASON apiVersion Kind | parts… > LEVEL/REASON @SECOND :: MESSAGE <- BRANCH`. What stands behind `>` is what it
//! becomes so many seconds after its creation (600 where that is left out); without it, it becomes nothing else. Message and
//! branch may be left out.

use std::fmt::Write as _;
use std::time::Duration;

use readiness::{StuckLimits, Time, Verdict, assess_with_branch};

use crate::object::{CREATED, decode, kind_of, parse_line, table_lines};

const KINDS: &str = include_str!("tables/kinds.txt");
const RULES: &str = include_str!("tables/rules.txt");
const CUSTOM: &str = include_str!("tables/custom.txt");

/// The two differ, so that none can be taken for the other.
const LIMITS: StuckLimits = StuckLimits {
    pending: Duration::from_secs(600),
    progress: Duration::from_secs(600),
    terminating: Duration::from_secs(300),
};

/// The line as it would have to be for the object in it.
fn tell_line(line: &str) -> String {
    let (case, words) = line.split_once(" :: ").map_or((line, None), |(case, words)| (case, Some(words)));
    let case = case.split_once(" > ").map_or(case, |(case, _)| case);
    let (head, object) = parse_line(case);
    let child = decode(&object);
    let (assessment, branch) = assess_with_branch(kind_of(&child), &child.facts, &LIMITS);
    let said = |verdict: &Verdict| format!("{}/{}", verdict.level, verdict.reason.as_token());
    let mut told = case.replacen(head, &said(&assessment.verdict), 1);
    if let Some((at, later)) = assessment.then.as_deref() {
        write!(told, " > {}", said(later)).unwrap();
        let millis = at.0 - CREATED.0;
        assert_eq!(millis % 1_000, 0, "{line}");
        if millis != 600_000 {
            write!(told, " @{}", millis / 1_000).unwrap();
        }
        let (before, from) = (assessment.verdict_at(Time(at.0 - 1)), assessment.verdict_at(*at));
        assert_eq!((before, from), (&assessment.verdict, later), "{line}: it turns at its moment");
    } else {
        assert_eq!(assessment.verdict_at(Time(i64::MAX)), &assessment.verdict, "{line}");
    }
    if words.is_some() {
        write!(told, " :: {} <- {branch}", assessment.verdict.reason).unwrap();
    }
    told
}

fn check_table(table: &str) {
    let told = table_lines(table).map(|line| (line, tell_line(line)));
    let wrong: Vec<_> = told.filter(|(line, told)| line != told).collect();
    let words: Vec<_> = wrong.iter().map(|(line, told)| format!("- {line}\n+ {told}")).collect();
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), words.join("\n"));
}

#[test]
fn kinds_of_kubernetes_are_judged_by_the_table_and_by_the_moment() {
    check_table(KINDS);
}

#[test]
fn each_branch_of_each_rule_has_a_case_on_either_side() {
    check_table(RULES);
}

#[test]
fn each_branch_of_the_generic_rule_has_a_case_on_either_side() {
    check_table(CUSTOM);
}

#[test]
fn something_is_stuck_after_ten_minutes_unless_a_policy_says_otherwise() {
    let ten_minutes = Duration::from_secs(600);
    assert_eq!(
        StuckLimits::default(),
        StuckLimits { pending: ten_minutes, progress: ten_minutes, terminating: ten_minutes }
    );
}
