//! One round of granting: read what is listed and what is bound, decide, bind, and take away.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use policy::rbac::{
    AccessNeed, BindingOwnership, BoundRoles, GrantDecision, GrantDemand, ListedRole, RoleSubject,
    decide_grants, grant_binding_name,
};

use super::findings::GrantObstacle;
use super::grant_requests::{FailedRequest, create_binding, delete_binding, read_binding, read_role};
use crate::lease::Leadership;
use crate::policies::own_account::own_account;

/// A round, as it is begun.
pub(super) struct GrantRound {
    pub(super) client: kube::Client,
    pub(super) leadership: Leadership,
    /// Names of the listed roles.
    pub(super) roles: Vec<String>,
    pub(super) demand: GrantDemand,
    /// The own service account, where it is known already.
    pub(super) account: Option<RoleSubject>,
    /// Interval between two requests.
    pub(super) interval: Duration,
}

/// What a round has changed, or tried to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GrantEvent {
    /// A role was bound, for these policies.
    Bound { role: String, policies: BTreeSet<String> },
    /// The binding of a role that no policy needs was deleted.
    Unbound { role: String },
    /// A request about this role failed.
    Failed { role: String, request: &'static str, failure: FailedRequest },
}

/// What came of a round.
#[derive(Debug, Default)]
pub(super) struct SettledRound {
    pub(super) account: Option<RoleSubject>,
    pub(super) events: Vec<GrantEvent>,
    /// Rights that lack and that no listed role grants; `None` if it came to no decision.
    pub(super) ungranted: Option<BTreeMap<String, Vec<AccessNeed>>>,
    pub(super) obstacles: Vec<GrantObstacle>,
    /// Roles that are bound, with the policies that need each.
    pub(super) roles: BTreeMap<String, BTreeSet<String>>,
    /// All that was decided is done.
    pub(super) complete: bool,
}

/// Listed roles and their bindings, as the cluster has them.
#[derive(Default)]
struct FoundGrants {
    /// Roles that exist and whose binding's name no other manager took.
    roles: Vec<ListedRole>,
    /// Uids of the own bindings, by role.
    bound: BTreeMap<String, String>,
    /// Policies for which these were made.
    granted_for: BoundRoles,
}

impl FoundGrants {
    fn decide(&self, demand: &GrantDemand) -> GrantDecision {
        decide_grants(demand, &self.roles, &self.granted_for)
    }

    /// A role that is to be bound and is not, with the policies that need it.
    fn next_to_bind(&self, decision: &GrantDecision) -> Option<(String, BTreeSet<String>)> {
        let next = decision.roles.iter().find(|(role, _)| !self.bound.contains_key(*role));
        next.map(|(role, policies)| (role.clone(), policies.clone()))
    }
}

impl GrantRound {
    /// Goes through it. It ends at the first request that fails, unless that is about one role alone.
    pub(super) async fn run(self) -> SettledRound {
        let mut settled = SettledRound { account: self.account.clone(), ..SettledRound::default() };
        let account = match &self.account {
            Some(account) => account.clone(),
            None => match own_account(&self.client).await {
                Ok(account) => account,
                Err(why) => {
                    let failure = FailedRequest { status: None, retry_after: None, error: why };
                    settled.fail("", "review the own identity", failure);
                    return settled;
                }
            },
        };
        settled.account = Some(account.clone());
        let Some(mut found) = self.read_grants(&account, &mut settled).await else { return settled };
        settled.complete = self.carry_out(&account, &mut found, &mut settled).await.is_some();
        settled
    }

    async fn read_grants(&self, account: &RoleSubject, settled: &mut SettledRound) -> Option<FoundGrants> {
        let mut found = FoundGrants::default();
        for name in &self.roles {
            self.pause().await;
            let role = match read_role(&self.client, name).await {
                Ok(role) => role,
                Err(failure) => return settled.give_up(name, "read the role", failure),
            };
            self.pause().await;
            match read_binding(&self.client, account, name).await {
                Ok(Some(BindingOwnership::Foreign)) => {
                    let binding = grant_binding_name(account, name);
                    let what = format!(
                        "ClusterRoleBinding {binding} is not as Rollcall makes it, and is left alone"
                    );
                    settled.obstacles.push(GrantObstacle { policies: BTreeSet::new(), what });
                    continue;
                }
                Ok(Some(BindingOwnership::Own { uid, granted_for })) => {
                    found.bound.insert(name.clone(), uid);
                    found.granted_for.insert(name.clone(), granted_for);
                }
                Ok(None) => {}
                Err(failure) => return settled.give_up(name, "read its binding", failure),
            }
            if let Some(role) = role {
                found.roles.push(role);
            } else {
                let what = format!("the listed ClusterRole {name} does not exist");
                settled.obstacles.push(GrantObstacle { policies: BTreeSet::new(), what });
            }
        }
        Some(found)
    }

    /// Binds first: what is to be taken away is taken away when all else is granted. A role that may not be bound is left
    /// out, and the others are decided again. `None` where it did not get to the end.
    async fn carry_out(
        &self,
        account: &RoleSubject,
        found: &mut FoundGrants,
        settled: &mut SettledRound,
    ) -> Option<()> {
        let mut decision = found.decide(&self.demand);
        settled.ungranted = Some(decision.ungranted.clone());
        while let Some((role, policies)) = found.next_to_bind(&decision) {
            self.pause().await;
            let left = self.time_to_write()?;
            let names = policies.iter().map(String::as_str);
            match create_binding(&self.client, account, &role, names, left).await {
                Ok(uid) => {
                    found.bound.insert(role.clone(), uid);
                    settled.events.push(GrantEvent::Bound { role, policies });
                }
                Err(failure) => {
                    let refused = failure.status == Some(403);
                    settled.refuse(&role, &policies, failure);
                    if !refused {
                        return None;
                    }
                    found.roles.retain(|listed| listed.name != role);
                    decision = found.decide(&self.demand);
                }
            }
        }
        for (role, uid) in found.bound.iter().filter(|(role, _)| !decision.roles.contains_key(*role)) {
            self.pause().await;
            match delete_binding(&self.client, account, role, uid, self.time_to_write()?).await {
                Ok(()) => settled.events.push(GrantEvent::Unbound { role: role.clone() }),
                // Another writer was faster.
                Err(failure) if failure.status == Some(404) => {}
                Err(failure) => return settled.give_up(role, "delete its binding", failure),
            }
        }
        settled.roles = decision.roles;
        Some(())
    }

    /// Time that a write may take which begins now; `None` where another replica may lead.
    fn time_to_write(&self) -> Option<Duration> {
        self.leadership.may_write().then(|| self.leadership.write_time_left())
    }

    async fn pause(&self) {
        if !self.interval.is_zero() {
            tokio::time::sleep(self.interval).await;
        }
    }
}

impl SettledRound {
    fn fail(&mut self, role: &str, request: &'static str, failure: FailedRequest) {
        let of = if role.is_empty() { String::new() } else { format!(" of ClusterRole {role}") };
        let what = format!("the service cannot grant rights: failed to {request}{of} ({})", failure.cause());
        self.obstacles.push(GrantObstacle { policies: BTreeSet::new(), what });
        self.events.push(GrantEvent::Failed { role: role.to_owned(), request, failure });
    }

    fn give_up<T>(&mut self, role: &str, request: &'static str, failure: FailedRequest) -> Option<T> {
        self.fail(role, request, failure);
        None
    }

    /// A role could not be bound that these policies need.
    fn refuse(&mut self, role: &str, policies: &BTreeSet<String>, failure: FailedRequest) {
        let what = match failure.status {
            Some(403) => format!(
                "the API server refused to bind the listed ClusterRole {role}: the service account has no right to `bind` it"
            ),
            _ => format!("failed to bind the listed ClusterRole {role} ({})", failure.cause()),
        };
        self.obstacles.push(GrantObstacle { policies: policies.clone(), what });
        let request = "bind the role";
        self.events.push(GrantEvent::Failed { role: role.to_owned(), request, failure });
    }
}
