//! What is said of each parent at the end of a history.

use crate::world::SimWorld;

/// Returns status and reason of our conditions on each parent.
pub(crate) fn describe_answers(world: &SimWorld) -> Vec<String> {
    let parents = world.read_all_objects();
    let said = parents.iter().filter(|model| !model.ours.is_empty()).map(|model| {
        let said = model.ours.iter().map(|(kind, said)| format!("{kind}={} {:?}", said.status, said.reason));
        let said: Vec<String> = said.collect();
        format!("{} {}: {}", world.scenario.kind_name(model.kind), model.name, said.join(", "))
    });
    said.collect()
}
