-- Limits on SQLite.

-- name: limit_rate
-- out: 1 where any limit has a rate. To start limit_claimed for nothing costs more.
SELECT 1 FROM work_limit WHERE rate_ms IS NOT NULL LIMIT 1
