#!/usr/bin/env python3
"""The outside judge of a session soak: the logs of the processes (soak/sessions.c lists their
lines), and the tables. It shares no code with the library: it encodes records and folds chains
itself.

    soak/check_sessions.py FOLDER                exit 1 and one line per fault, if there is any
    soak/check_sessions.py --selftest FOLDER     plant faults in what was read; each must be found

FOLDER has *.log, and rows.json: the tables as sessions.py read them when all was over.

  lost      every acknowledged message is an input of its session, once; no input is a stranger
  ends      every input is done in one turn of its own, and ended once; a held one had crashed
  order     turns follow the order of the inputs, and inputs that of the acknowledgements
  heads     each head counts its turns and nodes; each turn continues the one before
  nodes     each turn has exactly the records that its message asks for, in their place
  chains    every digest is the fold of the records up to it, to the head
  fences    commits are under rising fences, and none is under a fence that was superseded
  told      what a process was told of a claim, a step or a commit is in the tables
  progress  the kills happened, and so did the work
"""

import collections
import copy
import glob
import hashlib
import json
import os
import sys

SHOWN = 20
POISON_CRASHES = 5
# What a process may be told: another has its session, or has finished its turn.
REFUSALS = {("step", "session_lease_lost"), ("commit", "session_lease_lost"),
            ("commit", "conflict"), ("renew", "session_lease_lost"),
            ("release", "session_lease_lost"), ("hand_back", "session_lease_lost"),
            ("step", "claim_superseded"), ("commit", "claim_superseded")}

Sent = collections.namedtuple("Sent", "session text before after")
Claim = collections.namedtuple("Claim", "session fence head turn who")
Step = collections.namedtuple("Step", "session fence turn step")
Done = collections.namedtuple("Done", "session fence turn revision records chain repeated")
Refusal = collections.namedtuple("Refusal", "session fence turn verb code")
Session = collections.namedtuple("Session", "id head records chain fence open_turn")
Turn = collections.namedtuple("Turn", "session id base step nodes finished result")
Node = collections.namedtuple("Node", "session ordinal turn chain record")
Input = collections.namedtuple("Input", "session seq id status gate payload")
Event = collections.namedtuple("Event", "id work type source target payload")


class Run:
    """All that is known of a run."""

    def __init__(self, rows, logs):
        self.plan = rows["plan"]
        self.sessions = {row[0]: Session(*row) for row in rows["sessions"]}
        self.turns = {row[1]: Turn(*row) for row in rows["turns"]}
        self.nodes = collections.defaultdict(list)
        for row in rows["nodes"]:
            self.nodes[row[0]].append(Node(*row))
        self.inputs = {row[2]: Input(*row) for row in rows["inputs"]}
        self.texts = {i.id: message_text(json.loads(i.payload)) for i in self.inputs.values()}
        self.trails = collections.defaultdict(list)
        for row in rows["events"]:
            self.trails[row[1]].append(Event(*row))
        self.begun, self.acked, self.claims, self.steps = set(), [], [], []
        self.done, self.refused, self.left = [], [], []
        for who, lines in logs.items():
            for line in lines:
                self.read(who, line.split(" "))
        # The turns of each session that were committed, in the order of their commits.
        self.committed = collections.defaultdict(list)
        for turn in sorted(self.turns.values(), key=lambda t: t.base):
            if turn.finished is not None and turn.result:
                self.committed[turn.session].append(turn)

    def read(self, who, fields):
        kind, *rest = fields
        if kind == "W":
            self.begun.add((rest[0], rest[1]))
        elif kind == "A":
            self.acked.append(Sent(rest[0], rest[1], int(rest[2]), int(rest[3])))
        elif kind == "C":
            self.claims.append(Claim(rest[0], int(rest[1]), int(rest[2]), rest[3], who))
        elif kind == "P":
            self.steps.append(Step(rest[0], int(rest[1]), rest[2], int(rest[3])))
        elif kind == "D":
            self.done.append(Done(rest[0], int(rest[1]), rest[2], int(rest[3]), int(rest[4]),
                                  rest[5], rest[6] == "1"))
        elif kind == "R":
            self.refused.append(Refusal(rest[0], int(rest[1]), *rest[2:]))
        elif kind in "BF":
            self.left.append((rest[0], int(rest[1])))

    def fence_of(self, turn):
        """Of the lease under which a turn was committed: its input's event has it."""
        for event in self.trails[turn.id]:
            if event.type == "close_out" and event.payload:
                return json.loads(event.payload)["session_lease"]["fence"]
        return None


def message_text(record):
    return record["message"]["parts"][0]["content"]


# ---- the digest of a record ------------------------------------------------------------------

ROLES = ["user", "assistant", "system", "event"]


def cbor_head(major, value):
    for info, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if value < 24:
            return bytes([major << 5 | value])
        if value < 1 << 8 * size:
            return bytes([major << 5 | info]) + value.to_bytes(size, "big")
    raise ValueError(value)


def cbor(value):
    """Numbers, texts, lists and maps; of a map, members that are 0, "" or empty are left out."""
    if isinstance(value, int):
        return cbor_head(0, value)
    if isinstance(value, str):
        data = value.encode()
        return cbor_head(3, len(data)) + data
    if isinstance(value, list):
        return cbor_head(4, len(value)) + b"".join(map(cbor, value))
    there = {key: part for key, part in value.items() if part not in (0, "", [])}
    return cbor_head(5, len(there)) + b"".join(cbor(k) + cbor(v) for k, v in there.items())


def field(data):
    return b"b" + len(data).to_bytes(8, "big") + data


def chain_on(previous, record):
    """The digest of a history whose last record is this one: a message with one text."""
    message = record["message"]
    known = {"kind": "message", "message": {
        "id": message["id"], "role": message["role"],
        "parts": [{"kind": "text", "content": message_text(record)}]}}
    if record != known:
        raise ValueError("the record has members that no process wrote")
    encoded = cbor({1: 0, 2: {1: message["id"], 2: ROLES.index(message["role"]),
                              3: [{1: 0, 4: message_text(record)}]}})
    family = b"holdfast.record"
    return hashlib.sha256(b"HFD1" + len(family).to_bytes(8, "big") + family + b"\x01"
                          + field(previous) + field(encoded)).digest()


# ---- checks ------------------------------------------------------------------------------------

def check_lost(run):
    stored = collections.Counter((i.session, run.texts[i.id]) for i in run.inputs.values())
    for sent in run.acked:
        if stored[sent.session, sent.text] != 1:
            yield (f"{sent.text} was acknowledged by {sent.session}, and is there "
                   f"{stored[sent.session, sent.text]} times")
    for (session, text), count in stored.items():
        if (session, text) not in run.begun:
            yield f"{session}: nothing has sent {text}"
        if count > 1:
            yield f"{session}: {text} is there {count} times"


def check_ends(run):
    for item in run.inputs.values():
        trail = run.trails[item.id]
        ends = [e for e in trail if e.target == "done"]
        turn = run.turns.get(item.id)
        if item.gate == "held":
            crashes = sum(e.type == "session_reclaimed" for e in trail)
            if crashes < POISON_CRASHES - 1:
                yield f"{item.id} is held after {crashes} lost claims"
        elif item.status != "done" or len(ends) != 1 or not turn or turn.finished is None:
            yield f"{item.id} ({run.texts[item.id]}) is {item.status}, ended {len(ends)} times"
        elif trail[-1].target != "done":
            yield f"{item.id}: {trail[-1].type} comes after its end"
        at = None
        for event in trail:
            if event.target and event.source != at:
                yield f"{item.id}: event {event.id} begins at {event.source}, not at {at}"
            at = event.target or at
    for turn in run.turns.values():
        if turn.id not in run.inputs:
            yield f"turn {turn.id} has no input"
    for session in run.sessions.values():
        if session.open_turn and run.inputs[session.open_turn].gate != "held":
            yield f"{session.id}: turn {session.open_turn} is open after the drain"


def check_order(run):
    for session, turns in run.committed.items():
        seqs = [run.inputs[turn.id].seq for turn in turns if turn.id in run.inputs]
        if seqs != sorted(seqs):
            yield f"{session}: its turns are not in the order of its inputs"
    seqs = {(i.session, run.texts[i.id]): i.seq for i in run.inputs.values()}
    by_session = collections.defaultdict(list)
    for sent in run.acked:
        by_session[sent.session].append(sent)
    for session, sends in by_session.items():
        sends.sort(key=lambda s: seqs.get((session, s.text), 0))
        latest = 0  # when the last of those with lower keys was begun
        for sent in sends:
            if sent.after < latest:
                yield f"{session}: {sent.text} was acknowledged before one that precedes it"
            latest = max(latest, sent.before)


def check_heads(run):
    for session in run.sessions.values():
        turns, records = run.committed.get(session.id, []), 0
        if [turn.base for turn in turns] != list(range(session.head)):
            yield f"{session.id}: head {session.head}, its turns began at " \
                  f"{[turn.base for turn in turns][:5]}…"
        for turn in turns:
            records += turn.nodes + 1
            result = json.loads(turn.result)
            if (result["head_revision"], result["record_count"]) != (turn.base + 1, records):
                yield f"{session.id}: turn {turn.id} has the result {turn.result}"
        ordinals = [node.ordinal for node in run.nodes[session.id]]
        if session.records != records or ordinals != list(range(records)):
            yield (f"{session.id}: {session.records} records by its head, {records} by its turns, "
                   f"{len(ordinals)} nodes")


def check_nodes(run):
    for session, turns in run.committed.items():
        wanted = [(turn.id, f"{run.texts.get(turn.id)}#{n + 1}")
                  for turn in turns for n in range(turn.nodes + 1)]
        found = [(node.turn, message_text(json.loads(node.record)))
                 for node in run.nodes[session]]
        for place, (want, have) in enumerate(zip(wanted, found)):
            if want != have:
                yield f"{session}: node {place} is {have}, not {want}"
                break


def check_chains(run):
    for session in run.sessions.values():
        chain = bytes(32)
        for node in run.nodes[session.id]:
            try:
                chain = chain_on(chain, json.loads(node.record))
            except ValueError as error:
                yield f"{session.id}: node {node.ordinal}: {error}"
            if chain.hex() != node.chain:
                yield f"{session.id}: the chain breaks at node {node.ordinal}"
                break
        if chain.hex() != session.chain:
            yield f"{session.id}: the head's chain is not that of its nodes"


def check_fences(run):
    fences = {}  # of each session: by revision
    for session, turns in run.committed.items():
        fences[session] = [run.fence_of(turn) for turn in turns]
        if None in fences[session]:
            yield f"{session}: a commit has no fence"
        elif fences[session] != sorted(fences[session]) or \
                fences[session][-1] > run.sessions[session].fence:
            yield f"{session}: the fences of its commits are {fences[session]}"
    for claim in run.claims:
        ours = fences.get(claim.session, [])
        if any(f is not None and f >= claim.fence for f in ours[:claim.head]):
            yield f"{claim.session}: {claim.who} claimed with fence {claim.fence} too late"
        if any(f is not None and f < claim.fence for f in ours[claim.head:]):
            yield (f"{claim.session}: a commit is under a fence below {claim.fence}, which "
                   f"{claim.who} had been given at revision {claim.head}")
    given_up = set(run.left)
    for session, ours in fences.items():
        for fence in set(ours):
            if (session, fence) in given_up:
                yield f"{session}: a commit is under fence {fence}, which was given up"


def check_told(run):
    seen = collections.Counter((c.session, c.fence) for c in run.claims)
    for (session, fence), count in seen.items():
        if count > 1:
            yield f"{session}: fence {fence} was given to {count} claims"
        if fence > run.sessions[session].fence:
            yield f"{session}: fence {fence} was given, and its last is lower"
    steps = collections.Counter((s.turn, s.step) for s in run.steps)
    for (turn, step), count in steps.items():
        if count > 1 or turn not in run.turns or run.turns[turn].step < step:
            yield f"turn {turn}: step {step} was stored {count} times, by what was told"
    for done in run.done:
        turn = run.turns.get(done.turn)
        nodes = run.nodes[done.session]
        if not turn or turn.base + 1 != done.revision or turn.finished is None:
            yield f"{done.session}: turn {done.turn} was told as revision {done.revision}"
        elif not 0 < done.records <= len(nodes) or nodes[done.records - 1].chain != done.chain:
            yield f"{done.session}: turn {done.turn} was told with another chain"
        elif not done.repeated and run.fence_of(turn) != done.fence:
            yield f"{done.session}: turn {done.turn} was told as committed under {done.fence}"
    for refusal in run.refused:
        turn = run.turns.get(refusal.turn)
        if (refusal.verb, refusal.code) not in REFUSALS:
            yield f"{refusal.session}: {refusal.verb} was refused as {refusal.code}"
        elif refusal.verb == "commit" and turn and run.fence_of(turn) == refusal.fence:
            yield f"{refusal.session}: the commit of {refusal.turn} was refused, and is there"


def check_progress(run):
    did, kills = run.plan["did"], run.plan["kills"]
    if did["killed"] < kills or did["woken"] < run.plan["wakes"]:
        yield f"too little was done to the fleet: {did}"
    if run.plan["ended"]:
        yield f"ended by themselves: {run.plan['ended']}"
    committed = sum(1 for turn in run.turns.values() if turn.result)
    if committed < 2 * kills:
        yield f"{committed} commits in all"


CHECKS = [check_lost, check_ends, check_order, check_heads, check_nodes, check_chains,
          check_fences, check_told, check_progress]


def faults(run):
    return [f"{check.__name__[6:]}: {fault}" for check in CHECKS for fault in check(run)]


# ---- planted faults ------------------------------------------------------------------------------
# Each changes what was read, in the way that a defect of the store would.

def busiest(rows):
    """The session with the most turns, and the rows of its committed ones in order."""
    turns = collections.defaultdict(list)
    for row in rows["turns"]:
        if row[6]:
            turns[row[0]].append(row)
    session = max(turns, key=lambda s: len(turns[s]))
    return session, sorted(turns[session], key=lambda t: t[2])


def session_row(rows, session):
    return next(row for row in rows["sessions"] if row[0] == session)


def lose_message(rows, _):
    work = busiest(rows)[1][0][1]
    rows["inputs"] = [row for row in rows["inputs"] if row[2] != work]


def double_message(rows, _):
    rows["inputs"].append([*rows["inputs"][0][:2], "another", *rows["inputs"][0][3:]])


def leave_message(rows, _):
    rows["inputs"][0][3] = "queued"


def swap_turns(rows, _):
    first, second = busiest(rows)[1][:2]
    first[2], second[2] = second[2], first[2]


def lose_node(rows, _):
    session = busiest(rows)[0]
    last = max(row[1] for row in rows["nodes"] if row[0] == session)
    rows["nodes"] = [row for row in rows["nodes"] if row[:2] != [session, last]]


def edit_node(rows, _):
    rows["nodes"][0][4] = rows["nodes"][0][4].replace("#1", "#7")


def edit_chain(rows, _):
    session = session_row(rows, busiest(rows)[0])
    session[3] = "00" * 32


def provisional_node(rows, _):
    session = session_row(rows, busiest(rows)[0])
    rows["nodes"].append([session[0], session[2], None, "00" * 32, rows["nodes"][0][4]])


def old_fence(rows, _):
    """The last commit is under the fence of the first: its holder had been superseded."""
    turns = busiest(rows)[1]
    ends = {row[1]: row for row in rows["events"] if row[2] == "close_out"}
    ends[turns[-1][1]][5] = ends[turns[0][1]][5]


def head_back(rows, _):
    session_row(rows, busiest(rows)[0])[1] -= 1


def second_end(rows, _):
    end = next(row for row in rows["events"] if row[4] == "done")
    rows["events"].append([end[0] + 10**9, *end[1:]])


def told(kind, change):
    """A change of the first line of that kind in the logs."""
    def plant(_, logs):
        for lines in logs.values():
            for i, line in enumerate(lines):
                if line.startswith(kind + " "):
                    lines[i:i + 1] = change(line.split(" "))
                    return
        raise AssertionError(f"no process was told of {kind}")
    return plant


def with_field(i, value):
    return lambda fields: [" ".join([*fields[:i], value, *fields[i + 1:]])]


PLANTED = {
    "an acknowledged message is lost": lose_message,
    "a message is there twice": double_message,
    "a message never came to its turn": leave_message,
    "two turns changed places": swap_turns,
    "a node is lost": lose_node,
    "a node was edited": edit_node,
    "the head's chain is another": edit_chain,
    "a provisional node was left": provisional_node,
    "a commit under an old fence": old_fence,
    "a head went back": head_back,
    "an input ended twice": second_end,
    "a message that was not stored": told("A", with_field(2, "w0-999999")),
    "a fence given twice": told("C", lambda f: [" ".join(f)] * 2),
    "a fence that was never stored": told("C", with_field(2, "999999")),
    "a step told twice": told("P", lambda f: [" ".join(f)] * 2),
    "a commit told with another revision": told("D", with_field(4, "999999")),
    "a commit told with another chain": told("D", with_field(6, "00" * 32)),
    "a commit that was refused and is there":
        told("D", lambda f: [f"R {f[1]} {f[2]} {f[3]} commit session_lease_lost"]),
    "a head that moved under a holder":
        told("D", lambda f: [f"R {f[1]} {f[2]} {f[3]} commit head_moved"]),
    "a commit after the lease was given up":
        told("D", lambda f: [" ".join(f), f"B {f[1]} {f[2]} {f[3]}"]),
}


def load(folder):
    logs = {}
    with open(os.path.join(folder, "rows.json"), encoding="utf-8") as file:
        rows = json.load(file)
    for path in sorted(glob.glob(os.path.join(folder, "*.log"))):
        with open(path, encoding="utf-8") as file:
            # What follows the last end of a line was cut short by a kill.
            logs[os.path.basename(path)[:-4]] = file.read().split("\n")[:-1]
    return rows, logs


def selftest(folder):
    """Every planted fault must be found."""
    rows, logs = load(folder)
    before, missed = set(faults(Run(rows, logs))), []
    for name, plant in PLANTED.items():
        planted = copy.deepcopy((rows, logs))
        plant(*planted)
        if not set(faults(Run(*planted))) - before:
            missed.append(name)
    for name in missed:
        print(f"planted, and not found: {name}")
    print(f"{len(PLANTED)} faults planted, {len(PLANTED) - len(missed)} found")
    return not missed


def judge(folder):
    run = Run(*load(folder))
    found = faults(run)
    for fault in found[:SHOWN]:
        print(fault)
    if len(found) > SHOWN:
        print(f"and {len(found) - SHOWN} more")
    plan = run.plan
    held = sum(i.gate == "held" for i in run.inputs.values())
    print(f"{plan['store']}, {plan['seconds']} s, {plan['did']}: {len(run.inputs)} messages in "
          f"{len(run.sessions)} sessions ({len(run.acked)} acknowledged, {held} held), "
          f"{sum(map(len, run.nodes.values()))} nodes; told: {len(run.claims)} claims, "
          f"{len(run.steps)} steps, {len(run.done)} commits "
          f"({sum(d.repeated for d in run.done)} repeated), {len(run.refused)} refusals; "
          f"drain {plan['drain_s']} s: {len(found)} faults")
    return not found


def main(args):
    if len(args) == 2 and args[0] == "--selftest":
        return 0 if selftest(args[1]) else 1
    if len(args) == 1 and not args[0].startswith("-"):
        return 0 if judge(args[0]) else 1
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
