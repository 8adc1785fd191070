//! What a parent says of a parent below it is what that one says itself.

use std::rc::Rc;

use super::judged_moment::JudgedMoment;
use super::own_entries::entry_of;
use super::policy_checks::types_not_judged;
use crate::world::{ModelCondition, ModelObject};

/// The text in brackets that `text` opens with, without the mark of a cut.
fn bracketed(text: &str) -> &str {
    let mut depth = 1;
    let end = text.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        depth == 0
    });
    text[..end.map_or(text.len(), |(at, _)| at)].trim_end_matches('…')
}

/// Everything is quiet: whatever is quoted of a parent stands in one of its own entries.
pub(crate) fn check_quotes(at: &JudgedMoment<'_>, models: &[Rc<ModelObject>]) {
    let mut strange = Vec::new();
    for parent in models {
        let left = types_not_judged(at, parent.kind);
        for (_, said) in parent.ours.iter().filter(|(of, _)| !left.contains(&of.as_str())) {
            for child in models.iter().filter(|child| child.deleted.is_none()) {
                strange.extend(misquoted(at, parent, said, child));
            }
        }
    }
    if let Some(first) = strange.first() {
        at.fail_invariant("eventually exact", first);
    }
}

fn misquoted(
    at: &JudgedMoment<'_>,
    parent: &ModelObject,
    said: &ModelCondition,
    child: &ModelObject,
) -> Option<String> {
    let mut policies = at.policies.iter().filter(|p| p.parent == child.kind).peekable();
    policies.peek()?;
    // What a policy says that has no entry on it cannot be read.
    let own: Vec<&ModelCondition> = policies.map(|policy| entry_of(policy, child)).collect::<Option<_>>()?;
    let near = child.namespace == parent.namespace || child.namespace.is_empty();
    let name = if near { child.name.clone() } else { format!("{}/{}", child.namespace, child.name) };
    let (_, rest) = said.message.split_once(&format!("{} {name} ", at.scenario.kind_name(child.kind)))?;
    let (level, rest) = rest.split_once(' ')?;
    let quote = bracketed(rest.strip_prefix('(')?);
    let says =
        |said: &&ModelCondition| said.message.contains(quote) || said.reason.as_str().starts_with(quote);
    // What is stuck by itself says so itself.
    let wrong = level != "stuck" && !own.iter().any(says);
    wrong.then(|| format!("{} quotes {name} as {quote:?}, which says {own:?}", parent.name))
}
