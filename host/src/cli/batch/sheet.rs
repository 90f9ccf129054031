//! The rows of a payroll: CSV, or the first sheet of a workbook.

use std::collections::BTreeSet;
use std::path::Path;

use calamine::{Data, Reader as _};
use serde_json::{Map, Value};

use crate::start::StartError;

/// Columns that are sent as they are, by the names that files may give them.
const COLUMNS: &[(&str, &str)] = &[
    ("account_number", "recipient_account_number"),
    ("recipient_account_number", "recipient_account_number"),
    ("bank_code", "recipient_bank_code"),
    ("recipient_bank_code", "recipient_bank_code"),
    ("name", "recipient_name"),
    ("recipient_name", "recipient_name"),
    ("email", "recipient_email"),
    ("recipient_email", "recipient_email"),
    ("beneficiary_id", "beneficiary_id"),
    ("narration", "narration"),
    ("reference", "merchant_reference"),
    ("merchant_reference", "merchant_reference"),
    ("customer_reference", "customer_reference"),
    ("sender_first_name", "sender_first_name"),
    ("sender_last_name", "sender_last_name"),
    ("sender_business_name", "sender_business_name"),
    ("sender_id_type", "sender_id_type"),
    ("sender_id_number", "sender_id_number"),
    ("sender_id_expiry", "sender_id_expiry"),
    ("sender_date_of_birth", "sender_date_of_birth"),
    ("sender_country", "sender_country"),
];
/// The amount in major units, or in minor ones.
const AMOUNTS: [&str; 2] = ["amount", "amount_minor"];
/// Whether the cool-down is waived: true or false.
const WAIVED: &str = "allow_duplicate";
/// Decimal places of the currency that batches are paid in.
const PLACES: usize = 2;
/// Mistakes that are listed before it is enough.
const MISTAKES_MAX: usize = 20;

/// A row of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Its line in the file, from 1.
    pub line: usize,
    /// What is sent.
    pub payout: Value,
    /// How much, in minor units.
    pub amount: i64,
}

/// Reads a file, whose name says of what kind it is.
///
/// # Errors
/// It cannot be read, or rows are wrong: each with its line, and what to do.
pub(super) fn read(file: &Path) -> Result<Vec<Row>, StartError> {
    let end = file.extension().and_then(|end| end.to_str()).map(str::to_ascii_lowercase);
    let lines = match end.as_deref() {
        Some("csv") => table(file)?,
        Some("xlsx") => workbook(file)?,
        _ => return Err("the file must end in .csv or .xlsx".into()),
    };
    rows(&lines)
}

/// Every line of a file of commas.
fn table(file: &Path) -> Result<Vec<Vec<String>>, StartError> {
    let said = |cause: &dyn std::fmt::Display| format!("{}: {cause}", file.display());
    let content = std::fs::read(file).map_err(|cause| said(&cause))?;
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true).trim(csv::Trim::All);
    let mut lines = Vec::new();
    for record in reader.from_reader(content.as_slice()).records() {
        let record = record.map_err(|cause| match cause.kind() {
            csv::ErrorKind::Utf8 { pos, .. } => {
                let line = pos.as_ref().map_or(1, |at| line_of(&content, at));
                said(&format!("line {line} is not UTF-8: save the file as CSV UTF-8"))
            }
            _ => said(&cause),
        })?;
        // Lines with nothing in them are no records, and some records have several.
        let line = record.position().map_or(1, |at| line_of(&content, at));
        lines.resize(line.saturating_sub(1).max(lines.len()), Vec::new());
        lines.push(record.iter().map(str::to_owned).collect());
    }
    Ok(lines)
}

/// The line on which a record begins. Its position is that of the empty lines before it.
fn line_of(content: &[u8], at: &csv::Position) -> usize {
    let rest = content.get(usize::try_from(at.byte()).unwrap_or(usize::MAX)..).unwrap_or_default();
    let empty = rest.iter().take_while(|byte| matches!(byte, b'\n' | b'\r'));
    let skipped = empty.filter(|byte| **byte == b'\n').count();
    usize::try_from(at.line()).unwrap_or(usize::MAX).saturating_add(skipped)
}

/// Every line of the first sheet of a workbook.
fn workbook(file: &Path) -> Result<Vec<Vec<String>>, StartError> {
    let mut book: calamine::Xlsx<_> =
        calamine::open_workbook(file).map_err(|cause| format!("{}: {cause}", file.display()))?;
    let sheet = book.worksheet_range_at(0).ok_or("the workbook has no sheet")?;
    let sheet = sheet.map_err(|cause| format!("{}: {cause}", file.display()))?;
    // Lines above the first one with something in it count as well.
    let above = sheet.start().map_or(0, |(row, _)| row);
    let mut lines = vec![Vec::new(); usize::try_from(above).unwrap_or(0)];
    lines.extend(sheet.rows().map(|row| row.iter().map(cell).collect()));
    Ok(lines)
}

fn cell(cell: &Data) -> String {
    match cell {
        Data::Empty => String::new(),
        other => other.to_string().trim().to_owned(),
    }
}

/// What the lines say: the first one that is not empty names the columns.
fn rows(lines: &[Vec<String>]) -> Result<Vec<Row>, StartError> {
    let is_empty = |line: &[String]| line.iter().all(String::is_empty);
    let mut lines = (1..).zip(lines).filter(|(_, line)| !is_empty(line));
    let (_, head) = lines.next().ok_or("the file is empty")?;
    let columns: Vec<String> = head
        .iter()
        .map(|name| name.trim_start_matches('\u{feff}').trim().to_ascii_lowercase())
        .collect();
    if let [only] = columns.as_slice()
        && only.contains(';')
    {
        return Err("columns are separated by commas here: save the file as CSV UTF-8".into());
    }
    refuse_columns(&columns)?;
    let (mut rows, mut mistakes) = (Vec::new(), Vec::new());
    let mut references: BTreeSet<String> = BTreeSet::new();
    for (line, cells) in lines {
        let row = row(line, &columns, cells).and_then(|row| {
            let reference = row.payout["merchant_reference"].as_str().map(str::to_owned);
            match reference.filter(|reference| !references.insert(reference.clone())) {
                Some(twice) => Err(format!("the reference {twice} stands in the file twice")),
                None => Ok(row),
            }
        });
        match row {
            Ok(row) => rows.push(row),
            Err(why) => mistakes.push(format!("  line {line}: {why}")),
        }
    }
    if !mistakes.is_empty() {
        let more = mistakes.len().saturating_sub(MISTAKES_MAX);
        mistakes.truncate(MISTAKES_MAX);
        if more > 0 {
            mistakes.push(format!("  and {more} more"));
        }
        return Err(format!("nothing was sent:\n{}", mistakes.join("\n")).into());
    }
    match rows.is_empty() {
        true => Err("the file names columns, and nobody to pay".into()),
        false => Ok(rows),
    }
}

/// Refuses columns that nobody would read, and files without those that everybody needs.
fn refuse_columns(columns: &[String]) -> Result<(), StartError> {
    let known = |name: &str| COLUMNS.iter().any(|(known, _)| *known == name);
    let mut seen = BTreeSet::new();
    for name in columns {
        if !known(name) && !AMOUNTS.contains(&name.as_str()) && name != WAIVED {
            let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            return Err(format!(
                "there is no column {name:?}: use amount or amount_minor, {names}, {WAIVED}"
            )
            .into());
        }
        let meant =
            COLUMNS.iter().find(|(known, _)| known == name).map_or(name.as_str(), |it| it.1);
        if !seen.insert(meant) {
            return Err(format!("the column {name} stands there twice").into());
        }
    }
    if AMOUNTS.iter().filter(|name| seen.contains(**name)).count() != 1 {
        return Err("the file needs one of the columns amount and amount_minor".into());
    }
    let is_inline =
        seen.contains("recipient_account_number") && seen.contains("recipient_bank_code");
    match is_inline || seen.contains("beneficiary_id") {
        true => Ok(()),
        false => Err("the file needs the columns account_number and bank_code".into()),
    }
}

fn row(line: usize, columns: &[String], cells: &[String]) -> Result<Row, String> {
    if cells.len() > columns.len() && cells[columns.len()..].iter().any(|cell| !cell.is_empty()) {
        return Err("it has more cells than there are columns".to_owned());
    }
    let (mut payout, mut amount) = (Map::new(), None);
    for (name, cell) in columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
        match name.as_str() {
            "amount" => amount = Some(minor(cell)?),
            "amount_minor" => amount = Some(units(cell)?),
            WAIVED => {
                let waived = match cell.to_ascii_lowercase().as_str() {
                    "true" => true,
                    "false" => false,
                    _ => return Err(format!("{WAIVED} must be true or false")),
                };
                payout.insert(WAIVED.to_owned(), waived.into());
            }
            name => {
                let meant = COLUMNS.iter().find(|(known, _)| *known == name);
                let meant = meant.map_or(name, |(_, meant)| meant);
                payout.insert(meant.to_owned(), cell.as_str().into());
            }
        }
    }
    let amount = amount.ok_or("it has no amount")?;
    payout.insert("amount_minor".to_owned(), amount.to_string().into());
    if !payout.contains_key("beneficiary_id") {
        refuse_account(&payout)?;
    }
    Ok(Row { line, payout: Value::Object(payout), amount })
}

/// Spreadsheets drop the zeros that numbers begin with.
fn refuse_account(payout: &Map<String, Value>) -> Result<(), String> {
    let text = |name: &str| payout.get(name).and_then(Value::as_str).unwrap_or_default();
    let account = text("recipient_account_number");
    let is_whole = account.len() == 10 && account.bytes().all(|byte| byte.is_ascii_digit());
    if !is_whole {
        return Err(format!(
            "account_number {account:?} must be 10 digits; a spreadsheet keeps leading zeros only \
             in columns of text"
        ));
    }
    match text("recipient_bank_code").len() {
        0 => Err("it has no bank_code".to_owned()),
        1 | 2 => Err(format!(
            "bank_code {:?} is too short; a spreadsheet keeps leading zeros only in columns of text",
            text("recipient_bank_code")
        )),
        _ => Ok(()),
    }
}

/// An amount in major units, as minor ones.
fn minor(text: &str) -> Result<i64, String> {
    let odd = || {
        format!("amount {text:?} must be digits with at most {PLACES} decimals, such as 2500.50")
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > PLACES || !is_digits(whole) || !is_digits(part) {
        return Err(odd());
    }
    units(&format!("{whole}{part:0<PLACES$}")).map_err(|_| odd())
}

fn units(text: &str) -> Result<i64, String> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let units = text.parse().ok().filter(|units| *units > 0 && is_digits);
    units.ok_or_else(|| format!("amount {text:?} must be digits, and more than nothing"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Vec<Row>, String> {
        let lines: Vec<Vec<String>> =
            text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
        rows(&lines).map_err(|why| why.to_string())
    }

    #[test]
    fn a_row_is_a_payout() {
        let rows = read(
            "Amount,account_number,bank_code,reference,allow_duplicate\n\n\
             2500.5,0123456785,058,wages-1,true\n1,0123456785,058,,\n",
        );
        let rows = rows.expect("rows");
        assert_eq!((rows[0].line, rows[0].amount), (3, 250_050));
        assert_eq!(
            rows[0].payout,
            json!({
                "amount_minor": "250050",
                "recipient_account_number": "0123456785",
                "recipient_bank_code": "058",
                "merchant_reference": "wages-1",
                "allow_duplicate": true,
            })
        );
        assert_eq!((rows[1].line, rows[1].amount), (4, 100));
    }

    #[test]
    fn mistakes_are_named_with_their_lines_before_anything_is_sent() {
        let refused = read(
            "amount,account_number,bank_code,reference\n\
             1.234,0123456785,058,a\n\"2,5\",0123456785,058,b\n0,0123456785,058,c\n\
             5,123456785,058,d\n5,0123456785,58,e\n5,0123456785,058,f\n5,0123456785,058,f\n",
        );
        let said = refused.expect_err("mistakes");
        for line in
            ["line 2: amount", "line 4: amount", "line 5: account_number", "line 6: bank_code"]
        {
            assert!(said.contains(line), "{line} in {said}");
        }
        assert!(said.contains("line 8: the reference f"), "{said}");
        for (head, why) in [
            ("amount,salary", "there is no column \"salary\""),
            ("account_number,bank_code", "one of the columns amount"),
            ("amount,amount_minor,account_number,bank_code", "one of the columns amount"),
            ("amount,account_number", "account_number and bank_code"),
            ("amount,bank_code,recipient_bank_code", "stands there twice"),
        ] {
            let said = read(&format!("{head}\n1,2,3,4")).expect_err("a mistake");
            assert!(said.contains(why), "{said}");
        }
        assert!(read("amount,account_number,bank_code").is_err());
        assert!(read("").is_err());
    }
}
