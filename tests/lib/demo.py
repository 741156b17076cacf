"""The demo's containers and checks; tests/demo does the set-up and runs this."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import harness
import machine as machines
import oci
import patience
from harness import GI

MANIFESTS = harness.REPOSITORY / "tests/demo.d"
ALLOCATABLE = 32 * GI
# Pod, tier, containers, shares, quota in microseconds, memory; None: no limit.
PODS = [
    ("pod1", "guaranteed", ("foo", "bar"), 112, 11000, 3 * GI),
    ("pod2", "guaranteed", ("foo",), 20, 2000, 2 * GI),
    ("pod3", "burstable", ("foo", "bar"), 122, 15000, 3 * GI),
    ("pod4", "burstable", ("foo",), 10, 2000, 2 * GI),
    ("pod5", "besteffort", ("foo", "bar"), 2, None, None),
]
# Tier, shares, memory.
TIERS = [("burstable", 133, ALLOCATABLE - 5 * GI), ("besteffort", 2, ALLOCATABLE - 8 * GI)]
# Every Burstable container here requests 1Gi of 32Gi: 1000 - trunc(1000 / 32).
OOM_SCORES = {"guaranteed": -997, "burstable": 969, "besteffort": 1000}


def amount(value):
    """Bytes for people; "unlimited" for None."""
    if value is None:
        return "unlimited"
    return f"{value // GI}Gi" if isinstance(value, int) and value % GI == 0 else str(value)


class Demo:
    """Five pods beneath one cgroup root of their own."""

    def __init__(self, kind):
        self.kind = kind
        self.machine = machines.Machine()
        self.root = f"/podqos-demo-{os.getpid()}"
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="podqos-demo-"))
        # A signal may come before others know of the directory that they have made.
        tempfile.tempdir = str(self.tmp)
        self.podqos = harness.Podqos(self.tmp / "podqos", self.root)
        self.runtime = oci.Runtime(kind, self.tmp / "runtime", self.podqos.prefix(kind))
        self.pids = {}
        self.failures = 0

    def say(self, text=""):
        print(text, flush=True)

    def check(self, what, expected, found, note=""):
        good = expected == found
        self.failures += not good
        tail = f"  {note}" if note else ""
        wrong = "" if good else f", expected {expected}"
        self.say(f"{'ok  ' if good else 'FAIL'} {what} {found}{wrong}{tail}")

    def start(self):
        for name, _, containers, *_ in PODS:
            for container in containers:
                bundle = oci.Bundle(self.tmp / "bundles" / f"{name}-{container}", self.kind)
                manifest = MANIFESTS / f"{name}.yaml"
                self.podqos.ctl("annotate", "-f", manifest, "--container", container, "--bundle", bundle.path)
                label = f"{self.root[1:]}-{name}-{container}"
                self.pids[name, container] = self.runtime.launch(label, bundle)
                self.say(f"started {name}/{container}")

    def tree(self):
        """podqosctl writes to our own output, so that it knows a terminal when it sees one."""
        sys.stdout.flush()
        subprocess.run([harness.CTL, "--config", self.podqos.config(self.kind), "tree", "--wide"], check=True)

    def path(self, tier, name):
        middle = "" if tier == "guaranteed" else f"/{tier}"
        return f"{self.root}/kubepods{middle}/pod{name.replace('pod', 'demo-')}"

    def check_share(self, label, path, shares):
        what, expected = self.machine.expected_share(shares)
        note = f"({shares} shares)" if what == "weight" else ""
        self.check(f"{label} cpu.{what}", expected, self.machine.read(path, what), note)

    def check_values(self):
        for name, tier, _, shares, quota, memory in PODS:
            path = self.path(tier, name)
            self.check_share(name, path, shares)
            found = self.machine.read(path, "quota")
            self.check(f"{name} cpu quota", quota or "unlimited", found or "unlimited", self.written_quota(path))
            self.check(f"{name} memory limit", amount(memory), amount(self.machine.read(path, "memory")))
        for tier, shares, memory in TIERS:
            path = f"{self.root}/kubepods/{tier}"
            self.check_share(tier, path, shares)
            self.check(f"{tier} memory limit", amount(memory), amount(self.machine.read(path, "memory")))

    def written_quota(self, path):
        """On v2 the line of cpu.max beside the quota."""
        text = self.machine.file(path, "cpu", "cpu.max")
        return f"(cpu.max {text})" if text else ""

    def check_processes(self):
        for name, tier, containers, *_ in PODS:
            for container in containers:
                pid = self.pids[name, container]
                label = f"{name}/{container}"
                # The runtime's own init is still there for long: pod2 allows it 2 ms of each 100 ms, of which a virtual
                # machine's kernel also takes the time that its host gave to others.
                patience.until(lambda pid=pid: not self.command_line(pid).endswith(" init"))
                self.check(f"{label} process", "sleep 1000", self.command_line(pid), f"(pid {pid})")
                self.check(f"{label} lives in", self.path(tier, name), os.path.dirname(machines.cgroup_of(pid)))
                self.check_oom_score(label, OOM_SCORES[tier], machines.oom_score_adj(pid))

    def check_oom_score(self, label, score, found):
        """Inside a container that lacks CAP_SYS_RESOURCE no score can be lowered: then the lowest possible is right."""
        lowest = machines.lowest_oom_score()
        note = f"({score} where CAP_SYS_RESOURCE allows it)" if score < lowest else ""
        self.check(f"{label} oom_score_adj", max(score, lowest), found, note)

    def command_line(self, pid):
        raw = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        return raw.rstrip(b"\0").replace(b"\0", b" ").decode()

    def stop(self):
        for name in list(self.runtime.bundles):
            self.runtime.delete(name)

    def check_nothing_left(self):
        self.check("cgroups left", "none", " ".join(self.machine.leftovers(self.root)) or "none")
        self.check("records left", "none", " ".join(self.podqos.records()) or "none")

    def run(self):
        mode = {"v1": "cgroup v1", "v2": "cgroup v2", "hybrid": "a hybrid of cgroup v1 and v2"}[self.machine.mode]
        self.say(f"podqos on {mode}, with {oci.runtime_path(self.kind)}, beneath {self.root}\n")
        self.start()
        self.say("\nWhat the kernel holds now:\n")
        self.tree()
        self.say("\nPods and tiers:\n")
        self.check_values()
        self.say("\nContainers:\n")
        self.check_processes()
        self.say("\nStopping all of them:\n")
        self.stop()
        self.check_nothing_left()

    def has_runtimes(self):
        """Does a process with our directory in its arguments run?"""
        found = False
        for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it has ended
                found = found or os.fsencode(self.tmp) in file.read_bytes()
        return found

    def clean_up(self):
        """Also after an interruption: containers, cgroups, files."""
        # A runtime whose start was interrupted goes on for a moment, and makes cgroups.
        patience.until(lambda: not self.has_runtimes())
        self.runtime.delete_all()
        self.machine.sweep(self.root)
        shutil.rmtree(self.tmp, ignore_errors=True)


def interrupted(number, _frame):
    sys.exit(128 + number)


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else "runc"
    if kind not in oci.PATHS or oci.runtime_path(kind) is None:
        sys.exit(f"no such runtime: {kind}")
    if kind == "crun":
        machines.cover_unified()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in signals:
        signal.signal(number, interrupted)
    demo = Demo(kind)
    try:
        demo.run()
    finally:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        demo.clean_up()
    print(f"\n{demo.failures} checks failed" if demo.failures else "\nall numbers are right, nothing is left")
    sys.exit(1 if demo.failures else 0)


if __name__ == "__main__":
    main()
