-- Schedules. The columns are in the order of hf_schedule_fields; tick is raised by every
-- write and is what writers compare, revision only by what people change.

-- fragment: schedule_columns
name, tenant, state, state_reason, timing, cron, every_ms, start_at, zone, days, overlap,
catch_up, miss_threshold_ms, kind, queue, lane_key, payload, priority, max_attempts,
retry_policy, disposition, start_timeout_ms, exec_timeout_ms, wake_session, origin, revision, next_at,
last_slot_at, last_work_id, made, skipped, failures, last_error, created_at, updated_at,
look_at, tick

-- name: schedule_get
-- in: $1 name, $2 tenant
SELECT {schedule_columns} FROM work_schedule WHERE name = $1 AND tenant = $2

-- Lists. A page looks at 20,000 schedules at most, in the order of names or, newest first, of
-- creation: so the last of these is looked for first. On PostgreSQL a page ends with the payload
-- that makes its bytes; on SQLite the driver stops.
-- name: schedule_window
-- in: $1 after tenant, $2 after name
-- out: the 20,000th schedule that follows, otherwise the last of all; whether it is the 20,000th
SELECT tenant, name, created_at, more
  FROM (SELECT * FROM (SELECT tenant, name, created_at, 1 AS more FROM work_schedule
                        WHERE (tenant, name) > ($1, $2)
                        ORDER BY tenant, name LIMIT 1 OFFSET 19999) AS bound
        UNION ALL
        SELECT * FROM (SELECT tenant, name, created_at, 0 AS more FROM work_schedule
                        ORDER BY tenant DESC, name DESC LIMIT 1) AS past) AS b
 ORDER BY more DESC LIMIT 1

-- name: schedule_window_newest
-- in: as schedule_window, $3 after created_at
SELECT tenant, name, created_at, more
  FROM (SELECT * FROM (SELECT tenant, name, created_at, 1 AS more FROM work_schedule
                        WHERE (created_at, tenant, name) < ($3, $1, $2)
                        ORDER BY created_at DESC, tenant DESC, name DESC
                        LIMIT 1 OFFSET 19999) AS bound
        UNION ALL
        SELECT * FROM (SELECT tenant, name, created_at, 0 AS more FROM work_schedule
                        ORDER BY created_at, tenant, name LIMIT 1) AS past) AS b
 ORDER BY more DESC LIMIT 1

-- fragment: schedule_listed
($5 = '' OR tenant = $5) AND ($6::text IS NULL OR state = $6)
   AND ($7::text IS NULL OR origin = $7)

-- name: schedule_list
-- in: $1 after tenant, $2 after name, $3 the last tenant, $4 the last name, $5 of this tenant,
--     '' of all, $6 state or null, $7 origin or null, $8 limit, $9 bytes of payloads
SELECT {schedule_columns}
  FROM /*pg (SELECT {schedule_columns},
                    coalesce(sum(coalesce(octet_length(payload), 0))
                             OVER (ORDER BY tenant, name
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
                    AS bytes_before
               FROM*/ work_schedule
 WHERE (tenant, name) > ($1, $2) AND (tenant, name) <= ($3, $4) AND {schedule_listed}
   /*lite AND $9 > 0*/
   /*pg ORDER BY tenant, name LIMIT $8) AS p WHERE p.bytes_before < $9*/
 ORDER BY tenant, name LIMIT $8

-- name: schedule_list_newest
-- in: as schedule_list, $10 after created_at, $11 the last created_at
SELECT {schedule_columns}
  FROM /*pg (SELECT {schedule_columns},
                    coalesce(sum(coalesce(octet_length(payload), 0))
                             OVER (ORDER BY created_at DESC, tenant DESC, name DESC
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
                    AS bytes_before
               FROM*/ work_schedule
 WHERE (created_at, tenant, name) < ($10, $1, $2)
   AND (created_at, tenant, name) >= ($11, $3, $4) AND {schedule_listed}
   /*lite AND $9 > 0*/
   /*pg ORDER BY created_at DESC, tenant DESC, name DESC LIMIT $8) AS p
 WHERE p.bytes_before < $9*/
 ORDER BY created_at DESC, tenant DESC, name DESC LIMIT $8

-- name: schedule_of_origin
-- in: $1 tenant, $2 origin
SELECT {schedule_columns} FROM work_schedule
 WHERE tenant = $1 AND origin = $2 ORDER BY name

-- name: schedule_insert
-- in: the columns in order
INSERT /*lite OR ROLLBACK*/ INTO work_schedule ({schedule_columns})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
        $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36,
        $37)
ON CONFLICT DO NOTHING

-- name: schedule_write
-- in: the columns in order, but $37 is the tick that was read
UPDATE /*lite OR ROLLBACK*/ work_schedule
   SET state = $3, state_reason = $4, timing = $5, cron = $6, every_ms = $7, start_at = $8,
       zone = $9, days = $10, overlap = $11, catch_up = $12, miss_threshold_ms = $13,
       kind = $14, queue = $15, lane_key = $16, payload = $17, priority = $18,
       max_attempts = $19, retry_policy = $20, disposition = $21, start_timeout_ms = $22,
       exec_timeout_ms = $23, wake_session = $24, origin = $25, revision = $26, next_at = $27,
       last_slot_at = $28, last_work_id = $29, made = $30, skipped = $31, failures = $32,
       last_error = $33, created_at = $34, updated_at = $35, look_at = $36, tick = tick + 1
 WHERE name = $1 AND tenant = $2 AND tick = $37

-- name: schedule_delete
-- in: $1 name, $2 tenant, $3 tick that was read
DELETE FROM work_schedule WHERE name = $1 AND tenant = $2 AND tick = $3

-- Passes.

-- What is in the way of a slot: for overlap `skip` and `replace` an unfinished unit of
-- the schedule, found by its dedup key; for `one_waiting` one that has not begun, found
-- in its lane.
-- fragment: schedule_in_the_way
CASE WHEN d.overlap = 'skip' OR d.overlap = 'replace' THEN
(SELECT s.work_id FROM work_state w JOIN work_spec s ON s.seq = w.seq
  WHERE w.dedup_key = 'schedule:' || d.name AND w.tenant = d.tenant
    AND w.finished_at IS NULL)
WHEN d.overlap = 'one_waiting' THEN coalesce(
(SELECT s.work_id FROM work_state w JOIN work_spec s ON s.seq = w.seq
  WHERE w.lane_key = coalesce(d.lane_key, 'schedule:' || d.name) AND w.tenant = d.tenant
    AND w.gate IS NULL AND w.status = 'queued'
    AND s.source_system = 'scheduler' AND s.source_id = d.name),
(SELECT s.work_id FROM work_state w JOIN work_spec s ON s.seq = w.seq
  WHERE w.lane_key = coalesce(d.lane_key, 'schedule:' || d.name) AND w.tenant = d.tenant
    AND (w.gate = 'due' OR w.gate = 'lane' OR w.gate = 'held') -- a lane is under no limit
    AND s.source_system = 'scheduler' AND s.source_id = d.name LIMIT 1)) END

-- name: schedule_due
-- in: $1 limit    out: the columns, then the unit in the way, or null
SELECT {schedule_columns}, {schedule_in_the_way} AS in_the_way
  FROM work_schedule d
 WHERE d.look_at <= hf_now() ORDER BY d.look_at LIMIT $1

-- name: schedule_look
-- in: $1 name, $2 tenant    out: as schedule_due
SELECT {schedule_columns}, {schedule_in_the_way} AS in_the_way
  FROM work_schedule d WHERE d.name = $1 AND d.tenant = $2

-- name: schedule_advance
-- All sets in one statement: each finds its schedule as it was read, or the batch is refused.
-- in: a1 name, a2 tenant, a3 tick that was read, a4 state, a5 next_at, a6 look_at,
--     a7 last_slot_at or null, a8 last_work_id or null, a9 made, a10 skipped
-- sets: text text bigint text bigint bigint bigint text bigint bigint
UPDATE /*lite OR ROLLBACK*/ work_schedule
   SET state = a.a4, next_at = a.a5, look_at = a.a6,
       last_slot_at = coalesce(a.a7, last_slot_at),
       last_work_id = coalesce(a.a8, last_work_id), made = made + a.a9,
       skipped = skipped + a.a10, failures = 0, last_error = NULL, updated_at = hf_now(),
       tick = tick + 1
  FROM /*pg (SELECT * FROM*/ hf_args a /*pg ORDER BY a.a2, a.a1) AS a*/
 WHERE work_schedule.name = a.a1 AND work_schedule.tenant = a.a2
   AND work_schedule.tick = a.a3

-- name: schedule_park
-- One that cannot be handled is looked at later, so that it is not in front of
-- others.
-- in: $1 name, $2 tenant, $3 tick that was read, $4 look_at, $5 last_error
UPDATE /*lite OR ROLLBACK*/ work_schedule
   SET look_at = $4, last_error = $5, failures = failures + 1, tick = tick + 1
 WHERE name = $1 AND tenant = $2 AND tick = $3

-- name: schedule_touch
-- A unit in addition to the slots: no caller may decide on what was read before it.
-- in: $1 name, $2 tenant, $3 tick that was read, $4 last_work_id
UPDATE /*lite OR ROLLBACK*/ work_schedule
   SET last_work_id = $4, made = made + 1, tick = tick + 1
 WHERE name = $1 AND tenant = $2 AND tick = $3

-- name: schedule_next
-- out: when a pass has something to do next, or null
SELECT min(look_at) AS look_at FROM work_schedule WHERE look_at IS NOT NULL

-- name: schedule_slot
-- in: $1 tenant, $2 name, $3 run id    out: name, run id, work_id
SELECT source_id, source_run_id, work_id FROM work_spec
 WHERE source_id = $2 AND source_run_id = $3 AND source_system = 'scheduler' AND tenant = $1

-- Slots that were not made.
-- name: schedule_skip_add
-- in: $1 name, $2 tenant, $3 first_at, $4 reason, $5 last_at, $6 slots, $7 more, $8 work_id
INSERT /*lite OR ROLLBACK*/ INTO work_schedule_skip (name, tenant, first_at, reason, last_at,
                                                     slots, more, work_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, hf_now())
ON CONFLICT DO NOTHING

-- name: schedule_skip_list
-- in: $1 name, $2 tenant, $3 limit
SELECT first_at, last_at, slots, more, reason, work_id, created_at FROM work_schedule_skip
 WHERE name = $1 AND tenant = $2 ORDER BY first_at DESC, reason LIMIT $3

-- name: schedule_skip_delete
-- in: $1 name, $2 tenant
DELETE FROM work_schedule_skip WHERE name = $1 AND tenant = $2

-- name: schedule_skip_prune
-- in: $1 made before
DELETE FROM work_schedule_skip WHERE created_at < $1
