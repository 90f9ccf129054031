//! Makes a file of the payments that a window collected. Pure: the same for the same arguments.

use std::collections::BTreeSet;

use railhead_rail::types::{Assembled, Payment, Placement, TurnedDown, Window};

use crate::order::order;
use crate::pain001::{self, Head, Totals};
use crate::reference;
use crate::settings::Settings;

/// As much as entries of one file may hold, in bytes: as many of the longest as rail.toml allows, so
/// that no payment waits for the next file. With what stands around them it is less than the twelve
/// megabytes that the simulated bank takes.
const ENTRIES_MAX: usize = 12 * 1024 * 1024 - 16 * 1024;

/// Makes the file: entries in the order given. What is beyond its size goes with the next file. A
/// file in which nothing would stand has no content.
///
/// # Errors
/// A setting is missing, or the window makes no sense.
pub fn assemble(window: &Window, payments: Vec<Payment>) -> Result<Assembled, String> {
    let settings = Settings::read()?;
    let head = head(window, &payments)?;
    let mut totals = Totals::default();
    let (mut placed, mut refused, mut later) = (Vec::new(), Vec::new(), Vec::new());
    let mut references = BTreeSet::new();
    // A payment makes room for its entry.
    for payment in payments {
        let order = order(&payment);
        let Payment { reference, .. } = payment;
        if !references.insert(reference.clone()) {
            return Err(format!("{reference} is there twice"));
        }
        let order = match order {
            Ok(order) => order,
            Err(why) => {
                refused.push(TurnedDown { reference, why });
                continue;
            }
        };
        let key = reference::entry(window.number, &reference);
        let key = key.ok_or("no name is left for an entry")?;
        let entry = pain001::entry(&order, &key, &settings);
        let sum = totals.cents.checked_add(order.cents);
        let fits = later.is_empty() && totals.bytes + entry.len() <= ENTRIES_MAX;
        let Some(cents) = sum.filter(|_| fits) else {
            later.push(reference);
            continue;
        };
        totals = Totals { bytes: totals.bytes + entry.len(), count: totals.count + 1, cents };
        placed.push((reference, key, entry));
    }
    // Entries are held twice, here and in the file: together they are most of what the call needs.
    let entries = placed.iter().map(|(_, _, entry)| entry.as_str());
    let content = match placed.is_empty() {
        true => Vec::new(),
        false => pain001::file(&head, (&totals, entries), &settings),
    };
    let placed = placed.into_iter().map(|(reference, key, entry)| {
        let entry = entry.into_bytes();
        Placement { reference, key, entry }
    });
    let (name, placed) = (format!("{}.xml", head.identity), placed.collect());
    Ok(Assembled { name, identity: head.identity, content, placed, refused, later })
}

fn head(window: &Window, payments: &[Payment]) -> Result<Head, String> {
    let Window { currency, exponent, .. } = window;
    if (currency.as_str(), *exponent) != ("EUR", 2) {
        return Err(format!("{currency} with {exponent} decimals is not what SEPA carries"));
    }
    for date in [&window.business_date, &window.value_date] {
        if !is_date(date) {
            return Err(format!("{date:?} is not a date"));
        }
    }
    if !is_time(&window.local_time) {
        return Err(format!("{:?} is not a time", window.local_time));
    }
    let first = payments.first().ok_or("a file is made of payments")?;
    let identity = reference::file(&window.business_date, window.number, first.begun_at_ms);
    Ok(Head {
        identity: identity.ok_or("no name is left for the file")?,
        created: format!("{}T{}:00", window.business_date, window.local_time),
        executed_on: window.business_date.clone(),
    })
}

/// Such as `2026-03-06`.
fn is_date(text: &str) -> bool {
    match text.split('-').collect::<Vec<_>>().as_slice() {
        [year, month, day] => {
            is_number(year, 4, 2000..=2099)
                && is_number(month, 2, 1..=12)
                && is_number(day, 2, 1..=31)
        }
        _ => false,
    }
}

/// Such as `15:00`.
fn is_time(text: &str) -> bool {
    let parts = text.split_once(':');
    parts.is_some_and(|(hour, minute)| is_number(hour, 2, 0..=23) && is_number(minute, 2, 0..=59))
}

fn is_number(text: &str, digits: usize, range: std::ops::RangeInclusive<u32>) -> bool {
    text.len() == digits
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse().is_ok_and(|value| range.contains(&value))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "assembly_tests.rs"]
mod tests;
