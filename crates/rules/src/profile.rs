//! A peer to compare with.

use std::fmt;
use std::str::FromStr;

use readiness::Time;
use serde_json::Value;

use crate::lua::ScriptLibrary;
use crate::peer_verdict::PeerVerdict;
use crate::{argocd, kstatus};

/// The peer whose rules are used. Each is reproduced exactly, its quirks included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerProfile {
    /// sigs.k8s.io/cli-utils, as `kpt`, Helm 4 and many others use it.
    Kstatus,
    /// Flux: kstatus with its own rule for Jobs.
    Flux,
    /// Argo CD: its built-in rules, and a library of scripts if one is given.
    Argocd,
}

impl PeerProfile {
    /// All profiles.
    pub const ALL: [PeerProfile; 3] = [PeerProfile::Kstatus, PeerProfile::Flux, PeerProfile::Argocd];

    /// Returns the name that flags and policies use.
    pub const fn word(self) -> &'static str {
        match self {
            PeerProfile::Kstatus => "kstatus",
            PeerProfile::Flux => "flux",
            PeerProfile::Argocd => "argocd",
        }
    }

    /// Returns this peer's verdict on `object` at `now`. `scripts` are Argo CD's; a matching one takes precedence over
    /// everything else, even for an object that is being deleted (a live Argo CD would say "Pending deletion" first).
    pub fn judge_object(self, object: &Value, scripts: Option<&ScriptLibrary>, now: Time) -> PeerVerdict {
        match self {
            PeerProfile::Kstatus => kstatus::judge_by_kstatus(object, now),
            PeerProfile::Flux => kstatus::judge_by_flux(object, now),
            PeerProfile::Argocd => match scripts.and_then(|library| library.judge_object(object, now)) {
                Some(outcome) => outcome.verdict,
                None => argocd::judge_built_in(object),
            },
        }
    }
}

impl fmt::Display for PeerProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for PeerProfile {
    type Err = UnknownProfile;

    fn from_str(word: &str) -> Result<PeerProfile, UnknownProfile> {
        PeerProfile::ALL.into_iter().find(|p| p.word() == word).ok_or_else(|| UnknownProfile(word.to_owned()))
    }
}

/// Error for an unknown profile name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of kstatus, flux, argocd")]
pub struct UnknownProfile(String);
