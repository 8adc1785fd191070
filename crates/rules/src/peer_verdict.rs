//! A peer's verdict on one object.

/// The verdict of a peer, in the peer's own vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerVerdict {
    /// kstatus and Flux: `Current InProgress Failed Terminating Unknown`; Argo CD: `Healthy Progressing Degraded
    /// Suspended Missing Unknown`, or `None` if it defines no health for the object.
    pub status: Option<&'static str>,
    /// Argo CD's own message, unless that is a Go error; for the other peers a short text of ours.
    pub message: String,
}
