"""testing.py: the helpers for tests of users: two hours of the clock, and what they fail for; TAP.

The server is that of PGHOST.  What is asked of both kinds of connection is written once.
"""

import asyncio
import os
import traceback
from datetime import datetime

import psycopg

import tq
from tq.query import ado, do
from tq.testing import Sandbox

QUEUE = f"testing/p{os.getpid()}"


def states(done):
    return [one.state for one in done]


def fails(steps, *texts):
    """What is yielded fails with an assertion that has these texts."""
    try:
        yield from steps()
    except AssertionError as error:
        assert all(text in str(error) for text in texts), error
    else:
        raise AssertionError(f"it does not fail with {texts}")


def test_two_hours_of_the_clock(box):
    def scheduled(task):
        status = yield box.call.status(task)
        return datetime.fromisoformat(status["runs"][0]["scheduled"].replace("Z", "+00:00"))

    def reason(task):
        return (yield box.call.status(task))["runs"][-1].get("reasonResolved")

    def again(payload, ctx):
        tries.append(payload)
        raise tq.Retry("30 min")

    tries = []
    began = yield from scheduled((yield tq.enqueue(box.connection, QUEUE, "now")))
    yield tq.enqueue(box.connection, QUEUE, "later", delay="2 hours")
    yield tq.enqueue(box.connection, f"{QUEUE}-r", "again", retry=5)
    lost = yield tq.enqueue(box.connection, f"{QUEUE}-c", "lost", retry=5)
    late = yield tq.enqueue(box.connection, f"{QUEUE}-d", "late", deadline="90 min")
    claim = "SELECT FROM tq.claim_work(%s, 'g', 'w', claim_for => '1 hour')"
    yield box.connection.execute(claim, [f"{QUEUE}-c"])
    assert states((yield box.drain(QUEUE))) == ["completed"]
    for _ in range(12):
        assert (yield box.drain(QUEUE)) == []
        yield box.drain(f"{QUEUE}-r", again)
        yield box.advance("10 min")
    assert len(tries) == 4, tries
    assert [one.payload for one in (yield box.drain(QUEUE))] == ["later"]
    assert states((yield box.drain(f"{QUEUE}-c"))) == ["completed"]
    assert (yield box.call.status(lost))["runs"][0]["reasonResolved"] == "claim-expired"
    assert (yield from reason(late)) == "deadline-exceeded"
    passed = (yield from scheduled((yield tq.enqueue(box.connection, QUEUE, "end")))) - began
    assert 7200 <= passed.total_seconds() < 7260, passed


def test_assertions_fail_with_what_the_queue_has(box):
    def asks(method, *args, **options):
        def steps():
            yield getattr(box, method)(QUEUE, *args, **options)

        return steps

    payloads = [{"to": "ann", "n": {"a": 1, "b": 2}}, {"to": "bob"}]
    yield tq.enqueue_many(box.connection, QUEUE, payloads)
    assert (yield box.assert_enqueued(QUEUE, payload={"n": {"a": 1}})).payload["to"] == "ann"
    yield box.assert_enqueued(QUEUE, count=2)
    yield from fails(asks("assert_enqueued", payload={"to": "eve"}), "has 0 tasks", "ann", "bob")
    yield from fails(asks("assert_enqueued", count=1), "has 2 tasks", "not 1")
    yield from fails(asks("refute_enqueued", payload={"to": "bob"}), "has 1 tasks", "not 0")
    yield box.refute_enqueued(f"{QUEUE}-other")


def test_those_of_one_millisecond_are_in_the_order_of_their_creation(box):
    tasks = yield tq.enqueue_many(box.connection, QUEUE, list(range(2500)))
    for n in (0, 1100, 2200):
        yield box.call.change_task_priority(tasks[n], priority="high")
    assert [one.payload for one in (yield box.enqueued(QUEUE))] == list(range(2500))


def test_what_a_handler_does_before_it_raises_is_undone(box):
    def sends(payload, ctx):
        def steps():
            yield box.connection.execute("INSERT INTO sent VALUES (1)")
            raise ValueError("no")

        return box._do(steps())

    yield box.connection.execute("CREATE TEMP TABLE sent (n int) ON COMMIT DROP")
    yield tq.enqueue(box.connection, QUEUE, 1)
    [failed] = yield box.drain(QUEUE, sends)
    assert (failed.state, str(failed.error)) == ("failed", "no")
    cursor = yield box.connection.execute("SELECT FROM sent")
    assert cursor.rowcount == 0


def test_a_handler_that_never_ends_is_found(box):
    def steps():
        yield box.drain(QUEUE, lambda payload, ctx: tq.enqueue(box.connection, QUEUE, 3), limit=5)

    yield tq.enqueue(box.connection, QUEUE, 2)
    yield from fails(steps, "more than 5 tasks")


def in_sync(test, **options):
    with psycopg.connect(**options) as connection, Sandbox(connection) as box:
        do(test(box))


async def in_async(test, **options):
    connection = await psycopg.AsyncConnection.connect(**options)
    async with connection, Sandbox(connection) as box:
        await ado(test(box))


def left():
    with psycopg.connect() as connection:
        text = "SELECT count(*) FROM tq.task_overview WHERE starts_with(task_queue_id, %s)"
        return connection.execute(text, [QUEUE]).fetchone()[0]


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    number = 0
    for name, test in tests:
        for kind, autocommit in (("sync", False), ("sync", True), ("async", False)):
            number += 1
            text = f"{name[5:].replace('_', ' ')}, {kind}{', autocommit' if autocommit else ''}"
            try:
                if kind == "sync":
                    in_sync(test, autocommit=autocommit)
                else:
                    asyncio.run(in_async(test, autocommit=autocommit))
                assert left() == 0, "the sandbox leaves tasks"
                print(f"ok {number} - {text}", flush=True)
            except Exception:
                print(f"not ok {number} - {text}")
                print("# " + traceback.format_exc().rstrip().replace("\n", "\n# "), flush=True)


main()
