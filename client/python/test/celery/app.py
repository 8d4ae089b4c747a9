"""The application that the tests work with; what its tasks do they append to the file $TQ_LOG."""

import os
import time

from celery import Celery, chord
from kombu import Queue
from kombu.common import Broadcast

import tq.kombu  # noqa: F401	makes tq:// known

app = Celery(
    "app", broker="tq://", backend=os.environ.get("TQ_BACKEND", "db+postgresql+psycopg2://")
)
app.conf.update(
    broker_transport_options={"claim_for": float(os.environ.get("TQ_CLAIM_FOR", "6"))},
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=int(os.environ.get("TQ_PREFETCH", "4")),
)
news = Broadcast("news", unique=True)
if "TQ_POOLER" in os.environ:
    app.conf.broker_transport_options["connect"] = {"prepare_threshold": None}
app.conf.task_queues = [Queue("celery"), news]


def say(*words):
    """One line in the file, written at once, so that kill -9 loses none."""
    out = os.open(os.environ["TQ_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(out, (" ".join(map(str, words)) + "\n").encode("utf-8", "replace"))
    os.close(out)


@app.task
def add(x, y):
    return x + y


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def fail(text):
    raise ValueError(text)


@app.task
def spawn(n):
    """A chord that is made by a task."""
    return chord([add.si(i, 1) for i in range(n)])(total.s()).id


@app.task
def note(word):
    say(word)
    return word


@app.task
def slow(word, seconds):
    say("begin", word)
    time.sleep(seconds)
    say("end", word)


@app.task(acks_late=True, reject_on_worker_lost=True)
def late(word, seconds):
    say("begin", word)
    time.sleep(seconds)
    say("end", word)


@app.task(bind=True, max_retries=3)
def flaky(self, word):
    say("try", word, self.request.retries)
    if self.request.retries < 2:
        raise self.retry(countdown=1)
    return self.request.retries


@app.task(bind=True)
def when(self, word):
    say(word, "eta", self.request.eta, "at", time.time())


@app.task(rate_limit="2/s")
def limited(word):
    say(word, time.time())
