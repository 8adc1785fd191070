//! URLs, parsed as Go's `url.ParseRequestURI` does: absolute, or an absolute path.

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParsedUrl {
    pub(crate) scheme: Box<str>,
    pub(crate) host: Box<str>,
    pub(crate) path: Box<str>,
    pub(crate) query: Box<str>,
}

impl ParsedUrl {
    /// Parses as Kubernetes does, in two steps: the text must be a valid request URI, and is then split into parts
    /// without a fragment.
    pub(crate) fn parse_request(text: &str) -> Option<ParsedUrl> {
        ParsedUrl::parse_parts(text, false)?;
        ParsedUrl::parse_parts(text.split_once('#').map_or(text, |(before, _)| before), true)
    }

    /// Splits a URL into its parts; `relative` accepts a host without a scheme.
    fn parse_parts(text: &str, relative: bool) -> Option<ParsedUrl> {
        if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return None;
        }
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
            Some(("", _)) => return None,
            _ => (String::new(), text),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, path) = match rest.strip_prefix("//") {
            Some(rest) if relative || !scheme.is_empty() => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (check_host(authority.rsplit_once('@').map_or(authority, |(_, host)| host))?, path)
            }
            _ if rest.starts_with('/') || text == "*" => ("", rest),
            // `mailto:somebody` has neither host nor path; without a scheme it is no request URI at all.
            _ if !scheme.is_empty() && !rest.is_empty() => ("", ""),
            _ => return None,
        };
        unescape_text(path, false)?;
        Some(ParsedUrl {
            scheme: scheme.into(),
            host: host.into(),
            path: escape_path(path).into(),
            query: query.into(),
        })
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// Returns host and port if they are valid.
fn check_host(text: &str) -> Option<&str> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port_fits = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    let name_fits = !name.bytes().any(|b| b == b' ' || b"<>\"{}|\\^`#".contains(&b));
    (port_fits && name_fits).then_some(text)
}

/// Splits a host into name and port.
pub(crate) fn split_host(host: &str) -> (&str, &str) {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, port)) => (name, port),
        None => host.split_at(host.rfind(':').unwrap_or(host.len())),
    };
    (name, port.strip_prefix(':').unwrap_or(""))
}

/// Percent-encodes a path where necessary.
fn escape_path(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for b in path.bytes() {
        if b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@%!'()*[]".contains(&b) {
            text.push(char::from(b));
        } else {
            text.push('%');
            text.extend([b >> 4, b & 15].map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)])));
        }
    }
    text
}

pub(crate) fn unescape_text(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(b) = rest.next() {
        bytes.push(match b {
            b'%' => {
                let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16));
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
