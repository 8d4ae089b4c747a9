"""python -m tq worker module:app [--queue QUEUE]... [--concurrency N]: works until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from typing import Optional, Sequence

from .app import app_of


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tq")
    commands = parser.add_subparsers(required=True)
    worker = commands.add_parser("worker", help="work on the tasks of an app until SIGTERM")
    worker.add_argument("app", help="module:app")
    worker.add_argument("--queue", action="append", help="of these queues only; may be repeated")
    worker.add_argument("--concurrency", type=int, default=10, help="tasks at a time, 10")
    worker.add_argument("--stop-timeout", type=float, default=30, help="seconds for tasks at the end, 30")
    worker.add_argument("--verbose", action="store_true", help="log what is of no concern, too")
    given = parser.parse_args(arguments)
    logging.basicConfig(
        level=logging.DEBUG if given.verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    sys.path.insert(0, os.getcwd())
    options = {"concurrency": given.concurrency, "stop_timeout": given.stop_timeout}
    running = app_of(given.app).aworker(given.queue, **options)
    asyncio.run(running.run())
    if running.busy:  # it would keep the process
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
