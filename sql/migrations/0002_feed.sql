-- What the change feed and the monitors must remember.

-- Each history of the store and the last event before it: where a reader of an older history
-- goes on. Written by guard, so that no way of raising the incarnation can forget it.
CREATE TABLE hf_history (
    incarnation INTEGER PRIMARY KEY,
    began_xid   INTEGER NOT NULL,
    began_id    INTEGER NOT NULL
) STRICT;

/*lite
CREATE TRIGGER hf_store_history AFTER UPDATE OF incarnation ON hf_store
WHEN NEW.incarnation > OLD.incarnation
BEGIN
    INSERT INTO hf_history (incarnation, began_xid, began_id)
    SELECT NEW.incarnation, 0,
           max(coalesce((SELECT max(event_id) FROM work_event), 0),
               coalesce((SELECT max(seq) FROM work_spec), 0));
END;
*//*pg
-- Whoever raises the incarnation has locked out all who write, so nothing of the new history
-- has a lower transaction id but what waits for that lock.
CREATE FUNCTION hf_store_history() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
    INSERT INTO @schema@.hf_history (incarnation, began_xid, began_id)
    VALUES (NEW.incarnation, pg_current_xact_id()::text::bigint, 0);
    RETURN NULL;
END $guard$;
CREATE TRIGGER hf_store_history AFTER UPDATE OF incarnation ON hf_store FOR EACH ROW
    WHEN (NEW.incarnation > OLD.incarnation) EXECUTE FUNCTION hf_store_history();
CREATE INDEX work_spec_feed ON work_spec (xid, seq);
*/

-- The last event that prune took: a reader that has not come so far has a gap.
CREATE TABLE hf_feed (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    pruned_xid INTEGER NOT NULL,
    pruned_id  INTEGER NOT NULL
) STRICT;

-- When a monitor last wrote: it times its own writes, to know of stalls.
CREATE TABLE hf_pulse (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at INTEGER NOT NULL
) STRICT;
