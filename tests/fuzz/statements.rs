//! Statements of banks, in each of their forms.

use railhead::money::Currency;
use railhead::reconciliation::matching::{Books, reference_of};
use railhead::statements::{Columns, Terms, read};

use crate::inputs::fuzz;

const WORDS: &[&str] = &[
    ":20:",
    ":25:",
    ":60F:",
    ":61:",
    ":62F:",
    ":86:",
    "-}",
    "{4:",
    "\r\n",
    "C261120NGN10,00",
    "2611211121",
    "RC",
    "RD",
    "NTRF",
    "NONREF",
    "//",
    "?20",
    "?",
    "EREF+",
    ",",
    ".",
    "-",
    "(",
    ")",
    "<",
    ">",
    "</",
    "/>",
    "&amp;",
    "&#x41;",
    "&x;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "<!DOCTYPE x>",
    "<Ntry>",
    "</Ntry>",
    "<TxDtls>",
    "</TxDtls>",
    "<Amt Ccy=\"NGN\">",
    "</Amt>",
    "<CdtDbtInd>",
    "CRDT",
    "DBIT",
    "BOOK",
    "PDNG",
    "9223372036854775807",
    "92233720368547758.08",
    "0229",
    "991332",
    "Date;Amount\n",
    "date,debit,credit\n",
    "\"",
    "\u{feff}",
    "\u{2212}",
];

#[test]
fn statements() {
    let currency = Currency::parse("NGN").expect("a currency");
    let terms = Terms { currency, places: 2, columns: Columns::default() };
    fuzz("statements", WORDS, |input| {
        let Ok(statements) = read(input, &terms) else { return };
        for statement in &statements {
            // A sum that does not fit is said, and nothing is lost on the way.
            let _ = statement.discrepancy();
            for entry in &statement.entries {
                assert!(!reference_of(entry).is_empty(), "{entry:?}");
            }
        }
        let entries: Vec<_> = statements.iter().flat_map(|it| it.entries.clone()).collect();
        let Ok(found) = Books::default().compare(&entries) else { return };
        assert_eq!((found.matched, found.at_the_bank.len()), (0, entries.len()));
        // What is read once is read the same again.
        let again = read(input, &terms).expect("as before");
        assert_eq!(again, statements);
    });
}
