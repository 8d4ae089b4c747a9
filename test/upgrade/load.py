#!/usr/bin/python3
"""A producer and worker by psycopg, for rehearse: it enqueues, claims and reports by prepared
statements until the file STOP is there, and connects again when its session has ended.

load.py CONNECTION LEDGER STOP

A line of the ledger has a time, what was acknowledged, and of which task and run; or an
error, its SQLSTATE and its text."""
import os
import sys
import time

import psycopg

CONNECTION, LEDGER, STOP = sys.argv[1:]
ledger = open(LEDGER, "a", buffering=1)


def note(*words):
    print(f"{time.time():.6f}", *words, file=ledger)


def turn(db):
    def call(query, *values):
        return db.execute(query, values, prepare=True).fetchall()

    note("enqueued", call("SELECT tq.enqueue('load/q', '{}')::text")[0][0])
    for run in call("SELECT task_id::text, run_id FROM tq.claim_work('load/q', 'load', 'psycopg')"):
        note("claimed", *run)
        call("SELECT tq.report_completed(%s::tq.slugid, %s::int)", *run)
        note("completed", *run)


db = None
while not os.path.exists(STOP):
    try:
        if db is None or db.closed:
            db = psycopg.connect(CONNECTION, autocommit=True)
            note("connected")
        turn(db)
        time.sleep(0.005)
    except psycopg.Error as error:
        note("error", error.sqlstate or "08006", " ".join(str(error).split()))
        time.sleep(0.05)
