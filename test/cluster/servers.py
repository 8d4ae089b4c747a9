"""Servers of a test of failover: etcd, and nodes of PostgreSQL and Patroni, on one machine.

The configuration of a node is patroni.yml, with addresses and directories of the test.
Each node reaches etcd through a proxy of its own, so that it can be cut off.
"""
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
import urllib.request

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    """The cluster does not do what the test needs."""


def free_ports(count):
    """Ports that are free now, and below those that Linux gives to programs that ask for any."""
    sockets = []
    while len(sockets) < count:
        sockets.append(socket.socket())
        try:
            sockets[-1].bind(("127.0.0.1", random.randrange(10000, 32768)))
        except OSError:
            sockets.pop().close()
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for(what, condition, seconds=90, pause=0.05):
    """Waits until a condition is true, and returns what it returned."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(pause)
    raise Failed(f"{what} did not come within {seconds} s")


def processes_below(pid):
    """A process and all that descend from it."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                    parent = int(stat.read().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry))
    found = [pid]
    for one in found:
        found.extend(children.get(one, []))
    return found


def send(signal_number, pids):
    for pid in pids:
        try:
            os.kill(pid, signal_number)
        except ProcessLookupError:
            pass


class Proxy:
    """A port that leads to another one, until it is cut: then bytes go no further."""

    def __init__(self, port, target):
        self.port, self.target = port, target
        self.loop = asyncio.new_event_loop()
        self.writers = set()
        self.is_cut = False
        started = threading.Event()
        threading.Thread(target=self.run, args=(started,), daemon=True).start()
        started.wait()

    def run(self, started):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", self.port))
        started.set()
        self.loop.run_forever()

    async def serve(self, reader, writer):
        self.writers.add(writer)
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        self.writers.add(back)
        await asyncio.gather(self.copy(reader, back), self.copy(there, writer))

    async def copy(self, reader, writer):
        try:
            while data := await reader.read(65536):
                if not self.is_cut:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        if not self.is_cut:
            writer.close()
            self.writers.discard(writer)

    def cut(self):
        self.is_cut = True

    def heal(self):
        """Lets bytes pass again.  What was lost meanwhile ends its connection."""
        def close_all():
            for writer in self.writers:
                writer.transport.abort()
            self.writers.clear()
            self.is_cut = False
        self.loop.call_soon_threadsafe(close_all)


class Node:
    """A server with its Patroni."""

    def __init__(self, cluster, name, ports):
        self.name, self.cluster = name, cluster
        self.port, self.api, proxy_port = ports
        self.proxy = Proxy(proxy_port, cluster.etcd_port)
        self.data = f"{cluster.directory}/{name}"
        self.config = f"{cluster.directory}/{name}.yml"
        self.process = None
        self.configure()

    def configure(self, **tags):
        """Writes the configuration of Patroni, which reads it when it starts or is asked to."""
        with open(self.config, "w", encoding="utf-8") as out:
            yaml.safe_dump(dict(self.configuration(), tags=tags), out)

    def follow(self, source):
        """Has the server receive from another standby, or from the primary, as patronictl reload does."""
        self.configure(**({"replicatefrom": source.name} if source else {}))
        send_json(f"http://127.0.0.1:{self.api}/reload", {})

    def configuration(self):
        with open(f"{HERE}/patroni.yml", encoding="utf-8") as file:
            config = yaml.safe_load(file)
        cluster, server = self.cluster, config["postgresql"]
        config["name"] = self.name
        for key in ("listen", "connect_address"):
            config["restapi"][key] = f"127.0.0.1:{self.api}"
            server[key] = f"127.0.0.1:{self.port}"
        config["etcd"] = {"proxy": f"http://127.0.0.1:{self.proxy.port}"}
        dcs = config["bootstrap"]["dcs"]
        self.loop_wait = dcs["loop_wait"]
        dcs.update(
            ttl=cluster.ttl, retry_timeout=min(dcs["retry_timeout"], (cluster.ttl - dcs["loop_wait"]) // 2),
            synchronous_mode=cluster.mode != "async", synchronous_mode_strict=cluster.mode == "strict")
        server.update(data_dir=self.data, bin_dir=cluster.bin, pgpass=f"{self.data}.pgpass")
        server["pg_hba"] = [line.replace("10.0.0.0/24", "127.0.0.1/32") for line in server["pg_hba"]]
        # the machine does not crash, and the disk is shared
        server["parameters"] = {"fsync": "off", "unix_socket_directories": "", "log_line_prefix": "%m [%p] %q%a ",
                                "logging_collector": "off", "shared_buffers": "32MB"}
        return config

    def start(self):
        with open(f"{self.cluster.directory}/{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(["patroni", self.config], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            start_new_session=True)

    def postmaster(self):
        """The process of the server, or None."""
        try:
            with open(f"{self.data}/postmaster.pid", encoding="utf-8") as file:
                pid = int(file.readline())
            if os.readlink(f"/proc/{pid}/cwd") == os.path.realpath(self.data):
                return pid
        except (OSError, ValueError):
            pass
        return None

    def server_processes(self):
        pid = self.postmaster()
        return processes_below(pid) if pid else []

    def kill_patroni(self):
        self.process.kill()
        self.process.wait()

    def kill_postmaster(self):
        send(signal.SIGKILL, [self.postmaster()])

    def kill(self):
        server = self.server_processes()
        send(signal.SIGKILL, [self.process.pid] + server)
        self.process.wait()

    def stop_sending(self):
        """Stops the processes that send WAL to standbys."""
        for pid in self.server_processes():
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b": walsender" in file.read():
                    send(signal.SIGSTOP, [pid])

    def receivers(self):
        """The names of standbys that receive from this server now."""
        found = get(f"http://127.0.0.1:{self.api}/patroni") or {}
        return {one["application_name"] for one in found.get("replication", ()) if one["state"] == "streaming"}

    def stop(self):
        """Ends Patroni as an operator does, and with it the server."""
        self.process.terminate()

    def pause(self):
        """Stops each process where it is, as a virtual machine that is not scheduled."""
        stopped = set()
        while new := set(processes_below(self.process.pid) + self.server_processes()) - stopped:
            send(signal.SIGSTOP, new)
            stopped |= new
        self.stopped = stopped

    def resume(self):
        send(signal.SIGCONT, self.stopped)

    def end(self):
        if self.process and self.process.poll() is None:
            send(signal.SIGCONT, processes_below(self.process.pid) + self.server_processes())
            self.process.kill()
            self.process.wait()
        send(signal.SIGKILL, self.server_processes())


class Cluster:
    """etcd and nodes."""

    def __init__(self, directory, server_bin, count, mode, ttl):
        self.directory, self.bin, self.mode, self.ttl = directory, server_bin, mode, ttl
        ports = free_ports(2 + 3 * count)
        self.etcd_port = ports[0]
        self.etcd_peer = ports[1]
        self.nodes = [Node(self, f"db{n + 1}", ports[2 + 3 * n:5 + 3 * n]) for n in range(count)]
        self.etcd = None

    def start(self):
        url, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, self.etcd_peer))
        with open(f"{self.directory}/etcd.log", "ab") as log:
            self.etcd = subprocess.Popen(
                ["etcd", "--enable-v2=true", "--data-dir", f"{self.directory}/etcd", "--unsafe-no-fsync", "--listen-client-urls", url,
                 "--advertise-client-urls", url, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"default={peer}"], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        wait_for("etcd", lambda: get(f"{url}/health"), 30)
        self.nodes[0].start()
        wait_for("a primary", self.primary, 60)
        for node in self.nodes[1:]:
            node.start()
        self.wait_healthy()

    def view(self):
        """What Patroni says about its members: {name: member}."""
        for node in self.nodes:
            found = get(f"http://127.0.0.1:{node.api}/cluster")
            if found:
                return {member["name"]: member for member in found["members"]}
        return {}

    def primary(self):
        """The node that has the leader key and knows it."""
        for node in self.nodes:
            found = get(f"http://127.0.0.1:{node.api}/primary")
            if found and found.get("role") in ("master", "primary") and found.get("state") == "running":
                return node
        return None

    def is_healthy(self):
        members = self.view().values()
        roles = [member["role"] for member in members]
        lags = [member.get("lag", 0) for member in members]
        if len(roles) < len(self.nodes) or "leader" not in roles or (self.mode != "async" and "sync_standby" not in roles):
            return False
        return all(member.get("state") in ("running", "streaming") for member in members) and \
            all(isinstance(lag, int) and lag < 1 << 20 for lag in lags) and \
            len({member.get("timeline") for member in members}) == 1 and self.primary() is not None

    def wait_healthy(self):
        wait_for("a cluster with all its standbys", self.is_healthy, 180, 0.2)

    def leader_and_candidate(self):
        """The primary, and the standby that can take over."""
        role = {member["name"]: member["role"] for member in self.view().values()}
        wanted = "replica" if self.mode == "async" else "sync_standby"
        return (next(node for node in self.nodes if role.get(node.name) == "leader"),
                next(node for node in self.nodes if role.get(node.name) == wanted))

    def switch_over(self):
        """Has Patroni hand over to a standby."""
        leader, candidate = self.leader_and_candidate()
        send_json(f"http://127.0.0.1:{leader.api}/switchover", {"leader": leader.name, "candidate": candidate.name})

    def cascade(self):
        """Has the other standbys receive from the one that can take over.

        With loop_wait: 1 Patroni does not watch etcd (API v2), and looks once a second.
        """
        leader, candidate = self.leader_and_candidate()
        others = [node for node in self.nodes if node not in (leader, candidate)]
        send_json(f"http://127.0.0.1:{leader.api}/config", {"loop_wait": 2}, "PATCH")
        for node in others:
            node.follow(candidate)
        wait_for("cascading standbys", lambda: {node.name for node in others} <= candidate.receivers())

    def end_cascade(self):
        for node in self.nodes:
            node.follow(None)
        primary = wait_for("a primary", self.primary)
        send_json(f"http://127.0.0.1:{primary.api}/config", {"loop_wait": self.nodes[0].loop_wait}, "PATCH")

    def end(self):
        for node in self.nodes:
            node.end()
        if self.etcd:
            self.etcd.kill()
            self.etcd.wait()


def send_json(url, data, method="POST"):
    """Sends a request, and waits for its answer."""
    request = urllib.request.Request(url, method=method, data=json.dumps(data).encode())
    urllib.request.urlopen(request, timeout=60).read()


def get(url):
    """The JSON that a URL has, or None."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return json.load(answer)
    except (OSError, ValueError):
        return None
