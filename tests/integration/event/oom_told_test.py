"""An OOM kill is told: which container, by whose memory limit, in the log when the container ends.

A container takes memory until it is killed. Expected is what the kernel does: the limit that is met is the one that the
test has made the lowest. The kernel logs at most ten kills in five seconds whole (mm/oom_kill.c, oom_rs), so that other
tests that have the kernel kill do not run beside this one, and of these no more than three begin in five seconds.
"""

import collections
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import patience  # noqa: E402
from harness import MI, container, pod  # noqa: E402

HOG = ("sh", "-c", "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done")
TOLD = "OOM-killed"
# When the last three tests began, each of which has up to three kills; another file's may have been just before the first.
BEGUN = collections.deque([time.monotonic()] * 3, maxlen=3)


class OomCase(harness.TestCase):
    """Pods of which a container is killed, through the wrapper and its hooks."""

    def setUp(self):
        super().setUp()
        time.sleep(max(0, BEGUN[0] + 5 - time.monotonic()))
        BEGUN.append(time.monotonic())

    def run_hog(self, manifest, cgroup=None):
        """A container that takes all memory until it is killed, and its end as its engine makes it; in between this
        cgroup gets a limit that is lower than the rule's."""
        identifier = self.container_id("app")
        self.wrapper.create(identifier, self.bundle(manifest, "app", HOG))
        if cgroup is not None:
            self.machine.write(cgroup, "memory", 32 * MI)
        self.wrapper.start(identifier)
        self.end(identifier)

    def end(self, identifier):
        """Once the container has ended, as its engine does."""
        patience.expect(lambda: self.wrapper.state(identifier)["status"] == "stopped", "the container has ended")
        self.wrapper.delete(identifier, force=False)

    def told(self):
        return [line.partition("]")[2] for line in self.podqos.log_text().splitlines() if TOLD in line]

    def assert_told(self, uid, words):
        """One warning says so, of this container."""
        lines = [line for line in self.told() if "warning" in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], rf"pod {uid}(| \(.*\)), container app \(.*\): {TOLD} ")
        self.assertIn(words, lines[0])


@harness.for_each_runtime
class Told(OomCase):
    def test_own_limit(self):
        self.run_hog(pod("own", container("app", {}, {"memory": "24Mi"}), container("other")))
        self.assert_told("own", "by its own limit (24Mi)")
        self.assertIn(f"returned to the tiers; processes of it were {TOLD}", self.told()[-1])

    def test_limit_of_the_pod(self):
        manifest = pod("whole", container("app", {}, {"memory": "64Mi"}))
        self.run_hog(manifest, self.pod_path("burstable", "whole"))
        self.assert_told("whole", "by the limit of its pod (32Mi); its pod had used up to 32Mi")

    def test_limit_of_the_tier(self):
        """Of two BestEffort pods one takes it all; the other one, which ends then, was not killed."""
        quiet, _ = self.launch(pod("quiet", container("app")), "app")
        self.run_hog(pod("hog", container("app")), self.tier_path("besteffort"))
        self.wrapper.kill(quiet)
        self.end(quiet)
        self.assert_told("hog", "by the limit of tier besteffort (32Mi)")

    def test_limit_of_the_root(self):
        """After the tier's was met by another pod."""
        self.run_hog(pod("first", container("app", {"memory": "16Mi"})), self.tier_path("burstable"))
        self.assert_told("first", "by the limit of tier burstable (32Mi)")
        self.podqos.log.unlink()
        self.run_hog(pod("hog", container("app", {"memory": "16Mi"})), f"{self.root}/kubepods")
        self.assert_told("hog", f"by the limit of all pods, {self.root}/kubepods (32Mi)")

    def test_beside_another(self):
        """Of two containers of a pod one is killed; the other one, which is ended by hand, was not."""
        manifest = pod("two", container("app", {}, {"memory": "24Mi"}), container("other", {}, {"memory": "48Mi"}))
        other, _ = self.launch(manifest, "other")
        self.run_hog(manifest)
        (shown,) = self.podqos.ctl_json("status")["pods"]
        self.assertIn(shown["oomKills"], (1, 2))  # memory.oom.group has the kernel count the first victim twice
        self.assertIn(f"{shown['oomKills']} {TOLD}", self.podqos.ctl("status").stdout)
        self.assertRegex(self.podqos.ctl("describe", "two").stdout, rf"oom-killed +{TOLD} by its own limit")
        self.wrapper.kill(other)
        self.end(other)
        self.assert_told("two", "by its own limit (24Mi)")

    def test_limit_that_has_changed_since(self):
        """The amount is that of the kill."""
        manifest = pod("changed", container("app", {}, {"memory": "64Mi"}))
        identifier = self.container_id("app")
        self.wrapper.create(identifier, self.bundle(manifest, "app", HOG))
        self.machine.write(self.pod_path("burstable", "changed"), "memory", 32 * MI)
        self.wrapper.start(identifier)
        patience.expect(lambda: self.wrapper.state(identifier)["status"] == "stopped", "the container has ended")
        self.machine.write(self.pod_path("burstable", "changed"), "memory", 48 * MI)
        self.end(identifier)
        self.assert_told("changed", "by the limit of its pod (32Mi)")

    def test_two_pods_at_once(self):
        """Each by its own."""
        hogs = [self.container_id("app") for _ in range(2)]
        for uid, identifier, limit in zip(("one", "two"), hogs, ("24Mi", "28Mi")):
            manifest = pod(uid, container("app", {}, {"memory": limit}), container("other"))
            self.wrapper.create(identifier, self.bundle(manifest, "app", HOG))
        for identifier in hogs:
            self.wrapper.start(identifier)
        for identifier in reversed(hogs):
            self.end(identifier)
        for uid, limit in (("one", "24Mi"), ("two", "28Mi")):
            (line,) = [line for line in self.told() if "warning" in line and f"pod {uid}" in line]
            self.assertIn(f"{TOLD} by its own limit ({limit})", line)

    def test_child_of_a_container_that_lives_on(self):
        """Ended by hand afterwards: what is told is the child's."""
        self.podqos.settings["singleProcessOOMKill"] = True
        self.podqos.config(self.kind)
        command = ("sh", "-c", "(x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done); exec sleep 1000")
        identifier = self.container_id("app")
        manifest = pod("parent", container("app", {}, {"memory": "24Mi"}), container("other"))
        self.wrapper.create(identifier, self.bundle(manifest, "app", command))
        self.wrapper.start(identifier)
        command_line = pathlib.Path(f"/proc/{self.wrapper.state(identifier)['pid']}/cmdline")
        patience.expect(lambda: command_line.read_bytes().startswith(b"sleep"), "the child has been killed")
        self.wrapper.kill(identifier)
        self.end(identifier)
        self.assert_told("parent", "by its own limit (24Mi)")

    def test_full_machine(self):
        """No limit is met: the settings promise more than the guest has."""
        if not guest.inside():
            self.skipTest("it takes all memory: in a guest alone")
        self.run_hog(pod("whole-node", container("app")))
        self.assert_told("whole-node", "as the node's memory was full")

    def test_killed_by_hand(self):
        identifier, _ = self.launch(pod("hand", container("app", {}, {"memory": "24Mi"})), "app")
        self.wrapper.kill(identifier)
        self.end(identifier)
        self.assertEqual(self.told(), [])


if __name__ == "__main__":
    harness.main()
