-- Limits and fair shares. Rows of work_state carry the name of their limit and their fair key;
-- what is counted by name stands here.

-- One row a limit that was set or is in use. Whoever changes what its rows hold does it in
-- the transaction that writes them, by limit_lock and limit_count, which lock the row of the name.
--   used      rows that are claimable or running
--   reserved  of them those that are claimable and took a token of the rate
--   level     of the bucket, in tokens times rate_ms, as it stood at level_at
--   granted   how many rows the last settling let go on
--   room      how many of the rows that were last made found a place at once
CREATE TABLE work_limit (
    name        TEXT PRIMARY KEY,
    max_running INTEGER,
    rate_count  INTEGER,
    rate_ms     INTEGER,
    rate_burst  INTEGER,
    used        INTEGER NOT NULL DEFAULT 0,
    reserved    INTEGER NOT NULL DEFAULT 0,
    level       INTEGER NOT NULL DEFAULT 0,
    level_at    INTEGER NOT NULL DEFAULT 0,
    granted     INTEGER NOT NULL DEFAULT 0,
    room        INTEGER NOT NULL DEFAULT 0,
    wake_at     INTEGER,
    CHECK ((rate_count IS NULL) = (rate_ms IS NULL) AND (rate_ms IS NULL) = (rate_burst IS NULL))
) STRICT;
CREATE INDEX work_limit_wake ON work_limit (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX work_limit_granted ON work_limit (granted) WHERE granted > 0;
CREATE INDEX work_limit_rate ON work_limit (name) WHERE rate_ms IS NOT NULL;

-- Who waits behind a limit, in the order in which they go on.
-- SQLite looks at the gate again, and would fetch each row for it.
CREATE INDEX work_limited ON work_state (limit_name, priority, fair_tag, seq/*lite , gate*/)
    WHERE /*lite gate = 'limit' OR gate = 'rate'*//*pg gate >= 'limit'*/;

-- Start-time fair queueing: a row's tag is the later of its key's last tag plus its share and
-- the tag that is being served. first_tag is that of the first row of the last taking.
CREATE TABLE work_fair (
    queue      TEXT NOT NULL,
    priority   INTEGER NOT NULL,
    fair_key   TEXT NOT NULL,
    first_tag  INTEGER NOT NULL,
    next_tag   INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (queue, priority, fair_key)
) STRICT;
CREATE INDEX work_fair_last ON work_fair (queue, priority, next_tag);
