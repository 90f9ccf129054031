//! `railhead admin rate`: what currencies cost in one another.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::civil::Date;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fx::Rate as Decimal;
use crate::start::StartError;

use super::admin::{Request, filtered, object};

#[derive(Subcommand)]
pub(super) enum Rate {
    /// List rates, by id.
    List {
        /// Those of this environment.
        #[arg(long, value_parser = ["live", "test"], default_value = "live")]
        env: String,
        /// The last id of the page before.
        #[arg(long, value_name = "ID")]
        starting_after: Option<String>,
    },
    /// Set the platform's rate, or a merchant's own.
    Set {
        #[command(flatten)]
        of: Of,
        /// How much of what is bought one major unit of what is sold comes to, such as 1550.25.
        rate: String,
        #[command(flatten)]
        terms: Terms,
    },
    /// Take a rate away.
    Remove(Of),
    /// Set many rates, all or none: from a CSV file with the columns from, to, rate and, where they
    /// are needed, merchant_id, spread_bps, source, as_of, valid_for_s; or from the European
    /// Central Bank's file of reference rates (XML), for each pair of --currencies.
    Import {
        /// The file, whose name ends in .csv or .xml.
        file: PathBuf,
        /// For this environment.
        #[arg(long, value_parser = ["live", "test"], default_value = "live")]
        env: String,
        /// Of the reference rates, only pairs of these currencies.
        #[arg(long, value_delimiter = ',', default_value = "EUR,USD,GBP,CAD")]
        currencies: Vec<String>,
        #[command(flatten)]
        terms: Terms,
    },
    /// Show what the platform holds of each currency because of exchanges.
    Positions {
        /// In this environment.
        #[arg(long, value_parser = ["live", "test"], default_value = "live")]
        env: String,
    },
    /// Pause exchanging into a currency, or cap the position. What is not named stays as it is.
    Limit {
        /// In this environment.
        #[arg(long, value_parser = ["live", "test"], default_value = "live")]
        env: String,
        /// The currency that is bought.
        currency: String,
        /// Whether nothing is exchanged into it.
        #[arg(long)]
        paused: Option<bool>,
        /// How far the position may go below zero, in minor units.
        #[arg(long)]
        exposure_cap_minor: Option<String>,
        /// Take the cap away.
        #[arg(long, conflicts_with = "exposure_cap_minor")]
        no_exposure_cap: bool,
    },
}

/// Which rate.
#[derive(Args)]
pub(super) struct Of {
    /// In this environment.
    #[arg(long, value_parser = ["live", "test"], default_value = "live")]
    env: String,
    /// What is sold.
    from: String,
    /// What is bought.
    to: String,
    /// A merchant's own rate.
    #[arg(long)]
    merchant: Option<String>,
}

/// What goes with a rate; a column of a file comes first.
#[derive(Args)]
pub(super) struct Terms {
    /// What the platform keeps of it, in basis points.
    #[arg(long)]
    spread_bps: Option<i64>,
    /// Seconds after which it is stale: counted from the instant as of which it is so.
    #[arg(long)]
    valid_for_s: Option<u64>,
    /// Where it comes from, in a word.
    #[arg(long)]
    source: Option<String>,
}

pub(super) fn rate(command: Rate) -> Result<Request, StartError> {
    Ok(match command {
        Rate::List { env, starting_after } => {
            let filters = [("env", Some(env)), ("starting_after", starting_after)];
            (Method::GET, filtered("rates", filters)?, None)
        }
        Rate::Set { of, rate, terms } => {
            (Method::PUT, "rates".to_owned(), Some(set(of, &rate, terms)))
        }
        Rate::Remove(Of { env, from, to, merchant }) => {
            let filters = [
                ("env", Some(env)),
                ("from", Some(from)),
                ("to", Some(to)),
                ("merchant_id", merchant),
            ];
            (Method::DELETE, filtered("rates", filters)?, None)
        }
        Rate::Import { file, env, currencies, terms } => {
            let rows = read(&file, &currencies, &terms)
                .map_err(|why| StartError::from(format!("{}: {why}", file.display())))?;
            let rows: Vec<Value> =
                rows.into_iter().map(|row| row.over(&terms).request(&env)).collect();
            (Method::POST, "rates/import".to_owned(), Some(json!({ "rates": rows })))
        }
        Rate::Positions { env } => {
            (Method::GET, filtered("fx_positions", [("env", Some(env))])?, None)
        }
        Rate::Limit { env, currency, paused, exposure_cap_minor, no_exposure_cap } => {
            let mut body = object([
                ("env", json!(env)),
                ("currency", json!(currency)),
                ("is_paused", json!(paused)),
                ("exposure_cap_minor", json!(exposure_cap_minor)),
            ]);
            if no_exposure_cap {
                body["exposure_cap_minor"] = Value::Null;
            }
            (Method::PUT, "fx_limits".to_owned(), Some(body))
        }
    })
}

fn set(of: Of, rate: &str, terms: Terms) -> Value {
    let Of { env, from, to, merchant } = of;
    let Terms { spread_bps, valid_for_s, source } = terms;
    object([
        ("env", json!(env)),
        ("from", json!(from)),
        ("to", json!(to)),
        ("rate", json!(rate)),
        ("merchant_id", json!(merchant)),
        ("spread_bps", json!(spread_bps)),
        ("valid_for_s", json!(valid_for_s)),
        ("source", json!(source)),
    ])
}

/// A line of a file.
#[derive(Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Row {
    from: String,
    to: String,
    rate: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    merchant_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spread_bps: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    as_of: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    valid_for_s: Option<u64>,
}

impl Row {
    /// With what was said for all of them, where it says nothing itself.
    fn over(self, terms: &Terms) -> Self {
        Self {
            spread_bps: self.spread_bps.or(terms.spread_bps),
            valid_for_s: self.valid_for_s.or(terms.valid_for_s),
            source: self.source.or_else(|| terms.source.clone()),
            ..self
        }
    }

    fn request(&self, env: &str) -> Value {
        let mut request = json!(self);
        request["env"] = json!(env);
        request
    }
}

fn read(file: &Path, currencies: &[String], terms: &Terms) -> Result<Vec<Row>, StartError> {
    let end = file.extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase);
    match end.as_deref() {
        // Whoever publishes rates once a day does not say for how long they are good.
        Some("xml") if terms.valid_for_s.is_none() => {
            Err("say with --valid-for-s for how long reference rates are used".into())
        }
        Some("xml") => reference(&std::fs::read_to_string(file)?, currencies),
        Some("csv") => table(file),
        _ => Err("the name of the file must end in .csv or .xml".into()),
    }
}

fn table(file: &Path) -> Result<Vec<Row>, StartError> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(file)?;
    let columns = reader.headers()?;
    if let Some(missing) =
        ["from", "to", "rate"].iter().find(|it| !columns.iter().any(|c| c == **it))
    {
        return Err(format!("its first line names no column {missing}").into());
    }
    Ok(reader.deserialize().collect::<Result<_, _>>()?)
}

/// The rates of each pair that the European Central Bank's reference rates tell: they say what a
/// euro comes to in each currency, as of a quarter past two in Frankfurt.
fn reference(text: &str, currencies: &[String]) -> Result<Vec<Row>, StartError> {
    let document = roxmltree::Document::parse(text)?;
    let cubes = || document.descendants().filter(|node| node.tag_name().name() == "Cube");
    let day = cubes().find_map(|cube| cube.attribute("time"));
    let unreadable = |what: &str| StartError::from(format!("the file of reference rates {what}"));
    let day: Date = day.unwrap_or_default().parse().map_err(|_| unreadable("names no day"))?;
    let as_of =
        day.at(14, 15, 0, 0).in_tz("Europe/Berlin").map_err(|_| unreadable("is of no time"))?;
    let as_of = as_of.timestamp().to_string();
    let one = Decimal::parse("1").ok_or_else(|| unreadable("cannot be read"))?;
    let mut of_a_euro = vec![("EUR".to_owned(), one)];
    for cube in cubes() {
        let (Some(code), Some(rate)) = (cube.attribute("currency"), cube.attribute("rate")) else {
            continue;
        };
        let rate =
            Decimal::parse(rate).ok_or_else(|| unreadable(&format!("has no rate of {code}")))?;
        of_a_euro.push((code.to_owned(), rate));
    }
    of_a_euro.retain(|(code, _)| currencies.contains(code));
    if let Some(missing) =
        currencies.iter().find(|it| !of_a_euro.iter().any(|(code, _)| code == *it))
    {
        return Err(unreadable(&format!("does not have {missing}")));
    }
    let mut rows = Vec::new();
    for (from, sold) in &of_a_euro {
        for (to, bought) in of_a_euro.iter().filter(|(to, _)| to != from) {
            let rate = sold.inverse().and_then(|euros| euros.then(*bought));
            let rate =
                rate.ok_or_else(|| unreadable(&format!("gives no rate of {from} to {to}")))?;
            rows.push(Row {
                from: from.clone(),
                to: to.clone(),
                rate: rate.to_string(),
                merchant_id: None,
                spread_bps: None,
                source: None,
                as_of: Some(as_of.clone()),
                valid_for_s: None,
            });
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
<gesmes:subject>Reference rates</gesmes:subject>
<Cube><Cube time="2026-11-20">
<Cube currency="USD" rate="1.1520"/><Cube currency="JPY" rate="180.13"/><Cube currency="GBP" rate="0.8800"/>
</Cube></Cube></gesmes:Envelope>"#;

    fn codes(codes: &[&str]) -> Vec<String> {
        codes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn reference_rates_give_every_pair_and_never_a_gain() {
        let rows = reference(REFERENCE, &codes(&["EUR", "USD", "GBP"])).expect("rates");
        let rate = |from: &str, to: &str| {
            let row = rows.iter().find(|row| row.from == from && row.to == to).expect("a pair");
            assert_eq!(row.as_of.as_deref(), Some("2026-11-20T13:15:00Z"));
            Decimal::parse(&row.rate).expect("a rate")
        };
        assert_eq!(rows.len(), 6);
        assert_eq!(rate("EUR", "USD").to_string(), "1.152");
        assert_eq!(rate("USD", "EUR").to_string(), "0.868055555555");
        assert_eq!(rate("GBP", "USD").to_string(), "1.30909090909");
        for (from, to) in [("EUR", "USD"), ("GBP", "USD"), ("GBP", "EUR")] {
            assert!(!rate(from, to).gains_with(rate(to, from)), "{from} {to}");
        }
    }

    #[test]
    fn what_is_not_in_the_file_is_said() {
        let refused = reference(REFERENCE, &codes(&["EUR", "NGN"])).expect_err("no naira");
        assert!(refused.to_string().contains("does not have NGN"), "{refused}");
        let refused = reference("<Cube/>", &codes(&["EUR"])).expect_err("no day");
        assert!(refused.to_string().contains("names no day"), "{refused}");
    }
}
