//! Requests to the page's listener, byte by byte.

use std::cell::LazyCell;

use controller::PageFixture;
use readiness::rollup::ParentReason;
use serde_json::Value;
use tokio::runtime::Runtime;

/// Parents of the page: namespace, name and reason.
const PARENTS: [(&str, &str, ParentReason); 4] = [
    ("hidden-shop", "hidden-orders", ParentReason::AllChildrenReady),
    ("hidden-shop", "hidden-carts", ParentReason::ChildrenFailed),
    ("hidden-team", "hidden-\u{202e}mail", ParentReason::ChildrenProgressing),
    ("", "hidden-cluster", ParentReason::ChildrenPending),
];
/// Status codes that a client can bring about.
const STATUS_CODES: [u16; 15] = [200, 304, 400, 401, 403, 404, 405, 408, 413, 414, 421, 429, 431, 501, 505];

pub(crate) const PAGE_REQUEST_WORDS: &[&str] = &[
    " GET /api/v1/parents HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "!GET /api/v1/parents HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n\r\n",
    "/api/v1/parents/uid-1",
    "/api/v1/parents/uid-1/branch?label=Database.example.com&namespace=hidden-shop&name=hidden-carts",
    "/api/v1/parents/uid-1/around",
    "/api/v1/parents/uid-1/below",
    "/api/v1/parents/uid-1/rollout",
    "/api/v1/parents/by-name?label=Database.example.com&namespace=hidden-shop&name=hidden-carts",
    "/api/v1/transitions?since=-9223372036854775808",
    "/api/v1/stream",
    "?policy=databases",
    "&namespace=hidden-shop",
    "&verdict=Failed,Ready",
    "&q=hidden",
    "&limit=18446744073709551616",
    "&limit=1",
    "&continue=[0,\"\",\"\",\"\",\"\",\"\"]",
    "%5B0%2C%22%22%5D",
    "%",
    "%00",
    "%ff",
    "..",
    "//",
    "\r\n",
    "Host: localhost:8080\r\n",
    "Host: [::1]\r\n",
    "Host: evil.example\r\n",
    "Connection: close\r\n",
    "Content-Length: 18446744073709551615\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Expect: 100-continue\r\n",
    "HTTP/1.0",
    "POST ",
    "HEAD ",
    "OPTIONS * ",
];

/// The two pages, and the time in which they live.
struct Pages {
    runtime: Runtime,
    local: PageFixture,
    remote: PageFixture,
}

thread_local! {
    static PAGES: LazyCell<Pages> = const {
        LazyCell::new(|| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            let page = |is_local| runtime.block_on(PageFixture::new(is_local, &PARENTS)).unwrap();
            let (local, remote) = (page(true), page(false));
            Pages { runtime, local, remote }
        })
    };
}

/// The lowest bit of the first byte chooses the page that needs tokens. Every answer is one of HTTP, by a status that a
/// client can bring about; names of parents are told on loopback alone, and to a client that names this machine.
pub(crate) fn run(data: &[u8]) {
    let Some((choice, request)) = data.split_first() else { return };
    let needs_token = choice & 1 == 1;
    let answer = PAGES.with(|pages| {
        let page = if needs_token { &pages.remote } else { &pages.local };
        pages.runtime.block_on(page.exchange(request))
    });
    let answer = String::from_utf8_lossy(&answer);
    if answer.is_empty() {
        return;
    }
    let code =
        answer.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).and_then(|code| code.parse().ok());
    assert!(code.is_some_and(|code| STATUS_CODES.contains(&code)), "{answer}");
    if answer.contains("hidden-orders") {
        let asked = String::from_utf8_lossy(request).to_lowercase();
        assert!(!needs_token, "told without a token: {answer}");
        assert!(
            ["localhost", "127.", "::", "::1"].iter().any(|name| asked.contains(name)),
            "told to {asked}"
        );
    }
    if let Some((head, body)) = answer.split_once("\r\n\r\n") {
        check_list(head, body);
    }
}

/// The first answer, if it is a list: as many rows as are said to match or were asked for, worst first.
fn check_list(head: &str, body: &str) {
    if !head.contains("application/json") {
        return;
    }
    let Some(Ok(answer)) = serde_json::Deserializer::from_str(body).into_iter::<Value>().next() else {
        // `HEAD` has the head alone.
        assert!(body.is_empty() || body.starts_with("HTTP/1."), "{body}");
        return;
    };
    let Some(rows) = answer["parents"].as_array() else { return };
    let matching = answer["matching"].as_u64().unwrap();
    assert!(rows.len() as u64 <= matching && matching <= PARENTS.len() as u64, "{answer}");
    assert!(rows.iter().all(|row| row["verdict"].is_string() && row["name"].is_string()), "{answer}");
}
