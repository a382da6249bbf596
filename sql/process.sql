-- Processes, and the output of commands.

-- name: process_insert
-- Makes no row where the unit was not made.
-- in: $1 work_id, then the facts in order
INSERT /*lite OR ROLLBACK*/ INTO process (seq, identity_kind, identity_label, definition,
                        labels, originator, wake_session, cause_occurrence,
                        cause_subscription, env_ref, event_types, created_at)
SELECT s.seq, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, s.created_at
  FROM work_spec s WHERE s.work_id = $1

-- name: process_note
-- An event of a unit that is no transition and needs no lease: a fact of its attempt $2, or
-- of the unit (null). A fact of an attempt that was never made is refused.
-- in: $1 work_id, $2 attempt, $3 event_type, $4 actor_kind, $5 actor, $6 message, $7 payload,
--     $8 correlation_id
INSERT /*lite OR ROLLBACK*/ INTO work_event (event_id, seq, event_type, generation, attempt,
                        fence, actor_kind, actor, message, payload, correlation_id,
                        created_at)
SELECT hf_next_id(), w.seq, $3, w.generation, coalesce($2, w.attempt_count), w.lease_fence,
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

-- Pruning: what is a process's own goes with its unit.

-- name: prune_process
-- in: $1 seq
DELETE FROM process
 WHERE seq = $1 AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1)

-- name: prune_output
-- in: $1 seq
DELETE FROM work_output
 WHERE seq = $1 AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1)
