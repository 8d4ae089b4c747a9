#!/usr/bin/python3
"""drive.py: runs systems in a checkout of the public harness, without docker.  Called by run.

    drive.py CHECKOUT DATA RESULTS NODE ROUNDS SECONDS SYSTEMS WORKS

The harness itself runs the phases, reads the samples and makes its summaries.  Only where it would
start a container, a process is started; its server is the one whose data directory is DATA, which
each system gets as it is now.  SECONDS is how long the clean phase of throughput lasts, which the
harness's own sweep gives 180 s; all other times of phases are shortened alike.
"""

import collections
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
import types

checkout, data, results, node = sys.argv[1:5]
rounds, seconds = int(sys.argv[5]), int(sys.argv[6])
systems, works = sys.argv[7].split(), sys.argv[8].split()
scale = seconds / 180
figures = collections.defaultdict(list)
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, checkout)

# What draws pictures needs packages that nothing else here needs.
for name, function in (("plots", "render_all"), ("report", "write_interactive_report")):
    module = types.ModuleType(name)
    setattr(module, function, lambda *_, **__: None)
    sys.modules["bench_harness." + name] = module

from pathlib import Path  # noqa: E402

from bench_harness import adapters, orchestrator, phases  # noqa: E402

# ---- the server ----


def pg_ctl(*arguments):
    command = ["pg_ctl", "-D", data, "-w", "-l", data + ".log", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def running():
    return os.path.exists(data + "/postmaster.pid")


def stop(_image=None):
    if running():
        pg_ctl("-m", "fast", "stop")


def start(_image=None):
    if not running():
        pg_ctl("start")


def remove(_image=None):
    """Stops the server; the next start finds it as it was in the beginning."""
    stop()
    shutil.rmtree(data)
    shutil.copytree(data + ".first", data, symlinks=True)


adapters.PG_PORT = int(os.environ["TQ_PUBLIC_PORT"])
orchestrator.RESULTS_ROOT = Path(results)
orchestrator.start_postgres = start
orchestrator.stop_postgres = remove
orchestrator._compose_stop_postgres = stop
orchestrator._compose_start_postgres = start

# ---- the systems ----


def register(system, directory, command, **environment):
    """A system that is a process instead of a container."""

    def launch(manifest, overrides):
        environ = {**adapters._base_env(manifest, overrides), **environment}
        return adapters.LaunchSpec(argv=command, env=environ, cwd=str(directory))

    entry = adapters.AdapterEntry(Path(directory), lambda skip: None, launch)
    adapters.ADAPTERS[system] = entry


def register_tq(system, **environment):
    """tq in one of its shapes, each of which needs a manifest with its name."""
    directory = Path(checkout) / (system + "-bench")
    shutil.copytree(here + "/tq-bench", directory, dirs_exist_ok=True)
    manifest = json.loads((directory / "adapter.json").read_text())
    (directory / "adapter.json").write_text(json.dumps({**manifest, "system": system}))
    register(system, directory, [sys.executable, "main.py"], TQ_SYSTEM=system, **environment)


register_tq("tq")
register_tq("tq-ahead", TQ_SHAPE="ahead")
for system in ("pgmq", "pgque"):
    register(system, f"{checkout}/{system}-bench", [sys.executable, "main.py"])
register("pgboss", checkout + "/pgboss-bench", [node, "main.js"])

# ---- what is run ----


def shorter(spec):
    """A phase of the harness, with its times shortened."""

    def short(match):
        n, unit = int(match[1]), {"s": 1, "m": 60, "h": 3600}[match[2]]
        return f"{max(3, round(n * unit * scale))}s"

    return phases.parse_phase_spec(re.sub(r"(\d+)([smh])\b", short, spec))


def run(system, title, specs, **options):
    """One system through these phases; prints a line for each, and keeps all in RESULTS."""
    # The batch that the harness's own sweeps give to PgQue.
    os.environ["PRODUCER_BATCH_MAX"] = "1000" if system == "pgque" else "128"
    parameters = {
        "sample_every_s": 1 if seconds < 60 else 5,
        "producer_rate": 800,
        "producer_mode": "fixed",
        "target_depth": 4000,
        "worker_count": 32,
        "replicas": 1,
        "high_load_multiplier": 1.5,
        "awa_completion_batch_size": None,
        **options,
    }
    fails, directory = "", None
    try:
        directory = orchestrator.drive(
            systems=[system],
            scenario=title.replace(" ", "_"),
            phases=[shorter(spec) for spec in specs],
            pg_image="",
            fast=False,
            skip_build=True,
            cli_args=sys.argv,
            wait_events_enabled=False,
            **parameters,
        )
    except Exception as error:
        fails = str(error).splitlines()[0]
    keep(system, title, directory, fails)


def keep(system, title, directory, fails):
    """A line for each phase: tasks per second, and the 99th percentile from creation to completion."""
    found = {}
    if directory:
        summary = json.loads((directory / "summary.json").read_text())
        found = summary["systems"].get(system, {}).get("phases", {})
    with open(results + "/figures.tsv", "a") as file:
        for label, phase in found.items():
            values = phase["metrics"]

            median = [values.get(m, {}).get("median") for m in ("completion_rate", "end_to_end_p99_ms")]
            line = [title, system, label, *(round(v or 0) for v in median)]
            print(*line, sep="\t", file=file)
            figures[title, system, label].append(line[3:])
        if fails:
            print(title, system, "fails", fails, sep="\t", file=file)
            figures[title, system, "fails"].append(fails)


def throughput(workers):
    def cell(system):
        options = {"producer_rate": 50000, "producer_mode": "depth-target", "worker_count": workers}
        run(system, f"throughput {workers}", ["warmup=warmup:30s", "clean=clean:180s"], **options)

    return cell


def chaos(scenario):
    def cell(system):
        several = scenario in ("chaos_crash_recovery", "chaos_repeated_kills")
        options = {"producer_rate": 300 if several else 600, "replicas": 2 if several else 1}
        run(system, scenario, phases.SCENARIOS[scenario], **options)

    return cell


def pressure(name, phase, last, rate=800, workers=32):
    def cell(system):
        specs = ["warmup=warmup:30s", "clean=clean:60s", phase, f"recovery=clean:{last}s"]
        run(system, name, specs, producer_rate=rate, worker_count=workers)

    return cell


# As in the harness's scripts/run_full_sweep.sh.
CELLS = {
    "throughput": [throughput(n) for n in (4, 16, 64, 256)],
    "chaos": [
        chaos("chaos_" + name)
        for name in ("postgres_restart", "pg_backend_kill", "pool_exhaustion", "crash_recovery", "repeated_kills")
    ],
    "pressure": [
        pressure("idle_in_tx", "stress=idle-in-tx:240s", 180),
        pressure("sustained_high_load", "stress=high-load:240s", 120),
        pressure("active_readers", "stress=active-readers:240s", 120),
        pressure("event_burst", "stress=high-load:300s", 240, rate=1200, workers=64),
    ],
}

# ---- tables ----


def middle(title, system, label, which=0):
    found = [values[which] for values in figures[title, system, label]]
    return statistics.median(found) if found else None


def against(title, label, base):
    """What a phase had of the rate of the one before it, for each system."""
    for system in systems:
        before, after = middle(title, system, base), middle(title, system, label)
        yield "fails" if not before or after is None else f"{after / before:.0%}"


def print_table(head, rows):
    print(f"\n| {head} | " + " | ".join(systems) + " |\n|---|" + "--:|" * len(systems))
    for title, cells in rows:
        print(f"| {title} | " + " | ".join("–" if cell is None else f"{cell}" for cell in cells) + " |")


def print_tables():
    titles = list(dict.fromkeys(title for title, _, _ in figures))
    rates = [title for title in titles if title.startswith("throughput")]
    stressed = [title for title in titles if not title.startswith(("throughput", "chaos"))]
    troubled = [title for title in titles if title.startswith("chaos")]
    for which, head in enumerate(("tasks/s, workers", "from creation to completion, p99 in ms, workers")):
        if rates:
            print_table(head, ((t.split()[1], [middle(t, s, "clean", which) for s in systems]) for t in rates))
    if troubled:
        print_table("rate after it, of that before", ((t, against(t, "recovery", "baseline")) for t in troubled))
    for head, label in (("rate under it, of that before", "stress"), ("rate after it", "recovery")):
        if stressed:
            print_table(head, ((t, against(t, label, "clean")) for t in stressed))


shutil.copytree(data, data + ".first", symlinks=True)
for work in works:
    for _ in range(rounds if work == "throughput" else 1):
        for cell in CELLS[work]:
            for system in random.sample(systems, len(systems)):
                began = time.monotonic()
                cell(system)
                print(f"  {work} {system}: {time.monotonic() - began:.0f} s", file=sys.stderr)
stop()
print_tables()
