//! The task that keeps our own records: reads them before anything is said, writes them, and looks for evidence of what
//! nobody saw.

mod seek;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};
use timer::Backoff;
use tokio::sync::Semaphore;
use tracing::{debug, warn};
use watcher::reflector::Whose;
use watcher::status::MANAGER;
use watcher::{ApiKind, Cause, Event, FollowOptions, Parent, follow, look, resolve, wire::Child};

use crate::core::News;
use crate::core::records::{Done, Errand, Keeper};
use crate::kinds::{Task, log};
use seek::Seeking;

/// So many records are written at once.
const AT_ONCE: usize = 8;
/// Waits between tries, and between writes to one record that somebody else keeps changing.
const AGAIN: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1) };
/// How often it is looked again after what could not be decided yet.
const LATER: Duration = Duration::from_secs(15);

type Ended = (String, Done);

impl Task {
    /// Keeps the records until their kind is not served any more.
    pub(crate) async fn keep_records(&self, api: &ApiKind) {
        let reflector = &self.setting.reflector;
        let mut keeper = Keeper::new(self.plan.records.clone().unwrap_or_default());
        let options = FollowOptions::new(self.setting.seed);
        let namespace = self.setting.records.namespace.as_str();
        let mut events = follow::<Parent>(&self.setting.client, api, Some(namespace), options).boxed();
        let (mut read, mut failures) = (false, BTreeMap::<String, u32>::new());
        let mut under_way = FuturesUnordered::<BoxFuture<'_, Ended>>::new();
        let mut seeking = Seeking::new(self);
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        let mut mandate = self.setting.records.mandate.clone();
        let mut later = tokio::time::interval(LATER);
        loop {
            tokio::select! { biased;
                Some((name, done)) = under_way.next(), if !under_way.is_empty() => {
                    if done == Done::Failed {
                        *failures.entry(name.clone()).or_default() += 1;
                    } else {
                        failures.remove(&name);
                    }
                    complain(&name, &keeper.done(reflector, &name, &done));
                }
                () = seeking.next() => {}
                Some(event) = events.next() => {
                    let through = matches!(event, Event::InitDone);
                    if self.hear(api, &mut keeper, event) {
                        return;
                    }
                    if through {
                        // What ended while nobody looked is asked for before anything is said that rests on what is known.
                        if !read {
                            seeking.begin().await;
                        }
                        read = true;
                        self.say(News::Synced);
                    }
                }
                () = self.setting.records.moved.notified(), if read => {}
                _ = later.tick(), if read => keeper.tick(),
                _ = mandate.changed() => {}
            }
            if read && mandate.holds() {
                for (name, errand) in keeper.errands(reflector) {
                    let failed = failures.get(&name).copied().unwrap_or(0);
                    let permits = permits.clone();
                    under_way.push(
                        async move {
                            let done = self.run_errand(api, &name, errand, failed, &permits).await;
                            (name, done)
                        }
                        .boxed(),
                    );
                }
            }
            if read {
                seeking.go_on();
            }
        }
    }

    /// What the records' watch says; whether their kind is gone.
    fn hear(&self, api: &ApiKind, keeper: &mut Keeper, event: Event<Parent>) -> bool {
        let reflector = &self.setting.reflector;
        match event {
            Event::Init => {
                keeper.begin();
                self.say(News::Listing);
            }
            Event::InitApply(record) | Event::Apply(record) => {
                let value = serde_json::from_str::<Value>(record.text.get()).unwrap_or_default();
                complain(&record.child.meta.name, &keeper.read(reflector, &value));
            }
            Event::InitDone => keeper.finish(),
            Event::Delete(record) => keeper.vanish(&record.child.meta.name),
            Event::Alive => self.say(News::Alive),
            Event::Trouble(trouble) => {
                log(api, &trouble);
                let gone = trouble.cause == Cause::NotInstalled;
                self.say(News::Trouble(trouble.cause, trouble.detail));
                return gone;
            }
        }
        false
    }

    async fn run_errand(
        &self,
        api: &ApiKind,
        name: &str,
        errand: Errand,
        failures: u32,
        permits: &Semaphore,
    ) -> Done {
        let wait = |n: u32| AGAIN.after(n, self.setting.seed, u64::from(self.plan.id));
        if let Errand::Amend { again: again @ 1.., .. } = &errand {
            warn!(record = name, again, "somebody else keeps changing a record; it is set right more slowly");
            tokio::time::sleep(wait(*again)).await;
        }
        let done = {
            let _permit = permits.acquire().await;
            match errand {
                Errand::Ask(whose) => self.look_for(&whose).await,
                errand => self.write(api, name, errand).await,
            }
        };
        match done {
            Ok(Some(done)) => return done,
            Ok(None) => {}
            Err(error) => warn!(record = name, error = format!("{error:#}"), "a record of outcomes"),
        }
        tokio::time::sleep(wait(failures + 1)).await;
        Done::Failed
    }

    /// Is the parent of a record still there?
    async fn look_for(&self, whose: &Whose) -> anyhow::Result<Option<Done>> {
        let of = |api: &ApiKind| api.group == *whose.group && api.kind == *whose.kind;
        let known = self.setting.known.iter().find(|k| of(&k.api)).map(|k| k.api.clone());
        let found = match known {
            Some(api) => Some(api),
            None => resolve(&self.setting.client, &whose.group, None, &whose.kind).await?,
        };
        // Without its kind there is no parent.
        let Some(api) = found else { return Ok(Some(Done::ParentGone)) };
        let scope = Some(&*whose.namespace).filter(|namespace| !namespace.is_empty());
        let live = look::<Child>(&self.setting.client, &api, scope, &whose.name).await?;
        let there = live.is_some_and(|live| live.meta.uid == whose.uid);
        Ok(Some(if there { Done::ParentThere } else { Done::ParentGone }))
    }

    async fn write(&self, api: &ApiKind, name: &str, errand: Errand) -> anyhow::Result<Option<Done>> {
        let path = api.path(Some(&self.setting.records.namespace));
        let (request, body, kind) = match errand {
            Errand::Create(body) => {
                (Request::post(format!("{path}?fieldManager={MANAGER}")), body, "application/json")
            }
            Errand::Amend { patch, .. } => {
                let target = format!("{path}/{name}?fieldManager={MANAGER}");
                (Request::patch(target), patch, "application/json-patch+json")
            }
            Errand::Remove { uid, version } => {
                let preconditions = json!({ "uid": uid, "resourceVersion": version });
                let body =
                    json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions });
                (Request::delete(format!("{path}/{name}")), body, "application/json")
            }
            Errand::Ask(_) => return Ok(None),
        };
        let removes = request.method_ref() == Some(&http::Method::DELETE);
        let request = request
            .header(CONTENT_TYPE, kind)
            .header(ACCEPT, "application/json")
            .body(body.to_string().into_bytes())?;
        match self.setting.client.request::<Value>(request).await {
            Ok(_) if removes => Ok(Some(Done::Now(None))),
            Ok(now) => Ok(Some(Done::Now(Some(now)))),
            // Somebody else was faster: what is there now decides.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => {
                debug!(record = name, code = status.code, "read anew");
                let live =
                    look::<Parent>(&self.setting.client, api, Some(&self.setting.records.namespace), name)
                        .await?;
                match live {
                    None if status.code != 404 || removes => Ok(Some(Done::Now(None))),
                    // There is nothing to be patched any more, or no namespace to create it in.
                    None => Err(status.into()),
                    Some(live) => Ok(Some(Done::Now(Some(serde_json::from_str(live.text.get())?)))),
                }
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn complain(record: &str, complaints: &[String]) {
    for what in complaints {
        warn!(record, what, "a record was changed to what it cannot say");
    }
}
