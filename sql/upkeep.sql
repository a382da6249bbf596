-- Upkeep: pruning, and what doctor asks both engines.

-- Pruning: a row, its events and its request go together, in chunks.
-- name: prune_pick
-- in: $1 finished longer ago than, $2 after seq, $3 limit
-- out: seq
SELECT w.seq FROM work_state w
 WHERE finished_at IS NOT NULL AND finished_at < hf_now() - $1 AND seq > $2
 ORDER BY seq LIMIT $3

-- name: prune_mark
-- Keeps the newest event id in place when its row goes, so that no id is used twice. Only
-- the last mark stays.
INSERT /*lite OR ROLLBACK*/ INTO work_event (event_id, seq, event_type, generation, attempt,
                                             fence, actor_kind, actor, created_at)
VALUES (hf_next_id(), 0, 'pruned', 0, 0, 0, 'system', 'prune', hf_now())

-- name: prune_old_marks
DELETE FROM work_event
 WHERE seq = 0 AND event_id < (SELECT max(event_id) FROM work_event WHERE seq = 0)

-- name: prune_events
-- in: $1 seq, $2 finished before
DELETE FROM work_event
 WHERE seq = $1 AND EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1
                             AND w.finished_at IS NOT NULL AND w.finished_at < $2)

-- name: prune_state
-- in: $1 seq, $2 finished before
DELETE FROM work_state WHERE seq = $1 AND finished_at IS NOT NULL AND finished_at < $2

-- name: prune_spec
-- in: $1 seq
DELETE FROM work_spec
 WHERE seq = $1 AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = $1)

-- Checking: what guards cannot see, found by folding every trail again; a few thousand units at a
-- time, since a server ends a statement after a minute.
-- name: doctor_page
-- in: $1 seq, $2 units    out: the last of this many units after it, how many they are
SELECT max(seq) AS last_seq, count(*) AS units
  FROM (SELECT seq FROM work_spec WHERE seq > $1 ORDER BY seq LIMIT $2) AS t

-- fragment: doctor_log
(SELECT seq, event_id, event_type, from_status, to_status, generation, attempt, fence, payload
   FROM work_event WHERE seq > $1 AND seq <= $2)

-- How many failures a transition says its unit has; null where it says nothing. (A resume carries
-- an answer with any members.)
-- fragment: doctor_failures
CASE WHEN l.to_status <> 'running' AND l.event_type <> 'resumed'
          AND l.payload LIKE '%"failures":%' THEN
/*lite CAST(substr(l.payload, 11 + instr(l.payload, '"failures":')) AS INTEGER)*/
/*pg substring(l.payload from '"failures":([0-9]{1,9})')::bigint*/ END

-- name: doctor_chains
-- Two folds of each trail: of the status, over the transitions, and of what a unit counts, over all
-- of its events. The failures of one generation only rise. On PostgreSQL an event that is no
-- transition (a refused call, a sampled renewal) takes no lock of its unit: it may have counts from
-- before a transition with a smaller id. So there the transitions alone are folded.
-- in: $1, $2 of the units after the first seq, up to the second; $3 ",from>to/kind," of every edge
-- out: work_id, what is wrong
WITH log AS MATERIALIZED (SELECT * FROM {doctor_log} AS l),
units AS NOT MATERIALIZED (
SELECT w.seq, w.status, w.generation, w.attempt_count, w.lease_fence, w.failures, w.tenant,
       w.source_system, coalesce(w.disposition, '') AS disposition,
       CASE w.disposition WHEN 'owner_bound' THEN '/b,' WHEN 'externally_owned' THEN '/e,'
                          ELSE '/f,' END AS kind
  FROM work_state w WHERE w.seq > $1 AND w.seq <= $2),
specs AS NOT MATERIALIZED (
SELECT s.seq, s.work_id, s.first_status, s.tenant, s.source_system, s.note FROM work_spec s
 WHERE s.seq > $1 AND s.seq <= $2),
moves AS (
SELECT seq, event_id, from_status, to_status,
       lag(to_status) OVER (PARTITION BY seq ORDER BY event_id) AS before,
       lead(event_id) OVER (PARTITION BY seq ORDER BY event_id) IS NULL AS is_last
  FROM log WHERE to_status IS NOT NULL),
counts AS (
SELECT l.seq, l.event_id, l.generation, l.attempt, l.fence,
       coalesce(lag(l.generation) OVER (PARTITION BY l.seq ORDER BY l.event_id), 0)
       + CASE WHEN l.from_status IN ('done', 'failed', 'timeout', 'cancelled', 'abandoned')
              THEN 1 ELSE 0 END AS generation_due,
       coalesce(lag(l.attempt) OVER (PARTITION BY l.seq ORDER BY l.event_id), 0)
       + CASE WHEN l.to_status = 'running' THEN 1 ELSE 0 END AS attempt_due,
       coalesce(lag(l.fence) OVER (PARTITION BY l.seq ORDER BY l.event_id), 0)
       + CASE WHEN l.to_status = 'running' THEN 1 ELSE 0 END AS fence_due,
       lead(l.event_id) OVER (PARTITION BY l.seq ORDER BY l.event_id) IS NULL AS is_last
  FROM log l /*pg WHERE l.to_status IS NOT NULL*/),
failed AS (
SELECT l.seq, l.generation,
       coalesce(max({doctor_failures}), 0)
       + max(CASE WHEN l.to_status = 'abandoned' AND l.payload LIKE '%"writer":"sweep"%'
                  THEN 1 ELSE 0 END) AS failures
  FROM log l GROUP BY l.seq, l.generation)
SELECT s.work_id, 'an event does not follow from the one before it' AS fault
  FROM moves e JOIN specs s ON s.seq = e.seq
 WHERE e.from_status IS DISTINCT FROM coalesce(e.before, s.first_status)
UNION ALL
SELECT s.work_id, 'an event tells of a change that its unit cannot make'
  FROM moves e JOIN specs s ON s.seq = e.seq JOIN units w ON w.seq = e.seq
 WHERE /*lite instr*//*pg strpos*/($3::text, ',' || e.from_status || '>' || e.to_status || w.kind) = 0
UNION ALL
SELECT s.work_id, 'an event counts attempts, fences or generations that do not follow'
  FROM counts e JOIN specs s ON s.seq = e.seq
 WHERE e.generation <> e.generation_due OR e.attempt <> e.attempt_due OR e.fence <> e.fence_due
UNION ALL
SELECT s.work_id, 'the status is not that of the last event'
  FROM units w JOIN specs s ON s.seq = w.seq
  LEFT JOIN moves e ON e.seq = w.seq AND e.is_last
 WHERE w.status <> coalesce(e.to_status, s.first_status)
UNION ALL
SELECT s.work_id, 'the ' || CASE WHEN w.lease_fence <> coalesce(e.fence, 0) THEN 'fence'
                                 WHEN w.attempt_count <> coalesce(e.attempt, 0)
                                 THEN 'attempt count' ELSE 'generation' END
                  || ' is not that of the last event'
  FROM units w JOIN specs s ON s.seq = w.seq
  LEFT JOIN counts e ON e.seq = w.seq AND e.is_last
 WHERE w.lease_fence <> coalesce(e.fence, 0) OR w.attempt_count <> coalesce(e.attempt, 0)
    OR w.generation <> coalesce(e.generation, 0)
UNION ALL
SELECT s.work_id, 'the failures are not those of its events'
  FROM units w JOIN specs s ON s.seq = w.seq
  LEFT JOIN failed f ON f.seq = w.seq AND f.generation = w.generation
 WHERE w.failures <> coalesce(f.failures, 0)
UNION ALL
SELECT s.work_id, 'request and state are not of one unit'
  FROM units w JOIN specs s ON s.seq = w.seq
 WHERE s.tenant <> w.tenant OR s.source_system <> w.source_system
    OR /*lite instr*//*pg strpos*/($3::text, ',>' || s.first_status || w.kind) = 0
    OR (s.note LIKE '%"disposition":"%'
        AND /*lite instr*//*pg strpos*/(s.note, '"disposition":"' || w.disposition || '"') = 0)
UNION ALL
SELECT s.work_id, 'a request without a row of state'
  FROM specs s
 WHERE NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = s.seq)
UNION ALL
SELECT 'seq ' || w.seq, 'a row of state without a request'
  FROM units w
 WHERE NOT EXISTS (SELECT 1 FROM work_spec s WHERE s.seq = w.seq)
UNION ALL
SELECT 'seq ' || e.seq, 'events without a row'
  FROM work_event e
 WHERE e.seq > $1 AND e.seq <= $2
   AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = e.seq)
/*lite UNION ALL
SELECT s.work_id, 'an event of another unit has the id of its first one'
  FROM specs s JOIN work_event e ON e.event_id = s.seq
UNION ALL
SELECT 'event ' || event_id, 'no store comes to such an id, and few or none can follow'
  FROM work_event WHERE event_id > 1125899906842624 AND $2 = 9223372036854775807
UNION ALL
SELECT work_id, 'no store comes to such a key, and few or none can follow'
  FROM specs WHERE seq > 1125899906842624
*/
LIMIT 100

-- name: doctor_events
-- in: as doctor_chains    out: how many events they have, without their creates
SELECT count(*) AS events FROM {doctor_log} AS l

-- name: doctor_counts
-- out: running with a lapsed lease: what a sweep acts on, and what it never does
SELECT (SELECT count(*) FROM work_state WHERE owner IS NOT NULL AND status = 'running'
           AND lease_expires_at <= hf_lease_now() AND disposition IS DISTINCT FROM 'owner_bound')
       AS lapsed,
       (SELECT count(*) FROM work_state WHERE owner IS NOT NULL AND status = 'running'
           AND lease_expires_at <= hf_lease_now() AND disposition = 'owner_bound') AS silent

-- name: doctor_schema
-- out: version, checksum
SELECT version, checksum FROM hf_schema ORDER BY version
