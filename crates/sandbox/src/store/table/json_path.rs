//! The JSONPath of printer columns: members, indexes, `[*]`, and a filter by the value of one member.

use serde_json::Value;

/// A parsed path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JsonPath(Vec<JsonPathStep>);

#[derive(Clone, Debug, PartialEq)]
enum JsonPathStep {
    Member(String),
    Index(i64),
    All,
    Where(String, String),
}

impl JsonPath {
    /// Parses a path; a path with unsupported syntax matches nothing.
    pub(super) fn parse(text: &str) -> JsonPath {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let Some((step, after)) = parse_step(rest) else {
                return JsonPath(vec![JsonPathStep::Member(text.to_owned())]);
            };
            steps.extend(step);
            rest = after;
        }
        JsonPath(steps)
    }

    /// Returns the values at the path.
    pub(super) fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![object];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.select_from(value)).collect();
        }
        found.retain(|value| !value.is_null());
        found
    }
}

/// Splits a path into its first step and the rest; a `.` alone is no step.
fn parse_step(text: &str) -> Option<(Option<JsonPathStep>, &str)> {
    if let Some(inside) = text.strip_prefix("[?(@.") {
        let (condition, rest) = inside.split_once(")]")?;
        let (member, value) = condition.split_once("==")?;
        let value = value.trim().trim_matches(['"', '\'']);
        return Some((Some(JsonPathStep::Where(member.trim().into(), value.into())), rest));
    }
    if let Some(inside) = text.strip_prefix('[') {
        let (inside, rest) = inside.split_once(']')?;
        let step = match inside {
            "*" => JsonPathStep::All,
            quoted if quoted.starts_with(['"', '\'']) => {
                JsonPathStep::Member(quoted.trim_matches(['"', '\'']).into())
            }
            number => JsonPathStep::Index(number.parse().ok()?),
        };
        return Some((Some(step), rest));
    }
    let text = text.strip_prefix('.')?;
    let (mut name, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
            '.' | '[' => {
                return Some(((!name.is_empty()).then_some(JsonPathStep::Member(name)), &text[at..]));
            }
            c => name.push(c),
        }
    }
    Some(((!name.is_empty()).then_some(JsonPathStep::Member(name)), ""))
}

impl JsonPathStep {
    fn select_from<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let items = || value.as_array().map(Vec::as_slice).unwrap_or_default();
        match self {
            JsonPathStep::Member(name) => value.get(name).into_iter().collect(),
            JsonPathStep::All => items().iter().collect(),
            JsonPathStep::Index(at) => {
                let distance = usize::try_from(at.unsigned_abs()).ok();
                let at = distance.and_then(|n| if *at < 0 { items().len().checked_sub(n) } else { Some(n) });
                at.and_then(|at| items().get(at)).into_iter().collect()
            }
            JsonPathStep::Where(member, wanted) => items()
                .iter()
                .filter(|item| match &item[member.as_str()] {
                    Value::String(text) => text == wanted,
                    Value::Bool(holds) => wanted == if *holds { "true" } else { "false" },
                    _ => false,
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_of_printer_columns_are_understood() {
        let object = json!({
            "spec": {"a.b/c": 1, "list": [1, 2, 3]},
            "status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False"}]},
        });
        let cases = [
            (".spec.list[1]", json!([2])),
            (".spec.list[-1]", json!([3])),
            (".spec.list[*]", json!([1, 2, 3])),
            (r".spec.a\.b/c", json!([1])),
            (".spec['a.b/c']", json!([1])),
            (".status.conditions[?(@.type==\"B\")].status", json!(["False"])),
            (".status.conditions[?(@.type=='C')].status", json!([])),
            (".status.nothing.below", json!([])),
            ("nonsense", json!([])),
        ];
        for (path, wanted) in cases {
            assert_eq!(json!(JsonPath::parse(path).find(&object)), wanted, "{path}");
        }
    }
}
