//! PATCH requests.

use serde_json::Value;

use super::decode::{self, UnreadBody};
use super::kind::SandboxKind;
use super::managed_fields::ObjectWrite;
use super::message::{EpochMillis, StoreRequest, StoreResponse};
use super::meta;
use super::refusal::{StatusCause, StoreRefusal};
use super::route::RequestTarget;
use super::{SandboxStore, json_patch, merge, response_form};

/// Largest number of operations in one JSON patch.
const MAX_PATCH_OPERATIONS: usize = 10_000;

impl SandboxStore {
    pub(super) fn patch_request(
        &mut self,
        now: EpochMillis,
        target: &RequestTarget,
        request: &StoreRequest,
    ) -> Result<StoreResponse, StoreRefusal> {
        let kind = &target.kind;
        let how = PatchType::from_request(kind, request)?;
        let key = kind.storage_key(target.namespace(), target.name.as_deref().unwrap_or_default());
        let old = self.stored_object(kind.storage, &key).cloned().ok_or_else(|| target.not_found())?;
        let patch = decode::decode_body(request).map_err(|why| match why {
            UnreadBody::TooLarge(refusal) => refusal,
            UnreadBody::NoJson(why) => StoreRefusal::bad_request(format!("error decoding patch: {why}")),
        })?;
        let mut new = how.apply_patch(kind, (*kind.render_version(&old)).clone(), &patch, &request.body)?;
        decode::check_type_meta(kind, &mut new)?;
        decode::check_field_types(kind, &new).map_err(|why| unreadable_patch(&why))?;
        check_same_name(target, &new)?;
        let write = ObjectWrite { subresource: target.subresource, ..ObjectWrite::new(now, kind, request) };
        let updated = self.replace_object(&write, &old, new)?;
        Ok(StoreResponse::json(200, &response_form::render_one(request, &kind.render_version(&updated))))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatchType {
    Json,
    Merge,
    Strategic,
}

impl PatchType {
    fn from_request(kind: &SandboxKind, request: &StoreRequest) -> Result<PatchType, StoreRefusal> {
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
    let (is, said) = (target.name.as_deref().unwrap_or_default(), meta::name(new));
    if is != said {
        return Err(StoreRefusal::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({is})"
        )));
    }
    Ok(())
}
