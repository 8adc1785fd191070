//! Rows by small integers, in chunks: no doubling, no moving.

use std::sync::Mutex;

use aggregator::ObjectId;

use super::row::Row;

/// How many shards; a power of two. A watch of one kind rarely waits for another.
const SHARDS: u32 = 16;
const CHUNK: usize = 256;

/// A place for an object: it may be known by name of uid alone, as somebody's owner.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) row: Option<Row>,
    pub(super) uid: Uid,
    /// How many links of others refer to it.
    pub(super) refs: u32,
    /// Where those that refer to it live, as far as they agree ([`MIXED`] where they do not); a namespaced owner lives
    /// there too. [`TAKEN`] where the place is.
    home: u32,
}

const TAKEN: u32 = 1 << 31;
const MIXED: u32 = 1 << 30;

impl Slot {
    /// An object in this namespace refers to it as its owner.
    pub(super) fn refer(&mut self, namespace: &str) {
        if self.refs > 0 && !self.is_home(namespace) {
            self.home |= MIXED;
        }
        if self.refs == 0 {
            self.home = TAKEN | home(namespace);
        }
        self.refs += 1;
    }

    fn is_home(&self, namespace: &str) -> bool {
        self.home & !TAKEN == home(namespace)
    }

    fn is_taken(&self) -> bool {
        self.home & TAKEN != 0
    }

    /// Do some that refer to it live elsewhere? An owner without a namespace may own anything anywhere.
    pub(super) fn expects_other_than(&self, namespace: &str) -> bool {
        self.refs > 0 && !namespace.is_empty() && !self.is_home(namespace)
    }
}

/// A namespace in 30 bits: enough to see that two differ, which is worth a closer look.
fn home(namespace: &str) -> u32 {
    super::selectors::name_hash(namespace) as u32 & !(TAKEN | MIXED)
}

/// A uid as 128 bits: exact for a UUID, a hash for anything else. Not two `u64`: those would be aligned to 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Uid([u32; 4]);

impl Uid {
    pub(super) fn of(text: &str) -> Uid {
        let mut bits: u128 = 0;
        let mut digits = 0;
        for byte in text.bytes().filter(|b| *b != b'-') {
            match (byte as char).to_digit(16) {
                Some(digit) if byte.is_ascii_digit() || byte.is_ascii_lowercase() => {
                    bits = (bits << 4) | u128::from(digit);
                    digits += 1;
                }
                _ => return Uid::hashed(text),
            }
        }
        if digits == 32 && text.len() == 36 { Uid::from_bits(bits) } else { Uid::hashed(text) }
    }

    fn hashed(text: &str) -> Uid {
        use std::hash::Hasher;
        let half = |seed: u64| {
            let mut hash = rustc_hash::FxHasher::default();
            hash.write_u64(seed);
            hash.write(text.as_bytes());
            timer::Seed(seed).number(hash.finish())
        };
        Uid::from_bits(u128::from(half(1)) << 64 | u128::from(half(2)))
    }

    fn from_bits(bits: u128) -> Uid {
        Uid([(bits >> 96) as u32, (bits >> 64) as u32, (bits >> 32) as u32, bits as u32])
    }
}

#[derive(Debug, Default)]
struct Shard {
    chunks: Vec<Box<[Slot]>>,
    free: Vec<u32>,
    used: u32,
}

/// All slots.
#[derive(Debug)]
pub(super) struct Slots {
    shards: Vec<Mutex<Shard>>,
}

impl Default for Slots {
    fn default() -> Self {
        Slots { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }
}

impl Slots {
    fn shard(&self, shard: u32) -> std::sync::MutexGuard<'_, Shard> {
        self.shards[shard as usize].lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes a slot for `uid`.
    pub(super) fn take(&self, uid: Uid) -> ObjectId {
        let shard_number = uid.0[3] % SHARDS;
        let mut shard = self.shard(shard_number);
        let at = shard.free.pop().unwrap_or_else(|| {
            shard.used += 1;
            shard.used - 1
        });
        if at as usize / CHUNK >= shard.chunks.len() {
            shard.chunks.push((0..CHUNK).map(|_| Slot::default()).collect());
        }
        let slot = &mut shard.chunks[at as usize / CHUNK][at as usize % CHUNK];
        *slot = Slot { uid, home: TAKEN, ..Slot::default() };
        ObjectId(at * SHARDS + shard_number)
    }

    /// Looks at a slot under its shard's lock; `None` where it was never taken.
    pub(super) fn with<R>(&self, id: ObjectId, f: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        let mut shard = self.shard(id.0 % SHARDS);
        let at = (id.0 / SHARDS) as usize;
        let slot = shard.chunks.get_mut(at / CHUNK)?.get_mut(at % CHUNK)?;
        slot.is_taken().then(|| f(slot))
    }

    /// Gives a slot back if nothing is in it and nobody refers to it.
    pub(super) fn give_back(&self, id: ObjectId) -> Option<Uid> {
        let mut shard = self.shard(id.0 % SHARDS);
        let at = id.0 / SHARDS;
        let slot = shard.chunks.get_mut(at as usize / CHUNK)?.get_mut(at as usize % CHUNK)?;
        if !slot.is_taken() || slot.row.is_some() || slot.refs > 0 {
            return None;
        }
        slot.home = 0;
        let uid = slot.uid;
        shard.free.push(at);
        Some(uid)
    }

    /// Every taken slot, shard by shard.
    pub(super) fn each(&self, mut f: impl FnMut(ObjectId, &mut Slot)) {
        for number in 0..SHARDS {
            let mut shard = self.shard(number);
            for (chunk, slots) in shard.chunks.iter_mut().enumerate() {
                for (at, slot) in slots.iter_mut().enumerate().filter(|(_, s)| s.is_taken()) {
                    f(ObjectId((chunk * CHUNK + at) as u32 * SHARDS + number), slot);
                }
            }
        }
    }
}
