//! Object store of a URL, with the credentials that the store's own tools would use.

use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, ObjectStoreScheme};
use url::Url;

#[cfg(feature = "cloud-history")]
use super::cloud::open_cloud;

/// An object store, and a prefix in it.
#[derive(Clone, Debug)]
pub struct HistoryStore {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) prefix: Path,
    /// URL as given.
    pub(super) url: String,
}

impl HistoryStore {
    /// Opens a history to write it: the folder of a file system is created.
    ///
    /// `url` is `s3://bucket/prefix`, `gs://…`, `az://…`, an https URL of one of these services, `file:///folder`, or the
    /// path of a folder. Credentials and endpoints come from the environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`) or from
    /// the machine's own identity.
    pub fn open(url: &str) -> anyhow::Result<HistoryStore> {
        let create = |folder: &std::path::Path| Ok(std::fs::create_dir_all(folder)?);
        HistoryStore::open_prepared(url, create)
            .with_context(|| format!("failed to open the history at {url}"))
    }

    /// Opens a history to read it. A folder that is not there is an error: nobody wrote one.
    pub fn open_existing(url: &str) -> anyhow::Result<HistoryStore> {
        HistoryStore::open_prepared(url, expect_folder)
            .with_context(|| format!("failed to read the history at {url}"))
    }

    /// Opens a history, once a folder of a file system was prepared for it.
    fn open_prepared(
        url: &str,
        prepare: impl Fn(&std::path::Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<HistoryStore> {
        let folder = match Url::parse(url) {
            Ok(parsed) if parsed.scheme() != "file" => {
                let (objects, prefix) = open_remote(url, &parsed)?;
                return Ok(HistoryStore { objects, prefix, url: url.to_owned() });
            }
            Ok(parsed) => match parsed.to_file_path() {
                Ok(folder) => folder,
                Err(()) => bail!("a file URL has three slashes: file:///folder"),
            },
            Err(url::ParseError::RelativeUrlWithoutBase) => url.into(),
            Err(error) => return Err(error.into()),
        };
        prepare(&folder)?;
        let objects = Arc::new(LocalFileSystem::new_with_prefix(&folder)?);
        Ok(HistoryStore { objects, prefix: Path::default(), url: url.to_owned() })
    }

    /// URL of the store.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Path of a key below the prefix.
    pub(super) fn object_path(&self, key: &str) -> Path {
        key.split('/').fold(self.prefix.clone(), Path::join)
    }

    /// Days of which there are batches, as `2026-11-21`, in their order. However many there are, the store is asked once.
    pub(super) async fn list_days(&self) -> anyhow::Result<Vec<String>> {
        let prefix = Some(&self.prefix).filter(|prefix| !prefix.as_ref().is_empty());
        let listed = self.objects.list_with_delimiter(prefix).await;
        let folders = listed.with_context(|| format!("failed to list the history at {}", self.url))?;
        let day = |folder: &Path| Some(folder.filename()?.strip_prefix(DAY_FOLDER)?.to_owned());
        let mut days: Vec<String> = folders.common_prefixes.iter().filter_map(day).collect();
        days.sort();
        Ok(days)
    }

    /// Keys of the batches in a folder that follow `first` in the order of their names.
    pub(super) async fn list_batches(&self, folder: &str, first: &str) -> anyhow::Result<Vec<Path>> {
        let (folder, first) = (self.object_path(folder), self.object_path(first));
        let listed = self.objects.list_with_offset(Some(&folder), &first);
        let keys = listed
            .try_filter_map(|object| {
                let ours = object.location.as_ref().ends_with(".ndjson.gz");
                async move { Ok(ours.then_some(object.location)) }
            })
            .try_collect()
            .await;
        keys.with_context(|| format!("failed to list the history at {}", self.url))
    }

    /// Reads a batch.
    pub(super) async fn get_batch(&self, key: &Path) -> anyhow::Result<bytes::Bytes> {
        Ok(self.objects.get(key).await?.bytes().await?)
    }
}

/// Beginning of the name of a day's folder.
pub(super) const DAY_FOLDER: &str = "date=";

type OpenedStore = (Arc<dyn ObjectStore>, Path);

const NOT_A_STORE: &str =
    "not the URL of an object store; use one of s3://bucket/prefix, gs://…, az://…, file:///folder";

fn expect_folder(folder: &std::path::Path) -> anyhow::Result<()> {
    ensure!(
        folder.is_dir(),
        "there is no folder {}; name the one that `rollcall run --history` fills, or the URL of its object store: \
         s3://bucket/prefix, gs://…, az://…",
        folder.display()
    );
    Ok(())
}

fn open_remote(url: &str, parsed: &Url) -> anyhow::Result<OpenedStore> {
    let (scheme, prefix) = ObjectStoreScheme::parse(parsed).context(NOT_A_STORE)?;
    let is_cloud = matches!(
        scheme,
        ObjectStoreScheme::AmazonS3
            | ObjectStoreScheme::GoogleCloudStorage
            | ObjectStoreScheme::MicrosoftAzure
    );
    if !is_cloud {
        bail!(NOT_A_STORE);
    }
    Ok((open_cloud(&scheme, url)?, prefix))
}

/// Error of a program that was built without the stores of clouds.
#[cfg(not(feature = "cloud-history"))]
fn open_cloud(_: &ObjectStoreScheme, _: &str) -> anyhow::Result<Arc<dyn ObjectStore>> {
    bail!(
        "this rollcall was built without S3, Azure and Google; use the image, build it with \
         `cargo build --profile dist --features cloud-history`, or give a folder: file:///folder"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_store_is_said_with_what_would_be_one() {
        for url in ["ftp://host/x", "http://host/x", "https://host/x", "s3:", "file://host/x"] {
            let error = format!("{:#}", HistoryStore::open(url).unwrap_err());
            assert!(error.contains(url), "{error}");
        }
        let error = format!("{:#}", HistoryStore::open("http://host/x").unwrap_err());
        assert!(error.contains("s3://bucket/prefix"), "{error}");
    }

    #[test]
    fn a_key_lies_below_the_prefix_and_is_spelled_as_it_is() {
        let folder = std::env::temp_dir().join(format!("rollcall-store-{}", std::process::id()));
        for url in [folder.display().to_string(), format!("file://{}", folder.display())] {
            let store = HistoryStore::open(&url).unwrap();
            assert_eq!(store.object_path("date=2026-11-21/a.gz").to_string(), "date=2026-11-21/a.gz");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_read_is_not_made() {
        let folder = std::env::temp_dir().join(format!("rollcall-unread-{}", std::process::id()));
        let error = format!("{:#}", HistoryStore::open_existing(&folder.display().to_string()).unwrap_err());
        assert!(error.contains(&format!("there is no folder {}", folder.display())), "{error}");
        assert!(!folder.exists());
        HistoryStore::open(&folder.display().to_string()).unwrap();
        assert!(HistoryStore::open_existing(&folder.display().to_string()).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
