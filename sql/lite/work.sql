-- The ledger's statements that only SQLite has, or that it has in another form.

-- name: work_settle
-- Holders' close-outs without reading first, all sets in one statement. A row that does not
-- match is told apart by the general way, and so are rows under a limit or of a lane: their end
-- lets others continue.
-- in: a1 work_id, a2 store, a3 fence, a4 nonce, a5 status, a6 status_reason, a7 error_class,
--     a8 result, a9 settled_token, a10 actor_kind, a11 actor, a12 message, a13 note,
--     a14 correlation_id
-- sets: text bigint bigint text text text text text text text text text text text
UPDATE OR ROLLBACK work_state
   SET status = a.a5, status_reason = a.a6, error_class = a.a7, result = a.a8,
       settled_token = a.a9, {settle_always}, event_id = hf_next_id(), event_type = 'close_out',
       actor_kind = a.a10, actor = a.a11, message = a.a12,
       note = nullif(a.a13, {note_of_plain_end}), correlation_id = a.a14
  FROM hf_args a JOIN work_spec s ON s.work_id = a.a1
 WHERE {settle_guard}

-- What the guard work_moved writes by itself. A row does not keep it.
-- fragment: note_of_plain_end
format('{"lease_released":{"fence":%d},"status":"%s"}', lease_fence, a.a5)

-- name: work_settle_alike
-- The same for many that end alike, as most do. SQLite keeps all that an UPDATE ... FROM sets,
-- row by row, before it writes the first; here only the keys of the rows.
-- in: as work_settle; a5 to a8 and a10 to a14 are those of the first set
-- sets: text bigint bigint text text text text text text text text text text text
UPDATE OR ROLLBACK work_state
   SET status = (SELECT f.a5 FROM hf_args f LIMIT 1),
       status_reason = (SELECT f.a6 FROM hf_args f LIMIT 1),
       error_class = (SELECT f.a7 FROM hf_args f LIMIT 1),
       result = (SELECT f.a8 FROM hf_args f LIMIT 1),
       settled_token = format('hf1.%d.%d.%s', lease_incarnation, lease_fence, claim_group),
       {settle_always}, event_id = hf_next_id(),
       event_type = 'close_out',
       actor_kind = (SELECT f.a10 FROM hf_args f LIMIT 1),
       actor = (SELECT f.a11 FROM hf_args f LIMIT 1),
       message = (SELECT f.a12 FROM hf_args f LIMIT 1),
       note = (SELECT nullif(a.a13, {note_of_plain_end}) FROM hf_args a LIMIT 1),
       correlation_id = (SELECT f.a14 FROM hf_args f LIMIT 1)
 WHERE seq IN (SELECT work_state.seq
                 FROM hf_args a JOIN work_spec s ON s.work_id = a.a1 JOIN work_state
                WHERE {settle_guard})

-- name: work_renew
-- in: $1 work_id, $2 store, $3 fence, $4 nonce, $5 ttl_ms or null
UPDATE OR ROLLBACK work_state
   SET lease_expires_at = max(lease_expires_at, hf_lease_now() + coalesce($5, lease_ttl_ms))
 WHERE seq = (SELECT s.seq FROM work_spec s WHERE s.work_id = $1)
   AND claim_group = $4 AND lease_fence = $3 AND lease_incarnation = $2
   AND status = 'running' AND lease_incarnation = hf_incarnation() AND lease_expires_at IS NOT NULL

-- name: work_renew_all
-- in: $1 owner, $2 incarnation or null, $3 longest time since its activity or null    out: seq
UPDATE OR ROLLBACK work_state
   SET lease_expires_at = max(lease_expires_at, hf_lease_now() + lease_ttl_ms)
 WHERE {owned}
RETURNING seq

-- name: lane_lock
-- There is one writer.
-- in: $1 lane_key, $2 tenant
SELECT 1 WHERE $1 IS NULL AND $2 IS NULL

-- name: work_insert_state_plain
-- :made is the key of the row that the call before made; where it made none the batch fails, since
-- a work_id is no key. (No function: next to a guard SQLite would keep a journal for it.)
-- in: $1 work_id, then the columns in order but seq
INSERT OR ROLLBACK INTO work_state ({plain_columns})
VALUES (coalesce(:made, $1), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)

-- The rows of many plain units that differ in nothing but their names and contents, on SQLite:
-- what is alike is bound once, where each value of a set is asked for by a call; and the second row
-- knows the key of the first, unless some request made none.
-- name: work_insert_specs_alike
-- in: $1 tenant, $2 source_system, $3 source_run_id, $4 ref, $5 parent_work_id,
--     $6 correlation_id, $7 payload_ref, $8 retry_policy, $9 first_status, $10 actor_kind,
--     $11 actor, $12 note, $13 created_at; a1 work_id, a2 source_id, a3 idempotency_key,
--     a4 request_hash, a5 payload
INSERT OR ROLLBACK INTO work_spec (seq, {spec_columns})
SELECT a.new_id, a.a1, $1, $2, a.a2, $3, a.a3, a.a4, $4, $5, $6, a.a5, $7, $8, $9, $10,
       $11, $12, $13
  FROM hf_args a WHERE true
ON CONFLICT DO NOTHING

-- name: work_insert_states_alike
-- in: $1 tenant, $2 source_system, $3 kind, $4 queue, $5 priority, $6 disposition, $7 status,
--     $8 max_attempts, $9 due_at, $10 updated_at; a1 work_id
INSERT OR ROLLBACK INTO work_state ({plain_columns})
SELECT n.seq, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
  FROM (SELECT coalesce(a.made_id,
                        (SELECT s.seq FROM work_spec s WHERE s.work_id = a.a1)) AS seq
          FROM hf_args a) n
 WHERE n.seq IS NOT NULL

-- name: last_id
-- What hf_next_id() continues from: seq and event_id are numbers of one sequence. (The last of an
-- order, and not max(), which is a step and an end of its own, with memory for both.)
-- out: the largest of both
SELECT max(coalesce((SELECT event_id FROM work_event ORDER BY event_id DESC LIMIT 1), 0),
           coalesce((SELECT seq FROM work_spec ORDER BY seq DESC LIMIT 1), 0))
