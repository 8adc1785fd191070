//! What happens at one point of a history.

/// Time for which a disturbed watch is held back, in milliseconds.
pub(crate) const HELD_MS: i64 = 3_000;

/// The points at which a history can be disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PointKind {
    /// A watch of objects is about to deliver a line.
    Notification,
    /// A write of a status is about to arrive at the server.
    Write,
    /// The watch of policies is about to deliver a change.
    PolicyChange,
}

/// A disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disturbance {
    /// The line is lost, and the watch goes on.
    Lost,
    /// The watch breaks before the line, its position is forgotten, and a list some seconds later shows only what is left of
    /// all that happened meanwhile.
    Relisted,
    /// The watch breaks before the line, and goes on from there some seconds later, while other kinds go on at once.
    Held,
    /// An earlier line of the watch comes again after this one.
    Repeated,
    /// The kind cannot be reached from here on, for longer than blindness is borne.
    CutOff,
    /// The process ends before it.
    KilledBefore,
    /// The process ends after it. A write is committed, and its answer is never received.
    KilledAfter,
    /// The process ends after it, and the watches of the next one are of a server that is some seconds behind.
    KilledThenBehind,
    /// The server fails, and does not commit the write.
    Refused,
    /// The write does not arrive, and there is no answer.
    Swallowed,
    /// The write is committed, and its answer is lost.
    Unanswered,
    /// Another client writes to the object just before.
    Overtaken,
    /// The write arrives some seconds late.
    Delayed,
}

impl Disturbance {
    /// All disturbances of points of one kind.
    pub fn all_at(point: PointKind) -> &'static [Disturbance] {
        use Disturbance as D;
        match point {
            PointKind::Notification => &[
                D::Lost,
                D::Relisted,
                D::Held,
                D::Repeated,
                D::CutOff,
                D::KilledBefore,
                D::KilledAfter,
                D::KilledThenBehind,
            ],
            PointKind::Write => &[
                D::Refused,
                D::Swallowed,
                D::Unanswered,
                D::Overtaken,
                D::Delayed,
                D::KilledBefore,
                D::KilledAfter,
                D::KilledThenBehind,
            ],
            PointKind::PolicyChange => &[D::Relisted, D::Held, D::KilledBefore, D::KilledAfter],
        }
    }
}
