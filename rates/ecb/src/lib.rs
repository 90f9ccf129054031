//! Reference rates of the European Central Bank, as its file `eurofxref-daily.xml` tells them.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use railhead_rate::{Pair, Rate, Source, export_source};
use roxmltree::Document;

/// The file of the latest day.
const DAILY: &str = "/eurofxref-daily.xml";
/// When on a day the rates are fixed, in Frankfurt.
const FIXED_AT: (i8, i8) = (14, 15);
/// Frankfurt's clocks, as POSIX has them.
const FRANKFURT: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

/// The source.
#[derive(Debug)]
pub struct Ecb;

impl Source for Ecb {
    fn requests(_pairs: &[Pair]) -> Vec<String> {
        vec![DAILY.to_owned()]
    }

    fn read(answers: &[Vec<u8>]) -> Result<Vec<Rate>, String> {
        let file = answers.first().ok_or("there is no file")?;
        let text = std::str::from_utf8(file).map_err(|_| "the file is not text")?;
        let document = Document::parse(text).map_err(|cause| cause.to_string())?;
        let cubes = || document.descendants().filter(|node| node.tag_name().name() == "Cube");
        let mut days = cubes().filter_map(|cube| cube.attribute("time"));
        let day = days.next().ok_or("the file names no day")?;
        if days.next().is_some() {
            return Err("the file has more than one day".to_owned());
        }
        let as_of_ms = fixing(day)?;
        let rates = cubes().filter_map(|cube| {
            let (to, value) = (cube.attribute("currency")?, cube.attribute("rate")?);
            let of = Pair { from: "EUR".to_owned(), to: to.to_owned() };
            Some(Rate { of, value: value.to_owned(), as_of_ms })
        });
        Ok(rates.collect())
    }
}

/// When the rates of a day were fixed, in milliseconds since 1970.
fn fixing(day: &str) -> Result<u64, String> {
    let date: Date = day.parse().map_err(|_| format!("{day} is no day"))?;
    let (hour, minute) = FIXED_AT;
    let zone = TimeZone::posix(FRANKFURT).map_err(|cause| cause.to_string())?;
    let at = date.at(hour, minute, 0, 0).to_zoned(zone).map_err(|cause| cause.to_string())?;
    u64::try_from(at.timestamp().as_millisecond()).map_err(|_| format!("{day} is before 1970"))
}

export_source!(Ecb);

#[cfg(test)]
mod tests {
    use super::*;

    fn file(days: &str) -> Vec<Vec<u8>> {
        let text = format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
<gesmes:subject>Reference rates</gesmes:subject>
<gesmes:Sender><gesmes:name>European Central Bank</gesmes:name></gesmes:Sender>
<Cube>{days}</Cube></gesmes:Envelope>"#
        );
        vec![text.into_bytes()]
    }

    #[test]
    fn a_day_is_read() {
        let day = r#"<Cube time="2026-11-20"><Cube currency="USD" rate="1.1520"/><Cube currency="JPY" rate="180.13"/></Cube>"#;
        let rates = Ecb::read(&file(day)).expect("rates");
        let told: Vec<_> = rates.iter().map(|rate| (&*rate.of.to, &*rate.value)).collect();
        assert_eq!(told, [("USD", "1.1520"), ("JPY", "180.13")]);
        assert!(rates.iter().all(|rate| rate.of.from == "EUR"));
        // 2026-11-20T13:15:00Z.
        assert!(rates.iter().all(|rate| rate.as_of_ms == 1_795_180_500_000));
    }

    #[test]
    fn frankfurt_has_summers() {
        let hour = |day: &str| fixing(day).expect("a day") / 3_600_000 % 24;
        assert_eq!([hour("2026-01-15"), hour("2026-07-15")], [13, 12]);
        assert_eq!([hour("2026-03-27"), hour("2026-03-30")], [13, 12]);
        assert_eq!([hour("2026-10-23"), hour("2026-10-26")], [12, 13]);
    }

    #[test]
    fn what_is_no_such_file_is_said() {
        let two = r#"<Cube time="2026-11-20"/><Cube time="2026-11-19"/>"#;
        for (what, file) in [
            ("there is no file", vec![]),
            ("not text", vec![vec![0xff]]),
            ("names no day", file("")),
            ("more than one day", file(two)),
            ("no day", file(r#"<Cube time="today"/>"#)),
            ("unknown token", vec![b"Service unavailable".to_vec()]),
        ] {
            let why = Ecb::read(&file).expect_err(what);
            assert!(why.contains(what) || what == "unknown token", "{why}");
        }
    }
}
