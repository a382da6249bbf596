-- Triggers. The columns are in the order of hf_subscription_fields.

-- fragment: subscription_columns
subscription_id, tenant, owner_scope, subscription_key, state, incarnation, revision,
source_type, source_key, template, kind, queue, lane_key, priority, max_attempts,
retry_policy, disposition, start_timeout_ms, exec_timeout_ms, wake_session, process_kind,
process_name, registrant, deliveries, last_at, created_at, updated_at

-- name: subscription_get
-- in: $1 subscription_id
SELECT {subscription_columns} FROM subscription WHERE subscription_id = $1

-- Lists, as those of schedules (schedule_window).
-- name: subscription_window
-- in: $1 after tenant, $2 after owner_scope, $3 after key    out: as schedule_window
SELECT tenant, owner_scope, subscription_key, created_at, more
  FROM (SELECT * FROM (SELECT tenant, owner_scope, subscription_key, created_at, 1 AS more
                         FROM subscription
                        WHERE (tenant, owner_scope, subscription_key) > ($1, $2, $3)
                        ORDER BY tenant, owner_scope, subscription_key
                        LIMIT 1 OFFSET 19999) AS bound
        UNION ALL
        SELECT * FROM (SELECT tenant, owner_scope, subscription_key, created_at, 0 AS more
                         FROM subscription
                        ORDER BY tenant DESC, owner_scope DESC, subscription_key DESC
                        LIMIT 1) AS past) AS b
 ORDER BY more DESC LIMIT 1

-- name: subscription_window_newest
-- in: as subscription_window, $4 after created_at
SELECT tenant, owner_scope, subscription_key, created_at, more
  FROM (SELECT * FROM (SELECT tenant, owner_scope, subscription_key, created_at, 1 AS more
                         FROM subscription
                        WHERE (created_at, tenant, owner_scope, subscription_key)
                              < ($4, $1, $2, $3)
                        ORDER BY created_at DESC, tenant DESC, owner_scope DESC,
                                 subscription_key DESC
                        LIMIT 1 OFFSET 19999) AS bound
        UNION ALL
        SELECT * FROM (SELECT tenant, owner_scope, subscription_key, created_at, 0 AS more
                         FROM subscription
                        ORDER BY created_at, tenant, owner_scope, subscription_key
                        LIMIT 1) AS past) AS b
 ORDER BY more DESC LIMIT 1

-- fragment: subscription_listed
($7 = '' OR tenant = $7) AND ($8::text IS NULL OR owner_scope = $8)
   AND ($9::text IS NULL OR source_type = $9) AND ($10::text IS NULL OR source_key = $10)
   AND (state = $11 OR ($11::text IS NULL AND state <> 'deleted'))

-- name: subscription_list
-- in: $1 after tenant, $2 after owner_scope, $3 after key, $4 the last tenant, $5 the last
--     owner_scope, $6 the last key, $7 of this tenant, '' of all, $8 owner_scope or null,
--     $9 source_type or null, $10 source_key or null, $11 state or null: all but deleted,
--     $12 limit, $13 bytes of templates
SELECT {subscription_columns}
  FROM /*pg (SELECT {subscription_columns},
                    coalesce(sum(coalesce(octet_length(template), 0))
                             OVER (ORDER BY tenant, owner_scope, subscription_key
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
                    AS bytes_before
               FROM*/ subscription
 WHERE (tenant, owner_scope, subscription_key) > ($1, $2, $3)
   AND (tenant, owner_scope, subscription_key) <= ($4, $5, $6) AND {subscription_listed}
   /*lite AND $13 > 0*/
   /*pg ORDER BY tenant, owner_scope, subscription_key LIMIT $12) AS p
 WHERE p.bytes_before < $13*/
 ORDER BY tenant, owner_scope, subscription_key LIMIT $12

-- name: subscription_list_newest
-- in: as subscription_list, $14 after created_at, $15 the last created_at
SELECT {subscription_columns}
  FROM /*pg (SELECT {subscription_columns},
                    coalesce(sum(coalesce(octet_length(template), 0))
                             OVER (ORDER BY created_at DESC, tenant DESC, owner_scope DESC,
                                            subscription_key DESC
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
                    AS bytes_before
               FROM*/ subscription
 WHERE (created_at, tenant, owner_scope, subscription_key) < ($14, $1, $2, $3)
   AND (created_at, tenant, owner_scope, subscription_key) >= ($15, $4, $5, $6)
   AND {subscription_listed}
   /*lite AND $13 > 0*/
   /*pg ORDER BY created_at DESC, tenant DESC, owner_scope DESC, subscription_key DESC
        LIMIT $12) AS p
 WHERE p.bytes_before < $13*/
 ORDER BY created_at DESC, tenant DESC, owner_scope DESC, subscription_key DESC LIMIT $12

-- name: subscription_insert
-- in: the columns in order
INSERT /*lite OR ROLLBACK*/ INTO subscription ({subscription_columns})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
        $20, $21, $22, $23, $24, $25, $26, $27)
ON CONFLICT DO NOTHING

-- name: subscription_write
-- in: $1 subscription_id, $2 revision that was read, then the columns from state to registrant,
--     $22 updated_at
UPDATE /*lite OR ROLLBACK*/ subscription
   SET state = $3, incarnation = $4, revision = $5, source_type = $6, source_key = $7,
       template = $8, kind = $9, queue = $10, lane_key = $11, priority = $12,
       max_attempts = $13, retry_policy = $14, disposition = $15, start_timeout_ms = $16,
       exec_timeout_ms = $17, wake_session = $18, process_kind = $19, process_name = $20,
       registrant = $21, updated_at = $22
 WHERE subscription_id = $1 AND revision = $2

-- Emitting.
-- name: subscription_match
-- in: $1 tenant, $2 source_type, $3 source_key, $4 owner_scope or null: any, $5 limit
SELECT {subscription_columns} FROM subscription
 WHERE tenant = $1 AND source_type = $2 AND source_key = $3 AND state = 'enabled'
   AND ($4::text IS NULL OR owner_scope = $4)
 ORDER BY owner_scope, subscription_key LIMIT $5

-- name: subscription_deliver
-- Each must be enabled and as it was read, or the batch is refused.
-- in: a1 subscription_id, a2 revision that was read
-- sets: text bigint
UPDATE /*lite OR ROLLBACK*/ subscription
   SET deliveries = deliveries + 1, last_at = hf_now()
  FROM /*pg (SELECT * FROM*/ hf_args a /*pg ORDER BY a.a1) AS a*/
 WHERE subscription.subscription_id = a.a1 AND subscription.revision = a.a2
   AND subscription.state = 'enabled'

-- name: occurrence_get
-- in: $1 occurrence_id
SELECT occurrence_id, content_hash, created_at FROM occurrence WHERE occurrence_id = $1

-- name: occurrence_insert
-- in: $1 occurrence_id, $2 tenant, $3 source_type, $4 source_key, $5 idempotency_key,
--     $6 content_hash, $7 payload, $8 scope, $9 occurred_at
INSERT /*lite OR ROLLBACK*/ INTO occurrence (occurrence_id, tenant, source_type, source_key,
                                             idempotency_key, content_hash, payload, scope,
                                             occurred_at, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, hf_now())
ON CONFLICT DO NOTHING

-- name: delivery_insert
-- in: a1 delivery_id, a2 occurrence_id, a3 subscription_id, a4 incarnation, a5 revision,
--     a6 snapshot, a7 work_id, a8 wake_work_id or null
-- sets: text text text text bigint text text text
INSERT /*lite OR ROLLBACK*/ INTO delivery (delivery_id, occurrence_id, subscription_id,
                                           incarnation, revision, snapshot, work_id,
                                           wake_work_id, created_at)
SELECT a.a1, a.a2, a.a3, a.a4, a.a5, a.a6, a.a7, a.a8, hf_now() FROM hf_args a WHERE true

-- name: delivery_list
-- in: $1 occurrence_id. In the order in which they were made.
SELECT d.delivery_id, d.subscription_id, s.owner_scope, s.subscription_key, d.incarnation,
       d.revision, d.snapshot, d.work_id, d.wake_work_id, d.created_at
  FROM delivery d JOIN subscription s ON s.subscription_id = d.subscription_id
 WHERE d.occurrence_id = $1 ORDER BY s.owner_scope, s.subscription_key

-- name: grant_add
-- in: $1 tenant, $2 session_id, $3 work_id, $4 reason
INSERT /*lite OR ROLLBACK*/ INTO handle_grant (tenant, session_id, work_id, reason, granted_at)
VALUES ($1, $2, $3, $4, hf_now())
ON CONFLICT DO NOTHING

-- name: grant_units
-- in: $1 tenant, $2 session_id, $3 limit
SELECT {row}, {lease_left} FROM {row_from} JOIN handle_grant g ON g.work_id = s.work_id
 WHERE g.tenant = $1 AND g.session_id = $2 ORDER BY w.seq LIMIT $3

-- Forgetting: what is left of units that went.
-- name: delivery_prune
-- in: $1 made before
DELETE FROM delivery
 WHERE created_at < $1
   AND NOT EXISTS (SELECT 1 FROM work_spec w WHERE w.work_id = delivery.work_id)

-- name: occurrence_prune
-- in: $1 made before
DELETE FROM occurrence
 WHERE created_at < $1
   AND NOT EXISTS (SELECT 1 FROM delivery d
                    WHERE d.occurrence_id = occurrence.occurrence_id)

-- name: grant_prune
-- in: $1 made before
DELETE FROM handle_grant
 WHERE granted_at < $1
   AND NOT EXISTS (SELECT 1 FROM work_spec w WHERE w.work_id = handle_grant.work_id)
