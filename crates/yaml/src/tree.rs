//! The nodes of one YAML document, processed without recursion: a deep document costs memory, never stack.

use std::fmt::Write;

use crate::read_error::YamlReadError;

/// Index of a node.
pub(crate) type YamlNodeId = usize;

#[derive(Debug)]
pub(crate) enum YamlNode {
    /// Range of the node's JSON in the text of scalars.
    Scalar {
        from: usize,
        to: usize,
    },
    List(Vec<YamlNodeId>),
    /// Keys are scalars whose JSON is a string.
    Map(Vec<(YamlNodeId, YamlNodeId)>),
}

/// A state of the tree to truncate back to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreeMark {
    nodes: usize,
    scalars: usize,
}

#[derive(Debug)]
pub(crate) struct YamlTree {
    pub(crate) nodes: Vec<YamlNode>,
    scalars: String,
    /// Bytes that may still be written: [`MAX_ALIASED_BYTES`], and what each node takes if it is written once.
    allowance: usize,
}

/// Maximum number of nodes written through aliases: a few lines of YAML can expand beyond any memory.
const MAX_ALIASED_NODES: usize = 1_000_000;

/// Maximum number of bytes that the aliases and merge keys of a text may add to it, in all of its documents together: one
/// word may stand for half a megabyte. 16 MiB.
pub(crate) const MAX_ALIASED_BYTES: usize = 16 << 20;

/// Most bytes of JSON that a node takes beside its scalar: its brackets, a colon and a comma.
const PUNCTUATION_BYTES: usize = 4;

impl Default for YamlTree {
    fn default() -> YamlTree {
        YamlTree { nodes: Vec::new(), scalars: String::new(), allowance: MAX_ALIASED_BYTES }
    }
}

impl YamlTree {
    /// An empty tree for the next document of the text.
    pub(crate) fn next_document(&self) -> YamlTree {
        YamlTree { allowance: self.allowance, ..YamlTree::default() }
    }

    /// Takes these bytes from what may still be written.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<(), YamlReadError> {
        self.allowance = self.allowance.checked_sub(bytes).ok_or_else(too_many_bytes)?;
        Ok(())
    }

    pub(crate) fn push(&mut self, node: YamlNode) -> YamlNodeId {
        let scalar = if let YamlNode::Scalar { from, to } = node { to - from } else { 0 };
        self.allowance = self.allowance.saturating_add(scalar + PUNCTUATION_BYTES);
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    pub(crate) fn take_mark(&self) -> TreeMark {
        TreeMark { nodes: self.nodes.len(), scalars: self.scalars.len() }
    }

    /// Drops everything added after the mark.
    pub(crate) fn truncate_to(&mut self, mark: TreeMark) {
        self.nodes.truncate(mark.nodes);
        self.scalars.truncate(mark.scalars);
    }

    /// Adds a scalar whose JSON is `json`.
    pub(crate) fn add_literal(&mut self, json: &str) -> YamlNodeId {
        let from = self.scalars.len();
        self.scalars.push_str(json);
        self.push(YamlNode::Scalar { from, to: self.scalars.len() })
    }

    /// Adds a string.
    pub(crate) fn add_text(&mut self, text: &str) -> YamlNodeId {
        let from = self.scalars.len();
        quote_json(text, &mut self.scalars);
        self.push(YamlNode::Scalar { from, to: self.scalars.len() })
    }

    /// Returns the JSON of a scalar; empty for any other node.
    pub(crate) fn scalar_json(&self, id: YamlNodeId) -> &str {
        match self.nodes[id] {
            YamlNode::Scalar { from, to } => &self.scalars[from..to],
            _ => "",
        }
    }

    /// Writes the tree below `root` as JSON, and takes its length from what may still be written.
    pub(crate) fn write_json(&mut self, root: YamlNodeId) -> Result<String, YamlReadError> {
        let mut out = String::new();
        let mut written = 0;
        let mut open: Vec<(YamlNodeId, usize)> = Vec::new();
        let mut next = Some(root);
        loop {
            if let Some(id) = next.take() {
                written += 1;
                if written > self.nodes.len() + MAX_ALIASED_NODES {
                    return Err(YamlReadError::new("its aliases expand to too many nodes".to_owned()));
                }
                match &self.nodes[id] {
                    YamlNode::Scalar { from, to } => out.push_str(&self.scalars[*from..*to]),
                    YamlNode::List(_) => {
                        out.push('[');
                        open.push((id, 0));
                    }
                    YamlNode::Map(_) => {
                        out.push('{');
                        open.push((id, 0));
                    }
                }
            }
            // One node more than allowed is no longer than the text.
            if out.len() > self.allowance {
                return Err(too_many_bytes());
            }
            let Some((id, at)) = open.last_mut() else { break };
            next = self.write_next(*id, at, &mut out);
            if next.is_none() {
                open.pop();
            }
        }
        self.spend(out.len())?;
        Ok(out)
    }

    /// Writes separators and returns the next node of a list or map; writes its end if there is none.
    fn write_next(&self, id: YamlNodeId, at: &mut usize, out: &mut String) -> Option<YamlNodeId> {
        let separator = if *at > 0 { "," } else { "" };
        *at += 1;
        let child = match &self.nodes[id] {
            YamlNode::List(items) => items.get(*at - 1).copied(),
            YamlNode::Map(entries) => entries.get(*at - 1).map(|(key, value)| {
                out.push_str(separator);
                out.push_str(self.scalar_json(*key));
                out.push(':');
                *value
            }),
            YamlNode::Scalar { .. } => None,
        };
        match (&self.nodes[id], child) {
            (YamlNode::List(_), Some(_)) => out.push_str(separator),
            (YamlNode::List(_), None) => out.push(']'),
            (YamlNode::Map(_), None) => out.push('}'),
            _ => {}
        }
        child
    }
}

fn too_many_bytes() -> YamlReadError {
    YamlReadError::new("its aliases expand to too many bytes".to_owned())
}

/// Appends a string in JSON notation.
pub(crate) fn quote_json(text: &str, out: &mut String) {
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
