//! A request as the failing server reads it.

use bytes::Bytes;
use http::Method;

/// What is asked.
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Bytes,
}
