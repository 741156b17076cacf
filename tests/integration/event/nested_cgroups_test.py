"""Containers that nest cgroups in their own by the thousand, or deeply, and whose runtime never comes back.

What an event does under the lock has a bound whatever they nest, and after enough events, or one reconciliation, all of
it is gone. Counted are system calls, for time depends on the machine.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import patience  # noqa: E402
from harness import container, pod  # noqa: E402

# A look at 256 cgroups, seven calls each, at most five times: does init's cgroup hold a process, does the pod's, does
# the child that is to be removed. The removal: 512 rmdir. The rest is what any poststop needs.
MOST_CALLS = 12_000
FLAT = "busybox mkdir $(busybox seq {count})"
DEEP = "busybox mkdir -p $(busybox seq -s / {count})"
POD = pod("nested", container("app", requests={"cpu": "100m"}))
OTHER = pod("other", container("app", requests={"cpu": "200m"}))


@harness.runc_only
@unittest.skipUnless(shutil.which("strace"), "needs strace")
class Nested(harness.TestCase):
    def nest(self, command):
        """A container that has nested cgroups in its own has been killed, and its runtime with it.

        Returns what poststop would be told.
        """
        bundle, name = self.bundle(POD, "app"), self.container_id("app")
        mount = next(m for m in bundle.config["mounts"] if m["destination"] == "/sys/fs/cgroup")
        mount["options"] = [option for option in mount["options"] if option != "ro"]
        own = "/sys/fs/cgroup" + ("/memory" if self.machine.version("memory") == 1 else "")
        bundle.config["process"]["args"] = [
            "sh", "-c", " && ".join([f"cd {own}", command, "echo done >/dev/told", "exec sleep 1000"])]
        pid = self.wrapper.launch(name, bundle.save())
        told = pathlib.Path(f"/proc/{pid}/root/dev/told")
        patience.expect(lambda: told.exists() and told.read_text(encoding="ascii"), "the container's cgroups")
        os.kill(pid, signal.SIGKILL)
        patience.expect(lambda: not os.path.exists(f"/proc/{pid}"), "the end of its init")
        shutil.rmtree(self.wrapper.root / name)
        self.wrapper.bundles.pop(name)
        return {"ociVersion": "1.0.2", "id": name, "status": "stopped", "bundle": str(bundle.path),
                "annotations": bundle.reload().annotations}

    def calls_of_poststop(self, state):
        """The number of system calls of this event."""
        trace = self.tmp / "strace"
        command = ["strace", "-f", "-qq", "-o", trace, harness.HOOK, "--config", self.podqos.config(), "poststop"]
        subprocess.run(command, input=json.dumps(state).encode(), check=True)
        with open(trace, encoding="utf-8", errors="replace") as lines:
            return sum(1 for _ in lines)

    def nested(self):
        """How many cgroups are below the pod's."""
        return len(self.machine.leftovers(self.pod_path("burstable", "nested")))

    def test_an_event_has_a_bound(self):
        state = self.nest(FLAT.format(count=8000))
        self.assertGreater(self.nested(), 8000)
        calls = self.calls_of_poststop(state)
        print(f"poststop: {calls} system calls", file=sys.stderr)
        self.assertLess(calls, MOST_CALLS)
        self.assertGreater(self.nested(), 0)
        # It counts no more, and the next pod is managed.
        name, pid = self.launch(OTHER, "app")
        self.assert_placed(pid, self.pod_path("burstable", "other"))
        self.assert_values(self.tier_path("burstable"), shares=204)
        self.podqos.ctl("reconcile")
        self.assertFalse(self.machine.exists(self.pod_path("burstable", "nested")))
        self.wrapper.delete(name)
        self.assert_nothing_left()

    def test_deeply(self):
        self.podqos.hook("poststop", self.nest(DEEP.format(count=400)))
        self.podqos.ctl("reconcile")
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
