use super::*;

fn answer(reason: ParentReason) -> PolicyAnswer {
    PolicyAnswer { reason, total: 1, ready: 0, reconciling: false, stalled: false, counted_as: None }
}

fn name(stage: EvaluationStage) -> String {
    let text = format!("{stage:?}");
    text.split('(').next().unwrap_or_default().to_owned()
}

/// Every stage with this answer.
fn stages(answer: PolicyAnswer) -> [EvaluationStage; 7] {
    use EvaluationStage as S;
    [
        S::Unsettled(Some(answer)),
        S::Settling(answer),
        S::Provisional(Some(answer)),
        S::ProvisionalInDoubt(answer),
        S::Evaluated(answer),
        S::EvaluatedInDoubt(answer),
        S::Withdrawn(answer),
    ]
}

fn event(column: &str) -> StageEvent {
    let failed = answer(ParentReason::ChildrenFailed);
    match column {
        "Outdated" => StageEvent::Outdated,
        "Doubted" => StageEvent::Doubted,
        "Confirmed" => StageEvent::Confirmed,
        "Evaluated" => StageEvent::Evaluated(failed),
        "Pending" => StageEvent::Evaluated(answer(ParentReason::ChildrenPending)),
        "Withdrawn" => StageEvent::Withdrawn(failed),
        "KnownEarly" => StageEvent::KnownEarly(failed),
        "Overdue" => StageEvent::Overdue,
        other => panic!("{other} is no event"),
    }
}

/// The table in the documentation of the stages: its rows, the first of which are the events.
fn drawn() -> Vec<Vec<String>> {
    let rows = include_str!("../stage.rs").lines().filter_map(|line| line.strip_prefix("/// |"));
    let cells = |row: &str| row.trim_end_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    rows.filter(|row| !row.starts_with('-')).map(cells).collect()
}

#[test]
fn every_transition_is_the_one_that_is_drawn() {
    let table = drawn();
    let said = stages(answer(ParentReason::AllChildrenReady));
    assert_eq!(table.len(), said.len() + 1);
    for (stage, row) in said.into_iter().zip(&table[1..]) {
        assert_eq!((name(stage), row.len()), (row[0].clone(), 9));
        for (column, after) in table[0].iter().zip(row).skip(1) {
            assert_eq!(name(stage.after(event(column))), *after, "{} {column}", row[0]);
        }
    }
}

#[test]
fn without_an_answer_every_transition_is_the_drawn_one_but_that_nothing_is_doubted() {
    let table = drawn();
    let stages = [EvaluationStage::Unsettled(None), EvaluationStage::Provisional(None)];
    for stage in stages {
        let row = table.iter().find(|row| row[0] == name(stage)).unwrap();
        for (column, after) in table[0].iter().zip(row).skip(1) {
            let after = if column == "Doubted" { name(stage) } else { after.clone() };
            assert_eq!(name(stage.after(event(column))), after, "{stage:?} {column}");
        }
    }
}

#[test]
fn only_an_answer_that_says_true_is_ever_in_doubt() {
    for stage in stages(answer(ParentReason::ChildrenFailed)).into_iter().filter(|stage| !stage.is_in_doubt())
    {
        assert_eq!(stage.after(StageEvent::Doubted), stage);
    }
    let none = EvaluationStage::first_of(None, true);
    assert_eq!(none.after(StageEvent::Doubted), none);
}

#[test]
fn an_event_without_an_answer_keeps_the_one_that_is_there() {
    for stage in stages(answer(ParentReason::AllChildrenReady)) {
        for event in [StageEvent::Outdated, StageEvent::Doubted, StageEvent::Confirmed, StageEvent::Overdue] {
            assert_eq!(stage.after(event).answer(), stage.answer());
        }
    }
}

#[test]
fn nothing_but_what_this_process_evaluated_may_speak_and_what_takes_back_waits_for_no_list() {
    let said = stages(answer(ParentReason::AllChildrenReady));
    let speak = |open: bool| said.map(|stage| stage.may_speak(open));
    assert_eq!(speak(true), [false, true, false, false, true, true, true]);
    assert_eq!(speak(false), [false, false, false, false, false, false, true]);
}

#[test]
fn what_is_in_doubt_or_unknown_makes_nothing_ready() {
    use Level::{Progressing, Ready, Unknown};
    let levels = stages(answer(ParentReason::AllChildrenReady)).map(|stage| stage.weight().level());
    assert_eq!(levels, [Progressing, Ready, Ready, Progressing, Ready, Progressing, Ready]);
    assert_eq!(EvaluationStage::first_of(None, false).weight().level(), Unknown);
}

#[test]
fn what_is_not_true_counts_as_what_it_says_in_every_stage_that_is_not_in_doubt() {
    let said = PolicyAnswer { stalled: true, ..answer(ParentReason::ChildrenFailed) };
    for stage in stages(said).into_iter().filter(|stage| !stage.is_in_doubt()) {
        assert_eq!(stage.weight(), ChildWeight::of(Level::Failed).with_terminal(true), "{stage:?}");
    }
    assert!(!EvaluationStage::Evaluated(answer(ParentReason::ChildrenFailed)).weight().is_terminal());
}
