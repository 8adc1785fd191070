//! Reviews, counted at the API server that is asked.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};

use super::review_client::REVIEW_CACHE_SIZE;
use super::review_server::{ReviewAnswer, ReviewServer};
use super::*;
use crate::ServerClock;
use crate::listener::ClientAddress;
use crate::metrics::{Metrics, TokenReviewMetrics};

/// Knows tokens that begin with `good`, and what audiences it is asked for.
fn good(_: &str, review: &Value) -> Value {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    let known = token.starts_with("good");
    let user = if known { json!({ "username": token }) } else { Value::Null };
    json!({ "status": { "authenticated": known, "user": user, "audiences": review["spec"]["audiences"] } })
}

struct ReviewFrontend {
    server: ReviewServer,
    tokens: TokenAuthenticator,
    metrics: TokenReviewMetrics,
}

fn front(answer: ReviewAnswer, audiences: &[&str]) -> ReviewFrontend {
    let (server, metrics) = (ReviewServer::new(answer), Metrics::new(0).unwrap().token_reviews());
    let clock = ServerClock::assume_local().local_clock();
    let audiences = audiences.iter().map(|&audience| audience.to_owned()).collect();
    let tokens = TokenAuthenticator::new(server.client(), clock, audiences, metrics.clone());
    ReviewFrontend { server, tokens, metrics }
}

fn client(number: u8) -> ClientAddress {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, number)).into()
}

/// What a token is told from an address.
async fn told(front: &ReviewFrontend, token: &str, from: u8) -> &'static str {
    match front.tokens.authenticate(token, client(from)).await {
        Ok(Some(_)) => "known",
        Ok(None) => "unknown",
        Err(ReviewFailure::Throttled) => "throttled",
        Err(_) => "failed",
    }
}

#[tokio::test]
async fn unknown_tokens_cost_their_sender_and_not_the_api_server() {
    let front = front(good, &[]);
    assert_eq!(told(&front, "good old", 9).await, "known");
    let mut throttled = 0;
    for at in 0..1_000 {
        throttled += usize::from(told(&front, &format!("bad {at}"), 1).await == "throttled");
    }
    // A burst of 20 and one per 3 s: whoever is that slow has a few more.
    let asked = front.server.asked() - 1;
    assert!((20..=25).contains(&asked) && throttled + asked == 1_000, "{asked} reviews, {throttled} refused");
    assert_eq!(told(&front, "good", 1).await, "throttled", "its own next token, too");
    assert_eq!(told(&front, "good", 2).await, "known", "another's is not refused for it");
    assert_eq!(told(&front, "good old", 1).await, "known", "what is known needs no review");
    let counted = [&front.metrics.throttled, &front.metrics.rejected, &front.metrics.authenticated];
    let counted = counted.map(prometheus::IntCounter::get).map(|n| usize::try_from(n).unwrap());
    assert_eq!(counted, [throttled + 1, asked, 2]);
}

#[tokio::test]
async fn unknown_tokens_from_everywhere_are_reviewed_at_a_fixed_rate() {
    let front = front(good, &[]);
    let clock = ServerClock::assume_local().local_clock();
    let start = clock.now();
    for at in 0..2_000_u32 {
        told(&front, &format!("bad {at}"), u8::try_from(at % 250).unwrap()).await;
    }
    let most = 51 + (clock.now() - start).as_millis() / 100;
    assert!(front.server.asked() as u128 <= most, "{} reviews, at most {most}", front.server.asked());
}

#[tokio::test]
async fn one_unknown_token_is_reviewed_once_however_often_and_from_wherever_it_comes() {
    let front = front(good, &[]);
    let many = (0..200).map(|from| told(&front, "bad", from));
    assert!(futures::future::join_all(many).await.iter().all(|told| *told == "unknown"));
    let many = (0..200).map(|from| told(&front, "good", from));
    assert!(futures::future::join_all(many).await.iter().all(|told| *told == "known"));
    assert_eq!(front.server.asked(), 2);
}

#[tokio::test]
async fn tokens_that_are_not_reviewed_push_none_out_that_were() {
    let front = front(good, &[]);
    assert_eq!(told(&front, "good", 1).await, "known");
    for at in 0..2 * REVIEW_CACHE_SIZE.get() {
        told(&front, &format!("bad {at}"), 2).await;
    }
    let asked = front.server.asked();
    assert_eq!(told(&front, "good", 1).await, "known");
    assert_eq!(front.server.asked(), asked);
}

#[tokio::test]
async fn a_failing_api_server_costs_nobody_their_tries_and_lets_nobody_in() {
    let front = front(|_, _| json!({ "code": 500, "status": "Failure", "message": "no", "reason": "" }), &[]);
    for _ in 0..40 {
        assert_eq!(told(&front, "good", 1).await, "failed");
    }
    front.server.set_answer(good);
    assert_eq!(told(&front, "good", 1).await, "known");
}

#[tokio::test]
async fn a_token_must_be_meant_for_one_of_the_audiences() {
    let mine = front(good, &["rollcall", "other"]);
    assert_eq!(told(&mine, "good", 1).await, "known");
    for (answer, word) in [
        (
            (|_, _| json!({ "status": { "authenticated": true, "user": {}, "audiences": ["theirs"] } }))
                as ReviewAnswer,
            "another's",
        ),
        (
            |_, _| json!({ "status": { "authenticated": true, "user": {} } }),
            "of a server that knows no audiences",
        ),
    ] {
        assert_eq!(told(&front(answer, &["rollcall"]), "good", 1).await, "unknown", "{word}");
    }
    let any = front(
        |_, review| {
            assert!(review["spec"].get("audiences").is_none(), "the API server's own is its default");
            json!({ "status": { "authenticated": true, "user": { "username": "a" } } })
        },
        &[],
    );
    assert_eq!(told(&any, "good", 1).await, "known");
}

#[tokio::test]
async fn a_path_is_asked_about_as_nonresource_urls_grant_it() {
    fn reader(_: &str, review: &Value) -> Value {
        let spec = &review["spec"];
        let allowed = spec["user"] == "prometheus" && spec["resourceAttributes"].is_null();
        let path = json!({ "verb": "get", "path": "/metrics" });
        json!({ "status": { "allowed": allowed && spec["nonResourceAttributes"] == path } })
    }
    let server = ReviewServer::new(reader);
    let rights = AccessAuthorizer::new(server.client(), ServerClock::assume_local().local_clock());
    for (name, may) in [("prometheus", true), ("somebody", false)] {
        let user = ReviewedUser(json!({ "username": name }).to_string().into());
        for _ in 0..3 {
            assert_eq!(rights.is_allowed(&user, ReviewedRight::Path("/metrics")).await, Ok(may));
        }
    }
    assert_eq!(server.asked(), 2);
}

#[tokio::test]
async fn one_users_questions_are_bounded_and_what_is_kept_is_evicted_one_by_one() {
    let server = ReviewServer::new(|_, _| json!({ "status": { "allowed": true } }));
    let rights = AccessAuthorizer::new(server.client(), ServerClock::assume_local().local_clock());
    let user = |name: usize| ReviewedUser(json!({ "username": name.to_string() }).to_string().into());
    let right = |namespace: usize| {
        let (group, resource, namespace) = (String::new(), "pods".to_owned(), namespace.to_string());
        ReviewedRight::Resource(AccessRight { verb: "list", group, resource, namespace, name: String::new() })
    };
    let mut asked = 0;
    while rights.is_allowed(&user(0), right(asked)).await == Ok(true) {
        asked += 1;
        assert!(asked < 10_000, "nothing bounds them");
    }
    assert!(asked >= 2_048);
    assert_eq!(rights.is_allowed(&user(0), right(asked)).await, Err(ReviewFailure::Throttled));
    assert_eq!(rights.is_allowed(&user(1), right(asked)).await, Ok(true), "another user has their own");
    // More users than are kept: what was asked last is still known.
    let size = REVIEW_CACHE_SIZE.get();
    for name in 2..2 * size {
        rights.is_allowed(&user(name), right(0)).await.unwrap();
    }
    let before = server.asked();
    for name in size..2 * size {
        rights.is_allowed(&user(name), right(0)).await.unwrap();
    }
    assert_eq!(server.asked(), before, "some of the last were forgotten");
}
