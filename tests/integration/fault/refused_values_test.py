"""What the kernel does not take, or nobody can read, is one pod's affair: no other start waits for it."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import patience  # noqa: E402
import player  # noqa: E402
from harness import container, pod  # noqa: E402

FIRST = pod(
    "first",
    container("a", requests={"cpu": "250m", "memory": "1Gi"}, limits={"cpu": "500m", "memory": "2Gi"}),
    container("b", requests={"cpu": "100m", "memory": "64Mi"}, limits={"cpu": "200m", "memory": "128Mi"}),
)
SECOND = pod("second", container("app", limits={"cpu": "300m", "memory": "512Mi"}))
THIRD = pod("third", container("app", requests={"cpu": "700m", "memory": "3Gi"}))
FOURTH = pod("fourth", container("app", limits={"cpu": "90m", "memory": "256Mi"}))

# kernel/sched/core.c: max_cfs_runtime is MAX_BW, (1 << 44) - 1 microseconds.
LONGEST_QUOTA = 17592186044415
# An event may wait so long, in all, while it holds the lock.
LOCKED_WAIT = 0.05
CALL = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\w+)")
RECOMPUTES = "recomputing all"


class RefusalCase(player.Case):
    """Three pods live; tearDown ends what runs, and nothing of them may be left."""

    def setUp(self):
        super().setUp()
        self.alive = [self.create(self.container(FIRST, "a")), self.create(self.container(SECOND, "app")),
                      self.create(self.container(THIRD, "app"))]
        self.check(*self.alive)

    def tearDown(self):
        for made in list(self.running):
            self.delete(made)
        super().tearDown()

    def call(self, command, stdin=b""):
        done = patience.capture(list(map(str, command)), 60, stdin)
        done.stderr = done.stderr.decode("utf-8", "replace")
        return done

    def creation(self, made):
        return [harness.RUNTIME, "--config", self.config, "create", "--bundle", made.bundle.path, made.id]

    def described(self, identifier, **annotations):
        """A container that is described by short forms alone."""
        made = self.container(pod(identifier, container("app")), "app")
        for key in [key for key in made.bundle.annotations if key.startswith("podqos.io/")]:
            del made.bundle.annotations[key]
        made.bundle.annotations.update({"podqos.io/pod-uid": identifier, "podqos.io/container": "app"})
        made.bundle.annotations.update({f"podqos.io/{key}": value for key, value in annotations.items()})
        made.bundle.save()
        return made

    def assert_next_start_is_its_own(self):
        """The start of another pod reads no pod but its own."""
        before = len(self.podqos.log_text())
        self.alive.append(self.create(self.container(FOURTH, "app")))
        self.assertNotIn(RECOMPUTES, self.podqos.log_text()[before:])


class Beyond(RefusalCase):
    """Claims that no kernel takes are refused before anything is written."""

    def refuse(self, made, *words):
        original, state = made.bundle.read(), self.podqos.state_bytes()
        done = self.call(self.creation(made))
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in (made.uid, *words):
            self.assertIn(str(word), done.stderr)
        self.assertEqual(made.bundle.read(), original)
        self.assertEqual(self.podqos.state_bytes(), state)
        self.assert_next_start_is_its_own()
        self.check(*self.alive)

    def test_quota(self):
        self.refuse(self.described("greedy", limits="cpu=1000000000"), "cpu", 1000000000 * 100000, LONGEST_QUOTA)

    def test_quota_of_a_container(self):
        made = self.container(pod("greedy", container("app")), "app")
        made.bundle.annotations["podqos.io/pod"] = json.dumps({"containers": [
            {"name": "app", "resources": {"limits": {"cpu": "200000000"}, "requests": {"cpu": "1m"}}}]})
        made.bundle.save()
        self.refuse(made, "cpu", 200000000 * 100000, LONGEST_QUOTA)

    def test_memory(self):
        self.refuse(self.described("greedy", limits="memory=9223372036854775807,cpu=1"), "memory", 9223372036854775807)

    def test_highest_quota(self):
        made = self.described("large", limits="cpu=175921860", requests="cpu=1m")
        self.call(self.creation(made))
        self.assertIn("large", json.loads(made.bundle.read())["linux"]["cgroupsPath"])
        self.start(made)
        self.hook("createRuntime", made)
        self.assert_next_start_is_its_own()
        self.assertNotIn("Invalid argument", self.podqos.log_text())


class ByTheKernel(RefusalCase):
    """cgroup v1 refuses a quota below that of a child, for a while or for good."""

    def setUp(self):
        super().setUp()
        if self.machine.version("cpu") != 1:
            self.skipTest("cgroup v2 takes every quota, whatever its children have")
        self.pod = pathlib.Path(self.machine.hierarchy("cpu").mount, f"{self.root[1:]}/kubepods/burstable/podfirst")

    def quota(self):
        return (self.pod / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()

    @contextlib.contextmanager
    def refusing(self):
        """A child holds a quota above the pod's, which has to be written."""
        (self.pod / "cpu.cfs_quota_us").write_text("700000", encoding="ascii")
        child = self.pod / "slow"
        child.mkdir()
        (child / "cpu.cfs_quota_us").write_text("600000", encoding="ascii")
        with subprocess.Popen(["/bin/sleep", "1000"], stdin=subprocess.DEVNULL) as held:
            (child / "cgroup.procs").write_text(str(held.pid), encoding="ascii")
            try:
                yield
                self.assertEqual(self.quota(), "700000")
            finally:
                held.kill()
                held.wait(timeout=20)
                child.rmdir()

    def refused(self, command):
        """Runs it meanwhile."""
        with self.refusing():
            return self.call(command)

    def test_start_of_another(self):
        """Which needs nothing of the pod with the refused values."""
        second, fourth = self.container(FIRST, "b"), self.container(FOURTH, "app")
        with self.refusing():
            self.call(self.creation(second))
            self.podqos.settings["onError"] = "reject"
            self.podqos.config()
            done = self.call(self.creation(fourth))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.start(fourth)
            self.hook("createRuntime", fourth)
        self.start(second)
        self.hook("createRuntime", second)
        self.reconcile()
        self.alive += [second, fourth]
        self.check(*self.alive)

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_start(self):
        """Others have the lock while it waits, and none recomputes because of it."""
        second, trace = self.container(FIRST, "b"), self.tmp / "strace"
        self.refused(["strace", "-f", "-qq", "-o", trace, "-e", "trace=flock,close,clock_nanosleep",
                      *self.creation(second)])
        waits, held = [], None
        for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
            call = CALL.match(line)
            if call is None:
                continue
            if call[2] == "flock" and call[4] == "0":
                waits.append(0.0)
                held = call[3].split(",")[0]
            elif call[2] == "close" and call[3] == held:
                held = None
            elif call[2] == "clock_nanosleep" and held is not None:
                length = re.search(r"tv_sec=(\d+), tv_nsec=(\d+)", call[3])
                waits[-1] += int(length[1]) + int(length[2]) / 1e9
        self.assertNotEqual(waits, [])
        self.assertLessEqual(max(waits), LOCKED_WAIT, waits)
        self.assert_next_start_is_its_own()
        self.start(second)
        self.hook("createRuntime", second)
        self.alive.append(second)
        self.reconcile()
        self.check(*self.alive)

    def test_reconcile(self):
        done = self.refused([harness.CTL, "--config", self.config, "reconcile"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("podfirst", done.stderr)
        self.assert_next_start_is_its_own()
        # The pod itself comes back to it.
        self.alive.append(self.create(self.container(FIRST, "b")))
        self.check(*self.alive)


class Unreadable(RefusalCase):
    """A file that cannot be read at all is one pod's affair: all others are cared for, and all is well when it can."""

    def check_others(self, file, named):
        """A directory in the file's place: whoever reads it gets EISDIR."""
        text = file.read_bytes()
        file.unlink()
        file.mkdir(mode=0o700)
        self.addCleanup(lambda: file.is_dir() and file.rmdir())
        made = self.create(self.container(FOURTH, "app"))
        self.assertEqual(self.wrong(*self.alive, made), [])
        self.end(made)
        done = self.call([harness.CTL, "--config", self.config, "reconcile"])
        self.assertEqual(done.returncode, 1)
        self.assertIn(named, done.stderr)
        self.assertIn("pod fourth released", done.stdout.decode())
        self.assertEqual(self.wrong(*self.alive), [])
        other = self.create(self.container(FOURTH, "app"))
        self.assertEqual(self.wrong(*self.alive, other), [])
        self.delete(other)
        file.rmdir()
        file.write_bytes(text)
        self.reconcile()
        self.check(*self.alive)

    def test_record(self):
        self.check_others(self.podqos.state / "pods/first.json", "first.json")

    def test_index(self):
        entries = (self.podqos.state / "containers").iterdir()
        entry = next(e for e in entries if os.readlink(e) == "first")
        entry.unlink()
        entry.mkdir(mode=0o700)
        made = self.create(self.container(FOURTH, "app"))
        self.assertEqual(self.wrong(*self.alive, made), [])
        done = self.call([harness.CTL, "--config", self.config, "reconcile"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{entry} is corrupt, renamed to {entry.name}.corrupt-1", done.stdout.decode() + done.stderr)
        entry.with_name(f"{entry.name}.corrupt-1").rmdir()
        self.assertEqual(os.readlink(entry), "first")
        self.check(*self.alive, made)

    def test_leftovers(self):
        """What a killed podqos left behind, and cannot be removed."""
        left = [self.podqos.state / folder / "x.podqos-tmp" for folder in ("pods", "containers")]
        for directory in left:
            directory.mkdir()
            self.addCleanup(lambda made=directory: made.is_dir() and made.rmdir())
        self.reconcile()
        self.assertEqual(self.wrong(*self.alive), [])


class Remaining(RefusalCase):
    """A cgroup that cannot be removed, nor looked into, is its pod's affair alone, and named until it is gone."""

    def setUp(self):
        super().setUp()
        made = self.alive[1]
        self.path = self.truth.path("second")
        self.nested = []
        for hierarchy in self.machine.hierarchies:
            directory = pathlib.Path(f"{hierarchy.mount}{made.cgroup}/nested/deeper")
            directory.mkdir(parents=True)
            self.nested.append(directory)
        # The kernel removes no directory on which something is mounted, and podqos enters none.
        self.mounted = self.nested[0].parent
        subprocess.run(["mount", "-t", "tmpfs", "none", self.mounted], check=True)
        self.addCleanup(subprocess.run, ["umount", self.mounted], check=False, stderr=subprocess.DEVNULL)
        made.process.kill()
        made.process.wait(timeout=20)
        made.process = None
        self.running.remove(made)
        self.left = self.alive.pop(1)

    def reconcile_in_vain(self):
        done = self.call([harness.CTL, "--config", self.config, "reconcile", "-o", "json"])
        self.assertEqual(done.returncode, 1, done.stderr)
        failed, = json.loads(done.stdout)["failed"]
        for word in ("pod second: ", self.left.cgroup):
            self.assertIn(word, failed)
        self.assert_others_right()

    def assert_others_right(self):
        """On cgroup v1 the pod may still run, and counts; on v2 the kernel tells that nothing is in it."""
        wrong = self.wrong(*self.alive)
        paths = [self.truth.path(made.uid) for made in self.alive]
        self.assertEqual([line for line in wrong if any(path in line for path in paths)], [])

    def mend(self):
        subprocess.run(["umount", self.mounted], check=True)
        self.reconcile()
        self.check(*self.alive)

    def test_reconcile(self):
        for _ in range(2):
            self.reconcile_in_vain()
        self.assert_next_start_is_its_own()
        self.mend()

    def test_event(self):
        self.hook("poststop", self.left)
        self.assert_next_start_is_its_own()
        self.assert_others_right()
        self.reconcile_in_vain()
        self.mend()

    def test_the_pod_comes_again(self):
        self.hook("poststop", self.left)
        self.alive.append(self.create(self.container(SECOND, "app")))
        self.mend()


if __name__ == "__main__":
    harness.main(("runc",))
