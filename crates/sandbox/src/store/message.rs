//! A request and its response as plain values.

use serde::Serialize;
use serde_json::Value;

/// Milliseconds since the Unix epoch. Always passed in, never read from a clock.
pub type EpochMillis = i64;

/// A client's request, independent of its transport.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreRequest {
    /// `GET`, `POST`, `PUT`, `PATCH`, `DELETE`.
    pub method: String,
    /// The path without its query, percent-decoded.
    pub path: String,
    /// The query, percent-decoded, in the order sent.
    pub query: Vec<(String, String)>,
    /// The `Content-Type` header. Defaults to JSON.
    pub content_type: Option<String>,
    /// The `Accept` header.
    pub accept: Option<String>,
    /// The `User-Agent` header; the field manager if the query has none.
    pub user_agent: Option<String>,
    /// The raw body.
    pub body: Vec<u8>,
    /// Newest revision that answers from the watch cache may show: set for a lagging replica, never by a client.
    pub as_of: Option<u64>,
}

impl StoreRequest {
    /// A request without a body. The part of `target` after `?` is its query, taken literally.
    pub fn new(method: &str, target: &str) -> StoreRequest {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(to_owned_pair).collect();
        StoreRequest { method: method.into(), path: path.into(), query, ..StoreRequest::default() }
    }

    /// A request with a JSON body.
    pub fn with_body(method: &str, target: &str, content_type: &str, body: &Value) -> StoreRequest {
        StoreRequest {
            content_type: Some(content_type.into()),
            body: body.to_string().into_bytes(),
            ..StoreRequest::new(method, target)
        }
    }

    /// Sets the user agent.
    pub fn with_user_agent(mut self, user_agent: &str) -> StoreRequest {
        self.user_agent = Some(user_agent.into());
        self
    }

    /// Returns the first value of a query parameter, if it is not empty.
    pub fn query_param(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// Returns `true` if a boolean query parameter is set; `?watch` alone counts, as it does for the real server.
    pub fn query_flag(&self, name: &str) -> bool {
        self.query.iter().any(|(key, value)| key == name && !matches!(value.as_str(), "false" | "0"))
    }

    /// Returns `true` if the request opens a watch, which [`super::SandboxStore::open_watch`] must answer, not
    /// `handle_request`.
    pub fn is_watch(&self) -> bool {
        self.method == "GET" && self.query_flag("watch")
    }

    /// Returns the field manager: `fieldManager`, else the part of the user agent before the `/`.
    pub(crate) fn field_manager(&self) -> String {
        let agent = || {
            self.user_agent
                .as_deref()
                .and_then(|agent| agent.split('/').next())
                .filter(|name| !name.is_empty())
        };
        let name = self.query_param("fieldManager").or_else(agent).unwrap_or("unknown");
        name.chars().filter(|c| !c.is_control()).take(128).collect()
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.query.iter().any(|(key, value)| key == "dryRun" && value == "All")
    }
}

fn to_owned_pair((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// The server's response.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreResponse {
    /// The HTTP status.
    pub status: u16,
    /// Headers other than the length; the content type is among them.
    pub headers: Vec<(&'static str, String)>,
    /// The body, ready to send.
    pub body: Vec<u8>,
}

impl StoreResponse {
    /// A JSON response.
    pub fn json(status: u16, body: &impl Serialize) -> StoreResponse {
        StoreResponse {
            status,
            headers: vec![("content-type", "application/json".into())],
            body: super::server_json::to_server_json(body),
        }
    }

    /// A plain-text response.
    pub fn text(status: u16, body: &str) -> StoreResponse {
        StoreResponse {
            status,
            headers: vec![("content-type", "text/plain; charset=utf-8".into())],
            body: body.as_bytes().to_vec(),
        }
    }

    /// Returns the body as JSON; null if it is not JSON.
    pub fn body_value(&self) -> Value {
        super::json::parse_json(&self.body).unwrap_or(Value::Null)
    }

    /// Returns `true` if the HTTP status is a success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}
