-- The ledger's statements that only PostgreSQL has, or that it has in another form. Rows of sets are
-- locked in the order of their keys, so that two batches never wait for each other.

-- name: work_settle
-- Holders' close-outs without reading first, all sets in one statement. A row that does not
-- match is told apart by the general way, and so are rows under a limit or of a lane: their end
-- lets others continue.
-- in: a1 work_id, a2 store, a3 fence, a4 nonce, a5 status, a6 status_reason, a7 error_class,
--     a8 result, a9 settled_token, a10 actor_kind, a11 actor, a12 message, a13 note,
--     a14 correlation_id
-- sets: text bigint bigint text text text text text text text text text text text
WITH settled AS (
UPDATE work_state
   SET status = a.a5, status_reason = a.a6, error_class = a.a7, result = a.a8,
       settled_token = a.a9, {settle_always}, log_xid = {log_place}, vouched = vouched + 1
  FROM (SELECT * FROM hf_args a ORDER BY a.a1) AS a JOIN work_spec s ON s.work_id = a.a1
 WHERE {settle_guard}
RETURNING work_state.seq, status, generation, attempt_count, lease_fence, log_xid, finished_at,
          a.a10, a.a11, a.a12, a.a13, a.a14)
INSERT INTO work_event ({event_columns})
SELECT hf_next_id(), seq, finished_at, log_xid, generation, attempt_count, lease_fence,
       'close_out'::text, 'running'::text, status, a10, a11, a12, a13, a14
  FROM settled

-- name: work_renew
-- in: a1 work_id, a2 store, a3 fence, a4 nonce, a5 ttl_ms or null
-- sets: text bigint bigint text bigint
UPDATE work_state
   SET lease_expires_at = greatest(lease_expires_at,
                                   hf_lease_now() + coalesce(a.a5, lease_ttl_ms))
  FROM (SELECT * FROM hf_args a ORDER BY a.a1) AS a JOIN work_spec s ON s.work_id = a.a1
 WHERE work_state.seq = s.seq AND claim_group = a.a4 AND lease_fence = a.a3
   AND lease_incarnation = a.a2 AND status = 'running' AND lease_incarnation = hf_incarnation()
   AND lease_expires_at IS NOT NULL

-- name: work_renew_all
-- A row that another transaction has locked is left out, and not waited for.
-- in: $1 owner, $2 incarnation or null, $3 longest time since its activity or null    out: seq
UPDATE work_state
   SET lease_expires_at = greatest(lease_expires_at, hf_lease_now() + lease_ttl_ms)
 WHERE seq IN (SELECT seq FROM work_state WHERE {owned} ORDER BY seq FOR NO KEY UPDATE SKIP LOCKED)
RETURNING seq

-- name: lane_lock
-- Before any of a lane's rows is written: otherwise two transactions would each see the slot free,
-- and two rows would have it.
-- in: $1 lane_key, $2 tenant
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '/' || $2 || '/' || $1, 7))

-- name: work_insert_unit
-- many: work_insert_units_apart
-- Both rows of one plain unit; none if a key is there already.
-- in: as work_insert_spec, $19 kind, $20 queue, $21 priority, $22 disposition,
--     $23 max_attempts, $24 due_at, $25 updated_at
WITH made AS (
    INSERT INTO work_spec (seq, {spec_columns})
    VALUES (hf_next_id(), $1, $2::text, $3::text, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
            $14::text, $15, $16, $17, $18)
    ON CONFLICT DO NOTHING
    RETURNING seq)
INSERT INTO work_state ({plain_columns}, vouched)
SELECT made.seq, $2, $3, $19, $20, $21, $22, $14, $23, $24, $25, 1 FROM made

-- name: work_insert_units_apart
-- Those of many callers; a key that is there already refuses them all.
-- in: sets as of work_insert_unit
-- sets: text text text text text text bytea text text text text text text text text text text bigint text text bigint text bigint bigint bigint
WITH n AS MATERIALIZED (SELECT hf_next_id() AS seq, a.* FROM hf_args a),
made AS (
    INSERT INTO work_spec (seq, {spec_columns})
    SELECT n.seq, n.a1, n.a2, n.a3, n.a4, n.a5, n.a6, n.a7, n.a8, n.a9, n.a10, n.a11, n.a12,
           n.a13, n.a14, n.a15, n.a16, n.a17, n.a18
      FROM n)
INSERT INTO work_state ({plain_columns}, vouched)
SELECT n.seq, n.a2, n.a3, n.a19, n.a20, n.a21, n.a22, n.a14, n.a23, n.a24, n.a25, 1
  FROM n

-- name: work_insert_units
-- Both rows of many plain units, which differ in nothing but the names and contents of their
-- requests. The second row needs of the first its key only, so that it is not looked up again,
-- and what is alike is sent and read once: a third less than the two statements above.
-- in: $1 tenant, $2 source_system, $3 retry_policy, $4 status, $5 actor_kind, $6 actor,
--     $7 created_at, $8 kind, $9 queue, $10 priority, $11 disposition, $12 max_attempts,
--     $13 due_at, $14 updated_at; a1 work_id, a2 source_id, a3 source_run_id,
--     a4 idempotency_key, a5 request_hash, a6 ref, a7 parent_work_id, a8 correlation_id,
--     a9 payload, a10 payload_ref, a11 note
-- sets: text text text text bytea text text text text text text
WITH made AS (
    INSERT INTO work_spec (seq, tenant, source_system, retry_policy, first_status,
                           actor_kind, actor, created_at, work_id, source_id, source_run_id,
                           idempotency_key, request_hash, ref, parent_work_id,
                           correlation_id, payload, payload_ref, note)
    SELECT hf_next_id(), $1::text, $2::text, $3, $4::text, $5, $6, $7, a.a1, a.a2,
           a.a3, a.a4, a.a5, a.a6, a.a7, a.a8, a.a9, a.a10, a.a11
      FROM hf_args a
    RETURNING seq)
INSERT INTO work_state ({plain_columns}, vouched)
SELECT made.seq, $1, $2, $8, $9, $10, $11, $4, $12, $13, $14, 1 FROM made
