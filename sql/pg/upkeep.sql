-- Doctor's and copies' statements, as PostgreSQL has them.

-- name: doctor_newest_event
-- out: created_at
SELECT max(created_at) AS created_at
  FROM ((SELECT created_at FROM work_event ORDER BY xid DESC, event_id DESC LIMIT 1)
        UNION ALL (SELECT created_at FROM work_spec ORDER BY seq DESC LIMIT 1)) AS t
HAVING max(created_at) IS NOT NULL

-- name: doctor_integrity
-- out: what the engine's own check finds wrong
SELECT 'index ' || c.relname || ' is not valid' AS fault
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
 WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace

-- name: copy_ids
SELECT max(last) FROM (VALUES
    (setval('hf_ids', greatest((SELECT max(event_id) FROM work_event),
                               (SELECT max(seq) FROM work_spec), 1))),
    (setval(pg_get_serial_sequence('session', 'session_key'),
            greatest((SELECT max(session_key) FROM session), 1)))) AS ids(last)
