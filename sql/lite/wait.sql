-- Answers on SQLite.

-- name: inputs_resume
-- After wait_close: the units that wait in its turn are queued again.
-- in: $1 wait_id, $2 actor_kind, $3 actor, $4 note, $5 correlation_id
UPDATE OR ROLLBACK work_state
   SET status = 'queued', gate = 'lane', status_reason = 'resumed', due_at = hf_now(),
       {unit_waits_no_more}, updated_at = hf_now(), revision = revision + 1,
       event_id = hf_next_id(), event_type = 'resumed', actor_kind = $2, actor = $3,
       message = $1, note = $4, correlation_id = $5
 WHERE seq {units_of_wait} AND waiting_kind IS NOT NULL
