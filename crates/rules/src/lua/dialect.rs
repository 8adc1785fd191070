//! Translates Argo CD's Lua (5.1 with `goto`) to Luau, which has no `goto` but a `continue`.
//!
//! A `goto` to a label at the end of a loop's body becomes a `continue` of that loop; from inner loops it leaves them
//! one by one, with a flag that names the target. Any other `goto` has no counterpart and is refused with its line. In
//! addition, every `return` records its line, so that the deciding line can be shown. Line numbers are preserved.

use super::tokens::{LuaToken, TokenKind, scan_tokens};

/// The global to which a script's returns write their line.
pub(super) const LINE_GLOBAL: &str = "__line";

/// Most blocks in each other; Lua's own limit.
const MAX_BLOCK_DEPTH: usize = 200;

/// Most gotos, and most labels. Each goto may have to leave as many loops as there may be blocks in each other.
const MAX_JUMPS: usize = 500;

/// A script that cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Untranslatable {
    #[error("goto {label} does not continue a loop")]
    Goto { line: u32, label: String },
    #[error("more than {MAX_BLOCK_DEPTH} blocks in each other")]
    TooDeep { line: u32 },
    #[error("more than {MAX_JUMPS} labels or gotos")]
    TooManyJumps { line: u32 },
}

impl Untranslatable {
    pub(super) fn line(&self) -> u32 {
        match self {
            Untranslatable::Goto { line, .. }
            | Untranslatable::TooDeep { line }
            | Untranslatable::TooManyJumps { line } => *line,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Function,
    Loop,
    Plain,
}

/// A block: its enclosing block, its last keyword, and the labels at the end of its body.
#[derive(Debug)]
struct BlockFrame<'a> {
    block: BlockKind,
    parent: usize,
    closed: usize,
    labels: Vec<&'a str>,
    /// Number of blocks around it.
    depth: usize,
}

struct GotoStatement<'a> {
    frame: usize,
    label: &'a str,
    /// Indices of its two tokens.
    at: (usize, usize),
}

/// Returns `source` translated to Luau.
pub(super) fn translate_to_luau(source: &str) -> Result<String, Untranslatable> {
    let tokens = scan_tokens(source);
    let mut outline = BlockOutline::new(&tokens);
    let mut edits = outline.read_blocks()?;
    for goto in &outline.gotos {
        outline.resolve_goto(goto, &mut edits)?;
    }
    edits.sort_by_key(|edit| edit.0);
    let mut out = String::with_capacity(source.len() + 64);
    let mut done = 0;
    for (start, end, text) in edits {
        out.push_str(&source[done..start]);
        out.push_str(&text);
        done = end;
    }
    out.push_str(&source[done..]);
    Ok(out)
}

/// Replaces the bytes from the first offset to the second by the text.
type SourceEdit = (usize, usize, String);

struct BlockOutline<'t, 'a> {
    tokens: &'t [LuaToken<'a>],
    frames: Vec<BlockFrame<'a>>,
    gotos: Vec<GotoStatement<'a>>,
    labels: usize,
    /// By token, the next one that is neither a semicolon nor part of a label.
    busy: Vec<usize>,
}

impl<'t, 'a> BlockOutline<'t, 'a> {
    fn new(tokens: &'t [LuaToken<'a>]) -> Self {
        let chunk = BlockFrame {
            block: BlockKind::Function,
            parent: 0,
            closed: tokens.len(),
            labels: Vec::new(),
            depth: 0,
        };
        BlockOutline { tokens, frames: vec![chunk], gotos: Vec::new(), labels: 0, busy: next_busy(tokens) }
    }

    fn word_at(&self, at: usize) -> Option<&'a str> {
        match self.tokens.get(at)?.kind {
            TokenKind::Word(word) if at == 0 || self.tokens[at - 1].kind != TokenKind::Access => Some(word),
            _ => None,
        }
    }

    /// Finds blocks, labels and gotos; returns the edits that do not depend on them.
    fn read_blocks(&mut self) -> Result<Vec<SourceEdit>, Untranslatable> {
        let mut edits = Vec::new();
        let mut open = 0;
        // `while` and `for` open their block at the `do` that belongs to them.
        let mut awaits_do = false;
        let mut at = 0;
        while at < self.tokens.len() {
            let token = self.tokens[at];
            if self.frames[open].depth > MAX_BLOCK_DEPTH {
                return Err(Untranslatable::TooDeep { line: token.line });
            }
            if self.gotos.len().max(self.labels) > MAX_JUMPS {
                return Err(Untranslatable::TooManyJumps { line: token.line });
            }
            match self.word_at(at) {
                Some("while" | "for") => awaits_do = true,
                Some("do") => {
                    open = self.open_block(if awaits_do { BlockKind::Loop } else { BlockKind::Plain }, open);
                    awaits_do = false;
                }
                Some("repeat") => open = self.open_block(BlockKind::Loop, open),
                Some("function") => open = self.open_block(BlockKind::Function, open),
                Some("if") => open = self.open_block(BlockKind::Plain, open),
                Some("end" | "until") => {
                    self.frames[open].closed = at;
                    open = self.frames[open].parent;
                }
                Some("return") => {
                    edits.push((token.start, token.start, format!("{LINE_GLOBAL}={};", token.line)));
                }
                Some("goto") => {
                    if let Some(label) = self.word_at(at + 1) {
                        self.gotos.push(GotoStatement { frame: open, label, at: (at, at + 1) });
                        at += 1;
                    }
                }
                _ if token.kind == TokenKind::Colons => {
                    if let (Some(label), Some(TokenKind::Colons)) =
                        (self.word_at(at + 1), self.kind_at(at + 2))
                    {
                        edits.push((token.start, self.tokens[at + 2].end, String::new()));
                        self.note_label(label, open, at + 3);
                        at += 2;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        Ok(edits)
    }

    fn kind_at(&self, at: usize) -> Option<TokenKind<'a>> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn open_block(&mut self, block: BlockKind, parent: usize) -> usize {
        let (closed, depth) = (self.tokens.len(), self.frames[parent].depth + 1);
        self.frames.push(BlockFrame { block, parent, closed, labels: Vec::new(), depth });
        self.frames.len() - 1
    }

    /// Keeps a label if only labels and semicolons follow it in its block.
    fn note_label(&mut self, label: &'a str, frame: usize, behind: usize) {
        self.labels += 1;
        if matches!(self.word_at(self.skip_idle(behind)), Some("end" | "until")) {
            self.frames[frame].labels.push(label);
        }
    }

    /// Returns the next token that is neither a semicolon nor part of a label.
    fn skip_idle(&self, at: usize) -> usize {
        self.busy.get(at).copied().unwrap_or(at)
    }

    /// Returns `true` if the end of this block is the end of a loop's body: nothing follows it in the enclosing blocks.
    fn ends_loop(&self, mut frame: usize) -> bool {
        while self.frames[frame].block == BlockKind::Plain {
            let parent = self.frames[frame].parent;
            if self.skip_idle(self.frames[frame].closed + 1) != self.frames[parent].closed {
                return false;
            }
            frame = parent;
        }
        self.frames[frame].block == BlockKind::Loop
    }

    fn resolve_goto(
        &self,
        goto: &GotoStatement<'a>,
        edits: &mut Vec<SourceEdit>,
    ) -> Result<(), Untranslatable> {
        let (first, last) = (self.tokens[goto.at.0], self.tokens[goto.at.1]);
        let refused = || Untranslatable::Goto { line: first.line, label: goto.label.to_owned() };
        let mut crossed = Vec::new();
        let mut at = goto.frame;
        loop {
            let frame = &self.frames[at];
            let here = frame.labels.contains(&goto.label);
            match frame.block {
                BlockKind::Loop if here => break,
                BlockKind::Loop => crossed.push(at),
                BlockKind::Plain if here && self.ends_loop(at) => break,
                BlockKind::Plain if here => return Err(refused()),
                BlockKind::Plain => {}
                BlockKind::Function => return Err(refused()),
            }
            at = frame.parent;
        }
        let flag = format!("__goto_{}", goto.label);
        let leave = if crossed.is_empty() { "continue".to_owned() } else { format!("{flag}=true break") };
        edits.push((first.start, last.end, format!("do {leave} end")));
        for (depth, inner) in crossed.iter().enumerate() {
            let outermost = depth + 1 == crossed.len();
            let next = if outermost { format!("{flag}=nil continue") } else { "break".to_owned() };
            let behind = self.end_of_loop(*inner).ok_or_else(refused)?;
            edits.push((behind, behind, format!(" if {flag} then {next} end ")));
        }
        Ok(())
    }

    /// Returns the index behind a loop. A `repeat` ends with an expression, whose end only a parser can find.
    fn end_of_loop(&self, frame: usize) -> Option<usize> {
        let closed = self.frames[frame].closed;
        (self.word_at(closed) == Some("end")).then(|| self.tokens[closed].end)
    }
}

/// Returns, by token, the next one that is neither a semicolon nor part of a label.
fn next_busy(tokens: &[LuaToken<'_>]) -> Vec<usize> {
    let mut busy = vec![0; tokens.len()];
    for (at, token) in tokens.iter().enumerate().rev() {
        let behind = match token.kind {
            TokenKind::Semicolon => at + 1,
            TokenKind::Colons => at + 3,
            _ => at,
        };
        busy[at] = if behind == at { at } else { busy.get(behind).copied().unwrap_or(behind) };
    }
    busy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(source: &str) -> String {
        translate_to_luau(source).unwrap()
    }

    #[test]
    fn a_goto_to_the_end_of_its_loop_continues_it() {
        let source = "for i = 1, 3 do\n  if x then goto continue end\n  y()\n  ::continue::\nend";
        let bridged = "for i = 1, 3 do\n  if x then do continue end end\n  y()\n  \nend";
        assert_eq!(plain(source), bridged);
    }

    #[test]
    fn words_in_strings_comments_and_fields_stay() {
        let source =
            "local s = 'goto continue' -- goto continue\nt.goto = t.continue t['::x::'] = [[ ::y:: ]]";
        assert_eq!(plain(source), source);
    }

    #[test]
    fn an_inner_loop_is_left_before_the_outer_one_continues() {
        let source = "while a do for k in b do if c then goto next end end d() ::next:: end";
        let bridged = "while a do for k in b do if c then do __goto_next=true break end end end \
                       if __goto_next then __goto_next=nil continue end  d()  end";
        assert_eq!(plain(source), bridged);
    }

    #[test]
    fn the_end_of_a_block_that_ends_the_loop_will_do() {
        let source = "for a in b do if c then if d then goto continue end e() ::continue:: end; end";
        let bridged = "for a in b do if c then if d then do continue end end e()  end; end";
        assert_eq!(plain(source), bridged);
        let follows = "for a in b do if c then goto continue ::continue:: end e() end";
        assert!(translate_to_luau(follows).is_err());
    }

    #[test]
    fn each_loop_has_its_own_label() {
        let source =
            "for a in b do for c in d do goto continue ::continue:: end goto continue ::continue:: end";
        let bridged = "for a in b do for c in d do do continue end  end do continue end  end";
        assert_eq!(plain(source), bridged);
    }

    #[test]
    fn a_goto_elsewhere_is_refused_with_its_line() {
        for source in [
            "\n::top::\nx() goto top",
            "do\n\ngoto out end y() ::out:: z()",
            "for i=1,2 do\n::a::\ngoto a end",
        ] {
            assert_eq!(translate_to_luau(source).unwrap_err().line(), 3, "{source}");
        }
    }

    #[test]
    fn a_return_notes_its_line() {
        assert_eq!(plain("if x then\n  return y\nend"), "if x then\n  __line=2;return y\nend");
    }
}
