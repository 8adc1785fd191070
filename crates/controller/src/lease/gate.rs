//! Leadership over parents, which begins a moment later than that over everything else: once it is kept what policies are to
//! write.

use tokio::sync::watch;

use super::Leadership;

/// Leadership that counts while its gate is open.
#[derive(Debug)]
pub(crate) struct GatedLeadership {
    leadership: Leadership,
    open: watch::Receiver<bool>,
}

/// Gate of a [`GatedLeadership`]. It is open at first.
#[derive(Debug)]
pub(crate) struct LeadershipGate(watch::Sender<bool>);

impl GatedLeadership {
    pub(crate) fn new(leadership: Leadership) -> (GatedLeadership, LeadershipGate) {
        let (gate, open) = watch::channel(true);
        (GatedLeadership { leadership, open }, LeadershipGate(gate))
    }

    /// True if this replica leads, as last published, and the gate is open.
    pub(crate) fn is_leader(&self) -> bool {
        self.leadership.is_leader() && *self.open.borrow()
    }

    /// Waits until leadership is gained or lost, or the gate has moved. Returns the new state.
    pub(crate) async fn wait_for_change(&mut self) -> bool {
        tokio::select! {
            _ = self.leadership.wait_for_change() => {}
            Ok(()) = self.open.changed() => {}
            else => std::future::pending().await,
        }
        self.is_leader()
    }
}

impl LeadershipGate {
    /// Closes on a standby, whose plan is followed all the same; opens for a leader for whom nothing is `awaited`. Once open, it
    /// stays so while that one leads: each further plan waits by itself.
    pub(crate) fn update(&self, leads: bool, awaited: bool) {
        self.0.send_if_modified(|open| {
            let is_open = leads && (*open || !awaited);
            std::mem::replace(open, is_open) != is_open
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use readiness::Time;

    use super::*;
    use crate::clock::ServerClock;

    #[tokio::test(start_paused = true)]
    async fn a_standby_leads_over_parents_once_nothing_is_awaited_any_more_and_until_it_does_not_lead() {
        let (leadership, lease) = Leadership::with_handle(ServerClock::assume_local().local_clock());
        let (mut gated, gate) = GatedLeadership::new(leadership);
        for (turn, leads, awaited, expected) in [
            (1, false, true, false),
            (2, true, true, false),
            (3, true, false, true),
            (4, true, true, true),
            (5, false, false, false),
            (6, true, true, false),
            (7, true, false, true),
        ] {
            lease.set_until(leads.then_some(Time(i64::MAX)));
            gate.update(leads, awaited);
            let moved = tokio::time::timeout(Duration::from_secs(1), gated.wait_for_change()).await;
            assert_eq!((turn, moved.unwrap_or(expected), gated.is_leader()), (turn, expected, expected));
        }
    }
}
