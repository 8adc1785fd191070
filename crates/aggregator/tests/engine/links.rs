//! Links and numbers: what is packed comes out as it went in.

use aggregator::{ChildLink, ChildSource, KindId, LinkTarget, ObjectId, PolicyId, Quorum, SelectorId};

#[test]
fn a_link_leads_where_it_was_set_and_says_how_the_child_was_found() {
    for id in [0, 1, 77, (1 << 29) - 1] {
        let (object, selector) = (LinkTarget::Object(ObjectId(id)), LinkTarget::Selector(SelectorId(id)));
        let sources = [
            (object, ChildSource::Owner, ChildSource::Remembered),
            (selector, ChildSource::Label, ChildSource::Reference),
        ];
        for (target, source, other) in sources {
            let link = ChildLink::new(PolicyId(3), 2, 1, target);
            assert_eq!((link.policy, link.group, link.rule_index), (PolicyId(3), 2, 1));
            assert_eq!((link.target(), link.source()), (target, source));
            let link = link.with_other_source();
            assert_eq!((link.target(), link.source()), (target, other));
            assert_eq!(link.with_other_source(), link);
        }
    }
}

#[test]
fn a_quorum_in_per_cent_is_rounded_up() {
    let table = [
        (Quorum::All, 7, 7),
        (Quorum::Count(3), 7, 3),
        (Quorum::Count(3), 1, 3),
        (Quorum::Percent(50), 4, 2),
        (Quorum::Percent(50), 5, 3),
        (Quorum::Percent(1), 5, 1),
        (Quorum::Percent(0), 5, 0),
        (Quorum::Percent(100), u32::MAX, u32::MAX),
        (Quorum::Percent(200), u32::MAX, u32::MAX),
    ];
    for (quorum, total, needed) in table {
        assert_eq!(quorum.needed_of(total), needed, "{quorum:?} of {total}");
    }
}

#[test]
fn an_id_is_its_number() {
    assert_eq!((ObjectId(7).index(), KindId(8).index(), PolicyId(9).index()), (7, 8, 9));
    assert_eq!((u64::from(ObjectId(7)), u64::from(SelectorId(u32::MAX))), (7, u64::from(u32::MAX)));
}
