-- Version 2: what is built on the ledger: schedules, triggers, processes and the output of
-- commands, sessions. Their units are rows of work_spec and work_state.

-- ---- schedules -----------------------------------------------------------------------------

CREATE TABLE work_schedule (
    name              TEXT NOT NULL,
    tenant            TEXT NOT NULL DEFAULT '',
    state             TEXT NOT NULL,
    state_reason      TEXT,
    timing            TEXT NOT NULL,
    cron              TEXT,
    every_ms          INTEGER,
    start_at          INTEGER,
    zone              TEXT NOT NULL,
    days              TEXT NOT NULL,
    overlap           TEXT NOT NULL,
    catch_up          TEXT NOT NULL,
    miss_threshold_ms INTEGER NOT NULL,
    kind              TEXT NOT NULL,
    queue             TEXT NOT NULL,
    lane_key          TEXT,
    payload           TEXT,
    priority          INTEGER NOT NULL,
    max_attempts      INTEGER NOT NULL,
    retry_policy      TEXT,
    disposition       TEXT NOT NULL,
    start_timeout_ms  INTEGER,
    exec_timeout_ms   INTEGER,
    origin            TEXT,
    revision          INTEGER NOT NULL,
    next_at           INTEGER,
    last_slot_at      INTEGER,
    last_work_id      TEXT,
    made              INTEGER NOT NULL,
    skipped           INTEGER NOT NULL,
    failures          INTEGER NOT NULL,
    last_error        TEXT,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    look_at           INTEGER,
    tick              INTEGER NOT NULL,
    PRIMARY KEY (tenant, name),
    CHECK (state = 'active' OR state = 'paused' OR state = 'finished'),
    CHECK (timing = 'cron' OR timing = 'interval' OR timing = 'once'),
    CHECK ((timing = 'cron') = (cron IS NOT NULL)),
    CHECK ((timing = 'interval') = (every_ms IS NOT NULL)),
    CHECK ((timing = 'cron') = (start_at IS NULL)),
    CHECK (days = 'or' OR days = 'and'),
    CHECK (overlap = 'skip' OR overlap = 'one_waiting' OR overlap = 'allow'
           OR overlap = 'replace'),
    CHECK (catch_up = 'latest' OR catch_up = 'all' OR catch_up = 'none'),
    CHECK ((look_at IS NOT NULL) = (state = 'active')),
    CHECK (state <> 'active' OR next_at IS NOT NULL)
) STRICT, WITHOUT ROWID;
-- look_at is when a pass examines it: the next slot, or later after a failure.
CREATE INDEX work_schedule_look ON work_schedule (look_at) WHERE look_at IS NOT NULL;

CREATE TABLE work_schedule_skip (
    name       TEXT NOT NULL,
    tenant     TEXT NOT NULL,
    first_at   INTEGER NOT NULL,
    reason     TEXT NOT NULL,
    last_at    INTEGER NOT NULL,
    slots      INTEGER NOT NULL,
    more       INTEGER NOT NULL,
    work_id    TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name, first_at, reason),
    CHECK (first_at <= last_at AND slots >= 1)
) STRICT, WITHOUT ROWID;

-- ---- triggers ------------------------------------------------------------------------------

-- A subscription asks for units when something happens, an occurrence is what happened, and a
-- delivery is what an occurrence started for one subscription. Its work row is an ordinary unit.

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

-- A session may see a unit. A grant does not keep the unit from being pruned.
CREATE TABLE handle_grant (
    tenant     TEXT NOT NULL,
    session_id TEXT NOT NULL,
    work_id    TEXT NOT NULL,
    reason     TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, session_id, work_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX handle_grant_work ON handle_grant (work_id);

-- ---- processes and output ------------------------------------------------------------------

-- A background process is a unit of work: its status is in its row of work_state, and not here.
-- `process` has the facts that only a process has, `process_key` the events that were reported
-- before, `process_signal` the signals that no wait has taken yet, `process_pruned` what is left of
-- a pruned one. `handle_grant` says which sessions may see
-- it; the session that it wakes is in its unit's row.

CREATE TABLE process (
    seq              INTEGER PRIMARY KEY,
    identity_kind    TEXT NOT NULL,
    identity_label   TEXT,
    definition       TEXT,
    labels           TEXT,
    originator       TEXT NOT NULL,
    cause_occurrence TEXT,
    cause_subscription TEXT,
    env_ref          TEXT,
    external_ref     TEXT,
    event_types      TEXT,
    created_at       INTEGER NOT NULL
) STRICT;
CREATE INDEX process_originator ON process (originator, seq);

CREATE TABLE process_key (
    seq       INTEGER NOT NULL,
    event_key TEXT NOT NULL,
    content   BLOB NOT NULL,
    PRIMARY KEY (seq, event_key)
) STRICT;

CREATE TABLE process_signal (
    seq     INTEGER NOT NULL,
    number  INTEGER NOT NULL, -- in the order of their sending
    name    TEXT NOT NULL,    -- signal.NAME, as a wait names it
    payload TEXT,
    PRIMARY KEY (seq, number)
) STRICT;

CREATE TABLE process_pruned (
    work_id   TEXT PRIMARY KEY,
    tenant    TEXT NOT NULL,
    status    TEXT NOT NULL,
    pruned_at INTEGER NOT NULL
) STRICT;
CREATE INDEX process_pruned_at ON process_pruned (pruned_at);

-- Chunk k of a stream begins at byte k * the chunk's size; the chunks of the middle are
-- missing, and what they held is counted by the gap.
CREATE TABLE work_output (
    seq     INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    stream  TEXT NOT NULL CHECK (stream = 'stdout' OR stream = 'stderr'),
    chunk   INTEGER NOT NULL,
    data    BLOB NOT NULL,
    PRIMARY KEY (seq, attempt, stream, chunk)
) STRICT;

-- Facts that are the process's identity never change; external_ref is written once, with an
-- event.
CREATE TRIGGER process_identity
BEFORE UPDATE OF seq, identity_kind, identity_label, definition, labels, originator,
                 cause_occurrence, cause_subscription, env_ref, event_types, created_at
ON process
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: identity columns never change');
END;

CREATE TRIGGER process_delete BEFORE DELETE ON process
WHEN EXISTS (SELECT 1 FROM work_state w WHERE w.seq = OLD.seq)
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: a row goes as a whole; use prune');
END;

-- For readers.
CREATE VIEW runtime_process AS
SELECT s.work_id AS process_id, s.tenant, p.identity_kind, p.identity_label, p.definition,
       p.labels, p.originator,
       nullif(w.wake_session, '') AS wake_session, p.cause_occurrence, p.cause_subscription,
       p.env_ref, p.external_ref, p.event_types, w.status, w.disposition,
       w.first_started_at, w.attempt_count, w.max_attempts, w.owner,
       w.owner_incarnation, w.holder, w.lease_expires_at, w.cancel_request,
       w.abandon_request, w.finished_at, p.created_at
  FROM process p JOIN work_state w ON w.seq = p.seq JOIN work_spec s ON s.seq = p.seq;

-- ---- sessions ------------------------------------------------------------------------------

-- A session's lease is the same algorithm on the same columns as a work row's.
CREATE TABLE session (
    session_id        TEXT PRIMARY KEY,
    tenant            TEXT NOT NULL DEFAULT '',
    head_revision     INTEGER NOT NULL DEFAULT 0,
    leaf_node_id      TEXT,
    checkpoint_ref    TEXT,
    owner             TEXT,
    owner_incarnation TEXT,
    claim_group       TEXT,
    lease_fence       INTEGER NOT NULL DEFAULT 0,
    lease_store       INTEGER,
    lease_ttl_ms      INTEGER,
    lease_claimed_at  INTEGER,
    lease_expires_at  INTEGER,
    holder            TEXT,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    CHECK ((claim_group IS NOT NULL) = (lease_expires_at IS NOT NULL)),
    CHECK ((claim_group IS NOT NULL) = (owner IS NOT NULL)),
    CHECK (head_revision >= 0)
) STRICT, WITHOUT ROWID;
