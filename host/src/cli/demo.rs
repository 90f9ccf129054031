//! `railhead demo`: the service with a funded merchant, and a payout in every currency,
//! made over HTTP as any merchant would make it.

use std::path::Path;
use std::sync::Arc;

use reqwest::Method;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::Config;
use crate::id::IdGenerator;
use crate::rails::Declaration;
use crate::rails::methods::MethodTerms;
use crate::start::{Host, Sources, StartError, shown, start};

use super::{admin, new_private, say, serve};

/// What each test wallet starts with, in major units.
const SEED_MAJOR: i64 = 5_000_000;
/// What the demo pays, in major units.
const PAYMENT_MAJOR: i64 = 25_000;

/// What it lets its own merchant do at least.
const REQUESTS_PER_MINUTE: u32 = 600;

/// The demo merchant's key, kept so that a second start goes on where the first one ended.
/// It opens the sandbox only.
#[derive(Deserialize, Serialize)]
struct Kept {
    merchant_id: String,
    test_key: String,
}

/// Starts the service, shows what it does and keeps serving.
pub(super) async fn demo(mut config: Config) -> Result<(), StartError> {
    serve::log_quietly(&config);
    let told_to_stop = serve::told_to_stop()?;
    let file = config.data.dir.join("demo.json");
    let limits = &mut config.limits;
    // It pays by every rail, and asks for much before each.
    limits.write_per_minute = limits.write_per_minute.max(REQUESTS_PER_MINUTE);
    let host = start(config, Sources::system()?).await?;
    let tour = Tour::begin(&host, &file).await?;
    for rail in host.app.rails.all() {
        let declaration = &rail.declaration;
        for currency in declaration.currencies() {
            // By the method that a payment has which names none.
            let terms = declaration.methods_of(currency).next();
            let terms = terms.ok_or("a currency without a method")?;
            tour.pay(declaration, terms).await?;
        }
    }
    tour.convert().await?;
    tour.end(&host);
    host.run(told_to_stop).await
}

/// Has the built-in fraud rules decide, which a fresh host leaves to its operator.
async fn activate_fraud_rules(operator: (&str, &SecretString)) -> Result<(), StartError> {
    let packs = admin::send(operator, (Method::GET, "rule-packs"), None).await?;
    let fraud = find(&packs, "kind", "fraud").ok_or("no fraud rules came with this binary")?;
    let (name, version) = (text(&fraud["name"]), text(&fraud["version"]));
    let path = format!("rule-packs/{name}/versions/{version}/activate");
    admin::send(operator, (Method::POST, &path), None).await?;
    say(format!("Activated the rule pack {name} {version}."));
    Ok(())
}

/// Has the sandbox exchange dollars and naira, at rates that nobody should rely on.
async fn set_rates(operator: (&str, &SecretString)) -> Result<(), StartError> {
    let rate = |from: &str, to: &str, rate: &str| json!({ "env": "test", "from": from, "to": to, "rate": rate, "source": "demo" });
    let rates = [rate("USD", "NGN", "1500"), rate("NGN", "USD", "0.00066")];
    let body = Some(json!({ "rates": rates }));
    admin::send(operator, (Method::POST, "rates/import"), body).await?;
    Ok(())
}

/// A walk through the service.
struct Tour {
    base: String,
    key: SecretString,
    client: reqwest::Client,
    ids: Arc<IdGenerator>,
}

impl Tour {
    async fn begin(host: &Host, file: &Path) -> Result<Self, StartError> {
        let base = format!("http://{}", host.address);
        let operator = (base.as_str(), &host.app.operator_token);
        let (client, ids) = (reqwest::Client::new(), Arc::clone(&host.app.ids));
        let tour = |key: String| Self { base: base.clone(), key: key.into(), client, ids };
        if let Some(kept) = kept(file) {
            let tour = tour.clone()(kept.test_key);
            if tour.get("/v1/wallets").await.is_ok() {
                say(format!(
                    "\nWelcome back: merchant {} and its data are still here.",
                    kept.merchant_id
                ));
                return Ok(tour);
            }
        }
        let merchant = json!({ "name": "Demo Merchant", "country": "NG" });
        let merchant = admin::send(operator, (Method::POST, "merchants"), Some(merchant)).await?;
        let merchant_id = text(&merchant["id"]);
        let path = format!("merchants/{merchant_id}/keys");
        let permissions = ["webhook_manage", "beneficiary_manage", "payout_cancel"];
        let capabilities = ["payout_create", "payout_fx", "conversion"];
        let key = json!({ "env": "test", "label": "demo", "capabilities": capabilities,
            "permissions": permissions });
        let key = admin::send(operator, (Method::POST, &path), Some(key)).await?;
        let test_key = text(&key["secret"]);
        say(format!("\nCreated merchant {merchant_id}."));
        for wallet in merchant["wallets"].as_array().into_iter().flatten() {
            if wallet["env"] != "test" {
                continue;
            }
            let amount = minor(SEED_MAJOR, exponent(host, &wallet["currency"])).to_string();
            let path = format!("wallets/{}/credit", text(&wallet["id"]));
            let credit = json!({ "amount_minor": amount, "source": "demo_seed", "reason": "demo" });
            admin::send(operator, (Method::POST, &path), Some(credit)).await?;
        }
        activate_fraud_rules(operator).await?;
        set_rates(operator).await?;
        keep(file, &Kept { merchant_id, test_key: test_key.clone() })?;
        Ok(tour(test_key))
    }

    /// One payout with everything around it.
    async fn pay(&self, rail: &Declaration, terms: &MethodTerms) -> Result<(), StartError> {
        let (currency, exponent) = (terms.currency.to_string(), terms.exponent);
        let shown = |value: &Value| format!("{currency} {}", major(&text(value), exponent));
        say(format!("\n{currency} by {}", rail.rail.title));

        let recipient = Value::Object(rail.recipient.example(terms.select.as_ref()));
        let wallets = self.get("/v1/wallets").await?;
        let wallet =
            find(&wallets, "currency", &currency).ok_or("the demo merchant has no wallet")?;
        let wallet_id = text(&wallet["id"]);
        say(format!("  wallet      {}", shown(&wallet["available_balance_minor"])));

        if rail.names.as_ref().is_some_and(|names| names.overwrite) {
            let mut question = recipient.clone();
            question["currency"] = json!(currency);
            let name = self.post("/v1/name-enquiry", &[], question).await?;
            say(format!("  name        {}", text(&name["resolved_name"])));
        }
        let amount =
            minor(PAYMENT_MAJOR, exponent).clamp(terms.amount_minor_min, terms.amount_minor_max);
        let question = json!({
            "currency": currency,
            "method": terms.name,
            "amount_minor": amount.to_string(),
        });
        let quote = self.post("/v1/payouts/quote", &[], question).await?;
        say(format!(
            "  quote       {} + fee {} + tax {} + levy {} = {}",
            shown(&quote["amount_minor"]),
            major(&text(&quote["fee_minor"]), exponent),
            major(&text(&quote["tax_minor"]), exponent),
            major(&text(&quote["levy_minor"]), exponent),
            shown(&quote["total_debit_minor"]),
        ));

        let body = json!({
            "amount_minor": amount.to_string(),
            "currency": currency,
            "recipient": recipient,
            "narration": "Railhead demo",
            // A second start within minutes is no mistake.
            "allow_duplicate": true,
        });
        let key = self.ids.secret();
        let headers = [("idempotency-key", key.as_str())];
        let payout = self.post("/v1/payouts", &headers, body.clone()).await?;
        let id = text(&payout["id"]);
        say(format!(
            "  payout      {} is {}, to {}",
            text(&payout["reference"]),
            text(&payout["status"]),
            text(&payout["recipient_name"]),
        ));
        let again = self.post("/v1/payouts", &headers, body).await?;
        let verdict =
            if again == payout { "the same payout, not a second one" } else { "DIFFERENT" };
        say(format!("  repeated    with the same Idempotency-Key: {verdict}"));

        say("  timeline");
        for step in self.get(&format!("/v1/payouts/{id}/timeline")).await?["data"]
            .as_array()
            .into_iter()
            .flatten()
        {
            say(format!("    {}", line(step, exponent)));
        }
        let wallet = self.get(&format!("/v1/wallets/{wallet_id}/balance")).await?;
        say(format!("  wallet      {}", shown(&wallet["available_balance_minor"])));
        Ok(())
    }

    /// A conversion between two wallets, as it was quoted.
    async fn convert(&self) -> Result<(), StartError> {
        let wanted =
            json!({ "from_currency": "USD", "to_currency": "NGN", "from_amount_minor": "10000" });
        let quote = self.post("/v1/conversions/quote", &[], wanted.clone()).await?;
        let key = self.ids.secret();
        let headers = [("idempotency-key", key.as_str())];
        let made = self.post("/v1/conversions", &headers, wanted).await?;
        let shown = |name: &str| major(&text(&made[name]), 2);
        say("\nUSD into NGN");
        say(format!("  quote       {} for one", text(&quote["rate"])));
        say(format!(
            "  conversion  USD {} became NGN {}",
            shown("from_amount_minor"),
            shown("to_amount_minor"),
        ));
        Ok(())
    }

    fn end(&self, host: &Host) {
        let (base, key) = (&self.base, self.key.expose_secret());
        say("");
        say(format!("  Test key        {key}"));
        say(format!("  Operator token  {}", shown(&host.app.operator_token)));
        say(format!("  API             {base}/v1"));
        say(format!("  API reference   {base}/docs   (machine-readable: {base}/openapi.json)"));
        say(format!("  Operator's API  {base}/admin/v1"));
        say("");
        say("Try it:");
        say(format!("  curl -H 'Authorization: Bearer {key}' {base}/v1/payouts"));
        say("");
        say("Serving until Ctrl-C. The data stays.");
    }

    async fn get(&self, path: &str) -> Result<Value, StartError> {
        self.send(self.client.get(format!("{}{path}", self.base))).await
    }

    async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Result<Value, StartError> {
        let mut request = self.client.post(format!("{}{path}", self.base)).json(&body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Value, StartError> {
        let response = request.bearer_auth(self.key.expose_secret()).send().await?;
        let (status, url) = (response.status(), response.url().clone());
        let answer: Value = response.json().await?;
        match status.is_success() {
            true => Ok(answer),
            false => Err(format!("{url}: {status}: {}", text(&answer["error"]["message"])).into()),
        }
    }
}

fn kept(file: &Path) -> Option<Kept> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// Writes the key where only its owner reads it.
fn keep(file: &Path, kept: &Kept) -> Result<(), StartError> {
    use std::io::Write as _;
    Ok(new_private(file)?.write_all(&serde_json::to_vec_pretty(kept)?)?)
}

fn exponent(host: &Host, currency: &Value) -> u8 {
    let rails = host.app.rails.all();
    let mut terms = rails.iter().flat_map(|rail| &rail.declaration.methods);
    terms.find(|terms| terms.currency.as_str() == currency).map_or(2, |terms| terms.exponent)
}

/// One line about a step of a timeline.
fn line(step: &Value, exponent: u8) -> String {
    let field = |name: &str| text(&step[name]);
    let what = match field("type").as_str() {
        "request" => "accepted".to_owned(),
        "rules" => format!("priced by {} {}", field("pack"), field("version")),
        "decision" => {
            format!("{} {}: {}", field("pack"), field("version"), field("action"))
        }
        "attempt" => {
            format!("{} {}, reference {}", field("rail"), field("rail_version"), field("reference"))
        }
        "rail" => {
            let messages = step["messages"].as_array().map_or(0, Vec::len);
            format!("{}: {} ({messages} on record)", field("operation"), field("result"))
        }
        "entry" => format!(
            "{} {} {}, balance {}",
            field("direction"),
            major(&field("amount_minor"), exponent),
            field("source"),
            major(&field("balance_after_minor"), exponent),
        ),
        "event" => field("event"),
        other => other.to_owned(),
    };
    format!("{}  {:<8} {what}", field("at"), field("type"))
}

fn find<'a>(list: &'a Value, name: &str, value: &str) -> Option<&'a Value> {
    list["data"].as_array()?.iter().find(|item| item[name] == value)
}

fn minor(major: i64, exponent: u8) -> i64 {
    major.saturating_mul(10_i64.saturating_pow(exponent.into()))
}

/// Minor units as people write them: `2500000` with two places is `25,000.00`.
fn major(minor: &str, exponent: u8) -> String {
    let places = usize::from(exponent);
    let (sign, digits) = minor.strip_prefix('-').map_or(("", minor), |digits| ("-", digits));
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    let mut grouped = String::new();
    for (at, digit) in whole.char_indices() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match part {
        "" => format!("{sign}{grouped}"),
        part => format!("{sign}{grouped}.{part}"),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn amounts_are_written_as_people_do() {
        for (minor, exponent, shown) in [
            ("2500000", 2, "25,000.00"),
            ("5", 2, "0.05"),
            ("-123456", 2, "-1,234.56"),
            ("1000", 0, "1,000"),
            ("999", 3, "0.999"),
        ] {
            assert_eq!(major(minor, exponent), shown);
        }
    }
}
