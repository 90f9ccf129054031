-- Ids are compared and paged in the order of their bytes, whatever language the database was
-- set up for. SQLite does so by itself.
DO $$
DECLARE
    wrong RECORD;
BEGIN
    FOR wrong IN
        SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = current_schema() AND data_type = 'text'
          AND collation_name IS DISTINCT FROM 'C' AND table_name NOT LIKE '\_sqlx%'
    LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I TYPE TEXT COLLATE "C"',
                       wrong.table_name, wrong.column_name);
    END LOOP;
END $$;

-- What is kept for a time only goes a month at a time: each month is a table of its own, which the
-- host makes ahead, like <table>_other, and drops when it is old enough. Of these tables nothing but
-- a month has indexes, and what makes a row unique does so within its month.
DO $$
DECLARE
    part RECORD;
BEGIN
    FOR part IN SELECT * FROM (VALUES ('webhook_deliveries', 'id'), ('decisions', 'created_at'),
            ('rail_calls', 'created_at'), ('events', 'id')) AS parts (name, key) LOOP
        EXECUTE format('ALTER TABLE %I RENAME TO %I', part.name, part.name || '_other');
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)
            PARTITION BY RANGE (%I)', part.name, part.name || '_other', part.key);
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I DEFAULT', part.name, part.name || '_other');
    END LOOP;
END $$;

-- Proving what came after an anchor reads no more than that. Rows lie nearly in the order in which
-- they were written: it is enough to know which batches the rows of a few blocks name. Of sealed
-- tables those are left out that grow with merchants, people or cases, and not with payouts.
DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['journals', 'idempotency_keys', 'expiring_keys', 'payouts', 'attempts',
        'batches', 'conversions', 'audit', 'decisions_other', 'events_other', 'rail_calls_other'] LOOP
        EXECUTE format('CREATE INDEX %I ON %I USING brin (batch_id int8_minmax_multi_ops)
            WITH (autosummarize = on)', name || '_by_seal', name);
    END LOOP;
END $$;

-- Requests of merchants and what became of them. A row has those of one owner (merchant and
-- environment in one) that came within a second and were written together, as a JSON array, oldest
-- first: [id, method, path, status, duration_ms, key_prefix, error_code, created_at]. id is that of
-- the newest, first_id of the oldest; statuses are theirs, each once, between commas, where a
-- request that was cut off has 0. Ids begin with their instant: a month is a range of them.
CREATE TABLE request_logs (
    owner      TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    first_id   TEXT COLLATE "C" NOT NULL,
    statuses   TEXT COLLATE "C" NOT NULL,
    count      BIGINT NOT NULL,
    requests   TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (owner, id)
) PARTITION BY RANGE (id);
CREATE TABLE request_logs_other PARTITION OF request_logs DEFAULT;

-- What stands in wallets, line by line. first_seq is what a wallet's journals are found by.
CREATE VIEW entries AS
SELECT j.wallet_id, j.seq AS first_seq, j.seq + l.number - 1 AS seq, j.id AS journal_id,
       l.number - 1 AS line, CAST(l.line->>1 AS BIGINT) AS amount_minor,
       (l.line->>2) COLLATE "C" AS source, (l.line->3->>0) COLLATE "C" AS description,
       (l.line->3->>2) COLLATE "C" AS sender, CAST(l.line->3->>1 AS BIGINT) AS balance_after_minor,
       j.currency, j.kind, j.ref_type, j.ref_id, j.created_at
FROM journals j
CROSS JOIN LATERAL jsonb_array_elements(CAST(j.lines AS JSONB)) WITH ORDINALITY AS l(line, number)
WHERE j.wallet_id IS NOT NULL AND l.line->>0 IS NULL;

-- What stands in the platform's own accounts, line by line.
CREATE VIEW own_entries AS
SELECT j.id AS journal_id, l.number - 1 AS line,
       ('system/' || j.env || '/' || j.currency || '/' || (l.line->>0)) COLLATE "C" AS account_id,
       j.currency, CAST(l.line->>1 AS BIGINT) AS amount_minor, (l.line->>2) COLLATE "C" AS source,
       j.kind, j.ref_type, j.ref_id, j.created_at
FROM journals j
CROSS JOIN LATERAL jsonb_array_elements(CAST(j.lines AS JSONB)) WITH ORDINALITY AS l(line, number)
WHERE l.line->>0 IS NOT NULL;

-- What is written once. Nobody changes it, this program included. Idempotency keys get their
-- reply later, once; decisions, events, messages and expiring keys that are old enough are swept
-- away by a transaction that says so.
CREATE TABLE sweeping (id BIGINT PRIMARY KEY);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION refuse_unless_sweeping() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM sweeping) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

DO $$
DECLARE
    name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['journals', 'audit', 'conversions',
        'settlement_adjustments', 'route_configurations', 'tariffs'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I
            FOR EACH ROW EXECUTE FUNCTION refuse_change()', name);
        EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['decisions', 'events', 'rail_calls', 'expiring_keys'] LOOP
        EXECUTE format('CREATE TRIGGER kept BEFORE DELETE ON %I
            FOR EACH ROW EXECUTE FUNCTION refuse_unless_sweeping()', name);
        EXECUTE format('CREATE TRIGGER unchanged BEFORE UPDATE ON %I
            FOR EACH ROW EXECUTE FUNCTION refuse_change()', name);
        EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['decisions_other', 'events_other', 'rail_calls_other'] LOOP
        EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name);
    END LOOP;
END $$;
CREATE TRIGGER kept BEFORE DELETE ON idempotency_keys
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON idempotency_keys
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER unchanged BEFORE UPDATE ON idempotency_keys
    FOR EACH ROW WHEN (OLD.status IS NOT NULL OR NEW.key <> OLD.key
        OR NEW.fingerprint <> OLD.fingerprint OR NEW.subject <> OLD.subject
        OR NEW.resource_id <> OLD.resource_id OR NEW.created_at <> OLD.created_at)
    EXECUTE FUNCTION refuse_change();

-- Rows of what grows with payouts are found by key: a rough idea of such a table is all that plans
-- need. For a better one autovacuum reads thirty thousand of its pages, and everybody waits.
DO $$
DECLARE
    part RECORD;
BEGIN
    FOR part IN SELECT table_name, column_name FROM information_schema.columns
            WHERE table_schema = current_schema() AND table_name IN
            ('payouts', 'journals', 'idempotency_keys', 'attempts', 'transfers') LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS 10',
                       part.table_name, part.column_name);
    END LOOP;
END $$;

-- Wallet rows and counters are rewritten by every batch: leave room on their pages so that the
-- new version stays beside the old one, and clean up often.
ALTER TABLE wallets SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
ALTER TABLE settled_out SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
ALTER TABLE counters SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
-- A payout changes twice soon after it was made, and its work is claimed: no index needs to hear
-- of it as long as the new version fits beside the old one.
ALTER TABLE payouts SET (fillfactor = 60);
ALTER TABLE attempts SET (fillfactor = 50);
ALTER TABLE transfers SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
