//! A minimal client for both servers: HTTP/1.1, plain or TLS, with a bearer token.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Longest time a server may take to answer a request. 60 s.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Address of a server, with the credentials to reach it.
#[derive(Clone, Debug, Default)]
pub struct ServerEndpoint {
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    pub url: String,
    /// Sent as `Authorization: Bearer`.
    pub token: Option<String>,
    /// PEM certificates of the authorities that a TLS server is verified against.
    pub ca: Option<Vec<u8>>,
}

/// A request to send.
#[derive(Clone, Debug, Default)]
pub(super) struct SentRequest {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) content_type: Option<String>,
    pub(super) accept: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) body: Vec<u8>,
}

impl ServerEndpoint {
    async fn connect(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        let (tls, address) = match self.url.split_once("://") {
            Some(("https", address)) => (true, address),
            Some(("http", address)) => (false, address),
            _ => return Err(io::Error::other(format!("not an http:// or https:// URL: {}", self.url))),
        };
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        if tls {
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host).to_owned();
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            handshake_over(TlsConnector::from(Arc::new(self.tls_config()?)).connect(name, socket).await?)
                .await
        } else {
            handshake_over(socket).await
        }
    }

    fn tls_config(&self) -> io::Result<ClientConfig> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.ca.as_deref().unwrap_or_default()) {
            roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
        }
        Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
    }

    /// Sends a request on a connection of its own and returns the response before its body is read.
    pub(super) async fn open_response(&self, sent: &SentRequest) -> io::Result<hyper::Response<Incoming>> {
        let mut connection = self.connect().await?;
        let host = self.url.split_once("://").map_or("", |(_, host)| host);
        let mut request =
            hyper::Request::builder().method(sent.method.as_str()).uri(&sent.target).header("host", host);
        let token = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let headers = [
            ("authorization", &token),
            ("content-type", &sent.content_type),
            ("accept", &sent.accept),
            ("user-agent", &sent.agent),
        ];
        for (name, value) in headers {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let request = request.body(Full::new(Bytes::from(sent.body.clone()))).map_err(io::Error::other)?;
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, connection.send_request(request)).await?;
        answer.map_err(io::Error::other)
    }

    /// Sends a request and reads the whole response.
    pub(super) async fn send_request(&self, sent: &SentRequest) -> io::Result<(u16, Bytes)> {
        let response = self.open_response(sent).await?;
        let status = response.status().as_u16();
        let body = tokio::time::timeout(ANSWER_TIMEOUT, response.into_body().collect()).await?;
        Ok((status, body.map_err(io::Error::other)?.to_bytes()))
    }
}

async fn handshake_over<T>(stream: T) -> io::Result<SendRequest<Full<Bytes>>>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // The task ends with the connection's last request; an error shows up in that request.
    tokio::spawn(connection);
    Ok(sender)
}
