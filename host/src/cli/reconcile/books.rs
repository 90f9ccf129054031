//! What the host's books say of an account, read as it comes.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use reqwest::Method;
use secrecy::SecretString;

use crate::reconciliation::{SettlementAccount, SettlementEntry, SettlementLine};
use crate::start::StartError;

use super::super::admin;

/// Whom to ask.
pub(super) struct Host<'a> {
    pub base: &'a str,
    pub token: &'a SecretString,
}

/// Which account.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub route: &'a str,
    pub env: &'a str,
    pub currency: &'a Option<String>,
}

impl Named<'_> {
    fn path(self, (from, to): (&str, &str)) -> Result<String, StartError> {
        let given = |text: &str| Some(text.to_owned());
        let filters = [
            ("route", given(self.route)),
            ("env", given(self.env)),
            ("currency", self.currency.clone()),
            ("from", given(from)),
            ("to", given(to)),
        ];
        admin::filtered("settlement_entries", filters)
    }
}

/// Which account it is.
pub(super) async fn account(
    host: &Host<'_>,
    named: Named<'_>,
) -> Result<SettlementAccount, StartError> {
    let nothing = named.path(("1970-01-01", "1970-01-01"))?;
    let mut account = None;
    lines(host, &nothing, &mut |line| {
        if let SettlementLine::SettlementAccount(head) = line {
            account = Some(head);
        }
        Ok(())
    })
    .await?;
    account.ok_or_else(|| "the host does not say which account it is".into())
}

/// Reads the entries of some days, by the bank's calendar.
pub(super) async fn read(
    host: &Host<'_>,
    (named, account): (Named<'_>, &SettlementAccount),
    ((from, to), timezone): ((Date, Date), &TimeZone),
    add: &mut impl FnMut(&SettlementEntry, Date),
) -> Result<(), StartError> {
    let start = |day: Date| -> Result<String, StartError> {
        Ok(day.to_zoned(timezone.clone())?.timestamp().to_string())
    };
    let path = named.path((&start(from)?, &start(to.checked_add(1.day())?)?))?;
    lines(host, &path, &mut |line| match line {
        SettlementLine::SettlementEntry(entry) => {
            let at: Timestamp = entry.created_at.parse()?;
            let booked_on = entry.booked_on.as_deref().map(str::parse).transpose()?;
            let day = booked_on.unwrap_or_else(|| at.to_zoned(timezone.clone()).date());
            // What the host tells of the days around is of no use.
            if from <= day && day <= to {
                add(&entry, day);
            }
            Ok(())
        }
        SettlementLine::SettlementAccount(head) if head == *account => Ok(()),
        _ => Err("the host speaks of another account".into()),
    })
    .await
}

/// Hands over each line but the last, which says that nothing is missing.
async fn lines(
    host: &Host<'_>,
    path: &str,
    each: &mut impl FnMut(SettlementLine) -> Result<(), StartError>,
) -> Result<(), StartError> {
    let mut response = admin::open((host.base, host.token), (Method::GET, path)).await?;
    let (mut rest, mut told, mut end) = (Vec::new(), 0_u64, None);
    while let Some(chunk) = response.chunk().await? {
        rest.extend_from_slice(&chunk);
        let mut begun = 0;
        while let Some(length) = memchr::memchr(b'\n', &rest[begun..]) {
            match serde_json::from_slice(&rest[begun..begun + length])? {
                SettlementLine::End { count } => end = Some(count),
                line => {
                    told += u64::from(matches!(line, SettlementLine::SettlementEntry(_)));
                    each(line)?;
                }
            }
            begun += length + 1;
        }
        rest.drain(..begun);
    }
    match end == Some(told) {
        true => Ok(()),
        false => Err("the host's answer was cut off: try again".into()),
    }
}
