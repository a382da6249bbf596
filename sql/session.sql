-- Sessions. Claims write what core has decided, guarded by what was read; all other writes are
-- guarded by the token of the lease. On PostgreSQL the first statement of each write locks the
-- session's row, so that those after it see what the last writer left.

-- fragment: session
s.session_key, s.head_revision, s.record_count, s.ready_at, s.waiting_until, s.lease_fence,
s.lease_ttl_ms, s.lease_expires_at, s.lease_expires_at - hf_lease_now() AS lease_remaining_ms,
s.deleted_at,
s.created_at, s.updated_at, s.lease_claimed_at, s.lease_incarnation, s.turn_key, s.lease_check_at,
s.session_id, s.tenant, s.agent, s.config, t.turn_id, s.owner, s.owner_incarnation, s.holder,
s.cancel_request, m.relation, m.parent_id, m.cause, m.labels, s.claim_group, s.chain

-- A session without its session_meta is there, and damaged: relation is null.
-- fragment: session_from
session s LEFT JOIN session_meta m ON m.session_key = s.session_key
LEFT JOIN session_turn t ON t.turn_key = s.turn_key

-- Whose holder calls: the token is the lease's, and the lease is live.
-- fragment: session_held
session_id = $1 AND claim_group = $4 AND lease_fence = $3 AND lease_incarnation = $2
AND lease_incarnation = hf_incarnation() AND lease_expires_at > hf_lease_now() AND deleted_at IS NULL

-- fragment: session_extended
/*lite max*//*pg greatest*/(lease_expires_at, hf_lease_now() + lease_ttl_ms)

-- The inputs that can begin a turn; their order is the integer key.
-- fragment: pending_inputs
FROM session_input i JOIN work_state w ON w.seq = i.seq
 WHERE i.session_key = session.session_key AND i.turn_key IS NULL
   AND w.status = 'queued' AND w.gate = 'lane'
 ORDER BY i.seq LIMIT 1

-- fragment: session_lease_none
owner = NULL, owner_incarnation = NULL, claim_group = NULL, holder = NULL, lease_incarnation = NULL,
lease_ttl_ms = NULL, lease_claimed_at = NULL, lease_expires_at = NULL, lease_check_at = NULL

-- name: session_insert
-- in: $1 session_id, $2 tenant, $3 agent, $4 config, $5 the chain of no records
INSERT /*lite OR ROLLBACK*/ INTO session (session_id, tenant, agent, config, chain, created_at,
                                          updated_at)
VALUES ($1, $2, $3, $4, $5, hf_now(), hf_now()) ON CONFLICT DO NOTHING

-- name: session_insert_meta
-- in: $1 session_id, $2 relation, $3 parent_id, $4 cause, $5 labels, $6 request_hash
INSERT /*lite OR ROLLBACK*/ INTO session_meta (session_key, relation, parent_id, cause, labels,
                                               request_hash)
SELECT s.session_key, $2, $3, $4, $5, $6 FROM session s WHERE s.session_id = $1
ON CONFLICT DO NOTHING

-- name: session_get
-- in: $1 session_id    out: the session, request_hash, the end of the last lease
SELECT {session}, m.request_hash, s.ended_token, s.ended_verb
  FROM {session_from} WHERE s.session_id = $1

-- name: session_head
-- in: $1 session_id
SELECT s.head_revision, s.record_count, s.ready_at, s.deleted_at, s.chain, s.agent, s.owner,
       t.turn_id
  FROM session s LEFT JOIN session_turn t ON t.turn_key = s.turn_key WHERE s.session_id = $1

-- name: session_known
-- in: $1 session_id
SELECT 1 FROM session WHERE session_id = $1 AND deleted_at IS NULL

-- The window of a page: 20,000 keys from the first session after the cursor.
-- name: session_window
-- in: $1 after session_key    out: the last key of the window, whether there are sessions behind it
SELECT f.first + 19999 AS last,
       CASE WHEN (SELECT max(m.session_key) FROM session m) > f.first + 19999
            THEN 1 ELSE 0 END AS more
  FROM (SELECT min(n.session_key) AS first FROM session n WHERE n.session_key > $1) AS f

-- name: session_window_newest
-- in: as session_window, in the other direction
SELECT f.first - 19999 AS last,
       CASE WHEN (SELECT min(m.session_key) FROM session m) < f.first - 19999
            THEN 1 ELSE 0 END AS more
  FROM (SELECT max(n.session_key) AS first FROM session n WHERE n.session_key < $1) AS f

-- fragment: session_listed
($2::text IS NULL OR s.tenant = $2) AND ($3::text IS NULL OR s.agent = $3)
AND ($4::text IS NULL OR m.parent_id = $4) AND ($5::bigint = 0 OR s.turn_key IS NOT NULL)
AND s.deleted_at IS NULL

-- fragment: session_bytes
coalesce(octet_length(s.config), 0) + coalesce(octet_length(m.cause), 0)
+ coalesce(octet_length(m.labels), 0)

-- name: session_list
-- in: $1 after session_key, $2 tenant or null, $3 agent or null, $4 parent_id or null,
--     $5 1: only with an open turn, $6 limit, $7 the last session_key, $8 bytes of texts
SELECT {session}, m.request_hash FROM {session_from}
 WHERE /*pg s.session_key = ANY (ARRAY(SELECT b.session_key FROM (
        SELECT s.session_key, coalesce(sum({session_bytes})
               OVER (ORDER BY s.session_key
                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
          FROM {session_from} WHERE*/
       s.session_key > $1 AND s.session_key <= $7 AND {session_listed}
   /*lite AND $8 > 0*/
   /*pg ORDER BY s.session_key LIMIT $6) AS b WHERE b.bytes_before < $8))*/
 ORDER BY s.session_key LIMIT $6

-- name: session_list_newest
-- in: as session_list
SELECT {session}, m.request_hash FROM {session_from}
 WHERE /*pg s.session_key = ANY (ARRAY(SELECT b.session_key FROM (
        SELECT s.session_key, coalesce(sum({session_bytes})
               OVER (ORDER BY s.session_key DESC
                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
          FROM {session_from} WHERE*/
       s.session_key < $1 AND s.session_key >= $7 AND {session_listed}
   /*lite AND $8 > 0*/
   /*pg ORDER BY s.session_key DESC LIMIT $6) AS b WHERE b.bytes_before < $8))*/
 ORDER BY s.session_key DESC LIMIT $6

-- Sending.

-- name: session_make_ready
-- There is something to do. A session that is leased is looked at when the lease is released. One
-- whose open turn waits stays so: only a cancel is about that turn.
-- in: $1 session_id, $2 cancel request or null, $3 work_id of the input that the batch makes, unless
--     its key was used before, or null
UPDATE /*lite OR ROLLBACK*/ session
   SET ready_at = CASE WHEN claim_group IS NULL AND (turn_key IS NULL OR $2::text IS NOT NULL)
                        AND ($3::text IS NULL
                             OR EXISTS (SELECT 1 FROM work_spec u WHERE u.work_id = $3))
                       THEN /*lite min*//*pg least*/(coalesce(ready_at, hf_now()), hf_now())
                       ELSE ready_at END,
       cancel_request = coalesce(cancel_request, $2)
 WHERE session_id = $1 AND deleted_at IS NULL

-- name: session_add_input
-- Where the batch has made the unit.
-- in: $1 session_id, $2 work_id, $3 kind
INSERT /*lite OR ROLLBACK*/ INTO session_input (seq, session_key, kind, ingress)
SELECT u.seq, s.session_key, $3, 'next_turn'
  FROM work_spec u JOIN session s ON s.session_id = $1 WHERE u.work_id = $2

-- Claiming.

-- fragment: session_seen
t.step, t.claimed_step, w.status, w.crashes, w.crashed_at

-- name: session_look
-- in: $1 session_id    out: the session, the open turn's steps, its first input's unit
SELECT {session}, {session_seen} FROM {session_from} LEFT JOIN work_state w ON w.seq = s.turn_key WHERE s.session_id = $1

-- name: session_ready
-- in: $1 agent, $2 limit    out: as session_look
SELECT {session}, {session_seen} FROM {session_from} LEFT JOIN work_state w ON w.seq = s.turn_key
 WHERE s.session_key IN (SELECT r.session_key FROM session r
                          WHERE r.agent = $1 AND r.ready_at <= hf_now()
                          ORDER BY r.ready_at, r.session_key LIMIT $2)
   AND s.deleted_at IS NULL

-- name: session_lapsed
-- Leases that it is time to look at, of which some are live.
-- in: $1 agent, $2 limit    out: as session_look
SELECT {session}, {session_seen} FROM {session_from} LEFT JOIN work_state w ON w.seq = s.turn_key
 WHERE s.session_key IN (SELECT r.session_key FROM session r
                          WHERE r.agent = $1 AND r.lease_check_at <= hf_lease_now()
                          ORDER BY r.lease_check_at LIMIT $2)
   AND s.deleted_at IS NULL

-- name: session_claimed
-- The turn that this very claim has taken before.
-- in: $1 agent, $2 nonce, $3 owner, $4 incarnation    out: as session_look
SELECT {session}, {session_seen} FROM {session_from} LEFT JOIN work_state w ON w.seq = s.turn_key
 WHERE s.claim_group = $2 AND s.agent = $1 AND s.owner = $3 AND s.owner_incarnation = $4
   AND s.lease_incarnation = hf_incarnation() AND s.lease_expires_at > hf_lease_now()
   AND s.turn_key IS NOT NULL AND s.deleted_at IS NULL
 ORDER BY s.session_key LIMIT 1

-- name: session_push
-- Live leases are looked at again when they would lapse.
-- in: $1 agent, $2 limit
UPDATE /*lite OR ROLLBACK*/ session
   SET lease_check_at = lease_expires_at
 WHERE session_key IN (SELECT r.session_key FROM session r
                        WHERE r.agent = $1 AND r.lease_check_at <= hf_lease_now()
                          AND r.lease_check_at > 0 AND r.lease_expires_at > hf_lease_now()
                        ORDER BY r.lease_check_at LIMIT $2
                        /*pg FOR NO KEY UPDATE SKIP LOCKED*/)

-- name: session_holder_dead
-- Any claim may take what the dead process held.
-- in: $1 holder
UPDATE /*lite OR ROLLBACK*/ session SET lease_check_at = 0
 WHERE holder = $1 AND lease_check_at > 0

-- name: session_take
-- The lease, and the turn: the open one, or one over the first input.
-- in: $1 session_id, $2 fence, $3 nonce, $4 expiry and $5 turn_key as read, then the lease
UPDATE /*lite OR ROLLBACK*/ session
   SET owner = $6, owner_incarnation = $7, claim_group = $8, holder = $9, lease_fence = $10,
       lease_incarnation = $11, lease_ttl_ms = $12, lease_claimed_at = $13, lease_expires_at = $14,
       lease_check_at = $14, ready_at = NULL, waiting_until = NULL,
       turn_key = coalesce(turn_key, (SELECT i.seq {pending_inputs}))
 WHERE session_id = $1 AND lease_fence = $2 AND claim_group IS NOT DISTINCT FROM $3
   AND lease_expires_at IS NOT DISTINCT FROM $4 AND turn_key IS NOT DISTINCT FROM $5
   AND deleted_at IS NULL

-- name: session_has_turn
-- in: $1 session_id
SELECT hf_expect(count(s.turn_key), 1) FROM session s WHERE s.session_id = $1

-- name: session_drop_nodes
-- What a turn left that was held or cancelled. One that was held can only begin anew from here on.
-- in: $1 session_id
DELETE FROM node
 WHERE session_key = (SELECT s.session_key FROM session s WHERE s.session_id = $1)
   AND ordinal >= (SELECT s.record_count FROM session s WHERE s.session_id = $1)

-- name: turn_begin
-- A turn whose input was held before, and which cannot continue, begins anew on the head as it is. Its
-- journal stays, and the numbers of its effects continue.
-- in: $1 session_id
INSERT /*lite OR ROLLBACK*/ INTO session_turn (turn_key, session_key, turn_id, base_revision,
                                               base_count, chain, started_at)
SELECT s.turn_key, s.session_key, u.work_id, s.head_revision, s.record_count, s.chain, hf_now()
  FROM session s JOIN work_spec u ON u.seq = s.turn_key WHERE s.session_id = $1
ON CONFLICT (turn_key) DO UPDATE
   SET base_revision = excluded.base_revision, base_count = excluded.base_count,
       chain = excluded.chain, started_at = excluded.started_at, step = 0, claimed_step = 0,
       node_count = 0, transients = NULL, save = NULL, waits_revoked_at = NULL,
       effects_past = (SELECT coalesce(max({effect_number}), 0) FROM effect e
                        WHERE e.turn_key = session_turn.turn_key)

-- name: session_reopen
-- A turn that was set aside when its input was held, and is whole: no other was begun since.
-- in: $1 session_id, $2 work_id
UPDATE /*lite OR ROLLBACK*/ session
   SET turn_key = (SELECT u.seq FROM work_spec u WHERE u.work_id = $2), ready_at = hf_now()
 WHERE session_id = $1 AND turn_key IS NULL AND claim_group IS NULL AND deleted_at IS NULL
   AND EXISTS (SELECT 1 FROM work_spec u JOIN session_turn t ON t.turn_key = u.seq
                WHERE u.work_id = $2 AND t.finished_at IS NULL
                  AND t.base_revision = session.head_revision
                  AND t.node_count = (SELECT count(*) FROM node n
                                       WHERE n.session_key = session.session_key
                                         AND n.ordinal >= session.record_count
                                         AND n.turn_key = t.turn_key))

-- name: turn_take_input
-- in: $1 session_id
UPDATE /*lite OR ROLLBACK*/ session_input SET turn_key = seq
 WHERE seq = (SELECT s.turn_key FROM session s WHERE s.session_id = $1)

-- name: turn_claimed
-- in: $1 turn_key
UPDATE /*lite OR ROLLBACK*/ session_turn SET claimed_step = step WHERE turn_key = $1

-- The inputs of the open turn. Keys are looked up one by one, so that no plan walks all inputs of
-- the session, and on PostgreSQL none begins with the units.
-- fragment: of_open_turn
/*lite IN (*//*pg = ANY (ARRAY(*/
SELECT i.seq FROM session_input i
 WHERE i.session_key = (SELECT s.session_key FROM session s WHERE s.session_id = $1)
   AND i.turn_key = (SELECT s.turn_key FROM session s WHERE s.session_id = $1)
/*lite )*//*pg ))*/

-- The event of each of them is the statement's own on PostgreSQL, as that of a claim.
-- fragment: unit_logged
/*pg RETURNING seq, status, generation, attempt_count, lease_fence, log_xid, updated_at)
INSERT INTO work_event (event_id, seq, created_at, xid, generation, attempt, fence, event_type,
                        from_status, to_status, actor_kind, actor, message, payload,
                        correlation_id)
SELECT hf_next_id(), seq, updated_at, log_xid, generation, attempt_count, lease_fence,
*/

-- name: inputs_take
-- in: $1 session_id, $2 owner, $3 incarnation, $4 nonce, $5 session fence, $6 actor_kind,
--     $7 actor, $8 note, $9 correlation_id, $10 status as read, $11 event_type
/*pg WITH moved AS (*/
UPDATE /*lite OR ROLLBACK*/ work_state
   SET status = 'running', waiting_kind = NULL, waiting_ref = NULL, deadline_at = NULL,
       escalate_at = NULL, escalate = NULL, status_reason = NULL, gate = NULL, owner = $2,
       owner_incarnation = $3, claim_group = $4, session_fence = $5,
       lease_incarnation = hf_incarnation(), lease_fence = lease_fence + 1,
       attempt_count = attempt_count + 1, started_at = hf_now(),
       first_started_at = coalesce(first_started_at, hf_now()), active_at = hf_now(),
       updated_at = hf_now(), revision = revision + 1
/*lite , event_id = hf_next_id(), event_type = $11, actor_kind = $6, actor = $7,
       message = NULL, note = $8, correlation_id = $9
*//*pg , log_xid = {log_place}, vouched = vouched + 1
*/
 WHERE seq {of_open_turn} AND status = $10
{unit_logged}
/*pg $11::text, $10::text, status, $6::text, $7::text, NULL::text, $8::text, $9::text
  FROM moved*/

-- name: inputs_retake
-- in: $1 session_id, $2 owner, $3 incarnation, $4 nonce, $5 session fence, $6 crashes,
--     $7 crashed_at
UPDATE /*lite OR ROLLBACK*/ work_state
   SET owner = $2, owner_incarnation = $3, claim_group = $4, session_fence = $5,
       lease_incarnation = hf_incarnation(), crashes = $6, crashed_at = $7, revision = revision + 1
 WHERE seq {of_open_turn} AND status = 'running'

-- name: inputs_back
-- in: $1 session_id, $2 nonce, $3 session fence, $4 gate, $5 reason, $6 crashes, $7 crashed_at,
--     $8 event_type, $9 actor_kind, $10 actor, $11 message, $12 note, $13 correlation_id
/*pg WITH moved AS (*/
UPDATE /*lite OR ROLLBACK*/ work_state
   SET status = 'queued', status_reason = $5, gate = $4, owner = NULL, owner_incarnation = NULL,
       claim_group = NULL, session_fence = NULL, lease_incarnation = NULL, crashes = $6,
       crashed_at = $7, updated_at = hf_now(), revision = revision + 1
/*lite , event_id = hf_next_id(), event_type = $8, actor_kind = $9, actor = $10, message = $11,
       note = $12, correlation_id = $13
*//*pg , log_xid = {log_place}, vouched = vouched + 1
*/
 WHERE seq {of_open_turn} AND status = 'running' AND claim_group = $2 AND session_fence = $3
{unit_logged}
/*pg $8::text, 'running'::text, status, $9::text, $10::text, $11::text, $12::text, $13::text
  FROM moved*/

-- name: inputs_run
-- Each input of the open turn runs: none was cancelled meanwhile.
-- in: $1 session_id
SELECT hf_expect(count(*), 0) FROM work_state w WHERE w.seq {of_open_turn}
   AND w.status <> 'running'

-- name: inputs_crashed
-- The inputs of the open turn have ended; its owner was lost before it could end the turn.
-- in: $1 session_id, $2 crashes, $3 crashed_at
UPDATE /*lite OR ROLLBACK*/ work_state SET crashes = $2, crashed_at = $3
 WHERE seq {of_open_turn} AND finished_at IS NOT NULL

-- name: inputs_loose
-- They are in no turn, so that a later one can begin with them.
-- in: $1 session_id
UPDATE /*lite OR ROLLBACK*/ session_input SET turn_key = NULL WHERE seq {of_open_turn}

-- name: turn_void
-- in: $1 session_id, $2 outcome
UPDATE /*lite OR ROLLBACK*/ session_turn
   SET finished_at = hf_now(), outcome = $2, save = NULL, transients = NULL
 WHERE turn_key = (SELECT s.turn_key FROM session s WHERE s.session_id = $1)

-- name: session_locked
-- in: $1 session_id, $2 fence, $3 nonce, $4 expiry and $5 turn_key as read
UPDATE /*lite OR ROLLBACK*/ session SET waiting_until = NULL
 WHERE session_id = $1 AND lease_fence = $2 AND claim_group IS NOT DISTINCT FROM $3
   AND lease_expires_at IS NOT DISTINCT FROM $4 AND turn_key IS NOT DISTINCT FROM $5

-- name: session_turn_off
-- The open turn is no more; the session is free. After session_locked.
-- in: $1 session_id
UPDATE /*lite OR ROLLBACK*/ session
   SET {session_lease_none}, turn_key = NULL, cancel_request = NULL,
       ready_at = (SELECT w.due_at {pending_inputs})
 WHERE session_id = $1

-- name: session_idle
-- A claim found nothing to do: a lease that lapsed ends, so that no later claim looks at it.
-- What came since the claim looked is seen here.
-- in: $1 session_id, $2 ready_at as read
UPDATE /*lite OR ROLLBACK*/ session
   SET {session_lease_none}, ready_at = (SELECT w.due_at {pending_inputs})
 WHERE session_id = $1 AND ready_at IS NOT DISTINCT FROM $2 AND turn_key IS NULL
   AND (claim_group IS NULL OR lease_expires_at <= hf_lease_now() OR lease_check_at = 0)

-- name: turn_open
-- in: $1 session_id
-- out: turn_key, base_revision, base_count, step, node_count, effects_past, started_at, turn_id,
--      chain, transients, save
SELECT t.turn_key, t.base_revision, t.base_count, t.step, t.node_count, t.effects_past,
       t.started_at, t.turn_id, t.chain, t.transients, t.save
  FROM session s JOIN session_turn t ON t.turn_key = s.turn_key WHERE s.session_id = $1

-- fragment: input
i.seq, w.attempt_count, w.crashes, u.created_at, i.kind, u.work_id, w.status, w.gate, u.payload,
t.turn_id

-- fragment: input_from
session s JOIN session_input i ON i.session_key = s.session_key
JOIN work_spec u ON u.seq = i.seq JOIN work_state w ON w.seq = i.seq
LEFT JOIN session_turn t ON t.turn_key = i.turn_key

-- name: turn_open_inputs
-- in: $1 session_id
SELECT {input} FROM {input_from}
 WHERE s.session_id = $1 AND i.turn_key = s.turn_key ORDER BY i.seq

-- name: session_input_known
-- in: $1 session_id, $2 work_id
SELECT i.seq FROM session s JOIN work_spec u ON u.work_id = $2
  JOIN session_input i ON i.seq = u.seq AND i.session_key = s.session_key
 WHERE s.session_id = $1

-- name: session_inputs
-- in: $1 session_id, $2 after work_id or null, $3 limit
SELECT {input} FROM {input_from}
 WHERE s.session_id = $1
   AND i.seq > coalesce((SELECT b.seq FROM work_spec b WHERE b.work_id = $2), 0)
 ORDER BY i.seq LIMIT $3

-- Under the lease.

-- name: session_fenced
-- in: $1 session_id, $2 store, $3 fence, $4 nonce
UPDATE /*lite OR ROLLBACK*/ session SET lease_expires_at = {session_extended}
 WHERE {session_held}

-- name: session_fenced_turn
-- in: as session_fenced, $5 turn_id, null for none, $6 1: only if no cancel was asked for
-- sets: text bigint bigint text text bigint
UPDATE /*lite OR ROLLBACK*/ session SET lease_expires_at = {session_extended}
 WHERE {session_held} AND ($6::bigint = 0 OR cancel_request IS NULL)
   AND turn_key IS NOT DISTINCT FROM (SELECT t.turn_key FROM session_turn t
                                       WHERE t.session_key = session.session_key
                                         AND t.turn_id = $5)

-- name: session_free
-- After session_fenced or session_commit in the same batch.
-- in: $1 session_id, $2 nonce, $3 how much later an open turn continues, or null; $4 token and
--     $5 verb that a repeat is known by, or null
-- sets: text text bigint text text
UPDATE /*lite OR ROLLBACK*/ session
   SET {session_lease_none}, waiting_until = hf_now() + $3, ended_token = $4, ended_verb = $5,
       ready_at = CASE WHEN turn_key IS NOT NULL THEN hf_now() + coalesce($3, 0)
                       ELSE (SELECT w.due_at {pending_inputs}) END
 WHERE session_id = $1 AND claim_group = $2

-- fragment: turn_as_given
session_key = (SELECT s.session_key FROM session s WHERE s.session_id = $1) AND turn_id = $2
AND finished_at IS NULL AND step = $3 AND node_count = $4 AND chain = $5

-- name: turn_step
-- in: $1 session_id, $2 turn_id, $3 step, $4 node_count and $5 chain before, $6 node_count and
--     $7 chain after, $8 more transients or null, $9 save, $10 active time since the last step,
--     $11 effects that it begins
-- sets: text text bigint bigint bytea bigint bytea text bytea bigint bigint
UPDATE /*lite OR ROLLBACK*/ session_turn
   SET step = step + 1, node_count = $6, chain = $7, save = $9, active_ms = active_ms + $10,
       effect_count = effect_count + $11,
       transients = CASE WHEN $8::text IS NULL THEN transients
                         ELSE coalesce(transients, '') || $8 END
 WHERE {turn_as_given}

-- name: turn_active
-- After session_fenced: the open turn's owner hands it back.
-- in: $1 session_id, $2 active time since the last step
UPDATE /*lite OR ROLLBACK*/ session_turn SET active_ms = active_ms + $2
 WHERE turn_key = (SELECT s.turn_key FROM session s WHERE s.session_id = $1)

-- The turn of each set, by the ids that it begins with.
-- fragment: turn_of_args
hf_args a JOIN session s ON s.session_id = a.a1
  JOIN session_turn t ON t.session_key = s.session_key AND t.turn_id = a.a2

-- name: nodes_add
-- in: a1 session_id, a2 turn_id, a3 which of the turn's nodes, a4 chain, a5 record
-- sets: text text bigint bytea text
INSERT /*lite OR ROLLBACK*/ INTO node (session_key, ordinal, turn_key, chain, record)
SELECT t.session_key, t.base_count + a.a3, t.turn_key, a.a4, a.a5
  FROM {turn_of_args}

-- name: session_commit
-- in: $1 session_id, $2 store, $3 fence, $4 nonce, $5 turn_id, $6 head_revision, $7 record_count,
--     $8 record_count and $9 chain after, $10 config or null, $11 1: only if no cancel was asked for
-- sets: text bigint bigint text text bigint bigint bigint bytea text bigint
UPDATE /*lite OR ROLLBACK*/ session
   SET head_revision = head_revision + 1, record_count = $8, chain = $9, turn_key = NULL,
       cancel_request = NULL, config = coalesce($10, config), updated_at = hf_now(),
       lease_expires_at = {session_extended}
 WHERE {session_held} AND head_revision = $6 AND record_count = $7
   AND ($11::bigint = 0 OR cancel_request IS NULL)
   AND turn_key = (SELECT t.turn_key FROM session_turn t
                    WHERE t.session_key = session.session_key AND t.turn_id = $5)

-- name: turn_commit
-- in: $1 session_id, $2 turn_id, $3 step, $4 node_count, $5 chain, $6 commit_hash, $7 outcome,
--     $8 result, $9 active time since the last step
-- sets: text text bigint bigint bytea bytea text text bigint
UPDATE /*lite OR ROLLBACK*/ session_turn
   SET finished_at = hf_now(), commit_hash = $6, outcome = $7, result = $8, save = NULL,
       active_ms = active_ms + $9,
       transients = NULL
 WHERE {turn_as_given}
   AND NOT EXISTS (SELECT 1 FROM wait w
                    WHERE w.turn_key = session_turn.turn_key AND w.state = 'open')

-- name: inputs_ended
-- The inputs of a turn that ended while it waited.
-- in: $1 session_id, $2 turn_id, $3 status
SELECT hf_expect(count(*), 0)
  FROM session s JOIN session_turn t ON t.session_key = s.session_key AND t.turn_id = $2
  JOIN session_input i ON i.session_key = t.session_key AND i.turn_key = t.turn_key
  JOIN work_state w ON w.seq = i.seq
 WHERE s.session_id = $1 AND w.status <> $3

-- name: blobs_add
-- in: a1 hash, a2 bytes
-- sets: bytea bytea
INSERT /*lite OR ROLLBACK*/ INTO blob (hash, bytes)
SELECT a.a1, a.a2 FROM hf_args a WHERE true ON CONFLICT DO NOTHING

-- name: blobs_there
-- in: $1 how many; a1 hash
-- sets: bytea
SELECT hf_expect(count(*), $1) FROM hf_args a JOIN blob b ON b.hash = a.a1

-- name: usage_add
-- in: a1 session_id, a2 turn_id, a3 ordinal, a4 source, a5 model, then the counters
-- sets: text text bigint text text bigint bigint bigint bigint bigint
INSERT /*lite OR ROLLBACK*/ INTO usage (session_key, turn_key, ordinal, source, model, input,
                                        output, cache_read, cache_write, reasoning)
SELECT t.session_key, t.turn_key, a.a3, a.a4, a.a5, a.a6, a.a7, a.a8, a.a9, a.a10
  FROM {turn_of_args}

-- name: turn_get
-- What a refused call reads.
-- in: $1 session_id, $2 turn_id
-- out: step, node_count, finished_at, length of the save, chain, commit_hash, result, the last 32
--      bytes of the save, how many waits are open, the first input's status
SELECT t.step, t.node_count, t.finished_at, length(t.save) AS save_bytes, t.chain,
       t.commit_hash, t.result,
       substr(t.save, /*lite -32*//*pg greatest(length(t.save) - 31, 1)*/) AS save_end,
       (SELECT count(*) FROM wait w
         WHERE w.turn_key = t.turn_key AND w.state = 'open') AS open_waits,
       (SELECT w.status FROM work_state w WHERE w.seq = t.turn_key) AS input_status
  FROM session s JOIN session_turn t ON t.session_key = s.session_key
 WHERE s.session_id = $1 AND t.turn_id = $2

-- name: session_renew
-- A row that another transaction has locked is left as it is.
-- in: a1 session_id, a2 store, a3 fence, a4 nonce, a5 which of the request
-- sets: text bigint bigint text bigint
UPDATE /*lite OR ROLLBACK*/ session SET lease_expires_at = {session_extended}
 WHERE session_key IN (SELECT r.session_key FROM hf_args a JOIN session r ON r.session_id = a.a1
                        WHERE r.claim_group = a.a4 AND r.lease_fence = a.a3
                          AND r.lease_incarnation = a.a2 AND r.lease_incarnation = hf_incarnation()
                          AND r.lease_expires_at > hf_lease_now()
                        /*pg ORDER BY r.session_key FOR NO KEY UPDATE OF r SKIP LOCKED*/)

-- name: session_renewed
-- in: as session_renew    out: a5, what is left of the lease, 1 if a cancellation was requested
-- sets: text bigint bigint text bigint
SELECT a.a5 AS place, r.lease_expires_at - hf_lease_now() AS lease_remaining_ms,
       CASE WHEN r.cancel_request IS NULL THEN 0 ELSE 1 END AS cancel_requested
  FROM hf_args a JOIN session r ON r.session_id = a.a1
 WHERE r.claim_group = a.a4 AND r.lease_fence = a.a3 AND r.lease_incarnation = a.a2
   AND r.lease_incarnation = hf_incarnation() AND r.lease_expires_at > hf_lease_now()

-- Reading.

-- name: session_nodes
-- in: $1 session_id, $2 first ordinal, $3 ordinal past the last, $4 limit
-- out: ordinal, turn_id, chain, record
SELECT n.ordinal, t.turn_id, n.chain, n.record
  FROM session s JOIN node n ON n.session_key = s.session_key
  LEFT JOIN session_turn t ON t.turn_key = n.turn_key
 WHERE s.session_id = $1 AND n.ordinal >= $2 AND n.ordinal < $3
 ORDER BY n.ordinal LIMIT $4

-- name: session_turn_nodes
-- Those of the open turn, and the one before them.
-- in: $1 session_id    out: as session_nodes
SELECT n.ordinal, t.turn_id, n.chain, n.record
  FROM session s JOIN node n ON n.session_key = s.session_key
  LEFT JOIN session_turn t ON t.turn_key = n.turn_key
 WHERE s.session_id = $1 AND s.turn_key IS NOT NULL AND n.ordinal >= s.record_count - 1
 ORDER BY n.ordinal

-- One turn. Each statement names it by $1 and $2, so that a batch of them is one snapshot.

-- fragment: turn_named
(SELECT b.turn_key FROM session r JOIN session_turn b ON b.session_key = r.session_key
  WHERE r.session_id = $1
    AND ($2::text IS NULL OR b.turn_id = $2
         OR b.turn_key = (SELECT i.turn_key FROM work_spec u JOIN session_input i ON i.seq = u.seq
                           WHERE u.work_id = $2))
  ORDER BY b.turn_key DESC LIMIT 1)

-- name: turn_show
-- in: $1 session_id, $2 id of the turn or of an input, or null: the last turn
-- out: base_revision, base_count, step, node_count, active_ms, started_at, finished_at, turn_id,
--      chain, outcome
SELECT t.base_revision, t.base_count, t.step, t.node_count, t.active_ms, t.started_at,
       t.finished_at, t.turn_id, t.chain, t.outcome
  FROM session_turn t WHERE t.turn_key = {turn_named}

-- name: turn_inputs
-- in: as turn_show
SELECT {input} FROM {input_from}
 WHERE s.session_id = $1 AND i.turn_key = {turn_named} ORDER BY i.seq

-- name: turn_nodes
-- Its nodes, and the one before them.
-- in: as turn_show    out: as session_nodes
SELECT n.ordinal, t.turn_id, n.chain, n.record
  FROM session_turn t JOIN node n ON n.session_key = t.session_key
 WHERE t.turn_key = {turn_named} AND n.ordinal >= t.base_count - 1
   AND (n.turn_key = t.turn_key OR n.ordinal = t.base_count - 1)
 ORDER BY n.ordinal

-- What a model attempt of a turn has used: of a turn that is not committed, and of one that began
-- anew what came before, since the rows of `usage` have what the commit knew.
-- fragment: effect_spent
SELECT 'model' AS source, CASE WHEN /*lite instr*//*pg strpos*/(e.envelope, '\u0000') > 0 THEN ''
            ELSE coalesce(/*lite CAST(json_extract(e.envelope, '$.model') AS TEXT)*/
                          /*pg e.envelope::json ->> 'model'*/, '') END AS model,
       /*lite json_extract(e.usage, '$.input')*//*pg (e.usage::json ->> 'input')::bigint*/ AS input,
       /*lite json_extract(e.usage, '$.output')*//*pg (e.usage::json ->> 'output')::bigint*/ AS output,
       /*lite json_extract(e.usage, '$.cache_read')*/
       /*pg (e.usage::json ->> 'cache_read')::bigint*/ AS cache_read,
       /*lite json_extract(e.usage, '$.cache_write')*/
       /*pg (e.usage::json ->> 'cache_write')::bigint*/ AS cache_write,
       /*lite json_extract(e.usage, '$.reasoning')*/
       /*pg (e.usage::json ->> 'reasoning')::bigint*/ AS reasoning
  FROM session_turn t JOIN effect e ON e.turn_key = t.turn_key
 WHERE (t.commit_hash IS NULL OR t.effects_past > 0) AND e.usage IS NOT NULL

-- fragment: usage_sums
u.source, u.model, sum(u.input)/*pg ::bigint*/ AS input, sum(u.output)/*pg ::bigint*/ AS output,
       sum(u.cache_read)/*pg ::bigint*/ AS cache_read,
       sum(u.cache_write)/*pg ::bigint*/ AS cache_write, sum(u.reasoning)/*pg ::bigint*/ AS reasoning

-- name: turn_usage
-- in: as turn_show    out: as session_usage
SELECT {usage_sums}
  FROM (SELECT c.source, c.model, c.input, c.output, c.cache_read, c.cache_write, c.reasoning
          FROM session_turn t JOIN usage c ON c.session_key = t.session_key AND c.turn_key = t.turn_key
         WHERE t.turn_key = {turn_named}
        UNION ALL {effect_spent} AND t.turn_key = {turn_named}
           AND (t.commit_hash IS NULL OR {effect_number} <= t.effects_past)) AS u
 GROUP BY u.source, u.model ORDER BY u.source, u.model

-- name: turn_effects
-- In the order of their numbers, then of their calls.
-- in: as turn_show
-- out: started_at, settled_at, attempt, due_at, fence, taken_over, effect_key, kind, recovery,
--      status, envelope, outcome, usage
SELECT e.started_at, e.settled_at, e.attempt, e.due_at, e.fence, e.taken_over, e.effect_key, e.kind,
       e.recovery, e.status, e.envelope, e.outcome, e.usage
  FROM effect e WHERE e.turn_key = {turn_named}
 ORDER BY {effect_number},
          e.started_at, e.effect_key

-- name: session_next
-- in: $1 agent
-- out: when one is ready next, wall; when a lease is looked at next, lease clock; when a sweep acts
--      on a wait next, wall
SELECT (SELECT min(s.ready_at) FROM session s
         WHERE s.agent = $1 AND s.ready_at IS NOT NULL) AS ready_at,
       (SELECT min(s.lease_check_at) FROM session s
         WHERE s.agent = $1 AND s.lease_check_at IS NOT NULL) AS lease_check_at,
       (SELECT min(w.check_at) FROM wait w WHERE w.check_at IS NOT NULL) AS wait_check_at

-- name: session_usage
-- in: $1 session_id    out: source, model, sums
SELECT {usage_sums}
  FROM (SELECT c.source, c.model, c.input, c.output, c.cache_read, c.cache_write, c.reasoning
          FROM session s JOIN usage c ON c.session_key = s.session_key
         WHERE s.session_id = $1
        UNION ALL {effect_spent}
           AND t.session_key = (SELECT s.session_key FROM session s WHERE s.session_id = $1)
           AND (t.commit_hash IS NULL OR {effect_number} <= t.effects_past)) AS u
 GROUP BY u.source, u.model ORDER BY u.source, u.model

-- name: doctor_sessions
-- out: session_id, what is wrong with its rows
SELECT s.session_id AS session_id,
       'its head counts ' || s.record_count || ' records, and others are stored' AS fault
  FROM session s
 WHERE s.record_count <> (SELECT count(*) FROM node n WHERE n.session_key = s.session_key
                                                        AND n.ordinal < s.record_count)
UNION ALL
SELECT s.session_id, 'the digest of its head is not that of its last record'
  FROM session s JOIN node n ON n.session_key = s.session_key AND n.ordinal = s.record_count - 1
 WHERE n.chain <> s.chain
UNION ALL
SELECT s.session_id, 'its open turn is finished, or is not there'
  FROM session s
 WHERE s.turn_key IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM session_turn t
                    WHERE t.turn_key = s.turn_key AND t.session_key = s.session_key
                      AND t.finished_at IS NULL)
UNION ALL
SELECT s.session_id, 'a unit runs that its lease does not hold, or not in its open turn'
  FROM session s JOIN session_input i ON i.session_key = s.session_key
  JOIN work_state w ON w.seq = i.seq
 WHERE w.status = 'running'
   AND (w.claim_group IS DISTINCT FROM s.claim_group OR w.session_fence <> s.lease_fence
        OR i.turn_key IS DISTINCT FROM s.turn_key)
UNION ALL
SELECT s.session_id, 'its row in session_meta is missing'
  FROM session s
 WHERE NOT EXISTS (SELECT 1 FROM session_meta m WHERE m.session_key = s.session_key)
UNION ALL
SELECT s.session_id, 'its head has revision ' || s.head_revision || ', and ' || count(t.turn_key)
                     || ' turns are committed'
  FROM session s LEFT JOIN session_turn t ON t.session_key = s.session_key
                                         AND t.commit_hash IS NOT NULL
 GROUP BY s.session_key, s.session_id, s.head_revision
HAVING count(t.turn_key) <> s.head_revision
UNION ALL
SELECT s.session_id, 'record ' || n.ordinal || ' is past its head, and not of its open turn'
  FROM session s JOIN node n ON n.session_key = s.session_key AND n.ordinal >= s.record_count
 WHERE n.turn_key IS DISTINCT FROM s.turn_key
   AND NOT (s.turn_key IS NULL -- it may be of one that was set aside
            AND EXISTS (SELECT 1 FROM session_turn t
                         WHERE t.turn_key = n.turn_key AND t.session_key = s.session_key
                           AND t.finished_at IS NULL))
UNION ALL
SELECT s.session_id, 'the receipt of its turn ' || t.turn_id || ' is not that of its records'
  FROM session s JOIN session_turn t ON t.session_key = s.session_key
  LEFT JOIN (SELECT n.session_key, n.turn_key, max(n.ordinal) + 1 AS past
               FROM node n GROUP BY n.session_key, n.turn_key) AS own
    ON own.session_key = t.session_key AND own.turn_key = t.turn_key
  JOIN node l ON l.session_key = t.session_key
             AND l.ordinal = coalesce(own.past, t.base_count) - 1
 WHERE (t.commit_hash IS NOT NULL OR t.result IS NOT NULL)
   AND (coalesce(length(t.commit_hash), 0) <> 32
        OR t.result IS DISTINCT FROM
           '{"chain":"' || /*lite lower(hex(l.chain))*//*pg encode(l.chain, 'hex')*/
           || '","head_revision":' || (t.base_revision + 1)
           || ',"record_count":' || (l.ordinal + 1) || '}')
UNION ALL
SELECT w.session_id, 'unit ' || u.work_id || ' is open, and is no input'
  FROM work_state w JOIN work_spec u ON u.seq = w.seq
 WHERE w.session_id IS NOT NULL AND w.finished_at IS NULL
   AND NOT EXISTS (SELECT 1 FROM session_input i WHERE i.seq = w.seq)
UNION ALL
SELECT session.session_id, 'an input is queued, and no claim looks for it'
  FROM session
 WHERE ready_at IS NULL AND claim_group IS NULL AND turn_key IS NULL AND deleted_at IS NULL
   AND EXISTS (SELECT 1 {pending_inputs})
UNION ALL
SELECT s.session_id, 'a number of tokens of its usage is negative'
  FROM session s
 WHERE EXISTS (SELECT 1 FROM usage g
                WHERE g.session_key = s.session_key
                  AND (g.input < 0 OR g.output < 0 OR g.cache_read < 0 OR g.cache_write < 0
                       OR g.reasoning < 0))
UNION ALL
SELECT s.session_id, 'its fence is at its ceiling: it cannot be claimed'
  FROM session s WHERE s.lease_fence = 9223372036854775807
LIMIT 100

-- name: doctor_session_ids
-- in: $1 session_key of the last one    out: session_key, session_id
SELECT s.session_key, s.session_id
  FROM session s WHERE s.session_key > $1 AND s.record_count > 0
 ORDER BY s.session_key LIMIT 100
