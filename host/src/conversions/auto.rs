//! Converting what comes into a wallet at once, as its merchant has it set.
//!
//! It is one transaction with the inflow. What cannot be converted at that moment stays where it
//! came in, and is not converted later: whoever wants that asks for it.

use serde_json::{Value, json};

use crate::app::App;
use crate::auth::{Feature, MerchantStatus};
use crate::error::Problem;
use crate::fx::{Basis, Pair};
use crate::ledger::wallets::WalletRow;
use crate::ledger::{Command, Effects, LockedState};
use crate::money::Minor;

use super::offer::Offer;
use super::plan::Plan;
use super::request::Wanted;
use super::view::ConversionView;

/// The event of a conversion that nobody asked for by itself.
const CONVERTED: &str = "wallet_auto_converted";

/// What is done with an inflow.
#[derive(Clone)]
pub struct AutoConversion(Plan);

impl AutoConversion {
    /// What is done with this amount that comes into a wallet; nothing where its merchant has
    /// nothing set for the currency, has no wallet in the other one, or may not act, or where there
    /// is no rate to be used.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn of(app: &App, wallet: &WalletRow, amount: Minor) -> Result<Option<Self>, Problem> {
        let merchant = app.directory.merchant(&wallet.merchant_id).await?;
        let Some(merchant) = merchant.filter(|it| it.status == MerchantStatus::Active) else {
            return Ok(None);
        };
        let settings = &merchant.settings;
        let wanted = settings.auto_convert.get(&wallet.currency).copied();
        let is_on = settings.has(Feature::AutoConvert, wallet.env);
        let Some(to) = wanted.filter(|to| is_on && settings.is_active(*to)) else {
            return Ok(None);
        };
        let places = (app.rails.exponent(wallet.currency), app.rails.exponent(to));
        let (Some(sold), Some(bought)) = places else { return Ok(None) };
        let owner = (&wallet.merchant_id, wallet.env);
        let Some((into, _)) = app.wallets.find(owner, to).await? else { return Ok(None) };
        let pair = Pair { env: wallet.env, from: wallet.currency, to };
        let shift = i32::from(bought) - i32::from(sold);
        if let Err(problem) = Offer::now(app, &merchant.id, (pair, shift)).await {
            tracing::info!(%wallet.id, %problem, "what comes in is not converted");
            return Ok(None);
        }
        let wanted = Wanted { pair, basis: Basis::Sell(amount), shift };
        let wallets = (wallet.id.clone(), into);
        Ok(Some(Self(Plan::new(app, &merchant.id, (wanted, app.ids.id()), wallets))))
    }

    /// The command with all that this conversion reads and changes.
    #[must_use]
    pub fn locks<T>(&self, command: Command<T>) -> Command<T> {
        self.0.locks(command)
    }

    /// Converts what the same decision has credited, where that is possible now; answers whether
    /// it was. `inflow` is what merchants know it by.
    pub fn try_execute(
        &self,
        locked: &LockedState<'_>,
        effects: &mut Effects,
        inflow: &str,
    ) -> bool {
        let mut tried = Effects::default();
        let conversion = match self.0.execute(locked, &mut tried) {
            Ok(conversion) => conversion,
            Err(problem) => {
                tracing::info!(inflow, %problem, "what came in is not converted");
                return false;
            }
        };
        let mut data = json!(ConversionView::of(&conversion));
        data["providerEventId"] = Value::from(inflow);
        tried.rows.push(self.0.event(&conversion, CONVERTED, data.to_string()));
        effects.journals.append(&mut tried.journals);
        effects.counters.append(&mut tried.counters);
        effects.rows.append(&mut tried.rows);
        true
    }
}
