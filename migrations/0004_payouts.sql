CREATE TABLE routes (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    env        TEXT NOT NULL CHECK (env IN ('test', 'live')),
    currency   TEXT NOT NULL,
    method     TEXT NOT NULL,
    rail       TEXT NOT NULL,
    position   BIGINT NOT NULL,
    is_paused  BIGINT NOT NULL,
    merchants  TEXT NOT NULL,
    settings   TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX routes_by_name ON routes (env, name);

-- identity is the canonical tuple that makes two recipients the same one. Deleting frees it.
CREATE TABLE beneficiaries (
    id                 TEXT PRIMARY KEY,
    merchant_id        TEXT NOT NULL,
    env                TEXT NOT NULL,
    currency           TEXT NOT NULL,
    identity           TEXT NOT NULL,
    deleted_identity   TEXT,
    name               TEXT NOT NULL,
    email              TEXT,
    phone              TEXT,
    account_name       TEXT,
    external_reference TEXT,
    method             TEXT NOT NULL,
    recipient          TEXT NOT NULL,
    resolution         TEXT,
    resolved_at        BIGINT,
    verification       TEXT NOT NULL CHECK (verification IN ('pending', 'verified', 'failed')),
    source             TEXT NOT NULL CHECK (source IN ('manual', 'auto')),
    search             TEXT NOT NULL,
    deleted_at         BIGINT,
    created_at         BIGINT NOT NULL,
    updated_at         BIGINT NOT NULL
);
CREATE UNIQUE INDEX beneficiaries_by_identity ON beneficiaries (merchant_id, env, currency, identity);
CREATE INDEX beneficiaries_by_deleted_identity
    ON beneficiaries (merchant_id, env, currency, deleted_identity) WHERE deleted_identity IS NOT NULL;
CREATE INDEX beneficiaries_by_merchant ON beneficiaries (merchant_id, env, id);

CREATE TABLE blacklist (
    id          TEXT PRIMARY KEY,
    scope       TEXT NOT NULL CHECK (scope IN ('platform', 'merchant')),
    merchant_id TEXT NOT NULL,
    currency    TEXT NOT NULL,
    identity    TEXT NOT NULL,
    subject     TEXT NOT NULL,
    reason      TEXT NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX blacklist_by_identity ON blacklist (currency, identity, merchant_id);

CREATE TABLE payouts (
    id                 TEXT PRIMARY KEY,
    merchant_id        TEXT NOT NULL,
    env                TEXT NOT NULL CHECK (env IN ('test', 'live')),
    wallet_id          TEXT NOT NULL,
    status             TEXT NOT NULL,
    version            BIGINT NOT NULL,
    currency           TEXT NOT NULL,
    method             TEXT NOT NULL,
    amount_minor       BIGINT NOT NULL CHECK (amount_minor > 0),
    fee_minor          BIGINT NOT NULL CHECK (fee_minor >= 0),
    tax_minor          BIGINT NOT NULL CHECK (tax_minor >= 0),
    levy_minor         BIGINT NOT NULL CHECK (levy_minor >= 0),
    beneficiary_id     TEXT NOT NULL,
    recipient_identity TEXT NOT NULL,
    recipient_name     TEXT NOT NULL,
    recipient          TEXT NOT NULL,
    sender             TEXT,
    narration          TEXT,
    merchant_reference TEXT,
    customer_reference TEXT,
    pricing            TEXT NOT NULL,
    hold               TEXT,
    scenario           TEXT,
    maker              TEXT NOT NULL,
    rail_reference     TEXT,
    failure_code       TEXT,
    failure_message    TEXT,
    created_at         BIGINT NOT NULL,
    queued_at          BIGINT,
    processing_at      BIGINT,
    completed_at       BIGINT
);
CREATE INDEX payouts_by_merchant ON payouts (merchant_id, env, id);

-- One attempt to send a payout over a rail. Its reference is committed before a byte leaves, is
-- unique in its rail for ever, and at most one attempt of a payout is open.
CREATE TABLE attempts (
    id             TEXT PRIMARY KEY,
    payout_id      TEXT NOT NULL,
    route_id       TEXT NOT NULL,
    rail           TEXT NOT NULL,
    rail_version   TEXT NOT NULL,
    rail_digest    TEXT NOT NULL,
    rail_reference TEXT NOT NULL,
    number         BIGINT NOT NULL,
    state          TEXT NOT NULL CHECK (state IN ('open', 'paid', 'refused', 'not_sent', 'closed')),
    bytes_left     BIGINT NOT NULL,
    sends          BIGINT NOT NULL,
    queries        BIGINT NOT NULL,
    never_received BIGINT NOT NULL,
    code           TEXT,
    message        TEXT,
    begun_at       BIGINT NOT NULL,
    sent_at        BIGINT NOT NULL,
    answered_at    BIGINT
);
CREATE UNIQUE INDEX attempts_by_reference ON attempts (rail, rail_reference);
CREATE UNIQUE INDEX attempts_open ON attempts (payout_id) WHERE state = 'open';
CREATE INDEX attempts_by_payout ON attempts (payout_id, id);

-- Payouts that a dispatcher has something to do for. Leases run by the database's clock; the
-- fence rises with every claim, and a write under an old fence changes nothing.
CREATE TABLE dispatches (
    payout_id   TEXT PRIMARY KEY,
    due_at      BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    fence       BIGINT NOT NULL,
    tries       BIGINT NOT NULL
);
CREATE INDEX dispatches_due ON dispatches (due_at);

-- Every call of a rail about a payout, redacted: the evidence in its timeline.
CREATE TABLE rail_calls (
    id          TEXT PRIMARY KEY,
    payout_id   TEXT NOT NULL,
    attempt_id  TEXT,
    operation   TEXT NOT NULL,
    rail        TEXT NOT NULL,
    result      TEXT NOT NULL,
    exchanges   TEXT NOT NULL,
    duration_us BIGINT NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX rail_calls_by_payout ON rail_calls (payout_id, id);

-- The other side of the sandbox: what the built-in bank simulator was sent.
CREATE TABLE simulator_transfers (
    reference TEXT PRIMARY KEY,
    transfer  TEXT NOT NULL
);
