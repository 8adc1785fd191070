//! Hostile expressions, each with its required outcome: refused, stopped in time, or answered within the bounds.

mod counts;

use serde_json::{Value, json};

use super::*;
use crate::cost::{MAX_ATTACK_MILLIS, measure_cost};
use crate::nesting::MAX_EXPRESSION_DEPTH;

/// The required outcome of an attack.
#[derive(Clone, Debug, PartialEq)]
enum End {
    /// Refused at compile time by a limit.
    Refused,
    /// Refused at compile time as an error.
    Wrong,
    /// Stopped at run time by a limit.
    Stopped,
    /// Terminates by itself, with a value or an error.
    Ends,
}

fn doubled(times: usize) -> String {
    format!("[[1]]{}.size() == 1", ".map(x, x + x)".repeat(times))
}

/// Returns nested loops over a list of the object.
fn nested(levels: usize) -> String {
    (0..levels).fold("true".to_owned(), |body, level| format!("spec.items.all(x{level}, {body})"))
}

type Attack = (&'static str, String, End);

/// Expressions too large for a parser or for code that walks its tree.
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

/// Nested loops, and growing values.
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

/// Functions that read all of a long text to find that it is nothing for them.
fn conversions() -> Vec<Attack> {
    let walk = |call: &str| format!("spec.items.exists(x, {call} == -1 - x)");
    vec![
        ("a number of zeros", walk("int(spec.zeros)"), End::Stopped),
        ("a fraction of zeros", walk("int(double(spec.zeros))"), End::Stopped),
        ("a quantity of zeros", walk("quantity(spec.zeros).sign()"), End::Stopped),
        ("an address of zeros", walk("ip(spec.zeros).family()"), End::Stopped),
        ("a version of zeros", walk("semver(spec.zeros).major()"), End::Stopped),
        ("a moment of zeros", walk("int(timestamp(spec.zeros))"), End::Stopped),
        ("a duration of zeros", walk("duration(spec.zeros).getHours()"), End::Stopped),
        ("a network of zeros", walk("cidr(spec.zeros).prefixLength()"), End::Stopped),
        ("a URL of zeros", walk("size(url(spec.zeros).getHost())"), End::Stopped),
        ("a zone of zeros", walk("timestamp(0).getHours(spec.zeros)"), End::Stopped),
        ("long bytes of the source", walk(&format!("size(b'{}')", "x".repeat(7000))), End::Stopped),
        ("a sort of what has no order", "[1.0, double('NaN'), 0.5].sort() == []".to_owned(), End::Ends),
        ("a sort of long texts", "spec.items.map(x, spec.long).sort() == []".to_owned(), End::Stopped),
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

/// Numbers and indices at their bounds.
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

/// Returns a value of about a mebibyte.
fn large() -> Value {
    json!({
        "metadata": {"generation": 1},
        "spec": {"items": (0..60_000).collect::<Vec<_>>(), "long": "x".repeat(600_000), "pattern": "(x+x+)+y",
            "zeros": "0".repeat(600_000)},
        "status": {"conditions": []},
    })
}

/// Runs a compilation on a thread of its own and returns the least time of three runs. The time is only printed: it is
/// paid when a policy is loaded, and a busy machine takes longer.
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
    for (name, source, expected) in [shapes(), loops(), conversions(), functions(), ends()].concat() {
        let (compiled, compiling) = lasts(|| ReadyWhen::compile(&[&source], None));
        let (end, words, took) = match compiled {
            Err((_, error)) if error.limit => (End::Refused, error.message, compiling),
            Err((_, error)) => (End::Wrong, error.message, compiling),
            Ok(rule) => {
                let (outcome, took) = measure_cost(|| rule.find_unmet(ObjectJson::Tree(&large)));
                match outcome {
                    Err((_, EvalError { message, limit: Some(_), .. })) => (End::Stopped, message, took),
                    other => (End::Ends, format!("{other:?}"), took),
                }
            }
        };
        let words: String = words.chars().take(60).collect();
        println!("{name:32} {took:>9.3} ms  {end:?}: {words}");
        if took > MAX_ATTACK_MILLIS && matches!(end, End::Stopped | End::Ends) {
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
        let (_, error) = rule.find_unmet(ObjectJson::Tree(&large)).unwrap_err();
        assert_eq!(error.limit, Some(CostLimit::Steps));
    }
    let small = json!({"spec": {"items": [1, 2, 3]}});
    assert_eq!(rule.find_unmet(ObjectJson::Tree(&small)), Ok(None));
}

#[test]
fn an_object_nested_deeper_than_any_is_a_limit_only_where_it_is_read() {
    let deep = format!(r#"{{"spec": {}1{}, "status": {{"ok": true}}}}"#, "[".repeat(5000), "]".repeat(5000));
    let reads =
        |source: &str| ReadyWhen::compile(&[source], None).unwrap().find_unmet(ObjectJson::Text(&deep));
    assert_eq!(reads("status.ok"), Ok(None));
    assert_eq!(reads("spec == []").unwrap_err().1.limit, Some(CostLimit::Depth));
}

#[test]
fn compiling_and_judging_fit_the_stack_of_a_small_thread() {
    let deepest = (0..MAX_EXPRESSION_DEPTH - 3).fold("true".to_owned(), |body, _| format!("[{body}]"));
    let chain = format!("{}1 == 1", "1+".repeat(MAX_EXPRESSION_DEPTH - 3));
    for source in [format!("{deepest} == []"), chain, nested(5), doubled(40)] {
        let judge = move || {
            let rule = ReadyWhen::compile(&[&source], None);
            rule.map(|rule| rule.find_unmet(ObjectJson::Tree(&json!({"spec": {"items": [1]}}))).is_ok())
                .is_ok()
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
        rule.find_unmet(ObjectJson::Text(&deep))
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(judge).unwrap();
    assert_eq!(thread.join().unwrap(), Ok(None));
}

#[test]
fn reading_the_object_is_charged_before_it_is_evaluated() {
    let rule = ReadyWhen::compile(&["size(spec.items) >= 0"], None).unwrap();
    let judge = |text: &str| rule.find_unmet(ObjectJson::Text(text));
    let of = |count: usize| format!(r#"{{"spec": {{"items": [{}0]}}}}"#, "0,".repeat(count));
    assert_eq!(judge(&of(100_000)), Ok(None), "the largest object that a server keeps can be read");
    assert_eq!(judge(&of(750_000)).unwrap_err().1.limit, Some(CostLimit::Memory));
    let endless = format!(r#"{{"other": "{}", "spec": {{"items": []}}}}"#, "x".repeat(26 << 20));
    assert_eq!(judge(&endless).unwrap_err().1.limit, Some(CostLimit::Steps), "what is skipped is read too");
}

#[test]
fn reading_is_linear_in_the_object_whatever_is_asked_of_it() {
    let fields = |of: &str, count: usize| {
        (0..count).map(|at| format!(r#""{of}{at}": 1"#)).collect::<Vec<_>>().join(",")
    };
    let text = format!(r#"{{{}, "status": {{{}}}}}"#, fields("root", 62_000), fields("field", 62_000));
    let asked = (0..400).map(|at| format!("has(status.f{at})")).collect::<Vec<_>>().join("||");
    for source in [asked.as_str(), "self.status.field7 == 1", "size(self) > 0"] {
        let rule = ReadyWhen::compile(&[source], None).unwrap();
        let (_, took) = measure_cost(|| rule.find_unmet(ObjectJson::Text(&text)));
        println!("{took:>9.3} ms  {}", &source[..source.len().min(40)]);
        // Four megabytes of keys: what is measured is that the product of both is not walked.
        assert!(took < 8.0 * MAX_ATTACK_MILLIS, "{source} cost {took} ms");
    }
}

/// A hundred times something whose own steps are few, over names that differ in their last characters alone.
#[test]
fn comparing_keys_costs_what_is_compared() {
    let names: Vec<String> = (10..25).map(|at| format!("{}{at}", "k".repeat(40_000))).collect();
    let named: serde_json::Map<_, _> = names.iter().map(|name| (name.clone(), json!(1))).collect();
    let often: Vec<usize> = (0..100).collect();
    let object = json!({"spec": {"names": names, "last": names[14], "named": named, "often": often}});
    let made = "spec.names.transformMapEntry(i, k, {k: i})";
    let bound = |body: &str| format!("cel.bind(m, {made}, spec.often.all(x, {body}))");
    let literal = (0..15).map(|at| format!("spec.names[{at}]: 1")).collect::<Vec<_>>().join(", ");
    for source in [
        bound("spec.last in m"),
        bound("m[spec.last] == 14"),
        bound("m[?spec.last].hasValue()"),
        bound("m == m"),
        bound("m.exists(k, m[k] == 99) || true"),
        format!("spec.often.all(x, size({made}) == 15)"),
        format!("spec.often.all(x, size({{{literal}}}) == 15)"),
        "spec.often.all(x, spec.last in spec.named)".to_owned(),
        "spec.often.all(x, spec.named == spec.named)".to_owned(),
    ] {
        let rule = ReadyWhen::compile(&[&source], None).unwrap();
        let (outcome, took) = measure_cost(|| rule.find_unmet(ObjectJson::Tree(&object)));
        println!("{took:>9.3} ms  {source}");
        let limit = outcome.err().and_then(|(_, error)| error.limit);
        assert_eq!(limit, Some(CostLimit::Steps), "{source}");
        assert!(took < MAX_ATTACK_MILLIS, "{source} cost {took} ms");
    }
}

/// Every way to make an error out of a value: what follows from the value is its type alone.
#[test]
fn no_error_quotes_a_value_of_the_object() {
    let (token, pin) = ("hunter2", 471_147);
    let object =
        json!({"data": {"token": token, "b64": "aHVudGVyMg==", "pin": pin, "ratio": 471_147.5, "map": {}}});
    let token = "self.data.token";
    let mut sources = vec!["string(base64.decode(self.data.b64))".to_owned(), token.to_owned()];
    for convert in
        ["int", "uint", "double", "bool", "duration", "timestamp", "quantity", "ip", "cidr", "semver", "url"]
    {
        sources.push(format!("{convert}({token}) == null"));
        sources.push(format!("{convert}(string(base64.decode(self.data.b64))) == null"));
    }
    sources.extend(
        [
            "self.data.map[self.data.token] == 1",
            "self.data.map[self.data.pin] == 1",
            "{1: 2}[self.data.pin] == 1",
            "[1][self.data.pin] == 1",
            "[1][self.data.ratio] == 1",
            "[1][self.data.token] == 1",
            "self.data.token.charAt(self.data.pin) == ''",
            "self.data.token.substring(self.data.pin) == ''",
            "self.data.token.indexOf('x', -self.data.pin) == 1",
            "[1].slice(self.data.pin, self.data.pin) == []",
            "timestamp(0).getHours(self.data.token) == 1",
            "self.data.token.matches('[' + self.data.token)",
            "('%' + self.data.token).format([1]) == ''",
            "'%d'.format([self.data.token]) == ''",
            "self.data.token + self.data.pin == ''",
            "self.data.token < self.data.pin",
            "lists.range(self.data.pin * self.data.pin).size() == 0",
            "{self.data.map: 1} == {}",
            "[self.data.token].sum() == 1",
            "self.data.pin / (self.data.pin - self.data.pin) == 1",
            "base64.decode(self.data.token + '!') == b''",
            "self.data.token.all(x, true)",
        ]
        .map(str::to_owned),
    );
    let mut failed = 0;
    for source in &sources {
        for from in [object.clone(), json!({"data": object["data"], "x": 1})] {
            let text = from.to_string();
            let Ok(rule) = ReadyWhen::compile(&[&format!("dyn({source})")], None) else { continue };
            if let Err((_, error)) = rule.find_unmet(ObjectJson::Text(&text)) {
                failed += 1;
                for value in ["hunter2", "hunter", "471147", "aHVudGVy", "'h'", "\"h\""] {
                    assert!(!error.message.contains(value), "{source}: {}", error.message);
                }
            }
        }
    }
    assert!(failed > 60, "{failed} of these are errors");
}

#[test]
fn an_object_that_is_none_is_not_quoted_either() {
    let rule = ReadyWhen::compile(&["true"], None).unwrap();
    for text in [r#""hunter2""#, "471147", r#"{"a": hunter2}"#, r#"{"hunter2": "#, "[\"hunter2\"]"] {
        let message = rule.find_unmet(ObjectJson::Text(text)).unwrap_err().1.message;
        assert!(!message.contains("hunter2") && !message.contains("471147"), "{message}");
    }
}
