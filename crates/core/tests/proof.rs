//! A policy that asks for a proof: what a parent says until its children are as its generation calls for, in virtual time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aggregator::{Acceptance, DeliveryOutcome, KindId};
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::Time;
use rollcall_core::Core;
use serde_json::{Value, json};
use timer::Seed;
use watcher::ParentObject;
use watcher::reflector::Reflector;

const NOW: Time = Time(1_800_000_000_000);
const IMAGES: &str = "children.filter(c, c.kind == 'Deployment').all(c, c.spec.template.spec.containers[0].image == \
                      parent.spec.image)";

/// A shop with its Deployments, whose operator calls each generation handled at once.
struct ProvenShop {
    core: Core,
    kinds: BTreeMap<String, KindId>,
    shop: Value,
    deployments: BTreeMap<String, Value>,
    version: u64,
    now: Time,
}

fn read(object: &Value) -> ParentObject {
    serde_json::from_str(&object.to_string()).unwrap()
}

fn deployment(name: &str) -> Value {
    let owner = json!({ "apiVersion": "example.com/v1", "kind": "Shop", "controller": true, "name": "books", "uid": "books" });
    json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": "shop", "uid": name, "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [owner] },
        "spec": { "replicas": 1, "template": { "spec": { "containers": [{ "name": "web", "image": "shop:1" }] } } },
        "status": { "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "conditions": [{ "type": "Available", "status": "True" }] } })
}

impl ProvenShop {
    fn begin(proof: &str) -> ProvenShop {
        ProvenShop::begin_over(proof, Arc::new(Reflector::new(|| ())))
    }

    /// Its proofs are evaluated by threads, which the test plays.
    fn begin_beside(proof: &str) -> ProvenShop {
        let reflector = Arc::new(Reflector::new(|| ()));
        reflector.rule_work().set_waker(|| ());
        let mut shop = ProvenShop::begin_over(proof, reflector);
        assert_eq!(shop.evaluate(), 1);
        shop.run_for(Duration::from_secs(1));
        assert_eq!(shop.says(), ("AllChildrenReady", "2 of 2 ready"));
        shop
    }

    /// Both Deployments have rolled out a second image, and the proof of that waits for a thread.
    fn rolled_out_beside() -> ProvenShop {
        let mut shop = ProvenShop::begin_beside(IMAGES);
        shop.set_image("shop:2");
        shop.roll_out("api", "shop:2");
        shop.roll_out("web", "shop:2");
        shop
    }

    fn begin_over(proof: &str, reflector: Arc<Reflector>) -> ProvenShop {
        let spec = json!({
            "parent": { "group": "example.com", "kind": "Shop" }, "proof": proof,
            "children": [{ "kind": { "group": "apps", "kind": "Deployment" } }],
        });
        let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        let mut registry = IdRegistry::default();
        let id = registry.new_policy_id();
        let policy = PolicyInUse { id, name: "shops".to_owned(), compiled, acceptance: Acceptance::Accepted };
        let plan = build_plan(&[policy], &Released::new(), &mut registry, &UnreadLibraries);
        let resync = Duration::from_secs(30);
        let mut core = Core::new(reflector, resync, resync, Seed(0));
        let shop = json!({ "apiVersion": "example.com/v1", "kind": "Shop", "spec": { "image": "shop:1" },
            "metadata": { "name": "books", "namespace": "shop", "uid": "books", "resourceVersion": "1", "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z" },
            "status": { "observedGeneration": 1, "conditions": [] } });
        let deployments = BTreeMap::from(["api", "web"].map(|name| (name.to_owned(), deployment(name))));
        let objects: Vec<_> = deployments.values().chain([&shop]).map(read).collect();
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), NOW);
        let kinds = plan.kinds.values().map(|kind| (kind.key.1.clone(), kind.id)).collect();
        let mut proven = ProvenShop { core, kinds, shop, deployments, version: 1, now: NOW };
        proven.run_for(Duration::from_mins(1));
        proven
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            for write in self.core.run_turn(self.now) {
                let patch: json_patch::Patch = serde_json::from_value(write.patch.clone()).unwrap();
                json_patch::patch(&mut self.shop, &patch).unwrap();
                self.apply_shop();
                self.core.settle_write(self.now, write.parent, write.ticket, DeliveryOutcome::Written);
            }
            while self.core.engine.take_due_resync(self.now).is_some() {}
            let next = self.core.next_deadline().unwrap_or(end);
            self.now = next.max(self.now + Duration::from_millis(1)).min(end);
        }
    }

    fn apply(&mut self, kind: &str, object: &mut Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let live = read(object);
        self.core.reflector.apply_object(self.kinds[kind], &live.child, Some(&live.text));
    }

    fn apply_shop(&mut self) {
        let mut shop = std::mem::take(&mut self.shop);
        self.apply("Shop", &mut shop);
        self.shop = shop;
    }

    /// Evaluates the proofs that wait for a thread. Returns how many these were.
    fn evaluate(&mut self) -> usize {
        let work = self.core.reflector.rule_work();
        std::iter::from_fn(|| work.take_proof()).map(|proof| work.evaluate_proof(proof)).count()
    }

    /// The operator says at once that it has handled the new image.
    fn set_image(&mut self, image: &str) {
        self.change_image(image);
        self.run_for(Duration::from_mins(1));
    }

    fn change_image(&mut self, image: &str) {
        self.shop["spec"]["image"] = json!(image);
        let generation = self.shop["metadata"]["generation"].as_u64().unwrap() + 1;
        self.shop["metadata"]["generation"] = json!(generation);
        self.shop["status"]["observedGeneration"] = json!(generation);
        self.apply_shop();
    }

    fn delete(&mut self, name: &str) {
        if self.deployments.remove(name).is_some() {
            self.version += 1;
            self.core.reflector.delete_object(name, self.version);
        }
    }

    /// Whether all children have this image.
    fn have_image(&self, image: &str) -> bool {
        self.deployments.values().all(|of| of["spec"]["template"]["spec"]["containers"][0]["image"] == image)
    }

    /// A Deployment has rolled out this image. One that does not exist is created with it.
    fn roll_out(&mut self, name: &str, image: &str) {
        self.apply_image(name, image);
        self.run_for(Duration::from_mins(1));
    }

    fn apply_image(&mut self, name: &str, image: &str) {
        let mut deployment = self.deployments.get(name).cloned().unwrap_or_else(|| deployment(name));
        let generation = deployment["metadata"]["generation"].as_u64().unwrap() + 1;
        deployment["metadata"]["generation"] = json!(generation);
        deployment["status"]["observedGeneration"] = json!(generation);
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        self.apply("Deployment", &mut deployment);
        self.deployments.insert(name.to_owned(), deployment);
    }

    /// Reason and message of the shop's condition.
    fn says(&self) -> (&str, &str) {
        let ready = &self.shop["status"]["conditions"][0];
        (ready["reason"].as_str().unwrap_or_default(), ready["message"].as_str().unwrap_or_default())
    }
}

#[test]
fn an_operator_that_calls_a_generation_handled_is_not_believed_before_its_children_carry_it() {
    let mut shop = ProvenShop::begin(IMAGES);
    assert_eq!(shop.says(), ("AllChildrenReady", "2 of 2 ready"));
    shop.set_image("shop:2");
    let waits = "waiting for the operator to handle generation 2: the policy's proof does not hold yet";
    assert_eq!(shop.says(), ("ChildrenPending", waits));
    shop.roll_out("api", "shop:2");
    assert_eq!(shop.says(), ("ChildrenPending", waits), "one of two");
    shop.roll_out("web", "shop:2");
    assert_eq!(shop.says(), ("AllChildrenReady", "2 of 2 ready"));
}

#[test]
fn a_field_that_a_proof_alone_reads_moves_it_though_the_child_is_judged_as_before() {
    let mut shop = ProvenShop::begin(
        "children.all(c, c.metadata.?annotations.image.orValue('shop:1') == parent.spec.image)",
    );
    shop.set_image("shop:2");
    assert_eq!(shop.says().0, "ChildrenPending");
    for name in ["api", "web"] {
        let mut deployment = shop.deployments[name].clone();
        deployment["metadata"]["annotations"] = json!({ "image": "shop:2" });
        shop.apply("Deployment", &mut deployment);
    }
    shop.run_for(Duration::from_secs(10));
    assert_eq!(shop.says().0, "AllChildrenReady");
}

#[test]
fn a_proof_that_cannot_hold_says_why_and_quotes_no_value() {
    let token = "parent.spec.image == 'x' && children.all(c, c.metadata.labels[parent.spec.image] == 'x')";
    for (proof, why) in [
        ("children.all(c, c.spec.image == 'x')", "reads a field that is absent"),
        (token, "does not hold yet"),
        ("children.all(c, c.metadata.labels[parent.spec.image] == 'x')", "reads a field that is absent"),
        ("children.all(c, c.spec.replicas + parent.spec.image == 'x')", "has no value for these objects"),
        ("children.map(c, [c, c].map(x, x + x)).size() > 9", "has no value for these objects"),
    ] {
        let mut shop = ProvenShop::begin(proof);
        shop.set_image("secret:2");
        let (reason, message) = shop.says();
        let waits = "waiting for the operator to handle generation 2: the policy's proof ";
        assert_eq!((reason, message), ("ChildrenPending", &*format!("{waits}{why}")), "{proof}");
    }
}

#[test]
fn an_object_of_which_a_proof_reads_too_much_is_named_as_the_reason() {
    let mut shop = ProvenShop::begin("children.all(c, c.metadata.annotations.size() < 9) || true");
    let mut large = shop.deployments["web"].clone();
    large["metadata"]["annotations"] = json!({ "large": "x".repeat(20_000) });
    shop.apply("Deployment", &mut large);
    shop.set_image("shop:2");
    let waits = "waiting for the operator to handle generation 2: the policy's proof reads more than 16 KiB of an object";
    assert_eq!(shop.says(), ("ChildrenPending", waits));
}

#[test]
fn a_proof_that_is_never_given_is_the_operators_silence_in_the_end() {
    let mut shop = ProvenShop::begin(IMAGES);
    shop.set_image("shop:2");
    shop.run_for(Duration::from_mins(10));
    let silent = "the operator has not handled generation 2: the policy's proof does not hold yet";
    assert_eq!(shop.says(), ("OperatorSilent", silent));
    assert_eq!(shop.shop["status"]["conditions"][1]["type"], "Stalled");
}

#[test]
fn a_proof_that_is_evaluated_beside_holds_nothing_up_and_counts_when_it_is_done() {
    let mut shop = ProvenShop::rolled_out_beside();
    assert_eq!(shop.says(), ("ChildrenPending", "waiting for the operator to handle generation 2"));
    assert_eq!(shop.evaluate(), 1, "asked for at each change, and waiting once");
    shop.run_for(Duration::from_secs(1));
    assert_eq!(shop.says(), ("AllChildrenReady", "2 of 2 ready"));
}

#[test]
fn a_proof_that_was_evaluated_over_other_children_is_evaluated_again() {
    let mut shop = ProvenShop::rolled_out_beside();
    shop.apply_image("mail", "shop:1");
    assert_eq!(shop.evaluate(), 1, "over the two that were known");
    shop.run_for(Duration::from_secs(1));
    assert_eq!(shop.says().0, "ChildrenPending");
    assert_eq!(shop.evaluate(), 1, "over all three");
    shop.run_for(Duration::from_secs(1));
    assert!(shop.says().1.ends_with("does not hold yet"), "{:?}", shop.says());
    shop.roll_out("mail", "shop:2");
    shop.evaluate();
    shop.run_for(Duration::from_secs(1));
    assert_eq!(shop.says(), ("AllChildrenReady", "3 of 3 ready"));
}

#[test]
fn a_proof_that_was_evaluated_by_an_earlier_plan_is_evaluated_again() {
    let mut shop = ProvenShop::rolled_out_beside();
    assert_eq!(shop.evaluate(), 1);
    let reflector = shop.core.reflector.clone();
    reflector.set_interest((*reflector.interest(shop.kinds["Shop"]).unwrap()).clone());
    shop.run_for(Duration::from_secs(1));
    assert_eq!(shop.says().0, "ChildrenPending");
    assert_eq!(shop.evaluate(), 1);
    shop.run_for(Duration::from_secs(1));
    assert_eq!(shop.says(), ("AllChildrenReady", "2 of 2 ready"));
}

/// Images change, children roll out, appear and go, while threads take their time: whenever the shop is called ready, there
/// was a moment since its generation at which the proof held over all children that there were.
#[test]
fn no_order_of_changes_and_evaluations_lets_a_proof_count_that_never_held() {
    let (mut told_ready, mut evaluated) = (0, 0);
    for seed in 0..200 {
        let mut shop = ProvenShop::begin_beside(IMAGES);
        let (mut image, mut generations, mut held) = ("shop:1".to_owned(), 1, true);
        for step in 0..60_u64 {
            let draw = |key, below| Seed(seed).number_for(step * 8 + key) % below;
            let name = ["api", "web", "mail"][usize::try_from(draw(1, 3)).unwrap()];
            match draw(0, 9) {
                0 if step % 2 == 0 => {
                    (generations, held) = (generations + 1, false);
                    image = format!("shop:{generations}");
                    shop.change_image(&image);
                }
                0..=2 => shop.apply_image(name, &image),
                3 => shop.apply_image(name, "shop:0"),
                4 => shop.delete(name),
                5 | 6 => evaluated += shop.evaluate(),
                _ => shop.run_for(Duration::from_millis(1 + draw(2, 20_000))),
            }
            held = held || shop.have_image(&image);
            let ready = &shop.shop["status"]["conditions"][0];
            if ready["status"] == "True" && ready["observedGeneration"] == generations {
                assert!(held, "seed {seed}, step {step}");
                told_ready += usize::from(generations > 1);
            }
        }
    }
    assert!(told_ready > 100 && evaluated > 500, "{told_ready} and {evaluated}");
}
