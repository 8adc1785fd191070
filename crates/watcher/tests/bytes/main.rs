//! The budgets of memory. `cargo bench -p watcher --bench memory` prints the figures.

mod measure;

use measure::{MeasuredCluster, ParentShape, measure, measure_parent, measure_recount};

/// One test, because every byte of the process is counted.
#[test]
fn a_child_and_a_parent_take_no_more_than_their_budgets() {
    // First of all: the most that was ever taken is not forgotten.
    let (held, most) = measure_recount(20_000);
    assert!(most <= held + held / 16, "{held} bytes, and {most} while all is counted again");
    let ready = MeasuredCluster {
        children: 50_000,
        family: 20,
        unready: 0,
        has_engine: true,
        shape: ParentShape::Plain,
    };
    let unready = MeasuredCluster { unready: 20, ..ready };
    let (parent, estimated) = measure_parent(ready);
    let (unready_parent, _) = measure_parent(MeasuredCluster { unready: 1, ..ready });
    assert!(parent <= 1_024 && unready_parent <= 1_024, "{parent} and {unready_parent} bytes");
    assert!(estimated <= parent, "{estimated} of {parent} bytes");
    // Measured 1,156 and 1,483.
    for (shape, budget) in [(ParentShape::Neighbours, 1_280), (ParentShape::TwoPolicies, 1_600)] {
        let shaped = MeasuredCluster { shape, children: 10_000, ..ready };
        let (parent, estimated) = measure_parent(shaped);
        let (unready_parent, _) = measure_parent(MeasuredCluster { unready: 1, ..shaped });
        println!("{shape:?}: {parent} bytes, {estimated} by its own account, not ready {unready_parent}");
        assert!(
            parent <= budget && unready_parent <= budget,
            "{shape:?}: {parent} and {unready_parent} bytes"
        );
        assert!(estimated <= parent, "{shape:?}: {estimated} of {parent} bytes");
    }
    for children in [10_000, 50_000] {
        let ready = MeasuredCluster { children, ..ready };
        let unready = MeasuredCluster { children, ..unready };
        let (child, unready_child) = (measure(ready), measure(unready));
        assert!(child.per_child <= 256 && unready_child.per_child <= 1_024, "{child:?} {unready_child:?}");
        assert!(child.estimated_per_child <= child.per_child, "{child:?}");
    }
}
