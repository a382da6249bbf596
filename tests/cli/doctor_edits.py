"""Edits by plain SQL that no guard refuses, or that go around the guards, and what `holdfast
doctor` says of each. For doctor.py and doctor_postgres.py: each is made in a store of its own."""

FORGED = ("INSERT INTO work_event (event_id, seq, event_type, from_status, to_status, generation,"
          " attempt, fence, actor_kind, actor, created_at) SELECT {id}, seq, 'transition', {from_},"
          " {to}, generation, attempt_count, lease_fence, 'system', 'x', 1 FROM work_state WHERE ")

# A row of scope_effect without a fault, with its columns as keywords.
SCOPE_EFFECT = {
    "scope": "operation", "scope_id": "o", "effect_key": "1", "tenant": "", "started_at": 1,
    "settled_at": None, "taken_over": 0, "lease_fence": 1, "lease_incarnation": 1, "lease_ttl_ms": 1000,
    "lease_claimed_at": 1, "lease_expires_at": 1001, "owner": "w", "owner_incarnation": "i",
    "claim_group": "n", "kind": "pay", "recovery": "keyed", "status": "started", "envelope": "{}",
    "outcome": None}


def scope_effect(**columns):
    """SQL that inserts such a row."""
    row = {**SCOPE_EFFECT, **columns}
    values = ["NULL" if value is None else repr(value) for value in row.values()]
    return f"INSERT INTO scope_effect ({', '.join(row)}) VALUES ({', '.join(values)})"


MISFIT = "its status and its outcome do not fit"
LEASE = "it is under a lease that no begin grants"
TAKEN = "its fence and its mark of a take-over do not fit"

# What the constraints of the table let through: columns, what is said.
SCOPE_EFFECTS = [
    ({"lease_ttl_ms": 0}, LEASE), ({"lease_expires_at": 1}, LEASE), ({"owner": ""}, LEASE),
    ({"owner_incarnation": ""}, LEASE), ({"claim_group": ""}, LEASE), ({"taken_over": 1}, TAKEN),
    ({"lease_fence": 2}, TAKEN)]

# What they refuse.
SCOPE_EFFECTS_AROUND = [
    ({"outcome": "{}"}, MISFIT), ({"settled_at": 2}, MISFIT), ({"status": "done"}, MISFIT),
    ({"status": "unknown", "outcome": "{}"}, MISFIT), ({"status": "failed", "settled_at": 2}, MISFIT),
    ({"status": "lost", "settled_at": 2, "outcome": "{}"}, MISFIT), ({"lease_fence": 0}, LEASE)]

# name: (guarded, SQL, what is said). The units are those of `prepare`.
BOTH = {
    "a failure that no execution had":
        (True, "UPDATE work_state SET status = 'cancelled', finished_at = 1, failures = failures + 1"
         " WHERE queue = 'q'", "the failures are not those of its events"),
    "a fence":
        (False, "UPDATE work_state SET lease_fence = 9 WHERE queue = 'q'",
         "the fence is not that of the last event"),
    "an attempt count":
        (False, "UPDATE work_state SET attempt_count = 0 WHERE status = 'running'",
         "the attempt count is not that of the last event"),
    "a generation":
        (False, "UPDATE work_state SET generation = 1 WHERE queue = 'q'",
         "the generation is not that of the last event"),
    "failures that are forgotten":
        (False, "UPDATE work_state SET failures = 0 WHERE status = 'retry_scheduled'",
         "the failures are not those of its events"),
    "failures of a queued row":
        (False, "UPDATE work_state SET failures = 2 WHERE queue = 'q'",
         "the failures are not those of its events"),
    "a change that the disposition forbids, with its event":
        (False, FORGED.format(id=2001, from_="'running'", to="'abandoned'") + "status = 'running';"
         " UPDATE work_state SET status = 'abandoned', finished_at = 1, owner = NULL,"
         " claim_group = NULL, lease_expires_at = NULL, lease_check_at = NULL WHERE status = 'running'",
         "an event tells of a change that its unit cannot make"),
    "an event that counts a fence too few":
        (False, "UPDATE work_event SET fence = 0 WHERE seq = (SELECT seq FROM work_state"
         " WHERE status = 'retry_scheduled') AND to_status = 'running'", "do not follow"),
    "a state of another tenant":
        (False, "UPDATE work_state SET tenant = 'x' WHERE queue = 'q'",
         "request and state are not of one unit"),
    "a state that no request begins":
        (False, "UPDATE work_state SET disposition = 'externally_owned' WHERE queue = 'q'",
         "request and state are not of one unit"),
    "a request that is gone":
        (False, "DELETE FROM work_spec WHERE seq = (SELECT seq FROM work_state WHERE queue = 'q')",
         "a row of state without a request"),
}

SQLITE = {
    "two units that changed bodies":
        (False, "UPDATE work_state SET rowid = -seq WHERE queue = 'q' OR queue = 'e';"
         " UPDATE work_state SET oid = (SELECT min(seq) + max(seq) FROM work_spec WHERE source_id = 'u-q'"
         " OR source_id = 'u-e') + seq WHERE seq < 0", "request and state are not of one unit"),
    "a used id, of a request":
        (True, "UPDATE work_state SET status = 'cancelled', finished_at = 1, event_id ="
         " (SELECT seq FROM work_spec WHERE source_id = 'u-e') WHERE queue = 'q'",
         "an event of another unit has the id of its first one"),
    "an id after which none can follow":
        (True, FORGED.format(id=2 ** 63 - 1, from_="NULL", to="NULL") + "queue = 'q'",
         "no store comes to such an id"),
    "a key after which none can follow":
        (True, f"INSERT INTO work_spec SELECT {2 ** 63 - 1}, created_at, 'far', tenant, source_system,"
         " 'far', source_run_id, NULL, request_hash, ref, parent_work_id, correlation_id, payload,"
         " payload_ref, retry_policy, first_status, actor_kind, actor, note FROM work_spec"
         " WHERE source_id = 'u-q'", "no store comes to such a key"),
    "a row that was replaced":
        (True, "INSERT OR REPLACE INTO work_state (seq, status, due_at, priority, max_attempts,"
         " source_system, kind, queue, updated_at, disposition) SELECT seq, 'queued', 1, 5, 3,"
         " source_system, kind, queue, 1, disposition FROM work_state WHERE status = 'running'",
         "the status is not that of the last event"),
    "a row that another's place in a lane replaced":
        (True, "UPDATE OR REPLACE work_state SET gate = NULL WHERE gate = 'lane'",
         "a request without a row of state"),
}

POSTGRES = {
    "a statement that says it knows":
        (True, "UPDATE work_state SET lease_fence = 9, vouched = vouched + 1 WHERE queue = 'q'",
         "the fence is not that of the last event"),
    "a close-out that says it knows":
        (True, "UPDATE work_state SET status = 'cancelled', finished_at = 1, vouched = vouched + 1"
         " WHERE queue = 'q'", "the status is not that of the last event"),
}


def prepare(case):
    """A queued unit (queue q), one that is owner_bound (queue e), one that runs, one that is to be tried
    again, two of a lane."""
    case.create("u-r", "--queue", "r")
    case.create("u-s", "--queue", "s")
    case.create("u-q", "--queue", "q")
    case.create("u-e", "--queue", "e", "--disposition", "owner_bound")
    case.create("u-l1", "--queue", "l", "--lane", "l")
    case.create("u-l2", "--queue", "l", "--lane", "l")
    case.claim("--queue", "r", "--ttl", "1h")
    failed = case.claim("--queue", "s")
    case.ok("work", "fail", failed["work_id"], "--token", failed["lease_token"], "--class",
            "rate_limit")
