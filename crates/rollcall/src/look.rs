//! Where something is shown, and what that place can do.

use std::io::IsTerminal;

/// What standard output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The picture is redrawn in place; else lines follow lines.
    pub(crate) live: bool,
    /// There is colour.
    pub(crate) colour: bool,
}

impl Look {
    /// Asks the environment, once.
    pub(crate) fn of_this_process(once: bool) -> Look {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_none_or(|term| term == "dumb");
        Look::new(std::io::stdout().is_terminal() && !dumb, set("NO_COLOR").is_some(), once)
    }

    /// How many columns standard output has; `None` where it is no terminal.
    pub(crate) fn width() -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
        // A terminal that does not know its size says zero.
        (width.0 > 0).then_some(usize::from(width.0))
    }

    /// How many rows standard output has; `None` where it is no terminal.
    pub(crate) fn height() -> Option<usize> {
        let (_, height) = terminal_size::terminal_size_of(std::io::stdout())?;
        (height.0 > 0).then_some(usize::from(height.0))
    }

    fn new(capable: bool, no_color: bool, once: bool) -> Look {
        Look { live: capable && !once, colour: capable && !no_color }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_capable_terminal_gets_a_live_picture_and_colour() {
        let plain = Look { live: false, colour: false };
        assert_eq!(Look::new(false, false, false), plain);
        assert_eq!(Look::new(true, false, false), Look { live: true, colour: true });
        assert_eq!(Look::new(true, true, false), Look { live: true, colour: false });
        assert_eq!(Look::new(true, false, true), Look { live: false, colour: true });
    }
}
