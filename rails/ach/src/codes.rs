//! Reason codes of returns, and change codes of corrections, in words for merchants.
//!
//! Lists that go round give some codes the meaning of others: R16 is a frozen account and no
//! duplicate, which is R24; a closed account is R02, and R05 speaks of debits. Whether money came
//! back is not read from the code but from the entry that carries it.
//!
//! R24 says that the bank has two entries and keeps one, and not which of them the recipient was
//! meant to have: the payment does not count as returned by itself, and a person looks.

/// What an entry was returned for. Codes 61 to 77 are left out: by those banks dispute a return.
const RETURNS: &[(&str, &str)] = &[
    ("R01", "The account does not hold enough for the debit"),
    ("R02", "The account has been closed"),
    ("R03", "There is no such account, or it is not this recipient's"),
    ("R04", "The account number is not one of this bank's"),
    ("R05", "A company's debit went to a consumer's account without consent"),
    ("R06", "The sending bank asked for it back"),
    ("R07", "The recipient has withdrawn the authorization to debit"),
    ("R08", "The recipient has stopped the debit"),
    ("R09", "What the account holds is not collected yet"),
    ("R10", "The recipient does not know the sender, or has not authorized the debit"),
    ("R11", "The debit is not what the recipient authorized"),
    ("R12", "The account's branch now belongs to another bank"),
    ("R13", "The bank does not take payments of this kind"),
    ("R14", "Who took payments on the recipient's behalf has died, or no longer may"),
    ("R15", "The recipient or the holder of the account has died"),
    ("R16", "The account is frozen"),
    ("R17", "The bank could not process the payment, or finds its circumstances questionable"),
    ("R18", "The effective date is not possible"),
    ("R19", "The amount is not written as it must be"),
    ("R20", "The account takes no payments of this kind"),
    ("R21", "The company's identification is not valid"),
    ("R22", "The recipient's identification is not valid"),
    ("R23", "The recipient has refused the payment"),
    ("R24", "The bank takes it for a duplicate"),
    ("R25", "The addenda are not written as they must be"),
    ("R26", "A mandatory field is wrong"),
    ("R27", "The trace number is wrong"),
    ("R28", "The check digit of the routing number is wrong"),
    ("R29", "The company that was debited has not authorized it"),
    ("R30", "The bank takes no part in check truncation"),
    ("R31", "Returned with the sending bank's consent"),
    ("R32", "The bank cannot settle the payment"),
    ("R33", "A destroyed check's entry was returned"),
    ("R34", "Supervisors have limited what the bank takes part in"),
    ("R35", "Debits are not allowed in entries of this class"),
    ("R36", "Credits are not allowed in entries of this class"),
    ("R37", "The check behind the entry was presented as well"),
    ("R38", "The check behind the entry was stopped"),
    ("R39", "The check behind the entry is not a proper one"),
    ("R40", "The agency returned the enrolment"),
    ("R41", "The enrolment's transaction code is not valid"),
    ("R42", "The enrolment's routing number is not valid"),
    ("R43", "The enrolment's account number is not valid"),
    ("R44", "The enrolment's identification number is not the agency's"),
    ("R45", "The enrolment's name is not the agency's"),
    ("R46", "The enrolment's mark for a representative payee is wrong"),
    ("R47", "The enrolment was made before"),
    ("R50", "The law of the state does not allow a check to be presented again this way"),
    ("R51", "The check must not be presented again this way"),
    ("R52", "The check that was presented again was stopped"),
    ("R53", "The check was presented as well as its entry"),
    ("R80", "An international entry is coded wrongly"),
    ("R81", "The gateway takes no part in international entries"),
    ("R82", "The foreign bank's identification is not valid"),
    ("R83", "The foreign bank cannot settle the payment"),
    ("R84", "The gateway did not process the payment"),
    ("R85", "An international payment was not coded as one"),
    ("R90", "The bank may not take the payment because of sanctions"),
];

/// Codes by which one bank disputes another one's return.
const DISPUTES: &[(&str, &str)] = &[
    ("R61", "The return was sent to the wrong bank"),
    ("R62", "The reversal led to a credit that was not intended"),
    ("R67", "The same entry was returned twice"),
    ("R68", "The return came too late"),
    ("R69", "Fields of the return are wrong"),
    ("R70", "The return needed consent, and there was none"),
    ("R71", "The dishonored return was sent to the wrong bank"),
    ("R72", "The dishonored return came too late"),
    ("R73", "The return was in time"),
    ("R74", "The return is made anew, corrected"),
    ("R75", "The return was no duplicate"),
    ("R76", "The return had no errors"),
    ("R77", "The dishonored return is not accepted"),
];

/// What shall be written otherwise from now on.
const CHANGES: &[(&str, &str)] = &[
    ("C01", "The account number is another one"),
    ("C02", "The routing number is another one"),
    ("C03", "Routing number and account number are others"),
    ("C04", "The name on the account is another one"),
    ("C05", "The account is of the other type"),
    ("C06", "The account number is another one, and the account of the other type"),
    ("C07", "Routing number, account number and type of the account are others"),
    ("C08", "The foreign bank's identification is another one"),
    ("C09", "The recipient's identification number is wrong"),
    ("C10", "The name of the company that pays is another one"),
    ("C11", "The identification of the company that pays is another one"),
    ("C12", "Name and identification of the company that pays are others"),
    ("C13", "The addenda are not written as they should be"),
    ("C14", "The payment is an international one and should be sent as such"),
];

/// What a code of a return says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The payment came back.
    Returned(&'static str),
    /// Two banks disagree about a return. Nothing came back by it.
    Disputed(&'static str),
}

/// What a code of a return says; nothing, where it is not written as one.
///
/// A code that is not listed is one of a later edition of the rules. Those from 61 to 79 are the
/// disputes', and every other one is a return's.
#[must_use]
pub fn reason(code: &str) -> Option<Reason> {
    let number = numbered(code, 'R')?;
    if (61..=79).contains(&number) {
        let found = find(DISPUTES, code).unwrap_or("The banks disagree about a return");
        return Some(Reason::Disputed(found));
    }
    Some(Reason::Returned(find(RETURNS, code).unwrap_or("The recipient's bank returned it")))
}

/// What a change code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The recipient should be written otherwise.
    Corrects(&'static str),
    /// Somebody refuses a correction.
    Refuses,
}

/// What a change code says; nothing, where it is not written as one.
#[must_use]
pub fn change(code: &str) -> Option<Change> {
    let number = numbered(code, 'C')?;
    if (61..=69).contains(&number) {
        return Some(Change::Refuses);
    }
    let unlisted = "The recipient's bank asks for a change";
    Some(Change::Corrects(find(CHANGES, code).unwrap_or(unlisted)))
}

fn find(table: &[(&str, &'static str)], code: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == code).map(|(_, meaning)| *meaning)
}

/// The two digits of a code after its letter.
fn numbered(code: &str, letter: char) -> Option<u32> {
    let digits = code.strip_prefix(letter)?;
    let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{CHANGES, Change, DISPUTES, RETURNS, Reason, change, reason};

    #[test]
    fn tables_are_in_order_and_every_code_has_its_own_meaning() {
        let all = [RETURNS, DISPUTES, CHANGES];
        for table in all {
            assert!(table.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
        let mut meanings: Vec<_> = all.iter().flat_map(|table| table.iter()).collect();
        let count = meanings.len();
        meanings.sort_by_key(|(_, meaning)| *meaning);
        meanings.dedup_by_key(|(_, meaning)| *meaning);
        assert_eq!((meanings.len(), RETURNS.len() + DISPUTES.len()), (count, 71));
    }

    #[test]
    fn the_cases_have_every_code() {
        for (file, table) in [
            (include_str!("../cases/golden/every-return.ach"), RETURNS),
            (include_str!("../cases/golden/every-dispute.ach"), DISPUTES),
            (include_str!("../cases/golden/changes.ach"), CHANGES),
        ] {
            let addenda = file.lines().filter(|line| line.starts_with('7'));
            let mut codes: Vec<&str> = addenda.map(|line| &line[3..6]).collect();
            codes.sort_unstable();
            assert_eq!(codes, table.iter().map(|(code, _)| *code).collect::<Vec<_>>());
        }
    }

    #[test]
    fn codes_that_lists_confuse() {
        for (code, word) in [
            ("R02", "closed"),
            ("R05", "debit"),
            ("R16", "frozen"),
            ("R23", "refused"),
            ("R24", "duplicate"),
        ] {
            let Some(Reason::Returned(meaning)) = reason(code) else { panic!("{code}") };
            assert!(meaning.contains(word), "{code}: {meaning}");
        }
    }

    #[test]
    fn disputes_return_nothing() {
        for number in 61..=79 {
            let found = reason(&format!("R{number}"));
            assert!(matches!(found, Some(Reason::Disputed(_))), "{number}");
        }
        assert!(matches!(reason("R60"), Some(Reason::Returned(_))));
        assert!(matches!(reason("R99"), Some(Reason::Returned(_))));
    }

    #[test]
    fn what_is_no_code() {
        for text in ["", "R", "R1", "R001", "r02", "C01", "R+1", "R 2", "X02"] {
            assert_eq!(reason(text), None, "{text:?}");
        }
        for text in ["", "C1", "c01", "R02", "C6X"] {
            assert_eq!(change(text), None, "{text:?}");
        }
        for (code, is_refusal) in [("C13", false), ("C60", false), ("C61", true), ("C69", true)] {
            assert_eq!(change(code) == Some(Change::Refuses), is_refusal, "{code}");
        }
    }
}
