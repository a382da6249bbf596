-- The changes of a commit to the inputs of its turn.

-- name: inputs_settle
-- in: $1 session_id, $2 turn_id, $3 nonce, $4 session fence, $5 status, $6 reason, $7 token,
--     $8 actor_kind, $9 actor, $10 note, $11 correlation_id
UPDATE OR ROLLBACK work_state
   SET status = $5, status_reason = $6, settled_token = $7, settled_verb = 'close_out',
       finished_at = hf_now(), updated_at = hf_now(), owner = NULL, owner_incarnation = NULL,
       claim_group = NULL, session_fence = NULL, lease_incarnation = NULL, crashes = 0,
       crashed_at = NULL, revision = revision + 1, event_id = hf_next_id(),
       event_type = 'close_out', actor_kind = $8, actor = $9, message = NULL, note = $10,
       correlation_id = $11
 WHERE seq IN (
       SELECT i.seq FROM session_input i
        WHERE i.session_key = (SELECT s.session_key FROM session s WHERE s.session_id = $1)
          AND i.turn_key = (SELECT t.turn_key FROM session_turn t
                             WHERE t.session_key = (SELECT s.session_key FROM session s
                                                     WHERE s.session_id = $1)
                               AND t.turn_id = $2))
   AND status = 'running' AND claim_group = $3 AND session_fence = $4
