//! What somebody may do to a database behind the host's back, and by what name `verify` notices it.

/// What is done, statement by statement, and the check that notices it. Names in braces stand
/// for what the tests that do it made.
pub(crate) const TAMPERINGS: &[(&str, &str)] = &[
    // Wallets and journals.
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
        "UPDATE journals SET lines = REPLACE(lines, '[[null,-', '[[null,-1') WHERE id = '{j}'",
        "journal-sum",
    ),
    (
        "UPDATE journals SET lines = REPLACE(REPLACE(lines, '[null,-', '[null,'), '\"clearing\",', \
         '\"clearing\",-') WHERE id = '{j}'",
        "wallet-chain",
    ),
    (
        "UPDATE journals SET lines = REPLACE(lines, 'fee and tax\",', 'fee and tax\",1') WHERE id = '{j}'",
        "wallet-chain",
    ),
    ("UPDATE journals SET hash = 'x' || hash WHERE id = '{j}'", "wallet-chain"),
    ("UPDATE journals SET id = SUBSTR(id, 1, 23) || 'zz' WHERE id = '{j}'", "journal-id"),
    (
        "UPDATE journals SET lines = REPLACE(lines, 'Payout to', 'Paid to') WHERE id = '{j}'",
        "wallet-chain",
    ),
    (
        "UPDATE journals SET lines = REPLACE(lines, 'payout_debit\"]', 'payout_fee\"]') WHERE id = '{j}'",
        "payout-journals",
    ),
    (
        "UPDATE journals SET lines = REPLACE(lines, '\"clearing\",', '\"clearing\",1') WHERE id = '{j}'",
        "journal-sum",
    ),
    ("UPDATE journals SET lines = '[]' WHERE id = '{j}'", "journal-lines"),
    ("UPDATE journals SET lines = 'x' WHERE id = '{j}'", "journal-lines"),
    (
        "UPDATE journals SET lines = REPLACE(lines, '[\"clearing\"', '[null') WHERE id = '{j}'",
        "journal-lines",
    ),
    (
        "UPDATE journals SET wallet_id = NULL, seq = NULL, hash = NULL WHERE id = '{j}'",
        "journal-lines",
    ),
    ("UPDATE journals SET lines = 'x' WHERE kind = 'movement'", "journal-lines"),
    (
        "UPDATE journals SET lines = REPLACE(lines, '[[null,', '[[null,99999999999999') WHERE kind = 'movement'",
        "journal-lines",
    ),
    // What the wallet holds after the first of several entries.
    (
        "UPDATE journals SET lines = REPLACE(lines, ']],[null,', '1]],[null,') WHERE id = '{j}'",
        "wallet-chain",
    ),
    ("UPDATE journals SET seq = seq + 1 WHERE id = '{j}'", "wallet-chain"),
    ("UPDATE journals SET currency = 'GHS' WHERE id = '{j}'", "journal-crosses"),
    (
        "UPDATE journals SET lines = REPLACE(lines, 'payout_fee\",[', 'admin_debit\",[') WHERE id = '{j}'",
        "wallet-chain",
    ),
    ("UPDATE journals SET seq = 99999 WHERE id = '{j}'", "wallet-chain"),
    ("UPDATE journals SET wallet_id = 'c-nobody' WHERE id = '{j}'", "journal-without-wallet"),
    (
        "UPDATE journals SET lines = REPLACE(lines, '[\"fee_income', '[\"levy') WHERE lines LIKE '%fee_income%'",
        "seal",
    ),
    (
        "UPDATE journals SET lines = REPLACE(lines, ']],[\"clearing', ',\"{}\"]],[\"clearing') WHERE id = '{j}'",
        "wallet-chain",
    ),
    ("UPDATE journals SET created_at = created_at + 1 WHERE id = '{j}'", "wallet-chain"),
    ("UPDATE journals SET env = 'live' WHERE id = '{j}'", "journal-crosses"),
    (
        "UPDATE journals SET kind = 'payout_settlement', round = 9 WHERE id = '{j}'",
        "payout-journals",
    ),
    ("UPDATE journals SET ref_id = '{failed}', round = 9 WHERE id = '{j}'", "payout-journals"),
    ("DELETE FROM journals WHERE id = '{j}'", "wallet-chain"),
    (
        "INSERT INTO journals (id, env, kind, ref_type, ref_id, round, currency, lines, \
         created_at, batch_id) SELECT 'c-forged', env, 'movement', 'WalletMovement', 'c-forged', 1, \
         currency, '[[\"funding\",5,\"admin_credit\"],[\"levy\",-5,\"admin_credit\"]]', \
         created_at, batch_id FROM journals WHERE id = '{j}'",
        "seal",
    ),
    (
        "INSERT INTO journals (id, env, kind, ref_type, ref_id, round, currency, wallet_id, seq, \
         lines, hash, created_at, batch_id) SELECT 'c-forged', env, kind, ref_type, ref_id, 2, \
         currency, wallet_id, seq + 99999, lines, hash, created_at, batch_id FROM journals \
         WHERE id = '{j}'",
        "wallet-chain",
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
        "INSERT INTO journals (id, env, kind, ref_type, ref_id, round, currency, lines, \
         created_at, batch_id) SELECT 'c-forged', env, 'conversion_credit', 'Conversion', ref_id, 2, \
         currency, '[[\"fx_position\",-5,\"fx_conversion\"],[\"clearing\",5,\"fx_conversion\"]]', \
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
        "UPDATE journals SET lines = REPLACE(lines, '[\"fee_income', '[\"fx_position') WHERE lines LIKE '%fee_income%'",
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
    ("UPDATE payouts SET unusual = 'failed' WHERE id = '{paid}'", "payout-marks"),
    ("UPDATE payouts SET status = 'draft' WHERE id = '{paid}'", "payout-status"),
    ("UPDATE payouts SET status = 'queued' WHERE id = '{paid}'", "payout-status"),
    ("UPDATE payouts SET status = 'cancelled' WHERE id = '{failed}'", "payout-status"),
    ("UPDATE payouts SET status = 'paid_manual' WHERE id = '{paid}'", "payout-status"),
    ("UPDATE payouts SET fee_minor = fee_minor + 1 WHERE id = '{paid}'", "payout-price"),
    ("UPDATE payouts SET charges = ' ' || charges WHERE id = '{paid}'", "seal"),
    ("UPDATE payouts SET tariff = tariff || 'x' WHERE id = '{paid}'", "payout-price"),
    ("UPDATE tariffs SET lines = REPLACE(lines, 'Payout fee', 'Something')", "payout-price"),
    ("UPDATE tariffs SET version = version || 'x'", "payout-price"),
    ("UPDATE tariffs SET lines = '{'", "payout-price"),
    ("DELETE FROM tariffs", "payout-price"),
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
    ("UPDATE payouts SET queued_at = NULL WHERE id = '{paid}'", "payout-events"),
    ("UPDATE payouts SET processing_at = NULL WHERE id = '{paid}'", "payout-stamps"),
    (
        "UPDATE payouts SET created_at = created_at - 86400000000 WHERE id = '{paid}'",
        "payout-events",
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
    ("UPDATE route_configurations SET fingerprint = 'x'", "attempt"),
    ("DELETE FROM route_configurations", "attempt"),
    ("UPDATE attempts SET route = 'x' WHERE transfer_id = '{paid}'", "seal"),
    (
        "INSERT INTO attempts SELECT 'c-second', transfer_id, configuration, route, rail, \
         'x', number + 1, begun_at, resolution, seeds, created_at, network_id, facts, state, \
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
    (
        "UPDATE payouts SET sender = '{\"id_number\":\"A01234567\"}' WHERE id = '{paid}'",
        "payout-clear",
    ),
    (
        "UPDATE payouts SET resolution = '{\"bvn\":\"22123456789\"}' WHERE id = '{paid}'",
        "payout-clear",
    ),
    // Idempotency keys.
    ("DELETE FROM idempotency_keys WHERE resource_id = '{paid}'", "reply"),
    ("UPDATE idempotency_keys SET resource_id = '{draft}' WHERE resource_id = '{paid}'", "reply"),
    (
        "INSERT INTO idempotency_keys SELECT key || '2', fingerprint, subject, resource_id, status, response, created_at, batch_id FROM idempotency_keys WHERE resource_id = '{paid}'",
        "reply",
    ),
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
    ("UPDATE webhook_deliveries SET body = '{}'", "delivery-body"),
    ("UPDATE webhook_deliveries SET event_type = 'payout.held'", "delivery-event"),
    ("UPDATE webhook_endpoints SET owner_number = 0", "endpoint-owner"),
    ("UPDATE webhook_deliveries SET id_number = id_number + 1", "delivery-numbers"),
    ("UPDATE webhook_deliveries SET owner_number = owner_number + 1", "delivery-numbers"),
    ("UPDATE webhook_deliveries SET endpoint_number = endpoint_number + 1", "delivery-numbers"),
    ("UPDATE webhook_deliveries SET event_number = event_number + 1", "delivery-numbers"),
    ("UPDATE webhook_deliveries SET event_id = event_id || 'x'", "delivery-event"),
    ("UPDATE webhook_deliveries SET event_id = ''", "delivery-event"),
    ("UPDATE webhook_deliveries SET event_id = '', created_at = 0", "delivery-event"),
    ("UPDATE webhook_deliveries SET event_id = '', replayed_from_id = id", "delivery-replay"),
    (
        "UPDATE webhook_deliveries SET event_id = '', replayed_from_id = id || 'x'",
        "delivery-replay",
    ),
    (
        "UPDATE webhook_deliveries SET replayed_from_id = (SELECT MIN(o.id) \
         FROM webhook_deliveries o WHERE o.event_id <> webhook_deliveries.event_id)",
        "delivery-replay",
    ),
    (
        "UPDATE webhook_deliveries SET replayed_from_id = id, event_id = (SELECT MIN(v.id) \
         FROM events v WHERE v.merchant_id || '/' || v.env <> webhook_deliveries.owner \
         AND v.body IS NOT NULL)",
        "delivery-event",
    ),
    ("UPDATE webhook_endpoints SET secret = 'whsec_clear'", "endpoint-secret"),
    (
        "UPDATE webhook_endpoints SET old_secrets = '[{\"secret\":\"s1.x\",\"until_us\":1},\
         {\"secret\":\"whsec_clear\",\"until_us\":1}]'",
        "endpoint-secret",
    ),
    ("UPDATE webhook_endpoints SET is_active = 0, disabled_reason = 'x'", "endpoint-disabled"),
    ("UPDATE webhook_endpoints SET owner = '{other}/test'", "endpoint-owner"),
    ("UPDATE webhook_endpoints SET url = 'https://bad.example/'", "endpoint-settings"),
    ("UPDATE webhook_endpoints SET events = '[]'", "endpoint-settings"),
    ("UPDATE webhook_endpoints SET is_ordered = 1 - is_ordered", "endpoint-settings"),
    ("UPDATE webhook_endpoints SET is_active = 0", "endpoint-settings"),
    ("UPDATE webhook_endpoints SET times_disabled = 1", "endpoint-settings"),
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
    ("UPDATE rule_packs SET component = 'AAAA' WHERE name = 'guard'", "pack-component"),
    ("UPDATE rule_packs SET component = '?' WHERE name = 'guard'", "pack-component"),
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
    ("UPDATE merchants SET former_timezones = '[[\"UTC\",1]]'", "merchant-settings"),
    ("UPDATE merchants SET name = 'Others'", "seal"),
    ("UPDATE api_keys SET capabilities = '[]'", "seal"),
    ("UPDATE api_keys SET created_by = 'somebody'", "seal"),
    ("UPDATE api_keys SET created_by = 'operator'", "seal"),
    ("UPDATE api_keys SET hash = 'sk_test_' || hash", "key-hash"),
    ("UPDATE api_keys SET revoked_at = created_at", "key-revoked"),
    ("UPDATE api_keys SET grace_until = NULL WHERE id = '{replaced}'", "key-replaced"),
    (
        "UPDATE api_keys SET grace_until = grace_until + 86400000000 WHERE id = '{replaced}'",
        "key-replaced",
    ),
    ("UPDATE api_keys SET grace_until = created_at WHERE id = '{other_key}'", "key-replaced"),
    ("DELETE FROM blacklist", "blacklist-entry"),
    (
        "INSERT INTO blacklist SELECT 'x', scope, merchant_id, currency, 'x', subject, reason, \
         created_at FROM blacklist",
        "blacklist-entry",
    ),
    ("UPDATE blacklist SET identity = 'x'", "blacklist-entry"),
    // The account of somebody else.
    (
        "UPDATE blacklist SET identity = (SELECT identity FROM beneficiaries WHERE id = '{saved}')",
        "blacklist-entry",
    ),
    ("UPDATE blacklist SET currency = 'GHS'", "blacklist-entry"),
    ("UPDATE blacklist SET merchant_id = '{other}'", "blacklist-entry"),
    (
        "UPDATE blacklist SET subject = REPLACE(subject, '0000001015', '0123456785')",
        "blacklist-entry",
    ),
    ("UPDATE beneficiaries SET env = 'live'", "payout-beneficiary"),
    (
        "UPDATE beneficiaries SET recipient = REPLACE(recipient, '0123456785', '0123456798')",
        "recipient-fields",
    ),
    // What follows from the fields is changed with them: the payouts to it are left.
    (
        "UPDATE beneficiaries SET recipient = REPLACE(recipient, '0123456785', '0123456798'), \
         search = REPLACE(search, '0123456785', '0123456798')",
        "payout-beneficiary",
    ),
    // Nobody was paid: what its merchant has saved is left.
    (
        "UPDATE beneficiaries SET recipient = REPLACE(recipient, '{account}', '0123456785'), \
         search = REPLACE(search, '{account}', '0123456785') WHERE id = '{saved}'",
        "recipient-fields",
    ),
    ("DELETE FROM audit WHERE subject_id = '{saved}'", "recipient-fields"),
    ("UPDATE beneficiaries SET identity = 'x' WHERE id = '{saved}'", "recipient-identity"),
    ("UPDATE beneficiaries SET deleted_at = updated_at WHERE id = '{saved}'", "recipient-identity"),
    ("UPDATE beneficiaries SET resolution = '{\"bvn\":\"22123456789\"}'", "recipient-clear"),
    (
        "UPDATE routes SET settings = '{\"endpoint.gateway\":\"https://bad.example\"}'",
        "route-settings",
    ),
    ("UPDATE routes SET position = position - 1", "route-settings"),
    ("UPDATE routes SET rail = 'sepa' WHERE name = 'ngn_nip'", "payout-route"),
    ("UPDATE routes SET rail = 'sepa' WHERE id = '{route}'", "route-settings"),
    ("UPDATE routes SET currency = 'GHS' WHERE currency = 'NGN'", "route-settings"),
    ("UPDATE routes SET name = 'spare' WHERE name = 'ngn_nip' AND env = 'live'", "route-settings"),
    ("DELETE FROM routes WHERE name = 'ngn_nip'", "payout-route"),
    ("DELETE FROM routes WHERE id = '{route}'", "route-settings"),
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
    // One that no payment is in: a host would deliver it.
    (
        "INSERT INTO payment_files (id, env, route_id, route, rail, method, currency, slot, \
         window_name, closes_at, business_date, local_time, value_date, settles_at, created_at, \
         state, is_closed, is_held, number, number_of_day, first_entry, entries, amount_minor, \
         may_have_left, deliveries, copies, is_contradicted, due_at, lease_until, fence) \
         SELECT 'forged', env, route_id, route, rail, method, currency, 'forged', window_name, \
         closes_at, business_date, local_time, value_date, settles_at, created_at, 'assembled', \
         1, 0, number, number_of_day, first_entry, 3, 900000, 0, 0, 0, 0, due_at, 0, 0 \
         FROM payment_files WHERE id = '{file}'",
        "file-payments",
    ),
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
    ("DROP INDEX journals_by_id", "schema"),
];
