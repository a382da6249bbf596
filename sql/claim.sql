-- Claiming. A claim's nonce marks the rows it took; they are read back by it.

-- name: work_attention
-- in: $1 wall and $2 lease clock: what is due before has been seen to
-- out: 1 if a sweep would find something that could become claimable
SELECT EXISTS (SELECT 1 FROM work_state WHERE wake_at >= $1 AND wake_at <= hf_now())
    OR EXISTS (SELECT 1 FROM work_state
                WHERE lease_check_at >= $2 AND lease_check_at <= hf_lease_now())
    OR EXISTS (SELECT 1 FROM work_limit WHERE wake_at <= hf_now())

-- What a row's lease lasts, and its grace. A policy that nobody has set is not looked for.
-- fragment: ttl_of_row
CASE WHEN $5::bigint IS NOT NULL THEN $5
     WHEN EXISTS (SELECT 1 FROM work_policy) THEN
     coalesce((SELECT p.ttl_ms FROM work_policy p WHERE p.scope = 'kind:' || w.kind),
              (SELECT p.ttl_ms FROM work_policy p WHERE p.scope = 'source:' || w.source_system),
              (SELECT p.ttl_ms FROM work_policy p WHERE p.scope = 'default'), $11)
     ELSE $11 END

-- fragment: grace_of_row
CASE WHEN EXISTS (SELECT 1 FROM work_policy) THEN
     coalesce((SELECT p.grace_ms FROM work_policy p WHERE p.scope = 'kind:' || w.kind),
              (SELECT p.grace_ms FROM work_policy p WHERE p.scope = 'source:' || w.source_system),
              (SELECT p.grace_ms FROM work_policy p WHERE p.scope = 'default'), $12)
     ELSE $12 END

-- PostgreSQL locks what it takes, in a table of its own; SQLite is faster with a list of keys,
-- and then works the timing out where it is used.
-- fragment: claim_ttl
/*lite {ttl_of_row}*//*pg c.ttl_ms*/

-- fragment: claim_grace
/*lite {grace_of_row}*//*pg c.grace_ms*/

-- The clocks are named where the rows are picked: ten subqueries were a tenth of a claim of one.
-- fragment: claim_now
/*lite hf_now()*//*pg c.now*/

-- fragment: claim_lease_now
/*lite hf_lease_now()*//*pg c.lease_now*/

-- fragment: claim_store
/*lite hf_incarnation()*//*pg c.store*/

-- fragment: claim_clocks
(SELECT hf_now()) AS now, (SELECT hf_lease_now()) AS lease_now, hf_incarnation() AS store

-- fragment: claim_set
UPDATE /*lite OR ROLLBACK*/ work_state AS w
   SET status = 'running', status_reason = NULL, owner = $2, owner_incarnation = $3,
       claim_group = $4, lease_fence = w.lease_fence + 1, lease_store = {claim_store},
       lease_ttl_ms = {claim_ttl}, grace_ms = {claim_grace},
       lease_expires_at = {claim_lease_now} + {claim_ttl},
       lease_check_at = {claim_lease_now} + {claim_ttl}
                      + CASE WHEN w.disposition = 'expire' THEN {claim_grace} ELSE 0 END,
       holder = $6, attempt_count = w.attempt_count + 1, started_at = {claim_now},
       first_started_at = coalesce(w.first_started_at, {claim_now}), active_at = {claim_now},
       deadline_at = {claim_now} + w.exec_timeout_ms,
       wake_at = {claim_now} + w.exec_timeout_ms, updated_at = {claim_now},
       revision = w.revision + 1
/*lite , event_id = hf_next_id(), event_type = 'claimed', actor_kind = $7, actor = $8,
       message = NULL,
       note = CASE WHEN instr($9, '\') > 0 -- a name that JSON escapes: the guard does not
                   THEN format('{"lease":{"expires_at":%d,"fence":%d,"grace_ms":%d%s%d}}',
                               hf_lease_now() + {claim_ttl}, w.lease_fence + 1,
                               {claim_grace}, $9, {claim_ttl}) END,
       correlation_id = $10
*//*pg , {vouched}
*/

-- On PostgreSQL the events of a claim are written by its own statement.
-- fragment: claim_begin
/*pg WITH c AS MATERIALIZED (*/

-- fragment: claim_taken
/*pg FOR UPDATE OF w SKIP LOCKED), taken AS (*/

-- fragment: claim_payload
'{"lease":{"expires_at":' || lease_expires_at || ',"fence":' || lease_fence || ',"grace_ms":'
|| grace_ms || $9 || lease_ttl_ms || '}}'

-- fragment: claim_event
'claimed'::text, 'queued'::text, 'running'::text, $7::text, $8::text, NULL::text

-- fragment: claim_log
/*pg RETURNING w.seq, w.generation, w.attempt_count, w.lease_fence, w.lease_expires_at,
               w.grace_ms, w.lease_ttl_ms, w.log_xid, w.started_at)
INSERT INTO work_event ({event_columns})
SELECT hf_next_id(), seq, started_at, log_xid, generation, attempt_count, lease_fence,
       {claim_event}, {claim_payload}, $10::text
  FROM taken
*/

-- fragment: claim_queue
FROM work_state w WHERE w.status = 'queued' AND w.gate IS NULL AND w.queue = $1

-- fragment: claim_from
{claim_queue}
  AND (w.deadline_at IS NULL OR w.deadline_at > hf_now()) -- else a sweep ends it

-- fragment: claim_order
ORDER BY w.priority, w.fair_tag, w.seq LIMIT

-- fragment: claim_pick
SELECT w.seq
/*pg , {ttl_of_row} AS ttl_ms, {grace_of_row} AS grace_ms, {claim_clocks}*/ {claim_from}

-- name: work_claim
-- engine: pg
-- sizes: 1 10 100
-- in: $1 queue, $2 owner, $3 incarnation, $4 nonce, $5 ttl_ms or null, $6 holder,
--     $7 actor_kind, $8 actor, $9 the middle of the note, $10 correlation_id, $11 ttl_ms and
--     $12 grace_ms where no policy is set
{claim_begin} {claim_pick} {claim_order} {size} {claim_taken}
{claim_set} FROM c WHERE w.seq = c.seq
{claim_log}

-- name: work_claim_some
-- engine: lite
-- Each statement that starts costs SQLite more than another row does, and a number of rows
-- costs it no plan: so here a claim of any size is one.
-- in: as work_claim, $13 how many
{claim_set} WHERE w.seq IN ({claim_pick} {claim_order} $13)

-- name: work_claim_on
-- engine: pg
-- sizes: 1 10 100
-- What is more urgent, from the start; then on from a key. The second is only read as far as
-- the first comes short.
-- in: as work_claim, $13 priority, $14 fair_tag, $15 seq
WITH urgent AS MATERIALIZED (
    {claim_pick} AND w.priority < $13::bigint {claim_order} {size} FOR UPDATE OF w SKIP LOCKED),
others AS MATERIALIZED (
    {claim_pick} AND (w.priority, w.fair_tag, w.seq) >= ($13::bigint, $14::bigint, $15::bigint)
    {claim_order} {size} FOR UPDATE OF w SKIP LOCKED),
c AS MATERIALIZED (
    SELECT * FROM (SELECT * FROM urgent UNION ALL SELECT * FROM others) AS u LIMIT {size}),
taken AS (
{claim_set} FROM c WHERE w.seq = c.seq
{claim_log}

-- What was picked, and what is alike for all: that is put in where it stands, and carried nowhere.
-- fragment: claim_lone
picked CROSS JOIN LATERAL (SELECT picked.*, coalesce($5::bigint, $11) AS ttl_ms,
                                  $12::bigint AS grace_ms) AS c

-- name: work_claim_lone
-- The short way of a claim of one returns the row that it took. It takes none where a policy is
-- set, or where the first row is under a limit or too late. Joins and no subqueries: PostgreSQL
-- walks a statement with one from end to end each time.
-- engine: pg
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
RETURNING {row_numbers} c.ttl_ms, {row_more_numbers}, {row_texts}

-- name: claim_reads
-- engine: pg
-- out: index entries that this session has read so far: of queues, of leases and wake-ups
SELECT pg_stat_get_xact_tuples_returned('work_claim'::regclass),
       pg_stat_get_xact_tuples_returned('work_lease'::regclass)
       + pg_stat_get_xact_tuples_returned('work_wake'::regclass)

-- fragment: claim_kinds
AND w.kind IN (SELECT /*lite value FROM json_each($13)*/
                      /*pg jsonb_array_elements_text($13::jsonb)*/)

-- name: work_claim_kinds
-- engine: pg
-- sizes: 1 10 100
-- in: as work_claim, $13 kinds as a JSON array
{claim_begin} {claim_pick} {claim_kinds} {claim_order} {size} {claim_taken}
{claim_set} FROM c WHERE w.seq = c.seq
{claim_log}

-- name: work_claim_some_kinds
-- engine: lite
-- in: as work_claim, $13 kinds as a JSON array, $14 how many
{claim_set} WHERE w.seq IN ({claim_pick} {claim_kinds} {claim_order} $14)

-- name: work_claim_some_kind
-- engine: lite
-- in: as work_claim, $13 the one kind, $14 how many
{claim_set} WHERE w.seq IN ({claim_pick} AND w.kind = $13 {claim_order} $14)

-- fragment: take_from
FROM work_state w
WHERE w.seq = (SELECT s.seq FROM work_spec s WHERE s.work_id = $1)
  AND w.status = 'queued' AND w.gate IS NULL AND w.attempt_count = 0

-- name: work_take
-- A unit that this transaction has just made, claimed at once.
-- in: as work_claim, but $1 is its work_id
/*pg {claim_begin}
SELECT w.seq, {ttl_of_row} AS ttl_ms, {grace_of_row} AS grace_ms, {claim_clocks}
{take_from} {claim_taken}*/
{claim_set}
/*lite WHERE w.seq IN (SELECT w.seq {take_from})*/
/*pg FROM c WHERE w.seq = c.seq*/
{claim_log}

-- name: work_claimed
-- SQLite would copy every row once more to put them in order; whoever shows them does.
-- in: $1 owner, $2 nonce, $3 incarnation
SELECT {row} FROM {row_from}
 WHERE w.owner = $1 AND w.claim_group = $2 AND w.status = 'running'
   AND w.owner_incarnation = $3 AND w.lease_store = hf_incarnation()
/*pg ORDER BY w.priority, w.fair_tag, w.seq*/

-- A claim under a nonce that its caller gave takes rows once, also when the same request runs
-- twice at one time. On PostgreSQL one of the two waits, and then sees what the other took.

-- name: claim_lock
-- in: $1 owner, $2 nonce
/*lite SELECT 1 WHERE $1 IS NULL AND $2 IS NULL*/
/*pg SELECT 1 FROM pg_advisory_xact_lock(hashtextextended($1::text || ' ' || $2::text, 0))*/

-- name: claim_fresh
-- in: $1 owner, $2 nonce, $3 incarnation
SELECT hf_expect(count(*), 0) FROM work_state w
 WHERE w.owner = $1 AND w.claim_group = $2 AND w.status = 'running'
   AND w.owner_incarnation = $3 AND w.lease_store = hf_incarnation()
