-- Limits and fair shares; see migrations/0004_limits.sql.

-- What a name's rows hold has changed. Three statements a name, in one transaction: count it,
-- fill the bucket and see how many may continue (limit_count); let them (limit_open); note that
-- they hold places and tokens now (limit_taken).
-- fragment: waiting_behind
n.limit_name = $1 AND (n.gate = 'limit' OR n.gate = 'rate')

-- The bucket as it is now, in tokens times rate_ms: no more than what the tokens of those
-- leave who may be claimed and were not. Until now it filled next to the tokens that were
-- reserved until now, also those that are spent by this very batch.
-- fragment: limit_filled
/*lite max*//*pg greatest*/(0, /*lite min*//*pg least*/(
    (l.rate_burst - l.reserved - $3) * l.rate_ms,
    /*lite min*//*pg least*/(
        (l.rate_burst - l.reserved) * l.rate_ms,
        l.level + /*lite max*//*pg greatest*/(0, hf_now() - l.level_at) * l.rate_count)
    + $4 * l.rate_ms))

-- On PostgreSQL a statement reads the clock before it waits for the limit's row, so what it read may be
-- older than what is stored: time that was filled in already would be filled in again. (A clock that
-- was set back by more than a minute begins anew.)
-- fragment: limit_level_at
/*lite hf_now()*//*pg CASE WHEN work_limit.level_at - hf_now() BETWEEN 1 AND 60000
                           THEN work_limit.level_at ELSE hf_now() END*/

-- fragment: limit_places
CASE WHEN l.max_running IS NULL THEN 1000000000
     WHEN l.max_running > l.used + $2 THEN l.max_running - l.used - $2
     ELSE 0 END

-- On PostgreSQL a statement that waited for a lock continues with what it saw before it waited,
-- except the row it locks. So names are locked first, in their order, by a statement
-- of its own.
-- name: limit_lock
-- in: $1 name
/*lite SELECT 1 WHERE $1 IS NULL*//*pg SELECT 1 FROM work_limit WHERE name = $1 FOR UPDATE*/

-- name: limit_count
-- in: $1 name, $2 change of used, $3 change of reserved, $4 tokens that came back
INSERT /*lite OR ROLLBACK*/ INTO work_limit (name, granted)
VALUES ($1, (SELECT count(*)
               FROM (SELECT 1 FROM work_state n WHERE {waiting_behind}
                      LIMIT (SELECT CASE WHEN EXISTS (SELECT 1 FROM work_limit l
                                                       WHERE l.name = $1)
                                         THEN 0 ELSE 1000000000 END)) AS t))
ON CONFLICT (name) DO UPDATE
   SET used = work_limit.used + $2,
       reserved = CASE WHEN work_limit.rate_ms IS NULL THEN 0
                       ELSE work_limit.reserved + $3 END,
       level = CASE WHEN work_limit.rate_ms IS NULL THEN 0
                    ELSE (SELECT {limit_filled} FROM work_limit l WHERE l.name = $1) END,
       level_at = CASE WHEN work_limit.rate_ms IS NULL THEN work_limit.level_at
                       ELSE {limit_level_at} END,
       granted = (SELECT count(*)
                    FROM (SELECT 1 FROM work_state n WHERE {waiting_behind}
                           LIMIT (SELECT CASE WHEN l.rate_ms IS NULL
                                                OR {limit_places} < {limit_filled} / l.rate_ms
                                              THEN {limit_places}
                                              ELSE {limit_filled} / l.rate_ms END
                                    FROM work_limit l WHERE l.name = $1)) AS t)

-- name: limit_open
-- in: $1 name    out: queue of each row that may be claimed now
-- columns: queue
UPDATE /*lite OR ROLLBACK*/ work_state
   SET gate = NULL, revision = revision + 1
 WHERE seq IN (SELECT n.seq FROM work_state n WHERE {waiting_behind}
                ORDER BY n.priority, n.fair_tag, n.seq
                LIMIT (SELECT l.granted FROM work_limit l WHERE l.name = $1))
RETURNING queue

-- name: limit_taken
-- The clock is watched only while a caller waits for a token alone.
-- in: $1 name
UPDATE /*lite OR ROLLBACK*/ work_limit
   SET used = used + granted, granted = 0,
       reserved = CASE WHEN rate_ms IS NULL THEN 0 ELSE reserved + granted END,
       level = CASE WHEN rate_ms IS NULL THEN 0 ELSE level - granted * rate_ms END,
       wake_at = CASE WHEN rate_ms IS NOT NULL
                       AND (max_running IS NULL OR used + granted < max_running)
                       AND EXISTS (SELECT 1 FROM work_state n WHERE {waiting_behind})
                      THEN hf_now() + (rate_ms - (level - granted * rate_ms)
                                       + rate_count - 1) / rate_count END
 WHERE name = $1 AND (granted > 0 OR rate_ms IS NOT NULL)

-- Rows that are made under a limit without a rate: places are taken for as many as there is
-- room for, and these have no gate when they are written (work_insert_limited). Where a
-- caller waits there is no room, so no caller is passed over. A rate that was set a
-- moment ago is looked at by the next sweep.
-- fragment: limit_room
CASE WHEN work_limit.rate_ms IS NOT NULL THEN 0
     WHEN work_limit.max_running IS NULL THEN excluded.room
     WHEN work_limit.max_running - work_limit.used >= excluded.room THEN excluded.room
     WHEN work_limit.max_running > work_limit.used
     THEN work_limit.max_running - work_limit.used ELSE 0 END

-- name: limit_admit
-- in: $1 name, $2 rows
INSERT /*lite OR ROLLBACK*/ INTO work_limit (name, used, room) VALUES ($1, $2, $2)
ON CONFLICT (name) DO UPDATE
   SET room = {limit_room}, used = work_limit.used + {limit_room},
       wake_at = CASE WHEN work_limit.rate_ms IS NULL THEN work_limit.wake_at ELSE hf_now() END

-- name: limit_admits
-- In the order of names, which is that of locks.
-- in: a1 name, a2 rows
-- sets: text bigint
INSERT /*lite OR ROLLBACK*/ INTO work_limit (name, used, room)
SELECT a.a1, a.a2, a.a2 FROM hf_args a WHERE true ORDER BY a.a1
ON CONFLICT (name) DO UPDATE
   SET room = {limit_room}, used = work_limit.used + {limit_room},
       wake_at = CASE WHEN work_limit.rate_ms IS NULL THEN work_limit.wake_at ELSE hf_now() END

-- name: limit_claimed
-- Rows with a rate have started: their tokens are spent, and the bucket may fill again.
-- in: $1 owner, $2 nonce, $3 incarnation
WITH c AS MATERIALIZED (
    SELECT q.limit_name AS name, count(*) AS started
      FROM (SELECT 1 FROM work_limit WHERE rate_ms IS NOT NULL LIMIT 1) AS r
     CROSS JOIN work_state q
     WHERE q.owner = $1 AND q.claim_group = $2 AND q.owner_incarnation = $3
       AND q.lease_incarnation = hf_incarnation() AND q.limit_name IS NOT NULL
     GROUP BY q.limit_name)
UPDATE /*lite OR ROLLBACK*/ work_limit
   SET level = /*lite max*//*pg greatest*/(0, /*lite min*//*pg least*/(
                   (rate_burst - reserved) * rate_ms,
                   level + /*lite max*//*pg greatest*/(0, hf_now() - level_at) * rate_count)),
       level_at = {limit_level_at}, reserved = reserved - c.started,
       wake_at = coalesce(wake_at, hf_now())
  FROM c
 WHERE work_limit.name = c.name AND work_limit.rate_ms IS NOT NULL

-- name: limit_due
-- in: $1 limit    out: name
SELECT name FROM work_limit WHERE wake_at <= hf_now() ORDER BY wake_at LIMIT $1

-- name: limit_write
-- Counts anew what the rows hold. A new rate begins with a full bucket.
-- in: $1 name, $2 max_running, $3 rate_count, $4 rate_ms, $5 burst
INSERT /*lite OR ROLLBACK*/ INTO work_limit (name, max_running, rate_count, rate_ms,
                                             rate_burst, used, reserved, level, level_at)
SELECT $1, $2::bigint, $3::bigint, $4::bigint, $5::bigint, h.held,
       CASE WHEN $4 IS NULL THEN 0 ELSE h.open END, coalesce($4 * $5, 0), hf_now()
  FROM (SELECT count(*) AS held, count(CASE WHEN w.status = 'queued' THEN 1 END) AS open
          FROM work_state w
         WHERE w.seq IN {open_rows} AND w.limit_name = $1 AND w.gate IS NULL
           AND (w.status = 'queued' OR w.status = 'running')) AS h
 WHERE true
ON CONFLICT (name) DO UPDATE
   SET max_running = excluded.max_running, rate_count = excluded.rate_count,
       rate_ms = excluded.rate_ms, rate_burst = excluded.rate_burst,
       used = excluded.used, reserved = excluded.reserved,
       level = CASE WHEN work_limit.rate_ms = excluded.rate_ms
                    THEN work_limit.level ELSE excluded.level END,
       level_at = CASE WHEN work_limit.rate_ms = excluded.rate_ms
                       THEN work_limit.level_at ELSE excluded.level_at END,
       wake_at = NULL

-- name: limit_list
-- out: name, max_running, rate_count, rate_ms, rate_burst, used, reserved, wake_at, waiting
SELECT l.name, l.max_running, l.rate_count, l.rate_ms, l.rate_burst, l.used, l.reserved,
       l.wake_at, (SELECT count(*) FROM work_state n
                    WHERE n.limit_name = l.name
                      AND (n.gate = 'limit' OR n.gate = 'rate')) AS waiting
  FROM work_limit l ORDER BY l.name

-- name: limit_kinds
-- out: names of kinds that have a limit
SELECT name FROM work_limit
 WHERE name >= 'kind:' AND name < 'kind;' AND (max_running IS NOT NULL OR rate_ms IS NOT NULL)

-- name: limit_rated
-- out: whether any limit has a rate
SELECT CASE WHEN EXISTS (SELECT 1 FROM work_limit WHERE rate_ms IS NOT NULL)
            THEN 1 ELSE 0 END AS rated

-- name: limit_prune
-- Names that no caller set and no caller uses; a row that comes back makes its own anew.
DELETE FROM work_limit
 WHERE max_running IS NULL AND rate_ms IS NULL AND used = 0
   AND name NOT IN (SELECT w.limit_name FROM work_state w
                     WHERE w.seq IN {open_rows} AND w.limit_name IS NOT NULL)

-- name: fair_take
-- Tags for some rows of a key, a share apart. The tag that is being served is that of the
-- first claimable row; where none waits, all that was given out has been served.
-- in: $1 queue, $2 priority, $3 fair key, $4 shares of all the rows
INSERT /*lite OR ROLLBACK*/ INTO work_fair (queue, priority, fair_key, first_tag, next_tag,
                                            updated_at)
SELECT $1, $2::bigint, $3, v.tag, v.tag + $4::bigint, hf_now()
  FROM (SELECT coalesce((SELECT q.fair_tag FROM work_state q
                          WHERE q.status = 'queued' AND q.gate IS NULL AND q.queue = $1
                            AND q.priority = $2 AND q.fair_tag > 0
                          ORDER BY q.fair_tag LIMIT 1),
                        (SELECT max(f.next_tag) FROM work_fair f
                          WHERE f.queue = $1 AND f.priority = $2), 1) AS tag) AS v
 WHERE true
ON CONFLICT (queue, priority, fair_key) DO UPDATE
   SET first_tag = /*lite max*//*pg greatest*/(work_fair.next_tag, excluded.first_tag),
       next_tag = /*lite max*//*pg greatest*/(work_fair.next_tag, excluded.first_tag)
                + $4,
       updated_at = excluded.updated_at

-- name: fair_tag
-- in: $1 work_id, $2 queue, $3 priority, $4 fair key, $5 how far behind the first
UPDATE /*lite OR ROLLBACK*/ work_state
   SET fair_tag = (SELECT f.first_tag + $5 FROM work_fair f
                    WHERE f.queue = $2 AND f.priority = $3 AND f.fair_key = $4)
 WHERE seq = (SELECT s.seq FROM work_spec s WHERE s.work_id = $1)

-- name: fair_prune
-- Keys that have been quiet for that long; all they lose is a tag that has been served.
-- in: $1 quiet since
DELETE FROM work_fair
 WHERE updated_at < $1
   AND NOT EXISTS (SELECT 1 FROM work_state q
                    WHERE q.status = 'queued' AND q.gate IS NULL AND q.queue = work_fair.queue
                      AND q.priority = work_fair.priority)

-- name: doctor_limits
-- out: name, what is wrong
SELECT l.name, 'the limit counts ' || l.used || ' units where ' || coalesce(h.held, 0)
               || ' are claimable or running' AS fault
  FROM work_limit l
  LEFT JOIN (SELECT w.limit_name, count(*) AS held FROM work_state w
              WHERE w.seq IN {open_rows} AND w.limit_name IS NOT NULL AND w.gate IS NULL
                AND (w.status = 'queued' OR w.status = 'running')
              GROUP BY w.limit_name) AS h ON h.limit_name = l.name
 WHERE l.used <> coalesce(h.held, 0)
 LIMIT 100
