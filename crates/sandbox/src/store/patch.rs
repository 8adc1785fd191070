//! PATCH requests.

use serde_json::Value;

use super::decode::{self, UnreadBody};
use super::kind::SandboxKind;
use super::message::StoreRequest;
use super::meta;
use super::refusal::{StatusCause, StoreRefusal};
use super::route::RequestTarget;
use super::{json_patch, merge};

/// Largest number of operations in one JSON patch.
const MAX_PATCH_OPERATIONS: usize = 10_000;

/// Returns the stored object as the request patches it.
pub(super) fn patch_object(
    how: PatchType,
    target: &RequestTarget,
    request: &StoreRequest,
    old: &Value,
) -> Result<Value, StoreRefusal> {
    let kind = &target.kind;
    let patch = decode_patch(request)?;
    let mut new = how.apply_patch(kind, old.clone(), &patch, &request.body)?;
    decode::check_type_meta(kind, &mut new)?;
    decode::check_field_types(kind, &new).map_err(|why| unreadable_patch(&why))?;
    check_same_name(target, &new)?;
    Ok(new)
}

/// Reads the patch that a request brings.
pub(super) fn decode_patch(request: &StoreRequest) -> Result<Value, StoreRefusal> {
    decode::decode_body(request).map_err(|why| match why {
        UnreadBody::TooLarge(refusal) => refusal,
        UnreadBody::NoJson(why) => StoreRefusal::bad_request(format!("error decoding patch: {why}")),
    })
}

/// Format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchType {
    Json,
    Merge,
    Strategic,
}

impl PatchType {
    pub(super) fn from_request(
        kind: &SandboxKind,
        request: &StoreRequest,
    ) -> Result<PatchType, StoreRefusal> {
        match decode::media_type(request) {
            "application/json-patch+json" => Ok(PatchType::Json),
            "application/merge-patch+json" => Ok(PatchType::Merge),
            "application/strategic-merge-patch+json" if !kind.traits.custom => Ok(PatchType::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
                Err(StoreRefusal::not_implemented("server-side apply"))
            }
            "application/strategic-merge-patch+json" => Err(StoreRefusal::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
            _ if kind.traits.custom => Err(StoreRefusal::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
            _ => Err(StoreRefusal::unknown_patch()),
        }
    }

    fn apply_patch(
        self,
        kind: &SandboxKind,
        mut object: Value,
        patch: &Value,
        body: &[u8],
    ) -> Result<Value, StoreRefusal> {
        match self {
            PatchType::Json => {
                let operations = json_patch::parse_operations(body, patch).ok_or_else(|| StoreRefusal::bad_request("error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"))?;
                if operations.len() > MAX_PATCH_OPERATIONS {
                    return Err(StoreRefusal::too_large(format!(
                        "The allowed maximum operations in a JSON patch is {MAX_PATCH_OPERATIONS}, got {}",
                        operations.len()
                    )));
                }
                json_patch::apply_operations(&mut object, &operations)
                    .map_err(|_| StoreRefusal::patch_failed())?;
            }
            PatchType::Merge | PatchType::Strategic if !patch.is_object() => {
                return Err(StoreRefusal::bad_request(
                    "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}",
                ));
            }
            PatchType::Merge => merge::merge_patch(&mut object, patch),
            PatchType::Strategic => merge::strategic_merge_patch(kind, &mut object, patch),
        }
        Ok(object)
    }
}

fn unreadable_patch(why: &StoreRefusal) -> StoreRefusal {
    let cause = StatusCause {
        reason: "FieldValueInvalid",
        message: format!("Invalid value: {}", why.message()),
        field: "patch".into(),
    };
    StoreRefusal::invalid("", "", "", vec![cause])
}

fn check_same_name(target: &RequestTarget, new: &Value) -> Result<(), StoreRefusal> {
    let (is, said) = (target.name(), meta::name(new));
    if is != said {
        return Err(StoreRefusal::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({is})"
        )));
    }
    Ok(())
}
