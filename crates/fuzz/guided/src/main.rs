//! libFuzzer over the target that the environment names.

#![no_main]

use std::sync::LazyLock;

use fuzz::{FUZZ_TARGETS, FuzzTarget};

static TARGET: LazyLock<&'static FuzzTarget> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    FUZZ_TARGETS.iter().find(|target| target.name == name).expect("FUZZ_TARGET names a target")
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (TARGET.run)(data));
