"""A pod's whole life with one container: a real `runc run` to its end, in four ways that take turns.

plain    runc, with the container's limits in config.json
empty    the same, with two static hooks that do nothing
go       the job of podqos done by tests/bench/go/pod: a wrapper and two hooks over runc's own cgroup library
podqos   podqos-runtime, and podqos-hook as createRuntime and poststop

What a way adds is counted beyond "empty". Each way has a root of its own. There the pod is the only one, which makes the
tiers and takes them away; or another pod lives beside it, so that they are there.
"""

import collections
import contextlib
import itertools
import json
import operator
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import go_nri  # noqa: E402
import guest  # noqa: E402
import machine as machines  # noqa: E402
import oci  # noqa: E402
import spawn  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
BIN = pathlib.Path(os.environ.get("PODQOS_BIN", REPOSITORY / "build/release/bin"))
ENGINE_CONFIG = REPOSITORY / "tests/data/bundles/containerd.json"  # with the seccomp profile that engines add
WAYS = ("plain", "empty", "go", "podqos")
UID = "0b6f3b4e-6c0f-4f6e-9d0c-6a1c7d2f5b10"
REQUESTS, LIMITS = "cpu=250m,memory=64Mi", "cpu=500m,memory=128Mi"
RESOURCES = {"cpu": {"shares": 256, "quota": 50_000, "period": 100_000}, "memory": {"limit": 128 << 20}}
CONTAINER = "app"
GUEST_ROUNDS = 11
EMPTY = "int main(void) { return 0; }"  # a hook in C


class Node:
    """All ways on one machine. Use as a context manager: it leaves nothing behind."""

    ways = WAYS

    def __init__(self, go, empty):
        """`go`, `empty`: programs."""
        self.go, self.empty = go, empty
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="podqos-test-bench-", dir="/dev/shm"))
        self.root = f"/podqos-test-bench-{os.getpid()}"
        self.machine = machines.Machine()
        self.runc = oci.runtime_path("runc")
        self.count, self.staying = 0, {}
        self.config = self.configure("podqos")
        base = json.loads(ENGINE_CONFIG.read_text(encoding="utf-8"))
        base["process"] |= {"args": ["true"], "oomScoreAdj": 0}
        base["process"].pop("apparmorProfile")
        base["root"] = {"path": str(oci.shared_rootfs()), "readonly": True}
        base["mounts"] = json.loads(oci.spec_text("runc"))["mounts"]
        for namespace in base["linux"]["namespaces"]:
            namespace.pop("path", None)
        base["linux"]["seccomp"]["defaultAction"] = "SCMP_ACT_ALLOW"  # the data's profile is not for a real program
        base.pop("hooks")
        self.base = base

    def configure(self, way, **settings):
        """Writes podqos's configuration for a way; returns its file."""
        config = self.tmp / f"{way}.json"
        config.write_text(json.dumps({
            "stateDir": str(self.tmp / way), "cgroupRoot": f"{self.root}-{way}", "runtimes": [self.runc],
            "log": {"sink": str(self.tmp / f"{way}.log"), "level": "info"}, **settings}), encoding="utf-8")
        return config

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for way in list(self.staying):
            self.end(way)
        for way in self.ways:
            self.machine.sweep(f"{self.root}-{way}")
        shutil.rmtree(self.tmp, ignore_errors=True)

    def prefix(self, way):
        """argv of the runtime."""
        return {"go": [str(self.go), "runtime", *self.go_words(), "--"],
                "podqos": [str(BIN / "podqos-runtime"), "--config", str(self.config)]}.get(way, [self.runc])

    def go_words(self):
        return ["-root", f"{self.root}-go", "-state", str(self.tmp / "go"), "-runc", self.runc]

    def hooks(self, way):
        argv = {"empty": lambda stage: [str(self.empty)],
                "go": lambda stage: [str(self.go), stage, *self.go_words()],
                "podqos": lambda stage: [str(BIN / "podqos-hook"), "--config", str(self.config), stage]}[way]
        return {stage: [{"path": argv(stage)[0], "args": argv(stage)}] for stage in ("createRuntime", "poststop")}

    @staticmethod
    def uid_of(name):
        """The uid of a container's pod."""
        return f"{int(name.rpartition('-')[2]):08x}{UID[8:]}"

    def bundle(self, way, args=("true",)):
        """A new pod's bundle: its command line of `run`, with what follows the runtime's own name."""
        self.count += 1
        name = f"{way}-{os.getpid()}-{self.count}"
        uid = self.uid_of(name)
        config = json.loads(json.dumps(self.base))
        config["process"]["args"] = list(args)
        config["annotations"] = {"podqos.io/pod-uid": uid, "podqos.io/container": CONTAINER,
                                 f"podqos.io/requests.{CONTAINER}": REQUESTS, f"podqos.io/limits.{CONTAINER}": LIMITS}
        config["linux"]["cgroupsPath"] = f"{self.root}-{way}/engine/{name}"
        config["linux"]["resources"] = {"devices": [{"allow": False, "access": "rwm"}], **RESOURCES}
        if way != "plain":
            config["hooks"] = self.hooks(way)
        bundle = self.tmp / "bundles" / name
        bundle.mkdir(parents=True)
        (bundle / "config.json").write_text(json.dumps(config, separators=(",", ":")), encoding="utf-8")
        return name, bundle

    def command(self, way, verb, *words):
        return spawn.Program([*self.prefix(way), "--root", self.tmp / "runc", verb, *words], b"", "/")

    def live(self, way):
        """One pod's life: what it costs with all its processes."""
        name, bundle = self.bundle(way)
        spent = spawn.run(self.command(way, "run", "--bundle", bundle, name))
        shutil.rmtree(bundle)
        return spent

    def stay(self, way):
        """A pod that lives on."""
        name, bundle = self.bundle(way, ("sleep", "10000"))
        spawn.run(self.command(way, "run", "--detach", "--bundle", bundle, name))
        self.staying[way] = name

    def end(self, way):
        spawn.run(self.command(way, "delete", "--force", self.staying.pop(way)))

    def check(self):
        """Pods that stay have the same values with both."""
        found = {}
        for way in ("go", "podqos"):
            root, name = f"{self.root}-{way}", self.staying[way]
            paths = {"root": root, "pods": f"{root}/kubepods", "burstable": f"{root}/kubepods/burstable",
                     "besteffort": f"{root}/kubepods/besteffort"}
            paths["pod"] = f"{paths['burstable']}/pod{self.uid_of(name)}"
            paths["container"] = f"{paths['pod']}/{name}"
            found[way] = {what: self.machine.snapshot(path) for what, path in paths.items()}
        if found["go"] != found["podqos"]:
            raise RuntimeError(f"the cgroups differ: {json.dumps(found, indent=1)}")


def lives(node, rounds):
    """{way: Spent of each of `rounds` pods}. After which other way one runs changes from round to round."""
    spent = {way: [] for way in node.ways}
    for ways in itertools.islice(itertools.cycle(itertools.permutations(node.ways)), rounds):
        for way in ways:
            spent[way].append(node.live(way))
    return spent


def system_calls(node, way):
    """How many the programs make that a way adds to runc, in one pod's life."""
    name, bundle = node.bundle(way)
    command, found = node.command(way, "run", "--bundle", bundle, name), node.tmp / "strace"
    spawn.run(command._replace(argv=["/usr/bin/strace", "-f", "-qq", "-e", "signal=none", "-o", found, *command.argv]))
    programs, calls = {}, collections.Counter()
    for line in found.read_text(encoding="utf-8").splitlines():
        pid, call = line.split(None, 1)
        if match := re.match(r'execve\("([^"]+)"', call):
            programs[pid] = match[1]
        calls[programs.get(pid)] += "resumed>" not in call
        if match := re.search(r"(?:clone|fork).* = (\d+)$", call):
            programs.setdefault(match[1], programs.get(pid))
    return sum(calls[str(program)] for program in (node.go, node.empty, BIN / "podqos-hook", BIN / "podqos-runtime"))


def add_rows(table, spent, what, unit):
    """`spent`: {way: numbers}. Differences are of programs that ran one after the other."""
    added = {way: statistics.median(map(operator.sub, spent[way], spent["empty"])) for way in WAYS}
    plain = statistics.median(spent["plain"])
    table.add(f"{what}: runc alone; two empty hooks add", f"{plain:.4g}; {-added['plain']:.4g} {unit}".strip())
    table.compare(f"{what}: what podqos adds to those, and what Go does", added["podqos"], added["go"], unit, 0.5)


def add_times(table, spent, beside):
    for index, kind in enumerate(("CPU", "time")):
        add_rows(table, {way: [each[index] for each in spent[way]] for way in WAYS}, f"{beside}, {kind}", "ms")


def with_neighbours(node):
    for way in ("go", "podqos"):
        node.stay(way)
    node.check()


@contextlib.contextmanager
def empty_hook():
    """The program of a hook that does nothing."""
    with tempfile.TemporaryDirectory(prefix="podqos-test-bench-") as directory:
        empty = pathlib.Path(directory, "empty")
        subprocess.run(["gcc", "-O2", "-static", "-x", "c", "-o", empty, "-"], input=EMPTY, text=True, check=True)
        yield empty


def measure(table, rounds):
    with empty_hook() as empty:
        go = go_nri.built(str(HERE / "go"), "pod", "plugin") / "pod"
        with Node(go, empty) as node:
            add_times(table, lives(node, rounds), "a node's only pod")
            with_neighbours(node)
            add_times(table, lives(node, rounds), "a pod beside another")
        measure_in_guest(table, go, empty)


def run_in_guest(file, *arguments):
    """What a file prints as its last line, in JSON, on cgroup v2 where CPU time is instructions: few pods do, for they
    hardly differ."""
    done = guest.Guest("counted").run_test(file, *arguments, installed=False)
    if done.returncode != 0:
        raise RuntimeError(f"{file} in a guest: exit {done.returncode}\n{done.stdout}")
    return json.loads(done.stdout.splitlines()[-1])


def measure_in_guest(table, go, empty):
    for beside, found in run_in_guest(__file__, go, empty).items():
        instructions = {way: [cpu for cpu, _ in found["spent"][way]] for way in WAYS}
        add_rows(table, instructions, f"{beside}, cgroup v2, instructions", "million")
        calls = {way: count - found["calls"]["empty"] for way, count in found["calls"].items()}
        table.compare(f"{beside}, cgroup v2, system calls beyond two empty hooks", calls["podqos"], calls["go"], "", 0.5)


def main():
    """In the guest."""
    with Node(*sys.argv[1:]) as node:
        found = {}
        for beside in ("a node's only pod", "a pod beside another"):
            lives(node, 1)  # files that have not been read are not what is measured
            found[beside] = {"spent": lives(node, GUEST_ROUNDS), "calls": {way: system_calls(node, way) for way in WAYS[1:]}}
            if not node.staying:
                with_neighbours(node)
        print(json.dumps(found))


if __name__ == "__main__":
    main()
