"""A node of systemd's whose pods come and go, in a guest: containers as runtimes show them to podqos.

No OCI runtime takes part: the wrapper starts one that does nothing, and a container is a process that sleeps in a scope.
All is the guest's, and goes with it.
"""

import itertools
import json
import os
import pathlib
import subprocess
import tempfile

import harness
import machine as machines
import patience
import scenario
from spawn import Program

CGROUPS = pathlib.Path("/sys/fs/cgroup")
TIMEOUT = 60  # seconds
MANAGER = ("busctl", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_uids = itertools.count(1)


class Container:
    """A container of a pod: its bundle, and the process that stands for it once there is one."""

    def __init__(self, node, uid, name, annotations):
        self.node, self.identifier = node, f"{uid}-{name}"
        self.bundle = node.tmp / "bundles" / self.identifier
        self.process = self.directory = None
        self.config = {
            "ociVersion": "1.0.2",
            "process": {"args": ["sleep"], "cwd": "/"},
            "root": {"path": "rootfs"},
            "annotations": {"podqos.io/pod-uid": uid, "podqos.io/container": name, **annotations},
            # Of an engine that knows nothing of pods.
            "linux": {"cgroupsPath": f"system.slice:engine:{self.identifier}", "resources": {}},
        }
        self.bundle.mkdir(parents=True)
        (self.bundle / "config.json").write_text(json.dumps(self.config), encoding="utf-8")
        node.containers.append(self)

    def _cgroup(self):
        """The directory that cgroupsPath leads to now."""
        path = json.loads((self.bundle / "config.json").read_text(encoding="utf-8"))["linux"]["cgroupsPath"]
        unit, prefix, name = path.split(":")
        parents = machines.slice_of(unit.removesuffix(".slice").replace("-", "/"))
        return CGROUPS / parents.lstrip("/") / f"{prefix}-{name}.scope"

    def place(self):
        """The wrapper: the Program that makes the container."""
        return Program([harness.RUNTIME, "--config", self.node.config, "--systemd-cgroup", "create", "--bundle",
                        self.bundle, self.identifier], b"", "/")

    def hook(self, stage):
        """The hook of one stage as a Program."""
        pid = 0 if stage == "poststop" else self.process.pid
        state = {"ociVersion": "1.0.2", "id": self.identifier, "status": "creating" if pid else "stopped", "pid": pid,
                 "bundle": str(self.bundle), "annotations": self.config["annotations"]}
        return Program([harness.HOOK, "--config", self.node.config, stage], json.dumps(state).encode(), self.bundle)

    def begin(self):
        """What a runtime does before createRuntime: a process in the container's own scope."""
        self.process = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
        directory = self.directory = self._cgroup()
        properties = ["3", "Slice", "s", directory.parent.name, "Delegate", "b", "true", "PIDs", "au", "1",
                      str(self.process.pid)]
        scenario.run([*MANAGER, "StartTransientUnit", "ssa(sv)a(sa(sv))", directory.name, "fail", *properties, "0"])
        patience.wait_for(lambda: directory.exists() and
                          str(self.process.pid) in (directory / "cgroup.procs").read_text().split(), TIMEOUT,
                          f"{directory} holds the container")

    def end(self):
        """What a runtime does before poststop: process and cgroup of the container are gone, these in systemd's time."""
        self.process.kill()
        self.process.wait(timeout=TIMEOUT)
        patience.wait_for(lambda: not self.directory.exists(), TIMEOUT, f"{self.directory} is gone")
        self.process = None

    def live(self):
        """The container's way to life, as an engine with the wrapper takes it."""
        run(self.place())
        self.begin()
        run(self.hook("createRuntime"))
        return self


class Node:
    """Requests of 64Mi that grow with each container change the pod and both tiers."""

    def __init__(self):
        self.containers = []
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="podqos-test-systemd-", dir="/dev/shm"))
        self.config = harness.Podqos(self.tmp, "/", runtimes=["/bin/true"], nodeMemory=None, nodeCpu=None).config()

    def container(self, name, uid=None, **annotations):
        """A container of a Burstable pod, of a new one without `uid`; annotated with the short forms."""
        forms = {f"podqos.io/requests.{name}": "cpu=100m,memory=64Mi", f"podqos.io/limits.{name}": "memory=128Mi"}
        return Container(self, uid or new_uid(), name, annotations or forms)

    def release(self):
        """Ends all that lives; afterwards there is no pod and no root of pods."""
        for container in self.containers:
            if container.process is not None:
                container.end()
            run(container.hook("poststop"))
        patience.wait_for(lambda: not (CGROUPS / "kubepods.slice").exists(), TIMEOUT, "kubepods.slice is gone")


def new_uid():
    return f"{next(_uids):08x}{scenario.UID[8:]}"


def run(program):
    """A Program that must succeed and do so without a word of complaint."""
    done = patience.capture(list(map(str, program.argv)), TIMEOUT, program.given, cwd=program.cwd)
    if done.returncode != 0 or done.stderr:
        raise RuntimeError(f"{program.argv}: exit {done.returncode}\n{(done.stdout + done.stderr).decode()}")


def runs_systemd():
    """Is systemd PID 1 here, on cgroup v2?"""
    return os.path.isdir("/run/systemd/system") and (CGROUPS / "cgroup.controllers").exists()
