//! The nodes of one document, without recursion: a deep document costs memory, never the stack.

use std::fmt::Write;

use super::Wrong;

/// A node's place.
pub(super) type Id = usize;

#[derive(Debug)]
pub(super) enum Node {
    /// Where its JSON is in the text of scalars.
    Scalar {
        from: usize,
        to: usize,
    },
    List(Vec<Id>),
    /// Keys are scalars whose JSON is a text.
    Map(Vec<(Id, Id)>),
}

/// A state of a tree to go back to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    nodes: usize,
    scalars: usize,
}

#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    scalars: String,
}

/// So many nodes may be written by way of aliases: a few lines of YAML can stand for more than any memory holds.
const ALIASED: usize = 1_000_000;

impl Tree {
    pub(super) fn push(&mut self, node: Node) -> Id {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { nodes: self.nodes.len(), scalars: self.scalars.len() }
    }

    /// Forgets what came after.
    pub(super) fn truncate(&mut self, mark: Mark) {
        self.nodes.truncate(mark.nodes);
        self.scalars.truncate(mark.scalars);
    }

    /// Adds a scalar whose JSON is `json`.
    pub(super) fn literal(&mut self, json: &str) -> Id {
        let from = self.scalars.len();
        self.scalars.push_str(json);
        self.push(Node::Scalar { from, to: self.scalars.len() })
    }

    /// Adds a text.
    pub(super) fn text(&mut self, text: &str) -> Id {
        let from = self.scalars.len();
        quote(text, &mut self.scalars);
        self.push(Node::Scalar { from, to: self.scalars.len() })
    }

    /// The JSON of a scalar; empty for anything else.
    pub(super) fn scalar(&self, id: Id) -> &str {
        match self.nodes[id] {
            Node::Scalar { from, to } => &self.scalars[from..to],
            _ => "",
        }
    }

    /// The whole below `root` as JSON text.
    pub(super) fn json(&self, root: Id) -> Result<String, Wrong> {
        let mut out = String::new();
        let mut written = 0;
        let mut open: Vec<(Id, usize)> = Vec::new();
        let mut next = Some(root);
        loop {
            if let Some(id) = next.take() {
                written += 1;
                if written > self.nodes.len() + ALIASED {
                    return Err(Wrong::new("its aliases stand for too much".to_owned()));
                }
                match &self.nodes[id] {
                    Node::Scalar { from, to } => out.push_str(&self.scalars[*from..*to]),
                    Node::List(_) => {
                        out.push('[');
                        open.push((id, 0));
                    }
                    Node::Map(_) => {
                        out.push('{');
                        open.push((id, 0));
                    }
                }
            }
            let Some((id, at)) = open.last_mut() else { return Ok(out) };
            next = self.step(*id, at, &mut out);
            if next.is_none() {
                open.pop();
            }
        }
    }

    /// What comes next in a list or a map; its end is written where nothing does.
    fn step(&self, id: Id, at: &mut usize, out: &mut String) -> Option<Id> {
        let separator = if *at > 0 { "," } else { "" };
        *at += 1;
        let child = match &self.nodes[id] {
            Node::List(items) => items.get(*at - 1).copied(),
            Node::Map(entries) => entries.get(*at - 1).map(|(key, value)| {
                out.push_str(separator);
                out.push_str(self.scalar(*key));
                out.push(':');
                *value
            }),
            Node::Scalar { .. } => None,
        };
        match (&self.nodes[id], child) {
            (Node::List(_), Some(_)) => out.push_str(separator),
            (Node::List(_), None) => out.push(']'),
            (Node::Map(_), None) => out.push('}'),
            _ => {}
        }
        child
    }
}

/// A text as JSON writes it.
pub(super) fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
