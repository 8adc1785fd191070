//! Counts have a budget of their own, for all of one object together: they are evaluated where it is taken in.

use super::*;

/// Every attack on a rule as a count of a parent of a mebibyte.
fn hostile_counts() -> Vec<(&'static str, CountExpression)> {
    let attacks = [shapes(), loops(), conversions(), functions(), ends()].concat();
    let compile = |(name, source, _): Attack| {
        let source = source.replace("spec.", "parent.spec.").replace("self", "parent");
        let count = CountExpression::compile(&format!("({source}) ? 1 : 0"), "parent").ok()?;
        Some((name, count))
    };
    attacks.into_iter().filter_map(compile).collect()
}

#[test]
fn no_count_spends_more_than_its_budget_whatever_it_is_asked() {
    let text = large().to_string();
    let counts = hostile_counts();
    assert!(counts.len() > 40, "{} attacks are expressions", counts.len());
    let mut stopped = 0;
    for (name, count) in &counts {
        let budget = CountBudget::default();
        let (outcome, took) =
            measure_cost(|| count.evaluate_count_within(ObjectJson::Text(&text), &CountBudget::default()));
        let counted = count.evaluate_count_within(ObjectJson::Text(&text), &budget);
        assert_eq!(counted, outcome, "{name}: the same each time");
        println!("{name:32} {took:>9.3} ms  {:>6} steps", budget.spent_steps());
        match counted {
            Err(error) if error.limit.is_some() => {
                assert_ne!(error.limit, Some(CostLimit::Time), "{name}: steps and bytes end it");
                stopped += 1;
            }
            _ => assert!(budget.spent_steps() <= CountBudget::MAX_STEPS, "{name}"),
        }
    }
    assert!(stopped > 30, "{stopped} are stopped");
}

#[test]
fn what_a_policy_may_compute_is_too_much_for_who_brings_the_object_too() {
    let source = "lists.range(45).all(x, lists.range(45).all(y, x + y >= 0)) ? 1 : 0";
    let count = CountExpression::compile(source, "parent").unwrap();
    let object = || ObjectJson::Text("{}");
    assert_eq!(count.evaluate_count_within(object(), &CountBudget::default()), Ok(1));
    let refused = count.evaluate_count_within(object(), &CountBudget::of_author()).unwrap_err();
    assert_eq!(refused.limit, Some(CostLimit::Steps));
}

#[test]
fn a_list_of_the_largest_object_that_a_server_stores_is_counted() {
    let items = CountExpression::compile("size(parent.spec.items)", "parent").unwrap();
    assert_eq!(items.evaluate_count(ObjectJson::Text(&large().to_string())), Ok(60_000));
}

#[test]
fn all_counts_of_an_object_share_one_budget_and_none_is_left_when_it_is_spent() {
    let text = format!(r#"{{"spec": {{"shards": 3, "long": "{}"}}}}"#, "x".repeat(1 << 20));
    let small = r#"{"spec": {"shards": 3}}"#;
    let shards = CountExpression::compile("parent.spec.shards", "parent").unwrap();
    let budget = CountBudget::default();
    for _ in 0..60 {
        assert_eq!(shards.evaluate_count_within(ObjectJson::Text(small), &budget), Ok(3));
    }
    let left = CountBudget::MAX_STEPS - budget.spent_steps();
    assert!(left > CountBudget::MAX_STEPS - 1_000, "sixty ordinary counts cost next to nothing: {left}");
    let of_large = || shards.evaluate_count_within(ObjectJson::Text(&text), &budget);
    assert_eq!((0..60).take_while(|_| of_large().is_ok()).count(), 4, "each reads all of the object");
    assert_eq!(of_large().unwrap_err().limit, Some(CostLimit::Steps));
    let error = shards.evaluate_count_within(ObjectJson::Text(small), &budget).unwrap_err();
    assert_eq!(error.limit, Some(CostLimit::Steps), "nothing is left for another");
}
