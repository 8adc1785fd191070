//! Object stores of clouds: S3 and what is compatible with it, Google's and Azure's.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{ObjectStore, ObjectStoreScheme, RetryConfig};

use super::transport::StoreTransport;

/// Opens the store of a URL of this scheme, with the credentials that the store's own tools would use.
pub(super) fn open_cloud(scheme: &ObjectStoreScheme, url: &str) -> anyhow::Result<Arc<dyn ObjectStore>> {
    Ok(match scheme {
        ObjectStoreScheme::AmazonS3 => build_s3(AmazonS3Builder::from_env(), url)?,
        ObjectStoreScheme::GoogleCloudStorage => build_gcs(GoogleCloudStorageBuilder::from_env(), url)?,
        ObjectStoreScheme::MicrosoftAzure => Arc::new(
            MicrosoftAzureBuilder::from_env()
                .with_url(url)
                .with_retry(retry_config())
                .with_http_connector(StoreTransport)
                .build()?,
        ),
        other => bail!("{other:?} is not a cloud"),
    })
}

pub(super) fn build_s3(builder: AmazonS3Builder, url: &str) -> object_store::Result<Arc<dyn ObjectStore>> {
    let builder = builder.with_url(url).with_retry(retry_config()).with_http_connector(StoreTransport);
    Ok(Arc::new(builder.build()?))
}

pub(super) fn build_gcs(
    builder: GoogleCloudStorageBuilder,
    url: &str,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let builder = builder.with_url(url).with_retry(retry_config()).with_http_connector(StoreTransport);
    Ok(Arc::new(builder.build()?))
}

/// Few retries: longer waits are up to the caller, which logs and counts them.
fn retry_config() -> RetryConfig {
    RetryConfig { max_retries: 2, retry_timeout: Duration::from_secs(20), ..RetryConfig::default() }
}
