-- Policies and receipts.

-- name: policy_list
SELECT scope, ttl_ms, renew_ms, grace_ms, wait_user_ms, wait_external_ms, start_timeout_ms,
       exec_timeout_ms, max_attempts, retry_policy, disposition, close_rule, wait_rule
  FROM work_policy ORDER BY scope

-- name: policy_write
INSERT /*lite OR ROLLBACK*/ INTO work_policy (scope, ttl_ms, renew_ms, grace_ms, wait_user_ms, wait_external_ms,
                         start_timeout_ms, exec_timeout_ms, max_attempts, retry_policy,
                         disposition, close_rule, wait_rule, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, hf_now())
ON CONFLICT (scope) DO UPDATE
   SET ttl_ms = excluded.ttl_ms, renew_ms = excluded.renew_ms,
       grace_ms = excluded.grace_ms, wait_user_ms = excluded.wait_user_ms,
       wait_external_ms = excluded.wait_external_ms,
       start_timeout_ms = excluded.start_timeout_ms,
       exec_timeout_ms = excluded.exec_timeout_ms,
       max_attempts = excluded.max_attempts, retry_policy = excluded.retry_policy,
       disposition = excluded.disposition, close_rule = excluded.close_rule,
       wait_rule = excluded.wait_rule,
       updated_at = excluded.updated_at

-- name: receipt_read
-- in: $1 tenant, $2 scope, $3 operation_key
SELECT content_hash, result FROM receipt
 WHERE tenant = $1 AND scope = $2 AND operation_key = $3

-- name: receipt_write
-- in: $1 tenant, $2 scope, $3 operation_key, $4 content_hash, $5 result
INSERT /*lite OR ROLLBACK*/ INTO receipt (tenant, scope, operation_key, content_hash, result, created_at)
VALUES ($1, $2, $3, $4, $5, hf_now())

-- name: receipt_prune
-- in: $1 older than
DELETE FROM receipt WHERE created_at < $1
