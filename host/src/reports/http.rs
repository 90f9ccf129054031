//! The calls about reports.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use futures::{Stream, StreamExt as _, stream};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::caller::Caller;
use crate::config::limits;
use crate::error::{ErrorCode, Problem};
use crate::http::Query;
use crate::ledger::wallets::{EntryRow, Span, WalletRow, balance_before, list_span};
use crate::ledger::{Source, entry_id};
use crate::money::{Currency, Minor};
use crate::payouts::model::{Payout, Status};

use super::answer::{Asked, Form};
use super::rows::{
    BankStatement, CashflowRow, FailedPayouts, FailedRow, FeesRow, FundingRow, Head, PayoutsRow,
    Report, StatementRow,
};
use super::sql::{self, Added, Entries};
use super::table::Frame;

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_reports", &[]),
    ("report_payouts", &[ErrorCode::InvalidFilter]),
    ("report_funding", &[ErrorCode::InvalidFilter]),
    ("report_cashflow", &[ErrorCode::InvalidFilter]),
    ("report_fees", &[ErrorCode::InvalidFilter]),
    ("report_bank_statement", &[ErrorCode::InvalidFilter, ErrorCode::MissingCurrency]),
    ("report_failed_payouts", &[ErrorCode::InvalidFilter]),
];

/// Every report: its name, and what it is for.
const CATALOGUE: &[(&str, &str)] = &[
    ("payouts", "Payouts by the day they were made, with where they stand now."),
    ("funding", "What came into wallets, by day and source."),
    ("cashflow", "Everything that went in and out of wallets, by day."),
    ("fees", "Fees and the tax on them, by day and what they were charged for."),
    ("bank_statement", "Every entry of one wallet, with the balance before and after."),
    ("failed_payouts", "Payouts that failed, each with its reason."),
];

/// A report that there is.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportType {
    /// Always `report_type`.
    #[schema(example = "report_type")]
    pub object: &'static str,
    /// Its name.
    #[schema(example = "payouts")]
    pub id: &'static str,
    /// Where it is read.
    #[schema(example = "/v1/reports/payouts")]
    pub endpoint: String,
    /// What it can be had as.
    #[schema(example = json!(["json", "csv", "xlsx"]))]
    pub formats: [&'static str; 3],
    /// What it is for.
    pub description: &'static str,
}

/// All reports.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportTypes {
    /// Always `list`.
    #[schema(example = "list")]
    pub object: &'static str,
    /// Always false.
    pub has_more: bool,
    /// The reports.
    pub data: Vec<ReportType>,
}

/// List the reports
#[utoipa::path(
    get, path = "/v1/reports", operation_id = "list_reports", tag = "Reports",
    responses((status = 200, description = "All of them", body = ReportTypes)),
)]
pub async fn catalogue(_: Caller) -> Json<ReportTypes> {
    let data = CATALOGUE.iter().map(|(id, description)| ReportType {
        object: "report_type",
        id,
        endpoint: format!("/v1/reports/{id}"),
        formats: [Form::Json, Form::Csv, Form::Xlsx].map(Form::as_str),
        description,
    });
    Json(ReportTypes { object: "list", has_more: false, data: data.collect() })
}

/// Which days, and as what.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct ReportQuery {
    /// The first day, in the merchant's timezone; 29 days ago if left out.
    #[param(value_type = Option<String>, format = Date)]
    pub from: Option<String>,
    /// The last day; today if left out.
    #[param(value_type = Option<String>, format = Date)]
    pub to: Option<String>,
    /// Only this currency, as an ISO 4217 code.
    pub currency: Option<String>,
    /// JSON if left out, or a file with amounts in major units.
    #[param(value_type = Option<Form>, inline)]
    pub format: Option<String>,
}

/// Report payouts
///
/// By the day on which they were made, with where they stand now.
#[utoipa::path(
    get, path = "/v1/reports/payouts", operation_id = "report_payouts", tag = "Reports",
    params(ReportQuery),
    responses((status = 200, description = "Oldest first", content(
        (Report<PayoutsRow> = "application/json"), (String = "text/csv"),
        (Vec<u8> = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ))),
)]
pub async fn payouts(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ReportQuery>,
) -> Result<Response, Problem> {
    let asked = Asked::read(&app, &caller, query)?;
    let (head, counted) = (asked.head("payouts"), asked.counted());
    asked.add_up(head, async move { payouts_by_day(counted.await?) }).await
}

fn payouts_by_day(counted: Vec<sql::Counted>) -> Result<Vec<PayoutsRow>, Problem> {
    let mut days: BTreeMap<(Date, String), PayoutsRow> = BTreeMap::new();
    for sql::Counted { day, currency, status, count, amount } in counted {
        let odd = || Problem::internal("an odd payout");
        let of = Currency::parse(&currency).ok_or_else(odd)?;
        let status = Status::parse(&status).ok_or_else(odd)?;
        let row = days.entry((day, currency)).or_insert_with(|| PayoutsRow {
            day: day.to_string(),
            currency: of,
            paid_count: 0,
            failed_count: 0,
            in_flight_count: 0,
            cancelled_count: 0,
            paid_amount_minor: Minor::ZERO,
            failed_amount_minor: Minor::ZERO,
        });
        match status {
            Status::Paid | Status::PaidManual => {
                row.paid_count += count;
                row.paid_amount_minor = row.paid_amount_minor.plus(amount)?;
            }
            Status::Failed | Status::FailedManual | Status::Reversed => {
                row.failed_count += count;
                row.failed_amount_minor = row.failed_amount_minor.plus(amount)?;
            }
            Status::Cancelled => row.cancelled_count += count,
            Status::Draft | Status::AwaitingAdminReview | Status::Queued | Status::Processing => {
                row.in_flight_count += count;
            }
        }
    }
    Ok(days.into_values().collect())
}

/// Report funding
///
/// What came into wallets, by day and source: neither what payouts gave back nor conversions.
#[utoipa::path(
    get, path = "/v1/reports/funding", operation_id = "report_funding", tag = "Reports",
    params(ReportQuery),
    responses((status = 200, description = "Oldest first", content(
        (Report<FundingRow> = "application/json"), (String = "text/csv"),
        (Vec<u8> = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ))),
)]
pub async fn funding(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ReportQuery>,
) -> Result<Response, Problem> {
    let asked = Asked::read(&app, &caller, query)?;
    let (head, added) = (asked.head("funding"), asked.added(Entries::BesidesPayouts).await?);
    asked.add_up(head, async move { funding_by_day(added.await?) }).await
}

fn funding_by_day(added: Vec<(Currency, Added)>) -> Result<Vec<FundingRow>, Problem> {
    let mut days: BTreeMap<(Date, Currency, String), FundingRow> = BTreeMap::new();
    for (currency, Added { day, kind, credits, credited, .. }) in added {
        if credits == 0 || !Source::parse(&kind).is_some_and(Source::is_funding) {
            continue;
        }
        let row = days.entry((day, currency, kind.clone())).or_insert_with(|| FundingRow {
            day: day.to_string(),
            currency,
            source: kind,
            count: 0,
            amount_minor: Minor::ZERO,
        });
        row.count += credits;
        row.amount_minor = row.amount_minor.plus(credited)?;
    }
    Ok(days.into_values().collect())
}

/// Report cashflow
///
/// Every entry of every wallet, by day: what a day's `net_minor` says is by how much the balance
/// changed.
#[utoipa::path(
    get, path = "/v1/reports/cashflow", operation_id = "report_cashflow", tag = "Reports",
    params(ReportQuery),
    responses((status = 200, description = "Oldest first", content(
        (Report<CashflowRow> = "application/json"), (String = "text/csv"),
        (Vec<u8> = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ))),
)]
pub async fn cashflow(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ReportQuery>,
) -> Result<Response, Problem> {
    let asked = Asked::read(&app, &caller, query)?;
    let (head, added) = (asked.head("cashflow"), asked.added(Entries::All).await?);
    asked.add_up(head, async move { cashflow_by_day(added.await?) }).await
}

fn cashflow_by_day(added: Vec<(Currency, Added)>) -> Result<Vec<CashflowRow>, Problem> {
    let mut days: BTreeMap<(Date, Currency), CashflowRow> = BTreeMap::new();
    for (currency, added) in added {
        let day = added.day;
        let row = days.entry((day, currency)).or_insert_with(|| CashflowRow {
            day: day.to_string(),
            currency,
            inflow_minor: Minor::ZERO,
            outflow_minor: Minor::ZERO,
            net_minor: Minor::ZERO,
            inflow_count: 0,
            outflow_count: 0,
        });
        row.inflow_minor = row.inflow_minor.plus(added.credited)?;
        row.outflow_minor = row.outflow_minor.plus(added.debited)?;
        row.net_minor = row.inflow_minor.minus(row.outflow_minor)?;
        row.inflow_count += added.credits;
        row.outflow_count += added.debits;
    }
    Ok(days.into_values().collect())
}

/// Report fees
///
/// What was charged by day and for what, and the tax on it. What was given back is below zero, so
/// that everything adds up to what was paid.
#[utoipa::path(
    get, path = "/v1/reports/fees", operation_id = "report_fees", tag = "Reports",
    params(ReportQuery),
    responses((status = 200, description = "Oldest first", content(
        (Report<FeesRow> = "application/json"), (String = "text/csv"),
        (Vec<u8> = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ))),
)]
pub async fn fees(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ReportQuery>,
) -> Result<Response, Problem> {
    let asked = Asked::read(&app, &caller, query)?;
    let (head, added) = (asked.head("fees"), asked.added(Entries::All).await?);
    asked.add_up(head, async move { fees_by_day(added.await?) }).await
}

fn fees_by_day(added: Vec<(Currency, Added)>) -> Result<Vec<FeesRow>, Problem> {
    let mut days: BTreeMap<(Date, Currency, &'static str), FeesRow> = BTreeMap::new();
    for (currency, added) in added {
        let Some(applies_to) = applies_to(&added) else { continue };
        let day = added.day;
        let row = days.entry((day, currency, applies_to)).or_insert_with(|| FeesRow {
            day: day.to_string(),
            currency,
            applies_to,
            count: 0,
            fee_minor: Minor::ZERO,
            tax_minor: Minor::ZERO,
        });
        // One entry is for fee and tax together.
        let charged = added.debited.minus(added.credited)?;
        let tax = match charged.is_negative() {
            true => added.tax.negated()?,
            false => added.tax,
        };
        row.count += added.debits + added.credits;
        row.fee_minor = row.fee_minor.plus(charged.minus(tax)?)?;
        row.tax_minor = row.tax_minor.plus(tax)?;
    }
    Ok(days.into_values().collect())
}

/// What a fee was charged for; nothing where it is none.
fn applies_to(added: &Added) -> Option<&'static str> {
    match (Source::parse(&added.kind)?, added.is_bulk) {
        (Source::PayoutFee, false) => Some("payout_single"),
        (Source::PayoutFee, true) => Some("payout_bulk"),
        (Source::PayoutFeeReversal, _) => Some("payout_reversal"),
        (Source::VirtualAccountCreditFee, _) => Some("virtual_account_fund"),
        _ => None,
    }
}

/// Report a bank statement
///
/// Every entry of the wallet of `currency`, which is required, with the balance before the first
/// and after the last one. In a file these stand in rows of their own.
#[utoipa::path(
    get, path = "/v1/reports/bank_statement", operation_id = "report_bank_statement",
    tag = "Reports", params(ReportQuery),
    responses((status = 200, description = "Oldest first", content(
        (BankStatement = "application/json"), (String = "text/csv"),
        (Vec<u8> = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ))),
)]
pub async fn bank_statement(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ReportQuery>,
) -> Result<Response, Problem> {
    if query.currency.as_deref().is_none_or(str::is_empty) {
        return Err(Problem::new(ErrorCode::MissingCurrency).field("currency"));
    }
    let asked = Asked::read(&app, &caller, query)?;
    let found = asked.wallets().await?.into_iter().next();
    let currency = match (&found, Currency::parse(&asked.currency)) {
        (Some((wallet, _)), _) => wallet.currency,
        (None, Some(currency)) => currency,
        (None, None) => return Err(Problem::new(ErrorCode::InvalidFilter).field("currency")),
    };
    let balance = async |seq: fn(Span) -> i64| match &found {
        Some((wallet, span)) => balance_before(app.db.pool(), &wallet.id, seq(*span)).await,
        None => Ok(Minor::ZERO),
    };
    let (opening, closing) = (balance(|span| span.from).await?, balance(|span| span.to).await?);
    let head = Head {
        currency: Some(currency),
        opening_balance_minor: Some(opening),
        closing_balance_minor: Some(closing),
        ..asked.head("bank_statement")
    };
    let frame = Frame {
        label_in: "description",
        amount_in: "balance_after_minor",
        opening: ("OPENING BALANCE", opening),
        closing: ("CLOSING BALANCE", closing),
        places: asked.places()(currency),
    };
    let rows = match found {
        Some((wallet, span)) => entries(&app, wallet, span).boxed(),
        None => stream::empty().boxed(),
    };
    asked.stream(head, Some(frame), rows).await
}

/// The entries of a span, some thousand at a time.
fn entries(
    app: &App,
    wallet: WalletRow,
    span: Span,
) -> impl Stream<Item = Result<Vec<StatementRow>, Problem>> + Send + 'static {
    let app = app.clone();
    stream::try_unfold(span, move |left| {
        let (app, wallet) = (app.clone(), wallet.clone());
        async move {
            if left.from >= left.to {
                return Ok(None);
            }
            let page = (left, limits::REPORT_PORTION);
            let rows = list_span(app.db.pool(), &wallet.id, page).await?;
            let Some(last) = rows.last().map(|row| row.seq) else { return Ok(None) };
            let rows = rows.into_iter().map(|row| statement_row(row, wallet.currency)).collect();
            Ok(Some((rows, Span { from: last + 1, ..left })))
        }
    })
}

fn statement_row(entry: EntryRow, currency: Currency) -> StatementRow {
    let id = entry_id(&entry.journal_id, entry.line);
    let is_credit = !entry.amount.is_negative();
    let amount = entry.amount.negated().unwrap_or(entry.amount);
    StatementRow {
        id,
        timestamp: entry.created_at,
        source_label: label(&entry.source),
        source: entry.source,
        direction: if is_credit { "credit" } else { "debit" },
        amount_minor: if is_credit { entry.amount } else { amount },
        balance_after_minor: entry.balance_after,
        description: entry.description,
        source_ref_type: entry.ref_type,
        source_ref_id: entry.ref_id,
        currency,
    }
}

/// A source for people: `payout_fee_reversal` is `Payout fee reversal`.
fn label(source: &str) -> String {
    let words = source.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Report failed payouts
///
/// Those that were made in the range and failed since, or came back, newest first: 500 at most, in a
/// file 5,000. `count` says how many there are.
#[utoipa::path(
    get, path = "/v1/reports/failed_payouts", operation_id = "report_failed_payouts",
    tag = "Reports", params(ReportQuery),
    responses((status = 200, description = "Newest first", content(
        (FailedPayouts = "application/json"), (String = "text/csv"),
        (Vec<u8> = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ))),
)]
pub async fn failed_payouts(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ReportQuery>,
) -> Result<Response, Problem> {
    let asked = Asked::read(&app, &caller, query)?;
    let limit = match asked.form {
        Form::Json => limits::REPORT_FAILED_MAX,
        Form::Csv | Form::Xlsx => limits::REPORT_FAILED_FILE_MAX,
    };
    let permit = app.long_answers.reads.acquire(caller.owner()).await?;
    let (payouts, count) =
        sql::list_failed(app.db.pool(), asked.whose(), (&asked.range, limit)).await?;
    drop(permit);
    let head = Head { count: Some(count), ..asked.head("failed_payouts") };
    asked.answer(head, payouts.iter().map(failed_row).collect()).await
}

fn failed_row(payout: &Payout) -> FailedRow {
    let shown = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    FailedRow {
        id: payout.id.to_string(),
        reference: payout.id.reference(),
        currency: payout.currency,
        amount_minor: payout.costs.amount,
        recipient_account: shown(payout.recipient.account()),
        recipient_bank_code: shown(payout.recipient.bank()),
        recipient_name: payout.recipient_name.clone(),
        failure_code: payout.failure_code.clone(),
        failure_message: payout.failure_message.clone(),
        // It was debited when it was queued, or by a mark.
        auto_reversed: payout.queued_at.is_some() || payout.round > 1,
        created_at: payout.created_at,
        completed_at: payout.completed_at,
    }
}
