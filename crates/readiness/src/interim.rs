//! Interim.
#![allow(missing_docs)]
use crate::{Assessment, Level, Reason, Time, Verdict};
use std::time::Duration;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind { Deployment, Other }
impl Kind { pub fn of(group: &str, kind: &str) -> Kind { if (group, kind) == ("apps", "Deployment") { Kind::Deployment } else { Kind::Other } } }
#[derive(Clone, Debug, Default)]
pub struct Facts { pub generation: i64, pub observed: Option<i64>, pub deleted: Option<Time>, pub desired: Option<u32>, pub available: u32, pub updated: u32, pub ready: Option<bool> }
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits { pub pending: Duration, pub terminating: Duration }
impl Verdict { pub fn terminal(&self) -> bool { false } }
pub fn assess(kind: Kind, f: &Facts, _limits: &Limits) -> Assessment {
    let v = |level, reason| Assessment::from(Verdict { level, reason });
    if f.deleted.is_some() { return v(Level::Terminating, Reason::NoSignal); }
    if kind == Kind::Deployment {
        if f.observed.unwrap_or(0) < f.generation { return v(Level::Progressing, Reason::NoSignal); }
        if f.available < f.desired.unwrap_or(1) || f.updated < f.desired.unwrap_or(1) { return v(Level::Progressing, Reason::NoSignal); }
        return v(Level::Ready, Reason::Ready);
    }
    match f.ready { Some(true) => v(Level::Ready, Reason::Ready), Some(false) => v(Level::Progressing, Reason::NoSignal), None => v(Level::Unknown, Reason::NoSignal) }
}
