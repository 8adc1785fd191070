//! Semantic versions and their order.

use std::cmp::Ordering;

/// A semantic version. Build metadata, after a plus, is ignored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SemanticVersion {
    pub(crate) numbers: [u64; 3],
    pre: Vec<PreReleasePart>,
}

/// A part of a pre-release: numbers sort before identifiers.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PreReleasePart {
    Number(u64),
    Word(Box<str>),
}

impl SemanticVersion {
    /// Parses a version; `lenient` accepts a leading `v`, missing parts and leading zeros.
    pub(crate) fn parse_version(text: &str, lenient: bool) -> Option<SemanticVersion> {
        let text = if lenient { text.strip_prefix('v').unwrap_or(text) } else { text };
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
        let whole = |part: &str| {
            let plain = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            let canonical = lenient || part.len() == 1 || !part.starts_with('0');
            if plain && canonical { part.parse::<u64>().ok() } else { None }
        };
        let mut numbers = core.split('.').map(whole).collect::<Option<Vec<_>>>()?;
        if lenient && numbers.len() < 3 && pre.is_none() && build.is_none() {
            numbers.resize(3, 0);
        }
        let word =
            |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if build.is_some_and(|build| !build.split('.').all(word)) {
            return None;
        }
        let pre = pre.map_or(Some(Vec::new()), |pre| {
            let part = |part: &str| match part.bytes().all(|b| b.is_ascii_digit()) {
                _ if !word(part) => None,
                true if part.len() > 1 && part.starts_with('0') => None,
                true => part.parse().ok().map(PreReleasePart::Number),
                false => Some(PreReleasePart::Word(part.into())),
            };
            pre.split('.').map(part).collect()
        })?;
        Some(SemanticVersion { numbers: numbers.try_into().ok()?, pre })
    }
}

impl Ord for SemanticVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.pre.cmp(&other.pre),
        })
    }
}

impl PartialOrd for SemanticVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
