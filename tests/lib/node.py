"""A node whose pods come and go, in a guest: podqos with one cgroup driver, and containers as runtimes show them to it.

No OCI runtime takes part, for it would cost a hundred times what is measured: the wrapper starts one that does nothing,
and a container is a process that sleeps, in a scope of systemd or in a cgroup of its own. All is the guest's, and goes
with it.
"""

import itertools
import json
import os
import pathlib
import subprocess
import tempfile
import time

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
            "linux": {"cgroupsPath": node.elsewhere(self.identifier), "resources": {}},
        }
        self.bundle.mkdir(parents=True)
        (self.bundle / "config.json").write_text(json.dumps(self.config), encoding="utf-8")
        node.containers.append(self)

    def _cgroup(self):
        """The directory that cgroupsPath leads to now."""
        path = json.loads((self.bundle / "config.json").read_text(encoding="utf-8"))["linux"]["cgroupsPath"]
        return CGROUPS / self.node.directory_of(path).lstrip("/")

    def place(self):
        """The wrapper: the Program that makes the container."""
        flags = ["--systemd-cgroup"] if self.node.systemd else []
        return Program([scenario.BIN / "podqos-runtime", "--config", self.node.config, *flags, "create", "--bundle",
                        self.bundle, self.identifier], b"", "/")

    def hook(self, stage):
        """The hook of one stage as a Program."""
        state = {"ociVersion": "1.0.2", "id": self.identifier, "status": "creating", "bundle": str(self.bundle),
                 "annotations": self.config["annotations"]}
        if stage == "poststop":
            state |= {"status": "stopped", "pid": 0}
        else:
            state["pid"] = self.process.pid
        argv = [scenario.BIN / "podqos-hook", "--config", self.node.config, stage]
        return Program(argv, json.dumps(state).encode(), self.bundle)

    def begin(self):
        """What a runtime does before createRuntime: a process in the container's own cgroup."""
        self.process = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
        directory = self.directory = self._cgroup()
        if self.node.systemd:
            properties = ["3", "Slice", "s", directory.parent.name, "Delegate", "b", "true",
                          "PIDs", "au", "1", str(self.process.pid)]
            call("StartTransientUnit", "ssa(sv)a(sa(sv))", directory.name, "fail", *properties, "0")
            until(lambda: str(self.process.pid) in (directory / "cgroup.procs").read_text().split()
                  if directory.exists() else False, f"{directory} holds the container")
        else:
            directory.mkdir(parents=True)
            (directory / "cgroup.procs").write_text(str(self.process.pid), encoding="ascii")

    def end(self):
        """What a runtime does before poststop: process and cgroup of the container are gone."""
        directory = self.directory
        self.process.kill()
        self.process.wait(timeout=TIMEOUT)
        if not self.node.systemd:
            directory.rmdir()
        # systemd forgets a scope in its own time.
        until(lambda: not directory.exists(), f"{directory} is gone")
        self.process = None

    def live(self):
        """The container's way to life, as an engine with the wrapper takes it."""
        run(self.place())
        self.begin()
        run(self.hook("createRuntime"))
        return self


class Node:
    """One driver's pods. Requests of 64Mi that grow with each container change the pod and both tiers."""

    def __init__(self, driver, **settings):
        self.systemd = driver == "systemd"
        self.containers = []
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix=f"podqos-test-{driver}-", dir="/dev/shm"))
        self.state, self.config, self.log = self.tmp / "state", self.tmp / "podqos.json", self.tmp / "log"
        self.config.write_text(json.dumps({
            "stateDir": str(self.state), "runtimes": ["/bin/true"], "releaseDelay": "0s",
            "qosReserved": {"memory": "100%"}, "weightFormula": "linear", "cgroupRoot": "/",
            "log": {"sink": str(self.log), "level": "debug"}, **settings}), encoding="utf-8")

    def elsewhere(self, identifier):
        """The cgroupsPath of an engine that knows nothing of pods."""
        return f"system.slice:engine:{identifier}" if self.systemd else f"/engine/{identifier}"

    def directory_of(self, cgroups_path):
        """The cgroup that a runtime makes of it."""
        if not self.systemd:
            return cgroups_path
        unit, prefix, name = cgroups_path.split(":")
        words = unit.removesuffix(".slice").split("-")
        parents = ["-".join(words[:count]) + ".slice" for count in range(1, len(words) + 1)]
        return "/" + "/".join([*parents, f"{prefix}-{name}.scope"])

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
        root = CGROUPS / ("kubepods.slice" if self.systemd else "kubepods")
        until(lambda: not root.exists(), f"{root} is gone")


def new_uid():
    return f"{next(_uids):08x}{scenario.UID[8:]}"


def run(program):
    """A Program that must succeed and do so without a word of complaint."""
    done = subprocess.run(list(map(str, program.argv)), input=program.given, cwd=program.cwd, capture_output=True,
                          check=False, timeout=TIMEOUT)
    if done.returncode != 0 or done.stderr:
        raise RuntimeError(f"{program.argv}: exit {done.returncode}\n{(done.stdout + done.stderr).decode()}")


def call(*words):
    """A call of systemd's manager."""
    scenario.run([*MANAGER, *words])


def until(condition, what):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"after {TIMEOUT} s it is still not so: {what}")
        time.sleep(0.01)


def runs_systemd():
    """Is systemd PID 1 here, on cgroup v2?"""
    return os.path.isdir("/run/systemd/system") and (CGROUPS / "cgroup.controllers").exists()
