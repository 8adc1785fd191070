//! Inputs that have two parts: what a policy says, and the object that it is said of.

/// Separates the parts of an input that has two.
const PART_SEPARATOR: &str = "\n---\n";

/// The two parts of an input, the second one empty where there is none. An input that is not UTF-8 has none.
pub(crate) fn split_parts(data: &[u8]) -> Option<(&str, &str)> {
    let text = str::from_utf8(data).ok()?;
    Some(text.split_once(PART_SEPARATOR).unwrap_or((text, "")))
}
