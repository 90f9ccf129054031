//! Payouts: approved, released, ended on evidence.

use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::approvals::{self, Act, Agreement, ApprovalView, Asked, Verdict};
use crate::auth::Permission;
use crate::caller::repeat::{answer, before, once};
use crate::caller::{Actor, Done, Operator};
use crate::config::{ApprovalAct, limits};
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::body::OptionalBody;
use crate::http::{Body, IdempotencyKey};
use crate::id::PayoutId;
use crate::ledger::Done::{Before, Now};
use crate::ledger::{self, Command, Effects, Reply, Reservation};
use crate::payouts::model::{Change, Payout, Status};
use crate::payouts::review::{
    FileSeen, ReviewRequest, Seen, action, possible, review, see_file, teammates,
};
use crate::payouts::{self, PayoutTransfers, PayoutView};
use crate::transfers::recall::{ClaimedForRecall, Recall};
use crate::wasm::rail::RecallReason;

use super::team::one_time_codes;
use super::{invalid, optional, required};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("approve_payout", APPROVE_ERRORS),
    ("decline_payout", REASON_ERRORS),
    (
        "cancel_any_payout",
        &[
            ErrorCode::PayoutNotFound,
            ErrorCode::PayoutNotCancellable,
            ErrorCode::StateConflict,
            ErrorCode::MissingField,
            ErrorCode::IdempotencyKeyConflict,
        ],
    ),
    ("release_payout", APPROVE_ERRORS),
    ("reject_payout", REASON_ERRORS),
    ("mark_payout_paid", DEBIT_ERRORS),
    ("mark_payout_failed", DEBIT_ERRORS),
    ("reverse_payout", REASON_ERRORS),
    ("recall_payout", RECALL_ERRORS),
];

const REASON_ERRORS: &[ErrorCode] = &[
    ErrorCode::PayoutNotFound,
    ErrorCode::StateConflict,
    ErrorCode::MissingField,
    ErrorCode::IdempotencyKeyConflict,
];
const RECALL_ERRORS: &[ErrorCode] = &[
    ErrorCode::PayoutNotFound,
    ErrorCode::StateConflict,
    ErrorCode::MissingField,
    ErrorCode::InvalidField,
    ErrorCode::IdempotencyKeyConflict,
];
const APPROVE_ERRORS: &[ErrorCode] = &[
    ErrorCode::PayoutNotFound,
    ErrorCode::StateConflict,
    ErrorCode::SelfApprovalDenied,
    ErrorCode::OtpRequired,
    ErrorCode::InvalidOtp,
    ErrorCode::InsufficientFunds,
    ErrorCode::WalletFrozen,
    ErrorCode::BeneficiaryGloballyBlocked,
    ErrorCode::BeneficiaryBlacklistedForPayout,
    ErrorCode::LimitViolation,
    ErrorCode::CurrencyNotActive,
    ErrorCode::FxFeaturesNotEnabled,
    ErrorCode::InvalidField,
    ErrorCode::MaxDebitExceeded,
    ErrorCode::FxPayoutDisabled,
    ErrorCode::FxPayoutTermsNotAccepted,
    ErrorCode::FxPayoutSourceNotAllowed,
    ErrorCode::FxPayoutTierInvalid,
    ErrorCode::MerchantSuspended,
    ErrorCode::MerchantClosed,
    ErrorCode::FxPayoutUnavailable,
    ErrorCode::FxRateUnavailable,
    ErrorCode::FxRateStale,
    ErrorCode::FxRateInverted,
    ErrorCode::FxExposureCapExceeded,
    ErrorCode::IdempotencyKeyConflict,
];
const DEBIT_ERRORS: &[ErrorCode] = &[
    ErrorCode::PayoutNotFound,
    ErrorCode::StateConflict,
    ErrorCode::MissingField,
    ErrorCode::InsufficientFunds,
    ErrorCode::WalletFrozen,
    ErrorCode::LimitViolation,
    ErrorCode::FxPayoutUnavailable,
    ErrorCode::FxRateUnavailable,
    ErrorCode::FxRateStale,
    ErrorCode::FxRateInverted,
    ErrorCode::FxExposureCapExceeded,
    ErrorCode::IdempotencyKeyConflict,
];

/// Why, and on what evidence.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PayoutChangeRequest {
    /// Why, for the audit log; for one that fails or is reversed also the message that merchants read.
    /// Required for declining, cancelling, rejecting and reversing.
    pub reason: Option<String>,
    /// What shows how the payout ended; required for marking.
    pub evidence: Option<String>,
    /// A member's one-time code, where their merchant demands one for approvals.
    pub otp: Option<String>,
}

/// Approve a draft
///
/// By somebody else than whoever made the key that it was made with: an operator, or a member of the
/// team with the permission `payout_approve`. An owner may approve their own. Where the merchant's
/// tiers ask for more than one, each approval but the last is answered 202.
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/approve", operation_id = "approve_payout",
    tag = "Operator", params(
        ("id" = String, Path, description = "A draft"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body(content = Option<PayoutChangeRequest>),
    responses(
        (status = 200, description = "Debited and queued", body = PayoutView),
        (status = 202, description = "More people have to approve it", body = ApprovalView),
    ),
)]
pub async fn approve(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    actor.require(Permission::PayoutApprove)?;
    run(&app, actor, (&id, key), (Change::Approve, body)).await
}

/// Decline a draft
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/decline", operation_id = "decline_payout",
    tag = "Operator", params(
        ("id" = String, Path, description = "A draft"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = PayoutChangeRequest,
    responses((status = 200, description = "Cancelled", body = PayoutView)),
)]
pub async fn decline(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    actor.require(Permission::PayoutApprove)?;
    run(&app, actor, (&id, key), (Change::Decline, body)).await
}

/// Cancel a queued payout
///
/// As its merchant can: nothing of it may have left. The wallet is given everything back.
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/cancel", operation_id = "cancel_any_payout",
    tag = "Operator", params(
        ("id" = String, Path, description = "A payout that is queued, or a draft"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = PayoutChangeRequest,
    responses((status = 200, description = "Cancelled", body = PayoutView)),
)]
pub async fn cancel(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    actor.require(Permission::PayoutCancel)?;
    run(&app, actor, (&id, key), (Change::Cancel, body)).await
}

/// Release a held payout
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/release", operation_id = "release_payout",
    tag = "Operator", params(
        ("id" = String, Path, description = "A held payout"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body(content = Option<PayoutChangeRequest>),
    responses(
        (status = 200, description = "Debited and queued", body = PayoutView),
        (status = 202, description = "More people have to ask for the same", body = ApprovalView),
    ),
)]
pub async fn release(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, operator.into(), (&id, key), (Change::Release, body)).await
}

/// Reject a held payout
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/reject", operation_id = "reject_payout",
    tag = "Operator", params(
        ("id" = String, Path, description = "A held payout"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = PayoutChangeRequest,
    responses((status = 200, description = "Failed, no wallet movement", body = PayoutView)),
)]
pub async fn reject(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, operator.into(), (&id, key), (Change::Reject, body)).await
}

/// Mark a payout as paid
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/mark_paid", operation_id = "mark_payout_paid",
    tag = "Operator", params(
        ("id" = String, Path, description = "The payout"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = PayoutChangeRequest,
    responses(
        (status = 200, description = "Paid on evidence", body = PayoutView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn mark_paid(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, operator.into(), (&id, key), (Change::MarkPaid, body)).await
}

/// Mark a payout as failed
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/mark_failed", operation_id = "mark_payout_failed",
    tag = "Operator", params(
        ("id" = String, Path, description = "The payout"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = PayoutChangeRequest,
    responses(
        (status = 200, description = "Failed on evidence, given back", body = PayoutView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn mark_failed(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, operator.into(), (&id, key), (Change::MarkFailed, body)).await
}

/// Reverse a paid payout
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/reverse", operation_id = "reverse_payout",
    tag = "Operator", params(
        ("id" = String, Path, description = "A paid payout"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body(content = PayoutChangeRequest),
    responses(
        (status = 200, description = "Given back", body = PayoutView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn reverse(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    OptionalBody(body): OptionalBody<PayoutChangeRequest>,
) -> Result<Response, Problem> {
    run(&app, operator.into(), (&id, key), (Change::Reverse, body)).await
}

/// Why a payment is called off, or its money asked back.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecallPayoutRequest {
    /// Why, for the audit log. Required.
    pub reason: Option<String>,
    /// What the network is told: `customer_request` (the default), `duplicate`,
    /// `technical_problem`, `fraud`, `wrong_amount` or `wrong_account`.
    pub reason_code: Option<String>,
}

/// What the network is told, and the word for it.
fn reason_for(word: Option<String>) -> Result<(RecallReason, String), Problem> {
    let word = optional("reason_code", word)?.unwrap_or_else(|| "customer_request".to_owned());
    let why = match word.as_str() {
        "customer_request" => RecallReason::CustomerRequest,
        "duplicate" => RecallReason::Duplicate,
        "technical_problem" => RecallReason::TechnicalProblem,
        "fraud" => RecallReason::Fraud,
        "wrong_amount" => RecallReason::WrongAmount,
        "wrong_account" => RecallReason::WrongAccount,
        _ => {
            let known = "must be customer_request, duplicate, technical_problem, fraud, \
                         wrong_amount or wrong_account";
            return Err(invalid("reason_code", known));
        }
    };
    Ok((why, word))
}

/// Recall a payout
///
/// Asks the network to call off a payout that is processing, as long as its recipient has not taken
/// it, or to have the money of one that is paid sent back. What the network says counts: called off,
/// it fails; sent back, which may take weeks, it is reversed; the wallet is given everything back
/// either way. Only some networks can; merchants cannot ask for it.
#[utoipa::path(
    post, path = "/admin/v1/payouts/{id}/recall", operation_id = "recall_payout", tag = "Operator",
    params(
        ("id" = String, Path, description = "A payout that is processing or paid"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = RecallPayoutRequest,
    responses(
        (status = 200, description = "The payout as it is now", body = PayoutView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn recall(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    body: Body<RecallPayoutRequest>,
) -> Result<Response, Problem> {
    let once = once(&operator, key, &format!("/admin/v1/payouts/{id}/recall"), &body);
    if let Some(done) = before::<Payout>(&app.db, &operator, once.as_ref()).await? {
        return recalled_before(done);
    }
    let (why, reason_code) = reason_for(body.value.reason_code)?;
    let reason = required("reason", body.value.reason)?;
    let payout = payouts::get(&app, &id).await?;
    if !matches!(payout.status, Status::Processing | Status::Paid) {
        let status = payout.status;
        let message =
            format!("This payout is {status}: only one that is processing or paid is recalled.");
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let recall = if payout.status == Status::Paid { Recall::Back } else { Recall::Off };
    let feature = PayoutTransfers(app.clone());
    // What would not be asked is not promised.
    app.transfers.check_recall(&feature, (payout.id.as_str(), recall)).await?;
    let done = ("payout.recall", ("payout", payout.id.as_str()));
    let mut wanted = as_it_is(&payout, see_file(&app, &payout).await?);
    wanted["reason_code"] = json!(reason_code);
    let asked = Asked::by_policy(&app, (ApprovalAct::Recall, Some(about(&payout))), done)
        .wanting(wanted)
        .saying(json!({ "reason": reason }), once.clone());
    let agreement = match approvals::agree(&app, &operator, asked).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let asked = json!({ "asked": true, "reason": reason, "reason_code": reason_code });
    let done = Done {
        action: "payout.recall",
        subject: ("payout", payout.id.as_str()),
        before: Some(json!({ "status": payout.status.as_str() })),
        after: Some(agreement.told(asked)),
    };
    // That it was asked for is known, whatever comes of it, and it is asked for once.
    let mut rows = vec![operator.did(done).row(&app.ids, app.now())];
    rows.extend(agreement.rows);
    let asked_for =
        Command::new(move |_| Ok(Effects { rows: rows.clone(), ..Effects::default() }.and(())));
    let asked_for = asked_for.guards(agreement.guards).reserve(once.clone());
    let claimed = app.transfers.claim_for_recall(payout.id.as_str(), recall).await?;
    // Its own task: what was asked for is done, whoever hangs up.
    let task = app.tasks.spawn({
        let app = app.clone();
        async move { recall_claimed(&app, (asked_for, once), (claimed, why), &payout.id).await }
    });
    answer(Now(task.await.map_err(Problem::internal)??), shown)
}

/// Writes down that a recall was asked for, asks, and stores the reply: a repeat is never told of a
/// call that nobody made.
async fn recall_claimed(
    app: &App,
    (asked_for, once): (Command<()>, Option<Reservation>),
    (claimed, why): (ClaimedForRecall, RecallReason),
    id: &PayoutId,
) -> Result<Payout, Problem> {
    match app.writer.work(asked_for).await {
        Ok(Now(())) => {}
        other => {
            app.transfers.let_go(claimed).await;
            other?;
            return Err(Problem::new(ErrorCode::StateConflict));
        }
    }
    let feature = PayoutTransfers(app.clone());
    app.transfers.recall(&feature, claimed, why).await?;
    let payout = feature.settled(payouts::get(app, id.as_str()).await?).await?;
    if let Some(once) = once {
        let late = vec![(once.key, shown(&payout))];
        let command = Command::new(move |_| {
            Ok(Effects { late_replies: late.clone(), ..Effects::default() }.and(()))
        });
        app.writer.work(command).await?;
    }
    Ok(payout)
}

/// What a recall that is repeated is answered.
fn recalled_before(done: ledger::Done<Payout>) -> Result<Response, Problem> {
    match done {
        Before { reply: None, .. } => {
            let message = "It was asked for under this key, and it is not known whether the \
                           network was asked. Look at the payout's timeline; to ask again, use \
                           another key.";
            Err(Problem::because(ErrorCode::StateConflict, message))
        }
        done => answer(done, shown),
    }
}

async fn run(
    app: &App,
    actor: Actor,
    (id, key): (&str, Option<IdempotencyKey>),
    (what, body): (Change, Body<PayoutChangeRequest>),
) -> Result<Response, Problem> {
    let reservation = once(&actor, key, &format!("/admin/v1/payouts/{id}/{}", action(what)), &body);
    if let Some(done) = before::<Payout>(&app.db, &actor, reservation.as_ref()).await? {
        return answer(done, shown);
    }
    let PayoutChangeRequest { reason, evidence, otp } = body.value;
    let reason = match what {
        Change::Decline | Change::Cancel | Change::Reject | Change::Reverse => {
            Some(required("reason", reason)?)
        }
        _ => optional("reason", reason)?,
    };
    let evidence = optional("evidence", evidence)?;
    let mut request = ReviewRequest {
        actor,
        reason,
        evidence,
        reservation,
        agreement: Agreement::default(),
        asked_about: None,
    };
    let payout = possible(app, id, what, &request).await?;
    let file = see_file(app, &payout).await?;
    let asked = match act(what) {
        Some(act) => {
            let done = (action(what), ("payout", payout.id.as_str()));
            let asked = Asked::by_policy(app, (act, Some(about(&payout))), done);
            asked.wanting(as_it_is(&payout, file))
        }
        None => {
            let people = teammates(app, &payout, what, &request.actor).await?;
            to_let_go(&payout, action(what), people)
        }
    };
    if what == Change::Approve {
        require_otp(app, &request.actor, &payout, otp).await?;
    }
    let said = json!({ "reason": request.reason, "evidence": request.evidence });
    let asked = asked.saying(said, request.reservation.clone());
    request.agreement = match approvals::agree(app, &request.actor, asked).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    // What several agreed to say of it they agreed to say of all that had become of it.
    let is_said_by_several = act(what).is_some() && request.agreement.people > 1;
    let version = is_said_by_several.then_some(payout.version);
    request.asked_about = Some(Seen { status: payout.status, version, file });
    answer(review(app, id, what, &request).await?, shown)
}

/// What operators agree to: what is to be done to this payout, and all that has become of it so far,
/// and of the file that it is in.
fn as_it_is(payout: &Payout, file: Option<FileSeen>) -> Value {
    json!({
        "file": file,
        "merchant_id": payout.merchant_id,
        "env": payout.env,
        "currency": payout.currency,
        "amount_minor": payout.costs.amount,
        "status": payout.status.as_str(),
        "version": payout.version,
    })
}

/// What teammates agree to: this payout, as it is.
fn to_let_go<'a>(payout: &'a Payout, action: &'static str, people: u32) -> Asked<'a> {
    Asked {
        act: Act::Payout,
        action,
        subject: ("payout", payout.id.as_str()),
        merchant: Some(&payout.merchant_id),
        people,
        valid_for: limits::TEAM_APPROVAL_VALID,
        wanted: json!({
            "status": payout.status.as_str(),
            "currency": payout.currency,
            "amount_minor": payout.costs.amount,
            "recipient_name": payout.recipient_name,
        }),
        said: Value::Null,
        once: None,
    }
}

/// Refuses a member without a one-time code, where the merchant demands one for approving live
/// payouts. A code counts once, whatever comes of the approval.
async fn require_otp(
    app: &App,
    actor: &Actor,
    payout: &Payout,
    otp: Option<String>,
) -> Result<(), Problem> {
    let Some(member) = actor.member().filter(|_| payout.env == Env::Live) else { return Ok(()) };
    let merchant = app.directory.merchant(&member.merchant_id).await?;
    match merchant.is_some_and(|merchant| merchant.settings.approval_otp) {
        true => one_time_codes::spend(app, (member, actor.address), otp).await,
        false => Ok(()),
    }
}

/// The amount that a payout is about.
fn about(payout: &Payout) -> (&str, i64) {
    (payout.currency.as_str(), payout.costs.amount.units())
}

/// What the policy of operators calls this change, if they have one for it.
fn act(what: Change) -> Option<ApprovalAct> {
    match what {
        Change::MarkPaid | Change::MarkFailed => Some(ApprovalAct::Mark),
        Change::Reverse => Some(ApprovalAct::Reverse),
        _ => None,
    }
}

fn shown(payout: &Payout) -> Reply {
    Reply { status: 200, body: PayoutView::guarded_json(payout) }
}
