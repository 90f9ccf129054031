//! Writing a saved recipient in the transaction of whatever needs it.
//!
//! An identity has one row for ever. Two requests that meet a new recipient at once agree
//! through a counter on which of them saves it; the other takes the id that it finds there.

use std::time::Duration;

use crate::clock::Moment;
use crate::db::bulk::RowChange;
use crate::error::Problem;
use crate::id::{BeneficiaryId, IdGenerator};
use crate::keyring::Keyring;
use crate::ledger::{CounterChange, Effects, Guard, LockedState};
use crate::money::Minor;

use super::beneficiary::Beneficiary;
use super::sql::{self, StoredBeneficiary};

/// How long a new recipient is announced to other requests; far longer than any of them takes.
const ANNOUNCED: Duration = Duration::from_secs(24 * 3600);

/// What is to be written about a recipient.
#[derive(Clone, Debug)]
pub struct Saving {
    id: BeneficiaryId,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Nothing,
    New { key: String, row: RowChange },
    Changed { guard: Guard, row: RowChange },
}

impl Saving {
    /// Nothing: the recipient is saved as it is.
    #[must_use]
    pub fn nothing(beneficiary: &Beneficiary) -> Self {
        Self { id: beneficiary.id.clone(), what: What::Nothing }
    }

    /// A recipient that was not saved before.
    ///
    /// # Errors
    /// What the bank said about it cannot be sealed.
    pub fn new(
        beneficiary: &Beneficiary,
        keyring: &Keyring,
        ids: &IdGenerator,
    ) -> Result<Self, Problem> {
        let Beneficiary { merchant_id, env, currency, identity, .. } = beneficiary;
        let key = format!("saved/{merchant_id}/{env}/{currency}/{identity}");
        let row = sql::BENEFICIARIES.insert(&StoredBeneficiary::seal(beneficiary, keyring, ids)?);
        Ok(Self { id: beneficiary.id.clone(), what: What::New { key, row } })
    }

    /// A recipient that is saved, and was last seen as it was at `seen_at`.
    ///
    /// # Errors
    /// What the bank said about it cannot be sealed.
    pub fn change(
        beneficiary: &Beneficiary,
        seen_at: Moment,
        (keyring, ids): (&Keyring, &IdGenerator),
    ) -> Result<Self, Problem> {
        let guard = Guard {
            on: &sql::BENEFICIARY_VERSIONS,
            id: beneficiary.id.to_string(),
            version: seen_at.micros(),
        };
        let stored = StoredBeneficiary::seal(beneficiary, keyring, ids)?;
        let row = sql::BENEFICIARY_CHANGES.change(&stored);
        Ok(Self { id: beneficiary.id.clone(), what: What::Changed { guard, row } })
    }

    /// The counter that the writer must read.
    #[must_use]
    pub fn counter(&self) -> Option<String> {
        match &self.what {
            What::New { key, .. } => Some(key.clone()),
            What::Nothing | What::Changed { .. } => None,
        }
    }

    /// The row that must not have changed.
    #[must_use]
    pub fn guard(&self) -> Option<Guard> {
        match &self.what {
            What::Changed { guard, .. } => Some(guard.clone()),
            What::Nothing | What::New { .. } => None,
        }
    }

    /// The id under which a new recipient was saved by another request a moment ago.
    #[must_use]
    pub fn saved_meanwhile(&self, locked: &LockedState<'_>) -> Option<BeneficiaryId> {
        BeneficiaryId::parse(&locked.counter(&self.counter()?).holder)
    }

    /// Adds what is to be written; answers the id of the saved recipient.
    pub fn write(&self, locked: &LockedState<'_>, effects: &mut Effects) -> BeneficiaryId {
        match &self.what {
            What::Nothing => {}
            What::Changed { row, .. } => effects.rows.push(row.clone()),
            What::New { key, row } => {
                if let Some(saved) = self.saved_meanwhile(locked) {
                    return saved;
                }
                effects.rows.push(row.clone());
                effects.counters.push(CounterChange {
                    key: key.clone(),
                    holder: self.id.to_string(),
                    count: 1,
                    sum: Minor::ZERO,
                    expires_at: locked.now().after(ANNOUNCED).micros(),
                });
            }
        }
        self.id.clone()
    }
}
