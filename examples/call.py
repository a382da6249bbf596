#!/usr/bin/env python3
"""A worker without packages: one `holdfast call --lines`, and a thread that renews while it works.

    examples/call.py OWNER        takes units of the queue "default" until there are none
"""

import json, subprocess, sys, threading


class Holdfast:
    def __init__(self):
        self.lock = threading.Lock()
        self.process = subprocess.Popen(["holdfast", "call", "--lines"], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, op, **inputs):
        with self.lock:  # one call at a time; answers come in order
            print(json.dumps({"op": op, "in": inputs}), file=self.process.stdin, flush=True)
            answer = json.loads(self.process.stdout.readline())
        if not answer["ok"]:
            raise RuntimeError(answer["error"]["message"])
        return answer


def work_on(unit):
    return f"{len(json.dumps(unit['payload']))} bytes were counted"


holdfast = Holdfast()
while units := holdfast("work.claim", owner=sys.argv[1])["items"]:
    lease = {"work_id": units[0]["work_id"], "lease_token": units[0]["lease_token"]}
    done, seconds = threading.Event(), units[0]["lease_ttl_ms"] / 3000

    def renew():
        while not done.wait(seconds):  # an error ends the thread: the lease is lost
            holdfast("work.renew", **lease)

    renewing = threading.Thread(target=renew)
    renewing.start()
    summary = work_on(units[0])
    done.set()
    renewing.join()
    holdfast("work.close_out", **lease, status="done", summary=summary)
    print("done:", lease["work_id"], summary)
