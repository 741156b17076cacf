"""The units: systemd takes them as they are shipped, keeps the plugin running whatever becomes of it, and reconciles
once a minute, without a word if there is nothing to do.

Here the package is built, and two guests are booted: this machine's systemd, and that of Debian 13. There this file
runs again, with the installed package and without a runtime.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import oci  # noqa: E402
import patience  # noqa: E402

UNIT = "podqos-nri.service"
RECONCILE, TIMER = "podqos-reconcile.service", "podqos-reconcile.timer"
METRICS, METRICS_TIMER = "podqos-metrics.service", "podqos-metrics.timer"
TEXTFILE = pathlib.Path("/var/lib/prometheus/node-exporter/podqos.prom")
# The most that `systemd-analyze security` may count against a service, in tenths: of the plugin 2 for the kernel's log and
# 1 for the capability that reading it needs.
EXPOSURES = {"podqos-nri.service": "21", "podqos-reconcile.service": "20", "podqos-metrics.service": "20"}
PORT = 9464
CONFIGURATION = pathlib.Path("/etc/podqos/podqos.json")
DROP_IN = pathlib.Path("/etc/systemd/system/podqos-nri.service.d/metrics-over-tcp.conf")
KILLS = 7  # systemd gives up after five starts within ten seconds, unless a unit says otherwise
# The guest takes three seconds for what takes one elsewhere.
SLOWLY = "[Manager]\nDefaultStartLimitIntervalSec=600\n"


def journal(unit):
    """What the journal has of a unit, systemd's own lines included."""
    subprocess.run(["journalctl", "--sync"], check=True)
    return subprocess.run(["journalctl", "--unit", unit, "--no-pager", "--quiet", "--output=cat"], capture_output=True,
                          text=True, check=True).stdout


def systemctl(*words):
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = "".join(map(journal, (UNIT, RECONCILE, METRICS)))
        raise AssertionError(f"systemctl {words}: exit {done.returncode}\n{done.stdout}{done.stderr}{said}")
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
        for _ in patience.turns():
            state, main = self.show("ActiveState"), int(self.show("MainPID"))
            self.assertNotEqual(state, "failed", f"systemd has given the plugin up: {self.show('Result')}")
            if state == "active" and main not in (0, pid):
                return main
        raise AssertionError(f"{UNIT} is still {state} after its process {pid} was killed")

    def test_systemd_knows_all_that_they_say(self):
        for unit in (UNIT, RECONCILE, TIMER, METRICS, METRICS_TIMER):
            fragment = systemctl("show", "--value", "--property=FragmentPath", unit).strip()
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", fragment], capture_output=True, text=True,
                                  check=False)
            said = [line for line in (done.stdout + done.stderr).splitlines() if unit in line]
            self.assertEqual((done.returncode, said), (0, []), unit)

    def test_exposure(self):
        for unit, most in EXPOSURES.items():
            done = subprocess.run(["systemd-analyze", "security", "--no-pager", f"--threshold={most}", unit],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def ask_for_metrics(self):
        """An HTTP status, or None where nobody listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=patience.PATIENCE) as answer:
                return answer.status
        except urllib.error.URLError:
            return None

    def test_metrics_over_tcp(self):
        """Only with the drop-in, and the log says so."""
        before = CONFIGURATION.read_bytes()
        self.addCleanup(CONFIGURATION.write_bytes, before)
        CONFIGURATION.write_text(json.dumps({"nri": {"metrics": f"127.0.0.1:{PORT}"}}), encoding="ascii")
        systemctl("start", UNIT)
        self.addCleanup(systemctl, "stop", UNIT)
        self.assertIsNone(self.ask_for_metrics())
        said = f"metrics are disabled: 127.0.0.1:{PORT}: create a socket: Address family not supported by protocol; " \
               "the service needs a drop-in for it, see podqos-nri(8)"
        patience.expect(lambda: said in journal(UNIT), said)
        DROP_IN.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(harness.REPOSITORY / "examples/systemd" / DROP_IN.name, DROP_IN)
        self.addCleanup(systemctl, "daemon-reload")
        self.addCleanup(DROP_IN.unlink)
        systemctl("daemon-reload")
        systemctl("restart", UNIT)
        self.assertEqual(self.ask_for_metrics(), 200)

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


class Reconciliation(unittest.TestCase):
    """In the guest: podqos-reconcile.service and its timer."""

    def leave_pod(self):
        """The cgroup of a pod whose container was never created."""
        bundle = oci.Bundle(pathlib.Path(tempfile.mkdtemp(dir="/run"), "bundle"), "runc")
        bundle.annotations.update({"podqos.io/pod-uid": "gone-1", "podqos.io/requests": "cpu=100m"})
        bundle.config["linux"]["cgroupsPath"] = "machine.slice:libpod:gone"
        bundle.save()
        command = ["sh", "-c", '"$@"; exit', "sh", harness.HOOK, "precreate"]
        subprocess.run(command, input=(bundle.path / "config.json").read_bytes(), check=True, stdout=subprocess.DEVNULL)
        [found] = pathlib.Path("/sys/fs/cgroup").glob("**/*podgone_1.slice")
        return found

    def test_releases_what_has_ended_and_says_only_that(self):
        before = journal(RECONCILE)
        systemctl("start", RECONCILE)
        self.assertEqual(journal(RECONCILE), before)
        pod = self.leave_pod()
        systemctl("start", RECONCILE)
        self.assertFalse(pod.exists())
        released = journal(RECONCILE)
        self.assertEqual(released, f"{before}pod gone-1: container gone has ended\npod gone-1 released\n")
        systemctl("start", RECONCILE)
        self.assertEqual(journal(RECONCILE), released)
        found = subprocess.run(["journalctl", "--no-pager", "--quiet", "--output=cat", "PODQOS_POD=gone-1",
                                "PODQOS_EVENT=placed"], capture_output=True, text=True, check=True)
        self.assertIn("pod gone-1, container gone: Burstable, cpu 100m", found.stdout)

    def test_beside_a_plugin_that_waits_for_its_runtime(self):
        """That one counts on no list of an engine, and reconciles nothing."""
        systemctl("start", UNIT)
        self.addCleanup(systemctl, "stop", UNIT)
        pod = self.leave_pod()
        systemctl("start", RECONCILE)
        self.assertFalse(pod.exists())

    def test_state_below_tmp(self):
        """It is the same for the hook and for the service."""
        before = CONFIGURATION.read_bytes()
        self.addCleanup(CONFIGURATION.write_bytes, before)
        state = pathlib.Path(tempfile.mkdtemp(dir="/tmp"), "state")
        CONFIGURATION.write_text(json.dumps({"stateDir": str(state)}), encoding="ascii")
        pod = self.leave_pod()
        self.assertTrue(list(state.glob("pods/*")))
        systemctl("start", RECONCILE)
        self.assertFalse(pod.exists())
        self.assertEqual(list(state.glob("pods/*")), [])

    def test_timer(self):
        """The package has enabled it. Here it need not wait for the minute."""
        soon = pathlib.Path("/run/systemd/system", f"{TIMER}.d", "soon.conf")
        soon.parent.mkdir(parents=True)
        soon.write_text("[Timer]\nOnCalendar=*:*:0/5\nRandomizedDelaySec=0\nAccuracySec=1s\n", encoding="ascii")
        systemctl("daemon-reload")
        self.assertEqual(systemctl("is-enabled", TIMER), "enabled\n")
        pod = self.leave_pod()
        systemctl("start", TIMER)
        self.addCleanup(systemctl, "stop", TIMER)
        patience.expect(lambda: not pod.exists(), "a reconciliation by the timer")


class Metrics(unittest.TestCase):
    """In the guest: podqos-metrics.service and its timer, which is for those who enable it."""

    def test_writes_for_node_exporter(self):
        done = subprocess.run(["systemctl", "is-enabled", METRICS_TIMER], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "disabled\n")
        self.assertFalse(TEXTFILE.exists())
        TEXTFILE.parent.mkdir(parents=True, exist_ok=True)
        os.chown(TEXTFILE.parent, 65534, 65534)
        before = journal(METRICS)
        systemctl("start", METRICS)
        self.assertEqual(TEXTFILE.stat().st_mode & 0o777, 0o644)
        self.assertIn("\npodqos_collector_success 1\n", TEXTFILE.read_text(encoding="utf-8"))
        self.assertEqual(journal(METRICS), before)
        self.write_elsewhere()

    def write_elsewhere(self):
        """With the drop-in of docs/metrics.md."""
        page = (harness.REPOSITORY / "docs/metrics.md").read_text(encoding="utf-8")
        section, directory = re.search(r"^ +(\[Service\]\n) +(Environment=DIRECTORY=.*\n)", page, re.MULTILINE).groups()
        drop_in = pathlib.Path(f"/etc/systemd/system/{METRICS}.d/override.conf")
        drop_in.parent.mkdir()
        drop_in.write_text(section + directory, encoding="utf-8")
        elsewhere = pathlib.Path(directory.strip().rpartition("=")[2])
        elsewhere.mkdir(parents=True)
        systemctl("daemon-reload")
        systemctl("start", METRICS)
        self.assertEqual([file.name for file in elsewhere.iterdir()], [TEXTFILE.name])


if __name__ == "__main__":
    harness.main(("runc",), in_guest=[Service, Reconciliation, Metrics], here=[guest.cases({
        root: (guest.Guest("systemd", root=root), __file__) for root in (guest.MACHINE, "trixie")})])
