//! Accounts and banks as the bank reads them.

use crate::xml::{Fault, Walk};

/// The IBAN of an account in this element.
///
/// # Errors
/// It is none.
pub fn account<'a>(it: &mut Walk<'a>, name: &str) -> Result<&'a str, Fault> {
    let mut account = it.within(name)?;
    let mut id = account.within("Id")?;
    let iban = id.text("IBAN", 34)?;
    id.end()?;
    account.end()?;
    if is_iban(iban) { Ok(iban) } else { Err(format!("{name} has no valid IBAN")) }
}

/// The BIC of a bank in this element.
///
/// # Errors
/// It is none.
pub fn bank<'a>(it: &mut Walk<'a>, name: &str) -> Result<&'a str, Fault> {
    let mut bank = it.within(name)?;
    let mut institution = bank.within("FinInstnId")?;
    let bic = institution.text("BICFI", 11)?;
    institution.end()?;
    bank.end()?;
    if is_bic(bic) { Ok(bic) } else { Err(format!("{name} has no valid BIC")) }
}

/// Whether the whole leaves 1 by 97, and the check digits are some that are given out.
#[must_use]
pub fn is_iban(text: &str) -> bool {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    let (true, Some((head, rest))) = (is_plain, text.split_at_checked(4)) else { return false };
    let digits: String = [rest, head]
        .concat()
        .chars()
        .filter_map(|c| c.to_digit(36))
        .map(|value| value.to_string())
        .collect();
    let remainder = digits
        .bytes()
        .fold(0_u32, |remainder, digit| (remainder * 10 + u32::from(digit - b'0')) % 97);
    let check: u32 = head[2..].parse().unwrap_or_default();
    (15..=34).contains(&text.len()) && remainder == 1 && (2..=98).contains(&check)
}

fn is_bic(text: &str) -> bool {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    let country = text.get(4..6).unwrap_or_default();
    matches!(text.len(), 8 | 11)
        && is_plain
        && text != "NOTPROVIDED"
        && country.len() == 2
        && country.bytes().all(|b| b.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::{is_bic, is_iban};

    #[test]
    fn ibans_and_bics() {
        for iban in ["DE89370400440532013000", "NO9386011117947", "MT84MALT011000012345MTLCAST001S"]
        {
            assert!(is_iban(iban), "{iban}");
        }
        for iban in [
            "",
            "DE89",
            "GB29NWBK60161331926818",
            "GB00NWBK60161300000082",
            "de89370400440532013000",
        ] {
            assert!(!is_iban(iban), "{iban}");
        }
        assert!(is_bic("COBADEFFXXX") && is_bic("E097FRXX"));
        assert!(!is_bic("NOTPROVIDED") && !is_bic("COBADEF") && !is_bic("COBA1EFF"));
    }
}
