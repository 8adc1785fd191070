//! URLs, parsed as Go's `url.ParseRequestURI` does: absolute, or an absolute path.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Characters that Go encodes in a path; `%` is none of them, because what is encoded already stays as it is.
const OUTSIDE_PATHS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@')
    .remove(b'%')
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'[')
    .remove(b']');

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
    utf8_percent_encode(path, OUTSIDE_PATHS).to_string()
}

/// Decodes; `None` where a `%` is followed by no two digits.
pub(crate) fn unescape_text(text: &str, plus_is_space: bool) -> Option<String> {
    let is_escape = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    let text = if plus_is_space { Cow::from(text.replace('+', " ")) } else { Cow::from(text) };
    text.split('%').skip(1).all(is_escape).then(|| percent_decode_str(&text).decode_utf8_lossy().into_owned())
}
