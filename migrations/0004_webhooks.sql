-- Where merchants want to hear of events. owner is merchant and environment in one, the key by
-- which the writer finds who listens; owner_number follows from it, as in events. Secrets are sealed;
-- old_secrets is an array of those that were replaced and until when each counts.
CREATE TABLE webhook_endpoints (
    id                   TEXT PRIMARY KEY,
    owner                TEXT NOT NULL,
    owner_number         BIGINT NOT NULL,
    merchant_id          TEXT NOT NULL,
    env                  TEXT NOT NULL CHECK (env IN ('test', 'live')),
    url                  TEXT NOT NULL,
    events               TEXT NOT NULL,
    is_ordered           BIGINT NOT NULL,
    is_active            BIGINT NOT NULL,
    disabled_reason      TEXT,
    secret               TEXT NOT NULL,
    old_secrets          TEXT,
    last_success_at      BIGINT,
    last_failure_at      BIGINT,
    consecutive_failures BIGINT NOT NULL,
    times_disabled       BIGINT NOT NULL,
    deleted_at           BIGINT,
    created_at           BIGINT NOT NULL,
    updated_at           BIGINT NOT NULL
);
CREATE INDEX webhook_endpoints_by_owner ON webhook_endpoints (owner, id);
-- Those whose deliveries are being taken away.
CREATE INDEX webhook_endpoints_deleted ON webhook_endpoints (id) WHERE deleted_at IS NOT NULL;

-- An event for one endpoint. body is what is sent, where that does not follow from the event: a test
-- has none, and a replay may outlive its. event_number, endpoint_number and id_number follow from
-- the ids, and owner_number from the owner, as in events.
CREATE TABLE webhook_deliveries (
    id               TEXT PRIMARY KEY,
    owner            TEXT NOT NULL,
    endpoint_id      TEXT NOT NULL,
    event_id         TEXT,
    event_number     BIGINT,
    event_type       TEXT NOT NULL,
    body             TEXT,
    is_test          BIGINT NOT NULL,
    replayed_from_id TEXT,
    status           TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed', 'giving_up')),
    attempts         BIGINT NOT NULL,
    response_status  BIGINT,
    response_body    TEXT,
    error_message    TEXT,
    next_attempt_at  BIGINT,
    delivered_at     BIGINT,
    created_at       BIGINT NOT NULL,
    owner_number     BIGINT NOT NULL,
    endpoint_number  BIGINT NOT NULL,
    id_number        BIGINT NOT NULL,
    CHECK (event_id IS NOT NULL OR body IS NOT NULL)
);
CREATE INDEX webhook_deliveries_by_owner ON webhook_deliveries (owner_number, id_number);
CREATE INDEX webhook_deliveries_by_endpoint ON webhook_deliveries (endpoint_number, id_number);
-- Who was told of a payout, for its timeline.
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (event_number)
    WHERE event_number IS NOT NULL;

-- Deliveries that are still to be made. Leases run by the database's clock; the fence rises with
-- every claim, and a result under an old fence changes nothing. Whatever has an object waits for
-- earlier changes of it.
CREATE TABLE webhook_queue (
    delivery_id TEXT PRIMARY KEY,
    endpoint_id TEXT NOT NULL,
    object_id   TEXT,
    sequence    BIGINT NOT NULL,
    due_at      BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    fence       BIGINT NOT NULL
);
CREATE INDEX webhook_queue_due ON webhook_queue (endpoint_id, due_at);
CREATE INDEX webhook_queue_objects ON webhook_queue (endpoint_id, object_id, sequence)
    WHERE object_id IS NOT NULL;

-- What people are told by the host itself. content is sealed, and empty once it was sent or given
-- up. Leases run by the database's clock, as above.
CREATE TABLE notifications (
    id          TEXT PRIMARY KEY,
    channel     TEXT NOT NULL CHECK (channel IN ('email', 'webhook')),
    kind        TEXT NOT NULL,
    subject_id  TEXT NOT NULL,
    content     TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('queued', 'sent', 'given_up')),
    tries       BIGINT NOT NULL,
    due_at      BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    fence       BIGINT NOT NULL,
    ended_at    BIGINT,
    error       TEXT
);
CREATE INDEX notifications_due ON notifications (channel, due_at) WHERE status = 'queued';
-- They go before whatever else is due.
CREATE INDEX notifications_alerts_due ON notifications (channel, due_at)
    WHERE status = 'queued' AND kind = 'alert';
CREATE INDEX notifications_given_up ON notifications (ended_at) WHERE status = 'given_up';
CREATE INDEX notifications_by_age ON notifications (ended_at) WHERE ended_at IS NOT NULL;

-- What an operator has to look at. One is open for each key at a time: whoever changes any holds
-- the turn.
CREATE TABLE alerts (
    id              TEXT PRIMARY KEY,
    key             TEXT NOT NULL,
    kind            TEXT NOT NULL,
    host            TEXT,
    summary         TEXT NOT NULL,
    advice          TEXT NOT NULL,
    count           BIGINT NOT NULL,
    opened_at       BIGINT NOT NULL,
    seen_at         BIGINT NOT NULL,
    told_at         BIGINT NOT NULL,
    told_count      BIGINT NOT NULL,
    acknowledged_by TEXT,
    acknowledged_at BIGINT,
    ended_at        BIGINT
);
CREATE UNIQUE INDEX alerts_open ON alerts (key) WHERE ended_at IS NULL;
CREATE INDEX alerts_by_age ON alerts (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE alert_turns (
    id      TEXT PRIMARY KEY,
    version BIGINT NOT NULL
);
INSERT INTO alert_turns (id, version) VALUES ('alerts', 0);
