//! The operator's settings, as rail.toml declares them.

use railhead_rail::fields;
use railhead_rail::host;
use railhead_rail::types::Payment;

/// The note of the source that a payment's IMAD was made with.
pub const SOURCE: &str = "source_id";

/// Values that go into messages. One that is not set is empty: the host keeps a route without them
/// from being used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The eight characters in IMADs.
    pub source_id: String,
    /// The sponsor bank's routing number.
    pub routing_number: String,
    /// What headers name as sender: nine characters.
    pub connection_party: String,
    /// `PROD` or `TEST`.
    pub business_service: String,
    /// Who bears charges.
    pub charge_bearer: String,
    /// Whether the recipient's bank is named by its BIC, too.
    pub names_banks_by: String,
    /// The account that is debited.
    pub debtor_account: String,
    /// Whose it is, where the payment names no sender.
    pub debtor_name: String,
    /// Street and number.
    pub debtor_street: String,
    /// Town.
    pub debtor_city: String,
    /// State; may be empty.
    pub debtor_state: String,
    /// ZIP code; may be empty.
    pub debtor_zip_code: String,
    /// Two letters.
    pub debtor_country: String,
}

impl Settings {
    /// The settings of this call.
    #[must_use]
    pub fn read() -> Self {
        let setting = |name| host::setting(name).unwrap_or_default().trim().to_owned();
        let routing_number = setting("routing_number");
        let connection_party = setting("connection_party");
        Self {
            source_id: setting(SOURCE),
            connection_party: match connection_party.is_empty() {
                true => routing_number.clone(),
                false => connection_party,
            },
            routing_number,
            business_service: setting("business_service"),
            charge_bearer: setting("charge_bearer"),
            names_banks_by: setting("names_banks_by"),
            debtor_account: setting("debtor_account"),
            debtor_name: setting("debtor_name"),
            debtor_street: setting("debtor_street"),
            debtor_city: setting("debtor_city"),
            debtor_state: setting("debtor_state"),
            debtor_zip_code: setting("debtor_zip_code"),
            debtor_country: setting("debtor_country"),
        }
    }

    /// The settings for a payment: it goes on under the source that it was prepared with.
    #[must_use]
    pub fn of(payment: &Payment) -> Self {
        let settings = Self::read();
        match fields::find(&payment.facts, SOURCE) {
            Some(source) => Self { source_id: source.to_owned(), ..settings },
            None => settings,
        }
    }
}
