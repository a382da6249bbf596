-- Answers on PostgreSQL.

-- name: inputs_resume
-- The same of many callers at once: a1 to a5. Their events are the statement's own. The lock of the
-- session's row keeps the status that `was` shows.
-- sets: text text text text text
WITH moved AS (
    UPDATE work_state w
       SET status = 'queued', gate = 'lane', status_reason = 'resumed', due_at = hf_now(),
           {unit_waits_no_more}, updated_at = hf_now(), revision = w.revision + 1,
           log_xid = greatest(txid_current(), w.log_xid), vouched = w.vouched + 1
      FROM hf_args a JOIN wait g ON g.wait_id = a.a1
      JOIN session_input i ON i.session_key = g.session_key AND i.turn_key = g.turn_key
      JOIN work_state was ON was.seq = i.seq
     WHERE w.seq = i.seq AND w.waiting_kind IS NOT NULL AND w.status = was.status
    RETURNING w.seq, w.status, w.generation, w.attempt_count, w.lease_fence, w.log_xid,
              w.updated_at, was.status AS was, a.a1 AS wait_id, a.a2 AS actor_kind,
              a.a3 AS actor, a.a4 AS note, a.a5 AS correlation_id)
INSERT INTO work_event (event_id, seq, created_at, xid, generation, attempt, fence, event_type,
                        from_status, to_status, actor_kind, actor, message, payload,
                        correlation_id)
SELECT hf_next_id(), seq, updated_at, log_xid, generation, attempt_count, lease_fence,
       'resumed', was, status, actor_kind, actor, wait_id, note, correlation_id
  FROM moved
