"""podqos-nri when the state's lock is held, its disk is full, a pod cannot be read or a container is misplaced."""

import contextlib
import fcntl
import os
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import nri_case  # noqa: E402
import nri_peer  # noqa: E402
from harness import MI  # noqa: E402
from nri_case import Container, Pod  # noqa: E402

SMALL = {"shares": 102, "quota": 20000, "memory": 128 * MI}
BAD = {"podqos.io/requests": "cpu=lots"}
LAST_PID = pathlib.Path("/proc/sys/kernel/ns_last_pid")


class FaultCase(nri_case.Case):
    """A pod with one container lives, and ends."""

    def setUp(self):
        super().setUp()
        self.mounts = []

    def end_all(self):
        try:
            super().end_all()
        finally:
            for place in self.mounts:
                subprocess.run(["umount", "-n", place], check=True, timeout=60)

    def mount(self, place, options):
        place.mkdir(mode=0o700)
        subprocess.run(["mount", "-n", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True, timeout=60)
        self.mounts.append(place)

    def live(self):
        self.connect()
        return self.launch(Container(Pod("fault-1"), **SMALL))

    def enter_as(self, number):
        """A process of somebody else that has this number."""
        if not os.access(LAST_PID, os.W_OK):
            self.skipTest(f"{LAST_PID} cannot be written: no process gets a chosen number")
        for _ in range(100):
            LAST_PID.write_text(str(number - 1), encoding="ascii")
            other = self.enter(Pod("other"), f"{self.elsewhere}/other")
            if other.pid == number:
                return other
            self.die(other)
        return self.skipTest(f"others were given the number {number}")

    def end(self, box):
        """What the runtime tells of the end; the pod's sandbox has been too short-lived to be told of."""
        self.die(box)
        self.ask("StopContainer", box)
        self.ask("RemoveContainer", box)


class Lock(FaultCase):
    """Somebody else holds the state's lock. The runtime waits for no answer longer than it must."""

    @contextlib.contextmanager
    def held(self):
        with open(self.podqos.state / "lock", "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock

    @contextlib.contextmanager
    def contended(self):
        """Held for 400 ms at a time, so that each waits for nearly as long as it may."""
        ended = threading.Event()

        def hold():
            with self.held() as lock:
                while not ended.wait(0.4):
                    fcntl.flock(lock, fcntl.LOCK_UN)
                    time.sleep(0.03)
                    fcntl.flock(lock, fcntl.LOCK_EX)

        holder = threading.Thread(target=hold)
        holder.start()
        try:
            yield
        finally:
            ended.set()
            holder.join()

    def test_stop_of_a_living_container(self):
        """An earlier container's, perhaps: it is not waited for."""
        box = self.live()
        self.assert_answered_within(0.15, "StopContainer", box)
        self.assertEqual(self.states("fault-1"), {box.id: "live"})

    def test_stop_while_others_work(self):
        box = self.live()
        with self.contended():
            self.assert_answered_within(1, "StopContainer", box)
        self.assertEqual(self.states("fault-1"), {box.id: "live"})

    def test_runtime_of_little_patience(self):
        """It says with each call how long it waits."""
        self.live()
        box = Container(Pod("fault-2"))
        with self.held():
            self.assert_answered_within(0.2, "CreateContainer", box, budget=0.2)

    def test_end_that_could_not_be_noted(self):
        box = self.live()
        with self.held():
            self.end(box)
        self.assert_released("fault-1")


    def test_start_noted_when_another_process_has_the_number(self):
        self.live()
        box, last = (Container(Pod(uid)) for uid in ("fault-2", "fault-3"))
        for each in (box, last):
            self.create(each)
        with self.held():
            number = self.start(box).pid
            self.start(last)
            self.die(box)
            other = self.enter_as(number)
            score = pathlib.Path(f"/proc/{other.pid}/oom_score_adj")
            before = score.read_text(encoding="ascii")
        self.assert_soon(lambda: self.states("fault-3") == {last.id: "live"}, "what was deferred is done")
        self.assertEqual(score.read_text(encoding="ascii"), before)
        self.assertEqual(self.states("fault-2"), {box.id: "pending"})


class Disk(FaultCase):
    """The file system of the state is full."""

    def test_end_that_there_was_no_room_to_note(self):
        self.mount(self.podqos.state, "size=128k,mode=700")
        box = self.live()
        other = self.launch(Container(box.pod, "other", **SMALL))
        filler = self.podqos.state / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        self.end(box)
        self.assertIn("No space left on device", self.podqos.log_text())
        filler.unlink()
        self.assert_soon(lambda: self.states("fault-1") == {other.id: "live"}, f"the end of {box.id} is noted")


class Idle(FaultCase):
    """What is to be done later is done, though no event comes."""

    settings = {"releaseDelay": "1s"}

    def setUp(self):
        super().setUp()
        self.volume = self.tmp / "volume"
        self.mount(self.volume, "mode=700")

    def write_and_end(self, box):
        """A process of the container writes 8 MiB into the volume, then the container ends."""
        subprocess.run(["dd", "if=/dev/zero", f"of={self.volume}/{box.id}", "bs=1M", "count=8", "status=none"],
                       check=True, timeout=60, preexec_fn=lambda: self.machine.enter(os.getpid(), box.cgroup))
        self.end(box)

    @contextlib.contextmanager
    def watched(self, cgroup):
        """Somebody reads memory.stat all the time, as monitoring does: who asks beside it may get old numbers."""
        file = self.machine.file(cgroup, "memory", "memory.stat")
        watcher = subprocess.Popen(["sh", "-c", 'while cat "$1"; do :; done', "sh", file],  # pylint: disable=R1732
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            watcher.kill()
            watcher.wait()

    def test_memory_that_outlives_the_pod(self):
        self.write_and_end(self.live())
        self.assertIsNotNone(self.known("fault-1"), "nothing is charged to the pod")
        self.assert_released("fault-1")

    def test_memory_that_is_counted_late(self):
        self.connect()
        pods = [f"fault-{number}" for number in range(20)]
        for uid in pods:
            box = self.launch(Container(Pod(uid), **SMALL))
            with self.watched(os.path.dirname(box.cgroup)):
                self.write_and_end(box)
                self.assertIsNotNone(self.known(uid), "nothing is charged to the pod")

        def reconciled():
            self.podqos.ctl("reconcile")
            return not any(self.known(uid) for uid in pods)

        self.assert_soon(reconciled, f"{len(pods)} pods are released")

    def test_another_process_with_the_number_of_the_sandbox(self):
        self.connect()
        pod = self.enter(Pod("fault-1", sums=SMALL), f"{self.elsewhere}/sandbox")
        self.ask("RunPodSandbox", pod)
        self.assertEqual(self.states("fault-1"), {pod.id: "live"})
        number = pod.pid
        self.die(pod)
        self.enter_as(number)
        self.assert_released("fault-1")


class Refusal(FaultCase):
    """What cannot be read or is in the wrong place is refused, named, and harms nobody else."""

    def assert_named(self, name):
        """In each line that the log has on the bad annotation."""
        lines = [line for line in self.podqos.log_text().splitlines() if "cpu=lots" in line]
        self.assertNotEqual(lines, [])
        for line in lines:
            self.assertIn(name, line)

    def test_bad_pod_in_the_list(self):
        """A runtime that gets no answer drops the plugin, and all other pods with it."""
        self.configure(onError="reject")
        bad, good = (self.enter(Pod(uid, SMALL, more), f"{self.elsewhere}/{uid}")
                     for uid, more in (("bad-1", BAD), ("good-2", None)))
        self.connect(bad, good)
        self.assertEqual(self.states("good-2"), {good.id: "live"})
        self.assert_named(bad.id)

    def test_bad_container_in_the_list(self):
        box = self.enter(Container(Pod("bad-1", annotations=BAD)), f"{self.elsewhere}/app")
        self.connect(box.pod, box)
        self.assert_named(box.id)

    def test_bad_container(self):
        self.connect()
        box = Container(Pod("bad-1", annotations=BAD))
        self.assertFalse(self.create(box))
        self.assert_named(box.id)

    def test_misplaced_container(self):
        """Also where all other errors are only logged: the administrator has asked for it."""
        self.configure(placement={"onMisplaced": "fail"}, onError="admit")
        self.connect()
        box = self.enter(Container(Pod("fault-1"), **SMALL), f"{self.elsewhere}/app")
        with self.assertRaisesRegex(nri_peer.Refused, "onMisplaced"):
            self.ask("StartContainer", box)
        self.assertIsNone(self.known("fault-1"))


if __name__ == "__main__":
    nri_case.main()
