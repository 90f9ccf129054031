use railhead_rail::host::double;
use railhead_rail::types::{Finding, News, Notice, Subject};

use crate::arrivals::read;
use crate::fixtures;

const FILE: &str = "RF2026030600000004201A1FD557A80";
const ENTRY: &str = "RI00000004201A1FD557A800000000002";

fn told(acceptance: &str, status: &str) -> Vec<Notice> {
    let mut host = fixtures::host();
    host.settings.insert("acceptance".into(), acceptance.into());
    double::install(host);
    let body = format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.002.001.10\"><CstmrPmtStsRpt>\
         <OrgnlGrpInfAndSts><OrgnlMsgId>{FILE}</OrgnlMsgId>\
         <OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId><GrpSts>{status}</GrpSts>\
         </OrgnlGrpInfAndSts></CstmrPmtStsRpt></Document>"
    );
    read("incoming", "a.xml", body.as_bytes()).expect("a report")
}

#[test]
fn how_far_a_file_must_have_come_is_the_operators_word() {
    let words = ["ACTC", "ACCP", "ACSP", "ACSC"];
    for (needed, acceptance) in words.iter().enumerate() {
        for (reached, status) in words.iter().enumerate() {
            let notices = told(acceptance, status);
            assert_eq!(notices.is_empty(), reached < needed, "{acceptance} {status}");
        }
    }
    // What the operator has not said, or misspelt, is ACCP.
    assert!(told("", "ACTC").is_empty() && !told("x", "ACCP").is_empty());
}

#[test]
fn an_acceptance_is_of_the_file() {
    let notices = told("ACCP", "ACSP");
    let [Notice { about: Subject::File(name), news: News::Found(Finding::Accepted(receipt)) }] =
        notices.as_slice()
    else {
        panic!("{notices:?}")
    };
    assert_eq!((&**name, receipt.amount_minor), (FILE, None));
}

/// What a report on a file of two payments says, with this of the group and of what it holds.
fn reported(group: &str, batch: &str) -> Vec<Notice> {
    fixtures::install();
    let body = format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.002.001.10\"><CstmrPmtStsRpt>\
         <OrgnlGrpInfAndSts><OrgnlMsgId>{FILE}</OrgnlMsgId>\
         <OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId><OrgnlNbOfTxs>2</OrgnlNbOfTxs>\
         <OrgnlCtrlSum>1250.50</OrgnlCtrlSum>{group}</OrgnlGrpInfAndSts><OrgnlPmtInfAndSts>\
         <OrgnlPmtInfId>{FILE}-1</OrgnlPmtInfId>{batch}</OrgnlPmtInfAndSts></CstmrPmtStsRpt>\
         </Document>"
    );
    read("incoming", "a.xml", body.as_bytes()).expect("a report")
}

fn reason(code: &str, words: &str) -> String {
    format!("<StsRsnInf><Rsn><Cd>{code}</Cd></Rsn><AddtlInf>{words}</AddtlInf></StsRsnInf>")
}

/// A payment of the file that is rejected for this.
fn payment(reason: &str) -> String {
    format!(
        "<TxInfAndSts><OrgnlInstrId>{ENTRY}</OrgnlInstrId><TxSts>RJCT</TxSts>{reason}</TxInfAndSts>"
    )
}

/// One payment is carried out, and this one is not.
fn in_part(reason: &str) -> Vec<Notice> {
    let tallies = [("ACSP", 1), ("RJCT", 1)].map(|(status, count)| {
        format!(
            "<NbOfTxsPerSts><DtldNbOfTxs>{count}</DtldNbOfTxs><DtldSts>{status}</DtldSts>\
             </NbOfTxsPerSts>"
        )
    });
    reported("", &(tallies.concat() + &payment(reason)))
}

#[test]
fn a_file_that_was_stopped_is_for_a_person() {
    for code in [
        "AC16", "AM07", "CUST", "DS02", "FOCR", "FR01", "FRAD", "LEGL", "RR01", "RR02", "RR03",
        "RR04", "RR12", "UPAY",
    ] {
        let [group, batch] = ["GrpSts", "PmtInfSts"]
            .map(|status| format!("<{status}>RJCT</{status}>{}", reason(code, "x")));
        for notices in [reported(&group, ""), reported("", &batch)] {
            let [Notice { about: Subject::File(name), news: News::Found(Finding::Unknown(_)) }] =
                notices.as_slice()
            else {
                panic!("{code}: {notices:?}")
            };
            assert_eq!(&**name, FILE);
        }
        // A payment that is named is refused, as ever.
        let notices = reported(&group, &payment(&reason("AC01", "x")));
        let [
            Notice { about: Subject::NetworkId(_), news: News::Found(Finding::Refused(why)) },
            Notice { about: Subject::File(_), news: News::Found(Finding::Unknown(_)) },
        ] = notices.as_slice()
        else {
            panic!("{code}: {notices:?}")
        };
        assert_eq!(why.code, "AC01");
        let notices = in_part(&reason(code, "x"));
        let [_, Notice { news: News::Found(Finding::Refused(why)), .. }] = notices.as_slice()
        else {
            panic!("{code}: {notices:?}")
        };
        assert_eq!(why.code, code);
    }
    let notices = reported(&format!("<GrpSts>RJCT</GrpSts>{}", reason("FF01", "x")), "");
    assert!(
        matches!(notices.as_slice(), [Notice { news: News::Found(Finding::Refused(_)), .. }]),
        "{notices:?}"
    );
}

/// The host keeps what nobody knows of unpaid, so that its neighbours need not wait for it.
#[test]
fn a_payment_that_is_not_clear_keeps_no_other_back() {
    for unclear in [reason("AM05", "x"), reason("NARR", "x"), reason("FF01", "sent twice")] {
        let notices = in_part(&unclear);
        let [
            Notice { about: Subject::File(_), news: News::Found(Finding::Accepted(receipt)) },
            Notice { about: Subject::NetworkId(entry), news: News::Found(Finding::Unknown(_)) },
        ] = notices.as_slice()
        else {
            panic!("{notices:?}")
        };
        assert_eq!((receipt.amount_minor, &**entry), (Some(125_050), ENTRY));
    }
}

#[test]
fn words_beside_a_code_that_says_what_is_wrong_make_it_no_duplicate() {
    for (code, words) in [
        ("AC01", "Account does not exist"),
        ("AC01", "IBAN existiert nicht"),
        ("AC01", "COMPTE INEXISTANT"),
        ("AC04", "Account already closed"),
        ("AC04", "Konto bereits aufgel\u{f6}st"),
        ("AC04", "CONTO GIA ESTINTO"),
        ("MS03", "MOTIF NON COMMUNIQUE"),
    ] {
        let notices = in_part(&reason(code, words));
        let [
            Notice { news: News::Found(Finding::Accepted(_)), .. },
            Notice { news: News::Found(Finding::Refused(why)), .. },
        ] = notices.as_slice()
        else {
            panic!("{words}: {notices:?}")
        };
        assert_eq!(why.code, code);
    }
}
