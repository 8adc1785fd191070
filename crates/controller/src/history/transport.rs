//! HTTP transport of object stores: the HTTP client and TLS stack already used for the API server, instead of a second
//! one.

use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::TokioExecutor;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientOptions, Error, Result};

/// Timeout until a store begins to respond. 30 s.
const STORE_RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Transport; see the module.
#[derive(Debug)]
pub(super) struct StoreTransport;

#[derive(Debug)]
struct StoreHttpService(Client<HttpsConnector<Tcp>, HttpRequestBody>);

impl HttpConnector for StoreTransport {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let builder = HttpsConnectorBuilder::new().with_native_roots();
        let builder = builder.map_err(|source| Error::Generic { store: "TLS", source: Box::new(source) })?;
        let plain =
            options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|allow| allow == "true");
        let builder = if plain { builder.https_or_http() } else { builder.https_only() };
        let client = Client::builder(TokioExecutor::new()).build(builder.enable_http1().build());
        Ok(HttpClient::new(StoreHttpService(client)))
    }
}

#[async_trait]
impl HttpService for StoreHttpService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answered = tokio::time::timeout(STORE_RESPONSE_TIMEOUT, self.0.request(request)).await;
        let answered = answered.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?;
        let response = answered.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
            HttpError::new(kind, error)
        })?;
        let read = |error| HttpError::new(HttpErrorKind::Interrupted, error);
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(read))))
    }
}
