-- Processes, and the output of commands.

-- name: process_insert
-- Makes no row where the unit was not made.
-- in: $1 work_id, then the facts in order
INSERT /*lite OR ROLLBACK*/ INTO process (seq, identity_kind, identity_label, definition,
                        labels, originator, cause_occurrence,
                        cause_subscription, env_ref, event_types, created_at)
SELECT s.seq, $2, $3, $4, $5, $6, $7, $8, $9, $10, s.created_at
  FROM work_spec s WHERE s.work_id = $1

-- name: process_wakes
-- With process_insert: the session that its end wakes.
-- in: $1 work_id, $2 session_id, or '' for only those who await it
UPDATE /*lite OR ROLLBACK*/ work_state SET wake_session = $2
 WHERE seq = (SELECT s.seq FROM work_spec s WHERE s.work_id = $1)

-- name: process_granted
-- With process_insert: who may see it from the beginning.
-- in: $1 work_id, $2 session_id
INSERT /*lite OR ROLLBACK*/ INTO handle_grant (tenant, session_id, work_id, reason, granted_at)
SELECT s.tenant, $2, s.work_id, 'registered', s.created_at
  FROM work_spec s WHERE s.work_id = $1
ON CONFLICT DO NOTHING

-- name: process_note
-- An event of a unit that is no transition and needs no lease: a fact of its attempt $2, or
-- of the unit (null). A fact of an attempt that was never made is refused.
-- in: $1 work_id, $2 attempt, $3 event_type, $4 actor_kind, $5 actor, $6 message, $7 payload,
--     $8 correlation_id
INSERT /*lite OR ROLLBACK*/ INTO work_event (/*pg xid,*/ event_id, seq, event_type, generation,
                        attempt, fence, actor_kind, actor, message, payload, correlation_id,
                        created_at)
SELECT /*pg {log_place},*/ hf_next_id(), w.seq, $3, w.generation,
       coalesce($2, w.attempt_count), w.lease_fence,
       $4, $5, $6, $7, $8, hf_now()
  FROM work_state w
 WHERE w.seq = (SELECT s.seq FROM work_spec s WHERE s.work_id = $1)
   AND w.attempt_count >= coalesce($2, 0)

-- name: output_put
-- in: $1 work_id, $2 attempt, $3 stream, $4 chunk, $5 data
INSERT /*lite OR ROLLBACK*/ INTO work_output (seq, attempt, stream, chunk, data)
SELECT w.seq, $2::bigint, $3, $4, $5
  FROM work_state w
 WHERE w.seq = (SELECT s.seq FROM work_spec s WHERE s.work_id = $1)
   AND w.attempt_count >= $2
ON CONFLICT (seq, attempt, stream, chunk) DO UPDATE SET data = excluded.data

-- name: output_drop
-- in: $1 work_id, $2 attempt, $3 stream, $4 from chunk, $5 before chunk
DELETE FROM work_output
 WHERE seq = (SELECT s.seq FROM work_spec s WHERE s.work_id = $1)
   AND attempt = $2 AND stream = $3 AND chunk >= $4 AND chunk < $5

-- name: output_read
-- in: $1 work_id, $2 attempt, null for the last that wrote anything, $3 stream
-- out: attempt, chunk, data
SELECT o.attempt, o.chunk, o.data
  FROM work_output o
 WHERE o.seq = (SELECT s.seq FROM work_spec s WHERE s.work_id = $1) AND o.stream = $3
   AND o.attempt = coalesce($2, (SELECT max(l.attempt) FROM work_output l
                                  WHERE l.seq = (SELECT s.seq FROM work_spec s
                                                  WHERE s.work_id = $1)))
 ORDER BY o.chunk

-- Reading.
-- fragment: facts
p.identity_kind, p.identity_label, p.definition, p.labels, p.originator,
nullif(w.wake_session, ''),
p.cause_occurrence, p.cause_subscription, p.env_ref, p.external_ref, p.event_types

-- Which processes are older or newer than others is known only from their keys, which are those of
-- units: so the last one of a page's 20,000 is looked for first.
-- name: process_window
-- in: $1 after seq    out: how many processes follow, up to 20,000; the last of these
SELECT count(*) AS looked, max(b.seq) AS last
  FROM (SELECT p.seq FROM process p WHERE p.seq > $1 ORDER BY p.seq LIMIT 20000) AS b

-- name: process_window_newest
-- in: as process_window, in the other direction
SELECT count(*) AS looked, min(b.seq) AS last
  FROM (SELECT p.seq FROM process p WHERE p.seq < $1 ORDER BY p.seq DESC LIMIT 20000) AS b

-- fragment: process_from
process p JOIN work_state w ON w.seq = p.seq JOIN work_spec s ON s.seq = p.seq

-- fragment: process_where
($2::bigint = 1 OR w.finished_at IS NULL)
   AND ($3::text IS NULL OR w.status = $3)
   AND ($4::bigint = 0 OR w.waiting_kind IS NOT NULL)
   AND ($5::text IS NULL OR p.originator = $5)
   AND ($6::text IS NULL OR p.identity_kind = $6)
   AND ($7::text IS NULL OR p.identity_label = $7)
   AND ($8::text IS NULL OR p.definition = $8)
   AND ($9::text IS NULL OR p.cause_occurrence = $9)
   AND ($10::text IS NULL OR p.cause_subscription = $10)
   AND ($11::text IS NULL OR EXISTS (SELECT 1 FROM handle_grant g
                                      WHERE g.tenant = s.tenant AND g.session_id = $11
                                        AND g.work_id = s.work_id))
   AND ($12::bigint IS NULL OR p.created_at >= $12)
   AND ($13::bigint IS NULL OR p.created_at < $13)
   AND ($14::text IS NULL OR w.tenant = $14)
   AND ($15::text IS NULL OR s.work_id = $15)
   AND ($17::text IS NULL OR /*lite instr(p.labels, $17)*//*pg strpos(p.labels, $17)*/ > 0)
   AND ($18::text IS NULL OR p.env_ref = $18)

-- name: process_list
-- in: $1 after seq, $2 1 for finished ones too, $3 status, $4 1 for waiting ones only,
--     $5 originator, $6 identity_kind, $7 identity_label, $8 definition,
--     $9 cause_occurrence, $10 cause_subscription, $11 observer, $12 created from,
--     $13 created before, $14 tenant, $15 work_id, $16 limit, $17 a member of the labels,
--     $18 env_ref, $19 the last seq, $20 bytes of texts
SELECT {row}, {lease_left}, {facts}
  FROM {process_from}
 WHERE /*pg p.seq = ANY (ARRAY(SELECT b.seq FROM (SELECT w.seq, {bytes_before}
        FROM {process_from} WHERE*/
       p.seq > $1 AND p.seq <= $19 AND {process_where}
   /*lite AND $20 > 0*/
   /*pg ORDER BY w.seq LIMIT $16) AS b WHERE b.bytes_before < $20))*/
 ORDER BY p.seq LIMIT $16

-- name: process_list_brief
-- in: as process_list
SELECT {brief_row}, {lease_left}, {facts}
  FROM {process_from}
 WHERE p.seq > $1 AND p.seq <= $19 AND {process_where}
   AND $20::bigint > 0
 ORDER BY p.seq LIMIT $16

-- name: process_list_newest
-- in: as process_list
SELECT {row}, {lease_left}, {facts}
  FROM {process_from}
 WHERE /*pg p.seq = ANY (ARRAY(SELECT b.seq FROM (SELECT w.seq, {bytes_before_newest}
        FROM {process_from} WHERE*/
       p.seq < $1 AND p.seq >= $19 AND {process_where}
   /*lite AND $20 > 0*/
   /*pg ORDER BY w.seq DESC LIMIT $16) AS b WHERE b.bytes_before < $20))*/
 ORDER BY p.seq DESC LIMIT $16

-- name: process_list_newest_brief
-- in: as process_list
SELECT {brief_row}, {lease_left}, {facts}
  FROM {process_from}
 WHERE p.seq < $1 AND p.seq >= $19 AND {process_where}
   AND $20::bigint > 0
 ORDER BY p.seq DESC LIMIT $16

-- name: process_observers
-- in: $1 work_id
SELECT session_id FROM handle_grant WHERE work_id = $1 ORDER BY session_id

-- name: process_was
-- in: $1 work_id    out: status, pruned_at
SELECT status, pruned_at FROM process_pruned WHERE work_id = $1

-- Telling. Each is guarded by the unit's being open, in the same transaction.
-- name: process_open
-- in: $1 seq, $2 revision
SELECT seq FROM work_state
 WHERE seq = $1 AND revision = $2 AND finished_at IS NULL /*pg FOR UPDATE*/

-- name: process_key_read
-- in: $1 seq, $2 key
SELECT content FROM process_key WHERE seq = $1 AND event_key = $2

-- name: process_key_write
-- in: $1 seq, $2 key, $3 content
INSERT /*lite OR ROLLBACK*/ INTO process_key (seq, event_key, content) VALUES ($1, $2, $3)

-- name: signal_keep
-- A signal that the process does not wait for yet.
-- in: $1 seq, $2 name, $3 payload
INSERT /*lite OR ROLLBACK*/ INTO process_signal (seq, number, name, payload)
SELECT $1::bigint, coalesce((SELECT max(k.number) FROM process_signal k WHERE k.seq = $1), 0) + 1,
       $2::text, $3::text

-- name: signal_kept
-- The revision tells a caller that is about to let the process wait for it.
-- in: $1 seq
UPDATE /*lite OR ROLLBACK*/ work_state SET revision = revision + 1 WHERE seq = $1

-- name: signal_first
-- in: $1 seq, $2 name
SELECT number, payload FROM process_signal WHERE seq = $1 AND name = $2
 ORDER BY number LIMIT 1

-- name: signal_take
-- in: $1 seq, $2 number
DELETE FROM process_signal WHERE seq = $1 AND number = $2

-- name: process_observe
-- in: $1 session_id, $2 seq
INSERT /*lite OR ROLLBACK*/ INTO handle_grant (tenant, session_id, work_id, reason, granted_at)
SELECT s.tenant, $1, s.work_id, 'observer', hf_now() FROM work_spec s WHERE s.seq = $2
ON CONFLICT DO NOTHING

-- name: process_unobserve
-- in: $1 session_id, $2 seq
DELETE FROM handle_grant
 WHERE session_id = $1 AND work_id = (SELECT s.work_id FROM work_spec s WHERE s.seq = $2)

-- name: process_retarget
-- The revision tells the caller that is about to end the unit, and to wake the old one.
-- in: $1 session_id, null for none, $2 seq
UPDATE /*lite OR ROLLBACK*/ work_state
   SET wake_session = coalesce($1, ''), revision = revision + 1 WHERE seq = $2

-- name: process_wakes_waiting
-- Wakes of this process that no caller has taken yet.
-- in: $1 work_id
SELECT {row}, {lease_left} FROM {row_from}
 WHERE s.parent_work_id = $1 AND w.kind = 'wake' AND w.status = 'queued' ORDER BY w.seq

-- name: process_refer
-- in: $1 reference, $2 seq
UPDATE /*lite OR ROLLBACK*/ process SET external_ref = $1
 WHERE seq = $2 AND external_ref IS NULL

-- Pruning: what is a process's own goes with its unit.
-- name: prune_process
-- in: $1 seq
DELETE FROM process
 WHERE seq = $1 AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1)

-- name: prune_output
-- in: $1 seq
DELETE FROM work_output
 WHERE seq = $1 AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1)

-- name: prune_observers
-- Before its row of work_spec goes.
-- in: $1 seq
DELETE FROM handle_grant
 WHERE work_id = (SELECT s.work_id FROM work_spec s WHERE s.seq = $1)
   AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1)

-- name: prune_keys
-- in: $1 seq
DELETE FROM process_key
 WHERE seq = $1 AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1)

-- name: prune_signals
-- in: $1 seq
DELETE FROM process_signal
 WHERE seq = $1 AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1)

-- name: prune_tombs
-- What is left of a process: written before it goes.
-- in: $1 seq, $2 finished before
INSERT /*lite OR ROLLBACK*/ INTO process_pruned (work_id, tenant, status, pruned_at)
SELECT s.work_id, s.tenant, w.status, hf_now()
  FROM process p JOIN work_state w ON w.seq = p.seq JOIN work_spec s ON s.seq = p.seq
 WHERE p.seq = $1 AND w.finished_at IS NOT NULL AND w.finished_at < $2
ON CONFLICT (work_id) DO UPDATE
   SET status = excluded.status, pruned_at = excluded.pruned_at

-- name: prune_pick_processes
-- in: $1 finished longer ago than, $2 after seq, $3 limit    out: as prune_pick
SELECT p.seq
  FROM process p JOIN work_state w ON w.seq = p.seq
 WHERE w.finished_at IS NOT NULL AND w.finished_at < hf_now() - $1 AND p.seq > $2
 ORDER BY p.seq LIMIT $3

-- name: tomb_prune
-- in: $1 pruned before
DELETE FROM process_pruned WHERE pruned_at < $1

-- Checking.
-- name: doctor_processes
-- What has not ended, and the newest of what has: each is folded again.
-- out: work_id
SELECT s.work_id
  FROM process p JOIN work_state w ON w.seq = p.seq JOIN work_spec s ON s.seq = p.seq
 WHERE w.finished_at IS NULL OR p.seq > (SELECT max(n.seq) FROM process n) - 100000
 ORDER BY p.seq
