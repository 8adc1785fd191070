//! Scripts by which a policy judges stay in force where their ConfigMap is gone, also in the next process.

use serde_json::{Value, json};

use super::cluster::{LiveCluster, OWN_NAMESPACE, condition, custom, policy};
use super::service::{RunningService, until};

const OWN: &str = "rollcall.dev/v1alpha1";

/// Scripts by which a database is ready whose phase is this one.
fn scripts(phase: &str) -> Value {
    let script = format!(
        "if obj.status ~= nil and obj.status.phase == '{phase}' then return {{ status = 'Healthy' }} end \
         return {{ status = 'Degraded', message = 'not {phase}' }}"
    );
    json!({ "resource.customizations.health.example.com_Database": script })
}

struct ScriptedCluster(LiveCluster);

impl ScriptedCluster {
    async fn start(name: &str) -> ScriptedCluster {
        let cluster = LiveCluster::start(name).await;
        cluster.install();
        cluster.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "argocd" } }));
        let shop = cluster.create(&custom("Shop", "books"));
        cluster.below(&shop, custom("Database", "orders"));
        let mut shops = policy("Shop", "example.com", "Database");
        shops["spec"]["children"][0]["ready"] = json!({ "rules": "argocd-cm" });
        cluster.create(&shops);
        ScriptedCluster(cluster)
    }

    fn create_scripts(&self, phase: &str) {
        self.0.create(&json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "argocd-cm", "namespace": "argocd" }, "data": scripts(phase) }));
    }

    fn delete_scripts(&self) {
        let now = self.0.server.now();
        self.0.server.lock_store().delete_object(now, "v1", "ConfigMap", "argocd", "argocd-cm").unwrap();
    }

    fn set_phase(&self, phase: &str) {
        let (now, patch) = (self.0.server.now(), json!({ "status": { "phase": phase } }));
        let mut store = self.0.server.lock_store();
        store.patch_status(now, "example.com/v1", "Database", "default", "orders", &patch).unwrap();
    }

    fn run(&self) -> RunningService {
        RunningService::start(&self.0, &["--records-namespace", OWN_NAMESPACE], &[])
    }

    fn until_says(&self, status: &str) {
        until(&format!("the shop says {status}"), || {
            let said = condition(&self.0.parent("Shop", "books"), "Ready");
            assert_ne!(said["reason"], "PolicyRefused");
            said["status"] == status
        });
    }

    /// The policy's word on its own acceptance, where it is this status.
    fn until_accepted(&self, status: &str) {
        let policy = policy("Shop", "example.com", "Database")["metadata"]["name"].clone();
        until(&format!("the policy says Accepted {status}"), || {
            let store = self.0.server.lock_store();
            let found = store.get(OWN, "ReadinessPolicy", "", policy.as_str().unwrap()).unwrap();
            condition(&found, "Accepted")["status"] == status
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_their_config_map_goes_while_nothing_runs_the_next_process_judges_by_the_scripts_that_were_in_force()
 {
    let world = ScriptedCluster::start("kept-scripts").await;
    world.create_scripts("Up");
    world.set_phase("Up");
    let first = world.run();
    world.until_says("True");
    world.until_accepted("True");
    drop(first);

    world.delete_scripts();
    world.set_phase("Down");
    let second = world.run();
    world.until_says("False");
    world.until_accepted("False");
    world.set_phase("Up");
    world.until_says("True");
    drop(second);

    // Also over a second start, whose predecessor has never seen the ConfigMap.
    world.set_phase("Down");
    let _third = world.run();
    world.until_says("False");
    world.create_scripts("Down");
    world.until_says("True");
    world.until_accepted("True");
}
