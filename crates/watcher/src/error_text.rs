//! Text of errors, as far as a log has room for it: a server quotes what it was sent, and a proxy answers with a page.

use std::fmt::Display;

/// Most letters of an error's text.
const MAX_ERROR_LETTERS: usize = 512;

/// Returns the beginning of an error's text, in its alternate form.
pub fn error_text(error: impl Display) -> String {
    format!("{error:#}").chars().take(MAX_ERROR_LETTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_page_the_beginning_is_told() {
        let page = format!("<html>{}", "é".repeat(100_000));
        assert_eq!(error_text("refused"), "refused");
        assert_eq!(error_text(format_args!("502: {page}")).chars().count(), MAX_ERROR_LETTERS);
    }
}
