-- The ledger. A journal's lines sum to zero; those to a wallet are its entries, numbered without
-- gaps, and a wallet's journals are chained by hash. Nothing here is ever changed or deleted but what
-- wallets come to: their rows, and settled_out. batch_id names the batch of the writer whose seal
-- covers a row.

-- taken_out_minor is what payouts took in all, less what was given back before it was settled.
CREATE TABLE wallets (
    id                TEXT PRIMARY KEY,
    merchant_id       TEXT NOT NULL,
    env               TEXT NOT NULL CHECK (env IN ('test', 'live')),
    currency          TEXT NOT NULL,
    available_minor   BIGINT NOT NULL CHECK (available_minor >= 0),
    taken_out_minor   BIGINT NOT NULL CHECK (taken_out_minor >= 0),
    seq               BIGINT NOT NULL,
    head_hash         TEXT NOT NULL,
    is_active         BIGINT NOT NULL,
    is_frozen         BIGINT NOT NULL,
    is_demo           BIGINT NOT NULL,
    created_at        BIGINT NOT NULL,
    updated_at        BIGINT NOT NULL,
    batch_id          BIGINT NOT NULL
);
CREATE UNIQUE INDEX wallets_by_currency ON wallets (merchant_id, env, currency);

-- What of it has been settled (the view wallet_balances takes it off), in a few parts: each writer
-- adds to its own, and waits for nobody who has the wallet's row.
CREATE TABLE settled_out (
    wallet_id     TEXT NOT NULL,
    part          BIGINT NOT NULL,
    settled_minor BIGINT NOT NULL CHECK (settled_minor >= 0),
    updated_at    BIGINT NOT NULL,
    PRIMARY KEY (wallet_id, part)
);

-- A journal touches one wallet at most: wallet_id, seq (the number in the wallet of its first entry)
-- and hash (its link in the wallet's chain) say where it stands there, and are null together. lines
-- are all of its lines, in the order in which merchants see them. Those to the wallet stand first, as
-- [null, amount_minor, source, [description, balance_after_minor, sender]], without sender where there
-- is none; those to the platform's own accounts are [account, amount_minor, source], and have no
-- running balance that would have to be locked. The views entries and own_entries show them as rows.
-- A payout is debited once and given back once: the second journal of a kind does not fit. An
-- operator who marks a failed one as paid begins another round.
CREATE TABLE journals (
    id         TEXT NOT NULL,
    env        TEXT NOT NULL,
    kind       TEXT NOT NULL,
    ref_type   TEXT NOT NULL,
    ref_id     TEXT NOT NULL,
    round      BIGINT NOT NULL,
    currency   TEXT NOT NULL,
    wallet_id  TEXT,
    seq        BIGINT,
    lines      TEXT NOT NULL,
    hash       TEXT,
    created_at BIGINT NOT NULL,
    batch_id   BIGINT NOT NULL,
    PRIMARY KEY (ref_id, kind, round),
    CHECK ((wallet_id IS NULL) = (seq IS NULL) AND (wallet_id IS NULL) = (hash IS NULL))
);
-- The id of a payout's first debit follows from the payout's, by which that is found.
CREATE UNIQUE INDEX journals_by_id ON journals (id) WHERE kind <> 'payout_debit' OR round > 1;
CREATE UNIQUE INDEX journals_by_wallet ON journals (wallet_id, seq) WHERE wallet_id IS NOT NULL;
-- What is looked for among very many payouts.
CREATE INDEX journals_besides_payouts ON journals (wallet_id, seq)
    WHERE wallet_id IS NOT NULL AND kind <> 'payout_debit';

-- One row a transaction of the writer, to learn after a lost connection whether it committed.
-- Those that wrote to sealed tables say what they wrote, and follow the one before: a chain for
-- each writer, which is kept.
CREATE TABLE writer_batches (
    id         BIGINT PRIMARY KEY,
    previous   TEXT NOT NULL,
    digests    TEXT NOT NULL,
    hash       TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX writer_batches_unsealed ON writer_batches (created_at) WHERE hash = '';

-- What was used within a window: limits, cool-downs, references. Read and written by the
-- writer only, in the transaction of what it counts.
CREATE TABLE counters (
    key        TEXT PRIMARY KEY,
    version    BIGINT NOT NULL,
    holder     TEXT NOT NULL,
    count      BIGINT NOT NULL,
    sum_minor  BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX counters_by_expiry ON counters (expires_at);

-- What payouts, batches and conversions were asked for with, and what operators did. Kept for ever:
-- money that was moved is not moved again, however late a request is repeated.
CREATE TABLE idempotency_keys (
    key         TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    subject     TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    status      BIGINT,
    response    TEXT,
    created_at  BIGINT NOT NULL,
    batch_id    BIGINT NOT NULL
);

-- The same for beneficiaries and webhook endpoints. These go when they are old.
CREATE TABLE expiring_keys (
    key         TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    status      BIGINT,
    response    TEXT,
    created_at  BIGINT NOT NULL,
    batch_id    BIGINT NOT NULL
);
CREATE INDEX expiring_keys_by_time ON expiring_keys (created_at);

-- State changes of objects, numbered per object: all, but that a payout goes at once. Those that
-- merchants may see have a body: the object afterwards as JSON, or after "@" what of it changes, if
-- the rest stands in the object's row for ever. id_number follows from id, and owner_number from
-- merchant_id and env: an index of two numbers stays full and small, whoever's rows come next.
CREATE TABLE events (
    object_id    TEXT NOT NULL,
    sequence     BIGINT NOT NULL,
    id           TEXT NOT NULL,
    merchant_id  TEXT NOT NULL,
    env          TEXT NOT NULL,
    type         TEXT NOT NULL,
    object_type  TEXT NOT NULL,
    body         TEXT,
    created_at   BIGINT NOT NULL,
    owner_number BIGINT NOT NULL,
    id_number    BIGINT NOT NULL,
    batch_id     BIGINT NOT NULL,
    PRIMARY KEY (object_id, sequence)
);
CREATE INDEX events_feed ON events (owner_number, id_number) WHERE body IS NOT NULL;
