-- Findings that need a person. Every statement reads open rows by their small indexes, or bad ends
-- by work_unacked: rows that ended well cost nothing.

-- The columns of a row in their order, without the texts that may be long; a command and a
-- question name their unit.
-- fragment: seen_row
s.work_id, s.tenant, s.source_system, s.source_id, nullif(s.source_run_id, '') AS source_run_id,
w.kind, w.queue, w.lane_key, w.dedup_key, w.limit_name, w.fair_key, s.idempotency_key, s.ref,
s.parent_work_id, s.correlation_id, w.session_id, w.status, w.status_reason, w.gate, w.disposition,
w.priority, w.generation, w.attempt_count, w.failures, w.max_attempts, w.due_at, w.next_retry_at,
w.deadline_at, w.start_timeout_ms, w.exec_timeout_ms, w.owner, w.owner_incarnation, w.lease_fence,
w.lease_ttl_ms, w.lease_expires_at, w.holder, w.waiting_kind, w.waiting_ref, w.escalate_at,
w.escalate, NULL AS resume_payload, w.error_class, NULL AS result,
CASE WHEN (w.kind = 'run' OR w.kind = 'question') AND length(s.payload) <= 8192
     THEN s.payload END AS payload,
s.payload_ref, NULL AS retry_policy, w.close_rule, w.cancel_request, w.abandon_request, w.active_at,
w.first_started_at, w.started_at, w.finished_at, w.acked_at, s.created_at, w.updated_at, w.seq,
w.revision, w.lease_incarnation, w.grace_ms, w.lease_check_at, w.session_fence, w.fair_tag, w.fair_weight,
w.crashes, w.crashed_at, w.claim_group, w.settled_token, w.settled_verb, w.wake_session

-- The event that brought the row's status: who, and what was said.
-- fragment: seen_more
(SELECT e.message FROM work_event e WHERE e.seq = w.seq AND e.to_status = w.status
  ORDER BY e.event_id DESC LIMIT 1) AS said,
coalesce((SELECT e.actor_kind || ':' || e.actor FROM work_event e
           WHERE e.seq = w.seq AND e.to_status = w.status
           ORDER BY e.event_id DESC LIMIT 1), s.actor_kind || ':' || s.actor) AS said_by

-- fragment: leased
w.owner IS NOT NULL AND w.status = 'running' AND w.lease_expires_at IS NOT NULL
AND ($1::text IS NULL OR w.tenant = $1)

-- fragment: lease_lapsed
w.lease_expires_at <= hf_lease_now()

-- fragment: lease_lapsing
w.lease_expires_at > hf_lease_now()
AND 3 * (w.lease_expires_at - hf_lease_now()) < w.lease_ttl_ms

-- The units of a turn that was put away show one of its waits; the turn's waits are findings of
-- their own.
-- fragment: asks_a_person
w.waiting_kind IS NOT NULL AND w.waiting_kind = 'user' AND w.session_id IS NULL
AND ($1::text IS NULL OR w.tenant = $1)

-- fragment: waits_long
w.waiting_kind IS NOT NULL AND w.waiting_kind <> 'user' AND w.session_id IS NULL
AND ($1::text IS NULL OR w.tenant = $1)
AND (w.status_reason = 'wait_overdue' OR (w.escalate IS NOT NULL AND w.escalate_at IS NULL)
     OR 2 * (hf_now() - w.updated_at) > w.deadline_at - w.updated_at)

-- Waits of turns. A timer ends by itself.
-- fragment: turn_waits
wait a JOIN session_turn t ON t.turn_key = a.turn_key JOIN session s ON s.session_key = a.session_key

-- fragment: asks_approval
a.closed_at IS NULL AND a.kind = 'approval' AND s.deleted_at IS NULL
AND ($1::text IS NULL OR s.tenant = $1)

-- fragment: turn_waits_long
a.closed_at IS NULL AND a.kind <> 'approval' AND a.kind <> 'timer' AND s.deleted_at IS NULL
AND ($1::text IS NULL OR s.tenant = $1)
AND ((a.escalate IS NOT NULL AND a.escalate_at IS NULL)
     OR 2 * (hf_now() - a.opened_at) > a.deadline_at - a.opened_at)

-- What was asked; of a long one the question and the name of the call. (A NUL is no text.)
-- fragment: seen_turn_wait
a.wait_id, s.session_id, t.turn_id, s.tenant, s.agent, a.kind, a.name,
CASE WHEN length(a.asked) <= 8192 THEN a.asked
     /*pg WHEN strpos(a.asked, '\u0000') > 0 THEN NULL*/
     WHEN a.asked IS NOT NULL
     THEN /*lite json_object('question', substr(json_extract(a.asked, '$.question'), 1, 4096), 'call',
                            json_object('name', json_extract(a.asked, '$.call.name')))*/
          /*pg json_build_object('question', left(a.asked::json ->> 'question', 4096), 'call',
                                json_build_object('name', a.asked::json -> 'call' ->> 'name'))::text*/
END AS asked,
a.answerer, a.policy, a.next_answerer, a.escalate, a.escalate_at, a.deadline_at, a.opened_at

-- fragment: session_leased
s.lease_check_at IS NOT NULL AND ($1::text IS NULL OR s.tenant = $1)

-- fragment: session_silent
s.lease_expires_at <= hf_lease_now()

-- fragment: session_lapsing
s.lease_expires_at > hf_lease_now()
AND 3 * (s.lease_expires_at - hf_lease_now()) < s.lease_ttl_ms

-- fragment: is_held
w.gate = 'held' AND ($1::text IS NULL OR w.tenant = $1)

-- fragment: ended_badly
/*lite w.finished_at IS NOT NULL AND w.status <> 'done' AND w.status <> 'cancelled'
       AND w.acked_at IS NULL*/
/*pg w.acked_at IS NULL AND w.status = ANY ('{abandoned,failed,timeout}')*/

-- name: seen_silent
-- in: $1 tenant or null, $2 limit
SELECT {seen_row}, {lease_left}, {seen_more} FROM {row_from}
 WHERE {leased} AND {lease_lapsed} ORDER BY w.lease_expires_at, w.seq LIMIT $2

-- name: seen_lapsing
-- in: $1 tenant or null, $2 limit
SELECT {seen_row}, {lease_left}, {seen_more} FROM {row_from}
 WHERE {leased} AND {lease_lapsing} ORDER BY w.lease_expires_at, w.seq LIMIT $2

-- name: seen_question
-- What ends first comes first; an overdue wait has no end.
-- in: $1 tenant or null, $2 limit
SELECT {seen_row}, {lease_left}, {seen_more} FROM {row_from}
 WHERE {asks_a_person} ORDER BY coalesce(w.deadline_at, 0), w.seq LIMIT $2

-- name: seen_wait
-- in: $1 tenant or null, $2 limit
SELECT {seen_row}, {lease_left}, {seen_more} FROM {row_from}
 WHERE {waits_long} ORDER BY coalesce(w.deadline_at, 0), w.seq LIMIT $2

-- name: seen_approval
-- in: $1 tenant or null, $2 limit
SELECT {seen_turn_wait} FROM {turn_waits}
 WHERE {asks_approval} ORDER BY a.deadline_at, a.wait_id LIMIT $2

-- name: seen_turn_wait
-- in: $1 tenant or null, $2 limit
SELECT {seen_turn_wait} FROM {turn_waits}
 WHERE {turn_waits_long} ORDER BY a.deadline_at, a.wait_id LIMIT $2

-- name: seen_held
-- in: $1 tenant or null, $2 limit
SELECT {seen_row}, {lease_left}, {seen_more} FROM {row_from}
 WHERE {is_held} ORDER BY w.seq LIMIT $2

-- name: seen_ended
-- The newest first.
-- in: $1 tenant or null, $2 limit
SELECT {seen_row}, {lease_left}, {seen_more} FROM {row_from}
 WHERE {ended_badly} AND ($1::text IS NULL OR w.tenant = $1)
 ORDER BY w.finished_at DESC, w.seq DESC LIMIT $2

-- name: seen_counts
-- How many there are of each kind whose findings did not fit, up to a bound.
-- in: $1 tenant or null, $2 bound
SELECT (SELECT count(*) FROM (SELECT 1 FROM work_state w
                               WHERE {leased} AND {lease_lapsed} LIMIT $2) AS a) AS silent,
       (SELECT count(*) FROM (SELECT 1 FROM session s
                               WHERE {session_leased} AND {session_silent} LIMIT $2) AS a2)
       AS silent_sessions,
       (SELECT count(*) FROM (SELECT 1 FROM work_state w
                               WHERE {leased} AND {lease_lapsing} LIMIT $2) AS b) AS lapsing,
       (SELECT count(*) FROM (SELECT 1 FROM session s
                               WHERE {session_leased} AND {session_lapsing} LIMIT $2) AS b2)
       AS lapsing_sessions,
       (SELECT count(*) FROM (SELECT 1 FROM work_state w
                               WHERE {asks_a_person} LIMIT $2) AS c) AS question,
       (SELECT count(*) FROM (SELECT 1 FROM {turn_waits}
                               WHERE {asks_approval} LIMIT $2) AS c2) AS approvals,
       (SELECT count(*) FROM (SELECT 1 FROM work_state w
                               WHERE {waits_long} LIMIT $2) AS d) AS wait,
       (SELECT count(*) FROM (SELECT 1 FROM {turn_waits}
                               WHERE {turn_waits_long} LIMIT $2) AS d2) AS turn_waits,
       (SELECT count(*) FROM (SELECT 1 FROM work_state w
                               WHERE {is_held} LIMIT $2) AS e) AS held, 0 AS none

-- name: seen_ended_rest
-- Bad ends after the newest ones, by kind and class, the largest group first.
-- in: $1 tenant or null, $2 bound, $3 how many newest are left out    out: kind, class, units
SELECT t.kind, t.error_class, count(*) AS units
  FROM (SELECT w.kind, w.error_class FROM work_state w
         WHERE {ended_badly} AND ($1::text IS NULL OR w.tenant = $1)
         ORDER BY w.finished_at DESC, w.seq DESC LIMIT $2 OFFSET $3) AS t
 GROUP BY t.kind, t.error_class ORDER BY count(*) DESC, t.kind, t.error_class

-- Acknowledging. The event is written next to it (event_append).
-- name: work_ack
-- in: $1 seq
UPDATE /*lite OR ROLLBACK*/ work_state SET acked_at = hf_now()
 WHERE seq = $1 AND acked_at IS NULL AND finished_at IS NOT NULL AND status <> 'done'
   AND status <> 'cancelled'

-- name: work_unacked
-- in: $1 tenant or null, $2 kind or null, $3 limit
SELECT {seen_row}, {lease_left} FROM {row_from}
 WHERE {ended_badly} AND ($1::text IS NULL OR w.tenant = $1) AND ($2::text IS NULL OR w.kind = $2)
 ORDER BY w.finished_at DESC, w.seq DESC LIMIT $3

-- Queues without a worker: the queues that have something to claim; the kinds at the front of
-- one; what is served.

-- fragment: claimable_units
count(*) AS units, min(CASE WHEN t.updated_at > t.due_at THEN t.updated_at ELSE t.due_at END)
                   AS since,
CASE WHEN min(CASE WHEN t.updated_at > t.due_at THEN t.updated_at ELSE t.due_at END)
          <= hf_now() - $3 THEN 1 ELSE 0 END AS late

-- name: seen_claimable
-- The claimable units of all queues, up to a bound: no page of them is in an order of its own.
-- in: $1 tenant or null, $2 rows, $3 claimable for this long, ms
SELECT t.queue, t.tenant, t.kind, {claimable_units}
  FROM (SELECT w.queue, w.tenant, w.kind, w.updated_at, w.due_at FROM work_state w
         WHERE w.status = 'queued' AND w.gate IS NULL AND ($1::text IS NULL OR w.tenant = $1)
         ORDER BY w.queue, w.priority, w.fair_tag, w.seq LIMIT $2) AS t
 GROUP BY t.queue, t.tenant, t.kind
 ORDER BY t.queue, t.tenant, t.kind

-- name: seen_queues
-- Each is found by one step into the index, however many rows it has.
-- in: $1 limit
WITH RECURSIVE q(queue) AS (
    SELECT (SELECT min(queue) FROM work_state WHERE status = 'queued' AND gate IS NULL)
    UNION ALL
    SELECT (SELECT min(n.queue) FROM work_state n
             WHERE n.status = 'queued' AND n.gate IS NULL AND n.queue > q.queue)
      FROM q WHERE q.queue IS NOT NULL)
SELECT queue FROM q WHERE queue IS NOT NULL LIMIT $1

-- name: seen_front
-- As seen_claimable, of one queue.
-- in: $1 tenant or null, $2 rows, $3 claimable for this long, ms, $4 queue
SELECT t.queue, t.tenant, t.kind, {claimable_units}
  FROM (SELECT w.queue, w.tenant, w.kind, w.updated_at, w.due_at FROM work_state w
         WHERE w.queue = $4 AND w.status = 'queued' AND w.gate IS NULL
           AND ($1::text IS NULL OR w.tenant = $1)
         ORDER BY w.priority, w.fair_tag, w.seq LIMIT $2) AS t
 GROUP BY t.queue, t.tenant, t.kind
 ORDER BY t.tenant, t.kind

-- name: seen_running
-- out: queue and kind of what runs
SELECT DISTINCT queue, kind FROM work_state WHERE owner IS NOT NULL AND status = 'running'

-- name: seen_claimed
-- in: $1 how many of the last events    out: queue and kind of what was claimed
SELECT DISTINCT w.queue, w.kind
  FROM (SELECT e.seq, e.to_status FROM work_event e
         ORDER BY /*pg e.xid DESC,*/ e.event_id DESC LIMIT $1) AS t
  JOIN work_state w ON w.seq = t.seq
 WHERE t.to_status = 'running'

-- name: seen_ready
-- Agents whose sessions are ready for long while none of their sessions has a lease that holds.
-- in: $1 tenant or null, $2 sessions that are looked at, $3 ready for this long, ms
SELECT t.agent, t.tenant, count(*) AS sessions, min(t.ready_at) AS since
  FROM (SELECT s.agent, s.tenant, s.ready_at FROM session s
         WHERE s.ready_at IS NOT NULL AND s.ready_at <= hf_now() - $3 AND s.deleted_at IS NULL
           AND ($1::text IS NULL OR s.tenant = $1)
           AND NOT EXISTS (SELECT 1 FROM session l
                            WHERE l.agent = s.agent AND l.lease_check_at IS NOT NULL
                              AND l.lease_expires_at > hf_lease_now())
         ORDER BY s.agent, s.ready_at, s.session_key LIMIT $2) AS t
 GROUP BY t.agent, t.tenant ORDER BY t.agent, t.tenant

-- name: seen_taken
-- in: $1 how many of the last events    out: agents of which a session was claimed
SELECT DISTINCT s.agent
  FROM (SELECT e.seq, e.to_status FROM work_event e
         ORDER BY /*pg e.xid DESC,*/ e.event_id DESC LIMIT $1) AS t
  JOIN work_state w ON w.seq = t.seq
  JOIN session s ON s.session_id = w.session_id
 WHERE t.to_status = 'running'

-- name: seen_schedules
-- in: $1 tenant or null, $2 1: those that fail, 0: those that are late, $3 limit
SELECT tenant, name, kind, last_error, failures, next_at, updated_at
  FROM work_schedule /*lite INDEXED BY work_schedule_look*/
 WHERE state = 'active' AND look_at IS NOT NULL AND ($1::text IS NULL OR tenant = $1)
   AND (($2 = 1 AND last_error IS NOT NULL)
        OR ($2 = 0 AND last_error IS NULL AND hf_now() > next_at + miss_threshold_ms))
 ORDER BY tenant, name LIMIT $3

-- name: seen_sessions
-- in: $1 tenant or null, $2 1: those whose lease has lapsed, 0: those whose lapses soon, $3 limit
SELECT s.session_id, s.tenant, s.agent, s.owner, s.holder, s.lease_ttl_ms,
       s.lease_expires_at - hf_lease_now() AS lease_remaining_ms
  FROM session s
 WHERE {session_leased}
   AND (($2 = 1 AND {session_silent}) OR ($2 = 0 AND {session_lapsing}))
 ORDER BY s.lease_expires_at, s.session_key LIMIT $3

-- name: seen_limits
-- Limits with rows behind them whose places are all taken by silent holders.
-- in: $1 limit
SELECT l.name, l.max_running, t.since, t.units,
       (SELECT count(*) FROM work_state g
         WHERE g.limit_name = l.name AND (g.gate = 'limit' OR g.gate = 'rate')) AS waiting
  FROM work_limit l
  JOIN (SELECT limit_name, count(*) AS units,
               min(lease_expires_at) + hf_now() - hf_lease_now() AS since
          FROM work_state
         WHERE owner IS NOT NULL AND status = 'running' AND limit_name IS NOT NULL
           AND lease_expires_at <= hf_lease_now()
         GROUP BY limit_name) AS t ON t.limit_name = l.name
 WHERE l.max_running IS NOT NULL AND t.units >= l.used AND l.used >= l.max_running
   AND EXISTS (SELECT 1 FROM work_state g
                WHERE g.limit_name = l.name AND (g.gate = 'limit' OR g.gate = 'rate'))
 ORDER BY l.name LIMIT $1
