//! Authentication and authorization of the page's viewers.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use rustc_hash::FxHashSet;

use super::refusal::PageRefusal;
use crate::listener::ClientAddress;
use crate::reviews::{
    AccessAuthorizer, AccessRight, ReviewFailure, ReviewedRight, ReviewedUser, TokenAuthenticator,
    bearer_token,
};

/// Viewer of the page.
#[derive(Clone, Debug)]
pub(crate) enum PageViewer {
    /// Any client that can reach the loopback address of this machine.
    Local,
    /// Client with a valid token.
    User(ReviewedUser),
}

/// What a request says about who sent it.
#[derive(Clone, Debug)]
pub(crate) struct ViewerRequest {
    /// Headers, with the token and the host name.
    pub(super) headers: HeaderMap,
    /// Address from which it was sent.
    pub(super) address: ClientAddress,
}

impl<S: Sync> FromRequestParts<S> for ViewerRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<ViewerRequest, Infallible> {
        // The listener adds the address to every request; all requests without one would share a budget.
        let address = parts.extensions.get().copied();
        let address = address.unwrap_or_else(|| IpAddr::V4(Ipv4Addr::UNSPECIFIED).into());
        Ok(ViewerRequest { headers: parts.headers.clone(), address })
    }
}

/// Reviews viewers of the page, and clients that read metrics.
#[derive(Clone)]
pub(crate) struct PageAuthorizer {
    /// The listener is on loopback: a client is on this machine, or was let in from there.
    local: bool,
    tokens: Arc<TokenAuthenticator>,
    rights: Arc<AccessAuthorizer>,
}

impl PageAuthorizer {
    pub(crate) fn new(local: bool, tokens: TokenAuthenticator, rights: AccessAuthorizer) -> PageAuthorizer {
        PageAuthorizer { local, tokens: Arc::new(tokens), rights: Arc::new(rights) }
    }

    /// Identifies the viewer.
    pub(crate) async fn identify_viewer(&self, request: &ViewerRequest) -> Result<PageViewer, PageRefusal> {
        if self.local {
            return if is_local_host(&request.headers) {
                Ok(PageViewer::Local)
            } else {
                Err(PageRefusal::Misdirected)
            };
        }
        let token = bearer_token(&request.headers).ok_or(PageRefusal::NoToken)?;
        let user = self.tokens.authenticate(token, request.address).await?;
        user.map(PageViewer::User).ok_or(PageRefusal::WrongToken)
    }

    /// Fails unless the request may read metrics: its user must be permitted to `get` the path `/metrics`.
    pub(crate) async fn authorize_metrics(&self, request: &ViewerRequest) -> Result<(), PageRefusal> {
        if self.local {
            return Ok(());
        }
        let PageViewer::User(user) = self.identify_viewer(request).await? else { return Ok(()) };
        let allowed = self.rights.is_allowed(&user, ReviewedRight::Path("/metrics")).await?;
        if allowed { Ok(()) } else { Err(PageRefusal::MetricsForbidden) }
    }

    /// Subset of the rights that `viewer` has, and whether some were skipped because there were too many.
    pub(super) async fn allowed_rights(
        &self,
        viewer: &PageViewer,
        rights: Vec<AccessRight>,
    ) -> Result<(FxHashSet<usize>, bool), PageRefusal> {
        let PageViewer::User(user) = viewer else { return Ok(((0..rights.len()).collect(), false)) };
        let rights = rights.into_iter().map(ReviewedRight::Resource).collect();
        Ok(self.rights.allowed_rights(user, rights).await?)
    }

    /// True if `viewer` has this right.
    pub(super) async fn is_allowed(
        &self,
        viewer: &PageViewer,
        right: AccessRight,
    ) -> Result<bool, PageRefusal> {
        Ok(!self.allowed_rights(viewer, vec![right]).await?.0.is_empty())
    }
}

impl From<ReviewFailure> for PageRefusal {
    fn from(failure: ReviewFailure) -> Self {
        match failure {
            ReviewFailure::Forbidden => PageRefusal::ReviewForbidden,
            ReviewFailure::Unreachable => PageRefusal::Unreachable,
            ReviewFailure::Throttled => PageRefusal::TooManyReviews,
        }
    }
}

/// Rejects requests under foreign host names, so that a website cannot reach this listener by DNS rebinding.
fn is_local_host(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let address = name.parse::<std::net::IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn names_of_this_machine_are_local_and_others_are_not() {
        for host in ["localhost", "localhost:8080", "127.0.0.1:80", "127.8.8.8", "[::1]:8080", "LocalHost"] {
            assert!(is_local_host(&headers(header::HOST, host)), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:8080", "10.0.0.1", "[2001:db8::1]:80", ""] {
            assert!(!is_local_host(&headers(header::HOST, host)), "{host}");
        }
    }
}
