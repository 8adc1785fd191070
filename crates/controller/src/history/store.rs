//! Which object store a URL means, with the credentials that its own tools would use.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreScheme, RetryConfig};
use url::Url;

use super::transport::Transport;

/// An object store and a place in it.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) prefix: Path,
    /// The URL, as it was given.
    pub(super) url: String,
}

impl Store {
    /// `s3://bucket/prefix`, `gs://…`, `az://…`, an https URL of one of these services, `file:///folder`, or the path of a
    /// folder. Credentials and endpoints come from the environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`) or from the machine's
    /// own identity.
    pub fn open(url: &str) -> anyhow::Result<Store> {
        let open = || match Url::parse(url) {
            Ok(parsed) if parsed.scheme() != "file" => remote(url, &parsed),
            Ok(parsed) => match parsed.to_file_path() {
                Ok(folder) => local(&folder),
                Err(()) => bail!("a file URL has three slashes: file:///folder"),
            },
            Err(url::ParseError::RelativeUrlWithoutBase) => local(std::path::Path::new(url)),
            Err(error) => Err(error.into()),
        };
        let (objects, prefix) = open().with_context(|| format!("failed to open the history at {url}"))?;
        Ok(Store { objects, prefix, url: url.to_owned() })
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A place below the prefix.
    pub(super) fn at(&self, key: &str) -> Path {
        key.split('/').fold(self.prefix.clone(), Path::join)
    }
}

type Opened = (Arc<dyn ObjectStore>, Path);

fn local(folder: &std::path::Path) -> anyhow::Result<Opened> {
    std::fs::create_dir_all(folder)?;
    Ok((Arc::new(LocalFileSystem::new_with_prefix(folder)?), Path::default()))
}

fn remote(url: &str, parsed: &Url) -> anyhow::Result<Opened> {
    let (scheme, prefix) = ObjectStoreScheme::parse(parsed)
        .context("not the URL of an object store: s3://bucket/prefix, gs://…, az://…, file:///folder")?;
    let objects: Arc<dyn ObjectStore> = match scheme {
        ObjectStoreScheme::AmazonS3 => s3(AmazonS3Builder::from_env(), url)?,
        ObjectStoreScheme::GoogleCloudStorage => gs(GoogleCloudStorageBuilder::from_env(), url)?,
        ObjectStoreScheme::MicrosoftAzure => Arc::new(
            MicrosoftAzureBuilder::from_env()
                .with_url(url)
                .with_retry(retry())
                .with_http_connector(Transport)
                .build()?,
        ),
        _ => bail!("not the URL of an object store: s3://bucket/prefix, gs://…, az://…, file:///folder"),
    };
    Ok((objects, prefix))
}

pub(super) fn s3(builder: AmazonS3Builder, url: &str) -> object_store::Result<Arc<dyn ObjectStore>> {
    let builder = builder.with_url(url).with_retry(retry()).with_http_connector(Transport);
    Ok(Arc::new(builder.build()?))
}

pub(super) fn gs(
    builder: GoogleCloudStorageBuilder,
    url: &str,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let builder = builder.with_url(url).with_retry(retry()).with_http_connector(Transport);
    Ok(Arc::new(builder.build()?))
}

/// Whoever waits longer than that does so where it can be told and counted.
fn retry() -> RetryConfig {
    RetryConfig { max_retries: 2, retry_timeout: Duration::from_secs(20), ..RetryConfig::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_store_is_said_with_what_would_be_one() {
        for url in ["ftp://host/x", "http://host/x", "https://host/x", "s3:", "file://host/x"] {
            let error = format!("{:#}", Store::open(url).unwrap_err());
            assert!(error.contains(url), "{error}");
        }
        let error = format!("{:#}", Store::open("http://host/x").unwrap_err());
        assert!(error.contains("s3://bucket/prefix"), "{error}");
    }

    #[test]
    fn a_key_lies_below_the_prefix_and_is_spelled_as_it_is() {
        let folder = std::env::temp_dir().join(format!("rollcall-store-{}", std::process::id()));
        for url in [folder.display().to_string(), format!("file://{}", folder.display())] {
            let store = Store::open(&url).unwrap();
            assert_eq!(store.at("date=2026-11-21/a.gz").to_string(), "date=2026-11-21/a.gz");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
