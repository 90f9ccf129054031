//! Passwords: what they must be, and the slow hash under which they are kept.

use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use tokio::sync::Semaphore;

use crate::config::limits;
use crate::error::{ErrorCode, Problem};
use crate::id::IdGenerator;

/// Hashes and compares passwords, a few at a time: each takes tens of milliseconds of a processor
/// and 19 MiB.
#[derive(Clone)]
pub struct Passwords {
    places: Arc<Semaphore>,
    /// A hash of nothing that anybody knows: whoever has no account waits as long as whoever has.
    nobody: Arc<str>,
}

impl Passwords {
    /// Ready to compare.
    ///
    /// # Errors
    /// The hash function refuses its parameters.
    pub fn new(ids: &IdGenerator) -> Result<Self, Problem> {
        let nobody = hash(ids.secret().as_bytes(), &ids.bytes::<16>())?;
        let places = Arc::new(Semaphore::new(limits::PASSWORDS_AT_ONCE));
        Ok(Self { places, nobody: nobody.into() })
    }

    /// The hash under which a password is kept: Argon2id in PHC form, with its salt.
    ///
    /// # Errors
    /// The host is stopping.
    pub async fn hash(&self, ids: &IdGenerator, password: String) -> Result<String, Problem> {
        let salt = ids.bytes::<16>();
        self.run(move || hash(password.as_bytes(), &salt)).await?
    }

    /// Whether this is the password behind a hash. Without a hash the answer is no, just as late.
    ///
    /// # Errors
    /// The host is stopping.
    pub async fn is_right(&self, known: Option<&str>, password: String) -> Result<bool, Problem> {
        let is_somebody = known.is_some();
        let known = known.unwrap_or(&self.nobody).to_owned();
        let is_same = move || {
            let parsed = PasswordHash::new(&known).ok();
            let compared = parsed.map(|known| {
                Argon2::default().verify_password(password.as_bytes(), &known).is_ok()
            });
            compared.unwrap_or(false)
        };
        Ok(self.run(is_same).await? && is_somebody)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let waiting = tokio::time::timeout(limits::PASSWORD_WAIT_MAX, self.places.acquire());
        let busy = || Problem::new(ErrorCode::ServiceOverloaded).retry_after(1);
        let _place = waiting.await.map_err(|_| busy())?.map_err(Problem::internal)?;
        tokio::task::spawn_blocking(work).await.map_err(Problem::internal)
    }
}

fn hash(password: &[u8], salt: &[u8]) -> Result<String, Problem> {
    let hashed = Argon2::default().hash_password_with_salt(password, salt);
    hashed.map(|hash| hash.to_string()).map_err(Problem::internal)
}

/// Refuses a password that is easily guessed: a short one, or one that says who its owner is.
///
/// # Errors
/// `invalid_field`, field `password`.
pub fn refuse_weak(password: &str, email: &str) -> Result<(), Problem> {
    let wrong = |why: String| Err(Problem::because(ErrorCode::InvalidField, why).field("password"));
    let (least, most) = (limits::PASSWORD_CHARACTERS_MIN, limits::PASSWORD_CHARACTERS_MAX);
    let length = password.chars().count();
    if length < least || length > most {
        return wrong(format!("password must have {least} to {most} characters."));
    }
    let distinct: std::collections::BTreeSet<char> = password.chars().collect();
    if distinct.len() < limits::PASSWORD_DISTINCT_MIN {
        return wrong("password must not repeat a few characters.".to_owned());
    }
    let name = email.split('@').next().unwrap_or(email);
    let lower = password.to_lowercase();
    if lower.contains(email) || (name.len() > 3 && lower.contains(name)) {
        return wrong("password must not contain your e-mail address or its name.".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[tokio::test]
    async fn a_password_is_known_by_its_hash_only() {
        let ids = IdGenerator::seeded(Clock::System, 1);
        let passwords = Passwords::new(&ids).expect("a hash");
        let right = "correct horse battery".to_owned();
        let kept = passwords.hash(&ids, right.clone()).await.expect("a hash");
        assert!(kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && !kept.contains("horse"));
        assert_ne!(kept, passwords.hash(&ids, right.clone()).await.expect("another salt"));
        let is_right = async |known: Option<&str>, tried: &str| {
            passwords.is_right(known, tried.to_owned()).await.expect("an answer")
        };
        assert!(is_right(Some(&kept), &right).await);
        assert!(!is_right(Some(&kept), "Correct horse battery").await);
        assert!(!is_right(None, &right).await);
        assert!(!is_right(Some("no hash"), &right).await);
    }

    #[test]
    fn what_is_easily_guessed_is_refused() {
        let email = "ada.lovelace@example.com";
        assert!(refuse_weak("correct horse battery", email).is_ok());
        assert!(refuse_weak("p\u{e4}sswort mit uml\u{e4}ut", email).is_ok());
        for weak in
            ["too short", "aaaaaaaaaaaaaaaa", "Ada.Lovelace-2026", &"x1y2z3 ".repeat(40)[..]]
        {
            let refusal = refuse_weak(weak, email).expect_err(weak);
            assert_eq!(refusal.code(), ErrorCode::InvalidField);
        }
    }
}
