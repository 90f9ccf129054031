//! IBAN (ISO 13616): length and structure by country, and check digits that are computed anew.

/// Countries whose accounts SEPA reaches, and the structure of what stands behind country and
/// check digits: so many digits (`n`), capitals (`a`) or either (`c`), one after the other.
///
/// Countries: EPC409-09, list of SEPA scheme countries, version 8.0 of 24 December 2025.
/// Structures: the IBAN registry of SWIFT, as of October 2026.
const STRUCTURES: &[(&str, &str)] = &[
    ("AD", "8n12c"),
    ("AL", "8n16c"),
    ("AT", "16n"),
    ("BE", "12n"),
    ("BG", "4a6n8c"),
    ("CH", "5n12c"),
    ("CY", "8n16c"),
    ("CZ", "20n"),
    ("DE", "18n"),
    ("DK", "14n"),
    ("EE", "16n"),
    ("ES", "20n"),
    ("FI", "14n"),
    ("FR", "10n11c2n"),
    ("GB", "4a14n"),
    ("GI", "4a15c"),
    ("GR", "7n16c"),
    ("HR", "17n"),
    ("HU", "24n"),
    ("IE", "4a14n"),
    ("IS", "22n"),
    ("IT", "1a10n12c"),
    ("LI", "5n12c"),
    ("LT", "16n"),
    ("LU", "3n13c"),
    ("LV", "4a13c"),
    ("MC", "10n11c2n"),
    ("MD", "20c"),
    ("ME", "18n"),
    ("MK", "3n10c2n"),
    ("MT", "4a5n18c"),
    ("NL", "4a10n"),
    ("NO", "11n"),
    ("PL", "24n"),
    ("PT", "21n"),
    ("RO", "4a16c"),
    ("RS", "18n"),
    ("SE", "20n"),
    ("SI", "15n"),
    ("SK", "20n"),
    ("SM", "1a10n12c"),
    ("VA", "18n"),
];

/// What is wrong with an IBAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not look like one.
    Shape,
    /// SEPA does not reach its country.
    Country,
    /// It is not as long as those of its country, or not made as they are.
    Structure,
    /// The check digits are those of another one.
    CheckDigits,
}

/// The IBAN in capitals without spaces.
///
/// # Errors
/// No account that SEPA reaches can have it.
pub fn canonical(text: &str) -> Result<String, Fault> {
    let iban: String = text.chars().filter(|c| *c != ' ').collect();
    let iban = iban.to_ascii_uppercase();
    let bytes = iban.as_bytes();
    let is_shaped = (15..=34).contains(&bytes.len())
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && bytes[..2].iter().all(u8::is_ascii_uppercase)
        && bytes[2..4].iter().all(u8::is_ascii_digit);
    if !is_shaped {
        return Err(Fault::Shape);
    }
    let (country, behind) = (&iban[..2], &iban[4..]);
    let (_, structure) =
        STRUCTURES.iter().find(|(known, _)| *known == country).ok_or(Fault::Country)?;
    if !is_made_as(structure, behind.as_bytes()) {
        return Err(Fault::Structure);
    }
    // Compared, and not only divided by 97: of 00, 01 and 99 the remainder fits as well as of the
    // right digits.
    if iban[2..4] != check_digits(country, behind) {
        return Err(Fault::CheckDigits);
    }
    Ok(iban)
}

/// Whether SEPA reaches accounts of a country, by the two letters of its IBANs.
#[must_use]
pub fn is_sepa(country: &str) -> bool {
    STRUCTURES.iter().any(|(known, _)| *known == country)
}

/// Two digits, from 02 to 98.
fn check_digits(country: &str, behind: &str) -> String {
    let remainder = [behind, country, "00"].concat().bytes().fold(0_u32, |remainder, byte| {
        let value = match byte {
            b'0'..=b'9' => u32::from(byte - b'0'),
            byte => u32::from(byte.to_ascii_uppercase().saturating_sub(b'A')) + 10,
        };
        let shift = if value < 10 { 10 } else { 100 };
        (remainder * shift + value) % 97
    });
    format!("{:02}", 98 - remainder)
}

fn is_made_as(structure: &str, mut rest: &[u8]) -> bool {
    let mut count = 0;
    for byte in structure.bytes() {
        let is_its: fn(&u8) -> bool = match byte {
            b'0'..=b'9' => {
                count = count * 10 + usize::from(byte - b'0');
                continue;
            }
            b'n' => u8::is_ascii_digit,
            b'a' => u8::is_ascii_uppercase,
            _ => u8::is_ascii_alphanumeric,
        };
        let Some((part, after)) = rest.split_at_checked(count) else { return false };
        if !part.iter().all(is_its) {
            return false;
        }
        (rest, count) = (after, 0);
    }
    rest.is_empty()
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Fault, STRUCTURES, canonical, is_sepa};

    #[test]
    fn one_of_each_country() {
        // The registry's own examples.
        let examples = [
            "AD1200012030200359100100",
            "AL47212110090000000235698741",
            "AT611904300234573201",
            "BE68539007547034",
            "BG80BNBG96611020345678",
            "CH9300762011623852957",
            "CY17002001280000001200527600",
            "CZ6508000000192000145399",
            "DE89370400440532013000",
            "DK5000400440116243",
            "EE382200221020145685",
            "ES9121000418450200051332",
            "FI2112345600000785",
            "FR1420041010050500013M02606",
            "GB29NWBK60161331926819",
            "GI75NWBK000000007099453",
            "GR1601101250000000012300695",
            "HR1210010051863000160",
            "HU42117730161111101800000000",
            "IE29AIBK93115212345678",
            "IS140159260076545510730339",
            "IT60X0542811101000000123456",
            "LI21088100002324013AA",
            "LT121000011101001000",
            "LU280019400644750000",
            "LV80BANK0000435195001",
            "MC5811222000010123456789030",
            "MD24AG000225100013104168",
            "ME25505000012345678951",
            "MK07250120000058984",
            "MT84MALT011000012345MTLCAST001S",
            "NL91ABNA0417164300",
            "NO9386011117947",
            "PL61109010140000071219812874",
            "PT50000201231234567890154",
            "RO49AAAA1B31007593840000",
            "RS35260005601001611379",
            "SE4550000000058398257466",
            "SI56263300012039086",
            "SK3112000000198742637541",
            "SM86U0322509800000000270100",
            "VA59001123000012345678",
        ];
        assert_eq!(examples.len(), STRUCTURES.len());
        for (iban, (country, _)) in examples.iter().zip(STRUCTURES) {
            assert_eq!(canonical(iban).as_deref(), Ok(*iban));
            assert!(iban.starts_with(country), "{iban}");
        }
    }

    #[test]
    fn one_form() {
        let written = canonical(" gb29 nwbk 6016 1331 9268 19 ");
        assert_eq!(written.as_deref(), Ok("GB29NWBK60161331926819"));
    }

    #[test]
    fn what_no_account_has() {
        for (iban, fault) in [
            ("", Fault::Shape),
            ("DE", Fault::Shape),
            ("1234567890123456", Fault::Shape),
            ("DEXX370400440532013000", Fault::Shape),
            ("DE8937040044053201300é", Fault::Shape),
            ("DE89-3704-0044-0532-0130-00", Fault::Shape),
            ("GB29NWBK60161331926818", Fault::CheckDigits),
            ("GB94BARC20201530093459", Fault::CheckDigits),
            // Each leaves 1 when it is divided by 97.
            ("GB00NWBK60161300000082", Fault::CheckDigits),
            ("GB01NWBK60161300000064", Fault::CheckDigits),
            ("GB99NWBK60161300000046", Fault::CheckDigits),
            ("DE8937O400440532013000", Fault::Structure),
            ("DE893704004405320130", Fault::Structure),
            ("DE8937040044053201300000", Fault::Structure),
            ("BG87200500001234567890", Fault::Structure),
            ("IE07BOFI900017556967", Fault::Structure),
            ("BH67BMAG00001299123456", Fault::Country),
            ("XK051212012345678906", Fault::Country),
            ("FO6264600001631634", Fault::Country),
        ] {
            assert_eq!(canonical(iban), Err(fault), "{iban}");
        }
    }

    #[test]
    fn every_wrong_pair_of_check_digits() {
        let right = |digits: u32| canonical(&format!("DE{digits:02}370400440532013000")).is_ok();
        assert_eq!((0..100).filter(|digits| right(*digits)).collect::<Vec<_>>(), [89]);
    }

    #[test]
    fn countries() {
        assert_eq!(STRUCTURES.len(), 42);
        assert!(is_sepa("RS") && !is_sepa("XK") && !is_sepa(""));
    }
}
