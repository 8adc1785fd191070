//! Numbers in phrases.

/// Returns `true` if a phrase counts fewer than there are, or none: `0/3 ready`, `2 of 3 nodes ready`, `ready: 0`. `good` knows
/// the words for what is well.
pub(super) fn counts_too_few(text: &str, words: &[&str], good: impl Fn(&str) -> bool) -> bool {
    let number = |word: &str| word.parse::<u32>().ok();
    let few = |have: &str, want: &str| number(have).zip(number(want)).is_some_and(|(have, want)| have < want);
    let none = match words {
        [.., word, zero] if number(zero) == Some(0) => good(word),
        _ => words.windows(2).any(|w| number(w[0]) == Some(0) && good(w[1])),
    };
    none || words.windows(3).any(|w| w[1] == "of" && few(w[0], w[2]))
        || text.contains('/') && words.windows(2).any(|w| few(w[0], w[1]))
}
