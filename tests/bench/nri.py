"""podqos-nri beside the same job in Go (tests/bench/go/plugin), as plugins of one runtime (tests/nri/runtime).

Pods of three containers come and go: RunPodSandbox, for each container CreateContainer, a process in the cgroup that the
answer names, StartContainer, StopContainer and RemoveContainer, and then StopPodSandbox and RemovePodSandbox. The pods
have the annotation of `podqosctl annotate`. Counted is the CPU of the plugins' processes until a moment after the end,
so that what comes behind an answer is in it.
"""

import json
import pathlib
import statistics
import subprocess
import time

import life  # which finds tests/lib

import go_nri
import nri_peer
import patience

NAMES = ("podqos", "go")
PODS, EACH = 500, 2  # of a full node
STARTS = 41  # of each plugin
WORK_AFTER = 0.1  # seconds that a plugin has for what it does behind its answer
TIMEOUT = 60
SPEC = [{"name": name, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"},
                                     "limits": {"cpu": "200m", "memory": "128Mi"}}} for name in ("app", "log", "proxy")]


def annotated():
    """podqos.io/pod, as `podqosctl annotate` writes it."""
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": {"containers": SPEC}}
    done = subprocess.run([life.BIN / "podqosctl", "annotate", "-f", "-", "-o", "annotations"], check=True,
                          input=json.dumps(manifest), capture_output=True, text=True)
    return json.loads(done.stdout)["podqos.io/pod"]


def cpu(process):
    """Milliseconds of CPU that a process has used, its ended threads included: its clock (clock_getcpuclockid)."""
    return time.clock_gettime_ns(~process.pid << 3 | 2) / 1e6


def resident(process, file="smaps_rollup", field="Rss"):
    """MB. VmHWM in "status" is the most that there has been."""
    text = pathlib.Path(f"/proc/{process.pid}", file).read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{field}:")) * 1024 / 1e6


def settle(process):
    """Waits until a plugin has done what comes behind its answer: its CPU in milliseconds."""
    before = cpu(process)
    while True:
        time.sleep(WORK_AFTER)
        now = cpu(process)
        if now - before < 1:
            return now
        before = now


class Node(life.Node):
    """The plugins, each with a root and a state of its own, and processes that stand for containers."""

    def __init__(self, go):
        super().__init__(go, None)
        self.annotation = annotated()
        self.children = []

    def __exit__(self, *error):
        for child in self.children:
            child.kill()
            child.wait()
        super().__exit__(*error)

    def spawn(self, *command):
        self.children.append(subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL, cwd="/"))
        return self.children[-1]

    def plugin(self, name, socket):
        if name == "go":
            return self.spawn(self.go, f"-socket={socket}", f"-root={self.root}-go", f"-state={self.tmp / 'go'}")
        return self.spawn(life.BIN / "podqos-nri", "--config", self.config, "--socket", socket)

    def run(self, name, runtime):
        """A pod and its containers, which run when it returns."""
        self.count += 1
        uid = f"{self.count:08x}{life.UID[8:]}"
        pod = {"id": f"sandbox-{uid}", "uid": uid, "name": "pod", "namespace": "default",
               "pid": self.spawn("sleep", "10000").pid,
               "annotations": {"podqos.io/pod-uid": uid, "podqos.io/pod": self.annotation},
               "linux": {"cgroups_path": f"{self.root}-{name}/engine/{uid}"}}
        runtime.call("RunPodSandbox", pod, runtime=name)
        return pod, [self.start(name, runtime, pod, each["name"]) for each in SPEC]

    def live(self, name, runtime, process):
        """A pod's whole life with one plugin: its CPU in milliseconds."""
        begin = cpu(process)
        pod, boxes = self.run(name, runtime)
        for box in boxes:
            self.stop(name, runtime, pod, box)
        self.kill(pod)
        for event in ("StopPodSandbox", "RemovePodSandbox"):
            runtime.call(event, pod, runtime=name)
        time.sleep(WORK_AFTER)
        if self.machine.exists(f"{self.root}-{name}/kubepods/burstable/pod{pod['uid']}"):
            raise RuntimeError(f"{name} has left the cgroup of pod {pod['uid']}")
        return cpu(process) - begin

    def kill(self, what):
        """The process of a pod or container."""
        child = next(each for each in self.children if each.pid == what["pid"])
        child.kill()
        child.wait()
        self.children.remove(child)

    def start(self, name, runtime, pod, box_name):
        box = {"id": f"{pod['uid']}-{box_name}", "pod_sandbox_id": pod["id"], "name": box_name,
               "linux": {"cgroups_path": f"/k8s.io/{box_name}"}}
        asked = runtime.call("CreateContainer", pod, box, runtime=name)["adjust"]["linux"]
        wanted = f"{self.root}-{name}/kubepods/burstable/pod{pod['uid']}/{box['id']}"
        if asked["cgroups_path"] != wanted or asked["resources"]["cpu"]["shares"]["value"] != "102":
            raise RuntimeError(f"{name} asks for {asked}, not for shares 102 in {wanted}")
        child = self.spawn("sleep", "10000")
        self.machine.enter(child.pid, wanted)
        box |= {"pid": child.pid, "linux": asked}
        runtime.call("StartContainer", pod, box, runtime=name)
        pod_cgroup = self.machine.snapshot(wanted.rpartition("/")[0])
        if (pod_cgroup["quota"], pod_cgroup["memory"]) != (60_000, 384 << 20):
            raise RuntimeError(f"{name} has given the pod {pod_cgroup}")
        return box

    def stop(self, name, runtime, pod, box):
        self.kill(box)
        self.machine.remove(box["linux"]["cgroups_path"])
        for event in ("StopContainer", "RemoveContainer"):
            runtime.call(event, pod, box, runtime=name)


def measure_life(table, node, rounds):
    runtime = go_nri.Runtime(node.tmp / "podqos.sock", node.tmp / "nri.log", runtime="podqos", patience=TIMEOUT)
    try:
        runtime.start(node.tmp / "go.sock", runtime="go", patience=TIMEOUT)
        plugins = {name: node.plugin(name, node.tmp / f"{name}.sock") for name in NAMES}
        runtime.wait("connected", len(NAMES))
        for name in NAMES:
            patience.until(lambda name=name: runtime.synchronized(name), TIMEOUT)
            node.run(name, runtime)  # a pod that stays, so that the tiers do
        spent = {name: [] for name in NAMES}
        for _ in range(rounds):
            for name in NAMES:
                spent[name].append(node.live(name, runtime, plugins[name]))
        table.compare("a pod of three containers through NRI, CPU", *(statistics.median(spent[name]) for name in NAMES),
                      "ms", 0.5)
        table.compare(f"resident after {rounds} pods", *(resident(plugins[name]) for name in NAMES), "MB", 0.5)
    finally:
        runtime.kill()


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


def stock(node):
    """All that a full node of a kubelet has, as a SynchronizeRequest. A process stands for each pod, in its cgroup."""
    pids = {f"{number:08x}{life.UID[8:]}": node.spawn("sleep", "10000").pid for number in range(PODS)}
    for pod, pid in pids.items():
        node.machine.enter(pid, f"{node.root}-plain/kubepods/burstable/pod{pod}/box")
    return b"".join(
        [nri_peer.field(1, nri_peer.field(1, f"sandbox-{pod}") + nri_peer.field(2, "web") + nri_peer.field(3, pod)
                        + nri_peer.field(4, "default")
                        + nri_peer.fields(5, {"app": "web", "io.kubernetes.pod.uid": pod})
                        + nri_peer.fields(6, {"kubernetes.io/config.source": "api"}) + nri_peer.field(9, pid))
         for pod, pid in pids.items()]
        + [nri_peer.field(2, container(pod, n, pid)) for pod, pid in pids.items() for n in range(EACH)])


def measure_synchronize(table, node):
    """By a runtime that has the bytes ready, so that nothing but the plugin takes its time."""
    payload = stock(node)
    peer = nri_peer.Runtime(str(node.tmp / "peer.sock"))
    wall, spent, sizes, peaks = ({name: [] for name in NAMES} for _ in range(4))
    try:
        for name in NAMES * STARTS:
            process = node.plugin(name, node.tmp / "peer.sock")
            link = peer.accept()
            link.register()
            link.configure(version="v0.6.1")
            before, begin = cpu(process), time.monotonic()
            link.ask("Synchronize", payload)
            wall[name].append((time.monotonic() - begin) * 1e3)
            spent[name].append(settle(process) - before)
            sizes[name].append(resident(process))
            peaks[name].append(resident(process, "status", "VmHWM"))
            process.kill()
            process.wait()
            node.children.remove(process)
            link.close()
    finally:
        peer.stop()
    for what, found, unit in (("until it is answered", wall, "ms"), ("CPU with what comes behind the answer", spent, "ms"),
                              ("resident then", sizes, "MB"), ("resident at most meanwhile", peaks, "MB")):
        table.compare(f"Synchronize of {PODS} pods, {what}", *(statistics.median(found[name]) for name in NAMES), unit, 0.5)
    table.add("podqos-nri, resident with them", f"{max(sizes['podqos']):.1f} MB", bound="≤ 5 MB")


def measure(table, rounds):
    with Node(go_nri.built(str(life.HERE / "go"), "pod", "plugin") / "plugin") as node:
        measure_life(table, node, rounds)
    with Node(node.go) as node:
        measure_synchronize(table, node)
