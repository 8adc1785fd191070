//! Sets of field paths, in the form of `managedFields` (FieldsV1).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::schema::{SchemaListType, SchemaShape};

/// A set of paths as a tree. Path elements are written as in FieldsV1: `f:name`, `k:{"type":"Ready"}`, `v:"x"`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FieldSet {
    member: bool,
    below: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    pub(crate) fn from_json(fields: &Value) -> FieldSet {
        let mut set = FieldSet::default();
        for (element, below) in fields.as_object().into_iter().flatten() {
            if element == "." {
                set.member = true;
                continue;
            }
            let mut child = FieldSet::from_json(below);
            child.member |= child.below.is_empty();
            set.below.insert(element.clone(), child);
        }
        set
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        if self.member && !self.below.is_empty() {
            fields.insert(".".into(), json!({}));
        }
        for (element, below) in &self.below {
            fields.insert(element.clone(), below.to_json());
        }
        Value::Object(fields)
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    fn insert(&mut self, path: &[String]) {
        match path.split_first() {
            None => self.member = true,
            Some((element, rest)) => self.below.entry(element.clone()).or_default().insert(rest),
        }
    }

    pub(crate) fn union(&mut self, other: &FieldSet) {
        self.member |= other.member;
        for (element, below) in &other.below {
            self.below.entry(element.clone()).or_default().union(below);
        }
    }

    /// Removes exactly the paths of `other`; paths below them stay.
    pub(crate) fn subtract(&mut self, other: &FieldSet) {
        self.member &= !other.member;
        for (element, taken) in &other.below {
            if let Some(below) = self.below.get_mut(element) {
                below.subtract(taken);
            }
        }
        self.below.retain(|_, below| !below.is_empty());
    }

    /// Keeps only the top-level fields that `keep` accepts.
    pub(crate) fn retain_top(&mut self, keep: impl Fn(&str) -> bool) {
        self.below.retain(|element, _| keep(element.trim_start_matches("f:")));
    }
}

/// Fields in which two objects differ: set or changed, and removed.
#[derive(Debug, Default)]
pub(crate) struct FieldDifference {
    pub(crate) touched: FieldSet,
    pub(crate) removed: FieldSet,
    path: Vec<String>,
}

impl FieldDifference {
    /// Compares two objects of one kind.
    pub(crate) fn between(old: &Value, new: &Value, shape: SchemaShape<'_>) -> FieldDifference {
        let mut difference = FieldDifference::default();
        difference.compare_values(Some(old), Some(new), shape);
        difference
    }

    fn compare_values(&mut self, old: Option<&Value>, new: Option<&Value>, shape: SchemaShape<'_>) {
        let leaf = match (old, new) {
            (None | Some(Value::Null | Value::Object(_)), Some(Value::Object(_)))
            | (Some(Value::Object(_)), None) => {
                let empty = |side: Option<&Value>| side.and_then(Value::as_object).is_none_or(Map::is_empty);
                shape.is_atomic_map() || (empty(old) && empty(new))
            }
            (None | Some(Value::Null | Value::Array(_)), Some(Value::Array(_)))
            | (Some(Value::Array(_)), None) => {
                let empty = |side: Option<&Value>| side.and_then(Value::as_array).is_none_or(Vec::is_empty);
                matches!(shape.list_type(), SchemaListType::Atomic) || (empty(old) && empty(new))
            }
            _ => true,
        };
        if !leaf {
            self.compare_children(old, new, shape);
            if shape.is_struct() {
                return;
            }
        }
        match (old, new) {
            (None, Some(_)) => self.touched.insert(&self.path),
            (Some(_), None) => self.removed.insert(&self.path),
            (Some(old), Some(new)) if leaf && old != new => self.touched.insert(&self.path),
            _ => {}
        }
    }

    fn compare_children(&mut self, old: Option<&Value>, new: Option<&Value>, shape: SchemaShape<'_>) {
        let mut children: BTreeMap<String, ComparedSides<'_>> = BTreeMap::new();
        for (value, is_new) in [(old, false), (new, true)] {
            match value {
                Some(Value::Object(map)) => {
                    for (name, child) in map {
                        let sides = children
                            .entry(format!("f:{name}"))
                            .or_insert_with(|| ComparedSides::new(shape.field_shape(name)));
                        sides.put_side(child, is_new);
                    }
                }
                Some(Value::Array(list)) => {
                    for item in list {
                        let element = path_element(item, &shape.list_type());
                        children
                            .entry(element)
                            .or_insert_with(|| ComparedSides::new(shape.item_shape()))
                            .put_side(item, is_new);
                    }
                }
                _ => {}
            }
        }
        for (element, sides) in children {
            self.path.push(element);
            self.compare_values(sides.old, sides.new, sides.shape);
            self.path.pop();
        }
    }
}

struct ComparedSides<'a> {
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    shape: SchemaShape<'a>,
}

impl<'a> ComparedSides<'a> {
    fn new(shape: SchemaShape<'a>) -> ComparedSides<'a> {
        ComparedSides { old: None, new: None, shape }
    }

    fn put_side(&mut self, value: &'a Value, is_new: bool) {
        let side = if is_new { &mut self.new } else { &mut self.old };
        side.get_or_insert(value);
    }
}

/// Returns the path element of a list item.
fn path_element(item: &Value, items: &SchemaListType<'_>) -> String {
    match items {
        SchemaListType::Map(keys) => {
            let found: Map<String, Value> = keys
                .iter()
                .filter(|key| !item[**key].is_null())
                .map(|key| ((*key).to_owned(), item[*key].clone()))
                .collect();
            format!("k:{}", Value::Object(found))
        }
        _ => format!("v:{item}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_survives_the_way_to_json_and_back() {
        let fields = json!({"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:type": {}}}}, "f:spec": {}});
        assert_eq!(FieldSet::from_json(&fields).to_json(), fields);
    }

    #[test]
    fn taking_a_parent_away_leaves_its_children() {
        let mut set = FieldSet::from_json(&json!({"f:a": {".": {}, "f:b": {}}}));
        set.subtract(&FieldSet::from_json(&json!({"f:a": {}})));
        assert_eq!(set.to_json(), json!({"f:a": {"f:b": {}}}));
        set.subtract(&FieldSet::from_json(&json!({"f:a": {"f:b": {}}})));
        assert!(set.is_empty());
    }
}
