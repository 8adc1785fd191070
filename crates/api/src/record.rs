//! `ReadinessRecord`: state that must survive a restart of Rollcall, stored in Rollcall's own namespace under the uid
//! of the parent.
//!
//! Only Rollcall writes and reads it. A user may set the outcome of an entry that is `Unseen`; any other edit is
//! reverted.

#![allow(clippy::duplicated_attributes, reason = "each printed column has its type")]

use kube::CustomResource;
use rollcall_record::RecordContent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Outcomes of Jobs that a parent owns or owned, for policies with `afterDeletion: remember`.
#[derive(CustomResource, JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "rollcall.dev",
    version = "v1alpha1",
    kind = "ReadinessRecord",
    plural = "readinessrecords",
    shortname = "rrec",
    category = "rollcall",
    namespaced,
    derive = "PartialEq",
    printcolumn(
        name = "Kind",
        json_path = ".spec.parent.kind",
        type_ = "string",
        description = "Kind of the parent."
    ),
    printcolumn(
        name = "Of",
        json_path = ".spec.parent.namespace",
        type_ = "string",
        description = "Namespace of the parent."
    ),
    printcolumn(
        name = "Parent",
        json_path = ".spec.parent.name",
        type_ = "string",
        description = "Name of the parent."
    ),
    printcolumn(
        name = "Outcomes",
        json_path = ".spec.outcomes[*].outcome",
        type_ = "string",
        description = "Outcomes of the parent's Jobs."
    ),
    printcolumn(name = "Age", json_path = ".metadata.creationTimestamp", type_ = "date")
)]
#[serde(transparent)]
pub struct ReadinessRecordSpec(pub RecordContent);
