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
    id           TEXT PRIMARY KEY,
    name         TEXT NOT NULL,
    country      TEXT NOT NULL,
    timezone     TEXT NOT NULL,
    -- Those that it had in the last week, oldest first: [[name, until], ...].
    former_timezones TEXT NOT NULL,
    status       TEXT NOT NULL CHECK (status IN ('active', 'suspended', 'closed')),
    settings     TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    team_version BIGINT NOT NULL DEFAULT 0,
    batch_id     BIGINT NOT NULL
);

-- Only a keyed hash of the secret is kept. created_by is whoever saw it: an
-- operator, or a member of the team.
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
CREATE INDEX audit_by_action ON audit (action, id);

-- The people of a merchant. Of passwords a slow hash is kept, of invitations a keyed one; secrets of
-- one-time codes are sealed. generation rises with what ends somebody's sessions, version with every
-- change.
CREATE TABLE members (
    id               TEXT PRIMARY KEY,
    merchant_id      TEXT NOT NULL,
    email            TEXT NOT NULL,
    created_by       TEXT NOT NULL,
    created_at       BIGINT NOT NULL,
    name             TEXT NOT NULL,
    role             TEXT NOT NULL
        CHECK (role IN ('owner', 'admin', 'developer', 'finance', 'viewer')),
    permissions      TEXT NOT NULL,
    status           TEXT NOT NULL CHECK (status IN ('invited', 'active', 'disabled', 'removed')),
    generation       BIGINT NOT NULL,
    version          BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL,
    password         TEXT,
    otp_secret       TEXT,
    otp_pending      TEXT,
    otp_step         BIGINT NOT NULL,
    recovery         TEXT NOT NULL,
    invitation       TEXT,
    invitation_until BIGINT,
    batch_id         BIGINT NOT NULL
);
CREATE UNIQUE INDEX members_by_email ON members (merchant_id, email) WHERE status <> 'removed';
CREATE INDEX members_by_address ON members (email);
CREATE UNIQUE INDEX members_by_invitation ON members (invitation) WHERE invitation IS NOT NULL;

-- Only a keyed hash of the token is kept.
CREATE TABLE sessions (
    id           TEXT PRIMARY KEY,
    hash         TEXT NOT NULL,
    member_id    TEXT NOT NULL,
    generation   BIGINT NOT NULL,
    address      TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    seen_at      BIGINT NOT NULL,
    has_otp      BIGINT NOT NULL,
    confirmed_at BIGINT NOT NULL,
    ended_at     BIGINT
);
CREATE UNIQUE INDEX sessions_by_hash ON sessions (hash);
CREATE INDEX sessions_by_member ON sessions (member_id, created_at);
CREATE INDEX sessions_by_time ON sessions (created_at);

-- What somebody asked for and others have to ask for as well: one at a time for each act on each
-- subject. wanted is the act as JSON, the same for all; asked says who has, and when. Where a
-- merchant is named its own people may agree, too.
CREATE TABLE approval_requests (
    place       TEXT PRIMARY KEY,
    version     BIGINT NOT NULL,
    id          TEXT NOT NULL,
    act         TEXT NOT NULL,
    action      TEXT NOT NULL,
    subject_id  TEXT NOT NULL,
    merchant_id TEXT,
    wanted      TEXT NOT NULL,
    people      BIGINT NOT NULL,
    asked       TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX approval_requests_by_id ON approval_requests (id);
CREATE INDEX approval_requests_by_merchant ON approval_requests (merchant_id, id);
CREATE INDEX approval_requests_by_expiry ON approval_requests (expires_at);
