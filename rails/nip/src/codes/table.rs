//! The table. A network that means something else by a code is a change of a row here and of
//! its line in `cases/codes.toml`, and of nothing else.

use super::Class::{Done, NotFound, Pending, Refused, Unclear};
use super::{Class, Code};

const fn row(code: &'static str, meaning: &'static str, classes: [Class; 3]) -> Code {
    let [transfer, query, enquiry] = classes;
    Code { code, meaning, transfer, query, enquiry }
}

/// In order of code; classes for transfer, status query, name enquiry.
///
/// Transfer. Refused are the codes by which the network or the beneficiary's bank declines.
/// 26 and 94 say that the SessionID was used before: the first copy may have been paid. 91
/// and 92 come as often from a bank that fell silent halfway as from one that was never
/// reached. 98 and 99 are made up by gateways.
///
/// Status query. The answer's one code field stands for the transfer or for the query
/// itself, and nothing tells which. Codes about the message (03, 12, 14 to 18, 30, 57, 58,
/// 63) fit a malformed or unauthorised query just as well, so on a query they prove nothing,
/// although on a transfer they refuse. Codes about the beneficiary, the amount or the
/// transfer's checks cannot be about a query, which names none of them, and refuse. 91 and
/// 92 may be about the route of the query. 25 says that the transfer is not on record yet.
///
/// Name enquiry. Refused are codes about the account or its bank; the enquiry moves no
/// money, so every other code only means that this answer is of no use.
pub(super) const TABLE: &[Code] = &[
    row("00", "Approved or completed successfully", [Done, Done, Done]),
    row("01", "Status unknown, wait for the settlement report", [Unclear, Unclear, Unclear]),
    row("03", "Invalid sender", [Refused, Unclear, Unclear]),
    row("05", "Do not honour", [Refused, Refused, Refused]),
    row("06", "Dormant account", [Refused, Refused, Refused]),
    row("07", "Invalid account", [Refused, Refused, Refused]),
    row("08", "Account name mismatch", [Refused, Refused, Refused]),
    row("09", "Request processing in progress", [Pending, Pending, Unclear]),
    row("12", "Invalid transaction", [Refused, Unclear, Unclear]),
    row("13", "Invalid amount", [Refused, Refused, Unclear]),
    row("14", "Invalid batch number", [Refused, Unclear, Unclear]),
    row("15", "Invalid session or record identifier", [Refused, Unclear, Unclear]),
    row("16", "Unknown bank code", [Refused, Unclear, Refused]),
    row("17", "Invalid channel", [Refused, Unclear, Unclear]),
    row("18", "Wrong method call", [Refused, Unclear, Unclear]),
    row("21", "No action taken", [Unclear, Unclear, Unclear]),
    row("25", "Unable to locate record", [Refused, NotFound, Refused]),
    row("26", "Duplicate record", [Unclear, Unclear, Unclear]),
    row("30", "Format error", [Refused, Unclear, Unclear]),
    row("34", "Suspected fraud", [Refused, Refused, Refused]),
    row("35", "Contact sending bank", [Unclear, Unclear, Unclear]),
    row("51", "No sufficient funds", [Refused, Refused, Unclear]),
    row("57", "Transaction not permitted to sender", [Refused, Unclear, Unclear]),
    row("58", "Transaction not permitted on channel", [Refused, Unclear, Unclear]),
    row("61", "Transfer limit exceeded", [Refused, Refused, Unclear]),
    row("63", "Security violation", [Refused, Unclear, Unclear]),
    row("65", "Exceeds withdrawal frequency", [Refused, Refused, Unclear]),
    row("68", "Response received too late", [Unclear, Unclear, Unclear]),
    row("69", "Unsuccessful account or amount block", [Refused, Refused, Unclear]),
    row("70", "Unsuccessful account or amount unblock", [Refused, Refused, Unclear]),
    row("71", "Empty mandate reference number", [Refused, Refused, Unclear]),
    row("91", "Beneficiary bank not available", [Unclear, Unclear, Unclear]),
    row("92", "Routing error", [Unclear, Unclear, Unclear]),
    row("94", "Duplicate transaction", [Unclear, Unclear, Unclear]),
    row("96", "System malfunction", [Unclear, Unclear, Unclear]),
    row("97", "Timeout waiting for response from destination", [Unclear, Unclear, Unclear]),
    row("98", "Client error at the gateway", [Unclear, Unclear, Unclear]),
    row("99", "Timeout at the gateway", [Unclear, Unclear, Unclear]),
];
