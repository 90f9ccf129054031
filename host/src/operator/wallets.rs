//! Wallets: shown, credited, debited, frozen.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::repeat::{answer, before, once};
use crate::caller::{Done, Operator};
use crate::clock::Moment;
use crate::config::ApprovalAct;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::funding::{self, Moved, Movement};
use crate::http::body::OptionalBody;
use crate::http::{Body, IdempotencyKey, Page};
use crate::id::WalletId;
use crate::ledger::wallets::{WalletRow, get_wallet, list_wallets};
use crate::ledger::{Command, Effects, Reply, Reservation, Source};
use crate::money::Minor;

use super::{invalid, optional, required, write};
use crate::approvals::{self, ApprovalView, Asked, Verdict};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_merchant_wallets", &[ErrorCode::NotFound]),
    ("inspect_wallet", &[ErrorCode::WalletNotFound]),
    ("credit_wallet", MOVE_ERRORS),
    ("debit_wallet", MOVE_ERRORS),
    ("freeze_wallet", &[ErrorCode::WalletNotFound]),
    ("unfreeze_wallet", &[ErrorCode::WalletNotFound]),
];

const MOVE_ERRORS: &[ErrorCode] = &[
    ErrorCode::WalletNotFound,
    ErrorCode::MissingField,
    ErrorCode::InvalidField,
    ErrorCode::InvalidAmount,
    ErrorCode::InsufficientFunds,
    ErrorCode::WalletFrozen,
    ErrorCode::StateConflict,
    ErrorCode::IdempotencyKeyConflict,
];

/// A correction of a wallet.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MoveRequest {
    /// How much, in minor units. Required.
    #[schema(example = "100000000")]
    pub amount_minor: Option<String>,
    /// Credit: `admin_credit` (default), `promotional_credit`, `reconciliation_adjust`,
    /// `demo_seed` (test). Debit: `admin_debit` (default), `reconciliation_adjust`.
    pub source: Option<String>,
    /// Why, for the audit log and the wallet's statement. Required.
    #[schema(example = "bank transfer of 21 November")]
    pub reason: Option<String>,
}

/// A wallet after a change.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangedWallet {
    /// Always `wallet`.
    #[schema(example = "wallet")]
    pub object: &'static str,
    /// The wallet's id.
    pub id: String,
    /// The one currency that it holds.
    pub currency: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// What can be spent, in minor units.
    #[schema(value_type = String)]
    pub available_balance_minor: Minor,
    /// Whether debits are refused.
    pub is_frozen: bool,
}

/// A wallet as operators see it.
#[derive(Debug, Serialize, ToSchema)]
pub struct InspectedWallet {
    /// Always `wallet`.
    #[schema(example = "wallet")]
    pub object: &'static str,
    /// The wallet's id.
    pub id: String,
    /// Whose it is.
    pub merchant_id: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// The one currency that it holds.
    pub currency: String,
    /// What can be spent, in minor units.
    #[schema(value_type = String)]
    pub available_balance_minor: Minor,
    /// What left it and has not arrived yet, in minor units.
    #[schema(value_type = String)]
    pub pending_out_minor: Minor,
    /// Whether debits are refused.
    pub is_frozen: bool,
    /// Whether the sandbox filled it.
    pub is_demo: bool,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Moment,
}

impl InspectedWallet {
    fn of(wallet: &WalletRow) -> Self {
        Self {
            object: "wallet",
            id: wallet.id.to_string(),
            merchant_id: wallet.merchant_id.to_string(),
            env: wallet.env.as_str(),
            currency: wallet.currency.to_string(),
            available_balance_minor: wallet.available,
            pending_out_minor: wallet.pending_out,
            is_frozen: wallet.is_frozen,
            is_demo: wallet.is_demo,
            created_at: wallet.created_at,
            updated_at: wallet.updated_at,
        }
    }
}

/// List a merchant's wallets
#[utoipa::path(
    get, path = "/admin/v1/merchants/{id}/wallets", operation_id = "list_merchant_wallets",
    tag = "Operator", params(("id" = String, Path, description = "The merchant")),
    responses((
        status = 200, description = "All of them: live before test, by currency",
        body = inline(Page<InspectedWallet>),
    )),
)]
pub async fn list(
    State(app): State<App>,
    _operator: Operator,
    Path(id): Path<String>,
) -> Result<Page<InspectedWallet>, Problem> {
    let merchant = super::merchants::find(&app, &id).await?;
    let mut wallets = Vec::new();
    for env in [Env::Live, Env::Test] {
        wallets.extend(list_wallets(app.db.pool(), (&merchant.id, env)).await?);
    }
    Ok(Page::whole(wallets.iter().map(InspectedWallet::of).collect()))
}

/// Show a wallet
#[utoipa::path(
    get, path = "/admin/v1/wallets/{id}", operation_id = "inspect_wallet", tag = "Operator",
    params(("id" = String, Path, description = "The wallet")),
    responses((status = 200, description = "The wallet", body = InspectedWallet)),
)]
pub async fn inspect(
    State(app): State<App>,
    _operator: Operator,
    Path(id): Path<String>,
) -> Result<Json<InspectedWallet>, Problem> {
    Ok(Json(InspectedWallet::of(&find(&app, &id).await?)))
}

/// Credit a wallet
#[utoipa::path(
    post, path = "/admin/v1/wallets/{id}/credit", operation_id = "credit_wallet", tag = "Operator",
    params(
        ("id" = String, Path, description = "The wallet"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = MoveRequest,
    responses(
        (status = 200, description = "Credited", body = ChangedWallet),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn credit(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    body: Body<MoveRequest>,
) -> Result<Response, Problem> {
    let once = once(&operator, key, &format!("/admin/v1/wallets/{id}/credit"), &body);
    let wallet = find(&app, &id).await?;
    let source = match body.value.source.as_deref() {
        None | Some("admin_credit") => Source::AdminCredit,
        Some("promotional_credit") => Source::PromotionalCredit,
        Some("reconciliation_adjust") => Source::ReconciliationAdjust,
        Some("demo_seed") if wallet.env == Env::Test => Source::DemoSeed,
        Some(_) => return Err(invalid("source", "is not a source of credits")),
    };
    let amount = amount(&body.value)?;
    let done = (wallet, "wallet.credit", once);
    move_money(&app, &operator, done, (amount, source), body.value).await
}

/// Debit a wallet
#[utoipa::path(
    post, path = "/admin/v1/wallets/{id}/debit", operation_id = "debit_wallet", tag = "Operator",
    params(
        ("id" = String, Path, description = "The wallet"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = MoveRequest,
    responses(
        (status = 200, description = "Debited", body = ChangedWallet),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn debit(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    body: Body<MoveRequest>,
) -> Result<Response, Problem> {
    let once = once(&operator, key, &format!("/admin/v1/wallets/{id}/debit"), &body);
    let wallet = find(&app, &id).await?;
    let source = match body.value.source.as_deref() {
        None | Some("admin_debit") => Source::AdminDebit,
        Some("reconciliation_adjust") => Source::ReconciliationAdjust,
        Some(_) => return Err(invalid("source", "is not a source of debits")),
    };
    let amount = amount(&body.value)?.negated()?;
    let done = (wallet, "wallet.debit", once);
    move_money(&app, &operator, done, (amount, source), body.value).await
}

fn amount(request: &MoveRequest) -> Result<Minor, Problem> {
    let text = required("amount_minor", request.amount_minor.clone())?;
    let wrong = || invalid("amount_minor", "must be a string of digits above zero");
    Minor::parse(&text).ok_or_else(wrong)
}

async fn move_money(
    app: &App,
    operator: &Operator,
    (wallet, action, once): (WalletRow, &'static str, Option<Reservation>),
    (amount, source): (Minor, Source),
    request: MoveRequest,
) -> Result<Response, Problem> {
    let reason = required("reason", request.reason)?;
    let reply = {
        let wallet = wallet.clone();
        move |moved: &Moved| {
            let shown = ChangedWallet { available_balance_minor: moved.available, ..view(&wallet) };
            Reply { status: 200, body: serde_json::to_string(&shown).unwrap_or_default() }
        }
    };
    // What was carried out before needs nobody's agreement to be told again.
    if let Some(done) = before::<Moved>(&app.db, operator, once.as_ref()).await? {
        return answer(done, reply);
    }
    let subject = ("wallet", wallet.id.as_str());
    let size = i64::try_from(amount.units().unsigned_abs()).unwrap_or(i64::MAX);
    let about = (ApprovalAct::Credit, Some((wallet.currency.as_str(), size)));
    let asked = Asked::by_policy(app, about, (action, subject))
        .wanting(json!({
            "merchant_id": wallet.merchant_id,
            "env": wallet.env,
            "currency": wallet.currency,
            "amount_minor": amount,
            "source": source,
        }))
        .saying(json!({ "reason": reason }), once.clone());
    let agreement = match approvals::agree(app, operator, asked).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let after = json!({ "amount_minor": amount, "source": source, "reason": reason });
    let done = Done {
        action,
        subject: ("wallet", wallet.id.as_str()),
        before: None,
        after: Some(agreement.told(after)),
    };
    let mut rows = vec![operator.did(done).row(&app.ids, app.now())];
    rows.extend(agreement.rows);
    if source == Source::DemoSeed {
        rows.push(funding::mark_demo(&wallet.id));
    }
    let movement = Movement { amount, source, description: reason, sender: None, rows };
    let command = funding::movement(app, &wallet, movement).await?.guards(agreement.guards);
    answer(app.writer.work(command.reserve(once).replying(reply.clone())).await?, reply)
}

/// Why a wallet is frozen or thawed.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FreezeRequest {
    /// For the audit log.
    pub reason: Option<String>,
}

/// Freeze a wallet
#[utoipa::path(
    post, path = "/admin/v1/wallets/{id}/freeze", operation_id = "freeze_wallet", tag = "Operator",
    params(("id" = String, Path, description = "The wallet")),
    request_body(content = Option<FreezeRequest>),
    responses((status = 200, description = "Frozen", body = ChangedWallet)),
)]
pub async fn freeze(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    OptionalBody(Body { value: body, .. }): OptionalBody<FreezeRequest>,
) -> Result<Json<ChangedWallet>, Problem> {
    set_frozen(&app, &operator, &id, (Frozen::Yes, body.reason)).await
}

/// Unfreeze a wallet
#[utoipa::path(
    post, path = "/admin/v1/wallets/{id}/unfreeze", operation_id = "unfreeze_wallet",
    tag = "Operator", params(("id" = String, Path, description = "The wallet")),
    request_body(content = Option<FreezeRequest>),
    responses((status = 200, description = "Usable again", body = ChangedWallet)),
)]
pub async fn unfreeze(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    OptionalBody(Body { value: body, .. }): OptionalBody<FreezeRequest>,
) -> Result<Json<ChangedWallet>, Problem> {
    set_frozen(&app, &operator, &id, (Frozen::No, body.reason)).await
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Frozen {
    Yes,
    No,
}

async fn set_frozen(
    app: &App,
    operator: &Operator,
    id: &str,
    (frozen, reason): (Frozen, Option<String>),
) -> Result<Json<ChangedWallet>, Problem> {
    let reason = optional("reason", reason)?;
    let wallet = find(app, id).await?;
    let is_frozen = frozen == Frozen::Yes;
    let done = Done {
        action: if is_frozen { "wallet.freeze" } else { "wallet.unfreeze" },
        subject: ("wallet", wallet.id.as_str()),
        before: Some(json!({ "is_frozen": wallet.is_frozen })),
        after: Some(json!({ "is_frozen": is_frozen, "reason": reason })),
    };
    let (needs, held) = ([wallet.id.clone()], wallet.id.clone());
    let command = Command::new(move |_| {
        Ok(Effects { frozen: vec![(held.clone(), is_frozen)], ..Effects::default() }.and(()))
    });
    write(app, operator, done, command.wallets(needs)).await?;
    Ok(Json(ChangedWallet { is_frozen, ..view(&find(app, id).await?) }))
}

async fn find(app: &App, id: &str) -> Result<WalletRow, Problem> {
    let missing = || Problem::new(ErrorCode::WalletNotFound);
    let id = WalletId::parse(id).ok_or_else(missing)?;
    get_wallet(app.db.pool(), &id).await?.ok_or_else(missing)
}

fn view(wallet: &WalletRow) -> ChangedWallet {
    ChangedWallet {
        object: "wallet",
        id: wallet.id.to_string(),
        currency: wallet.currency.to_string(),
        env: wallet.env.as_str(),
        available_balance_minor: wallet.available,
        is_frozen: wallet.is_frozen,
    }
}
