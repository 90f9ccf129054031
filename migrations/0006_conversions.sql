-- Exchange between currencies: rates, limits, and what was converted.

-- One row for each pair, environment and merchant, or for all of them (merchant_id empty). What it
-- was before is in the audit log.
CREATE TABLE rates (
    id            TEXT PRIMARY KEY,
    env           TEXT NOT NULL CHECK (env IN ('test', 'live')),
    merchant_id   TEXT NOT NULL,
    from_currency TEXT NOT NULL,
    to_currency   TEXT NOT NULL,
    version       BIGINT NOT NULL,
    rate          TEXT NOT NULL,
    spread_bps    BIGINT NOT NULL,
    source        TEXT NOT NULL,
    as_of         BIGINT NOT NULL,
    valid_until   BIGINT,
    is_active     BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL
);
CREATE INDEX rates_by_owner ON rates (env, merchant_id, id);
CREATE INDEX rates_by_env ON rates (env, id);

-- What the platform may do in a currency.
CREATE TABLE fx_limits (
    id                 TEXT PRIMARY KEY,
    env                TEXT NOT NULL CHECK (env IN ('test', 'live')),
    currency           TEXT NOT NULL,
    version            BIGINT NOT NULL,
    is_paused          BIGINT NOT NULL,
    exposure_cap_minor BIGINT CHECK (exposure_cap_minor >= 0),
    updated_at         BIGINT NOT NULL
);
CREATE INDEX fx_limits_by_env ON fx_limits (env, currency);

CREATE TABLE conversions (
    id                TEXT PRIMARY KEY,
    merchant_id       TEXT NOT NULL,
    env               TEXT NOT NULL CHECK (env IN ('test', 'live')),
    from_wallet_id    TEXT NOT NULL,
    to_wallet_id      TEXT NOT NULL,
    from_currency     TEXT NOT NULL,
    to_currency       TEXT NOT NULL,
    from_amount_minor BIGINT NOT NULL CHECK (from_amount_minor > 0),
    to_amount_minor   BIGINT NOT NULL CHECK (to_amount_minor > 0),
    rate              TEXT NOT NULL,
    rate_as_of        BIGINT NOT NULL,
    is_target_basis   BIGINT NOT NULL,
    shift             BIGINT NOT NULL,
    payout_id         TEXT,
    created_at        BIGINT NOT NULL,
    batch_id          BIGINT NOT NULL
);
CREATE INDEX conversions_by_owner ON conversions (merchant_id, env, id);
CREATE UNIQUE INDEX conversions_by_payout ON conversions (payout_id);

-- Differences between banks' statements and the books, taken into the books: each once, under the
-- reference of what it explains.
CREATE TABLE settlement_adjustments (
    id           TEXT PRIMARY KEY,
    unique_key   TEXT NOT NULL,
    difference   TEXT NOT NULL,
    nth          BIGINT NOT NULL,
    env          TEXT NOT NULL CHECK (env IN ('test', 'live')),
    route        TEXT NOT NULL,
    currency     TEXT NOT NULL,
    amount_minor BIGINT NOT NULL CHECK (amount_minor <> 0),
    contra       TEXT NOT NULL,
    reference    TEXT NOT NULL,
    booked_on    TEXT NOT NULL,
    reason       TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    batch_id     BIGINT NOT NULL
);
CREATE UNIQUE INDEX settlement_adjustments_by_key ON settlement_adjustments (unique_key);
CREATE INDEX settlement_adjustments_by_difference ON settlement_adjustments (difference);
CREATE INDEX settlement_adjustments_by_reference ON settlement_adjustments (reference);
