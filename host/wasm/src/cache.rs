//! Compiled code, kept on disk between starts.
//!
//! Loading compiled code means running it, so a file counts only with this host's own tag on
//! it: HMAC-SHA256 over the file's name and the code, under a key that never leaves the host.
//! The name holds the digest of what was compiled and a fingerprint of the engine that it was
//! compiled for, so a file is believed in its own place and nowhere else.

use std::hash::{Hash as _, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
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
    fresh: Option<Compiled>,
}

/// Code that was compiled by this host.
#[derive(Clone)]
pub struct Compiled {
    name: String,
    code: Arc<[u8]>,
}

impl Compiled {
    /// What a compiler that this host trusts made of a component for an engine.
    pub(super) fn new(engine: &Engine, component: &[u8], code: Vec<u8>) -> Self {
        Self { name: name(engine, component), code: code.into() }
    }
}

impl CodeCache {
    /// Keeps compiled code in `folder`; without one, compiles every time.
    #[must_use]
    pub fn new(folder: Option<PathBuf>, keyring: Arc<Keyring>) -> Self {
        Self { folder, keyring, fresh: None }
    }

    /// The same folder, and this code at hand, which is not kept there.
    #[must_use]
    pub fn with(&self, fresh: Compiled) -> Self {
        Self { fresh: Some(fresh), ..self.clone() }
    }

    /// The compiled component, from the folder if it can be had there.
    ///
    /// # Errors
    /// The bytes are not a component that this engine accepts.
    pub fn component(&self, engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Component> {
        let name = name(engine, bytes);
        let fresh = self.fresh.as_ref().filter(|fresh| fresh.name == name);
        if let Some(code) = fresh.cloned().or_else(|| self.find_named(&name)) {
            match load(engine, &code) {
                Ok(component) => return Ok(component),
                Err(cause) => tracing::warn!(name, %cause, "compiled code does not load"),
            }
        }
        let component = Component::new(engine, bytes)?;
        if self.folder.is_some() {
            self.keep(&Compiled { name, code: component.serialize()?.into() });
        }
        Ok(component)
    }

    /// What is in the folder for this component and engine.
    #[must_use]
    pub fn find(&self, engine: &Engine, bytes: &[u8]) -> Option<Compiled> {
        self.find_named(&name(engine, bytes))
    }

    /// Keeps code in the folder. Where that fails, it is compiled again some day.
    pub fn keep(&self, compiled: &Compiled) {
        let Some(folder) = &self.folder else { return };
        if let Err(cause) = self.store(folder, compiled) {
            tracing::warn!(folder = %folder.display(), %cause, "compiled code is not kept");
        }
    }

    fn find_named(&self, name: &str) -> Option<Compiled> {
        let path = self.folder.as_ref()?.join(name);
        let file = std::fs::read(&path).ok()?;
        let (tag, code) = file.split_first_chunk::<TAG_LENGTH>()?;
        if !bool::from(self.keyring.compiled_code_tag(name, code).ct_eq(tag)) {
            tracing::warn!(path = %path.display(), "compiled code without a valid tag is ignored");
            return None;
        }
        Some(Compiled { name: name.to_owned(), code: code.into() })
    }

    fn store(&self, folder: &Path, compiled: &Compiled) -> std::io::Result<()> {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let Compiled { name, code } = compiled;
        // Written under a name of its own, then renamed: a reader sees all of it or nothing.
        let path = folder.join(name);
        let draft = path.with_extension(format!("draft-{}", std::process::id()));
        let tag = self.keyring.compiled_code_tag(name, code);
        std::fs::write(&draft, [tag.as_slice(), code].concat())?;
        std::fs::rename(&draft, &path)
    }
}

fn load(engine: &Engine, compiled: &Compiled) -> wasmtime::Result<Component> {
    // SAFETY: this host compiled these very bytes: it did so just now, or a tag shows it.
    #[allow(unsafe_code)]
    unsafe {
        Component::deserialize(engine, &compiled.code)
    }
}

/// What code is called: by the component's digest, and by a fingerprint of everything else that
/// its validity depends on (the version of wasmtime, its settings, the machine).
fn name(engine: &Engine, component: &[u8]) -> String {
    let mut fingerprint = Fingerprint(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut fingerprint);
    let engine = hex::encode(&fingerprint.0.finalize()[..16]);
    format!("{}-{engine}.cwasm", hex::encode(Sha256::digest(component)))
}

/// SHA-256 as a hasher: that of the standard library makes 64 bits only.
struct Fingerprint(Sha256);

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Not used: what counts is the whole digest.
    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{
        CanonicalFunctionSection, CodeSection, Component as Encoded, ComponentAliasSection,
        ComponentExportKind, ComponentExportSection, ComponentTypeSection, ComponentValType,
        ExportKind, ExportSection, Function, FunctionSection, InstanceSection, Instruction, Module,
        ModuleSection, PrimitiveValType, TypeSection, ValType,
    };
    use wasmtime::Store;
    use wasmtime::component::Linker;

    use super::*;
    use crate::engine::rules;

    /// A component whose one function answers with this number.
    fn answering(number: i32) -> Vec<u8> {
        let (mut types, mut functions, mut exports, mut code) =
            (TypeSection::new(), FunctionSection::new(), ExportSection::new(), CodeSection::new());
        types.ty().function([], [ValType::I32]);
        functions.function(0);
        exports.export("answer", ExportKind::Func, 0);
        let mut function = Function::new([]);
        function.instruction(&Instruction::I32Const(number)).instruction(&Instruction::End);
        code.function(&function);
        let mut module = Module::new();
        module.section(&types).section(&functions).section(&exports).section(&code);

        let mut component = Encoded::new();
        component.section(&ModuleSection(&module));
        let mut instances = InstanceSection::new();
        instances.instantiate::<_, &str>(0, []);
        component.section(&instances);
        let mut aliases = ComponentAliasSection::new();
        aliases.alias(wasm_encoder::Alias::CoreInstanceExport {
            instance: 0,
            kind: ExportKind::Func,
            name: "answer",
        });
        component.section(&aliases);
        let mut types = ComponentTypeSection::new();
        let none: [(&str, ComponentValType); 0] = [];
        let number = ComponentValType::Primitive(PrimitiveValType::S32);
        types.function().params(none).result(Some(number));
        component.section(&types);
        let mut lifted = CanonicalFunctionSection::new();
        lifted.lift(0, 0, []);
        component.section(&lifted);
        let mut exports = ComponentExportSection::new();
        exports.export("answer", ComponentExportKind::Func, 0, None);
        component.section(&exports);
        component.finish()
    }

    fn answer(engine: &Engine, component: &Component) -> i32 {
        let mut store = Store::new(engine, ());
        store.set_fuel(1_000).expect("fuel");
        store.set_epoch_deadline(1);
        let instance = Linker::new(engine).instantiate(&mut store, component).expect("an instance");
        let answer = instance.get_typed_func::<(), (i32,)>(&mut store, "answer").expect("it");
        answer.call(&mut store, ()).expect("an answer").0
    }

    fn cache(folder: &Path) -> CodeCache {
        let keyring = Keyring::from_hex(&["11".repeat(32)]).expect("a key");
        CodeCache::new(Some(folder.to_owned()), Arc::new(keyring))
    }

    /// Loads and answers; says whether there was a file to be believed.
    fn look(cache: &CodeCache, engine: &Engine, number: i32) -> bool {
        let found = cache.find(engine, &answering(number)).is_some();
        let component = cache.component(engine, &answering(number)).expect("a component");
        assert_eq!(answer(engine, &component), number);
        found
    }

    #[test]
    fn a_file_counts_in_its_own_place_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let (cache, engine) = (cache(folder.path()), rules().expect("an engine"));
        let file = |number| folder.path().join(name(&engine, &answering(number)));
        assert!(!look(&cache, &engine, 1) && !look(&cache, &engine, 2));
        assert!(look(&cache, &engine, 1) && look(&cache, &engine, 2));
        let (one, two) =
            (std::fs::read(file(1)).expect("one"), std::fs::read(file(2)).expect("two"));
        std::fs::write(file(1), &two).expect("written");
        std::fs::write(file(2), &one).expect("written");
        assert!(!look(&cache, &engine, 1) && !look(&cache, &engine, 2));
        // Compiled anew, and kept as before.
        assert!(look(&cache, &engine, 1) && look(&cache, &engine, 2));
        assert_eq!(std::fs::read(file(1)).expect("one"), one);
    }

    #[test]
    fn a_file_for_another_engine_does_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let (cache, engine) = (cache(folder.path()), rules().expect("an engine"));
        let mut plain = wasmtime::Config::new();
        plain.consume_fuel(true).epoch_interruption(true).concurrency_support(false);
        let other = Engine::new(&plain).expect("an engine");
        let file = |engine| folder.path().join(name(engine, &answering(1)));
        assert_ne!(file(&engine), file(&other));
        assert!(!look(&cache, &other, 1));
        std::fs::copy(file(&other), file(&engine)).expect("copied");
        assert!(!look(&cache, &engine, 1));
        assert!(look(&cache, &engine, 1));
    }

    #[test]
    fn a_file_that_was_altered_does_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let (cache, engine) = (cache(folder.path()), rules().expect("an engine"));
        look(&cache, &engine, 1);
        let path = folder.path().join(name(&engine, &answering(1)));
        let whole = std::fs::read(&path).expect("a file");
        let places = [0, TAG_LENGTH - 1, TAG_LENGTH, TAG_LENGTH + 100, whole.len() / 2];
        for place in places.into_iter().chain([whole.len() - 1]) {
            let mut flipped = whole.clone();
            flipped[place] ^= 1;
            std::fs::write(&path, flipped).expect("written");
            assert!(!look(&cache, &engine, 1), "byte {place}");
        }
        for length in [0, TAG_LENGTH - 1, TAG_LENGTH, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).expect("written");
            assert!(!look(&cache, &engine, 1), "{length} bytes");
        }
        assert!(look(&cache, &engine, 1));
    }
}
