//! The schema of a CRD's field, as far as it refuses values that were decoded: bounds, patterns and validation rules.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow};
use rollcall_cel::{ObjectJson, ReadyWhen};
use serde_json::{Map, Value, json};

use crate::problem::PolicyProblem;

/// What values of a field must keep.
#[derive(Debug, Default)]
pub(super) struct FieldSchema {
    properties: BTreeMap<String, FieldSchema>,
    /// Schema of the items of a list, or of the values of a map.
    items: Option<Box<FieldSchema>>,
    bounds: Vec<FieldBound>,
    rules: Vec<FieldRule>,
}

/// What a rule without a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleErrors {
    /// The value is refused: it has the right types, and the rule is about what it says.
    Refused,
    /// Nothing: the value may have a type that the rule is not made for.
    Ignored,
}

#[derive(Debug)]
enum FieldBound {
    MinLength(usize),
    MaxLength(usize),
    MaxItems(usize),
    MaxProperties(usize),
    Minimum(f64),
    Maximum(f64),
    Pattern(FieldExpression, String),
}

#[derive(Debug)]
struct FieldRule {
    expression: FieldExpression,
    message: String,
    /// The field to blame, below the one that has the rule.
    blamed: String,
}

impl FieldSchema {
    /// Compiles an OpenAPI schema as a CRD has it.
    pub(super) fn compile(schema: &Value) -> anyhow::Result<FieldSchema> {
        let mut compiled = FieldSchema { bounds: compile_bounds(schema)?, ..FieldSchema::default() };
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            compiled.properties.insert(name.clone(), FieldSchema::compile(field)?);
        }
        let items = ["items", "additionalProperties"].map(|key| &schema[key]);
        if let Some(items) = items.into_iter().find(|items| items.is_object()) {
            compiled.items = Some(Box::new(FieldSchema::compile(items)?));
        }
        for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
            let text = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
            compiled.rules.push(FieldRule {
                expression: FieldExpression::compile(&text("rule"))?,
                message: text("message"),
                blamed: text("fieldPath"),
            });
        }
        Ok(compiled)
    }

    /// Everything that is wrong with this value, which is at this path.
    pub(super) fn check_value(&self, value: &Value, path: &str, errors: RuleErrors) -> Vec<PolicyProblem> {
        let mut problems = Vec::new();
        self.collect_problems(value, path, errors, &mut problems);
        problems
    }

    fn collect_problems(
        &self,
        value: &Value,
        path: &str,
        errors: RuleErrors,
        problems: &mut Vec<PolicyProblem>,
    ) {
        if value.is_null() {
            return;
        }
        let before = problems.len();
        let problem =
            |path: String, what: &str| PolicyProblem { field: path, what: what.to_owned(), at: None };
        let broken: Vec<_> =
            self.bounds.iter().filter_map(|bound| Some((bound, bound.broken_by(value)?))).collect();
        let is_oversized = broken.iter().any(|(bound, _)| bound.limits_size());
        problems.extend(broken.into_iter().map(|(_, what)| problem(path.to_owned(), &what)));
        if is_oversized {
            return;
        }
        for (name, field) in value.as_object().into_iter().flatten() {
            if let Some(schema) = self.properties.get(name).or(self.items.as_deref()) {
                let within = if self.properties.is_empty() {
                    format!("{path}[{name}]")
                } else {
                    format!("{path}.{name}")
                };
                schema.collect_problems(field, &within, errors, problems);
            }
        }
        for (at, item) in value.as_array().into_iter().flatten().enumerate() {
            if let Some(schema) = &self.items {
                schema.collect_problems(item, &format!("{path}[{at}]"), errors, problems);
            }
        }
        let invalid_already = problems.len() > before;
        for rule in &self.rules {
            match rule.expression.holds_for(value) {
                Some(true) => {}
                // Where a part of the value is refused, nothing is known of the whole.
                None if invalid_already || errors == RuleErrors::Ignored => {}
                _ => problems.push(problem(format!("{path}{}", rule.blamed), &rule.message)),
            }
        }
    }
}

fn compile_bounds(schema: &Value) -> anyhow::Result<Vec<FieldBound>> {
    let count = |key: &str| schema[key].as_u64().and_then(|count| usize::try_from(count).ok());
    let mut bounds: Vec<FieldBound> = [
        count("minLength").map(FieldBound::MinLength),
        count("maxLength").map(FieldBound::MaxLength),
        count("maxItems").map(FieldBound::MaxItems),
        count("maxProperties").map(FieldBound::MaxProperties),
        schema["minimum"].as_f64().map(FieldBound::Minimum),
        schema["maximum"].as_f64().map(FieldBound::Maximum),
    ]
    .into_iter()
    .flatten()
    .collect();
    if let Some(pattern) = schema["pattern"].as_str() {
        let expression = FieldExpression::compile(&format!("self.matches({})", json!(pattern)))?;
        bounds.push(FieldBound::Pattern(expression, pattern.to_owned()));
    }
    Ok(bounds)
}

impl FieldBound {
    /// True for a bound without which no rule is evaluated, here and by the API server: it limits what rules cost.
    fn limits_size(&self) -> bool {
        matches!(self, FieldBound::MaxLength(_) | FieldBound::MaxItems(_) | FieldBound::MaxProperties(_))
    }

    /// What the API server says of a value beyond this bound.
    fn broken_by(&self, value: &Value) -> Option<String> {
        let (text, number) = (value.as_str(), value.as_f64());
        let length = text.map(|text| text.chars().count());
        let items = value.as_array().map(Vec::len);
        let entries = value.as_object().map(Map::len);
        match self {
            FieldBound::MinLength(min) => {
                (length? < *min).then(|| format!("should be at least {min} chars long"))
            }
            FieldBound::MaxLength(max) => {
                (length? > *max).then(|| format!("Too long: may not be more than {max} bytes"))
            }
            FieldBound::MaxItems(max) => too_many(items?, *max),
            FieldBound::MaxProperties(max) => too_many(entries?, *max),
            FieldBound::Minimum(min) => {
                (number? < *min).then(|| format!("should be greater than or equal to {min}"))
            }
            FieldBound::Maximum(max) => {
                (number? > *max).then(|| format!("should be less than or equal to {max}"))
            }
            FieldBound::Pattern(expression, pattern) => {
                text?;
                (expression.holds_for(value) != Some(true)).then(|| format!("should match '{pattern}'"))
            }
        }
    }
}

fn too_many(count: usize, max: usize) -> Option<String> {
    (count > max).then(|| format!("Too many: {count}: must have at most {max} items"))
}

/// An expression over `self`, the value of a field.
#[derive(Debug)]
struct FieldExpression(ReadyWhen);

impl FieldExpression {
    /// The evaluator knows objects only, by their fields: the value becomes the field `self` of one.
    fn compile(rule: &str) -> anyhow::Result<FieldExpression> {
        let over_field = rule.replace("self", "self.self");
        let compiled = ReadyWhen::compile(&[&over_field], None);
        compiled
            .map(FieldExpression)
            .map_err(|(_, error)| anyhow!("{error:?}"))
            .with_context(|| rule.to_owned())
    }

    /// `None` where the expression has no value.
    fn holds_for(&self, value: &Value) -> Option<bool> {
        let object = json!({ "self": value });
        self.0.find_unmet(ObjectJson::Tree(&object)).ok().map(|unmet| unmet.is_none())
    }
}
