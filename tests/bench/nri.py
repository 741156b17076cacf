"""podqos-nri beside the least plugin in Go that asks for the same (tests/nri/plugin), on a node of 500 pods.

Both are served by one runtime that embeds NRI (tests/nri/runtime), each at a socket of its own, and take turns. Beyond
the Go plugin podqos-nri writes the state that it shares with its other ways in, makes the pod's cgroup, and keeps pods and
tiers at their values. One process stands for all that runs on the node: podqos counts it as often as it is told of it.
"""

import json
import pathlib
import socket
import statistics
import subprocess
import sys
import time
import unittest

import go_nri
import scenario

PODS, EACH = 500, 2
STARTS = 10  # of each plugin
FEW, MORE, MOST = 5_000, 10_000, 100_000  # requests
NAMES = ("podqos", "go")
BOX = {"name": "app", "annotations": {"podqos.io/requests.app": "cpu=100m,memory=64Mi",
                                      "podqos.io/limits.app": "cpu=200m,memory=128Mi"},
       "linux": {"cgroups_path": "/k8s.io/app"}}


class Node:
    """The runtime with its pods, and both plugins. Use as a context manager: it leaves nothing behind."""

    def __init__(self):
        self.ground = scenario.Scenario("nri", placement={"onMisplaced": "ignore"}, nodeMemory="1Ti", nodeCpu="10000",
                                        log={"sink": "none", "level": "error"})
        self.tmp, self.plugins = self.ground.tmp, {}
        self.runtime = go_nri.Runtime(self.socket("podqos"), log=self.tmp / "nri.log", runtime="podqos")
        self.runtime.start(self.socket("go"), runtime="go")
        holder = scenario.Container("holder", "holder", self.tmp, f"{self.ground.root}/engine/holder")
        pid = self.ground.spawn(holder).process.pid
        self.pods = [self.pod(number, pid) for number in range(PODS)]
        told = [{**BOX, "id": f"{pod['id']}-{n}", "pod_sandbox_id": pod["id"], "pid": pid,
                 "linux": {"cgroups_path": holder.cgroup}} for pod in self.pods for n in range(EACH)]
        for name in NAMES:
            self.runtime.tell(self.pods, told, name)

    def pod(self, number, pid):
        uid = f"{number:08x}{scenario.UID[8:]}"
        return {"id": f"sandbox-{uid}", "uid": uid, "name": f"pod-{number}", "namespace": "default", "pid": pid,
                "annotations": {"podqos.io/pod-uid": uid}, "linux": {"cgroups_path": f"{self.ground.root}/engine/holder"}}

    def __enter__(self):
        self.ground.__enter__()
        return self

    def __exit__(self, *error):
        for name in list(self.plugins):
            self.stop(name)
        self.runtime.kill()
        self.ground.__exit__(*error)

    def socket(self, name):
        return self.tmp / f"{name}.sock"

    def start(self, name):
        """Seconds from exec to a runtime that counts on the plugin, and what of it the synchronization took."""
        before = len(self.runtime.synchronized(name))
        if name == "go":
            command = [go_nri.programs() / "plugin", f"-socket={self.socket(name)}", "-name=go",
                       f"-root={self.ground.root}/kubepods"]
        else:
            command = [scenario.BIN / "podqos-nri", "--config", self.ground.config, "--socket", self.socket(name)]
        begin = time.time_ns()
        self.plugins[name] = subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL, cwd="/")
        while len(done := self.runtime.synchronized(name)) == before:
            time.sleep(0.001)
        if "error" in done[-1]:
            raise RuntimeError(f"{name}: {done[-1]['error']}")
        return (done[-1]["at"] - begin) / 1e9, done[-1]["ns"] / 1e9

    def stop(self, name):
        process = self.plugins.pop(name)
        process.terminate()
        process.wait(scenario.TIMEOUT)

    def settle(self):
        """Until podqos has taken in all that it was told of."""
        records = self.ground.state / "containers"
        deadline = time.monotonic() + scenario.TIMEOUT
        while not records.exists() or len(list(records.iterdir())) < PODS * EACH:
            if time.monotonic() > deadline:
                raise RuntimeError(f"podqos knows {len(list(records.iterdir()))} containers")
            time.sleep(0.05)

    def create(self, first, rounds, names=NAMES):
        """Containers created and removed: each plugin's times, and the CPU that all of them took, in seconds."""
        pids = [self.plugins[name].pid for name in names]
        found = self.runtime.ask(do="bench", turns=names, pids=pids, first=first, rounds=rounds, of=self.pods,
                                 box=BOX)["bench"]
        return {name: ([each / 1e9 for each in times], cpu / 1e9)
                for name, times, cpu in zip(names, found["times"], found["cpu"], strict=True)}

    def check_same(self):
        """Both ask for the same."""
        box, pod = {**BOX, "id": "same", "pod_sandbox_id": self.pods[0]["id"]}, self.pods[0]
        asked = {}
        for name in NAMES:
            asked[name] = self.runtime.call("CreateContainer", pod, box, runtime=name)["adjust"]["linux"]
            self.runtime.call("RemoveContainer", pod, box, runtime=name)
        if asked["podqos"] != asked["go"]:
            raise RuntimeError(f"the plugins ask for different things: {json.dumps(asked)}")

    def memory(self, name):
        """Resident bytes: all, and with shared pages by halves."""
        text = pathlib.Path(f"/proc/{self.plugins[name].pid}/smaps_rollup").read_text(encoding="ascii")
        sizes = {line.split()[0]: int(line.split()[1]) << 10 for line in text.splitlines()[1:]}
        return sizes["Rss:"], sizes["Pss:"]


def ready(node):
    """Seconds from exec to READY=1, as systemd would see it."""
    path = node.tmp / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(path))
        systemd.settimeout(scenario.TIMEOUT)
        begin = time.monotonic()
        process = subprocess.Popen([scenario.BIN / "podqos-nri", "--config", node.ground.config, "--socket",
                                    node.tmp / "nobody.sock"], env={"NOTIFY_SOCKET": str(path)}, cwd="/")
        while not systemd.recv(4096).startswith(b"READY=1"):
            pass
        spent = time.monotonic() - begin
        process.terminate()
        process.wait(scenario.TIMEOUT)
    path.unlink()
    return spent


def measure_start(table, node):
    node.start("podqos")
    node.settle()
    node.stop("podqos")
    alone = statistics.median(ready(node) for _ in range(STARTS))
    starts = {name: [] for name in NAMES}
    for _ in range(STARTS):
        for name in NAMES:
            starts[name].append(node.start(name))
            node.settle()
            node.stop(name)
    begun, synced = ({name: statistics.median(each[i] for each in starts[name]) for name in NAMES} for i in (0, 1))
    table.add("podqos-nri from exec to READY=1, 500 pods in its state", f"{alone * 1e3:.1f} ms", "≤ 10 ms",
              alone <= 0.010)
    for name, what in (("podqos", "podqos-nri"), ("go", "the Go plugin")):
        table.add(f"{what} from exec to its synchronization's end", f"{begun[name] * 1e3:.1f} ms")
    for name, what in (("podqos", "podqos-nri"), ("go", "the Go plugin")):
        table.add(f"Synchronize of 500 pods, 1,000 containers, {what}", f"{synced[name] * 1e3:.1f} ms")
    table.ratio("Synchronize, podqos-nri / Go plugin", synced["podqos"] / synced["go"], 0.5)


def measure_requests(table, node):
    for name in NAMES:
        node.start(name)
    node.settle()
    node.check_same()
    found = node.create(0, FEW)
    median = {name: statistics.median(times) for name, (times, _) in found.items()}
    for name, what in (("podqos", "podqos-nri"), ("go", "the Go plugin")):
        times = found[name][0]
        table.add(f"CreateContainer and its answer, {what}",
                  f"{median[name] * 1e6:.0f} µs (p99 {times[len(times) * 99 // 100] * 1e6:.0f})")
    table.ratio("CreateContainer, podqos-nri / Go plugin", median["podqos"] / median["go"], 0.8)
    cpu = {name: spent / FEW for name, (_, spent) in found.items()}
    for name, what in (("podqos", "podqos-nri"), ("go", "the Go plugin")):
        table.add(f"CPU of it, {what}", f"{cpu[name] * 1e6:.0f} µs")
    table.ratio("CPU, podqos-nri / Go plugin", cpu["podqos"] / cpu["go"], 0.4)
    sizes = {name: node.memory(name) for name in NAMES}
    for name, what in (("podqos", "podqos-nri"), ("go", "the Go plugin")):
        rss, pss = sizes[name]
        table.add(f"resident after {FEW:,} requests, {what}", f"{rss / 1e6:.1f} MB (its share {pss / 1e6:.1f})")
    table.ratio("resident, podqos-nri / Go plugin", sizes["podqos"][0] / sizes["go"][0], 0.5)
    table.add("resident, podqos-nri", f"{sizes['podqos'][0] / 1e6:.1f} MB", "≤ 5 MB", sizes["podqos"][0] <= 5_000_000)


def measure_growth(table, node):
    node.create(FEW, MORE - FEW, ["podqos"])
    before = node.memory("podqos")[0]
    node.create(MORE, MOST - MORE, ["podqos"])
    grown = node.memory("podqos")[0] - before
    table.add(f"growth from {MORE:,} to {MOST:,} requests", f"{grown >> 10} KiB", "none", grown <= 0)


def measure(table, growth=True):
    try:
        go_nri.programs()
    except unittest.SkipTest as skip:
        sys.exit(str(skip))
    with Node() as node:
        measure_start(table, node)
        measure_requests(table, node)
        if growth:
            measure_growth(table, node)
