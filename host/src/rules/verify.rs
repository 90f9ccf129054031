//! Proving that rule packs are the ones that were pushed.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::TryStreamExt as _;
use sha2::{Digest as _, Sha256};
use sqlx::{AnyConnection, Row as _};

use crate::ledger::verify::Faults;

/// Compares every component that is kept with its digest. A built-in pack that was never used has
/// none.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(db: &mut AnyConnection, faults: &mut Faults) -> Result<(), sqlx::Error> {
    let sql = "SELECT id, digest, component FROM rule_packs WHERE component IS NOT NULL";
    let mut packs = sqlx::query(sql).fetch(db);
    while let Some(pack) = packs.try_next().await? {
        let (id, digest): (String, String) = (pack.try_get(0)?, pack.try_get(1)?);
        let component: String = pack.try_get(2)?;
        let is_it = BASE64_STANDARD
            .decode(component)
            .is_ok_and(|bytes| hex::encode(Sha256::digest(bytes)) == digest);
        if !is_it {
            let what =
                format!("{id} is a rule pack whose component is another one than its digest");
            faults.add("pack-component", what);
        }
    }
    Ok(())
}
