"""`podqosctl resize`: pod, containers and tiers by one command, with the runtime's own `update`, all or nothing."""

import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest
from concurrent import futures

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import oci  # noqa: E402
import patience  # noqa: E402
from harness import MI, container, pod  # noqa: E402
from systemd_driver import SystemdDriver  # noqa: E402

NODE = 32 << 30  # nodeMemory of the harness, where qosReserved is 100 %
SMALL = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
TWO = pod("resized", container("app", **SMALL), container("log", **SMALL))
TWICE = ("--requests", "cpu=200m,memory=96Mi", "--limits", "cpu=400m,memory=192Mi")
HALF = ("--requests", "cpu=50m,memory=32Mi", "--limits", "cpu=100m,memory=64Mi")


class Resizes:
    """Expected values follow from the kubelet's formulas: shares are milliCPU * 1024 / 1000, a quota milliCPU * 100."""

    settings = {"admission": {"memory": "enforce", "cpu": "enforce"}}

    def use_driver(self):
        """cgroupfs is what runtimes use unless told otherwise."""

    def setUp(self):
        super().setUp()
        self.use_driver()
        self.pod = self.pod_path("burstable", "resized")

    def place(self, manifest, name, **options):
        """Starts a container of the pod; returns (id, its cgroup)."""
        identifier, pid = self.launch(manifest, name, **options)
        return identifier, machines.cgroup_of(pid)

    def resize(self, *args, check=True, root=True):
        """podqosctl resize; the runtime has a --root of its own."""
        rooted = ("--runtime-root", self.plain.root) if root else ()
        return self.podqos.ctl("resize", "resized", *args, *rooted, check=check, kind=self.kind)

    def values(self):
        """All that a resize may change, in the kernel and in the records."""
        paths = [self.pod, self.tier_path("burstable"), self.tier_path("besteffort")]
        top = pathlib.Path(self.machine.hierarchy("cpu").mount + self.pod)
        paths += [f"{self.pod}/{path.name}" for path in sorted(top.iterdir()) if path.is_dir()]
        held = {path: [self.machine.share(path), *(self.machine.read(path, what) for what in ("quota", "memory"))]
                for path in paths}
        return held, [self.podqos.ctl_json("status", kind=self.kind)["pods"][0][what] for what in ("requests", "limits")]

    def assert_container(self, path, milli, memory):
        """With requests and limits in the proportion of SMALL."""
        self.assert_container_share(path, milli * 1024 // 1000)
        self.assert_limits(path, 2 * milli, memory)

    def assert_limits(self, path, milli, memory):
        """crun 1.8 sets those of a scope in a cgroup of its own below it."""
        deep = self.kind == "crun" and path.endswith(".scope") and self.machine.exists(f"{path}/container")
        self.assert_values(f"{path}/container" if deep else path, quota=milli * 100, memory=memory)

    def assert_pod(self, milli, memory, requested):
        """The pod's sum of requested CPU, of which its limit is twice as much, its memory limit and request."""
        self.assert_values(self.pod, shares=milli * 1024 // 1000, quota=milli * 200, memory=memory)
        self.assert_values(self.tier_path("burstable"), shares=milli * 1024 // 1000, memory=NODE)
        self.assert_values(self.tier_path("besteffort"), shares=2, memory=NODE - requested)

    def assert_refused(self, words, *args, **options):
        """Nothing is changed, and the error says why."""
        before = self.values()
        done = self.resize(*args, check=False, **options)
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(self.values(), before)
        for word in words:
            self.assertIn(word, done.stderr)
        return done.stderr

    def assert_agrees(self, name, memory, quota):
        """runc's own state has the values; crun keeps none."""
        if self.kind == "runc":
            state = json.loads((self.plain.root / name / "state.json").read_text(encoding="utf-8"))
            held = state["config"]["cgroups"]
            self.assertEqual((held["memory"], held["cpu_quota"]), (memory, quota))

    def test_up_and_down(self):
        """The runtime alone does not reach the pod, and cgroup v1 refuses it a quota above the pod's."""
        name, app = self.place(TWO, "app")
        _, log = self.place(TWO, "log")
        self.assert_pod(200, 256 * MI, 128 * MI)
        alone = self.plain.update(name, {"cpu": {"quota": 80_000, "period": 100_000}}, check=False)
        self.assertEqual(alone.returncode != 0, self.machine.version("cpu") == 1)
        self.plain.update(name, {"cpu": {"quota": 20_000, "period": 100_000}, "memory": {"limit": 300 * MI}})
        self.assert_pod(200, 256 * MI, 128 * MI)
        self.plain.update(name, {"memory": {"limit": 128 * MI}})

        self.resize("--container", "app", *TWICE)
        self.assert_container(app, 200, 192 * MI)
        self.assert_container(log, 100, 128 * MI)
        self.assert_pod(300, 320 * MI, 160 * MI)
        self.assert_agrees(name, 192 * MI, 40_000)

        done = json.loads(self.resize("--container", "app", *HALF, "-o", "json").stdout)
        self.assertEqual(done, {"engine": "", "namespace": "", "name": "", "uid": "resized", "container": "app",
                                "changed": True,
                                "requests": {"cpuMilli": 50, "memoryBytes": 32 * MI},
                                "limits": {"cpuMilli": 100, "memoryBytes": 64 * MI}})
        self.assert_container(app, 50, 64 * MI)
        self.assert_pod(150, 192 * MI, 96 * MI)
        self.assert_agrees(name, 64 * MI, 10_000)

        self.assertIn("nothing to change", self.resize("--container", "app", *HALF).stdout)
        resized = [event["text"] for event in self.podqos.events() if event["event"] == "resized"]
        self.assertEqual(resized, [
            "resized: cpu request 200m → 300m, cpu limit 400m → 600m, memory request 128Mi → 160Mi, "
            "memory limit 256Mi → 320Mi",
            "resized: cpu request 300m → 150m, cpu limit 600m → 300m, memory request 160Mi → 96Mi, "
            "memory limit 320Mi → 192Mi"])
        report = self.podqos.ctl_json("reconcile", kind=self.kind)
        self.assertEqual((report["changes"], report["warnings"], report["failed"]), ([], [], []))

    def test_one_at_a_time(self):
        """Another one waits: while runtimes are told, the lock of the state is free."""
        _, app = self.place(TWO, "app")
        with (self.podqos.state / "resize.lock").open("a", encoding="ascii") as file, futures.ThreadPoolExecutor() as pool:
            fcntl.flock(file, fcntl.LOCK_EX)
            waiter = re.compile(rf"-> FLOCK .*:{os.fstat(file.fileno()).st_ino} ")
            done = pool.submit(self.resize, "--container", "app", *TWICE)
            patience.expect(lambda: waiter.search(pathlib.Path("/proc/locks").read_text(encoding="ascii")), "the resize waits")
            self.assert_container(app, 100, 128 * MI)
            fcntl.flock(file, fcntl.LOCK_UN)
            done.result()
        self.assert_container(app, 200, 192 * MI)

    def burst(self, path):
        name = "cpu.cfs_burst_us" if self.machine.version("cpu") == 1 else "cpu.max.burst"
        deep = f"{path}/container"
        return int(self.machine.file(deep if self.machine.exists(deep) else path, "cpu", name))

    def test_bursts_follow(self):
        """The kernel refuses a quota below the burst: kernel/sched/core.c tg_set_cfs_bandwidth()."""
        name, app = self.place(TWO, "app")
        self.resize("--container", "app", *TWICE)
        self.assertEqual([self.burst(path) for path in (app, self.pod)], [0, 0])
        self.wrapper.delete(name)

        self.podqos.settings["cpuBurst"] = {"burstable": "100%"}
        self.podqos.config(self.kind)
        name, app = self.place(TWO, "app")
        _, log = self.place(TWO, "log")
        self.assertEqual([self.burst(path) for path in (app, log, self.pod)], [20_000, 20_000, 40_000])
        refused = self.plain.update(name, {"cpu": {"quota": 10_000, "period": 100_000}}, check=False)
        self.assertNotEqual(refused.returncode, 0)
        for amounts, memory, quota in ((TWICE, 192 * MI, 40_000), (HALF, 64 * MI, 10_000)):
            self.resize("--container", "app", *amounts)
            self.assert_agrees(name, memory, quota)
            self.assertEqual([self.burst(path) for path in (app, log, self.pod)], [quota, 20_000, quota + 20_000])
        self.assert_refused(["refused for a test", "taken back"], "--container", "app", *TWICE,
                            *self.runtime_that_refuses("--cpu-quota=40000"))
        self.assertEqual([self.burst(path) for path in (app, log, self.pod)], [10_000, 20_000, 30_000])
        self.assertEqual(self.podqos.ctl_json("reconcile", kind=self.kind)["changes"], [])

    def test_one_up_one_down(self):
        """Memory of less and CPU of more, so that neither order alone would do."""
        _, app = self.place(TWO, "app")
        self.resize("--container", "app", "--requests", "cpu=200m,memory=32Mi", "--limits", "cpu=400m,memory=64Mi")
        self.assert_container(app, 200, 64 * MI)
        self.assert_pod(300, 192 * MI, 96 * MI)

    def test_a_container_that_its_engine_describes(self):
        """Its limits are those of linux.resources; reconcile sees no difference to the runtime's."""
        bundle = self.bundle(label="plain")
        bundle.annotations.update({"podqos.io/pod-uid": "resized", "podqos.io/container": "app"})
        bundle.resources.update({"cpu": {"shares": 102, "quota": 20_000, "period": 100_000},
                                 "memory": {"limit": 128 * MI}})
        name = self.container_id("plain")
        app = machines.cgroup_of(self.wrapper.launch(name, bundle.save()))
        self.podqos.ctl("resize", "resized/app", "--limits", "cpu=400m,memory=192Mi", "--requests", "cpu=200m",
                        "--runtime-root", self.plain.root, kind=self.kind)
        self.assert_container(app, 200, 192 * MI)
        self.assert_values(self.pod, shares=204, quota=40_000, memory=192 * MI)
        report = self.podqos.ctl_json("reconcile", kind=self.kind)
        self.assertEqual((report["changes"], report["warnings"], report["failed"]), ([], [], []))

    def test_where_runtimes_keep_their_state(self):
        """Without --root; no engine is known to have the container, so that none is to be told."""
        name = self.container_id("app")
        bundle = self.bundle(TWO, "app")
        runtime = oci.runtime_path(self.kind)
        self.addCleanup(oci.call, [runtime, "delete", "--force", name], False)
        for args in (("create", "--bundle", bundle.path, name), ("start", name)):
            self.wrapper.call(argv=[*self.wrapper.prefix, *args])
        self.assertEqual(self.resize("--container", "app", *TWICE, root=False).stderr, "")
        self.assert_pod(300, 320 * MI, 160 * MI)

    def engine_bundle(self, **annotations):
        """A bundle where Docker has them, whose container Docker limits to 200m and 128Mi."""
        name = self.container_id("app")
        made = oci.Bundle(self.tmp / "moby" / name, self.kind)
        made.annotations.update({"podqos.io/pod-uid": "resized", "podqos.io/container": "app", **annotations})
        made.resources.update({"cpu": {"quota": 20_000, "period": 100_000},
                               "memory": {"limit": 128 * MI, "swap": 256 * MI}})
        self.wrapper.launch(name, made.save())
        return name, f"docker update --cpus 0.400 --memory {192 * MI} --memory-swap {320 * MI} {name}"

    def test_limits_of_its_engine(self):
        """They are the ones that count at a restart, and are told the whole command."""
        _, update = self.engine_bundle()
        said = self.resize("--limits", "cpu=400m,memory=192Mi").stderr
        self.assertIn(update, said)
        self.assertNotIn("annotations", said)

    def test_limits_of_annotations(self):
        """They count again at a restart; Docker has limits of its own beside them, or none."""
        name, update = self.engine_bundle(**{"podqos.io/requests": "cpu=50m,memory=64Mi"})
        said = self.resize("--limits", "cpu=400m,memory=192Mi").stderr
        self.assertIn("annotations", said)
        self.assertIn(update, said)
        self.wrapper.delete(name)
        made = oci.Bundle(self.tmp / "moby" / "annotated", self.kind)
        made.annotations.update(self.podqos.annotations(TWO, "app"))
        self.wrapper.launch(self.container_id("app"), made.save())
        said = self.resize("--container", "app", *TWICE).stderr
        self.assertIn("annotations", said)
        self.assertNotIn("docker update", said)

    def test_refusals(self):
        name, _ = self.place(TWO, "app")
        self.place(TWO, "log")
        self.assertEqual(self.resize(check=False).returncode, 2)
        self.assert_refused(["--container: app, log"], *TWICE)
        said = self.podqos.ctl("resize", "resizde/app", *TWICE, check=False, kind=self.kind).stderr
        self.assertIn('"resizde/app" not found; did you mean resized/app?', said)
        said = self.podqos.ctl("resize", "resized/log", "--container", "app", *TWICE, check=False, kind=self.kind).stderr
        self.assertIn("is container log, but --container is app", said)
        self.assert_refused(["no container web can be resized"], "--container", "web", *TWICE)
        self.assert_refused(["exceeds the limit"], "--container", "app", "--requests", "cpu=300m")
        self.assert_refused(["only cpu and memory"], "--container", "app", "--limits", "hugepages-2Mi=4Mi")
        self.assert_refused(["requests memory", "is allocatable"], "--container", "app", "--requests", "memory=40Gi",
                            "--limits", "memory=40Gi")
        words = ["--runtime", "--runtime-root", name]
        self.assert_refused(words, "--container", "app", *TWICE, root=False)
        self.plain.exec(name, "dd", "if=/dev/zero", "of=/dev/shm/held", "bs=1M", "count=40")
        self.assert_refused(["memory limit 48Mi is too low", "in use"], "--container", "app", "--requests",
                            "memory=48Mi", "--limits", "memory=48Mi")

    def runtime_that(self, words, does):
        """The real runtime, except for an `update` whose arguments contain `words`: then a shell does this."""
        script = self.tmp / "runtime-that"
        script.write_text(f'#!/bin/sh\ncase "$*" in *{words}*) {does} ;; esac\n'
                          f'exec {oci.runtime_path(self.kind)} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        return "--runtime", script

    def runtime_that_refuses(self, words):
        return self.runtime_that(words, 'echo "refused for a test" >&2; exit 1')

    def test_a_runtime_that_fails(self):
        """Memory has been changed when its update of CPU fails; both are as they were then."""
        self.place(TWO, "app")
        self.place(TWO, "log")
        fails = self.runtime_that_refuses("--cpu-quota=40000")
        said = self.assert_refused(["refused for a test", "taken back"], "--container", "app", *TWICE, *fails)
        self.assertNotIn("not all", said)
        self.resize("--container", "app", *TWICE, *self.runtime_that_refuses("--cpu-quota=10000"))
        self.assert_pod(300, 320 * MI, 160 * MI)
        self.assert_refused(["refused for a test", "taken back"], "--container", "app", *HALF,
                            *self.runtime_that_refuses("--cpu-quota=10000"))

    def test_a_kill_in_between(self):
        """podqosctl is killed while the runtime changes the container, or before: a reconciliation settles it."""
        _, app = self.place(TWO, "app")
        self.place(TWO, "log")
        for words, pod_now, app_now in (("--memory=", (200, 256 * MI, 128 * MI), (100, 128 * MI)),
                                        ("--cpu-quota=40000", (200, 320 * MI, 160 * MI), (100, 192 * MI))):
            waits = self.runtime_that(words, f"echo $$ >{self.tmp}/pid; mv {self.tmp}/pid {self.tmp}/reached; exec sleep 1000")
            command = [harness.CTL, "--config", self.podqos.config(self.kind), "resize", "resized", "--container", "app",
                       *map(str, (*TWICE, *waits, "--runtime-root", self.plain.root))]
            with subprocess.Popen(command) as process:
                patience.expect((self.tmp / "reached").exists, "the runtime is called")
                runtime = int((self.tmp / "reached").read_text(encoding="ascii"))
                try:
                    # Whatever comes in between, the pod has all that its container may get, while the runtime works.
                    self.podqos.ctl("reconcile", kind=self.kind)
                    self.assert_pod(300, 320 * MI, 160 * MI)
                    process.kill()
                    process.wait()
                    self.podqos.ctl("reconcile", kind=self.kind)
                    self.assert_pod(300, 320 * MI, 160 * MI)
                finally:
                    process.kill()
                    os.kill(runtime, signal.SIGKILL)
            patience.expect(lambda: not machines.alive(runtime), "the runtime has ended")
            (self.tmp / "reached").unlink()
            report = self.podqos.ctl_json("reconcile", kind=self.kind)
            self.assertEqual(len([each for each in report["changes"] if "resize that was interrupted" in each]), 1, report)
            self.assert_pod(*pod_now)
            self.assert_container(app, *app_now)
            again = self.podqos.ctl_json("reconcile", kind=self.kind)
            self.assertEqual((again["changes"], again["warnings"], again["failed"]), ([], [], []))

    def test_the_second_of_two_containers_fails(self):
        """Both are bounded by the pod's own limits, which change; the first has them when the second refuses."""
        shared = pod("resized", container("app"), container("log"),
                     resources={"requests": {"cpu": "200m"}, "limits": {"cpu": "400m", "memory": "256Mi"}})
        _, app = self.place(shared, "app")
        second, log = self.place(shared, "log")
        for path in (app, log):
            self.assert_limits(path, 400, 256 * MI)
        self.assert_refused(["Burstable to Guaranteed"], "--requests", "cpu=400m,memory=256Mi")
        wanted = ("--requests", "memory=128Mi", "--limits", "memory=128Mi,cpu=300m")
        fails = self.runtime_that_refuses(f"--memory={128 * MI}*{second}")
        said = self.assert_refused(["refused for a test", "taken back", second], *wanted, *fails)
        self.assertNotIn("not all", said)
        self.resize(*wanted)
        for path in (self.pod, app, log):
            self.assert_limits(path, 300, 128 * MI)


@harness.for_each_runtime
class Resize(Resizes, harness.TestCase):
    """With the cgroupfs driver."""


@harness.for_each_runtime
@unittest.skipUnless(os.path.isdir("/run/systemd/system"), "systemd does not run this machine")
class ResizeOnSystemd(SystemdDriver, Resizes, harness.TestCase):
    """With systemd's, which is told of pod and tiers."""


if __name__ == "__main__":
    harness.main()
