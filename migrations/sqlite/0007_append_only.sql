-- Requests of merchants and what became of them. A row has those of one owner (merchant and
-- environment in one) that came within a second and were written together, as a JSON array, oldest
-- first: [id, method, path, status, duration_ms, key_prefix, error_code, created_at]. id is that of
-- the newest, first_id of the oldest; statuses are theirs, each once, between commas, where a
-- request that was cut off has 0.
CREATE TABLE request_logs (
    owner      TEXT NOT NULL,
    id         TEXT NOT NULL,
    first_id   TEXT NOT NULL,
    statuses   TEXT NOT NULL,
    count      BIGINT NOT NULL,
    requests   TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX request_logs_by_time ON request_logs (created_at);

-- What stands in wallets, line by line. first_seq is what a wallet's journals are found by.
CREATE VIEW entries AS
SELECT j.wallet_id, j.seq AS first_seq, j.seq + l.key AS seq, j.id AS journal_id, l.key AS line,
       json_extract(l.value, '$[1]') AS amount_minor, json_extract(l.value, '$[2]') AS source,
       json_extract(l.value, '$[3][0]') AS description, json_extract(l.value, '$[3][2]') AS sender,
       json_extract(l.value, '$[3][1]') AS balance_after_minor,
       j.currency, j.kind, j.ref_type, j.ref_id, j.created_at
FROM journals j CROSS JOIN json_each(j.lines) l
WHERE j.wallet_id IS NOT NULL AND json_extract(l.value, '$[0]') IS NULL;

-- What stands in the platform's own accounts, line by line.
CREATE VIEW own_entries AS
SELECT j.id AS journal_id, l.key AS line,
       'system/' || j.env || '/' || j.currency || '/' || json_extract(l.value, '$[0]') AS account_id,
       j.currency, json_extract(l.value, '$[1]') AS amount_minor, json_extract(l.value, '$[2]') AS source,
       j.kind, j.ref_type, j.ref_id, j.created_at
FROM journals j CROSS JOIN json_each(j.lines) l
WHERE json_extract(l.value, '$[0]') IS NOT NULL;

-- What is written once. Nobody changes it, this program included. Idempotency keys get their
-- reply later, once; decisions, events, messages and expiring keys that are old enough are swept
-- away by a transaction that says so.
CREATE TABLE sweeping (id BIGINT PRIMARY KEY);

CREATE TRIGGER journals_no_update BEFORE UPDATE ON journals
BEGIN SELECT RAISE(ABORT, 'journals is append-only'); END;
CREATE TRIGGER journals_no_delete BEFORE DELETE ON journals
BEGIN SELECT RAISE(ABORT, 'journals is append-only'); END;
CREATE TRIGGER conversions_no_update BEFORE UPDATE ON conversions
BEGIN SELECT RAISE(ABORT, 'conversions is append-only'); END;
CREATE TRIGGER conversions_no_delete BEFORE DELETE ON conversions
BEGIN SELECT RAISE(ABORT, 'conversions is append-only'); END;
CREATE TRIGGER settlement_adjustments_no_update BEFORE UPDATE ON settlement_adjustments
BEGIN SELECT RAISE(ABORT, 'settlement_adjustments is append-only'); END;
CREATE TRIGGER settlement_adjustments_no_delete BEFORE DELETE ON settlement_adjustments
BEGIN SELECT RAISE(ABORT, 'settlement_adjustments is append-only'); END;
CREATE TRIGGER route_configurations_no_update BEFORE UPDATE ON route_configurations
BEGIN SELECT RAISE(ABORT, 'route_configurations is append-only'); END;
CREATE TRIGGER route_configurations_no_delete BEFORE DELETE ON route_configurations
BEGIN SELECT RAISE(ABORT, 'route_configurations is append-only'); END;
CREATE TRIGGER tariffs_no_update BEFORE UPDATE ON tariffs
BEGIN SELECT RAISE(ABORT, 'tariffs is append-only'); END;
CREATE TRIGGER tariffs_no_delete BEFORE DELETE ON tariffs
BEGIN SELECT RAISE(ABORT, 'tariffs is append-only'); END;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER rail_calls_no_update BEFORE UPDATE ON rail_calls
BEGIN SELECT RAISE(ABORT, 'rail_calls is append-only'); END;
CREATE TRIGGER rail_calls_kept BEFORE DELETE ON rail_calls
WHEN NOT EXISTS (SELECT 1 FROM sweeping)
BEGIN SELECT RAISE(ABORT, 'rail_calls is append-only'); END;
CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;
CREATE TRIGGER events_kept BEFORE DELETE ON events
WHEN NOT EXISTS (SELECT 1 FROM sweeping)
BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;
CREATE TRIGGER decisions_no_update BEFORE UPDATE ON decisions
BEGIN SELECT RAISE(ABORT, 'decisions is append-only'); END;
CREATE TRIGGER decisions_kept BEFORE DELETE ON decisions
WHEN NOT EXISTS (SELECT 1 FROM sweeping)
BEGIN SELECT RAISE(ABORT, 'decisions is append-only'); END;
CREATE TRIGGER idempotency_keys_unchanged BEFORE UPDATE ON idempotency_keys
WHEN OLD.status IS NOT NULL OR NEW.key <> OLD.key OR NEW.fingerprint <> OLD.fingerprint
    OR NEW.subject <> OLD.subject OR NEW.resource_id <> OLD.resource_id
    OR NEW.created_at <> OLD.created_at
BEGIN SELECT RAISE(ABORT, 'idempotency_keys is append-only'); END;
CREATE TRIGGER idempotency_keys_no_delete BEFORE DELETE ON idempotency_keys
BEGIN SELECT RAISE(ABORT, 'idempotency_keys is append-only'); END;
CREATE TRIGGER expiring_keys_no_update BEFORE UPDATE ON expiring_keys
BEGIN SELECT RAISE(ABORT, 'expiring_keys is append-only'); END;
CREATE TRIGGER expiring_keys_kept BEFORE DELETE ON expiring_keys
WHEN NOT EXISTS (SELECT 1 FROM sweeping)
BEGIN SELECT RAISE(ABORT, 'expiring_keys is append-only'); END;
