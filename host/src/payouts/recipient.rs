//! Whom a payout goes to: the saved recipient or the inline one, its blacklists, and the name
//! that the bank has on record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::app::App;
use crate::caller::Caller;
use crate::clock::Moment;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::PayoutId;
use crate::money::{Currency, Minor};
use crate::rails::{Block, Choice, Rail};
use crate::recipients::{
    Beneficiary, BeneficiarySource, Checked, Known, Question, Saving, Verification, names,
    resolution, resolve,
};

use crate::wasm::rail::Resolution;

use super::request::{NewPayout, To, refuse_non_strings, sent, sent_in_block};
use super::sql;

/// The recipient of a payout.
#[derive(Clone, Debug)]
pub(super) struct Payee {
    /// The saved recipient, as it is to be saved.
    pub beneficiary: Beneficiary,
    /// How it is to be saved.
    pub saving: Saving,
    /// The sandbox scenario: the header's, or the one that the recipient stands for.
    pub scenario: Option<String>,
    /// The name to pay to: the bank's, where the rail overwrites names, or the one that was given.
    pub name: String,
    /// The recipient's e-mail address, as the request gives it or, of a saved one, as it is saved.
    email: Option<String>,
    /// The name that the request gives.
    given_name: Option<String>,
    /// Whether the merchant knew the recipient before.
    is_known: bool,
}

impl Payee {
    /// How well the name in the request matches the one on record, from 0 to 100; nothing
    /// where one of them is missing.
    #[must_use]
    pub(super) fn name_match(&self) -> Option<i64> {
        let (given, on_record) =
            (self.given_name.as_ref()?, self.beneficiary.account_name.as_ref()?);
        names::score(given, on_record)
    }

    /// What the network said of the account under the name that this payment goes to, sealed for
    /// the payout: the saved recipient may be known under another one.
    ///
    /// # Errors
    /// It cannot be sealed.
    pub(super) fn own_resolution(
        &self,
        app: &App,
        (rail, id): (&Rail, &PayoutId),
    ) -> Result<Option<String>, Problem> {
        let found = self.beneficiary.resolution.as_ref().filter(|_| !rail.overwrites_names());
        let keys = (app.keyring.as_ref(), app.ids.as_ref());
        let sealed = found.map(|found| resolution::seal(keys, &resolution_place(id), found));
        sealed.transpose()
    }

    /// Who is sent a receipt when the payment has arrived, where that is wanted: of live ones only.
    pub(super) fn receipt_to(&self, caller: &Caller) -> Option<String> {
        let is_wanted = caller.merchant.settings.receipts && caller.key.env == Env::Live;
        self.email.clone().filter(|_| is_wanted)
    }

    /// Whether the merchant never paid this recipient.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(super) async fn is_first(&self, app: &App) -> Result<bool, Problem> {
        if !self.is_known {
            return Ok(true);
        }
        let id = &self.beneficiary.id;
        Ok(!app.recipients.was_paid(id, sql::was_paid(app.db.pool(), id)).await?)
    }
}

/// Finds the recipient, refuses blocked ones, and makes sure of the name.
///
/// # Errors
/// The contract's codes for recipients; `provider_error` where nobody can be asked.
pub(super) async fn payee(
    app: &App,
    caller: &Caller,
    (rail, method): (&Rail, &str),
    (request, amount, saved): (&NewPayout, Minor, Option<Beneficiary>),
    scenario: Option<String>,
) -> Result<Payee, Problem> {
    let of_saved = saved.as_ref().and_then(|saved| saved.email.clone());
    let (checked, given) = match (&request.to, saved) {
        (To::Inline(fields), _) => {
            let which = (method, request.currency);
            (inline(app, (rail, which), fields).await?, fields.clone())
        }
        (To::Beneficiary(_), Some(saved)) => (as_checked(app, rail, saved)?, BTreeMap::new()),
        (To::Beneficiary(_), None) => return Err(Problem::internal("it was not looked up")),
    };
    let which = (request.currency, checked.identity.as_str());
    let known = app.recipients.known(caller.owner(), which).await?;
    known.refuse_blocked()?;
    let scenario = scenario.or_else(|| {
        let chosen = rail.declaration.scenario(|field| Some(checked.fields.get(field).to_owned()));
        chosen.filter(|_| caller.key.env == Env::Test).map(str::to_owned)
    });
    // Refuses where no route can carry the payout, before anybody is asked for a name.
    let wanted = (request.currency, method, caller.key.env);
    app.routes.carriers(wanted, &caller.merchant.id, amount).await?;
    let draft = draft(app, caller, (rail, request.currency, method), (&checked, &known, &given));
    let draft = (draft, method, &*known);
    let mut named = name(app, caller, rail, draft, scenario.as_deref()).await?;
    let saving = saving(app, rail, &known, &mut named)?;
    Ok(Payee {
        name: name_to_pay(rail, &named.beneficiary),
        beneficiary: named.beneficiary,
        saving,
        scenario,
        email: sent(&given, "email").or(of_saved),
        given_name: sent(&given, "name"),
        is_known: known.beneficiary.is_some(),
    })
}

/// A saved recipient as it was checked when it was saved. One whose fields lead to another account
/// since is not paid: nobody was asked whether that one may be.
fn as_checked(app: &App, rail: &Rail, saved: Beneficiary) -> Result<Checked, Problem> {
    if !app.recipients.has_its_account(rail, &saved) {
        tracing::error!(beneficiary.id = %saved.id, "its fields are not those of its identity");
        let message = "This recipient is not what it was when it was saved: save it anew.";
        return Err(Problem::because(ErrorCode::StateConflict, message).field("beneficiary_id"));
    }
    let Beneficiary { recipient: fields, identity, .. } = saved;
    Ok(Checked { fields, identity })
}

/// Where a payout keeps what was said of its recipient's account.
pub(super) fn resolution_place(id: &PayoutId) -> String {
    format!("payouts/resolution/{id}")
}

/// Where a payout keeps who pays.
pub(super) fn sender_place(id: &PayoutId) -> String {
    format!("payouts/sender/{id}")
}

/// The saved recipient that a request names, if it names one.
///
/// # Errors
/// The contract's codes for beneficiaries.
pub(super) async fn saved(
    app: &App,
    caller: &Caller,
    request: &NewPayout,
) -> Result<Option<Beneficiary>, Problem> {
    let To::Beneficiary(id) = &request.to else { return Ok(None) };
    let found = app.recipients.beneficiary(caller.owner(), id).await;
    let beneficiary = found.map_err(|problem| problem.field("beneficiary_id"))?;
    if beneficiary.currency != request.currency {
        return Err(Problem::new(ErrorCode::BeneficiaryCurrencyMismatch).field("beneficiary_id"));
    }
    if let Some(method) = request.method.as_ref().filter(|named| **named != beneficiary.method) {
        let saved = &beneficiary.method;
        let message =
            format!("This recipient is saved for {saved}, and cannot be paid by {method}.");
        return Err(Problem::because(ErrorCode::InvalidField, message).field("method"));
    }
    Ok(Some(beneficiary))
}

/// The rail and the method: the one that is named, the one that a saved recipient was checked
/// for, or the one that the recipient's fields select.
///
/// # Errors
/// As [`crate::rails::Registry::serving`].
pub(super) fn serving(
    (app, caller): (&App, &Caller),
    request: &NewPayout,
    saved: Option<&Beneficiary>,
) -> Result<(Arc<Rail>, String), Problem> {
    let method = request.method.as_deref().or(saved.map(|saved| saved.method.as_str()));
    let given = |name: &str| match &request.to {
        To::Inline(fields) => sent_in_block(fields, name),
        To::Beneficiary(_) => None,
    };
    let usual = caller.merchant.settings.usual_method(request.currency);
    let choice = Choice { method, usual, given: &given };
    app.rails.serving(request.currency, choice)
}

async fn inline(
    app: &App,
    (rail, (method, currency)): (&Rail, (&str, Currency)),
    fields: &BTreeMap<String, Value>,
) -> Result<Checked, Problem> {
    let declared = rail.declaration.recipient.fields.iter();
    refuse_non_strings(fields, declared.map(|field| field.place(Block::Inline)))
        .map_err(|problem| problem.within("recipient"))?;
    let checked = app
        .recipients
        .check(rail, (method, currency, Block::Inline), |place| sent_in_block(fields, place))
        .await;
    let checked = checked.map_err(|problem| problem.within("recipient"))?;
    Ok(Checked::clone(&checked))
}

/// The saved recipient as it would be after this payout, its name not asked for yet.
fn draft(
    app: &App,
    caller: &Caller,
    (rail, currency, method): (&Rail, Currency, &str),
    (checked, known, given): (&Checked, &Known, &BTreeMap<String, Value>),
) -> Beneficiary {
    let (merchant, env) = caller.owner();
    if let Some(beneficiary) = &known.beneficiary {
        // What the request says is paid, whatever was saved before.
        let recipient = checked.fields.clone();
        let draft = Beneficiary { deleted_at: None, recipient, ..beneficiary.clone() };
        return match beneficiary.is_known_to(&app.rails, rail) {
            true => draft,
            false => draft.unasked(),
        };
    }
    let now = app.now();
    Beneficiary {
        id: app.ids.id(),
        merchant_id: merchant.clone(),
        env,
        currency,
        method: method.to_owned(),
        identity: checked.identity.clone(),
        recipient: checked.fields.clone(),
        name: sent(given, "name").map(|name| name.trim().to_owned()).unwrap_or_default(),
        email: sent(given, "email"),
        phone: None,
        external_reference: None,
        account_name: None,
        resolution: None,
        resolved_at: None,
        verification: Verification::Pending,
        correction: None,
        is_blacklisted: false,
        source: BeneficiarySource::Auto,
        deleted_at: None,
        created_at: now,
        updated_at: now,
    }
}

struct Named {
    beneficiary: Beneficiary,
    was_asked: bool,
}

fn name_to_pay(rail: &Rail, beneficiary: &Beneficiary) -> String {
    let given = beneficiary.recipient.get(&rail.declaration.recipient.name);
    let on_record = beneficiary.account_name.as_deref();
    match (rail.overwrites_names(), on_record) {
        (true, Some(name)) => name.to_owned(),
        (false, _) if !given.is_empty() => given.to_owned(),
        _ => beneficiary.name.clone(),
    }
}

/// Asks for the name on record where none is fresh, or whether the name that was given is the one.
async fn name(
    app: &App,
    caller: &Caller,
    rail: &Rail,
    (beneficiary, method, known): (Beneficiary, &str, &Known),
    scenario: Option<&str>,
) -> Result<Named, Problem> {
    let Some(terms) = rail.declaration.names.as_ref() else {
        return Ok(Named { beneficiary, was_asked: false });
    };
    let now = app.now();
    let fresh_for = Duration::from_secs(u64::from(terms.fresh_for_days) * 24 * 3600);
    let is_fresh = beneficiary.resolved_at.is_some_and(|at| at.after(fresh_for) > now);
    // What was compared was one name, and is known of no other.
    let name = rail.declaration.recipient.name.as_str();
    let compared = known.beneficiary.as_ref().map(|saved| saved.recipient.get(name));
    let is_its = terms.overwrite || compared == Some(beneficiary.recipient.get(name));
    // A scenario about names is played even for a recipient that is known.
    let is_played = matches!(scenario, Some("unresolvable" | "name_mismatch" | "provider_down"));
    if is_fresh && is_its && beneficiary.resolution.is_some() && !is_played {
        return Ok(Named { beneficiary, was_asked: false });
    }
    let identity = beneficiary.identity.clone();
    let which = (beneficiary.currency, identity.as_str());
    let may_remember = terms.overwrite && scenario.is_none();
    if may_remember && let Some(known) = app.recipients.named(caller.owner(), which).await {
        return Ok(Named { beneficiary: named_now(beneficiary, known, now), was_asked: true });
    }
    let question = Question {
        merchant: &caller.merchant.id,
        env: caller.key.env,
        currency: beneficiary.currency,
        method,
        account: &beneficiary.recipient,
        number: app.transfers.enquiry_number().await?,
        scenario,
    };
    let resolved = match resolve(&app.routes, now, &question).await {
        // Where names are only compared, nobody who could compare them stops a payment.
        Err(problem) if !terms.overwrite && is_nobody_there(&problem) => {
            // What is known is known of another name.
            let (account_name, resolution) = (None, None);
            let beneficiary = Beneficiary { account_name, resolution, ..beneficiary };
            return Ok(Named { beneficiary, was_asked: false });
        }
        resolved => resolved?,
    };
    if may_remember {
        app.recipients.remember(caller.owner(), which, &resolved.resolution).await;
    }
    Ok(Named { beneficiary: named_now(beneficiary, resolved.resolution, now), was_asked: true })
}

/// A recipient of whose account this was just said.
fn named_now(beneficiary: Beneficiary, resolution: Resolution, now: Moment) -> Beneficiary {
    let name = match beneficiary.name.is_empty() {
        true => resolution.name.clone(),
        false => beneficiary.name,
    };
    Beneficiary {
        name,
        account_name: Some(resolution.name.clone()),
        resolution: Some(resolution),
        resolved_at: Some(now),
        verification: Verification::Verified,
        updated_at: now,
        ..beneficiary
    }
}

/// Whether nobody could be asked who holds the account.
fn is_nobody_there(problem: &Problem) -> bool {
    matches!(problem.code(), ErrorCode::ProviderError | ErrorCode::RoutingFailed)
}

/// How the recipient is saved: as a new row, restored from its deletion, or with a new name.
fn saving(app: &App, rail: &Rail, known: &Known, named: &mut Named) -> Result<Saving, Problem> {
    let beneficiary = &mut named.beneficiary;
    let Some(before) = &known.beneficiary else {
        return Saving::new(beneficiary, &app.keyring, &app.ids);
    };
    // What was learnt of the name in this request says nothing about the one that was saved.
    let name = &rail.declaration.recipient.name;
    let is_one = before.recipient.get(name) == beneficiary.recipient.get(name);
    let is_its = before.is_known_to(&app.rails, rail) && (rail.overwrites_names() || is_one);
    if before.deleted_at.is_none() && !(named.was_asked && is_its) {
        return Ok(Saving::nothing(beneficiary));
    }
    beneficiary.updated_at = app.now();
    // A payment is no reason to change what was saved.
    let recipient = before.recipient.clone();
    let kept = Beneficiary { recipient, ..beneficiary.clone() };
    let kept = if is_its { kept } else { kept.unasked() };
    Saving::change(&kept, before.updated_at, (&app.keyring, &app.ids))
}
