"""SIGKILL of podqos at every system call: what comes next reaches the exact truth.

The first recovery of each sweep is tried for every system call; further ones for those before which something outside
the process may have changed since the last.
The test itself is the runtime here: a container is a `sleep` in a cgroup that the test makes where the bundle says, so
that a round takes some milliseconds. The killing is stepper.c's.
"""

import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import harness  # noqa: E402
import oracle  # noqa: E402
from harness import GI, container, pod  # noqa: E402

BURSTABLE = pod(
    "first",
    container("a", requests={"cpu": "250m", "memory": "1Gi"}, limits={"cpu": "500m", "memory": "2Gi"}),
    container("b", requests={"cpu": "100m", "memory": "64Mi"}),
)
GUARANTEED = pod("second", container("app", limits={"cpu": "300m", "memory": "512Mi"}))
THIRD = pod("third", container("app", requests={"cpu": "700m", "memory": "3Gi"}))
UNFINISHED = ".podqos-tmp"  # a file that was being written: it may stay for a while, not for ever
FEWEST = {"every": 60, "effects": 8}  # a sweep of fewer system calls did not do what it should


class Container:
    """One container of a pod: its bundle and, while it runs, its process."""

    def __init__(self, manifest, name, identifier, bundle):
        self.uid, self.spec, self.name = manifest["metadata"]["uid"], manifest["spec"], name
        self.id, self.bundle, self.process, self.cgroup = identifier, bundle, None, None

    def state(self):
        pid = self.process.pid if self.process else 0
        return {"ociVersion": "1.0.2", "id": self.id, "status": "creating" if pid else "stopped", "pid": pid,
                "bundle": str(self.bundle.path), "annotations": self.bundle.config["annotations"]}


class KillCase(harness.TestCase):
    """A test that plays the runtime."""

    settings = {"runtimes": ["/bin/true"]}

    def setUp(self):
        super().setUp()
        self.truth = oracle.Truth(f"{self.root}/kubepods", 32 * GI)
        self.running = []
        self.addCleanup(lambda: [self.end(c) for c in list(self.running)])
        self.stepper, self.count_file = self.tmp / "stepper", self.tmp / "count"
        oracle.build_stepper(self.stepper)
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
            command = [str(self.stepper), *map(str, kill), str(self.count_file), *command]
        done = subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=60)
        if not kill:
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            return False
        self.assertNotEqual(done.returncode, 125, done.stderr)
        return self.count_file.read_text(encoding="ascii").split()[1] == "1"

    def place(self, made, kill=None):
        command = [str(harness.RUNTIME), "--config", self.config, "create", "--bundle", str(made.bundle.path), made.id]
        return self.run_podqos(command, b"", kill)

    def start(self, made):
        """The process in the cgroup that config.json names, in every hierarchy."""
        made.cgroup = json.loads(made.bundle.read())["linux"]["cgroupsPath"]
        made.process = subprocess.Popen(["/bin/sleep", "1000"], stdin=subprocess.DEVNULL)
        self.running.append(made)
        for hierarchy in self.machine.hierarchies:
            folder = pathlib.Path(hierarchy.mount + made.cgroup)
            folder.mkdir(parents=True, exist_ok=True)
            if "cpuset" in hierarchy.controllers and hierarchy.version == 1:
                self.fill_cpuset(hierarchy.mount, made.cgroup)
            (folder / "cgroup.procs").write_text(str(made.process.pid), encoding="ascii")

    def fill_cpuset(self, mount, path):
        """A process enters a cpuset of v1 only once it has processors and memory nodes."""
        folder = pathlib.Path(mount)
        for part in path.strip("/").split("/"):
            parent, folder = folder, folder / part
            for file in ("cpuset.cpus", "cpuset.mems"):
                if not (folder / file).read_text(encoding="ascii").strip():
                    (folder / file).write_text((parent / file).read_text(encoding="ascii"), encoding="ascii")

    def hook(self, stage, made, kill=None):
        command = [str(harness.HOOK), "--config", self.config, stage]
        return self.run_podqos(command, json.dumps(made.state()).encode(), kill)

    def end(self, made):
        """The process ends, and the runtime removes the cgroup that it made."""
        if made.process is None:
            return
        made.process.kill()
        made.process.wait(timeout=20)
        made.process = None
        self.running.remove(made)
        for folder in self.machine.directories(made.cgroup):
            self.remove(folder)

    def remove(self, folder):
        deadline = time.monotonic() + 10
        while True:
            try:
                os.rmdir(folder)
                return
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.001)

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

    def sweep(self, strike, *recoveries):
        """strike(which, N) -> (what is to be recovered, was it killed?) for N = 1, 2, ... until nothing is killed."""
        for recover, which in zip(recoveries, itertools.chain(["every"], itertools.repeat("effects"))):
            for turn in itertools.count(1):
                with self.subTest(recovery=recover.__name__, which=which, call=turn):
                    made, killed = strike(which, turn)
                    recover(made)
                if self._outcome_failed():
                    return
                shutil.rmtree(made.bundle.path)
                if not killed:
                    break
            self.assertGreater(turn, FEWEST[which])


class BesideAPod(KillCase):
    """A second container is killed on its way in or out while a pod lives."""

    def setUp(self):
        super().setUp()
        self.alive = self.create(self.container(BURSTABLE, "a"))
        self.check(self.alive)

    def tearDown(self):
        if self.alive.process:
            self.delete(self.alive)
        super().tearDown()

    # Recoveries. Each ends with the first container alone.

    def by_reconcile(self, made):
        self.end(made)
        self.reconcile()
        self.check(self.alive)

    def by_the_next_event(self, made):
        self.end(made)
        other = self.create(self.container(THIRD, "app"))
        self.check(self.alive, other)
        self.delete(other)
        self.check(self.alive)

    def by_another_attempt(self, made):
        self.end(made)
        self.create(made)
        self.check(self.alive, made)
        self.delete(made)
        self.check(self.alive)

    def by_poststop(self, made):
        """What runc does when a hook fails."""
        self.delete(made)
        self.check(self.alive)

    def by_living_on(self, made):
        """A container whose hook was killed lives all the same: it counts."""
        self.reconcile()
        self.check(self.alive, made)
        self.delete(made)
        self.check(self.alive)

    def by_the_next_event_or_reconcile(self, made):
        """Who was killed before the first change has left no trace: nothing may be half done, though."""
        other = self.create(self.container(THIRD, "app"))
        if self.wrong(self.alive, made, other):
            self.check(self.alive, other)
        self.reconcile()
        self.check(self.alive, other)
        self.delete(other)
        self.check(self.alive)

    # Strikes.

    def placing(self, manifest, name, whom):
        def strike(which, turn):
            made = self.container(manifest, name)
            killed = self.place(made, (whom, which, turn))
            json.loads(made.bundle.read())  # the old one or the new one, never a part
            return made, killed
        return strike

    def confirming(self, manifest, name):
        def strike(which, turn):
            made = self.container(manifest, name)
            self.place(made)
            self.start(made)
            return made, self.hook("createRuntime", made, ("all", which, turn))
        return strike

    def releasing(self, manifest, name):
        def strike(which, turn):
            made = self.create(self.container(manifest, name))
            self.end(made)
            return made, self.hook("poststop", made, ("all", which, turn))
        return strike

    def test_wrapper_with_a_new_pod(self):
        self.sweep(self.placing(GUARANTEED, "app", "all"), self.by_reconcile, self.by_the_next_event,
                   self.by_another_attempt)

    def test_wrapper_with_the_same_pod(self):
        self.sweep(self.placing(BURSTABLE, "b", "all"), self.by_reconcile)

    def test_one_process_of_the_wrapper(self):
        self.sweep(self.placing(GUARANTEED, "app", "one"), self.by_reconcile, self.by_the_next_event)

    def test_create_hook_with_a_new_pod(self):
        self.sweep(self.confirming(GUARANTEED, "app"), self.by_reconcile, self.by_poststop, self.by_living_on)

    def test_create_hook_with_the_same_pod(self):
        self.sweep(self.confirming(BURSTABLE, "b"), self.by_reconcile)

    def test_poststop_of_another_pod(self):
        self.sweep(self.releasing(GUARANTEED, "app"), self.by_reconcile, self.by_poststop,
                   self.by_the_next_event_or_reconcile)

    def test_poststop_of_the_same_pod(self):
        self.sweep(self.releasing(BURSTABLE, "b"), self.by_reconcile)


class Unplaced(BesideAPod):
    """Hooks alone: the create hook makes everything, and moves the process."""

    settings = {**KillCase.settings, "placement": {"onMisplaced": "move"}}

    def test_create_hook(self):
        def strike(which, turn):
            made = self.container(GUARANTEED, "app")
            self.start(made)
            return made, self.hook("createRuntime", made, ("all", which, turn))
        self.sweep(strike, self.by_reconcile, self.by_poststop)


for _name in [n for n in vars(BesideAPod) if n.startswith("test_")]:
    setattr(Unplaced, _name, None)  # they have run already


class Alone(KillCase):
    """The first container of all, which makes the whole tree, and the last, which removes it."""

    def by_reconcile(self, made):
        self.end(made)
        self.reconcile()
        self.check()

    def by_the_next_event(self, made):
        other = self.create(self.container(THIRD, "app"))
        self.check(other)
        self.delete(other)
        self.check()

    def by_poststop(self, made):
        self.hook("poststop", made)
        self.check()

    def test_wrapper(self):
        def strike(which, turn):
            made = self.container(GUARANTEED, "app")
            return made, self.place(made, ("all", which, turn))
        self.sweep(strike, self.by_reconcile, self.by_the_next_event)

    def test_poststop(self):
        def strike(which, turn):
            made = self.create(self.container(GUARANTEED, "app"))
            self.end(made)
            return made, self.hook("poststop", made, ("all", which, turn))
        self.sweep(strike, self.by_reconcile, self.by_poststop)


class Reconcile(KillCase):
    """podqosctl reconcile itself, killed while it restores a state that was lost."""

    def test_at_every_call(self):
        first, second = self.create(self.container(BURSTABLE, "a")), self.create(self.container(GUARANTEED, "app"))
        command = [str(harness.CTL), "--config", self.config, "reconcile"]
        for turn in itertools.count(1):
            shutil.rmtree(self.podqos.state)
            with self.subTest(call=turn):
                killed = self.run_podqos(command, b"", ("all", "every", turn))
                self.reconcile()
                self.check(first, second)
            if not killed or self._outcome_failed():
                break
        self.assertGreater(turn, FEWEST["every"])
        self.delete(first)
        self.delete(second)
        self.check()


if __name__ == "__main__":
    harness.main(("runc",))
