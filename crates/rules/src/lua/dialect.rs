//! Argo CD's Lua (5.1 with `goto`) written as Luau, which has no `goto` but a `continue`.
//!
//! A `goto` to a label at the end of a loop's body is a `continue` of that loop; from inner loops it leaves them one by
//! one, with a flag saying where to. Any other `goto` has no counterpart and is refused with its line. Beside that,
//! every `return` notes its line, so that a person can be told which one decided. Lines stay where they are.

use super::tokens::{Kind, Token, tokens};

/// The global a script's returns write their line to.
pub(super) const LINE: &str = "__line";

/// A `goto` that cannot be bridged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unbridged {
    pub(super) line: u32,
    pub(super) label: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Function,
    Loop,
    Plain,
}

/// A block: the one it is in, where its last keyword stands, and the labels that end its body.
#[derive(Debug)]
struct Frame<'a> {
    block: Block,
    parent: usize,
    closed: usize,
    labels: Vec<&'a str>,
}

struct Goto<'a> {
    frame: usize,
    label: &'a str,
    /// Indices of its two tokens.
    at: (usize, usize),
}

/// `source` in Luau.
pub(super) fn bridge(source: &str) -> Result<String, Unbridged> {
    let tokens = tokens(source);
    let mut outline = Outline::new(&tokens);
    let mut edits = outline.read();
    for goto in &outline.gotos {
        outline.resolve(goto, &mut edits)?;
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

/// Replace the bytes from the first to the second by the text.
type Edit = (usize, usize, String);

struct Outline<'t, 'a> {
    tokens: &'t [Token<'a>],
    frames: Vec<Frame<'a>>,
    gotos: Vec<Goto<'a>>,
}

impl<'t, 'a> Outline<'t, 'a> {
    fn new(tokens: &'t [Token<'a>]) -> Self {
        let chunk = Frame { block: Block::Function, parent: 0, closed: tokens.len(), labels: Vec::new() };
        Outline { tokens, frames: vec![chunk], gotos: Vec::new() }
    }

    fn word(&self, at: usize) -> Option<&'a str> {
        match self.tokens.get(at)?.kind {
            Kind::Word(word) if at == 0 || self.tokens[at - 1].kind != Kind::Access => Some(word),
            _ => None,
        }
    }

    /// Finds blocks, labels and gotos; returns the edits that depend on none of them.
    fn read(&mut self) -> Vec<Edit> {
        let mut edits = Vec::new();
        let mut open = 0;
        // `while` and `for` open their block at the `do` that belongs to them.
        let mut awaits_do = false;
        let mut at = 0;
        while at < self.tokens.len() {
            let token = self.tokens[at];
            match self.word(at) {
                Some("while" | "for") => awaits_do = true,
                Some("do") => {
                    open = self.open(if awaits_do { Block::Loop } else { Block::Plain }, open);
                    awaits_do = false;
                }
                Some("repeat") => open = self.open(Block::Loop, open),
                Some("function") => open = self.open(Block::Function, open),
                Some("if") => open = self.open(Block::Plain, open),
                Some("end" | "until") => {
                    self.frames[open].closed = at;
                    open = self.frames[open].parent;
                }
                Some("return") => edits.push((token.start, token.start, format!("{LINE}={};", token.line))),
                Some("goto") => {
                    if let Some(label) = self.word(at + 1) {
                        self.gotos.push(Goto { frame: open, label, at: (at, at + 1) });
                        at += 1;
                    }
                }
                _ if token.kind == Kind::Colons => {
                    if let (Some(label), Some(Kind::Colons)) = (self.word(at + 1), self.kind(at + 2)) {
                        edits.push((token.start, self.tokens[at + 2].end, String::new()));
                        self.note_label(label, open, at + 3);
                        at += 2;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        edits
    }

    fn kind(&self, at: usize) -> Option<Kind<'a>> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn open(&mut self, block: Block, parent: usize) -> usize {
        self.frames.push(Frame { block, parent, closed: self.tokens.len(), labels: Vec::new() });
        self.frames.len() - 1
    }

    /// Keeps a label if nothing but labels and semicolons stands between it and the end of its block.
    fn note_label(&mut self, label: &'a str, frame: usize, behind: usize) {
        if matches!(self.word(self.skip_idle(behind)), Some("end" | "until")) {
            self.frames[frame].labels.push(label);
        }
    }

    /// The next token that is neither a semicolon nor part of a label.
    fn skip_idle(&self, mut at: usize) -> usize {
        loop {
            match self.kind(at) {
                Some(Kind::Semicolon) => at += 1,
                Some(Kind::Colons) => at += 3,
                _ => return at,
            }
        }
    }

    /// Whether the end of this block is the end of a loop's body: nothing follows it, nor the blocks around it.
    fn ends_a_loop(&self, mut frame: usize) -> bool {
        while self.frames[frame].block == Block::Plain {
            let parent = self.frames[frame].parent;
            if self.skip_idle(self.frames[frame].closed + 1) != self.frames[parent].closed {
                return false;
            }
            frame = parent;
        }
        self.frames[frame].block == Block::Loop
    }

    fn resolve(&self, goto: &Goto<'a>, edits: &mut Vec<Edit>) -> Result<(), Unbridged> {
        let (first, last) = (self.tokens[goto.at.0], self.tokens[goto.at.1]);
        let refused = || Unbridged { line: first.line, label: goto.label.to_owned() };
        let mut crossed = Vec::new();
        let mut at = goto.frame;
        loop {
            let frame = &self.frames[at];
            let here = frame.labels.contains(&goto.label);
            match frame.block {
                Block::Loop if here => break,
                Block::Loop => crossed.push(at),
                Block::Plain if here && self.ends_a_loop(at) => break,
                Block::Plain if here => return Err(refused()),
                Block::Plain => {}
                Block::Function => return Err(refused()),
            }
            at = frame.parent;
        }
        let flag = format!("__goto_{}", goto.label);
        let leave = if crossed.is_empty() { "continue".to_owned() } else { format!("{flag}=true break") };
        edits.push((first.start, last.end, format!("do {leave} end")));
        for (depth, inner) in crossed.iter().enumerate() {
            let outermost = depth + 1 == crossed.len();
            let next = if outermost { format!("{flag}=nil continue") } else { "break".to_owned() };
            let behind = self.behind(*inner).ok_or_else(refused)?;
            edits.push((behind, behind, format!(" if {flag} then {next} end ")));
        }
        Ok(())
    }

    /// The place behind a loop. A `repeat` ends with an expression, whose end only a parser knows.
    fn behind(&self, frame: usize) -> Option<usize> {
        let closed = self.frames[frame].closed;
        (self.word(closed) == Some("end")).then(|| self.tokens[closed].end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(source: &str) -> String {
        bridge(source).unwrap()
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
        assert!(bridge(follows).is_err());
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
            assert_eq!(bridge(source).unwrap_err().line, 3, "{source}");
        }
    }

    #[test]
    fn a_return_notes_its_line() {
        assert_eq!(plain("if x then\n  return y\nend"), "if x then\n  __line=2;return y\nend");
    }
}
