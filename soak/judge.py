#!/usr/bin/env python3
"""The judge of an outside soak. It knows what each call was told (*.calls), what was done to the
fleet (acts.json), and what the tables say (rows.json, read by plain SQL when all was over). It
shares no code with the library.

    soak/judge.py FOLDER               one line per violation; exit 1 if there is any
    soak/judge.py --selftest FOLDER    damage what was read, once per fault; each must be found

  told      a call that was answered `done` has its event, exactly one, as it was told
  refused   a call that was answered `refused` or `busy` has none
  asked     every transition belongs to a call that was made, or to a sweep
  lost      every unit that was acknowledged is there, once
  chain     each transition begins where the one before ended, along a legal edge
  fences    a claim raises the fence by one, and other transitions keep it
  ends      a unit that has ended moves only by a requeue, and its row says what its events say
  order     a call that began after another had been answered comes after it in the trail
  early     no lease is taken before the last expiry that its holder was told, nor from a holder
            that was not ended
  progress  the transitions, restarts and kills that were wanted happened; everything ended

Exit code 8 of a call and no answer at all (it was killed) leave the outcome open: the tables then
say which it was, and both are right."""

import collections
import copy
import glob
import json
import os
import sys

TERMINAL = {"done", "failed", "timeout", "cancelled", "abandoned"}
REFUSED = {2, 3, 4, 5, 6, 7}
OPEN = {8}
SHOWN = 20
CLOCKS_MS = 50  # between the clocks of leases, of events and of the logs

# What each verb may make of a unit: event type, from, to. A sweep's are told by their reason.
VERBS = {
    "create": {("work_created", None, "queued")},
    "claim": {("claimed", "queued", "running")},
    "close-out": {("close_out", "running", "done")},
    "fail": {("retry_scheduled", "running", "retry_scheduled"), ("transition", "running", "failed")},
    "hand-back": {("transition", "running", "queued")},
    "wait": {("waiting_set", "running", "waiting_user")},
    "resume": {("resumed", "waiting_user", "queued")},
    "cancel": {("transition", state, "cancelled")
               for state in ("queued", "running", "waiting_user", "retry_scheduled")},
    "requeue": {("requeued", state, "queued") for state in TERMINAL},
    "renew": set(),
}
SWEEPS = {
    "heartbeat_timeout": {("transition", "running", "queued"), ("transition", "running", "failed")},
    "holder_dead": {("transition", "running", "queued"), ("transition", "running", "failed")},
    "retry_due": {("retry_promoted", "retry_scheduled", "queued")},
    "wait_timeout": {("timeout_marked", "waiting_user", "timeout")},
}

Event = collections.namedtuple(
    "Event", "id work type source target fence generation actor message payload call at")


class Call:
    """One call, with all its attempts."""

    def __init__(self, name, line):
        self.name, self.verb, self.work, self.fence = name, line["verb"], line["work"], line["fence"]
        self.pid, self.wants = line.get("pid"), line.get("wants")
        self.begin = line["begin"]
        self.codes, self.told, self.first_ok, self.errors = [], None, None, []

    def answer(self, line):
        self.codes[-1] = line["rc"]
        self.errors.append(line.get("error"))
        if line["rc"] == 0 and self.first_ok is None:
            self.first_ok, self.told = line["end"], line["told"]


class Run:
    """All that is known of a run."""

    def __init__(self, folder):
        with open(os.path.join(folder, "acts.json"), encoding="utf-8") as file:
            self.acts = json.load(file)
        with open(os.path.join(folder, "rows.json"), encoding="utf-8") as file:
            data = json.load(file)
        # work_id: source_id, status, fence, generation
        self.rows = {row[0]: row[1:] for row in data["rows"]}
        self.events = [Event(*event) for event in data["events"]]
        self.calls = {}
        for path in sorted(glob.glob(os.path.join(folder, "*.calls"))):
            with open(path, encoding="utf-8") as file:
                for line in file.read().split("\n")[:-1]:  # a last line may be cut short
                    self.read(json.loads(line))

    def read(self, line):
        name = line["call"]
        if "verb" in line:
            call = self.calls.setdefault(name, Call(name, line))
            call.codes.append(None)  # until it is answered
        else:
            self.calls[name].answer(line)

    def trails(self):
        trails = collections.defaultdict(list)
        for event in sorted(self.events, key=lambda event: event.id):
            trails[event.work].append(event)
        return trails

    def by_call(self):
        """The transitions that each call made; those of a sweep in its course are not its own."""
        made = collections.defaultdict(list)
        for event in self.events:
            if event.call and not sweep_reason(event):
                made[event.call].append(event)
        return made


def sweep_reason(event):
    """Why a sweep made this event, or None: a caller's reason is the name of its call."""
    note = json.loads(event.payload) if event.payload else {}
    if event.type == "retry_promoted":
        return "retry_due"
    if event.message or event.type in ("claimed", "work_created", "resumed"):
        return None
    return note.get("error_class") or note.get("reason")


def check_told(run):
    made = run.by_call()
    for call in run.calls.values():
        own = made[call.name]
        if call.verb != "claim" and len(own) > 1:
            yield f"{call.name} ({call.verb}) happened {len(own)} times"
        if call.told is None or call.verb == "renew":
            continue
        if call.verb == "claim":
            yield from claim_told(call, own)
        elif not own:
            yield f"{call.name}: {call.verb} of {call.told[0]['work']} was answered, and did not happen"
        elif call.told[0]["work"] != own[0].work or call.fence not in (None, own[0].fence):
            yield f"{call.name}: {call.verb} was answered for {call.told[0]['work']} under fence {call.fence}, " \
                  f"and happened to {own[0].work} under {own[0].fence}"
        elif len(call.codes) == 1 and call.told[0]["status"] != own[0].target:
            yield f"{call.name}: {call.verb} was answered `{call.told[0]['status']}`, the event says {own[0].target}"


def claim_told(call, own):
    told = {(unit["work"], unit["fence"]) for unit in call.told}
    has = {(event.work, event.fence) for event in own}
    for work, fence in told - has:
        yield f"{call.name}: fence {fence} of {work} was given out, and no claim says so"
    # A repeat returns what is still held; the first answer must be whole.
    if len(call.codes) == 1 and has - told:
        yield f"{call.name}: the claim took {len(has)} units and was told of {len(told)}"


def check_refused(run):
    made = run.by_call()
    for call in run.calls.values():
        if made[call.name] and all(code in REFUSED for code in call.codes):
            yield f"{call.name}: {call.verb} was refused ({call.codes}), and happened"
        for code, error in zip(call.codes, call.errors):
            if code is not None and code > 0 and code not in REFUSED | OPEN:
                yield f"{call.name}: {call.verb} ended with {code}: {error}"


def check_asked(run):
    for event in run.events:
        shape = (event.type, event.source, event.target)
        reason = sweep_reason(event)
        if reason:
            if shape not in SWEEPS.get(reason, set()):
                yield f"event {event.id} of {event.work}: no sweep makes {shape} for {reason}"
            continue
        call = run.calls.get(event.call)
        if not call:
            yield f"event {event.id} of {event.work}: {shape} was asked for by no call ({event.call})"
        elif shape not in VERBS[call.verb]:
            yield f"event {event.id} of {event.work}: {shape} is not what {call.name} ({call.verb}) asked for"
        elif event.message and event.message != call.name and call.verb != "resume":
            yield f"event {event.id} of {event.work}: the reason is {event.message}, the call {call.name}"


def check_lost(run):
    for call in run.calls.values():
        if call.verb == "create" and call.told:
            work = call.told[0]["work"]
            if work not in run.rows or run.rows[work][0] != call.name:
                yield f"{work} was acknowledged to {call.name} and is not there"
    for source, count in collections.Counter(row[0] for row in run.rows.values()).items():
        if count > 1:
            yield f"{source} is there {count} times"


def check_chain(run):
    for work, trail in run.trails().items():
        at = None
        for event in trail:
            if event.source != at:
                yield f"{work}: event {event.id} begins at {event.source}, not at {at}"
            at = event.target


def check_fences(run):
    for work, trail in run.trails().items():
        fence = 0
        for event in trail:
            if event.fence != fence + (event.target == "running"):
                yield f"{work}: event {event.id} ({event.target}) has fence {event.fence} after {fence}"
            fence = event.fence
    given = collections.defaultdict(set)
    for call in run.calls.values():
        if call.verb == "claim":
            for unit in call.told or []:
                given[unit["work"], unit["fence"]].add(call.name)
    for (work, fence), calls in given.items():
        if len(calls) > 1:
            yield f"{work}: fence {fence} was given to {sorted(calls)}"


def check_ends(run):
    trails = run.trails()
    for work, (_, status, fence, generation) in run.rows.items():
        trail, last = trails[work], None
        for event in trail:
            if last in TERMINAL and event.type != "requeued":
                yield f"{work}: it had ended ({last}), and event {event.id} made it {event.target}"
            last = event.target
        if not trail:
            yield f"{work} has no events"
        elif (status, fence) != (last, trail[-1].fence):
            yield f"{work} is {status} with fence {fence}, its events end at {last} with {trail[-1].fence}"
        elif generation != sum(event.type == "requeued" for event in trail):
            yield f"{work}: generation {generation} is not the number of its requeues"
    for work in trails.keys() - run.rows.keys():
        yield f"{work} has events and no row"


def check_order(run):
    for work, trail in run.trails().items():
        answered = []  # (answered at, event) of what comes later in the trail
        for event in reversed(trail):
            call = run.calls.get(event.call) if not sweep_reason(event) else None
            if not call:
                continue
            for end, later in answered:
                if end < call.begin:
                    yield f"{work}: {later.call} was answered before {event.call} began, and comes after it"
            if call.first_ok is not None:
                answered.append((call.first_ok, event))


def check_early(run):
    told, holders = collections.defaultdict(int), {}
    for call in run.calls.values():
        for unit in call.told or []:
            if call.verb in ("claim", "renew") and unit["expires"]:
                key = unit["work"], unit["fence"]
                told[key] = max(told[key], unit["expires"])
    for event in run.events:
        if event.type == "claimed" and event.call in run.calls:
            holders[event.work, event.fence] = run.calls[event.call]
    for event in run.events:
        key, reason = (event.work, event.fence), sweep_reason(event)
        if reason == "heartbeat_timeout" and event.at < told[key] - CLOCKS_MS:
            yield f"{event.work}: fence {event.fence} lapsed at {event.at}, its holder was told {told[key]}"
        if reason == "holder_dead":
            owner = holders[key].name.rsplit("-", 1)[0] if key in holders else None
            died = run.acts["died"].get(owner)
            if died is None or event.at < died * 1000 - CLOCKS_MS:
                yield f"{event.work}: fence {event.fence} was taken from {owner}, which was not dead"


def check_progress(run):
    for what, least in run.acts["least"].items():
        if run.acts["did"].get(what, 0) < least:
            yield f"only {run.acts['did'].get(what, 0)} times {what}, {least} were wanted"
    for name in run.acts["ended"]:
        yield f"{name} ended by itself"
    left = [work for work, row in run.rows.items() if row[1] not in TERMINAL]
    if left:
        yield f"{len(left)} units have not ended: {left[:5]}"
    if len(run.events) < run.acts["least_transitions"]:
        yield f"only {len(run.events)} transitions, {run.acts['least_transitions']} were wanted"
    if run.acts.get("doctor"):
        yield f"doctor: {run.acts['doctor']}"


CHECKS = [check_told, check_refused, check_asked, check_lost, check_chain, check_fences,
          check_ends, check_order, check_early, check_progress]


def violations(run):
    return [f"{check.__name__[6:]}: {what}" for check in CHECKS for what in check(run)]


def report(run):
    codes = collections.Counter(code for call in run.calls.values() for code in call.codes)
    silent = sum(count for code, count in codes.items() if code is None or code < 0)
    print(f"{len(run.events)} transitions, {len(run.rows)} units, {sum(codes.values())} calls: "
          f"{codes[0]} done, {sum(codes[code] for code in REFUSED)} refused, {codes[8]} not known, {silent} not answered")
    print("  ".join(f"{kind} {count}" for kind, count in sorted(run.acts["did"].items())))


def judge(folder):
    run = Run(folder)
    found = violations(run)
    report(run)
    for what in found[:SHOWN]:
        print(what)
    print(f"{len(found)} violations")
    return not found


# ---- faults that the judge must find --------------------------------------------------------


def answered(run, *verbs):
    """An answered call of these verbs, and its event."""
    made = run.by_call()
    return next((call, made[call.name][0]) for call in run.calls.values()
                if call.verb in verbs and call.told and made[call.name])


def replace(run, event, **what):
    run.events[run.events.index(event)] = event._replace(**what)


def missing(run):
    """An answered transition that is not in the trail."""
    run.events.remove(answered(run, "close-out", "requeue", "hand-back")[1])


def doubled(run):
    """A transition that happened twice."""
    event = answered(run, "close-out")[1]
    run.events.append(event._replace(id=event.id + 10**9))


def reclaimed(run):
    """A lease that is taken before its time."""
    call, event = answered(run, "hand-back", "close-out")
    run.calls[call.name].told = None
    last = max(unit["expires"] for one in run.calls.values() for unit in one.told or [] if unit["expires"]
               and (unit["work"], unit["fence"]) == (event.work, event.fence))
    replace(run, event, call=None, message=None, payload='{"reason":"heartbeat_timeout"}', at=last - 1000)


def lost_unit(run):
    """A unit that was acknowledged, and is gone with all its events."""
    event = answered(run, "create")[1]
    del run.rows[event.work]
    run.events[:] = [one for one in run.events if one.work != event.work]


def disordered(run):
    """Two transitions of a unit whose places are exchanged."""
    trail = next(trail for trail in run.trails().values() if len(trail) > 3)
    one, other = trail[1], trail[2]
    replace(run, one, id=other.id)
    replace(run, other, id=one.id)


def unasked(run):
    """An outcome that no call asked for."""
    replace(run, answered(run, "close-out")[1], call="unasked-1", message="unasked-1")


def fallen_fence(run):
    """A fence that falls."""
    event = answered(run, "close-out")[1]
    replace(run, event, fence=event.fence - 1)


def changed_end(run):
    """A unit that had ended, and whose row was changed."""
    work, row = next((work, row) for work, row in run.rows.items() if row[1] == "done")
    run.rows[work] = [row[0], "failed", *row[2:]]


def living_holder(run):
    """A unit that is taken from a holder that lives."""
    event = answered(run, "hand-back", "close-out")[1]
    replace(run, event, call=None, message=None, payload='{"reason":"holder_dead"}')
    run.acts["died"].clear()


def refused_and_done(run):
    """A call that was refused, and happened."""
    call = answered(run, "close-out")[0]
    call.codes, call.told, call.first_ok = [5], None, None


FAULTS = [(missing, "told"), (doubled, "told"), (reclaimed, "early"), (lost_unit, "lost"),
          (disordered, "chain"), (unasked, "asked"), (fallen_fence, "fences"), (changed_end, "ends"),
          (living_holder, "early"), (refused_and_done, "refused")]


def selftest(folder):
    whole, missed = Run(folder), 0
    for damage, check in FAULTS:
        run = copy.deepcopy(whole)
        damage(run)
        new = [what for what in violations(run) if what.startswith(check + ":")]
        if len(new) <= sum(what.startswith(check + ":") for what in violations(whole)):
            print(f"the judge does not see: {damage.__doc__}")
            missed += 1
    print(f"{len(FAULTS) - missed} of {len(FAULTS)} planted faults found")
    return missed == 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--selftest":
        sys.exit(0 if selftest(sys.argv[2]) else 1)
    sys.exit(0 if judge(sys.argv[1]) else 1)
