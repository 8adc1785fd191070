//! Service, Ingress, EndpointSlice: can it be reached?

use crate::assess::{Limits, Ruling};
use crate::branch::Branch;
use crate::facts::Facts;
use crate::reason::Counted;
use crate::{Level, Reason};

pub(super) fn service<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    if f.spec.load_balancer {
        return addressed(f, limits);
    }
    Ruling::ready(Reason::Ready, Branch::Fact("spec.type is not LoadBalancer"))
}

pub(super) fn ingress<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    addressed(f, limits)
}

fn addressed<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    if f.status.addresses.unwrap_or(0) > 0 {
        return Ruling::ready(Reason::Ready, Branch::Fact("status.loadBalancer.ingress is not empty"));
    }
    let branch = Branch::Fact("status.loadBalancer.ingress is empty");
    Ruling::progressing(Reason::PendingLoadBalancer, branch).until(f.created, limits.pending, Level::Stuck)
}

/// One ready endpoint is enough to be served.
pub(super) fn endpoint_slice(f: &Facts) -> Ruling<'_> {
    let (ready, all) = f.endpoints.unwrap_or((0, 0));
    if ready > 0 {
        return Ruling::ready(Reason::Ready, Branch::Fact("an endpoint is ready"));
    }
    let branch = Branch::Fact("no endpoint is ready");
    Ruling::progressing(Reason::Count(Counted::Endpoints, ready, all), branch)
}
