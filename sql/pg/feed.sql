-- The change feed on PostgreSQL: in the order of (xid, event id).

-- The newest event that readers can have been given. It is never derived from a transaction id
-- alone: a server that crashes assigns the last of those again.
-- fragment: feed_newest
SELECT xid, id FROM
   ((SELECT xid, seq AS id FROM work_spec
      WHERE xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY xid DESC, seq DESC LIMIT 1)
    UNION ALL
    (SELECT xid, event_id FROM work_event
      WHERE xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint AND seq <> 0 ORDER BY xid DESC, event_id DESC LIMIT 1)) AS t
 ORDER BY xid DESC, id DESC LIMIT 1

-- fragment: feed_window
SELECT xid, event_id, seq FROM
   ((SELECT xid, seq AS event_id, seq FROM work_spec
      WHERE (xid, seq) > ($1::bigint, $2::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
      ORDER BY xid, seq LIMIT $3)
    UNION ALL
    (SELECT xid, event_id, seq FROM work_event
      WHERE (xid, event_id) > ($1::bigint, $2::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint AND seq <> 0
      ORDER BY xid, event_id LIMIT $3)) AS merged
 ORDER BY xid, event_id LIMIT $3

-- name: feed_pruned
-- Before a row's events go: the newest of them.
-- in: $1 seq, $2 finished before
INSERT  INTO hf_feed (id, pruned_xid, pruned_id)
SELECT 1, t.xid, t.id
  FROM (SELECT e.xid, e.event_id AS id FROM work_event e WHERE e.seq = $1::bigint
        UNION ALL
        SELECT s.xid, s.seq FROM work_spec s WHERE s.seq = $1) AS t
 WHERE EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1
                  AND w.finished_at IS NOT NULL AND w.finished_at < $2)
 ORDER BY t.xid DESC, t.id DESC LIMIT 1
ON CONFLICT (id) DO UPDATE SET pruned_xid = excluded.pruned_xid, pruned_id = excluded.pruned_id
 WHERE (excluded.pruned_xid, excluded.pruned_id) > (hf_feed.pruned_xid, hf_feed.pruned_id)
