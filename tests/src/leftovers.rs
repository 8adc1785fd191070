//! What a test leaves on the control plane that all share goes behind it: a custom kind costs the servers, and everybody who reads
//! all kinds, for as long as it is there.

use std::path::PathBuf;
use std::sync::{OnceLock, mpsc};
use std::thread;

use anyhow::Result;
use http::Method;
use serde_json::Value;

use crate::caller::ApiCaller;
use crate::kind::ObjectAddress;

/// Leftovers of one test.
pub(crate) struct Leftovers {
    /// The administrator's.
    pub(crate) kubeconfig: PathBuf,
    /// Label selector of the policies.
    pub(crate) policies: String,
    /// File with the definitions, one a line.
    pub(crate) definitions: PathBuf,
}

/// Removes the definitions of a tenant whose test is over, and its policies; nobody waits for it, and nobody misses it.
pub(crate) fn remove_behind(left: Leftovers) {
    static QUEUE: OnceLock<mpsc::Sender<Leftovers>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        let (sender, receiver) = mpsc::channel();
        // The runtime of a test ends with it.
        thread::spawn(move || remove_all(&receiver));
        sender
    });
    _ = queue.send(left);
}

fn remove_all(leftovers: &mpsc::Receiver<Leftovers>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    for left in leftovers {
        // What is gone already, or a server that is, is nobody's failure.
        _ = runtime.block_on(remove(&left));
    }
}

async fn remove(left: &Leftovers) -> Result<()> {
    let admin = ApiCaller::from_kubeconfig(&left.kubeconfig).await?;
    let policies = format!("/apis/rollcall.dev/v1alpha1/readinesspolicies?labelSelector={}", left.policies);
    _ = admin.send(Method::DELETE, &policies, "", Vec::new()).await;
    let manifests = std::fs::read_to_string(&left.definitions).unwrap_or_default();
    for manifest in manifests.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        _ = admin.delete(&ObjectAddress::of(&manifest)?).await;
    }
    Ok(())
}
