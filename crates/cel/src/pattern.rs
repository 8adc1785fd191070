//! Compiled regular expressions, in the syntax of RE2.

use regex_lite::{Regex, RegexBuilder};

/// A compiled pattern, and an upper bound of its work per character.
#[derive(Debug)]
pub(crate) struct CelPattern {
    pub(crate) regex: Regex,
    pub(crate) weight: usize,
}

/// Size limit of a compiled pattern: some thousand states.
pub(crate) const MAX_PATTERN_BYTES: usize = 128 * 1024;

impl CelPattern {
    pub(crate) fn compile_pattern(text: &str) -> Result<CelPattern, String> {
        let regex = RegexBuilder::new(text).size_limit(MAX_PATTERN_BYTES).nest_limit(50).build();
        let regex = regex.map_err(|error| format!("failed to read the pattern: {error}"))?;
        Ok(CelPattern { regex, weight: pattern_weight(text) })
    }
}

/// Upper bound of the number of states of a pattern: its length, multiplied by every repetition count in it.
pub(crate) fn pattern_weight(pattern: &str) -> usize {
    let mut weight = pattern.len().max(1);
    for counts in pattern.split('{').skip(1) {
        let counts = counts.split('}').next().unwrap_or_default();
        let most = counts.split(',').filter_map(|count| count.trim().parse::<usize>().ok()).max();
        weight = weight.saturating_mul(most.unwrap_or(1).max(1));
    }
    weight
}
