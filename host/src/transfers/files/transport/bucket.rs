//! A folder of an object store. A file appears in one step, or not at all, and never in the place of
//! another.

use futures::StreamExt as _;
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode, PutPayload};

use crate::rails::bucket::{Bucket, words};

use super::{Entry, LISTED_MAX};

/// A folder of a store that was reached: its bucket is there, and lets us in.
pub(super) struct Opened<'a>(&'a Bucket);

impl<'a> Opened<'a> {
    pub(super) async fn open(bucket: &'a Bucket) -> Result<Self, String> {
        match bucket.store.list(Some(&bucket.folder)).next().await {
            Some(Err(cause)) => Err(failed("looking into the bucket", &cause)),
            Some(Ok(_)) | None => Ok(Self(bucket)),
        }
    }

    fn path(&self, name: &str) -> Path {
        self.0.folder.clone().join(name)
    }

    pub(super) async fn stat(&self, name: &str) -> Result<Option<Entry>, String> {
        match self.0.store.head(&self.path(name)).await {
            Ok(found) => Ok(Some(entry(name.to_owned(), &found))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(cause) => Err(failed("looking for a file", &cause)),
        }
    }

    pub(super) async fn list(&self) -> Result<Vec<Entry>, String> {
        let (mut entries, mut listed) = (Vec::new(), 0);
        let mut found = self.0.store.list(Some(&self.0.folder));
        while let Some(found) = found.next().await {
            let found = found.map_err(|cause| failed("reading the folder", &cause))?;
            listed += 1;
            if listed > LISTED_MAX {
                return Err("reading the folder: it has too many files".to_owned());
            }
            // What lies in a folder of its own is not in this one.
            let mut below = found.location.prefix_match(&self.0.folder).into_iter().flatten();
            if let (Some(name), None) = (below.next(), below.next()) {
                entries.push(entry(name.as_ref().to_owned(), &found));
            }
        }
        Ok(entries)
    }

    pub(super) async fn read(&self, name: &str, bytes: usize) -> Result<Vec<u8>, String> {
        let words = |cause: Error| failed("reading a file", &cause);
        let found = self.0.store.get(&self.path(name)).await.map_err(words)?;
        if usize::try_from(found.meta.size) != Ok(bytes) {
            return Err("reading a file: it has changed".to_owned());
        }
        Ok(found.bytes().await.map_err(words)?.to_vec())
    }

    /// Puts a file there, unless one of this name is.
    pub(super) async fn put(&self, name: &str, content: &[u8]) -> Result<(), String> {
        let (path, payload) = (self.path(name), PutPayload::from(content.to_vec()));
        let put = self.0.store.put_opts(&path, payload, PutMode::Create.into()).await;
        put.map(drop).map_err(|cause| failed("putting a file", &cause))
    }
}

fn entry(name: String, found: &ObjectMeta) -> Entry {
    Entry { name, bytes: found.size, changed_s: found.last_modified.timestamp() }
}

fn failed(what: &str, cause: &Error) -> String {
    format!("{what}: {}", words(cause))
}
