//! Compiled code, kept on disk between starts.
//!
//! Loading compiled code means running it, so a file counts only with this host's own tag on
//! it: HMAC-SHA256 over the code, under a key that never leaves the host. The name holds the
//! component's digest and everything that the code's validity depends on.

use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use subtle::ConstantTimeEq as _;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::keyring::Keyring;

const TAG_LENGTH: usize = 32;

/// A folder of compiled code.
#[derive(Clone)]
pub struct CodeCache {
    folder: Option<PathBuf>,
    keyring: Arc<Keyring>,
}

impl CodeCache {
    /// Keeps compiled code in `folder`; without one, compiles every time.
    #[must_use]
    pub fn new(folder: Option<PathBuf>, keyring: Arc<Keyring>) -> Self {
        Self { folder, keyring }
    }

    /// The compiled component, from the folder if it can be had there.
    ///
    /// # Errors
    /// The bytes are not a component that this engine accepts.
    pub fn component(
        &self,
        engine: &Engine,
        digest: &str,
        bytes: &[u8],
    ) -> wasmtime::Result<Component> {
        let Some(path) = self.path(engine, digest) else {
            return Component::new(engine, bytes);
        };
        if let Some(component) = self.load(engine, &path) {
            return Ok(component);
        }
        let component = Component::new(engine, bytes)?;
        if let Err(cause) = self.store(&path, &component.serialize()?) {
            tracing::warn!(path = %path.display(), %cause, "compiled code is not kept");
        }
        Ok(component)
    }

    fn path(&self, engine: &Engine, digest: &str) -> Option<PathBuf> {
        let mut hasher = std::hash::DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let name = format!("{digest}-{:016x}.cwasm", hasher.finish());
        self.folder.as_ref().map(|folder| folder.join(name))
    }

    fn load(&self, engine: &Engine, path: &Path) -> Option<Component> {
        let file = std::fs::read(path).ok()?;
        let (tag, code) = file.split_first_chunk::<TAG_LENGTH>()?;
        if !bool::from(self.keyring.compiled_code_tag(code).ct_eq(tag)) {
            tracing::warn!(path = %path.display(), "compiled code without a valid tag is ignored");
            return None;
        }
        // SAFETY: the tag shows that this host serialised these very bytes.
        #[allow(unsafe_code)]
        let component = unsafe { Component::deserialize(engine, code) };
        component.ok()
    }

    fn store(&self, path: &Path, code: &[u8]) -> std::io::Result<()> {
        use std::os::unix::fs::DirBuilderExt as _;
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        // Written under a name of its own, then renamed: a reader sees all of it or nothing.
        let draft = path.with_extension(format!("draft-{}", std::process::id()));
        std::fs::write(&draft, [self.keyring.compiled_code_tag(code).as_slice(), code].concat())?;
        std::fs::rename(&draft, path)
    }
}
