//! Budgets of requests to the API server: a burst, and then one request per interval.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use readiness::Time;

/// Number of clients whose spending is remembered. One that is forgotten has its whole budget again, so the budget of
/// all clients together is bounded by another one.
const REMEMBERED_CLIENTS: NonZeroUsize = NonZeroUsize::new(8_192).expect("invariant: not zero");

/// Size of a budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestBudget {
    /// Requests at once.
    pub(crate) burst: u32,
    /// Time after which one more is allowed.
    pub(crate) interval: Duration,
}

impl RequestBudget {
    /// Takes one request, if the budget allows it; returns when all that was taken will have come back.
    fn take(self, whole_again: Time, now: Time) -> Option<Time> {
        let after = whole_again.max(now) + self.interval;
        (after <= now + self.interval * self.burst).then_some(after)
    }

    /// Gives one request back.
    fn give_back(self, whole_again: Time) -> Time {
        Time(whole_again.0.saturating_sub(readiness::saturating_millis(self.interval)))
    }
}

/// One budget for all.
pub(crate) struct SharedBudget {
    budget: RequestBudget,
    whole_again: Mutex<Time>,
}

impl SharedBudget {
    pub(crate) fn new(budget: RequestBudget) -> Self {
        SharedBudget { budget, whole_again: Mutex::default() }
    }

    /// Takes one request; false if the budget is spent.
    pub(crate) fn take(&self, now: Time) -> bool {
        let mut whole_again = self.whole_again.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.budget.take(*whole_again, now);
        *whole_again = taken.unwrap_or(*whole_again);
        taken.is_some()
    }
}

/// A budget for each client.
pub(crate) struct ClientBudgets<C> {
    budget: RequestBudget,
    whole_again: Mutex<LruCache<C, Time>>,
}

impl<C: Clone + Eq + Hash> ClientBudgets<C> {
    pub(crate) fn new(budget: RequestBudget) -> Self {
        ClientBudgets { budget, whole_again: Mutex::new(LruCache::new(REMEMBERED_CLIENTS)) }
    }

    fn spent(&self) -> MutexGuard<'_, LruCache<C, Time>> {
        self.whole_again.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one request of this client; false if its budget is spent.
    pub(crate) fn take(&self, client: &C, now: Time) -> bool {
        let mut spent = self.spent();
        let whole_again = spent.get(client).copied().unwrap_or_default();
        let taken = self.budget.take(whole_again, now);
        if let Some(after) = taken {
            spent.put(client.clone(), after);
        }
        taken.is_some()
    }

    /// Gives one request back to this client.
    pub(crate) fn give_back(&self, client: &C) {
        if let Some(whole_again) = self.spent().get_mut(client) {
            *whole_again = self.budget.give_back(*whole_again);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: RequestBudget = RequestBudget { burst: 3, interval: Duration::from_secs(10) };

    #[test]
    fn so_many_at_once_and_then_one_per_interval() {
        let budgets = ClientBudgets::new(BUDGET);
        let taken = |client: &'static str, second: i64| budgets.take(&client, Time(second * 1_000));
        let told: Vec<_> = [0, 0, 0, 0, 9, 10, 10, 19, 20, 50, 50, 50, 50].map(|at| taken("a", at)).into();
        let expected = "yes yes yes no no yes no no yes yes yes yes no";
        let expected: Vec<_> = expected.split(' ').map(|word| word == "yes").collect();
        assert_eq!(told, expected);
        assert!(taken("b", 50), "one client's spending is not another's");
        budgets.give_back(&"a");
        assert!(taken("a", 50) && !taken("a", 50), "what was given back can be taken again");
    }

    #[test]
    fn one_budget_for_all_is_spent_by_all() {
        let budget = SharedBudget::new(BUDGET);
        let told = [0, 0, 0, 0, 10_000].map(|at| budget.take(Time(at)));
        assert_eq!(told, [true, true, true, false, true]);
    }

    #[test]
    fn however_many_clients_come_few_are_remembered() {
        let budgets = ClientBudgets::new(BUDGET);
        for client in 0..4 * REMEMBERED_CLIENTS.get() {
            assert!(budgets.take(&client, Time(0)));
        }
        assert!(budgets.spent().len() <= REMEMBERED_CLIENTS.get());
    }
}
