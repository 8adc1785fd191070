//! Why the server refused a list, in words.

/// Returns the reason why a list was refused.
pub(super) fn refusal_text(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 403 => "you may not list it".to_owned(),
        error => error.to_string(),
    }
}
