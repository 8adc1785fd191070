//! A peer to compare with, and its word on one object.

use std::fmt;
use std::str::FromStr;

use readiness::Time;
use serde_json::Value;

use crate::lua::Library;
use crate::{argocd, kstatus};

/// Whose rules judge. Each reproduces that peer exactly, its quirks included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// sigs.k8s.io/cli-utils, as `kpt`, Helm 4 and many others use it.
    Kstatus,
    /// Flux: kstatus with its own rule for Jobs.
    Flux,
    /// Argo CD: its built-in rules, and a library of scripts where one is given.
    Argocd,
}

/// The word of a peer, in the peer's own vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerVerdict {
    /// kstatus and Flux: `Current InProgress Failed Terminating Unknown`; Argo CD: `Healthy Progressing Degraded
    /// Suspended Missing Unknown`, or `None` where it has no health for the object.
    pub status: Option<&'static str>,
    /// Argo CD's own message, unless that is a Go error; for the others a few words of ours.
    pub message: String,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 3] = [Profile::Kstatus, Profile::Flux, Profile::Argocd];

    /// The name as flags and policies spell it.
    pub const fn word(self) -> &'static str {
        match self {
            Profile::Kstatus => "kstatus",
            Profile::Flux => "flux",
            Profile::Argocd => "argocd",
        }
    }

    /// What this peer says of `object` at `now`. `scripts` are Argo CD's; a matching one answers before anything else,
    /// even for an object that is being deleted (a live Argo CD would say "Pending deletion" first).
    pub fn judge(self, object: &Value, scripts: Option<&Library>, now: Time) -> PeerVerdict {
        match self {
            Profile::Kstatus => kstatus::kstatus(object, now),
            Profile::Flux => kstatus::flux(object, now),
            Profile::Argocd => match scripts.and_then(|library| library.judge(object, now)) {
                Some(outcome) => outcome.verdict,
                None => argocd::built_in(object),
            },
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(word: &str) -> Result<Profile, UnknownProfile> {
        Profile::ALL.into_iter().find(|p| p.word() == word).ok_or_else(|| UnknownProfile(word.to_owned()))
    }
}

/// No peer has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of kstatus, flux, argocd")]
pub struct UnknownProfile(String);
