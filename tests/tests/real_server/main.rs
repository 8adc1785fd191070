//! The built binary against a real control plane. One program, so that all tests share one control plane.

mod cascade;
mod conformance;
mod dashboards;
mod deploy;
mod discovery;
mod events;
mod extremes;
mod generation;
mod grafana;
mod helm;
mod identity;
mod leader;
mod live;
mod neighbours;
mod observed;
mod outage;
mod permissions;
mod policies;
mod readers;
mod readme;
mod restart;
mod rollout;
mod rules;
mod service;
mod shapes;
mod stage;
