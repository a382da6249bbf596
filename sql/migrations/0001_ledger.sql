-- Version 1: the store's own facts, the work ledger with policies, receipts and limits, the change
-- feed. A program that knows no more can create, claim and finish units.
--
-- A unit of work is two rows that share the integer key seq:
--   work_spec   what was asked; inserted once, never changed; holds the unique keys
--   work_state  what changes; narrow, so that a claim or close-out rewrites little
-- Every change of work_state.status writes one row of work_event, here, by trigger, so that
-- no path can forget it. A unit's first event is its row of work_spec: it is inserted once and
-- never changed, as an event is, and writing both would say the same thing twice. So seq and
-- event_id are numbers of one sequence. Readers use the views runtime_work and
-- runtime_work_event. docs/internals/store.md has the measurements behind this shape.

/*pg
-- One sequence for units and events: a unit's key is the id of its first event.
CREATE SEQUENCE hf_ids;
CREATE FUNCTION hf_next_id() RETURNS bigint LANGUAGE sql VOLATILE AS $$
SELECT nextval('@schema@.hf_ids') $$;

-- The clocks are the server's and go on within a transaction: a statement that had to wait for a
-- lock reads the time after the wait. A test's handle sets them. (In plpgsql, which keeps what it
-- has parsed: a stable function in SQL over a volatile one is parsed anew at every use.)
CREATE FUNCTION hf_now() RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    RETURN coalesce(nullif(current_setting('holdfast.now', true), '')::bigint,
                    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint);
END $$;
CREATE FUNCTION hf_lease_now() RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    RETURN coalesce(nullif(current_setting('holdfast.lease_now', true), '')::bigint,
                    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint);
END $$;

-- Which branch of its history this server writes; an error on a standby. (Volatile as what it
-- calls, or it would be parsed anew at every use.)
CREATE FUNCTION hf_timeline() RETURNS bigint LANGUAGE sql VOLATILE AS $$
SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint $$;

-- Raises, so that a batch with an unmet expectation is no transaction.
CREATE FUNCTION hf_expect(met bigint, wanted bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF met = wanted THEN RETURN met; END IF;
    RAISE EXCEPTION USING ERRCODE = 'HF001', MESSAGE = 'met ' || met || ' rows, not ' || wanted;
END $$;

-- Raises: a failover or a restore has begun another history, and the incarnation must rise before
-- any other write.
CREATE FUNCTION hf_new_history() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'HF003', MESSAGE = 'the server began another history';
END $$;
*/

CREATE TABLE hf_schema (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at INTEGER NOT NULL,
    checksum   TEXT NOT NULL
) STRICT;

CREATE TABLE hf_store (
    id               INTEGER PRIMARY KEY CHECK (id = 1),
    store_id         TEXT NOT NULL,
    incarnation      INTEGER NOT NULL,
/*lite
    commit_seq       INTEGER NOT NULL,
    boot_id          TEXT NOT NULL,
    time_ns          TEXT NOT NULL,
    lease_offset_ms  INTEGER NOT NULL,
    lease_high_water INTEGER NOT NULL,
*//*pg
    system_id        TEXT NOT NULL,
    timeline         INTEGER NOT NULL,
    lease_offset_ms  INTEGER NOT NULL,
    followed_until   bigint NOT NULL DEFAULT 0, -- until then each commit rings
    policies         boolean NOT NULL DEFAULT false, -- whether there is any
    commit_epoch     bigint NOT NULL DEFAULT 1, -- see hf_commit
*/
    created_at       INTEGER NOT NULL
) STRICT;

/*pg
-- One row per transaction that wrote: whether it was committed is looked up here if its answer was
-- lost. Rows of earlier epochs are deleted from time to time. A caller that knew epoch e before its
-- transaction began finds its row as long as commit_epoch is at most e + 1. There is no index:
-- many rows are written and hardly any is ever looked for.
CREATE TABLE hf_commit (
    nonce uuid NOT NULL,
    epoch bigint NOT NULL
);
*/

-- What happened to the store as a whole: bumps, and later amnesties and failovers.
CREATE TABLE hf_store_log (
    log_id INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    what   TEXT NOT NULL,
    detail TEXT
) STRICT;

CREATE TABLE work_spec (
    seq             /*lite INTEGER*//*pg bigint*/ PRIMARY KEY,
    created_at      INTEGER NOT NULL,
/*pg
    xid             bigint NOT NULL DEFAULT txid_current(),
*/
    work_id         TEXT NOT NULL,
    tenant          TEXT NOT NULL DEFAULT '',
    source_system   TEXT NOT NULL,
    source_id       TEXT NOT NULL,
    source_run_id   TEXT NOT NULL DEFAULT '',
    idempotency_key TEXT,
    request_hash    BLOB NOT NULL,
    ref             TEXT,
    parent_work_id  TEXT,
    correlation_id  TEXT,
    payload         TEXT,
    payload_ref     TEXT,
    retry_policy    TEXT, -- null: the default, which the view shows
    first_status    TEXT NOT NULL,
    actor_kind      TEXT NOT NULL,
    actor           TEXT NOT NULL,
    note            TEXT
/*lite
  , CHECK (first_status = 'queued' OR first_status = 'waiting_external'
           OR first_status = 'done'),
    CHECK (source_system <> 'scheduler' OR source_run_id <> ''),
    CHECK (payload IS NULL OR payload_ref IS NULL)
*/
) STRICT;
CREATE UNIQUE INDEX work_spec_id ON work_spec (work_id);
CREATE UNIQUE INDEX work_spec_source
    ON work_spec (source_id, source_run_id, source_system, tenant);
CREATE UNIQUE INDEX work_spec_idempotency
    ON work_spec (idempotency_key, tenant) WHERE idempotency_key IS NOT NULL;
CREATE INDEX work_spec_parent ON work_spec (parent_work_id) WHERE parent_work_id IS NOT NULL;

-- PostgreSQL logs of an updated row only what lies between the first and the last byte that differ,
-- and pads whole numbers. So columns that hardly change come first, then what a claim alone
-- changes, then what a close-out changes too; in each the widest numbers first. (INT is 32 bits
-- there, and INTEGER 64.) On SQLite the columns that a guard reads of the old row are among the
-- first 32: for a later one, SQLite copies the whole row to each guard.
CREATE TABLE work_state (
    seq               /*lite INTEGER*//*pg bigint*/ PRIMARY KEY,
/*lite
    status            TEXT NOT NULL,
    finished_at       INTEGER,
    event_id          INTEGER NOT NULL DEFAULT 0,
*/
    fair_tag          INTEGER NOT NULL DEFAULT 0,
    due_at            INTEGER NOT NULL,
    start_timeout_ms  INTEGER,
    exec_timeout_ms   INTEGER,
    session_fence     INTEGER,
    next_retry_at     INTEGER,
    escalate_at       INTEGER,
    crashed_at        INTEGER,
    priority          INT NOT NULL,
    fair_weight       INT NOT NULL DEFAULT 1,
    max_attempts      INT NOT NULL,
    generation        INT NOT NULL DEFAULT 0,
    failures          INT NOT NULL DEFAULT 0,
    crashes           INT NOT NULL DEFAULT 0,
    tenant            TEXT NOT NULL DEFAULT '',
    source_system     TEXT NOT NULL,
    kind              TEXT NOT NULL,
    queue             TEXT NOT NULL,
    lane_key          TEXT,
    dedup_key         TEXT,
    limit_name        TEXT,
    fair_key          TEXT,
    session_id        TEXT,
    disposition       TEXT,
    close_rule        TEXT,
    wake_session      TEXT, -- a session that is told of its end; '': only those who await it
    attempt_count     INT NOT NULL DEFAULT 0,
    lease_fence       INT NOT NULL DEFAULT 0,
    first_started_at  INTEGER,
    started_at        INTEGER,
    active_at         INTEGER,
    updated_at        INTEGER NOT NULL,
/*pg
    log_xid           bigint NOT NULL DEFAULT txid_current(), -- see work_guard
    finished_at       INTEGER,
*/
    deadline_at       INTEGER,
    wake_at           INTEGER,
    lease_expires_at  INTEGER,
    lease_check_at    INTEGER,
    grace_ms          INTEGER,
    acked_at          INTEGER, -- a person has seen that it ended badly
    lease_ttl_ms      INT,
    lease_incarnation       INT,
    revision          INT NOT NULL DEFAULT 1,
    /*pg vouched           INT NOT NULL DEFAULT 0, -- see work_guard*/
    /*pg status            TEXT NOT NULL,*/
    status_reason     TEXT,
    gate              TEXT,
    owner             TEXT,
    owner_incarnation TEXT,
    claim_group       TEXT,
    holder            TEXT,
    waiting_kind      TEXT,
    waiting_ref       TEXT,
    escalate          TEXT,
    resume_payload    TEXT,
    error_class       TEXT,
    result            TEXT,
    cancel_request    TEXT,
    abandon_request   TEXT,
    settled_token     TEXT,
    settled_verb      TEXT,
    event_type        TEXT,
    actor_kind        TEXT,
    actor             TEXT,
    message           TEXT,
    note              TEXT,
    correlation_id    TEXT
/*lite ,
{checks}
    CHECK (attempt_count >= 0 AND failures >= 0 AND lease_fence >= 0 AND generation >= 0),
    -- What a row has tells its status, and the other way round. (No CASE: SQLite would work
    -- out every comparison in it, where in ANDs and ORs it stops at the first that decides.)
    CONSTRAINT "a row has what its status asks for, and no more"
    CHECK ((claim_group IS NOT NULL AND status = 'running' AND finished_at IS NULL
            AND waiting_kind IS NULL AND next_retry_at IS NULL AND gate IS NULL)
           OR (finished_at IS NOT NULL
               AND (status = 'done' OR status = 'failed' OR status = 'timeout'
                    OR status = 'cancelled' OR status = 'abandoned')
               AND claim_group IS NULL AND waiting_kind IS NULL AND next_retry_at IS NULL
               AND gate IS NULL)
           OR (waiting_kind IS NOT NULL
               AND status = 'waiting_' || waiting_kind
               AND claim_group IS NULL AND finished_at IS NULL AND next_retry_at IS NULL
               AND gate IS NULL)
           OR (next_retry_at IS NOT NULL AND status = 'retry_scheduled'
               AND claim_group IS NULL AND finished_at IS NULL AND waiting_kind IS NULL
               AND gate IS NULL)
           OR (claim_group IS NULL AND finished_at IS NULL AND waiting_kind IS NULL
               AND next_retry_at IS NULL AND status = 'queued')),
    CHECK ((claim_group IS NULL AND lease_expires_at IS NULL AND session_fence IS NULL)
           OR (claim_group IS NOT NULL
               AND (lease_expires_at IS NOT NULL OR session_fence IS NOT NULL))),
    CHECK (lease_expires_at IS NULL OR session_fence IS NULL),
    CHECK (priority >= 0 AND priority <= 9),
    CHECK (claim_group IS NULL OR owner IS NOT NULL),
    CHECK (owner IS NULL OR claim_group IS NOT NULL
           OR (disposition = 'owner_bound' AND waiting_kind IS NOT NULL)),
    CHECK (session_id IS NULL OR (lane_key IS NULL AND disposition IS NULL
                                  AND lease_expires_at IS NULL))
*/
) STRICT;

-- Of each lane key at most one row is running or claimable (work_lane_slot); the transaction that
-- frees a slot passes it to the best waiting row.
--
-- Every index costs each statement that writes the table, even when it holds nothing, so
-- there is one timer (wake_at: the next wall-clock moment at which a sweep must look) and
-- not one index a deadline. The claim index holds only what can run.
CREATE INDEX work_claim ON work_state (queue, priority, fair_tag, seq)
    WHERE status = 'queued' AND gate IS NULL;
-- (due, held and lane come before limit and rate: one comparison, since PostgreSQL prepares the
-- condition of every index for each statement.)
CREATE INDEX work_gated ON work_state (gate, lane_key, tenant, priority, fair_tag, seq)
    WHERE /*lite gate = 'due' OR gate = 'lane' OR gate = 'held'*//*pg gate < 'limit'*/;
CREATE UNIQUE INDEX work_lane_slot ON work_state (lane_key, tenant)
    WHERE lane_key IS NOT NULL AND gate IS NULL
      AND (status = 'queued' OR status = 'running');
CREATE UNIQUE INDEX work_dedup ON work_state (dedup_key, tenant)
    WHERE dedup_key IS NOT NULL AND finished_at IS NULL;
CREATE INDEX work_wake ON work_state (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX work_lease ON work_state (lease_check_at) WHERE lease_check_at IS NOT NULL;
CREATE INDEX work_owner ON work_state (owner, claim_group) WHERE owner IS NOT NULL;
CREATE INDEX work_waiting ON work_state (waiting_ref) WHERE waiting_kind IS NOT NULL;
-- Bad ends that no person has acknowledged. On SQLite the condition is false after one comparison
-- for a row that is open, and after two for one that is done.
CREATE INDEX work_unacked ON work_state (finished_at)
    WHERE /*lite finished_at IS NOT NULL AND status <> 'done' AND status <> 'cancelled'
          AND acked_at IS NULL*/
          /*pg acked_at IS NULL AND status = ANY ('{abandoned,failed,timeout}')*/;

-- Event ids are never reused: a new one is larger than every id and every seq, and the newest
-- event stays (work_event_newest, work_spec_newest; prune leaves a mark, seq 0, in its place).
-- AUTOINCREMENT would promise the same for one more page in every transaction.
CREATE TABLE work_event (
    event_id       /*lite INTEGER PRIMARY KEY*//*pg bigint NOT NULL*/,
    seq            INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
/*pg
    xid            bigint NOT NULL DEFAULT txid_current(), -- its place in the feed
*/
    generation     INT NOT NULL,
    attempt        INT NOT NULL,
    fence          INT NOT NULL,
    event_type     TEXT NOT NULL,
    from_status    TEXT,
    to_status      TEXT,
    actor_kind     TEXT NOT NULL,
    actor          TEXT NOT NULL,
    message        TEXT,
    payload        TEXT,
    correlation_id TEXT
/*pg
  , PRIMARY KEY (xid, event_id)
*/
) STRICT;
CREATE INDEX work_event_trail ON work_event (seq);
-- Of births only the law is asked: their event is the request itself. One trigger for changes
-- holds the log and the law together, and spells out the event of a plain claim or close-out, so
-- that the row does not carry its text: each that fires costs a frame, and a BEFORE trigger makes
-- SQLite read the row twice (measured). Guards roll back the whole transaction, so that no
-- statement needs a journal of its own; a group commit runs the innocent again.
/*lite
CREATE TRIGGER work_born AFTER INSERT ON work_state
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: illegal first status')
     WHERE NOT (
{birth}
     );
END;
*/

/*lite
CREATE TRIGGER work_moved
AFTER UPDATE OF status, status_reason, error_class, result, finished_at, failures,
                attempt_count, generation, lease_fence ON work_state
BEGIN
    SELECT CASE
        WHEN NEW.status = OLD.status
        THEN CASE WHEN OLD.finished_at IS NOT NULL
             THEN RAISE(ROLLBACK, 'holdfast: a finished row changes only by a requeue')
             WHEN NEW.attempt_count <> OLD.attempt_count OR NEW.failures <> OLD.failures
                  OR NEW.generation <> OLD.generation OR NEW.lease_fence <> OLD.lease_fence
             THEN RAISE(ROLLBACK, 'holdfast: a row counts only what changes its status') END
        WHEN NEW.lease_fence <> OLD.lease_fence + (NEW.status = 'running')
             OR NEW.attempt_count <> OLD.attempt_count + (NEW.status = 'running')
             OR NEW.generation <> OLD.generation + (OLD.finished_at IS NOT NULL)
             OR NEW.failures > OLD.failures + 1
             OR (NEW.failures < OLD.failures AND OLD.finished_at IS NULL)
        THEN RAISE(ROLLBACK, 'holdfast: a start counts an attempt and a fence, a requeue a generation')
        WHEN NOT (
{law}
        ) THEN RAISE(ROLLBACK, 'holdfast: illegal transition')
    END;
    INSERT INTO work_event (event_id, seq, event_type, from_status, to_status, generation,
                            attempt, fence, actor_kind, actor, message, payload,
                            correlation_id, created_at)
    SELECT NEW.event_id, NEW.seq, coalesce(NEW.event_type, 'transition'), OLD.status,
           NEW.status, NEW.generation, NEW.attempt_count, NEW.lease_fence,
           coalesce(NEW.actor_kind, 'system'), coalesce(NEW.actor, 'sql'), NEW.message,
           CASE WHEN NEW.note IS NOT NULL THEN NEW.note
                WHEN NEW.lease_expires_at IS NOT NULL
                THEN format('{"lease":{"expires_at":%d,"fence":%d,"grace_ms":%d,'
                            || '"incarnation":"%s","owner":"%s","ttl_ms":%d}}',
                            NEW.lease_expires_at, NEW.lease_fence, NEW.grace_ms,
                            NEW.owner_incarnation, NEW.owner, NEW.lease_ttl_ms)
                WHEN OLD.status = 'running' AND NEW.finished_at IS NOT NULL
                THEN format('{"lease_released":{"fence":%d},"status":"%s"}', NEW.lease_fence,
                            NEW.status) END,
           NEW.correlation_id, NEW.updated_at
     WHERE NEW.status <> OLD.status AND NEW.event_id > OLD.event_id
        ON CONFLICT (event_id) DO UPDATE SET message = message;
END;

-- Refuses plain SQL without an event id, or with one so far from the last that no other could
-- follow. This is a trigger of its own because a subquery in work_moved makes every claim dearer,
-- also where it is not reached.
CREATE TRIGGER work_moved_plainly
AFTER UPDATE OF status ON work_state
WHEN NEW.status <> OLD.status
     AND (NEW.event_id <= OLD.event_id OR NEW.event_id > 1125899906842624)
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: an event id is the next one')
     WHERE NEW.event_id > 1000000
           + max(coalesce((SELECT max(event_id) FROM work_event WHERE event_id < NEW.event_id), 0),
                 coalesce((SELECT max(seq) FROM work_spec), 0));
    INSERT INTO work_event (event_id, seq, event_type, from_status, to_status, generation,
                            attempt, fence, actor_kind, actor, message, payload,
                            correlation_id, created_at)
    SELECT 1 + max(coalesce((SELECT max(event_id) FROM work_event), 0),
                   coalesce((SELECT max(seq) FROM work_spec), 0)),
           NEW.seq, coalesce(NEW.event_type, 'transition'), OLD.status, NEW.status,
           NEW.generation, NEW.attempt_count, NEW.lease_fence,
           coalesce(NEW.actor_kind, 'system'), coalesce(NEW.actor, 'sql'), NEW.message,
           NEW.note, NEW.correlation_id, NEW.updated_at
     WHERE NEW.event_id <= OLD.event_id;
END;
*/
/*pg
-- The feed is ordered by transaction ids, and a transaction that began earlier may write later.
-- So an event's place in it is its transaction's id, or that of the unit's last event if that is
-- higher; `log_xid` keeps the last one. A statement that vouches for its rows, and writes their
-- events itself, raises `vouched` by one: a claim and a close-out name the status they come from,
-- and what they set goes together. Rows of all other statements are checked here, and their events
-- are written here.
--
-- CHECKs would look at every row. But PostgreSQL reads them, and the conditions of triggers, from
-- their text in every statement, at about 40 instructions per byte: that was half of a create and a
-- third of a claim. So the rules are in one function, and short conditions call it.
CREATE FUNCTION work_guard() RETURNS trigger LANGUAGE plpgsql AS $guard$
DECLARE
    w ALIAS FOR NEW;
    place bigint := greatest(txid_current(), NEW.log_xid);
BEGIN
    IF (
{checks_pg}
    AND least(w.attempt_count, w.failures, w.lease_fence, w.generation, w.priority,
              9 - w.priority) >= 0
    AND num_nonnulls(w.lease_expires_at, w.session_fence) = num_nonnulls(w.claim_group)
    AND (w.lease_check_at IS NULL OR w.lease_expires_at IS NOT NULL)
    AND (w.claim_group IS NULL OR w.owner IS NOT NULL)
    AND (w.owner IS NULL OR w.claim_group IS NOT NULL
         OR (w.disposition = 'owner_bound' AND w.waiting_kind IS NOT NULL))
    AND (w.session_id IS NULL OR (w.lane_key IS NULL AND w.disposition IS NULL
                                  AND w.lease_expires_at IS NULL))
    ) IS FALSE THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'work_state_fits',
            MESSAGE = 'holdfast: a row has what its status asks for, and no more';
    END IF;
    IF TG_NARGS > 0 THEN
        RETURN NULL;
    ELSIF TG_OP = 'INSERT' THEN
        IF NOT (
{birth_pg}
        ) THEN
            RAISE EXCEPTION USING MESSAGE = 'holdfast: illegal first status', ERRCODE = 'HF002';
        ELSIF EXISTS (SELECT 1 FROM @schema@.work_spec s
                       WHERE s.seq = NEW.seq
                         AND NOT (s.first_status = ANY ('{queued,waiting_external,done}')
                                  AND (s.source_system <> 'scheduler' OR s.source_run_id <> '')
                                  AND num_nonnulls(s.payload, s.payload_ref) < 2)) THEN
            RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'work_spec_fits',
                MESSAGE = 'holdfast: this is no request that a unit can have';
        END IF;
        RETURN NULL;
    ELSIF NEW.status = OLD.status THEN
        IF OLD.finished_at IS NOT NULL
           AND (NEW.status_reason, NEW.error_class, NEW.result, NEW.finished_at, NEW.failures,
                NEW.attempt_count, NEW.generation, NEW.lease_fence)
               IS DISTINCT FROM
               (OLD.status_reason, OLD.error_class, OLD.result, OLD.finished_at, OLD.failures,
                OLD.attempt_count, OLD.generation, OLD.lease_fence) THEN
            RAISE EXCEPTION USING ERRCODE = 'HF002',
                MESSAGE = 'holdfast: a finished row changes only by a requeue';
        ELSIF (NEW.attempt_count, NEW.failures, NEW.generation, NEW.lease_fence)
              <> (OLD.attempt_count, OLD.failures, OLD.generation, OLD.lease_fence) THEN
            RAISE EXCEPTION USING ERRCODE = 'HF002',
                MESSAGE = 'holdfast: a row counts only what changes its status';
        END IF;
        RETURN NULL;
    ELSIF NEW.lease_fence <> OLD.lease_fence + (NEW.status = 'running')::int
          OR NEW.attempt_count <> OLD.attempt_count + (NEW.status = 'running')::int
          OR NEW.generation <> OLD.generation + (OLD.finished_at IS NOT NULL)::int
          OR NEW.failures > OLD.failures + 1
          OR (NEW.failures < OLD.failures AND OLD.finished_at IS NULL) THEN
        RAISE EXCEPTION USING ERRCODE = 'HF002',
            MESSAGE = 'holdfast: a start counts an attempt and a fence, a requeue a generation';
    ELSIF NOT (
{law_pg}
    ) THEN
        RAISE EXCEPTION USING MESSAGE = 'holdfast: illegal transition', ERRCODE = 'HF002';
    END IF;
    IF NEW.log_xid <> place THEN
        UPDATE @schema@.work_state SET log_xid = place WHERE seq = NEW.seq;
    END IF;
    INSERT INTO @schema@.work_event (xid, event_id, seq, event_type, from_status, to_status,
                                     generation, attempt, fence, actor_kind, actor, message,
                                     payload, correlation_id, created_at)
    VALUES (place, nextval('@schema@.hf_ids'), NEW.seq, coalesce(NEW.event_type, 'transition'),
            OLD.status, NEW.status, NEW.generation, NEW.attempt_count, NEW.lease_fence,
            coalesce(NEW.actor_kind, 'system'), coalesce(NEW.actor, 'sql'), NEW.message,
            NEW.note, NEW.correlation_id, NEW.updated_at);
    RETURN NULL;
END $guard$;
CREATE TRIGGER work_born AFTER INSERT ON work_state FOR EACH ROW
    WHEN (NEW.vouched = 0) EXECUTE FUNCTION work_guard();
CREATE TRIGGER work_moved
    AFTER UPDATE OF status, status_reason, error_class, result, finished_at, failures,
                    attempt_count, generation, priority, lease_fence, owner, claim_group,
                    session_fence, lease_check_at, waiting_kind, next_retry_at
    ON work_state FOR EACH ROW
    WHEN (NEW.vouched <= OLD.vouched) EXECUTE FUNCTION work_guard();
-- Renewals change the one and lanes and limits the other, and vouch for nothing.
CREATE TRIGGER work_leased AFTER UPDATE OF lease_expires_at ON work_state FOR EACH ROW
    WHEN ((NEW.lease_expires_at IS NULL) <> (NEW.lease_check_at IS NULL))
    EXECUTE FUNCTION work_guard('of the shape alone');
CREATE TRIGGER work_gated AFTER UPDATE OF gate ON work_state FOR EACH ROW
    WHEN (NEW.gate IS NOT NULL) EXECUTE FUNCTION work_guard('of the shape alone');

-- Room on the page for what a unit's claim and close-out write, so that they stay on it (one that
-- leaves it is logged whole, and a lock before it); and renewals never make an index entry.
ALTER TABLE work_state SET (fillfactor = 28, autovacuum_vacuum_scale_factor = 0.02,
                            autovacuum_vacuum_threshold = 1000,
                            autovacuum_analyze_scale_factor = 0.05);
*/


-- The other guards against plain SQL. (SQLite compares the names after OF with those of the
-- statement: so each other name of its key is listed.)
CREATE TRIGGER work_state_identity
BEFORE UPDATE OF seq, tenant, source_system, kind, lane_key, dedup_key, limit_name,
                 fair_key, session_id, disposition/*lite , rowid, _rowid_, oid*/ ON work_state
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: identity columns never change');
END;

CREATE TRIGGER work_state_delete BEFORE DELETE ON work_state
WHEN OLD.finished_at IS NULL
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: only finished work can be deleted');
END;

CREATE TRIGGER work_state_delete_events BEFORE DELETE ON work_state
WHEN EXISTS (SELECT 1 FROM work_event e WHERE e.seq = OLD.seq)
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: a row goes with its events; use prune');
END;

CREATE TRIGGER work_spec_frozen BEFORE UPDATE ON work_spec
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: what was asked never changes');
END;

CREATE TRIGGER work_spec_delete BEFORE DELETE ON work_spec
WHEN EXISTS (SELECT 1 FROM work_state w WHERE w.seq = OLD.seq)
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: a row goes as a whole; use prune');
END;

/*lite
CREATE TRIGGER work_spec_newest BEFORE DELETE ON work_spec
WHEN OLD.seq > (SELECT coalesce(max(event_id), 0) FROM work_event)
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: the newest event stays, so that no id is used twice');
END;
*/

CREATE TRIGGER work_event_frozen BEFORE UPDATE ON work_event
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: events never change');
END;

CREATE TRIGGER work_event_delete BEFORE DELETE ON work_event
WHEN EXISTS (SELECT 1 FROM work_state w WHERE w.seq = OLD.seq AND w.finished_at IS NULL)
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: events go only with finished work');
END;

/*lite
CREATE TRIGGER work_event_newest BEFORE DELETE ON work_event
WHEN OLD.event_id = (SELECT max(event_id) FROM work_event)
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: the newest event stays, so that no id is used twice');
END;
*/

/*pg
-- TRUNCATE asks no guard of rows.
CREATE FUNCTION work_truncated() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'HF002',
        MESSAGE = 'holdfast: rows go one by one; use prune';
END $guard$;
CREATE TRIGGER work_spec_truncated BEFORE TRUNCATE ON work_spec
    EXECUTE FUNCTION work_truncated();
CREATE TRIGGER work_state_truncated BEFORE TRUNCATE ON work_state
    EXECUTE FUNCTION work_truncated();
CREATE TRIGGER work_event_truncated BEFORE TRUNCATE ON work_event
    EXECUTE FUNCTION work_truncated();
*/

CREATE TABLE work_policy (
    scope            TEXT PRIMARY KEY,
    ttl_ms           INTEGER,
    renew_ms         INTEGER,
    grace_ms         INTEGER,
    wait_user_ms     INTEGER,
    wait_external_ms INTEGER,
    start_timeout_ms INTEGER,
    exec_timeout_ms  INTEGER,
    max_attempts     INTEGER,
    retry_policy     TEXT,
    disposition      TEXT,
    close_rule       TEXT,
    wait_rule        TEXT,
    updated_at       INTEGER NOT NULL,
    CHECK (ttl_ms IS NULL OR renew_ms IS NULL OR ttl_ms >= 3 * renew_ms)
) STRICT, WITHOUT ROWID;

/*pg
-- Each claim asks whether there is any policy, and reads the store's row anyway. That is locked
-- first: so what another transaction has changed meanwhile is seen.
CREATE FUNCTION work_policy_known() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
    PERFORM 1 FROM @schema@.hf_store WHERE id = 1 FOR UPDATE;
    UPDATE @schema@.hf_store SET policies = EXISTS (SELECT 1 FROM @schema@.work_policy)
     WHERE id = 1 AND policies <> EXISTS (SELECT 1 FROM @schema@.work_policy);
    RETURN NULL;
END $guard$;
CREATE TRIGGER work_policy_known AFTER INSERT OR DELETE OR TRUNCATE ON work_policy
    FOR EACH STATEMENT EXECUTE FUNCTION work_policy_known();
*/

CREATE TABLE receipt (
    tenant        TEXT NOT NULL,
    scope         TEXT NOT NULL,
    operation_key TEXT NOT NULL,
    content_hash  BLOB NOT NULL,
    result        TEXT,
    created_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant, scope, operation_key)
) STRICT, WITHOUT ROWID;

-- ---- limits and fair shares ----------------------------------------------------------------

-- A row of work_state has the name of its limit and its fair key. The counts per name are stored
-- here, one row per limit that was set or is in use. A transaction that changes which rows of
-- work_state count updates the limit's row too, by limit_lock and limit_count, which lock it.
--   used      rows that are claimable or running
--   reserved  of them those that are claimable and took a token of the rate
--   level     of the bucket, in tokens times rate_ms, at level_at
--   granted   how many rows the last count let go on
--   room      how many of the rows that were last made found a place at once
CREATE TABLE work_limit (
    name        TEXT PRIMARY KEY,
    max_running INTEGER,
    rate_count  INTEGER,
    rate_ms     INTEGER,
    rate_burst  INTEGER,
    used        INTEGER NOT NULL DEFAULT 0,
    reserved    INTEGER NOT NULL DEFAULT 0,
    level       INTEGER NOT NULL DEFAULT 0,
    level_at    INTEGER NOT NULL DEFAULT 0,
    granted     INTEGER NOT NULL DEFAULT 0,
    room        INTEGER NOT NULL DEFAULT 0,
    wake_at     INTEGER,
    CHECK ((rate_count IS NULL) = (rate_ms IS NULL) AND (rate_ms IS NULL) = (rate_burst IS NULL))
) STRICT;
CREATE INDEX work_limit_wake ON work_limit (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX work_limit_granted ON work_limit (granted) WHERE granted > 0;
CREATE INDEX work_limit_rate ON work_limit (name) WHERE rate_ms IS NOT NULL;

-- The rows that wait for a limit, in the order in which they go on. SQLite evaluates the gate
-- again, and would fetch each row for it.
CREATE INDEX work_limited ON work_state (limit_name, priority, fair_tag, seq/*lite , gate*/)
    WHERE /*lite gate = 'limit' OR gate = 'rate'*//*pg gate >= 'limit'*/;

-- Start-time fair queueing: a row's tag is the later of its key's last tag plus its share and
-- the tag that is being served. first_tag is that of the first row of the last taking.
CREATE TABLE work_fair (
    queue      TEXT NOT NULL,
    priority   INTEGER NOT NULL,
    fair_key   TEXT NOT NULL,
    first_tag  INTEGER NOT NULL,
    next_tag   INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (queue, priority, fair_key)
) STRICT;
CREATE INDEX work_fair_last ON work_fair (queue, priority, next_tag);

-- ---- views ---------------------------------------------------------------------------------

-- For readers: names and shapes are a public interface, pinned by a test.
CREATE VIEW runtime_work AS
SELECT s.work_id, s.tenant, s.source_system, s.source_id,
       nullif(s.source_run_id, '') AS source_run_id, w.kind, w.queue, w.lane_key,
       w.dedup_key, w.limit_name, w.fair_key, s.idempotency_key, s.ref, s.parent_work_id, s.correlation_id,
       w.session_id, w.status, w.status_reason, w.gate, w.disposition, w.priority,
       w.generation, w.attempt_count, w.failures, w.max_attempts, w.due_at,
       w.next_retry_at, w.deadline_at, w.start_timeout_ms, w.exec_timeout_ms, w.owner,
       w.owner_incarnation, w.lease_fence, w.lease_ttl_ms, w.lease_expires_at, w.holder,
       w.waiting_kind, w.waiting_ref, w.escalate_at, w.escalate, w.resume_payload,
       w.error_class, w.result, s.payload, s.payload_ref,
       coalesce(s.retry_policy, '{"backoff_multiplier":2,"initial_backoff_ms":5000,'
                || '"jitter":"full","max_attempts":3,"max_backoff_ms":300000}')
           AS retry_policy,
       w.close_rule, w.cancel_request, w.abandon_request, w.active_at, w.first_started_at, w.started_at,
       w.finished_at, w.acked_at, s.created_at, w.updated_at,
       coalesce(s.retry_policy, '{"backoff_multiplier":2,"initial_backoff_ms":5000,'
                || '"jitter":"full","max_attempts":3,"max_backoff_ms":300000}')
           AS retry_policy_json
  FROM work_state w JOIN work_spec s ON s.seq = w.seq;

CREATE VIEW runtime_work_event AS
SELECT s.seq AS event_id, 0 AS part, s.work_id, 'work_created' AS event_type,
       NULL AS from_status, s.first_status AS to_status, 0 AS generation, 0 AS attempt,
       0 AS fence, s.actor_kind, s.actor, NULL AS message,
       s.note AS payload, s.correlation_id, s.created_at, s.note AS payload_json
  FROM work_spec s
UNION ALL
SELECT e.event_id, 0 AS part, s.work_id, e.event_type, e.from_status, e.to_status,
       e.generation, e.attempt, e.fence, e.actor_kind, e.actor, e.message, e.payload,
       e.correlation_id, e.created_at, e.payload
  FROM work_event e JOIN work_spec s ON s.seq = e.seq
UNION ALL
SELECT e.event_id, 1, s.work_id, 'lease_acquired', NULL, NULL, e.generation, e.attempt,
       e.fence, e.actor_kind, e.actor, NULL, NULL, e.correlation_id, e.created_at, NULL
  FROM work_event e JOIN work_spec s ON s.seq = e.seq
 WHERE e.to_status = 'running'
UNION ALL
SELECT e.event_id, 2, s.work_id, 'lease_released', NULL, NULL, e.generation, e.attempt,
       e.fence, e.actor_kind, e.actor, NULL, NULL, e.correlation_id, e.created_at, NULL
  FROM work_event e JOIN work_spec s ON s.seq = e.seq
 WHERE e.from_status = 'running';

-- ---- what the change feed and the monitors must remember ----------------------------------

-- Each history of the store and the last event before it: where a reader of an older history
-- goes on. Written by guard, so that no way of raising the incarnation can forget it.
CREATE TABLE hf_history (
    incarnation INTEGER PRIMARY KEY,
    began_xid   INTEGER NOT NULL,
    began_id    INTEGER NOT NULL
) STRICT;

/*lite
CREATE TRIGGER hf_store_history AFTER UPDATE OF incarnation ON hf_store
WHEN NEW.incarnation > OLD.incarnation
BEGIN
    INSERT INTO hf_history (incarnation, began_xid, began_id)
    SELECT NEW.incarnation, 0,
           max(coalesce((SELECT max(event_id) FROM work_event), 0),
               coalesce((SELECT max(seq) FROM work_spec), 0));
END;
*//*pg
-- The transaction that raises the incarnation has locked out all writers, so nothing of the new history
-- has a lower transaction id but what waits for that lock.
CREATE FUNCTION hf_store_history() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
    INSERT INTO @schema@.hf_history (incarnation, began_xid, began_id)
    VALUES (NEW.incarnation, pg_current_xact_id()::text::bigint, 0);
    RETURN NULL;
END $guard$;
CREATE TRIGGER hf_store_history AFTER UPDATE OF incarnation ON hf_store FOR EACH ROW
    WHEN (NEW.incarnation > OLD.incarnation) EXECUTE FUNCTION hf_store_history();
CREATE INDEX work_spec_feed ON work_spec (xid, seq);
*/

-- The last event that prune took: a reader that has not come so far has a gap.
CREATE TABLE hf_feed (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    pruned_xid INTEGER NOT NULL,
    pruned_id  INTEGER NOT NULL
) STRICT;

-- When a monitor last wrote: it times its own writes, to know of stalls.
CREATE TABLE hf_pulse (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at INTEGER NOT NULL
) STRICT;
