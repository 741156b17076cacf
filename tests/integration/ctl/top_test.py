#!/usr/bin/env python3
"""podqosctl top: its figures are those of the kernel, its screen fits, and the terminal is as before when it ends."""

import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import patience  # noqa: E402
from harness import MI, container, pod  # noqa: E402

BURNING = pod("top-burn", container("app", requests={"cpu": "100m"}, limits={"cpu": "200m", "memory": "64Mi"}))
FILLED = pod("top-fill", container("app", limits={"cpu": "100m", "memory": "64Mi"}))
IDLE = pod("top-idle", container("app"))
BURN = ("sh", "-c", "while :; do :; done")
FILL = ("sh", "-c", "head -c 20971520 /dev/zero > /dev/shm/filled; exec sleep 1000")  # of a tmpfs: never inactive page cache
SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def memory_of(machine, path):
    """What the kernel counts for a cgroup."""
    hierarchy = machine.hierarchy("memory")
    name = "memory.current" if machine.version("memory") == 2 else "memory.usage_in_bytes"
    return int(pathlib.Path(hierarchy.mount + path, name).read_text(encoding="utf-8"))


def stat_of(machine, path):
    """cpu.stat of a cgroup."""
    text = pathlib.Path(machine.hierarchy("cpu").mount + path, "cpu.stat").read_text(encoding="utf-8")
    return {key: int(value) for key, value in (line.split() for line in text.splitlines())}


class Screen:
    """podqosctl top on a terminal of its own."""

    def __init__(self, command, width, height):
        self.terminal, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.inner = inner  # kept, so that its modes can be asked for when the program has gone
        self.before = termios.tcgetattr(inner)
        environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
        self.process = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner, env=environment,
                                        start_new_session=True)
        self.text = ""
        os.set_blocking(self.terminal, False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)
        os.close(self.inner)

    def read(self):
        try:
            self.text += os.read(self.terminal, 1 << 20).decode()
        except BlockingIOError:
            pass
        return self.text

    def lines(self):
        """Of the last whole screen; None before there is one."""
        screens = self.read().split("\x1b[H")
        whole = [screen for screen in screens[1:] if "\x1b[J" in screen]
        return [SEQUENCE.sub("", line).rstrip("\r") for line in whole[-1].partition("\x1b[J")[0].split("\r\n")] if whole else None

    def await_text(self, wanted):
        """The lines of the first screen with this text."""
        for _ in patience.turns():
            lines = self.lines()
            if lines and wanted in "\n".join(lines):
                return lines
        raise AssertionError(f"{wanted!r} is not on the screen:\n{self.text[-4000:]}")

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def resize(self, width, height):
        fcntl.ioctl(self.inner, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.process.send_signal(signal.SIGWINCH)  # to a program whose terminal is not its session's


@harness.runc_only
class Top(harness.TestCase):
    """Three pods: one burns CPU against its limit, one fills memory, one does nothing."""

    def setUp(self):
        super().setUp()
        self.launch(BURNING, "app", args=BURN)
        self.launch(FILLED, "app", args=FILL)
        self.launch(IDLE, "app")
        self.command = [str(harness.CTL), "--config", str(self.podqos.config(self.kind)), "top"]

    def sample(self, *arguments):
        said = subprocess.run([*self.command, "-o", "json", *arguments], capture_output=True, text=True, check=True)
        self.assertEqual(said.stderr, "")
        return [json.loads(line) for line in said.stdout.splitlines()]

    def test_figures_are_the_kernels(self):
        """Of a second in which the burning one gets 200m at most; a busy machine gives it less."""
        path = self.pod_path("burstable", "top-burn")
        before = stat_of(self.machine, path)
        for _ in patience.turns():  # until the memory is filled
            if memory_of(self.machine, self.pod_path("guaranteed", "top-fill")) >= 20 * MI:
                break
        (sample,) = self.sample("--once")
        after = stat_of(self.machine, path)
        pods = {each["uid"]: each for each in sample["pods"]}
        burning, filled, idle = (pods[f"top-{name}"] for name in ("burn", "fill", "idle"))
        self.assertGreater(burning["cpuMilli"], 20)
        self.assertLess(burning["cpuMilli"], 300)
        self.assertGreater(after["nr_throttled"], before["nr_throttled"])
        self.assertGreater(burning["throttledPercent"], 0)
        self.assertEqual(burning["limits"], {"cpuMilli": 200, "memoryBytes": 64 * MI})
        self.assertEqual(burning["requests"]["cpuMilli"], 100)
        self.assertLess(idle["cpuMilli"], 50)
        self.assertIsNone(idle["throttledPercent"])
        now = memory_of(self.machine, filled["cgroup"])
        self.assertAlmostEqual(filled["memoryUsageBytes"], now, delta=4 * MI)
        self.assertGreater(filled["workingSetBytes"], 20 * MI)
        self.assertLessEqual(filled["workingSetBytes"], filled["memoryUsageBytes"])
        for each in pods.values():
            (inner,) = each["containers"]
            self.assertGreaterEqual(inner["pids"], 1)
            self.assertEqual((each["oomKills"], inner["oomKills"]), (0, 0))
        (tree,) = sample["trees"]
        tiers = {tier["qosClass"]: tier for tier in tree["tiers"]}
        self.assertEqual(tiers["Guaranteed"]["memoryUsageBytes"], filled["memoryUsageBytes"])
        self.assertAlmostEqual(tiers["Burstable"]["cpuMilli"], burning["cpuMilli"], delta=50)
        self.assertGreaterEqual(sample["intervalMs"], 1000)

    def test_samples_follow_what_happens(self):
        """Text and JSON, filtered; a pod that comes and one that goes."""
        one, two = self.sample("-n", "2", "-d", "0.2", "--tier", "Burstable")
        self.assertEqual([each["uid"] for each in one["pods"] + two["pods"]], ["top-burn"] * 2)
        said = subprocess.run([*self.command, "-n1", "-d", "0.1", "--flat", "--sort", "memory"], capture_output=True,
                              text=True, check=True).stdout.splitlines()
        self.assertTrue(said[2].startswith("top-fill/app "), said)
        with subprocess.Popen([*self.command, "--batch", "-d", "0.1", "-o", "json"], stdout=subprocess.PIPE) as endless:
            def wait_for(count):
                for line in endless.stdout:
                    if len(json.loads(line)["pods"]) == count:
                        return
            wait_for(3)
            identifier, _ = self.launch(pod("top-new", container("app")), "app")
            wait_for(4)
            self.wrapper.delete(identifier)
            self.podqos.ctl("reconcile")
            wait_for(3)
            endless.terminate()

    def test_screen_fits_and_goes(self):
        for width, height in ((80, 24), (200, 50)):
            with Screen([*self.command, "-d", "0.3"], width, height) as screen:
                lines = screen.await_text("top-burn")
                self.assertEqual(len(lines), height)
                self.assertEqual([line for line in lines if len(line) > width], [])
                self.assertEqual("MREQ" in "\n".join(lines), width == 200)
                self.assertFalse(termios.tcgetattr(screen.inner)[3] & (termios.ICANON | termios.ECHO))
                screen.press("t/fill\r")
                self.assertEqual([line for line in screen.await_text('only "fill"') if "top-" in line][0][:12], "top-fill/app")
                screen.press("h")
                screen.await_text("any key: back")
                screen.press("x")
                screen.resize(60, 10)
                for _ in patience.turns():
                    if len(screen.lines()) == 10:
                        break
                self.assertEqual([line for line in screen.lines() if len(line) > 60], [])
                screen.press("q")
                self.assert_gone(screen)

    def test_signals_leave_the_terminal_as_it_was(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number), Screen(self.command, 80, 24) as screen:
                screen.await_text("top-burn")
                screen.process.send_signal(number)
                self.assert_gone(screen)

    def test_refusals(self):
        """Who may not read the state, and a configuration that cannot be read: the figures are shown all the same."""
        with tempfile.NamedTemporaryFile("w", prefix="podqos-test-", suffix=".json") as config:
            config.write(self.podqos.config(self.kind).read_text(encoding="utf-8"))
            config.flush()
            os.fchmod(config.fileno(), 0o644)
            command = [self.command[0], "--config", config.name, "top", "--once"]
            nobody = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", *command], cwd="/",
                                    capture_output=True, text=True, check=False)
        self.assertEqual((nobody.returncode, nobody.stdout), (1, ""))
        self.assertIn("run it as root (sudo podqosctl", nobody.stderr)
        broken = subprocess.run([self.command[0], "--config", "/nowhere", "top", "--once", "-d", "0.1"],
                                capture_output=True, text=True, check=False)
        self.assertEqual(broken.returncode, 1)
        self.assertIn("/nowhere", broken.stderr)
        self.assertTrue(broken.stdout.startswith("podqos top: "))

    def assert_gone(self, screen):
        self.assertEqual(screen.process.wait(), 0)
        self.assertEqual(termios.tcgetattr(screen.inner), screen.before)
        self.assertTrue(screen.read().endswith("\x1b[?25h\x1b[?1049l"), screen.text[-100:])

    def test_an_error_leaves_the_terminal_as_it_was(self):
        with Screen([*self.command, "-d", "0.2"], 80, 24) as screen:
            screen.await_text("top-burn")
            self.podqos.state.rename(self.podqos.state.with_name("elsewhere"))
            self.podqos.state.write_text("", encoding="utf-8")
            try:
                self.assertEqual(screen.process.wait(), 1)
            finally:
                self.podqos.state.unlink()
                self.podqos.state.with_name("elsewhere").rename(self.podqos.state)
            self.assertEqual(termios.tcgetattr(screen.inner), screen.before)
            self.assertIn(f"{self.podqos.state}: Not a directory", screen.read().partition("\x1b[?1049l")[2])


if __name__ == "__main__":
    harness.main(("runc",), in_guest=(Top,), here=(
        Top, guest.cases({"v2": (guest.Guest("v2"), __file__, "Top.test_figures_are_the_kernels")}, installed=False)))
