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
    wake_session      TEXT,
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
CREATE INDEX work_schedule_created ON work_schedule (created_at, tenant, name);

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
CREATE INDEX subscription_created
    ON subscription (created_at, tenant, owner_scope, subscription_key);
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
CREATE INDEX occurrence_made ON occurrence (created_at, occurrence_id);

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

-- A session is a conversation with one writer at a time. Its row has the head of the history and
-- the lease, which is the same algorithm on the same columns as a work row's.
--   ready_at        a worker may claim it since then; null: it is leased, or there is nothing to do
--   lease_check_at  a claim looks at the lease then; renewals do not write it. 0: a sweep has
--                   proven that the holder is dead
--   turn_key        the open turn
--   ended_token     of the last release or hand-back, with its verb: a repeat is known by them
-- Nodes with ordinals below record_count are the committed history. Those from there on are
-- provisional: they belong to the open turn.
CREATE TABLE session (
    session_key       INTEGER PRIMARY KEY,
    session_id        TEXT NOT NULL,
    tenant            TEXT NOT NULL DEFAULT '',
    agent             TEXT NOT NULL,
    created_at        INTEGER NOT NULL,
    ready_at          INTEGER,
    lease_check_at    INTEGER,
    head_revision     INTEGER NOT NULL DEFAULT 0,
    record_count      INTEGER NOT NULL DEFAULT 0,
    lease_fence       INTEGER NOT NULL DEFAULT 0,
    updated_at        INTEGER NOT NULL,
    turn_key          INTEGER,
    waiting_until     INTEGER,
    deleted_at        INTEGER,
    lease_incarnation       INTEGER,
    lease_ttl_ms      INTEGER,
    lease_claimed_at  INTEGER,
    lease_expires_at  INTEGER,
    chain             BLOB NOT NULL,
    owner             TEXT,
    owner_incarnation TEXT,
    claim_group       TEXT,
    holder            TEXT,
    ended_token       TEXT,
    ended_verb        TEXT,
    cancel_request    TEXT,
    config            TEXT,
    CHECK ((claim_group IS NULL AND owner IS NULL AND lease_expires_at IS NULL
            AND lease_check_at IS NULL)
           OR (claim_group IS NOT NULL AND owner IS NOT NULL AND lease_expires_at IS NOT NULL
               AND lease_check_at IS NOT NULL AND ready_at IS NULL)),
    CHECK (head_revision >= 0 AND record_count >= 0 AND lease_fence >= 0),
    CHECK (length(chain) = 32)
) STRICT;
CREATE UNIQUE INDEX session_id ON session (session_id);
CREATE INDEX session_ready ON session (agent, ready_at, session_key) WHERE ready_at IS NOT NULL;
CREATE INDEX session_lease ON session (agent, lease_check_at) WHERE lease_check_at IS NOT NULL;
CREATE INDEX session_holder ON session (holder) WHERE holder IS NOT NULL;
CREATE INDEX session_claim ON session (claim_group) WHERE claim_group IS NOT NULL;
/*pg
-- Room on the page for renewals and commits, which change no indexed column.
ALTER TABLE session SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02,
                         autovacuum_vacuum_threshold = 1000);
*/

-- How the session came to be: written once. request_hash is that of the create.
CREATE TABLE session_meta (
    session_key  INTEGER NOT NULL PRIMARY KEY,
    relation     TEXT NOT NULL,
    parent_id    TEXT,
    cause        TEXT,
    labels       TEXT,
    request_hash BLOB NOT NULL,
    CHECK (relation = 'root' OR relation = 'child' OR relation = 'fork' OR relation = 'caused'),
    CHECK ((relation <> 'child' AND relation <> 'fork') OR parent_id IS NOT NULL)
) STRICT;
CREATE INDEX session_meta_parent ON session_meta (parent_id) WHERE parent_id IS NOT NULL;

-- One row per turn; turn_key is the seq of its first input. A row that is finished is the receipt
-- of the turn's commit. claimed_step is the step at the last claim, by which crashes are counted;
-- base_count is the number of records below the turn's own. transients has the turn's records that
-- are no nodes.
CREATE TABLE session_turn (
    turn_key      /*lite INTEGER*//*pg bigint*/ PRIMARY KEY,
    session_key   INTEGER NOT NULL,
    base_revision INTEGER NOT NULL,
    base_count    INTEGER NOT NULL,
    step          INTEGER NOT NULL DEFAULT 0,
    claimed_step  INTEGER NOT NULL DEFAULT 0,
    node_count    INTEGER NOT NULL DEFAULT 0,
    effect_count  INTEGER NOT NULL DEFAULT 0, -- entries that its steps have begun
    active_ms     INTEGER NOT NULL DEFAULT 0,
    effects_past  INTEGER NOT NULL DEFAULT 0, -- the last effect before the turn began anew
    started_at    INTEGER NOT NULL,
    finished_at   INTEGER,
    waits_revoked_at INTEGER, -- no wait of this turn can be answered since then
    turn_id       TEXT NOT NULL,
    chain         BLOB NOT NULL,
    commit_hash   BLOB,
    outcome       TEXT,
    result        TEXT,
    transients    TEXT,
    save          BLOB,
    CHECK (step >= 0 AND node_count >= 0 AND claimed_step <= step),
    CHECK (finished_at IS NULL OR (outcome IS NOT NULL AND save IS NULL AND transients IS NULL))
) STRICT;
CREATE UNIQUE INDEX session_turn_id ON session_turn (session_key, turn_id);

CREATE TABLE session_input (
    seq         /*lite INTEGER*//*pg bigint*/ PRIMARY KEY,
    session_key INTEGER NOT NULL,
    turn_key    INTEGER,
    kind        TEXT NOT NULL CHECK (kind = 'message' OR kind = 'wake'),
    ingress     TEXT NOT NULL CHECK (ingress = 'next_turn')
) STRICT;
CREATE INDEX session_input_place ON session_input (session_key, turn_key, seq);

-- chain is the digest of the history up to this record; record is its JSON.
CREATE TABLE node (
    session_key INTEGER NOT NULL,
    ordinal     INTEGER NOT NULL,
    turn_key    INTEGER NOT NULL,
    chain       BLOB NOT NULL,
    record      TEXT NOT NULL,
    PRIMARY KEY (session_key, ordinal),
    CHECK (ordinal >= 0 AND length(chain) = 32)
) STRICT;

CREATE TABLE blob (
    hash  BLOB NOT NULL PRIMARY KEY,
    bytes BLOB NOT NULL,
    CHECK (length(hash) = 32)
) STRICT;

CREATE TABLE usage (
    session_key INTEGER NOT NULL,
    turn_key    INTEGER NOT NULL,
    ordinal     INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    source      TEXT NOT NULL,
    model       TEXT NOT NULL,
    PRIMARY KEY (session_key, turn_key, ordinal),
    CHECK (input >= 0 AND output >= 0 AND cache_read >= 0 AND cache_write >= 0
           AND reasoning >= 0)
) STRICT, WITHOUT ROWID;

-- The effect journal: one row per effect of a turn, written before the effect is performed and
-- settled once. effect_key is N, or N/CALL_ID/ATTEMPT; envelope is canonical JSON, and its bytes are
-- the effect's identity. fence is the session's at the time of the intent. due_at is set for a
-- failure that will be retried. taken_over: it was performed again after a worker was lost.
CREATE TABLE effect (
    turn_key   INTEGER NOT NULL,
    effect_key TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    due_at     INTEGER,
    fence      INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    settled_at INTEGER,
    taken_over INTEGER NOT NULL DEFAULT 0,
    kind       TEXT NOT NULL,
    recovery   TEXT NOT NULL,
    status     TEXT NOT NULL,
    envelope   TEXT NOT NULL,
    outcome    TEXT,
    usage      TEXT,
    PRIMARY KEY (turn_key, effect_key),
    CHECK (recovery = 'safe' OR recovery = 'keyed' OR recovery = 'probe' OR recovery = 'ask'),
    CHECK ((status = 'started' AND outcome IS NULL AND settled_at IS NULL)
           OR ((status = 'done' OR status = 'failed' OR status = 'unknown')
               AND outcome IS NOT NULL AND settled_at IS NOT NULL))
) STRICT;
CREATE INDEX effect_unknown ON effect (settled_at) WHERE status = 'unknown';

-- The journal of effects that belong to a process or an operation of the host, under leases of their
-- own. A settled row keeps the fence and the nonce of the lease that settled it. resolved_at, actor_kind
-- and actor are set once, when an operator says what became of an effect that was unknown; known is
-- its outcome before.
CREATE TABLE scope_effect (
    scope             TEXT NOT NULL,
    scope_id          TEXT NOT NULL,
    effect_key        TEXT NOT NULL,
    tenant            TEXT NOT NULL,
    started_at        INTEGER NOT NULL,
    settled_at        INTEGER,
    taken_over        INTEGER NOT NULL DEFAULT 0,
    lease_fence       INTEGER NOT NULL,
    lease_incarnation       INTEGER NOT NULL,
    lease_ttl_ms      INTEGER NOT NULL,
    lease_claimed_at  INTEGER NOT NULL,
    lease_expires_at  INTEGER NOT NULL,
    owner             TEXT NOT NULL,
    owner_incarnation TEXT NOT NULL,
    claim_group       TEXT NOT NULL,
    kind              TEXT NOT NULL,
    recovery          TEXT NOT NULL,
    status            TEXT NOT NULL,
    envelope          TEXT NOT NULL,
    outcome           TEXT,
    resolved_at       INTEGER,
    actor_kind        TEXT,
    actor             TEXT,
    known             TEXT,
    PRIMARY KEY (scope, scope_id, effect_key),
    CHECK (scope = 'process' OR scope = 'operation'),
    CHECK (lease_fence > 0),
    CHECK (recovery = 'safe' OR recovery = 'keyed' OR recovery = 'probe' OR recovery = 'ask'),
    CHECK ((status = 'started' AND outcome IS NULL AND settled_at IS NULL)
           OR ((status = 'done' OR status = 'failed' OR status = 'unknown')
               AND outcome IS NOT NULL AND settled_at IS NOT NULL)),
    CHECK ((resolved_at IS NULL AND actor_kind IS NULL AND actor IS NULL AND known IS NULL)
           OR (resolved_at IS NOT NULL AND actor_kind IS NOT NULL AND actor IS NOT NULL
               AND status <> 'started'))
) STRICT;
CREATE INDEX scope_effect_open ON scope_effect (scope, scope_id, effect_key)
    WHERE resolved_at IS NULL AND (status = 'started' OR status = 'unknown');

-- A wait is what an open turn waits for. It is closed once: by an answer, at its deadline, by a
-- revocation, or with its turn. wait_id follows from turn, kind and name. A wait that was answered
-- before its turn opened it has no opened_at.
--   check_at   when a sweep acts on it: at escalate_at, then at deadline_at; null: closed, or a timer,
--              whose due time is the session's ready_at
--   closed_by  names the call that closed it, so that a caller knows whether it was its own
CREATE TABLE wait (
    wait_id       TEXT NOT NULL PRIMARY KEY,
    session_key   INTEGER NOT NULL,
    turn_key      INTEGER NOT NULL,
    deadline_at   INTEGER,
    escalate_at   INTEGER,
    check_at      INTEGER,
    next_ms       INTEGER,
    opened_at     INTEGER,
    closed_at     INTEGER,
    kind          TEXT NOT NULL,
    state         TEXT NOT NULL,
    policy        TEXT,
    name          TEXT,
    asked         TEXT,
    answerer      TEXT,
    next_answerer TEXT,
    next_policy   TEXT,
    escalate      TEXT,
    outcome       TEXT,
    actor_kind    TEXT,
    actor         TEXT,
    closed_by     TEXT,
    CHECK (kind = 'tool' OR kind = 'approval' OR kind = 'signal' OR kind = 'timer'
           OR kind = 'custom'),
    CHECK ((state = 'open' AND outcome IS NULL AND closed_at IS NULL AND closed_by IS NULL
            AND opened_at IS NOT NULL AND deadline_at IS NOT NULL AND name IS NOT NULL
            AND (policy IS NULL) = (kind = 'timer') AND (check_at IS NULL) = (kind = 'timer'))
           OR ((state = 'resolved' OR state = 'cancelled' OR state = 'timed_out')
               AND outcome IS NOT NULL AND closed_at IS NOT NULL AND closed_by IS NOT NULL
               AND check_at IS NULL)),
    CHECK ((policy IS NOT NULL AND policy = 'next') = (next_policy IS NOT NULL))
) STRICT;
CREATE INDEX wait_turn ON wait (turn_key);
CREATE INDEX wait_check ON wait (check_at) WHERE check_at IS NOT NULL;
-- For lists, which say closed_at IS NULL. A statement about one wait or one turn says
-- state = 'open', so that no plan looks for it among all that are open.
CREATE INDEX wait_open ON wait (deadline_at, wait_id) WHERE closed_at IS NULL;
/*pg
ALTER TABLE wait SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
*/

-- The secrets of the keys with which waits are answered. valid_until null: new keys are made with
-- it.
CREATE TABLE wait_secret (
    key_id      TEXT NOT NULL PRIMARY KEY,
    secret      BLOB NOT NULL,
    valid_until INTEGER,
    created_at  INTEGER NOT NULL,
    CHECK (length(secret) = 32)
) STRICT;
CREATE UNIQUE INDEX wait_secret_current ON wait_secret ((valid_until IS NULL))
    WHERE valid_until IS NULL;

-- Guards against plain SQL.
CREATE TRIGGER session_identity
AFTER UPDATE OF session_key, session_id, tenant, agent, created_at/*lite , rowid, _rowid_, oid*/
ON session
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: identity columns never change');
END;

CREATE TRIGGER session_moved
AFTER UPDATE OF head_revision, record_count, chain, lease_fence ON session
WHEN NEW.lease_fence - OLD.lease_fence NOT IN (0, 1) -- a sum could be beyond 64 bits
     OR NEW.head_revision - OLD.head_revision NOT IN (0, 1)
     OR NEW.record_count < OLD.record_count
     OR (NEW.head_revision = OLD.head_revision
         AND (NEW.record_count <> OLD.record_count OR NEW.chain <> OLD.chain))
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: a head only moves on, one commit at a time');
END;

CREATE TRIGGER session_delete BEFORE DELETE ON session
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: the row of a session stays');
END;

CREATE TRIGGER session_meta_frozen BEFORE UPDATE ON session_meta
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: how a session came to be never changes');
END;

CREATE TRIGGER session_meta_delete BEFORE DELETE ON session_meta
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: how a session came to be stays');
END;

CREATE TRIGGER session_turn_identity
AFTER UPDATE OF turn_key, session_key, turn_id/*lite , rowid, _rowid_, oid*/ ON session_turn
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: identity columns never change');
END;

CREATE TRIGGER session_turn_frozen AFTER UPDATE ON session_turn
WHEN OLD.finished_at IS NOT NULL
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: a turn that is finished never changes');
END;

CREATE TRIGGER session_turn_delete BEFORE DELETE ON session_turn
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: a turn is the receipt of its commit, and stays');
END;

CREATE TRIGGER session_input_identity
AFTER UPDATE OF seq, session_key, kind/*lite , rowid, _rowid_, oid*/ ON session_input
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: identity columns never change');
END;

CREATE TRIGGER session_input_delete BEFORE DELETE ON session_input
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: an input of a session stays');
END;

CREATE TRIGGER node_frozen BEFORE UPDATE ON node
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: a node never changes');
END;

CREATE TRIGGER node_delete BEFORE DELETE ON node
WHEN OLD.ordinal < (SELECT s.record_count FROM session s WHERE s.session_key = OLD.session_key)
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: committed nodes stay');
END;

CREATE TRIGGER blob_frozen BEFORE UPDATE ON blob
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: a blob never changes');
END;

CREATE TRIGGER blob_delete BEFORE DELETE ON blob
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: blobs stay');
END;

CREATE TRIGGER usage_frozen BEFORE UPDATE ON usage
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: what was spent never changes');
END;

CREATE TRIGGER usage_delete BEFORE DELETE ON usage
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: what was spent stays');
END;

CREATE TRIGGER effect_frozen AFTER UPDATE ON effect
WHEN OLD.status <> 'started' OR NEW.turn_key <> OLD.turn_key OR NEW.effect_key <> OLD.effect_key
     OR NEW.envelope <> OLD.envelope OR NEW.recovery <> OLD.recovery OR NEW.fence <> OLD.fence
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: an effect is settled once, and its intent never changes');
END;

CREATE TRIGGER effect_delete BEFORE DELETE ON effect
WHEN (SELECT t.commit_hash FROM session_turn t WHERE t.turn_key = OLD.turn_key) IS NOT NULL
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: the effects of a committed turn stay');
END;

-- An unknown outcome is replaced once, by an operator.
CREATE TRIGGER scope_effect_frozen AFTER UPDATE ON scope_effect
WHEN (OLD.status <> 'started'
      AND (OLD.status <> 'unknown' OR OLD.resolved_at IS NOT NULL OR NEW.resolved_at IS NULL))
     OR NEW.scope <> OLD.scope OR NEW.scope_id <> OLD.scope_id
     OR NEW.effect_key <> OLD.effect_key OR NEW.envelope <> OLD.envelope
     OR NEW.recovery <> OLD.recovery OR NEW.lease_fence < OLD.lease_fence
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: an effect is settled once, and its intent never changes');
END;

CREATE TRIGGER wait_identity
AFTER UPDATE OF wait_id, session_key, turn_key, kind/*lite , rowid, _rowid_, oid*/ ON wait
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: identity columns never change');
END;

-- A wait that was answered early learns once what was asked. If the actor may not answer, it is
-- open then.
CREATE TRIGGER wait_frozen AFTER UPDATE ON wait
WHEN OLD.state <> 'open'
     AND (OLD.opened_at IS NOT NULL OR NEW.state <> OLD.state OR NEW.outcome <> OLD.outcome
          OR NEW.closed_by <> OLD.closed_by OR NEW.closed_at <> OLD.closed_at)
     AND NOT (OLD.opened_at IS NULL AND OLD.state = 'resolved' AND NEW.answerer IS NOT NULL
              AND NEW.answerer <> coalesce(OLD.actor, ''))
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: a wait has one outcome');
END;

CREATE TRIGGER wait_delete BEFORE DELETE ON wait
WHEN OLD.state = 'open'
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: an open wait stays');
END;

/*pg
CREATE TRIGGER wait_truncated BEFORE TRUNCATE ON wait EXECUTE FUNCTION work_truncated();
CREATE TRIGGER session_truncated BEFORE TRUNCATE ON session EXECUTE FUNCTION work_truncated();
CREATE TRIGGER session_turn_truncated BEFORE TRUNCATE ON session_turn
    EXECUTE FUNCTION work_truncated();
CREATE TRIGGER session_input_truncated BEFORE TRUNCATE ON session_input
    EXECUTE FUNCTION work_truncated();
CREATE TRIGGER node_truncated BEFORE TRUNCATE ON node EXECUTE FUNCTION work_truncated();
CREATE TRIGGER blob_truncated BEFORE TRUNCATE ON blob EXECUTE FUNCTION work_truncated();
CREATE TRIGGER usage_truncated BEFORE TRUNCATE ON usage EXECUTE FUNCTION work_truncated();
CREATE TRIGGER effect_truncated BEFORE TRUNCATE ON effect EXECUTE FUNCTION work_truncated();
CREATE TRIGGER scope_effect_truncated BEFORE TRUNCATE ON scope_effect
    EXECUTE FUNCTION work_truncated();
*/

-- For readers.
CREATE VIEW runtime_session AS
SELECT s.session_id, s.tenant, s.agent, m.relation, m.parent_id, m.cause, m.labels,
       s.head_revision, s.record_count, s.chain, s.config, t.turn_id, t.step, s.ready_at,
       s.waiting_until, s.owner, s.owner_incarnation, s.lease_fence, s.lease_ttl_ms,
       s.lease_claimed_at, s.lease_expires_at, s.holder, s.cancel_request, s.deleted_at,
       s.created_at, s.updated_at
  FROM session s JOIN session_meta m ON m.session_key = s.session_key
  LEFT JOIN session_turn t ON t.turn_key = s.turn_key;

CREATE VIEW runtime_turn AS
SELECT s.session_id, t.turn_id, s.tenant, t.base_revision, t.step, t.node_count, t.started_at,
       t.finished_at, t.active_ms, t.outcome, t.result, length(t.save) AS save_bytes
  FROM session_turn t JOIN session s ON s.session_key = t.session_key;

CREATE VIEW runtime_effect AS
SELECT s.session_id, t.turn_id, s.tenant, e.effect_key, e.kind, e.recovery, e.status, e.attempt,
       e.due_at, e.fence, e.started_at, e.settled_at, e.taken_over, e.envelope, e.outcome, e.usage
  FROM effect e JOIN session_turn t ON t.turn_key = e.turn_key
  JOIN session s ON s.session_key = t.session_key;

CREATE VIEW runtime_scope_effect AS
SELECT e.scope, e.scope_id, e.tenant, e.effect_key, e.kind, e.recovery, e.status, e.owner,
       e.lease_fence, e.lease_ttl_ms, e.lease_claimed_at, e.lease_expires_at, e.started_at,
       e.settled_at, e.taken_over, e.envelope, e.outcome, e.resolved_at, e.actor_kind, e.actor,
       e.known
  FROM scope_effect e;

CREATE VIEW runtime_wait AS
SELECT w.wait_id, s.session_id, t.turn_id, s.tenant, s.agent, w.kind, w.name, w.state, w.asked,
       w.answerer, w.deadline_at, w.policy, w.next_answerer, w.next_policy, w.next_ms,
       w.escalate_at, w.escalate, w.outcome, w.actor_kind, w.actor, w.opened_at, w.closed_at
  FROM wait w JOIN session_turn t ON t.turn_key = w.turn_key
  JOIN session s ON s.session_key = w.session_key;
