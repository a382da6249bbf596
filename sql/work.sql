-- The ledger's statements. Reading: one fragment names the columns of a row once.

-- The columns of struct hf_work in its order, except what is left of the lease; then those that
-- only the store reads.
-- fragment: row
s.work_id, s.tenant, s.source_system, s.source_id, nullif(s.source_run_id, '') AS source_run_id,
w.kind, w.queue, w.lane_key, w.dedup_key, w.limit_name, w.fair_key, s.idempotency_key, s.ref,
s.parent_work_id, s.correlation_id, w.session_id, w.status, w.status_reason, w.gate, w.disposition,
w.priority, w.generation, w.attempt_count, w.failures, w.max_attempts, w.due_at, w.next_retry_at,
w.deadline_at, w.start_timeout_ms, w.exec_timeout_ms, w.owner, w.owner_incarnation, w.lease_fence,
w.lease_ttl_ms, w.lease_expires_at, w.holder, w.waiting_kind, w.waiting_ref, w.escalate_at,
w.escalate, w.resume_payload, w.error_class, w.result, s.payload, s.payload_ref, s.retry_policy,
w.close_rule, w.cancel_request, w.abandon_request, w.active_at, w.first_started_at, w.started_at,
w.finished_at, w.acked_at, s.created_at, w.updated_at, w.seq, w.revision, w.lease_incarnation, w.grace_ms,
w.lease_check_at, w.session_fence, w.fair_tag, w.fair_weight, w.crashes, w.crashed_at,
w.claim_group, w.settled_token, w.settled_verb, w.wake_session

-- fragment: lease_left
w.lease_expires_at - hf_lease_now() AS lease_remaining_ms

-- fragment: row_from
work_state w JOIN work_spec s ON s.seq = w.seq

-- name: work_by_id
-- in: $1 work_id
SELECT {row}, {lease_left} FROM {row_from} WHERE s.work_id = $1

-- name: work_by_prefix
-- in: $1 first id, $2 id past the last; two rows tell that it is ambiguous
SELECT {row}, {lease_left} FROM {row_from} WHERE s.work_id >= $1 AND s.work_id < $2 LIMIT 2

-- name: work_by_suffix
-- in: $1 suffix, $2 its length. Walks the id index: for people, not for hot paths.
SELECT {row}, {lease_left} FROM {row_from}
 WHERE s.seq IN (SELECT i.seq FROM work_spec i
                  WHERE substr(i.work_id, 1 + length(i.work_id) - $2) = $1 LIMIT 2)

-- name: work_by_source
-- in: $1 tenant, $2 source_system, $3 source_id, $4 source_run_id    out: row, request_hash
SELECT {row}, {lease_left}, s.request_hash FROM {row_from}
 WHERE s.source_id = $3 AND s.source_run_id = $4 AND s.source_system = $2
   AND s.tenant = $1

-- name: work_by_idempotency
-- in: $1 tenant, $2 idempotency_key                                  out: row, request_hash
SELECT {row}, {lease_left}, s.request_hash FROM {row_from}
 WHERE s.idempotency_key = $2 AND s.tenant = $1

-- name: work_by_dedup
-- in: $1 tenant, $2 dedup_key                                        out: row, request_hash
SELECT {row}, {lease_left}, s.request_hash FROM {row_from}
 WHERE w.dedup_key = $2 AND w.tenant = $1 AND w.finished_at IS NULL

-- name: work_by_waiting_ref
-- in: $1 tenant, $2 waiting_ref, $3 waiting_kind or null; two rows tell that it is ambiguous
SELECT {row}, {lease_left} FROM {row_from}
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
-- On PostgreSQL a key that exists refuses them all, and they are made one by one: to look
-- before each row costs a tenth, and is for nothing nearly always. On SQLite a statement
-- of many rows with a function in it keeps a journal of every page that it changes, and
-- keys scatter: so the ids come with the sets.
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

-- Rows that come under a limit: each is the a30th of it in this batch, and has no gate if that
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
-- has values too: what a SELECT returns for a table with guards goes to a temporary one
-- first.
-- fragment: plain_columns
seq, tenant, source_system, kind, queue, priority, disposition, status, max_attempts, due_at,
updated_at

-- name: work_insert_states_plain
-- in: sets as of work_insert_state_plain
-- sets: text text text text text bigint text text bigint bigint bigint
INSERT /*lite OR ROLLBACK*/ INTO work_state ({plain_columns}/*pg , vouched*/)
SELECT s.seq, a.a2, a.a3, a.a4, a.a5, a.a6, a.a7, a.a8, a.a9, a.a10, a.a11/*pg , 1*/
  FROM hf_args a JOIN work_spec s ON s.work_id = a.a1

-- Where an event is in the feed: not before the unit's last one (0001_ledger,
-- work_guard).
-- fragment: log_place
greatest(txid_current(), log_xid)

-- name: work_write
-- Writes a decided row if no caller has changed it since it was read: the revision covers
-- all but renewals, which touch lease_expires_at alone.
-- in: $1 seq, $2 revision read, $3 lease_expires_at read, then the columns in order
UPDATE /*lite OR ROLLBACK*/ work_state
   SET status = $4, status_reason = $5, gate = $6, generation = $7, attempt_count = $8,
       failures = $9, due_at = $10, next_retry_at = $11, deadline_at = $12, owner = $13,
       owner_incarnation = $14, claim_group = $15, lease_fence = $16, lease_incarnation = $17,
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
       wake_at = $45, crashes = $46, crashed_at = $47,
       acked_at = CASE WHEN status = $4 THEN acked_at END, revision = revision + 1
 WHERE seq = $1 AND revision = $2 AND lease_expires_at IS NOT DISTINCT FROM $3

-- fragment: settle_always
settled_verb = 'close_out', finished_at = hf_now(), updated_at = hf_now(),
deadline_at = NULL, wake_at = NULL, owner = NULL, owner_incarnation = NULL,
claim_group = NULL, lease_incarnation = NULL, lease_ttl_ms = NULL, grace_ms = NULL,
lease_expires_at = NULL, lease_check_at = NULL, holder = NULL, revision = revision + 1

-- fragment: settle_guard
work_state.seq = s.seq AND work_state.status = 'running'
AND work_state.claim_group = a.a4 AND work_state.lease_fence = a.a3
AND work_state.lease_incarnation = a.a2 AND work_state.lease_incarnation = hf_incarnation()
AND work_state.close_rule IS NULL AND work_state.session_id IS NULL
AND work_state.dedup_key IS NULL AND work_state.wake_session IS NULL
AND work_state.lane_key IS NULL AND work_state.limit_name IS NULL

-- All of them, in the table's order, each value of its column's type: otherwise PostgreSQL goes
-- through the row once more.
-- fragment: event_columns
event_id, seq, created_at, xid, generation, attempt, fence, event_type, from_status, to_status,
actor_kind, actor, message, payload, correlation_id

-- Lanes. They follow every write of a row with a lane key, in its transaction. They raise no
-- revision: a change of another row in the same batch must still find the row it read, and a
-- decision on a gate that has moved is stopped by the index work_lane_slot.
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

-- fragment: owned
owner = $1 AND status = 'running' AND lease_expires_at IS NOT NULL
AND lease_incarnation = hf_incarnation()
AND ($2::text IS NULL OR owner_incarnation = $2)
AND ($3::bigint IS NULL OR coalesce(active_at, started_at) >= hf_now() - $3)

-- name: work_owned
-- in: $1 owner, $2 incarnation or null, $3 longest time since its activity or null
SELECT {row}, {lease_left} FROM {row_from}
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
   AND w.lease_incarnation = $6 AND w.lease_incarnation = hf_incarnation()
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
SELECT {row}, {lease_left} FROM {row_from}
 WHERE w.seq IN (
    SELECT seq FROM (SELECT seq FROM work_state WHERE lease_check_at <= hf_lease_now()
                      ORDER BY lease_check_at LIMIT $1) AS lapsed
    UNION SELECT seq FROM (SELECT seq FROM work_state WHERE wake_at <= hf_now()
                      ORDER BY wake_at LIMIT $1) AS due)
 ORDER BY w.seq LIMIT $1

-- name: sweep_later
-- A candidate that nothing is to be done about is looked at again later. What fell due after the
-- moments by which it was judged stays as it is, and the next sweep finds it: on PostgreSQL the
-- clock advances between the statement that found the candidate and that moment.
-- in: $1 seq, $2 revision, $3 how much later, ms, $4 judged at, wall, $5 judged at, lease clock
UPDATE /*lite OR ROLLBACK*/ work_state
   SET wake_at = CASE WHEN wake_at <= $4 THEN hf_now() + $3 ELSE wake_at END,
       lease_check_at = CASE WHEN lease_check_at <= $5
                             THEN hf_lease_now() + $3 ELSE lease_check_at END
 WHERE seq = $1 AND revision = $2

-- name: sweep_holders
-- in: $1 limit, $2 after this one    out: distinct holders of running and of waiting
-- owner_bound rows, and of sessions except those that are proven dead, a page in their order
SELECT holder FROM work_state WHERE owner IS NOT NULL AND holder IS NOT NULL AND holder > $2
UNION SELECT holder FROM session WHERE holder > $2 AND lease_check_at > 0
 ORDER BY holder LIMIT $1

-- name: sweep_held_by
-- in: $1 holder, $2 limit
SELECT {row}, {lease_left} FROM {row_from}
 WHERE w.owner IS NOT NULL AND w.holder = $1 LIMIT $2

-- name: sweep_next
-- out: wall time at which something is next due, null when nothing is; lease time likewise
SELECT (SELECT min(wake_at) FROM work_state WHERE wake_at IS NOT NULL) AS wake_at,
       (SELECT min(lease_check_at) FROM work_state
         WHERE lease_check_at IS NOT NULL) AS lease_check_at,
       (SELECT min(wake_at) FROM work_limit WHERE wake_at IS NOT NULL) AS limit_wake_at,
       (SELECT min(check_at) FROM wait WHERE check_at IS NOT NULL) AS wait_check_at

-- Reading many.
-- fragment: list_where
(($2::text IS NULL OR w.source_system = $2)
 AND ($3::text IS NULL OR w.queue = $3) AND ($4::text IS NULL OR w.kind = $4)
 AND ($5::text IS NULL OR w.owner = $5) AND ($6::text IS NULL OR w.waiting_ref = $6)
 AND ($7::bigint IS NULL OR w.updated_at <= hf_now() - $7)
 AND ($8::bigint = 0 OR w.lease_expires_at <= hf_lease_now())
 AND ($9::text IS NULL OR w.tenant = $9)
 AND ($12::text IS NULL OR w.gate = $12)
 AND ($13::text IS NULL OR s.source_id = $13)
 AND ($14::text IS NULL OR s.source_run_id = $14)
 AND ($15::text IS NULL OR s.parent_work_id = $15)
 AND ($16::text IS NULL OR w.session_id = $16) AND ($17::text IS NULL OR w.lane_key = $17)
 AND ($18::text IS NULL OR s.correlation_id = $18)
 AND ($19::text IS NULL OR w.error_class = $19)
 AND ($20::text IS NULL OR w.disposition = $20)
 AND ($29::bigint IS NULL
      OR (w.finished_at IS NOT NULL AND w.acked_at IS NULL AND w.status <> 'done'
          AND w.status <> 'cancelled'))
 AND ($30::text IS NULL OR w.limit_name = $30
      OR w.limit_name = $30 || /*lite char*//*pg chr*/(31) || w.tenant)
 AND ($22::bigint IS NULL OR (CASE WHEN $21::bigint = 1 THEN w.finished_at ELSE s.created_at END) >= hf_now() - $22)
 AND ($23::bigint IS NULL OR (CASE WHEN $21::bigint = 1 THEN w.finished_at ELSE s.created_at END) >= $23)
 AND ($24::bigint IS NULL OR (CASE WHEN $21::bigint = 1 THEN w.finished_at ELSE s.created_at END) < $24)
 AND ($11::text IS NULL OR w.status IN (SELECT /*lite value FROM json_each($11)*/
                                              /*pg jsonb_array_elements_text($11::jsonb)*/))
 AND ($25::text IS NULL
      OR substr(s.work_id, 1, length($25)) = $25
      OR substr(s.work_id, 1 + length(s.work_id) - length($25)) = $25
      OR substr(s.source_id, 1, length($25)) = $25
      OR substr(s.source_id, 1 + length(s.source_id) - length($25)) = $25
      OR substr(w.waiting_ref, 1, length($25)) = $25
      OR substr(w.waiting_ref, 1 + length(w.waiting_ref) - length($25)) = $25))

-- The columns of a row in their order, without those that may be long.
-- fragment: brief_row
s.work_id, s.tenant, s.source_system, s.source_id, nullif(s.source_run_id, '') AS source_run_id,
w.kind, w.queue, w.lane_key, w.dedup_key, w.limit_name, w.fair_key, s.idempotency_key, s.ref,
s.parent_work_id, s.correlation_id, w.session_id, w.status, w.status_reason, w.gate, w.disposition,
w.priority, w.generation, w.attempt_count, w.failures, w.max_attempts, w.due_at, w.next_retry_at,
w.deadline_at, w.start_timeout_ms, w.exec_timeout_ms, w.owner, w.owner_incarnation, w.lease_fence,
w.lease_ttl_ms, w.lease_expires_at, NULL AS holder, w.waiting_kind, w.waiting_ref, w.escalate_at,
w.escalate, NULL AS resume_payload, w.error_class, NULL AS result, NULL AS payload, s.payload_ref,
NULL AS retry_policy, w.close_rule, w.cancel_request, w.abandon_request, w.active_at,
w.first_started_at, w.started_at, w.finished_at, w.acked_at, s.created_at, w.updated_at, w.seq,
w.revision, w.lease_incarnation, w.grace_ms, w.lease_check_at, w.session_fence, w.fair_tag, w.fair_weight,
w.crashes, w.crashed_at, w.claim_group, w.settled_token, w.settled_verb, w.wake_session

-- Every row that is not finished is in one of the small indexes: claimable, gated,
-- leased, waiting, or due for a retry. So no index is needed for all of them, which every
-- transaction would have to keep.
-- fragment: open_rows
(SELECT seq FROM work_state WHERE status = 'queued' AND gate IS NULL
 UNION ALL SELECT seq FROM work_state WHERE gate = 'due' OR gate = 'lane' OR gate = 'held'
 UNION ALL SELECT seq FROM work_state WHERE gate = 'limit' OR gate = 'rate'
 UNION ALL SELECT seq FROM work_state WHERE owner IS NOT NULL AND status = 'running'
 UNION ALL SELECT seq FROM work_state WHERE waiting_kind IS NOT NULL
 UNION ALL SELECT seq FROM work_state
            WHERE wake_at IS NOT NULL AND status = 'retry_scheduled')

-- The same rows with what is counted of them: a row is read where its index entry is found, and not
-- looked up once more by its key.
-- fragment: open_units
(SELECT seq, status, gate, queue, kind, tenant, source_system, due_at, next_retry_at, updated_at,
       waiting_kind, lease_expires_at, lease_ttl_ms
  FROM work_state WHERE status = 'queued' AND gate IS NULL
 UNION ALL
 SELECT seq, status, gate, queue, kind, tenant, source_system, due_at, next_retry_at, updated_at,
       waiting_kind, lease_expires_at, lease_ttl_ms
  FROM work_state WHERE gate = 'due' OR gate = 'lane' OR gate = 'held'
 UNION ALL
 SELECT seq, status, gate, queue, kind, tenant, source_system, due_at, next_retry_at, updated_at,
       waiting_kind, lease_expires_at, lease_ttl_ms
  FROM work_state WHERE gate = 'limit' OR gate = 'rate'
 UNION ALL
 SELECT seq, status, gate, queue, kind, tenant, source_system, due_at, next_retry_at, updated_at,
       waiting_kind, lease_expires_at, lease_ttl_ms
  FROM work_state WHERE owner IS NOT NULL AND status = 'running'
 UNION ALL
 SELECT seq, status, gate, queue, kind, tenant, source_system, due_at, next_retry_at, updated_at,
       waiting_kind, lease_expires_at, lease_ttl_ms
  FROM work_state WHERE waiting_kind IS NOT NULL
 UNION ALL
 SELECT seq, status, gate, queue, kind, tenant, source_system, due_at, next_retry_at, updated_at,
       waiting_kind, lease_expires_at, lease_ttl_ms
  FROM work_state WHERE wake_at IS NOT NULL AND status = 'retry_scheduled')

-- Lists. A page reads the open rows alone where there are few of them; otherwise the rows of a
-- window of 20,000 keys: no page looks at more rows, whatever the filter. The window begins at the
-- first row after the cursor, so that keys without a row cost nothing. A page ends, too, with the
-- row whose texts make $26 bytes: on PostgreSQL no other row is read, on SQLite the driver stops.

-- The open rows, or those of them that are held.
-- fragment: listed_rows
(SELECT seq FROM work_state WHERE $27::bigint = 1 AND status = 'queued' AND gate IS NULL
 UNION ALL SELECT seq FROM work_state
            WHERE $27::bigint = 1 AND (gate = 'due' OR gate = 'lane' OR gate = 'held')
 UNION ALL SELECT seq FROM work_state
            WHERE $27::bigint = 1 AND (gate = 'limit' OR gate = 'rate')
 UNION ALL SELECT seq FROM work_state WHERE owner IS NOT NULL AND status = 'running'
 UNION ALL SELECT seq FROM work_state WHERE waiting_kind IS NOT NULL
 UNION ALL SELECT seq FROM work_state
            WHERE $27::bigint = 1 AND wake_at IS NOT NULL AND status = 'retry_scheduled')

-- name: work_open_count
-- in: $1 at most
SELECT count(*) AS units FROM (SELECT 1 FROM {open_rows} AS o LIMIT $1) AS c

-- name: work_held_count
-- in: as work_open_count, of rows that run or wait
SELECT count(*) AS units
  FROM (SELECT 1 FROM (SELECT seq FROM work_state
                        WHERE owner IS NOT NULL AND status = 'running'
                       UNION ALL SELECT seq FROM work_state WHERE waiting_kind IS NOT NULL) AS o
         LIMIT $1) AS c

-- name: work_window
-- in: $1 after seq    out: the last key of the window, whether there are rows behind it
SELECT f.first + 19999 AS last,
       CASE WHEN (SELECT max(m.seq) FROM work_state m) > f.first + 19999 THEN 1 ELSE 0 END AS more
  FROM (SELECT min(n.seq) AS first FROM work_state n WHERE n.seq > $1) AS f

-- name: work_window_newest
-- in: as work_window, in the other direction
SELECT f.first - 19999 AS last,
       CASE WHEN (SELECT min(m.seq) FROM work_state m) < f.first - 19999 THEN 1 ELSE 0 END AS more
  FROM (SELECT max(n.seq) AS first FROM work_state n WHERE n.seq < $1) AS f

-- fragment: bytes_before
coalesce(sum(coalesce(octet_length(s.payload), 0) + coalesce(octet_length(w.result), 0)
             + coalesce(octet_length(w.resume_payload), 0))
         OVER (ORDER BY w.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before

-- fragment: bytes_before_newest
coalesce(sum(coalesce(octet_length(s.payload), 0) + coalesce(octet_length(w.result), 0)
             + coalesce(octet_length(w.resume_payload), 0))
         OVER (ORDER BY w.seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
AS bytes_before

-- name: work_list_open
-- in: $1 after seq, $2 source, $3 queue, $4 kind, $5 owner, $6 waiting_ref,
--     $7 not updated since, $8 silent only, $9 tenant or null, $10 limit,
--     $11 statuses as a JSON array or null, $12 gate or null, $13 source_id, $14 source_run_id,
--     $15 parent_work_id, $16 session_id, $17 lane_key, $18 correlation_id, $19 error_class,
--     $20 disposition, $21 1: the times are of the end, $22 how long ago, $23 from, $24 before,
--     $25 the beginning or end of an id, source id or waiting reference, $26 bytes of texts,
--     $27 1: not only rows that run or wait, $28 the last seq, $29 1: bad ends that no person
--     has acknowledged, or null, $30 the name of a limit or null
SELECT {row}, {lease_left} FROM {row_from}
 WHERE /*pg w.seq = ANY (ARRAY(SELECT p.seq FROM (SELECT w.seq, {bytes_before}
        FROM {row_from} WHERE*/
       w.seq /*lite IN {listed_rows}*//*pg = ANY (ARRAY(SELECT o.seq FROM {listed_rows} AS o))*/
   AND w.seq > $1 AND w.seq <= $28 AND {list_where}
   /*lite AND $26 > 0*/
   /*pg ORDER BY w.seq LIMIT $10) AS p WHERE p.bytes_before < $26))*/
 ORDER BY w.seq LIMIT $10

-- name: work_list_open_brief
-- in: as work_list_open
SELECT {brief_row}, {lease_left} FROM {row_from}
 WHERE w.seq /*lite IN {listed_rows}*//*pg = ANY (ARRAY(SELECT o.seq FROM {listed_rows} AS o))*/
   AND w.seq > $1 AND w.seq <= $28 AND {list_where}
   AND $26::bigint > 0
 ORDER BY w.seq LIMIT $10

-- name: work_list_open_newest
-- in: as work_list_open
SELECT {row}, {lease_left} FROM {row_from}
 WHERE /*pg w.seq = ANY (ARRAY(SELECT p.seq FROM (SELECT w.seq, {bytes_before_newest}
        FROM {row_from} WHERE*/
       w.seq /*lite IN {listed_rows}*//*pg = ANY (ARRAY(SELECT o.seq FROM {listed_rows} AS o))*/
   AND w.seq < $1 AND w.seq >= $28 AND {list_where}
   /*lite AND $26 > 0*/
   /*pg ORDER BY w.seq DESC LIMIT $10) AS p WHERE p.bytes_before < $26))*/
 ORDER BY w.seq DESC LIMIT $10

-- name: work_list_open_newest_brief
-- in: as work_list_open
SELECT {brief_row}, {lease_left} FROM {row_from}
 WHERE w.seq /*lite IN {listed_rows}*//*pg = ANY (ARRAY(SELECT o.seq FROM {listed_rows} AS o))*/
   AND w.seq < $1 AND w.seq >= $28 AND {list_where}
   AND $26::bigint > 0
 ORDER BY w.seq DESC LIMIT $10

-- name: work_list_any
-- in: as work_list_open
SELECT {row}, {lease_left} FROM {row_from}
 WHERE /*pg w.seq = ANY (ARRAY(SELECT p.seq FROM (SELECT w.seq, {bytes_before}
        FROM {row_from} WHERE*/
       w.seq > $1 AND w.seq <= $28 AND {list_where}
   AND $27::bigint = 1
   /*lite AND $26 > 0*/
   /*pg ORDER BY w.seq LIMIT $10) AS p WHERE p.bytes_before < $26))*/
 ORDER BY w.seq LIMIT $10

-- name: work_list_any_brief
-- in: as work_list_open
SELECT {brief_row}, {lease_left} FROM {row_from}
 WHERE w.seq > $1 AND w.seq <= $28 AND {list_where}
   AND $27::bigint = 1
   AND $26::bigint > 0
 ORDER BY w.seq LIMIT $10

-- name: work_list_any_newest
-- in: as work_list_open
SELECT {row}, {lease_left} FROM {row_from}
 WHERE /*pg w.seq = ANY (ARRAY(SELECT p.seq FROM (SELECT w.seq, {bytes_before_newest}
        FROM {row_from} WHERE*/
       w.seq < $1 AND w.seq >= $28 AND {list_where}
   AND $27::bigint = 1
   /*lite AND $26 > 0*/
   /*pg ORDER BY w.seq DESC LIMIT $10) AS p WHERE p.bytes_before < $26))*/
 ORDER BY w.seq DESC LIMIT $10

-- name: work_list_any_newest_brief
-- in: as work_list_open
SELECT {brief_row}, {lease_left} FROM {row_from}
 WHERE w.seq < $1 AND w.seq >= $28 AND {list_where}
   AND $27::bigint = 1
   AND $26::bigint > 0
 ORDER BY w.seq DESC LIMIT $10

-- name: work_counts
-- in: $1 tenant, null for all    out: status, source_system, rows, of them gated, silent,
-- lapsing
SELECT status, source_system, count(*) AS units, count(gate) AS gated,
       sum(CASE WHEN lease_expires_at <= hf_lease_now() THEN 1 ELSE 0 END) AS silent,
       sum(CASE WHEN lease_expires_at > hf_lease_now()
                 AND 3 * (lease_expires_at - hf_lease_now()) < lease_ttl_ms
                THEN 1 ELSE 0 END) AS lapsing
  FROM {open_units} AS o WHERE ($1::text IS NULL OR tenant = $1)
 GROUP BY status, source_system

-- name: work_ages
-- in: $1 tenant, null for all
-- out: oldest claimable due_at, oldest started_at, next wait deadline, next retry, bad ends of the
--      last hour
SELECT (SELECT min(due_at) FROM work_state
         WHERE status = 'queued' AND gate IS NULL
           AND ($1::text IS NULL OR tenant = $1)) AS due_at,
       (SELECT min(started_at) FROM work_state
         WHERE owner IS NOT NULL AND status = 'running'
           AND ($1::text IS NULL OR tenant = $1)) AS started_at,
       (SELECT min(deadline_at) FROM work_state
         WHERE waiting_kind IS NOT NULL AND ($1::text IS NULL OR tenant = $1)) AS deadline_at,
       (SELECT min(next_retry_at) FROM work_state
         WHERE wake_at IS NOT NULL AND status = 'retry_scheduled'
           AND ($1::text IS NULL OR tenant = $1)) AS next_retry_at,
       (SELECT count(*) FROM (SELECT 1 FROM work_state w
                               WHERE {ended_badly} AND w.finished_at >= hf_now() - 3600000
                                 AND ($1::text IS NULL OR w.tenant = $1)
                               LIMIT 20000) AS b) AS ended_badly

-- name: work_dump
SELECT {row}, {lease_left} FROM {row_from} ORDER BY w.seq

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
