//! Pairs of texts at the top level of `status` that are equal once the object is where it is to be: `currentVersion` and
//! `targetVersion`.

use std::borrow::Cow;

use readiness::LaggingField;

/// Largest number of texts that are compared.
const MAX_TEXTS: usize = 8;
/// Longest text that is compared, in bytes.
const MAX_TEXT_BYTES: usize = 64;

/// What the name of a text says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextSide {
    Current,
    Wanted,
}

/// The texts that are one side of a pair, in the order of the status.
#[derive(Default)]
pub(super) struct TextPairs<'a> {
    texts: Vec<(TextSide, Box<str>, Cow<'a, str>)>,
}

impl<'a> TextPairs<'a> {
    /// Keeps a text if a field of this name is one side of a pair.
    pub(super) fn note_text(&mut self, key: &str, text: impl FnOnce() -> Option<Cow<'a, str>>) {
        let Some((side, _)) = split_side(key) else { return };
        if self.texts.len() < MAX_TEXTS
            && let Some(text) = text().filter(|text| !text.is_empty() && text.len() <= MAX_TEXT_BYTES)
        {
            self.texts.push((side, key.into(), text));
        }
    }

    /// Returns the first text that is not yet what another text of the status says it is to be.
    pub(super) fn find_lag(&self) -> Option<LaggingField> {
        let of_side = |wanted: TextSide| self.texts.iter().filter(move |(side, ..)| *side == wanted);
        of_side(TextSide::Current).find_map(|(_, name, text)| {
            let same = |other: &str| {
                split_side(other).map(|(_, noun)| noun) == split_side(name).map(|(_, noun)| noun)
            };
            let (_, wanted_name, wanted) =
                of_side(TextSide::Wanted).find(|(_, other, wanted)| same(other) && wanted != text)?;
            Some(LaggingField {
                name: name.clone(),
                value: (&**text).into(),
                wanted_name: wanted_name.clone(),
                wanted: (&**wanted).into(),
            })
        })
    }
}

/// Splits `currentVersion` into its side and `Version`. Times are left out, and words for states: `currentState: Running`
/// is what `desiredState: Started` asks for.
fn split_side(key: &str) -> Option<(TextSide, &str)> {
    let sides = [
        ("current", TextSide::Current),
        ("actual", TextSide::Current),
        ("deployed", TextSide::Current),
        ("observed", TextSide::Current),
        ("running", TextSide::Current),
        ("latestReady", TextSide::Current),
        ("latestCreated", TextSide::Wanted),
        ("expected", TextSide::Wanted),
        ("desired", TextSide::Wanted),
        ("target", TextSide::Wanted),
    ];
    let (side, noun) = sides.iter().find_map(|(prefix, side)| Some((*side, key.strip_prefix(prefix)?)))?;
    let time = noun.ends_with("Time") || noun.ends_with("Timestamp");
    let named = noun.starts_with(|first: char| first.is_ascii_uppercase());
    (named && !time && !readiness::is_state_field(noun)).then_some((side, noun))
}
