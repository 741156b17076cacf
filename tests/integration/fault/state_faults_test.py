"""What becomes of pods that live when podqos's state, its lock, its disk or its cgroups are not as it left them.

What the kernel does not take, or nobody can read, is one pod's affair: no other start waits for it.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import oci  # noqa: E402
import patience  # noqa: E402
import player  # noqa: E402
from harness import GI, container, pod  # noqa: E402

FIRST = pod(
    "first",
    container("a", requests={"cpu": "250m", "memory": "1Gi"}, limits={"cpu": "500m", "memory": "2Gi"}),
    container("b", requests={"cpu": "100m", "memory": "64Mi"}, limits={"cpu": "200m", "memory": "128Mi"}),
)
SECOND = pod("second", container("app", limits={"cpu": "300m", "memory": "512Mi"}))
THIRD = pod("third", container("app", requests={"cpu": "700m", "memory": "3Gi"}))
FOURTH = pod("fourth", container("app", limits={"cpu": "90m", "memory": "256Mi"}))
# An event may wait so long, in all, while it holds the lock.
LOCKED_WAIT = 0.05
CALL = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\w+)")


class StateCase(player.Case):
    """Three pods live; tearDown ends what runs, and nothing of them may be left."""

    def setUp(self):
        super().setUp()
        self.start_pods((FIRST, "a"), (SECOND, "app"), (THIRD, "app"))

    def start_pods(self, *described):
        self.alive = [self.create(self.container(*each)) for each in described]
        self.check(*self.alive)

    def tearDown(self):
        for made in list(self.running):
            self.delete(made)
        super().tearDown()

    def check_values(self, *living):
        self.assertEqual(self.wrong(*living), [])

    def call(self, *command, stdin=b""):
        """Any program; CompletedProcess with text."""
        started = time.monotonic()
        done = patience.capture(list(map(str, command)), stdin)
        done.seconds = time.monotonic() - started
        done.stdout, done.stderr = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        return done

    def creation(self, made):
        return [harness.RUNTIME, "--config", self.config, "create", "--bundle", made.bundle.path, made.id]

    def try_place(self, made):
        return self.call(*self.creation(made))

    def try_hook(self, stage, made):
        return self.call(harness.HOOK, "--config", self.config, stage, stdin=json.dumps(made.state()).encode())

    def try_reconcile(self, *options):
        return self.call(harness.CTL, "--config", self.config, "reconcile", *options)

    def configure(self, **settings):
        self.podqos.settings.update(settings)
        self.podqos.config()

    def assert_complaint(self, done, status, *words):
        """Exit status, and one line on stderr that names all of it."""
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(str(word), done.stderr)

    def assert_next_start_is_its_own(self):
        """The start of another pod reads no pod but its own."""
        before = len(self.podqos.log_text())
        self.alive.append(self.create(self.container(FOURTH, "app")))
        self.assertNotIn("restoring all", self.podqos.log_text()[before:])

    # What brings the truth back.

    def by_reconcile(self):
        self.reconcile()
        self.check_values(*self.alive)

    def by_another_pod(self):
        other = self.create(self.container(FOURTH, "app"))
        self.check_values(*self.alive, other)
        self.delete(other)
        self.by_reconcile()

    def by_the_same_pod(self):
        """An event that needs the very record."""
        other = self.create(self.container(FIRST, "b"))
        self.check_values(*self.alive, other)
        self.delete(other)
        self.check_values(*self.alive)
        self.by_reconcile()

    def by_its_end(self):
        """A container of the first pod ends, and starts again."""
        self.delete(self.alive[0])
        self.reconcile()
        self.check_values(*self.alive[1:])
        self.create(self.alive[0])
        self.check_values(*self.alive)


# Damage of a file. Of an entry of the index, which is a link, the content is what it leads to.
FAULTS = {
    "garbage": lambda content: b'\x00\xff{"version": \n]',
    "half": lambda content: content[:len(content) // 2],
    "nothing": lambda content: b"",
    "removed": lambda content: None,
}


def damage(file, fault):
    text = FAULTS[fault](os.readlink(file).encode() if file.is_symlink() else file.read_bytes())
    file.unlink()
    if text is not None:
        file.write_bytes(text)


class Damage(StateCase):
    """A file of the state is damaged or gone: what lives keeps its values, and reconcile or an event mends the rest."""

    def files(self):
        """One of each kind; the record and the index entry are the Burstable pod's."""
        entry = next(e for e in (self.podqos.state / "containers").iterdir() if os.readlink(e) == "first")
        return [*(self.podqos.state / name for name in ("node.json", "rows", "pods/first.json")), entry]

    def set_aside(self):
        """Takes away the files that podqos has set aside, and returns them."""
        found = list(self.podqos.state.rglob("*.corrupt-*"))
        for file in found:
            file.unlink()
        return [str(f.relative_to(self.podqos.state)) for f in found]

    def test_each_file(self):
        """Every fault in every file, mended in each way. Then all ends, and is made anew."""
        for mend in (self.by_reconcile, self.by_another_pod, self.by_the_same_pod, self.by_its_end):
            for number in range(4):
                for fault in FAULTS:
                    file = self.files()[number]
                    with self.subTest(file=file.parent.name if number > 1 else file.name, fault=fault, mend=mend.__name__):
                        damage(file, fault)
                        mend()
                        damaged = f"{file.relative_to(self.podqos.state)}.corrupt-"
                        aside = self.set_aside()
                        self.assertTrue(all(a.startswith(damaged) for a in aside), aside)
                        self.reconcile()
                        self.assertEqual(self.set_aside(), [], "set aside once more")
                        for made in self.alive:
                            self.delete(made)
                        self.assert_nothing_left()
                        self.start_again()
                    if self._outcome_failed():
                        return

    def test_what_reconcile_says(self):
        """Of each corrupt file once, also of a record, which is read only when its pod is compared."""
        for file in (f for f in self.files() if f.suffix == ".json"):
            with self.subTest(file=file.name):
                damage(file, "garbage")
                done = self.try_reconcile("-o", "json")
                self.assertEqual(done.returncode, 0, done.stderr)
                said = [w for w in json.loads(done.stdout)["warnings"] if f"{file} is corrupt" in w]
                self.assertEqual(len(said), 1, done.stdout)
                self.assertEqual(len(self.set_aside()), 1)
                self.check(*self.alive)

    def start_again(self):
        self.alive = [self.create(made) for made in self.alive]
        self.check(*self.alive)

    def test_all_files(self):
        for fault in FAULTS:
            with self.subTest(fault=fault):
                for file in [p for p in self.podqos.state.rglob("*") if not p.is_dir() and p.name != "lock"]:
                    damage(file, fault)
                self.by_reconcile()
                self.set_aside()
                self.check(*self.alive)

    def test_whole_directory(self):
        for mend in (self.by_reconcile, self.by_another_pod, self.by_the_same_pod, self.by_its_end):
            with self.subTest(mend=mend.__name__):
                shutil.rmtree(self.podqos.state)
                for command in ("status", "tree"):
                    self.assertIn(f"cgroup {self.root}/kubepods was created by podqos, but {self.podqos.state} has lost the "
                                  "records", self.podqos.ctl(command).stdout)
                mend()
                self.check(*self.alive)
        shutil.rmtree(self.podqos.state)
        for made in self.alive:
            self.delete(made)
        self.reconcile()
        self.assert_nothing_left()

    def test_record_that_cannot_be_read_at_all(self):
        """A directory in its place: whoever reads it gets EISDIR. All others are cared for."""
        file = self.files()[2]
        text = file.read_bytes()
        file.unlink()
        file.mkdir(mode=0o700)
        self.addCleanup(lambda: file.is_dir() and file.rmdir())
        made = self.create(self.container(FOURTH, "app"))
        self.check_values(*self.alive, made)
        self.end(made)
        done = self.try_reconcile()
        self.assertEqual(done.returncode, 1)
        self.assertIn("first.json", done.stderr)
        self.assertIn("pod fourth released", done.stdout)
        self.check_values(*self.alive)
        file.rmdir()
        file.write_bytes(text)
        self.reconcile()
        self.check(*self.alive)


class Lock(StateCase):
    """Who cannot have the lock gives up at the deadline, and says which lock it was."""

    settings = {**player.Case.settings, "lockDeadline": "300ms"}

    def test_held_for_long(self):
        placed, late = self.container(FOURTH, "app"), self.container(FIRST, "b")
        self.place(late)
        self.start(late)
        lock = self.podqos.state / "lock"
        with open(lock, "r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            for policy, status in (("admit", 0), ("reject", 1)):
                self.configure(onError=policy)
                for done in (self.try_place(placed), self.try_hook("createRuntime", late)):
                    self.assert_complaint(done, status, lock, "after 300 ms")
                    self.assertGreaterEqual(done.seconds, 0.3)
                self.assert_complaint(self.try_hook("poststop", self.alive[0]), 0, lock)
            self.assertEqual(self.try_reconcile().returncode, 1)
            self.check_values(*self.alive)
        self.reconcile()
        self.check(*self.alive, late)


class BehindOurBack(StateCase):
    """Somebody else changes or removes cgroups of podqos."""

    SHARE = "cpu", "cpu.shares", "cpu.weight", "777"
    MEMORY = "memory", "memory.limit_in_bytes", "memory.max", str(5 * GI)

    def spoil(self, path, *values):
        for controller, old, new, text in values:
            found = self.machine.hierarchy(controller)
            file = pathlib.Path(found.mount + path, old if found.version == 1 else new)
            file.write_text(text, encoding="ascii")

    def test_values(self):
        for path in self.truth.expected():
            self.spoil(path, self.SHARE, self.MEMORY)
        self.assertEqual(len(self.wrong(*self.alive)), 10)
        changes = "\n".join(self.podqos.ctl_json("reconcile")["changes"])
        self.check(*self.alive)
        for path in self.truth.expected():
            self.assertIn(f"{path}/", changes)
        self.assertEqual(self.podqos.ctl_json("reconcile")["changes"], [])

    def test_values_and_the_next_event(self):
        """Of its pod and its tier; a limit that the pod has not at all is left to reconcile."""
        self.spoil(self.truth.path("first"), self.SHARE)
        self.spoil(self.truth.tier("burstable"), self.SHARE, self.MEMORY)
        self.assertEqual(len(self.wrong(*self.alive)), 3)
        other = self.create(self.container(FIRST, "b"))
        self.check(*self.alive, other)

    def test_left_over_in_one_hierarchy(self):
        """Directories of a pod that no record names."""
        for controller in ("cpu", "memory"):
            top = pathlib.Path(f"{self.machine.hierarchy(controller).mount}{self.root}/kubepods")
            # The memory hierarchy tells by an attribute whose it is.
            marked = controller == "memory" and self.machine.version("memory") == 1
            for pod_path, below in (("podgone", ""), ("besteffort/podgone", ""), ("burstable/podgone", "left/inner")):
                with self.subTest(controller=controller, path=pod_path):
                    (top / pod_path / below).mkdir(parents=True)
                    if marked:
                        os.setxattr(top / pod_path, "trusted.podqos.record", b"{}")
                    self.reconcile()
                    self.assertFalse((top / pod_path).exists())
                    self.check(*self.alive)

    def by_another_pod(self):
        """Whose event looks after no other pod: then reconcile."""
        other = self.create(self.container(FOURTH, "app"))
        self.reconcile()
        self.check_values(*self.alive, other)
        self.delete(other)

    def test_pod_removed(self):
        for mend in (self.by_reconcile, self.by_another_pod, self.by_the_same_pod, self.by_its_end):
            with self.subTest(mend=mend.__name__):
                made = self.alive[0]
                for hierarchy in self.machine.hierarchies:
                    pathlib.Path(hierarchy.mount, "cgroup.procs").write_text(str(made.process.pid), encoding="ascii")
                for path in (made.cgroup, self.truth.path(made.uid)):
                    self.machine.remove(path)
                mend()
                # Back to where the next round begins.
                self.delete(made)
                self.create(made)

    def test_empty_tier_removed(self):
        for mend in (self.reconcile, lambda: self.create(self.container(FOURTH, "app"))):
            self.machine.remove(self.truth.tier("besteffort"))
            mend()
            self.check(*self.running)


class FullDisk(StateCase):
    """The file system of the state is full: nothing is lost, and with room again everything is as it should be."""

    def setUp(self):
        machines.private_mounts()
        harness.TestCase.setUp(self)
        self.podqos.state.mkdir(mode=0o700)
        subprocess.run(["mount", "-n", "-t", "tmpfs", "-o", "size=128k,mode=700", "tmpfs", self.podqos.state], check=True)
        self.addCleanup(subprocess.run, ["umount", "-n", "-l", self.podqos.state], check=True)
        self.prepare()
        self.start_pods((FIRST, "a"), (SECOND, "app"))

    @contextlib.contextmanager
    def full(self):
        filler = self.podqos.state / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        try:
            yield
        finally:
            filler.unlink()

    def test_start_and_end(self):
        for policy, status in (("admit", 0), ("reject", 1)):
            for mend in (self.reconcile, lambda: self.delete(self.create(self.container(FOURTH, "app")))):
                with self.subTest(onError=policy, mend=mend.__name__):
                    self.configure(onError=policy)
                    self.check_round(status, mend)

    def check_round(self, status, mend):
        placed, late = self.container(THIRD, "app"), self.create(self.container(FIRST, "b"))
        original = placed.bundle.read()
        with self.full():
            self.assert_complaint(self.try_place(placed), status, self.podqos.state, "No space left")
            self.assertEqual(placed.bundle.read(), original)
            self.end(late)
            self.assert_complaint(self.try_hook("poststop", late), 0, self.podqos.state, "No space left")
            self.check_values(*self.alive)
        mend()
        self.check(*self.alive)

    def test_confirmation(self):
        made = self.container(THIRD, "app")
        self.place(made)
        self.start(made)
        with self.full():
            self.assert_complaint(self.try_hook("createRuntime", made), 0, self.podqos.state, "No space left")
        self.reconcile()
        self.check(*self.alive, made)


class EqualIds(player.Case):
    """The same container id under two runtimes: the bundle tells them apart."""

    def check_each(self, *living):
        """As check(), but one file of the index holds all entries of an id."""
        self.assertEqual(self.wrong(*living), [])
        for made in living:
            self.assertEqual(os.path.dirname(machines.cgroup_of(made.process.pid)), self.truth.path(made.uid))

    def test_no_bundle_named(self):
        one, two = self.container(FIRST, "a"), self.container(SECOND, "app")
        two.id = one.id
        self.create(one)
        self.create(two)
        for state in ({**one.state(), "bundle": "/gone"}, {k: v for k, v in one.state().items() if k != "bundle"}):
            self.podqos.hook("poststop", {**state, "status": "stopped", "pid": 0})
            self.check_each(one, two)
        self.end(one)
        self.assertIn(one.id, self.podqos.hook("poststop", {**one.state(), "bundle": ""}).stderr)
        self.assertEqual(self.wrong(one, two), [])
        self.reconcile()
        self.check_each(two)
        self.delete(two)


class Beyond(StateCase):
    """A claim that the kernel just takes; what is beyond, cgroup_values_test.cpp refuses before anything is written."""

    def test_highest_quota(self):
        """kernel/sched/core.c: max_cfs_runtime is MAX_BW, (1 << 44) - 1 microseconds."""
        made = self.container(pod("large", container("app", {"cpu": "1m"}, {"cpu": "175921860"})), "app")
        self.try_place(made)
        self.assertIn("large", json.loads(made.bundle.read())["linux"]["cgroupsPath"])
        self.start(made)
        self.hook("createRuntime", made)
        self.assert_next_start_is_its_own()
        self.assertNotIn("Invalid argument", self.podqos.log_text())


class ByTheKernel(StateCase):
    """cgroup v1 refuses a quota below that of a child, for a while or for good."""

    def setUp(self):
        super().setUp()
        if self.machine.version("cpu") != 1:
            self.skipTest("cgroup v2 takes every quota, whatever its children have")
        self.pod = pathlib.Path(self.machine.hierarchy("cpu").mount, f"{self.root[1:]}/kubepods/burstable/podfirst")

    def refused(self, *command, meanwhile=lambda: None):
        """Runs it, and then `meanwhile`, while a child holds a quota above the pod's, which has to be written."""
        quota, child = self.pod / "cpu.cfs_quota_us", self.pod / "slow"
        quota.write_text("700000", encoding="ascii")
        child.mkdir()
        (child / "cpu.cfs_quota_us").write_text("600000", encoding="ascii")
        with subprocess.Popen(["/bin/sleep", "1000"], stdin=subprocess.DEVNULL) as held:
            (child / "cgroup.procs").write_text(str(held.pid), encoding="ascii")
            try:
                done = self.call(*command)
                self.assertEqual(quota.read_text(encoding="ascii"), "700000\n")
                meanwhile()
            finally:
                held.kill()
                held.wait()
                child.rmdir()
        return done

    def check_start_of_another(self):
        """Which needs nothing of the pod with the refused values."""
        self.configure(onError="reject")
        self.assert_next_start_is_its_own()

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_start(self):
        """Others have the lock while it waits, and none recomputes because of it."""
        second, trace = self.container(FIRST, "b"), self.tmp / "strace"
        self.refused("strace", "-f", "-qq", "-o", trace, "-e", "trace=flock,close,clock_nanosleep", *self.creation(second),
                     meanwhile=self.check_start_of_another)
        waits, held = [], None
        for call in filter(None, map(CALL.match, trace.read_text(encoding="utf-8", errors="replace").splitlines())):
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
        self.start(second)
        self.hook("createRuntime", second)
        self.alive.append(second)
        self.reconcile()
        self.check(*self.alive)

    def test_reconcile(self):
        done = self.refused(harness.CTL, "--config", self.config, "reconcile")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("podfirst", done.stderr)
        self.assert_next_start_is_its_own()
        # The pod itself comes back to it.
        self.alive.append(self.create(self.container(FIRST, "b")))
        self.check(*self.alive)


class Remaining(StateCase):
    """A cgroup that cannot be removed, nor looked into, is its pod's affair alone, and named until it is gone."""

    def setUp(self):
        super().setUp()
        self.left = self.alive.pop(1)
        for hierarchy in self.machine.hierarchies:
            pathlib.Path(f"{hierarchy.mount}{self.left.cgroup}/nested/deeper").mkdir(parents=True)
        # The kernel removes no directory on which something is mounted, and podqos enters none.
        self.mounted = f"{self.machine.hierarchies[0].mount}{self.left.cgroup}/nested"
        subprocess.run(["mount", "-t", "tmpfs", "none", self.mounted], check=True)
        self.addCleanup(subprocess.run, ["umount", self.mounted], check=False, stderr=subprocess.DEVNULL)
        self.left.process.kill()
        self.left.process.wait()
        self.left.process = None
        self.running.remove(self.left)

    def reconcile_in_vain(self):
        done = self.try_reconcile("-o", "json")
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

    def test_event(self):
        self.hook("poststop", self.left)
        self.assert_next_start_is_its_own()
        self.assert_others_right()
        for _ in range(2):
            self.reconcile_in_vain()
        self.mend()

    def test_the_pod_comes_again(self):
        self.hook("poststop", self.left)
        self.alive.append(self.create(self.container(SECOND, "app")))
        self.mend()


@harness.runc_only
class HiddenProcesses(harness.TestCase):
    """On a host whose /proc hides processes (hidepid), what lives is alive, what comes is placed, what ends is gone."""

    MANIFEST = pod("hidden-1", container("a", requests={"cpu": "100m"}), container("b", requests={"cpu": "200m"}))

    def hidden(self, options, *lost):
        """argv before a command that sees such a /proc, without the capabilities `lost`."""
        mounted = f'mount -t proc -o {options} proc /proc && exec "$@"'
        drop = ["setpriv", f"--bounding-set={','.join('-' + name for name in lost)}", "--"] if lost else []
        return ["unshare", "--mount", "sh", "-c", mounted, "sh", *drop]

    def reconcile(self, before):
        subprocess.run([*before, harness.CTL, "--config", self.podqos.config(self.kind), "reconcile"], check=True,
                       stdout=subprocess.DEVNULL)

    def containers(self):
        return sum(len(known["containers"]) for known in self.podqos.ctl_json("status")["pods"])

    def test_life(self):
        if tuple(map(int, os.uname().release.split(".")[:2])) < (5, 8):
            self.skipTest("before Linux 5.8 hidepid would hold for the whole machine")
        for options in ("hidepid=1", "hidepid=2", "hidepid=2,gid=4242", "hidepid=4"):
            with self.subTest(options=options):
                _, first = self.launch(self.MANIFEST, "a")
                seen = oci.Runtime(self.kind, self.wrapper.root, [*self.hidden(options), *self.podqos.prefix(self.kind)])
                name = self.container_id("b")
                second = seen.launch(name, self.bundle(self.MANIFEST, "b"))
                self.assert_placed(second, self.pod_path("burstable", "hidden-1"))
                self.assert_values(self.pod_path("burstable", "hidden-1"), shares=307)
                for lost in ((), ("sys_ptrace",)):
                    self.reconcile(self.hidden(options, *lost))
                    self.assertEqual(self.containers(), 2)
                seen.delete(name)
                self.assertEqual(self.containers(), 1)
                os.kill(first, signal.SIGKILL)
                patience.expect(lambda: not pathlib.Path(f"/proc/{first}").exists(), "the container's end")
                self.reconcile(self.hidden(options, "sys_ptrace"))
                self.assert_nothing_left()


if __name__ == "__main__":
    harness.main(("runc",))
