-- Amnesty: a monitor that saw the store stall extends the leases that could not be renewed
-- meanwhile.

-- name: pulse
-- A write that is as durable as any, if there is a lease; otherwise nothing.
INSERT /*lite OR ROLLBACK*/ INTO hf_pulse (id, at)
SELECT 1, hf_now()
 WHERE EXISTS (SELECT 1 FROM work_state w WHERE w.owner IS NOT NULL AND w.status = 'running')
    OR EXISTS (SELECT 1 FROM session s WHERE s.lease_check_at > 0)
ON CONFLICT (id) DO UPDATE SET at = excluded.at

-- name: pulse_read
-- out: at
SELECT at FROM hf_pulse WHERE id = 1

-- Alive when the stall began, and lapsed by now or before its holder can be expected to renew.
-- Leases of more than three times the stall had time to be renewed before and after it.
-- fragment: amnesty_rows
SELECT w.seq FROM work_state w
 WHERE w.owner IS NOT NULL AND w.status = 'running' AND w.lease_incarnation = hf_incarnation()
   AND w.lease_ttl_ms < 3 * $1
   AND w.lease_expires_at >= hf_lease_now() - $1
   AND w.lease_expires_at < hf_lease_now() + w.lease_ttl_ms / 3
 ORDER BY w.seq

-- The same of sessions. A holder that was proven dead (0) has none to renew.
-- fragment: amnesty_sessions
SELECT s.session_key FROM session s
 WHERE s.lease_check_at > 0 AND s.lease_incarnation = hf_incarnation()
   AND s.lease_ttl_ms < 3 * $1
   AND s.lease_expires_at >= hf_lease_now() - $1
   AND s.lease_expires_at < hf_lease_now() + s.lease_ttl_ms / 3
 ORDER BY s.session_key

-- name: amnesty_log
-- in: $1 how long the calls stalled, ms, $2 the beginning of the note
INSERT /*lite OR ROLLBACK*/ INTO hf_store_log (at, what, detail)
SELECT hf_now(), 'amnesty', $2 || t.leases || '}'
  FROM (SELECT (SELECT count(*) FROM ({amnesty_rows}) AS units)
               + (SELECT count(*) FROM ({amnesty_sessions}) AS sessions) AS leases) AS t
 WHERE t.leases > 0

-- name: amnesty_give
-- in: $1 as above
UPDATE /*lite OR ROLLBACK*/ work_state
   SET lease_expires_at = hf_lease_now() + lease_ttl_ms,
       lease_check_at = hf_lease_now() + lease_ttl_ms
                        + CASE WHEN disposition = 'expire' THEN coalesce(grace_ms, 0) ELSE 0 END
 WHERE seq IN ({amnesty_rows} /*pg FOR UPDATE SKIP LOCKED*/)

-- name: amnesty_give_sessions
-- in: $1 as above
UPDATE /*lite OR ROLLBACK*/ session SET lease_expires_at = hf_lease_now() + lease_ttl_ms
 WHERE session_key IN ({amnesty_sessions} /*pg FOR UPDATE SKIP LOCKED*/)
