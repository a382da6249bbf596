-- Everything, raw, for comparing stores.

-- name: event_dump
-- out: the columns of struct hf_event, in order
SELECT e.event_id, s.work_id, e.event_type, e.from_status, e.to_status, e.generation,
       e.attempt, e.fence, e.actor_kind, e.actor, e.message, e.payload, e.correlation_id,
       e.created_at
  FROM work_event e JOIN work_spec s ON s.seq = e.seq
 ORDER BY e.event_id
