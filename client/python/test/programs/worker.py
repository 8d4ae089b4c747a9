"""worker.py QUEUE CLAIM_FOR: a worker that is ended from outside; says what it begins."""

import sys

import tq

queue, claim_for = sys.argv[1:]


def work(payload, ctx):
    print("begin", payload["n"], flush=True)
    ctx.canceled.wait(payload["seconds"])
    ctx.check()


print("ready", flush=True)
tq.Worker("", queue, work, claim_for=claim_for, concurrency=4, stop_timeout=0).run()
print("end", flush=True)
