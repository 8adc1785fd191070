//! Proofs: what a policy's author wrote, over a parent and a child whose authors are others.

use rollcall_cel::{FieldProjection, ProofExpression, ProofResult};
use serde_json::value::RawValue;

use crate::input_parts::split_parts;

/// Most bytes that are kept of an object.
const MAX_REDUCED_BYTES: usize = 16 << 10;

pub(crate) const PROOF_EXPRESSION_WORDS: &[&str] = &[
    "parent",
    "parent.spec",
    "children",
    "children[0]",
    "children.size()",
    ".all(c, ",
    ".exists(c, ",
    ".exists_one(c, ",
    ".filter(c, ",
    ".map(c, ",
    ".sortBy(c, ",
    ".exists(i, v, ",
    "c.spec",
    "c.metadata.labels",
    "has(c.status)",
    ".?status",
    ".orValue(1)",
    ".optMap(o, ",
    "cel.bind(x, ",
    "['app']",
    "[0]",
    " == ",
    " in ",
    " && ",
    " ? ",
    " : ",
    "size(",
    "{",
    "}",
    "[",
    "]",
    "null",
    "\"app\":",
    "\n---\n",
];

/// What compiles yields the same of what it reads of two objects as of the whole of them, within its bounds.
pub(crate) fn run(data: &[u8]) {
    let Some((source, objects)) = split_parts(data) else { return };
    let Ok(proof) = ProofExpression::compile(source) else { return };
    let (parent, child) = objects.split_once("\n---\n").unwrap_or((objects, "{}"));
    let raw = |text| serde_json::from_str::<&RawValue>(text).ok();
    let Some((parent, child)) = raw(parent).zip(raw(child)) else { return };
    let reduced = reduce(proof.parent_fields(), parent).zip(reduce(proof.child_fields(), child));
    let Some((small_parent, small_child)) = reduced else { return };
    // Twice: a list of one element hides much.
    let evaluate = |parent: &str, child: &str| proof.evaluate_proof(parent, [child, child]);
    let (whole, small) = (evaluate(parent.get(), child.get()), evaluate(&small_parent, &small_child));
    for ProofResult { steps, .. } in [&whole, &small] {
        assert!(*steps <= 2 * ProofExpression::MAX_STEPS, "{steps} steps");
    }
    let is_comparable = |result: &ProofResult| match &result.holds {
        Ok(_) => true,
        // What is left out is not read, and may be what cannot be.
        Err(error) => error.limit.is_none() && !error.message.starts_with("the object cannot be read"),
    };
    if is_comparable(&whole) && is_comparable(&small) {
        assert_eq!(small.holds.map_err(|error| error.message), whole.holds.map_err(|error| error.message));
    }
}

fn reduce(fields: &FieldProjection, object: &RawValue) -> Option<String> {
    let text = fields.project_object(object, MAX_REDUCED_BYTES).ok()?;
    assert!(text.len() <= MAX_REDUCED_BYTES);
    assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "what is reduced is JSON: {text}");
    let again = fields.project_object(&RawValue::from_string(text.clone()).unwrap(), MAX_REDUCED_BYTES);
    assert_eq!(again.as_ref(), Ok(&text), "what is reduced has nothing to leave out");
    Some(text)
}
