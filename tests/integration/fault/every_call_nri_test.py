"""podqos-nri, of which each system call fails once, or which is killed at it: what follows is as if it had not.

From its start to its end, with a pod that begins, is changed and ends. A connection that is lost is made again, and the
runtime synchronizes the plugin; then, and after a reconciliation, all is as after an undisturbed run. Which faults are
tried see tests/lib/faults.py.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import faults  # noqa: E402
import machine as machines  # noqa: E402
import nri_daemon  # noqa: E402
import nri_peer  # noqa: E402
import oracle  # noqa: E402
import wire  # noqa: E402
from harness import GI, MI, container, pod  # noqa: E402

ALIVE = pod("alive", container("app", requests={"cpu": "250m", "memory": "512Mi"}, limits={"memory": "512Mi"}))
OTHER = pod("other", container("app", limits={"cpu": "300m", "memory": "512Mi"}))
SCHEMA = {
    "Int64": {"value": (1, "int")},
    "Memory": {"limit": (1, "Int64")},
    "Resources": {"memory": (1, "Memory")},
    "Linux": {"resources": (3, "Resources"), "cgroups_path": (5, "text")},
    "Pod": {"id": (1, "text"), "name": (2, "text"), "uid": (3, "text"), "namespace": (4, "text"),
            "annotations": (6, "map"), "pid": (9, "int")},
    "Container": {"id": (1, "text"), "pod_sandbox_id": (2, "text"), "name": (3, "text"), "state": (4, "int"),
                  "linux": (11, "Linux"), "pid": (12, "int")},
    "Request": {"pod": (1, "Pod"), "container": (2, "Container"), "resources": (3, "Resources")},
    "Synchronize": {"pods": (1, "*Pod"), "containers": (2, "*Container")},
    "AdjustLinux": {"cgroups_path": (3, "text")},
    "Adjust": {"linux": (6, "AdjustLinux")},
    "Create": {"adjust": (1, "Adjust")},
}
LIMITED = {"memory": {"limit": {"value": 512 * MI}}}  # each container, by its engine
CREATED, RUNNING = 1, 3
WAIT = 20  # seconds; no fault holds the plugin up for longer
LOST = (EOFError, OSError)


class Box:
    """A pod of one container, as the runtime knows it."""

    def __init__(self, engine, manifest):
        self.uid, self.spec = manifest["metadata"]["uid"], manifest["spec"]
        self.name = self.spec["containers"][0]["name"]
        self.sandbox_cgroup, self.cgroup = f"{engine}/sandbox-{self.uid}", f"{engine}/{self.name}-{self.uid}"
        self.sandbox = self.process = None
        self.state = 0

    def pod(self):
        return {"id": f"sandbox-{self.uid}", "name": self.uid, "uid": self.uid, "namespace": "default",
                "annotations": {"podqos.io/pod": json.dumps(self.spec)},
                "pid": self.sandbox.pid if self.sandbox else 0}

    def container(self):
        return {"id": f"{self.name}-{self.uid}", "pod_sandbox_id": self.pod()["id"], "name": self.name,
                "linux": {"cgroups_path": self.cgroup, "resources": LIMITED}, "state": self.state,
                "pid": self.process.pid if self.process else 0}


class Plugin(nri_daemon.DaemonCase):
    def setUp(self):
        super().setUp()
        self.machine = machines.Machine()
        self.engine = f"{self.root}-engine"
        for root in (self.root, self.engine):
            self.addCleanup(self.machine.sweep, root)
        self.truth = oracle.Truth(f"{self.root}/kubepods", 32 * GI)
        self.state, self.boxes = self.folder / "state", []
        self.addCleanup(lambda: [self.kill(box) for box in self.boxes])
        oracle.build_stepper(self.folder / "stepper")
        self.sweep = faults.Sweep(self.id(), self.folder / "stepper", self.folder / "count")
        self.runtime, self.process, self.connection = self.listen(), None, None
        self.most = 0  # descriptors of a plugin that nothing disturbs

    def configure(self, **settings):
        super().configure(**{"nodeMemory": "32Gi", "nodeCpu": "16", "qosReserved": {"memory": "100%"},
                             "releaseDelay": "0s", "weightFormula": "linear", **settings})

    # The plugin and its connection.

    def run_plugin(self, *before):
        self.process = self.start_at_socket(before=before)

    def connect(self):
        """Waits for the plugin, and starts another one if this one ends."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            if self.process.poll() is not None:
                self.sweep.look()
                said = self.process.stderr.read()
                if self.process.returncode not in (1, faults.KILLED) or self.process.returncode == 1 and not said:
                    self.sweep.note(f"the plugin has ended: {self.process.returncode} {said}")
                self.run_plugin()
            try:
                self.runtime.socket.settimeout(0.05)
                self.connection = nri_peer.Connection(self.runtime.socket.accept()[0])
                self.connection.socket.settimeout(WAIT)
                self.connection.register()
                self.connection.configure()
                known = [box for box in self.boxes if box.sandbox]
                self.connection.ask("Synchronize", wire.encode(SCHEMA, "Synchronize", {
                    "pods": [box.pod() for box in known],
                    "containers": [box.container() for box in known if box.process]}))
                return
            except LOST:
                if self.connection:
                    self.connection.close()
        self.sweep.look()
        self.fail(f"{self.sweep.at}: no connection\n{self.log.read_text(encoding='utf-8')[-2000:]}")

    def ask(self, method, box, **more):
        try:
            return self.connection.ask(method, wire.encode(SCHEMA, "Request", {"pod": box.pod(), **more}))
        except nri_peer.Refused as error:
            self.sweep.look()
            self.sweep.note(f"{method} is refused: {error}")
        except LOST:
            self.connection.close()
            self.connect()
        return None

    def plugin_pid(self):
        pid = self.process.pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        traced = os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "stepper"
        return int(children[0]) if traced and children else pid

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.plugin_pid()}/fd"))

    def disconnect(self):
        self.connection.close()
        if self.process.poll() is None:
            os.kill(self.plugin_pid(), signal.SIGTERM)
        self.process.wait()
        self.sweep.look()

    # Events.

    def sleeper(self, path):
        process = subprocess.Popen(["/bin/sleep", "1000"], stdin=subprocess.DEVNULL)
        self.machine.enter(process.pid, path)
        return process

    def begin(self, box):
        self.boxes.append(box)
        box.sandbox = self.sleeper(box.sandbox_cgroup)
        self.ask("RunPodSandbox", box)
        answer = self.ask("CreateContainer", box, container=box.container())
        adjust = answer and wire.decode(SCHEMA, "Create", answer)["adjust"]
        if adjust and adjust["linux"] and adjust["linux"]["cgroups_path"]:
            box.cgroup = adjust["linux"]["cgroups_path"]
        box.process, box.state = self.sleeper(box.cgroup), CREATED
        self.ask("StartContainer", box, container=box.container())
        box.state = RUNNING
        self.ask("UpdateContainer", box, container=box.container(), resources=LIMITED)

    def kill(self, box):
        for process, cgroup in ((box.process, box.cgroup), (box.sandbox, box.sandbox_cgroup)):
            if process:
                process.kill()
                process.wait()
                self.machine.remove(cgroup)

    def finish(self, box):
        self.kill(box)
        ended = box.container()
        box.process = box.sandbox = None
        self.ask("StopContainer", box, container=ended)
        self.ask("StopPodSandbox", box)
        self.ask("RemovePodSandbox", box)
        self.boxes.remove(box)

    # What must hold.

    def looks_as(self, name):
        done = subprocess.run([nri_daemon.BIN / "podqosctl", "--config", self.folder / "podqos.json", "reconcile"],
                              capture_output=True, text=True, check=False)
        self.sweep.look()
        if done.returncode or done.stderr:
            self.sweep.note(f"reconcile: {done.stdout}{done.stderr}")
        self.truth.observe([(box.uid, box.name, box.spec, False) for box in self.boxes if box.process])
        for line in oracle.differences(self.machine, self.truth):
            self.sweep.note(line)
        cgroups = {path: self.machine.snapshot(path) for path in (self.truth.kubepods, *self.truth.expected())}
        found = {"files": self.sweep.files(self.state), "rows": faults.rows_of(self.state), "cgroups": cgroups}
        if self.boxes[-1].uid == "other":
            # The record may lack the sandbox, or have a container that is yet to be confirmed: neither counts.
            found = {"cgroups": cgroups}
        self.sweep.compare(name, found)

    def event(self):
        """A plugin of which one call fails, while a pod begins and ends."""
        self.sweep.count_file.unlink(missing_ok=True)
        self.run_plugin(*self.sweep.before())
        self.connect()
        box = Box(self.engine, OTHER)
        self.begin(box)
        self.looks_as("running")
        self.finish(box)
        self.looks_as("ended")
        self.most = max(self.most, self.descriptors() if not self.sweep.turn else 0)
        if self.descriptors() > self.most:
            self.sweep.note(f"{self.descriptors()} descriptors instead of {self.most}")
        self.disconnect()

    def test_each_call(self):
        self.run_plugin()
        self.connect()
        alive = Box(self.engine, ALIVE)
        self.begin(alive)
        self.disconnect()
        self.sweep.run(self, self.event)
        self.run_plugin()
        self.connect()
        self.finish(alive)
        self.disconnect()
        self.assertEqual(self.machine.leftovers(self.root), [])


if __name__ == "__main__":
    nri_daemon.main()
