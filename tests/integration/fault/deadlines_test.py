"""A container's start waits 5 s in all, whatever it waits for: what holds it up is said, and the container starts."""

import contextlib
import fcntl
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
import player  # noqa: E402
from harness import container, pod  # noqa: E402

POD = pod("waits-1", container("app", limits={"cpu": "100m", "memory": "64Mi"}))
BUDGET = 5.0  # seconds; podqos.json(5), lockDeadline
MOST = BUDGET * 1.1 + 1  # of a busy machine


def is_locked(path):
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class SlowCase(player.Case):
    """Without a runtime, which might itself wait."""

    def setUp(self):
        super().setUp()
        self.podqos.state.mkdir(mode=0o700, exist_ok=True)

    def timed(self, command, stdin=b""):
        begin = time.monotonic()
        done = patience.capture(command, stdin)
        self.assertLessEqual(time.monotonic() - begin, MOST, done.stderr)
        return done

    def assert_told(self, done, *words):
        """One line; the container is admitted."""
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (0, 1), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr.decode())

    def check_create(self, made, *words, flags=(), in_journal=True):
        """The wrapper tells what it waited for, naming the container, and leaves its config.json as it was."""
        before = made.bundle.read()
        done = self.timed([str(harness.RUNTIME), "--config", self.config, *flags, "create", "--bundle",
                           str(made.bundle.path), made.id])
        self.assert_told(done, made.id, *words)
        self.assertEqual(made.bundle.read(), before)
        if in_journal:
            last = self.podqos.events()[-1]
            self.assertEqual((last["event"], last["container"]["id"]), ("failed", made.id))


class Lock(SlowCase):
    """Whose holder is stopped."""

    @contextlib.contextmanager
    def held(self):
        lock = self.podqos.state / "lock"
        holder = subprocess.Popen(["flock", lock, "sh", "-c", "kill -STOP $$"], start_new_session=True)
        try:
            patience.expect(lambda: is_locked(lock), "the lock's holder")
            yield
        finally:
            os.killpg(holder.pid, signal.SIGKILL)
            holder.wait()

    def test_create(self):
        with self.held():
            self.check_create(self.container(POD, "app"), "another process still holds it")

    def test_create_runtime(self):
        made = self.container(POD, "app")
        self.start(made)
        command = [str(harness.HOOK), "--config", self.config, "createRuntime"]
        with self.held():
            done = self.timed(command, json.dumps(made.state()).encode())
            self.assert_told(done, made.id, "another process still holds it")


class Input(SlowCase):
    """A state on standard input that never ends."""

    def test_create_runtime(self):
        read, write = os.pipe()
        begin = time.monotonic()
        done = subprocess.run([harness.HOOK, "--config", self.config, "createRuntime"], stdin=read,
                              capture_output=True, check=False)
        self.assertLessEqual(time.monotonic() - begin, MOST)
        os.close(read)
        os.close(write)
        self.assert_told(done, "OCI state on stdin")


class Systemd(SlowCase):
    """Both of its sockets take connections and answer nothing, or do not even take them."""

    def setUp(self):
        machines.private_mounts()
        super().setUp()
        subprocess.run(["mount", "-n", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        self.addCleanup(subprocess.run, ["umount", "-n", "-l", "/run"], check=True)

    def listen(self, path, stack):
        pathlib.Path(path).parent.mkdir(parents=True)
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(path)
        listener.listen(0)
        return listener

    def fill(self, path, stack):
        with contextlib.suppress(BlockingIOError):
            while True:
                client = stack.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(path)

    def test_silent(self):
        paths = ("/run/systemd/private", "/run/dbus/system_bus_socket")
        with contextlib.ExitStack() as stack:
            for path in paths:
                self.listen(path, stack)
            for fill in (False, True):
                with self.subTest(full=fill):
                    for path in paths if fill else ():
                        self.fill(path, stack)
                    made = self.container(POD, "app")
                    made.bundle.config["linux"]["cgroupsPath"] = "system.slice:podqos-test:app"
                    made.bundle.save()
                    self.check_create(made, "pod waits-1: ", " 2000 ms", flags=["--systemd-cgroup"])


class State(SlowCase):
    """Files of the state directory that never answer."""

    def test_fifos(self):
        """Where it is read an error says that it is no file."""
        names = ("lock", "node.json", "rows", "events", "pods/waits-1.json")
        for name in names:
            with self.subTest(file=name):
                path = self.podqos.state / name
                path.parent.mkdir(exist_ok=True)
                path.unlink(missing_ok=True)
                os.mkfifo(path, 0o600)
                made = self.container(POD, "app")
                before = made.bundle.read()
                done = self.timed([str(harness.RUNTIME), "--config", self.config, "create", "--bundle",
                                   str(made.bundle.path), made.id])
                self.assertEqual(done.returncode, 0)
                if made.bundle.read() == before:
                    self.assert_told(done, made.id, str(path))
                path.unlink(missing_ok=True)
                self.podqos.ctl("reconcile", check=False)


if __name__ == "__main__":
    harness.main(kinds=("runc",))
