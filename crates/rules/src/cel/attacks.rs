//! Expressions that mean harm, each with what it must get: refused, stopped in time, or an answer, but never more.

use serde_json::{Value, json};

use super::*;
use crate::cost::{MOST, cost};
use crate::lua::Limit;

/// What an attack must end in.
#[derive(Clone, Debug, PartialEq)]
enum End {
    /// Refused when compiled, as too much.
    Refused,
    /// Refused when compiled, as a mistake.
    Wrong,
    /// Stopped while it ran.
    Stopped,
    /// It ends by itself, with a value or an error.
    Ends,
}

fn doubled(times: usize) -> String {
    format!("[[1]]{}.size() == 1", ".map(x, x + x)".repeat(times))
}

/// Loops within loops over a list of the object.
fn nested(levels: usize) -> String {
    (0..levels).fold("true".to_owned(), |body, level| format!("spec.items.all(x{level}, {body})"))
}

type Attack = (&'static str, String, End);

/// Made to be too much for a parser or for what walks its tree.
fn shapes() -> Vec<Attack> {
    let text = "'x'";
    vec![
        ("100 kB", format!("'{}' == 'x'", "x".repeat(100_000)), End::Refused),
        ("100 kB of blanks", format!("{}true", " ".repeat(100_000)), End::Refused),
        ("1,400 terms of +", format!("{} > 0", vec!["1"; 1400].join("+")), End::Refused),
        ("2,000 terms of &&", vec!["1<2"; 1100].join("&&"), End::Ends),
        ("1,400 terms of ||", vec!["false"; 1000].join("||"), End::Ends),
        ("1,400 ternaries", format!("{}true", "true?true:".repeat(700)), End::Refused),
        ("a ternary in a condition", format!("{}true", "(true?".repeat(200)), End::Refused),
        ("parentheses", format!("{}true{}", "(".repeat(4000), ")".repeat(4000)), End::Refused),
        ("open parentheses", "(".repeat(8000), End::Refused),
        ("lists in lists", format!("{}{} == []", "[".repeat(4000), "]".repeat(4000)), End::Refused),
        ("maps in maps", format!("{}1{} == {{}}", "{1:".repeat(2000), "}".repeat(2000)), End::Refused),
        ("fields of fields", format!("status{} == 1", ".a".repeat(3000)), End::Refused),
        ("calls of calls", format!("{text}{} == 'x'", ".trim()".repeat(1000)), End::Refused),
        ("minus minus", format!("{}1 == 1", "-".repeat(8000)), End::Ends),
        ("not not", format!("{}true", "!".repeat(8000)), End::Ends),
        ("quotes", "'".repeat(8001), End::Wrong),
        ("macros in macros", nested(40), End::Refused),
        ("six loops in each other", nested(6), End::Refused),
        ("has of has", "has(has(status.a).b)".to_owned(), End::Wrong),
    ]
}

/// Loops within loops, and values that grow.
fn loops() -> Vec<Attack> {
    vec![
        ("two loops over a large list", nested(2), End::Stopped),
        ("five loops over a large list", nested(5), End::Stopped),
        ("loops that hide behind ||", format!("({}) || true", nested(5)), End::Stopped),
        ("loops that hide in an all", format!("[1, 2].all(y, ({}) || true)", nested(4)), End::Stopped),
        (
            "map of map of map",
            "spec.items.map(a, spec.items.map(b, spec.items.map(c, c))).size() > 0".to_owned(),
            End::Stopped,
        ),
        ("a list doubled 24 times", doubled(24), End::Stopped),
        ("a list doubled 500 times", doubled(500), End::Refused),
        (
            "a text doubled",
            format!(
                "cel.bind(a0, 'xxxxxxxx', {}a40 == 'x'{}",
                (0..40)
                    .map(|at| format!("cel.bind(a{}, a{at} + a{at}, ", at + 1))
                    .collect::<Vec<_>>()
                    .concat(),
                ")".repeat(41)
            ),
            End::Stopped,
        ),
        (
            "a text replaced by itself",
            format!("spec.long{}.size() == 1", ".replace('x', 'xxxxxxxxxxxxxxxx')".repeat(6)),
            End::Stopped,
        ),
    ]
}

/// Functions that cost more than one step.
fn functions() -> Vec<Attack> {
    vec![
        ("a range of all numbers", "lists.range(9223372036854775807).size() == 1".to_owned(), End::Stopped),
        (
            "ranges of ranges",
            "lists.range(900).map(x, lists.range(900)).flatten().size() == 1".to_owned(),
            End::Stopped,
        ),
        ("join of many", "spec.items.map(x, spec.long).join(spec.long) == ''".to_owned(), End::Stopped),
        (
            "split into characters",
            "spec.long.split('').map(x, spec.long.split('')).size() == 1".to_owned(),
            End::Stopped,
        ),
        ("distinct of many", "spec.items.distinct().size() == 1".to_owned(), End::Stopped),
        ("sets of many", "sets.equivalent(spec.items, spec.items.reverse())".to_owned(), End::Stopped),
        ("in of many", "spec.items.all(x, x in spec.items)".to_owned(), End::Stopped),
        ("sort of many", "spec.items.map(x, spec.items.sort()).size() == 1".to_owned(), End::Stopped),
        ("equality of large lists", "spec.items.all(x, spec.items == spec.items)".to_owned(), End::Stopped),
        ("comparison of long texts", "spec.items.all(x, spec.long <= spec.long)".to_owned(), End::Stopped),
        ("equality of long texts", "spec.items.all(x, spec.long == spec.long)".to_owned(), End::Stopped),
        ("format of a giant", "'%.99999999f'.format([1.5]) == ''".to_owned(), End::Ends),
        (
            "format of all",
            "'%s%s%s%s%s%s%s%s%s'.format([self, self, self, self, self, self, self, self, self]) == ''"
                .to_owned(),
            End::Stopped,
        ),
        ("a pattern with counts in counts", "spec.long.matches('((a{99}){99}){99}')".to_owned(), End::Wrong),
        ("a pattern of parentheses", format!("spec.long.matches('{}')", "(".repeat(3000)), End::Wrong),
        ("a heavy pattern, a long text", "spec.long.matches('(x?){200}(x*)*y')".to_owned(), End::Stopped),
        (
            "a pattern of the object",
            "spec.items.all(x, spec.long.matches(spec.pattern))".to_owned(),
            End::Stopped,
        ),
        (
            "a pattern made anew for each",
            "spec.items.exists(x, 'a'.matches('b{900}' + string(x)))".to_owned(),
            End::Stopped,
        ),
        ("findAll of nothing", "spec.long.findAll('.*y|x').size() == 1".to_owned(), End::Stopped),
        ("a map with many keys", "spec.items.transformMap(i, x, x).size() == 1".to_owned(), End::Stopped),
        (
            "base64 of base64",
            format!("{}b'x'{} == ''", "base64.encode(bytes(".repeat(40), "))".repeat(40))
                .replace("b'x'", "spec.long"),
            End::Stopped,
        ),
    ]
}

/// Numbers and places at their ends.
fn ends() -> Vec<Attack> {
    vec![
        ("division of the least", "(-9223372036854775807 - 1) / -1 == 1".to_owned(), End::Ends),
        ("remainder of the least", "(-9223372036854775807 - 1) % -1 == 1".to_owned(), End::Ends),
        ("minus the least", "-(-9223372036854775807 - 1) == 1".to_owned(), End::Ends),
        (
            "the end of time",
            "timestamp('9999-12-31T23:59:59Z') + duration('2562047h') > timestamp(0)".to_owned(),
            End::Ends,
        ),
        ("a large quantity", "quantity('999999999999999999999999999999E').sign() == 1".to_owned(), End::Ends),
        ("a large exponent", "quantity('1e2147483647').sign() == 1".to_owned(), End::Ends),
        (
            "places between characters",
            "'äöü'.substring(1, 2) == 'ö' && 'äöü'.lastIndexOf('ü', 1) == -1".to_owned(),
            End::Ends,
        ),
    ]
}

/// About a mebibyte.
fn large() -> Value {
    json!({
        "metadata": {"generation": 1},
        "spec": {"items": (0..60_000).collect::<Vec<_>>(), "long": "x".repeat(600_000), "pattern": "(x+x+)+y"},
        "status": {"conditions": []},
    })
}

/// What happens once, on a thread of its own: the time that it takes, the least of three. Only shown: it is paid by whoever
/// brings a policy, and a machine that is busy takes longer.
#[expect(clippy::disallowed_methods, reason = "how long an attack takes is what is shown")]
fn lasts<T>(compile: impl Fn() -> T) -> (T, f64) {
    let once = || {
        let started = std::time::Instant::now();
        (compile(), started.elapsed().as_secs_f64() * 1e3)
    };
    let least = once().1.min(once().1);
    let (outcome, last) = once();
    (outcome, last.min(least))
}

#[test]
fn every_attack_is_refused_or_stopped_or_ends() {
    let large = large();
    let mut others = Vec::new();
    for (name, source, expected) in [shapes(), loops(), functions(), ends()].concat() {
        let (compiled, compiling) = lasts(|| ReadyWhen::compile(&[&source], None));
        let (end, words, took) = match compiled {
            Err((_, error)) if error.limit => (End::Refused, error.message, compiling),
            Err((_, error)) => (End::Wrong, error.message, compiling),
            Ok(rule) => {
                let (outcome, took) = cost(|| rule.judge(Object::Tree(&large)));
                match outcome {
                    Err((_, EvalError { message, limit: Some(_), .. })) => (End::Stopped, message, took),
                    other => (End::Ends, format!("{other:?}"), took),
                }
            }
        };
        let words: String = words.chars().take(60).collect();
        println!("{name:32} {took:>9.3} ms  {end:?}: {words}");
        if took > MOST && matches!(end, End::Stopped | End::Ends) {
            others.push(format!("{name} cost {took} ms"));
        }
        if end != expected {
            others.push(format!("{name}: {end:?}, not {expected:?}: {words}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn a_limit_is_the_same_however_often_it_is_asked() {
    let rule = ReadyWhen::compile(&[&nested(3)], None).unwrap();
    let large = large();
    for _ in 0..3 {
        let (_, error) = rule.judge(Object::Tree(&large)).unwrap_err();
        assert_eq!(error.limit, Some(Limit::Steps));
    }
    let small = json!({"spec": {"items": [1, 2, 3]}});
    assert_eq!(rule.judge(Object::Tree(&small)), Ok(None));
}

#[test]
fn an_object_nested_deeper_than_any_is_a_limit_only_where_it_is_read() {
    let deep = format!(r#"{{"spec": {}1{}, "status": {{"ok": true}}}}"#, "[".repeat(5000), "]".repeat(5000));
    let reads = |source: &str| ReadyWhen::compile(&[source], None).unwrap().judge(Object::Text(&deep));
    assert_eq!(reads("status.ok"), Ok(None));
    assert_eq!(reads("spec == []").unwrap_err().1.limit, Some(Limit::Depth));
}

#[test]
fn compiling_and_judging_fit_the_stack_of_a_small_thread() {
    let deepest = (0..lower::DEPTH - 3).fold("true".to_owned(), |body, _| format!("[{body}]"));
    let chain = format!("{}1 == 1", "1+".repeat(lower::DEPTH - 3));
    for source in [format!("{deepest} == []"), chain, nested(5), doubled(40)] {
        let judge = move || {
            let rule = ReadyWhen::compile(&[&source], None);
            rule.map(|rule| rule.judge(Object::Tree(&json!({"spec": {"items": [1]}}))).is_ok()).is_ok()
        };
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(judge).unwrap();
        thread.join().unwrap();
    }
}

#[test]
fn the_deepest_object_that_is_read_fits_the_stack_of_a_worker() {
    let deep = format!(r#"{{"spec": {}1{}}}"#, r#"{"a":["#.repeat(149), "]}".repeat(149));
    let judge = move || {
        let rule = ReadyWhen::compile(&["spec == self.spec && type(spec.a) == list"], None).unwrap();
        rule.judge(Object::Text(&deep))
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(judge).unwrap();
    assert_eq!(thread.join().unwrap(), Ok(None));
}
