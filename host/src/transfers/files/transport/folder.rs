//! A folder on this machine.
//!
//! It is opened name by name from a folder that the configuration allows, and nothing on the way nor
//! in it may be a link: whoever may write there leads nowhere else.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::rails::file_transport::Folder;

use super::{Entry, LISTED_MAX};

/// What whoever collects files for the bank may do with them: it is in the group.
const MODE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP);

/// A folder that is open.
pub(super) struct Opened(Arc<OwnedFd>);

impl Opened {
    pub(super) async fn open(folder: &Folder) -> Result<Self, String> {
        let folder = folder.clone();
        blocking("opening the folder", move || {
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
            let mut open = rustix::fs::openat(CWD, &folder.root, flags, Mode::empty())?;
            for name in &folder.below {
                let flags = flags | OFlags::NOFOLLOW;
                open = rustix::fs::openat(&open, name.as_str(), flags, Mode::empty())?;
            }
            Ok(Self(Arc::new(open)))
        })
        .await
    }

    pub(super) async fn stat(&self, name: &str) -> Result<Option<Entry>, String> {
        let (folder, name) = (Arc::clone(&self.0), name.to_owned());
        blocking("looking for a file", move || {
            match rustix::fs::statat(&folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => match entry(name, &stat) {
                    Some(entry) => Ok(Some(entry)),
                    None => Err(io::Error::other("what lies there is no file")),
                },
                Err(Errno::NOENT) => Ok(None),
                Err(cause) => Err(cause.into()),
            }
        })
        .await
    }

    pub(super) async fn list(&self) -> Result<Vec<Entry>, String> {
        let folder = Arc::clone(&self.0);
        blocking("reading the folder", move || {
            let mut entries = Vec::new();
            for found in Dir::read_from(folder.as_fd())? {
                let found = found?;
                // A name that is no text is nobody's that a bank would send.
                let Ok(name) = found.file_name().to_str() else { continue };
                if name == "." || name == ".." {
                    continue;
                }
                if entries.len() == LISTED_MAX {
                    return Err(io::Error::other("it has too many files"));
                }
                match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => entries.extend(entry(name.to_owned(), &stat)),
                    // It was moved meanwhile.
                    Err(Errno::NOENT) => {}
                    Err(cause) => return Err(cause.into()),
                }
            }
            Ok(entries)
        })
        .await
    }

    pub(super) async fn read(&self, name: &str, bytes: usize) -> Result<Vec<u8>, String> {
        let (folder, name) = (Arc::clone(&self.0), name.to_owned());
        blocking("reading a file", move || {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&folder, name.as_str(), flags, Mode::empty())?;
            let file = fs::File::from(file);
            if !file.metadata()?.is_file() {
                return Err(io::Error::other("it is no file"));
            }
            let most = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(1);
            let mut content = Vec::with_capacity(bytes);
            file.take(most).read_to_end(&mut content)?;
            Ok(content)
        })
        .await
    }

    /// What was begun earlier is taken away first: it may be a link, or have other names.
    pub(super) async fn write(&self, name: &str, content: &[u8]) -> Result<(), String> {
        let (folder, name, content) = (Arc::clone(&self.0), name.to_owned(), content.to_vec());
        blocking("writing a file", move || {
            match rustix::fs::unlinkat(&folder, name.as_str(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(cause) => return Err(cause.into()),
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&folder, name.as_str(), flags, MODE)?;
            let mut file = fs::File::from(file);
            file.write_all(&content)?;
            file.sync_all()
        })
        .await
    }

    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<(), String> {
        let (folder, from, to) = (Arc::clone(&self.0), from.to_owned(), to.to_owned());
        blocking("renaming a file", move || {
            rustix::fs::renameat(&folder, from.as_str(), &folder, to.as_str())?;
            Ok(rustix::fs::fsync(&folder)?)
        })
        .await
    }
}

/// A file; nothing, where it is a link, a folder or something else.
fn entry(name: String, stat: &Stat) -> Option<Entry> {
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let bytes = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    is_file.then_some(Entry { name, bytes, changed_s: stat.st_mtime })
}

/// A disk may take its time.
async fn blocking<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|cause| format!("{what}: {cause}"))?;
    done.map_err(|cause| format!("{what}: {cause}"))
}
