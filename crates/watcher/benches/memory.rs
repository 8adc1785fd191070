//! Memory of a child, ready or not, and of a parent.

#[path = "../tests/bytes/measure.rs"]
#[expect(dead_code, reason = "recounts are for the test")]
mod measure;

use measure::{MeasuredCluster, ParentShape, measure, measure_parent};

fn main() {
    for children in [10_000, 100_000] {
        let shape = ParentShape::Plain;
        let ready = MeasuredCluster { children, family: 20, unready: 0, has_engine: true, shape };
        let unready = MeasuredCluster { unready: 20, ..ready };
        let troubled = MeasuredCluster { unready: 1, ..ready };
        let alone = MeasuredCluster { has_engine: false, ..ready };
        print(&format!("ready child, {children} of them"), measure(ready).per_child, 256);
        print("  the reflector's part", measure(alone).per_child, 256);
        print("  as it estimates that itself", measure(alone).estimated_per_child, 256);
        print(&format!("child that is not ready, {children} of them"), measure(unready).per_child, 1_024);
        let ((parent, _), (part, estimated)) = (measure_parent(ready), measure_parent(alone));
        print(&format!("parent at rest, {} more of them", children / ready.family), parent, 1_024);
        print("  the reflector's part", part, 1_024);
        print("  as it estimates that itself", estimated, 1_024);
        print("parent that is not ready", measure_parent(troubled).0, 1_100);
        for shape in [ParentShape::Neighbours, ParentShape::TwoPolicies] {
            print(
                &format!("parent at rest: {shape:?}"),
                measure_parent(MeasuredCluster { shape, ..ready }).0,
                1_700,
            );
        }
    }
}

fn number(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes).unwrap_or(u32::MAX))
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn print(what: &str, bytes: usize, budget: usize) {
    println!("{what:44} {bytes:5} B   {:4.2} of {budget} B", number(bytes) / number(budget));
}
