"""A test that is podqos-nri's runtime: its containers are processes in cgroups that it makes where the plugin says.

The runtime is scripted, so that it can die between any two events; podqos-nri, the kernel and what podqosctl says of
the state are real.
"""

import os
import subprocess
import sys
import time

import harness
import nri_peer
import patience
from nri_peer import field

PROGRAM = harness.BIN / "podqos-nri"
CREATED, RUNNING, STOPPED = 1, 3, 4  # states of a container
SOON = 15  # seconds in which the plugin has to come back to what it could not do; it looks at all of it every 5
HOLD = 'import sys, time; held = b"x" * (int(sys.argv[1]) << 20); print("ready", flush=True); time.sleep(1000)'


class Process:
    """What runs in a cgroup that the runtime has made, or nothing."""

    process, pid, cgroup = None, 0, None


class Pod(Process):
    """A pod and its sandbox. `sums` are what the engine tells of the whole pod, as keywords of nri_peer.resources."""

    def __init__(self, uid, sums=None, annotations=None, name="sandbox"):
        self.uid, self.name, self.id = uid, name, f"{uid}-{name}"
        self.sums, self.annotations = sums or {}, annotations or {}

    def message(self):
        linux = field(2, nri_peer.resources(**self.sums)) + (field(4, self.cgroup) if self.cgroup else b"")
        return (field(1, self.id) + field(2, f"pod-{self.uid}") + field(3, self.uid) + field(4, "default")
                + nri_peer.fields(6, self.annotations) + field(8, linux) + field(9, self.pid))


class Container(Process):
    """A container; `cgroup` is where the engine would have it, and later where it is."""

    def __init__(self, pod, name="app", cgroup=None, **resources):
        self.pod, self.name, self.id, self.resources = pod, name, f"{pod.uid}-{name}", resources
        self.cgroup = cgroup or f"/engine/{self.id}"
        self.state = 0

    def message(self):
        linux = field(3, nri_peer.resources(**self.resources)) + field(5, self.cgroup)
        return (field(1, self.id) + field(2, self.pod.id) + field(3, self.name) + field(4, self.state)
                + field(11, linux) + field(12, self.pid))


def event(subject, change=None):
    """The request of an event of a container or of a pod; `change` as keywords of nri_peer.resources."""
    resources = b"" if change is None else field(3, nri_peer.resources(**change))
    if isinstance(subject, Pod):
        return field(1, subject.message()) + resources
    return field(1, subject.pod.message()) + field(2, subject.message()) + resources


class Case(harness.TestCase):
    """Plays the runtime. When a test has ended, all of its processes end too, and reconcile has to release the rest."""

    def setUp(self):
        super().setUp()
        self.running, self.runtime, self.plugin, self.connection = [], None, None, None
        self.addCleanup(self.end_all)

    def end_all(self):
        if self.runtime:
            self.runtime.stop()
        if self.plugin:
            self.stop_plugin()
        for subject in list(self.running):
            self.die(subject)
        self.podqos.ctl("reconcile", check=False)

    # The runtime and the plugin.

    def configure(self, **settings):
        self.podqos.settings.update(settings)

    def start_plugin(self):
        command = [PROGRAM, "--config", self.podqos.config(), "--socket", self.tmp / "nri.sock"]
        self.plugin = subprocess.Popen(command, stdin=subprocess.DEVNULL, env={})

    def stop_plugin(self):
        """As the kernel does it."""
        self.plugin.kill()
        self.plugin.wait(nri_peer.PATIENCE)

    def start_runtime(self):
        """Also again, after a crash: the plugin comes back by itself."""
        if self.runtime:
            self.runtime.stop()
        self.runtime = nri_peer.Runtime(self.tmp / "nri.sock")

    def stocks(self):
        """How often the plugin has taken in all that the runtime has."""
        return self.podqos.log_text().count(" sandboxes and containers")

    def synchronize(self, *subjects, wait=True):
        """What the runtime lists to a plugin that has come: pods, and containers; it has taken in all of them then."""
        before = self.stocks()
        self.connection = self.runtime.accept()
        self.connection.register()
        self.connection.configure()
        listed = b"".join(field(1 if isinstance(s, Pod) else 2, s.message()) for s in subjects)
        self.connection.ask("Synchronize", listed)
        # Compared with the records once the runtime has its answer, and before the next event, be it an empty one.
        self.connection.ask("PostStartContainer")
        if wait:
            self.assert_soon(lambda: self.stocks() > before, "all that the runtime has is known")

    def connect(self, *subjects, wait=True):
        self.start_runtime()
        self.start_plugin()
        self.synchronize(*subjects, wait=wait)

    def come_back(self, *subjects, wait=True):
        """The runtime has crashed, and lists what there is."""
        self.start_runtime()
        self.synchronize(*subjects, wait=wait)

    def ask(self, what, subject, change=None, budget=None):
        """Tells of an event; returns how many seconds the answer took."""
        begin = time.monotonic()
        self.connection.ask(what, event(subject, change), budget)
        return time.monotonic() - begin

    # Pods and containers.

    def enter(self, subject, cgroup, memory=None):
        """Its process, in a cgroup of its own; it holds so many MiB of memory."""
        command = ["sleep", "1000"] if memory is None else [sys.executable, "-c", HOLD, str(memory)]
        subject.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                           preexec_fn=lambda: self.machine.enter(os.getpid(), cgroup))
        subject.pid, subject.cgroup = subject.process.pid, cgroup
        self.running.append(subject)
        if memory is not None:
            self.assertEqual(subject.process.stdout.readline(), b"ready\n")
        return subject

    def create(self, container):
        """Asks for the container's place; returns whether the plugin has chosen it."""
        answer = nri_peer.parse(self.connection.ask("CreateContainer", event(container)))
        linux = nri_peer.parse(nri_peer.parse(answer.get(1, b"")).get(6, b""))
        container.cgroup = linux.get(3, container.cgroup.encode()).decode()
        container.state = CREATED
        return 3 in linux

    def start(self, container, memory=None):
        self.enter(container, container.cgroup, memory)
        container.state = RUNNING
        self.ask("StartContainer", container)
        return container

    def launch(self, container, memory=None):
        self.assertTrue(self.create(container), "the plugin chooses no cgroup")
        return self.start(container, memory)

    def die(self, subject):
        """The process ends, and the runtime removes the cgroup that it made for it."""
        self.running.remove(subject)
        with subject.process:
            subject.process.kill()
        subject.process, subject.pid = None, 0
        self.machine.remove(subject.cgroup)

    # What must hold.

    def known(self, uid):
        """What podqosctl says of a pod, or None."""
        pods = self.podqos.ctl_json("status")["pods"]
        return next((pod for pod in pods if pod["uid"] == uid), None)

    def states(self, uid):
        """{id: state} of the containers that are recorded of a pod; each must be recorded once."""
        containers = (self.known(uid) or {"containers": []})["containers"]
        found = {c["id"]: c["state"] for c in containers}
        self.assertEqual(len(found), len(containers), f"a container is recorded twice: {containers}")
        return found

    def assert_lives(self, subject):
        """Who has been killed for its memory is gone a moment later."""
        with self.assertRaises(subprocess.TimeoutExpired, msg="the container was killed"):
            subject.process.wait(0.3)

    def assert_soon(self, condition, what):
        patience.wait_for(condition, SOON, what)

    def assert_answered_within(self, seconds, *asked, **given):
        """An event is answered so soon, at one of several times that it is told: a busy machine delays some."""
        found = patience.until(lambda: self.ask(*asked, **given) < seconds, 5, length=0.5)
        self.assertTrue(found, f"{asked[0]} is answered within {seconds} s")

    def assert_released(self, uid):
        self.assert_soon(lambda: self.known(uid) is None, f"pod {uid} is released")


def main():
    if not PROGRAM.exists():
        print(f"skipped: {PROGRAM} is not built")
        sys.exit(harness.SKIPPED)
    harness.main(kinds=("runc",))
