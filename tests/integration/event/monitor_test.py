"""chargeMonitor: the engine's process beside a pod's containers is the pod's."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
from harness import container, pod  # noqa: E402

POD = pod("monitored", container("app", requests={"cpu": "250m"}), container("side"))
OTHER = pod("other", container("app", requests={"cpu": "500m"}))
# What conmon and a shim do: start the runtime, stay beside the container. The kernel names a script after its file.
MONITOR = '#!/bin/sh\n"$@"\necho $? >"$0.status"\nexec 0<&- 1>&- 2>&-\nwhile :; do sleep 1000; done\n'


@harness.for_each_runtime
class Charged(harness.TestCase):
    settings = {"chargeMonitor": True}

    def start_monitor(self, label, name):
        """A program of that name that creates the container, and the container's pid."""
        directory = self.tmp / f"{label}-{name}"
        directory.mkdir()
        program = directory / name
        program.write_text(MONITOR, encoding="utf-8")
        program.chmod(0o755)
        bundle, ctr = self.bundle(POD, label), self.container_id(label)
        command = self.wrapper.command("create", "--bundle", str(bundle.path), ctr)
        process = subprocess.Popen([program, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(self.end, process)
        status = pathlib.Path(f"{program}.status")
        patience.expect(lambda: status.exists() and status.read_text(encoding="utf-8"), "the runtime's end")
        self.assertEqual(status.read_text(encoding="utf-8").strip(), "0")
        self.wrapper.start(ctr)
        return process, ctr, self.wrapper.pid(ctr)

    @staticmethod
    def end(process):
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()

    def test_goes_with_its_pod_and_does_not_hold_it(self):
        path, started = self.pod_path("burstable", "monitored"), []
        for label, name in (("app", "conmon"), ("side", "containerd-shim-runc-v2")):
            process, ctr, pid = self.start_monitor(label, name)
            self.assert_placed(pid, path)
            self.assertEqual(machines.cgroup_of(process.pid), f"{path}/podqos-monitor")
            self.assertIn(f"process {process.pid}", self.podqos.log_text())
            started.append((process, ctr))
        (first, app), (second, side) = started
        self.wrapper.delete(app)
        self.assertEqual(machines.cgroup_of(first.pid), f"{path}/podqos-monitor")
        self.wrapper.delete(side)
        # Both live on, as conmon does for a while: no longer in the pod's cgroup, which is gone.
        self.assertIsNone(first.poll())
        self.assertIsNone(second.poll())
        self.assert_nothing_left()

    def test_switched_off_while_a_pod_lives(self):
        """On cgroup v1 the hooks may then not move the monitor out: that is this pod's affair alone."""
        process, ctr, _ = self.start_monitor("app", "conmon")
        self.podqos.settings["chargeMonitor"] = False
        self.podqos.config(self.kind)
        self.wrapper.delete(ctr)
        self.assertIsNone(process.poll())
        before = len(self.podqos.log_text())
        for _ in range(2):
            other, pid = self.launch(OTHER, "app")
            self.assert_placed(pid, self.pod_path("burstable", "other"))
            self.assert_values(self.tier_path("burstable"), shares=512)
            self.wrapper.delete(other)
        self.assertNotIn("restoring all", self.podqos.log_text()[before:])
        self.podqos.ctl("reconcile")
        self.assertIsNone(process.poll())
        self.assert_nothing_left()

    def test_moves_no_other_parent_and_none_unasked(self):
        before = machines.cgroup_of(os.getpid())
        for name, is_charged in (("bash", True), ("conmon", False)):
            self.podqos.settings["chargeMonitor"] = is_charged
            self.podqos.config(self.kind)
            process, ctr, pid = self.start_monitor("app", name)
            self.assert_placed(pid, self.pod_path("burstable", "monitored"))
            self.assertEqual(machines.cgroup_of(process.pid), before)
            self.wrapper.delete(ctr)
            self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
