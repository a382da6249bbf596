-- Claiming on PostgreSQL. Rows are locked in a table of their own (c), which has each row's timing
-- and the clocks: ten subqueries were a tenth of a claim of one. The events of a claim are written
-- by its own statement.

-- name: work_claim
-- sizes: 1 10 100
-- in: $1 queue, $2 owner, $3 incarnation, $4 nonce, $5 ttl_ms or null, $6 holder,
--     $7 actor_kind, $8 actor, $9 the middle of the note, $10 correlation_id, $11 ttl_ms and
--     $12 grace_ms where no policy is set
WITH c AS MATERIALIZED (
    SELECT w.seq, {lease_terms}, {claim_clocks} {claim_queue} {claim_in_time}
    {claim_order} {size} FOR UPDATE OF w SKIP LOCKED),
taken AS ({claim_set} FROM c WHERE w.seq = c.seq {claim_taken})
INSERT INTO work_event ({event_columns}) SELECT {claim_logged} FROM taken

-- name: work_claim_kinds
-- sizes: 1 10 100
-- in: as work_claim, $13 kinds as a JSON array
WITH c AS MATERIALIZED (
    SELECT w.seq, {lease_terms}, {claim_clocks} {claim_queue} {claim_in_time}
       AND w.kind IN (SELECT jsonb_array_elements_text($13::jsonb))
    {claim_order} {size} FOR UPDATE OF w SKIP LOCKED),
taken AS ({claim_set} FROM c WHERE w.seq = c.seq {claim_taken})
INSERT INTO work_event ({event_columns}) SELECT {claim_logged} FROM taken

-- name: work_claim_on
-- sizes: 1 10 100
-- What is more urgent, from the start; then on from a key. The second is only read as far as
-- the first comes short.
-- in: as work_claim, $13 priority, $14 fair_tag, $15 seq
WITH urgent AS MATERIALIZED (
    SELECT w.seq, {lease_terms}, {claim_clocks} {claim_queue} {claim_in_time}
       AND w.priority < $13::bigint {claim_order} {size} FOR UPDATE OF w SKIP LOCKED),
others AS MATERIALIZED (
    SELECT w.seq, {lease_terms}, {claim_clocks} {claim_queue} {claim_in_time}
       AND (w.priority, w.fair_tag, w.seq) >= ($13::bigint, $14::bigint, $15::bigint)
    {claim_order} {size} FOR UPDATE OF w SKIP LOCKED),
c AS MATERIALIZED (
    SELECT * FROM (SELECT * FROM urgent UNION ALL SELECT * FROM others) AS u LIMIT {size}),
taken AS ({claim_set} FROM c WHERE w.seq = c.seq {claim_taken})
INSERT INTO work_event ({event_columns}) SELECT {claim_logged} FROM taken

-- name: work_take
-- A unit that this transaction has just made, claimed at once.
-- in: as work_claim, but $1 is its work_id
WITH c AS MATERIALIZED (
    SELECT w.seq, {lease_terms}, {claim_clocks} {take_from} FOR UPDATE OF w SKIP LOCKED),
taken AS ({claim_set} FROM c WHERE w.seq = c.seq {claim_taken})
INSERT INTO work_event ({event_columns}) SELECT {claim_logged} FROM taken

-- name: work_claim_lone
-- The short way of a claim of one returns the row that it took. It takes none where a policy is
-- set, or where the first row is under a limit or too late. Joins and no subqueries: PostgreSQL
-- walks a statement with one from end to end each time.
-- in: as work_claim    out: row
WITH picked AS MATERIALIZED (
    SELECT k.*, st.incarnation AS store
      FROM (SELECT w.seq, w.generation, w.attempt_count + 1 AS attempt,
                   w.lease_fence + 1 AS fence, {log_place} AS place,
                   CASE WHEN w.limit_name IS NULL THEN coalesce(w.deadline_at, 9223372036854775807)
                        ELSE 0 END AS until,
                   hf_now() AS now, hf_lease_now() AS lease_now
            {claim_queue} {claim_order} 1 FOR UPDATE OF w SKIP LOCKED) AS k
      JOIN hf_store st ON st.id = 1 AND NOT st.policies
     WHERE k.until > k.now),
noted AS (
INSERT INTO work_event ({event_columns})
SELECT hf_next_id(), c.seq, c.now, c.place, c.generation, c.attempt, c.fence, {claim_event},
       '{"lease":{"expires_at":' || c.lease_now + c.ttl_ms || ',"fence":' || c.fence
       || ',"grace_ms":' || c.grace_ms || $9 || c.ttl_ms || '}}', $10::text
  FROM {claim_lone})
{claim_set} FROM {claim_lone} JOIN work_spec s ON s.seq = c.seq WHERE w.seq = c.seq
RETURNING {row}, c.ttl_ms

-- What was picked, and what is alike for all: that is put in where it is used, and carried nowhere.
-- fragment: claim_lone
picked CROSS JOIN LATERAL (SELECT picked.*, coalesce($5::bigint, $11) AS ttl_ms,
                                  $12::bigint AS grace_ms) AS c

-- fragment: claim_clocks
(SELECT hf_now()) AS now, (SELECT hf_lease_now()) AS lease_now, hf_incarnation() AS store

-- fragment: claim_set
UPDATE work_state AS w
   SET status = 'running', status_reason = NULL, owner = $2, owner_incarnation = $3,
       claim_group = $4, lease_fence = w.lease_fence + 1, lease_incarnation = c.store,
       lease_ttl_ms = c.ttl_ms, grace_ms = c.grace_ms,
       lease_expires_at = c.lease_now + c.ttl_ms,
       lease_check_at = c.lease_now + c.ttl_ms
                      + CASE WHEN w.disposition = 'expire' THEN c.grace_ms ELSE 0 END,
       holder = $6, attempt_count = w.attempt_count + 1, started_at = c.now,
       first_started_at = coalesce(w.first_started_at, c.now), active_at = c.now,
       deadline_at = c.now + w.exec_timeout_ms, wake_at = c.now + w.exec_timeout_ms,
       updated_at = c.now, revision = w.revision + 1,
       log_xid = greatest(txid_current(), log_xid), vouched = vouched + 1

-- fragment: claim_taken
RETURNING w.seq, w.generation, w.attempt_count, w.lease_fence, w.lease_expires_at, w.grace_ms,
          w.lease_ttl_ms, w.log_xid, w.started_at

-- fragment: claim_event
'claimed'::text, 'queued'::text, 'running'::text, $7::text, $8::text, NULL::text

-- fragment: claim_logged
hf_next_id(), seq, started_at, log_xid, generation, attempt_count, lease_fence, 'claimed'::text,
'queued'::text, 'running'::text, $7::text, $8::text, NULL::text,
'{"lease":{"expires_at":' || lease_expires_at || ',"fence":' || lease_fence || ',"grace_ms":'
|| grace_ms || $9 || lease_ttl_ms || '}}', $10::text

-- name: claim_reads
-- columns: queues, timers
-- out: index entries that this session has read so far: of queues, of leases and wake-ups
SELECT pg_stat_get_xact_tuples_returned('work_claim'::regclass),
       pg_stat_get_xact_tuples_returned('work_lease'::regclass)
       + pg_stat_get_xact_tuples_returned('work_wake'::regclass)

-- A claim under a nonce of its caller takes rows once, also when the same request runs
-- twice at one time. One of the two waits, and then sees what the other took.

-- name: claim_lock
-- in: $1 owner, $2 nonce
SELECT 1 FROM pg_advisory_xact_lock(hashtextextended($1::text || ' ' || $2::text, 0))
