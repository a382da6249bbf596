-- The change feed: events in the order in which readers get them. On SQLite that is the order
-- of ids, since there is one writer. On PostgreSQL it is that of (xid, event id), and only what
-- lies below every transaction that still runs is given: nothing can come before it any more,
-- since an event's xid is that of its transaction or a later one (0001_ledger, work_guard). Each
-- side is an index walk of at most a page.

-- fragment: feed_safe
pg_snapshot_xmin(pg_current_snapshot())::text::bigint

-- The newest event that readers can have been given. It is never derived from a transaction id
-- alone: a server that crashes assigns the last of those again.
-- fragment: feed_newest
/*lite
SELECT 0 AS xid, max(id) AS id FROM (SELECT max(seq) AS id FROM work_spec
                                     UNION ALL SELECT max(event_id) FROM work_event) AS t
*//*pg
SELECT xid, id FROM
   ((SELECT xid, seq AS id FROM work_spec
      WHERE xid < {feed_safe} ORDER BY xid DESC, seq DESC LIMIT 1)
    UNION ALL
    (SELECT xid, event_id FROM work_event
      WHERE xid < {feed_safe} AND seq <> 0 ORDER BY xid DESC, event_id DESC LIMIT 1)) AS t
 ORDER BY xid DESC, id DESC LIMIT 1
*/

-- name: feed_facts
-- in: $1 incarnation of the cursor
-- out: xid and id of the newest event; incarnation; xid and id of the last event that prune
-- took; of the last one before the first history after the cursor's, null where there is none; and
-- before the newest history; 1 where the server is a standby, which may be behind
SELECT n.xid, n.id, hf_incarnation(),
       (SELECT pruned_xid FROM hf_feed WHERE id = 1),
       (SELECT pruned_id FROM hf_feed WHERE id = 1),
       (SELECT began_xid FROM hf_history WHERE incarnation > $1
         ORDER BY began_xid, began_id LIMIT 1),
       (SELECT began_id FROM hf_history WHERE incarnation > $1
         ORDER BY began_xid, began_id LIMIT 1),
       (SELECT began_xid FROM hf_history ORDER BY incarnation DESC LIMIT 1),
       (SELECT began_id FROM hf_history ORDER BY incarnation DESC LIMIT 1),
       /*lite 0*//*pg pg_is_in_recovery()::int::bigint*/
  FROM (SELECT 1 AS one) AS always LEFT JOIN ({feed_newest}) AS n ON 1 = 1

-- fragment: feed_window
/*lite
SELECT 0 AS xid, event_id, seq FROM
   (SELECT * FROM (SELECT seq AS event_id, seq FROM work_spec
                    WHERE seq > $2 ORDER BY seq LIMIT $3)
    UNION ALL
    SELECT * FROM (SELECT event_id, seq FROM work_event
                    WHERE event_id > $2 ORDER BY event_id LIMIT $3))
 WHERE $1 = 0 ORDER BY event_id LIMIT $3
*//*pg
SELECT xid, event_id, seq FROM
   ((SELECT xid, seq AS event_id, seq FROM work_spec
      WHERE (xid, seq) > ($1::bigint, $2::bigint) AND xid < {feed_safe}
      ORDER BY xid, seq LIMIT $3)
    UNION ALL
    (SELECT xid, event_id, seq FROM work_event
      WHERE (xid, event_id) > ($1::bigint, $2::bigint) AND xid < {feed_safe} AND seq <> 0
      ORDER BY xid, event_id LIMIT $3)) AS merged
 ORDER BY xid, event_id LIMIT $3
*/

-- name: feed_end
-- in: $1 xid and $2 id of the cursor, $3 events looked at
-- out: xid and id of the last of them, how many they are
SELECT xid, event_id, count(*) OVER () FROM ({feed_window}) AS t
 ORDER BY xid DESC, event_id DESC LIMIT 1

-- name: feed_page
-- in: as feed_end, $4 tenant, $5 queue, $6 kind, $7 type, null for any, $8 limit
-- out: the columns of struct hf_event, then xid, tenant, queue, kind
SELECT f.event_id, s.work_id,
       CASE WHEN e.event_id IS NULL THEN 'work_created' ELSE e.event_type END,
       e.from_status, CASE WHEN e.event_id IS NULL THEN s.first_status ELSE e.to_status END,
       coalesce(e.generation, 0), coalesce(e.attempt, 0), coalesce(e.fence, 0),
       coalesce(e.actor_kind, s.actor_kind), coalesce(e.actor, s.actor), e.message,
       CASE WHEN e.event_id IS NULL THEN s.note ELSE e.payload END,
       CASE WHEN e.event_id IS NULL THEN s.correlation_id ELSE e.correlation_id END,
       coalesce(e.created_at, s.created_at), f.xid, s.tenant, w.queue, w.kind
  FROM ({feed_window}) AS f
  LEFT JOIN work_event e ON e.event_id = f.event_id AND e.seq = f.seq /*pg AND e.xid = f.xid*/
  JOIN work_spec s ON s.seq = f.seq JOIN work_state w ON w.seq = f.seq
 WHERE ($4::text IS NULL OR s.tenant = $4) AND ($5::text IS NULL OR w.queue = $5)
   AND ($6::text IS NULL OR w.kind = $6)
   AND ($7::text IS NULL OR $7 = CASE WHEN e.event_id IS NULL THEN 'work_created'
                                ELSE e.event_type END)
 ORDER BY f.xid, f.event_id LIMIT $8

-- name: feed_pruned
-- Before a row's events go: the newest of them.
-- in: $1 seq, $2 finished before
INSERT /*lite OR ROLLBACK*/ INTO hf_feed (id, pruned_xid, pruned_id)
/*lite
SELECT 1, 0, max(id)
  FROM (SELECT event_id AS id FROM work_event WHERE seq = $1 UNION ALL SELECT $1) AS t
 WHERE EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1
                  AND w.finished_at IS NOT NULL AND w.finished_at < $2)
HAVING max(id) IS NOT NULL
ON CONFLICT (id) DO UPDATE SET pruned_id = excluded.pruned_id
 WHERE excluded.pruned_id > hf_feed.pruned_id
*//*pg
SELECT 1, t.xid, t.id
  FROM (SELECT e.xid, e.event_id AS id FROM work_event e WHERE e.seq = $1::bigint
        UNION ALL
        SELECT s.xid, s.seq FROM work_spec s WHERE s.seq = $1) AS t
 WHERE EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1
                  AND w.finished_at IS NOT NULL AND w.finished_at < $2)
 ORDER BY t.xid DESC, t.id DESC LIMIT 1
ON CONFLICT (id) DO UPDATE SET pruned_xid = excluded.pruned_xid, pruned_id = excluded.pruned_id
 WHERE (excluded.pruned_xid, excluded.pruned_id) > (hf_feed.pruned_xid, hf_feed.pruned_id)
*/
