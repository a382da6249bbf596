-- The statements of doctor about a PostgreSQL server.

-- What keeps vacuum from taking dead rows away: connections with old snapshots or that have
-- written and not ended, prepared transactions, replication slots; those of another database do
-- not, nor does vacuum itself. A transaction that has written holds back the feed too, of
-- whichever database of the server it is. Since when a connection of another role is at it one
-- must be allowed to see.
-- fragment: doctor_holders
(SELECT 'connection' AS what, a.pid::text AS name,
        coalesce(a.usename, '') || ' ' || coalesce(nullif(a.application_name, ''), '-') || ' '
        || coalesce(a.state, '-') AS who,
        greatest(age(a.backend_xmin), age(a.backend_xid))::bigint AS age,
        floor(date_part('epoch', clock_timestamp() - a.xact_start) * 1000)::bigint AS ms,
        (a.datid IS NULL OR a.datname = current_database())
        AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid) AS vacuum,
        a.backend_xid IS NOT NULL AS feed,
        (a.usesysid IS NOT NULL AND NOT pg_has_role(a.usesysid, 'USAGE')
         AND NOT pg_has_role('pg_read_all_stats', 'USAGE'))::int AS hidden
   FROM pg_stat_activity a
  WHERE (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
    AND a.pid <> pg_backend_pid()
 UNION ALL
 SELECT 'prepared transaction', p.gid, p.owner, age(p.transaction)::bigint,
        floor(date_part('epoch', clock_timestamp() - p.prepared) * 1000)::bigint,
        p.database = current_database(), true, 0
   FROM pg_prepared_xacts p
 UNION ALL
 SELECT 'replication slot', s.slot_name, CASE WHEN s.active THEN 'active' ELSE 'not active' END,
        greatest(age(s.xmin), age(s.catalog_xmin))::bigint, NULL, true, false, 0
   FROM pg_replication_slots s WHERE s.xmin IS NOT NULL OR s.catalog_xmin IS NOT NULL)

-- name: doctor_pg_vacuum
-- columns: what, name, who, age, ms, hidden
-- out: what, its name, who, how old in transactions, for how long in ms (null: not known),
-- whether that is hidden from this role; oldest first
SELECT what, name, who, age, ms, hidden FROM {doctor_holders} AS t
 WHERE vacuum ORDER BY age DESC LIMIT 3

-- name: doctor_pg_tables
-- columns: name, live, dead, bytes
-- out: table, live rows, dead rows, bytes; of those with many dead ones
SELECT relname::text, n_live_tup, n_dead_tup, pg_total_relation_size(relid)
  FROM pg_stat_user_tables
 WHERE schemaname = current_schema() AND n_dead_tup > 10000
   AND n_dead_tup * 5 > n_live_tup
 ORDER BY n_dead_tup DESC LIMIT 5

-- name: doctor_pg_settings
-- columns: name, setting, wanted, grave
-- out: setting, its value, what it should be, whether it costs durability; of those that are wrong
SELECT name, setting, wanted, grave FROM (VALUES
    ('fsync', 'on', 1), ('full_page_writes', 'on', 1), ('synchronous_commit', 'on', 1),
    ('autovacuum', 'on', 0), ('track_counts', 'on', 0)) AS w(wanted_name, wanted, grave)
  JOIN pg_settings ON name = wanted_name
 WHERE setting <> wanted
   AND NOT (name = 'synchronous_commit'
            AND setting IN ('remote_write', 'remote_apply', 'local'))
 ORDER BY grave DESC, name

-- name: doctor_pg_guards
-- columns: fault, advice
-- out: what keeps plain SQL within the rules and is not there, or is switched off; what to do
SELECT 'the trigger ' || n.name || ' is missing',
       'make it again, as `holdfast migrate --dump-sql` shows it'
  FROM (VALUES ('work_born'), ('work_moved'), ('work_leased'), ('work_gated'),
               ('work_state_identity'), ('work_event_frozen')) AS n(name)
 WHERE NOT EXISTS (SELECT 1 FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                    WHERE c.relnamespace = current_schema()::regnamespace AND t.tgname = n.name)
UNION ALL
SELECT 'the trigger ' || t.tgname || ' is switched off',
       'ALTER TABLE ' || c.relname || ' ENABLE TRIGGER ' || t.tgname
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
  JOIN pg_namespace s ON s.oid = c.relnamespace
 WHERE s.nspname = current_schema() AND t.tgenabled = 'D'
 ORDER BY 1 LIMIT 5

-- name: doctor_pg_role
-- columns: standby, behind_ms
-- out: whether it is a standby; how long ago what it has seen was written, ms (null: unknown)
SELECT pg_is_in_recovery()::int,
       (extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000)::bigint

-- name: doctor_pg_feed
-- columns: ahead
-- Of a dump of another server places in the feed may lie behind this server's next transaction.
-- out: how many transactions are to come before the last event can be given; none: not positive
SELECT greatest((SELECT max(xid) FROM work_event), (SELECT max(xid) FROM work_spec), 0)
       - pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1

-- name: doctor_pg_behind
-- columns: what, name, who, age, ms, hidden
-- Events that are committed and not given yet, since an older transaction may still write some.
-- out: as of doctor_pg_vacuum, of the oldest one that they wait for, null where it cannot be seen
-- (it runs on the server of which this one is a standby); no row: none waits
SELECT t.what, t.name, t.who, t.age, t.ms, t.hidden
  FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS safe) AS s
  LEFT JOIN (SELECT * FROM {doctor_holders} AS h WHERE feed ORDER BY age DESC LIMIT 1) AS t
    ON true
 WHERE EXISTS (SELECT 1 FROM work_spec w WHERE w.xid >= s.safe)
    OR EXISTS (SELECT 1 FROM work_event e WHERE e.xid >= s.safe)
