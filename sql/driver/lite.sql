-- The SQLite driver's own statements: the store's row and the schema's versions.

-- name: store_begin
-- columns: incarnation, commit_seq, lease_high_water
-- The first statement of every transaction.
SELECT incarnation, commit_seq, lease_high_water FROM hf_store WHERE id = 1

-- name: store_end
-- The last statement of every transaction that changed something.
-- in: $1 commit_seq, $2 lease_high_water
UPDATE hf_store SET commit_seq = $1, lease_high_water = $2 WHERE id = 1

-- name: store_row
-- columns: store_id, incarnation, commit_seq, boot_id, time_ns, lease_offset_ms, lease_high_water
SELECT store_id, incarnation, commit_seq, boot_id, time_ns, lease_offset_ms, lease_high_water
  FROM hf_store WHERE id = 1

-- name: store_create
-- in: $1 store_id, $2 boot_id, $3 time_ns, $4 lease_offset_ms, $5 lease_high_water,
--     $6 created_at
INSERT INTO hf_store (id, store_id, incarnation, commit_seq, boot_id, time_ns,
                      lease_offset_ms, lease_high_water, created_at)
VALUES (1, $1, 1, 0, $2, $3, $4, $5, $6)

-- name: store_clock
-- in: $1 boot_id, $2 time_ns, $3 lease_offset_ms, $4 lease_high_water
UPDATE hf_store
   SET boot_id = $1, time_ns = $2, lease_offset_ms = $3, lease_high_water = $4
 WHERE id = 1

-- name: store_raise
-- A new history begins: an older copy was put in place, or it is not known that none was.
-- in: $1 incarnation
UPDATE hf_store SET incarnation = $1 WHERE id = 1

-- name: store_raised
-- in: $1 at, $2 incarnation before, $3 incarnation, $4 why
INSERT INTO hf_store_log (at, what, detail)
VALUES ($1, 'raised', json_object('from', $2, 'to', $3, 'why', $4))

-- name: schema_objects
-- columns: objects, ours
-- What the file has, also of other programs. SQLite's own tables do not count.
-- out: objects, of which hf_schema
SELECT count(*), coalesce(sum(type = 'table' AND name = 'hf_schema'), 0)
  FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'
