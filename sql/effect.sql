-- The effect journal. Rows of turns are written by steps only: after the guard of the session's
-- fence and of the step's number, in the same transaction as the machine's save.

-- name: effects_begin
-- Intents. A key that is known makes no row.
-- in: a1 session_id, a2 turn_id, a3 fence, a4 key, a5 kind, a6 recovery, a7 attempt, a8 envelope
-- sets: text text bigint text text text bigint text
INSERT /*lite OR ROLLBACK*/ INTO effect (turn_key, effect_key, kind, recovery, status, attempt,
                                         fence, started_at, envelope)
SELECT t.turn_key, a.a4, a.a5, a.a6, 'started', a.a7, a.a3, hf_now(), a.a8
  FROM {turn_of_args} WHERE true
ON CONFLICT DO NOTHING

-- name: effects_settle
-- Outcomes, each once.
-- in: a1 session_id, a2 turn_id, a3 key, a4 status, a5 outcome, a6 usage, a7 due_at, a8 taken_over
-- sets: text text text text text text bigint bigint
UPDATE /*lite OR ROLLBACK*/ effect
   SET status = a.a4, outcome = a.a5, usage = a.a6, due_at = a.a7, taken_over = a.a8,
       settled_at = hf_now()
  FROM {turn_of_args}
 WHERE effect.turn_key = t.turn_key AND effect.effect_key = a.a3 AND effect.status = 'started'

-- name: effects_open
-- What the open turn's next owner must know: effects without a result, and failures that wait for
-- their retry.
-- in: $1 session_id
-- out: attempt, due_at, fence, effect_key, kind, recovery, status, envelope, outcome
SELECT e.attempt, e.due_at, e.fence, e.effect_key, e.kind, e.recovery, e.status, e.envelope,
       e.outcome
  FROM session s JOIN effect e ON e.turn_key = s.turn_key
 WHERE s.session_id = $1 AND (e.status = 'started' OR e.due_at IS NOT NULL)
 ORDER BY e.effect_key

-- fragment: effect_number
/*lite CAST(e.effect_key AS INTEGER)*//*pg split_part(e.effect_key, '/', 1)::bigint*/

-- name: effects_leave
-- Those that were under way when their turn was set aside, which begins anew.
-- in: $1 session_id, $2 outcome
UPDATE /*lite OR ROLLBACK*/ effect
   SET status = CASE WHEN recovery = 'ask' OR recovery = 'probe' THEN 'unknown'
                     ELSE 'failed' END,
       outcome = $2, settled_at = hf_now()
 WHERE turn_key = (SELECT s.turn_key FROM session s WHERE s.session_id = $1)
   AND status = 'started'

-- What may have happened, and may do harm under another key.
-- fragment: performed
e.kind <> 'llm_call' AND e.recovery <> 'safe'

-- name: effects_none_performed
-- The turn of a released input continues, or there is nothing in its journal that would be repeated.
-- in: $1 session_id, $2 work_id
SELECT hf_expect(count(*), 0)
  FROM session s JOIN work_spec u ON u.work_id = $2 JOIN effect e ON e.turn_key = u.seq
 WHERE s.session_id = $1 AND s.turn_key IS DISTINCT FROM u.seq AND {performed}

-- name: effect_performed
-- in: $1 work_id    out: the first of them
SELECT e.effect_key, e.recovery, e.status
  FROM work_spec u JOIN effect e ON e.turn_key = u.seq
 WHERE u.work_id = $1 AND {performed}
 ORDER BY {effect_number}, e.effect_key LIMIT 1

-- name: blob_get
-- in: $1 hash
SELECT b.bytes FROM blob b WHERE b.hash = $1

-- Keys are N and N/CALL_ID/ATTEMPT. The text after N:
-- fragment: key_tail
ltrim(e.effect_key, '0123456789')

-- fragment: key_malformed
NOT (ltrim(substr(e.effect_key, 1, 1), '123456789') = '' AND e.effect_key <> ''
     AND (ltrim(e.effect_key, '0123456789') = ''
          OR (length(e.effect_key) - length(replace(e.effect_key, '/', '')) = 2
              AND ltrim(e.effect_key, '0123456789') LIKE '/_%/%'
              AND rtrim(e.effect_key, '0123456789') LIKE '%/'
              AND rtrim(e.effect_key, '0123456789') <> e.effect_key)))

-- fragment: key_attempt
CASE WHEN ltrim(e.effect_key, '0123456789') = '' THEN '0'
     ELSE substr(e.effect_key, length(rtrim(e.effect_key, '0123456789')) + 1) END

-- name: doctor_effects
-- Entries that do not fit their turn, or whose columns do not fit each other.
-- out: session and turn, effect_key, what is wrong
SELECT f.whose, f.effect_key, f.fault
  FROM (SELECT coalesce(s.session_id || ', turn ' || t.turn_id, 'no session') AS whose,
               e.turn_key, e.effect_key,
               CASE WHEN t.turn_key IS NULL THEN 'there is no such turn'
                    WHEN {key_malformed} THEN 'its key is malformed'
                    WHEN (e.kind = 'llm_call' AND {key_tail} <> '')
                      OR (e.kind = 'tool_call' AND {key_tail} = '')
                      OR {key_attempt} <> CAST(e.attempt AS text)
                    THEN 'its kind or its attempt is not that of its key'
                    WHEN e.fence > s.lease_fence THEN 'it was begun under a fence that no claim had'
                    WHEN t.step = 0 AND {effect_number} > t.effects_past
                     THEN 'the turn has stored no step'
                    WHEN e.status = 'started' AND t.commit_hash IS NOT NULL
                    THEN 'it has no result, and its turn is committed'
                    WHEN e.status = 'started' AND e.kind = 'llm_call'
                     AND EXISTS (SELECT 1 FROM effect o
                                  WHERE o.turn_key = e.turn_key AND o.kind = 'llm_call'
                                    AND o.status = 'started' AND o.effect_key <> e.effect_key)
                    THEN 'another model call of the turn has no result either' END AS fault
          FROM effect e LEFT JOIN session_turn t ON t.turn_key = e.turn_key
          LEFT JOIN session s ON s.session_key = t.session_key) f
 WHERE f.fault IS NOT NULL
 ORDER BY f.turn_key, f.effect_key LIMIT 100

-- name: doctor_effect_counts
-- Turns that have more or fewer entries than their steps have begun.
-- out: session and turn, begun, stored
SELECT f.whose, f.begun, f.stored
  FROM (SELECT s.session_id || ', turn ' || t.turn_id AS whose, t.effect_count AS begun,
               (SELECT count(*) FROM effect e WHERE e.turn_key = t.turn_key) AS stored, t.turn_key
          FROM session_turn t JOIN session s ON s.session_key = t.session_key) f
 WHERE f.begun <> f.stored
 ORDER BY f.turn_key LIMIT 100

-- name: doctor_saves
-- The saves of open turns.
-- in: $1 session_key of the last one    out: session_key, turn_key, step, session and turn, save
SELECT s.session_key, t.turn_key, t.step, s.session_id || ', turn ' || t.turn_id, t.save
  FROM session s JOIN session_turn t ON t.turn_key = s.turn_key
 WHERE s.session_key > $1 AND t.save IS NOT NULL AND t.finished_at IS NULL
 ORDER BY s.session_key LIMIT 20

-- name: doctor_entries
-- Those that belong to a save: none if the turn has stored another step since.
-- in: $1 turn_key, $2 step    out: effect_key, kind, status
SELECT e.effect_key, e.kind, e.status
  FROM session_turn t JOIN effect e ON e.turn_key = t.turn_key
 WHERE t.turn_key = $1 AND t.step = $2 AND t.finished_at IS NULL
 ORDER BY e.effect_key

-- fragment: entry_misfits
NOT ((e.status = 'started' AND e.outcome IS NULL AND e.settled_at IS NULL)
     OR (e.status IN ('done', 'failed', 'unknown')
         AND e.outcome IS NOT NULL AND e.settled_at IS NOT NULL))

-- fragment: lease_misfits
(e.lease_fence < 1 OR e.lease_ttl_ms < 1 OR e.lease_expires_at <= e.lease_claimed_at
 OR e.owner = '' OR e.owner_incarnation = '' OR e.claim_group = '')

-- The first lease has fence 1; each later one took the effect over.
-- fragment: take_over_misfits
(e.taken_over = 1) <> (e.lease_fence > 1)

-- name: doctor_scope_effects
-- Entries of processes and operations whose columns do not fit each other, and those of a process
-- that is not there, which contradict nothing: a begin does not look for the process.
-- out: scope and scope_id, effect_key, what is wrong, whether it is a fault
SELECT e.scope || ' ' || e.scope_id, e.effect_key,
       CASE WHEN {entry_misfits} THEN 'its status and its outcome do not fit'
            WHEN {lease_misfits} THEN 'it is under a lease that no begin grants'
            WHEN {take_over_misfits} THEN 'its fence and its mark of a take-over do not fit'
            ELSE 'there is no such process' END,
       CASE WHEN {entry_misfits} OR {lease_misfits} OR {take_over_misfits} THEN 1 ELSE 0 END
  FROM scope_effect e
 WHERE {entry_misfits} OR {lease_misfits} OR {take_over_misfits}
    OR (e.scope = 'process'
        AND NOT EXISTS (SELECT 1 FROM work_spec s JOIN process p ON p.seq = s.seq
                         WHERE s.work_id = e.scope_id))
 ORDER BY e.scope, e.scope_id, e.effect_key LIMIT 100

-- name: effects_unknown
-- Effects of which it is not known whether they happened, where nothing came after them: their turn
-- is the session's last one.
-- in: $1 tenant or null, $2 after turn_key, $3 after effect_key, $4 limit
-- out: turn_key, started_at, settled_at, attempt, session_id, turn_id, effect_key, kind, recovery,
--      outcome
SELECT e.turn_key, e.started_at, e.settled_at, e.attempt, s.session_id, t.turn_id, e.effect_key,
       e.kind, e.recovery, e.outcome
  FROM effect e JOIN session_turn t ON t.turn_key = e.turn_key
  JOIN session s ON s.session_key = t.session_key
 WHERE e.status = 'unknown' AND ($1::text IS NULL OR s.tenant = $1) AND s.deleted_at IS NULL
   AND (e.turn_key > $2 OR (e.turn_key = $2 AND e.effect_key > $3))
   AND NOT EXISTS (SELECT 1 FROM session_turn l
                    WHERE l.session_key = t.session_key AND l.turn_key > t.turn_key)
 ORDER BY e.turn_key, e.effect_key LIMIT $4

-- Effects of processes and operations. What a begin does is decided by core, from what was read.

-- fragment: journal_key
scope = $1 AND scope_id = $2 AND effect_key = $3

-- Whose holder calls: the token is the lease's, and the lease is live.
-- fragment: journal_held
claim_group = $6 AND lease_fence = $5 AND lease_incarnation = $4 AND lease_incarnation = hf_incarnation()
AND lease_expires_at > hf_lease_now() AND status = 'started'

-- name: journal_read
-- in: $1 scope, $2 scope_id, $3 key
SELECT recovery, status, envelope, outcome, owner, owner_incarnation, claim_group, lease_fence,
       lease_incarnation, lease_ttl_ms, lease_claimed_at, lease_expires_at
  FROM scope_effect WHERE {journal_key}

-- name: journal_begin
-- in: $1 scope, $2 scope_id, $3 key, $4 tenant, $5 kind, $6 recovery, $7 envelope; then the lease
INSERT /*lite OR ROLLBACK*/ INTO scope_effect (scope, scope_id, effect_key, tenant, kind, recovery,
    status, envelope, started_at, owner, owner_incarnation, claim_group, lease_fence, lease_incarnation,
    lease_ttl_ms, lease_claimed_at, lease_expires_at)
VALUES ($1, $2, $3, $4, $5, $6, 'started', $7, hf_now(), $8, $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT DO NOTHING

-- name: journal_take
-- in: $1 scope, $2 scope_id, $3 key, $4 fence and $5 expiry as read; then the lease
UPDATE /*lite OR ROLLBACK*/ scope_effect
   SET owner = $6, owner_incarnation = $7, claim_group = $8, lease_fence = $9, lease_incarnation = $10,
       lease_ttl_ms = $11, lease_claimed_at = $12, lease_expires_at = $13, taken_over = 1
 WHERE {journal_key} AND status = 'started' AND lease_fence = $4 AND lease_expires_at = $5

-- name: journal_renew
-- in: $1 scope, $2 scope_id, $3 key, $4 store, $5 fence, $6 nonce
UPDATE /*lite OR ROLLBACK*/ scope_effect
   SET lease_expires_at = /*lite max*//*pg greatest*/(lease_expires_at,
                                                      hf_lease_now() + lease_ttl_ms)
 WHERE {journal_key} AND {journal_held}

-- name: journal_settle
-- in: $1 scope, $2 scope_id, $3 key, $4 store, $5 fence, $6 nonce, $7 status, $8 outcome
UPDATE /*lite OR ROLLBACK*/ scope_effect
   SET status = $7, outcome = $8, settled_at = hf_now()
 WHERE {journal_key} AND {journal_held}

-- fragment: journal_live
SELECT 1 FROM scope_effect l
 WHERE l.scope = $1 AND l.scope_id = $2 AND l.status = 'started'
   AND l.lease_expires_at > hf_lease_now()

-- name: journal_retire
-- A scope of which an effect is performed stays.
-- in: $1 scope, $2 scope_id
DELETE FROM scope_effect
 WHERE scope = $1 AND scope_id = $2 AND NOT EXISTS ({journal_live})

-- name: prune_scope_effects
-- Those of a process, with its unit, before its row of work_spec goes.
-- in: $1 seq
DELETE FROM scope_effect
 WHERE scope = 'process' AND scope_id = (SELECT s.work_id FROM work_spec s WHERE s.seq = $1)
   AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1)

-- name: journal_busy
-- in: $1 scope, $2 scope_id
{journal_live} LIMIT 1

-- A long envelope or outcome is left out; the view has it.
-- fragment: journal_shown
e.scope, e.scope_id, e.effect_key, e.tenant, e.kind, e.recovery, e.status, e.owner,
       CASE WHEN length(e.envelope) <= 2048 THEN e.envelope END AS envelope,
       CASE WHEN length(e.outcome) <= 2048 THEN e.outcome END AS outcome,
       CASE WHEN length(e.known) <= 2048 THEN e.known END AS known,
       e.started_at, e.settled_at, e.resolved_at, e.actor_kind, e.actor

-- A begin that takes an effect over runs it again or asks its probe. It can do neither for `ask`, and
-- of a process that has ended there will be none; a repetition of `safe` does no harm.
-- fragment: journal_stranded
(e.lease_expires_at <= hf_lease_now()
        AND (e.recovery = 'ask'
             OR (e.scope = 'process' AND e.recovery <> 'safe'
                 AND NOT EXISTS (SELECT 1 FROM work_spec s JOIN work_state w ON w.seq = s.seq
                                  WHERE s.work_id = e.scope_id AND w.finished_at IS NULL))))

-- name: journal_unknown
-- Effects of which it is not known whether they happened, and of which only a person can say it.
-- in: $1 scope, $2 scope_id and $3 key: after these; $4 tenant or null, $5 limit
SELECT {journal_shown} FROM scope_effect e
 WHERE e.resolved_at IS NULL AND (e.status = 'started' OR e.status = 'unknown')
   AND (e.scope, e.scope_id, e.effect_key) > ($1, $2, $3) AND ($4::text IS NULL OR e.tenant = $4)
   AND (e.status = 'unknown' OR {journal_stranded})
 ORDER BY e.scope, e.scope_id, e.effect_key LIMIT $5

-- name: journal_resolve
-- in: $1 scope, $2 scope_id, $3 key, $4 status, $5 outcome, $6 actor_kind, $7 actor
UPDATE /*lite OR ROLLBACK*/ scope_effect
   SET status = $4, outcome = $5, known = outcome, settled_at = coalesce(settled_at, hf_now()),
       resolved_at = hf_now(), actor_kind = $6, actor = $7
 WHERE {journal_key} AND resolved_at IS NULL
   AND (status = 'unknown' OR (status = 'started' AND lease_expires_at <= hf_lease_now()))

-- name: journal_show
-- in: $1 scope, $2 scope_id, $3 key
SELECT {journal_shown}, e.outcome AS whole_outcome FROM scope_effect e
 WHERE e.scope = $1 AND e.scope_id = $2 AND e.effect_key = $3
