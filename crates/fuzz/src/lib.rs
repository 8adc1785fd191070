//! Fuzz targets: every place at which text that strangers wrote is read, as a function of bytes.
//!
//! A target panics where what must hold does not: nothing panics or overflows, results are bounded, and what has two
//! readings or two ways of writing says the same in both. `tests/short_run.rs` runs all of them over the committed
//! corpus and seeded mutations of it; `crates/fuzz/run` runs one for as long as wanted, led by coverage.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a panic is what is looked for"
)]

mod cel_expression;
mod input_parts;
mod job_events;
mod job_record;
mod json_spelling;
mod lua_script;
mod mutation;
mod object_decoder;
mod page_request;
mod parent_template;
mod policy_inventory;
mod policy_manifest;
mod proof_expression;
mod readiness_group;
mod reference_path;
mod remembered_job;
mod script_library;
mod status_patch;
mod watch_stream;

pub use mutation::InputMutator;

/// A place at which text that strangers wrote is read.
#[derive(Clone, Copy, Debug)]
pub struct FuzzTarget {
    /// Its name, and that of the folder of its corpus.
    pub name: &'static str,
    /// Reads the input, and panics if something that must hold does not.
    pub run: fn(&[u8]),
    /// Words of its language, for mutations.
    pub words: &'static [&'static str],
}

/// All targets.
pub const FUZZ_TARGETS: [FuzzTarget; 15] = [
    FuzzTarget {
        name: "cel_expression",
        run: cel_expression::run,
        words: cel_expression::CEL_EXPRESSION_WORDS,
    },
    FuzzTarget { name: "job_events", run: job_events::run, words: job_events::JOB_EVENTS_WORDS },
    FuzzTarget { name: "job_record", run: job_record::run, words: job_record::JOB_RECORD_WORDS },
    FuzzTarget { name: "lua_script", run: lua_script::run, words: lua_script::LUA_SCRIPT_WORDS },
    FuzzTarget {
        name: "object_decoder",
        run: object_decoder::run,
        words: object_decoder::OBJECT_DECODER_WORDS,
    },
    FuzzTarget { name: "page_request", run: page_request::run, words: page_request::PAGE_REQUEST_WORDS },
    FuzzTarget {
        name: "parent_template",
        run: parent_template::run,
        words: parent_template::PARENT_TEMPLATE_WORDS,
    },
    FuzzTarget {
        name: "policy_inventory",
        run: policy_inventory::run,
        words: policy_inventory::POLICY_INVENTORY_WORDS,
    },
    FuzzTarget {
        name: "policy_manifest",
        run: policy_manifest::run,
        words: policy_manifest::POLICY_MANIFEST_WORDS,
    },
    FuzzTarget {
        name: "proof_expression",
        run: proof_expression::run,
        words: proof_expression::PROOF_EXPRESSION_WORDS,
    },
    FuzzTarget {
        name: "readiness_group",
        run: readiness_group::run,
        words: readiness_group::READINESS_GROUP_WORDS,
    },
    FuzzTarget {
        name: "reference_path",
        run: reference_path::run,
        words: reference_path::REFERENCE_PATH_WORDS,
    },
    FuzzTarget {
        name: "script_library",
        run: script_library::run,
        words: script_library::SCRIPT_LIBRARY_WORDS,
    },
    FuzzTarget { name: "status_patch", run: status_patch::run, words: status_patch::STATUS_PATCH_WORDS },
    FuzzTarget { name: "watch_stream", run: watch_stream::run, words: watch_stream::WATCH_STREAM_WORDS },
];
