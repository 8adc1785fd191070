use serde_json::{Value, json};

use super::*;
use crate::cel_type::CelType;
use crate::meter::CostMeter;
use crate::name_scope::RootNames;
use crate::program::CelProgram;

fn object() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Database",
        "metadata": {"name": "orders", "generation": 2, "labels": {"app": "orders", "tier": "db"},
            "creationTimestamp": "2024-02-29T12:30:45Z"},
        "spec": {"replicas": 3, "size": "10Gi", "hosts": ["a", "b", "c"], "version": "1.2.3", "cidr": "10.0.0.0/8"},
        "status": {"observedGeneration": 2, "phase": "Running", "ratio": 0.5, "big": 18_446_744_073_709_551_615u64,
            "nothing": null, "ready": true, "readyReplicas": 3,
            "conditions": [
                {"type": "Available", "status": "True"},
                {"type": "Ready", "status": "True", "observedGeneration": 2},
            ]},
    })
}

/// Evaluates an expression; returns its value or the error text.
fn yields(source: &str, object: &Value) -> Result<bool, String> {
    let program = CelProgram::compile(source, RootNames::Fields, CelType::Bool)
        .map_err(|error| format!("at {error}"))?;
    let from_tree = {
        let meter = CostMeter::default();
        let fields = program.needs.read_object(ObjectJson::Tree(object), &meter).unwrap();
        program.evaluate_bool(&fields, &meter).map_err(|error| error.to_string())
    };
    let text = object.to_string();
    let meter = CostMeter::default();
    let fields = program.needs.read_object(ObjectJson::Text(&text), &meter).unwrap();
    let from_text = program.evaluate_bool(&fields, &meter).map_err(|error| error.to_string());
    assert_eq!(from_tree, from_text, "{source}");
    from_tree
}

const TRUE: &[&str] = &[
    // Fields, presence, types of JSON.
    "status.phase == 'Running'",
    "status['phase'] == \"Running\"",
    "self.status.phase == 'Running' && object.kind == 'Database'",
    "has(status.phase) && !has(status.absent)",
    "has(status.nothing) && status.nothing == null",
    "!has(status.nothing.deeper)",
    "type(status.readyReplicas) == int && type(status.ratio) == double && type(status.big) == double",
    "type(status.conditions) == list && type(status) == map && type(status.nothing) == null_type",
    "status.readyReplicas == spec.replicas && status.readyReplicas == 3.0 && status.readyReplicas == 3u",
    "'tier' in metadata.labels && !('x' in metadata.labels) && 'b' in spec.hosts",
    "status == self.status && size(self) == 5",
    // Macros.
    "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
    "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')",
    "status.conditions.exists_one(c, c.type == 'Ready') && status.conditions.existsOne(c, has(c.observedGeneration))",
    "status.conditions.map(c, c.type) == ['Available', 'Ready']",
    "status.conditions.map(c, c.type != 'Ready', c.status) == ['True']",
    "metadata.labels.all(k, k in ['app', 'tier']) && metadata.labels.map(k, metadata.labels[k]) == ['orders', 'db']",
    "metadata.labels.exists(k, v, k == 'tier' && v == 'db') && spec.hosts.all(i, h, h == spec.hosts[i])",
    "spec.hosts.transformList(i, h, i > 0, h) == ['b', 'c']",
    "metadata.labels.transformMap(k, v, v + '!') == {'app': 'orders!', 'tier': 'db!'}",
    "metadata.labels.transformMapEntry(k, v, {v: k}) == {'orders': 'app', 'db': 'tier'}",
    "cel.bind(x, status.phase, x + x == 'RunningRunning')",
    "[3, 1, 2].sortBy(x, -x) == [3, 2, 1] && ['b', 'a'].sort() == ['a', 'b']",
    "[].all(x, x.y.z) && ![].exists(x, true)",
    // Errors are absorbed by a deciding term.
    "status.absent == 1 || true",
    "!(false && status.absent == 1)",
    "[1, 2].exists(x, x / (x - 1) > 0 || x == 2)",
    "status.conditions.exists(c, c.observedGeneration == 2)",
    // Optional values.
    "status.?absent.orValue(5) == 5 && status.?phase.value() == 'Running'",
    "!status.?absent.deeper.hasValue() && status[?'phase'].hasValue() && ![1][?3].hasValue()",
    "status.?phase.optMap(p, p + '?').orValue('') == 'Running?'",
    "[?status.?absent, ?status.?phase] == ['Running'] && {?'a': status.?absent} == {}",
    "optional.ofNonZeroValue('').or(optional.of('x')).value() == 'x' && !optional.none().hasValue()",
    // Numbers.
    "7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1 && 2.5 * 2.0 == 5.0 && 1u + 2u == 3u",
    "9007199254740993 > 9007199254740992.0 && 1 < 1.5 && 2u > 1 && dyn(1) == 1.0",
    "int('42') == 42 && int(3.99) == 3 && double(2) == 2.0 && uint('7') == 7u && string(1.5) == '1.5'",
    // Strings.
    "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && ['a', 'b'].join('-') == 'a-b'",
    "'Grüße'.size() == 5 && 'Grüße'.charAt(2) == 'ü' && 'Grüße'.substring(2, 4) == 'üß' && 'grün'.indexOf('n') == 3",
    "'tacocat'.lastIndexOf('t') == 6 && 'tacocat'.lastIndexOf('a', 3) == 1 && 'x'.replace('x', 'y') == 'y'",
    "'%s has %d of %.2f'.format(['a', 3, 0.5]) == 'a has 3 of 0.50' && ' a '.trim() == 'a' && 'abc'.reverse() == 'cba'",
    "'AbC'.lowerAscii() == 'abc' && 'abc'.upperAscii() == 'ABC' && strings.quote('a\"b') == '\"a\\\\\"b\"'",
    "status.phase.startsWith('Run') && status.phase.endsWith('ing') && status.phase.contains('unn')",
    "status.phase.matches('^R[a-z]+$') && matches(status.phase, 'n{2}') && !'x'.matches('^\\\\d$')",
    "'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b2'.findAll('\\\\d', 1) == ['1']",
    "base64.decode('aGVsbG8=') == b'hello' && base64.encode(b'hello') == 'aGVsbG8=' && base64.decode('aGVsbG8') == b'hello'",
    "'TacoCat'.lastIndexOf('') == 7 && ''.lastIndexOf('x') == -1 && 'abc'.lastIndexOf('c', 5) == -1",
    "'abc'.indexOf('c', 7) == -1 && 'abc'.indexOf('', 7) == 7 && 'a'.charAt(1) == '' && 'abc'.substring(3) == ''",
    "'abc'.split('', 2) == ['a', 'bc'] && 'a,b'.split(',', 0) == [] && ''.split(',') == [''] && ''.split('') == []",
    "'aaa'.replace('', 'x') == 'xaxaxax' && 'aaa'.replace('a', 'x', 0) == 'aaa' && '%s'.format(['a', 'b']) == 'a'",
    "'\\u00fc' == 'ü' && r'\\d' == '\\\\d' && 0x1F == 31 && -9223372036854775808 < 0 && b'a' < b'b' && true > false",
    "'%d'.format([2.5]) == '2.5' && '%s'.format([1e21]) == '1000000000000000000000' && '%x'.format(['Az']) == '417a'",
    // Sets and lists.
    "sets.contains([1, 2, 3], [2.0]) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [2, 1])",
    "[1, 2, 3].sum() == 6 && [3, 1].min() == 1 && [3, 1].max() == 3 && [1, 2].isSorted() && [1, 2, 1].lastIndexOf(1) == 2",
    "[[1], [2, [3]]].flatten() == [1, 2, [3]] && [1, 2, 1].distinct() == [1, 2] && lists.range(3) == [0, 1, 2]",
    "[1, 2, 3].slice(1, 3) == [2, 3] && [1, 2].reverse() == [2, 1] && [1, 2].first().value() == 1",
    "[1] + [2] == [1, 2] && {'a': 1}['a'] == 1 && {1: 'x'}[1u] == 'x' && [1, 2][1.0] == 2",
    // Time.
    "timestamp(metadata.creationTimestamp) < timestamp('2024-03-01T00:00:00Z')",
    "timestamp('2024-02-29T12:30:45Z') + duration('24h') == timestamp('2024-03-01T12:30:45Z')",
    "timestamp('2024-02-29T12:30:45.5Z').getMilliseconds() == 500 && timestamp('2024-02-29T12:30:45Z').getDayOfYear() == 59",
    "timestamp('2024-02-29T23:30:45Z').getHours('+02:00') == 1 && timestamp('2024-02-29T12:00:00Z').getDayOfWeek() == 4",
    "duration('1h30m').getMinutes() == 90 && string(duration('90s')) == '90s' && duration('1m') > duration('59s')",
    // Kubernetes.
    "quantity(spec.size).isGreaterThan(quantity('10G')) && quantity('1Ki').asInteger() == 1024 && !isQuantity('x')",
    "quantity('1').sub(quantity('500m')).add(1).compareTo(quantity('1.5')) == 0 && quantity('-1').sign() == -1",
    "semver(spec.version).isLessThan(semver('1.10.0')) && semver('v1.2', true).minor() == 2 && !isSemver('v1.2.3')",
    "semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.10')) && semver('1.0.0-rc').isLessThan(semver('1.0.0'))",
    "cidr(spec.cidr).containsIP('10.1.2.3') && !cidr(spec.cidr).containsCIDR('11.0.0.0/16') && ip('::1').isLoopback()",
    "ip('192.168.0.1').family() == 4 && isIP('::1') && !isIP('::ffff:1.2.3.4') && string(cidr('10.1.2.3/8').masked()) == '10.0.0.0/8'",
    "url('https://user@example.com:8080/a b?x=1&x=2').getPort() == '8080' && url('https://h/p?x=1&x=2').getQuery() == {'x': ['1', '2']}",
    "isURL('https://a.b/c') && isURL('/path') && !isURL('a.b/c') && url('https://[::1]:80/').getHostname() == '::1'",
    // Type names, reserved words, comments.
    "type(1) == int && type('') == string && type(timestamp(0)) == google.protobuf.Timestamp",
    "true // that is all",
    "(status.ready ? 1 : 2) == 1",
];

#[test]
fn what_cel_holds_true_is_true() {
    let object = object();
    for source in TRUE {
        assert_eq!(yields(source, &object), Ok(true), "{source}");
    }
}

#[test]
fn what_has_no_value_is_an_error_in_the_words_of_cel_go() {
    let object = object();
    for (source, error) in [
        ("status.absent == 1", "no such key: absent"),
        ("data.x == 1", "no such attribute(s): data"),
        ("has(data.x)", "no such attribute(s): data"),
        ("status.conditions.type == 'x'", "unsupported index type 'string' in list"),
        ("status.conditions[9].type == 'x'", "index out of bounds: 9"),
        ("status.phase", "the expression yields 'string', not 'bool'"),
        ("status.phase > 1", "no such overload: _>_(string, int)"),
        ("status.phase.foo == 1", "no such key: foo"),
        ("1 / (spec.replicas - 3) == 1", "division by zero"),
        ("9223372036854775807 + spec.replicas > 0", "integer overflow"),
        ("status.phase.all(c, c == 'R')", "got 'string', expected iterable type"),
        ("status.absent == 1 && true", "no such key: absent"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("int('x') == 1", "the string is no int"),
        ("uint('+1') == 1u", "the string is no uint"),
        ("status.conditions[0.5] == 1", "unsupported index value in list: a fraction"),
        ("'%s'.format([]) == ''", "index 0 out of range"),
    ] {
        assert_eq!(yields(source, &object), Err(error.to_owned()), "{source}");
    }
}

#[test]
fn mistakes_are_found_before_an_object_is_there_and_where_they_are() {
    for (source, error) in [
        ("statsu.phase == 'x'", "at 1:1: undeclared reference to 'statsu'"),
        ("true &&\n  staus.phase == 'x'", "at 2:3: undeclared reference to 'staus'"),
        ("'ä' == 'ö' || foo", "at 1:15: undeclared reference to 'foo'"),
        ("status.conditions.exists(c, d.type == 'x')", "at 1:29: undeclared reference to 'd'"),
        ("status.phase.startWith('x')", "at 1:14: undeclared reference to the function 'startWith'"),
        ("true && foo(1)", "at 1:9: undeclared reference to the function 'foo'"),
        ("startsWith('a', 'b')", "at 1:1: 'startsWith' is a method"),
        ("'1Gi'.quantity()", "at 1:7: 'quantity' is a function"),
        ("size(1, 2) == 1", "at 1:1: 'size' takes 1 arguments, not 2"),
        ("'a'.startsWith('a', 'b')", "at 1:5: 'startsWith' takes 1 arguments, not 2"),
        (
            "'a'.startsWith(1)",
            "at 1:5: found no matching overload for 'startsWith' applied to 'string.(int)'",
        ),
        ("1 + 'a' == 2", "at 1:1: found no matching overload for '_+_' applied to '(int, string)'"),
        ("kind == 1", "at 1:1: found no matching overload for '_==_' applied to '(string, int)'"),
        ("1", "at 1:1: the expression yields 'int', not 'bool'"),
        ("metadata.name", "at 1:1: the expression yields 'string', not 'bool'"),
        ("'ready'", "at 1:1: the expression yields 'string', not 'bool'"),
        ("status.conditions.map(c, c.type)", "at 1:1: the expression yields 'list', not 'bool'"),
        ("has(status)", "at 1:5: invalid argument to has() macro"),
        ("status.phase.matches('[')", "at 1:22: failed to read the pattern"),
        (
            "math.greatest(1, 2) == 2",
            "at 1:1: the function 'math.greatest' (math of cel-go) is not supported",
        ),
        ("hash.sha256('a') == 'b'", "at 1:1: the function 'hash.sha256' (kro) is not supported"),
        ("Pod{metadata: 1} == 1", "at 1:4: messages such as 'Pod' are not supported"),
        ("status.phase ==", "at 1:16: Syntax error"),
        ("", "at 1:1: the expression is empty"),
        ("kind.all(k, true)", "at 1:1: 'string' cannot be iterated"),
        ("[1].all(x, x + 'a')", "at 1:12: found no matching overload for 'predicate'"),
    ] {
        let said = yields(source, &object()).unwrap_err();
        assert!(said.starts_with(error), "{source}: {said}");
    }
}

#[test]
fn of_the_object_no_more_is_read_than_is_named() {
    let needs = |source: &str| CelProgram::compile(source, RootNames::Fields, CelType::Bool).unwrap().needs;
    let parts = |source: &str, field: &str| needs(source).fields.get(field).cloned().unwrap();
    assert_eq!(
        parts("status.phase == 'a' && status.b.c == 1", "status"),
        Some(["phase".into(), "b".into()].into())
    );
    assert_eq!(parts("status.phase == 'a' && size(status) > 1", "status"), None);
    assert_eq!(parts("size(status) > 1 && status.phase == 'a'", "status"), None);
    assert!(needs("self == self").whole && !needs("self.spec.a == 1").whole);
    let huge = format!(
        r#"{{"metadata": {}, "status": {{"phase": "Up"}}}}"#,
        "[".repeat(100_000) + &"]".repeat(100_000)
    );
    let program = CelProgram::compile("status.phase == 'Up'", RootNames::Fields, CelType::Bool).unwrap();
    let meter = CostMeter::default();
    let fields = program.needs.read_object(ObjectJson::Text(&huge), &meter).unwrap();
    assert_eq!(program.evaluate_bool(&fields, &meter), Ok(true));
}

#[test]
fn of_a_key_that_is_there_twice_the_last_counts() {
    let program =
        CelProgram::compile("status.a == 2 && size(status) == 2", RootNames::Fields, CelType::Bool).unwrap();
    let (twice, meter) = (r#"{"status": {"a": 1, "b": 0, "a": 2}}"#, CostMeter::default());
    let fields = program.needs.read_object(ObjectJson::Text(twice), &meter).unwrap();
    assert_eq!(program.evaluate_bool(&fields, &meter), Ok(true));
}

#[test]
fn flux_asks_for_the_generation_first_and_then_in_its_own_order() {
    let check = HealthCheck::compile("data.current", Some("data.inProgress"), Some("data.failed")).unwrap();
    let judge = |object: Value| check.evaluate_health(ObjectJson::Tree(&object));
    let data = |current: bool, progress: bool, failed: bool| json!({"data": {"current": current, "inProgress": progress, "failed": failed}});
    assert_eq!(judge(data(true, true, true)), Ok(HealthCheckResult::InProgress));
    assert_eq!(judge(data(true, false, true)), Ok(HealthCheckResult::Failed));
    assert_eq!(judge(data(true, false, false)), Ok(HealthCheckResult::Current));
    assert_eq!(judge(data(false, false, false)), Ok(HealthCheckResult::None));
    let stale = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}});
    assert_eq!(judge(stale), Ok(HealthCheckResult::Stale { observed: 1, generation: 2 }));
    let (name, error) = judge(json!({"data": {"inProgress": false}})).unwrap_err();
    assert_eq!((name, error.message.as_str(), error.absent), ("failed", "no such key: failed", true));
    let odd = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": "1"}, "data": data(true, false, false)["data"]});
    assert_eq!(judge(odd), Ok(HealthCheckResult::Current));
    let (name, error) = HealthCheck::compile("true", None, Some("\n nope")).unwrap_err();
    assert_eq!((name, error.line, error.column), ("failed", 2, 2));
}

#[test]
fn kro_knows_the_object_by_its_id_alone() {
    let ready = ReadyWhen::compile(
        &["${database.status.phase == 'Running'}", "database.status.readyReplicas == database.spec.replicas"],
        Some("database"),
    )
    .unwrap();
    assert_eq!(ready.find_unmet(ObjectJson::Tree(&object())), Ok(None));
    let mut other = object();
    other["status"]["readyReplicas"] = json!(2);
    assert_eq!(ready.find_unmet(ObjectJson::Tree(&other)), Ok(Some(1)));
    let (at, error) = ready.find_unmet(ObjectJson::Tree(&json!({}))).unwrap_err();
    assert_eq!((at, error.absent), (0, true));
    let (at, error) = ReadyWhen::compile(&["true", "status.x"], Some("database")).unwrap_err();
    assert!(at == 1 && error.message.contains("only 'database'"), "{error}");
}

#[test]
fn a_count_is_an_int_over_a_named_object() {
    let count = CountExpression::compile("parent.spec.replicas * 2", "parent").unwrap();
    assert_eq!(count.evaluate_count(ObjectJson::Tree(&object())), Ok(6));
    assert_eq!(CountExpression::compile("parent.spec.replicas > 2", "parent").unwrap_err().column, 1);
    let odd = CountExpression::compile("parent.status.phase", "parent").unwrap();
    assert_eq!(
        odd.evaluate_count(ObjectJson::Tree(&object())).unwrap_err().message,
        "the expression yields 'string', not 'int'"
    );
}

#[test]
fn garbled_expressions_are_refused_or_evaluated_and_nothing_crashes() {
    let object = object();
    let mut dice: u64 = 7;
    let mut below = |limit: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) as usize % limit
    };
    let mut evaluated = 0;
    for _ in 0..1500 {
        let mut source: Vec<char> = TRUE[below(TRUE.len())].chars().collect();
        for _ in 0..=below(4) {
            let (from, to) = (below(source.len()), below(source.len()));
            match below(4) {
                0 => drop(source.remove(from)),
                1 => source.insert(to, source[from]),
                2 => source.swap(from, to),
                _ => source[from] = ['(', '\'', '?', '0', '.', '\\', '{', 'é'][below(8)],
            }
        }
        let source: String = source.into_iter().collect();
        match ReadyWhen::compile(&[&source], None) {
            Ok(rule) => {
                evaluated += 1;
                let _ = rule.find_unmet(ObjectJson::Tree(&object));
            }
            Err((_, error)) => assert!(!error.message.contains("crashed"), "{source}: {error}"),
        }
    }
    assert!(evaluated > 50, "only {evaluated} were expressions");
}
