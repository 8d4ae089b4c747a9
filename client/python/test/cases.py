"""cases.py sync|async: runs client/cases.json on the server of PGHOST, in its database; TAP.

The steps are written once: what is yielded is a value, or with async an awaitable.
"""

import asyncio
import json
import logging
import os
import re
import sys
import threading
import time
import traceback
from datetime import datetime, timezone
from pathlib import Path

import psycopg

import tq
from tq.query import ado, do

KIND = sys.argv[1]
ASYNC = KIND == "async"
PATIENCE = 50  # less than the minute after which a client looks by itself
TABLE = json.loads((Path(__file__).parents[2] / "cases.json").read_text())
run_steps = ado if ASYNC else do

logging.getLogger("tq").setLevel(logging.CRITICAL)


def pause(seconds):
    return asyncio.sleep(seconds) if ASYNC else time.sleep(seconds)


def connect(**options):
    connection = psycopg.AsyncConnection if ASYNC else psycopg.Connection
    return connection.connect(**options)


def enter(block):
    return block.__aenter__() if ASYNC else block.__enter__()


def until(what, condition):
    end = time.monotonic() + PATIENCE
    while not (yield from condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain: {what}")
        yield pause(0.02)


def filled(value, kept):
    """Put what is kept in the place of $name."""
    if isinstance(value, list):
        return [filled(one, kept) for one in value]
    if isinstance(value, dict):
        return {key: filled(one, kept) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    if re.fullmatch(r"\$\w+", value) and value[1:] in kept:
        return kept[value[1:]]

    def text(found):
        one = kept.get(found[1], found[0])
        return one if isinstance(one, str) else json.dumps(one)

    return re.sub(r"\$(\w+)", text, value)


def plain(value):
    if isinstance(value, datetime):
        text = value.astimezone(timezone.utc).isoformat(timespec="milliseconds")
        return text.replace("+00:00", "Z")
    return value._asdict() if isinstance(value, tq.Ended) else value


def matches(actual, expected):
    """Of a dictionary the keys that are expected."""
    actual = plain(actual)
    if isinstance(expected, list):
        same = isinstance(actual, list) and len(actual) == len(expected)
        return same and all(map(matches, actual, expected))
    if isinstance(expected, dict):
        return actual is not None and all(
            key in actual and matches(actual[key], one) for key, one in expected.items()
        )
    return type(actual) is type(expected) and actual == expected


class Case:
    """A case, with what its steps have kept and its handlers have seen."""

    def __init__(self, number, db):
        name = f"p{KIND[0]}{number}-{os.getpid()}"
        self.db = db
        self.kept = {"q": f"cases/{name}", "app": f"app-{name}", "sub": f"sub-{name}"}
        self.saw = []
        self.released = threading.Event()
        self.workers = 0

    # ---- handlers ----

    def handler(self, payload, ctx):
        payload = payload if isinstance(payload, dict) else {"n": payload}
        self.saw.append(payload.get("n"))
        kind = payload.get("do", "return")
        return (yield from getattr(self, f"do_{kind}")(payload, ctx))

    def do_return(self, payload, ctx):
        yield None
        return payload.get("value")

    def raises(error):
        def do(self, payload, ctx):
            yield None
            raise error(payload)

        return do

    do_fail = raises(lambda payload: RuntimeError(payload["message"]))
    do_retry = raises(lambda payload: tq.Retry(payload["delay"]))
    do_defer = raises(lambda payload: tq.Defer(payload["delay"]))
    do_terminal = raises(lambda payload: tq.Terminal(payload.get("message", "")))
    do_malformed = raises(lambda payload: tq.MalformedPayload("bad"))
    do_unavailable = raises(lambda payload: tq.ResourceUnavailable())
    do_internal = raises(lambda payload: tq.InternalError())

    def do_hang(self, payload, ctx):
        try:
            yield asyncio.sleep(600) if ASYNC else ctx.canceled.wait()
            ctx.check()
        except (asyncio.CancelledError, tq.Aborted):
            self.saw.append("aborted")
            raise

    def do_stubborn(self, payload, ctx):
        while not self.released.is_set():
            try:
                yield pause(0.05)
            except asyncio.CancelledError:
                pass

    def do_sleep(self, payload, ctx):
        yield asyncio.sleep(payload["seconds"]) if ASYNC else ctx.canceled.wait(payload["seconds"])
        ctx.check()
        return payload.get("value")

    def do_progress(self, payload, ctx):
        ctx.progress(payload["done"], payload["total"], payload["message"])
        yield pause(payload["seconds"])

    def do_result(self, payload, ctx):
        yield ctx.result(payload["value"])

    def do_complete(self, payload, ctx, end="commit"):
        connection = yield connect()
        yield tq.enqueue(connection, payload["then"], {})
        yield ctx.complete(connection, payload["value"])
        yield getattr(connection, end)()
        yield connection.close()

    def do_complete_rollback(self, payload, ctx):
        yield from self.do_complete(payload, ctx, "rollback")

    def do_nul(self, payload, ctx):
        yield None
        return "\0"

    def do_large(self, payload, ctx):
        yield None
        return "x" * 2_000_000

    def do_unserializable(self, payload, ctx):
        yield None
        return {1, 2}

    # ---- steps ----

    def value(self, db, text):
        cursor = yield db.execute(text)
        row = yield cursor.fetchone()
        return row[0] if row else None

    def does(self, step, db):
        q = self.kept["q"]
        if "sql" in step:
            return (yield from self.value(db, step["sql"]))
        if "until" in step:
            text = f"SELECT {step['until']}"
            return (yield from until(text, lambda: self.value(db, text)))
        if "call" in step:
            return (yield getattr(tq.call(db), step["call"])(**step.get("args", {})))
        if "enqueue" in step:
            return (yield tq.enqueue(db, q, step["enqueue"], **step.get("options", {})))
        if "enqueue_many" in step:
            payloads, options = step["enqueue_many"], step.get("options", {})
            return (yield tq.enqueue_many(db, q, payloads, **options))
        if "wait_for" in step:
            timeout = {"timeout": step["timeout"]} if "timeout" in step else {}
            return (yield tq.wait_for(db, step["wait_for"], **timeout))
        if "worker" in step:
            return (yield self.worker(step))
        if "subscribe" in step:
            return (yield from self.subscribe(step, db))
        if "got" in step:
            messages = self.kept[step["of"]].messages
            return (yield from until(step, lambda: self.seen(messages, step["got"])))
        if "stop" in step:
            began = time.monotonic()
            timeout = {"timeout": step["timeout"]} if "timeout" in step else {}
            yield self.kept[step["stop"]].stop(**timeout)
            took = time.monotonic() - began
            assert took < step.get("within", PATIENCE), f"it stops after {took} s"
            return None
        if "saw" in step:
            return (yield from until((step, self.saw), lambda: self.same(step["saw"])))
        if "saw_count" in step:
            found = (len(self.saw), len(set(self.saw)))
            assert found == (step["saw_count"], step["saw_count"]), found
            return None
        assert "release" in step, f"no step is {step}"
        return self.released.set()

    def seen(self, messages, expected):
        yield None
        return any(matches(message, expected) for message in messages)

    def same(self, expected):
        yield None
        return self.saw == expected

    def worker(self, step):
        self.saw.clear()
        self.workers += 1
        queue = step.get("queues", self.kept["q"])
        options = {"group": "cases", "id": f"{self.kept['app']}-{self.workers}", **step["worker"]}
        source = f"application_name={self.kept['app']}"
        if ASYNC:

            async def handler(payload, ctx):
                return await ado(self.handler(payload, ctx))

            return tq.AsyncWorker(source, queue, handler, **options).__aenter__()
        return tq.Worker(
            source, queue, lambda payload, ctx: do(self.handler(payload, ctx)), **options
        ).__enter__()

    def subscribe(self, step, db):
        messages = []
        name = f"{self.kept['sub']}-s"
        kind = tq.AsyncSubscription if ASYNC else tq.Subscription
        subscription = yield enter(
            kind(
                "",
                name,
                step["subscribe"],
                lambda message, *connection: messages.append(message),
                transaction=step.get("transaction", False),
            )
        )
        text = f"SELECT EXISTS (SELECT FROM tq.subscription_overview WHERE name = '{name}')"
        yield from until("the subscription", lambda: self.value(db, text))
        subscription.messages = messages
        return subscription

    def run(self, steps, db):
        for raw in steps:
            if "transaction" in raw and "end" in raw:
                connection = yield connect()
                yield from self.run(raw["transaction"], connection)
                yield getattr(connection, raw["end"])()
                yield connection.close()
                continue
            step = filled(raw, self.kept)
            try:
                value = yield from self.does(step, db)
            except psycopg.Error as error:
                assert error.sqlstate == step.get("error"), f"{step}: {error!r}"
                continue
            assert "error" not in step, f"{step} has no error"
            if "as" in step:
                self.kept[step["as"]] = plain(value)
            if "expect" in step:
                assert matches(value, step["expect"]), f"{step}\nreturns {value!r}"

    def end(self):
        self.released.set()
        for value in self.kept.values():
            if hasattr(value, "stop"):
                yield value.stop()


def main():
    db = yield connect(autocommit=True)
    for number, one in enumerate(TABLE["cases"], 1):
        name = f"{KIND}: {one['name']}"
        if len(sys.argv) > 2 and sys.argv[2] not in name:
            continue
        if one["name"] in TABLE["without"]["python"]:
            print(f"ok {number} - {name} # skip not in Python")
            continue
        case = Case(number, db)
        try:
            yield from case.run(one["steps"], db)
            print(f"ok {number} - {name}", flush=True)
        except Exception:
            print(f"not ok {number} - {name}")
            print(re.sub("(?m)^", "# ", traceback.format_exc().rstrip()), flush=True)
        yield from case.end()


if ASYNC:
    asyncio.run(ado(main()))
else:
    do(main())
