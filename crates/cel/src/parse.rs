//! Parses text to a syntax tree with the parser of the `cel` crate, guarded.
//!
//! That parser recurses, and so does dropping its tree: on a chain as deep as the chain is long. It runs on a thread of
//! its own whose stack fits the longest accepted source, and its tree is used only on that thread.

use std::thread;

use cel::common::ast::{CallExpr, Expr, IdedExpr, SourceInfo, operators};
use cel::parser::ParseErrors;

use crate::{CompileError, nesting};

/// Maximum length of a source, in bytes. Longer than any rule; a policy's own schema allows 4,096 characters.
pub(crate) const MAX_SOURCE_BYTES: usize = 8 * 1024;

/// Stack size for a chain of half as many operators as the source has bytes, in an unoptimized build.
const PARSER_STACK_BYTES: usize = 128 << 20;

/// Parses `source` and passes its tree to `lower`, on the parser's thread.
pub(crate) fn with_syntax_tree<T: Send>(
    source: &str,
    lower: impl FnOnce(&IdedExpr, &NodePositions<'_>) -> Result<T, CompileError> + Send,
) -> Result<T, CompileError> {
    if source.len() > MAX_SOURCE_BYTES {
        let message = format!("the expression is longer than {MAX_SOURCE_BYTES} bytes");
        return Err(CompileError { limit: true, ..CompileError::new(1, 1, message) });
    }
    if source.trim().is_empty() {
        return Err(CompileError::new(1, 1, "the expression is empty".to_owned()));
    }
    nesting::check_nesting(source)?;
    let parsed = || {
        // Macros stay calls: they are resolved when their names and types are checked.
        let parser = cel::Env::default().parser().enable_ident_escape_syntax(true);
        let (tree, info) = parser.parse_with_source_info(source).map_err(|errors| first_error(&errors))?;
        lower(&tree, &NodePositions { source, info: &info })
    };
    let outcome = thread::scope(|scope| {
        let thread = thread::Builder::new().name("cel".to_owned()).stack_size(PARSER_STACK_BYTES);
        thread.spawn_scoped(scope, parsed).map(thread::ScopedJoinHandle::join)
    });
    match outcome {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(CompileError::new(1, 1, "the parser crashed on this expression".to_owned())),
        Err(error) => Err(CompileError::new(1, 1, format!("failed to start the parser: {error}"))),
    }
}

/// Returns the first syntax error.
fn first_error(errors: &ParseErrors) -> CompileError {
    let Some(error) = errors.errors.first() else {
        return CompileError::new(1, 1, "syntax error".to_owned());
    };
    let place = |at: isize| u32::try_from(at).unwrap_or(1).max(1);
    let limit = errors.errors.iter().any(|error| error.msg.contains("ecursion"));
    let message =
        if limit { "the expression is nested too deeply".to_owned() } else { error.msg.replace('\n', " ") };
    CompileError { limit, ..CompileError::new(place(error.pos.0), place(error.pos.1), message) }
}

/// Source positions of the tree's nodes.
pub(crate) struct NodePositions<'s> {
    source: &'s str,
    info: &'s SourceInfo,
}

impl NodePositions<'_> {
    /// Returns line and column of a node, both 1-based, the column in characters.
    pub(crate) fn position_of(&self, node: u64) -> (u32, u32) {
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

    /// Returns `true` if the parser places a node at an opening parenthesis.
    fn is_parenthesis(&self, node: u64) -> bool {
        let start = self.info.offset_for(node).map_or(0, |(start, _)| start as usize);
        self.source.as_bytes().get(start) == Some(&b'(')
    }

    /// Returns an error at the beginning of an expression.
    pub(crate) fn error_at<T>(&self, at: &IdedExpr, message: impl Into<String>) -> Result<T, CompileError> {
        let (line, column) = self.position_of(leftmost_node(at));
        Err(CompileError::new(line, column, message.into()))
    }

    /// Returns the error of an expression that is valid and exceeds a limit.
    pub(crate) fn limit_error<T>(&self, at: &IdedExpr, message: String) -> Result<T, CompileError> {
        self.error_at(at, message).map_err(|error| CompileError { limit: true, ..error })
    }

    /// Returns an error at the name of a function. The position of a method call is its parenthesis; its name is before
    /// that.
    pub(crate) fn error_at_name<T>(
        &self,
        e: &IdedExpr,
        name: &str,
        message: String,
    ) -> Result<T, CompileError> {
        let (line, column) = self.position_of(e.id);
        let last = name.rsplit('.').next().unwrap_or(name);
        let length = u32::try_from(last.chars().count()).unwrap_or(0);
        let before = if self.is_parenthesis(e.id) { length } else { 0 };
        Err(CompileError::new(line, column.saturating_sub(before).max(1), message))
    }
}

/// Returns the node with which the text of an expression begins: an operator's own node is in its middle.
fn leftmost_node(e: &IdedExpr) -> u64 {
    match &e.expr {
        Expr::Select(select) => leftmost_node(&select.operand),
        Expr::Call(CallExpr { target: Some(target), .. }) => leftmost_node(target),
        Expr::Call(CallExpr { func_name, args, .. })
            if func_name.starts_with('_') || func_name == operators::IN =>
        {
            args.first().map_or(e.id, leftmost_node)
        }
        _ => e.id,
    }
}
