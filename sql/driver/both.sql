-- Statements that both drivers run themselves.

-- name: schema_version
-- columns: version
SELECT coalesce(max(version), 0) FROM hf_schema

-- name: schema_applied
-- in: $1 version, $2 name, $3 applied_at, $4 checksum
INSERT INTO hf_schema (version, name, applied_at, checksum) VALUES ($1, $2, $3, $4)
