//! Text of errors, as far as a log has room for it: a server quotes what it was sent, and a proxy answers with a page.

use std::fmt::{self, Display, Write};

/// Most letters of an error's text.
const MAX_ERROR_LETTERS: usize = 512;

/// Returns the beginning of an error's text, in its alternate form.
pub fn error_text(error: impl Display) -> String {
    let mut text = BoundedText { text: String::new(), room: MAX_ERROR_LETTERS };
    // It fails where no more is taken in.
    let _ = write!(text, "{error:#}");
    text.text
}

struct BoundedText {
    text: String,
    room: usize,
}

impl Write for BoundedText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for letter in part.chars() {
            self.room = self.room.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(letter);
        }
        Ok(())
    }
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
