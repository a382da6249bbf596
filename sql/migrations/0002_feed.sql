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
