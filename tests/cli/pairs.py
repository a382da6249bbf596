"""One request for each operation, as options. call_pairs.py performs it by the shell in one
tenant and by `holdfast call` in another, after the same preparation.

A pair is (operation, preparation, options). The preparation is a list of calls (operation,
inputs). $ID, $TOKEN and the like in texts are fields of the last unit that a preparation
returned: $ID is work_id, $TOKEN is lease_token; $TENANT is the tenant, $OCCURRENCE
an occurrence, $FOLDER a folder with set.json. A later pair of one operation is another way to
ask for it.
"""

CREATE = ("work.create", {"source_system": "manual", "source_id": "s1", "payload": {"n": 1}})
BOUND = ("work.create", {"source_system": "manual", "source_id": "s1",
                         "disposition": "owner_bound"})
EXTERNAL = ("work.create", {"source_system": "manual", "source_id": "s1",
                            "disposition": "externally_owned"})
CLAIM = ("work.claim", {"owner": "w1", "owner_incarnation": "i1", "work_id": "$ID"})
QUEUED = ("work.create", {"source_system": "manual", "source_id": "s1", "queue": "$TENANT"})
HELD = [CREATE, CLAIM]
WAITING = [*HELD, ("work.wait", {"work_id": "$ID", "lease_token": "$TOKEN",
                                 "waiting_kind": "user", "waiting_ref": "chat-7"})]
FAILED = [*HELD, ("work.close_out", {"work_id": "$ID", "lease_token": "$TOKEN",
                                     "status": "failed", "reason": "no"})]
HOLDER = ["--id", "$ID", "--token", "$TOKEN"]
SCHEDULE = ("schedule.add", {"name": "$TENANT", "cron": "0 9 * * *", "kind": "report"})
OCCURRED = ("trigger.emit", {"source_type": "$TENANT", "source_key": "repo",
                             "idempotency_key": "d1", "payload": {"after": "abc"}})
SUBSCRIBED = ("trigger.subscribe", {"subscription_key": "k", "owner_scope": "session:$TENANT",
                                    "source_type": "$TENANT", "source_key": "repo",
                                    "kind": "build"})
UNIT = ["--lane", "l", "--priority", "2", "--max-attempts", "3", "--retry-policy",
        '{"initial_backoff_ms": 5}', "--disposition", "rerunnable", "--start-timeout", "1h",
        "--exec-timeout", "2h"]
KEY = ["--key", "k", "--owner-scope", "session:$TENANT"]
SOURCE = ["--source-type", "$TENANT", "--source-key", "repo"]
WAIT = "t01a1e688-ec5d-7000-a568-0fba0a4639eb-0123456789abcdef01234567"  # of no turn
SESSION = ("session.create", {"session_id": "$TENANT", "agent": "helper"})
SENT = ("session.send", {"session_id": "$TENANT", "text": "hello", "source_key": "k0"})
MESSAGE = ('{"kind":"message","message":{"id":"m1","role":"user","parts":'
           '[{"kind":"text","content":"x"}]}}')
LATER = ("job.enqueue", {"kind": "mail", "delay_ms": 3600000})

STARTED = ("process.start", {"disposition": "owner_bound", "identity_kind": "x",
                             "identity_label": "n", "labels": {"a": "b"},
                             "definition": {"v": 1}, "originator": "s5", "observers": ["s1"],
                             "wake_session": "$TENANT"})
ENDED = [STARTED, ("process.cancel", {"process_id": "$ID", "reason": "enough"})]

PAIRS = [
    ("work.create", [], [
        "--source", "scheduler", "--source-id", "s1", "--source-run-id", "r1", "--kind", "mail",
        "--queue", "q", "--lane", "l", "--dedup-key", "d", "--idempotency-key", "i",
        "--priority", "0", "--payload", '{"b": 1.0,  "a": "\\u00e9"}', "--disposition",
        "rerunnable", "--ref", "x", "--max-attempts", "5", "--retry-policy",
        '{"initial_backoff_ms": 5}', "--delay", "90s", "--start-timeout", "1h",
        "--exec-timeout", "2h", "--close-rule", "evidence"]),
    ("work.create", [CREATE], ["--source", "manual", "--source-id", "s1", "--payload",
                               '{"n":1}']),  # the same bytes are the same unit
    ("work.create", [CREATE], ["--source", "manual", "--source-id", "s1", "--payload",
                               '{"n": 1}']),  # other bytes are a conflict
    ("work.create", [CREATE], ["--source", "manual", "--source-id", "s2", "--parent", "$ID",
                               "--due-at", "4102444800000", "--detached"]),
    ("work.create", WAITING, ["--source", "conversation", "--source-id", "m1", "--reply-to",
                              "chat-7", "--payload", '"yes"']),
    ("work.claim", [QUEUED], ["--owner", "w1", "--incarnation", "i1", "--nonce", "$TENANT", "--ttl",
                              "60s", "--kind", "work", "--kind", "mail", "--limit", "3",
                              "--queue", "$TENANT"]),
    ("work.claim", [CREATE], ["--owner", "w1", "--incarnation", "i1", "--nonce", "$TENANT", "--id",
                              "$ID", "--wait", "1s"]),
    ("work.claim", [], ["--owner", "w1", "--queue", "empty"]),
    ("work.renew", HELD, [*HOLDER, "--ttl", "2m"]),
    ("work.renew", HELD, ["--owner", "w1", "--incarnation", "i1", "--fresh", "1h"]),
    ("work.touch", HELD, HOLDER),
    ("work.hand_back", HELD, [*HOLDER, "--reason", "shutdown"]),
    ("work.wait", HELD, [*HOLDER, "--kind", "external", "--ref", "r1", "--reason", "why",
                         "--timeout", "1h", "--escalate-after", "5m", "--escalate",
                         "work:reminder"]),
    ("work.resume", WAITING, ["--ref", "chat-7", "--kind", "user", "--payload", '{"y": [1, 2]}']),
    ("work.resume", WAITING, ["--id", "$ID", "--owner", "w2", "--incarnation", "i2", "--nonce",
                              "$TENANT", "--ttl", "50s"]),
    ("answer", WAITING, ["--id", "$ID", "--answer", "yes", "--reason", "ann agreed"]),
    ("work.close_out", HELD, [*HOLDER, "--status", "done", "--summary", "sent", "--output", "m:1",
                              "--output", "m:2", "--evidence", "sha:1", "--reviewer", "ann"]),
    ("work.close_out", [EXTERNAL], ["--id", "$ID", "--authority", "ci", "--status", "failed",
                                    "--class", "validation", "--reason", "exit 1"]),
    ("work.fail", HELD, [*HOLDER, "--class", "transient_network", "--reason", "down"]),
    ("work.abandon", [BOUND, CLAIM], [*HOLDER, "--reason", "drain"]),
    ("work.append_event", HELD, [*HOLDER, "--type", "step", "--payload", '{"n": 3}', "--reason",
                                 "third"]),
    ("work.cancel", [CREATE], ["--id", "$ID", "--reason", "not wanted"]),
    ("work.cancel", [BOUND, CLAIM], [*HOLDER, "--reason", "mine"]),
    ("work.requeue", FAILED, ["--id", "$ID", "--reason", "fixed"]),
    ("work.redrive", FAILED, ["--reason", "fixed", "--status", "failed", "--kind", "work",
                              "--queue", "default", "--source", "manual", "--limit", "10"]),
    ("work.redrive", FAILED, ["--reason", "fixed", "--class", "other", "--older-than", "0s",
                              "--dry-run"]),
    ("work.request_abandon", [BOUND, CLAIM], ["--id", "$ID", "--reason", "host lost"]),
    ("work.list", FAILED, ["--status", "failed", "--status", "timeout", "--source", "manual",
                           "--queue", "default", "--kind", "work", "--limit", "1"]),
    ("work.list", HELD, ["--all", "--older-than", "0s"]),
    ("work.list", HELD, ["--owner", "w1"]),
    ("work.list", WAITING, ["--ref", "chat-7"]),
    ("work.list", HELD, ["--silent"]),
    ("work.list", [LATER], ["--gate", "due"]),
    ("work.list", FAILED, ["--all", "--newest", "--brief", "--since", "1h", "--finished",
                           "--from", "2020-01-01T00:00:00Z", "--before", "2120-01-01T00:00:00Z"]),
    ("work.list", [CREATE], ["--source-id", "s1", "--source-run-id", "none"]),
    ("work.list", [CREATE], ["--parent", "none", "--session", "none", "--lane", "none",
                             "--of-correlation", "none", "--class", "none", "--disposition",
                             "expire"]),
    ("work.list", [], ["--from", "2020-01-01T00:00:00Z", "--before", "2019-01-01T00:00:00Z"]),
    ("work.list", [], ["--newest", "--after", "12"]),
    ("work.list", [CREATE], ["--find", "s1-no-such-text"]),
    ("work.list", FAILED, ["--unacked"]),
    ("work.list", [CREATE], ["--limit-name", "kind:none"]),
    ("work.list", [CREATE], ["--find", "s1"]),  # too short
    ("work.show", HELD, ["--id", "$ID"]),
    ("work.show", [], ["--id", "ffffffff"]),
    ("work.events", FAILED, ["--id", "$ID", "--after", "0", "--limit", "1000"]),
    ("work.events", FAILED, ["--id", "$ID", "--limit", "2"]),
    ("work.output", HELD, ["--id", "$ID", "--attempt", "1"]),
    ("work.stats", HELD, []),
    ("work.sweep", [*HELD, ("work.sweep", {})], ["--limit", "1000"]),
    ("work.prune", FAILED, ["--older-than", "1000d", "--limit", "5"]),
    ("job.enqueue", [], [
        "--kind", "mail", "--payload", '{"to": "ann"}', "--queue", "q", "--delay", "1h",
        "--priority", "1", "--dedup-key", "d", "--debounce", "0s", "--idempotency-key", "i",
        "--max-attempts", "2", "--retry-policy", '{"initial_backoff_ms": 5}', "--start-timeout",
        "2h", "--exec-timeout", "1h", "--fair-key", "f", "--fair-weight", "3", "--ref", "x",
        "--limit-key", "k"]),
    ("job.enqueue", [], ["--kind", "mail", "--lane", "l"]),
    ("job.enqueue", [], ["--kind", "mail", "--rate-key", "r"]),
    ("job.enqueue", [CREATE], ["--kind", "mail", "--parent", "$ID"]),
    ("job.enqueue", [], ["--kind", "mail", "--dedup-key", "d", "--debounce", "1h"]),
    ("job.list", [LATER], ["--status", "queued", "--gate", "due", "--source", "manual",
                           "--queue", "default", "--kind", "mail", "--older-than", "0s",
                           "--limit", "5"]),
    ("job.list", HELD, ["--owner", "w1"]),
    ("job.list", WAITING, ["--ref", "chat-7", "--all"]),
    ("job.list", HELD, ["--silent"]),
    ("job.show", [LATER], ["--id", "$ID"]),
    ("job.cancel", [LATER], ["--id", "$ID", "--reason", "sent by hand"]),
    ("job.run_now", [LATER], ["--id", "$ID", "--reason", "now"]),
    ("job.release", [LATER], ["--id", "$ID", "--reason", "fixed"]),  # it is not held: refused
    ("limit.set", [], ["--name", "key:acme", "--max", "2", "--rate", "10", "--per", "1m",
                       "--burst", "3"]),
    ("limit.set", [("limit.set", {"name": "key:acme", "max_running": 2})],
     ["--name", "key:acme", "--none"]),
    ("limit.list", [("limit.set", {"name": "key:acme", "max_running": 2})], []),
    ("policy.set", [], [
        "--scope", "kind:pair", "--ttl", "5m", "--renew", "1m", "--grace", "0s", "--wait-user",
        "1h", "--wait-external", "2h", "--start-timeout", "3h", "--exec-timeout", "4h",
        "--max-attempts", "7", "--retry-policy", '{"initial_backoff_ms": 5}', "--disposition",
        "rerunnable", "--close-rule", "reviewer", "--wait-rule", "escalation"]),
    ("policy.show", [("policy.set", {"scope": "kind:shown", "ttl_ms": 300000})],
     ["--source", "manual", "--kind", "shown"]),
    ("store.log", [], ["--limit", "5"]),
    ("store.facts", [], []),
    ("attention", [], ["--unserved", "1h", "--limit", "5"]),
    ("attention.ack", FAILED, ["--id", "$ID", "--reason", "seen"]),
    ("attention.ack", FAILED, ["--kind", "work"]),
    ("attention.ack", [*FAILED], ["--all"]),
    ("attention.ack", [CREATE], ["--id", "$ID"]),
    ("overview", [], []),
    ("queue.list", [QUEUED], []),
    ("holder.list", HELD, ["--owner", "w1"]),
    ("work.ages", [CREATE], []),
    ("trigger.occurrences", [SUBSCRIBED, OCCURRED], ["--limit", "5", "--source-type", "$TENANT",
                                                     "--source-key", "repo"]),
    ("trigger.occurrences", [], ["--after", "x y"]),
    ("doctor", [], []),
    ("bounds", [], []),
    ("version", [], []),
    ("process.events", FAILED, ["--id", "$ID", "--after", "0", "--limit", "5"]),
    ("process.cancel", [CREATE], ["--id", "$ID", "--reason", "not needed"]),
    ("process.cancel", [BOUND, CLAIM], [*HOLDER, "--reason", "mine"]),
    ("process.request_abandon", [BOUND, CLAIM], ["--id", "$ID", "--reason", "host lost"]),
    ("process.complete", [EXTERNAL], ["--id", "$ID", "--authority", "ci", "--status", "failed",
                                      "--reason", "exit 1", "--class", "validation",
                                      "--summary", "none", "--output", "m:1"]),
    ("session.create", [], [
        "--session", "$TENANT", "--agent", "helper", "--config", '{"a": 1}', "--cause", '{"b":2}',
        "--labels", '{"customer":"17"}', "--relation", "root"]),
    ("session.create", [SESSION], ["--session", "$TENANT-child", "--agent", "helper", "--relation",
                                   "child", "--parent", "$TENANT"]),
    ("session.create", [SESSION], ["--session", "$TENANT", "--agent", "other"]),  # a conflict
    ("session.send", [SESSION], ["--session", "$TENANT", "--text", "hello", "--key", "k"]),
    ("session.send", [SESSION], ["--session", "$TENANT", "--message", MESSAGE]),
    ("session.send", [SESSION], ["--session", "$TENANT"]),  # nothing to say: refused
    ("session.list", [SESSION], ["--agent", "helper", "--limit", "5"]),
    ("session.list", [SESSION], ["--newest"]),
    ("session.list", [SESSION], ["--parent", "none", "--open", "--after", "2"]),
    ("session.show", [SESSION], ["--session", "$TENANT"]),
    ("session.send", [SESSION], ["--session", "$TENANT", "--text", "hello", "--key", "k", "--wait", "--timeout", "1ms"]),
    ("session.turn", [SESSION, SENT], ["--session", "$TENANT"]),  # none has begun
    ("session.turn", [SESSION, SENT], ["--session", "$TENANT", "--turn", "t1"]),
    ("session.effects", [SESSION, SENT], ["--session", "$TENANT", "--turn", "t1"]),
    ("session.log", [SESSION], ["--session", "$TENANT", "--limit", "5"]),
    ("session.log", [SESSION], ["--session", "$TENANT", "--after", "7"]),
    ("session.inputs", [SESSION, SENT], ["--session", "$TENANT", "--limit", "5"]),
    ("session.inputs", [SESSION, SENT], ["--session", "$TENANT", "--after", "$ID"]),
    ("session.cancel-turn", [SESSION, SENT], ["--session", "$TENANT", "--turn", "$ID", "--reason", "r"]),
    ("session.cancel-turn", [SESSION], ["--session", "$TENANT"]),  # no turn is open
    ("effect.list", [], ["--limit", "5"]),
    ("effect.list", [], ["--after", "none"]),  # no cursor: refused
    ("effect.resolve", [], ["--scope", "process", "--scope-id", "$ID", "--key", "1", "--status", "done",
                            "--outcome", '{"n": 1}']),  # there is no such effect
    ("effect.resolve", [], ["--scope", "operation", "--scope-id", "o", "--key", "1", "--status", "unknown",
                            "--reason", "r"]),
    ("wait.list", [SESSION], ["--session", "$TENANT", "--kind", "approval", "--answerer", "anna", "--closed",
                              "--limit", "5"]),
    ("wait.list", [], ["--after", "1 " + WAIT]),
    ("wait.show", [], ["--wait", WAIT]),  # there is no such wait
    ("wait.resolve", [], ["--wait", WAIT, "--answer", "error", "--value", "1", "--reason", "r"]),
    ("wait.resolve", [], ["--key", "hfw1.x", "--answer", "ok"]),  # no such key
    ("wait.revoke", [SESSION], ["--session", "$TENANT", "--reason", "r"]),
    ("wait.revoke", [SESSION], ["--session", "$TENANT", "--turn", "none"]),
    ("wait.revoke", [], ["--wait", WAIT]),
    ("wait.key", [], ["--wait", WAIT]),
    ("wait.rotate", [], ["--valid", "1h"]),
    ("approve", [], ["--wait", WAIT, "--arguments", '{"n": 1}']),
    ("deny", [], ["--wait", WAIT, "--reason", "r"]),
    ("schedule.add", [], [
        "--name", "$TENANT", "--cron", "0 9 1 * MON", "--tz", "Europe/Berlin", "--days", "and",
        "--kind", "report", "--queue", "q", "--payload", '{"a": 1}', *UNIT, "--overlap", "allow",
        "--catch-up", "all", "--miss-threshold", "5m", "--paused"]),
    ("schedule.add", [], ["--name", "$TENANT", "--kind", "k", "--every", "10m", "--start",
                          "2026-01-01T00:00:00Z"]),
    ("schedule.add", [], ["--name", "$TENANT", "--at", "2100-01-01T00:00:00Z", "--kind", "k"]),
    ("schedule.add", [SESSION], ["--name", "$TENANT", "--at", "2100-01-01T00:00:00Z", "--wake-session", "$TENANT"]),
    ("schedule.add", [], ["--name", "$TENANT", "--at", "2100-01-01T00:00:00Z"]),  # of nothing: refused
    ("schedule.add", [], ["--name", "$TENANT"]),  # no timing: refused
    ("schedule.update", [SCHEDULE], [
        "--name", "$TENANT", "--cron", "0 10 1 * MON", "--tz", "Europe/Berlin", "--days", "and",
        "--kind", "other", "--queue", "q", "--payload", '{"a": 1}', *UNIT, "--overlap", "replace",
        "--catch-up", "none", "--miss-threshold", "5m", "--revision", "1"]),
    ("schedule.update", [SCHEDULE], ["--name", "$TENANT", "--every", "1h", "--start",
                                     "2026-01-01T00:00:00Z"]),
    ("schedule.update", [SCHEDULE], ["--name", "$TENANT", "--at", "2100-01-01T00:00:00Z"]),
    ("schedule.update", [SESSION, SCHEDULE], ["--name", "$TENANT", "--wake-session", "$TENANT"]),
    ("schedule.update", [SCHEDULE], ["--name", "$TENANT", "--queue", "q", "--revision", "7"]),
    ("schedule.pause", [SCHEDULE], ["--name", "$TENANT", "--revision", "1", "--reason", "holiday"]),
    ("schedule.resume", [SCHEDULE, ("schedule.pause", {"name": "$TENANT"})],
     ["--name", "$TENANT", "--revision", "2"]),
    ("schedule.run_now", [SCHEDULE], ["--name", "$TENANT"]),
    ("schedule.remove", [SCHEDULE], ["--name", "$TENANT", "--revision", "1"]),
    ("schedule.list", [SCHEDULE], ["--state", "active", "--limit", "5", "--newest"]),
    ("schedule.list", [SCHEDULE], ["--set", "none"]),
    ("schedule.show", [SCHEDULE], ["--name", "$TENANT", "--count", "2", "--skips", "3"]),
    ("schedule.preview", [SCHEDULE], ["--name", "$TENANT", "--count", "2", "--from",
                                      "2026-03-27T12:00:00Z"]),
    ("schedule.preview", [], ["--cron", "0 9 1 * MON", "--tz", "Europe/Berlin", "--days", "and",
                              "--from", "2026-03-27T12:00:00Z"]),
    ("schedule.preview", [], ["--every", "1h", "--start", "2026-01-01T00:00:00Z", "--from",
                              "2026-03-27T12:00:00Z"]),
    ("schedule.preview", [], ["--at", "2100-01-01T00:00:00Z"]),
    ("schedule.sync", [], ["--file", "$FOLDER/set.json"]),
    ("schedule.run", [("schedule.run", {})], []),
    ("trigger.subscribe", [], [*KEY, *SOURCE, "--template", '{"sha": {"$event": "after"}}',
                               "--kind", "build", "--queue", "q", *UNIT]),
    ("trigger.subscribe", [], [*KEY, *SOURCE, "--process", "agent", "--name", "n",
                               "--wake-session", "s1"]),
    ("trigger.update", [SUBSCRIBED], [*KEY, "--revision", "1", *SOURCE, "--template",
                                      '{"sha": {"$event": "after"}}', "--kind", "other",
                                      "--queue", "q", *UNIT]),
    ("trigger.update", [SUBSCRIBED], [*KEY, "--revision", "1", *SOURCE, "--process", "agent",
                                      "--name", "n", "--wake-session", "s1"]),
    ("trigger.update", [SUBSCRIBED], [*KEY, "--revision", "9", *SOURCE]),
    ("trigger.enable", [SUBSCRIBED], [*KEY, "--revision", "1"]),
    ("trigger.disable", [SUBSCRIBED], [*KEY, "--revision", "1"]),
    ("trigger.remove", [SUBSCRIBED], [*KEY, "--revision", "1"]),
    ("trigger.revive", [SUBSCRIBED, ("trigger.remove", {"subscription_key": "k",
                                                        "owner_scope": "session:$TENANT"})],
     [*KEY, "--revision", "2"]),
    ("trigger.list", [SUBSCRIBED], ["--owner-scope", "session:$TENANT", *SOURCE, "--state", "enabled",
                                    "--limit", "5", "--newest"]),
    ("trigger.show", [SUBSCRIBED], KEY),
    ("trigger.emit", [SUBSCRIBED], [*SOURCE, "--idempotency-key", "d1", "--payload",
                                    '{"after": "abc"}', "--scope", "$TENANT", "--occurred-at",
                                    "2026-03-27T12:00:00Z"]),
    ("trigger.deliveries", [SUBSCRIBED, OCCURRED], ["--occurrence", "$OCCURRENCE"]),
    ("trigger.granted", [SUBSCRIBED, OCCURRED], ["--session", "$TENANT", "--limit", "5"]),
    ("trigger.subscribe", [SUBSCRIBED], [*KEY, *SOURCE, "--kind", "other"]),  # refused
    ("trigger.emit", [SUBSCRIBED, OCCURRED], [*SOURCE, "--idempotency-key", "d1", "--payload",
                                              '{"after": "abd"}']),  # other content: refused
    ("schedule.run", [("schedule.add", {"name": "$TENANT", "at": "2020-01-01T00:00:00Z",
                                     "kind": "k"})], []),
    ("process.start", [CREATE], [
        "--disposition", "rerunnable", "--kind", "x", "--name", "n", "--definition", '{"b":  1}',
        "--label", "a=b", "--label", "c=d=e", "--input", '{"q":  1}', "--originator", "s5",
        "--wake", "$TENANT", "--observer", "s1", "--observer", "s2", "--parent", "$ID", "--queue",
        "q", "--max-attempts", "3", "--idempotency-key", "i"]),
    ("process.start", [], ["--disposition", "externally_owned", "--ref", "job-17"]),
    ("process.start", [], ["--disposition", "rerunnable", "--detached"]),
    ("process.start", [], ["--disposition", "owner_bound", "--max-attempts", "2"]),  # refused
    ("process.list", [STARTED], ["--all", "--status", "queued", "--originator", "s5", "--kind",
                                 "x", "--name", "n", "--label", "a=b", "--definition", '{"v":  1}',
                                 "--observer", "s1", "--limit", "5"]),
    ("process.list", [STARTED], ["--waiting"]),
    ("process.list", [STARTED], ["--newest", "--brief"]),
    ("process.show", [STARTED, CLAIM], ["--id", "$ID", "--attempt", "1"]),
    ("process.signal", [STARTED], ["--id", "$ID", "--name", "go", "--payload", '{"n":  1}',
                                   "--key", "k1"]),
    ("process.signal", ENDED, ["--id", "$ID", "--name", "go"]),  # it has ended: refused
    ("process.observe", [STARTED], ["--id", "$ID", "--session", "s2"]),
    ("process.observe", [STARTED], ["--id", "$ID", "--session", "s1", "--end"]),
    ("process.retarget", [STARTED], ["--id", "$ID", "--session", "s2"]),
    ("process.retarget", [STARTED], ["--id", "$ID", "--none"]),
    ("process.retarget", [STARTED], ["--id", "$ID"]),  # neither: refused
    ("process.await", ENDED, ["--id", "$ID", "--wait", "1s"]),
    ("process.prune", ENDED, ["--older-than", "1000d"]),
    ("process.drain", [STARTED, ("work.claim", {"owner": "$TENANT", "owner_incarnation": "i1",
                                                "work_id": "$ID"})],
     ["--owner", "$TENANT", "--incarnation", "i1"]),
]
