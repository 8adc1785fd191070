//! Functions of URLs.

use std::rc::Rc;

use crate::cel_type::CelType::{self, Bool, Map, Text};
use crate::fault::EvalFault;
use crate::kube_types::{ParsedUrl, split_host, unescape_text};
use crate::overload::{CelCallContext, CelOverload, argument_mismatch, global_function, member_function};
use crate::value::CelValue;

const URL_TYPE: CelType = CelType::Url;

pub(super) const OVERLOADS: &[CelOverload] = &[
    global_function("url", &[Text], URL_TYPE, |cx, args| {
        let url = parse_argument(cx, args)?.ok_or_else(|| EvalFault::from_message("no URL"))?;
        Ok(CelValue::Url(Rc::new(url)))
    }),
    global_function("isURL", &[Text], Bool, |cx, args| {
        Ok(CelValue::Bool(parse_argument(cx, args)?.is_some()))
    }),
    member_function("getScheme", &[URL_TYPE], Text, |_, args| url_part(args, |url| url.scheme.clone())),
    member_function("getHost", &[URL_TYPE], Text, |_, args| url_part(args, |url| url.host.clone())),
    member_function("getHostname", &[URL_TYPE], Text, |_, args| {
        url_part(args, |url| split_host(&url.host).0.into())
    }),
    member_function("getPort", &[URL_TYPE], Text, |_, args| {
        url_part(args, |url| split_host(&url.host).1.into())
    }),
    member_function("getEscapedPath", &[URL_TYPE], Text, |_, args| url_part(args, |url| url.path.clone())),
    member_function("getQuery", &[URL_TYPE], Map, query_map),
];

fn parse_argument(cx: &CelCallContext<'_>, args: &[CelValue<'_>]) -> Result<Option<ParsedUrl>, EvalFault> {
    let [CelValue::Text(text)] = args else { return Err(argument_mismatch(args)) };
    cx.meter.charge_allocation(2 * text.len())?;
    Ok(ParsedUrl::parse_request(text))
}

fn url_part<'t>(
    args: &[CelValue<'t>],
    read: impl FnOnce(&ParsedUrl) -> Box<str>,
) -> Result<CelValue<'t>, EvalFault> {
    match args {
        [CelValue::Url(url)] => Ok(CelValue::from_text(&read(url))),
        _ => Err(argument_mismatch(args)),
    }
}

/// Returns the values of each key in order. An invalid pair is left out.
fn query_map<'t>(cx: &CelCallContext<'_>, args: &[CelValue<'t>]) -> Result<CelValue<'t>, EvalFault> {
    let [CelValue::Url(url)] = args else { return Err(argument_mismatch(args)) };
    let mut found: std::collections::BTreeMap<String, Vec<CelValue<'t>>> = std::collections::BTreeMap::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        cx.meter.charge_allocation(64 + pair.len())?;
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let (Some(key), Some(value)) = (unescape_text(key, true), unescape_text(value, true)) {
            found.entry(key).or_default().push(CelValue::from_text(&value));
        }
    }
    Ok(CelValue::from_entries(
        found
            .into_iter()
            .map(|(key, values)| (CelValue::from_text(&key), CelValue::from_items(values)))
            .collect(),
    ))
}
