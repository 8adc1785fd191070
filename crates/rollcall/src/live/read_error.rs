//! Why something could not be read, for people.

use watcher::{ApiFailureCause, LiveReadError};

/// Returns the reason why a kind could not be read, for people.
pub(super) fn read_error_text(error: &LiveReadError) -> String {
    match error.cause {
        ApiFailureCause::Forbidden => "you may not list it".to_owned(),
        _ => error.to_string(),
    }
}
