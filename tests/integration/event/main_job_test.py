"""The main job: containers of pods, started by a real runtime, live where Kubernetes would put them."""

import concurrent.futures
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
from harness import GI, MI, container, pod  # noqa: E402

GUARANTEED = pod("guaranteed-1", container("app", limits={"cpu": "100m", "memory": "64Mi"}))
BURSTABLE = pod(
    "burstable-1",
    container("app", requests={"cpu": "250m", "memory": "1Gi"}, limits={"cpu": "500m", "memory": "2Gi"}),
)
BESTEFFORT = pod("besteffort-1", container("app"))
TWO = pod(
    "two-1",
    container("web", requests={"cpu": "100m", "memory": "1Gi"}, limits={"cpu": "200m", "memory": "2Gi"}),
    container("log", limits={"cpu": "50m", "memory": "128Mi"}),
)


@harness.for_each_runtime
class Milestone(harness.TestCase):
    """One annotated bundle: the container lives below its pod, pod and tiers hold the values, and then all is gone."""

    def test_guaranteed(self):
        name, pid = self.launch(GUARANTEED, "app")
        path = self.pod_path("guaranteed", "guaranteed-1")
        self.assert_placed(pid, path)
        self.assert_values(path, shares=102, quota=10000, period=100000, memory=64 * MI)
        self.assert_values(self.tier_path("burstable"), shares=2, memory=32 * GI - 64 * MI)
        self.assert_values(self.tier_path("besteffort"), shares=2, memory=32 * GI - 64 * MI)
        self.assert_oom(pid, -997)
        self.wrapper.delete(name)
        self.assert_nothing_left()

    def test_burstable(self):
        name, pid = self.launch(BURSTABLE, "app")
        path = self.pod_path("burstable", "burstable-1")
        self.assert_placed(pid, path)
        self.assert_values(path, shares=256, quota=50000, period=100000, memory=2 * GI)
        self.assert_values(self.tier_path("burstable"), shares=256, quota=None, memory=32 * GI)
        self.assert_values(self.tier_path("besteffort"), shares=2, memory=31 * GI)
        self.assert_oom(pid, 969)  # 1000 - trunc(1000 * 1Gi / 32Gi)
        self.wrapper.delete(name)
        self.assert_nothing_left()

    def test_best_effort(self):
        name, pid = self.launch(BESTEFFORT, "app")
        path = self.pod_path("besteffort", "besteffort-1")
        self.assert_placed(pid, path)
        self.assert_values(path, shares=2, quota=None, memory=None)
        self.assert_values(self.tier_path("burstable"), shares=2, memory=32 * GI)
        self.assert_values(self.tier_path("besteffort"), shares=2, memory=32 * GI)
        self.assert_oom(pid, 1000)
        self.wrapper.delete(name)
        self.assert_nothing_left()

    def test_pods_of_all_classes_side_by_side(self):
        for manifest in (GUARANTEED, BURSTABLE, BESTEFFORT, TWO):
            self.launch(manifest, manifest["spec"]["containers"][0]["name"])
        self.assert_values(self.tier_path("burstable"), shares=256 + 153, memory=32 * GI - 64 * MI)  # 250m + 150m
        self.assert_values(self.tier_path("besteffort"), shares=2, memory=32 * GI - 64 * MI - 2 * GI - 128 * MI)


# What ioWeight becomes: in io.weight itself, in BFQ's range (1 to 1000), in that of CFQ (10 to 1000; 500 is its default).
IO_WEIGHTS = {
    500: {"io.weight": 500, "io.bfq.weight": 136, "blkio.bfq.weight": 136, "blkio.weight": 1000},
    100: {"io.weight": 100, "io.bfq.weight": 100, "blkio.bfq.weight": 100, "blkio.weight": 500},
    10: {"io.weight": 10, "io.bfq.weight": 10, "blkio.bfq.weight": 10, "blkio.weight": 50},
}


@harness.for_each_runtime
class IoWeight(harness.TestCase):
    """ioWeight: the tiers and each Guaranteed pod get their I/O weight, whichever file the kernel has for it."""

    settings = {"ioWeight": {"guaranteed": 500, "burstable": 100, "bestEffort": 10}}

    def files(self, path):
        """{file: weight} of a cgroup, as far as the kernel has the files."""
        controller = "blkio" if self.machine.version("blkio") == 1 else "io"
        read = {name: self.machine.file(path, controller, name) for name in IO_WEIGHTS[100]}
        return {name: int(text.splitlines()[0].removeprefix("default ")) for name, text in read.items() if text}

    def need_files(self):
        if not self.files(self.tier_path("burstable")):
            self.assertEqual(self.podqos.log_text().count("ioWeight has no effect"), 1)
            self.skipTest("the kernel weights no I/O: io.weight, io.bfq.weight, blkio.weight and blkio.bfq.weight lack")
        self.assertNotIn("ioWeight has no effect", self.podqos.log_text())

    def assert_weights(self, guaranteed, burstable, besteffort):
        wanted = {self.pod_path("guaranteed", "guaranteed-1"): guaranteed, self.tier_path("burstable"): burstable,
                  self.tier_path("besteffort"): besteffort, self.pod_path("burstable", "burstable-1"): 100}
        for path, weight in wanted.items():
            for name, found in self.files(path).items():
                self.assertEqual(found, IO_WEIGHTS[weight][name], f"{name} of {path}")

    def test_by_class_until_the_setting_goes(self):
        names = [self.launch(manifest, "app")[0] for manifest in (GUARANTEED, BURSTABLE)]
        self.need_files()
        self.assertTrue(self.files(self.pod_path("guaranteed", "guaranteed-1")))
        self.assert_weights(500, 100, 10)
        self.podqos.settings["ioWeight"] = {"burstable": 10}
        self.podqos.ctl("reconcile", kind=self.kind)
        self.assert_weights(100, 10, 100)
        del self.podqos.settings["ioWeight"]
        self.podqos.ctl("reconcile", kind=self.kind)
        self.assert_weights(100, 100, 100)
        for name in names:
            self.wrapper.delete(name)
        self.assert_nothing_left()

    def test_status_names_weights_that_others_changed(self):
        self.launch(GUARANTEED, "app")
        self.need_files()
        wanted = {self.pod_path("guaranteed", "guaranteed-1"): 500, self.tier_path("besteffort"): 10}
        self.assertNotIn("weight is", self.podqos.ctl("status", kind=self.kind).stdout)
        hierarchy = self.machine.hierarchy("blkio" if self.machine.version("blkio") == 1 else "io")
        for path, weight in wanted.items():
            for name in self.files(path):
                pathlib.Path(hierarchy.mount + path, name).write_text("77", encoding="ascii")
                self.assertIn(f"{name} is 77, the rule says {IO_WEIGHTS[weight][name]}",
                              self.podqos.ctl("status", kind=self.kind).stdout)
        self.podqos.ctl("reconcile", kind=self.kind)
        self.assertNotIn("weight is", self.podqos.ctl("status", kind=self.kind).stdout)

    def test_without_it_weights_are_left_alone(self):
        del self.podqos.settings["ioWeight"]
        self.podqos.config(self.kind)
        for manifest in (GUARANTEED, BURSTABLE):
            self.launch(manifest, "app")
        if not self.files(self.tier_path("burstable")):
            self.skipTest("nothing weights I/O in the tiers")
        self.assert_weights(100, 100, 100)
        name = next(iter(self.files(self.tier_path("burstable"))))
        hierarchy = self.machine.hierarchy(name.split(".", 1)[0])
        file = pathlib.Path(hierarchy.mount + self.tier_path("burstable"), name)
        file.write_text(str(IO_WEIGHTS[10][name]), encoding="ascii")
        self.podqos.ctl("reconcile", kind=self.kind)
        self.assertEqual(self.files(self.tier_path("burstable"))[name], IO_WEIGHTS[10][name])


@harness.for_each_runtime
class Lives(harness.TestCase):
    """The pod's cgroup lives as long as the first to the last of its containers, through restarts and failures."""

    def test_two_containers_share_one_pod(self):
        first, pid = self.launch(TWO, "web")
        path = self.pod_path("burstable", "two-1")
        values = {"shares": 153, "quota": 25000, "period": 100000, "memory": 2 * GI + 128 * MI}
        self.assert_values(path, **values)
        second, other = self.launch(TWO, "log")
        self.assertNotEqual(self.assert_placed(pid, path), self.assert_placed(other, path))
        self.assert_values(path, **values)
        self.assert_values(self.tier_path("burstable"), shares=153)
        self.wrapper.delete(first)
        self.assert_values(path, **values)
        self.assert_placed(other, path)
        self.wrapper.delete(second)
        self.assert_nothing_left()

    def test_container_restarts_in_a_living_pod(self):
        self.launch(TWO, "web")
        name, _ = self.launch(TWO, "log")
        self.wrapper.delete(name)
        _, pid = self.launch(TWO, "log")
        path = self.pod_path("burstable", "two-1")
        self.assert_placed(pid, path)
        self.assert_values(path, shares=153, memory=2 * GI + 128 * MI)
        self.assert_values(self.tier_path("burstable"), shares=153)

    def test_restart_with_the_same_bundle_and_id(self):
        name, bundle = self.container_id("again"), self.bundle(BURSTABLE, "app")
        paths = []
        for _ in range(3):
            pid = self.wrapper.launch(name, bundle)
            paths.append(self.assert_placed(pid, self.pod_path("burstable", "burstable-1")))
            self.wrapper.delete(name)
            self.assert_nothing_left()
        self.assertEqual(len(set(paths)), 1)

    def test_pod_restarts_with_other_resources(self):
        name, _ = self.launch(BURSTABLE, "app")
        self.wrapper.delete(name)
        bigger = pod("burstable-1", container("app", requests={"cpu": "1"}))
        _, pid = self.launch(bigger, "app")
        path = self.pod_path("burstable", "burstable-1")
        self.assert_placed(pid, path)
        self.assert_values(path, shares=1024, quota=None, memory=None)
        self.assert_values(self.tier_path("burstable"), shares=1024)

    def test_create_that_fails_leaves_nothing(self):
        bundle = self.bundle(BURSTABLE, "app", args=("/no/such/program",))
        done = self.wrapper.create(self.container_id("fails"), bundle, check=False)
        self.assertNotEqual(done.returncode, 0)
        if self.kind == "crun":
            self.podqos.ctl("reconcile", kind=self.kind)  # crun runs no poststop hook here: nobody tells podqos
        self.assert_nothing_left()

    def test_create_that_fails_beside_a_living_pod(self):
        self.launch(BURSTABLE, "app")
        failing = pod("fails-1", container("app", requests={"cpu": "1"}))
        self.wrapper.create(self.container_id("fails"), self.bundle(failing, "app", args=("/no/such",)), check=False)
        name, _ = self.launch(BESTEFFORT, "app")
        if self.kind == "crun":
            self.podqos.ctl("reconcile", kind=self.kind)  # as above
        self.assert_values(self.tier_path("burstable"), shares=256)
        self.assertFalse(self.machine.exists(self.pod_path("burstable", "fails-1")))
        self.wrapper.delete(name)

    def test_container_that_exits_by_itself(self):
        name, bundle = self.container_id("short"), self.bundle(BURSTABLE, "app", args=("sh", "-c", "exit 5"))
        self.assertEqual(self.wrapper.run(name, bundle, check=False).returncode, 5)
        self.assert_nothing_left()


@harness.for_each_runtime
class Verbs(harness.TestCase):
    """Every verb acts on the cgroup where podqos placed the container, and on no other."""

    def setUp(self):
        super().setUp()
        self.name, self.pid = self.launch(BURSTABLE, "app")
        self.pod = self.pod_path("burstable", "burstable-1")
        self.path = self.assert_placed(self.pid, self.pod)

    def test_exec_joins_it(self):
        pid = self.wrapper.exec_detached(self.name, "sleep", "1000")
        self.assertEqual(machines.cgroup_of(pid), self.path)

    def test_update_changes_it_alone(self):
        self.wrapper.update(self.name, {"cpu": {"shares": 300}, "memory": {"limit": GI}})
        self.assert_container_share(self.path, 300)
        self.assert_values(self.path, memory=GI)
        self.assert_values(self.pod, shares=256, memory=2 * GI)

    def test_pause_and_resume(self):
        self.wrapper.pause(self.name)
        self.assertTrue(self.frozen(self.path))
        self.assertEqual(self.wrapper.state(self.name)["status"], "paused")
        self.wrapper.resume(self.name)
        self.assertFalse(self.frozen(self.path))
        self.assertEqual(self.wrapper.state(self.name)["status"], "running")

    def test_kill_and_delete(self):
        self.wrapper.kill(self.name, "KILL")
        patience.wait_for(lambda: not machines.alive(self.pid), 10, f"process {self.pid} has ended")
        patience.wait_for(lambda: self.wrapper.state(self.name)["status"] == "stopped", 10, "the container has stopped")
        self.wrapper.delete(self.name, force=False)
        self.assert_nothing_left()


@harness.for_each_runtime
class ContainerValues(harness.TestCase):
    """What the engine did not set is filled in from the pod; what it set stays."""

    settings = {"podPidsLimit": 200}

    def test_filled_in(self):
        _, pid = self.launch(BURSTABLE, "app")
        path = self.assert_placed(pid, self.pod_path("burstable", "burstable-1"))
        self.assert_container_share(path, 256)
        self.assert_values(path, quota=50000, period=100000, memory=2 * GI, pids=200)
        self.assert_values(self.pod_path("burstable", "burstable-1"), pids=200)

    def test_each_container_its_own(self):
        _, pid = self.launch(TWO, "log")
        path = self.assert_placed(pid, self.pod_path("burstable", "two-1"))
        self.assert_container_share(path, 51)
        self.assert_values(path, quota=5000, memory=128 * MI)
        self.assert_oom(pid, 997)  # 1000 - trunc(1000 * 128Mi / 32Gi) = 1000 - 3

    def test_a_name_that_the_pod_lacks_is_told(self):
        bundle = self.bundle(TWO, "web")
        bundle.annotations["podqos.io/container"] = "wed"
        bundle.save()
        name = self.container_id("wed")
        self.wrapper.launch(name, bundle)
        self.assertIn('the pod\'s spec has no container "wed"', self.podqos.log_text())
        self.assertIn("one of web, log", self.podqos.log_text())
        self.wrapper.delete(name)

    def test_a_pod_known_by_its_sums_has_no_strangers(self):
        sums = {"podqos.io/requests": "cpu=100m", "podqos.io/limits": "cpu=1,memory=64Mi"}
        cri = "io.kubernetes.cri."
        for label, also in (("pause", {cri + "container-type": "sandbox"}),
                            ("web", {cri + "container-type": "container", cri + "container-name": "web"}),
                            ("log", {cri + "container-type": "container", cri + "container-name": "log"})):
            bundle = self.bundle(label=label)
            bundle.annotations.update({**sums, cri + "sandbox-uid": "sums-1", cri + "sandbox-id": "s1", **also})
            pid = self.wrapper.launch(self.container_id(label), bundle.save())
            self.assert_placed(pid, self.pod_path("burstable", "sums-1"))
        self.assert_values(self.pod_path("burstable", "sums-1"), shares=102, quota=100000, memory=64 * MI)
        for warning in ("spec has no container", "pod spec differs from the first container's"):
            self.assertNotIn(warning, self.podqos.log_text())

    def test_the_sandbox_is_not_the_only_container(self):
        bundle = self.bundle(BURSTABLE, "app", label="pause")
        cri = "io.kubernetes.cri."
        bundle.annotations.update({cri + "container-type": "sandbox",
                                   cri + "sandbox-uid": "burstable-1", cri + "sandbox-id": "s1"})
        bundle.resources["cpu"] = {"shares": 2}
        pid = self.wrapper.launch(self.container_id("pause"), bundle.save())
        path = self.assert_placed(pid, self.pod_path("burstable", "burstable-1"))
        self.assert_container_share(path, 2)
        self.assert_values(path, quota=None, memory=None, pids=None)
        self.assert_values(self.pod_path("burstable", "burstable-1"), shares=256, quota=50000, memory=2 * GI)

    def test_engine_values_stay(self):
        bundle = self.bundle(BURSTABLE, "app")
        bundle.resources["cpu"] = {"shares": 77, "quota": 20000, "period": 50000}
        bundle.resources.update({"memory": {"limit": 100 * MI}, "pids": {"limit": 9}})
        bundle.config["process"]["oomScoreAdj"] = 123
        pid = self.wrapper.launch(self.container_id("app"), bundle.save())
        path = self.assert_placed(pid, self.pod_path("burstable", "burstable-1"))
        self.assert_container_share(path, 77)
        self.assert_values(path, quota=20000, period=50000, memory=100 * MI, pids=9)
        self.assert_oom(pid, 123)

    def test_unlimited_by_the_engine_stays_unlimited(self):
        bundle = self.bundle(BURSTABLE, "app")
        bundle.resources.update({"memory": {"limit": -1}})
        if self.kind == "runc":  # crun 1.8 writes a quota of -1 as an unsigned number, which the kernel refuses
            bundle.resources.update({"cpu": {"quota": -1}})
        pid = self.wrapper.launch(self.container_id("app"), bundle.save())
        path = self.assert_placed(pid, self.pod_path("burstable", "burstable-1"))
        self.assert_values(path, quota=None if self.kind == "runc" else 50000, memory=None)

    def test_best_effort_has_no_limits(self):
        _, pid = self.launch(BESTEFFORT, "app")
        path = self.assert_placed(pid, self.pod_path("besteffort", "besteffort-1"))
        self.assert_container_share(path, 2)
        self.assert_values(path, quota=None, memory=None)


@harness.for_each_runtime
class AnotherRoot(harness.TestCase):
    """When cgroupRoot changes, living pods stay, and further ones join them until the last has ended."""

    def test_pods_stay_together(self):
        first, pid = self.launch(BURSTABLE, "app")
        path = self.assert_placed(pid, self.pod_path("burstable", "burstable-1"))
        self.podqos.settings["cgroupRoot"] = f"{self.root}/new"
        self.podqos.config(self.kind)
        second, pid = self.launch(TWO, "log")
        self.assert_placed(pid, self.pod_path("burstable", "two-1"))
        self.assertTrue(self.machine.exists(path))
        for name in (first, second):
            self.wrapper.delete(name)
        third, pid = self.launch(TWO, "log")
        self.assert_placed(pid, f"{self.root}/new/kubepods/burstable/podtwo-1")
        self.wrapper.delete(third)
        self.assert_nothing_left()


@harness.for_each_runtime
class CommandLine(harness.TestCase):
    """The wrapper reads the argv of an engine as the runtime itself does, and hands on what is not its own."""

    def setUp(self):
        super().setUp()
        self.made = self.bundle(BURSTABLE, "app")
        self.name = self.container_id("argv")

    def prefix(self):
        return [*self.wrapper.prefix, "--root", str(self.wrapper.root)]

    def check_placed(self):
        pid = self.plain.pid(self.name)
        self.assert_placed(pid, self.pod_path("burstable", "burstable-1"))
        self.plain.delete(self.name)
        self.assert_nothing_left()

    def test_relative_configuration(self):
        """The hooks that are registered with it run in another directory."""
        prefix = [*self.podqos.prefix(self.kind)]
        prefix[2] = os.path.relpath(prefix[2])
        self.wrapper.call(argv=[*prefix, "--root", str(self.wrapper.root), "create", "-b", self.made.path, self.name])
        record = self.podqos.ctl_json("status", kind=self.kind)["pods"][0]["containers"][0]
        self.assertEqual(record["state"], "live")
        self.check_placed()

    def test_bundle_flags(self):
        for flags in (("--bundle", self.made.path), (f"--bundle={self.made.path}",), ("-b", self.made.path)):
            with self.subTest(flags=flags):
                self.wrapper.call(argv=[*self.prefix(), "create", *flags, self.name])
                self.check_placed()

    def test_bundle_defaults_to_the_working_directory(self):
        self.wrapper.call(argv=[*self.prefix(), "create", self.name], cwd=self.made.path)
        self.check_placed()

    def test_relative_bundle(self):
        command = [*self.prefix(), "create", "-b", self.made.path.name, self.name]
        self.wrapper.call(argv=command, cwd=self.made.path.parent)
        self.check_placed()

    def test_run_detached(self):
        self.wrapper.run(self.name, self.made, "-d")
        self.check_placed()

    def test_as_containerd_calls_it(self):
        log, file = self.tmp / "runtime.log", self.tmp / "pid"
        flags = ["--log", log, "--log-format", "json"]
        verb = ["create", "--bundle", self.made.path, "--pid-file", file, self.name]
        self.wrapper.call(argv=[*self.prefix(), *flags, *verb])
        self.assertEqual(int(file.read_text(encoding="utf-8")), self.plain.pid(self.name))
        self.check_placed()

    def test_container_named_like_a_verb(self):
        self.name = "create"
        self.wrapper.call(argv=[*self.prefix(), "create", "--bundle", self.made.path, self.name])
        self.check_placed()

    def test_other_verbs_are_the_runtimes_own(self):
        before = self.made.read()
        calls = (["--version"], ["features"], ["no-such-verb"], ["list"], ["state", "no-such-container"],
                 ["delete", "no-such-container"], ["spec", "--help"])
        for args in calls:
            with self.subTest(args=args):
                ours = self.wrapper.call(*args, check=False)
                theirs = self.plain.call(*args, check=False)
                given = (ours.returncode, ours.stdout, _without_time(ours.stderr))
                self.assertEqual(given, (theirs.returncode, theirs.stdout, _without_time(theirs.stderr)))
        self.assertEqual(self.made.read(), before)
        self.assert_nothing_left()


class FullNode(harness.TestCase):
    """A node of one CPU, of which a pod has requested 700m. Another, of 400m, does not fit."""

    settings = {"nodeCpu": "1"}
    FIRST = pod("first-1", container("app", requests={"cpu": "700m"}))
    SECOND = pod("second-1", container("app", requests={"cpu": "400m"}))
    WARNING = r"pod second-1 requests cpu 400m, of which 300m counts: other pods have req"
    REFUSAL = (r"pod second-1: requests cpu 400m, of which 300m is free: 1 is allocatable, and other pods have 700m, "
               r"most of it pod first-1 with 700m; end pods, .* admission.cpu to .?\"warn")

    def setUp(self):
        super().setUp()
        self.first, _ = self.launch(self.FIRST, "app")

    def precreate(self, **options):
        bundle, name = self.bundle(self.SECOND, "app"), self.container_id("app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/libpod-{name}"
        bundle.save()
        return name, bundle, self.podqos.hook("precreate", bundle.read(), kind=self.kind, cwd=bundle.path, **options)

    def assert_counted(self, milli):
        """What the Burstable pods request, and the pods that are known."""
        [tree] = self.podqos.ctl_json("status")["trees"]
        self.assertEqual([t["requests"]["cpuMilli"] for t in tree["tiers"] if t["qosClass"] == "Burstable"], [milli])
        self.assertEqual(len(self.podqos.ctl_json("status")["pods"]), 1 if milli == 700 else 2)


@harness.for_each_runtime
class FullNodeWarns(FullNode):
    """admission "warn", the default."""

    def test_wrapper(self):
        self.launch(self.SECOND, "app")
        self.assert_counted(1000)
        self.assertRegex(self.podqos.log_text(), self.WARNING)
        self.assertIn("requests cpu 400m, of which 300m counts", self.podqos.ctl("status").stdout)
        self.wrapper.delete(self.first)
        self.assertNotIn("of which", self.podqos.ctl("status").stdout)

    def test_precreate(self):
        name, bundle, done = self.precreate()
        bundle.file.write_text(done.stdout, encoding="utf-8")
        self.plain.launch(name, bundle)
        self.assert_counted(1000)
        self.assertRegex(self.podqos.log_text(), self.WARNING)

    def test_off(self):
        self.podqos.settings["admission"] = {"cpu": "off"}
        self.podqos.config(self.kind)
        self.launch(self.SECOND, "app")
        self.assertNotIn("of which", self.podqos.ctl("status").stdout + self.podqos.log_text())


@harness.for_each_runtime
class FullNodeRefuses(FullNode):
    """admission "enforce", also under onError "admit"."""

    settings = {**FullNode.settings, "admission": {"cpu": "enforce"}, "onError": "admit"}

    def test_wrapper(self):
        before = self.podqos.state_bytes()
        bundle, name, log = self.bundle(self.SECOND, "app"), self.container_id("app"), self.tmp / "runtime.log"
        text = bundle.read()
        told = ("--log", log, "--log-format", "json", "create", "--bundle", bundle.path, name)
        done = self.wrapper.call(*told, check=False)
        self.assertEqual(done.returncode, 1)
        for said in (done.stderr, log.read_text(encoding="utf-8"), self.podqos.log_text()):
            self.assertRegex(said, self.REFUSAL)
        self.assertEqual(bundle.read(), text)
        self.assertEqual(self.podqos.state_bytes(), before)
        self.assertFalse(self.machine.exists(self.pod_path("burstable", "second-1")))
        self.assertNotEqual(self.plain.call("state", name, check=False).returncode, 0)
        self.assert_counted(700)
        self.wrapper.delete(self.first)
        self.wrapper.create(name, bundle)  # there is room now

    def test_precreate(self):
        before = self.podqos.state_bytes()
        _, _, done = self.precreate(check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, self.REFUSAL)
        self.assertEqual(self.podqos.state_bytes(), before)

    def test_pids(self):
        """podPidsLimit of each pod, of which the kernel has enough for one."""
        most = pathlib.Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii").strip()
        self.podqos.settings.update(admission={"pids": "enforce"}, podPidsLimit=int(most))
        self.podqos.config(self.kind)
        done = self.wrapper.create(self.container_id("app"), self.bundle(self.SECOND, "app"), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"podPidsLimit {most} for each of 2 pods is more than the node's {most} processes", done.stderr)
        self.assert_counted(700)

    def test_create_runtime_only_warns(self):
        bundle, name = self.bundle(self.SECOND, "app"), self.container_id("app")
        for stage in ("createRuntime", "poststop"):
            bundle.add_hook(stage, harness.HOOK, [*self.podqos.hook_command(self.kind), stage])
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/app"
        self.plain.launch(name, bundle.save())
        self.assert_counted(1000)
        self.assertRegex(self.podqos.log_text(), self.WARNING)

    def test_starts_again(self):
        """Also where a smaller node has become too small for it."""
        self.podqos.settings["nodeCpu"] = "500m"
        self.podqos.config(self.kind)
        other = self.bundle(self.FIRST, "app")
        os.kill(self.plain.pid(self.first), 9)
        name = self.container_id("app")
        self.wrapper.launch(name, other)
        self.assertEqual([p["uid"] for p in self.podqos.ctl_json("status")["pods"]], ["first-1"])

    def test_two_at_once(self):
        """Of ten pods that want the last 300m, 100m each, three get it."""
        small = container("app", requests={"cpu": "100m"})
        made = [(self.container_id("app"), self.bundle(pod(f"many-{n}", small), "app")) for n in range(10)]
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            done = list(pool.map(lambda one: self.wrapper.create(*one, check=False), made))
        self.assertEqual(sorted(d.returncode for d in done), [0] * 3 + [1] * 7, [d.stderr for d in done])
        [tree] = self.podqos.ctl_json("status")["trees"]
        self.assertEqual([t["requests"]["cpuMilli"] for t in tree["tiers"]], [0, 1000, 0])


def _without_time(text):
    """runc's log lines carry the time."""
    return [line.split(" level=", 1)[-1] for line in text.splitlines()]


if __name__ == "__main__":
    unittest.TestCase.longMessage = True
    harness.main()
