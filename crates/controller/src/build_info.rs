//! What a build says of itself. A release sets these variables when it compiles; a build without them, from a checkout or an
//! archive of the sources, has the version of the manifest and names no commit.

/// Version of the program: that of the tag, or of the manifest.
pub const VERSION: &str = match option_env!("ROLLCALL_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};
/// Commit that was built.
pub const COMMIT: Option<&str> = option_env!("ROLLCALL_COMMIT");
/// Date of that commit, and not of the build: the same sources give the same program.
pub const COMMIT_DATE: Option<&str> = option_env!("ROLLCALL_COMMIT_DATE");
