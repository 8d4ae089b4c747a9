"""Tasks of the tests."""

import os
import signal
import time

from django.db import transaction
from django.db.models import F
from shop.models import Order

from tq import Retry, Terminal

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task


@task
def add(a, b=0):
    return a + b


@task
async def aadd(a, b=0):
    return a + b


@task
def fail(text):
    raise ValueError(text)


@task
def fail_oddly():
    raise ValueError("\udc80 and \0")


@task(options={"retry": 2})
def fail_twice(path):
    with open(path, "a+") as file:
        file.write("x")
        if file.tell() < 3:
            raise RuntimeError(f"attempt {file.tell()}")
    return "third"


@task
def leave():
    raise SystemExit("gone")


@task
def unserializable():
    return object()


@task(takes_context=True)
def which(context):
    return [context.task_result.id, context.attempt, context.task_result.worker_ids]


@task(takes_context=True)
def die_once(context):
    if context.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return context.attempt


@task
def pay(order):
    Order.objects.filter(pk=order).update(paid=1)
    return order


@task
def pay_and_fail(order):
    pay.call(order)
    raise ValueError("after the payment")


@task
def interrupt():
    raise KeyboardInterrupt


@task(takes_context=True)
def count(context, path):
    for done in range(1, 4):
        context.progress(done, 3, "counted")
    while not os.path.exists(path):
        context.check()
        time.sleep(0.02)
    return done


@task(takes_context=True)
def pay_once(context, order, die=False):
    with transaction.atomic():
        Order.objects.filter(pk=order).update(paid=F("paid") + 1)
        context.complete({"order": order})
    if die:
        os.kill(os.getpid(), signal.SIGKILL)


@task(takes_context=True, options={"retry": 3})
def try_later(context):
    if context.attempt == 1:
        raise Retry("1 s", "not yet")
    if context.attempt == 2:
        raise Terminal("never")


@task
def nap(path, seconds):
    with open(path, "a") as file:
        file.write("began\n")
    time.sleep(seconds)
    with open(path, "a") as file:
        file.write("ended\n")
