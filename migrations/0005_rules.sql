-- Every version of a rule pack that was ever pushed. The component is base64; NULL for one that
-- travels in the binary and was never used.
CREATE TABLE rule_packs (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    version    TEXT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('fees', 'fraud')),
    digest     TEXT NOT NULL,
    title      TEXT NOT NULL,
    contract   TEXT NOT NULL,
    facts      TEXT NOT NULL,
    component  TEXT,
    report     TEXT NOT NULL,
    is_checked BIGINT NOT NULL,
    pushed_by  TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX rule_packs_by_digest ON rule_packs (digest);

-- Who priced payouts, and what the lines of their prices are: the pack, and [[kind, label], ...]. The
-- amounts stand with each payout. It is the same for very many, and its id follows from the rest.
CREATE TABLE tariffs (
    id      TEXT PRIMARY KEY,
    pack    TEXT NOT NULL,
    version TEXT NOT NULL,
    digest  TEXT NOT NULL,
    lines   TEXT NOT NULL
);

-- Which pack was assigned when; the newest row of a kind, scope and role counts. No name means
-- that none is assigned from then on; is_held, that payouts are held meanwhile, because the pack
-- that decided kept failing. Generations are handed out under the lock of rule_generation.
CREATE TABLE rule_assignments (
    generation BIGINT PRIMARY KEY,
    kind       TEXT NOT NULL,
    scope      TEXT NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('active', 'shadow')),
    name       TEXT,
    version    TEXT,
    is_held    BIGINT NOT NULL DEFAULT 0,
    actor      TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE TABLE rule_generation (
    id         TEXT PRIMARY KEY,
    generation BIGINT NOT NULL
);
INSERT INTO rule_generation (id, generation) VALUES ('rules', 0);

-- What was decided about a payout, on which facts, by which pack; refused payouts included.
CREATE TABLE decisions (
    payout_id    TEXT PRIMARY KEY,
    merchant_id  TEXT NOT NULL,
    env          TEXT NOT NULL,
    currency     TEXT NOT NULL,
    amount_minor BIGINT NOT NULL,
    pack         TEXT,
    version      TEXT,
    digest       TEXT,
    action       TEXT NOT NULL CHECK (action IN ('allow', 'hold', 'block')),
    hits         TEXT NOT NULL,
    failure      TEXT,
    facts        TEXT NOT NULL,
    facts_digest TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    batch_id     BIGINT NOT NULL
);
CREATE INDEX decisions_by_time ON decisions (created_at, payout_id);

-- Where a pack in shadow would have decided otherwise, and how often it was compared.
CREATE TABLE rule_differences (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    version     TEXT NOT NULL,
    payout_id   TEXT NOT NULL,
    merchant_id TEXT NOT NULL,
    env         TEXT NOT NULL,
    active      TEXT,
    before      TEXT NOT NULL,
    after       TEXT NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX rule_differences_by_name ON rule_differences (name, id);
CREATE INDEX rule_differences_by_time ON rule_differences (created_at);
CREATE TABLE rule_tallies (
    id        TEXT PRIMARY KEY,
    compared  BIGINT NOT NULL,
    differing BIGINT NOT NULL,
    failed    BIGINT NOT NULL
);

-- Whether a recipient that the merchant saved by hand was ever paid.
CREATE INDEX payouts_by_beneficiary ON payouts (beneficiary_id);
