-- Everything, raw, for comparing stores.

-- name: event_dump
-- out: the columns of struct hf_event, in order
SELECT event_id, work_id, event_type, from_status, to_status, generation, attempt, fence,
       actor_kind, actor, message, payload, correlation_id, created_at
  FROM runtime_work_event WHERE part = 0
 ORDER BY event_id
