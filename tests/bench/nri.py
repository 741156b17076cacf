"""podqos-nri beside the least plugin in Go that asks for the same (tests/nri/plugin), on a node of 500 pods.

Both are served by one runtime that embeds NRI (tests/nri/runtime), each at a socket of its own, and take turns. Half of
the pods have the annotation of `podqosctl annotate`, from which their values are known before they have a container; the
others grow with each container that comes, which podqos has to write down and to write to the cgroups before it answers.
Beyond the Go plugin podqos-nri keeps the state that it shares with its other ways in, the pods' cgroups, and the values
of pods and tiers. Neither asks for what only cgroup v2 has. One process stands for all that runs on the node: podqos
counts it as often as it is told of it.
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
import nri_peer
import scenario

PODS, EACH = 500, 2
RECORDED = PODS * EACH + PODS // 2  # containers, and the sandboxes of pods that are known before they have one
STARTS = 10  # of each plugin
FEW, MORE, MOST = 5_000, 10_000, 100_000  # requests
NAMES = ("podqos", "go")
BOX = {"name": "app", "linux": {"cgroups_path": "/k8s.io/app"}}
GROWING = {**BOX, "annotations": {"podqos.io/requests.app": "cpu=100m,memory=64Mi",
                                  "podqos.io/limits.app": "cpu=200m,memory=128Mi"}}
SPEC = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"},
                                                     "limits": {"cpu": "200m", "memory": "128Mi"}}},
                       {"name": "log", "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}}}]}


def annotated():
    """podqos.io/pod, as `podqosctl annotate` writes it."""
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": SPEC}
    done = subprocess.run([scenario.BIN / "podqosctl", "annotate", "-f", "-", "-o", "annotations"], check=True,
                          input=json.dumps(manifest), capture_output=True, text=True)
    return json.loads(done.stdout)["podqos.io/pod"]


class Node:
    """The runtime with its pods, and both plugins. Use as a context manager: it leaves nothing behind."""

    def __init__(self):
        # Nothing is reserved, as by default: with qosReserved a container that its engine gives no memory limit is counted
        # before podqos answers, for the limit that podqos fills in must not back its claim.
        self.ground = scenario.Scenario("nri", placement={"onMisplaced": "ignore"}, nodeMemory="1Ti", nodeCpu="10000",
                                        qosReserved={"memory": None},
                                        memorySwap={"swapBehavior": None}, singleProcessOOMKill=True,
                                        log={"sink": "none", "level": "error"})
        self.tmp, self.plugins = self.ground.tmp, {}
        self.runtime = go_nri.Runtime(self.socket("podqos"), log=self.tmp / "nri.log", runtime="podqos")
        self.runtime.start(self.socket("go"), runtime="go")
        holder = scenario.Container("holder", "holder", self.tmp, f"{self.ground.root}/engine/holder")
        pid = self.pid = self.ground.spawn(holder).process.pid
        pods = [self.pod(number, pid) for number in range(PODS)]
        self.known, self.growing = pods[:PODS // 2], pods[PODS // 2:]
        annotation = annotated()
        for pod in self.known:
            pod["annotations"]["podqos.io/pod"] = annotation
        told = [{**box, "id": f"{pod['id']}-{n}", "pod_sandbox_id": pod["id"], "pid": pid,
                 "linux": {"cgroups_path": holder.cgroup}}
                for box, of in ((BOX, self.known), (GROWING, self.growing)) for pod in of for n in range(EACH)]
        for name in NAMES:
            self.runtime.tell(pods, told, name)

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

    def spawn(self, name, socket_path):
        if name == "go":
            command = [go_nri.programs() / "plugin", f"-socket={socket_path}", "-name=go",
                       f"-root={self.ground.root}/kubepods"]
        else:
            command = [scenario.BIN / "podqos-nri", "--config", self.ground.config, "--socket", socket_path]
        return subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL, cwd="/")

    def start(self, name):
        """Seconds from exec to a runtime that counts on the plugin, and what of it the synchronization took."""
        before = len(self.runtime.synchronized(name))
        begin = time.time_ns()
        self.plugins[name] = self.spawn(name, self.socket(name))
        while len(done := self.runtime.synchronized(name)) == before:
            if self.plugins[name].poll() is not None:
                raise RuntimeError(f"{name} has ended with status {self.plugins[name].returncode}")
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
        while not records.exists() or len(list(records.iterdir())) < RECORDED:
            if time.monotonic() > deadline:
                raise RuntimeError(f"podqos knows {len(list(records.iterdir()))} containers")
            time.sleep(0.05)

    def create(self, first, rounds, names=NAMES, growing=False):
        """Containers created and removed: each plugin's times, and the CPU that all of them took, in seconds."""
        pods, box = (self.growing, GROWING) if growing else (self.known, BOX)
        pids = [self.plugins[name].pid for name in names]
        found = self.runtime.ask(do="bench", turns=names, pids=pids, first=first, rounds=rounds, of=pods,
                                 box=box, grow=growing)["bench"]
        return {name: ([each / 1e9 for each in times], cpu / 1e9)
                for name, times, cpu in zip(names, found["times"], found["cpu"], strict=True)}

    def check_same(self):
        """Both ask for the same."""
        for kind, pod in ((BOX, self.known[0]), (GROWING, self.growing[0])):
            box, asked = {**kind, "id": "same", "pod_sandbox_id": pod["id"]}, {}
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
        table.add(f"its synchronization, the runtime's own work with it, {what}", f"{synced[name] * 1e3:.1f} ms")


def compare(table, found, what, time=None, cpu=None):
    """Rows of times and CPU, and their ratios with their targets, if there are any."""
    median = {name: statistics.median(times) for name, (times, _) in found.items()}
    used = {name: spent / len(times) for name, (times, spent) in found.items()}
    for name, whose in (("podqos", "podqos-nri"), ("go", "the Go plugin")):
        times = found[name][0]
        table.add(f"{what} and its answer, {whose}",
                  f"{median[name] * 1e6:.0f} µs (p99 {times[len(times) * 99 // 100] * 1e6:.0f}), CPU "
                  f"{used[name] * 1e6:.0f} µs")
    table.ratio(f"{what}, podqos-nri / Go plugin", median["podqos"] / median["go"], time)
    table.ratio(f"{what}, CPU, podqos-nri / Go plugin", used["podqos"] / used["go"], cpu)


def container(pod, number, pid):
    """A container as containerd tells of it: what podqos does not read is most of it."""
    name = f"box-{number}"
    mount = nri_peer.field(1, "/etc/hosts") + nri_peer.field(2, "bind") + nri_peer.field(
        3, f"/var/lib/kubelet/pods/{pod}/etc-hosts") + b"".join(nri_peer.field(4, each) for each in ("rbind", "rprivate"))
    return (nri_peer.field(1, f"{pod}-{name}") + nri_peer.field(2, f"sandbox-{pod}") + nri_peer.field(3, name)
            + nri_peer.field(4, 3)
            + nri_peer.fields(5, {"io.kubernetes.container.name": name, "io.kubernetes.pod.uid": pod})
            + nri_peer.fields(6, {"io.kubernetes.cri.container-type": "container",
                                  "io.kubernetes.cri.sandbox-id": f"sandbox-{pod}"})
            + b"".join(nri_peer.field(7, each) for each in ("/usr/bin/server", "--listen", ":8080"))
            + b"".join(nri_peer.field(8, f"SERVICE_{n}_PORT=tcp://10.0.0.{n}:443") for n in range(16))
            + nri_peer.field(9, mount) * 6
            + nri_peer.field(11, nri_peer.field(3, nri_peer.resources(shares=102, quota=20_000, memory=128 << 20))
                             + nri_peer.field(5, f"/kubepods/burstable/pod{pod}/{name}"))
            + nri_peer.field(12, pid))


def stock(pid):
    """All that a full node has, as a SynchronizeRequest."""
    pods = [f"{number:08x}{scenario.UID[8:]}" for number in range(PODS)]
    return b"".join(
        [nri_peer.field(1, nri_peer.field(1, f"sandbox-{pod}") + nri_peer.field(2, "web") + nri_peer.field(3, pod)
                        + nri_peer.field(4, "default")
                        + nri_peer.fields(5, {"app": "web", "io.kubernetes.pod.uid": pod})
                        + nri_peer.fields(6, {"kubernetes.io/config.source": "api"}) + nri_peer.field(9, pid))
         for pod in pods] + [nri_peer.field(2, container(pod, n, pid)) for pod in pods for n in range(EACH)])


def measure_synchronize(table, node):
    """By a runtime that has the bytes ready, so that nothing but the plugin takes its time."""
    payload = stock(node.pid)
    socket_path = node.tmp / "peer.sock"
    peer = nri_peer.Runtime(str(socket_path))
    spent = {name: [] for name in NAMES}
    try:
        for name in NAMES * STARTS:
            process = node.spawn(name, socket_path)
            link = peer.accept()
            link.register()
            link.configure(version="v0.6.1")
            begin = time.monotonic()
            link.ask("Synchronize", payload)
            spent[name].append(time.monotonic() - begin)
            process.kill()
            process.wait()
            link.close()
    finally:
        peer.stop()
    median = {name: statistics.median(times) for name, times in spent.items()}
    for name, what in (("podqos", "podqos-nri"), ("go", "the Go plugin")):
        table.add(f"Synchronize of {PODS} pods, {PODS * EACH:,} containers, {len(payload) / 1e6:.1f} MB, {what}",
                  f"{median[name] * 1e3:.1f} ms")
    table.ratio("Synchronize, podqos-nri / Go plugin", median["podqos"] / median["go"], 0.5)


def measure_requests(table, node):
    for name in NAMES:
        node.start(name)
    node.settle()
    node.check_same()
    compare(table, node.create(0, FEW), "CreateContainer", 0.8, 0.4)
    sizes = {name: node.memory(name) for name in NAMES}
    for name, what in (("podqos", "podqos-nri"), ("go", "the Go plugin")):
        rss, pss = sizes[name]
        table.add(f"resident after {FEW:,} requests, {what}", f"{rss / 1e6:.1f} MB (its share {pss / 1e6:.1f})")
    table.ratio("resident, podqos-nri / Go plugin", sizes["podqos"][0] / sizes["go"][0], 0.5)
    compare(table, node.create(FEW, MORE - FEW, growing=True), "CreateContainer that lets its pod grow")
    table.add("resident, podqos-nri", f"{sizes['podqos'][0] / 1e6:.1f} MB", "≤ 5 MB", sizes["podqos"][0] <= 5_000_000)


def measure_growth(table, node):
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
        measure_synchronize(table, node)
        measure_requests(table, node)
        if growth:
            measure_growth(table, node)
