//! A registry on loopback that serves one OCI layout, as far as a client that pulls asks.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A registry that runs until it is dropped.
pub struct OciRegistry {
    /// Its address.
    pub address: String,
    server: JoinHandle<()>,
}

impl OciRegistry {
    /// Serves the layout in this folder, under whatever name it is asked for.
    pub async fn serve_layout(layout: PathBuf) -> Result<OciRegistry> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let app = axum::Router::new().fallback(answer_pull).with_state(Arc::new(layout));
        let server = tokio::spawn(async move {
            // It ends with the test.
            let _ = axum::serve(listener, app).await;
        });
        Ok(OciRegistry { address, server })
    }
}

impl Drop for OciRegistry {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer_pull(State(layout): State<Arc<PathBuf>>, request: Request) -> Response {
    let path = request.uri().path();
    let found = find_content(&layout, path).ok().flatten();
    let answer = Response::builder();
    let answer = match found {
        _ if path == "/v2/" => answer.body(Body::empty()),
        None => answer.status(StatusCode::NOT_FOUND).body(Body::empty()),
        Some((media_type, digest, content)) => answer
            .header("content-type", media_type)
            .header("docker-content-digest", digest)
            .header("content-length", content.len())
            .body(Body::from(content)),
    };
    answer.unwrap_or_default()
}

/// Media type, digest and content of what a path names: a manifest by its tag or digest, or a blob.
fn find_content(layout: &Path, path: &str) -> Result<Option<(String, String, Vec<u8>)>> {
    let Some((rest, reference)) = path.rsplit_once('/') else { return Ok(None) };
    let blob = |digest: &str| -> Result<Vec<u8>> {
        let hash = digest.strip_prefix("sha256:").context("a digest")?;
        Ok(fs::read(layout.join("blobs/sha256").join(hash))?)
    };
    if rest.ends_with("/blobs") {
        let content = blob(reference)?;
        return Ok(Some(("application/octet-stream".to_owned(), reference.to_owned(), content)));
    }
    let index: Value = serde_json::from_slice(&fs::read(layout.join("index.json"))?)?;
    let named = &index["manifests"][0];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let digest = text(&named["digest"]);
    let is_named =
        reference == digest || named["annotations"]["org.opencontainers.image.ref.name"] == reference;
    if !is_named {
        return Ok(None);
    }
    let content = blob(&digest)?;
    Ok(Some((text(&named["mediaType"]), digest, content)))
}
