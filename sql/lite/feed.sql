-- The change feed on SQLite: in the order of ids.

-- The newest event that readers can have been given. It is never derived from a transaction id
-- alone: a server that crashes assigns the last of those again.
-- fragment: feed_newest
SELECT 0 AS xid, max(id) AS id FROM (SELECT max(seq) AS id FROM work_spec
                                     UNION ALL SELECT max(event_id) FROM work_event) AS t

-- fragment: feed_window
SELECT 0 AS xid, event_id, seq FROM
   (SELECT * FROM (SELECT seq AS event_id, seq FROM work_spec
                    WHERE seq > $2 ORDER BY seq LIMIT $3)
    UNION ALL
    SELECT * FROM (SELECT event_id, seq FROM work_event
                    WHERE event_id > $2 ORDER BY event_id LIMIT $3))
 WHERE $1 = 0 ORDER BY event_id LIMIT $3

-- name: feed_pruned
-- Before a row's events go: the newest of them.
-- in: $1 seq, $2 finished before
INSERT OR ROLLBACK INTO hf_feed (id, pruned_xid, pruned_id)
SELECT 1, 0, max(id)
  FROM (SELECT event_id AS id FROM work_event WHERE seq = $1 UNION ALL SELECT $1) AS t
 WHERE EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1
                  AND w.finished_at IS NOT NULL AND w.finished_at < $2)
HAVING max(id) IS NOT NULL
ON CONFLICT (id) DO UPDATE SET pruned_id = excluded.pruned_id
 WHERE excluded.pruned_id > hf_feed.pruned_id
