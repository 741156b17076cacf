"""A test that is the runtime itself: containers are a `sleep` in a cgroup that the test makes where the bundle says.

The product's programs run as an engine and a runtime would run them, but a round takes milliseconds, and any of them can
be killed at a system call by stepper.c.
"""

import json
import os
import subprocess

import harness
import oracle
import patience
from harness import GI

UNFINISHED = ".podqos-tmp"  # a file that was being written: it may stay for a while, not for ever


class Container:
    """One container of a pod: its bundle and, while it runs, its process."""

    def __init__(self, manifest, name, identifier, bundle):
        self.uid, self.spec, self.name = manifest["metadata"]["uid"], manifest["spec"], name
        self.id, self.bundle, self.process, self.cgroup = identifier, bundle, None, None

    def state(self):
        pid = self.process.pid if self.process else 0
        return {"ociVersion": "1.0.2", "id": self.id, "status": "creating" if pid else "stopped", "pid": pid,
                "bundle": str(self.bundle.path), "annotations": self.bundle.config["annotations"]}


class Case(harness.TestCase):
    """A test that plays the runtime, and an oracle that knows what it played."""

    settings = {"runtimes": ["/bin/true"]}

    def setUp(self):
        super().setUp()
        self.prepare()

    def prepare(self):
        self.truth = oracle.Truth(f"{self.root}/kubepods", 32 * GI)
        self.running = []
        self.addCleanup(lambda: [self.end(c) for c in list(self.running)])
        self.stepper, self.count_file = self.tmp / "stepper", self.tmp / "count"
        self.annotated = {}
        self.config = str(self.podqos.config())

    # The runtime.

    def container(self, manifest, name):
        key = manifest["metadata"]["uid"], name
        if key not in self.annotated:
            self.annotated[key] = self.podqos.annotations(manifest, name)
        identifier = self.container_id(name)
        bundle = self.bundle(label=name)
        bundle.annotations.update(self.annotated[key])
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/{identifier}"
        return Container(manifest, name, identifier, bundle.save())

    def run_podqos(self, command, stdin, kill=None):
        """Runs podqos; returns whether it was killed. `kill` is ("all" or "one", "every" or "effects", N)."""
        if kill:
            if not self.stepper.exists():
                oracle.build_stepper(self.stepper)
            command = [str(self.stepper), *map(str, kill), str(self.count_file), *command]
        done = patience.capture(command, stdin)
        if not kill:
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            return False
        self.assertNotEqual(done.returncode, 125, done.stderr)
        return self.count_file.read_text(encoding="ascii").split()[1] == "1"

    def place(self, made, kill=None):
        command = [str(harness.RUNTIME), "--config", self.config, "create", "--bundle", str(made.bundle.path), made.id]
        return self.run_podqos(command, b"", kill)

    def cgroup_of(self, made):
        """The cgroup that config.json names."""
        return json.loads(made.bundle.read())["linux"]["cgroupsPath"]

    def start(self, made):
        """The process in its cgroup, in every hierarchy."""
        made.cgroup = self.cgroup_of(made)
        made.process = subprocess.Popen(["/bin/sleep", "1000"], stdin=subprocess.DEVNULL)
        self.running.append(made)
        self.machine.enter(made.process.pid, made.cgroup)

    def hook(self, stage, made, kill=None):
        command = [str(harness.HOOK), "--config", self.config, stage]
        return self.run_podqos(command, json.dumps(made.state()).encode(), kill)

    def end(self, made):
        """The process ends, and the runtime removes the cgroup that it made."""
        if made.process is None:
            return
        made.process.kill()
        made.process.wait()
        made.process = None
        self.running.remove(made)
        self.machine.remove(made.cgroup)

    def create(self, made):
        self.place(made)
        self.start(made)
        self.hook("createRuntime", made)
        return made

    def delete(self, made):
        self.end(made)
        self.hook("poststop", made)

    def reconcile(self):
        self.podqos.ctl("reconcile")

    # What must hold.

    def wrong(self, *living):
        self.truth.observe([(c.uid, c.name, c.spec, False) for c in living])
        return oracle.differences(self.machine, self.truth)

    def check(self, *living):
        """The kernel holds what these containers demand, and the state knows them and nobody else."""
        self.assertEqual(self.wrong(*living), [])
        records = [r.split("/")[0] for r in self.podqos.records() if not r.endswith(UNFINISHED)]
        self.assertEqual(records.count("pods"), len({c.uid for c in living}))
        self.assertEqual(records.count("containers"), len(living))
        for made in living:
            self.assertEqual(os.path.dirname(harness.machines.cgroup_of(made.process.pid)), self.truth.path(made.uid))
