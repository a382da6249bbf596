-- Triggers: who wants to know of what (subscription), what happened (occurrence), and what was
-- started for whom because of it (delivery). A delivery's work row is its target's own.

CREATE TABLE subscription (
    subscription_id  TEXT PRIMARY KEY,
    tenant           TEXT NOT NULL,
    owner_scope      TEXT NOT NULL,
    subscription_key TEXT NOT NULL,
    state            TEXT NOT NULL,
    incarnation      TEXT NOT NULL,
    revision         INTEGER NOT NULL,
    source_type      TEXT NOT NULL,
    source_key       TEXT NOT NULL,
    template         TEXT,
    kind             TEXT NOT NULL,
    queue            TEXT NOT NULL,
    lane_key         TEXT,
    priority         INTEGER NOT NULL,
    max_attempts     INTEGER NOT NULL,
    retry_policy     TEXT,
    disposition      TEXT NOT NULL,
    start_timeout_ms INTEGER,
    exec_timeout_ms  INTEGER,
    wake_session     TEXT,
    process_kind     TEXT, -- the target is a process; null: a unit and no more
    process_name     TEXT,
    registrant       TEXT NOT NULL,
    deliveries       INTEGER NOT NULL,
    last_at          INTEGER,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    CHECK (state = 'enabled' OR state = 'disabled' OR state = 'deleted'),
    CHECK (revision >= 1 AND deliveries >= 0)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX subscription_name ON subscription (tenant, owner_scope, subscription_key);
CREATE INDEX subscription_match
    ON subscription (tenant, source_type, source_key, owner_scope, subscription_key)
    WHERE state = 'enabled';

CREATE TABLE occurrence (
    occurrence_id   TEXT PRIMARY KEY,
    tenant          TEXT NOT NULL,
    source_type     TEXT NOT NULL,
    source_key      TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    content_hash    BLOB NOT NULL,
    payload         TEXT,
    scope           TEXT,
    occurred_at     INTEGER NOT NULL,
    created_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE delivery (
    delivery_id     TEXT PRIMARY KEY,
    occurrence_id   TEXT NOT NULL,
    subscription_id TEXT NOT NULL,
    incarnation     TEXT NOT NULL,
    revision        INTEGER NOT NULL,
    snapshot        TEXT NOT NULL,
    work_id         TEXT NOT NULL,
    wake_work_id    TEXT,
    created_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_occurrence ON delivery (occurrence_id);
CREATE INDEX delivery_subscription ON delivery (subscription_id);

-- A session may see a unit; it keeps nothing alive.
CREATE TABLE handle_grant (
    tenant     TEXT NOT NULL,
    session_id TEXT NOT NULL,
    work_id    TEXT NOT NULL,
    reason     TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, session_id, work_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX handle_grant_work ON handle_grant (work_id);
