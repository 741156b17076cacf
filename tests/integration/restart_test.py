"""A pod's next container comes when the last one has hardly ended."""

import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402


@harness.for_each_runtime
class DyingContainer(harness.TestCase):
    """What a container left in its cgroup a moment ago ends while the next one of its pod comes, with less CPU."""

    def limited(self, label, cpu, quota):
        bundle = self.bundle(label=label)
        bundle.annotations.update({"podqos.io/pod-uid": "dying", "podqos.io/container": "app",
                                   "podqos.io/limits.app": f"cpu={cpu},memory=64Mi"})
        bundle.resources["cpu"] = {"quota": quota, "period": 100000}
        return bundle.save()

    def test_is_waited_for(self):
        first = self.container_id("first")
        path = machines.cgroup_of(self.wrapper.launch(first, self.limited("first", "300m", 30000)))
        straggler = subprocess.Popen(["sleep", "0.3"])
        self.addCleanup(straggler.wait)
        for directory in self.machine.directories(path):
            pathlib.Path(directory, "cgroup.procs").write_text(str(straggler.pid), encoding="ascii")
        self.plain.kill(first)
        while any(pid != straggler.pid for pid in self.machine.processes(path)):
            time.sleep(0.01)
        second = self.container_id("second")
        self.assert_placed(self.wrapper.launch(second, self.limited("second", "200m", 20000)),
                           self.pod_path("burstable", "dying"))
        self.assert_values(self.pod_path("burstable", "dying"), quota=20000)
        self.assertFalse(self.machine.exists(path))
        self.plain.delete(first)
        self.plain.delete(second)
        self.assert_nothing_left()


@harness.runc_only
class HalfGoneTree(harness.TestCase):
    """The last pod has ended, but a stranger keeps one of the tiers."""

    def test_next_pod_finds_whole_tiers(self):
        first, _ = self.launch(harness.pod("first", harness.container("app", requests={"cpu": "250m"})), "app")
        strangers = f"{self.tier_path('burstable')}/stranger"
        for directory in self.machine.directories(self.tier_path("burstable")):
            pathlib.Path(directory, "stranger").mkdir()
        self.wrapper.delete(first)
        self.assertTrue(self.machine.exists(strangers))
        self.assertFalse(self.machine.exists(self.tier_path("besteffort")))
        second, pid = self.launch(harness.pod("second", harness.container("app")), "app")
        self.assert_placed(pid, self.pod_path("besteffort", "second"))
        self.assert_values(self.tier_path("besteffort"), shares=2)
        for directory in self.machine.directories(strangers):
            pathlib.Path(directory).rmdir()
        self.wrapper.delete(second)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
