"""What podqos did not make: it is left as it is. And what a kubelet's pods and podqos's own leave to each other."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
import player  # noqa: E402
from harness import GI, MI, container, pod  # noqa: E402

BURSTABLE = pod("burst", container("app", requests={"cpu": "350m", "memory": "1Gi"}))
GUARANTEED = pod("guard", container("app", limits={"cpu": "300m", "memory": "512Mi"}))
BESTEFFORT = pod("effort", container("app"))
THEIRS = pod("theirs", container("app", limits={"cpu": "1", "memory": "4Gi"}))
GREEDY = pod("greedy", container("app", requests={"cpu": "16", "memory": "1Gi"}))


class OwnershipCase(player.Case):
    """A player whose podqos may refuse."""

    def tearDown(self):
        for made in list(self.running):
            self.delete(made)
        super().tearDown()

    def make(self, path):
        """A cgroup that another program makes."""
        for hierarchy in self.machine.hierarchies:
            os.makedirs(hierarchy.mount + path, exist_ok=True)
        return path

    def make_bounded(self, path):
        """A pod's cgroup with values, as another manager of pods makes it."""
        top = pathlib.PurePosixPath(path)
        with subprocess.Popen(["/bin/sleep", "1000"]) as process:  # so that v2 has the controllers on the way
            self.machine.enter(process.pid, f"{path}/x")
            process.kill()
        self.machine.remove(f"{path}/x")
        for controller, old, new, value in (("memory", "memory.limit_in_bytes", "memory.max", str(300 * MI)),
                                            ("cpu", "cpu.cfs_quota_us", "cpu.max", "40000")):
            found = self.machine.hierarchy(controller)
            file = pathlib.Path(f"{found.mount}{top}", old if found.version == 1 else new)
            file.write_text(value, encoding="ascii")
        self.assertEqual((self.machine.read(path, "memory"), self.machine.read(path, "quota")), (300 * MI, 40000))
        return path

    def call(self, command, stdin=b""):
        done = patience.capture(command, stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr.decode()

    def try_place(self, made):
        """The complaint of the wrapper, under admit."""
        return self.call([str(harness.RUNTIME), "--config", self.config, "create", "--bundle", str(made.bundle.path),
                          made.id])

    def try_hook(self, made):
        return self.call([str(harness.HOOK), "--config", self.config, "createRuntime"],
                         json.dumps(made.state()).encode())

    def kubelets(self, manifest, parent, shares=1024):
        """A container that a kubelet has its engine make in a pod cgroup of its own."""
        made = self.container(manifest, "app")
        uid = manifest["metadata"]["uid"]
        made.bundle.annotations.update({"io.kubernetes.cri.sandbox-uid": uid, "io.kubernetes.cri.sandbox-id": f"s-{uid}",
                                        "io.kubernetes.cri.container-type": "container",
                                        "io.kubernetes.cri.container-name": "app"})
        made.bundle.config["linux"]["cgroupsPath"] = f"{parent}/pod{uid}/{made.id}"
        made.bundle.config["linux"]["resources"] = {
            "cpu": {"shares": shares, "quota": 100000, "period": 100000}, "memory": {"limit": 4 * GI}}
        # Of a Guaranteed pod; it tells what is requested, as annotations do not.
        made.bundle.config["process"]["oomScoreAdj"] = -997
        made.bundle.save()
        return made


class Tree(OwnershipCase):
    """The directory that holds nothing but podqos's pods has the shares of the node's CPU, whatever they request."""

    def test_made_by_podqos(self):
        burstable = self.create(self.container(BURSTABLE, "app"))
        self.assert_values(self.root, shares=16384, memory=None)  # 16 CPUs
        guaranteed = self.create(self.container(GUARANTEED, "app"))
        self.assert_values(self.root, shares=16384)
        self.delete(burstable)
        self.assert_values(self.root, shares=16384)
        effort = self.create(self.container(BESTEFFORT, "app"))
        self.delete(guaranteed)
        self.assert_values(self.root, shares=16384)
        self.assertEqual(self.podqos.ctl_json("status")["warnings"], [])
        self.assertRegex(self.podqos.ctl("status").stdout, rf"{self.root} +1 +0 ")
        self.delete(effort)
        self.assertFalse(self.machine.exists(self.root))

    def test_existed_before(self):
        self.make(self.root)
        before = self.machine.snapshot(self.root)
        made = self.create(self.container(BURSTABLE, "app"))
        self.assertEqual(self.machine.snapshot(self.root), before)
        self.check(made)
        self.delete(made)
        self.assertEqual(self.machine.snapshot(self.root), before)
        self.assertEqual(self.machine.leftovers(self.root), [])


class KubeletsRequests(OwnershipCase):
    """What a kubelet's pods request is not free for podqos's own."""

    def test_tiers_and_requests(self):
        own = self.create(self.container(BURSTABLE, "app"))
        self.assert_values(self.tier_path("burstable"), memory=32 * GI)
        theirs = self.kubelets(THEIRS, f"{self.elsewhere}/kubepods")
        self.create(theirs)
        self.assertEqual(os.path.dirname(machines.cgroup_of(theirs.process.pid)),
                         f"{self.elsewhere}/kubepods/podtheirs")
        self.assert_values(self.tier_path("burstable"), memory=28 * GI)
        self.assert_values(self.tier_path("besteffort"), memory=27 * GI)
        greedy = self.create(self.container(GREEDY, "app"))
        # All 16 CPUs, which is what one pod may claim, and the other pod's 350m.
        self.assert_values(self.tier_path("burstable"), shares=16_350 * 1024 // 1000, memory=28 * GI)
        self.assert_values(self.tier_path("besteffort"), memory=26 * GI)
        self.assertRegex(self.podqos.ctl("status").stdout, r"of a kubelet +1 +1 \(6%\) +4Gi ")
        self.assertEqual(self.podqos.ctl_json("status")["kubelets"],
                         {"pods": 1, "requests": {"cpuMilli": 1000, "memoryBytes": 4 * GI}})
        self.reconcile()
        self.assert_values(self.tier_path("besteffort"), memory=26 * GI)
        self.delete(theirs)
        self.assert_values(self.tier_path("burstable"), memory=32 * GI)
        self.assert_values(self.tier_path("besteffort"), memory=30 * GI)
        self.delete(greedy)
        self.delete(own)


class ForeignRoot(OwnershipCase):
    """A kubepods below cgroupRoot that another program made, which kills what it does not know in there."""

    def setUp(self):
        super().setUp()
        self.theirs = f"{self.root}/kubepods"
        self.paths = [self.make(f"{self.theirs}{below}") for below in ("", "/burstable", "/besteffort",
                                                                     "/burstable/podtheirs")]
        self.before = [self.machine.snapshot(path) for path in self.paths]
        self.killed = []
        self.stop = threading.Event()
        self.sweeper = threading.Thread(target=self.sweep)
        self.sweeper.start()
        self.addCleanup(self.end_sweeper)

    def sweep(self):
        while not self.stop.wait(0.005):
            for pid in self.machine.processes(self.theirs):
                self.killed.append(pid)
                os.kill(pid, signal.SIGKILL)

    def end_sweeper(self):
        self.stop.set()
        self.sweeper.join()

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.podqos.records(), [])
        self.assertEqual(self.killed, [])
        self.assertEqual([self.machine.snapshot(path) for path in self.paths], self.before)
        self.machine.sweep(self.root)

    def test_no_pod_is_made_in_it(self):
        made = self.container(BURSTABLE, "app")
        config = made.bundle.read()
        complaint = rf"pod burst.*cgroup {self.theirs} exists but was not created by podqos: set cgroupRoot"
        self.assertRegex(self.try_place(made), complaint)
        self.start(made)
        self.assertRegex(self.try_hook(made), complaint)
        self.assertEqual(made.bundle.read(), config)
        self.assertEqual(os.path.dirname(machines.cgroup_of(made.process.pid)), self.elsewhere)
        self.reconcile()
        self.assertIn(f"cgroup {self.theirs} exists but was not created by podqos",
                      self.podqos.ctl_json("status")["warnings"][0])


class ForeignPod(OwnershipCase):
    """A pod's cgroup that podqos did not make, at its root: it is neither used nor reset nor removed."""

    def test_container_in_it_counts_as_a_kubelets(self):
        """No pod of podqos's own is made of it, with or without other pods of podqos."""
        for own in (None, self.container(GUARANTEED, "app")):
            with self.subTest(beside_own=own is not None):
                if own:
                    self.create(own)
                theirs = self.make_bounded(self.pod_path("burstable", "burst"))
                before = self.machine.snapshot(theirs)
                refused = self.container(BURSTABLE, "app")
                config = refused.bundle.read()
                if own:
                    self.assertRegex(self.try_place(refused), rf"pod burst.*cgroup {theirs} exists but was not created by "
                                                              r"podqos: .*remove it")
                    self.assertEqual(refused.bundle.read(), config)
                made = self.container(BURSTABLE, "app")
                made.bundle.config["linux"]["cgroupsPath"] = f"{theirs}/{made.id}"
                made.bundle.save()
                self.start(made)
                self.assertEqual(self.try_hook(made), "")
                kubelets = {each["uid"]: each["kubeletsOwn"] for each in self.podqos.ctl_json("status")["pods"]}
                self.assertEqual(kubelets, {"burst": True, **({"guard": False} if own else {})})
                self.reconcile()
                self.assertEqual(self.machine.snapshot(theirs), before)
                self.delete(made)
                self.reconcile()
                if own:
                    self.delete(own)
                    self.reconcile()
                self.assertEqual(self.machine.snapshot(theirs), before)
                self.machine.remove(theirs)
                self.reconcile()
                # Without a pod of podqos's all of it was made by the other program.
                self.assertEqual(self.machine.exists(self.root), own is None)
                self.machine.sweep(self.root)


@unittest.skipUnless(guest.inside(), "makes /kubepods: only in a guest")
class HostsRoot(OwnershipCase):
    """cgroupRoot "/", the operator's word that no kubelet has its pods in /kubepods."""

    settings = {**player.Case.settings, "cgroupRoot": "/"}
    ROOT = "/kubepods"

    def setUp(self):
        super().setUp()
        self.truth.kubepods = self.ROOT

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.podqos.records(), [])
        self.remove_root()

    def remove_root(self):
        for folder in self.machine.leftovers(self.ROOT) + list(map(str, self.machine.directories(self.ROOT))):
            os.rmdir(folder)

    def tier_path(self, tier):
        return f"{self.ROOT}/{tier}"

    def test_root_of_a_kubelet(self):
        """The error says what to do; its pods are counted as anywhere else, and nothing of its tree changes."""
        theirs = self.kubelets(THEIRS, f"{self.ROOT}/burstable")
        path = self.make_bounded(f"{self.ROOT}/burstable/podtheirs")
        before = [self.machine.snapshot(each) for each in (self.ROOT, f"{self.ROOT}/burstable", path)]
        self.create(theirs)
        self.assertEqual([each["kubeletsOwn"] for each in self.podqos.ctl_json("status")["pods"]], [True])
        made = self.container(BURSTABLE, "app")
        self.assertRegex(self.try_place(made), r"pod burst.*cgroup /kubepods exists but was not created by podqos: set "
                                               r"cgroupRoot .*, or remove /kubepods \(rmdir\) if nothing uses it")
        self.reconcile()
        found = [self.machine.snapshot(each) for each in (self.ROOT, f"{self.ROOT}/burstable", path)]
        self.assertEqual(found, before)
        self.delete(theirs)


if __name__ == "__main__":
    harness.main(kinds=("runc",))
