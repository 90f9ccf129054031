//! What messages look like: elements in their order, how often each may be there, and what it holds.
//! Nothing else may be there.

use crate::rules::Rule;

/// An element.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What it is called.
    pub name: &'static str,
    /// Whether it must be there.
    pub need: Need,
    /// What it holds.
    pub content: Content,
}

/// How often an element is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Once.
    Once,
    /// Once, or not at all.
    Optional,
    /// Twice at most.
    UpToTwice,
}

/// What an element holds.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// A text.
    Text(Rule),
    /// An amount of dollars, which its attribute says.
    Amount,
    /// Elements in this order.
    Parts(&'static [Shape]),
}

const fn must(name: &'static str, rule: Rule) -> Shape {
    Shape { name, need: Need::Once, content: Content::Text(rule) }
}

const fn may(name: &'static str, rule: Rule) -> Shape {
    Shape { name, need: Need::Optional, content: Content::Text(rule) }
}

const fn parts(name: &'static str, of: &'static [Shape]) -> Shape {
    Shape { name, need: Need::Once, content: Content::Parts(of) }
}

const fn maybe(name: &'static str, of: &'static [Shape]) -> Shape {
    Shape { name, need: Need::Optional, content: Content::Parts(of) }
}

const fn amount(name: &'static str) -> Shape {
    Shape { name, need: Need::Once, content: Content::Amount }
}

/// The Fedwire Funds Service's own routing number passes as one.
const MEMBER: &[Shape] =
    &[parts("ClrSysId", &[must("Cd", Rule::Word(&["USABA"]))]), must("MmbId", Rule::Routing)];

const BANK: &[Shape] = &[parts("FinInstnId", &[parts("ClrSysMmbId", MEMBER)])];

const BY_BANK: &[Shape] = &[parts("Agt", BANK)];

/// Since November 2026 town and country have elements of their own wherever there is an address.
const ADDRESS: &[Shape] = &[
    may("Dept", Rule::Text(70)),
    may("SubDept", Rule::Text(70)),
    may("StrtNm", Rule::Text(70)),
    may("BldgNb", Rule::Text(16)),
    may("BldgNm", Rule::Text(35)),
    may("Flr", Rule::Text(70)),
    may("PstBx", Rule::Text(16)),
    may("Room", Rule::Text(70)),
    may("PstCd", Rule::Text(16)),
    must("TwnNm", Rule::Text(35)),
    may("TwnLctnNm", Rule::Text(35)),
    may("DstrctNm", Rule::Text(35)),
    may("CtrySubDvsn", Rule::Text(35)),
    must("Ctry", Rule::Country),
    Shape { name: "AdrLine", need: Need::UpToTwice, content: Content::Text(Rule::Text(70)) },
];

const BANK_IN_FULL: &[Shape] = &[parts(
    "FinInstnId",
    &[
        may("BICFI", Rule::Bic),
        parts("ClrSysMmbId", MEMBER),
        may("Nm", Rule::Text(140)),
        maybe("PstlAdr", ADDRESS),
    ],
)];

const PARTY: &[Shape] = &[must("Nm", Rule::Text(140)), maybe("PstlAdr", ADDRESS)];

/// The payer has an address, too.
const PAYER: &[Shape] = &[must("Nm", Rule::Text(140)), parts("PstlAdr", ADDRESS)];

const ACCOUNT: &[Shape] = &[
    parts("Id", &[parts("Othr", &[must("Id", Rule::Text(34))])]),
    maybe("Tp", &[must("Cd", Rule::Word(&["CACC", "SVGS"]))]),
];

const CONNECTION: &[Shape] = &[parts(
    "FIId",
    &[parts("FinInstnId", &[parts("ClrSysMmbId", &[must("MmbId", Rule::Connection)])])],
)];

/// head.001.001.03
pub const HEADER: &[Shape] = &[
    parts("Fr", CONNECTION),
    parts("To", CONNECTION),
    must("BizMsgIdr", Rule::Text(35)),
    must("MsgDefIdr", Rule::Text(15)),
    must("BizSvc", Rule::Word(&["TEST", "PROD"])),
    parts(
        "MktPrctc",
        &[
            must(
                "Regy",
                Rule::Word(&[
                    "www2.swift.com/mystandards/#/group/Federal_Reserve_Financial_Services/Fedwire_Funds_Service",
                ]),
            ),
            must("Id", Rule::Word(&["frb.fedwire.01"])),
        ],
    ),
    must("CreDt", Rule::Instant),
];

/// pacs.008.001.08
pub const WIRE: &[Shape] = &[
    parts(
        "GrpHdr",
        &[
            must("MsgId", Rule::Imad),
            must("CreDtTm", Rule::Instant),
            must("NbOfTxs", Rule::Word(&["1"])),
            parts(
                "SttlmInf",
                &[
                    must("SttlmMtd", Rule::Word(&["CLRG"])),
                    parts("ClrSys", &[must("Cd", Rule::Word(&["FDW"]))]),
                ],
            ),
        ],
    ),
    parts(
        "CdtTrfTxInf",
        &[
            parts(
                "PmtId",
                &[
                    may("InstrId", Rule::Text(35)),
                    must("EndToEndId", Rule::Text(35)),
                    must("UETR", Rule::Uetr),
                ],
            ),
            parts("PmtTpInf", &[parts("LclInstrm", &[must("Prtry", Rule::Word(&["CTRC"]))])]),
            amount("IntrBkSttlmAmt"),
            must("IntrBkSttlmDt", Rule::Date),
            amount("InstdAmt"),
            must("ChrgBr", Rule::Word(&["CRED", "DEBT", "SHAR", "SLEV"])),
            parts("InstgAgt", BANK),
            parts("InstdAgt", BANK),
            parts("Dbtr", PAYER),
            parts("DbtrAcct", ACCOUNT),
            parts("DbtrAgt", BANK_IN_FULL),
            parts("CdtrAgt", BANK_IN_FULL),
            parts("Cdtr", PARTY),
            parts("CdtrAcct", ACCOUNT),
            maybe("RmtInf", &[must("Ustrd", Rule::Text(140))]),
        ],
    ),
];

const ORIGINAL: &[Shape] = &[
    must("OrgnlMsgId", Rule::Imad),
    must("OrgnlMsgNmId", Rule::Word(&["pacs.008.001.08"])),
    must("OrgnlCreDtTm", Rule::Instant),
];

/// pacs.028.001.03
pub const QUESTION: &[Shape] = &[
    parts("GrpHdr", &[must("MsgId", Rule::Text(35)), must("CreDtTm", Rule::Instant)]),
    parts(
        "TxInf",
        &[
            parts("OrgnlGrpInf", ORIGINAL),
            may("OrgnlInstrId", Rule::Text(35)),
            may("OrgnlEndToEndId", Rule::Text(35)),
            must("OrgnlUETR", Rule::Uetr),
            parts("InstgAgt", BANK),
            parts("InstdAgt", BANK),
        ],
    ),
];

/// camt.056.001.08
pub const RECALL: &[Shape] = &[
    parts(
        "Assgnmt",
        &[
            must("Id", Rule::Imad),
            parts("Assgnr", BY_BANK),
            parts("Assgne", BY_BANK),
            must("CreDtTm", Rule::Instant),
        ],
    ),
    parts("Case", &[must("Id", Rule::Text(35)), parts("Cretr", BY_BANK)]),
    parts(
        "Undrlyg",
        &[parts(
            "TxInf",
            &[
                parts("OrgnlGrpInf", ORIGINAL),
                may("OrgnlInstrId", Rule::Text(35)),
                may("OrgnlEndToEndId", Rule::Text(35)),
                must("OrgnlUETR", Rule::Uetr),
                amount("OrgnlIntrBkSttlmAmt"),
                must("OrgnlIntrBkSttlmDt", Rule::Date),
                parts("CxlRsnInf", &[parts("Rsn", &[must("Cd", Rule::Code)])]),
            ],
        )],
    ),
];
