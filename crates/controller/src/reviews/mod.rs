//! Authentication and authorization of the listener's clients by the API server: TokenReview and SubjectAccessReview.
//!
//! **Invariant:** a client's failures cost that client. However many unknown tokens arrive, and from wherever, the API
//! server is asked at most at a fixed rate, and who was authenticated before is not kept waiting by those who were not.

mod budget;
mod review_client;
#[cfg(test)]
pub(crate) mod review_server;
mod rights;
#[cfg(test)]
mod tests;
mod tokens;

pub(crate) use budget::{ClientBudgets, RequestBudget, SharedBudget};
pub(crate) use review_client::ReviewFailure;
pub(crate) use rights::{AccessAuthorizer, AccessRight, ReviewedRight};
pub(crate) use tokens::{ReviewedUser, TokenAuthenticator, bearer_token};
