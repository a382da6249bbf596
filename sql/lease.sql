-- The lease of a keyed row, whichever table it is in: read it, write it if it is still as
-- it was read. What is written is decided by core's lease rules.

-- name: lease_read_session
-- in: $1 key
SELECT owner, owner_incarnation, claim_group, holder, lease_fence, lease_incarnation,
       lease_ttl_ms, lease_claimed_at, lease_expires_at
  FROM session WHERE session_id = $1

-- name: lease_renew_session
-- By a holder whose token is good; a refused caller finds out why by
-- reading.
-- in: $1 key, $2 store, $3 fence, $4 nonce    out: as lease_read_session
UPDATE /*lite OR ROLLBACK*/ session
   SET lease_expires_at = /*lite max*//*pg greatest*/(lease_expires_at,
                                                      hf_lease_now() + lease_ttl_ms)
 WHERE session_id = $1 AND claim_group = $4 AND lease_fence = $3 AND lease_incarnation = $2
   AND lease_incarnation = hf_incarnation() AND lease_expires_at > hf_lease_now()
RETURNING owner, owner_incarnation, claim_group, holder, lease_fence, lease_incarnation,
          lease_ttl_ms, lease_claimed_at, lease_expires_at

-- name: lease_lock_session
-- Before a release, which looks for what came while the session was leased.
-- in: $1 key
/*lite SELECT 1 WHERE $1 IS NULL*//*pg SELECT 1 FROM session WHERE session_id = $1 FOR UPDATE*/

-- name: lease_write_session
-- in: $1 key, $2 fence, $3 nonce and $4 expiry as read; then the lease
UPDATE /*lite OR ROLLBACK*/ session
   SET owner = $5, owner_incarnation = $6, claim_group = $7, holder = $8, lease_fence = $9,
       lease_incarnation = $10, lease_ttl_ms = $11, lease_claimed_at = $12,
       lease_expires_at = $13, lease_check_at = $13,
       ready_at = CASE WHEN $7::text IS NOT NULL THEN NULL
                       WHEN turn_key IS NOT NULL THEN coalesce(waiting_until, hf_now())
                       ELSE (SELECT w.due_at {pending_inputs}) END
 WHERE session_id = $1 AND lease_fence = $2
   AND claim_group IS NOT DISTINCT FROM $3 AND lease_expires_at IS NOT DISTINCT FROM $4

-- name: lease_begin_session
-- After lease_write_session, which may have waited for a lock: the term begins now.
-- in: $1 key, $2 fence, $3 nonce
UPDATE /*lite OR ROLLBACK*/ session
   SET lease_expires_at = /*lite max*//*pg greatest*/(lease_expires_at,
                                                      hf_lease_now() + lease_ttl_ms)
 WHERE session_id = $1 AND lease_fence = $2 AND claim_group = $3
