-- The changes of commits to the inputs of their turns.

-- name: inputs_settle
-- The same of many callers at once: a1 to a11. Their events are the statement's own.
-- sets: text text text bigint text text text text text text text
WITH moved AS (
    UPDATE work_state w
       SET status = a.a5, status_reason = a.a6, settled_token = a.a7, settled_verb = 'close_out',
           finished_at = hf_now(), updated_at = hf_now(), owner = NULL, owner_incarnation = NULL,
           claim_group = NULL, session_fence = NULL, lease_incarnation = NULL, crashes = 0,
           crashed_at = NULL, revision = revision + 1, log_xid = {log_place},
           vouched = vouched + 1
      FROM {turn_of_args}
      JOIN session_input i ON i.session_key = t.session_key AND i.turn_key = t.turn_key
     WHERE w.seq = i.seq AND w.status = 'running' AND w.claim_group = a.a3
       AND w.session_fence = a.a4
    RETURNING w.seq, w.status, w.generation, w.attempt_count, w.lease_fence, w.log_xid,
              w.updated_at, a.a8 AS actor_kind, a.a9 AS actor, a.a10 AS note,
              a.a11 AS correlation_id)
INSERT INTO work_event (event_id, seq, created_at, xid, generation, attempt, fence, event_type,
                        from_status, to_status, actor_kind, actor, message, payload,
                        correlation_id)
SELECT hf_next_id(), seq, updated_at, log_xid, generation, attempt_count, lease_fence,
       'close_out', 'running', status, actor_kind, actor, NULL, note, correlation_id
  FROM moved
