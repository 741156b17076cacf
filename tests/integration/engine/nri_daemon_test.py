"""podqos-nri as a process: how it starts, comes back, reloads, is bounded and ends, under its own sandbox.

The runtime is scripted; what the plugin does to pods is tested elsewhere, and none exists here.
"""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import machine as machines  # noqa: E402
import metrics  # noqa: E402
import nri_daemon  # noqa: E402
import nri_peer  # noqa: E402
import patience  # noqa: E402
from nri_daemon import PROGRAM  # noqa: E402

# CAP_DAC_OVERRIDE, CAP_KILL, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_SYS_NICE, CAP_SYS_RESOURCE, CAP_SYSLOG
KEPT = 1 << 1 | 1 << 5 | 1 << 19 | 1 << 21 | 1 << 23 | 1 << 24 | 1 << 34
MB = 1 << 20


class DaemonTest(nri_daemon.DaemonCase):
    def test_registers_as_it_is_told(self):
        runtime = self.listen()
        process = self.start_at_socket()
        connection = runtime.accept()
        connection.register()
        self.assertEqual(connection.identity, ("10", "podqos"))
        self.stop(process)
        process = self.start("--socket", self.socket, "--index", "77", "--name", "other")
        connection = runtime.accept()
        connection.register()
        self.assertEqual(connection.identity, ("77", "other"))
        self.stop(process)

    @unittest.skipUnless(os.geteuid() == 0, "only root has capabilities to give up")
    def test_narrows_itself_before_it_reads_from_the_runtime(self):
        _, process, _ = self.connected()
        self.assertEqual(int(self.status(process, "CapEff"), 16), KEPT & int(self.status(process, "CapBnd"), 16))
        self.assertEqual(self.status(process, "NoNewPrivs"), "1")
        self.assertEqual(self.status(process, "Seccomp"), "2")
        self.assertEqual(self.status(process, "Umask"), "0022")
        self.assertEqual(self.status(process, "Threads"), "1")

    def test_comes_back_as_often_as_the_runtime_does(self):
        process = self.start_at_socket()
        self.wait_for_log("No such file or directory; waiting for a runtime")
        for _ in range(3):
            runtime = self.listen()
            runtime.accept().welcome()
            runtime.stop()
        self.stop(process)
        self.assertEqual(process.stderr.read(), "")

    def test_serves_no_runtime_of_another_pid_namespace(self):
        before = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
        tried = subprocess.run([*before, "true"], capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            self.skipTest(f"no pid namespace can be made here: {tried.stderr.strip()}")
        self.listen()
        self.start_at_socket(before=before)
        self.wait_for_log(f"{self.socket}: the runtime is in a different pid namespace than this plugin")
        self.assertIn("hostPID: true", self.log.read_text(encoding="utf-8"))
        self.assertNotIn("connected to", self.log.read_text(encoding="utf-8"))

    def start_in_cgroup_namespace(self, *before):
        """As in a container of cgroup v2: below the cgroups of process 1, with its own as their root."""
        machine, inner = machines.Machine(), f"{self.root}-own"
        self.addCleanup(machine.remove, inner)
        return self.start_at_socket(before=("unshare", "--cgroup", "--", *before),
                                    preexec_fn=lambda: machine.enter(os.getpid(), inner))

    def test_joins_the_cgroup_namespace_of_process_1(self):
        try:
            theirs = os.readlink("/proc/1/ns/cgroup")
        except PermissionError as error:
            self.skipTest(f"not even we may look at it here: {error}")
        self.listen()
        process = self.start_in_cgroup_namespace()
        self.wait_for_log("connected to")
        self.assertEqual(os.readlink(f"/proc/{process.pid}/ns/cgroup"), theirs)
        self.stop(process)

    def test_does_not_serve_from_a_cgroup_namespace_of_its_own(self):
        process = self.start_in_cgroup_namespace("setpriv", "--bounding-set", "-sys_ptrace", "--")
        _, said = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertIn("join the cgroup namespace /proc/1/ns/cgroup: Permission denied", said)
        self.assertIn("needs CAP_SYS_PTRACE and CAP_SYS_ADMIN", said)

    def test_goes_on_after_it_was_stopped(self):
        _, process, connection = self.connected()
        for _ in range(3):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.05)
            process.send_signal(signal.SIGCONT)
            connection.ask("PostStartContainer")
        self.stop(process)

    def test_stands_by_while_another_serves(self):
        """It answers HTTP meanwhile, and is the only one once the first has ended, however that ended."""
        runtime, first, connection = self.connected()
        address = f"unix:{self.folder}/http"
        second = self.start("--socket", self.socket, "--metrics", address)
        self.wait_for_log(f"another podqos-nri (process {first.pid}) holds {self.folder}/state/nri.lock: "
                          "only one may serve a runtime; standing by until that one ends")
        for path, body in (("/healthz", "ok\n"), ("/readyz", "standby\n")):
            answer = metrics.request(address, path)
            self.assertEqual((answer.status, answer.text), (200, body))
        self.assertEqual(metrics.samples(address)["podqos_nri_connections_total"], 0)
        connection.ask("PostStartContainer")
        first.kill()
        first.wait()
        runtime.accept().welcome()
        said = self.folder / "state/nri.lock"
        patience.expect(lambda: "\nsynchronized with" in said.read_text(encoding="ascii"), said)
        self.assertRegex(said.read_text(encoding="ascii"),
                         rf"^{second.pid}\nsynchronized with the runtime at \S+ \(process \d+\)\n")
        third = self.start_at_socket()
        self.wait_for_log(f"another podqos-nri (process {second.pid}) holds")
        self.stop(third)
        self.assertIsNone(second.poll())
        self.stop(second)

    def test_is_not_started_by_a_runtime(self):
        """It says who starts it."""
        _, said = self.start(env={"NRI_PLUGIN_SOCKET": "3"}).communicate()
        self.assertIn("NRI_PLUGIN_SOCKET is set, as by a runtime", said)
        self.assertIn("systemctl enable --now podqos-nri.service", said)

    def test_reloads_and_refuses_what_is_bad(self):
        _, process, connection = self.connected()
        self.configure(podPidsLimit=100)
        process.send_signal(signal.SIGHUP)
        self.wait_for_log("configuration reloaded")
        for bad, named in (({"podPidLimit": 100}, self.folder), ({"stateDir": str(self.folder / "other")}, "stateDir: ")):
            self.configure(**bad)
            process.send_signal(signal.SIGHUP)
            self.wait_for_log(f"configuration not reloaded, keeping the previous one: {named}")
        (self.folder / "podqos.json").unlink()
        process.send_signal(signal.SIGHUP)
        self.wait_for_log("configuration not reloaded", times=3)
        connection.ask("PostStartContainer")
        self.stop(process)

    def test_is_in_status(self):
        """What podqosctl knows of it without asking systemd or an engine."""
        command = [nri_daemon.BIN / "podqosctl", "--config", self.folder / "podqos.json", "status"]

        def shown():
            said = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=False).stdout
            return json.loads(said)["plugin"]
        self.assertIsNone(shown())
        _, process, _ = self.connected()
        patience.expect(lambda: (shown() or {"status": ""})["status"].startswith("synchronized"), "it is synchronized")
        self.assertEqual(shown()["process"], process.pid)
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        self.assertIn(f"podqos-nri     synchronized with the runtime at {self.socket}", text)
        self.stop(process)
        self.assertEqual(shown()["process"], None)

    def test_follows_its_files(self):
        """Without a signal, before the next event is handled."""
        _, process, connection = self.connected()
        self.configure(podPidsLimit=100)
        connection.ask("PostStartContainer")
        self.wait_for_log("configuration reloaded")
        self.configure(podPidLimit=100)
        connection.ask("PostStartContainer")
        self.wait_for_log(f"configuration not reloaded, keeping the previous one: {self.folder}")
        self.stop(process)

    def test_does_not_start_with_a_bad_configuration(self):
        self.configure(podPidLimit=100)
        process = self.start_at_socket()
        _, said = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertIn("podqos.json: ", said)
        self.assertIn("podPidsLimit", said)

    def test_tells_systemd(self):
        systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        systemd.settimeout(patience.PATIENCE)
        systemd.bind(str(self.folder / "notify"))
        self.addCleanup(systemd.close)
        env = {"NOTIFY_SOCKET": str(self.folder / "notify"), "WATCHDOG_USEC": "100000"}
        process = self.start_at_socket(env=env)
        self.assertTrue(systemd.recv(4096).startswith(b"READY=1\n"))
        self.assertEqual([systemd.recv(4096) for _ in range(3)], [b"WATCHDOG=1"] * 3)
        self.stop(process)

    def test_stays_small_whatever_comes(self):
        runtime, process, connection = self.connected()
        for _ in range(2000):
            connection.ask("PostStartContainer")
        before = int(self.status(process, "VmRSS")) * 1024
        dice = random.Random(4)
        for _ in range(5):
            # Frames of the right form around garbage, and then no frames at all.
            for _ in range(100):
                content = nri_peer.message(dice.randrange(1 << 32), dice.randrange(4), dice.randbytes(5000))
                connection.socket.sendall(nri_peer.frame(dice.choice((0, 1, 2, 99)), content))
            connection.socket.sendall(b"\xff" * 64)
            self.assertTrue(connection.ended())
            connection = runtime.accept().welcome()
        # Messages beyond the limit are thrown away as they come.
        for stream in range(1001, 1041, 2):
            head = nri_peer.struct.pack(">IIBB", 5 * MB, stream, nri_peer.REQUEST, 0)
            connection.socket.sendall(nri_peer.frame(nri_peer.PLUGIN, head))
            for _ in range(5):
                connection.socket.sendall(nri_peer.frame(nri_peer.PLUGIN, bytes(MB)))
            connection.next(nri_peer.PLUGIN)
        connection.stream = 2001
        connection.ask("PostStartContainer")
        self.assertLess(int(self.status(process, "VmRSS")) * 1024, before + 2 * MB)
        self.assertLess(int(self.status(process, "VmHWM")) * 1024, before + 10 * MB)
        self.stop(process)
        self.assertEqual(process.stderr.read(), "")

    def test_synchronizes_whatever_the_authors_of_pods_write(self):
        runtime = self.listen()
        process = self.start_at_socket()
        connection = runtime.accept()
        connection.register()
        connection.configure()
        field = nri_peer.field
        environment = field(8, bytes(1000)) * 1000  # of one container, all of which is in each message
        for number in range(100):
            container = field(1, f"c{number}") + field(2, "p") + environment
            answer = connection.ask("Synchronize", field(2, container) + field(3, int(number < 99)))
            self.assertEqual(answer, field(2, 1) if number < 99 else b"")
        self.wait_for_log("synchronized with the runtime")
        self.assertLess(int(self.status(process, "VmHWM")) * 1024, 25 * MB)
        self.stop(process)

    @unittest.skipUnless(os.geteuid() == 0, "only root makes cgroups")
    def test_keeps_long_annotations_once(self):
        """What a runtime sends of each pod once takes no multiple of it, whoever is trusted."""
        self.addCleanup(machines.Machine().sweep, self.root)
        init = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(self.end, init)
        field, listed = nri_peer.field, b""
        long = nri_peer.fields(6, {"podqos.io/pod": json.dumps({"containers": [{"name": "app", "args": ["x" * 250_000]}]})})
        for pod in map(str, range(10)):
            listed += field(1, field(1, pod) + field(3, f"uid-{pod}") + long + field(9, init.pid))
            for number in range(50):
                listed += field(2, field(1, f"{pod}-{number}") + field(2, pod) + field(3, f"app-{number}") + field(4, 3)
                                + field(11, field(5, f"/engine/{pod}-{number}")) + field(12, init.pid))
        runtime = self.listen()
        for times, trusted in enumerate(("engine-checked", "none"), 1):
            self.configure(trustAnnotations=trusted, placement={"onMisplaced": "ignore"})
            process = self.start_at_socket()
            connection = runtime.accept()
            connection.register()
            connection.configure()
            connection.ask("Synchronize", listed)
            self.wait_for_log("synchronized 510 sandboxes and containers", times)
            self.assertLess(int(self.status(process, "VmHWM")) * 1024, 64 * MB, trusted)
            self.stop(process)

    def test_command_line(self):
        version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
        self.assertRegex(version.stdout, r"^podqos-nri \d+\.\d+\.\d+\n$")
        wrong = subprocess.run([PROGRAM, "--index", "1"], capture_output=True, text=True, check=False)
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("two digits", wrong.stderr)


if __name__ == "__main__":
    nri_daemon.main()
