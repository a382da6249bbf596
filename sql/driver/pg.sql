-- The PostgreSQL driver's own statements.

-- The first statement of every transaction that writes leaves a row of hf_commit, by which its
-- outcome can be established if the answer is lost (db/pg/outcome.c).

-- fragment: leave_proof
WITH proof AS (INSERT INTO hf_commit (nonce, epoch) VALUES ($1::uuid, $2::bigint))

-- name: pg_begin
-- columns: now, lease_now, incarnation, epoch, followed_until, timeline, bytes
-- in: $1 nonce, $2 the last known epoch, $3 the table that grows
-- out: now, lease_now, incarnation, epoch, followed_until, timeline, bytes of that table
{leave_proof}
SELECT hf_now(), hf_lease_now(), s.incarnation, s.commit_epoch, s.followed_until,
       CASE WHEN s.timeline = hf_timeline() THEN s.timeline ELSE hf_new_history() END,
       pg_relation_size($3::regclass)
  FROM hf_store s WHERE s.id = 1

-- name: pg_begin_pooled
-- columns: now, lease_now, incarnation, epoch, followed_until, timeline, bytes, pid, began, system_id
-- Behind a pooler each transaction may run on another process, and even on another server.
-- in: $1 nonce, $2 the last known epoch
-- out: as pg_begin, with 0 bytes; then process, when it began, system id
{leave_proof}
SELECT hf_now(), hf_lease_now(), s.incarnation, s.commit_epoch, s.followed_until,
       CASE WHEN s.timeline = hf_timeline() AND s.system_id = c.system_identifier::text
            THEN s.timeline ELSE hf_new_history() END,
       0, pg_backend_pid(), {began_us}, c.system_identifier
  FROM hf_store s, pg_control_system() AS c, pg_stat_get_activity(pg_backend_pid()) AS a
 WHERE s.id = 1

-- name: pg_look
-- columns: now, lease_now, incarnation, epoch, bytes
-- The first statement of every transaction that reads.
-- in: $1 the table that grows
-- out: now, lease_now, incarnation, epoch, bytes of that table
SELECT hf_now(), hf_lease_now(), s.incarnation, s.commit_epoch, pg_relation_size($1::regclass)
  FROM hf_store s WHERE s.id = 1

-- name: pg_backend
-- columns: pid, encoding, isolation, began, timeline, system_id
-- out: the process that answers, the database's encoding, the isolation of its transactions,
-- when the process began, timeline (0 on a standby), system id
SELECT pg_backend_pid(), current_setting('server_encoding'),
       current_setting('default_transaction_isolation'),
       (SELECT {began_us} FROM pg_stat_get_activity(pg_backend_pid()) AS a),
       CASE WHEN pg_is_in_recovery() THEN 0 ELSE {timeline_here} END,
       (SELECT c.system_identifier FROM pg_control_system() AS c)

-- A process id is used again; with this number it is one process.
-- fragment: began_us
(extract(epoch FROM a.backend_start) * 1000000)::bigint

-- As hf_timeline(), for connections that have no search_path yet.
-- fragment: timeline_here
('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint

-- name: pg_ended
-- columns: ended
-- A process leaves this list after its last transaction has ended. Its start is hidden from other
-- roles: then it counts as alive. An error on a standby.
-- in: $1 process, $2 when it began, $3 timeline, $4 system id
-- out: whether the process has ended; null if this server is another one, or in another history
SELECT CASE WHEN {timeline_here} = $3::bigint AND c.system_identifier = $4::bigint
            THEN NOT EXISTS (SELECT 1 FROM pg_stat_get_activity($1::int) AS a
                              WHERE a.backend_start IS NULL OR {began_us} = $2::bigint) END
  FROM pg_control_system() AS c

-- name: pg_committed
-- columns: committed, kept
-- in: $1 nonce, $2 the epoch that was known before the transaction began
-- out: whether it was committed; whether its row would still be here
SELECT EXISTS (SELECT 1 FROM hf_commit k WHERE k.nonce = $1::uuid),
       s.commit_epoch <= $2::bigint + 1
  FROM hf_store s WHERE s.id = 1

-- name: pg_forget_commits
-- Begins a new epoch and keeps the rows of the one before it.
WITH next AS (UPDATE hf_store SET commit_epoch = commit_epoch + 1 WHERE id = 1
              RETURNING commit_epoch)
DELETE FROM hf_commit WHERE epoch < (SELECT commit_epoch FROM next) - 1

-- Every hot statement finds its rows by an index, and is planned once for all arguments. A plan
-- made while a table was small would read it whole for ever, so joins that read tables whole are
-- switched off; and as a table grows plans are made anew (db/pg/conn.c, pg_conn_replan).
-- fragment: pg_plans
set_config('plan_cache_mode', 'force_generic_plan', false),
set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false),
set_config('enable_mergejoin', 'off', false), set_config('jit', 'off', false)

-- fragment: pg_plans_of_one
set_config('plan_cache_mode', 'force_generic_plan', true),
set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)

-- name: pg_transaction_settings
-- What a connection behind a pooler cannot keep from one transaction to the next.
-- in: $1 search_path, $2 statement_timeout, $3 lock_timeout
SELECT set_config('search_path', $1, true), set_config('statement_timeout', $2, true),
       set_config('lock_timeout', $3, true), set_config('bytea_output', 'hex', true),
       {pg_plans_of_one}

-- name: pg_connection_settings
-- The same for a connection of our own, for as long as it lasts. Every statement sees what was
-- committed before it: a statement that waited for a lock reads what its holder wrote.
-- in: $1 search_path, $2 statement_timeout, $3 lock_timeout, $4 idle timeout
SELECT set_config('search_path', $1, false), set_config('statement_timeout', $2, false),
       set_config('lock_timeout', $3, false),
       set_config('idle_in_transaction_session_timeout', $4, false),
       set_config('bytea_output', 'hex', false),
       set_config('default_transaction_isolation', 'read committed', false), {pg_plans}

-- name: pg_clock
-- An injected clock.
-- in: $1 now, $2 lease_now
SELECT set_config('holdfast.now', $1, true), set_config('holdfast.lease_now', $2, true)

-- name: pg_identity
-- columns: system_id, standby, version, schema_exists, objects, ours, may_create, may_create_schema, max_connections
-- Which server this is, what we may do, and what the schema has. Asked before the
-- schema's own functions can be.
-- in: $1 schema    out: system_id, is a standby, server version, schema exists, objects in
-- it, of which hf_schema, may create in it, may create schemas here, max connections
SELECT (SELECT system_identifier::text FROM pg_control_system()), pg_is_in_recovery(),
       current_setting('server_version_num')::bigint, n.oid IS NOT NULL,
       (SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid),
       (SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid
           AND c.relname = 'hf_schema' AND c.relkind = 'r'
           AND EXISTS (SELECT 1 FROM pg_attribute a
                        WHERE a.attrelid = c.oid AND a.attname = 'checksum')),
       coalesce(has_schema_privilege(n.oid, 'CREATE'), false),
       has_database_privilege(current_database(), 'CREATE'),
       current_setting('max_connections')::bigint
  FROM (SELECT 1) AS one LEFT JOIN pg_namespace n ON n.nspname = $1

-- name: pg_privileges
-- columns: role, lacks, may_write
-- What the role lacks, as one text: who writes needs more than who only reads.
-- in: $1 schema, $2 1 for who only reads, $3 tables that are never updated, $4 views that no statement
-- reads, both with commas between
-- out: role, what it lacks or null, whether it may write to the store's own row
WITH wanted (kind, thing, place, privilege, has) AS (
    SELECT 'schema', $1::text, 0, 'USAGE', has_schema_privilege($1::text, 'USAGE')
    UNION ALL
    SELECT 'table', c.relname::text, p.place, p.privilege,
           has_table_privilege(c.oid, p.privilege)
      FROM pg_class c
      JOIN (VALUES (0, 'SELECT'), (1, 'INSERT'), (2, 'UPDATE'), (3, 'DELETE'))
           AS p(place, privilege)
        ON (p.place = 0 AND c.relkind::text IN ('r', 'v'))
        OR ($2::bigint = 0 AND c.relkind::text = 'r')
     WHERE c.relnamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = $1)
       AND NOT (c.relname = ANY (string_to_array($3, ',')) AND p.privilege = 'UPDATE')
       AND NOT (c.relname IN ('hf_store', 'hf_store_log') AND p.privilege = 'DELETE')
       AND NOT (c.relname LIKE 'hf\_schema%' AND p.privilege <> 'SELECT')
       AND c.relname <> ALL (string_to_array($4, ','))
    UNION ALL
    SELECT 'sequence', c.relname::text, 0, 'USAGE', has_sequence_privilege(c.oid, 'USAGE')
      FROM pg_class c
     WHERE $2::bigint = 0 AND c.relkind::text = 'S'
       AND c.relnamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = $1)
    UNION ALL
    SELECT 'function', f.proname::text, 0, 'EXECUTE', has_function_privilege(f.oid, 'EXECUTE')
      FROM pg_proc f
     WHERE f.pronamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = $1)
       AND f.proname LIKE 'hf\_%' AND f.prorettype <> 'trigger'::regtype
       AND ($2::bigint = 0 OR f.proname IN ('hf_now', 'hf_lease_now', 'hf_timeline'))
), lacking AS (
    SELECT kind, place, privilege,
           CASE WHEN count(*) FILTER (WHERE NOT has) <= 3
                THEN kind || ' ' || string_agg(thing, ', ' ORDER BY thing) FILTER (WHERE NOT has)
                WHEN bool_or(has)
                THEN count(*) FILTER (WHERE NOT has) || ' of ' || count(*) || ' ' || kind || 's'
                ELSE 'all ' || kind || 's' END AS what
      FROM wanted GROUP BY kind, place, privilege HAVING NOT bool_and(has)
), alike AS (
    SELECT kind, what, string_agg(privilege, ', ' ORDER BY place) AS privileges
      FROM lacking GROUP BY kind, what
)
SELECT current_user::text, string_agg(privileges || ' on ' || what, '; ' ORDER BY kind, what),
       (SELECT has_table_privilege(c.oid, 'UPDATE') FROM pg_class c
         WHERE c.relname = 'hf_store' AND c.relnamespace =
               (SELECT n.oid FROM pg_namespace n WHERE n.nspname = $1))
  FROM alike

-- name: pg_store_row
-- columns: store_id, incarnation, lease_offset_ms, epoch, moved
-- in: $1 system_id
-- out: store_id, incarnation, lease_offset_ms, epoch, a new history has begun
SELECT store_id, incarnation, lease_offset_ms, commit_epoch,
       system_id <> $1 OR timeline <> hf_timeline()
  FROM hf_store WHERE id = 1

-- name: pg_store_read
-- columns: store_id, incarnation, lease_offset_ms, epoch
-- As pg_store_row, on a standby too.
SELECT store_id, incarnation, lease_offset_ms, commit_epoch FROM hf_store WHERE id = 1

-- name: pg_store_create
-- The offset is an injected clock's; the server's own has none.
-- in: $1 store_id, $2 system_id, $3 lease_offset_ms
INSERT INTO hf_store (id, store_id, incarnation, system_id, timeline, lease_offset_ms,
                      created_at)
VALUES (1, $1, 1, $2, hf_timeline(), $3, hf_now()) ON CONFLICT DO NOTHING

-- name: pg_new_history
-- Once for all who notice: the first one raises the incarnation, and store_log says so.
-- in: $1 system_id
WITH raised AS (
    UPDATE hf_store
       SET incarnation = incarnation + 1, system_id = $1, timeline = hf_timeline()
     WHERE id = 1 AND (system_id <> $1 OR timeline <> hf_timeline())
    RETURNING id)
INSERT INTO hf_store_log (at, what, detail)
SELECT hf_now(), 'new_history', 'the server''s system id or timeline changed' FROM raised

-- name: pg_migration_lock
-- One program at a time; it ends with the transaction.
-- in: $1 key
SELECT pg_advisory_xact_lock(hashtextextended('holdfast migrate ' || $1, 0))

-- name: pg_create_schema
CREATE SCHEMA IF NOT EXISTS @schema@

-- name: pg_ring
-- No caller waits for the disk: PostgreSQL syncs no transaction that wrote nothing before its commit.
-- in: $1 channel, $2 topics
SELECT pg_notify($1, $2)

-- name: pg_follow
-- A reader waits for every commit: writers learn it as they begin. It is repeated long before it
-- ends, and a reader that has gone is forgotten by then.
-- in: $1 for how long, ms
UPDATE hf_store SET followed_until = hf_now() + $1::bigint
 WHERE id = 1 AND followed_until < hf_now() + $1::bigint / 2
