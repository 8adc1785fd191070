//! Merge keys: `<<` adds the entries of other maps.

use std::collections::BTreeSet;

use crate::read_error::YamlReadError;
use crate::tree::{YamlNode, YamlNodeId, YamlTree};

/// Bytes charged for a map that is merged, and for each of its entries beside the key.
const MERGE_BYTES: usize = 16;

/// Adds the entries of each source, a map or a list of maps, whose keys `entries` lacks. All that is looked at is charged
/// like what aliases expand to: one source may be named again and again.
pub(crate) fn merge_sources(
    tree: &mut YamlTree,
    sources: &[YamlNodeId],
    entries: &mut Vec<(YamlNodeId, YamlNodeId)>,
) -> Result<(), YamlReadError> {
    if sources.is_empty() {
        return Ok(());
    }
    let mut maps = Vec::new();
    for source in sources {
        charge_source(tree, *source, &mut maps)?;
    }
    let mut known: BTreeSet<&str> = entries.iter().map(|(key, _)| tree.scalar_json(*key)).collect();
    for map in maps {
        let YamlNode::Map(more) = &tree.nodes[map] else { return Err(unmergeable()) };
        entries.extend(more.iter().filter(|(key, _)| known.insert(tree.scalar_json(*key))));
    }
    Ok(())
}

/// Charges the maps that a source brings, and adds them to `maps`.
fn charge_source(
    tree: &mut YamlTree,
    source: YamlNodeId,
    maps: &mut Vec<YamlNodeId>,
) -> Result<(), YamlReadError> {
    let first = maps.len();
    match &tree.nodes[source] {
        YamlNode::Map(_) => maps.push(source),
        YamlNode::List(items) => {
            let count = items.len();
            maps.extend(items);
            tree.spend(count * MERGE_BYTES)?;
        }
        YamlNode::Scalar { .. } => return Err(unmergeable()),
    }
    for map in maps.iter().skip(first) {
        let YamlNode::Map(more) = &tree.nodes[*map] else { return Err(unmergeable()) };
        let of_entry = |(key, _): &(YamlNodeId, YamlNodeId)| MERGE_BYTES + tree.scalar_json(*key).len();
        let bytes = more.iter().map(of_entry).sum::<usize>();
        tree.spend(MERGE_BYTES + bytes)?;
    }
    Ok(())
}

fn unmergeable() -> YamlReadError {
    YamlReadError::new("the value merged by << is neither a map nor a list of maps".to_owned())
}
