//! The host's own secrets: its keys, and what the database keeps sealed under them.

use secrecy::{ExposeSecret as _, SecretString};

use crate::config::Config;
use crate::db::{Db, Engine};
use crate::id::IdGenerator;
use crate::keyring::Keyring;

use super::StartError;

/// The host's keys: configured, or kept in a file beside the data.
///
/// # Errors
/// They are malformed, or the file cannot be used.
pub fn keyring(config: &Config, ids: &IdGenerator) -> Result<Keyring, StartError> {
    match config.encryption.keys.as_slice() {
        [] => Ok(Keyring::from_file(&config.data.dir.join("master.key"), ids)?),
        keys => Ok(Keyring::from_hex(keys)?),
    }
}

/// Refuses a database that was set up with other keys, before anything of it is changed: its
/// schema, too, is left to whoever has them.
pub(super) async fn refuse_other_keys(db: &Db, keyring: &Keyring) -> Result<(), StartError> {
    // A new database has no tables yet, and a statement may name none that is not there.
    let sql = match db.engine() {
        Engine::Sqlite => {
            "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'"
        }
        Engine::Postgres => "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('meta')",
    };
    let tables: i64 = sqlx::query_scalar(sql).fetch_one(db.pool()).await?;
    if tables == 0 {
        return Ok(());
    }
    let sql = "SELECT value FROM meta WHERE key = 'keyring'";
    let known: Option<String> = sqlx::query_scalar(sql).fetch_optional(db.pool()).await?;
    match known {
        Some(known) => refuse_unknown(keyring, &known),
        None => Ok(()),
    }
}

/// Refuses a database that was set up with a key that this host does not have.
fn refuse_unknown(keyring: &Keyring, known: &str) -> Result<(), StartError> {
    match keyring.holds(known) {
        true => Ok(()),
        false => Err(format!(
            "this database was set up with master key {known}, and this host has {}: give all \
             hosts the same encryption.keys, or share the file master.key in the data folder",
            keyring.fingerprint()
        )
        .into()),
    }
}

/// The database knows under which key it was set up; a host with other keys must not write. Of two
/// that set it up at once with different keys, one finds the other's here.
pub(super) async fn remember_keyring(db: &Db, keyring: &Keyring) -> Result<(), StartError> {
    let mut tx = db.write().await?;
    let sql = "INSERT INTO meta (key, value) VALUES ('keyring', $1) ON CONFLICT (key) DO NOTHING";
    sqlx::query(sql).bind(keyring.fingerprint()).execute(tx.conn()).await?;
    let sql = "SELECT value FROM meta WHERE key = 'keyring'";
    let known: String = sqlx::query_scalar(sql).fetch_one(tx.conn()).await?;
    refuse_unknown(keyring, &known)?;
    let sql = "UPDATE meta SET value = $1 WHERE key = 'keyring'";
    sqlx::query(sql).bind(keyring.fingerprint()).execute(tx.conn()).await?;
    tx.commit().await?;
    Ok(())
}

/// The operator's token: configured, or made on the first start and kept sealed. The second of the
/// two is there while nobody was shown a token that was made.
pub(super) async fn operator_token(
    config: &Config,
    parts: (&Db, &Keyring, &IdGenerator),
) -> Result<(SecretString, Option<SecretString>), StartError> {
    if let Some(token) = &config.operator_token {
        return Ok((token.clone(), None));
    }
    let fresh = format!("op_{}", parts.2.secret());
    let token: SecretString = kept(parts, "operator_token", &fresh).await?.into();
    let sql = "SELECT COUNT(*) FROM meta WHERE key = 'operator_token_shown'";
    let shown: i64 = sqlx::query_scalar(sql).fetch_one(parts.0.pool()).await?;
    Ok((token.clone(), (shown == 0).then_some(token)))
}

/// Remembers that somebody was shown the token that was made.
pub(super) async fn remember_shown_token(db: &Db) -> Result<(), StartError> {
    let mut tx = db.write().await?;
    let sql = "INSERT INTO meta (key, value) VALUES ('operator_token_shown', 'shown') \
               ON CONFLICT (key) DO NOTHING";
    sqlx::query(sql).execute(tx.conn()).await?;
    tx.commit().await?;
    Ok(())
}

/// The secret that the database keeps sealed under this name; `fresh`, if it has none yet.
pub(super) async fn kept(
    (db, keyring, ids): (&Db, &Keyring, &IdGenerator),
    name: &str,
    fresh: &str,
) -> Result<String, StartError> {
    let place = format!("meta/{name}");
    let sealed = keyring.seal(ids, &place, fresh.as_bytes())?;
    let mut tx = db.write().await?;
    let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
    sqlx::query(sql).bind(name).bind(sealed).execute(tx.conn()).await?;
    let sql = "SELECT value FROM meta WHERE key = $1";
    let sealed: String = sqlx::query_scalar(sql).bind(name).fetch_one(tx.conn()).await?;
    let secret = String::from_utf8(keyring.open(&place, &sealed)?)?;
    if !keyring.is_current(&sealed) {
        let sealed = keyring.seal(ids, &place, secret.as_bytes())?;
        let sql = "UPDATE meta SET value = $2 WHERE key = $1";
        sqlx::query(sql).bind(name).bind(sealed).execute(tx.conn()).await?;
    }
    tx.commit().await?;
    Ok(secret)
}

/// The operator's token as text, for the one who prints it.
#[must_use]
pub fn shown(token: &SecretString) -> &str {
    token.expose_secret()
}
