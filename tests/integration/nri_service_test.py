"""podqos-nri.service: systemd takes the unit as it is shipped, and keeps the plugin running whatever becomes of it.

Here the package is built, and two guests are booted: this machine's systemd, and that of Debian 13. There this file
runs again, with the installed package and without a runtime.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402

UNIT = "podqos-nri.service"
PATIENCE = 60  # seconds for a start or a restart, which take one or two
KILLS = 7  # systemd gives up after five starts within ten seconds, unless a unit says otherwise
# The guest takes three seconds for what takes one elsewhere.
SLOWLY = "[Manager]\nDefaultStartLimitIntervalSec=600\n"


def systemctl(*words):
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False, timeout=PATIENCE)
    if done.returncode != 0:
        journal = subprocess.run(["journalctl", "--unit", UNIT, "--no-pager", "--lines=30"], capture_output=True,
                                 text=True, check=False, timeout=PATIENCE).stdout
        raise AssertionError(f"systemctl {words}: exit {done.returncode}\n{done.stdout}{done.stderr}{journal}")
    return done.stdout


class Service(unittest.TestCase):
    """In the guest."""

    def setUp(self):
        folder = pathlib.Path("/run/systemd/system.conf.d")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "slowly.conf").write_text(SLOWLY, encoding="ascii")
        systemctl("daemon-reload")

    def show(self, name):
        return systemctl("show", "--value", f"--property={name}", UNIT).strip()

    def wait_for_another(self, pid):
        """The pid of the plugin that has taken the place of `pid`."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            state, main = self.show("ActiveState"), int(self.show("MainPID"))
            self.assertNotEqual(state, "failed", f"systemd has given the plugin up: {self.show('Result')}")
            if state == "active" and main not in (0, pid):
                return main
            time.sleep(0.05)
        raise AssertionError(f"{UNIT} is {state} {PATIENCE} s after its process {pid} was killed")

    def test_systemd_knows_all_that_it_says(self):
        fragment = self.show("FragmentPath")
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", fragment], capture_output=True, text=True,
                              check=False, timeout=PATIENCE)
        said = [line for line in (done.stdout + done.stderr).splitlines() if UNIT in line]
        self.assertEqual((done.returncode, said), (0, []))

    def test_comes_back_however_often_it_ends(self):
        systemctl("start", UNIT)
        self.addCleanup(systemctl, "stop", UNIT)
        pid = self.wait_for_another(0)
        for _ in range(KILLS):
            os.kill(pid, signal.SIGKILL)
            pid = self.wait_for_another(pid)
        self.assertEqual(int(self.show("NRestarts")), KILLS)
        # Each as soon as the first: systemd never takes a delay back that has grown (systemd#43813), and meanwhile
        # containers are created without the plugin. Older ones than 254 know no such delay.
        self.assertIn(self.show("RestartSteps"), ("", "0"))


class Guests(unittest.TestCase):
    """Here."""

    def check(self, root):
        done = guest.Guest("systemd", root=root, timeout=300).run_test(__file__)
        print(done.stdout, flush=True)
        self.assertEqual(done.returncode, 0, f"in the guest with {root}'s systemd")

    def test_this_machines_systemd(self):
        self.check(guest.MACHINE)

    def test_debian_13(self):
        self.check("trixie")


if __name__ == "__main__":
    if guest.inside():
        del Guests
    else:
        del Service
    harness.main(("runc",))
