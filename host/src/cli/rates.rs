//! `railhead admin rate`: what currencies cost in one another.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::built_in;
use crate::clock::Clock;
use crate::fx::RateSource;
use crate::fx::source::{Told, pairs};
use crate::money::Currency;
use crate::start::StartError;

use super::admin::{PageArgs, Request, filtered, object, paged};
use super::document::engines;

#[derive(Subcommand)]
pub(super) enum Rate {
    /// List rates, by id.
    List {
        /// Those of this environment.
        #[arg(long, value_parser = ["live", "test"], default_value = "live")]
        env: String,
        #[command(flatten)]
        page: PageArgs,
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
    /// are needed, merchant_id, spread_bps, source, as_of, valid_for_s; or from a page of a provider
    /// that a rate source reads, such as the European Central Bank's file of reference rates (XML),
    /// for each pair of --currencies.
    Import {
        /// The file, whose name ends in .csv, or in .xml if it is the European Central Bank's.
        file: PathBuf,
        /// The rate source that reads it: `ecb`, or a packed component.
        #[arg(long, value_name = "SOURCE")]
        with: Option<String>,
        /// For this environment.
        #[arg(long, value_parser = ["live", "test"], default_value = "live")]
        env: String,
        /// Of a provider's rates, those of each pair of these currencies.
        #[arg(long, value_delimiter = ',', default_value = "EUR,USD,GBP,CAD")]
        currencies: Vec<String>,
        #[command(flatten)]
        terms: Terms,
    },
    /// Show where rates come from by themselves, and how that goes.
    Sources,
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
    /// Where it comes from, in a word; a rate source that is configured keeps up what bears its name.
    #[arg(long)]
    source: Option<String>,
}

pub(super) fn rate(command: Rate) -> Result<Request, StartError> {
    Ok(match command {
        Rate::List { env, page } => {
            (Method::GET, paged("rates", page, [("env", Some(env))])?, None)
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
        Rate::Import { file, with, env, currencies, terms } => {
            let rows = read(&file, (with.as_deref(), &currencies), &terms)
                .map_err(|why| StartError::from(format!("{}: {why}", file.display())))?;
            let rows: Vec<Value> =
                rows.into_iter().map(|row| row.over(&terms).request(&env)).collect();
            (Method::POST, "rates/import".to_owned(), Some(json!({ "rates": rows })))
        }
        Rate::Sources => (Method::GET, "rate_sources".to_owned(), None),
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
#[derive(Debug, Default, Deserialize, Serialize)]
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

fn read(
    file: &Path,
    (with, currencies): (Option<&str>, &[String]),
    terms: &Terms,
) -> Result<Vec<Row>, StartError> {
    let end = file.extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase);
    let with = match (with, end.as_deref()) {
        (None, Some("csv")) => None,
        (None, Some("xml")) => Some("ecb"),
        (None, _) => return Err("say with --with which rate source reads this file".into()),
        (with, _) => with,
    };
    match with {
        None => table(file),
        // Whoever publishes rates does not say for how long they are good.
        Some(_) if terms.valid_for_s.is_none() => {
            Err("say with --valid-for-s for how long these rates are used".into())
        }
        Some(with) => page(file, (with, currencies), terms),
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

/// The rates of each pair of some currencies that a page of a provider tells, as a rate source
/// reads it.
fn page(
    file: &Path,
    (with, currencies): (&str, &[String]),
    terms: &Terms,
) -> Result<Vec<Row>, StartError> {
    let currencies = currencies.iter().map(|code| {
        Currency::parse(code).ok_or_else(|| format!("--currencies: {code} is no ISO 4217 code"))
    });
    let currencies = currencies.collect::<Result<Vec<_>, _>>()?;
    let source = source(with)?;
    let published = source.read(&[std::fs::read(file)?], Clock::System.now())?;
    let rows = pairs(&currencies).into_iter().map(|(from, to)| {
        let told = published.rate(from, to);
        let missing =
            || format!("tells no rate of {from} to {to}: say with --currencies which it tells");
        let Told { rate, as_of } = told.ok_or_else(missing)?;
        Ok(Row {
            from: from.to_string(),
            to: to.to_string(),
            rate: rate.to_string(),
            as_of: Some(as_of.to_string()),
            // Whose page it is keeps it up from now on, unless something else is said.
            source: terms.source.clone().or_else(|| Some(source.about.name.clone())),
            ..Row::default()
        })
    });
    rows.collect()
}

/// A rate source: built in, or packed in a file.
fn source(name: &str) -> Result<RateSource, StartError> {
    let (engines, cache) = engines()?;
    let built_in = built_in::COMPONENTS.iter();
    let mut built_in = built_in.filter_map(|(at, bytes)| Some((at.strip_prefix("rates/")?, bytes)));
    let bytes = match built_in.find(|(known, _)| *known == name) {
        Some((_, bytes)) => bytes.to_vec(),
        None => std::fs::read(name).map_err(|cause| format!("{name}: {cause}"))?,
    };
    Ok(RateSource::load(&engines, &cache, &bytes)?)
}

#[cfg(test)]
mod tests {
    use crate::id::IdGenerator;

    use super::*;

    const REFERENCE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
<gesmes:subject>Reference rates</gesmes:subject>
<Cube><Cube time="2026-11-20">
<Cube currency="USD" rate="1.1520"/><Cube currency="JPY" rate="180.13"/><Cube currency="GBP" rate="0.8800"/>
</Cube></Cube></gesmes:Envelope>"#;

    /// What a file with this text is read as.
    fn read_as(text: &str, codes: &[&str]) -> Result<Vec<Row>, StartError> {
        let ids = IdGenerator::new(Clock::System).expect("randomness");
        let file = std::env::temp_dir().join(format!("railhead-rates-{}.xml", ids.secret()));
        std::fs::write(&file, text).expect("written");
        let codes: Vec<_> = codes.iter().map(ToString::to_string).collect();
        let terms = Terms { spread_bps: None, valid_for_s: Some(60), source: None };
        let rows = read(&file, (None, &codes), &terms);
        std::fs::remove_file(&file).expect("removed");
        rows
    }

    #[test]
    fn reference_rates_give_every_pair() {
        let rows = read_as(REFERENCE, &["EUR", "USD", "GBP"]).expect("rates");
        let told: Vec<_> = rows.iter().map(|row| (&*row.from, &*row.to, &*row.rate)).collect();
        assert_eq!(told.len(), 6);
        assert!(told.contains(&("EUR", "USD", "1.152")), "{told:?}");
        assert!(told.contains(&("GBP", "USD", "1.30909090909")), "{told:?}");
        let is_as_of = |row: &Row| row.as_of.as_deref() == Some("2026-11-20T13:15:00.000Z");
        assert!(rows.iter().all(is_as_of), "{rows:?}");
    }

    #[test]
    fn what_is_not_in_the_file_is_said() {
        let refused =
            |text: &str, codes: &[&str]| read_as(text, codes).expect_err("refused").to_string();
        assert!(refused(REFERENCE, &["EUR", "NGN"]).contains("no rate of EUR to NGN"));
        assert!(refused(REFERENCE, &["EUR", "Naira"]).contains("Naira is no ISO 4217 code"));
        assert!(refused("<Cube/>", &["EUR", "USD"]).contains("names no day"));
    }
}
