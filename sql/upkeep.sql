-- Upkeep: pruning, and what doctor asks both engines.

-- Pruning: a row, its events and its request go together, in chunks.

-- fragment: packs_of_row
/*lite NULL, NULL*//*pg w.claim_pack, w.end_pack*/

-- name: prune_pick
-- in: $1 finished longer ago than, $2 after seq, $3 limit
-- out: seq, its packs or null, how many events it has in them where that is told
SELECT w.seq, {packs_of_row}, 0 FROM work_state w
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

-- name: prune_packs
-- A pack goes after the last of its units.
-- engine: pg
-- in: a1 pack
-- sets: bigint
DELETE FROM work_pack p
 WHERE p.xid IN (SELECT a.a1 FROM hf_args a)
   AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = ANY (p.seqs))

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
-- in: $1 seq, $2 units    out: the last of so many units after it, how many they are
SELECT max(seq), count(*)
  FROM (SELECT seq FROM work_spec WHERE seq > $1 ORDER BY seq LIMIT $2) AS t

-- fragment: doctor_log
(SELECT seq, event_id, from_status, to_status FROM work_event WHERE seq > $1 AND seq <= $2
/*pg UNION ALL
 SELECT seq, event_id, from_status, to_status FROM work_packed WHERE seq > $1 AND seq <= $2*/)

-- name: doctor_chains
-- in: $1, $2 of the units after the first seq, up to the second    out: work_id, what is wrong
SELECT s.work_id, 'an event does not follow from the one before it'
  FROM (SELECT seq, from_status, lag(to_status) OVER (PARTITION BY seq ORDER BY event_id)
               AS before
          FROM {doctor_log} AS l WHERE to_status IS NOT NULL) e
  JOIN work_spec s ON s.seq = e.seq
 WHERE e.from_status IS DISTINCT FROM coalesce(e.before, s.first_status)
UNION ALL
SELECT s.work_id, 'the status is not that of the last event'
  FROM work_state w JOIN work_spec s ON s.seq = w.seq
 WHERE w.seq > $1 AND w.seq <= $2
   AND w.status <> coalesce((SELECT e.to_status FROM /*lite work_event*//*pg work_log*/ e
                              WHERE e.seq = w.seq AND e.to_status IS NOT NULL
                              ORDER BY e.event_id DESC LIMIT 1), s.first_status)
UNION ALL
SELECT s.work_id, 'a request without a row of state'
  FROM work_spec s
 WHERE s.seq > $1 AND s.seq <= $2
   AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = s.seq)
UNION ALL
SELECT 'seq ' || e.seq, 'events without a row'
  FROM work_event e
 WHERE e.seq > $1 AND e.seq <= $2
   AND NOT EXISTS (SELECT 1 FROM work_state w WHERE w.seq = e.seq)
LIMIT 100

-- name: doctor_events
-- in: as doctor_chains    out: how many events they have beside their births
SELECT count(*) FROM {doctor_log} AS l

-- name: doctor_counts
-- out: running with a lapsed lease: what a sweep acts on, and what it never does
SELECT (SELECT count(*) FROM work_state WHERE owner IS NOT NULL AND status = 'running'
           AND lease_expires_at <= hf_lease_now() AND disposition IS DISTINCT FROM 'owner_bound'),
       (SELECT count(*) FROM work_state WHERE owner IS NOT NULL AND status = 'running'
           AND lease_expires_at <= hf_lease_now() AND disposition = 'owner_bound')

-- name: doctor_schema
-- out: version, checksum
SELECT version, checksum FROM hf_schema ORDER BY version

-- name: doctor_newest_event
-- out: created_at
SELECT max(created_at)
/*lite
  FROM (SELECT created_at FROM work_event
         WHERE event_id = (SELECT max(event_id) FROM work_event)
        UNION ALL
        SELECT created_at FROM work_spec WHERE seq = (SELECT max(seq) FROM work_spec)) AS t
*//*pg
  FROM ((SELECT created_at FROM work_event ORDER BY xid DESC, event_id DESC LIMIT 1)
        UNION ALL (SELECT created_at FROM work_pack ORDER BY xid DESC, last_id DESC LIMIT 1)
        UNION ALL (SELECT created_at FROM work_spec ORDER BY seq DESC LIMIT 1)) AS t
*/
HAVING max(created_at) IS NOT NULL

-- name: doctor_integrity
-- out: what the engine's own check finds wrong
/*lite SELECT integrity_check FROM pragma_integrity_check(100) WHERE integrity_check <> 'ok'*/
/*pg SELECT 'index ' || c.relname || ' is not valid'
       FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
      WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace*/
