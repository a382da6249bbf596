-- Background processes, and the output of the commands that units run.
--
-- A process is a unit of work: its row of work_state is the truth about it, and no status
-- stands here. `process` holds the facts that are its own, `process_key` which events were
-- told before, `process_pruned` what is left of one that went. Who may see it stands in
-- `handle_grant`, whom it wakes in its unit's row.

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
