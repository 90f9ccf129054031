//! Returns of payments, as a bank tells them by itself: pacs.004.001.09.

use railhead_rail::host;
use railhead_rail::types::{News, Notice, Subject};
use railhead_rail::wording::plain;

use crate::xml::{Element, Odd};
use crate::{amount, camt054, codes, reference};

/// What this is called.
pub const KIND: &str = "pacs.004.001.09";

/// What a message says of payments of ours. One return that cannot be read keeps no other out: it is
/// told under a name that nobody has, so that a person looks.
///
/// # Errors
/// It holds no returns.
pub fn read(content: &Element) -> Result<Vec<Notice>, Odd> {
    if content.name() != "PmtRtr" {
        return Err("it is no return of payments".to_owned());
    }
    let mut notices = Vec::new();
    let mut is_empty = true;
    for payment in content.all("TxInf") {
        is_empty = false;
        match returned(payment) {
            Ok(found) => notices.extend(found),
            Err(why) => notices.push(unread(payment, &why)),
        }
    }
    if is_empty { Err("it returns no payment".to_owned()) } else { Ok(notices) }
}

fn returned(payment: &Element) -> Result<Option<Notice>, Odd> {
    let named = payment.text(&["OrgnlEndToEndId"])?.or(payment.text(&["OrgnlTxId"])?);
    let named = named.ok_or("it does not say which payment")?;
    if !reference::is_payment(named) {
        host::warn("a payment that was not made here came back");
        return Ok(None);
    }
    let back = payment.find("RtrdIntrBkSttlmAmt")?.ok_or("it does not say how much")?;
    let cents = amount::read(back)?;
    if let Some(original) = payment.find("OrgnlIntrBkSttlmAmt")?
        && amount::read(original)? < cents
    {
        return Err("more comes back than was sent".to_owned());
    }
    let code = payment.text(&["RtrRsnInf", "Rsn", "Cd"])?.unwrap_or("returned");
    let own = payment.text(&["RtrId"])?.map(|name| plain(name, 70));
    Ok(Some(camt054::notice(named, codes::plain(code), cents, own)))
}

fn unread(payment: &Element, why: &str) -> Notice {
    host::warn(&format!("a return cannot be understood: {why}"));
    let own = payment.text(&["RtrId"]).ok().flatten().map(|name| plain(name, 70));
    let name = own.unwrap_or_else(|| "without a name".to_owned());
    Notice { about: Subject::NetworkId(format!("a return, {name}")), news: News::Ask }
}
