//! Which member is found, and what that costs.

use std::hash::{Hash, Hasher};

use rollcall_cel::cost::measure_cost;
use rustc_hash::FxHasher;

use crate::status::raw_json::{all_members, get_member};

use super::*;

fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).unwrap()
}

#[test]
fn of_a_repeated_key_the_last_member_counts() {
    for text in [
        r#"{"a":1,"b":2,"c":3}"#,
        r#"{"c":3,"b":7,"a":1,"b":2}"#,
        r#"{"b":7,"b":8,"a":1,"c":4,"\u0062":2,"c":3}"#,
        r#"{ "c" : 3 , "\u0061" : 1 , "b" : 2 }"#,
    ] {
        let members = all_members(raw(text));
        let all: Vec<_> = members.iter().map(|(key, value)| format!("{key}{}", value.get())).collect();
        assert_eq!(all.concat(), "a1b2c3", "{text}");
        for (key, value) in [("a", Some("1")), ("b", Some("2")), ("c", Some("3")), ("", None), ("d", None)] {
            assert_eq!(members.get(key).map(RawValue::get), value, "{text} {key}");
            assert_eq!(get_member(raw(text), key).map(RawValue::get), value, "{text} {key}");
        }
    }
}

#[test]
fn what_is_no_object_has_no_members() {
    for text in ["null", "7", "\"a\"", "[{\"a\":1}]", "{}"] {
        assert_eq!(all_members(raw(text)).keys().count(), 0, "{text}");
        assert!(get_member(raw(text), "a").is_none(), "{text}");
    }
}

/// Keys that have one and the same hash, to everybody who hashes without a secret.
fn colliding_keys(count: usize) -> Vec<String> {
    let mix = |x: u64, y: u64| {
        let full = u128::from(x) * u128::from(y);
        u64::try_from(full & u128::from(u64::MAX)).unwrap() ^ u64::try_from(full >> 64).unwrap()
    };
    let word = |text: &str| u64::from_le_bytes(text.as_bytes().try_into().unwrap());
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    let (first, middle) = ((0..).map(|n| format!("{n:016}")), "-".repeat(16));
    let found = first.map(|first| {
        let (seed, guard) = (0x243f_6a88_85a3_08d3, 0xa409_3822_299f_31d0);
        (mix(seed ^ word(&first[..8]), guard ^ word(&first[8..])).to_le_bytes(), first)
    });
    let (zero, first) = found.into_iter().find(|(zero, _)| zero.iter().all(is_plain)).unwrap();
    // What is the product with zero takes in nothing of the number beside it.
    let zero = String::from_utf8(zero.to_vec()).unwrap();
    (0..count).map(|n| format!("{first}{middle}{zero}{n:08}{middle}")).collect()
}

/// Enough keys for a search of all for each to take seconds.
const KEYS: usize = 32_000;

#[test]
fn keys_that_collide_cost_no_more_than_others() {
    let keys = colliding_keys(KEYS);
    let hash = |key: &String| {
        let mut hasher = FxHasher::default();
        key.hash(&mut hasher);
        hasher.finish()
    };
    assert!(keys.iter().all(|key| hash(key) == hash(&keys[0])));
    let others: Vec<_> = (0..KEYS).map(|n| format!("{n:064}")).collect();
    let [colliding, ordinary] = [keys, others].map(|keys| {
        let members: Vec<_> = keys.iter().map(|key| format!("\"{key}\":1")).collect();
        let text = format!("{{{}}}", members.join(","));
        let read = || {
            let found = all_members(raw(&text)).get(&keys[7]).is_some();
            found && get_member(raw(&text), &keys[7]).is_some()
        };
        let (found, took) = measure_cost(read);
        assert!(found);
        took
    });
    assert!(colliding < 5.0 * ordinary + 200.0, "{colliding} ms, and {ordinary} ms for others");
}
