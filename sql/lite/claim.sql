-- Claiming on SQLite. A list of keys is faster than a join, so the timing of each row is worked out
-- where it is used. The guard work_moved writes the events.

-- name: work_claim_some
-- Each statement that starts costs SQLite more than another row does, and a number of rows
-- costs it no plan: so here a claim of any size is one.
-- in: $1 queue, $2 owner, $3 incarnation, $4 nonce, $5 ttl_ms or null, $6 holder,
--     $7 actor_kind, $8 actor, $9 the middle of the note, $10 correlation_id, $11 ttl_ms and
--     $12 grace_ms where no policy is set, $13 how many
{claim_set} {lease_terms} {claim_lease}
 WHERE w.seq IN (SELECT w.seq {claim_queue} {claim_in_time} {claim_order} $13)

-- name: work_claim_some_kind
-- in: as work_claim_some, but $13 the one kind, $14 how many
{claim_set} {lease_terms} {claim_lease}
 WHERE w.seq IN (SELECT w.seq {claim_queue} {claim_in_time} AND w.kind = $13 {claim_order} $14)

-- name: work_claim_some_kinds
-- in: as work_claim_some, but $13 kinds as a JSON array, $14 how many
{claim_set} {lease_terms} {claim_lease}
 WHERE w.seq IN (SELECT w.seq {claim_queue} {claim_in_time}
                    AND w.kind IN (SELECT value FROM json_each($13)) {claim_order} $14)

-- name: work_take
-- A unit that this transaction has just made, claimed at once.
-- in: as work_claim_some without its last, but $1 is its work_id
{claim_set} {lease_terms} {claim_lease} WHERE w.seq IN (SELECT w.seq {take_from})

-- fragment: claim_set
UPDATE OR ROLLBACK work_state AS w
   SET status = 'running', status_reason = NULL, owner = $2, owner_incarnation = $3,
       claim_group = $4, lease_fence = w.lease_fence + 1, lease_incarnation = hf_incarnation(),
       holder = $6, attempt_count = w.attempt_count + 1, started_at = hf_now(),
       first_started_at = coalesce(w.first_started_at, hf_now()), active_at = hf_now(),
       deadline_at = hf_now() + w.exec_timeout_ms, wake_at = hf_now() + w.exec_timeout_ms,
       updated_at = hf_now(), revision = w.revision + 1, event_id = hf_next_id(),
       event_type = 'claimed', actor_kind = $7, actor = $8, message = NULL, correlation_id = $10,
       (lease_ttl_ms, grace_ms, lease_expires_at, lease_check_at, note) =
       (SELECT t.ttl_ms, t.grace_ms, hf_lease_now() + t.ttl_ms,
               hf_lease_now() + t.ttl_ms
               + CASE WHEN w.disposition = 'expire' THEN t.grace_ms ELSE 0 END,
               CASE WHEN instr($9, '\') > 0 -- a name that JSON escapes: the guard does not
                    THEN format('{"lease":{"expires_at":%d,"fence":%d,"grace_ms":%d%s%d}}',
                                hf_lease_now() + t.ttl_ms, w.lease_fence + 1, t.grace_ms, $9,
                                t.ttl_ms) END
          FROM (SELECT

-- fragment: claim_lease
) AS t)

-- name: claim_lock
-- in: $1 owner, $2 nonce
SELECT 1 WHERE $1 IS NULL AND $2 IS NULL
