//! Who leads, decided from what a Lease says and from when it was seen to change. Pure.
//!
//! As in client-go, nobody reads another's clock: a lease has run out when it has not changed for its duration *as seen from
//! here*, and who holds it stops well before anybody else can see that.

use std::time::Duration;

use readiness::Time;

/// How long a claim holds, and how often things are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// For so long after its last change nobody else takes a lease.
    pub(crate) lease: Duration,
    /// Who could not renew for so long writes no more.
    pub(crate) renew: Duration,
    /// How often a leader renews.
    pub(crate) retry: Duration,
    /// How often who stands by looks.
    pub(crate) look: Duration,
}

/// The first three are those of client-go; a standby looks more often, so that a handed-over lease is soon taken.
pub(crate) const PACE: Pace = Pace {
    lease: Duration::from_secs(15),
    renew: Duration::from_secs(10),
    retry: Duration::from_secs(2),
    look: Duration::from_secs(1),
};

/// What of a Lease matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Who holds it; empty where nobody does.
    pub(crate) holder: String,
    /// When its holder says it renewed it: only whether that changes matters.
    pub(crate) renewed: String,
    /// How often it changed hands.
    pub(crate) transitions: i32,
    /// How long its holder may be silent.
    pub(crate) duration: Duration,
    /// Its resourceVersion.
    pub(crate) version: String,
}

/// What to ask the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// What the Lease says.
    Look,
    /// Make it, ours.
    Create,
    /// Make it ours, or keep it so, unless it changed since this version.
    Claim { version: String, transitions: i32 },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It says this; not by our doing.
    Found(Record),
    /// There is none.
    Absent,
    /// It is ours now, and says this.
    Written(Record),
    /// Somebody else was first.
    Conflict,
    /// Nobody knows what became of it.
    Failed,
}

/// One candidate.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    identity: String,
    pace: Pace,
    /// What the Lease says, and since when it was seen to say so here.
    seen: Option<(Record, Time)>,
    absent: bool,
    /// When the last renewal that succeeded was asked for: the others cannot have seen it earlier.
    renewed: Option<Time>,
    next: Time,
}

impl Election {
    /// A candidate of this name, which is like no other's.
    pub(crate) fn new(identity: String, pace: Pace) -> Self {
        Election { identity, pace, seen: None, absent: false, renewed: None, next: Time::default() }
    }

    /// What to ask now.
    pub(crate) fn ask(&self, now: Time) -> Ask {
        match &self.seen {
            None if self.absent => Ask::Create,
            None => Ask::Look,
            Some((record, since)) => {
                let ours = record.holder == self.identity;
                let free = record.holder.is_empty() || *since + record.duration <= now;
                if ours || free {
                    let transitions = record.transitions + i32::from(!ours);
                    Ask::Claim { version: record.version.clone(), transitions }
                } else {
                    Ask::Look
                }
            }
        }
    }

    /// The answer to what was asked at `asked`.
    pub(crate) fn hear(&mut self, answer: Answer, asked: Time, now: Time) {
        self.absent = false;
        match answer {
            Answer::Written(record) => {
                self.seen = Some((record, now));
                self.renewed = Some(asked);
                self.next = asked + self.pace.retry;
            }
            Answer::Found(record) => {
                if record.holder != self.identity {
                    self.renewed = None;
                }
                let since = self.seen.take().filter(|(old, _)| same(old, &record)).map_or(now, |(_, at)| at);
                self.seen = Some((record, since));
                self.next = if self.ask(now) == Ask::Look { now + self.pace.look } else { now };
            }
            Answer::Absent => {
                (self.seen, self.renewed, self.absent) = (None, None, true);
                self.next = now;
            }
            Answer::Conflict => {
                self.seen = None;
                self.next = now;
            }
            Answer::Failed => {
                let pause = if self.renewed.is_some() { self.pace.retry } else { self.pace.look };
                self.next = now + pause;
            }
        }
    }

    /// When to ask next.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Until when this one may begin to write; `None` where it does not lead.
    pub(crate) fn leads_until(&self) -> Option<Time> {
        self.renewed.map(|at| at + self.pace.renew)
    }

    /// The claim to give up, where there is one.
    pub(crate) fn held(&self) -> Option<&Record> {
        self.seen.as_ref().map(|(record, _)| record).filter(|record| record.holder == self.identity)
    }

    /// Who holds it, as far as is known.
    pub(crate) fn holder(&self) -> &str {
        self.seen.as_ref().map_or("", |(record, _)| record.holder.as_str())
    }
}

/// Nobody has renewed it in between. Whatever else moves its version, a label say, is no sign of life.
fn same(old: &Record, new: &Record) -> bool {
    (&old.holder, &old.renewed, old.transitions) == (&new.holder, &new.renewed, new.transitions)
}
