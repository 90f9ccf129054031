//! A payout before anything of it is durable: all that can be known before its wallet is locked,
//! and the command that decides it.

use std::sync::Arc;

use serde_json::json;

use crate::app::App;
use crate::auth::merchant::{PayerMode, inactive_currency};
use crate::caller::Caller;
use crate::clock::Moment;
use crate::conversions::Plan;
use crate::db::Moves;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::{BatchId, PayoutId, WalletId};
use crate::ledger::Command;
use crate::money::{Currency, Minor};
use crate::rails::Rail;
use crate::rails::declaration::Sender as DeclaredSender;
use crate::rules::sql::TARIFFS;
use crate::rules::tariff::Tariff;
use crate::rules::{Assessment, Assignments, FeeFacts, PayoutKind, Price};
use crate::transfers::Claim;

use super::accept::{Acceptance, Candidate, Verdict, assessment};
use super::across::{Across, Asked, Costed, cost};
use super::fx;
use super::model::{Change, Costs, Payout, Terms};
use super::recipient::{Payee, payee, saved, sender_place, serving};
use super::request::NewPayout;
use super::usage::{Allowance, Usage, refuse_amount};

/// Currencies that may be paid from the account of a merchant's customer.
const OF_CUSTOMERS: [&str; 4] = ["GBP", "USD", "EUR", "CAD"];

/// A payout that is ready to be decided, with its recipient and the question to the rules.
pub struct Draft {
    /// The payout; its status is not decided yet.
    pub payout: Payout,
    /// What it is charged by.
    tariff: Arc<Tariff>,
    /// How it begins, where no fraud rule objects.
    pub change: Change,
    payee: Payee,
    assessment: Option<Assessment>,
    /// How what it takes is bought, where another currency pays and it goes at once.
    buying: Option<Plan>,
}

/// What a payout is to be called.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// Its id.
    pub id: &'a PayoutId,
    /// The batch that it is a row of.
    pub batch: Option<&'a BatchId>,
}

impl Named<'_> {
    const fn kind(self) -> PayoutKind {
        match self.batch {
            Some(_) => PayoutKind::Batch,
            None => PayoutKind::Single,
        }
    }
}

/// Everything that can be known before the wallet is locked. Fee and fraud are decided by these
/// packs, whatever is activated meanwhile: whoever asks for more than one payout takes them once.
///
/// # Errors
/// The contract's codes for a payout, but for those about what is used up and paid.
pub async fn prepare(
    app: &App,
    caller: &Caller,
    packs: &Assignments,
    (named, request): (Named<'_>, &NewPayout),
    scenario: Option<String>,
) -> Result<Draft, Problem> {
    let (merchant, env) = caller.owner();
    caller.merchant.settings.refuse_currency(request.currency, env)?;
    let saved = saved(app, caller, request).await?;
    let (rail, method) = serving((app, caller), request, saved.as_ref())?;
    let (wallet_id, wallet_since) = wallet(app, caller, request).await?;
    refuse_customer(caller, request)?;
    let kind = named.kind();
    refuse_late(app, kind, &wallet_id)?;
    let price = |amount| price(packs, caller, kind, (request.currency, &method, amount));
    let (amount, costed) = amount(app, caller, (request, &rail, &method), price).await?;
    let asked = ((&*rail, method.as_str()), (request, amount));
    // No network is asked about a row that is refused anyway.
    if kind == PayoutKind::Batch {
        refuse_terms(caller, asked)?;
    }
    let payee = payee(app, caller, (&rail, &method), (request, amount, saved), scenario).await?;
    if kind == PayoutKind::Single {
        refuse_terms(caller, asked)?;
    }
    let (costs, price) = costs(costed.as_ref(), || cost(amount, &price))?;
    let terms = Terms {
        id: named.id.clone(),
        merchant_id: merchant.clone(),
        env,
        wallet_id,
        batch_id: named.batch.cloned(),
        currency: request.currency,
        method,
        costs,
        beneficiary_id: payee.beneficiary.id.clone(),
        recipient_identity: payee.beneficiary.identity.clone(),
        recipient_name: payee.name.clone(),
        recipient: payee.beneficiary.recipient.clone(),
        sender: sealed_sender(app, named.id, request)?,
        narration: request.narration.clone(),
        merchant_reference: request.merchant_reference.clone(),
        customer_reference: request.customer_reference.clone(),
        tariff: price.tariff.id.clone(),
        charges: price.amounts,
        hold: None,
        scenario: payee.scenario.clone(),
        maker: caller.key.id.to_string(),
        resolution: payee.own_resolution(app, (&rail, named.id))?,
        receipt_to: payee.receipt_to(caller),
        funding: None,
        created_at: app.now(),
    };
    let mut payout = Payout::new(Arc::new(terms));
    let buying = match costed {
        Some(costed) => Some(fx::plan(app, caller, costed, &mut payout).await?),
        None => None,
    };
    let (rules, asked) = ((packs, wallet_since), (&payout, &payee));
    let assessment = assessment(app, caller, rules, asked, request).await?;
    let change = beginning(caller, &mut payout)?;
    let buying = buying.filter(|_| change == Change::Accept);
    Ok(Draft { payout, tariff: price.tariff, change, payee, assessment, buying })
}

/// Who pays, sealed: numbers of passports are among it.
fn sealed_sender(app: &App, id: &PayoutId, request: &NewPayout) -> Result<Option<String>, Problem> {
    let Some(sender) = &request.sender else { return Ok(None) };
    let json = serde_json::to_vec(sender).map_err(Problem::internal)?;
    let sealed = app.keyring.seal(&app.ids, &sender_place(id), &json);
    sealed.map(Some).map_err(Problem::internal)
}

/// Refuses to pay from another account than the one that is meant. There are no customers yet, who
/// could be meant.
fn refuse_customer(caller: &Caller, request: &NewPayout) -> Result<(), Problem> {
    let unknown = |field| Err(Problem::new(ErrorCode::CustomerNotFound).field(field));
    if OF_CUSTOMERS.contains(&request.currency.as_str()) {
        let field = "sender_customer_id";
        match (caller.merchant.settings.payer_mode, &request.sender_customer_id) {
            (PayerMode::Own | PayerMode::Both, None) => {}
            (PayerMode::Customer, None) => {
                let message = "sender_customer_id is required: this account pays from its \
                               customers' money only.";
                return Err(Problem::because(ErrorCode::MissingField, message).field(field));
            }
            (PayerMode::Own, Some(_)) => {
                let message = "This account pays from its own money only: leave \
                               sender_customer_id out.";
                let problem = Problem::because(ErrorCode::CustomerIdMismatch, message);
                return Err(problem.field(field));
            }
            (PayerMode::Customer | PayerMode::Both, Some(_)) => return unknown(field),
        }
    }
    match request.customer_id {
        None => Ok(()),
        Some(_) => unknown("customer_id"),
    }
}

/// Refuses a sender of whom too little is known, and an amount that no payout may have.
fn refuse_terms(
    caller: &Caller,
    ((rail, method), (request, amount)): ((&Rail, &str), (&NewPayout, Minor)),
) -> Result<(), Problem> {
    require_sender(caller, &rail.declaration.sender, request)?;
    let payment = (request.currency, amount, request.asked.amount_field());
    refuse_amount(&caller.merchant, (&rail.declaration, method), payment)
}

/// What it costs: as it was worked out for the currency that pays, or in its own.
fn costs(
    costed: Option<&Costed>,
    plain: impl FnOnce() -> Result<(Costs, Price), Problem>,
) -> Result<(Costs, Price), Problem> {
    costed.map_or_else(plain, |costed| Ok((costed.costs, costed.price.clone())))
}

/// The command that decides a draft, and what goes with it.
pub struct Deciding {
    /// It reserves nothing yet.
    pub command: Command<Verdict>,
    /// The claim of its work, where whoever makes it has leased it.
    pub claim: Option<Claim>,
    /// Whether a saved recipient may change.
    pub changes_recipient: bool,
    /// The tariff that goes with it.
    pub with_tariff: Option<WithTariff>,
}

/// A tariff that goes with a payout, because the database may not have it yet, and where connections
/// led before.
pub struct WithTariff(Arc<Tariff>, Moves);

impl WithTariff {
    /// The payout is committed.
    pub fn note_written(&self) {
        self.0.written.note(self.1);
    }
}

impl Draft {
    /// What decides it. Its work is leased at once where `lease_until` is set.
    ///
    /// # Errors
    /// The database failed, or no route serves it.
    pub async fn deciding(
        self,
        app: &App,
        caller: &Caller,
        (allow_duplicate, lease_until): (bool, Moment),
    ) -> Result<Deciding, Problem> {
        let Self { payout, tariff, change, payee, assessment, buying } = self;
        let moves = tariff.written.unless_certain(&app.db);
        let with_tariff = moves.map(|moves| WithTariff(tariff, moves));
        let usage = Usage::of(&payout, &caller.merchant.timezone, payout.created_at);
        let allowance = Allowance { allow_duplicate, ..Allowance::of(&caller.merchant, &payout) };
        let mut counters = usage.keys();
        counters.extend(payee.saving.counter());
        counters.extend(assessment.as_ref().map(Assessment::counters).unwrap_or_default());
        let guard = payee.saving.guard();
        let changes_recipient = guard.is_some();
        let held = match &assessment {
            Some(_) if payout.batch_id.is_none() => {
                Some(Acceptance::of(app, &payout, (Change::Hold, Moment::default())).await?)
            }
            _ => None,
        };
        let planned = Acceptance::of(app, &payout, (change, lease_until)).await?;
        let claim = planned.claim();
        let candidate = Candidate {
            planned,
            held,
            payee,
            usage,
            allowance,
            assessment,
            buying: buying.clone(),
            tariff_row: with_tariff.as_ref().map(|it| TARIFFS.insert(&it.0)),
        };
        let command = Command::new(move |locked| candidate.decide(locked))
            .wallets([payout.wallet_id.clone()])
            .guards(guard)
            .counters(counters);
        let command = buying.iter().fold(command, |command, plan| plan.locks(command));
        Ok(Deciding { command, claim, changes_recipient, with_tariff })
    }
}

/// What is charged for an amount.
fn price(
    assignments: &Assignments,
    caller: &Caller,
    kind: PayoutKind,
    (currency, method, amount): (Currency, &str, Minor),
) -> Result<Price, Problem> {
    let (merchant, env) = caller.owner();
    assignments.price(&FeeFacts {
        merchant,
        currency,
        method,
        kind,
        amount,
        is_live: env == Env::Live,
    })
}

/// What the recipient gets, and where another currency pays, what that takes.
async fn amount(
    app: &App,
    caller: &Caller,
    (request, rail, method): (&NewPayout, &Rail, &str),
    price: impl Fn(Minor) -> Result<Price, Problem>,
) -> Result<(Minor, Option<Costed>), Problem> {
    match &request.asked {
        Asked::Plain(amount) => Ok((*amount, None)),
        Asked::Across(Across { from, method: asked }) => {
            let pair = (*from, request.currency);
            let offer = fx::offer(app, (&caller.merchant, caller.key.env), pair).await?;
            let step = rail.declaration.step(request.currency, method);
            let costed = asked.cost(|basis| offer.exchange(basis), price, step)?;
            Ok((costed.costs.amount, Some(costed)))
        }
    }
}

/// What would be turned away in the end is turned away before a network is asked; a batch is before
/// its rows are looked at.
fn refuse_late(app: &App, kind: PayoutKind, wallet: &WalletId) -> Result<(), Problem> {
    match kind {
        PayoutKind::Single => app.writer.admit_for(wallet),
        PayoutKind::Batch => Ok(()),
    }
}

/// The wallet that pays, and since when it is there.
async fn wallet(
    app: &App,
    caller: &Caller,
    request: &NewPayout,
) -> Result<(WalletId, Moment), Problem> {
    let wallet = app.wallets.find(caller.owner(), request.currency).await?;
    match (&request.wallet_id, wallet) {
        (None, Some(wallet)) => Ok(wallet),
        (Some(named), Some(wallet)) if named == wallet.0.as_str() => Ok(wallet),
        (Some(_), _) => Err(Problem::new(ErrorCode::PayoutWalletNotFound).field("wallet_id")),
        (None, None) => Err(inactive_currency()),
    }
}

/// Decides where the payout starts: with a teammate, with the operator, or in the queue.
fn beginning(caller: &Caller, payout: &mut Payout) -> Result<Change, Problem> {
    match payout.scenario.as_deref() {
        Some("fraud_block") => {
            let hits = json!([{ "label": "sandbox", "message": "sandbox scenario fraud_block" }]);
            return Err(Problem::new(ErrorCode::FraudRuleBlocked).detail(json!({ "hits": hits })));
        }
        // Nobody looks at the rows of a batch one by one.
        Some("fraud_hold") if payout.batch_id.is_some() => {
            let hits = json!([{ "label": "sandbox", "message": "sandbox scenario fraud_hold" }]);
            let detail = json!({ "action": "hold", "hits": hits });
            return Err(Problem::new(ErrorCode::FraudRuleBlocked).detail(detail));
        }
        Some("fraud_hold") => {
            payout.settling().hold = Some("sandbox scenario fraud_hold".into());
            return Ok(Change::Hold);
        }
        _ => {}
    }
    match payout.approvers(&caller.merchant.settings, None) > 0 {
        true => Ok(Change::Draft),
        false => Ok(Change::Accept),
    }
}

fn require_sender(
    caller: &Caller,
    declared: &DeclaredSender,
    request: &NewPayout,
) -> Result<(), Problem> {
    if !caller.merchant.settings.sender_info_required {
        return Ok(());
    }
    let sender = serde_json::to_value(request.sender.clone().unwrap_or_default());
    let sender = sender.map_err(Problem::internal)?;
    let is_business = sender["business_name"].as_str().is_some_and(|name| !name.is_empty());
    let wanted = if is_business { &declared.required_business } else { &declared.required };
    let missing: Vec<&String> = wanted
        .iter()
        .filter(|name| sender[name.as_str()].as_str().is_none_or(str::is_empty))
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => {
            let problem = Problem::new(ErrorCode::SenderInfoRequired).field("sender");
            Err(problem.detail(json!({ "missing": missing })))
        }
    }
}
