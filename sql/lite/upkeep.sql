-- Doctor's and copies' statements, as SQLite has them.

-- name: doctor_newest_event
-- out: created_at
SELECT max(created_at) AS created_at
  FROM (SELECT created_at FROM work_event
         WHERE event_id = (SELECT max(event_id) FROM work_event)
        UNION ALL
        SELECT created_at FROM work_spec WHERE seq = (SELECT max(seq) FROM work_spec)) AS t
HAVING max(created_at) IS NOT NULL

-- name: doctor_triggers
SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'

-- name: doctor_integrity
-- out: what the engine's own check finds wrong
SELECT integrity_check AS fault FROM pragma_integrity_check(100) WHERE integrity_check <> 'ok'

-- name: copy_ids
SELECT 1
