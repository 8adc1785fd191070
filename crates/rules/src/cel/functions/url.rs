//! URLs, read as Go's `url.ParseRequestURI` reads them: absolute, or an absolute path.

use std::rc::Rc;

use super::super::value::Ty::{self, Bool, Map, Text};
use super::super::value::{Fault, Val};
use super::{Cx, Function, global, member, unfit};

const URL: Ty = Ty::Url;

pub(super) const TABLE: &[Function] = &[
    global("url", &[Text], URL, |cx, args| {
        let url = parsed(cx, args)?.ok_or_else(|| Fault::words("no URL"))?;
        Ok(Val::Url(Rc::new(url)))
    }),
    global("isURL", &[Text], Bool, |cx, args| Ok(Val::Bool(parsed(cx, args)?.is_some()))),
    member("getScheme", &[URL], Text, |_, args| part(args, |url| url.scheme.clone())),
    member("getHost", &[URL], Text, |_, args| part(args, |url| url.host.clone())),
    member("getHostname", &[URL], Text, |_, args| part(args, |url| hostname(&url.host).0.into())),
    member("getPort", &[URL], Text, |_, args| part(args, |url| hostname(&url.host).1.into())),
    member("getEscapedPath", &[URL], Text, |_, args| part(args, |url| url.path.clone())),
    member("getQuery", &[URL], Map, query),
];

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Url {
    scheme: Box<str>,
    host: Box<str>,
    path: Box<str>,
    query: Box<str>,
}

impl Url {
    /// Kubernetes asks twice: whether it can be requested, and then for its parts, of which a fragment is none.
    fn parse(text: &str) -> Option<Url> {
        Url::parts(text, false)?;
        Url::parts(text.split_once('#').map_or(text, |(before, _)| before), true)
    }

    /// `relative` takes a host without a scheme before it.
    fn parts(text: &str, relative: bool) -> Option<Url> {
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
                (host(authority.rsplit_once('@').map_or(authority, |(_, host)| host))?, path)
            }
            _ if rest.starts_with('/') || text == "*" => ("", rest),
            // `mailto:somebody` has neither host nor path; without a scheme it is no request at all.
            _ if !scheme.is_empty() && !rest.is_empty() => ("", ""),
            _ => return None,
        };
        unescaped(path, false)?;
        Some(Url {
            scheme: scheme.into(),
            host: host.into(),
            path: escaped(path).into(),
            query: query.into(),
        })
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// The host and its port, where they can be one.
fn host(text: &str) -> Option<&str> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port_fits = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    let name_fits = !name.bytes().any(|b| b == b' ' || b"<>\"{}|\\^`#".contains(&b));
    (port_fits && name_fits).then_some(text)
}

/// Name and port of a host.
fn hostname(host: &str) -> (&str, &str) {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, port)) => (name, port),
        None => host.split_at(host.rfind(':').unwrap_or(host.len())),
    };
    (name, port.strip_prefix(':').unwrap_or(""))
}

/// A path with everything escaped that has to be.
fn escaped(path: &str) -> String {
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

fn unescaped(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(b) = rest.next() {
        bytes.push(match b {
            b'%' => {
                let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16));
                (digit()? * 16 + digit()?) as u8
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn parsed(cx: &Cx<'_>, args: &[Val<'_>]) -> Result<Option<Url>, Fault> {
    let [Val::Text(text)] = args else { return Err(unfit(args)) };
    cx.meter.make(2 * text.len())?;
    Ok(Url::parse(text))
}

fn part<'t>(args: &[Val<'t>], read: impl FnOnce(&Url) -> Box<str>) -> Result<Val<'t>, Fault> {
    match args {
        [Val::Url(url)] => Ok(Val::text(&read(url))),
        _ => Err(unfit(args)),
    }
}

/// The values of each key, in order. A pair that cannot be read is left out.
fn query<'t>(cx: &Cx<'_>, args: &[Val<'t>]) -> Result<Val<'t>, Fault> {
    let [Val::Url(url)] = args else { return Err(unfit(args)) };
    let mut found: std::collections::BTreeMap<String, Vec<Val<'t>>> = std::collections::BTreeMap::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        cx.meter.make(64 + pair.len())?;
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Some(key), Some(value)) = (unescaped(key, true), unescaped(value, true)) {
            found.entry(key).or_default().push(Val::text(&value));
        }
    }
    Ok(Val::map(found.into_iter().map(|(key, values)| (Val::text(&key), Val::list(values))).collect()))
}
