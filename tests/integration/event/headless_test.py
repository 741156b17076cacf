"""A container that only seems to have ended."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402


HEADLESS = """
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *run(void *nothing) { for (;;) pause(); return nothing; }
int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, 0, run, 0) != 0) return 1;
  return (int)syscall(SYS_exit, 0);
}
"""


@unittest.skipUnless(shutil.which("gcc"), "needs gcc")
@harness.for_each_runtime
class HeadlessContainer(harness.TestCase):
    """A process lives until its last thread has ended; its first one may be a zombie long before."""

    UID = "headless"

    def bundle_of(self, label, *args):
        bundle = self.bundle(label=label, args=args)
        bundle.annotations.update({"podqos.io/pod-uid": self.UID, "podqos.io/container": label,
                                   f"podqos.io/limits.{label}": "cpu=100m,memory=64Mi"})
        return bundle

    def start(self):
        """A container whose first thread has ended while another runs."""
        programs = self.tmp / "programs"
        programs.mkdir(mode=0o755)
        source = self.tmp / "headless.c"
        source.write_text(HEADLESS, encoding="ascii")
        subprocess.run(["gcc", "-static", "-pthread", "-o", programs / "headless", source], check=True)
        bundle = self.bundle_of("app", "/tmp/headless")
        bundle.config["mounts"].append({"destination": "/tmp", "type": "bind", "source": str(programs),
                                        "options": ["bind", "ro"]})
        name = self.container_id("app")
        self.wrapper.create(name, bundle.save())
        pid = self.wrapper.pid(name)  # runc has none to tell later
        self.assertGreater(pid, 1)
        self.addCleanup(self.end, pid)
        self.wrapper.start(name)
        stat = pathlib.Path(f"/proc/{pid}/stat")
        while stat.read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        return name, pid

    @staticmethod
    def end(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def containers(self):
        record = json.loads((self.podqos.state / "pods" / f"{self.UID}.json").read_text(encoding="utf-8"))
        return {container["name"] for container in record["containers"]}

    def test_stays_in_its_pod_beside_the_next(self):
        name, pid = self.start()
        self.assertNotIn("has ended", self.podqos.ctl("reconcile").stdout)
        self.assertNotIn("not running", self.podqos.ctl("status").stdout)
        self.assertEqual(self.containers(), {"app"})
        second = self.container_id("helper")
        self.wrapper.launch(second, self.bundle_of("helper", "sleep", "1000").save())
        self.assertEqual(self.containers(), {"app", "helper"})
        self.assert_values(self.pod_path("burstable", self.UID), quota=20000, memory=128 * harness.MI)
        self.wrapper.delete(second)
        self.assertEqual(self.containers(), {"app"})
        self.end(pid)
        self.plain.delete(name)
        self.podqos.ctl("reconcile")
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
