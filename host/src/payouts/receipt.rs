//! Receipts to recipients, where a merchant has them on.

use crate::app::App;
use crate::db::bulk::RowChange;
use crate::error::Problem;
use crate::notifications::{self, Content, in_one_line};

use super::model::Payout;

/// The receipt of a payout that has arrived, if somebody is to have one.
pub(super) async fn receipt(app: &App, payout: &Payout) -> Result<Option<RowChange>, Problem> {
    let Some(to) = &payout.receipt_to else { return Ok(None) };
    let merchant = app
        .directory
        .merchant(&payout.merchant_id)
        .await?
        .ok_or_else(|| Problem::internal("its merchant is gone"))?;
    let places = app.rails.places_shown(payout.currency);
    let amount = format!("{} {}", payout.currency, payout.costs.amount.major(places));
    let from = in_one_line(&merchant.name);
    let at = payout.completed_at.unwrap_or_else(|| app.now());
    let mut text = format!(
        "{},\n\n{from} has paid you {amount}.\n\nReference: {}\n",
        in_one_line(&payout.recipient_name),
        payout.id.reference(),
    );
    let of_network = payout.rail_reference.as_deref().map(in_one_line);
    let narration = payout.narration.as_deref().map(in_one_line);
    for (name, value) in [("The bank's reference", of_network), ("For", narration)] {
        text.extend(value.map(|value| format!("{name}: {value}\n")));
    }
    text.push_str(&format!(
        "Paid: {}\n\nYour bank may take a while to show it. Whatever you want to know about it, \
         {from} can tell you; answers to this letter are not read.\n",
        at.shown_in(&merchant.timezone)
    ));
    let subject = format!("{from} has paid you {amount}");
    let content = Content::Email { to: to.clone(), subject, text };
    notifications::queued(app, ("receipt", payout.id.as_str()), &content).map(Some)
}
