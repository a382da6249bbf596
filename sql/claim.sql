-- Claiming: what both engines share. A claim's nonce marks the rows it took; they are read back by it.

-- name: work_attention
-- in: $1 wall and $2 lease clock: what is due before has been seen to
-- out: 1 if a sweep would find something that could become claimable
SELECT EXISTS (SELECT 1 FROM work_state WHERE wake_at >= $1 AND wake_at <= hf_now())
    OR EXISTS (SELECT 1 FROM work_state
                WHERE lease_check_at >= $2 AND lease_check_at <= hf_lease_now())
    OR EXISTS (SELECT 1 FROM work_limit WHERE wake_at <= hf_now()) AS attention

-- What a row's lease lasts, and its grace. If no policy is set, none is looked for.
-- fragment: lease_terms
CASE WHEN $5::bigint IS NOT NULL THEN $5
     WHEN EXISTS (SELECT 1 FROM work_policy) THEN
     coalesce((SELECT p.ttl_ms FROM work_policy p WHERE p.scope = 'kind:' || w.kind),
              (SELECT p.ttl_ms FROM work_policy p WHERE p.scope = 'source:' || w.source_system),
              (SELECT p.ttl_ms FROM work_policy p WHERE p.scope = 'default'), $11)
     ELSE $11 END AS ttl_ms,
CASE WHEN EXISTS (SELECT 1 FROM work_policy) THEN
     coalesce((SELECT p.grace_ms FROM work_policy p WHERE p.scope = 'kind:' || w.kind),
              (SELECT p.grace_ms FROM work_policy p WHERE p.scope = 'source:' || w.source_system),
              (SELECT p.grace_ms FROM work_policy p WHERE p.scope = 'default'), $12)
     ELSE $12 END AS grace_ms

-- fragment: claim_queue
FROM work_state w WHERE w.status = 'queued' AND w.gate IS NULL AND w.queue = $1

-- Others are ended by a sweep.
-- fragment: claim_in_time
AND (w.deadline_at IS NULL OR w.deadline_at > hf_now())

-- fragment: claim_order
ORDER BY w.priority, w.fair_tag, w.seq LIMIT

-- fragment: take_from
FROM work_state w
WHERE w.seq = (SELECT s.seq FROM work_spec s WHERE s.work_id = $1)
  AND w.status = 'queued' AND w.gate IS NULL AND w.attempt_count = 0

-- name: work_claimed
-- SQLite would copy every row once more to put them in order; the caller that shows them
-- does.
-- in: $1 owner, $2 nonce, $3 incarnation
SELECT {row}, {lease_left} FROM {row_from}
 WHERE w.owner = $1 AND w.claim_group = $2 AND w.status = 'running'
   AND w.owner_incarnation = $3 AND w.lease_incarnation = hf_incarnation()
/*pg ORDER BY w.priority, w.fair_tag, w.seq*/

-- name: claim_fresh
-- in: $1 owner, $2 nonce, $3 incarnation
SELECT hf_expect(count(*), 0) FROM work_state w
 WHERE w.owner = $1 AND w.claim_group = $2 AND w.status = 'running'
   AND w.owner_incarnation = $3 AND w.lease_incarnation = hf_incarnation()
