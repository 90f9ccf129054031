//! A report that is asked for, and its answer: as JSON, CSV or a workbook.

use axum::response::{IntoResponse as _, Response};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, stream};
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Caller;
use crate::config::limits;
use crate::error::{ErrorCode, Problem};
use crate::http::places::{NoPlace, Place, Share};
use crate::ledger::wallets::{Span, WalletRow, list_wallets};
use crate::money::Currency;

use super::http::ReportQuery;
use super::range::Range;
use super::rows::{Head, ReportRow};
use super::sql::{self, Added, Counted, Entries, Whose};
use super::table::{self, Book, Frame};

/// As what a report is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum Form {
    Json,
    Csv,
    Xlsx,
}

impl Form {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Xlsx => "xlsx",
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        }
    }
}

/// What entries come to, each with the currency of its wallet.
pub(super) type Adding = BoxFuture<'static, Result<Vec<(Currency, Added)>, Problem>>;

/// How many payouts there are.
pub(super) type Counting = BoxFuture<'static, Result<Vec<Counted>, Problem>>;

/// A report that is asked for.
pub(super) struct Asked<'a> {
    app: &'a App,
    caller: &'a Caller,
    /// Which days.
    pub range: Range,
    /// Of any currency, if empty.
    pub currency: String,
    /// As what.
    pub form: Form,
    /// Its place among those of its key.
    place: Place,
}

impl<'a> Asked<'a> {
    pub(super) fn read(
        app: &'a App,
        caller: &'a Caller,
        query: ReportQuery,
    ) -> Result<Self, Problem> {
        let form = match query.format.as_deref() {
            None | Some("json") => Form::Json,
            Some("csv") => Form::Csv,
            Some("xlsx") => Form::Xlsx,
            Some(_) => {
                let message = "format must be json, csv or xlsx.";
                let problem = Problem::because(ErrorCode::InvalidFilter, message);
                return Err(problem.field("format"));
            }
        };
        let days = (query.from.as_deref(), query.to.as_deref());
        let range =
            Range::read(days, &caller.merchant.timezone, (caller.merchant.created_at, app.now()))?;
        let currency = app.rails.filter(query.currency)?;
        let share =
            Share { of_key: limits::REPORTS_PER_KEY_MAX, of_owner: limits::REPORTS_PER_OWNER_MAX };
        let place = app.long_answers.reports.take_for(&caller.key.id, caller.owner(), share);
        let too_many = |it: NoPlace| it.refusal(("report", "Reports"), RETRY_AFTER_S);
        let place = place.map_err(too_many)?;
        Ok(Self { app, caller, range, currency, form, place })
    }

    /// The wallets that it is about, each with its entries of the range.
    pub(super) async fn wallets(&self) -> Result<Vec<(WalletRow, Span)>, Problem> {
        let pool = self.app.db.pool();
        let mut wallets = list_wallets(pool, self.caller.owner()).await?;
        wallets.retain(|it| self.currency.is_empty() || it.currency.as_str() == self.currency);
        let mut found = Vec::with_capacity(wallets.len());
        for wallet in wallets {
            let span = Span::of(pool, &wallet.id, (self.range.start, self.range.end)).await?;
            found.push((wallet, span));
        }
        Ok(found)
    }

    /// What the entries of the range come to, by day, currency and source: a slice at a time, each in
    /// its turn.
    pub(super) async fn added(&self, which: Entries) -> Result<Adding, Problem> {
        let wallets = self.wallets().await?;
        let (app, range) = (self.app.clone(), self.range.clone());
        let (merchant, env) = self.caller.owner();
        let merchant = merchant.clone();
        Ok(Box::pin(async move {
            let mut all = Vec::new();
            for (wallet, span) in wallets {
                for slice in span.slices(limits::REPORT_SUMMED) {
                    let _permit = app.long_answers.reads.acquire((&merchant, env)).await?;
                    let slice = (&wallet, slice, which);
                    let added = sql::add_entries(app.db.pool(), slice, &range).await?;
                    all.extend(added.into_iter().map(|it| (wallet.currency, it)));
                }
            }
            Ok(all)
        }))
    }

    /// How many payouts of the range there are by day, currency and status, counted in the same way.
    pub(super) fn counted(&self) -> Counting {
        let (app, range) = (self.app.clone(), self.range.clone());
        let (currency, (merchant, env)) = (self.currency.clone(), self.caller.owner());
        let merchant = merchant.clone();
        Box::pin(async move {
            let whose = Whose { merchant: &merchant, env, currency: &currency };
            let (mut first, last) = sql::numbers(&range);
            let mut all = Vec::new();
            loop {
                let _permit = app.long_answers.reads.acquire((&merchant, env)).await?;
                let pool = app.db.pool();
                let next = sql::end_of_slice(pool, whose, (first, last)).await?;
                let slice = (&range, first, next.unwrap_or(last));
                let counted = sql::count_payouts(pool, whose, slice).await?;
                all.extend(counted);
                match next {
                    Some(next) => first = next,
                    None => return Ok(all),
                }
            }
        })
    }

    pub(super) fn whose(&self) -> Whose<'_> {
        let (merchant, env) = self.caller.owner();
        Whose { merchant, env, currency: &self.currency }
    }

    /// Decimal places of a currency's major unit.
    pub(super) fn places(&self) -> impl Fn(Currency) -> u8 + Clone + Send + Sync + use<> {
        let app = self.app.clone();
        move |currency| app.rails.places_shown(currency)
    }

    pub(super) fn head(&self, report_type: &'static str) -> Head {
        Head {
            object: "report",
            report_type,
            range: self.range.view(),
            currency: None,
            opening_balance_minor: None,
            closing_balance_minor: None,
            count: None,
        }
    }

    fn file_name(&self, head: &Head) -> String {
        let currency = match self.currency.as_str() {
            "" => String::new(),
            currency => format!("_{currency}"),
        };
        let (report, range, form) = (head.report_type, &head.range, self.form.as_str());
        format!("{report}{currency}_{}_{}.{form}", range.from, range.to)
    }

    /// The answer, of rows that are there.
    pub(super) async fn answer<T: ReportRow + 'static>(
        self,
        head: Head,
        rows: Vec<T>,
    ) -> Result<Response, Problem> {
        self.stream(head, None, stream::iter([Ok(rows)]).boxed()).await
    }

    /// The answer, of rows that take their time where there is much to add up.
    pub(super) async fn add_up<T: ReportRow + 'static>(
        self,
        head: Head,
        rows: impl Future<Output = Result<Vec<T>, Problem>> + Send + 'static,
    ) -> Result<Response, Problem> {
        let mut rows = Box::pin(rows);
        if self.form == Form::Xlsx {
            // It waits for its turn as a workbook first: whoever has a permit to read goes on reading.
            return self.stream(head, None, stream::once(rows).boxed()).await;
        }
        match tokio::time::timeout(limits::REPORT_AT_ONCE, &mut rows).await {
            Ok(rows) => self.answer(head, rows?).await,
            Err(_) => self.stream(head, None, stream::once(rows).boxed()).await,
        }
    }

    /// The answer, of rows that are read as they are sent.
    pub(super) async fn stream<T: ReportRow + 'static>(
        self,
        head: Head,
        frame: Option<Frame>,
        rows: BoxStream<'static, Result<Vec<T>, Problem>>,
    ) -> Result<Response, Problem> {
        let places = self.places();
        let name = self.file_name(&head);
        let report_type = head.report_type;
        let of_row = move |row: &T| places(row.currency());
        let place = self.place;
        let body = match self.form {
            Form::Json => place.hold(json(&head, rows)?),
            Form::Csv => place.hold(table::csv(frame.as_ref(), of_row, rows)),
            Form::Xlsx => {
                let turn =
                    self.app.long_answers.workbooks.acquire().await.map_err(Problem::internal)?;
                let folder = self.app.config.data.dir.join("tmp");
                tokio::fs::create_dir_all(&folder).await.map_err(Problem::internal)?;
                let book = Book::new::<T>((report_type, &folder), frame)?;
                let bytes = workbook(book, of_row, rows).await?;
                drop(turn);
                place.hold(stream::once(async move { Ok(bytes) }))
            }
        };
        let mut response = body.into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.form.content_type()));
        if self.form != Form::Json
            && let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
        {
            headers.insert(CONTENT_DISPOSITION, value);
        }
        Ok(response)
    }
}

/// When a key that is being sent too many reports may try again, in seconds.
const RETRY_AFTER_S: u64 = 5;

/// A report as JSON, a portion at a time.
fn json<T: ReportRow + 'static>(
    head: &Head,
    rows: BoxStream<'static, Result<Vec<T>, Problem>>,
) -> Result<impl Stream<Item = Result<Vec<u8>, Problem>> + Send + 'static, Problem> {
    let mut begun = serde_json::to_vec(head).map_err(Problem::internal)?;
    // It goes on where its own brace closes.
    begun.pop();
    begun.extend(br#","data":["#);
    let mut is_first = true;
    let portion = move |rows: Result<Vec<T>, Problem>| {
        let mut written = Vec::new();
        for row in rows? {
            if !std::mem::replace(&mut is_first, false) {
                written.push(b',');
            }
            serde_json::to_writer(&mut written, &row).map_err(Problem::internal)?;
        }
        Ok(written)
    };
    let once = |bytes: Vec<u8>| stream::once(async move { Ok(bytes) });
    Ok(once(begun).chain(rows.map(portion)).chain(once(b"]}".to_vec())))
}

/// A report as a workbook. It is packed when its last row is known, away from other requests.
async fn workbook<T: ReportRow + 'static>(
    mut book: Book,
    places: impl Fn(&T) -> u8 + Clone + Send + 'static,
    mut rows: BoxStream<'static, Result<Vec<T>, Problem>>,
) -> Result<Vec<u8>, Problem> {
    while let Some(portion) = rows.next().await {
        let (portion, places) = (portion?, places.clone());
        let written = tokio::task::spawn_blocking(move || {
            book.write(&portion, places)?;
            Ok::<_, Problem>(book)
        });
        book = written.await.map_err(Problem::internal)??;
    }
    tokio::task::spawn_blocking(move || book.finish()).await.map_err(Problem::internal)?
}
