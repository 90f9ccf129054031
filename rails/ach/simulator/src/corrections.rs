//! What a notification of change says is right instead.
//!
//! Where each value stands in the 29 positions of the corrected data is in the Nacha Operating
//! Rules, appendix five.

use crate::files::Entry;

/// Banks that accounts move to.
const NEW_BANKS: [&str; 2] = ["021000021", "121000248"];

/// Name and identification that the originator should have.
const NEW_COMPANY: (&str, &str) = ("EXAMPLE AND SONS", "1210428829");

/// The corrected data for a change code; nothing for a code that no credit is corrected with.
#[must_use]
pub fn corrected(code: &str, entry: &Entry) -> Option<String> {
    let (account, bank, code_of_kind) = (account(entry), bank(entry), other_kind(entry));
    let data = match code {
        "C01" => account,
        "C02" => bank.to_owned(),
        "C03" => format!("{bank}   {account}"),
        "C04" => name(entry),
        "C05" => code_of_kind.to_owned(),
        "C06" => format!("{account:<17}   {code_of_kind}"),
        "C07" => format!("{bank}{account:<17}{code_of_kind}"),
        // Of international entries, which this bank does not take: told wrongly.
        "C08" => "DEUTDEFF".to_owned(),
        "C09" => format!("{}-1", entry.id),
        "C10" => NEW_COMPANY.0.to_owned(),
        "C11" => NEW_COMPANY.1.to_owned(),
        "C12" => format!("{:<16}   {}", NEW_COMPANY.0, NEW_COMPANY.1),
        // What is right instead does not stand in it.
        "C13" => String::new(),
        _ => return None,
    };
    Some(format!("{data:<29}"))
}

/// The account with another last digit.
fn account(entry: &Entry) -> String {
    let mut account = entry.account.clone();
    let last = account.pop().and_then(|last| last.to_digit(10)).unwrap_or(9);
    format!("{account}{}", (last + 1) % 10)
}

/// Another bank than the entry went to.
fn bank(entry: &Entry) -> &'static str {
    let is_other = |bank: &&&str| !bank.starts_with(&entry.rdfi);
    NEW_BANKS.iter().find(is_other).copied().unwrap_or_default()
}

/// The transaction code of the other kind of account: a savings account for a checking one.
fn other_kind(entry: &Entry) -> &'static str {
    if entry.code == "22" { "32" } else { "22" }
}

/// The name with something behind it that was missing, as far as 22 characters go.
fn name(entry: &Entry) -> String {
    let first: String = entry.name.chars().take(19).collect();
    format!("{} JR", first.trim_end())
}

#[cfg(test)]
mod tests {
    use super::corrected;
    use crate::files::Entry;

    fn entry() -> Entry {
        Entry {
            code: "22".to_owned(),
            rdfi: "02100002".to_owned(),
            account: "12345678901234569".to_owned(),
            amount: 1,
            id: "R16000000000001".to_owned(),
            name: "JANE CATHERINE DOE-ROE".to_owned(),
            discretionary: "  ".to_owned(),
            trace: "121042880000001".to_owned(),
        }
    }

    #[test]
    fn each_value_has_its_place() {
        for (code, data) in [
            ("C01", "12345678901234560            "),
            ("C02", "121000248                    "),
            ("C03", "121000248   12345678901234560"),
            ("C04", "JANE CATHERINE DOE- JR       "),
            ("C05", "32                           "),
            ("C06", "12345678901234560   32       "),
            ("C07", "1210002481234567890123456032 "),
            ("C08", "DEUTDEFF                     "),
            ("C09", "R16000000000001-1            "),
            ("C10", "EXAMPLE AND SONS             "),
            ("C11", "1210428829                   "),
            ("C12", "EXAMPLE AND SONS   1210428829"),
            ("C13", "                             "),
        ] {
            assert_eq!(corrected(code, &entry()).as_deref(), Some(data), "{code}");
        }
        assert_eq!(corrected("C61", &entry()), None);
        let savings = Entry { code: "32".to_owned(), account: "X".to_owned(), ..entry() };
        assert_eq!(corrected("C06", &savings).as_deref(), Some("0                   22       "));
    }
}
