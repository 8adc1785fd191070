//! Which connections a listener keeps. A client that opens many, or sends half a request, makes room for the others.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// Address by which clients are told apart. An IPv6 client has its whole /64, so that counts as one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientAddress(IpAddr);

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        ClientAddress(match address.to_canonical() {
            IpAddr::V6(long) => IpAddr::V6(Ipv6Addr::from_bits(long.to_bits() & !u128::from(u64::MAX))),
            short @ IpAddr::V4(_) => short,
        })
    }
}

/// Maximum numbers of open connections of one listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// In all.
    pub(crate) total: usize,
    /// From one address.
    pub(crate) per_address: usize,
}

/// What is happening on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionStage {
    /// The next request is not complete yet, or none was begun.
    Waiting,
    /// A request is being answered.
    Serving,
}

#[derive(Debug)]
struct OpenConnection<H> {
    address: ClientAddress,
    stage: ConnectionStage,
    handle: H,
}

/// Identifies a connection of a listener; later ones have larger numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionId(u64);

/// Decision on a new connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission<H> {
    /// There was room.
    Admitted(ConnectionId),
    /// There is room after another one is closed by this handle.
    AdmittedInPlaceOf(ConnectionId, H),
    /// The new connection is to be closed.
    Refused,
}

/// The open connections of a listener, each with a handle that closes it.
///
/// **Invariant:** there are never more than the limits, and a client that has fewer connections than another is not
/// refused for that other's sake.
#[derive(Debug)]
pub(super) struct ConnectionTable<H> {
    limits: ConnectionLimits,
    next: u64,
    open: BTreeMap<ConnectionId, OpenConnection<H>>,
    by_address: BTreeMap<ClientAddress, usize>,
}

impl<H> ConnectionTable<H> {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        ConnectionTable { limits, next: 0, open: BTreeMap::new(), by_address: BTreeMap::new() }
    }

    /// Takes in a new connection, if there is room or can be made.
    pub(super) fn admit(&mut self, address: ClientAddress, handle: H) -> Admission<H> {
        let own = self.by_address.get(&address).copied().unwrap_or_default();
        let evicted = if own >= self.limits.per_address {
            let Some(oldest) = self.oldest_waiting(address) else { return Admission::Refused };
            Some(oldest)
        } else if self.open.len() >= self.limits.total {
            let Some(victim) = self.victim(own) else { return Admission::Refused };
            Some(victim)
        } else {
            None
        };
        let evicted = evicted.and_then(|id| self.close(id));
        let id = ConnectionId(self.next);
        self.next += 1;
        self.open.insert(id, OpenConnection { address, stage: ConnectionStage::Waiting, handle });
        *self.by_address.entry(address).or_default() += 1;
        evicted.map_or(Admission::Admitted(id), |handle| Admission::AdmittedInPlaceOf(id, handle))
    }

    /// A request on this connection is complete, and is being answered.
    pub(super) fn begin_request(&mut self, id: ConnectionId) {
        self.set_stage(id, ConnectionStage::Serving);
    }

    /// The answer was sent, or given up.
    pub(super) fn end_request(&mut self, id: ConnectionId) {
        self.set_stage(id, ConnectionStage::Waiting);
    }

    fn set_stage(&mut self, id: ConnectionId, stage: ConnectionStage) {
        if let Some(connection) = self.open.get_mut(&id) {
            connection.stage = stage;
        }
    }

    /// Forgets a connection; returns its handle unless it is forgotten already.
    pub(super) fn close(&mut self, id: ConnectionId) -> Option<H> {
        let closed = self.open.remove(&id)?;
        if let Some(count) = self.by_address.get_mut(&closed.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&closed.address);
            }
        }
        Some(closed.handle)
    }

    /// Forgets all connections that wait for a request; returns their handles.
    pub(super) fn close_waiting(&mut self) -> Vec<H> {
        let waiting: Vec<_> = self.waiting().map(|(id, _)| id).collect();
        waiting.into_iter().filter_map(|id| self.close(id)).collect()
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.open.len()
    }

    fn waiting(&self) -> impl Iterator<Item = (ConnectionId, ClientAddress)> {
        let waiting = self.open.iter().filter(|(_, open)| open.stage == ConnectionStage::Waiting);
        waiting.map(|(id, open)| (*id, open.address))
    }

    fn oldest_waiting(&self, address: ClientAddress) -> Option<ConnectionId> {
        self.waiting().find(|(_, of)| *of == address).map(|(id, _)| id)
    }

    /// Connection that gives way to one of a client that has `own` others: one that only waits, of the address with the
    /// most of these; else one of the address with the most in all, if that has more than its share.
    fn victim(&self, own: usize) -> Option<ConnectionId> {
        let mut waiting: BTreeMap<ClientAddress, usize> = BTreeMap::new();
        for (_, address) in self.waiting() {
            *waiting.entry(address).or_default() += 1;
        }
        if let Some((most, _)) = waiting.into_iter().max_by_key(|(_, count)| *count) {
            return self.oldest_waiting(most);
        }
        let (most, count) = self.by_address.iter().max_by_key(|(_, count)| **count)?;
        let oldest = || self.open.iter().find(|(_, open)| open.address == *most).map(|(id, _)| *id);
        if *count > own + 1 { oldest() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens connections as `address xN` (and `address!xN` for such that are being answered) until the end of `history`;
    /// returns who is there, and how many were refused.
    fn play(total: usize, per_address: usize, history: &str) -> (BTreeMap<String, usize>, usize) {
        let mut table = ConnectionTable::new(ConnectionLimits { total, per_address });
        let mut refused = 0;
        for word in history.split_whitespace() {
            let (address, count) = word.split_once('x').unwrap_or((word, "1"));
            let (address, serving) = address.strip_suffix('!').map_or((address, false), |a| (a, true));
            let client = ClientAddress::from(address.parse::<IpAddr>().unwrap());
            for _ in 0..count.parse().unwrap() {
                match table.admit(client, address.to_owned()) {
                    Admission::Admitted(id) | Admission::AdmittedInPlaceOf(id, _) if serving => {
                        table.begin_request(id);
                    }
                    Admission::Admitted(_) | Admission::AdmittedInPlaceOf(..) => {}
                    Admission::Refused => refused += 1,
                }
                assert!(table.len() <= total && table.by_address.values().all(|n| *n <= per_address));
                assert_eq!(table.by_address.values().sum::<usize>(), table.len());
            }
        }
        let mut there = BTreeMap::new();
        for open in table.open.values() {
            *there.entry(open.handle.clone()).or_default() += 1;
        }
        (there, refused)
    }

    #[test]
    fn who_sends_half_requests_makes_room_for_whoever_comes() {
        for (history, there, refused) in [
            // One address cannot have more than its limit, and its oldest gives way.
            ("10.0.0.1x9", "10.0.0.1=4", 0),
            // Many addresses fill the listener, and who is new gets in all the same.
            ("10.0.0.1x4 10.0.0.2x4 10.0.0.3", "10.0.0.1=4 10.0.0.2=3 10.0.0.3=1", 0),
            // What is being answered is not cut off for one that has more.
            ("10.0.0.1!x4 10.0.0.1", "10.0.0.1=4", 1),
            // What only waits goes first, whosever it is.
            ("10.0.0.1!x4 10.0.0.2!x3 10.0.0.3 10.0.0.4", "10.0.0.1=4 10.0.0.2=3 10.0.0.4=1", 0),
            // If all are being answered, the address that has the most gives one to an address that has fewer.
            ("10.0.0.1!x4 10.0.0.2!x4 10.0.0.3!", "10.0.0.1=4 10.0.0.2=3 10.0.0.3=1", 0),
            // A /64 is one client, and an IPv4 address is one however it is written.
            ("2001:db8::1x3 2001:db8::2x3", "2001:db8::1=1 2001:db8::2=3", 0),
            ("::ffff:10.0.0.1x3 10.0.0.1x3", "10.0.0.1=3 ::ffff:10.0.0.1=1", 0),
        ] {
            let (found, count) = play(8, 4, history);
            let found: Vec<_> = found.iter().map(|(who, many)| format!("{who}={many}")).collect();
            assert_eq!((found.join(" "), count), (there.to_owned(), refused), "{history}");
        }
    }

    #[test]
    fn where_all_have_their_share_and_are_answered_the_next_one_is_refused() {
        let (there, refused) = play(3, 3, "10.0.0.1! 10.0.0.2! 10.0.0.3! 10.0.0.4");
        assert_eq!((there.len(), refused), (3, 1));
    }

    #[test]
    fn who_is_done_makes_room() {
        let mut table = ConnectionTable::new(ConnectionLimits { total: 1, per_address: 1 });
        let client = ClientAddress::from("10.0.0.1".parse::<IpAddr>().unwrap());
        let Admission::Admitted(first) = table.admit(client, 'a') else { panic!("no room") };
        table.begin_request(first);
        assert_eq!(table.admit(client, 'b'), Admission::Refused);
        table.end_request(first);
        assert_eq!(table.close_waiting(), ['a']);
        assert_eq!((table.len(), table.close(first)), (0, None));
        assert!(matches!(table.admit(client, 'b'), Admission::Admitted(_)));
    }
}
