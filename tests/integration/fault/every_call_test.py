"""Each system call of hook, wrapper and podqosctl fails once, or is the last one: what follows is as if it had not.

Errors are those of the calls' manual pages (tests/lib/stepper.c). A start is admitted and says what failed, or is
refused if onError asks for it; the next events and a reconciliation come to what an undisturbed run comes to, in state
and cgroups; what others have stays as it is. Of all pairs of call and error some are tried, others in each run
(PODQOS_FAULT_SEED repeats one); with PODQOS_FAULT_TIMES=4 four times as many, with 1000 all.
"""

import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import faults  # noqa: E402
import harness  # noqa: E402
import oracle  # noqa: E402
import patience  # noqa: E402
import player  # noqa: E402
import units  # noqa: E402
from harness import GI, MI, container, pod  # noqa: E402


def sized(cpu, memory, cpu_limit, memory_limit):
    return pod("resized", container("app", {"cpu": cpu, "memory": memory}, {"cpu": cpu_limit, "memory": memory_limit}))


ALIVE = pod("alive", container("a", requests={"cpu": "250m", "memory": "1Gi"}),
            container("b", requests={"cpu": "100m", "memory": "64Mi"}))
OTHER = pod("other", container("app", {"cpu": "150m", "memory": "256Mi"}, {"cpu": "300m", "memory": "512Mi"}))
SMALL, LARGE = sized("100m", "64Mi", "200m", "128Mi"), sized("200m", "96Mi", "400m", "192Mi")
ON_SYSTEMD = units.runs()
# The container cannot start: no runtime is known, or it is not executed.
NO_RUNTIME = ("the container runtime", "execute ")
RUNTIME = """#!/bin/sh
# As an OCI runtime does with its containers' values: RUNTIME [--root DIR] create|state|update [OPTION...] ID
set -eu
root={root} verb= memory= quota= shares=
while [ $# -gt 0 ]; do
  case $1 in
    --root) root=$2; shift ;;
    --memory=*) memory=${{1#*=}} ;;
    --cpu-quota=*) quota=${{1#*=}} ;;
    --cpu-share=*) shares=${{1#*=}} ;;
    state | update) verb=$1 ;;
    -*) ;;
    *) id=$1 ;;
  esac
  shift
done
[ "$verb" != state ] || cat "$root/$id/state"
[ "$verb" = update ] || exit 0
cgroup=$(cat "$root/$id/cgroup")
[ -z "$memory" ] || echo "$memory" >"{memory}$cgroup/memory.limit_in_bytes"
[ -z "$quota" ] || echo "$quota" >"{cpu}$cgroup/cpu.cfs_quota_us"
[ -z "$shares" ] || echo "$shares" >"{cpu}$cgroup/cpu.shares"
"""


class FaultCase(player.Case):
    """One pod lives, beside a cgroup that podqos did not make, while something fails for another pod."""

    def setUp(self):
        super().setUp()
        oracle.build_stepper(self.stepper)
        self.sweep = faults.Sweep(self.id(), self.stepper, self.count_file)
        self.alive = self.create(self.container(ALIVE, "a"))
        self.foreign = f"{self.truth.kubepods}/theirs"
        for hierarchy in self.machine.hierarchies:
            os.mkdir(hierarchy.mount + self.foreign)
        self.machine.write(self.foreign, "memory", 300 * MI)
        self.theirs = self.machine.snapshot(self.foreign)

    def tearDown(self):
        self.machine.remove(self.foreign)
        self.delete(self.alive)
        super().tearDown()

    def wrong(self, *living):
        return [line for line in super().wrong(*living) if not line.startswith(self.foreign)]

    def looks_as(self, name, *living):
        """As after an undisturbed run: what was found first under this name."""
        for line in self.wrong(*living):
            self.sweep.note(line)
        cgroups = {path: self.machine.snapshot(path) for path in (self.truth.kubepods, *self.truth.expected())}
        self.sweep.compare(name, {"files": self.sweep.files(self.podqos.state), "cgroups": cgroups,
                                  "rows": faults.rows_of(self.podqos.state)})
        if self.machine.snapshot(self.foreign) != self.theirs:
            self.sweep.note(f"{self.foreign} is {self.machine.snapshot(self.foreign)}")

    def reconciled(self):
        done = self.podqos.ctl("reconcile", check=False)
        if done.returncode or done.stderr:
            self.sweep.note(f"reconcile: {done.stdout}{done.stderr}")

    def hooked(self, stage, made):
        """A hook that nothing disturbs."""
        done = patience.capture(self.hook_command(stage), json.dumps(made.state()).encode())
        if done.returncode or done.stderr:
            self.sweep.note(f"{stage} after it: {done.stderr.decode()}")

    def hook_command(self, stage):
        return [str(harness.HOOK), "--config", self.config, stage]

    def gone(self, made):
        """The container ends: all is as before it."""
        self.end(made)
        self.hooked("poststop", made)
        self.reconciled()
        self.looks_as("before", self.alive)
        shutil.rmtree(made.bundle.path)

    def started(self, made, silent=True):
        """The runtime has started the container. Where nothing was said, all is right at once, or, where the kernel was
        busy, with the next event."""
        if silent and self.sweep.is_failing() and self.sweep.error != os.strerror(errno.EBUSY):
            self.looks_as("started", self.alive, made)
        self.reconciled()
        self.looks_as("started", self.alive, made)


class Events(FaultCase):
    """The wrapper, the hooks and a reconciliation."""

    def creation(self, made):
        return [harness.RUNTIME, "--config", self.config, "create", "--bundle", made.bundle.path, made.id]

    def place(self, made, kill=None):
        return self.run_podqos(list(map(str, self.creation(made))), b"", kill)

    def creating(self, manifest, name):
        def event():
            made = self.container(manifest, name)
            done = self.sweep.strike(self.creation(made), refuses=NO_RUNTIME)
            if done.returncode == 0:
                before = made.bundle.config["linux"]["cgroupsPath"]
                seen = self.sweep.error != os.strerror(errno.ENODEV)  # which is "absent", and no error of config.json
                if seen and not done.stderr and json.loads(made.bundle.read())["linux"]["cgroupsPath"] == before:
                    self.sweep.note("it is not placed, and nothing was said")
                self.start(made)
                self.hooked("createRuntime", made)
                self.started(made, not done.stderr)
            if self.sweep.is_failing():  # what a killed one was writing goes with the bundle
                self.sweep.check_files(made.bundle.path, ["config.json"])
            self.gone(made)
        return event

    def confirming(self, placed):
        def event():
            made = self.container(OTHER, "app")
            if placed:
                self.place(made)
            self.start(made)
            done = self.sweep.strike(self.hook_command("createRuntime"), made.state())
            # One that is not placed either starts unknown to podqos.
            if placed or done.returncode == 0 and not done.stderr:
                self.started(made, not done.stderr)
            self.gone(made)
        return event

    def releasing(self, manifest, name):
        def event():
            made = self.create(self.container(manifest, name))
            self.end(made)
            self.sweep.strike(self.hook_command("poststop"), made.state())
            self.gone(made)
        return event

    def reconciling(self, lose):
        def event():
            made = self.create(self.container(OTHER, "app"))
            self.end(made)
            lose()
            self.sweep.strike([harness.CTL, "--config", self.config, "reconcile"], refuses=[""])
            self.gone(made)
        return event

    def test_wrapper_with_a_new_pod(self):
        self.sweep.run(self, self.creating(OTHER, "app"))

    def test_wrapper_with_the_same_pod(self):
        self.sweep.run(self, self.creating(ALIVE, "b"))

    def test_wrapper_that_refuses(self):
        self.podqos.settings["onError"] = "reject"
        self.podqos.config()
        self.sweep.run(self, self.creating(OTHER, "app"), admits=False)

    def test_create_hook(self):
        self.sweep.run(self, self.confirming(placed=True))

    def test_create_hook_alone(self):
        self.sweep.run(self, self.confirming(placed=False))

    def test_poststop_of_another_pod(self):
        self.sweep.run(self, self.releasing(OTHER, "app"))

    def test_poststop_of_the_same_pod(self):
        self.sweep.run(self, self.releasing(ALIVE, "b"))

    def test_reconcile(self):
        self.sweep.run(self, self.reconciling(lambda: None))

    def test_reconcile_after_a_lost_state(self):
        self.sweep.run(self, self.reconciling(lambda: shutil.rmtree(self.podqos.state)))


@unittest.skipUnless(ON_SYSTEMD, "systemd does not run this machine")
class OnSystemd(Events):
    """The same in slices."""

    settings = {**player.Case.settings, "cgroupRoot": "/"}

    def prepare(self):
        super().prepare()
        self.truth = oracle.Truth("/kubepods.slice", 32 * GI)
        self.addCleanup(units.clear, "kubepods")

    def creation(self, made):
        program, *words = super().creation(made)
        return [program, *words[:2], "--systemd-cgroup", *words[2:]]

    def container(self, manifest, name):
        made = super().container(manifest, name)
        made.bundle.config["linux"]["cgroupsPath"] = f"machine.slice:test:{made.id}"
        made.bundle.save()
        return made

    def cgroup_of(self, made):
        """The runtime's scope, which is a cgroup without a unit here."""
        slice_name, prefix, name = super().cgroup_of(made).split(":")
        return f"{faults.slice_path(slice_name)}/{prefix}-{name}.scope"

    def looks_as(self, name, *living):
        """And to systemd, which does what it has accepted in its own time; scopes have no units here."""
        super().looks_as(name, *living)
        if not patience.until(lambda: not oracle.unit_differences(self.truth, "kubepods", ()), seconds=5):
            self.sweep.note(f"{name}: {oracle.unit_differences(self.truth, 'kubepods', ())}")
        kept = {os.path.basename(path).removesuffix(".d") for path in units.kept("kubepods")}
        self.sweep.compare(f"units {name}", {"kept": sorted(kept)})

    def tearDown(self):
        super().tearDown()
        units.wait_for_none("kubepods")


class Resizes(FaultCase):
    """A runtime tells podqos of an update, and podqosctl tells a runtime of one."""

    def prepare(self):
        self.roots = self.tmp / "roots"
        self.roots.mkdir()
        if self.machine.version("cpu") != 1:
            self.skipTest("the runtime of this test knows the files of cgroup v1")
        runtime = self.tmp / "runtime.sh"
        runtime.write_text(RUNTIME.format(
            root=self.roots, memory=self.machine.hierarchy("memory").mount, cpu=self.machine.hierarchy("cpu").mount),
            encoding="ascii")
        runtime.chmod(0o755)
        self.podqos.settings["runtimes"] = [str(runtime)]
        super().prepare()

    def start(self, made):
        super().start(made)
        folder = self.roots / made.id
        folder.mkdir()
        (folder / "state").write_text(json.dumps({"pid": made.process.pid}), encoding="ascii")
        (folder / "cgroup").write_text(made.cgroup, encoding="ascii")

    def has(self, made, manifest):
        """Do pod, tiers and container have all that this says?"""
        made.spec = manifest["spec"]
        self.truth.observe([])  # which takes a pod to be as it was first
        truth = self.wrong(self.alive, made)
        wanted = self.truth.container(made.uid, "app")
        return not truth and all(self.machine.read(made.cgroup, what) == wanted[what] for what in ("memory", "quota"))

    def resize(self, manifest):
        resources = manifest["spec"]["containers"][0]["resources"]
        amounts = [word for field in ("requests", "limits") for word in (
            f"--{field}", ",".join(f"{name}={amount}" for name, amount in resources[field].items()))]
        return [harness.CTL, "--config", self.config, "resize", "resized", "--runtime-root", self.roots, *amounts]

    def test_resize(self):
        """All or nothing, as its exit status says; when it was killed, either, and another one makes it good."""
        made = self.create(self.container(SMALL, "app"))
        for manifest in (LARGE, SMALL):
            subprocess.run(self.resize(manifest), check=True, stdout=subprocess.DEVNULL)

        def event():
            for size, other in ((LARGE, SMALL), (SMALL, LARGE)):
                done = self.sweep.strike(self.resize(size), refuses=[""])
                refused = done.returncode == 1 and "standard output" not in done.stderr
                if done.returncode in (0, 1) and not self.has(made, other if refused else size):
                    self.sweep.note(f"exit {done.returncode}, but at once: {self.wrong(self.alive, made)}")
                self.reconciled()
                if not self.has(made, size):
                    if self.sweep.is_failing() and not self.has(made, other):
                        self.sweep.note(f"neither: {self.wrong(self.alive, made)} {self.machine.snapshot(made.cgroup)}")
                    again = patience.capture(list(map(str, self.resize(size))))
                    if again.returncode or not self.has(made, size):
                        self.sweep.note(f"another one: {again.stderr.decode()} {self.wrong(self.alive, made)}")
                self.reconciled()
            self.looks_as("small", self.alive, made)
        self.sweep.run(self, event)
        self.delete(made)

    def test_update(self):
        """The pod follows its container, at the latest with a reconciliation."""
        made = self.container(SMALL, "app")
        made.bundle.annotations.clear()
        made.bundle.annotations["podqos.io/pod-uid"] = made.uid
        made.bundle.resources.update({"cpu": {"quota": 20_000, "period": 100_000}, "memory": {"limit": 128 * MI}})
        made.bundle.save()
        self.create(made)
        command = [harness.RUNTIME, "--config", self.config, "update"]

        def event():
            for memory, quota in ((192 * MI, 40_000), (128 * MI, 20_000)):
                words = [*command, f"--memory={memory}", f"--cpu-quota={quota}", made.id]
                # The kernel refuses the runtime a quota above that of a pod that could not be raised.
                done = self.sweep.strike(words, refuses=(*NO_RUNTIME, "I/O error"))
                if done.returncode:  # its caller tries again
                    subprocess.run(list(map(str, words)), check=True)
                self.reconciled()
                held = {path: self.machine.snapshot(path) for path in (os.path.dirname(made.cgroup), made.cgroup)}
                self.sweep.compare(memory, {"values": held, "files": self.sweep.files(self.podqos.state)})
        self.sweep.run(self, event)
        self.delete(made)


if __name__ == "__main__":
    harness.main(("runc",))
