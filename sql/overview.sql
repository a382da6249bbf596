-- Counts of open rows by queue, holder and age. Rows are found by {open_rows}, so that those that
-- have ended cost nothing.

-- name: overview_queues
-- in: $1 tenant or null, $2 limit
SELECT w.queue, sum(CASE WHEN w.status = 'queued' AND w.gate IS NULL THEN 1 ELSE 0 END) AS claimable,
       sum(CASE WHEN w.gate = 'due' THEN 1 ELSE 0 END) AS due,
       sum(CASE WHEN w.gate = 'lane' THEN 1 ELSE 0 END) AS lane,
       sum(CASE WHEN w.gate = 'limit' THEN 1 ELSE 0 END) AS limited,
       sum(CASE WHEN w.gate = 'rate' THEN 1 ELSE 0 END) AS rate,
       sum(CASE WHEN w.gate = 'held' THEN 1 ELSE 0 END) AS held,
       sum(CASE WHEN w.status = 'running' THEN 1 ELSE 0 END) AS running,
       sum(CASE WHEN w.waiting_kind IS NOT NULL THEN 1 ELSE 0 END) AS waiting,
       sum(CASE WHEN w.status = 'retry_scheduled' THEN 1 ELSE 0 END) AS retry,
       sum(CASE WHEN w.lease_expires_at <= hf_lease_now() THEN 1 ELSE 0 END) AS silent,
       min(CASE WHEN w.status <> 'queued' OR w.gate IS NOT NULL THEN NULL
                WHEN w.updated_at > w.due_at THEN w.updated_at ELSE w.due_at END) AS oldest_at,
       min(CASE WHEN w.gate = 'due' THEN w.due_at
                WHEN w.status = 'retry_scheduled' THEN w.next_retry_at END) AS next_due_at,
       /*lite json_group_array(DISTINCT w.kind)*//*pg jsonb_agg(DISTINCT w.kind)::text*/ AS kinds
  FROM {open_units} AS w WHERE ($1::text IS NULL OR w.tenant = $1)
 GROUP BY w.queue ORDER BY w.queue LIMIT $2

-- name: overview_holders
-- Since when an incarnation holds something, and when it last renewed, tell twins. An input of a
-- session runs on the session's lease.
-- in: $1 tenant or null, $2 owner or null, $3 limit    out: by owner
SELECT h.owner, h.owner_incarnation, min(h.started_at) AS since,
       max(h.expires_at - h.ttl_ms) + hf_now() - hf_lease_now() AS renewed_at,
       count(*) AS units,
       sum(CASE WHEN h.expires_at <= hf_lease_now() THEN 1 ELSE 0 END) AS silent,
       min(h.expires_at) - hf_lease_now() AS least_ms,
       max(h.expires_at) - hf_lease_now() AS most_ms,
       max(h.active_at) AS active_at, max(h.holder) AS holder
  FROM (SELECT w.owner, w.owner_incarnation, w.started_at, w.active_at,
               coalesce(w.lease_expires_at, s.lease_expires_at) AS expires_at,
               coalesce(w.lease_ttl_ms, s.lease_ttl_ms) AS ttl_ms,
               coalesce(w.holder, s.holder) AS holder
          FROM work_state w
          /*lite LEFT JOIN session_input i ON i.seq = w.seq AND w.session_fence IS NOT NULL
                 LEFT JOIN session s ON s.session_key = i.session_key*/
          /*pg LEFT JOIN LATERAL (
                 SELECT k.lease_expires_at, k.lease_ttl_ms, k.holder
                   FROM session_input i JOIN session k ON k.session_key = i.session_key
                  WHERE i.seq = w.seq AND w.session_fence IS NOT NULL OFFSET 0) AS s ON true*/
         WHERE w.owner IS NOT NULL AND w.status = 'running'
           AND ($1::text IS NULL OR w.tenant = $1) AND ($2::text IS NULL OR w.owner = $2)) AS h
 GROUP BY h.owner, h.owner_incarnation
 ORDER BY h.owner, min(h.started_at), h.owner_incarnation LIMIT $3

-- name: overview_ages
-- in: $1 tenant or null    out: status, age class, rows
SELECT t.status, t.age, count(*) AS units
  FROM (SELECT w.status, CASE WHEN s.created_at > hf_now() - 60000 THEN 0
                              WHEN s.created_at > hf_now() - 600000 THEN 1
                              WHEN s.created_at > hf_now() - 3600000 THEN 2
                              WHEN s.created_at > hf_now() - 86400000 THEN 3
                              WHEN s.created_at > hf_now() - 604800000 THEN 4 ELSE 5 END AS age
          FROM {open_units} AS w
          /*lite JOIN work_spec s ON s.seq = w.seq*/
          /*pg CROSS JOIN LATERAL (SELECT k.created_at FROM work_spec k WHERE k.seq = w.seq
                                   OFFSET 0) AS s*/
         WHERE ($1::text IS NULL OR w.tenant = $1)) AS t
 GROUP BY t.status, t.age

-- name: overview_leases
-- Leases of units that run and of sessions whose turn is open. The units of such a turn have no
-- lease of their own.
-- in: $1 tenant or null    out: how much of the term is left, leases
SELECT t.part, count(*) AS leases
  FROM (SELECT CASE WHEN l.left_ms <= 0 THEN 3
                    WHEN 3 * l.left_ms < l.ttl_ms THEN 2
                    WHEN 3 * l.left_ms < 2 * l.ttl_ms THEN 1 ELSE 0 END AS part
          FROM (SELECT w.lease_expires_at - hf_lease_now() AS left_ms, w.lease_ttl_ms AS ttl_ms
                  FROM work_state w WHERE {leased}
                UNION ALL
                SELECT s.lease_expires_at - hf_lease_now(), s.lease_ttl_ms
                  FROM session s WHERE {session_leased} AND s.turn_key IS NOT NULL) AS l) AS t
 GROUP BY t.part

-- At most 100 of its deliveries; the operation that lists them shows all.
-- fragment: occurrence_deliveries
(SELECT /*lite json_group_array(json_object('subscription_key', t.subscription_key, 'work_id',
                                            t.work_id, 'status', t.status))*/
        /*pg coalesce(jsonb_agg(jsonb_build_object('subscription_key', t.subscription_key,
                                                   'work_id', t.work_id, 'status',
                                                   t.status))::text, '[]')*/
   FROM (SELECT s.subscription_key, d.work_id, w.status
           FROM delivery d JOIN subscription s ON s.subscription_id = d.subscription_id
           LEFT JOIN work_spec k ON k.work_id = d.work_id
           LEFT JOIN work_state w ON w.seq = k.seq
          WHERE d.occurrence_id = o.occurrence_id ORDER BY d.delivery_id LIMIT 100) AS t)

-- name: occurrence_window
-- As subscription_window_newest.
-- in: $1 after id, $2 after created_at
SELECT occurrence_id, created_at, more
  FROM (SELECT * FROM (SELECT occurrence_id, created_at, 1 AS more FROM occurrence
                        WHERE (created_at, occurrence_id) < ($2, $1)
                        ORDER BY created_at DESC, occurrence_id DESC LIMIT 1 OFFSET 19999) AS bound
        UNION ALL
        SELECT * FROM (SELECT occurrence_id, created_at, 0 AS more FROM occurrence
                        ORDER BY created_at, occurrence_id LIMIT 1) AS past) AS b
 ORDER BY more DESC LIMIT 1

-- name: occurrence_list
-- The newest first.
-- in: $1 after this id, $2 up to this id, $3 tenant or null, $4 source_type or null,
--     $5 source_key or null, $6 limit, $7 bytes of deliveries, $8 after this created_at, $9 up to
--     this created_at
SELECT o.occurrence_id, o.tenant, o.source_type, o.source_key, o.idempotency_key, o.occurred_at,
       o.created_at, {occurrence_deliveries} AS deliveries,
       CASE WHEN (SELECT count(*) FROM (SELECT 1 FROM delivery d
                                         WHERE d.occurrence_id = o.occurrence_id LIMIT 101) AS n)
                 > 100 THEN 1 ELSE 0 END AS deliveries_more
  FROM occurrence o
 WHERE /*pg o.occurrence_id = ANY (ARRAY(SELECT p.occurrence_id
          FROM (SELECT o.occurrence_id,
                       coalesce(sum(octet_length({occurrence_deliveries}))
                                OVER (ORDER BY o.created_at DESC, o.occurrence_id DESC
                                      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
                       AS bytes_before
                  FROM occurrence o WHERE*/
       (o.created_at, o.occurrence_id) < ($8, $1) AND (o.created_at, o.occurrence_id) >= ($9, $2)
   AND ($3::text IS NULL OR o.tenant = $3) AND ($4::text IS NULL OR o.source_type = $4)
   AND ($5::text IS NULL OR o.source_key = $5)
   /*lite AND $7 > 0*/
   /*pg ORDER BY o.created_at DESC, o.occurrence_id DESC LIMIT $6) AS p WHERE p.bytes_before < $7))*/
 ORDER BY o.created_at DESC, o.occurrence_id DESC LIMIT $6
