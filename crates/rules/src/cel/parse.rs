//! From text to a syntax tree, by the parser of the `cel` crate, behind guards.
//!
//! That parser recurses, and so does the dropping of what it built: on a chain as deep as the chain is long. It runs on
//! a thread of its own whose stack is made for the longest source that is taken, and everything that touches its tree
//! happens there.

use std::thread;

use cel::common::ast::{IdedExpr, SourceInfo};
use cel::parser::ParseErrors;

use super::{CompileError, shape};

/// Longer than any rule; a policy's own schema ends at 4,096 characters.
pub(super) const SOURCE: usize = 8 * 1024;

/// For a chain of half as many operators as the source has bytes, in a build without optimisation.
const STACK: usize = 128 << 20;

/// Parses `source` and gives its tree to `lower`, on the parser's thread.
pub(super) fn with_tree<T: Send>(
    source: &str,
    lower: impl FnOnce(&IdedExpr, &Places<'_>) -> Result<T, CompileError> + Send,
) -> Result<T, CompileError> {
    if source.len() > SOURCE {
        let message = format!("the expression is longer than {SOURCE} bytes");
        return Err(CompileError { limit: true, ..CompileError::new(1, 1, message) });
    }
    if source.trim().is_empty() {
        return Err(CompileError::new(1, 1, "the expression is empty".to_owned()));
    }
    shape::check(source)?;
    let parsed = || {
        // Macros stay calls: they are resolved where their names and types are checked.
        let parser = cel::Env::default().parser().enable_ident_escape_syntax(true);
        let (tree, info) = parser.parse_with_source_info(source).map_err(|errors| first(&errors))?;
        lower(&tree, &Places { source, info: &info })
    };
    let outcome = thread::scope(|scope| {
        let thread = thread::Builder::new().name("cel".to_owned()).stack_size(STACK);
        thread.spawn_scoped(scope, parsed).map(thread::ScopedJoinHandle::join)
    });
    match outcome {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(CompileError::new(1, 1, "the parser crashed on this expression".to_owned())),
        Err(error) => Err(CompileError::new(1, 1, format!("failed to start the parser: {error}"))),
    }
}

/// The first thing that the parser did not like.
fn first(errors: &ParseErrors) -> CompileError {
    let Some(error) = errors.errors.first() else {
        return CompileError::new(1, 1, "syntax error".to_owned());
    };
    let place = |at: isize| u32::try_from(at).unwrap_or(1).max(1);
    let limit = errors.errors.iter().any(|error| error.msg.contains("ecursion"));
    let message =
        if limit { "the expression is nested too deeply".to_owned() } else { error.msg.replace('\n', " ") };
    CompileError { limit, ..CompileError::new(place(error.pos.0), place(error.pos.1), message) }
}

/// Where each node of the tree stands in the source.
pub(super) struct Places<'s> {
    source: &'s str,
    info: &'s SourceInfo,
}

impl Places<'_> {
    /// Line and column of a node, both from 1, the column in characters.
    pub(super) fn of(&self, node: u64) -> (u32, u32) {
        let start = self.info.offset_for(node).map_or(0, |(start, _)| start as usize);
        let (mut line, mut column) = (1, 1);
        let before = &self.source[..self.source.floor_char_boundary(start)];
        for c in before.chars() {
            if c == '\n' {
                (line, column) = (line + 1, 1);
            } else {
                column += 1;
            }
        }
        (line, column)
    }

    /// Does the parser place a node at an opening parenthesis?
    pub(super) fn is_parenthesis(&self, node: u64) -> bool {
        let start = self.info.offset_for(node).map_or(0, |(start, _)| start as usize);
        self.source.as_bytes().get(start) == Some(&b'(')
    }
}
