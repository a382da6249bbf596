-- The ledger's statements. Reading: one fragment names the columns of a row once.

-- fragment: row
{row_numbers} w.lease_expires_at - hf_lease_now(), {row_more_numbers}, {row_texts}

-- What is left of the lease comes between the two parts of the numbers.
-- fragment: row_numbers
w.seq, w.priority, w.generation, w.attempt_count, w.failures, w.max_attempts, w.due_at,
w.next_retry_at, w.deadline_at, w.start_timeout_ms, w.exec_timeout_ms, w.lease_fence,
w.lease_ttl_ms, w.lease_expires_at,

-- fragment: row_more_numbers
w.escalate_at, w.active_at, w.first_started_at, w.started_at, w.finished_at, s.created_at,
w.updated_at, w.revision, w.lease_store, w.grace_ms, w.lease_check_at, w.session_fence,
w.fair_tag, w.fair_weight, w.crashes, w.crashed_at

-- fragment: row_texts
s.work_id, s.tenant, s.source_system, s.source_id,
nullif(s.source_run_id, ''), w.kind, w.queue, w.lane_key, w.dedup_key,
w.limit_name, w.fair_key, s.idempotency_key, s.ref, s.parent_work_id, s.correlation_id,
w.session_id, w.status, w.status_reason, w.gate, w.disposition, w.owner, w.owner_incarnation,
w.holder, w.waiting_kind, w.waiting_ref, w.escalate, w.resume_payload, w.error_class, w.result,
s.payload, s.payload_ref, s.retry_policy, w.close_rule, w.cancel_request, w.abandon_request,
w.claim_group, w.settled_token, w.settled_verb, w.wake_session

-- fragment: row_from
work_state w JOIN work_spec s ON s.seq = w.seq

-- name: work_by_id
-- in: $1 work_id
SELECT {row} FROM {row_from} WHERE s.work_id = $1

-- name: work_by_prefix
-- in: $1 first id, $2 id past the last; two rows tell that it is ambiguous
SELECT {row} FROM {row_from} WHERE s.work_id >= $1 AND s.work_id < $2 LIMIT 2

-- name: work_by_suffix
-- in: $1 suffix, $2 its length. Walks the id index: for people, not for hot paths.
SELECT {row} FROM {row_from}
 WHERE s.seq IN (SELECT i.seq FROM work_spec i
                  WHERE substr(i.work_id, 1 + length(i.work_id) - $2) = $1 LIMIT 2)

-- name: work_by_source
-- in: $1 tenant, $2 source_system, $3 source_id, $4 source_run_id    out: row, request_hash
SELECT {row}, s.request_hash FROM {row_from}
 WHERE s.source_id = $3 AND s.source_run_id = $4 AND s.source_system = $2
   AND s.tenant = $1

-- name: work_by_idempotency
-- in: $1 tenant, $2 idempotency_key                                  out: row, request_hash
SELECT {row}, s.request_hash FROM {row_from}
 WHERE s.idempotency_key = $2 AND s.tenant = $1

-- name: work_by_dedup
-- in: $1 tenant, $2 dedup_key                                        out: row, request_hash
SELECT {row}, s.request_hash FROM {row_from}
 WHERE w.dedup_key = $2 AND w.tenant = $1 AND w.finished_at IS NULL

-- name: work_by_waiting_ref
-- in: $1 tenant, $2 waiting_ref, $3 waiting_kind or null; two rows tell that it is ambiguous
SELECT {row} FROM {row_from}
 WHERE w.waiting_ref = $2 AND w.waiting_kind IS NOT NULL AND w.tenant = $1
   AND ($3::text IS NULL OR w.waiting_kind = $3) LIMIT 2

-- Writing. A new unit is two rows; the second is made only if the first was. The first is
-- also the unit's first event.

-- Two forms of each: one set at a time, and many sets in one statement (hf_args), which is
-- half as dear a row but dearer for one.

-- fragment: spec_columns
work_id, tenant, source_system, source_id, source_run_id, idempotency_key, request_hash,
ref, parent_work_id, correlation_id, payload, payload_ref, retry_policy, first_status,
actor_kind, actor, note, created_at

-- fragment: state_columns
seq, tenant, source_system, kind, queue, priority, fair_tag, lane_key, dedup_key, session_id,
disposition, close_rule, status, status_reason, gate, max_attempts, due_at, deadline_at,
start_timeout_ms, exec_timeout_ms, waiting_kind, waiting_ref, finished_at, updated_at,
result, wake_at, limit_name, fair_key, fair_weight

-- name: work_insert_spec
-- many: work_insert_specs
-- Values and no SELECT: of what a SELECT inserts SQLite keeps a journal, since a function in it
-- may fail.
-- in: the columns in order
INSERT /*lite OR ROLLBACK*/ INTO work_spec (seq, {spec_columns})
VALUES (hf_next_id(), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
        $17, $18)
ON CONFLICT DO NOTHING

-- name: work_insert_spec_dedup
-- in: as work_insert_spec, $19 dedup_key
INSERT /*lite OR ROLLBACK*/ INTO work_spec (seq, {spec_columns})
SELECT hf_next_id(), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
       $17, $18
 WHERE NOT EXISTS (SELECT 1 FROM work_state d
                    WHERE d.dedup_key = $19 AND d.tenant = $2 AND d.finished_at IS NULL)
ON CONFLICT DO NOTHING

-- name: work_insert_state
-- many: work_insert_states unless $8
-- in: $1 work_id, then the columns in order but seq. Makes no row where the request made none.
INSERT /*lite OR ROLLBACK*/ INTO work_state ({state_columns})
SELECT s.seq, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
       $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29
  FROM work_spec s WHERE s.work_id = $1

-- name: work_insert_specs
-- On PostgreSQL a key that stands refuses them all, and they are made one by one: to look before
-- each row costs a tenth, and is for nothing nearly always. On SQLite a statement of many rows
-- with a function in it keeps a journal of every page that it changes, and keys scatter: so the
-- ids come with the sets.
-- in: sets as of work_insert_spec
-- sets: text text text text text text bytea text text text text text text text text text text bigint
INSERT /*lite OR ROLLBACK*/ INTO work_spec (seq, {spec_columns})
SELECT /*lite a.new_id*//*pg hf_next_id()*/, a.a1, a.a2, a.a3, a.a4, a.a5, a.a6, a.a7, a.a8,
       a.a9, a.a10, a.a11, a.a12, a.a13, a.a14, a.a15, a.a16, a.a17, a.a18
  FROM hf_args a WHERE true
/*lite ON CONFLICT DO NOTHING*/

-- name: work_insert_states
-- in: sets as of work_insert_state
-- sets: text text text text text bigint bigint text text text text text text text text bigint bigint bigint bigint bigint text text bigint bigint text bigint text text bigint
INSERT /*lite OR ROLLBACK*/ INTO work_state ({state_columns}/*pg , vouched*/)
SELECT s.seq, a.a2, a.a3, a.a4, a.a5, a.a6, a.a7, a.a8, a.a9, a.a10, a.a11, a.a12, a.a13,
       a.a14, a.a15, a.a16, a.a17, a.a18, a.a19, a.a20, a.a21, a.a22, a.a23, a.a24, a.a25,
       a.a26, a.a27, a.a28, a.a29/*pg , 1*/
  FROM hf_args a JOIN work_spec s ON s.work_id = a.a1

-- Rows that come under a limit: each is the a30th of it in this batch, and has no gate if so
-- many found room (limit_admit).

-- name: work_insert_limited
-- in: as of work_insert_state, $30 which of its limit
INSERT /*lite OR ROLLBACK*/ INTO work_state ({state_columns})
SELECT s.seq, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
       CASE WHEN $30 <= (SELECT l.room FROM work_limit l WHERE l.name = $27) THEN NULL
            ELSE $15 END,
       $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29
  FROM work_spec s WHERE s.work_id = $1

-- name: work_inserts_limited
-- in: sets as of work_insert_limited; a30 is null for a gate as given
-- sets: text text text text text bigint bigint text text text text text text text text bigint bigint bigint bigint bigint text text bigint bigint text bigint text text bigint bigint
INSERT /*lite OR ROLLBACK*/ INTO work_state ({state_columns}/*pg , vouched*/)
SELECT s.seq, a.a2, a.a3, a.a4, a.a5, a.a6, a.a7, a.a8, a.a9, a.a10, a.a11, a.a12, a.a13,
       a.a14,
       CASE WHEN a.a30 <= (SELECT l.room FROM work_limit l WHERE l.name = a.a27) THEN NULL
            ELSE a.a15 END,
       a.a16, a.a17, a.a18, a.a19, a.a20, a.a21, a.a22, a.a23, a.a24, a.a25,
       a.a26, a.a27, a.a28, a.a29/*pg , 1*/
  FROM hf_args a JOIN work_spec s ON s.work_id = a.a1

-- Most units have nothing but these, and fewer columns are a sixth less of a create. One of them
-- is values too: what a SELECT gives for a table with guards goes to a temporary one first.

-- fragment: plain_columns
seq, tenant, source_system, kind, queue, priority, disposition, status, max_attempts, due_at,
updated_at

-- name: work_insert_state_plain
-- engine: lite
-- :made is the key of the row that the call before made; where it made none the batch fails, since
-- a work_id is no key. (No function: beside a guard SQLite would keep a journal for it.)
-- in: $1 work_id, then the columns in order but seq
INSERT OR ROLLBACK INTO work_state ({plain_columns})
VALUES (coalesce(:made, $1), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)

-- name: work_insert_unit
-- many: work_insert_units_apart
-- Both rows of one plain unit; none where a key stands.
-- engine: pg
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
-- Those of many callers; a key that stands refuses them all.
-- engine: pg
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

-- name: work_insert_states_plain
-- in: sets as of work_insert_state_plain
-- sets: text text text text text bigint text text bigint bigint bigint
INSERT /*lite OR ROLLBACK*/ INTO work_state ({plain_columns}/*pg , vouched*/)
SELECT s.seq, a.a2, a.a3, a.a4, a.a5, a.a6, a.a7, a.a8, a.a9, a.a10, a.a11/*pg , 1*/
  FROM hf_args a JOIN work_spec s ON s.work_id = a.a1

-- The rows of many plain units that differ in nothing but their names and contents, on SQLite:
-- what is alike is bound once, where each value of a set is asked for by a call; and the second row
-- knows the key of the first, unless some request made none.

-- name: work_insert_specs_alike
-- engine: lite
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
-- engine: lite
-- in: $1 tenant, $2 source_system, $3 kind, $4 queue, $5 priority, $6 disposition, $7 status,
--     $8 max_attempts, $9 due_at, $10 updated_at; a1 work_id
INSERT OR ROLLBACK INTO work_state ({plain_columns})
SELECT n.seq, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
  FROM (SELECT coalesce(a.made_id,
                        (SELECT s.seq FROM work_spec s WHERE s.work_id = a.a1)) AS seq
          FROM hf_args a) n
 WHERE n.seq IS NOT NULL

-- Where an event stands in the feed: not before the unit's last one (0001_ledger, work_guard).
-- fragment: log_place
greatest(txid_current(), log_xid)

-- By a statement that vouches for its rows and writes their events itself.
-- fragment: vouched
log_xid = {log_place}, vouched = vouched + 1

-- name: work_insert_units
-- Both rows of many plain units, which differ in nothing but the names and contents of their
-- requests. The second row needs of the first its key only, so that it is not looked up again,
-- and what is alike is sent and read once: a third less than the two statements above.
-- engine: pg
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

-- name: work_write
-- Writes a decided row if nobody has changed it since it was read: the revision covers all
-- but renewals, which touch lease_expires_at alone.
-- in: $1 seq, $2 revision read, $3 lease_expires_at read, then the columns in order
UPDATE /*lite OR ROLLBACK*/ work_state
   SET status = $4, status_reason = $5, gate = $6, generation = $7, attempt_count = $8,
       failures = $9, due_at = $10, next_retry_at = $11, deadline_at = $12, owner = $13,
       owner_incarnation = $14, claim_group = $15, lease_fence = $16, lease_store = $17,
       lease_ttl_ms = $18, grace_ms = $19, lease_expires_at = $20, lease_check_at = $21,
       holder = $22, waiting_kind = $23, waiting_ref = $24, escalate_at = $25,
       escalate = $26, resume_payload = $27, error_class = $28, result = $29,
       cancel_request = $30, abandon_request = $31, active_at = $32,
       first_started_at = $33, started_at = $34, finished_at = $35, settled_token = $36,
       settled_verb = $37, updated_at = $38,
       /*lite event_id = CASE WHEN status = $4 THEN event_id ELSE hf_next_id() END,*/
       /*pg log_xid = {log_place},*/
       event_type = $39, actor_kind = $40,
       actor = $41, message = $42, note = $43, correlation_id = $44,
       wake_at = $45, crashes = $46, crashed_at = $47, revision = revision + 1
 WHERE seq = $1 AND revision = $2 AND lease_expires_at IS NOT DISTINCT FROM $3

-- Rows are locked in the order of their keys, so that two batches never wait for each other.
-- fragment: sets_in_order
/*pg (SELECT * FROM*/ hf_args a /*pg ORDER BY a.a1) AS a*/

-- fragment: settle_always
settled_verb = 'close_out', finished_at = hf_now(), updated_at = hf_now(),
deadline_at = NULL, wake_at = NULL, owner = NULL, owner_incarnation = NULL,
claim_group = NULL, lease_store = NULL, lease_ttl_ms = NULL, grace_ms = NULL,
lease_expires_at = NULL, lease_check_at = NULL, holder = NULL, revision = revision + 1

-- fragment: settle_guard
work_state.seq = s.seq AND work_state.status = 'running'
AND work_state.claim_group = a.a4 AND work_state.lease_fence = a.a3
AND work_state.lease_store = a.a2 AND work_state.lease_store = hf_incarnation()
AND work_state.close_rule IS NULL AND work_state.session_id IS NULL
AND work_state.dedup_key IS NULL AND work_state.wake_session IS NULL
AND work_state.lane_key IS NULL AND work_state.limit_name IS NULL

-- What the guard work_moved writes by itself. A row does not keep it.
-- fragment: note_of_plain_end
format('{"lease_released":{"fence":%d},"status":"%s"}', lease_fence, a.a5)

-- fragment: settle_set
/*pg WITH settled AS (*/
UPDATE /*lite OR ROLLBACK*/ work_state
   SET status = a.a5, status_reason = a.a6, error_class = a.a7, result = a.a8,
       settled_token = a.a9, {settle_always}
/*lite , event_id = hf_next_id(), event_type = 'close_out',
       actor_kind = a.a10, actor = a.a11, message = a.a12,
       note = nullif(a.a13, {note_of_plain_end}), correlation_id = a.a14
*//*pg , {vouched}
*/

-- fragment: settle_from
FROM {sets_in_order} JOIN work_spec s ON s.work_id = a.a1
 WHERE {settle_guard}

-- fragment: settle
{settle_set}
{settle_from}

-- All of them, in the table's order, and what is inserted of their types: else PostgreSQL goes
-- through the row once more.
-- fragment: event_columns
event_id, seq, created_at, xid, generation, attempt, fence, event_type, from_status, to_status,
actor_kind, actor, message, payload, correlation_id

-- On PostgreSQL the events of close-outs are written by their own statement.
-- fragment: settle_log
/*pg RETURNING work_state.seq, status, generation, attempt_count, lease_fence, log_xid,
               finished_at, a.a10, a.a11, a.a12, a.a13, a.a14)
INSERT INTO work_event ({event_columns})
SELECT hf_next_id(), seq, finished_at, log_xid, generation, attempt_count, lease_fence,
       'close_out'::text, 'running'::text, status, a10, a11, a12, a13, a14
  FROM settled
*/

-- name: work_settle
-- Holders' close-outs without reading first, all sets in one statement. A row that does not
-- match is told apart by the general way, and so are rows under a limit or of a lane: their end
-- lets others go on.
-- in: a1 work_id, a2 store, a3 fence, a4 nonce, a5 status, a6 status_reason, a7 error_class,
--     a8 result, a9 settled_token, a10 actor_kind, a11 actor, a12 message, a13 note,
--     a14 correlation_id
-- sets: text bigint bigint text text text text text text text text text text text
{settle}
{settle_log}

-- name: work_settle_alike
-- engine: lite
-- The same for many that end alike, as most do. SQLite keeps all that an UPDATE ... FROM sets,
-- row by row, before it writes the first; here only the keys of the rows.
-- in: as work_settle; a5 to a8 and a10 to a14 are those of the first set
-- sets: text bigint bigint text text text text text text text text text text text
UPDATE OR ROLLBACK work_state
   SET status = (SELECT f.a5 FROM hf_args f LIMIT 1),
       status_reason = (SELECT f.a6 FROM hf_args f LIMIT 1),
       error_class = (SELECT f.a7 FROM hf_args f LIMIT 1),
       result = (SELECT f.a8 FROM hf_args f LIMIT 1),
       settled_token = format('hf1.%d.%d.%s', lease_store, lease_fence, claim_group),
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

-- Lanes. They follow every write of a row with a lane key, in its transaction. They raise no
-- revision: a change of another row in the same batch must still find the row it read, and a
-- decision on a gate that has moved is stopped by the index work_lane_slot.

-- name: lane_lock
-- Before any of a lane's rows is written: on PostgreSQL two transactions would else each see the
-- slot free, and give it to two rows.
-- in: $1 lane_key, $2 tenant
/*lite SELECT 1 WHERE $1 IS NULL AND $2 IS NULL*/
/*pg SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '/' || $2 || '/' || $1, 7))*/

-- name: lane_yield
-- A row that goes straight to running takes the slot from one that is only claimable.
-- in: $1 lane_key, $2 tenant, $3 seq of the row that takes it
UPDATE /*lite OR ROLLBACK*/ work_state
   SET gate = 'lane'
 WHERE lane_key = $1 AND tenant = $2 AND gate IS NULL AND status = 'queued' AND seq <> $3

-- name: lane_displace
-- A waiting row that comes first takes the slot from one that is only claimable.
-- in: $1 lane_key, $2 tenant
UPDATE /*lite OR ROLLBACK*/ work_state
   SET gate = 'lane'
 WHERE lane_key = $1 AND tenant = $2 AND gate IS NULL AND status = 'queued'
   AND (priority, fair_tag, seq)
     > (SELECT n.priority, n.fair_tag, n.seq FROM work_state n
         WHERE n.lane_key = $1 AND n.tenant = $2 AND n.gate = 'lane'
         ORDER BY n.priority, n.fair_tag, n.seq LIMIT 1)

-- name: lane_promote
-- A free slot goes to the first waiting row.
-- in: $1 lane_key, $2 tenant
UPDATE /*lite OR ROLLBACK*/ work_state
   SET gate = NULL
 WHERE seq = (SELECT n.seq FROM work_state n
               WHERE n.lane_key = $1 AND n.tenant = $2 AND n.gate = 'lane'
               ORDER BY n.priority, n.fair_tag, n.seq LIMIT 1)
   AND NOT EXISTS (SELECT 1 FROM work_state t
                    WHERE t.lane_key = $1 AND t.tenant = $2 AND t.gate IS NULL
                      AND (t.status = 'queued' OR t.status = 'running'))

-- name: work_renew
-- in: $1 work_id, $2 store, $3 fence, $4 nonce, $5 ttl_ms or null
-- sets: text bigint bigint text bigint
UPDATE /*lite OR ROLLBACK*/ work_state
   SET lease_expires_at = /*lite max*//*pg greatest*/(lease_expires_at,
           hf_lease_now() + coalesce(/*lite $5*//*pg a.a5*/, lease_ttl_ms))
/*pg FROM {sets_in_order} JOIN work_spec s ON s.work_id = a.a1
*/
 WHERE /*lite seq = (SELECT s.seq FROM work_spec s WHERE s.work_id = $1)
   AND claim_group = $4 AND lease_fence = $3 AND lease_store = $2
*//*pg work_state.seq = s.seq
   AND claim_group = a.a4 AND lease_fence = a.a3 AND lease_store = a.a2
*/ AND status = 'running' AND lease_store = hf_incarnation()
   AND lease_expires_at IS NOT NULL

-- fragment: owned
owner = $1 AND status = 'running' AND lease_expires_at IS NOT NULL
AND lease_store = hf_incarnation()
AND ($2::text IS NULL OR owner_incarnation = $2)
AND ($3::bigint IS NULL OR coalesce(active_at, started_at) >= hf_now() - $3)

-- name: work_renew_all
-- A row that somebody has locked is left out, and waits for nobody.
-- in: $1 owner, $2 incarnation or null, $3 longest time since its activity or null    out: seq
UPDATE /*lite OR ROLLBACK*/ work_state
   SET lease_expires_at = /*lite max*//*pg greatest*/(lease_expires_at,
                                                      hf_lease_now() + lease_ttl_ms)
 WHERE /*lite {owned}*//*pg seq IN (SELECT seq FROM work_state WHERE {owned}
                                     ORDER BY seq FOR NO KEY UPDATE SKIP LOCKED)*/
RETURNING seq

-- name: work_owned
-- in: $1 owner, $2 incarnation or null, $3 longest time since its activity or null
SELECT {row} FROM {row_from}
 WHERE {owned}
 ORDER BY w.seq

-- Events that are no transition.

-- name: event_append
-- in: $1 seq, $2 event_type, $3 actor_kind, $4 actor, $5 message, $6 payload,
--     $7 correlation_id
INSERT /*lite OR ROLLBACK*/ INTO work_event (/*pg xid,*/ event_id, seq, event_type, generation,
                        attempt, fence, actor_kind, actor, message, payload,
                        correlation_id, created_at)
SELECT /*pg {log_place},*/ hf_next_id(), w.seq, $2, w.generation, w.attempt_count,
       w.lease_fence, $3, $4, $5, $6, $7, hf_now()
  FROM work_state w WHERE w.seq = $1

-- name: event_append_rare
-- in: as event_append, $8 how long one such event of a row keeps others away, ms
INSERT /*lite OR ROLLBACK*/ INTO work_event (/*pg xid,*/ event_id, seq, event_type, generation,
                        attempt, fence, actor_kind, actor, message, payload,
                        correlation_id, created_at)
SELECT /*pg {log_place},*/ hf_next_id(), w.seq, $2, w.generation, w.attempt_count,
       w.lease_fence, $3, $4, $5, $6, $7, hf_now()
  FROM work_state w
 WHERE w.seq = $1
   AND NOT EXISTS (SELECT 1 FROM work_event e
                    WHERE e.seq = $1 AND e.event_type = $2 AND e.created_at > hf_now() - $8)

-- name: event_renewed
-- A sample: at most one in three and a third terms, that is every tenth renewal.
-- in: $1 work_id, $2 nonce, $3 actor_kind, $4 actor, $5 correlation_id, $6 store, $7 fence
INSERT /*lite OR ROLLBACK*/ INTO work_event (/*pg xid,*/ event_id, seq, event_type, generation,
                        attempt, fence, actor_kind, actor, correlation_id, created_at)
SELECT /*pg {log_place},*/ hf_next_id(), w.seq, 'lease_renewed', w.generation,
       w.attempt_count, w.lease_fence, $3, $4, $5, hf_now()
  FROM work_state w
 WHERE w.seq = (SELECT s.seq FROM work_spec s WHERE s.work_id = $1)
   AND w.status = 'running' AND w.claim_group = $2 AND w.lease_fence = $7
   AND w.lease_store = $6 AND w.lease_store = hf_incarnation()
   AND NOT EXISTS (SELECT 1 FROM work_event e
                    WHERE e.seq = w.seq AND e.event_type = 'lease_renewed'
                      AND e.created_at > hf_now() - w.lease_ttl_ms * 10 / 3)

-- name: event_renewed_all
-- in: $1 owner, $2 incarnation or null, $3 longest time since its activity or null, $4 actor_kind, $5 actor,
--     $6 correlation_id
INSERT /*lite OR ROLLBACK*/ INTO work_event (/*pg xid,*/ event_id, seq, event_type, generation,
                        attempt, fence, actor_kind, actor, correlation_id, created_at)
SELECT /*pg {log_place},*/ hf_next_id(), w.seq, 'lease_renewed', w.generation,
       w.attempt_count, w.lease_fence, $4, $5, $6, hf_now()
  FROM work_state w
 WHERE {owned}
   AND NOT EXISTS (SELECT 1 FROM work_event e
                    WHERE e.seq = w.seq AND e.event_type = 'lease_renewed'
                      AND e.created_at > hf_now() - w.lease_ttl_ms * 10 / 3)

-- name: event_trail
-- in: $1 work_id, $2 after event_id, $3 limit of events; an event may show as several rows
SELECT event_id, work_id, event_type, from_status, to_status, generation, attempt, fence,
       actor_kind, actor, message, payload, correlation_id, created_at
  FROM runtime_work_event
 WHERE work_id = $1
   AND event_id IN (SELECT t.id FROM (SELECT f.seq AS id FROM work_spec f
                                       WHERE f.work_id = $1 AND f.seq > $2
                                      UNION ALL
                                      SELECT e.event_id
                                        FROM work_event e
                                       WHERE e.seq = (SELECT s.seq FROM work_spec s
                                                       WHERE s.work_id = $1)
                                         AND e.event_id > $2) AS t
                     ORDER BY t.id LIMIT $3)
 ORDER BY event_id, part

-- Sweeping: candidates only; what is done to each is decided by core.

-- name: sweep_candidates
-- in: $1 limit
SELECT {row} FROM {row_from}
 WHERE w.seq IN (
    SELECT seq FROM (SELECT seq FROM work_state WHERE lease_check_at <= hf_lease_now()
                      ORDER BY lease_check_at LIMIT $1) AS lapsed
    UNION SELECT seq FROM (SELECT seq FROM work_state WHERE wake_at <= hf_now()
                      ORDER BY wake_at LIMIT $1) AS due)
 ORDER BY w.seq LIMIT $1

-- name: sweep_later
-- A candidate that nothing is to be done about is looked at again later. What fell due after the
-- moments by which it was judged stays as it is, and the next sweep finds it: on PostgreSQL the
-- clock goes on between the statement that found the candidate and that moment.
-- in: $1 seq, $2 revision, $3 how much later, ms, $4 judged at, wall, $5 judged at, lease clock
UPDATE /*lite OR ROLLBACK*/ work_state
   SET wake_at = CASE WHEN wake_at <= $4 THEN hf_now() + $3 ELSE wake_at END,
       lease_check_at = CASE WHEN lease_check_at <= $5
                             THEN hf_lease_now() + $3 ELSE lease_check_at END
 WHERE seq = $1 AND revision = $2

-- name: sweep_holders
-- in: $1 limit, $2 after this one    out: distinct holders of running and of waiting
-- owner_bound rows, and of sessions, a page in their order
SELECT holder FROM work_state WHERE owner IS NOT NULL AND holder IS NOT NULL AND holder > $2
UNION SELECT holder FROM session WHERE holder > $2
 ORDER BY holder LIMIT $1

-- name: sweep_held_by
-- in: $1 holder, $2 limit
SELECT {row} FROM {row_from}
 WHERE w.owner IS NOT NULL AND w.holder = $1 LIMIT $2

-- name: sweep_next
-- out: wall time at which something is next due, null when nothing is; lease time likewise
SELECT (SELECT min(wake_at) FROM work_state WHERE wake_at IS NOT NULL),
       (SELECT min(lease_check_at) FROM work_state WHERE lease_check_at IS NOT NULL),
       (SELECT min(wake_at) FROM work_limit WHERE wake_at IS NOT NULL)

-- Reading many.

-- fragment: list_where
(w.seq > $1 AND ($2::text IS NULL OR w.source_system = $2)
 AND ($3::text IS NULL OR w.queue = $3) AND ($4::text IS NULL OR w.kind = $4)
 AND ($5::text IS NULL OR w.owner = $5) AND ($6::text IS NULL OR w.waiting_ref = $6)
 AND ($7::bigint IS NULL OR w.updated_at <= hf_now() - $7)
 AND ($8::bigint = 0 OR w.lease_expires_at <= hf_lease_now())
 AND ($9::text IS NULL OR w.tenant = $9)
 AND ($12::text IS NULL OR w.gate = $12))

-- fragment: listed_statuses
(SELECT /*lite value FROM json_each($11)*//*pg jsonb_array_elements_text($11::jsonb)*/)

-- Every row that is not finished stands in one of the small indexes: claimable, gated,
-- leased, waiting, or due for a retry. So none is needed for all of them, which every
-- transaction would have to keep.
-- fragment: open_rows
(SELECT seq FROM work_state WHERE status = 'queued' AND gate IS NULL
 UNION ALL SELECT seq FROM work_state WHERE gate = 'due' OR gate = 'lane' OR gate = 'held'
 UNION ALL SELECT seq FROM work_state WHERE gate = 'limit' OR gate = 'rate'
 UNION ALL SELECT seq FROM work_state WHERE owner IS NOT NULL AND status = 'running'
 UNION ALL SELECT seq FROM work_state WHERE waiting_kind IS NOT NULL
 UNION ALL SELECT seq FROM work_state
            WHERE wake_at IS NOT NULL AND status = 'retry_scheduled')

-- name: work_list_open
-- in: $1 after seq, $2 source, $3 queue, $4 kind, $5 owner, $6 waiting_ref,
--     $7 not updated since, $8 silent only, $9 tenant or null, $10 limit,
--     $11 statuses as a JSON array or null, $12 gate or null
SELECT {row} FROM {row_from}
 WHERE w.seq IN {open_rows} AND {list_where}
   AND ($11::text IS NULL OR w.status IN {listed_statuses})
 ORDER BY w.seq LIMIT $10

-- name: work_list_finished
-- in: as work_list_open, but $11 is one terminal status
SELECT {row} FROM {row_from}
 WHERE w.finished_at IS NOT NULL AND w.status = $11 AND {list_where}
 ORDER BY w.seq LIMIT $10

-- name: work_list_any
-- in: as work_list_open
SELECT {row} FROM {row_from}
 WHERE {list_where} AND w.status IN {listed_statuses}
 ORDER BY w.seq LIMIT $10

-- name: work_counts
-- in: $1 tenant, null for all    out: status, source_system, rows, of them gated, silent,
-- lapsing
SELECT status, source_system, count(*), count(gate),
       sum(CASE WHEN lease_expires_at <= hf_lease_now() THEN 1 ELSE 0 END),
       sum(CASE WHEN lease_expires_at > hf_lease_now()
                 AND 3 * (lease_expires_at - hf_lease_now()) < lease_ttl_ms
                THEN 1 ELSE 0 END)
  FROM work_state WHERE seq IN {open_rows} AND ($1::text IS NULL OR tenant = $1)
 GROUP BY status, source_system

-- name: work_ages
-- in: $1 tenant, null for all
-- out: oldest claimable due_at, oldest started_at, next wait deadline, next retry
SELECT (SELECT min(due_at) FROM work_state
         WHERE status = 'queued' AND gate IS NULL AND ($1::text IS NULL OR tenant = $1)),
       (SELECT min(started_at) FROM work_state
         WHERE owner IS NOT NULL AND status = 'running' AND ($1::text IS NULL OR tenant = $1)),
       (SELECT min(deadline_at) FROM work_state
         WHERE waiting_kind IS NOT NULL AND ($1::text IS NULL OR tenant = $1)),
       (SELECT min(next_retry_at) FROM work_state
         WHERE wake_at IS NOT NULL AND status = 'retry_scheduled'
           AND ($1::text IS NULL OR tenant = $1))

-- name: work_dump
SELECT {row} FROM {row_from} ORDER BY w.seq

-- name: last_id
-- engine: lite
-- What hf_next_id() goes on from: seq and event_id are numbers of one sequence. (The last of an
-- order, and not max(), which is a step and an end of its own, with memory for both.)
-- out: the largest of both
SELECT max(coalesce((SELECT event_id FROM work_event ORDER BY event_id DESC LIMIT 1), 0),
           coalesce((SELECT seq FROM work_spec ORDER BY seq DESC LIMIT 1), 0))

-- name: store_lock
-- Before a bump: who writes now ends first, and who comes later sees the new number.
/*lite SELECT 1*//*pg LOCK TABLE work_state, session IN EXCLUSIVE MODE*/

-- name: store_bump
-- A new history by an operator's word.
-- out: incarnation
UPDATE /*lite OR ROLLBACK*/ hf_store
   SET incarnation = incarnation + 1
 WHERE id = 1
RETURNING incarnation

-- name: store_log
-- in: $1 what, $2 detail
INSERT /*lite OR ROLLBACK*/ INTO hf_store_log (at, what, detail) VALUES (hf_now(), $1, $2)

-- name: store_log_read
-- in: $1 before log_id, $2 limit    out: log_id, at, what, detail
SELECT log_id, at, what, detail FROM hf_store_log
 WHERE log_id < $1 ORDER BY log_id DESC LIMIT $2
