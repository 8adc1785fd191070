//! Patterns over `group/Kind`: `*`, `?`, `[a-z]`, `{a,b}` and `\`.

/// Whether `text` matches `pattern`. With `segments` only `**` crosses a slash.
pub(super) fn matches(pattern: &str, text: &str, segments: bool) -> bool {
    alternatives(pattern).iter().any(|pattern| {
        let pattern: Vec<char> = pattern.chars().collect();
        let text: Vec<char> = text.chars().collect();
        walk(&pattern, &text, segments)
    })
}

/// The pattern without braces, once for every way through them; at most so many that nobody can make it explode.
fn alternatives(pattern: &str) -> Vec<String> {
    let Some((open, close)) = braces(pattern) else { return vec![pattern.to_owned()] };
    let (head, body, tail) = (&pattern[..open], &pattern[open + 1..close], &pattern[close + 1..]);
    let choices = split(body);
    choices.into_iter().flat_map(|choice| alternatives(&format!("{head}{choice}{tail}"))).take(64).collect()
}

fn braces(pattern: &str) -> Option<(usize, usize)> {
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

fn split(body: &str) -> Vec<&str> {
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

fn walk(pattern: &[char], text: &[char], segments: bool) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where the last star stood and how far it has reached, and the same for the last one that may cross a slash.
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
            Some(_) => text.get(t).is_some_and(|c| match one(&pattern[p..], *c, segments) {
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

/// How much of the pattern one character uses up.
fn one(pattern: &[char], c: char, segments: bool) -> Option<usize> {
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
            assert_eq!(matches(pattern, text, segments), wanted, "{pattern} {text}");
        }
    }
}
