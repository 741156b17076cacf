"""podqos-nri against the runtime's own side of NRI, which containerd embeds: Debian 13's, of version 0.6.1.

Here the programs in Go are built, and one guest with Debian 13 is booted; there this file runs again with the installed
package. The test is the rest of the runtime: it makes the cgroups that the plugin asks for and puts a `sleep` into each.
"""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import engine  # noqa: E402
import go_nri  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
from harness import MI  # noqa: E402

PLUGIN = "/usr/sbin/podqos-nri"
CGROUPS = pathlib.Path("/sys/fs/cgroup")
SETTINGS = pathlib.Path("/etc/podqos/conf.d/zz-case.json")
LOCK = engine.STATE / "lock"
CONNECTED = 'plugin "10-podqos" connected'
LARGEST = 4 << 20  # bytes of a message of ttrpc, without its header
HEADER = 10
DEADLINE = 2.0  # seconds that containerd waits for an answer; tests that are not about it wait longer
# 100m are 102 shares, 50m are 51, both 153. 1000 - 1000 * 64Mi / 2Gi is 969, for the quotient is cut.
WEB = harness.container("web", requests={"cpu": "100m", "memory": "64Mi"}, limits={"cpu": "200m", "memory": "128Mi"})
LOG = harness.container("log", requests={"cpu": "50m"}, limits={"cpu": "100m", "memory": "32Mi"})
# As protobuf's JSON has 64 bits.
WEB_RESOURCES = {"cpu": {"shares": {"value": "102"}, "quota": {"value": "20000"}, "period": {"value": "100000"}},
                 "memory": {"limit": {"value": str(128 * MI)}},
                 "unified": {"memory.oom.group": "1", "memory.swap.max": "0"}}


class AdaptationCase(unittest.TestCase):
    """A runtime, and podqos-nri as a process."""

    settings = {}

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="podqos-test-", dir=engine.WORK))
        self.socket = self.folder / "nri.sock"
        self.machine = machines.Machine()
        self.processes = []  # that stand for containers
        self.runtime = self.plugin = None
        engine.LOG.unlink(missing_ok=True)
        engine.write_json(SETTINGS, self.settings)
        self.addCleanup(self.clean_up)

    def clean_up(self):
        if self.plugin:
            self.plugin.terminate()
            self.assertEqual(self.plugin.wait(), 0)
        if self.runtime:
            self.runtime.kill()
        for process in self.processes:
            process.kill()
            process.wait()
        left = engine.records()
        if left:
            nri = self.folder / "nri.log"
            print(f"--- {self.id()}: podqos\n{engine.log_text()}\n--- NRI\n{nri.read_text()[-3000:]}", flush=True)
            shutil.rmtree(engine.STATE)
        for top in ("/podqos", "/k8s.io"):
            for directory in self.machine.leftovers(top):
                os.rmdir(directory)
        shutil.rmtree(self.folder)
        self.assertEqual(left, [])

    # The two sides.

    def start_runtime(self, **options):
        options = {"patience": patience.PATIENCE, **options}
        self.runtime = go_nri.Runtime(options.pop("socket", self.socket), log=self.folder / "nri.log", **options)
        return self.runtime

    def start_plugin(self, *options):
        self.plugin = subprocess.Popen([PLUGIN, *map(str, options)], stdin=subprocess.DEVNULL, cwd="/")

    def connect(self):
        """Both, connected."""
        self.start_runtime()
        self.start_plugin("--socket", self.socket)
        self.runtime.wait(CONNECTED)

    # What a runtime does.

    def sandbox(self, uid, *containers, **annotations):
        """A pod as containerd tells of it: its own container runs."""
        spec = {"podqos.io/pod": json.dumps({"containers": containers})} if containers else {}
        pod = {"id": f"sandbox-{uid}", "name": uid, "uid": uid, "namespace": "default",
               "annotations": {**spec, **annotations}, "linux": {"cgroups_path": f"/k8s.io/sandbox-{uid}"}}
        pod["pid"] = self.begin(pod["linux"]["cgroups_path"])
        return pod

    def container(self, pod, name, identifier=None):
        identifier = identifier or f"{name}-{pod['uid']}"
        return {"id": identifier, "pod_sandbox_id": pod["id"], "name": name,
                "linux": {"cgroups_path": f"/k8s.io/{identifier}", "resources": {}}}

    def begin(self, cgroup):
        """A process in a cgroup; its pid."""
        directory = CGROUPS / cgroup[1:]
        directory.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
        self.processes.append(process)
        (directory / "cgroup.procs").write_text(str(process.pid), encoding="ascii")
        return process.pid

    def end(self, pid, cgroup):
        process = next(each for each in self.processes if each.pid == pid)
        process.kill()
        process.wait()
        self.processes.remove(process)
        (CGROUPS / cgroup[1:]).rmdir()

    def run_pod(self, uid, *containers, **annotations):
        pod = self.sandbox(uid, *containers, **annotations)
        self.runtime.call("RunPodSandbox", pod)
        return pod

    def start(self, pod, container, **more):
        """The container, created and started where the plugins want it; their adjustment."""
        answer = self.runtime.call("CreateContainer", pod, container, **more)
        container["linux"]["cgroups_path"] = answer["adjust"]["linux"].get("cgroups_path") or \
            container["linux"]["cgroups_path"]
        container["pid"] = self.begin(container["linux"]["cgroups_path"])
        self.runtime.call("StartContainer", pod, container)
        return answer

    def stop(self, pod, *containers):
        for container in containers:
            self.end(container["pid"], container["linux"]["cgroups_path"])
            self.runtime.call("StopContainer", pod, container)
            self.runtime.call("RemoveContainer", pod, container)
        self.end(pod["pid"], pod["linux"]["cgroups_path"])
        self.runtime.call("StopPodSandbox", pod)
        self.runtime.call("RemovePodSandbox", pod)

    # What holds.

    def assert_values(self, path, **wanted):
        """Values of a cgroup as the kernel has them; shares are compared as weight, None is unlimited."""
        if "shares" in wanted:
            wanted["weight"] = machines.linear_weight(wanted.pop("shares"))
        self.assertEqual({what: self.machine.read(path, what) for what in wanted}, wanted, path)

    def assert_adjusted(self, answer, pod, identifier):
        """The cgroup below the pod's, and the resources of "web"."""
        self.assertEqual(answer["adjust"]["linux"],
                         {"cgroups_path": f"/podqos/kubepods/burstable/pod{pod['uid']}/{identifier}",
                          "resources": WEB_RESOURCES})

    def assert_not_adjusted(self, answer):
        self.assertEqual(answer["adjust"]["linux"], {"resources": {"memory": {}, "cpu": {}}})

    def assert_nothing_left(self):
        self.assertEqual(engine.records(), [])
        self.assertEqual(self.machine.leftovers("/podqos"), [])

    def live_and_end(self, uid="shop-1", **pod_values):
        """A pod from its beginning to its end, with every value on the way; returns nothing left."""
        pod = self.run_pod(uid, WEB, LOG)
        web, log = self.container(pod, "web"), self.container(pod, "log")
        self.assert_adjusted(self.start(pod, web), pod, f"web-{uid}")
        self.start(pod, log)
        path = f"/podqos/kubepods/burstable/pod{uid}"
        self.assertEqual(machines.cgroup_of(web["pid"]), f"{path}/web-{uid}")
        self.assert_values(path, shares=153, quota=30000, period=100000, memory=160 * MI, **pod_values)
        self.assert_values("/podqos/kubepods/burstable", shares=153, memory=engine.NODE_MEMORY)
        # The runtime has told no limits: what none backs takes no memory from others.
        self.assert_values("/podqos/kubepods/besteffort", shares=2, memory=engine.NODE_MEMORY)
        # No field of this version of NRI carries it.
        self.assertEqual(machines.oom_score_adj(web["pid"]), 969)
        self.stop(pod, web, log)
        self.assert_nothing_left()


class MemoryQos(AdaptationCase):
    """With memoryReservationPolicy and memoryThrottlingFactor."""

    settings = {"memoryReservationPolicy": "TieredReservation", "memoryThrottlingFactor": 0.5}

    def test_adjustment(self):
        self.connect()
        pod = self.run_pod("memory-1", WEB)
        web = self.container(pod, "web")
        own = self.container(pod, "web", "own")
        # What the runtime limits backs the request.
        for container in (web, own):
            container["linux"]["resources"]["memory"] = {"limit": {"value": str(128 * MI)}}
        own["linux"]["resources"]["unified"] = {"memory.high": "max"}
        reserved = {**WEB_RESOURCES["unified"], "memory.low": str(64 * MI)}
        for container, unified in ((web, {**reserved, "memory.high": str(96 * MI)}), (own, reserved)):
            answer = self.start(pod, container)
            self.assertEqual(answer["adjust"]["linux"]["resources"]["unified"], unified)
        for path in ("/podqos", "/podqos/kubepods", "/podqos/kubepods/burstable"):
            self.assertGreater(int(self.machine.file(path, "memory", "memory.low")), 0, path)
        self.stop(pod, web, own)
        self.assert_nothing_left()


class StartModes(AdaptationCase):
    """In each way that a plugin comes to a runtime it does its work."""

    def test_by_hand(self):
        self.start_runtime()
        self.start_plugin("--socket", self.socket, "--index", "42", "--name", "other")
        self.runtime.wait('plugin "42-other" connected')
        self.live_and_end()

    def test_external(self):
        """As its systemd unit starts it."""
        self.start_runtime(socket="/var/run/nri/nri.sock")
        self.start_plugin()
        self.runtime.wait(CONNECTED)
        self.live_and_end()

    def test_twice(self):
        """The second one stands by, unknown to the runtime, until the first has ended."""
        self.connect()
        first = self.plugin
        self.start_plugin("--socket", self.socket, "--index", "11")
        stands_by = f"another podqos-nri (process {first.pid}) holds"
        self.assertTrue(patience.until(lambda: stands_by in engine.log_text()))
        self.live_and_end()
        self.assertEqual(len(self.runtime.synchronized()), 1)
        first.terminate()
        self.assertEqual(first.wait(), 0)
        self.runtime.wait('plugin "11-podqos" connected')
        self.live_and_end()
        self.assertEqual(len(self.runtime.synchronized()), 2)


class Updates(AdaptationCase):
    """A container's resources change while it runs, as an in-place resize changes them."""

    def test_update(self):
        self.connect()
        pod = self.run_pod("grow-1")
        pod["linux"]["pod_resources"] = {"cpu": {"shares": {"value": "102"}}, "memory": {"limit": {"value": str(64 * MI)}}}
        app = self.container(pod, "app")
        app["linux"]["resources"] = pod["linux"]["pod_resources"]
        app["linux"]["oom_score_adj"] = {"value": "969"}
        self.start(pod, app)
        path = "/podqos/kubepods/burstable/podgrow-1"
        self.assert_values(path, shares=102, memory=64 * MI)
        grown = {"cpu": {"shares": {"value": "204"}}, "memory": {"limit": {"value": str(96 * MI)}}}
        answer = self.runtime.call("UpdateContainer", pod, app, resources=grown)
        # NRI's own, which is empty where no plugin has asked for one.
        self.assertEqual(answer["updates"], [{}])
        self.assert_values(path, shares=204, memory=96 * MI)
        # Nobody waits for the cgroup of a container that lives to become free.
        self.assertNotIn("Device or resource busy", engine.log_text())
        self.stop(pod, app)
        self.assert_nothing_left()


class Sizes(AdaptationCase):
    """Whatever the length of a message, in one frame of the mux, in two, and beyond what ttrpc allows."""

    def test_create_container(self):
        self.connect()
        pod = self.run_pod("large-1", WEB)
        containers = []
        for size in (4095, 4096, 4097, 200_000, HEADER + LARGEST - 1, HEADER + LARGEST):
            container = self.container(pod, "web", f"web-{size}")
            answer = self.start(pod, container, size=size)
            self.assertEqual(answer["sent"], [size])
            self.assert_adjusted(answer, pod, f"web-{size}")
            containers.append(container)
        with self.assertRaisesRegex(go_nri.Refused, f"a message of more than {LARGEST} bytes"):
            self.runtime.call("CreateContainer", pod, self.container(pod, "web", "web-more"), size=HEADER + LARGEST + 1)
        self.assertEqual(len(list((engine.STATE / "containers").iterdir())), len(containers) + 1)
        self.stop(pod, *containers)
        self.assert_nothing_left()

    def test_synchronize(self):
        """A node whose state is just as large as this version of NRI can tell."""
        self.start_runtime()
        pod = self.sandbox("told-1", WEB)
        padding = [{"id": f"idle-{n}", "uid": f"idle-{n}", "name": f"idle-{n}", "namespace": "default",
                    "annotations": {"podqos.io/ignore": "true", "padding": "x" * 100_000}} for n in range(41)]
        self.runtime.tell([pod, *padding], [])
        self.start_plugin("--socket", self.socket)
        self.runtime.wait(CONNECTED)
        self.assertEqual([each.get("error") for each in self.runtime.synchronized()], [None])
        web = self.container(pod, "web")
        self.assert_adjusted(self.start(pod, web), pod, "web-told-1")
        self.stop(pod, web)
        self.assert_nothing_left()


class ManyPods(AdaptationCase):
    """A node full of pods that podqos is told of when it connects, knows when it comes again, and sees gone at last."""

    PODS, EACH = 500, 2
    settings = {"nodeCpu": "16"}  # enough for all

    def spawn(self, number):
        """Processes by the hundred: a shell makes them fastest."""
        script = f"for n in $(busybox seq {number}); do sleep 1000 & echo $!; done; exec 1>&-; wait"
        shell = subprocess.Popen(["busybox", "sh", "-c", script], stdout=subprocess.PIPE, text=True,
                                 start_new_session=True)
        self.addCleanup(shell.communicate)
        self.addCleanup(os.killpg, shell.pid, signal.SIGKILL)
        return [int(shell.stdout.readline()) for _ in range(number)]

    def fill(self):
        """What the runtime tells of its pods and containers; each runs where the runtime alone would have it."""
        pids = iter(self.spawn(self.PODS * (1 + self.EACH)))
        spec = json.dumps({"containers": [harness.container(name, requests={"cpu": "10m"}) for name in "ab"]})
        pods, containers = [], []
        for number in range(self.PODS):
            pod = {"id": f"sandbox-{number}", "uid": f"many-{number}", "name": f"many-{number}",
                   "namespace": "default", "pid": next(pids), "annotations": {"podqos.io/pod": spec},
                   "linux": {"cgroups_path": f"/k8s.io/sandbox-{number}"}}
            pods.append(pod)
            containers += [{**self.container(pod, name), "pid": next(pids)} for name in "ab"]
        for each in pods + containers:
            directory = CGROUPS / each["linux"]["cgroups_path"][1:]
            directory.mkdir(parents=True)
            (directory / "cgroup.procs").write_text(str(each["pid"]), encoding="ascii")
        return pods, containers

    def wait_for(self, what, value):
        patience.until(lambda: what() == value)
        self.assertEqual(what(), value)

    def weight(self):
        return self.machine.read("/podqos/kubepods/burstable", "weight")

    def counted(self):
        """Pods and containers that podqos has written down."""
        return tuple(len(list((engine.STATE / folder).iterdir())) for folder in ("pods", "containers"))

    def connect_again(self, turn):
        self.start_plugin("--socket", self.socket)
        self.runtime.wait(CONNECTED, times=turn)
        done = self.runtime.synchronized()[-1]
        self.assertNotIn("error", done)
        return done["ns"] / 1e9

    def check_one_more(self, uid):
        """Whatever else there is still to do, a container gets its answer."""
        pod = self.run_pod(uid, WEB)
        web = self.container(pod, "web")
        self.assert_adjusted(self.start(pod, web), pod, f"web-{uid}")
        self.assert_values(f"/podqos/kubepods/burstable/pod{uid}", shares=102, memory=128 * MI)
        self.stop(pod, web)

    def test_synchronize(self):
        pods, containers = self.fill()
        self.start_runtime()
        self.runtime.tell(pods, containers)
        for turn in (1, 2):
            answered = self.connect_again(turn)
            begin = time.monotonic()
            self.check_one_more(f"late-{turn}")
            # 10m of 1,000 containers are 10,000m, which are 10,240 shares.
            self.wait_for(self.weight, machines.linear_weight(10240))
            self.wait_for(self.counted, (self.PODS, self.PODS * (1 + self.EACH)))
            if turn == 1:
                # The answer did not wait for that.
                self.assertLess(answered, (time.monotonic() - begin) / 4)
            self.plugin.kill()
            self.plugin.wait()
        for each in pods + containers:
            os.kill(each["pid"], signal.SIGKILL)
        self.wait_for(lambda: any(machines.alive(each["pid"]) for each in pods + containers), False)
        self.runtime.tell([], [])
        self.connect_again(3)
        self.wait_for(engine.records, [])
        self.wait_for(lambda: self.machine.leftovers("/podqos"), [])


class OtherPlugin(AdaptationCase):
    """Another plugin sets what podqos sets too."""

    def add_other(self, index, **options):
        other = go_nri.Plugin(self.socket, index, **options)
        self.addCleanup(other.stop)
        self.runtime.wait(f'plugin "{index}-other" connected')
        return other

    def check_refused(self, index, what, first, second, **options):
        """Refused, taken back as containerd does it, and created as soon as the other has gone."""
        self.connect()
        other = self.add_other(index, **options)
        pod = self.run_pod("shared-1", WEB)
        web = self.container(pod, "web")
        with self.assertRaisesRegex(go_nri.Refused, f'plugins "{first}" and "{second}" both tried to set {what}'):
            self.runtime.call("CreateContainer", pod, web)
        # Where the other came first, NRI does not even say what podqos has answered; it has answered.
        self.assertIn("podshared-1", {path.name for path in (CGROUPS / "podqos/kubepods/burstable").iterdir()})
        self.runtime.call("StopContainer", pod, web)
        self.runtime.call("RemoveContainer", pod, web)
        other.stop()
        self.runtime.wait('connection to plugin "' + index + '-other" closed')
        web = self.container(pod, "web")
        self.assert_adjusted(self.start(pod, web), pod, "web-shared-1")
        self.assert_values("/podqos/kubepods/burstable/podshared-1", shares=102, quota=20000, memory=128 * MI)
        self.stop(pod, web)
        self.assert_nothing_left()

    def test_cgroups_path_before(self):
        self.check_refused("05", "cgroups path", "10-podqos", "05-other", cgroup="/other/one")

    def test_cgroups_path_after(self):
        self.check_refused("20", "cgroups path", "20-other", "10-podqos", cgroup="/other/one")

    def test_memory_after(self):
        self.check_refused("20", "memory limit", "20-other", "10-podqos", memory=64 * MI)

    def test_memory_before(self):
        """podqos sees the container as the other has changed it: it contradicts what the pod's author claims."""
        self.connect()
        self.add_other("05", memory=64 * MI)
        pod = self.run_pod("shared-2", WEB)
        web = self.container(pod, "web")
        adjust = self.start(pod, web)["adjust"]["linux"]
        self.assertEqual(adjust["cgroups_path"], "/podqos/kubepods/burstable/podshared-2/web-shared-2")
        self.assertEqual(adjust["resources"]["memory"], {"limit": {"value": str(64 * MI)}})
        self.assert_values("/podqos/kubepods/burstable/podshared-2", shares=2, quota=None, memory=64 * MI)
        self.stop(pod, web)
        self.assert_nothing_left()

    def test_what_podqos_leaves_alone(self):
        """A pod without limits: the other's limit goes beside podqos's cgroup."""
        self.connect()
        self.add_other("20", memory=64 * MI)
        pod = self.run_pod("plain-1", harness.container("app"))
        app = self.container(pod, "app")
        adjust = self.start(pod, app)["adjust"]["linux"]
        self.assertEqual(adjust["cgroups_path"], "/podqos/kubepods/besteffort/podplain-1/app-plain-1")
        self.assertEqual(adjust["resources"]["memory"], {"limit": {"value": str(64 * MI)}})
        self.stop(pod, app)
        self.assert_nothing_left()


class Failures(AdaptationCase):
    """What podqos cannot do is admitted or refused as it is configured, in time for NRI, and forgotten afterwards."""

    def hold_lock(self):
        lock = LOCK.open("r+b")
        self.addCleanup(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def connect_with(self, **settings):
        engine.write_json(SETTINGS, settings)
        self.connect()
        pod = self.run_pod("hard-1", WEB)
        return pod, self.container(pod, "web")

    def check_after(self, pod):
        """As if nothing had been; the container that was never made is no part of the pod."""
        web = self.container(pod, "web", "second")
        self.assert_adjusted(self.start(pod, web), pod, "second")
        self.assert_values("/podqos/kubepods/burstable/podhard-1", shares=102, quota=20000, memory=128 * MI)
        self.stop(pod, web)
        self.assert_nothing_left()
        self.assertEqual(len(self.runtime.synchronized()), 1)

    def unknown(self, pod):
        """Another pod of which nothing was told yet, and a container of it."""
        other = {**pod, "id": "sandbox-hard-2", "uid": "hard-2", "pid": 0}
        return other, self.container(other, "web")

    def test_slow_and_admitted(self):
        pod, web = self.connect_with(onError="admit")
        with self.hold_lock():
            answers = [self.runtime.call("CreateContainer", *each) for each in (self.unknown(pod), (pod, web))]
        for answer in answers:
            self.assertLess(answer["ns"] / 1e9, DEADLINE)
            self.assert_not_adjusted(answer)
        self.runtime.call("RemoveContainer", pod, web)
        self.check_after(pod)

    def test_slow_and_refused(self):
        pod, _ = self.connect_with(onError="reject")
        with self.hold_lock(), self.assertRaisesRegex(go_nri.Refused, "another process still holds it after [0-9]+ ms"):
            self.runtime.call("CreateContainer", *self.unknown(pod))
        self.check_after(pod)

    def test_failing_and_refused(self):
        pod, _ = self.connect_with(onError="reject")
        bad = {**pod, "uid": "bad-1", "annotations": {"podqos.io/pod": "{"}}
        with self.assertRaisesRegex(go_nri.Refused, "podqos.io/pod"):
            self.runtime.call("CreateContainer", bad, self.container(bad, "web"))
        self.check_after(pod)

    def test_events_that_the_runtime_does_not_know(self):
        """Each runtime is asked for those of NRI 0.10 first; this one, which is older, closes the connection."""
        self.start_runtime()
        self.start_plugin("--socket", self.socket)
        self.runtime.wait("failed to start external plugin: invalid plugin events: 0x800")
        self.runtime.wait(CONNECTED)
        self.live_and_end()
        self.assertEqual(len(self.runtime.synchronized()), 1)


class RuntimeGone(AdaptationCase):
    """The runtime dies while it waits for an answer, and a new one comes."""

    def test_in_mid_request(self):
        self.connect()
        pod = self.run_pod("back-1", WEB, LOG)
        web, log = self.container(pod, "web"), self.container(pod, "log")
        self.start(pod, web)
        lock = LOCK.open("r+b")
        fcntl.flock(lock, fcntl.LOCK_EX)
        self.runtime.send(do="call", method="CreateContainer", pod=pod, container=log)
        time.sleep(0.1)
        self.runtime.kill()
        lock.close()
        self.start_runtime()
        self.runtime.tell([pod], [web])
        self.runtime.wait(CONNECTED)
        self.assertIsNone(self.plugin.poll())
        third = self.container(pod, "web", "third")
        self.assert_adjusted(self.start(pod, third), pod, "third")
        self.stop(pod, web, third)
        # Nor the one that the runtime never made.
        self.assert_nothing_left()


def run_in_guest():
    """Boots the guest, runs this file there, and returns the exit status for ctest."""
    try:
        os.environ["PODQOS_GO_NRI"] = str(go_nri.programs())
        machine = guest.Guest("v2", root="trixie")
        return machine.run_test(__file__, *sys.argv[1:], show=True).returncode
    except unittest.SkipTest as skip:
        print(f"skipped: {skip}")
        return guest.SKIPPED


def setUpModule():
    engine.WORK.mkdir()
    engine.write_json(pathlib.Path("/etc/podqos/conf.d/test.json"), engine.SETTINGS)


if __name__ == "__main__":
    if not guest.inside():
        sys.exit(run_in_guest())
    harness.main(("runc",))
