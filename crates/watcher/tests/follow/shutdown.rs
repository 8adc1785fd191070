//! A runtime that shuts down ends the client's own tasks first: a follow must end all the same.

use std::sync::mpsc::channel;
use std::time::Duration;

use futures::StreamExt;
use timer::Seed;
use tokio::net::TcpListener;
use watcher::wire::ChildObject;
use watcher::{ApiKind, FollowOptions, follow};

fn pods() -> ApiKind {
    ApiKind {
        group: String::new(),
        version: "v1".into(),
        kind: "Pod".into(),
        plural: "pods".into(),
        namespaced: true,
        has_status: true,
    }
}

#[test]
fn a_runtime_that_shuts_down_is_not_held_up() {
    for round in 0..20 {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let server = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", server.local_addr().unwrap());
        // Accepts and closes: every request fails and is repeated.
        let (asked, seen) = channel();
        runtime.spawn(async move {
            loop {
                drop(server.accept().await);
                _ = asked.send(());
            }
        });
        for number in 0..8 {
            let url = url.parse().unwrap();
            runtime.spawn(async move {
                let client = watcher::client_without_retries(kube::Config::new(url)).unwrap();
                let options = FollowOptions {
                    backoff: timer::Backoff { base: Duration::from_millis(1), cap: Duration::from_millis(2) },
                    ..FollowOptions::new(Seed(number))
                };
                let events = follow::<ChildObject>(&client, &pods(), None, options);
                events.for_each(|_| async {}).await;
            });
        }
        // All of them are in the middle of a request.
        for _ in 0..40 {
            seen.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        let (done, ended) = channel();
        std::thread::spawn(move || {
            drop(runtime);
            done.send(()).unwrap();
        });
        assert!(ended.recv_timeout(Duration::from_secs(20)).is_ok(), "round {round}: it still runs");
    }
}
