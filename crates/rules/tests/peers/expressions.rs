//! Random expressions: most of them valid, some of the wrong type.

use crate::mutate::SeededRandom;

/// The intended type of an expression.
#[derive(Clone, Copy, PartialEq)]
enum ExpressionType {
    Bool,
    Number,
    Text,
    List,
    Map,
    Optional,
    Moment,
    Span,
    Quantity,
    Semver,
    Ip,
    Cidr,
    Url,
}

const KINDS: [ExpressionType; 13] = [
    ExpressionType::Bool,
    ExpressionType::Number,
    ExpressionType::Text,
    ExpressionType::List,
    ExpressionType::Map,
    ExpressionType::Optional,
    ExpressionType::Moment,
    ExpressionType::Span,
    ExpressionType::Quantity,
    ExpressionType::Semver,
    ExpressionType::Ip,
    ExpressionType::Cidr,
    ExpressionType::Url,
];

/// Letters in a shape: `B` a boolean, `N` a number, `T` a text, `L` a list, `M` a map, `O` an optional, `D` a
/// timestamp, `S` a duration, `Q` a quantity, `V` a version, `I` an address, `C` a network, `U` a URL, `X` anything,
/// `F` a field, `E` with a variable `e` around it.
const SHAPES: [(ExpressionType, &str); 13] = [
    (
        ExpressionType::Bool,
        "true; false; (B && B); (B || B); !B; (B ? B : B); (N == N); (N < N); (N >= N); (T == T); (T < T); \
         (X == X); (X != X); (F == X); has(F); (T in M); (X in L); T.contains(T); T.startsWith(T); \
         T.endsWith(T); T.matches('^[a-z]+$'); T.matches('[0-9]{2,}'); L.exists(e, E); L.all(e, E); \
         L.exists_one(e, E); M.exists(e, E); M.all(e, v, v == X); L.exists(i, e, i == N); \
         sets.contains(L, L); sets.intersects(L, L); sets.equivalent(L, L); O.hasValue(); (D < D); \
         (D == D); (S < S); Q.isGreaterThan(Q); Q.isLessThan(Q); isQuantity(T); Q.isInteger(); \
         V.isLessThan(V); isSemver(T); isIP(T); isCIDR(T); C.containsIP(T); C.containsCIDR(C); \
         I.isLoopback(); I.isGlobalUnicast(); isURL(T); L.isSorted(); bool(T); (type(X) == type(X)); \
         cel.bind(e, X, E); F; (L == L); (M == M); (Q == Q); (V == V); (O == O); dyn(B); \
         I.isUnspecified(); I.isLinkLocalUnicast()",
    ),
    (
        ExpressionType::Number,
        "0; 1; 2; -1; 3u; 0.5; 2.0; 1e3; 9223372036854775807; (N + N); (N - N); (N * N); (N / N); (N % N); \
         -N; size(T); size(L); T.size(); M.size(); int(N); int(T); double(N); uint(N); double(T); \
         T.indexOf(T); T.indexOf(T, N); T.lastIndexOf(T); T.lastIndexOf(T, N); L.sum(); L.max(); L.min(); \
         L.indexOf(X); L.lastIndexOf(X); D.getFullYear(); D.getMonth(); D.getDayOfYear(); \
         D.getDayOfWeek(); D.getHours('+05:30'); D.getDate(); D.getSeconds(); S.getMinutes(); \
         S.getSeconds(); S.getMilliseconds(); D.getMilliseconds(); Q.asInteger(); Q.asApproximateFloat(); \
         Q.sign(); Q.compareTo(Q); V.major(); V.patch(); V.compareTo(V); I.family(); C.prefixLength(); \
         int(D); F; L[N]; O.orValue(N)",
    ),
    (
        ExpressionType::Text,
        "''; 'a'; 'abc'; 'Ready'; 'True'; '1Gi'; '500m'; '1.2.3'; 'v1.2'; '10.0.0.1'; '::1'; '10.0.0.0/8'; \
         '2024-02-29T12:30:45.5Z'; '1h30m'; 'https://u@h.io:80/p q?a=1&a=2&b'; 'äöü€'; 'a,b,,c'; '12'; \
         '0x1'; (T + T); string(N); string(S); string(D); string(B); T.lowerAscii(); T.upperAscii(); \
         T.trim(); T.reverse(); T.charAt(N); T.substring(N); T.substring(N, N); T.replace(T, T); \
         T.replace(T, T, N); L.join(','); T.split(',').join('+')",
    ),
    (
        ExpressionType::List,
        "[]; [1, 2, 3]; ['a', 'b']; [3, 1, 2]; [1, 2.0, 3u]; [X, X]; (L + L); L.map(e, X); L.filter(e, E); \
         L.map(e, E, e); M.map(e, e); T.split(T); T.split(T, N); T.findAll('[a-z]'); \
         T.findAll('[0-9]+', N); status.conditions; L.slice(N, N); L.flatten(); L.distinct(); L.reverse(); \
         L.sort(); L.sortBy(e, e); lists.range(N % 5); L.transformList(i, e, i); [?O, X]; F; \
         [[1], [2, [3]]]; [1, 1, 2]; L.map(e, e.type)",
    ),
    (
        ExpressionType::Map,
        "{}; {'a': 1}; {1: 'x', 'y': true}; {'a': X, 'b': X}; status; metadata; metadata.labels; spec; \
         M.transformMap(k, v, X); L.transformMap(i, e, X); {?'a': O}; U.getQuery(); F; \
         M.transformMapEntry(k, v, {k: X}); status.conditions[N]",
    ),
    (
        ExpressionType::Optional,
        "optional.none(); optional.of(X); optional.ofNonZeroValue(X); status.?phase; \
         status.?absent.deeper; M.?a; M[?'a']; L[?N]; O.or(O); O.optMap(e, E); \
         O.optFlatMap(e, optional.of(e)); L.first(); L.last(); status.conditions[?0].type",
    ),
    (
        ExpressionType::Moment,
        "timestamp('2024-02-29T12:30:45.5Z'); timestamp(0); timestamp(metadata.creationTimestamp); \
         (D + S); (D - S); timestamp(T); timestamp('2026-12-31T23:59:59+02:00')",
    ),
    (
        ExpressionType::Span,
        "duration('1h30m'); duration('-1.5s'); duration('0.000000001s'); (D - D); (S + S); (S - S); \
         duration(T)",
    ),
    (
        ExpressionType::Quantity,
        "quantity('1Gi'); quantity('500m'); quantity('1.5'); quantity('2k'); quantity('-3'); \
         quantity('1e3'); quantity(T); Q.add(Q); Q.sub(Q); Q.add(1); quantity('0.1')",
    ),
    (
        ExpressionType::Semver,
        "semver('1.2.3'); semver('1.10.0'); semver('1.0.0-rc.1'); semver('v1.2', true); semver(T); \
         semver('1.2.3+b')",
    ),
    (ExpressionType::Ip, "ip('10.0.0.1'); ip('::1'); ip('fe80::1'); ip(T); C.ip(); ip('224.0.0.1')"),
    (
        ExpressionType::Cidr,
        "cidr('10.0.0.0/8'); cidr('10.1.2.3/16'); cidr('2001:db8::/32'); cidr(T); C.masked()",
    ),
    (
        ExpressionType::Url,
        "url('https://user@h.io:8080/p/q?a=1&b=2&a=3'); url('/only/a/path'); url(T); \
         url('https://[::1]:80')",
    ),
];

const FIELDS: [&str; 14] = [
    "status.phase",
    "status.replicas",
    "status.readyReplicas",
    "status.observedGeneration",
    "status.conditions",
    "status.conditions[0].type",
    "status.conditions[0].status",
    "status.absent",
    "status.absent.deeper",
    "spec.replicas",
    "metadata.generation",
    "metadata.labels",
    "metadata.name",
    "data.key",
];

/// Returns a boolean expression.
pub(crate) fn expression(dice: &mut SeededRandom) -> String {
    let mut out = String::new();
    write(dice, &mut out, ExpressionType::Bool, 4);
    out
}

fn write(dice: &mut SeededRandom, out: &mut String, kind: ExpressionType, depth: u8) {
    // Occasionally another type than the intended one.
    let kind = if dice.below(60) == 0 { *dice.pick(&KINDS) } else { kind };
    let Some((_, shapes)) = SHAPES.iter().find(|(of, _)| *of == kind) else { return };
    let shapes: Vec<&str> = shapes.split(';').map(str::trim).collect();
    let plain = |shape: &str| !shape.chars().any(|c| c.is_ascii_uppercase() && !"FX".contains(c));
    let shape = loop {
        let shape = *dice.pick(&shapes);
        if depth > 0 || plain(shape) || dice.below(30) == 0 {
            break shape;
        }
    };
    let (mut quoted, mut before) = (false, ' ');
    for c in shape.chars() {
        quoted ^= c == '\'';
        // A letter inside a word is not a placeholder.
        let alone = !quoted && !before.is_ascii_alphanumeric() && before != '_';
        let wanted = match c {
            'B' => Some(ExpressionType::Bool),
            'N' => Some(ExpressionType::Number),
            'T' => Some(ExpressionType::Text),
            'L' => Some(ExpressionType::List),
            'M' => Some(ExpressionType::Map),
            'O' => Some(ExpressionType::Optional),
            'D' => Some(ExpressionType::Moment),
            'S' => Some(ExpressionType::Span),
            'Q' => Some(ExpressionType::Quantity),
            'V' => Some(ExpressionType::Semver),
            'I' => Some(ExpressionType::Ip),
            'C' => Some(ExpressionType::Cidr),
            'U' => Some(ExpressionType::Url),
            _ => None,
        };
        match (alone, wanted, c) {
            (true, Some(wanted), _) => write(dice, out, wanted, depth.saturating_sub(1)),
            (true, None, 'X') => anything(dice, out, depth.saturating_sub(1)),
            (true, None, 'F') => out.push_str(dice.pick::<&str>(&FIELDS)),
            (true, None, 'E') => {
                out.push_str(dice.pick::<&str>(&["e == ", "e.type == ", "e != ", "e.status == ", "e in "]));
                anything(dice, out, depth.saturating_sub(2));
            }
            _ => out.push(c),
        }
        before = c;
    }
}

fn anything(dice: &mut SeededRandom, out: &mut String, depth: u8) {
    if dice.below(4) == 0 {
        out.push_str(dice.pick::<&str>(&["null", "'x'", "1", "[]", "type(1)", "status", "b'ab'"]));
    } else {
        let kind = *dice.pick(&KINDS);
        write(dice, out, kind, depth);
    }
}
