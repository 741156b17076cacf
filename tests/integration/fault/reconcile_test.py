"""What one `podqosctl reconcile` mends, whatever has become of records and cgroups.

Its dry run has told each change, line by line, and what podqos did not make stays as it is.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import effects  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
import player  # noqa: E402
from harness import GI, MI, container, pod  # noqa: E402

BURSTABLE = pod("burst", container("a", {"cpu": "250m", "memory": "1Gi"}, {"cpu": "500m", "memory": "2Gi"}),
                container("b", {"cpu": "100m", "memory": "64Mi"}, {"cpu": "200m", "memory": "128Mi"}))
GUARANTEED = pod("guard", container("app", limits={"cpu": "300m", "memory": "512Mi"}))
BESTEFFORT = pod("effort", container("app"))
LATE = pod("late", container("app", limits={"cpu": "90m", "memory": "256Mi"}))
MADE = "trusted.podqos.made"


class MendingCase(player.Case):
    """Three pods live beside two cgroups with a process that podqos did not make."""

    def setUp(self):
        super().setUp()
        described = ((BURSTABLE, "a"), (BURSTABLE, "b"), (GUARANTEED, "app"), (BESTEFFORT, "app"))
        self.alive = [self.create(self.container(*each)) for each in described]
        self.check(*self.alive)
        self.a, self.b, self.guard, self.effort = self.alive
        self.foreign = [f"{self.root}/kubepods/{name}" for name in ("burstable/podtheirs", "theirs")]
        self.theirs = [subprocess.Popen(["/bin/sleep", "1000"], stdin=subprocess.DEVNULL) for _ in self.foreign]
        self.addCleanup(self.end_theirs)
        for process, path in zip(self.theirs, self.foreign):
            self.machine.enter(process.pid, f"{path}/container")
            self.machine.write(path, "memory", 300 * MI)
        self.before = self.snapshot_of_theirs()

    def tearDown(self):
        self.assertEqual(self.snapshot_of_theirs(), self.before)
        self.end_theirs()
        for made in list(self.running):
            self.delete(made)
        super().tearDown()

    def end_theirs(self):
        for process, path in zip(self.theirs, self.foreign):
            process.kill()
            process.wait()
            self.machine.remove(f"{path}/container")
            self.machine.remove(path)

    def snapshot_of_theirs(self):
        return [(self.machine.snapshot(path), machines.cgroup_of(process.pid))
                for process, path in zip(self.theirs, self.foreign)]

    def wrong(self, *living):
        return [line for line in super().wrong(*living) if not line.startswith(tuple(self.foreign))]

    def mend(self, *living):
        """Reconciles as its dry run tells, once: what lives then has all that is its own."""
        report = effects.compare(self, self.podqos)
        self.check(*living)
        return report

    def forget(self, uid, index=True):
        """The record of a pod is lost, and what leads to it."""
        (self.podqos.state / f"pods/{uid}.json").unlink()
        for entry in (self.podqos.state / "containers").iterdir():
            if index and os.readlink(entry) == uid:
                entry.unlink()

    def kill(self, made):
        """Its process ends, and nobody removes its cgroup."""
        made.process.kill()
        made.process.wait()
        made.process = None
        self.running.remove(made)

    def cut_off(self, made):
        """Its process is moved away by hand, and its cgroup is removed."""
        for hierarchy in self.machine.hierarchies:
            pathlib.Path(hierarchy.mount, "cgroup.procs").write_text(str(made.process.pid), encoding="ascii")
        self.machine.remove(made.cgroup)

    def come_back(self, *cut_off):
        """As the warning of reconcile tells the operator."""
        for made in cut_off:
            self.machine.enter(made.process.pid, made.cgroup)


class Orphans(MendingCase):
    """Cgroups without a record, records without a cgroup, and what never started."""

    def test_record_lost(self):
        for index in (True, False):
            self.forget("burst", index)
            restored = "pod burst restored from the copy of its record in its cgroup"
            self.assertIn(restored, self.mend(*self.alive))

    def test_record_lost_and_pod_ended(self):
        self.forget("guard")
        self.end(self.guard)
        self.mend(self.a, self.b, self.effort)

    def test_state_lost(self):
        shutil.rmtree(self.podqos.state)
        self.mend(*self.alive)

    def test_state_lost_while_values_were_refused(self):
        """The copy is there, although it tells that the cgroup has other values."""
        path, child = self.truth.path("guard"), f"{self.guard.cgroup}"
        if self.machine.version("cpu") != 1:
            self.skipTest("cgroup v2 refuses no quota")
        self.machine.write(path, "quota", 100000)
        self.machine.write(child, "quota", 100000)
        self.assertEqual(self.podqos.ctl("reconcile", check=False).returncode, 1)
        shutil.rmtree(self.podqos.state)
        self.machine.write(child, "quota", 30000)
        self.mend(*self.alive)

    def test_entries_of_nothing(self):
        (self.podqos.state / "containers/0123456789abcdef").symlink_to("gone")
        self.mend(*self.alive)

    def test_record_without_cgroup(self):
        self.end(self.guard)
        self.machine.remove(self.truth.path("guard"))
        self.mend(self.a, self.b, self.effort)

    def test_created_and_never_started(self):
        """Their creators are gone; one has made the cgroup, and one a process that was killed."""
        for manifest, name in ((LATE, "app"), (BURSTABLE, "b")):
            for cgroup in ("none", "made", "held"):
                made = self.container(manifest, name)
                self.place(made)
                if cgroup == "none":
                    continue
                self.start(made)
                if cgroup == "held":
                    self.hook("createRuntime", made)
                self.kill(made)
        self.mend(*self.alive)

    def test_killed(self):
        """With its cgroup left, in a pod that lives on and in one that ends."""
        self.kill(self.b)
        self.kill(self.guard)
        self.mend(self.a, self.effort)


class Beside(player.Case):
    """Pods that start while a node is reconciled."""

    def test_start(self):
        """Each file that the reconciliation reads costs 5 ms: a start does not wait for all of it."""
        for number in range(16):
            manifest = pod(f"pod-{number}", container("app", {}, {"cpu": "10m", "memory": "16Mi"}))
            self.create(self.container(manifest, "app"))
        late = self.container(LATE, "app")
        trace = self.tmp / "trace"
        command = ["strace", "-o", trace, "-e", "trace=openat2", "-e", "inject=openat2:delay_enter=5000",
                   harness.CTL, "--config", self.config, "reconcile"]
        with subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as slow:
            try:
                patience.expect(lambda: "podpod-" in trace.read_text(encoding="utf-8") if trace.exists() else False,
                                "the reconciliation looks at a pod")
                self.create(late)
                self.assertIsNone(slow.poll(), "the start has waited for the whole reconciliation")
            finally:
                output = slow.communicate()[0]
        self.assertEqual(slow.returncode, 0, output)
        self.check(*self.running)
        for made in list(self.running):
            self.delete(made)


class Removed(MendingCase):
    """Cgroups of podqos that another program has removed; processes have been moved away before."""

    def test_pod(self):
        self.cut_off(self.guard)
        self.machine.remove(self.truth.path("guard"))
        effects.compare(self, self.podqos)
        self.come_back(self.guard)
        self.check(*self.alive)

    def test_tier(self):
        for hierarchies in (self.machine.hierarchies, self.machine.hierarchies[:1], self.machine.hierarchies[1:]):
            self.cut_off(self.effort)
            for hierarchy in hierarchies:
                for path in (self.truth.path("effort"), self.truth.tier("besteffort")):
                    os.rmdir(hierarchy.mount + path)
            effects.compare(self, self.podqos)
            self.come_back(self.effort)
            self.check(*self.alive)

    def test_tree(self):
        """The new root is podqos's as the old one was."""
        self.end_theirs()
        self.foreign = self.theirs = self.before = []
        for made in self.alive:
            self.cut_off(made)
        for path in (*map(self.truth.path, ("burst", "guard", "effort")), self.truth.tier("burstable"),
                     self.truth.tier("besteffort"), self.truth.kubepods, self.root):
            self.machine.remove(path)
        self.assertIn(f"made cgroup {self.truth.kubepods} again, which was removed", effects.compare(self, self.podqos))
        self.come_back(*self.alive)
        self.check(*self.alive)
        primary = self.machine.hierarchy("memory").mount
        for path in (self.root, self.truth.kubepods):
            self.assertEqual(os.getxattr(primary + path, MADE), b"1", path)
        self.assertEqual(self.podqos.ctl_json("status")["warnings"], [])
        shutil.rmtree(self.podqos.state)
        self.mend(*self.alive)


class Changed(MendingCase):
    """Values that others have changed, and those that follow from a setting."""

    def tree(self):
        paths = [self.root, self.truth.kubepods, *self.truth.expected()]
        return {path: self.machine.snapshot(path) for path in paths}

    def test_behind_its_back(self):
        """Each value in each cgroup; the cgroup above the root has shares alone, and the root of the pods none."""
        share = "shares" if self.machine.version("cpu") == 1 else "weight"
        # More than any container in it has.
        values = {share: 777, "quota": 900000, "memory": 5 * GI, "pids": 777}
        before = self.tree()
        for path in before:
            own = [what for what in values if (what == share or path != self.root) and
                   (what != share or path != self.truth.kubepods)]
            for what in own:
                self.machine.write(path, what, values[what])
            self.assertNotEqual(self.tree(), before)
            self.mend(*self.alive)
            self.assertEqual(self.tree(), before, path)

    def test_idle(self):
        """By another program, as koordlet does: the kernel refuses the share of an idle cgroup."""
        before = self.tree()
        if not self.machine.has(self.root, "idle"):
            self.skipTest("this kernel has no idle cgroups")
        for path in before:
            self.machine.write(path, "idle", 1)
            self.mend(*self.alive)
            self.assertEqual(self.machine.read(path, "idle"), 0, path)
            self.assertEqual(self.tree(), before, path)

    def test_setting(self):
        """Each is followed, and taken back with the setting."""
        guard, tier, root = self.truth.path("guard"), self.truth.tier("burstable"), self.truth.kubepods
        before = self.tree()
        cases = (  # of a node with 16 CPUs and 32 GiB
            ({"podPidsLimit": 64}, guard, {"pids": 64}),
            ({"cpuCFSQuota": False}, guard, {"quota": None}),
            ({"cpuCFSQuotaPeriod": "50ms"}, guard, {"quota": 15000, "period": 50000}),
            ({"maxPodClaim": "1%"}, guard, {"shares": 163}),  # 160m of 300m
            ({"qosReserved": {"memory": "50%"}}, tier, {"memory": 32 * GI - 256 * MI}),
            ({"qosReserved": None}, tier, {"memory": None}),
            ({"tierMemoryFloor": "40Gi"}, tier, {"memory": 40 * GI}),
            ({"reserved": {"system": {"cpu": "2", "memory": "2Gi"}}}, root, {"memory": 30 * GI}),
            ({"reserved": {"kube": {"cpu": "4"}}}, self.root, {"shares": 12 * 1024}),
            ({"nodeMemory": "24Gi"}, root, {"memory": 24 * GI}),
            ({"nodeCpu": "8"}, self.root, {"shares": 8 * 1024}),
            ({"enforceNodeAllocatable": []}, root, {"memory": None, "pids": None}),
        )
        for settings, path, wanted in cases:
            with self.subTest(settings=settings):
                former = dict(self.podqos.settings)
                self.podqos.settings.update(settings)
                effects.compare(self, self.podqos)
                self.assert_values(path, **wanted)
                self.podqos.settings = former
                self.mend(*self.alive)
                self.assertEqual(self.tree(), before)


@harness.for_each_runtime
class Leftovers(harness.TestCase):
    """A real runtime creates a container that is never started, and then bundle and runtime's state are gone."""

    def create(self, manifest, name, runtime, hooked):
        """A container that waits for its start; (id, pid, cgroup)."""
        identifier, bundle = self.container_id(name), self.bundle(manifest, name)
        if hooked:
            uid = manifest["metadata"]["uid"]
            bundle.config["linux"]["cgroupsPath"] = f"{self.pod_path('burstable', uid)}/{identifier}"
            self.register_hooks(bundle)
        runtime.create(identifier, bundle)
        return identifier, runtime.pid(identifier), bundle

    def lose(self, identifier, pid, bundle):
        cgroup = machines.container_cgroup_of(pid)
        os.kill(pid, signal.SIGKILL)
        patience.expect(lambda: not machines.alive(pid), "the container's init has ended")
        # A cgroup has the process a moment longer.
        patience.expect(lambda: not self.machine.processes(cgroup), "its cgroup has no processes")
        shutil.rmtree(bundle.path)
        shutil.rmtree(self.plain.root / identifier)
        for runtime in (self.plain, self.wrapper):
            runtime.bundles.pop(identifier, None)

    def test_alone(self):
        for runtime, hooked in ((self.wrapper, False), (self.wrapper, True), (self.plain, True)):
            self.lose(*self.create(BURSTABLE, "a", runtime, hooked))
            effects.compare(self, self.podqos)
            self.assert_nothing_left()

    def test_beside_another(self):
        other, pid = self.launch(BURSTABLE, "a")
        path = self.pod_path("burstable", "burst")
        before = self.machine.snapshot(path)
        for runtime, hooked in ((self.wrapper, False), (self.wrapper, True), (self.plain, True)):
            made = self.create(BURSTABLE, "b", runtime, hooked)
            left = f"{path}/{os.path.basename(machines.cgroup_of(made[1]))}"
            self.assertTrue(self.machine.exists(left))
            self.lose(*made)
            self.assertTrue(self.machine.exists(left))
            effects.compare(self, self.podqos)
            self.assertFalse(self.machine.exists(left))
            self.assertEqual(self.machine.snapshot(path), before)
            self.assert_placed(pid, path)
        self.wrapper.delete(other)

    def test_waiting(self):
        """One whose bundle alone is gone still waits, and is as any other until its runtime deletes it."""
        identifier, pid, bundle = self.create(BURSTABLE, "a", self.wrapper, True)
        path = self.pod_path("burstable", "burst")
        before = self.machine.snapshot(path)
        shutil.rmtree(bundle.path)
        effects.compare(self, self.podqos)
        self.assert_placed(pid, path)
        self.assertEqual(self.machine.snapshot(path), before)
        # crun has no directory to run its hook in, and is ended by SIGPIPE if that has ended before it is written to.
        if self.wrapper.delete(identifier, check=False).returncode:
            self.wrapper.delete(identifier, check=False)
        effects.compare(self, self.podqos)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
