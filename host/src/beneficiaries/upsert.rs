//! `POST /v1/beneficiaries`: new, changed or restored; never two for one recipient.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::app::App;
use crate::audit::{self, masked, masked_fields};
use crate::auth::merchant::inactive_currency;
use crate::caller::Caller;
use crate::config::limits;
use crate::error::{ErrorCode, Problem};
use crate::http::texts;
use crate::ledger::{Command, Done, Effects, Reply, Reservation, replay};
use crate::money::Currency;
use crate::rails::{Block, Choice, placed, refuse_no_block};
use crate::recipients::{
    Beneficiary, BeneficiarySource, Known, Question, Saving, Verification, resolve,
};

use super::view::BeneficiaryView;

/// How an upsert ended.
enum Outcome {
    Created,
    Changed,
    Restored,
}

/// Saves a recipient.
///
/// Who saves the same recipient at once takes turns; what changed on another host meanwhile is
/// looked at again.
///
/// # Errors
/// The codes of the contract for this call.
pub(super) async fn upsert(
    app: &App,
    caller: &Caller,
    body: &BTreeMap<String, Value>,
    reservation: Option<Reservation>,
) -> Result<(Reply, bool), Problem> {
    let mut again = 0;
    loop {
        let done = attempt(app, caller, body, reservation.clone()).await;
        let done = match (done, &reservation) {
            (Err(problem), _)
                if problem.code() == ErrorCode::StateConflict
                    && again < limits::RECIPIENT_RETRIES_MAX =>
            {
                again += 1;
                continue;
            }
            (Err(problem), Some(reservation)) => match replay(&app.db, reservation).await? {
                Some(done) => done,
                None => return Err(problem),
            },
            (done, _) => done?,
        };
        app.recipients.forget();
        let missing = || Problem::internal("an upsert without a reply");
        return match done {
            Done::Now(reply) => Ok((reply, false)),
            Done::Before { reply, .. } => Ok((reply.ok_or_else(missing)?, true)),
        };
    }
}

async fn attempt(
    app: &App,
    caller: &Caller,
    body: &BTreeMap<String, Value>,
    reservation: Option<Reservation>,
) -> Result<Done<Reply>, Problem> {
    let wanted = understand(app, caller, body).await?;
    let owner = caller.owner();
    let turn = app.recipients.turn(owner, (wanted.currency, &wanted.identity)).await;
    let _turn = turn.lock().await;
    app.recipients.forget();
    let known = app.recipients.known(owner, (wanted.currency, &wanted.identity)).await?;
    if known.is_blacklisted || known.is_globally_blocked {
        return Err(Problem::new(ErrorCode::BeneficiaryBlacklisted));
    }
    let (mut beneficiary, outcome) = merge(wanted, &known);
    if let Some(before) = &known.beneficiary {
        let (rail, _) =
            app.rails.serving(beneficiary.currency, Choice::of(Some(&beneficiary.method)))?;
        if !before.is_known_to(&app.rails, &rail) {
            beneficiary = beneficiary.unasked();
        }
    }
    verify(app, caller, (known.beneficiary.as_ref(), &mut beneficiary)).await?;
    let keys = (app.keyring.as_ref(), app.ids.as_ref());
    let saving = match &known.beneficiary {
        None => Saving::new(&beneficiary, keys.0, keys.1)?,
        Some(before) => Saving::change(&beneficiary, before.updated_at, keys)?,
    };
    let (status, created, restored) = match outcome {
        Outcome::Created => (201, true, None),
        Outcome::Changed => (200, false, None),
        Outcome::Restored => (200, false, Some(true)),
    };
    let view = BeneficiaryView {
        created: Some(created),
        restored,
        ..BeneficiaryView::of(&beneficiary, &app.rails)
    };
    let reply = Reply { status, body: serde_json::to_string(&view).map_err(Problem::internal)? };
    let action = match outcome {
        Outcome::Created => "beneficiary.create",
        Outcome::Changed => "beneficiary.update",
        Outcome::Restored => "beneficiary.restore",
    };
    let record = record(caller, action, (known.beneficiary.as_ref(), &beneficiary));
    let told = vec![record.row(&app.ids, app.now())];
    let (guard, counter) = (saving.guard(), saving.counter());
    let command = Command::new(move |locked| {
        // A new recipient that is no longer new: the caller looks again and changes it.
        if saving.saved_meanwhile(locked).is_some() {
            return Err(Problem::new(ErrorCode::StateConflict));
        }
        let mut effects = Effects { reply: Some(reply.clone()), ..Effects::default() };
        saving.write(locked, &mut effects);
        Ok(effects.and(reply.clone()))
    });
    let command = command.guards(guard).counters(counter).reserve(reservation);
    app.writer.request(command.and_rows(told)).await
}

/// The line of the audit log about a change by a merchant's key.
pub(super) fn record(
    caller: &Caller,
    action: &'static str,
    (before, after): (Option<&Beneficiary>, &Beneficiary),
) -> audit::Change {
    let mut told = state(after);
    if let Some(before) = before {
        // What is masked may look the same as before.
        let fields = [
            ("name", before.name != after.name),
            ("method", before.method != after.method),
            ("email", before.email != after.email),
            ("phone", before.phone != after.phone),
            ("external_reference", before.external_reference != after.external_reference),
            ("is_deleted", before.deleted_at.is_some() != after.deleted_at.is_some()),
        ];
        let changed = fields.into_iter().filter(|(_, is_changed)| *is_changed);
        told["changed"] = changed.map(|(name, _)| name).collect();
    }
    audit::Change {
        actor: caller.key.id.to_string(),
        address: caller.address.to_string(),
        action,
        subject_type: "beneficiary",
        subject_id: after.id.to_string(),
        before: before.map(state),
        after: Some(told),
    }
}

fn state(beneficiary: &Beneficiary) -> Value {
    json!({
        "name": beneficiary.name,
        "currency": beneficiary.currency.as_str(),
        "method": beneficiary.method,
        "recipient": masked_fields(&beneficiary.recipient.to_json()),
        "email": beneficiary.email.as_deref().map(masked),
        "phone": beneficiary.phone.as_deref().map(masked),
        "external_reference": beneficiary.external_reference,
        "is_deleted": beneficiary.deleted_at.is_some(),
    })
}

/// The beneficiary that the body describes, as if it were new.
async fn understand(
    app: &App,
    caller: &Caller,
    body: &BTreeMap<String, Value>,
) -> Result<Beneficiary, Problem> {
    let text = |name: &str| match placed(body, name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
        }
        Some(_) => {
            let message = format!("{name} must be a string.");
            Err(Problem::because(ErrorCode::InvalidField, message).field(name))
        }
    };
    let required = |name: &'static str| {
        let missing = move || {
            Problem::because(ErrorCode::MissingField, format!("{name} is required.")).field(name)
        };
        text(name).and_then(|value| value.ok_or_else(missing))
    };
    let currency = Currency::parse(&required("currency")?).ok_or_else(inactive_currency)?;
    caller.merchant.settings.refuse_currency(currency, caller.key.env)?;
    let given = |name: &str| text(name).ok().flatten();
    let choice =
        Choice { usual: caller.merchant.settings.usual_method(currency), ..Choice::by(&given) };
    let (rail, method) = app.rails.serving(currency, choice)?;
    let name = required("name")?;
    let (email, phone) = (text("email")?, text("phone")?);
    let external_reference = text("external_reference")?;
    texts::NAME.check("name", Some(&name))?;
    texts::EMAIL.check("email", email.as_deref())?;
    texts::PHONE.check("phone", phone.as_deref())?;
    texts::REFERENCE.check("external_reference", external_reference.as_deref())?;
    // Fields of other rails mean nothing here, and have an end all the same.
    for rail in app.rails.all() {
        for field in &rail.declaration.recipient.fields {
            text(&field.name)?;
            let place = field.place(Block::Saved);
            text(place)?;
            refuse_no_block(body, place)?;
        }
        rail.refuse_long(|name| text(name).ok().flatten())?;
    }
    let checked = app
        .recipients
        .check(&rail, (&method, currency, Block::Saved), |name| text(name).ok().flatten())
        .await?;
    let (merchant, env) = caller.owner();
    let now = app.now();
    Ok(Beneficiary {
        id: app.ids.id(),
        merchant_id: merchant.clone(),
        env,
        currency,
        method,
        identity: checked.identity.clone(),
        recipient: checked.fields.clone(),
        name,
        email,
        phone,
        external_reference,
        account_name: None,
        resolution: None,
        resolved_at: None,
        verification: Verification::Pending,
        correction: None,
        is_blacklisted: false,
        source: BeneficiarySource::Manual,
        deleted_at: None,
        created_at: now,
        updated_at: now,
    })
}

/// What is known of the recipient, with what the body says on top.
fn merge(wanted: Beneficiary, known: &Known) -> (Beneficiary, Outcome) {
    let Some(before) = known.beneficiary.clone() else { return (wanted, Outcome::Created) };
    let outcome = match before.deleted_at {
        Some(_) => Outcome::Restored,
        None => Outcome::Changed,
    };
    let merged = Beneficiary {
        name: wanted.name,
        email: wanted.email.or(before.email),
        phone: wanted.phone.or(before.phone),
        external_reference: wanted.external_reference.or(before.external_reference),
        method: wanted.method,
        recipient: wanted.recipient,
        correction: None,
        deleted_at: None,
        updated_at: wanted.updated_at,
        ..before
    };
    (merged, outcome)
}

/// Asks the bank for the name, where it was not asked before. A bank that does not know the
/// account makes the verification fail; one that cannot be asked leaves it pending.
pub(super) async fn verify(
    app: &App,
    caller: &Caller,
    (before, beneficiary): (Option<&Beneficiary>, &mut Beneficiary),
) -> Result<(), Problem> {
    let choice = Choice::of(Some(&beneficiary.method));
    let (rail, _) = app.rails.serving(beneficiary.currency, choice)?;
    let Some(names) = &rail.declaration.names else { return Ok(()) };
    let name = rail.declaration.recipient.name.as_str();
    let compared = before.map(|before| before.recipient.get(name));
    let is_its = names.overwrite || compared == Some(beneficiary.recipient.get(name));
    if is_its && beneficiary.verification == Verification::Verified {
        return Ok(());
    }
    if !is_its {
        // What was known was known of another name.
        (beneficiary.account_name, beneficiary.resolution) = (None, None);
        (beneficiary.resolved_at, beneficiary.verification) = (None, Verification::Pending);
    }
    let chosen =
        rail.declaration.scenario(|field| Some(beneficiary.recipient.get(field).to_owned()));
    let question = Question {
        merchant: &caller.merchant.id,
        env: caller.key.env,
        currency: beneficiary.currency,
        method: &beneficiary.method,
        account: &beneficiary.recipient,
        number: app.transfers.enquiry_number().await?,
        scenario: chosen.filter(|_| caller.key.env == crate::env::Env::Test),
    };
    let now = app.now();
    match resolve(&app.routes, now, &question).await {
        Ok(resolved) => {
            beneficiary.account_name = Some(resolved.resolution.name.clone());
            beneficiary.resolution = Some(resolved.resolution);
            beneficiary.resolved_at = Some(now);
            beneficiary.verification = Verification::Verified;
        }
        Err(problem)
            if matches!(
                problem.code(),
                ErrorCode::RecipientUnresolvable | ErrorCode::NameMismatch
            ) =>
        {
            beneficiary.verification = Verification::Failed;
        }
        Err(problem) if problem.code() == ErrorCode::ApiError => return Err(problem),
        Err(_) => beneficiary.verification = Verification::Pending,
    }
    Ok(())
}
