//! Detects the capabilities of standard output.

use std::io::IsTerminal;

/// Capabilities of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TerminalCapabilities {
    /// `true` if the view is redrawn in place; otherwise lines are appended.
    pub(crate) live: bool,
    /// `true` if colours are used.
    pub(crate) colour: bool,
}

impl TerminalCapabilities {
    /// Reads the environment, once.
    pub(crate) fn detect_stdout(once: bool) -> TerminalCapabilities {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_none_or(|term| term == "dumb");
        TerminalCapabilities::new(std::io::stdout().is_terminal() && !dumb, set("NO_COLOR").is_some(), once)
    }

    /// Number of columns of standard output; `None` if it is no terminal.
    pub(crate) fn stdout_width() -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
        // Zero means that the terminal does not know its size.
        (width.0 > 0).then_some(usize::from(width.0))
    }

    /// Number of rows of standard output; `None` if it is no terminal.
    pub(crate) fn stdout_height() -> Option<usize> {
        let (_, height) = terminal_size::terminal_size_of(std::io::stdout())?;
        (height.0 > 0).then_some(usize::from(height.0))
    }

    fn new(capable: bool, no_color: bool, once: bool) -> TerminalCapabilities {
        TerminalCapabilities { live: capable && !once, colour: capable && !no_color }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_capable_terminal_gets_a_live_picture_and_colour() {
        let plain = TerminalCapabilities { live: false, colour: false };
        assert_eq!(TerminalCapabilities::new(false, false, false), plain);
        assert_eq!(
            TerminalCapabilities::new(true, false, false),
            TerminalCapabilities { live: true, colour: true }
        );
        assert_eq!(
            TerminalCapabilities::new(true, true, false),
            TerminalCapabilities { live: true, colour: false }
        );
        assert_eq!(
            TerminalCapabilities::new(true, false, true),
            TerminalCapabilities { live: false, colour: true }
        );
    }
}
