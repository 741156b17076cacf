"""One event: a second container joins a Burstable pod, so that record, pod, tiers and OOM score change.

A Scenario owns a temporary directory on a tmpfs, a cgroup root of its own and idle processes that stand for containers.
It makes the moment before the event. No OCI runtime takes part.
"""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import harness
import machine as machines
import rows

TIER, CLASS = "burstable", "Burstable"
ENGINE_CONFIG = harness.REPOSITORY / "tests/data/bundles/containerd.json"  # 10 KB, with the seccomp profile that engines add
UID = "0b6f3b4e-6c0f-4f6e-9d0c-6a1c7d2f5b10"
NOTHING = "/bin/true"  # a runtime that does nothing


def run(command, **options):
    """A process that must succeed without a word of complaint; its output as text."""
    done = subprocess.run([str(c) for c in command], capture_output=True, check=False, **options)
    if done.returncode != 0 or done.stderr:
        text = (done.stdout + done.stderr).decode("utf-8", "replace")
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{text}")
    return done.stdout.decode("utf-8", "replace")


@dataclasses.dataclass
class Container:
    """A container as a runtime shows it to a hook: created, its process waiting in its own cgroup."""

    name: str
    identifier: str
    bundle: pathlib.Path
    cgroup: str
    process: subprocess.Popen = None

    def state(self):
        config = json.loads((self.bundle / "config.json").read_text(encoding="utf-8"))
        return json.dumps({"ociVersion": "1.0.2", "id": self.identifier, "status": "creating",
                           "pid": self.process.pid, "bundle": str(self.bundle),
                           "annotations": config["annotations"]})


class Scenario:
    """See the head of this file. Use as a context manager: it leaves nothing behind."""

    def __init__(self, name="join", **settings):
        base = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="podqos-test-bench-", dir=base))
        self.root = f"/podqos-test-bench-{os.getpid()}-{name}"
        self.machine = machines.Machine()
        self.processes = []
        settings = {"runtimes": [NOTHING], "nodeMemory": None, "nodeCpu": None,
                    "log": {"sink": str(self.tmp / "podqos.log"), "level": "info"}, **settings}
        self.podqos = harness.Podqos(self.tmp, self.root, **settings)
        self.state, self.config = self.podqos.state, self.podqos.config()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        for _ in range(20):
            self.machine.sweep(self.root)
            if not self.machine.exists(self.root):
                break
        shutil.rmtree(self.tmp, ignore_errors=True)

    @property
    def hook(self):
        return [str(harness.HOOK), "--config", str(self.config)]

    def pod_path(self, uid=UID):
        return f"{self.root}/kubepods/{TIER}/pod{uid}"

    def container(self, name, uid=UID, requests="cpu=100m,memory=64Mi", limits="memory=128Mi"):
        """A bundle like an engine's, annotated with the short forms."""
        identifier = f"{self.root[1:]}-{uid[:8]}-{name}"
        bundle = self.tmp / "bundles" / identifier
        bundle.mkdir(parents=True)
        cgroup = f"{self.pod_path(uid)}/{identifier}"
        config = json.loads(ENGINE_CONFIG.read_text(encoding="utf-8"))
        config["annotations"] = {
            "podqos.io/pod-uid": uid,
            "podqos.io/container": name,
            f"podqos.io/requests.{name}": requests,
            f"podqos.io/limits.{name}": limits,
        }
        config["linux"]["cgroupsPath"] = cgroup
        config["linux"]["resources"] = {"devices": [{"allow": False, "access": "rwm"}]}
        del config["process"]["oomScoreAdj"]
        config.pop("hooks", None)
        (bundle / "config.json").write_text(json.dumps(config, separators=(",", ":")), encoding="utf-8")
        return Container(name, identifier, bundle, cgroup)

    def spawn(self, container):
        """What the runtime does before the hook: a process in the container's cgroup, in all hierarchies."""
        container.process = subprocess.Popen(["sleep", "100000"], stdin=subprocess.DEVNULL)
        self.processes.append(container.process)
        self.machine.enter(container.process.pid, container.cgroup)
        return container

    def create_runtime(self, container):
        run([*self.hook, "createRuntime"], input=container.state().encode())

    def place(self, container):
        """The wrapper with a runtime that does nothing: record, pod and tiers are made."""
        run([harness.RUNTIME, "--config", self.config, "create", "--bundle", container.bundle, container.identifier])

    def first_container(self):
        """The pod as it is before the measured event: one container, placed and confirmed."""
        first = self.container("app", requests="cpu=250m,memory=64Mi", limits="memory=256Mi")
        self.place(first)
        self.spawn(first)
        self.create_runtime(first)
        return first

    def second_container(self):
        """Created by a runtime in the right place, but not yet known to podqos."""
        return self.spawn(self.container("sidecar"))

    def leave(self, container):
        """What the runtime does before poststop: process and cgroup of the container are gone."""
        container.process.kill()
        container.process.wait()
        for directory in self.machine.directories(container.cgroup):
            os.rmdir(directory)

    def copy_pods(self, count):
        """Copies of the one pod's record until the state has `count`, with their rows."""
        (record,) = (self.state / "pods").iterdir()
        uids = [f"{number:08x}{UID[8:]}" for number in range(1, count)]
        for number, uid in enumerate(uids, 1):
            text = record.read_text(encoding="utf-8").replace(UID, uid).replace(UID[:8], uid[:8])
            (self.state / "pods" / f"{uid}.json").write_text(text, encoding="utf-8")
            (self.state / "containers" / f"{number:016x}").symlink_to(uid)
        rows.copy(self.state, UID, uids)
