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
    correction         TEXT,
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

-- Payouts that are made together, or not at all. How it goes on follows from them.
CREATE TABLE batches (
    id                 TEXT PRIMARY KEY,
    merchant_id        TEXT NOT NULL,
    env                TEXT NOT NULL CHECK (env IN ('test', 'live')),
    wallet_id          TEXT NOT NULL,
    currency           TEXT NOT NULL,
    total_count        BIGINT NOT NULL CHECK (total_count > 0),
    total_amount_minor BIGINT NOT NULL CHECK (total_amount_minor > 0),
    maker              TEXT NOT NULL,
    created_at         BIGINT NOT NULL,
    stage              TEXT NOT NULL
        CHECK (stage IN ('awaiting_approval', 'flagged_held', 'approved', 'rejected', 'cancelled')),
    version            BIGINT NOT NULL,
    reason             TEXT,
    approved_at        BIGINT,
    completed_at       BIGINT,
    batch_id           BIGINT NOT NULL
);
CREATE INDEX batches_by_stage ON batches (stage, id);
CREATE INDEX batches_under_way ON batches (id) WHERE completed_at IS NULL;

-- is_waiting, holds_batch and unusual follow from the status: whether somebody has to decide, whether
-- the batch that it is in is not complete without it, and the status where it is none of those that
-- most payouts are in. Indexes name them instead of the status, so that a payout on its way from
-- queued to paid moves in no index. What changes stands together, at the end: of a new version
-- PostgreSQL logs what lies between the first byte that differs from the old one's and the last.
-- charges is [amount_minor, ...], one for each line of the tariff. owner_number and id_number are as
-- in events. sender and resolution are sealed.
CREATE TABLE payouts (
    id                 TEXT PRIMARY KEY,
    merchant_id        TEXT NOT NULL,
    env                TEXT NOT NULL CHECK (env IN ('test', 'live')),
    wallet_id          TEXT NOT NULL,
    in_batch           TEXT,
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
    tariff             TEXT NOT NULL,
    charges            TEXT NOT NULL,
    hold               TEXT,
    scenario           TEXT,
    maker              TEXT NOT NULL,
    resolution         TEXT,
    receipt_to         TEXT,
    funding            TEXT,
    created_at         BIGINT NOT NULL,
    owner_number       BIGINT NOT NULL,
    id_number          BIGINT NOT NULL,
    batch_id           BIGINT NOT NULL,
    status             TEXT NOT NULL,
    is_waiting         BIGINT NOT NULL,
    holds_batch        BIGINT NOT NULL,
    unusual            TEXT,
    version            BIGINT NOT NULL,
    round              BIGINT NOT NULL,
    route              TEXT,
    rail_reference     TEXT,
    failure_code       TEXT,
    failure_message    TEXT,
    correction         TEXT,
    told               TEXT,
    funded             TEXT,
    queued_at          BIGINT,
    processing_at      BIGINT,
    completed_at       BIGINT
);
CREATE INDEX payouts_by_owner ON payouts (owner_number, id_number);
-- What waits for somebody: few at any time.
CREATE INDEX payouts_waiting ON payouts (id) WHERE is_waiting = 1;
CREATE INDEX payouts_by_batch ON payouts (in_batch, id) WHERE in_batch IS NOT NULL;
-- Those that did not simply go their way: few among very many.
CREATE INDEX payouts_unusual ON payouts (owner_number, unusual, id_number)
    WHERE unusual IS NOT NULL;
CREATE INDEX payouts_open_by_batch ON payouts (in_batch) WHERE holds_batch = 1;

-- How a route was set when something was sent over it, and by which version of its rail. It is the
-- same for very many attempts, and its id follows from the rest. fingerprint says where the route
-- led, and in whose name.
CREATE TABLE route_configurations (
    id           TEXT PRIMARY KEY,
    route_id     TEXT NOT NULL,
    rail_version TEXT NOT NULL,
    rail_digest  TEXT NOT NULL,
    fingerprint  TEXT NOT NULL
);
CREATE INDEX route_configurations_by_route ON route_configurations (route_id);

-- One attempt to carry a payment out over a route. Its reference is committed before a byte
-- leaves, is unique in its rail for ever. Two who begin the next attempt of an object at once give
-- it the same number, and one of them fails. No index but that of the network's names has what
-- changes when the attempt ends.
-- network_id is the network's own name for it; resolution, facts and seeds are sealed.
CREATE TABLE attempts (
    id             TEXT PRIMARY KEY,
    transfer_id    TEXT NOT NULL,
    configuration  TEXT NOT NULL,
    route          TEXT NOT NULL,
    rail           TEXT NOT NULL,
    rail_reference TEXT NOT NULL,
    number         BIGINT NOT NULL,
    begun_at       BIGINT NOT NULL,
    resolution     TEXT,
    seeds          TEXT,
    created_at     BIGINT NOT NULL,
    network_id     TEXT,
    facts          TEXT,
    state          TEXT NOT NULL
        CHECK (state IN ('open', 'paid', 'refused', 'returned', 'not_sent', 'closed')),
    bytes_left     BIGINT NOT NULL,
    sends          BIGINT NOT NULL,
    queries        BIGINT NOT NULL,
    never_received BIGINT NOT NULL,
    code           TEXT,
    message        TEXT,
    sent_at        BIGINT NOT NULL,
    answered_at    BIGINT,
    file_id        TEXT,
    batch_id       BIGINT NOT NULL
);
CREATE INDEX attempts_by_file ON attempts (file_id, id) WHERE file_id IS NOT NULL;
CREATE UNIQUE INDEX attempts_by_reference ON attempts (rail, rail_reference);
CREATE INDEX attempts_by_network_id ON attempts (rail, network_id) WHERE network_id IS NOT NULL;
CREATE UNIQUE INDEX attempts_by_transfer ON attempts (transfer_id, number);

-- Objects that there is something to do for, each in the lane of a route. Leases run by the
-- database's clock; the fence rises with every claim, and a write under an old fence changes
-- nothing. nudges count what networks have said since anybody asked. What says queued has no
-- attempt if lease_until is 0; otherwise somebody had it, and may have sent it. unrouted_since says
-- since when no route takes it, where none did when somebody looked.
CREATE TABLE transfers (
    id          TEXT PRIMARY KEY,
    env         TEXT NOT NULL,
    merchant_id TEXT NOT NULL,
    route_id    TEXT NOT NULL,
    stage       TEXT NOT NULL CHECK (stage IN ('queued', 'sent')),
    serial      BIGINT NOT NULL,
    queued_at   BIGINT NOT NULL,
    due_at      BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    fence       BIGINT NOT NULL,
    tries       BIGINT NOT NULL,
    nudges      BIGINT NOT NULL,
    unrouted_since BIGINT
);
CREATE INDEX transfers_due ON transfers (route_id, stage, merchant_id, due_at);
CREATE INDEX transfers_unrouted ON transfers (route_id, unrouted_since)
    WHERE unrouted_since IS NOT NULL;

-- Every call of a rail about a payment, redacted: the evidence in its timeline. exchanges is
-- [[to, request, status, response, failure, duration_ms], ...].
CREATE TABLE rail_calls (
    transfer_id TEXT NOT NULL,
    id          TEXT NOT NULL,
    attempt_id  TEXT,
    operation   TEXT NOT NULL,
    rail        TEXT NOT NULL,
    result      TEXT NOT NULL,
    exchanges   TEXT NOT NULL,
    duration_us BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    batch_id    BIGINT NOT NULL,
    PRIMARY KEY (transfer_id, id)
);

-- What needs a person. The money in question stands in the suspense account until it is
-- resolved; what is told twice has the same fingerprint, and opens one case.
CREATE TABLE cases (
    id                  TEXT PRIMARY KEY,
    kind                TEXT NOT NULL,
    fingerprint         TEXT NOT NULL,
    env                 TEXT NOT NULL,
    merchant_id         TEXT,
    subject_type        TEXT NOT NULL,
    subject_id          TEXT NOT NULL,
    route               TEXT,
    currency            TEXT,
    amount_minor        BIGINT,
    summary             TEXT NOT NULL,
    evidence            TEXT NOT NULL,
    opened_at           BIGINT NOT NULL,
    status              TEXT NOT NULL CHECK (status IN ('open', 'resolved')),
    version             BIGINT NOT NULL,
    resolution          TEXT,
    resolution_evidence TEXT,
    requested_by        TEXT,
    resolved_by         TEXT,
    resolved_at         BIGINT,
    batch_id            BIGINT NOT NULL
);
CREATE UNIQUE INDEX cases_by_fingerprint ON cases (fingerprint);
CREATE INDEX cases_by_subject ON cases (subject_id, id);
CREATE INDEX cases_open ON cases (kind, id) WHERE status = 'open';

-- Files of payments. Payments join the one in a slot until its window closes; its bytes, sealed,
-- are there before it is delivered. Leases run by the database's clock.
CREATE TABLE payment_files (
    id             TEXT PRIMARY KEY,
    env            TEXT NOT NULL,
    route_id       TEXT NOT NULL,
    route          TEXT NOT NULL,
    rail           TEXT NOT NULL,
    method         TEXT NOT NULL,
    currency       TEXT NOT NULL,
    slot           TEXT NOT NULL,
    window_name    TEXT NOT NULL,
    closes_at      BIGINT NOT NULL,
    business_date  TEXT NOT NULL,
    local_time     TEXT NOT NULL,
    value_date     TEXT NOT NULL,
    settles_at     BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    state          TEXT NOT NULL,
    is_closed      BIGINT NOT NULL,
    is_held        BIGINT NOT NULL,
    number         BIGINT NOT NULL,
    number_of_day  BIGINT NOT NULL,
    first_entry    BIGINT NOT NULL,
    name           TEXT,
    identity       TEXT,
    digest         TEXT,
    content        TEXT,
    entries        BIGINT NOT NULL,
    amount_minor   BIGINT NOT NULL,
    may_have_left  BIGINT NOT NULL,
    deliveries     BIGINT NOT NULL,
    -- Deliveries of which something may have arrived.
    copies         BIGINT NOT NULL,
    -- When a person was last asked, or said, whether it left before the database was restored.
    restored_at    BIGINT,
    -- The network has both refused and acknowledged it.
    is_contradicted BIGINT NOT NULL,
    first_sent_at  BIGINT,
    code           TEXT,
    message        TEXT,
    sent_at        BIGINT,
    answered_at    BIGINT,
    due_at         BIGINT NOT NULL,
    lease_until    BIGINT NOT NULL,
    fence          BIGINT NOT NULL
);
CREATE UNIQUE INDEX payment_files_by_slot ON payment_files (slot);
CREATE UNIQUE INDEX payment_files_by_name ON payment_files (route_id, name) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX payment_files_by_identity ON payment_files (route_id, identity)
    WHERE identity IS NOT NULL;
CREATE INDEX payment_files_contradicted ON payment_files (route_id) WHERE is_contradicted = 1;
CREATE INDEX payment_files_due ON payment_files (due_at)
    WHERE state NOT IN ('acknowledged', 'refused', 'empty');

-- The last numbers that were allotted in each rail and environment, or there to each payer: of
-- files, of entries. Routes of one rail may lead to one bank. Files of business dates up to `day`
-- may have been forgotten in a restore: a date without a row in file_days begins after of_day.
CREATE TABLE file_numbers (
    place    TEXT PRIMARY KEY,
    files    BIGINT NOT NULL,
    entries  BIGINT NOT NULL,
    day      TEXT NOT NULL,
    of_day   BIGINT NOT NULL
);

-- The last number of each business date there. A file that was held back is numbered when it is let
-- go, after those of later days, so a row is kept: one for each day on which a network settles.
CREATE TABLE file_days (
    place    TEXT NOT NULL,
    day      TEXT NOT NULL,
    files    BIGINT NOT NULL,
    PRIMARY KEY (place, day)
);

-- How far what networks leave lying ready was read, and when it is looked for again.
CREATE TABLE feeds (
    route_id    TEXT NOT NULL,
    feed        TEXT NOT NULL,
    cursor        TEXT NOT NULL,
    failing_since BIGINT,
    lease_until   BIGINT NOT NULL,
    PRIMARY KEY (route_id, feed)
);
CREATE TABLE feed_turns (
    route_id TEXT PRIMARY KEY,
    due_at   BIGINT NOT NULL
);

-- What networks have sent, sealed, as it arrived. It is stored before the network is answered, and
-- taken in after that: what is new is due again until it has had its effect. routes are those whose
-- network it was proved to be; done says which of the things that it says have had theirs.
CREATE TABLE inbox (
    id          TEXT PRIMARY KEY,
    env         TEXT NOT NULL,
    rail        TEXT NOT NULL,
    routes      TEXT NOT NULL,
    source      TEXT NOT NULL CHECK (source IN ('notice', 'file')),
    name        TEXT NOT NULL,
    digest      TEXT NOT NULL,
    content     TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('new', 'taken', 'unreadable', 'unmatched')),
    done        TEXT NOT NULL,
    tries       BIGINT NOT NULL,
    due_at      BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    received_at BIGINT NOT NULL,
    taken_at    BIGINT,
    why         TEXT,
    read_by     TEXT
);
CREATE INDEX inbox_due ON inbox (due_at) WHERE state = 'new';
CREATE INDEX inbox_unreadable ON inbox (rail, read_by)
    WHERE state = 'unreadable' OR (state = 'unmatched' AND why IS NOT NULL);
CREATE INDEX inbox_by_age ON inbox (received_at);
CREATE UNIQUE INDEX inbox_files ON inbox (routes, name, digest) WHERE source = 'file';

-- The other side of the sandbox: what the simulated networks of the rails remember.
CREATE TABLE simulator_transfers (
    rail      TEXT NOT NULL,
    reference TEXT NOT NULL,
    transfer  TEXT NOT NULL,
    version   BIGINT NOT NULL,
    PRIMARY KEY (rail, reference)
);

-- Every version of a rail that ever was loaded, as its file: a payment is asked about by the one
-- that sent it. The tag says that a host of ours wrote it.
CREATE TABLE rail_versions (
    digest     TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    version    TEXT NOT NULL,
    component  TEXT NOT NULL,
    tag        TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
