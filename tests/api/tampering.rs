//! Whoever changes what is stored behind the host's back is found out: each row of the table is
//! one thing that somebody with the database's password could do, and the check that notices.

use std::collections::HashMap;

use http::Method;
use railhead::db;
use railhead::ledger::verify::Anchor;
use railhead::simulator::OwnMessage;
use railhead::verify::{Report, Wanted, prove};
use rstest::rstest;
use secrecy::ExposeSecret as _;
use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::ach::{self, dollars};
use crate::batch_life;
use crate::batches;
use crate::hooks::{listen, with_receiver};
use crate::live::reference;
use crate::notices::deliver;
use crate::packs::{adopt, guard};
use crate::receiver::Receiver;
use crate::reconcile;
use crate::team;
use crate::test_host::{Engine, TestHost, naira, unique, with};

/// What is done, statement by statement, and the check that notices it. Names in braces stand
/// for what [`ordinary`] and [`filed_and_returned`] made.
const TAMPERINGS: &[(&str, &str)] = &[
    // Wallets, journals and entries.
    ("UPDATE wallets SET available_minor = available_minor + 1 WHERE id = '{w}'", "wallet-balance"),
    ("UPDATE wallets SET seq = seq + 1 WHERE id = '{w}'", "wallet-balance"),
    ("UPDATE wallets SET head_hash = 'x' || head_hash WHERE id = '{w}'", "wallet-chain"),
    ("UPDATE wallets SET taken_out_minor = taken_out_minor + 5 WHERE id = '{w}'", "wallet-pending"),
    ("UPDATE settled_out SET settled_minor = settled_minor - 5", "wallet-pending"),
    ("DELETE FROM settled_out", "wallet-pending"),
    ("UPDATE wallets SET is_frozen = 1 - is_frozen WHERE id = '{w}'", "wallet-frozen"),
    ("UPDATE wallets SET merchant_id = '{other}' WHERE id = '{w}'", "payout-wallet"),
    ("UPDATE wallets SET currency = 'GHS' WHERE id = '{w}'", "seal"),
    (
        "UPDATE entries SET amount_minor = amount_minor + 1 WHERE journal_id = '{j}' AND line = 0",
        "journal-sum",
    ),
    (
        "UPDATE entries SET amount_minor = amount_minor + CASE line WHEN 0 THEN 7 ELSE -7 END \
         WHERE journal_id = '{j}' AND line IN (0, 1)",
        "wallet-chain",
    ),
    (
        "UPDATE entries SET balance_after_minor = balance_after_minor + 1 WHERE journal_id = '{j}' AND line = 1",
        "wallet-chain",
    ),
    ("UPDATE entries SET hash = 'x' || hash WHERE journal_id = '{j}' AND line = 0", "wallet-chain"),
    ("UPDATE entries SET description = 'x' WHERE journal_id = '{j}' AND line = 0", "wallet-chain"),
    (
        "UPDATE journals SET own_lines = REPLACE(own_lines, 'payout_debit', 'payout_fee') WHERE id = '{j}'",
        "payout-journals",
    ),
    (
        "UPDATE journals SET own_lines = REPLACE(own_lines, ',\"clearing\",', ',\"clearing\",1') WHERE id = '{j}'",
        "journal-sum",
    ),
    ("UPDATE journals SET own_lines = '[]' WHERE id = '{j}'", "journal-sum"),
    ("UPDATE journals SET own_lines = 'x' WHERE id = '{j}'", "journal-sum"),
    (
        "UPDATE journals SET own_lines = REPLACE(own_lines, '[[', '[[1') WHERE id = '{j}'",
        "journal-lines",
    ),
    ("UPDATE journals SET currency = 'GHS' WHERE id = '{j}'", "journal-crosses"),
    ("UPDATE entries SET line = 5 WHERE journal_id = '{j}' AND line = 1", "journal-lines"),
    (
        "UPDATE entries SET source = 'admin_debit' WHERE journal_id = '{j}' AND line = 1",
        "wallet-chain",
    ),
    ("UPDATE entries SET seq = 99999 WHERE journal_id = '{j}' AND line = 1", "wallet-chain"),
    (
        "UPDATE entries SET wallet_id = 'c-nobody' WHERE journal_id = '{j}' AND line < 2",
        "entry-without-wallet",
    ),
    (
        "UPDATE journals SET own_lines = REPLACE(own_lines, 'fee_income', 'levy') WHERE own_lines LIKE '%fee_income%'",
        "seal",
    ),
    ("UPDATE entries SET sender = '{}' WHERE journal_id = '{j}' AND line = 0", "wallet-chain"),
    ("UPDATE journals SET created_at = created_at + 1 WHERE id = '{j}'", "wallet-chain"),
    ("UPDATE journals SET env = 'live' WHERE id = '{j}'", "journal-crosses"),
    (
        "UPDATE journals SET kind = 'payout_settlement', round = 9 WHERE id = '{j}'",
        "payout-journals",
    ),
    ("UPDATE journals SET ref_id = '{failed}', round = 9 WHERE id = '{j}'", "payout-journals"),
    ("DELETE FROM journals WHERE id = '{j}'", "entries-without-journal"),
    ("DELETE FROM entries WHERE journal_id = '{j}'", "journal-lines"),
    ("DELETE FROM entries WHERE journal_id = '{j}' AND line = 0", "journal-sum"),
    (
        "INSERT INTO journals (id, env, kind, ref_type, ref_id, round, currency, own_lines, \
         created_at, batch_id) SELECT 'c-forged', env, 'movement', 'WalletMovement', 'c-forged', 1, \
         currency, '[[0,\"funding\",5,\"admin_credit\"],[1,\"levy\",-5,\"admin_credit\"]]', \
         created_at, batch_id FROM journals WHERE id = '{j}'",
        "seal",
    ),
    (
        "DELETE FROM writer_batches WHERE hash <> '' AND id = (SELECT batch_id FROM journals WHERE id = '{j}')",
        "seal-chain",
    ),
    ("UPDATE writer_batches SET created_at = created_at + 1 WHERE hash <> ''", "seal-chain"),
    // Conversions, and what operators set about them.
    ("UPDATE conversions SET to_amount_minor = to_amount_minor + 1", "conversion-journals"),
    ("UPDATE conversions SET from_amount_minor = from_amount_minor - 1", "conversion-journals"),
    ("UPDATE conversions SET rate_as_of = rate_as_of + 1000000", "conversion-rate-set"),
    (
        "INSERT INTO journals (id, env, kind, ref_type, ref_id, round, currency, own_lines, \
         created_at, batch_id) SELECT 'c-forged', env, 'conversion_credit', 'Conversion', ref_id, 2, \
         currency, '[[0,\"fx_position\",-5,\"fx_conversion\"],[1,\"clearing\",5,\"fx_conversion\"]]', \
         created_at, batch_id FROM journals WHERE kind = 'conversion_credit' LIMIT 1",
        "conversion-journals",
    ),
    ("UPDATE conversions SET rate = '1400'", "conversion-rate"),
    ("UPDATE conversions SET merchant_id = '{other}'", "conversion-wallets"),
    ("UPDATE payouts SET funded = NULL WHERE funding IS NOT NULL", "payout-funding"),
    ("UPDATE payouts SET funding = NULL WHERE funding IS NOT NULL", "payout-funding"),
    ("UPDATE payouts SET funded = REPLACE(funded, '\"1500\"', '\"1501\"')", "payout-funding"),
    ("UPDATE payouts SET funding = REPLACE(funding, '\"USD\"', '\"GBP\"')", "payout-funding"),
    ("UPDATE conversions SET payout_id = NULL", "payout-funding"),
    ("UPDATE conversions SET payout_id = 'c0' WHERE payout_id > ''", "conversion-without-payout"),
    ("DELETE FROM conversions", "journal-without-conversion"),
    (
        "UPDATE counters SET sum_minor = sum_minor + 1 WHERE key = 'fx/test/USD'",
        "conversion-counted",
    ),
    ("DELETE FROM counters WHERE key LIKE 'fx/%'", "conversion-counted"),
    (
        "UPDATE journals SET own_lines = REPLACE(own_lines, 'fee_income', 'fx_position') WHERE own_lines LIKE '%fee_income%'",
        "conversion-position",
    ),
    ("DELETE FROM events WHERE type = 'conversion.completed'", "conversion-untold"),
    ("UPDATE rates SET rate = '9999'", "rate-set"),
    ("DELETE FROM rates", "rate-set"),
    ("UPDATE rates SET from_currency = 'GBP'", "rate-set"),
    ("UPDATE rates SET id = 'live/-/USD/NGN'", "rate-set"),
    ("UPDATE fx_limits SET id = 'live/NGN'", "fx-limit-set"),
    ("UPDATE counters SET expires_at = 1 WHERE key = 'fx/test/USD'", "conversion-counted"),
    ("DELETE FROM fx_limits", "fx-limit-set"),
    ("UPDATE fx_limits SET is_paused = 1 - is_paused", "fx-limit-set"),
    // Payouts.
    ("UPDATE payouts SET status = 'failed' WHERE id = '{paid}'", "payout-status"),
    ("UPDATE payouts SET is_waiting = 1 WHERE id = '{paid}'", "payout-marks"),
    ("UPDATE payouts SET holds_batch = 1 WHERE id = '{paid}'", "payout-marks"),
    ("UPDATE payouts SET status = 'draft' WHERE id = '{paid}'", "payout-status"),
    ("UPDATE payouts SET status = 'queued' WHERE id = '{paid}'", "payout-status"),
    ("UPDATE payouts SET status = 'cancelled' WHERE id = '{failed}'", "payout-status"),
    ("UPDATE payouts SET status = 'paid_manual' WHERE id = '{paid}'", "payout-status"),
    ("UPDATE payouts SET fee_minor = fee_minor + 1 WHERE id = '{paid}'", "payout-price"),
    (
        "UPDATE payouts SET pricing = REPLACE(pricing, 'Payout fee', 'Something') WHERE id = '{paid}'",
        "seal",
    ),
    ("UPDATE payouts SET amount_minor = amount_minor + 1 WHERE id = '{paid}'", "payout-journals"),
    (
        "UPDATE payouts SET recipient = REPLACE(recipient, '0123456785', '0123456798') WHERE id = '{paid}'",
        "payout-told",
    ),
    ("UPDATE payouts SET recipient_identity = 'x' WHERE id = '{paid}'", "payout-beneficiary"),
    ("UPDATE payouts SET maker = '{other_key}' WHERE id = '{paid}'", "payout-maker"),
    ("UPDATE payouts SET completed_at = NULL WHERE id = '{paid}'", "payout-stamps"),
    (
        "UPDATE payouts SET completed_at = completed_at - 86400000000 WHERE id = '{paid}'",
        "payout-stamps",
    ),
    ("UPDATE payouts SET queued_at = NULL WHERE id = '{paid}'", "payout-stamps"),
    ("UPDATE payouts SET processing_at = NULL WHERE id = '{paid}'", "payout-stamps"),
    (
        "UPDATE payouts SET created_at = created_at - 86400000000 WHERE id = '{paid}'",
        "payout-stamps",
    ),
    ("UPDATE payouts SET failure_code = NULL WHERE id = '{failed}'", "payout-told"),
    ("UPDATE payouts SET failure_message = 'x' WHERE id = '{failed}'", "payout-told"),
    ("UPDATE payouts SET hold = NULL WHERE id = '{held}'", "seal"),
    ("UPDATE payouts SET version = version + 1 WHERE id = '{paid}'", "payout-events"),
    ("UPDATE payouts SET round = 2 WHERE id = '{paid}'", "payout-journals"),
    ("UPDATE payouts SET route = 'elsewhere' WHERE id = '{paid}'", "payout-attempts"),
    ("UPDATE payouts SET rail_reference = 'x' WHERE id = '{paid}'", "payout-attempts"),
    ("UPDATE payouts SET env = 'live' WHERE id = '{paid}'", "payout-wallet"),
    ("UPDATE payouts SET merchant_reference = 'mine' WHERE id = '{paid}'", "payout-told"),
    ("DELETE FROM payouts WHERE id = '{failed}'", "journal-without-payout"),
    // The way out.
    (
        "UPDATE transfers SET due_at = due_at + 315360000000000 WHERE id = '{processing}'",
        "payout-work",
    ),
    ("DELETE FROM transfers WHERE id = '{processing}'", "payout-work"),
    ("UPDATE transfers SET serial = serial + 1 WHERE id = '{processing}'", "payout-work"),
    ("UPDATE transfers SET stage = 'queued' WHERE id = '{processing}'", "payout-work"),
    ("UPDATE transfers SET id = '{paid}' WHERE id = '{processing}'", "payout-work"),
    ("UPDATE attempts SET state = 'open' WHERE transfer_id = '{paid}'", "payout-attempts"),
    ("UPDATE attempts SET state = 'closed' WHERE transfer_id = '{paid}'", "attempt-state"),
    ("UPDATE attempts SET state = 'paid' WHERE transfer_id = '{failed}'", "payout-attempts"),
    ("UPDATE attempts SET number = number + 10 WHERE transfer_id = '{paid}'", "seal"),
    ("UPDATE attempts SET number = number + 1 WHERE transfer_id = '{paid}'", "seal"),
    ("UPDATE attempts SET sends = 0 WHERE transfer_id = '{paid}'", "attempt"),
    ("UPDATE attempts SET queries = 9 WHERE transfer_id = '{paid}'", "attempt"),
    ("UPDATE attempts SET sent_at = created_at - 1 WHERE transfer_id = '{paid}'", "attempt"),
    ("UPDATE attempts SET answered_at = NULL WHERE transfer_id = '{paid}'", "attempt"),
    ("UPDATE attempts SET message = 'paid (99)' WHERE transfer_id = '{paid}'", "attempt"),
    ("UPDATE attempts SET bytes_left = 0 WHERE transfer_id = '{paid}'", "attempt"),
    ("UPDATE attempts SET rail_reference = 'x' WHERE transfer_id = '{paid}'", "payout-attempts"),
    ("UPDATE attempts SET fingerprint = 'x' WHERE transfer_id = '{paid}'", "seal"),
    (
        "INSERT INTO attempts SELECT 'c-second', transfer_id, route_id, route, rail, rail_version, \
         rail_digest, fingerprint, 'x', number + 1, begun_at, resolution, seeds, created_at, network_id, facts, state, \
         bytes_left, sends, queries, never_received, code, message, sent_at, answered_at, file_id, batch_id \
         FROM attempts WHERE transfer_id = '{paid}'",
        "payout-attempts",
    ),
    ("DELETE FROM attempts WHERE transfer_id = '{paid}'", "payout-attempts"),
    (
        "UPDATE attempts SET resolution = '{\"bvn\":\"22123456789\"}' WHERE transfer_id = '{paid}'",
        "attempt-clear",
    ),
    ("DELETE FROM rail_calls WHERE transfer_id = '{processing}'", "seal"),
    ("UPDATE rail_calls SET transfer_id = '{failed}' WHERE transfer_id = '{paid}'", "call"),
    ("UPDATE rail_calls SET result = 'refused (05): no' WHERE transfer_id = '{paid}'", "attempt"),
    ("UPDATE rail_calls SET exchanges = '[]' WHERE transfer_id = '{paid}'", "seal"),
    (
        "UPDATE simulator_transfers SET transfer = REPLACE(transfer, '\"amount_minor\":100000', '\"amount_minor\":900000')",
        "bank-amount",
    ),
    (
        "UPDATE simulator_transfers SET transfer = REPLACE(transfer, '\"executed\":1', '\"executed\":2')",
        "bank-amount",
    ),
    // Idempotency keys.
    ("DELETE FROM idempotency_keys WHERE resource_id = '{paid}'", "reply"),
    ("UPDATE idempotency_keys SET resource_id = '{draft}' WHERE resource_id = '{paid}'", "reply"),
    (
        "UPDATE idempotency_keys SET response = REPLACE(response, '\"paid\"', '\"failed\"') WHERE resource_id = '{paid}'",
        "reply",
    ),
    ("UPDATE idempotency_keys SET status = 200 WHERE resource_id = '{paid}'", "reply"),
    ("UPDATE idempotency_keys SET fingerprint = 'x' WHERE resource_id = '{paid}'", "seal"),
    ("UPDATE idempotency_keys SET key = 'nobody/test/x' WHERE resource_id = '{paid}'", "reply"),
    // Events and deliveries.
    (
        "UPDATE events SET type = 'payout.failed' WHERE object_id = '{paid}' AND type = 'payout.paid'",
        "payout-status",
    ),
    (
        "UPDATE events SET body = REPLACE(body, '\"paid\"', '\"failed\"') WHERE object_id = '{paid}'",
        "payout-status",
    ),
    ("UPDATE events SET env = 'live' WHERE object_id = '{paid}'", "payout-events"),
    ("DELETE FROM events WHERE object_id = '{paid}' AND sequence = 2", "payout-events"),
    ("DELETE FROM events WHERE type = 'wallet_funded'", "movement-untold"),
    ("DELETE FROM webhook_deliveries", "delivery-missing"),
    ("UPDATE webhook_deliveries SET endpoint_id = '{other_endpoint}'", "delivery-endpoint"),
    (
        "UPDATE webhook_deliveries SET delivered_at = NULL WHERE status = 'delivered'",
        "delivery-status",
    ),
    (
        "UPDATE webhook_deliveries SET status = 'giving_up', delivered_at = NULL, attempts = 1, response_status = 500",
        "delivery-status",
    ),
    ("UPDATE webhook_deliveries SET attempts = 0", "delivery-status"),
    ("UPDATE webhook_endpoints SET secret = 'whsec_clear'", "endpoint-secret"),
    ("UPDATE webhook_endpoints SET is_active = 0, disabled_reason = 'x'", "endpoint-disabled"),
    ("UPDATE webhook_endpoints SET owner = '{other}/test'", "endpoint-owner"),
    // Counters.
    ("DELETE FROM counters WHERE key LIKE 'day/%'", "counter"),
    ("UPDATE counters SET sum_minor = 0 WHERE key LIKE 'day/{w}/%'", "counter"),
    ("UPDATE counters SET holder = '' WHERE key LIKE 'paid/{w}/%'", "counter"),
    ("UPDATE counters SET count = count - 1 WHERE key LIKE 'paid/{w}/%'", "counter"),
    ("UPDATE counters SET holder = '{failed}' WHERE key LIKE 'reference/%'", "counter"),
    ("DELETE FROM counters WHERE key LIKE 'reference/%'", "counter"),
    ("UPDATE counters SET key = key || 'x' WHERE key LIKE 'reference/%'", "counter"),
    ("UPDATE counters SET count = count + 1 WHERE key LIKE 'velocity/%'", "counter"),
    ("UPDATE counters SET holder = '' WHERE key LIKE 'velocity/%'", "counter"),
    // Rules.
    ("UPDATE decisions SET facts = '{}' WHERE payout_id = '{held}'", "seal"),
    (
        "UPDATE decisions SET action = 'allow', hits = '[]' WHERE payout_id = '{held}'",
        "payout-decision",
    ),
    ("UPDATE decisions SET pack = 'stranger' WHERE payout_id = '{held}'", "decision-pack"),
    ("DELETE FROM decisions WHERE payout_id = '{held}'", "seal"),
    ("UPDATE rule_packs SET pushed_by = 'somebody' WHERE name = 'guard'", "pack-pushed"),
    ("UPDATE rule_packs SET digest = 'x' WHERE name = 'guard'", "decision-pack"),
    ("UPDATE rule_assignments SET actor = 'somebody' WHERE name = 'guard'", "pack-assigned"),
    ("DELETE FROM rule_assignments WHERE name = 'guard'", "pack-generation"),
    // People and what they may do.
    ("DELETE FROM audit WHERE subject_id = '{marked}'", "payout-marked"),
    ("UPDATE audit SET actor = 'somebody' WHERE subject_id = '{marked}'", "seal"),
    ("UPDATE audit SET after = '{}' WHERE subject_id = '{marked}'", "payout-marked"),
    ("UPDATE audit SET created_at = created_at - 1 WHERE subject_id = '{marked}'", "seal"),
    ("DELETE FROM audit WHERE action = 'wallet.credit'", "movement-without-operator"),
    // Lines from which nothing else follows: the seals alone.
    (
        "UPDATE audit SET after = REPLACE(after, 'by the desk', 'by ada') WHERE id = '{line}'",
        "seal",
    ),
    ("UPDATE audit SET address = '203.0.113.66' WHERE id = '{line}'", "seal"),
    ("UPDATE audit SET subject_id = '{other}' WHERE id = '{line}'", "seal"),
    ("DELETE FROM audit WHERE id = '{line}'", "seal"),
    ("DELETE FROM audit WHERE id = '{last_line}'", "seal"),
    (
        "DELETE FROM writer_batches WHERE id = (SELECT batch_id FROM audit WHERE id = '{line}'); \
         DELETE FROM audit WHERE id = '{line}'",
        "seal-chain",
    ),
    (
        "UPDATE audit SET id = 'c-between' WHERE id = '{line}'; \
         UPDATE audit SET id = '{line}' WHERE id = '{last_line}'; \
         UPDATE audit SET id = '{last_line}' WHERE id = 'c-between'",
        "seal",
    ),
    (
        "UPDATE audit SET batch_id = (SELECT batch_id FROM audit WHERE id = '{last_line}') \
         WHERE id = '{line}'",
        "seal",
    ),
    (
        "INSERT INTO audit SELECT 'c-forged', actor, action, subject_type, subject_id, before, \
         after, address, created_at, batch_id FROM audit WHERE id = '{line}'",
        "seal",
    ),
    (
        "INSERT INTO audit SELECT 'c-forged', actor, action, subject_type, subject_id, before, \
         after, address, created_at, 77 FROM audit WHERE id = '{line}'",
        "seal",
    ),
    (
        "UPDATE merchants SET settings = REPLACE(settings, '50000000', '90000000')",
        "merchant-settings",
    ),
    ("UPDATE merchants SET status = 'suspended'", "merchant-settings"),
    ("UPDATE merchants SET name = 'Others'", "seal"),
    ("UPDATE api_keys SET capabilities = '[]'", "seal"),
    ("UPDATE api_keys SET created_by = 'somebody'", "seal"),
    ("UPDATE api_keys SET created_by = 'operator'", "seal"),
    ("UPDATE api_keys SET hash = 'sk_test_' || hash", "key-hash"),
    ("UPDATE api_keys SET revoked_at = created_at", "key-revoked"),
    ("DELETE FROM blacklist", "blacklist-entry"),
    (
        "INSERT INTO blacklist SELECT 'x', scope, merchant_id, currency, 'x', subject, reason, \
         created_at FROM blacklist",
        "blacklist-entry",
    ),
    ("UPDATE beneficiaries SET env = 'live'", "payout-beneficiary"),
    ("UPDATE beneficiaries SET resolution = '{\"bvn\":\"22123456789\"}'", "recipient-clear"),
    (
        "UPDATE routes SET settings = '{\"endpoint.gateway\":\"https://bad.example\"}'",
        "route-settings",
    ),
    ("UPDATE routes SET position = position - 1", "route-settings"),
    // Files of payments, and who holds them back.
    (
        "UPDATE payment_files SET amount_minor = amount_minor + 1 WHERE id = '{file}'",
        "file-payments",
    ),
    ("UPDATE payment_files SET entries = entries + 1 WHERE id = '{file}'", "file-payments"),
    ("UPDATE payment_files SET state = 'delivered' WHERE id = '{file}'", "file-settled"),
    ("UPDATE payment_files SET state = 'refused' WHERE id = '{file}'", "file-settled"),
    ("UPDATE payment_files SET state = 'empty' WHERE id = '{file}'", "file-left-out"),
    ("UPDATE payment_files SET is_held = 1 WHERE id = '{file}'", "file-held"),
    ("DELETE FROM payment_files WHERE id = '{file}'", "file-settled"),
    ("UPDATE attempts SET network_id = NULL WHERE transfer_id = '{filed}'", "file-left-out"),
    ("UPDATE attempts SET file_id = NULL WHERE transfer_id = '{filed}'", "file-settled"),
    // What needs a person.
    ("UPDATE cases SET summary = 'x' WHERE id = '{case}'", "seal"),
    ("UPDATE cases SET subject_id = '{paid}' WHERE id = '{case}'", "seal"),
    ("UPDATE cases SET amount_minor = amount_minor + 1 WHERE id = '{case}'", "case-suspense"),
    ("UPDATE cases SET kind = 'unknown_reference' WHERE id = '{case}'", "case-suspense"),
    (
        "UPDATE cases SET status = 'resolved', resolution = 'forwarded', resolved_by = 'operator', \
         resolved_at = opened_at WHERE id = '{case}'",
        "case-suspense",
    ),
    (
        "UPDATE cases SET status = 'resolved', resolution = 'acknowledge', resolved_by = 'host', \
         resolved_at = opened_at WHERE id = '{case}'",
        "case-resolved",
    ),
    ("DELETE FROM cases WHERE id = '{case}'", "journal-without-case"),
    ("DELETE FROM audit WHERE subject_id = '{case}'", "case-opened"),
    // The schema itself.
    ("INSERT INTO sweeping (id) VALUES (1)", "schema"),
    ("INSERT INTO meta (key, value) VALUES ('swept/events', '9999999999999999')", "swept"),
    ("INSERT INTO meta (key, value) VALUES ('swept/journals', '1')", "swept"),
    ("INSERT INTO meta (key, value) VALUES ('swept/events', 'x')", "swept"),
    ("DROP INDEX attempts_by_reference", "schema"),
    ("DROP INDEX journals_by_ref", "schema"),
];

/// Ordinary traffic: payouts that ended in every way, a receiver, limits, rules, a blacklist.
/// Answers what is called what.
async fn ordinary(host: &TestHost, receiver: &Receiver) -> HashMap<&'static str, String> {
    let merchant = &host.merchant;
    let path = format!("merchants/{}", merchant.id);
    let settings = json!({
        "dual_control_threshold_minor": { "NGN": "300000" },
        "limits": { "NGN": { "daily_minor": "50000000" } },
    });
    host.admin(Method::PATCH, &path, settings).await.ok();
    let rules = [("large", "hold", "amount_minor > 405000 && amount_minor < 450000")];
    let facts = "amount_minor count_per_merchant_1h";
    adopt(host, &guard("1", facts, &rules)).await;
    listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
    host.advance(1);
    let referenced = with(naira(100_000), json!({ "merchant_reference": "invoice 7" }));
    let paid = host.pay("paid", referenced).await.ok().id();
    let failed = host.pay("failed", naira(100_000)).await.ok().id();
    let processing = host.pay("processing", naira(100_000)).await.ok().id();
    let marked = host.pay("processing", naira(100_000)).await.ok().id();
    let evidence = json!({ "evidence": "a letter" });
    host.admin(Method::POST, &format!("payouts/{marked}/mark_paid"), evidence).await.ok();
    let held = host.pay("paid", naira(410_000)).await.ok().id();
    host.admin(Method::POST, &format!("payouts/{held}/release"), json!({})).await.ok();
    host.until(&merchant.test_key, &held, "paid").await;
    let draft = host.pay("paid", naira(400_000)).await.ok().id();
    host.admin(Method::POST, &format!("payouts/{draft}/approve"), json!({})).await.ok();
    host.until(&merchant.test_key, &draft, "paid").await;
    batches::paid(host).await;
    let block = json!({ "scope": "platform", "currency": "NGN", "bank_code": "058",
        "account_number": "0000001015", "reason": "fraud" });
    host.admin(Method::POST, "blacklist", block).await.ok();
    let other = host.new_merchant("Other").await;
    let key = other.test_key.clone();
    let body = json!({ "url": receiver.url("/b"), "events": ["payout.paid"] });
    let once = unique();
    let once = [("Idempotency-Key", once.as_str())];
    let endpoint = host.send(Method::POST, "/v1/webhook_endpoints", &key, &once, Some(body)).await;
    let other_endpoint = endpoint.ok().id();
    host.until_count("SELECT COUNT(*) FROM webhook_queue", 0).await;
    let pool = host.app().db.pool();
    let sql = "SELECT id FROM journals WHERE ref_id = $1 AND kind = 'payout_debit'";
    let journal: String = sqlx::query_scalar(sql).bind(&paid).fetch_one(pool).await.expect("one");
    let sql = "SELECT id FROM api_keys WHERE merchant_id = $1 AND env = 'live'";
    let other_key = sqlx::query_scalar(sql).bind(&other.id).fetch_one(pool).await.expect("one");
    // Two lines about nothing that is proven otherwise, the second one the last of all.
    let mut lines = Vec::new();
    for reason in ["by the desk", "by nobody"] {
        let freeze = json!({ "reason": reason });
        let path = format!("wallets/{}", other.live_wallet);
        host.admin(Method::POST, &format!("{path}/freeze"), freeze.clone()).await.ok();
        host.admin(Method::POST, &format!("{path}/unfreeze"), freeze).await.ok();
        let sql = "SELECT id FROM audit ORDER BY id DESC LIMIT 1";
        let line: String = sqlx::query_scalar(sql).fetch_one(pool).await.expect("a line");
        lines.push(line);
    }
    HashMap::from([
        ("{line}", lines[0].clone()),
        ("{last_line}", lines[1].clone()),
        ("{paid}", paid),
        ("{failed}", failed),
        ("{processing}", processing),
        ("{marked}", marked),
        ("{held}", held),
        ("{draft}", draft),
        ("{w}", merchant.test_wallet.clone()),
        ("{j}", journal),
        ("{other}", other.id),
        ("{other_key}", other_key),
        ("{other_endpoint}", other_endpoint),
    ])
}

/// A payout that was paid with its file, and a part of another one that came back, which is a case.
async fn filed_and_returned(host: &TestHost) -> [(&'static str, String); 3] {
    ach::funded(host, &host.merchant.test_key).await;
    let filed = host.pay("paid", dollars(json!({}))).await.ok();
    assert_eq!(filed.status_word(), "paid");
    let paid = host.pay("paid", naira(100_000)).await.ok();
    let body = format!(
        "<FTSingleCreditRequest><SessionID>000013261122080000000000000077</SessionID>\
         <PaymentReference>RVSL/{}</PaymentReference><Amount>400.00</Amount>\
         </FTSingleCreditRequest>",
        reference(&paid)
    );
    let (rail, path) = ("nip".to_owned(), "/nip/fundtransfersingleitem_dc".to_owned());
    let part = OwnMessage { rail, path, body: body.into_bytes(), ..OwnMessage::default() };
    let token = host.app().sandbox.token.clone();
    deliver(host, ("test", token.expose_secret()), &part).await.ok();
    let pool = host.app().db.pool();
    let one = async |sql: &'static str| -> String {
        sqlx::query_scalar(sql).fetch_one(pool).await.expect("one")
    };
    let case = one("SELECT id FROM cases WHERE kind = 'partial_return'").await;
    let file = one("SELECT id FROM payment_files WHERE state = 'acknowledged'").await;
    [("{filed}", filed.id()), ("{case}", case), ("{file}", file)]
}

/// What somebody sees of everything, and of what came after an anchor, who has done this in a
/// transaction that is rolled back; nothing where a constraint of the database does not let it be
/// done.
async fn after(host: &TestHost, anchor: &Anchor, statements: &[String]) -> Option<[Report; 2]> {
    let engine = host.app().db.engine();
    let mut tx = host.app().db.pool().begin().await.expect("a transaction");
    for sql in statements {
        let done = sqlx::query(AssertSqlSafe(sql.clone())).execute(&mut *tx).await;
        let done = match done {
            Ok(done) => done,
            Err(cause) if cause.to_string().contains("constraint") => return None,
            Err(cause) => panic!("{sql}: {cause}"),
        };
        let is_schema = sql.starts_with("DROP") || sql.starts_with("ALTER");
        assert!(is_schema || done.rows_affected() > 0, "{sql}");
    }
    let now = host.clock.now();
    let everything = Wanted { now, ..Wanted::default() };
    let later = Wanted { now, against: Some(anchor.clone()), is_since: true };
    let mut reports = Vec::new();
    for wanted in [&everything, &later] {
        reports.push(prove(&mut tx, (engine, wanted), &mut |_, _| {}).await.expect("read"));
    }
    tx.rollback().await.expect("rolled back");
    Some(reports.try_into().expect("two"))
}

/// What only shows when everything is read: what is counted over all that there was.
const SHOWS_IN_EVERYTHING: &[&str] = &["counter", "conversion-counted"];

/// Statements that take the triggers away.
async fn disarming(host: &TestHost) -> Vec<String> {
    let sql = match host.app().db.engine() {
        db::Engine::Postgres => {
            "SELECT DISTINCT 'ALTER TABLE ' || CAST(CAST(tgrelid AS REGCLASS) AS TEXT) \
             || ' DISABLE TRIGGER USER' FROM pg_trigger WHERE NOT tgisinternal"
        }
        db::Engine::Sqlite => {
            "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger'"
        }
    };
    sqlx::query_scalar(sql).fetch_all(host.app().db.pool()).await.expect("triggers")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_tampering_is_noticed_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let anchor = host.report(&Wanted::default()).await.books.anchor;
        let further = filed_and_returned(host).await;
        let mut names = ordinary(host, receiver).await;
        names.extend(further);
        crate::conversions::ordinary(host).await;
        crate::cross_currency::ordinary(host).await;
        team::ordinary(host).await;
        reconcile::ordinary(host).await;
        let clean = after(host, &anchor, &[]).await.expect("read");
        assert!(clean.iter().all(|report| report.faults.is_empty()), "{clean:#?}");
        let disarming = disarming(host).await;
        let disarmed = after(host, &anchor, &disarming).await.expect("read");
        for report in &disarmed {
            assert_eq!(report.faults.counts.keys().copied().collect::<Vec<_>>(), ["schema"]);
        }
        let of_disarming = disarmed[0].faults.counts["schema"];
        let mut unnoticed = Vec::new();
        let all = [TAMPERINGS, batch_life::TAMPERINGS, team::TAMPERINGS, reconcile::TAMPERINGS];
        for (does, noticed) in all.concat() {
            let named = names.iter().fold(does.to_owned(), |sql, (name, id)| sql.replace(name, id));
            let does: Vec<String> = named.split("; ").map(str::to_owned).collect();
            let does = [disarming.clone(), does].concat();
            let Some(reports) = after(host, &anchor, &does).await else { continue };
            for (report, of) in reports.iter().zip(["everything", "what came later"]) {
                let mut counts = report.faults.counts.clone();
                if noticed == "schema" {
                    counts.retain(|_, count| *count > of_disarming);
                }
                let may_be_missed = of != "everything" && SHOWS_IN_EVERYTHING.contains(&noticed);
                if !counts.contains_key(noticed) && !may_be_missed {
                    unnoticed.push(format!("{of}: {named}\n  {noticed}: {counts:?}"));
                }
            }
        }
        assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
    })
    .await;
}

/// Somebody who knows how all this works can make every chain anew. Then only what was kept
/// elsewhere tells.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_anchor_that_was_kept_elsewhere_shows_a_history_that_was_made_anew(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, _| {
        host.pay("paid", naira(100_000)).await.ok();
        let anchor = host.report(&Wanted::default()).await.books.anchor;
        assert!(!anchor.heads.is_empty());
        host.pay("failed", naira(100_000)).await.ok();
        let against = Wanted { against: Some(anchor.clone()), ..Wanted::default() };
        assert!(host.report(&against).await.faults.is_empty());
        let since = Wanted { is_since: true, ..against };
        let later = host.report(&since).await;
        assert!(later.faults.is_empty(), "{:#?}", later.faults);
        assert_eq!(later.payouts, 1, "only what came after it");
        // Another head is another history.
        let forged = anchor.heads.iter().map(|(id, hash)| (*id, hash.replace(['a', 'b'], "c")));
        let forged = Anchor { heads: forged.collect() };
        let against = Wanted { against: Some(forged), ..Wanted::default() };
        let report = host.report(&against).await;
        assert_eq!(report.faults.counts.keys().copied().collect::<Vec<_>>(), ["anchor"]);
    })
    .await;
}
