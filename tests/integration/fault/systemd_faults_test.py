"""What becomes of pods when systemd restarts, refuses, is silent or gone, or when others use the names of our units.

In each case: a sentence that names cause and remedy, a container that starts all the same under onError "admit", and,
once the fault is over, everything right after `podqosctl reconcile`. It runs in a guest with systemd, and boots one.
"""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import node_case  # noqa: E402
import patience  # noqa: E402
import units  # noqa: E402
from node_case import BESTEFFORT, BURSTABLE, GUARANTEED  # noqa: E402

PRIVATE, BUS = pathlib.Path("/run/systemd/private"), pathlib.Path("/run/dbus/system_bus_socket")
CGROUPS = "/sys/fs/cgroup"
UNIT_FILES = pathlib.Path("/run/systemd/system")
# As PID 1 of a container `sleep` would make systemd wait for 90 s.
ENDS_ON_REQUEST = ("sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait")
ALL_WELL = "2 pods, 2 containers; 0 pods released, 0 records restored\n"


def call(*argv, check=True):
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, argv))}: exit {done.returncode}\n{done.stderr}")
    return done


class FaultCase(node_case.NodeCase):
    """Containers of crun, which asks systemd over the system bus; podqos asks it at its own socket first."""

    kind, driver = "crun", "systemd"

    def start_pods(self):
        self.app, self.other = (self.start(self.container(pod, "app", ENDS_ON_REQUEST))
                                for pod in (BURSTABLE, GUARANTEED))
        self.check_all(BURSTABLE, GUARANTEED)

    def configure(self, **settings):
        self.podqos.settings.update(settings)
        self.podqos.config(self.kind)

    def reconcile(self):
        return self.podqos.ctl("reconcile", kind=self.kind).stdout

    def admitted(self, box):
        """The container runs where its engine wanted it; what podqos said."""
        pid_file = self.tmp / f"{box.name}.pid"
        done = self.runtime.run(box.name, box.bundle, "-d", "--pid-file", pid_file)
        box.pid = int(pid_file.read_text(encoding="utf-8"))
        self.check_place(box.pid, self.process_cgroup(box.engine_path))
        return self.complaint(done)

    def refused(self, box):
        """The same under onError "reject": no container."""
        self.configure(onError="reject")
        done = self.runtime.run(box.name, box.bundle, "-d", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIsNone(self.runtime.state(box.name))
        self.configure(onError="admit")
        return self.complaint(done)

    def assert_complaints(self, box, *words):
        """Admitted, then refused, each with all of the words."""
        said = [self.admitted(box)]
        self.end(box)
        said.append(self.refused(box))
        for line in said:
            for word in words:
                self.assertIn(word, line)

    def complaint(self, done):
        """The one line of podqos on standard error."""
        lines = [line for line in done.stderr.splitlines() if "podqos" in line.split(":")[0]]
        self.assertEqual(len(lines), 1, done.stderr)
        return lines[0]

    def wait_for(self, look, wanted):
        """systemd does what it was asked in its own time."""
        for _ in patience.turns():
            if (found := look()) == wanted:
                return
        self.assertEqual(found, wanted)

    def end_all(self, *boxes):
        for box in boxes:
            self.end(box)
        self.check_nothing_left()


class Restart(FaultCase):
    """systemd reads its units anew, or executes itself anew."""

    @contextlib.contextmanager
    def again_and_again(self, verb):
        """With a moment between: without it the next one may always come before systemd has answered others."""
        over = threading.Event()

        def repeat():
            while not over.wait(0.1):
                units.call(verb, check=False)

        thread = threading.Thread(target=repeat)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def test_reexec_with_living_pods(self):
        self.start_pods()
        units.call("daemon-reexec")
        self.check_all(BURSTABLE, GUARANTEED)
        side = self.start(self.container(BURSTABLE, "side"))
        self.assertEqual(self.reconcile(), ALL_WELL.replace("2 containers", "3 containers"))
        self.end_all(side, self.other, self.app)

    def test_reexecs_while_pods_come_and_go(self):
        """Calls are repeated until systemd is back. No runtime takes part, for it might itself fail here."""
        self.start_pods()
        box = self.container(BESTEFFORT, "app")
        with self.again_and_again("daemon-reexec"):
            for _ in range(5):
                self.never_created(box)
        self.reconcile()
        self.check_all(BURSTABLE, GUARANTEED)
        self.end_all(self.app, self.other)

    def never_created(self, box):
        """precreate for a process that is gone at once: the pod is made, and withdrawn by the next event."""
        command = ["sh", "-c", '"$@"; exit', "sh", harness.HOOK, "--config", self.podqos.config(self.kind), "precreate"]
        done = subprocess.run(command, input=box.original, capture_output=True, check=True)
        self.assertEqual(done.stderr, b"")


class Foreign(FaultCase):
    """Units of our names that others made."""

    FILE = "[Slice]\nCPUWeight=77\nMemoryMax=70M\nTasksMax=3\n"

    def test_unit_files(self):
        """Of a tier, and of a pod."""
        for name in ("kubepods-burstable.slice", "kubepods-burstable-podburst_1.slice"):
            with self.subTest(name):
                file = UNIT_FILES / name
                file.write_text(self.FILE, encoding="ascii")
                try:
                    units.call("daemon-reload")
                    self.start_pods()
                    units.call("daemon-reload")
                    self.check_all(BURSTABLE, GUARANTEED)
                    self.end(self.app)
                    self.end(self.other)
                    self.assertEqual(file.read_text(encoding="ascii"), self.FILE)
                    self.wait_for(lambda: units.kept("kubepods") + units.cgroups("kubepods"), [])
                finally:
                    file.unlink()
                    units.call("daemon-reload")

    def test_masked_unit(self):
        slice_file = UNIT_FILES / "kubepods-burstable-podburst_1.slice"
        slice_file.symlink_to("/dev/null")
        units.call("daemon-reload")
        self.other = self.start(self.container(GUARANTEED, "app"))
        box = self.container(BURSTABLE, "app")
        self.assert_complaints(box, "pod burst-1: ", f"{slice_file.name} is masked", "systemctl unmask")
        self.check_all(GUARANTEED)
        slice_file.unlink()
        units.call("daemon-reload")
        self.assertEqual(self.reconcile(), "1 pod, 1 container; 0 pods released, 0 records restored\n")
        self.end_all(self.start(box), self.other)

    def test_root_of_somebody_else(self):
        call("systemd-run", "--unit=foreign", "--slice=kubepods.slice", "--property=MemoryMax=100M", "sleep", "1000")
        self.addCleanup(call, "systemctl", "stop", "foreign.service", "kubepods.slice")
        units.call("set-property", "--runtime", "kubepods.slice", "CPUWeight=50", "TasksMax=77")
        before = self.machine.snapshot("/kubepods.slice")
        box = self.container(BURSTABLE, "app")
        self.assert_complaints(box, "cgroup /kubepods.slice exists but was not created by podqos", "set cgroupRoot")
        self.reconcile()
        self.assertEqual(self.machine.snapshot("/kubepods.slice"), before)
        self.assertEqual(self.podqos.records(), [])


class ByHand(FaultCase):
    """An operator stops slices, removes cgroups, changes values."""

    def test_pod_stopped(self):
        self.start_pods()
        units.call("stop", "kubepods-burstable-podburst_1.slice")
        self.assertFalse(machines.alive(self.app.pid))
        self.assertIn("pod burst-1 released\n", self.reconcile())
        self.check_all(GUARANTEED)
        self.end(self.app)
        self.start(self.app)
        self.check_all(BURSTABLE, GUARANTEED)
        self.end_all(self.app, self.other)

    def test_all_stopped(self):
        self.start_pods()
        units.call("stop", "kubepods.slice")
        self.assertIn("\n0 pods, 0 containers; 2 pods released", self.reconcile())
        self.check_nothing_left()
        self.end(self.app)
        self.end(self.other)
        self.start_pods()
        self.end_all(self.app, self.other)

    def test_tier_removed(self):
        self.start_pods()
        os.rmdir(CGROUPS + self.tier_path("besteffort"))
        self.assertIn("/kubepods-besteffort.slice/memory.max: ", self.reconcile())
        self.check_all(BURSTABLE, GUARANTEED)
        third = self.start(self.container(BESTEFFORT, "app"))
        self.end_all(third, self.app, self.other)

    def test_values_changed(self):
        self.start_pods()
        for unit in ("kubepods.slice", "kubepods-burstable.slice", "kubepods-burstable-podburst_1.slice"):
            units.call("set-property", "--runtime", unit, "CPUWeight=500", "MemoryMax=900M", "TasksMax=9")
        units.call("set-property", "--runtime", "kubepods-podguard_2.slice", "CPUQuota=300%")
        said = self.reconcile()
        for file in ("kubepods-burstable.slice/memory.max", "kubepods-burstable-podburst_1.slice/memory.max",
                     "kubepods-podguard_2.slice/cpu.max"):
            self.assertIn(f"/{file}: ", said)
        self.assertEqual(self.reconcile(), ALL_WELL)
        self.check_all(BURSTABLE, GUARANTEED)
        units.call("daemon-reload")
        self.check_all(BURSTABLE, GUARANTEED)
        self.end_all(self.app, self.other)


class Silence(FaultCase):
    """systemd's socket, or both, is missing, has nobody behind it, or somebody who never answers."""

    @contextlib.contextmanager
    def missing(self, path):
        away = path.with_suffix(".away")
        path.rename(away)
        try:
            yield
        finally:
            away.rename(path)

    @contextlib.contextmanager
    def covered(self, path, listens):
        place = self.tmp / "socket"
        with socket.socket(socket.AF_UNIX) as mute:
            mute.bind(str(place))
            if listens:
                mute.listen()
            call("mount", "--bind", place, path)
            try:
                yield
            finally:
                call("umount", path)
                place.unlink()

    def test_nobody_at_own_socket(self):
        """The message bus leads to systemd as well."""
        with self.covered(PRIVATE, listens=False):
            self.app, self.other = (self.start(self.container(pod, "app")) for pod in (BURSTABLE, GUARANTEED))
            self.check_pod(BURSTABLE)
            self.check_tiers(BURSTABLE, GUARANTEED)
            self.end(self.app)
            self.end(self.other)
            self.assertEqual(units.cgroups("kubepods"), [])
            self.assertEqual(self.podqos.records(), [])

    def test_no_answer(self):
        box = self.container(BURSTABLE, "app")
        with self.covered(PRIVATE, listens=True):
            self.assert_complaints(box, "pod burst-1: StartTransientUnit kubepods", " 2000 ms;",
                                   "`systemctl is-system-running`")
            self.check_cgroupfs_beside()
        self.reconcile()
        self.check_nothing_left()
        self.start_pods()
        with self.covered(PRIVATE, listens=True):
            # A container of a living pod needs nothing of systemd but its own scope.
            self.end(self.start(self.container(BURSTABLE, "side")))
            self.end(self.app)
        self.reconcile()
        self.check_all(GUARANTEED)
        self.end_all(self.other)

    def check_cgroupfs_beside(self):
        """What systemd does not make leaves nothing in the state: containers of the other driver start as ever."""
        self.assertEqual(self.podqos.records(), [])
        self.use("cgroupfs")
        box = self.start(self.container(GUARANTEED, "app"))
        self.check_all(GUARANTEED)
        self.end(box)
        self.assertNotIn("interrupted", self.podqos.log_text())
        self.use("systemd")

    def test_no_systemd(self):
        box = self.container(BURSTABLE, "app")
        with self.missing(PRIVATE), self.missing(BUS):
            done = self.podqos.hook("precreate", box.original, kind=self.kind, cwd=box.bundle.path)
        self.assertEqual(done.stdout.encode(), box.original)
        for word in ("pod burst-1: ", str(PRIVATE), str(BUS), "configure the engine to use the cgroupfs driver"):
            self.assertIn(word, done.stderr)
        self.reconcile()
        self.check_nothing_left()
        self.end_all(self.start(box))


class Drivers(FaultCase):
    """Runtimes of both drivers on one node."""

    def test_held_tier_of_systemd(self):
        """A tree that another program holds stays until that has gone, and is in the way of nobody."""
        self.start_pods()
        root, held = self.kubepods(), pathlib.Path(CGROUPS + self.tier_path("burstable"), "held")
        held.mkdir()
        for box in (self.app, self.other):
            self.end(box)
        self.assertTrue(held.exists())
        self.use("cgroupfs")
        box = self.start(self.container(BESTEFFORT, "app"))
        self.assertNotIn("interrupted", self.podqos.log_text())
        held.rmdir()
        self.end_all(box)
        self.assertFalse(pathlib.Path(CGROUPS + root).exists())

    def test_setting(self):
        self.configure(cgroupDriver="cgroupfs")
        box = self.container(BESTEFFORT, "app")
        self.assert_complaints(box, "uses systemd's cgroup driver, but cgroupDriver is \"cgroupfs\"",
                               "containerd: SystemdCgroup = false", "or set cgroupDriver to \"auto\"")
        self.check_nothing_left()


class Controllers(FaultCase):
    """A process on the way to the pod keeps the controllers away from it."""

    def busy_tier(self, driver):
        self.use(driver)
        self.other = self.start(self.container(GUARANTEED, "app"))
        box = self.container(BURSTABLE, "app")
        with subprocess.Popen(["sleep", "1000"]) as squatter, contextlib.ExitStack() as last:
            last.callback(squatter.kill)  # also where a check fails, or its end would be waited for
            tier = CGROUPS + self.tier_path("burstable")
            # Where podqos has made the tier by itself, it hands its controllers down already.
            handed_down = pathlib.Path(tier, "cgroup.subtree_control")
            disabled = " ".join(f"-{name}" for name in handed_down.read_text(encoding="ascii").split())
            handed_down.write_text(disabled, encoding="ascii")
            pathlib.Path(tier, "cgroup.procs").write_text(str(squatter.pid), encoding="ascii")
            self.assert_complaints(box, f"pod burst-1: {tier}: write \"+", "to cgroup.subtree_control: ",
                                   f"(process {squatter.pid} runs in it, ", "move it to a leaf cgroup)")
        self.reconcile()
        self.start(box)
        self.check_all(BURSTABLE, GUARANTEED)
        self.end_all(box, self.other)

    def test_busy_tier_of_cgroupfs(self):
        self.busy_tier("cgroupfs")

    def test_busy_tier_of_systemd(self):
        self.busy_tier("systemd")


if __name__ == "__main__":
    CLASSES = [Restart, Foreign, ByHand, Silence, Drivers, Controllers]
    harness.main(("runc",), in_guest=CLASSES,
                 here=[guest.cases({"systemd": (guest.Guest("systemd"), __file__)})])
