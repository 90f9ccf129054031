//! camt.053: read element by element, whichever version it is of. An entry that the bank books as one
//! and of which it tells each transaction, with amounts that come to it, is as many entries.

use std::io::BufRead;

use jiff::civil::{Date, DateTime};
use jiff::{Timestamp, Zoned};
use quick_xml::Reader;
use quick_xml::errors::IllFormedError;
use quick_xml::events::{BytesStart, Event};

use crate::money::Minor;

use super::{Days, Entry, SAID_MAX, Statement, TEXT_MAX, Terms, Unreadable, add, amount, shown};

/// Elements within elements: a statement has a dozen.
const DEPTH_MAX: usize = 64;
/// What an entry says is copied into each of its transactions, of which there may be very many: its
/// references are, and half a thousand characters of what is told besides. In bytes.
const COPIED_MAX: usize = 1024;

pub(super) fn read(file: impl BufRead, terms: &Terms) -> Result<Vec<Statement>, Unreadable> {
    let mut reader = Reader::from_reader(file);
    let mut reading = Reading::of(terms);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let event = reader.read_event_into(&mut bytes);
        let place = reader.buffer_position();
        let odd = |why: String| Unreadable::at(format_args!("byte {place}"), why);
        let event = match event {
            Err(quick_xml::Error::Io(cause)) => {
                return Err(Unreadable::File(std::io::Error::new(cause.kind(), cause.to_string())));
            }
            event => event.map_err(|cause| odd(ill_formed(&cause)))?,
        };
        let done = match event {
            Event::Start(start) => reading.begin(&start),
            Event::Empty(empty) => reading.begin(&empty).and_then(|()| reading.end()),
            Event::End(_) => reading.end(),
            Event::Text(text) => reading.say(&text),
            Event::CData(text) => reading.say(&text),
            Event::GeneralRef(name) => match character(&name) {
                Some(character) => reading.say(character.encode_utf8(&mut [0; 4])),
                None => Err(format!("&{}; stands for nothing here", shown(&name))),
            },
            Event::DocType(_) => Err("it has a document type, which no statement has".to_owned()),
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => Ok(()),
        };
        done.map_err(odd)?;
    }
    let end = || Unreadable::at("the end", "the file is cut off");
    match (reading.path.is_empty(), reading.done.is_empty()) {
        (false, _) => Err(end()),
        (true, true) => Err(Unreadable::at("the end", "there is no statement in it")),
        (true, false) => Ok(reading.done),
    }
}

/// What of it is no XML.
fn ill_formed(cause: &quick_xml::Error) -> String {
    match cause {
        quick_xml::Error::IllFormed(IllFormedError::MismatchedEndTag { expected, found }) => {
            format!("</{}> stands where </{}> has to", shown(found), shown(expected))
        }
        cause => shown(&cause.to_string()),
    }
}

/// The characters that have names, and those that have numbers.
fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        name => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

/// What is known of a statement that is being read.
struct Reading<'a> {
    terms: &'a Terms,
    /// Names of the elements that are open, each with a `/` before it.
    path: String,
    depth: usize,
    text: String,
    /// The currency of the amount that is being read.
    currency: Option<String>,
    done: Vec<Statement>,
    statement: Statement,
    days: Days,
    balance: Balance,
    entry: Booked,
    transaction: Part,
    transactions: Vec<Part>,
}

#[derive(Default)]
struct Balance {
    kind: String,
    amount: Option<Minor>,
    sign: String,
    /// As it is written there.
    day: String,
}

/// An entry, or one of its transactions.
#[derive(Default)]
struct Part {
    amount: Option<Minor>,
    /// The amount among the details, which may be before charges.
    detailed: Option<Minor>,
    sign: String,
    bank_reference: Option<String>,
    said: String,
}

#[derive(Default)]
struct Booked {
    part: Part,
    status: String,
    booked_on: Option<Date>,
    valued_on: Option<Date>,
}

const STATEMENT: &str = "/Document/BkToCstmrStmt/Stmt";

impl<'a> Reading<'a> {
    fn of(terms: &'a Terms) -> Self {
        Self {
            terms,
            path: String::new(),
            depth: 0,
            text: String::new(),
            currency: None,
            done: Vec::new(),
            statement: Statement::default(),
            days: Days::default(),
            balance: Balance::default(),
            entry: Booked::default(),
            transaction: Part::default(),
            transactions: Vec::new(),
        }
    }

    fn begin(&mut self, start: &BytesStart<'_>) -> Result<(), String> {
        let name = start.local_name();
        let name = name.as_ref();
        self.depth += 1;
        if self.depth > DEPTH_MAX || name.len() > 64 {
            return Err("no statement is built like that".to_owned());
        }
        self.path.push('/');
        self.path.push_str(name);
        self.text.clear();
        self.currency = None;
        if self.depth == 2 && name != "BkToCstmrStmt" {
            let name = shown(name);
            return Err(format!("it holds {name}, which is no statement (BkToCstmrStmt)"));
        }
        if name == "Amt" || name == "TxAmt" {
            for attribute in start.attributes() {
                let attribute = attribute.map_err(|cause| shown(&cause.to_string()))?;
                if attribute.key.local_name().as_ref() == "Ccy" {
                    self.currency = Some(attribute.value.into_owned());
                }
            }
        }
        match self.path.strip_prefix(STATEMENT) {
            Some("") => {
                self.statement = Statement::default();
                self.days = Days::default();
            }
            Some("/Bal") => self.balance = Balance::default(),
            Some("/Ntry") => {
                self.entry = Booked::default();
                self.transactions.clear();
            }
            Some("/Ntry/NtryDtls/TxDtls") => self.transaction = Part::default(),
            _ => {}
        }
        Ok(())
    }

    fn say(&mut self, text: &str) -> Result<(), String> {
        self.text.push_str(text);
        match self.text.len() > TEXT_MAX {
            true => Err("the text is too long".to_owned()),
            false => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        let path = std::mem::take(&mut self.path);
        if let Some(place) = path.strip_prefix(STATEMENT) {
            let text = std::mem::take(&mut self.text);
            self.understand(place, text.trim())?;
        }
        self.text.clear();
        self.depth -= 1;
        let above = path.rfind('/').unwrap_or(0);
        self.path = path;
        self.path.truncate(above);
        Ok(())
    }

    /// An element of a statement, at its end.
    fn understand(&mut self, place: &str, text: &str) -> Result<(), String> {
        match place {
            "" => {
                let days = std::mem::take(&mut self.days);
                self.done.push(days.cover(std::mem::take(&mut self.statement)));
            }
            "/FrToDt/FrDtTm" => self.days.from = Some(day(text)?),
            "/FrToDt/ToDtTm" => self.days.to = Some(last_day(text, self.days.from)?),
            "/Id" => text.clone_into(&mut self.statement.id),
            "/Acct/Id/IBAN" | "/Acct/Id/Othr/Id" => text.clone_into(&mut self.statement.account),
            "/Acct/Ccy" => self.refuse_other(text)?,
            "/Bal/Tp/CdOrPrtry/Cd" => text.clone_into(&mut self.balance.kind),
            "/Bal/Amt" => self.balance.amount = Some(self.amount(text)?),
            "/Bal/CdtDbtInd" => text.clone_into(&mut self.balance.sign),
            "/Bal/Dt/Dt" | "/Bal/Dt/DtTm" => text.clone_into(&mut self.balance.day),
            "/Bal" => self.balanced()?,
            "/Ntry" => self.booked()?,
            place => {
                if let Some(place) = place.strip_prefix("/Ntry/NtryDtls/TxDtls") {
                    return self.of_transaction(place, text);
                }
                if let Some(place) = place.strip_prefix("/Ntry/") {
                    return self.of_entry(place, text);
                }
            }
        }
        Ok(())
    }

    fn of_entry(&mut self, place: &str, text: &str) -> Result<(), String> {
        match place {
            "Amt" => self.entry.part.amount = Some(self.amount(text)?),
            "CdtDbtInd" => text.clone_into(&mut self.entry.part.sign),
            "Sts" | "Sts/Cd" if !text.is_empty() => text.clone_into(&mut self.entry.status),
            "BookgDt/Dt" | "BookgDt/DtTm" => self.entry.booked_on = Some(day(text)?),
            "ValDt/Dt" | "ValDt/DtTm" => self.entry.valued_on = Some(day(text)?),
            "AcctSvcrRef" => {
                self.entry.part.bank_reference = reference(text);
                self.entry.part.say(text);
            }
            "NtryRef" | "AddtlNtryInf" | "NtryDtls/Btch/MsgId" | "NtryDtls/Btch/PmtInfId" => {
                self.entry.part.say(text);
            }
            _ => {}
        }
        Ok(())
    }

    fn of_transaction(&mut self, place: &str, text: &str) -> Result<(), String> {
        match place {
            "" => self.transactions.push(std::mem::take(&mut self.transaction)),
            // What it was in another currency says nothing of what was booked.
            "/Amt" if self.is_own() => self.transaction.amount = Some(self.amount(text)?),
            "/AmtDtls/TxAmt/Amt" if self.is_own() => {
                self.transaction.detailed = Some(self.amount(text)?);
            }
            "/CdtDbtInd" => text.clone_into(&mut self.transaction.sign),
            "/Refs/AcctSvcrRef" => {
                self.transaction.bank_reference = reference(text);
                self.transaction.say(text);
            }
            "/AddtlTxInf" | "/RmtInf/Ustrd" | "/RmtInf/Strd/CdtrRefInf/Ref" => {
                self.transaction.say(text);
            }
            place if place.starts_with("/Refs/") => self.transaction.say(text),
            _ => {}
        }
        Ok(())
    }

    /// Whether the amount that is being read is in the account's currency.
    fn is_own(&self) -> bool {
        self.currency.as_deref() == Some(self.terms.currency.as_str())
    }

    fn amount(&self, text: &str) -> Result<Minor, String> {
        if let Some(currency) = &self.currency {
            self.refuse_other(currency)?;
        }
        let amount = amount::plain(text, '.', self.terms.places);
        amount.ok_or_else(|| format!("{} is no amount", shown(text)))
    }

    fn refuse_other(&self, currency: &str) -> Result<(), String> {
        let own = self.terms.currency;
        match currency == own.as_str() {
            true => Ok(()),
            false => Err(format!("it is in {}, and the account in {own}", shown(currency))),
        }
    }

    fn balanced(&mut self) -> Result<(), String> {
        let Balance { kind, amount, sign, day: written } = std::mem::take(&mut self.balance);
        let amount = amount.ok_or("a balance has no amount")?;
        let amount = signed(amount, &sign)?;
        let on = || if written.is_empty() { Ok(None) } else { day(&written).map(Some) };
        match kind.as_str() {
            "OPBD" => {
                self.statement.opening = Some(amount);
                self.days.opened_on = on()?;
            }
            "PRCD" => {
                self.statement.opening = self.statement.opening.or(Some(amount));
                self.days.closed_before_on = on()?;
            }
            "CLBD" => {
                self.statement.closing = Some(amount);
                self.days.closed_on = on()?;
            }
            _ => {}
        }
        Ok(())
    }

    fn booked(&mut self) -> Result<(), String> {
        let Booked { part, status, booked_on, valued_on } = std::mem::take(&mut self.entry);
        // What is pending may still not come.
        if !matches!(status.as_str(), "" | "BOOK") {
            return Ok(());
        }
        let whole = signed(part.amount.ok_or("an entry has no amount")?, &part.sign)?;
        let booked_on = booked_on.or(valued_on).ok_or("an entry has no day")?;
        let parts = std::mem::take(&mut self.transactions);
        let each: Option<Vec<Minor>> = parts.iter().map(|it| it.signed(&part.sign)).collect();
        let each =
            each.filter(|each| each.len() > 1 && Minor::total(each.iter().copied()) == Ok(whole));
        if let Some(amounts) = each {
            let mut copied = String::new();
            add(&mut copied, &part.said, COPIED_MAX);
            for (own, amount) in parts.into_iter().zip(amounts) {
                self.statement.entries.push(own.entry(booked_on, amount, copied.trim()));
            }
            return Ok(());
        }
        let mut all = part;
        for own in parts {
            add(&mut all.said, &own.said, SAID_MAX);
            all.bank_reference = all.bank_reference.or(own.bank_reference);
        }
        self.statement.entries.push(all.entry(booked_on, whole, ""));
        Ok(())
    }
}

impl Part {
    fn say(&mut self, text: &str) {
        if reference(text).is_some() {
            match self.said.is_empty() {
                true => self.said.push_str(text),
                false => add(&mut self.said, text, SAID_MAX),
            }
        }
    }

    fn signed(&self, of_entry: &str) -> Option<Minor> {
        let sign = if self.sign.is_empty() { of_entry } else { &self.sign };
        signed(self.amount.or(self.detailed)?, sign).ok()
    }

    fn entry(self, booked_on: Date, amount: Minor, besides: &str) -> Entry {
        let mut said = self.said;
        if !besides.is_empty() {
            add(&mut said, besides, SAID_MAX);
        }
        let bank_reference = self.bank_reference.map(Into::into);
        Entry { booked_on, amount, bank_reference, said: said.trim().into() }
    }
}

/// A reference, unless it says that there is none.
fn reference(text: &str) -> Option<String> {
    let is_one = !text.is_empty() && !matches!(text, "NOTPROVIDED" | "NONREF" | "NOTAVAILABLE");
    is_one.then(|| text.to_owned())
}

fn signed(amount: Minor, sign: &str) -> Result<Minor, String> {
    match sign {
        "CRDT" => Ok(amount),
        "DBIT" => amount.negated().map_err(|cause| cause.to_string()),
        _ => Err(format!("it is neither a credit nor a debit: {}", shown(sign))),
    }
}

/// The day of a date or an instant, as it is written there.
fn day(text: &str) -> Result<Date, String> {
    let date = text.get(..10).unwrap_or(text).parse::<Date>();
    let rest = text.get(10..).unwrap_or_default();
    let is_whole = rest.is_empty()
        || text.parse::<DateTime>().is_ok()
        || text.parse::<Timestamp>().is_ok()
        || text.parse::<Zoned>().is_ok()
        // A day in a timezone: 2026-11-21+01:00.
        || format!("{}T00:00:00{rest}", &text[..10]).parse::<Timestamp>().is_ok();
    date.ok().filter(|_| is_whole).ok_or_else(|| format!("{} is no day", shown(text)))
}

/// The last day of what begins and ends then. What ends at midnight has nothing of that day, unless
/// it begins on it: then the bank writes days as instants.
fn last_day(text: &str, from: Option<Date>) -> Result<Date, String> {
    // The end of a day may be told as 24:00:00.
    let last = day(&text.replacen("T24:00:00", "T23:59:59", 1))?;
    let after = text.get(11..).and_then(|time| time.strip_prefix("00:00:00"));
    let is_midnight = after.is_some_and(|rest| {
        !rest.trim_start_matches(['.', '0']).starts_with(|c: char| c.is_ascii_digit())
    });
    let before = last.yesterday().ok().filter(|_| is_midnight && from != Some(last));
    Ok(before.unwrap_or(last))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{day as on, short, terms};
    use super::*;

    const STATEMENT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>
<GrpHdr><MsgId>M1</MsgId><CreDtTm>2026-11-22T02:00:00+01:00</CreDtTm></GrpHdr>
<Stmt><Id>S &amp; 1</Id><Acct><Id><IBAN>DE89370400440532013000</IBAN></Id><Ccy>EUR</Ccy></Acct>
<Bal><Tp><CdOrPrtry><Cd>PRCD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">1000.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-11-20</Dt></Dt></Bal>
<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">849.5</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-11-21</Dt></Dt></Bal>
<Ntry><NtryRef>1</NtryRef><Amt Ccy="EUR">150.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>
<BookgDt><DtTm>2026-11-21T23:30:00+01:00</DtTm></BookgDt><ValDt><Dt>2026-11-22</Dt></ValDt><AcctSvcrRef>A-1</AcctSvcrRef>
<NtryDtls><Btch><MsgId>FILE-7</MsgId><NbOfTxs>2</NbOfTxs></Btch>
<TxDtls><Refs><EndToEndId>E2E-1</EndToEndId><AcctSvcrRef>T-1</AcctSvcrRef></Refs><Amt Ccy="EUR">100.00</Amt><CdtDbtInd>DBIT</CdtDbtInd></TxDtls>
<TxDtls><Refs><EndToEndId>NOTPROVIDED</EndToEndId><UETR>8a562c67-ca16-48ba-b074-65581be6f001</UETR></Refs><AmtDtls><TxAmt><Amt Ccy="EUR">50</Amt></TxAmt></AmtDtls><RmtInf><Ustrd><![CDATA[po_01KAZ]]></Ustrd></RmtInf></TxDtls>
</NtryDtls></Ntry>
<Ntry><Amt Ccy="EUR">0.50</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts><BookgDt><Dt>2026-11-21+01:00</Dt></BookgDt>
<NtryDtls><TxDtls><Refs><InstrId>I-1</InstrId></Refs><AmtDtls><TxAmt><Amt Ccy="USD">0.55</Amt></TxAmt></AmtDtls></TxDtls></NtryDtls><AddtlNtryInf>CHARGES</AddtlNtryInf></Ntry>
<Ntry><Amt Ccy="EUR">9.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>PDNG</Sts><ValDt><Dt>2026-11-24</Dt></ValDt></Ntry>
</Stmt></BkToCstmrStmt></Document>"#;

    #[test]
    fn a_statement_is_read_entry_by_entry_and_a_batch_by_its_transactions() {
        let statements = super::super::read(STATEMENT.as_bytes(), &terms("EUR")).expect("one");
        let [statement] = statements.as_slice() else { panic!("{statements:?}") };
        assert_eq!(statement.id, "S & 1");
        assert_eq!(statement.account, "DE89370400440532013000");
        let entry = |amount, bank_reference| ("2026-11-21".to_owned(), amount, bank_reference);
        let expected = [entry(-10_000, "T-1"), entry(-5_000, ""), entry(-50, "")];
        assert_eq!(short(statement), expected);
        assert_eq!(statement.discrepancy(), Ok(Some(Minor::ZERO)));
        let covered = Some(on("2026-11-21"));
        assert_eq!((statement.from, statement.to), (covered, covered));
        let balanced = (statement.opening_on, statement.closing_on);
        assert_eq!(balanced, (Some(on("2026-11-20")), covered));
        let said: Vec<Vec<&str>> =
            statement.entries.iter().map(|entry| entry.said.lines().collect()).collect();
        assert_eq!(said[0], ["E2E-1", "T-1", "1", "A-1", "FILE-7"]);
        let uetr = "8a562c67-ca16-48ba-b074-65581be6f001";
        assert_eq!(said[1], [uetr, "po_01KAZ", "1", "A-1", "FILE-7"]);
        assert_eq!(said[2], ["CHARGES", "I-1"]);
    }

    #[test]
    fn a_batch_whose_parts_do_not_come_to_it_is_one_entry() {
        let text = STATEMENT.replace(">50</Amt>", ">49</Amt>");
        let statement = super::super::read(text.as_bytes(), &terms("EUR")).expect("one").remove(0);
        assert_eq!(short(&statement)[0], ("2026-11-21".to_owned(), -15_000, "A-1"));
        assert!(statement.entries[0].said.contains("E2E-1"));
        assert_eq!(statement.entries.len(), 2);
    }

    #[test]
    fn the_days_are_those_that_are_said_and_else_those_of_the_balances() {
        let days = |text: &str| {
            let statement =
                super::super::read(text.as_bytes(), &terms("EUR")).expect("one").remove(0);
            [statement.from, statement.to]
                .map(|day| day.map(|day| day.to_string()).unwrap_or_default())
        };
        let said = |from: &str, to: &str| {
            let said =
                format!("<FrToDt><FrDtTm>{from}</FrDtTm><ToDtTm>{to}</ToDtTm></FrToDt><Acct>");
            days(&STATEMENT.replace("<Acct>", &said))
        };
        let first = "2026-11-16T00:00:00+01:00";
        for (to, last) in [
            ("2026-11-20T23:59:59.999+01:00", "2026-11-20"),
            ("2026-11-21T00:00:00+01:00", "2026-11-20"),
            ("2026-11-21T00:00:00.000", "2026-11-20"),
            ("2026-11-21T00:00:00.001Z", "2026-11-21"),
            ("2026-11-21T00:00:01", "2026-11-21"),
            ("2026-11-20T24:00:00", "2026-11-20"),
            // A bank that writes days as instants.
            ("2026-11-16T00:00:00+01:00", "2026-11-16"),
        ] {
            assert_eq!(said(first, to), ["2026-11-16", last], "{to}");
        }
        assert_eq!(days(&STATEMENT.replace("PRCD", "OPBD")), ["2026-11-20", "2026-11-21"]);
        assert_eq!(days(&STATEMENT.replace("<Cd>CLBD", "<Cd>CLAV")), ["2026-11-21", ""]);
        assert_eq!(
            days(&STATEMENT.replace("<Dt><Dt>2026-11-20</Dt></Dt>", "")),
            ["", "2026-11-21"]
        );
        let instant = STATEMENT.replace("<Dt>2026-11-20</Dt>", "<DtTm>2026-11-19T18:00:00Z</DtTm>");
        assert_eq!(days(&instant), ["2026-11-20", "2026-11-21"]);
    }

    #[test]
    fn the_amount_of_a_transaction_counts_before_that_of_its_details() {
        let read = |from: &str, to: &str| {
            let text = STATEMENT.replacen(from, to, 1);
            let statement =
                super::super::read(text.as_bytes(), &terms("EUR")).expect("one").remove(0);
            short(&statement).into_iter().map(|(_, amount, _)| amount).collect::<Vec<_>>()
        };
        let own = "<Amt Ccy=\"EUR\">100.00</Amt><CdtDbtInd>DBIT</CdtDbtInd>";
        let of = |amount: &str, details: &str| {
            format!("{amount}<AmtDtls><TxAmt><Amt Ccy=\"{details}</Amt></TxAmt></AmtDtls>")
        };
        assert_eq!(read(own, &of(own, "EUR\">101.00")), [-10_000, -5_000, -50]);
        // The details count where there is nothing else, and in the account's currency.
        assert_eq!(read(own, &of("", "EUR\">100.00")), [-10_000, -5_000, -50]);
        assert_eq!(read(own, &of("", "USD\">100.00")), [-15_000, -50]);
    }

    #[test]
    fn what_is_told_of_many_transactions_is_not_copied_into_each() {
        let text = format!("<AddtlNtryInf>{}</AddtlNtryInf>", "a text ".repeat(1_000));
        let each = "<TxDtls><Refs><EndToEndId>E2E-1</EndToEndId></Refs><Amt Ccy=\"EUR\">0.01</Amt>\
                    <CdtDbtInd>DBIT</CdtDbtInd></TxDtls>";
        let all = |amount: &str| {
            let (begin, _) = STATEMENT.split_once("<Ntry>").expect("entries");
            let entry = format!(
                "{begin}<Ntry><NtryRef>1</NtryRef><Amt Ccy=\"EUR\">{amount}</Amt>\
                 <CdtDbtInd>DBIT</CdtDbtInd><BookgDt><Dt>2026-11-21</Dt></BookgDt>\
                 <AcctSvcrRef>A-1</AcctSvcrRef><NtryDtls>{}</NtryDtls>{}</Ntry></Stmt>\
                 </BkToCstmrStmt></Document>",
                each.repeat(10_000),
                text.repeat(20),
            );
            super::super::read(entry.as_bytes(), &terms("EUR")).expect("one").remove(0).entries
        };
        let apart = all("100.00");
        assert_eq!(apart.len(), 10_000);
        assert!(apart.iter().all(|entry| &*entry.said == "E2E-1\n1\nA-1"));
        // Neither does one that is booked as a whole say more than it may.
        let whole = all("99.00");
        assert_eq!(whole.len(), 1);
        assert!(whole[0].said.starts_with("1\nA-1\na text"));
        assert!((SAID_MAX - 10..=SAID_MAX).contains(&whole[0].said.len()));
    }

    #[test]
    fn whatever_is_no_statement_is_refused() {
        let change = |from: &str, to: &str| STATEMENT.replacen(from, to, 1);
        let deep = format!("<Document><BkToCstmrStmt>{}", "<a>".repeat(100));
        for (text, word) in [
            (change("BkToCstmrStmt", "BkToCstmrDbtCdtNtfctn"), "BkToCstmrDbtCdtNtfctn"),
            (change(">150.00<", ">150,00<"), "no amount"),
            (change(">150.00<", ">150.001<"), "no amount"),
            (change("<Ccy>EUR", "<Ccy>USD"), "in USD"),
            (change("Ccy=\"EUR\">150.00", "Ccy=\"USD\">150.00"), "in USD"),
            (change("<CdtDbtInd>DBIT", "<CdtDbtInd>BOTH"), "neither"),
            (change("2026-11-21T23:30:00+01:00", "2026-11-31"), "no day"),
            (change("2026-11-21T23:30:00+01:00", "2026-11-21x"), "no day"),
            (change("<Id>S", "<!DOCTYPE x><Id>S"), ""),
            (change("&amp;", "&x;"), "stands for nothing"),
            (change("</Stmt></BkToCstmrStmt></Document>", ""), "cut off"),
            (change("</Stmt>", "</Stmnt>"), "</Stmnt> stands where </Stmt> has to"),
            (change("<Dt><Dt>2026-11-20", "<Dt><Dt>2026-11-31"), "no day"),
            (change("<Acct>", "<FrToDt><FrDtTm>today</FrDtTm></FrToDt><Acct>"), "no day"),
            ("<Document><BkToCstmrStmt></BkToCstmrStmt></Document>".to_owned(), "no statement"),
            ("<x/>".to_owned(), "no statement"),
            (deep, "built like that"),
        ] {
            let refused = super::super::read(text.as_bytes(), &terms("EUR")).expect_err(word);
            assert!(refused.to_string().contains(word), "{word}: {refused}");
        }
    }
}
