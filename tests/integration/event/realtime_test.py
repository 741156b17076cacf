"""A container with realtimeRuntime, which the kernel does not give it in a pod's cgroup of cgroup v1."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import oci  # noqa: E402
from harness import container, pod  # noqa: E402

POD = pod("realtime-1", container("app", limits={"cpu": "100m", "memory": "64Mi"}))
RUNTIME = 10_000  # of each second, in microseconds: a hundredth of a CPU


@harness.for_each_runtime
class Realtime(harness.TestCase):
    """A bundle that its engine places in a cgroup right below the root, which has realtime time to share. Under "admit" it
    runs there."""

    def setUp(self):
        super().setUp()
        if self.machine.version("cpu") != 1:
            self.skipTest("realtimeRuntime is for cgroup v1")
        if self.machine.file("/", "cpu", "cpu.rt_runtime_us") is None:
            self.skipTest("the kernel lacks CONFIG_RT_GROUP_SCHED")

    def realtime_bundle(self):
        bundle = self.bundle(POD, "app")
        bundle.config["linux"]["cgroupsPath"] = self.elsewhere
        return self.with_realtime(bundle)

    @staticmethod
    def with_realtime(bundle):
        bundle.resources["cpu"] = {**bundle.resources.get("cpu", {}), "realtimeRuntime": RUNTIME}
        return bundle.save()

    def assert_left_alone(self, pid, bundle, before):
        """The container runs as without podqos, which does not count it."""
        self.assertEqual(machines.cgroup_of(pid), self.elsewhere)
        self.assertEqual(self.machine.file(self.elsewhere, "cpu", "cpu.rt_runtime_us"), str(RUNTIME))
        self.assertEqual(bundle.read(), before)
        self.assert_nothing_left()

    def assert_told(self, text, name):
        for word in ("realtime-1", name, f"realtimeRuntime {RUNTIME}", "cgroup v1", "podqos.io/ignore"):
            self.assertIn(word, text)

    def test_a_pods_cgroup_has_none(self):
        """Why podqos leaves it: a new cgroup has no realtime time, and one below it cannot have any."""
        bundle, name = self.realtime_bundle(), self.container_id("app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/pod/{name}"
        done = self.plain.create(name, bundle.save(), check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cpu.rt_runtime_us", done.stderr)

    def test_is_left_alone(self):
        """By the wrapper, and by the hooks, for which the next start from the bundle would be another."""
        for runtime, prepare in ((self.wrapper, oci.Bundle.save), (self.plain, self.register_hooks)):
            bundle, name = self.realtime_bundle(), self.container_id("app")
            before = prepare(bundle).read()
            self.assert_left_alone(runtime.launch(name, bundle), bundle, before)
            self.assert_told(self.podqos.log_text(), name)
            runtime.delete(name)

    def test_precreate(self):
        bundle, name = self.realtime_bundle(), self.container_id("app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/libpod-{name}"
        before = bundle.save().read()
        done = self.podqos.hook("precreate", before, kind=self.kind, cwd=bundle.path)
        self.assertEqual(done.stdout.encode(), before)
        self.assert_told(done.stderr, name)
        self.assert_nothing_left()

    def test_a_bundle_that_podqos_has_placed(self):
        """What podqos filled in before would make it fail: the engine's own place counts."""
        bundle, name = self.bundle(POD, "app"), self.container_id("app")
        bundle.config["linux"]["cgroupsPath"] = self.elsewhere
        self.assert_placed(self.wrapper.launch(name, bundle.save()), self.pod_path("guaranteed", "realtime-1"))
        self.wrapper.delete(name)
        pid = self.wrapper.launch(name, self.with_realtime(bundle.reload()))
        self.assert_left_alone(pid, bundle, bundle.read())
        self.assertEqual(bundle.reload().resources["cpu"], {"realtimeRuntime": RUNTIME})

    def test_rejected(self):
        self.podqos.settings["onError"] = "reject"
        self.podqos.config(self.kind)
        bundle, name = self.realtime_bundle(), self.container_id("app")
        before = bundle.read()
        done = self.wrapper.create(name, bundle, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assert_told(done.stderr, name)
        self.assertEqual(bundle.read(), before)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
