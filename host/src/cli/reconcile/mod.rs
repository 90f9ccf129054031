//! `railhead reconcile`: a bank's statements against what the books say that it was told.

mod books;
mod overlaps;
mod told;

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan as _};

use crate::config::Config;
use crate::money::Currency;
use crate::reconciliation::SettlementAccount;
use crate::reconciliation::matching::{Books, Period, references_of};
use crate::start::StartError;
use crate::statements::{self, Columns, Statement, Terms};

use super::admin::token;
use super::warn;

use overlaps::{Forms, Once};

/// What is compared with what.
#[derive(Args)]
pub(super) struct Reconcile {
    /// Statements of one account: camt.053, MT940 or CSV. Where they overlap, what two of them have
    /// counts once.
    #[arg(required = true)]
    statements: Vec<PathBuf>,
    /// The route whose bank account it is; `manual` for what went over none.
    #[arg(long)]
    route: String,
    /// `test` or `live`.
    #[arg(long, default_value = "live")]
    env: String,
    /// The account's currency; needed for `manual` only.
    #[arg(long)]
    currency: Option<String>,
    /// From this day on; the first one of the statements if left out.
    #[arg(long)]
    from: Option<Date>,
    /// Up to this day; the last one of the statements if left out.
    #[arg(long)]
    to: Option<Date>,
    /// The bank's calendar.
    #[arg(long, default_value = "UTC")]
    timezone: String,
    /// Days before and after in which the books may have what the bank has.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(..=60))]
    days_around: u8,
    /// How a CSV file writes days.
    #[arg(long, default_value = "%Y-%m-%d", value_name = "FORMAT")]
    day_format: String,
    /// Write everything that is left over into this file, as CSV.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The host's address; that of the configuration if left out.
    #[arg(long, value_name = "URL", value_parser = crate::cli::account::http_url)]
    url: Option<String>,
}

impl Reconcile {
    /// Says what is left over on either side; fails where something is.
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        let base = self.url.clone().unwrap_or_else(|| config.operators_url());
        let host = books::Host { base: &base, token: token(config)? };
        let timezone = TimeZone::get(&self.timezone)
            .map_err(|_| format!("--timezone {}: there is no such one", self.timezone))?;
        let account = books::account(&host, self.named()).await?;
        let statements = self.read(&account)?;
        let mut once = overlaps::once_each(&statements, self.forms()?);
        let (from, to) = self.days(&statements, &mut once)?;
        let entries = &once.entries;
        let around: Span = i64::from(self.days_around).days();
        let days = (from.checked_sub(around)?, to.checked_add(around)?);
        let mut books = Books::default();
        let mut add = |entry: &_, day: Date| {
            let is_within = from <= day && day <= to;
            let period = if is_within { Period::Within } else { Period::Beside };
            books.add(entry, (day, period));
        };
        books::read(&host, (self.named(), &account), (days, &timezone), &mut add).await?;
        let (found, references) = (books.compare(entries)?, references_of(entries));
        let told = told::Told {
            account: &account,
            statements: &statements,
            short: &once.short,
            entries,
            references: &references,
            books: &books,
            found: &found,
            days: (from, to),
        };
        told.say();
        if let Some(path) = &self.output {
            told.write(path)?;
        }
        match found.different.len() + found.at_the_bank.len() + found.in_the_books.len() {
            0 if told.notes().is_empty() => Ok(()),
            0 => Err("the statements do not add up".into()),
            left => Err(format!("{left} left over").into()),
        }
    }

    const fn named(&self) -> books::Named<'_> {
        books::Named {
            route: self.route.as_str(),
            env: self.env.as_str(),
            currency: &self.currency,
        }
    }

    fn read(
        &self,
        account: &SettlementAccount,
    ) -> Result<Vec<(PathBuf, Vec<Statement>)>, StartError> {
        let currency = Currency::parse(&account.currency).ok_or("the host names no currency")?;
        let columns = Columns { day: self.day_format.clone() };
        let terms = Terms { currency, places: account.places, columns };
        let read = |path: &PathBuf| {
            let statements = read_file(path, &terms);
            let named = |why: String| format!("{}: {why}", path.display());
            Ok((path.clone(), statements.map_err(named)?))
        };
        self.statements.iter().map(read).collect()
    }

    /// Whether all files are of one form; where not, whoever gives them is told.
    fn forms(&self) -> Result<Forms, StartError> {
        let mut forms = HashSet::new();
        for path in &self.statements {
            let mut beginning = [0; 64];
            let read = File::open(path)?.read(&mut beginning)?;
            let first = beginning[..read].iter().find(|byte| byte.is_ascii_graphic());
            forms.insert(first.filter(|byte| b"<:{".contains(byte)).map(|byte| *byte == b'<'));
        }
        if forms.len() <= 1 {
            return Ok(Forms::One);
        }
        warn(format_args!(
            "the statements are of different forms: what two of them have counts twice, unless the \
             bank's own reference stands in both"
        ));
        Ok(Forms::Several)
    }

    /// The days that are compared; entries of others are left out.
    fn days(
        &self,
        statements: &[(PathBuf, Vec<Statement>)],
        once: &mut Once,
    ) -> Result<(Date, Date), StartError> {
        let entries = &mut once.entries;
        let each = || statements.iter().flat_map(|(_, statements)| statements);
        if each().any(|it| it.from.is_none() || it.to.is_none())
            && (self.from.is_none() || self.to.is_none())
        {
            warn(format_args!(
                "a statement does not say which days it covers: what the bank has not booked before \
                 its first entry and after its last is not missed; --from and --to say so"
            ));
        }
        let days = || entries.iter().map(|entry| entry.booked_on);
        let none = "there is no entry in the statements: name the days by --from and --to";
        let first = each().filter_map(|it| it.from).chain(days()).min();
        let last = each().filter_map(|it| it.to).chain(days()).max();
        let from = self.from.or(first).ok_or(none)?;
        let to = self.to.or(last).ok_or(none)?;
        if from > to {
            return Err(format!("--from {from} is after --to {to}").into());
        }
        let all = entries.len();
        entries.retain(|entry| from <= entry.booked_on && entry.booked_on <= to);
        if entries.len() < all {
            warn(format_args!("{} entries are of other days", all - entries.len()));
        }
        Ok((from, to))
    }
}

fn read_file(path: &Path, terms: &Terms) -> Result<Vec<Statement>, String> {
    let file = File::open(path).map_err(|cause| cause.to_string())?;
    statements::read(BufReader::with_capacity(1 << 20, file), terms).map_err(|why| why.to_string())
}
