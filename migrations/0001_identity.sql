-- Who is who. Instants are microseconds since 1970 UTC, amounts are minor units, flags are 0 or 1,
-- structured values are JSON in TEXT: one text that SQLite and PostgreSQL both read.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Numbers that are handed out and never twice.
CREATE TABLE serials (
    id   TEXT PRIMARY KEY,
    next BIGINT NOT NULL
);
INSERT INTO serials (id, next) VALUES ('writers', 0), ('transfers', 1);

CREATE TABLE merchants (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    country    TEXT NOT NULL,
    timezone   TEXT NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('active', 'suspended', 'closed')),
    settings   TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    batch_id   BIGINT NOT NULL
);

-- Only a keyed hash of the secret is kept. created_by is the operator who saw it.
CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,
    merchant_id  TEXT NOT NULL,
    env          TEXT NOT NULL CHECK (env IN ('test', 'live')),
    label        TEXT NOT NULL,
    hash         TEXT NOT NULL,
    prefix       TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    permissions  TEXT NOT NULL,
    ip_allowlist TEXT NOT NULL,
    expires_at   BIGINT,
    grace_until  BIGINT,
    revoked_at   BIGINT,
    created_by   TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    batch_id     BIGINT NOT NULL
);
CREATE UNIQUE INDEX api_keys_by_hash ON api_keys (hash);
CREATE INDEX api_keys_by_merchant ON api_keys (merchant_id, id);

CREATE TABLE audit (
    id           TEXT PRIMARY KEY,
    actor        TEXT NOT NULL,
    action       TEXT NOT NULL,
    subject_type TEXT NOT NULL,
    subject_id   TEXT NOT NULL,
    before       TEXT,
    after        TEXT,
    address      TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    batch_id     BIGINT NOT NULL
);
CREATE INDEX audit_by_subject ON audit (subject_id, id);

-- What one operator asked for and a second one has to ask for as well: one at a time for each
-- act on each subject. wanted is the act as JSON, the same for both.
CREATE TABLE approval_requests (
    place      TEXT PRIMARY KEY,
    id         TEXT NOT NULL,
    act        TEXT NOT NULL,
    action     TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    wanted     TEXT NOT NULL,
    actor      TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX approval_requests_by_time ON approval_requests (created_at);
