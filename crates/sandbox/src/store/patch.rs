//! PATCH.

use serde_json::Value;

use super::decode::{self, Unread};
use super::kind::Kind;
use super::managed::Write;
use super::message::{Millis, Request, Response};
use super::meta;
use super::refusal::{Cause, Refusal};
use super::route::Target;
use super::{Store, json_patch, merge, view};

/// How many operations one JSON patch may hold.
const MOST_OPERATIONS: usize = 10_000;

impl Store {
    pub(super) fn patch_request(
        &mut self,
        now: Millis,
        target: &Target,
        request: &Request,
    ) -> Result<Response, Refusal> {
        let kind = &target.kind;
        let how = Way::of(kind, request)?;
        let key = kind.key(target.namespace(), target.name.as_deref().unwrap_or_default());
        let old = self.object(kind.storage, &key).cloned().ok_or_else(|| target.not_found())?;
        let patch = decode::body(request).map_err(|why| match why {
            Unread::TooLarge(refusal) => refusal,
            Unread::NoJson(why) => Refusal::bad_request(format!("error decoding patch: {why}")),
        })?;
        let mut new = how.apply(kind, (*kind.render(&old)).clone(), &patch, &request.body)?;
        decode::claims(kind, &mut new)?;
        decode::well_formed(kind, &new).map_err(|why| unreadable(&why))?;
        renamed(target, &new)?;
        let write = Write { sub: target.sub, ..Write::new(now, kind, request) };
        let updated = self.replace(&write, &old, new)?;
        Ok(Response::json(200, &view::one(request, &kind.render(&updated))))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Json,
    Merge,
    Strategic,
}

impl Way {
    fn of(kind: &Kind, request: &Request) -> Result<Way, Refusal> {
        match decode::media_type(request) {
            "application/json-patch+json" => Ok(Way::Json),
            "application/merge-patch+json" => Ok(Way::Merge),
            "application/strategic-merge-patch+json" if !kind.traits.custom => Ok(Way::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
                Err(Refusal::not_implemented("server-side apply"))
            }
            "application/strategic-merge-patch+json" => Err(Refusal::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
            _ if kind.traits.custom => Err(Refusal::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
            _ => Err(Refusal::unknown_patch()),
        }
    }

    fn apply(self, kind: &Kind, mut object: Value, patch: &Value, body: &[u8]) -> Result<Value, Refusal> {
        match self {
            Way::Json => {
                let operations = json_patch::parse(body, patch).ok_or_else(|| Refusal::bad_request("error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"))?;
                if operations.len() > MOST_OPERATIONS {
                    return Err(Refusal::too_large(format!(
                        "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
                        operations.len()
                    )));
                }
                json_patch::apply(&mut object, &operations).map_err(|_| Refusal::patch_failed())?;
            }
            Way::Merge | Way::Strategic if !patch.is_object() => {
                return Err(Refusal::bad_request(
                    "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}",
                ));
            }
            Way::Merge => merge::merge(&mut object, patch),
            Way::Strategic => merge::strategic(kind, &mut object, patch),
        }
        Ok(object)
    }
}

fn unreadable(why: &Refusal) -> Refusal {
    let cause = Cause {
        reason: "FieldValueInvalid",
        message: format!("Invalid value: {}", why.message()),
        field: "patch".into(),
    };
    Refusal::invalid("", "", "", vec![cause])
}

fn renamed(target: &Target, new: &Value) -> Result<(), Refusal> {
    let (is, said) = (target.name.as_deref().unwrap_or_default(), meta::name(new));
    if is != said {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({is})"
        )));
    }
    Ok(())
}
