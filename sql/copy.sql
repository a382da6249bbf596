-- Copying a store as a whole; the statements of each table are made from the schema by
-- tools/sqlcopy.py.

-- name: copy_look
-- out: 1; the batch brings clocks and incarnation
SELECT 1

-- name: copy_mark
-- Unfinished: no program opens it before copy_finish.
UPDATE hf_store SET incarnation = 0 WHERE id = 1

-- name: copy_finish
-- in: $1 incarnation
UPDATE hf_store SET incarnation = $1 WHERE id = 1

-- name: copy_history
-- Positions of a feed by transactions of another server mean nothing here: its readers begin
-- anew.
-- in: $1 incarnation
UPDATE hf_history SET began_xid = 0, began_id = 0 WHERE incarnation = $1
