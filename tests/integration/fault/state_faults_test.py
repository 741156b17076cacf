"""What becomes of pods that live when podqos's state, its lock, its disk or its cgroups are not as it left them."""

import concurrent.futures
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import oci  # noqa: E402
import oracle  # noqa: E402
import patience  # noqa: E402
import player  # noqa: E402
from harness import GI, container, pod  # noqa: E402

FIRST = pod(
    "first",
    container("a", requests={"cpu": "250m", "memory": "1Gi"}, limits={"cpu": "500m", "memory": "2Gi"}),
    container("b", requests={"cpu": "100m", "memory": "64Mi"}),
)
SECOND = pod("second", container("app", limits={"cpu": "300m", "memory": "512Mi"}))
THIRD = pod("third", container("app", requests={"cpu": "700m", "memory": "3Gi"}))
FOURTH = pod("fourth", container("app", limits={"cpu": "90m", "memory": "256Mi"}))


class StateCase(player.Case):
    """Three pods live; tearDown ends what runs, and nothing of them may be left."""

    def setUp(self):
        super().setUp()
        self.alive = [self.create(self.container(FIRST, "a")), self.create(self.container(SECOND, "app")),
                      self.create(self.container(THIRD, "app"))]
        self.check(*self.alive)

    def tearDown(self):
        self.end_all()
        super().tearDown()

    def end_all(self):
        for made in list(self.running):
            self.delete(made)

    def check_values(self, *living):
        self.assertEqual(self.wrong(*living), [])

    def call(self, *command, stdin=b""):
        """Any program; CompletedProcess with text."""
        started = time.monotonic()
        done = patience.capture(list(map(str, command)), 60, stdin)
        done.seconds = time.monotonic() - started
        done.stderr = done.stderr.decode("utf-8", "replace")
        return done

    def try_place(self, made):
        return self.call(harness.RUNTIME, "--config", self.config, "create", "--bundle", made.bundle.path, made.id)

    def try_hook(self, stage, made):
        return self.call(harness.HOOK, "--config", self.config, stage, stdin=json.dumps(made.state()).encode())

    def configure(self, **settings):
        self.podqos.settings.update(settings)
        self.podqos.config()

    def assert_complaint(self, done, status, *words):
        """Exit status, and one line on stderr that names all of it."""
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(str(word), done.stderr)


def garbage(file):
    put(file, b'\x00\xff{"version": \n]')


def half(file):
    put(file, content(file)[: len(content(file)) // 2])


def nothing(file):
    put(file, b"")


def content(file):
    """Of an entry of the index, which is a link, what it leads to."""
    return os.readlink(file).encode() if file.is_symlink() else file.read_bytes()


def put(file, text):
    file.unlink()
    file.write_bytes(text)


def removed(file):
    file.unlink()


class Damage(StateCase):
    """A file of the state is damaged or gone: what lives keeps its values, and reconcile or an event mends the rest."""

    FAULTS = (garbage, half, nothing, removed)

    def files(self):
        """One of each kind; the record and the index entry are the Burstable pod's."""
        entries = sorted((self.podqos.state / "containers").iterdir())
        entry = next(e for e in entries if os.readlink(e) == "first")
        return [self.podqos.state / "tiers.json", self.podqos.state / "pods/first.json", entry]

    def set_aside(self):
        """Takes away the files that podqos has set aside, and returns them."""
        found = [p for p in self.podqos.state.rglob("*.corrupt-*")]
        for file in found:
            file.unlink()
        return [str(f.relative_to(self.podqos.state)) for f in found]

    def sweep(self, mend):
        """Every fault in every file; `mend` brings the truth back. Then all ends, and is made anew."""
        for number in range(3):
            for fault in self.FAULTS:
                file = self.files()[number]
                with self.subTest(file=file.parent.name if number else file.name, fault=fault.__name__):
                    fault(file)
                    mend()
                    aside = self.set_aside()
                    damaged = str(file.relative_to(self.podqos.state))
                    self.assertTrue(all(a.startswith(f"{damaged}.corrupt-") for a in aside), aside)
                    for made in self.alive:
                        self.delete(made)
                    self.assert_nothing_left()
                    self.alive = [self.create(made) for made in self.alive]
                    self.check(*self.alive)
                if self._outcome_failed():
                    return

    def by_reconcile(self):
        self.reconcile()
        self.check_values(*self.alive)

    def by_reconcile_and_events(self):
        self.by_reconcile()
        self.set_aside_only_once()
        self.by_another_pod()

    def set_aside_only_once(self):
        before = sorted(self.podqos.state.rglob("*.corrupt-*"))
        self.reconcile()
        self.assertEqual(sorted(self.podqos.state.rglob("*.corrupt-*")), before)
        self.check_values(*self.alive)

    def by_another_pod(self):
        other = self.create(self.container(FOURTH, "app"))
        self.check_values(*self.alive, other)
        self.delete(other)
        self.check_values(*self.alive)

    def by_the_same_pod(self):
        """An event that needs the very record."""
        other = self.create(self.container(FIRST, "b"))
        self.check_values(*self.alive, other)
        self.delete(other)
        self.check_values(*self.alive)
        self.reconcile()
        self.check_values(*self.alive)

    def by_its_end(self):
        """The container whose entry is damaged ends, and starts again."""
        self.delete(self.alive[0])
        self.reconcile()
        self.check_values(*self.alive[1:])
        self.create(self.alive[0])
        self.check_values(*self.alive)

    def by_another_pod_and_reconcile(self):
        self.by_another_pod()
        self.reconcile()
        self.check_values(*self.alive)

    def test_reconcile(self):
        self.sweep(self.by_reconcile_and_events)

    def test_next_event_of_another_pod(self):
        self.sweep(self.by_another_pod_and_reconcile)

    def test_next_event_of_the_same_pod(self):
        self.sweep(self.by_the_same_pod)

    def test_end_of_the_container(self):
        self.sweep(self.by_its_end)

    def test_all_files(self):
        for fault in self.FAULTS:
            with self.subTest(fault=fault.__name__):
                for file in [p for p in self.podqos.state.rglob("*") if not p.is_dir() and p.name != "lock"]:
                    fault(file)
                self.by_reconcile()
                self.set_aside()
                self.check(*self.alive)

    def lose_everything(self):
        shutil.rmtree(self.podqos.state)

    def test_whole_directory_and_reconcile(self):
        self.lose_everything()
        self.reconcile()
        self.check(*self.alive)

    def test_whole_directory_and_another_pod(self):
        self.lose_everything()
        self.by_another_pod()
        self.check(*self.alive)

    def test_whole_directory_and_the_same_pod(self):
        self.lose_everything()
        self.by_the_same_pod()
        self.check(*self.alive)

    def test_whole_directory_and_the_end_of_a_container(self):
        self.lose_everything()
        self.by_its_end()
        self.check(*self.alive)

    def test_whole_directory_and_the_end_of_all(self):
        self.lose_everything()
        for made in self.alive:
            self.delete(made)
        self.reconcile()
        self.assert_nothing_left()


class NewerVersion(StateCase):
    """A file that a newer podqos wrote: a clear error, and not a byte is lost."""

    def check_refusal(self, file, path):
        text = file.read_text(encoding="utf-8")
        data = json.loads(text)
        data["version"] += 1
        newer = text.replace(f'"version":{data["version"] - 1}', f'"version":{data["version"]}', 1)
        self.assertNotEqual(newer, text)
        file.write_text(newer, encoding="utf-8")
        before = self.podqos.state_bytes()
        for policy, status in (("admit", 0), ("reject", 1)):
            self.configure(onError=policy)
            made = self.container(FIRST, "b")
            original = made.bundle.read()
            self.assert_complaint(self.try_place(made), status, path, "version 2", made.id)
            self.assertEqual(made.bundle.read(), original)
        done = self.call(harness.CTL, "--config", self.config, "reconcile")
        self.assertEqual(done.returncode, 1)
        self.assertIn("version 2", done.stderr)
        self.assertEqual(self.podqos.state_bytes(), before)
        self.check_values(*self.alive)

    def test_tiers(self):
        file = self.podqos.state / "tiers.json"
        text = file.read_bytes()
        self.addCleanup(self.reconcile_again, file, text)
        self.check_refusal(file, "tiers.json")

    def test_record(self):
        """One pod's record is that pod's trouble alone."""
        file = self.podqos.state / "pods/first.json"
        text = file.read_bytes()
        self.addCleanup(self.reconcile_again, file, text)
        self.check_refusal(file, "first.json")
        other = self.create(self.container(FOURTH, "app"))
        self.check_values(*self.alive, other)
        # Its end is missed.
        self.end(other)
        done = self.call(harness.CTL, "--config", self.config, "reconcile")
        self.assertEqual(done.returncode, 1)
        self.assertIn("pod fourth released", done.stdout.decode())
        self.check_values(*self.alive)

    def reconcile_again(self, file, text):
        """The newer podqos is back."""
        file.write_bytes(text)
        self.reconcile()
        self.check(*self.alive)
        StateCase.end_all(self)

    def end_all(self):
        """Only with the readable state."""


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
                    self.assert_complaint(done, status, lock)
                    self.assertGreaterEqual(done.seconds, 0.3)
                    self.assertLess(done.seconds, 5)
                self.assert_complaint(self.try_hook("poststop", self.alive[0]), 0, lock)
            self.assertEqual(self.call(harness.CTL, "--config", self.config, "reconcile").returncode, 1)
            self.check_values(*self.alive)
        self.reconcile()
        self.check(*self.alive, late)

    def test_freed_in_time(self):
        self.configure(lockDeadline="20s")
        with open(self.podqos.state / "lock", "r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            timer = threading.Timer(0.5, lambda: fcntl.flock(held, fcntl.LOCK_UN))
            timer.start()
            self.create(self.container(FOURTH, "app"))
            timer.join()
        self.check(*self.alive, *self.running[3:])


class BehindOurBack(StateCase):
    """Somebody else changes or removes cgroups of podqos."""

    def spoil(self, path):
        """Other values in one cgroup of podqos."""
        self.spoil_share(path)
        unified = self.machine.version("memory") == 2
        self.write(path, "memory", "memory.max" if unified else "memory.limit_in_bytes", str(5 * GI))

    def spoil_share(self, path):
        unified = self.machine.version("cpu") == 2
        self.write(path, "cpu", "cpu.weight" if unified else "cpu.shares", "777")

    def write(self, path, controller, file, text):
        mount = self.machine.hierarchy(controller).mount
        pathlib.Path(mount + path, file).write_text(text, encoding="ascii")

    def test_values_and_reconcile(self):
        for path in self.truth.expected():
            self.spoil(path)
        self.assertEqual(len(self.wrong(*self.alive)), 10)
        changes = "\n".join(self.podqos.ctl_json("reconcile")["changes"])
        self.check(*self.alive)
        for path in self.truth.expected():
            self.assertIn(f"{path}/", changes)
        self.assertEqual(self.podqos.ctl_json("reconcile")["changes"], [])

    def test_values_and_the_next_event(self):
        """The pod of the event and the tiers; a limit that the pod has not at all is left to reconcile."""
        self.spoil_share(self.truth.path("first"))
        self.spoil(self.truth.tier("burstable"))
        other = self.create(self.container(FIRST, "b"))
        self.check(*self.alive, other)

    def empty_pod(self, made):
        """The process leaves, and somebody removes the pod's cgroups."""
        for hierarchy in self.machine.hierarchies:
            pathlib.Path(hierarchy.mount, "cgroup.procs").write_text(str(made.process.pid), encoding="ascii")
        for path in (made.cgroup, self.truth.path(made.uid)):
            self.machine.remove(path)

    def test_pod_removed_and_reconcile(self):
        self.empty_pod(self.alive[0])
        self.reconcile()
        self.check_values(*self.alive)

    def test_pod_removed_and_the_same_pod(self):
        self.empty_pod(self.alive[0])
        other = self.create(self.container(FIRST, "b"))
        self.check_values(*self.alive, other)

    def test_pod_removed_and_another_pod(self):
        self.empty_pod(self.alive[1])
        other = self.create(self.container(FOURTH, "app"))
        self.reconcile()
        self.check_values(*self.alive, other)

    def test_pod_removed_and_its_end(self):
        self.empty_pod(self.alive[0])
        self.delete(self.alive[0])
        self.check(*self.alive[1:])

    def test_empty_tier_removed(self):
        for mend in (self.reconcile, lambda: self.create(self.container(FOURTH, "app"))):
            self.machine.remove(self.truth.tier("besteffort"))
            mend()
            self.check(*self.running)

    def test_pod_made_anew(self):
        """Somebody removes a pod's cgroup and makes another of its name: it gets all values, huge pages' too."""
        path = self.truth.path("first")
        if self.machine.read(path, "hugetlb.2MB") is None:
            self.skipTest("this machine limits no huge pages")
        self.empty_pod(self.alive[0])
        for top in self.machine.directories(self.truth.tier("burstable")):
            os.mkdir(f"{top}/podfirst")
        other = self.create(self.container(FIRST, "b"))
        self.check_values(*self.alive, other)
        self.assertEqual(self.machine.read(path, "hugetlb.2MB"), 0)


class FullDisk(StateCase):
    """The file system of the state is full: nothing is lost, and with room again everything is as it should be."""

    def setUp(self):
        libc = ctypes.CDLL(None, use_errno=True)
        clone_newns, ms_rec, ms_private = 0x20000, 0x4000, 0x40000
        if libc.unshare(clone_newns) != 0 or libc.mount(b"none", b"/", None, ms_rec | ms_private, None) != 0:
            raise OSError(ctypes.get_errno(), "no private mount namespace")
        harness.TestCase.setUp(self)
        self.podqos.state.mkdir(mode=0o700)
        if libc.mount(b"tmpfs", str(self.podqos.state).encode(), b"tmpfs", 0, b"size=128k,mode=700") != 0:
            raise OSError(ctypes.get_errno(), "no tmpfs")
        self.addCleanup(libc.umount2, str(self.podqos.state).encode(), 2)
        self.prepare()
        self.alive = [self.create(self.container(FIRST, "a")), self.create(self.container(SECOND, "app"))]
        self.check(*self.alive)

    def fill(self):
        with open(self.podqos.state / "filler", "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass

    def make_room(self):
        (self.podqos.state / "filler").unlink()

    def test_start_and_end(self):
        for policy, status in (("admit", 0), ("reject", 1)):
            for mend in (self.reconcile, self.pass_by):
                with self.subTest(onError=policy, mend=mend.__name__):
                    self.configure(onError=policy)
                    self.check_round(status, mend)

    def check_round(self, status, mend):
        placed, late = self.container(THIRD, "app"), self.create(self.container(FIRST, "b"))
        original = placed.bundle.read()
        self.fill()
        try:
            self.assert_complaint(self.try_place(placed), status, self.podqos.state, "No space left")
            self.assertEqual(placed.bundle.read(), original)
            self.end(late)
            self.assert_complaint(self.try_hook("poststop", late), 0, self.podqos.state, "No space left")
            self.check_values(*self.alive)
        finally:
            self.make_room()
        mend()
        self.check(*self.alive)

    def pass_by(self):
        """An ordinary event of somebody else."""
        self.delete(self.create(self.container(FOURTH, "app")))

    def test_confirmation(self):
        made = self.container(THIRD, "app")
        self.place(made)
        self.start(made)
        self.fill()
        self.assert_complaint(self.try_hook("createRuntime", made), 0, self.podqos.state, "No space left")
        self.make_room()
        self.reconcile()
        self.check(*self.alive, made)


class EqualIds(player.Case):
    """The same container id under two runtimes: the bundle tells them apart."""

    def twins(self, first, second):
        one, two = self.container(*first), self.container(*second)
        two.id = one.id
        return self.create(one), self.create(two)

    def check_pair(self, first, second):
        one, two = self.twins(first, second)
        self.check_each(one, two)
        self.assertNotEqual(one.cgroup, two.cgroup)
        self.delete(one)
        self.check_each(two)
        self.create(one)
        self.check_each(one, two)
        self.delete(two)
        self.check_each(one)
        self.delete(one)
        self.assert_nothing_left()

    def check_each(self, *living):
        """As check(), but one file of the index holds all entries of an id."""
        self.assertEqual(self.wrong(*living), [])
        for made in living:
            self.assertEqual(os.path.dirname(machines.cgroup_of(made.process.pid)), self.truth.path(made.uid))

    def test_two_pods(self):
        self.check_pair((FIRST, "a"), (SECOND, "app"))

    def test_one_pod(self):
        self.check_pair((FIRST, "a"), (FIRST, "b"))

    def test_no_bundle_named(self):
        one, two = self.twins((FIRST, "a"), (SECOND, "app"))
        for state in ({**one.state(), "bundle": "/gone"}, {k: v for k, v in one.state().items() if k != "bundle"}):
            done = self.podqos.hook("poststop", {**state, "status": "stopped", "pid": 0})
            self.assertEqual(done.returncode, 0)
            self.check_each(one, two)
        self.end(one)
        state = {**one.state(), "bundle": ""}
        self.assertIn(one.id, self.podqos.hook("poststop", state).stderr)
        self.assertEqual(self.wrong(one, two), [])
        self.reconcile()
        self.check_each(two)
        self.delete(two)


class Crowd(player.Case):
    """1,000 hooks, 32 at a time: every update counts."""

    settings = {**player.Case.settings, "placement": {"onMisplaced": "ignore"}, "nodeCpu": "10000",
                "nodeMemory": "512Gi", "lockDeadline": "30s"}
    PODS, AT_ONCE = 500, 32

    def member(self, number):
        """Pod and container `number`; each has requests of its own."""
        kinds = ({"requests": {"cpu": f"{number + 1}m", "memory": f"{number + 1}Mi"}},
                 {"limits": {"cpu": f"{number + 10}m", "memory": f"{number + 64}Mi"}}, {})
        uid, resources = f"crowd-{number}", kinds[number % 3]
        made = player.Container(pod(uid, container("app"), resources=resources), "app", f"{self.root[1:]}-{number}",
                                self.bundle(label="crowd"))
        made.bundle.annotations.update({"podqos.io/pod-uid": uid, "podqos.io/container": "app"})
        for field, values in resources.items():
            text = ",".join(f"{k}={v}" for k, v in values.items())
            made.bundle.annotations[f"podqos.io/{field}"] = text
        made.bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/all"
        made.bundle.save()
        return made

    def begin(self, made):
        made.cgroup = f"{self.elsewhere}/all"
        made.process = subprocess.Popen(["/bin/sleep", "1000"], stdin=subprocess.DEVNULL)
        self.running.append(made)
        self.hook("createRuntime", made)

    def finish(self, made):
        made.process.kill()
        made.process.wait(timeout=20)
        made.process = None
        self.running.remove(made)
        self.hook("poststop", made)

    def all_at_once(self, jobs):
        with concurrent.futures.ThreadPoolExecutor(self.AT_ONCE) as pool:
            for done in [pool.submit(job, made) for job, made in jobs]:
                done.result()

    def test_no_update_is_lost(self):
        self.truth = oracle.Truth(f"{self.root}/kubepods", 512 * GI)
        members = [self.member(n) for n in range(self.PODS)]
        middle = self.PODS // 2
        first, second = members[:middle], members[middle:]
        self.all_at_once([(self.begin, m) for m in first])
        self.check_values(first)
        self.all_at_once([pair for f, s in zip(first, second) for pair in ((self.finish, f), (self.begin, s))])
        self.check_values(second)
        self.all_at_once([(self.finish, m) for m in second])
        self.assert_nothing_left()

    def check_values(self, living):
        self.assertEqual(self.wrong(*living), [])
        self.assertEqual(len(self.podqos.records()), 2 * len(living))
        self.reconcile()
        self.assertEqual(self.wrong(*living), [])


@harness.runc_only
class HiddenProcesses(harness.TestCase):
    """On a host whose /proc hides processes (hidepid), what lives is alive, what comes is placed, what ends is gone."""

    MANIFEST = pod("hidden-1", container("a", requests={"cpu": "100m"}), container("b", requests={"cpu": "200m"}))
    OPTIONS = ("hidepid=1", "hidepid=2", "hidepid=2,gid=4242", "hidepid=4")

    def setUp(self):
        super().setUp()
        if tuple(map(int, os.uname().release.split(".")[:2])) < (5, 8):
            self.skipTest("before Linux 5.8 hidepid would hold for the whole machine")

    def hidden(self, options, *lost):
        """argv before a command that sees such a /proc, without the capabilities `lost`."""
        mounted = f'mount -t proc -o {options} proc /proc && exec "$@"'
        drop = ["setpriv", f"--bounding-set={','.join('-' + name for name in lost)}", "--"] if lost else []
        return ["unshare", "--mount", "sh", "-c", mounted, "sh", *drop]

    def reconcile(self, before):
        command = [*before, str(harness.CTL), "--config", str(self.podqos.config(self.kind)), "reconcile"]
        done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def containers(self):
        return sum(len(known["containers"]) for known in self.podqos.ctl_json("status")["pods"])

    def test_living_containers_stay(self):
        name, _ = self.launch(self.MANIFEST, "a")
        for options in self.OPTIONS:
            for lost in ((), ("sys_ptrace",)):
                with self.subTest(options=options, lost=lost):
                    self.reconcile(self.hidden(options, *lost))
                    self.assertEqual(self.containers(), 1)
        self.wrapper.delete(name)
        self.assert_nothing_left()

    def test_ended_ones_go(self):
        for options in self.OPTIONS:
            with self.subTest(options=options):
                _, pid = self.launch(self.MANIFEST, "a")
                os.kill(pid, signal.SIGKILL)
                patience.wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists(), 60, "the container's end")
                self.reconcile(self.hidden(options, "sys_ptrace"))
                self.assertEqual(self.podqos.records(), [])

    def test_a_container_is_placed(self):
        for options in self.OPTIONS:
            with self.subTest(options=options):
                first, _ = self.launch(self.MANIFEST, "a")
                seen = oci.Runtime(self.kind, self.wrapper.root,
                                   [*self.hidden(options), *self.podqos.prefix(self.kind)])
                name = self.container_id("b")
                pid = seen.launch(name, self.bundle(self.MANIFEST, "b"))
                self.assert_placed(pid, self.pod_path("burstable", "hidden-1"))
                self.assert_values(self.pod_path("burstable", "hidden-1"), shares=307)
                self.assertEqual(self.containers(), 2)
                seen.delete(name)
                self.wrapper.delete(first)
                self.assert_nothing_left()


if __name__ == "__main__":
    harness.main(("runc",))
