//! Text with secrets in it, beside what may be shown of it.

/// What stands for a secret wherever it is shown.
pub(super) const STARS: &[u8] = b"****";

/// What leaves, and what is shown of it afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    leaves: Vec<u8>,
    /// With stars in place of secrets; none where there are no secrets.
    shown: Option<Vec<u8>>,
    /// The secrets, as they are written here.
    secrets: Vec<Vec<u8>>,
}

impl Filled {
    /// Adds what everybody may see.
    pub(crate) fn open(&mut self, bytes: Vec<u8>) {
        if let Some(shown) = &mut self.shown {
            shown.extend_from_slice(&bytes);
        }
        match self.leaves.is_empty() {
            true => self.leaves = bytes,
            false => self.leaves.extend_from_slice(&bytes),
        }
    }

    /// Adds what nobody may see.
    pub(crate) fn secret(&mut self, bytes: &[u8]) {
        self.shown.get_or_insert_with(|| self.leaves.clone()).extend_from_slice(STARS);
        self.leaves.extend_from_slice(bytes);
        self.secrets.push(bytes.to_vec());
    }

    /// The same secret as whoever hears it may write it.
    pub(crate) fn also_secret(&mut self, plain: &[u8]) {
        for written in spellings(plain) {
            if !self.secrets.contains(&written) {
                self.secrets.push(written);
            }
        }
    }

    /// What nobody may see of it.
    pub(crate) fn take_secrets(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.secrets)
    }

    /// What may be shown.
    pub(super) fn shown(&self) -> &[u8] {
        self.shown.as_deref().unwrap_or(&self.leaves)
    }

    /// What will leave.
    pub(crate) fn leaving(&self) -> &[u8] {
        &self.leaves
    }

    /// What leaves.
    pub(crate) fn leaves(self) -> Vec<u8> {
        self.leaves
    }
}

/// A secret as it may be repeated: in JSON, where a slash may have a backslash before it, or in plain.
pub(crate) fn spellings(plain: &[u8]) -> Vec<Vec<u8>> {
    let json = serde_json::Value::from(String::from_utf8_lossy(plain)).to_string();
    let json = &json[1..json.len() - 1];
    let mut all = vec![json.replace('/', "\\/").into_bytes(), json.into(), plain.to_vec()];
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_leaves_and_is_not_shown() {
        let mut filled = Filled::default();
        filled.open(b"Bearer ".to_vec());
        filled.secret(b"hunter2");
        filled.open(b", twice".to_vec());
        assert_eq!(filled.shown(), b"Bearer ****, twice");
        filled.also_secret(b"hunter2");
        assert_eq!(filled.take_secrets(), [b"hunter2"]);
        filled.also_secret(b"a/\"b");
        assert_eq!(filled.take_secrets(), [&b"a\\/\\\"b"[..], b"a/\\\"b", b"a/\"b"]);
        assert_eq!(filled.leaves(), b"Bearer hunter2, twice");
        let mut open = Filled::default();
        open.open(b"nothing".to_vec());
        assert_eq!((open.shown(), open.shown.is_none()), (b"nothing".as_slice(), true));
    }
}
