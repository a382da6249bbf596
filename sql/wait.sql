-- Waits of turns. Each write locks the session's row first, as the verbs of sessions do, so that on
-- PostgreSQL a put-away and an answer never miss each other: the statement after the lock sees what
-- the other has committed. A wait is closed where it is open, and its batch expects that: otherwise
-- nothing is written. `closed_by` says which call has closed it.

-- fragment: wait
w.deadline_at, w.escalate_at, w.opened_at, w.closed_at, w.next_ms, w.check_at, w.wait_id,
s.session_id, t.turn_id, s.tenant, s.agent, w.kind, w.name, w.state, w.asked, w.answerer, w.policy,
w.next_answerer, w.next_policy, w.escalate, w.outcome, w.actor_kind, w.actor, w.closed_by

-- fragment: wait_from
wait w JOIN session_turn t ON t.turn_key = w.turn_key
JOIN session s ON s.session_key = w.session_key

-- The most urgent open wait of a turn whose key is {..}.turn_key.
-- fragment: wait_order
ORDER BY coalesce(w.deadline_at, 0), w.wait_id LIMIT 1

-- fragment: unit_back
owner = NULL, owner_incarnation = NULL, claim_group = NULL, session_fence = NULL,
lease_incarnation = NULL, updated_at = hf_now(), revision = revision + 1

-- fragment: unit_waits_no_more
waiting_kind = NULL, waiting_ref = NULL, deadline_at = NULL, escalate_at = NULL, escalate = NULL

-- Opening: part of a step, after its guards.

-- Whether an early answer is by an actor that may not answer. A revocation is no answer.
-- fragment: early_unfit
wait.state = 'resolved' AND excluded.answerer IS NOT NULL
AND excluded.answerer <> coalesce(wait.actor, '')

-- name: waits_open
-- Those that are there stay as they are; one that was answered early learns what was asked, and is
-- open where the actor may not answer. After a revocation each is cancelled from the start, except
-- a timer.
-- in: $1 session_id, $2 turn_id, $3 outcome of a revoked one; a1 wait_id, a2 kind, a3 name,
--     a4 deadline_at, a5 escalate_at, a6 check_at, a7 next_ms, a8 asked, a9 answerer, a10 policy,
--     a11 next_answerer, a12 next_policy, a13 escalate
-- sets: text text text bigint bigint bigint bigint text text text text text text
INSERT /*lite OR ROLLBACK*/ INTO wait (wait_id, session_key, turn_key, kind, name, deadline_at,
                                       escalate_at, next_ms, asked, answerer, policy,
                                       next_answerer, next_policy, escalate, opened_at,
                                       check_at, state, outcome, closed_at, closed_by)
SELECT a.a1, t.session_key, t.turn_key, a.a2, a.a3, a.a4, a.a5, a.a7, a.a8, a.a9, a.a10, a.a11,
       a.a12, a.a13, hf_now(),
       CASE WHEN r.turn_key IS NULL THEN a.a6 END,
       CASE WHEN r.turn_key IS NULL THEN 'open' ELSE 'cancelled' END,
       CASE WHEN r.turn_key IS NOT NULL THEN $3 END,
       CASE WHEN r.turn_key IS NOT NULL THEN hf_now() END,
       CASE WHEN r.turn_key IS NOT NULL THEN 'revoked' END
  FROM hf_args a JOIN session s ON s.session_id = $1
  JOIN session_turn t ON t.session_key = s.session_key AND t.turn_id = $2
  LEFT JOIN session_turn r ON r.turn_key = t.turn_key AND r.waits_revoked_at IS NOT NULL
                          AND a.a2 <> 'timer'
 WHERE true
ON CONFLICT (wait_id) DO UPDATE
   SET name = excluded.name, asked = excluded.asked, opened_at = excluded.opened_at,
       answerer = excluded.answerer, deadline_at = excluded.deadline_at,
       escalate_at = excluded.escalate_at, next_ms = excluded.next_ms,
       policy = excluded.policy, next_answerer = excluded.next_answerer,
       next_policy = excluded.next_policy, escalate = excluded.escalate,
       state = CASE WHEN {early_unfit} THEN excluded.state ELSE wait.state END,
       outcome = CASE WHEN {early_unfit} THEN excluded.outcome ELSE wait.outcome END,
       closed_at = CASE WHEN {early_unfit} THEN excluded.closed_at ELSE wait.closed_at END,
       closed_by = CASE WHEN {early_unfit} THEN excluded.closed_by ELSE wait.closed_by END,
       check_at = CASE WHEN {early_unfit} THEN excluded.check_at END
 WHERE wait.opened_at IS NULL

-- name: session_away
-- The lease ends and the turn stays open. It is ready at once where a listed wait is closed, or a
-- cancel was asked for; otherwise when its first timer is due.
-- in: $1 session_id, $2 nonce; a1 wait_id
-- sets: text
UPDATE /*lite OR ROLLBACK*/ session
   SET owner = NULL, owner_incarnation = NULL, claim_group = NULL, holder = NULL,
       lease_incarnation = NULL, lease_ttl_ms = NULL, lease_claimed_at = NULL, lease_expires_at = NULL,
       lease_check_at = NULL, waiting_until = NULL,
       ready_at = CASE WHEN cancel_request IS NOT NULL THEN hf_now()
                  ELSE (SELECT min(CASE WHEN w.state <> 'open' THEN hf_now()
                                        WHEN w.kind = 'timer' THEN w.deadline_at END)
                          FROM hf_args a JOIN wait w ON w.wait_id = a.a1) END
 WHERE session_id = $1 AND claim_group = $2

-- name: inputs_wait
-- The inputs of a turn that was put away show its most urgent wait; not where it is ready at once.
-- in: $1 session_id, $2 nonce, $3 session fence, $4 actor_kind, $5 actor, $6 note,
--     $7 correlation_id
/*pg WITH moved AS (*/
UPDATE /*lite OR ROLLBACK*/ work_state
   SET status = CASE WHEN u.kind = 'approval' THEN 'waiting_user' ELSE 'waiting_external' END,
       status_reason = u.kind,
       waiting_kind = CASE WHEN u.kind = 'approval' THEN 'user' ELSE 'external' END,
       waiting_ref = u.wait_id, deadline_at = u.deadline_at, escalate_at = u.escalate_at,
       escalate = u.escalate, crashes = 0, crashed_at = NULL, {unit_back}
/*lite , event_id = hf_next_id(), event_type = 'waiting_set', actor_kind = $4, actor = $5,
       message = NULL, note = $6, correlation_id = $7
*//*pg , log_xid = {log_place}, vouched = vouched + 1
*/
  FROM (SELECT s.turn_key, w.kind, w.wait_id, w.deadline_at, w.escalate_at, w.escalate
          FROM session s JOIN wait w ON w.turn_key = s.turn_key AND w.state = 'open'
         WHERE s.session_id = $1 AND (s.ready_at IS NULL OR s.ready_at > hf_now())
         {wait_order}) AS u
 WHERE work_state.seq {of_open_turn}
   AND work_state.status = 'running' AND work_state.claim_group = $2
   AND work_state.session_fence = $3
/*pg RETURNING work_state.seq, work_state.status, work_state.generation,
               work_state.attempt_count, work_state.lease_fence, work_state.log_xid,
               work_state.updated_at)
INSERT INTO work_event (event_id, seq, created_at, xid, generation, attempt, fence, event_type,
                        from_status, to_status, actor_kind, actor, message, payload,
                        correlation_id)
SELECT hf_next_id(), seq, updated_at, log_xid, generation, attempt_count, lease_fence,
       'waiting_set'::text, 'running'::text, status, $4::text, $5::text, NULL::text, $6::text,
       $7::text
  FROM moved*/

-- name: session_put_away
-- in: $1 session_id    out: 1 if it is ready again
SELECT CASE WHEN s.ready_at <= hf_now() THEN 1 ELSE 0 END AS ready
  FROM session s WHERE s.session_id = $1

-- Closing.

-- name: wait_wake
-- Where a wait is still open: its session is ready, unless a worker holds it. A worker sees the
-- outcome when it puts the turn away.
-- in: $1 wait_id, $2 the actor, who must be the answerer; null: need not
-- sets: text text
UPDATE /*lite OR ROLLBACK*/ session
   SET ready_at = CASE WHEN claim_group IS NULL AND turn_key = (SELECT w.turn_key FROM wait w
                                                                 WHERE w.wait_id = $1)
                       THEN /*lite min*//*pg least*/(coalesce(ready_at, hf_now()), hf_now())
                       ELSE ready_at END
 WHERE session_key = (SELECT w.session_key FROM wait w
                       WHERE w.wait_id = $1 AND w.state = 'open'
                         AND ($2::text IS NULL OR w.answerer IS NULL OR w.answerer = $2))

-- name: wait_close
-- in: $1 wait_id, $2 the actor, who must be the answerer; null: need not, $3 state, $4 outcome,
--     $5 actor_kind, $6 actor, $7 closed_by, $8 check_at as read, or null for any
-- sets: text text text text text text text bigint
UPDATE /*lite OR ROLLBACK*/ wait
   SET state = $3, outcome = $4, actor_kind = $5, actor = $6, closed_by = $7,
       closed_at = hf_now(), check_at = NULL, escalate_at = NULL
 WHERE wait_id = $1 AND state = 'open'
   AND ($2::text IS NULL OR answerer IS NULL OR answerer = $2)
   AND ($8::bigint IS NULL OR check_at = $8)

-- name: waits_close_others
-- After wait_close: the other open waits of its turn.
-- in: $1 wait_id, $2 closed_by, $3 outcome, $4 actor_kind, $5 actor
UPDATE /*lite OR ROLLBACK*/ wait
   SET state = 'cancelled', outcome = $3, actor_kind = $4, actor = $5, closed_by = $2,
       closed_at = hf_now(), check_at = NULL, escalate_at = NULL
 WHERE turn_key = (SELECT w.turn_key FROM wait w WHERE w.wait_id = $1)
   AND state = 'open'

-- name: waits_close_turn
-- The open waits of a turn. A revocation leaves its timers: a pause is no question.
-- in: $1 session_id, $2 turn_id, $3 outcome, $4 actor_kind, $5 actor, $6 closed_by,
--     $7 kind to leave open, or null
UPDATE /*lite OR ROLLBACK*/ wait
   SET state = 'cancelled', outcome = $3, actor_kind = $4, actor = $5, closed_by = $6,
       closed_at = hf_now(), check_at = NULL, escalate_at = NULL
 WHERE turn_key = (SELECT t.turn_key FROM session s
                     JOIN session_turn t ON t.session_key = s.session_key
                    WHERE s.session_id = $1 AND t.turn_id = $2)
   AND state = 'open' AND kind <> coalesce($7, '')

-- The units of the turn of a wait.
-- fragment: units_of_wait
/*lite IN (*//*pg = ANY (ARRAY(*/
SELECT i.seq FROM wait w JOIN session_input i
    ON i.session_key = w.session_key AND i.turn_key = w.turn_key
 WHERE w.wait_id = $1
/*lite )*//*pg ))*/

-- On PostgreSQL a statement that takes units out of a wait reads the status that they leave.
-- fragment: units_left_event
/*pg RETURNING work_state.seq, work_state.status, work_state.generation,
               work_state.attempt_count, work_state.lease_fence, work_state.log_xid,
               work_state.updated_at, old.status AS was)
INSERT INTO work_event (event_id, seq, created_at, xid, generation, attempt, fence, event_type,
                        from_status, to_status, actor_kind, actor, message, payload,
                        correlation_id)
SELECT hf_next_id(), seq, updated_at, log_xid, generation, attempt_count, lease_fence,
*/

-- name: inputs_expire
-- After wait_close: the turn fails at the deadline of one of its waits.
-- in: $1 wait_id, $2 actor_kind, $3 actor, $4 note, $5 correlation_id, $6 reason
/*pg WITH old AS (SELECT w.seq, w.status FROM work_state w
                   WHERE w.seq {units_of_wait} AND w.waiting_kind IS NOT NULL
                     FOR NO KEY UPDATE),
     moved AS (*/
UPDATE /*lite OR ROLLBACK*/ work_state
   SET status = 'timeout', status_reason = $6, finished_at = hf_now(), {unit_waits_no_more},
       updated_at = hf_now(), revision = revision + 1
/*lite , event_id = hf_next_id(), event_type = 'timeout_marked', actor_kind = $2, actor = $3,
       message = $1, note = $4, correlation_id = $5
 WHERE seq {units_of_wait} AND waiting_kind IS NOT NULL
*//*pg , log_xid = {log_place}, vouched = vouched + 1
  FROM old WHERE work_state.seq = old.seq
*/
{units_left_event}
/*pg 'timeout_marked'::text, was, status, $2::text, $3::text, $1::text, $4::text, $5::text
  FROM moved*/

-- name: wait_get
-- in: a1 wait_id    out: the wait; the place of its set
-- sets: text
SELECT {wait}, a.place AS place
  FROM hf_args a, {wait_from} WHERE w.wait_id = a.a1 AND s.deleted_at IS NULL

-- Before the turn waits.

-- name: wait_turn_lock
-- in: $1 turn_id    out: 1 if its waits can be answered
SELECT 1 AS answerable
  FROM work_spec u JOIN session_turn t ON t.turn_key = u.seq
  JOIN session s ON s.session_key = t.session_key
 WHERE u.work_id = $1 AND s.turn_key = t.turn_key AND t.waits_revoked_at IS NULL
   AND s.deleted_at IS NULL /*pg FOR NO KEY UPDATE OF s*/

-- name: wait_early
-- An answer, or a revocation, of a wait that its turn has not opened yet.
-- in: $1 turn_id, $2 wait_id, $3 kind, $4 state, $5 outcome, $6 actor_kind, $7 actor, $8 closed_by
INSERT /*lite OR ROLLBACK*/ INTO wait (wait_id, session_key, turn_key, kind, state, outcome,
                                       actor_kind, actor, closed_at, closed_by)
SELECT $2, t.session_key, t.turn_key, $3, $4, $5, $6, $7, hf_now(), $8
  FROM work_spec u JOIN session_turn t ON t.turn_key = u.seq
  JOIN session s ON s.session_key = t.session_key
 WHERE u.work_id = $1 AND s.turn_key = t.turn_key AND t.waits_revoked_at IS NULL
   AND s.deleted_at IS NULL
ON CONFLICT DO NOTHING

-- Revoking.

-- name: turn_revoke
-- in: $1 session_id, $2 turn_id or null for the open one
UPDATE /*lite OR ROLLBACK*/ session_turn
   SET waits_revoked_at = hf_now()
 WHERE finished_at IS NULL AND waits_revoked_at IS NULL
   AND turn_key = (SELECT t.turn_key FROM session s
                     JOIN session_turn t ON t.session_key = s.session_key
                    WHERE s.session_id = $1 AND s.deleted_at IS NULL
                      AND ((t.turn_id = $2) OR ($2::text IS NULL AND t.turn_key = s.turn_key)))

-- name: turn_make_ready
-- The open turn may continue: unless a worker holds the session, it is ready.
-- in: $1 session_id, $2 turn_id
UPDATE /*lite OR ROLLBACK*/ session
   SET ready_at = CASE WHEN claim_group IS NULL
                       THEN /*lite min*//*pg least*/(coalesce(ready_at, hf_now()), hf_now())
                       ELSE ready_at END
 WHERE session_id = $1 AND deleted_at IS NULL
   AND turn_key = (SELECT t.turn_key FROM session_turn t
                    WHERE t.session_key = session.session_key AND t.turn_id = $2)

-- name: turn_closed_now
-- in: $1 session_id, $2 turn_id, $3 closed_by    out: how many waits this call has closed
SELECT count(*) AS closed
  FROM session s JOIN session_turn t ON t.session_key = s.session_key AND t.turn_id = $2
  JOIN wait w ON w.turn_key = t.turn_key AND w.closed_by = $3
 WHERE s.session_id = $1

-- The units that wait in a turn.
-- fragment: units_of_turn
/*lite IN (*//*pg = ANY (ARRAY(*/
SELECT i.seq FROM session s
  JOIN session_turn t ON t.session_key = s.session_key AND t.turn_id = $2
  JOIN session_input i ON i.session_key = t.session_key AND i.turn_key = t.turn_key
 WHERE s.session_id = $1
/*lite )*//*pg ))*/

-- name: inputs_resume_turn
-- in: $1 session_id, $2 turn_id, $3 actor_kind, $4 actor, $5 note, $6 correlation_id
/*pg WITH old AS (SELECT w.seq, w.status FROM work_state w
                   WHERE w.seq {units_of_turn} AND w.waiting_kind IS NOT NULL
                     FOR NO KEY UPDATE),
     moved AS (*/
UPDATE /*lite OR ROLLBACK*/ work_state
   SET status = 'queued', gate = 'lane', status_reason = 'revoked', due_at = hf_now(),
       {unit_waits_no_more}, updated_at = hf_now(), revision = revision + 1
/*lite , event_id = hf_next_id(), event_type = 'resumed', actor_kind = $3, actor = $4,
       message = NULL, note = $5, correlation_id = $6
 WHERE seq {units_of_turn} AND waiting_kind IS NOT NULL
*//*pg , log_xid = {log_place}, vouched = vouched + 1
  FROM old WHERE work_state.seq = old.seq
*/
{units_left_event}
/*pg 'resumed'::text, was, status, $3::text, $4::text, NULL::text, $5::text, $6::text FROM moved*/

-- Cancelling a turn.

-- name: session_cancel
-- The gate: the first request stays until the turn's commit. A turn that no worker holds is ready.
-- in: $1 session_id, $2 turn_id, $3 request
UPDATE /*lite OR ROLLBACK*/ session
   SET cancel_request = $3,
       ready_at = CASE WHEN claim_group IS NULL
                       THEN /*lite min*//*pg least*/(coalesce(ready_at, hf_now()), hf_now()) END
 WHERE session_id = $1 AND deleted_at IS NULL AND cancel_request IS NULL
   AND turn_key = (SELECT t.turn_key FROM session_turn t
                    WHERE t.session_key = session.session_key AND t.turn_id = $2)

-- Whether this call's request is the one, and no worker holds the session.
-- fragment: cancel_mine
EXISTS (SELECT 1 FROM session s JOIN session_turn t ON t.turn_key = s.turn_key
         WHERE s.session_id = $1 AND t.turn_id = $2 AND s.cancel_request = $3
           AND s.claim_group IS NULL)

-- name: inputs_cancel_waiting
-- A turn that waits: its units end at once.
-- in: $1 session_id, $2 turn_id, $3 request, $4 actor_kind, $5 actor, $6 reason, $7 correlation_id
/*pg WITH old AS (SELECT w.seq, w.status FROM work_state w
                   WHERE w.seq {units_of_turn} AND w.waiting_kind IS NOT NULL AND {cancel_mine}
                     FOR NO KEY UPDATE),
     moved AS (*/
UPDATE /*lite OR ROLLBACK*/ work_state
   SET status = 'cancelled', status_reason = coalesce($6, 'cancelled'), finished_at = hf_now(),
       {unit_waits_no_more}, updated_at = hf_now(), revision = revision + 1
/*lite , event_id = hf_next_id(), event_type = 'transition', actor_kind = $4, actor = $5,
       message = $6, note = $3, correlation_id = $7
 WHERE seq {units_of_turn} AND waiting_kind IS NOT NULL AND {cancel_mine}
*//*pg , log_xid = {log_place}, vouched = vouched + 1
  FROM old WHERE work_state.seq = old.seq
*/
{units_left_event}
/*pg 'transition'::text, was, status, $4::text, $5::text, $6::text, $3::text, $7::text FROM moved*/

-- name: waits_cancel_turn
-- After inputs_cancel_waiting: the waits of a turn that no worker holds.
-- in: $1 session_id, $2 turn_id, $3 request, $4 outcome, $5 actor_kind, $6 actor, $7 closed_by
UPDATE /*lite OR ROLLBACK*/ wait
   SET state = 'cancelled', outcome = $4, actor_kind = $5, actor = $6, closed_by = $7,
       closed_at = hf_now(), check_at = NULL, escalate_at = NULL
 WHERE turn_key = (SELECT t.turn_key FROM session s
                     JOIN session_turn t ON t.session_key = s.session_key
                    WHERE s.session_id = $1 AND t.turn_id = $2)
   AND state = 'open' AND {cancel_mine}

-- name: input_cancel_queued
-- A turn that has not begun: its input ends.
-- in: $1 session_id, $2 work_id, $3 request, $4 actor_kind, $5 actor, $6 reason, $7 correlation_id
/*pg WITH moved AS (*/
UPDATE /*lite OR ROLLBACK*/ work_state
   SET status = 'cancelled', gate = NULL, status_reason = coalesce($6, 'cancelled'),
       finished_at = hf_now(), updated_at = hf_now(), cancel_request = $3,
       revision = revision + 1
/*lite , event_id = hf_next_id(), event_type = 'transition', actor_kind = $4, actor = $5,
       message = $6, note = $3, correlation_id = $7
*//*pg , log_xid = {log_place}, vouched = vouched + 1
*/
 WHERE seq = (SELECT i.seq FROM session s JOIN session_input i ON i.session_key = s.session_key
                JOIN work_spec u ON u.seq = i.seq
               WHERE s.session_id = $1 AND s.deleted_at IS NULL AND u.work_id = $2
                 AND i.turn_key IS NULL)
   AND status = 'queued'
/*pg RETURNING seq, status, generation, attempt_count, lease_fence, log_xid, updated_at)
INSERT INTO work_event (event_id, seq, created_at, xid, generation, attempt, fence, event_type,
                        from_status, to_status, actor_kind, actor, message, payload,
                        correlation_id)
SELECT hf_next_id(), seq, updated_at, log_xid, generation, attempt_count, lease_fence,
       'transition'::text, 'queued'::text, status, $4::text, $5::text, $6::text, $3::text,
       $7::text
  FROM moved*/

-- name: turn_cancel_seen
-- What a cancel left, or found.
-- in: $1 session_id, $2 turn_id
-- out: the session's deletion, its gate where the turn is open, the turn's end, the unit's status,
--      the unit's own request
SELECT s.deleted_at AS deleted_at, t.finished_at AS finished_at,
       CASE WHEN s.turn_key = i.seq THEN s.cancel_request END AS gate,
       CASE WHEN s.turn_key = i.seq THEN 1 ELSE 0 END AS is_open,
       w.status AS status, w.cancel_request AS request
  FROM session s JOIN work_spec u ON u.work_id = $2
  JOIN session_input i ON i.seq = u.seq AND i.session_key = s.session_key
  JOIN work_state w ON w.seq = i.seq LEFT JOIN session_turn t ON t.turn_key = i.seq
 WHERE s.session_id = $1

-- Claims, commits.

-- name: waits_due
-- The timers of the open turn that are due.
-- in: $1 session_id, $2 outcome, $3 actor_kind, $4 actor, $5 closed_by
UPDATE /*lite OR ROLLBACK*/ wait
   SET state = 'resolved', outcome = $2, actor_kind = $3, actor = $4, closed_by = $5,
       closed_at = hf_now()
 WHERE turn_key = (SELECT s.turn_key FROM session s WHERE s.session_id = $1)
   AND state = 'open' AND kind = 'timer' AND deadline_at <= hf_now()

-- name: waits_of_turn
-- in: $1 session_id
SELECT {wait} FROM {wait_from}
 WHERE s.session_id = $1 AND w.turn_key = s.turn_key ORDER BY w.wait_id

-- name: waits_drop
-- Those of a turn that was held and begins anew: what was answered was another question.
-- in: $1 session_id
DELETE FROM wait
 WHERE turn_key = (SELECT s.turn_key FROM session s WHERE s.session_id = $1)

-- name: waits_reopen
-- Those that closed when the turn was set aside: it continues, and asks again.
-- in: $1 session_id, $2 work_id
DELETE FROM wait
 WHERE turn_key = (SELECT u.seq FROM session s JOIN work_spec u ON u.seq = s.turn_key
                    WHERE s.session_id = $1 AND u.work_id = $2)
   AND state = 'cancelled' AND closed_by = 'end'

-- Sweeping.

-- name: waits_to_sweep
-- in: $1 limit
SELECT {wait} FROM {wait_from} WHERE w.check_at <= hf_now() ORDER BY w.check_at LIMIT $1

-- name: wait_pass_on
-- An escalation was made, or the next answerer's time begins.
-- in: $1 wait_id, $2 check_at as read, $3 answerer, $4 policy, $5 deadline_at, $6 check_at,
--     $7 next_answerer, $8 next_policy, $9 next_ms
UPDATE /*lite OR ROLLBACK*/ wait
   SET answerer = $3, policy = $4, deadline_at = $5, check_at = $6, escalate_at = NULL,
       next_answerer = $7, next_policy = $8, next_ms = $9
 WHERE wait_id = $1 AND state = 'open' AND check_at = $2

-- name: inputs_show_wait
-- After wait_pass_on: the units show the most urgent wait as it is now.
-- in: $1 wait_id
UPDATE /*lite OR ROLLBACK*/ work_state
   SET waiting_ref = u.wait_id, deadline_at = u.deadline_at, escalate_at = u.escalate_at,
       revision = revision + 1
  FROM (SELECT w.session_key, w.turn_key, w.wait_id, w.deadline_at, w.escalate_at
          FROM wait g JOIN wait w ON w.turn_key = g.turn_key AND w.state = 'open'
         WHERE g.wait_id = $1 {wait_order}) AS u
 WHERE work_state.seq /*lite IN (*//*pg = ANY (ARRAY(*/
       SELECT i.seq FROM wait g JOIN session_input i
           ON i.session_key = g.session_key AND i.turn_key = g.turn_key
        WHERE g.wait_id = $1 /*lite )*//*pg ))*/
   AND work_state.waiting_kind IS NOT NULL

-- Reading.

-- name: wait_list
-- Open ones, the next deadline first.
-- in: $1 after deadline, $2 after wait_id, $3 tenant or null, $4 session_id or null, $5 kind or
--     null, $6 answerer or null, $7 limit
SELECT {wait} FROM {wait_from}
 WHERE w.closed_at IS NULL AND w.deadline_at >= $1 AND (w.deadline_at > $1 OR w.wait_id > $2)
   AND ($3::text IS NULL OR s.tenant = $3) AND ($4::text IS NULL OR s.session_id = $4)
   AND ($5::text IS NULL OR w.kind = $5) AND ($6::text IS NULL OR w.answerer = $6)
   AND s.deleted_at IS NULL
 ORDER BY w.deadline_at, w.wait_id LIMIT $7

-- name: wait_list_session
-- All of a session, in any state, by their ids.
-- in: $1 after wait_id, $2 session_id, $3 tenant or null, $4 kind or null, $5 answerer or null,
--     $6 limit
SELECT {wait} FROM {wait_from}
 WHERE s.session_id = $2 AND t.session_key = s.session_key AND w.wait_id > $1
   AND ($3::text IS NULL OR s.tenant = $3) AND ($4::text IS NULL OR w.kind = $4)
   AND ($5::text IS NULL OR w.answerer = $5) AND s.deleted_at IS NULL
 ORDER BY w.wait_id LIMIT $6

-- name: wait_find
-- in: $1 part of an id as a pattern    out: two at most
SELECT w.wait_id AS wait_id FROM wait w WHERE w.wait_id LIKE $1 ORDER BY w.wait_id LIMIT 2

-- Secrets.

-- name: wait_secrets
-- out: key_id, secret, valid_until of those that are valid, the current one first
SELECT key_id, secret, valid_until FROM wait_secret
 WHERE valid_until IS NULL OR valid_until > hf_now()
 ORDER BY CASE WHEN valid_until IS NULL THEN 0 ELSE 1 END, valid_until DESC LIMIT 2

-- name: wait_secret_add
-- The first one only.
-- in: $1 key_id, $2 secret
INSERT /*lite OR ROLLBACK*/ INTO wait_secret (key_id, secret, created_at)
SELECT $1, $2, hf_now() WHERE NOT EXISTS (SELECT 1 FROM wait_secret WHERE valid_until IS NULL)
ON CONFLICT DO NOTHING

-- name: wait_secret_drop
-- All but the current one.
DELETE FROM wait_secret WHERE valid_until IS NOT NULL

-- name: wait_secret_retire
-- in: $1 how long it stays valid
UPDATE /*lite OR ROLLBACK*/ wait_secret SET valid_until = hf_now() + $1
 WHERE valid_until IS NULL

-- Upkeep.

-- name: wait_prune
-- in: $1 closed before
DELETE FROM wait
 WHERE state <> 'open' AND closed_at < $1
   AND NOT EXISTS (SELECT 1 FROM session s
                    WHERE s.session_key = wait.session_key AND s.turn_key = wait.turn_key)

-- name: doctor_waits
-- out: wait_id, what is wrong
SELECT w.wait_id AS wait_id, 'its turn is not there, or is another session''s' AS fault
  FROM wait w
 WHERE NOT EXISTS (SELECT 1 FROM session_turn t
                    WHERE t.turn_key = w.turn_key AND t.session_key = w.session_key)
UNION ALL
SELECT w.wait_id, 'it is open, and its turn has ended'
  FROM wait w JOIN session_turn t ON t.turn_key = w.turn_key
 WHERE w.state = 'open' AND t.finished_at IS NOT NULL
UNION ALL
SELECT w.wait_id, 'a sweep would act on it at another time than it says'
  FROM wait w
 WHERE w.state = 'open' AND w.kind <> 'timer'
   AND w.check_at <> coalesce(w.escalate_at, w.deadline_at)
UNION ALL
SELECT coalesce(w.waiting_ref, u.work_id), 'unit ' || u.work_id || ' waits, and no wait is open'
  FROM work_state w JOIN work_spec u ON u.seq = w.seq JOIN session_input i ON i.seq = w.seq
 WHERE w.waiting_kind IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM wait o WHERE o.turn_key = i.turn_key AND o.state = 'open')
UNION ALL
SELECT w.wait_id, 'it is due, and no worker can claim its session'
  FROM wait w JOIN session s ON s.session_key = w.session_key AND s.turn_key = w.turn_key
 WHERE w.state = 'open' AND w.kind = 'timer' AND s.claim_group IS NULL AND s.ready_at IS NULL
LIMIT 100
