//! Patterns over `group/Kind`: `*`, `?`, `[a-z]`, `{a,b}` and `\`. Compiled once, when their library is read.

/// Longest pattern, in bytes. The longest name of a kind has 317.
const MAX_PATTERN_BYTES: usize = 512;

/// Most pairs of braces in a pattern, nested or not.
const MAX_BRACES: usize = 16;

/// Most patterns that the braces of one pattern may stand for.
const MAX_ALTERNATIVES: usize = 64;

/// A pattern, its braces expanded. Patterns come from a ConfigMap: they are bounded, and nothing here recurses.
#[derive(Debug)]
pub(super) struct GlobPattern {
    alternatives: Vec<Vec<char>>,
    /// `true` if only `**` crosses a slash.
    segments: bool,
}

/// A pattern beyond the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GlobError {
    #[error("the pattern is longer than {MAX_PATTERN_BYTES} bytes")]
    Length,
    #[error("the pattern has more than {MAX_BRACES} pairs of braces")]
    Braces,
    #[error("the pattern stands for more than {MAX_ALTERNATIVES} patterns")]
    Alternatives,
}

impl GlobPattern {
    pub(super) fn compile(pattern: &str, segments: bool) -> Result<GlobPattern, GlobError> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(GlobError::Length);
        }
        if pattern.matches('{').count() > MAX_BRACES {
            return Err(GlobError::Braces);
        }
        let alternatives = expand_braces(pattern)?.iter().map(|one| one.chars().collect()).collect();
        Ok(GlobPattern { alternatives, segments })
    }

    /// Number of patterns that it stands for.
    pub(super) fn count_alternatives(&self) -> usize {
        self.alternatives.len()
    }

    pub(super) fn matches_text(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        self.alternatives.iter().any(|pattern| match_pattern(pattern, &text, self.segments))
    }
}

/// Expands the braces to one pattern per alternative.
fn expand_braces(pattern: &str) -> Result<Vec<String>, GlobError> {
    let (mut braced, mut plain) = (vec![pattern.to_owned()], Vec::new());
    while let Some(pattern) = braced.pop() {
        match find_braces(&pattern) {
            None => plain.push(pattern),
            Some((open, close)) => {
                let (head, tail) = (&pattern[..open], &pattern[close + 1..]);
                let choices = split_choices(&pattern[open + 1..close]);
                braced.extend(choices.into_iter().map(|choice| format!("{head}{choice}{tail}")));
            }
        }
        if braced.len() + plain.len() > MAX_ALTERNATIVES {
            return Err(GlobError::Alternatives);
        }
    }
    Ok(plain)
}

fn find_braces(pattern: &str) -> Option<(usize, usize)> {
    let open = pattern.find('{')?;
    let mut depth = 0;
    for (at, c) in pattern.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return Some((open, at)),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn split_choices(body: &str) -> Vec<&str> {
    let mut depth = 0;
    body.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

fn match_pattern(pattern: &[char], text: &[char], segments: bool) -> bool {
    let (mut p, mut t) = (0, 0);
    // Positions of the last star and of its match so far, and the same for the last star that may cross a slash.
    let (mut star, mut wide) = (None, None);
    loop {
        let matched = match pattern.get(p) {
            Some('*') => {
                let crosses = !segments || pattern.get(p + 1) == Some(&'*');
                p += pattern[p..].iter().take_while(|c| **c == '*').count();
                star = (!crosses).then_some((p, t));
                wide = if crosses { Some((p, t)) } else { wide };
                continue;
            }
            None => t == text.len(),
            Some(_) => text.get(t).is_some_and(|c| match match_one(&pattern[p..], *c, segments) {
                Some(used) => {
                    p += used;
                    true
                }
                None => false,
            }),
        };
        if matched && p >= pattern.len() && t == text.len() {
            return true;
        }
        if matched {
            t += 1;
            continue;
        }
        let stretched = match star {
            Some((_, reached)) if text.get(reached).is_some_and(|c| *c != '/') => &mut star,
            _ => {
                star = None;
                &mut wide
            }
        };
        match stretched {
            Some((after, reached)) if *reached < text.len() => {
                *reached += 1;
                (p, t) = (*after, *reached);
            }
            _ => return false,
        }
    }
}

/// Matches one character; returns the number of pattern characters it consumes.
fn match_one(pattern: &[char], c: char, segments: bool) -> Option<usize> {
    match pattern[0] {
        '?' => (!segments || c != '/').then_some(1),
        '\\' if pattern.len() > 1 => (pattern[1] == c).then_some(2),
        '[' => {
            let close = pattern.iter().skip(2).position(|c| *c == ']')? + 2;
            let negated = matches!(pattern[1], '!' | '^');
            let set = &pattern[1 + usize::from(negated)..close];
            (in_set(set, c) != negated).then_some(close + 1)
        }
        literal => (literal == c).then_some(1),
    }
}

fn in_set(set: &[char], c: char) -> bool {
    let mut at = 0;
    while at < set.len() {
        if set.get(at + 1) == Some(&'-') && at + 2 < set.len() {
            if (set[at]..=set[at + 2]).contains(&c) {
                return true;
            }
            at += 3;
        } else if set[at] == c {
            return true;
        } else {
            at += 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_argo_cd_matches_them() {
        for (pattern, text, segments, wanted) in [
            ("*.crossplane.io/*", "s3.aws.crossplane.io/Bucket", false, true),
            ("*", "a/B", false, true),
            ("*", "a/B", true, false),
            ("*/*", "a/B", true, true),
            ("*.upbound.io/*", "upbound.io/B", true, false),
            ("*.a/*", "x.a/B/C", true, false),
            ("*.a/**", "x.a/B/C", true, true),
            ("{a,b.*}/Kind", "b.c/Kind", false, true),
            ("{a,b}/Kind", "c/Kind", false, false),
            ("a/[A-C]?x", "a/Bax", false, true),
            ("a/[!A-C]*", "a/Bax", false, false),
            ("a\\*/x", "a*/x", false, true),
            ("apps/Deployment", "apps/Deployment", false, true),
            ("apps/Deploymen", "apps/Deployment", false, false),
            ("a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false, false),
        ] {
            let matched = GlobPattern::compile(pattern, segments).unwrap().matches_text(text);
            assert_eq!(matched, wanted, "{pattern} {text}");
        }
    }
}
