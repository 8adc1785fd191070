//! A request and its response as plain values.

use serde_json::Value;

/// Milliseconds since the Unix epoch. Always given, never read from a clock.
pub type Millis = i64;

/// What a client sends, whatever carried it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// `GET`, `POST`, `PUT`, `PATCH`, `DELETE`.
    pub method: String,
    /// The path without its query, percent-decoded.
    pub path: String,
    /// The query, percent-decoded, in the order sent.
    pub query: Vec<(String, String)>,
    /// The `Content-Type` header; left out means JSON.
    pub content_type: Option<String>,
    /// The `Accept` header.
    pub accept: Option<String>,
    /// The `User-Agent` header: names the field manager where the query does not.
    pub user_agent: Option<String>,
    /// The body as sent.
    pub body: Vec<u8>,
    /// What is answered from the watch cache sees no revision above this one: a replica that lags. Never set by a client.
    pub as_of: Option<u64>,
}

impl Request {
    /// A request without a body. What follows `?` in `target` is its query, taken literally.
    pub fn new(method: &str, target: &str) -> Request {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(own).collect();
        Request { method: method.into(), path: path.into(), query, ..Request::default() }
    }

    /// A request with a JSON body.
    pub fn with(method: &str, target: &str, content_type: &str, body: &Value) -> Request {
        Request {
            content_type: Some(content_type.into()),
            body: body.to_string().into_bytes(),
            ..Request::new(method, target)
        }
    }

    /// The same, sent by this client.
    pub fn by(mut self, user_agent: &str) -> Request {
        self.user_agent = Some(user_agent.into());
        self
    }

    /// The first value of a query parameter, where it is not empty.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// Whether a boolean query parameter is set; `?watch` alone counts, as it does for the real server.
    pub fn flag(&self, name: &str) -> bool {
        self.query.iter().any(|(key, value)| key == name && !matches!(value.as_str(), "false" | "0"))
    }

    /// Whether this asks for a stream, so that [`super::Store::open_watch`] and not `handle` must answer it.
    pub fn is_watch(&self) -> bool {
        self.method == "GET" && self.flag("watch")
    }

    /// Who writes: `fieldManager`, else what comes before the `/` of the user agent.
    pub(crate) fn manager(&self) -> String {
        let agent = || {
            self.user_agent
                .as_deref()
                .and_then(|agent| agent.split('/').next())
                .filter(|name| !name.is_empty())
        };
        let name = self.param("fieldManager").or_else(agent).unwrap_or("unknown");
        name.chars().filter(|c| !c.is_control()).take(128).collect()
    }

    pub(crate) fn dry(&self) -> bool {
        self.query.iter().any(|(key, value)| key == "dryRun" && value == "All")
    }
}

fn own((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Headers beyond the length; the content type is among them.
    pub headers: Vec<(&'static str, String)>,
    /// The body, ready to send.
    pub body: Vec<u8>,
}

impl Response {
    /// A JSON answer.
    pub fn json(status: u16, body: &Value) -> Response {
        Response {
            status,
            headers: vec![("content-type", "application/json".into())],
            body: super::literal::written(body),
        }
    }

    /// A plain-text answer.
    pub fn text(status: u16, body: &str) -> Response {
        Response {
            status,
            headers: vec![("content-type", "text/plain; charset=utf-8".into())],
            body: body.as_bytes().to_vec(),
        }
    }

    /// The body as JSON; null where it is none.
    pub fn value(&self) -> Value {
        super::json::parse(&self.body).unwrap_or(Value::Null)
    }

    /// Whether the request did what it asked for.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}
