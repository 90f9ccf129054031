//! Dollars by ACH: payouts wait for a window, leave together in a file, and are paid when the bank
//! has acknowledged the file and its value date has come.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bank::Bank;
use crate::live::{until, with_bank};
use crate::test_host::{Answer, Engine, TestHost, unique, with, with_host};

/// 1,250.50 dollars.
const AMOUNT: i64 = 125_050;
const START: i64 = 10_000_000;

/// Tests begin on a Saturday at 09:00 UTC: until Monday, 16:45 in New York.
pub(crate) const UNTIL_MONDAY: u64 = (2 * 24 + 12) * 3600 + 45 * 60;
/// And from there until Tuesday, 08:30 in New York.
pub(crate) const UNTIL_TUESDAY: u64 = 15 * 3600 + 45 * 60;

/// Accounts that choose what the simulated bank does.
const REJECTED: &str = "9200000002";
const FILE_REJECTED: &str = "9200000012";

fn recipient() -> Value {
    json!({
        "account_number": "000123456789",
        "routing_number": "021000021",
        "account_type": "checking",
        "name": "Jane Smith",
        "bank_name": "JPMorgan Chase",
        "email": "jane@example.com",
        "street": "1 Main Street",
        "city": "Springfield",
        "state": "IL",
        "zip_code": "62701",
        "country": "US",
        "bank_address": { "line1": "383 Madison Avenue", "city": "New York", "country": "US" },
    })
}

pub(crate) fn dollars(changes: Value) -> Value {
    json!({
        "amount_minor": AMOUNT.to_string(),
        "currency": "USD",
        "recipient": with(recipient(), changes),
        "allow_duplicate": true,
    })
}

/// Gives the merchant's wallet in this environment something to pay from; answers its id.
pub(crate) async fn funded(host: &TestHost, key: &str) -> String {
    host.fund(key, "USD", START.unsigned_abs()).await
}

/// A live payout to an account.
pub(crate) async fn pay_live(host: &TestHost, account: &str) -> String {
    let key = host.merchant.live_key.clone();
    let body = dollars(json!({ "account_number": account }));
    host.pay_as(&key, &unique(), body).await.ok().id()
}

pub(crate) async fn status(host: &TestHost, id: &str) -> String {
    let path = format!("/v1/payouts/{id}");
    let payout = host.get_as(&host.merchant.live_key, &path).await.ok();
    payout.status_word().to_owned()
}

/// Waits until files stand like this: state and how many there are.
pub(crate) async fn until_files(host: &TestHost, wanted: &[(&str, i64)]) {
    let mut found = Vec::new();
    for _ in 0..3_000 {
        let sql = "SELECT state, COUNT(*) FROM payment_files GROUP BY state ORDER BY state";
        let rows: Vec<(String, i64)> =
            sqlx::query_as(sql).fetch_all(host.app().db.pool()).await.expect("files");
        found = rows;
        let same = |((a, b), (c, d)): (&(String, i64), &(&str, i64))| (a.as_str(), b) == (*c, d);
        if found.len() == wanted.len() && found.iter().zip(wanted).all(same) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{found:?}, not {wanted:?}");
}

/// The reference under which a payout went to the bank.
pub(crate) async fn reference(host: &TestHost, id: &str) -> String {
    let sql = "SELECT rail_reference FROM attempts WHERE transfer_id = $1 ORDER BY id DESC LIMIT 1";
    sqlx::query_scalar(sql).bind(id).fetch_one(host.app().db.pool()).await.expect("an attempt")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_ends_as_it_says(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        let wallet = funded(host, &key).await;
        let (mut left, mut fee) = (START, 0);
        for (scenario, at_once, asked) in [
            ("paid", "paid", "paid"),
            ("failed", "failed", "failed"),
            ("returned", "reversed", "reversed"),
            ("duplicate_callback", "paid", "paid"),
            ("processing", "processing", "processing"),
            ("timeout_then_paid", "processing", "paid"),
            ("timeout_then_failed", "processing", "failed"),
            ("timeout_then_unknown", "processing", "processing"),
            ("never_received", "processing", "paid"),
            ("provider_down", "processing", "processing"),
        ] {
            let payout = host.pay(scenario, dollars(json!({}))).await.ok();
            assert_eq!(payout.status_word(), at_once, "{scenario}");
            let later = host.requery(&key, &payout.id()).await;
            assert_eq!(later.status_word(), asked, "{scenario}");
            if fee == 0 {
                fee = payout.json["fee_minor"].as_str().expect("a fee").parse().expect("a number");
            }
            left -= if ["failed", "reversed"].contains(&asked) { 0 } else { AMOUNT + fee };
        }
        assert_eq!(host.balance(&wallet).await, left);
        for (step, end) in [("settle", "paid"), ("fail", "failed"), ("return", "reversed")] {
            let scenario = if step == "return" { "paid" } else { "processing" };
            let payout = host.pay(scenario, dollars(json!({}))).await.ok();
            let path = format!("/v1/sandbox/payouts/{}/{step}", payout.id());
            assert_eq!(host.post(&path, json!({})).await.ok().status_word(), end);
        }
    })
    .await;
}

/// With a payment the address of the bank has to be there; a recipient is saved without it, too.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_says_where_the_bank_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        funded(host, &host.merchant.test_key.clone()).await;
        for (block, code, field) in [
            (json!(null), "missing_field", "recipient.bank_address.line1"),
            (json!({ "line1": "1 Wall" }), "missing_field", "recipient.bank_address.city"),
            (
                json!({ "line1": "1 Wall", "city": "Salem" }),
                "missing_field",
                "recipient.bank_address.country",
            ),
            (json!("1 Wall"), "invalid_field", "recipient.bank_address"),
            (json!({ "line1": 1 }), "invalid_field", "recipient.bank_address.line1"),
            (
                json!({ "line1": "1 Wall", "city": "Salem", "country": "USA" }),
                "invalid_field",
                "recipient.bank_address.country",
            ),
        ] {
            let refused = host.pay("", dollars(json!({ "bank_address": block }))).await;
            assert_eq!((refused.refused(), refused.field()), ((400, code), field));
        }
        let paid = host.pay("", dollars(json!({}))).await.ok();
        let saved = paid.json["beneficiary_id"].as_str().expect("an id");
        let saved = host.get(&format!("/v1/beneficiaries/{saved}")).await.ok();
        assert_eq!(saved.json["bank_address"], recipient()["bank_address"], "{}", saved.text);

        let body = json!({
            "currency": "USD", "name": "Jane Smith", "type": "individual", "country": "US",
            "bank": { "account_number": "77", "routing_number": "021000021",
                "account_type": "checking" },
            "address": { "street": "1 Main Street", "city": "Springfield", "state": "IL",
                "zip_code": "62701" },
        });
        let odd = with(body.clone(), json!({ "bank_address": "1 Wall" }));
        let refused = host.post("/v1/beneficiaries", odd).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), "bank_address"));
        let saved = host.post("/v1/beneficiaries", body.clone()).await.ok();
        assert!(saved.json.get("bank_address").is_none(), "{}", saved.text);
        let to = json!({ "amount_minor": "100", "currency": "USD", "beneficiary_id": saved.id() });
        assert_eq!(host.pay("", to).await.ok().status_word(), "paid");
        let block = json!({ "line1": "1 Wall", "city": "Salem", "country": "us" });
        let told =
            host.post("/v1/beneficiaries", with(body, json!({ "bank_address": block }))).await;
        assert_eq!(told.ok().json["bank_address"]["country"], "US");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn recipients_of_the_network_itself_are_returned_and_corrected(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        funded(host, &key).await;
        let to = |account: &str| dollars(json!({ "account_number": account }));
        let returned = host.pay_as(&key, &unique(), to("9000000002")).await.ok();
        assert_eq!(returned.status_word(), "reversed");
        assert_eq!(returned.json["failure_code"], "R02");
        // Something is not right, and no field says what.
        let vague = host.pay_as(&key, &unique(), to("9100000013")).await.ok();
        assert_eq!(vague.json["recipient_correction"]["code"], "C13", "{}", vague.text);
        let corrected = host.pay_as(&key, &unique(), to("9100000002")).await.ok();
        assert_eq!(corrected.status_word(), "paid");
        let correction = &corrected.json["recipient_correction"];
        assert_eq!(correction["code"], "C02");
        assert!(correction["fields"]["routing_number"].is_string(), "{correction}");
        kept_on_the_recipient(host, &corrected).await;
        let events = "SELECT COUNT(*) FROM events WHERE type = 'payout.recipient_corrected'";
        assert_eq!(host.count(events).await, 2);
        // The bank has refused the whole file: the payment goes with the next one.
        let rejected = host.pay_as(&key, &unique(), to(FILE_REJECTED)).await.ok();
        assert_eq!(rejected.status_word(), "paid");
        assert_eq!(host.count("SELECT COUNT(*) FROM payment_files").await, 5);
    })
    .await;
}

/// What a network said of a recipient stays with it until it is saved anew.
async fn kept_on_the_recipient(host: &TestHost, paid: &Answer) {
    let path =
        format!("/v1/beneficiaries/{}", paid.json["beneficiary_id"].as_str().expect("an id"));
    let saved = host.get(&path).await.ok();
    assert_eq!(saved.json["correction"], paid.json["recipient_correction"], "{}", saved.text);
    // A payment to it changes nothing, nor does a new label for it.
    let email = json!({ "email": "new@example.com" });
    host.send(Method::PATCH, &path, &host.merchant.test_key, &[], Some(email)).await.ok();
    assert_eq!(host.get(&path).await.ok().json["correction"]["code"], "C02");
    let mut body = recipient();
    (body["currency"], body["account_number"]) = (json!("USD"), json!("9100000002"));
    let again = host.post("/v1/beneficiaries", body).await.ok();
    assert_eq!((again.id(), &again.json["correction"]), (saved.id(), &Value::Null));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn payouts_wait_for_a_window_and_leave_together(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let key = host.merchant.live_key.clone();
        let wallet = funded(host, &key).await;
        let (first, second) = (pay_live(host, "000123456789").await, pay_live(host, "77").await);
        let taken_back = pay_live(host, "88").await;
        // Until the window closes they wait, and can be taken back.
        host.advance(24 * 3600);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert_eq!(status(host, &first).await, "queued");
        let path = format!("/v1/payouts/{taken_back}/cancel");
        let body = json!({ "reason": "not needed" });
        let cancelled = host.send(Method::POST, &path, &key, &[], Some(body)).await.ok();
        assert_eq!(cancelled.status_word(), "cancelled");
        host.advance(UNTIL_MONDAY - 24 * 3600);
        until(host, &first, "processing").await;
        until(host, &second, "processing").await;
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        // What lies ready is looked for every five minutes.
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        assert_eq!(status(host, &first).await, "processing");
        for id in [&first, &second] {
            let transfer = bank.transfer(&reference(host, id).await).await;
            assert_eq!((transfer.received, transfer.executed), (1, 1));
        }
        host.advance(UNTIL_TUESDAY);
        let paid = until(host, &first, "paid").await;
        until(host, &second, "paid").await;
        let fee: i64 = paid.json["fee_minor"].as_str().expect("a fee").parse().expect("a number");
        assert_eq!(host.balance(&wallet).await, START - 2 * (AMOUNT + fee));
        shows_its_entry(host, &first).await;
    })
    .await;
}

/// The timeline has the very records of the payment, with the account masked.
async fn shows_its_entry(host: &TestHost, id: &str) {
    let path = format!("/v1/payouts/{id}/timeline");
    let timeline = host.get_as(&host.merchant.live_key, &path).await.ok();
    let text = timeline.json.to_string();
    assert!(text.contains("in the file ACH-20261123-00000001.ach as "), "{text}");
    assert!(text.contains("622021000021"), "{text}");
    assert!(!text.contains("000123456789"), "{text}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn one_entry_is_rejected_and_its_neighbours_go_on(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let key = host.merchant.live_key.clone();
        funded(host, &key).await;
        let (good, bad) = (pay_live(host, "77").await, pay_live(host, REJECTED).await);
        host.advance(UNTIL_MONDAY);
        until(host, &good, "processing").await;
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        host.advance(300);
        let failed = until(host, &bad, "failed").await;
        assert!(failed.json["failure_message"].is_string());
        host.advance(UNTIL_TUESDAY);
        until(host, &good, "paid").await;
        assert_eq!(bank.transfer(&reference(host, &bad).await).await.executed, 0);
        // It comes back days later, by a file of the bank's own.
        control(bank, &reference(host, &good).await, "return").await;
        host.advance(300);
        let reversed = until(host, &good, "reversed").await;
        assert_eq!(reversed.json["failure_code"], "R03");
    })
    .await;
}

/// What a control record says, or what entries add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    /// Entries and addenda.
    records: u64,
    /// The sum of the receiving banks, of which control records keep ten digits.
    hash: u64,
    debit: u64,
    credit: u64,
}

/// A number from one position of a record to another, as the standard counts them.
fn number(record: &str, from: usize, to: usize) -> u64 {
    let digits = &record[from - 1..to];
    digits.parse().unwrap_or_else(|_| panic!("{from} to {to} is {digits:?}: {record}"))
}

impl Totals {
    /// An entry: of its transaction code the second digit tells credits from debits.
    fn of_entry(record: &str) -> Self {
        let cents = number(record, 30, 39);
        let (debit, credit) = if number(record, 3, 3) < 5 { (0, cents) } else { (cents, 0) };
        Self { records: 1, hash: number(record, 4, 11), debit, credit }
    }

    fn add(&mut self, more: Self) {
        self.records += more.records;
        self.hash += more.hash;
        self.debit += more.debit;
        self.credit += more.credit;
    }

    /// Whether a control record says this: its count, and from where on hash and totals stand.
    fn are_said(self, record: &str, count: (usize, usize), hash: usize) {
        let said = Self {
            records: number(record, count.0, count.1),
            hash: number(record, hash, hash + 9),
            debit: number(record, hash + 10, hash + 21),
            credit: number(record, hash + 22, hash + 33),
        };
        assert_eq!(said, Self { hash: self.hash % 10_000_000_000, ..self }, "{record}");
    }
}

/// Adds up a file, and compares what it says of itself.
fn added_up(content: &str) -> Totals {
    assert!(content.is_ascii() && content.ends_with('\n'), "{content}");
    let records: Vec<&str> = content.lines().collect();
    assert!(records.iter().all(|record| record.len() == 94), "{content}");
    assert!(records.len().is_multiple_of(10), "{content}");
    let end = records.iter().position(|record| record.starts_with('9')).expect("a file control");
    let filling = &records[end + 1..];
    assert!(filling.len() < 10 && filling.iter().all(|record| *record == "9".repeat(94)));
    assert!(records[0].starts_with("101 ") && records[0][34..40] == *"094101", "{content}");
    let (mut whole, mut batch, mut batches) = (Totals::default(), Totals::default(), 0);
    for record in &records[1..end] {
        match &record[..1] {
            "5" => batch = Totals::default(),
            "6" => batch.add(Totals::of_entry(record)),
            "7" => batch.records += 1,
            "8" => {
                batch.are_said(record, (5, 10), 11);
                whole.add(batch);
                batches += 1;
            }
            _ => panic!("{record}"),
        }
    }
    let control = records[end];
    assert_eq!(number(control, 2, 7), batches);
    assert_eq!(number(control, 8, 13) * 10, u64::try_from(records.len()).expect("small"));
    whole.are_said(control, (14, 21), 22);
    whole
}

/// The one file that the bank has, as it came.
async fn received(bank: &Bank) -> String {
    let mut known = bank.transfers().await;
    known.retain(|page| page.reference.starts_with("file/"));
    let [file] = known.as_slice() else { panic!("{known:?}") };
    let content = file.notes.iter().find(|(name, _)| name == "content");
    content.expect("its content").1.clone()
}

/// What the file says of itself is added up again from its entries, with no code of the rail's.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn totals_of_what_was_sent_are_right(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let key = host.merchant.live_key.clone();
        funded(host, &key).await;
        let (mut ids, mut sum) = (Vec::new(), 0);
        let banks = ["021000021", "121000248", "231380104", "011000015", "026009593"];
        for (number, to) in (0..17_u64).zip(banks.into_iter().cycle()) {
            let cents = 1 + 12_345 * number;
            let body = dollars(json!({
                "account_number": format!("77{number}"),
                "routing_number": to,
                "account_type": if number % 4 == 1 { "savings" } else { "checking" },
                "type": if number % 3 == 0 { "business" } else { "individual" },
            }));
            // A narration is an addenda record.
            let narration = if number % 2 == 0 { json!("Invoice 17") } else { json!(null) };
            let changes = json!({ "amount_minor": cents.to_string(), "narration": narration });
            ids.push(host.pay_as(&key, &unique(), with(body, changes)).await.ok().id());
            sum += cents;
        }
        host.advance(UNTIL_MONDAY);
        for id in &ids {
            until(host, id, "processing").await;
        }
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        let content = received(bank).await;
        let wanted = (17 + 9, 0, sum);
        let found = added_up(&content);
        assert_eq!((found.records, found.debit, found.credit), wanted, "{content}");
        assert_eq!(content.matches("\n5").count(), 2, "individuals and businesses: {content}");
        for id in &ids {
            assert_eq!(content.matches(&reference(host, id).await).count(), 1, "{content}");
        }
    })
    .await;
}

async fn control(bank: &Bank, reference: &str, step: &str) {
    let url = format!("{}/control/ach/transfers/{reference}/{step}", bank.url);
    let answer = reqwest::Client::new().post(url).send().await.expect("an answer");
    assert!(answer.status().is_success(), "{}", answer.status());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_refused_goes_once_more_with_the_same_references(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let key = host.merchant.live_key.clone();
        funded(host, &key).await;
        let (one, other) = (pay_live(host, FILE_REJECTED).await, pay_live(host, "77").await);
        host.advance(UNTIL_MONDAY);
        until(host, &one, "processing").await;
        until(host, &other, "processing").await;
        host.advance(2);
        until_files(host, &[("delivered", 1)]).await;
        let before = reference(host, &other).await;
        host.advance(300);
        until_files(host, &[("refused", 1)]).await;
        host.until_count("SELECT COUNT(*) FROM cases WHERE kind = 'file_refused'", 1).await;
        // Tuesday's window.
        host.advance(24 * 3600);
        until_files(host, &[("delivered", 1), ("refused", 1)]).await;
        host.advance(300);
        until_files(host, &[("acknowledged", 1), ("refused", 1)]).await;
        assert_eq!(reference(host, &other).await, before);
        let transfer = bank.transfer(&before).await;
        assert_eq!(transfer.executed, 1);
        host.advance(UNTIL_TUESDAY);
        until(host, &one, "paid").await;
        until(host, &other, "paid").await;
    })
    .await;
}

/// The bank says late that it has the file: nobody has to ask.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_acknowledged_late_in_the_sandbox_is_paid_by_itself(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        funded(host, &key).await;
        let payout = host.pay("timeout_then_paid", dollars(json!({}))).await.ok();
        assert_eq!(payout.status_word(), "processing");
        host.advance(11);
        until_files(host, &[("acknowledged", 1)]).await;
        host.advance(3);
        let path = format!("/v1/payouts/{}", payout.id());
        for _ in 0..3_000 {
            if host.get_as(&key, &path).await.ok().status_word() == "paid" {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("it is not paid");
    })
    .await;
}
