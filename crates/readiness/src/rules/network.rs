//! Rules for Service, Ingress and EndpointSlice: reachability.

use crate::branch::Branch;
use crate::counted_unit::CountedUnit;
use crate::facts::Facts;
use crate::readiness_ruling::ReadinessRuling;
use crate::stuck_limits::StuckLimits;
use crate::{Level, Reason};

pub(super) fn judge_service<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    if f.spec.load_balancer {
        return judge_load_balancer(f, limits);
    }
    ReadinessRuling::ready(Reason::Ready, Branch::Fact("spec.type is not LoadBalancer"))
}

pub(super) fn judge_ingress<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    judge_load_balancer(f, limits)
}

fn judge_load_balancer<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    if f.status.addresses.unwrap_or(0) > 0 {
        return ReadinessRuling::ready(
            Reason::Ready,
            Branch::Fact("status.loadBalancer.ingress is not empty"),
        );
    }
    let branch = Branch::Fact("status.loadBalancer.ingress is empty");
    // An old one may have become of this type a moment ago, or have lost its addresses: a controller takes them away when it
    // ends.
    ReadinessRuling::progressing(Reason::PendingLoadBalancer, branch).escalate_after(
        f.created.max(f.changed),
        limits.pending,
        Level::Stuck,
    )
}

/// Judges an EndpointSlice: one ready endpoint is enough.
pub(super) fn judge_endpoint_slice(f: &Facts) -> ReadinessRuling<'_> {
    let (ready, all) = f.endpoints.unwrap_or((0, 0));
    if ready > 0 {
        return ReadinessRuling::ready(Reason::Ready, Branch::Fact("an endpoint is ready"));
    }
    let branch = Branch::Fact("no endpoint is ready");
    ReadinessRuling::progressing(Reason::Count(CountedUnit::Endpoints, ready, all), branch)
}
