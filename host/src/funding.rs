//! Money into and out of a wallet that is not a payout: credits, debits, and what tells of them.

use serde_json::json;

use crate::app::App;
use crate::config::limits;
use crate::conversions::AutoConversion;
use crate::db::bulk::{RowChange, Update, int, text};
use crate::error::{ErrorCode, Problem};
use crate::events::{Data, Event};
use crate::id::{EventId, JournalId, WalletId};
use crate::ledger::wallets::WalletRow;
use crate::ledger::{
    Account, Command, Effects, Journal, LockedState, Posting, Source, SystemAccount,
};
use crate::money::Minor;

/// A credit (positive) or debit (negative) of a wallet.
#[derive(Clone, Debug)]
pub struct Movement {
    /// Signed minor units; not zero.
    pub amount: Minor,
    /// What kind of movement it is, for statements.
    pub source: Source,
    /// A line for the wallet's statement.
    pub description: String,
    /// Who sent it, as JSON.
    pub sender: Option<String>,
    /// Further rows of the same transaction: audit.
    pub rows: Vec<RowChange>,
}

/// What a movement came to.
#[derive(Clone, Debug)]
pub struct Moved {
    /// Identifies the movement towards merchants.
    pub id: String,
    /// The wallet's balance right after it.
    pub available: Minor,
}

/// A movement, to be booked by the writer. A credit that is an inflow is told to merchants as
/// `wallet_funded`, and converted at once where its merchant has it so. Refused are
/// `wallet_frozen` for the debit of a frozen wallet, and `insufficient_funds`.
///
/// # Errors
/// The database cannot be read.
pub async fn movement(
    app: &App,
    wallet: &WalletRow,
    movement: Movement,
) -> Result<Command<Moved>, Problem> {
    let conversion = match movement.is_inflow() && movement.source != Source::ReconciliationAdjust {
        true => AutoConversion::of(app, wallet, movement.amount).await?,
        false => None,
    };
    let (id, event_id) = (app.ids.journal(), app.ids.id());
    let wallet = wallet.clone();
    let needs = [wallet.id.clone()];
    let command = Command::new({
        let conversion = conversion.clone();
        move |locked: &LockedState<'_>| {
            let (mut effects, mut moved) = decide(locked, &wallet, &movement, (&id, &event_id))?;
            if let Some(conversion) = &conversion
                && conversion.try_execute(locked, &mut effects, &moved.id)
            {
                moved.available = locked.wallet(&wallet.id)?.available;
            }
            Ok(effects.and(moved))
        }
    });
    let command = command.wallets(needs);
    Ok(match &conversion {
        Some(conversion) => conversion.locks(command),
        None => command,
    })
}

impl Movement {
    /// Whether it is money that came in.
    fn is_inflow(&self) -> bool {
        self.source.is_funding() && !self.amount.is_negative()
    }
}

fn decide(
    locked: &LockedState<'_>,
    wallet: &WalletRow,
    movement: &Movement,
    (id, event_id): (&JournalId, &EventId),
) -> Result<(Effects, Moved), Problem> {
    let held = locked.wallet(&wallet.id)?;
    refuse_absurd(movement.amount, held.available)?;
    if movement.amount.is_negative() && held.is_frozen {
        return Err(Problem::new(ErrorCode::WalletFrozen));
    }
    let mut journal = Journal {
        kind: "movement",
        ref_type: "WalletMovement",
        ref_id: id.to_string(),
        round: 1,
        env: wallet.env,
        currency: wallet.currency,
        postings: vec![Posting {
            account: Account::Wallet(WalletId::clone(&wallet.id)),
            amount: movement.amount,
            source: movement.source,
            description: movement.description.clone(),
            sender: movement.sender.clone(),
        }],
    };
    let funding = Account::System(SystemAccount::Funding);
    journal.post(funding, movement.amount.negated()?, movement.source, "");
    let mut rows = movement.rows.clone();
    if movement.is_inflow() {
        rows.push(funded(locked, wallet, movement, (id, event_id)).row());
    }
    let moved = Moved { id: id.to_string(), available: held.available.plus(movement.amount)? };
    Ok((Effects { journals: vec![journal], rows, ..Effects::default() }, moved))
}

/// No wallet of a real merchant comes near these; what does is a mistake, and sums over all wallets
/// are to stay sums.
fn refuse_absurd(amount: Minor, available: Minor) -> Result<(), Problem> {
    let too_large = |what: &str, most: i64| {
        let message = format!("{what} may be {most} minor units at most.");
        Err(Problem::because(ErrorCode::InvalidAmount, message).field("amount_minor"))
    };
    let most = limits::MOVEMENT_MINOR_MAX;
    if !(-most..=most).contains(&amount.units()) {
        return too_large("One movement", most);
    }
    let balance = available.plus(amount)?.units();
    match !amount.is_negative() && balance > limits::BALANCE_MINOR_MAX {
        true => too_large("The balance of a wallet", limits::BALANCE_MINOR_MAX),
        false => Ok(()),
    }
}

fn funded(
    locked: &LockedState<'_>,
    wallet: &WalletRow,
    movement: &Movement,
    (id, event_id): (&JournalId, &EventId),
) -> Event {
    let sender = movement.sender.as_deref().and_then(|json| serde_json::from_str(json).ok());
    let sender: Option<serde_json::Value> = sender;
    let data = json!({
        "providerEventId": id.as_str(),
        "wallet_id": wallet.id,
        "currency": wallet.currency,
        "amount_minor": movement.amount,
        "fee_minor": "0",
        "source": movement.source,
        "sender": sender,
        "virtual_account": null,
        "customer": null,
        "collection_id": null,
        "created_at": locked.now(),
    });
    Event {
        id: event_id.clone(),
        merchant_id: wallet.merchant_id.clone(),
        env: wallet.env,
        name: "wallet_funded",
        object_type: "wallet_movement",
        object_id: id.to_string(),
        sequence: 1,
        data: Some(Data::Whole(data.to_string())),
        created_at: locked.now(),
    }
}

static DEMO_MARKS: Update<WalletId> = Update {
    name: "wallets",
    key: text("id", |wallet| wallet.as_str().into()),
    columns: &[int("is_demo", |_| true.into())],
    only_where: None,
};

/// Marks a wallet as filled by the sandbox.
#[must_use]
pub fn mark_demo(wallet: &WalletId) -> RowChange {
    DEMO_MARKS.change(wallet)
}
