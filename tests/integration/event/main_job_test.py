"""The main job: containers of pods, started by a real runtime, live where Kubernetes would put them."""

import concurrent.futures
import os
import pathlib
import signal
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

    def check_life(self, manifest, tier, values, burstable, besteffort, oom):
        """`burstable`: shares and memory of the tier, `besteffort` its memory."""
        name, pid = self.launch(manifest, "app")
        path = self.pod_path(tier, manifest["metadata"]["uid"])
        self.assert_placed(pid, path)
        self.assert_values(path, **values)
        self.assert_values(self.tier_path("burstable"), shares=burstable[0], quota=None, memory=burstable[1])
        self.assert_values(self.tier_path("besteffort"), shares=2, memory=besteffort)
        self.assert_oom(pid, oom)
        self.wrapper.delete(name)
        self.assert_nothing_left()

    def test_guaranteed(self):
        left = 32 * GI - 64 * MI
        self.check_life(GUARANTEED, "guaranteed", {"shares": 102, "quota": 10000, "period": 100000, "memory": 64 * MI},
                        (2, left), left, -997)

    def test_burstable(self):
        """1000 - trunc(1000 * 1Gi / 32Gi) is 969."""
        self.check_life(BURSTABLE, "burstable", {"shares": 256, "quota": 50000, "period": 100000, "memory": 2 * GI},
                        (256, 32 * GI), 31 * GI, 969)

    def test_best_effort(self):
        self.check_life(BESTEFFORT, "besteffort", {"shares": 2, "quota": None, "memory": None}, (2, 32 * GI), 32 * GI,
                        1000)


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

    def test_restart_with_the_same_bundle_and_id(self):
        name, bundle = self.container_id("again"), self.bundle(BURSTABLE, "app")
        paths = []
        for _ in range(3):
            pid = self.wrapper.launch(name, bundle)
            paths.append(self.assert_placed(pid, self.pod_path("burstable", "burstable-1")))
            self.wrapper.delete(name)
            self.assert_nothing_left()
        self.assertEqual(len(set(paths)), 1)

    def test_create_that_fails_leaves_nothing(self):
        bundle = self.bundle(BURSTABLE, "app", args=("/no/such/program",))
        done = self.wrapper.create(self.container_id("fails"), bundle, check=False)
        self.assertNotEqual(done.returncode, 0)
        if self.kind == "crun":
            self.podqos.ctl("reconcile", kind=self.kind)  # crun runs no poststop hook here: nobody tells podqos
        self.assert_nothing_left()

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
        self.expect_frozen(self.path, True)
        self.assertEqual(self.wrapper.state(self.name)["status"], "paused")
        self.wrapper.resume(self.name)
        self.expect_frozen(self.path, False)
        self.assertEqual(self.wrapper.state(self.name)["status"], "running")

    def test_kill_and_delete(self):
        self.wrapper.kill(self.name, "KILL")
        patience.expect(lambda: not machines.alive(self.pid), f"process {self.pid} has ended")
        patience.expect(lambda: self.wrapper.state(self.name)["status"] == "stopped", "the container has stopped")
        self.wrapper.delete(self.name, force=False)
        self.assert_nothing_left()


@harness.for_each_runtime
class ContainerValues(harness.TestCase):
    """What the engine did not set is filled in from the pod; what it set stays, but for CPU above the pod's."""

    settings = {"podPidsLimit": 200}

    def test_filled_in(self):
        _, pid = self.launch(BURSTABLE, "app")
        path = self.assert_placed(pid, self.pod_path("burstable", "burstable-1"))
        self.assert_container_share(path, 256)
        self.assert_values(path, quota=50000, period=100000, memory=2 * GI, pids=200)
        self.assert_values(self.pod_path("burstable", "burstable-1"), pids=200)

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

    def test_spellings_beside_each_other(self):
        """What the runtime makes of members that differ in case alone, is what the engine has set: Go merges them, crun
        passes over those that it does not know. Beside it the rest is filled in, also at a second start."""
        bundle = self.bundle(BURSTABLE, "app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/app"
        bundle.resources["cpu"] = {"shares": 77, "quota": 50000, "period": 100000}
        bundle.resources["CPU"] = {"Shares": 88}
        bundle.config["Linux"] = {"resources": {"pids": {}}}
        name, shares = self.container_id("app"), 88 if self.kind == "runc" else 77
        self.plain.launch(name, bundle.save())
        self.assert_container_share(f"{self.elsewhere}/app", shares)
        self.assert_values(f"{self.elsewhere}/app", quota=50000, period=100000)
        for _ in range(2):
            self.plain.delete(name)
            pid = self.wrapper.launch(name, bundle)
            path = self.assert_placed(pid, self.pod_path("burstable", "burstable-1"))
            self.assert_container_share(path, shares)
            self.assert_values(path, quota=50000, period=100000, memory=2 * GI, pids=200)

    def test_unlimited_by_the_engine_stays_unlimited(self):
        bundle = self.bundle(BURSTABLE, "app")
        bundle.resources.update({"memory": {"limit": -1}})
        if self.kind == "runc":  # crun 1.8 writes a quota of -1 as an unsigned number, which the kernel refuses
            bundle.resources.update({"cpu": {"quota": -1}})
        pid = self.wrapper.launch(self.container_id("app"), bundle.save())
        path = self.assert_placed(pid, self.pod_path("burstable", "burstable-1"))
        self.assert_values(path, quota=None if self.kind == "runc" else 50000, memory=None)

    def annotated_below(self, uid, **annotations):
        """A bundle of the engine's 1 CPU; the annotations ("limits.db" as limits_db) say less."""
        bundle = self.bundle(label=uid)
        bundle.annotations.update({f"podqos.io/{key.replace('_', '.')}": value for key, value in annotations.items()})
        bundle.annotations.update({"podqos.io/pod-uid": uid})
        bundle.resources["cpu"] = {"shares": 512, "quota": 100_000, "period": 100_000}
        return bundle.save()

    def test_lower_limit(self):
        """As of `docker run --cpus 1`: cgroup v1 refuses a container's quota above its pod's."""
        for uid, annotations in (("whole", {"limits": "cpu=250m"}),
                                 ("one", {"limits_db": "cpu=250m", "container": "db"})):
            bundle = self.annotated_below(uid, **annotations)
            path = self.assert_placed(self.wrapper.launch(self.container_id(uid), bundle),
                                      self.pod_path("burstable", uid))
            self.assert_values(path, quota=25_000)
            self.assert_values(self.pod_path("burstable", uid), quota=25_000)

    def test_lower_limit_of_the_pod(self):
        """A container that no annotation names, in a pod whose annotation is its first container's."""
        self.wrapper.launch(self.container_id("first"), self.annotated_below("pair", limits="cpu=250m"))
        path = self.assert_placed(self.wrapper.launch(self.container_id("second"), self.annotated_below("pair")),
                                  self.pod_path("burstable", "pair"))
        self.assert_values(path, quota=25_000)

    def test_quota_of_no_whole_millicpu(self):
        """As of `docker run --cpus 0.3333`. cgroup v1 refuses a quota above the pod's."""
        bundle = self.bundle()
        bundle.annotations["podqos.io/pod-uid"] = "third"
        bundle.resources["cpu"] = {"quota": 33_330, "period": 100_000}
        path = self.assert_placed(self.wrapper.launch(self.container_id("third"), bundle.save()),
                                  self.pod_path("burstable", "third"))
        self.assert_values(path, quota=33_330)
        self.assert_values(self.pod_path("burstable", "third"), quota=33_400)


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

    def test_bundle_defaults_to_the_working_directory(self):
        self.wrapper.call(argv=[*self.prefix(), "create", self.name], cwd=self.made.path)
        self.check_placed()

    def test_as_containerd_calls_it(self):
        log, file = self.tmp / "runtime.log", self.tmp / "pid"
        flags = ["--log", log, "--log-format", "json"]
        verb = ["create", "--bundle", self.made.path, "--pid-file", file, self.name]
        self.wrapper.call(argv=[*self.prefix(), *flags, *verb])
        self.assertEqual(int(file.read_text(encoding="utf-8")), self.plain.pid(self.name))
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


@harness.for_each_runtime
class FullNode(harness.TestCase):
    """A node of one CPU, of which a pod has requested 700m. Another, of 400m, does not fit."""

    settings = {"nodeCpu": "1", "admission": {"cpu": "enforce"}, "onError": "admit"}
    REFUSAL = (r"pod second-1: requests cpu 400m, of which 300m is free: 1 is allocatable, and other pods have 700m, "
               r"most of it pod first-1 with 700m; end pods, .* admission.cpu to .?\"warn")

    def test_refuses_until_there_is_room(self):
        first, _ = self.launch(pod("first-1", container("app", requests={"cpu": "700m"})), "app")
        before = self.podqos.state_bytes()
        name, log = self.container_id("app"), self.tmp / "runtime.log"
        bundle = self.bundle(pod("second-1", container("app", requests={"cpu": "400m"})), "app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/libpod-{name}"
        text = bundle.save().read()
        told = ("--log", log, "--log-format", "json", "create", "--bundle", bundle.path, name)
        done = self.wrapper.call(*told, check=False)
        hook = self.podqos.hook("precreate", text, check=False, kind=self.kind, cwd=bundle.path)
        self.assertEqual((done.returncode, hook.returncode, hook.stdout), (1, 1, ""))
        for said in (done.stderr, hook.stderr, log.read_text(encoding="utf-8"), self.podqos.log_text()):
            self.assertRegex(said, self.REFUSAL)
        self.assertEqual(bundle.read(), text)
        self.assertEqual(self.podqos.state_bytes(), before)
        events = [event for event in self.podqos.events() if event["event"] == "refused"]
        self.assertEqual([(event["program"], event["uid"]) for event in events],
                         [("podqos-runtime", "second-1"), ("podqos-hook", "second-1")])
        for event in events:
            self.assertRegex(event["text"], self.REFUSAL)
        self.assertFalse(self.machine.exists(self.pod_path("burstable", "second-1")))
        self.assertIsNone(self.plain.state(name))
        self.wrapper.delete(first)
        self.wrapper.create(name, bundle)

    def test_what_has_ended_is_not_in_the_way(self):
        """The first pod's process has ended, and its runtime was not told to delete the container."""
        first, process = self.launch(pod("first-1", container("app", requests={"cpu": "700m"})), "app")
        os.kill(process, signal.SIGKILL)
        patience.expect(lambda: not machines.alive(process), "the container's init has ended")
        name = self.container_id("app")
        self.wrapper.create(name, self.bundle(pod("second-1", container("app", requests={"cpu": "400m"})), "app"))
        self.assertEqual([each["uid"] for each in self.podqos.ctl_json("status")["pods"]], ["second-1"])
        self.wrapper.delete(first)

    def test_many_at_once(self):
        """Of ten pods that want a CPU, 300m each, three get it."""
        small = container("app", requests={"cpu": "300m"})
        made = [(self.container_id("app"), self.bundle(pod(f"many-{n}", small), "app")) for n in range(10)]
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            done = list(pool.map(lambda one: self.wrapper.create(*one, check=False), made))
        self.assertEqual(sorted(d.returncode for d in done), [0] * 3 + [1] * 7, [d.stderr for d in done])
        self.assert_values(self.tier_path("burstable"), shares=921)


def _without_time(text):
    """runc's log lines carry the time."""
    return [line.split(" level=", 1)[-1] for line in text.splitlines()]


if __name__ == "__main__":
    unittest.TestCase.longMessage = True
    harness.main()
