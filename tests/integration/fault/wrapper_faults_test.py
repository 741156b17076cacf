"""What happens to podqos-runtime while it works: it is replaced, or its child process is stopped."""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import oci  # noqa: E402
import patience  # noqa: E402
from harness import container, pod  # noqa: E402

MANIFEST = pod("faults-1", container("app", limits={"cpu": "100m", "memory": "64Mi"}))


def children(pid):
    """Of the first thread."""
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except FileNotFoundError:
        return []


def executable(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


@harness.for_each_runtime
class Upgrade(harness.TestCase):
    """A program that is replaced while it runs registers the path at which its successor is."""

    def test_replaced_during_create(self):
        installed = self.tmp / "installed"
        installed.mkdir()
        program = installed / "podqos-hook"
        shutil.copy2(harness.HOOK, program)
        (installed / "podqos-runtime").symlink_to("podqos-hook")
        bundle, name = self.bundle(MANIFEST, "app"), self.container_id("app")
        self.wrapper.bundles[name] = bundle
        # Before it asks for its own path there is time enough to replace it.
        slow = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=readlinkat,readlink", "-e",
                "inject=readlinkat,readlink:delay_enter=3000000:when=1"]
        command = [*slow, str(installed / "podqos-runtime"), *self.podqos.prefix(self.kind)[1:], "--root",
                   str(self.wrapper.root), "create", "--bundle", str(bundle.path), name]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as tracer:
            patience.expect(lambda: [p for p in children(tracer.pid) if executable(p) == str(program)], "the wrapper's start")
            shutil.copy2(harness.HOOK, installed / "new")
            os.replace(installed / "new", program)
            tracer.wait()
        self.assertIsNotNone(self.plain.state(name))
        hooks = json.loads(bundle.read())["hooks"]
        self.assertEqual([hook["path"] for stage in hooks.values() for hook in stage], [str(program)] * 2)


@harness.for_each_runtime
class StoppedChild(harness.TestCase):
    """A stopped child process does not hold a container up for ever: the start has 5 s for all that it waits for."""

    settings = {"lockDeadline": "5s"}

    def start(self, policy, status):
        """It is stopped while it waits for the lock; the bundle stays as it is."""
        self.podqos.settings["onError"] = policy
        self.podqos.config(self.kind)
        bundle, name = self.bundle(MANIFEST, "app"), self.container_id("app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/app"
        before = bundle.save().read()
        self.wrapper.bundles[name] = bundle
        self.podqos.state.mkdir(mode=0o700, exist_ok=True)
        command = [*self.wrapper.command("create"), "--bundle", str(bundle.path), name]
        with (self.podqos.state / "lock").open("w") as lock, (self.tmp / "error").open("wb") as error:
            fcntl.flock(lock, fcntl.LOCK_EX)
            begin = time.monotonic()
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=error)
            self.addCleanup(process.kill)
            [child] = patience.expect(lambda: children(process.pid), "the child process")
            os.kill(child, signal.SIGSTOP)
        self.assertEqual(process.wait(), status)
        self.assertLessEqual(time.monotonic() - begin, 5 * 1.1 + 1)  # on a busy machine
        self.assertIn("did not end in time", (self.tmp / "error").read_text(encoding="utf-8"))
        self.assertEqual(bundle.read(), before)
        return name

    def test_admitted(self):
        name = self.start("admit", 0)
        self.assertEqual(machines.cgroup_of(self.plain.pid(name)), f"{self.elsewhere}/app")

    def test_rejected(self):
        self.assertIsNone(self.plain.state(self.start("reject", 1)))


@harness.for_each_runtime
class OwnPlace(harness.TestCase):
    """A runtime that puts containers where it likes: nothing but createRuntime tells."""

    def test_is_said_and_counted(self):
        name = self.container_id("app")
        bundle = self.bundle(MANIFEST, "app")
        own = f"{self.elsewhere}/own"
        runtime = self.tmp / "own-place"
        runtime.write_text(f"""#!/bin/sh
case "$*" in *create*) sed -i 's|"cgroupsPath": *"[^"]*"|"cgroupsPath": "{own}"|' {bundle.path}/config.json ;; esac
exec {oci.runtime_path(self.kind)} "$@"
""", encoding="ascii")
        runtime.chmod(0o755)
        self.podqos.settings["runtimes"] = [str(runtime)]
        self.podqos.config(self.kind)
        pid = self.wrapper.launch(name, bundle)
        self.assertEqual(machines.cgroup_of(pid), own)
        [warning] = self.podqos.ctl_json("status")["warnings"]
        self.assertIn(f"container {name} runs in cgroup {own}, outside the pod's limits: its runtime put it", warning)
        self.assertIn("1 pod, 1 container; 0 pods released, 0 records restored\n", self.podqos.ctl("reconcile").stdout)
        self.assertIn("misplaced", self.podqos.ctl("events").stdout)
        self.assertTrue(machines.alive(pid))


@harness.runc_only
class NoLog(harness.TestCase):
    """Logs that cannot be opened, podqos's and the engine's, concern no container."""

    settings = {"onError": "reject"}

    def test_is_placed_nevertheless(self):
        (self.tmp / "file").touch()
        (self.tmp / "loop").symlink_to("loop")
        for sink in ("file/log", "loop/log", "missing/log"):
            with self.subTest(sink):
                self.podqos.settings["log"] = {"sink": str(self.tmp / sink)}
                self.podqos.config(self.kind)
                name = self.container_id("app")
                pid = self.wrapper.launch(name, self.bundle(MANIFEST, "app"))
                self.assertIn("/podfaults-1/", machines.cgroup_of(pid))
                self.wrapper.delete(name)


@harness.runc_only
class NoProgram(harness.TestCase):
    """A runtime that the kernel cannot execute: its log, where the engine looks, and podqos's say so."""

    def test_is_reported(self):
        bundle, name = self.bundle(MANIFEST, "app"), self.container_id("app")
        runtime = self.tmp / "no-program"
        runtime.write_text("garbage", encoding="ascii")
        runtime.chmod(0o755)
        self.podqos.settings["runtimes"] = [str(runtime)]
        log = self.tmp / "engine.log"
        done = subprocess.run(
            [*self.podqos.prefix(self.kind), "--log", str(log), "--log-format", "json", "create", "--bundle",
             str(bundle.path), name], check=False, capture_output=True, encoding="utf-8")
        error = f"execute {runtime}: Exec format error"
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(error, done.stderr)
        self.assertIn(error, self.podqos.log_text())
        self.assertIn(error, json.loads(log.read_text(encoding="utf-8"))["msg"])
        self.podqos.ctl("reconcile", kind=self.kind)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
