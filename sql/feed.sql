-- The change feed: events in the order in which readers get them. On SQLite that is the order
-- of ids, since there is one writer. On PostgreSQL it is that of (xid, event id), and only what
-- lies below every transaction that still runs is given: nothing can come before it any more,
-- since an event's xid is that of its transaction or a later one (0001_ledger, work_guard). Each
-- side is an index walk of at most a page.

-- name: feed_facts
-- in: $1 incarnation of the cursor
-- out: xid and id of the newest event; incarnation; xid and id of the last event that prune
-- took; of the last one before the first history after the cursor's, null where there is none; and
-- before the newest history; 1 where the server is a standby, which may be behind
SELECT n.xid AS end_xid, n.id AS end_id, hf_incarnation() AS incarnation,
       (SELECT pruned_xid FROM hf_feed WHERE id = 1) AS pruned_xid,
       (SELECT pruned_id FROM hf_feed WHERE id = 1) AS pruned_id,
       (SELECT began_xid FROM hf_history WHERE incarnation > $1
         ORDER BY began_xid, began_id LIMIT 1) AS fork_xid,
       (SELECT began_id FROM hf_history WHERE incarnation > $1
         ORDER BY began_xid, began_id LIMIT 1) AS fork_id,
       (SELECT began_xid FROM hf_history ORDER BY incarnation DESC LIMIT 1) AS last_fork_xid,
       (SELECT began_id FROM hf_history ORDER BY incarnation DESC LIMIT 1) AS last_fork_id,
       /*lite 0*//*pg pg_is_in_recovery()::int::bigint*/ AS standby
  FROM (SELECT 1 AS one) AS always LEFT JOIN ({feed_newest}) AS n ON 1 = 1

-- name: feed_end
-- in: $1 xid and $2 id of the cursor, $3 events looked at
-- out: xid and id of the last of them, how many they are
SELECT xid, event_id, count(*) OVER () AS events FROM ({feed_window}) AS t
 ORDER BY xid DESC, event_id DESC LIMIT 1

-- name: feed_page
-- in: as feed_end, $4 tenant, $5 queue, $6 kind, $7 type, null for any, $8 limit
-- out: the columns of struct hf_event, then xid, tenant, queue, kind
SELECT f.event_id, s.work_id,
       CASE WHEN e.event_id IS NULL THEN 'work_created' ELSE e.event_type END AS event_type,
       e.from_status,
       CASE WHEN e.event_id IS NULL THEN s.first_status ELSE e.to_status END AS to_status,
       coalesce(e.generation, 0) AS generation, coalesce(e.attempt, 0) AS attempt,
       coalesce(e.fence, 0) AS fence, coalesce(e.actor_kind, s.actor_kind) AS actor_kind,
       coalesce(e.actor, s.actor) AS actor, e.message,
       CASE WHEN e.event_id IS NULL THEN s.note ELSE e.payload END AS payload,
       CASE WHEN e.event_id IS NULL THEN s.correlation_id
            ELSE e.correlation_id END AS correlation_id,
       coalesce(e.created_at, s.created_at) AS created_at, f.xid, s.tenant, w.queue, w.kind
  FROM ({feed_window}) AS f
  LEFT JOIN work_event e ON e.event_id = f.event_id AND e.seq = f.seq /*pg AND e.xid = f.xid*/
  JOIN work_spec s ON s.seq = f.seq JOIN work_state w ON w.seq = f.seq
 WHERE ($4::text IS NULL OR s.tenant = $4) AND ($5::text IS NULL OR w.queue = $5)
   AND ($6::text IS NULL OR w.kind = $6)
   AND ($7::text IS NULL OR $7 = CASE WHEN e.event_id IS NULL THEN 'work_created'
                                ELSE e.event_type END)
 ORDER BY f.xid, f.event_id LIMIT $8
