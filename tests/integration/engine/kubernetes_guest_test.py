"""podqos-nri as the DaemonSet of packaging/kubernetes, in containerd 1.7 of Debian 13.

Here the image is built and the manifest is read; one guest is booted, in which this file runs again. There the
DaemonSet's pod is started through CRI as a kubelet does it (tests/lib/manifest_pod.py): it registers through NRI, the
next pods are managed, and a new pod follows it while containers are being created. On the node is podqosctl, and no
podqos-nri: what becomes of the DaemonSet's, and what that one hears of containers, podqosctl tells all the same.
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import containerd  # noqa: E402
import engine  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402
import kubernetes_manifests  # noqa: E402
import machine as machines  # noqa: E402
import manifest_pod  # noqa: E402
import metrics  # noqa: E402
import patience  # noqa: E402
from containerd_case import BESTEFFORT, BURSTABLE, GUARANTEED, ContainerdCase  # noqa: E402
from harness import MI  # noqa: E402

BROUGHT = "PODQOS_KUBERNETES"  # the directory with image and manifests, in the environment of the guest
ADDRESS = "10.88.0.2"
PARENT = "/daemon-set/pod{}"  # not in the way of those who look for what pods of others have left
DIRECTORY = engine.WORK / "daemon-set"
CONNECTIONS = "podqos_nri_connections_total"
CREATED = 'podqos_nri_request_duration_seconds_count{request="CreateContainer"}'
# Each pod has a network of its own with one address, which no other network reaches.
NETWORK = f"""#!/bin/sh
case $CNI_COMMAND in
  ADD)
    nsenter --net="$CNI_NETNS" busybox ip address add {ADDRESS}/32 dev lo
    nsenter --net="$CNI_NETNS" busybox ip link set lo up
    echo '{{"cniVersion": "1.0.0", "interfaces": [{{"name": "eth0", "sandbox": "'"$CNI_NETNS"'"}}],
           "ips": [{{"address": "{ADDRESS}/32", "interface": 0}}]}}' ;;
  VERSION) echo '{{"cniVersion": "1.0.0", "supportedVersions": ["0.3.1", "0.4.0", "1.0.0"]}}' ;;
esac
"""


class DaemonPod:
    """A pod of the DaemonSet; the interface is that of containerd.Plugin."""

    daemon = None  # the Containerd that runs it
    uids = iter(f"podqos-nri-{number}" for number in range(1, 100))
    parent = PARENT

    def __init__(self):
        self.start()

    def start(self):
        """Until it is ready."""
        self.launch()
        if not patience.until(self.is_ready):
            raise AssertionError(f"the pod is not ready:\n{self.log()}")

    def launch(self):
        brought = pathlib.Path(os.environ[BROUGHT])
        manifests = json.loads((brought / "containerd.json").read_text(encoding="utf-8"))
        (template,) = (each["spec"]["template"] for each in manifests if each["kind"] == "DaemonSet")
        configured = {each["metadata"]["name"]: each["data"] for each in manifests if each["kind"] == "ConfigMap"}
        for data in configured.values():
            settings = {name: value for name, value in engine.SETTINGS.items() if name != "log"}
            data["podqos.json"] = json.dumps({**json.loads(data["podqos.json"]), **settings})
        cri = self.daemon.cri
        self.uid = next(self.uids)
        made = manifest_pod.ManifestPod(template, configured, DIRECTORY)
        handler = containerd.handler("plain", "crun", "cgroupfs")
        self.sandbox = cri.run_pod(made.sandbox(self.uid, self.parent.format(self.uid)), handler)
        self.container = cri.create(self.sandbox, made.container())
        cri.start(self.container)
        # Whoever asks it has to be in its network.
        self.inside = concurrent.futures.ThreadPoolExecutor(1, initializer=self.enter)

    def enter(self):
        with open(f"/proc/{self.pid}/ns/net", "rb") as network:
            os.setns(network.fileno(), os.CLONE_NEWNET)

    @property
    def pid(self):
        return self.daemon.cri.pid(self.container)

    def request(self, path):
        return self.inside.submit(metrics.request, f"{ADDRESS}:9464", path).result()

    def is_ready(self):
        """As a kubelet asks."""
        try:
            return self.request("/readyz").status == 200
        except OSError:
            return False

    def samples(self):
        return self.inside.submit(metrics.samples, f"{ADDRESS}:9464").result()

    def log(self):
        """What it wrote to standard error."""
        return (DIRECTORY / self.uid / "podqos-nri.log").read_text(encoding="utf-8")

    def stop(self, number=signal.SIGTERM):
        """As a kubelet does it, within terminationGracePeriodSeconds. 0: it has ended by itself."""
        del number
        cri = self.daemon.cri
        self.inside.shutdown()
        cri.call("StopContainer", container_id=self.container, timeout=5)
        status = cri.status(self.container)[0]["exit_code"]
        cri.stop_pod(self.sandbox)
        cri.remove_pod(self.sandbox)
        pathlib.Path(f"/sys/fs/cgroup{self.parent.format(self.uid)}").rmdir()
        return status


class DaemonSet(ContainerdCase):
    kind, driver, set_up = "crun", "cgroupfs", "plugin"
    plugin_type = DaemonPod

    def test_manages_pods(self):
        """As the service does. It is no pod that it manages."""
        self.assert_confined()
        pods = self.run_all_classes()
        for pod, whole in pods.items():
            self.assert_pod(pod, *whole)
        self.assert_tiers(guaranteed_memory=256 * MI, burstable_memory=96 * MI, burstable_shares=153)
        self.assertEqual(set(self.known()), {BURSTABLE.uid, GUARANTEED.uid, BESTEFFORT.uid})
        self.assertIn("synchronized", self.plugin.log())
        self.end(*(sandbox for sandbox, _ in pods.values()))

    def assert_confined(self):
        """By what the manifest says, to what podqos-nri keeps."""
        status = dict(line.split(":\t", 1) for line in
                      pathlib.Path(f"/proc/{self.plugin.pid}/status").read_text(encoding="utf-8").splitlines())
        # DAC_OVERRIDE KILL SYS_PTRACE SYS_ADMIN SYS_NICE SYS_RESOURCE SYSLOG
        kept = sum(1 << number for number in (1, 5, 19, 21, 23, 24, 34))
        self.assertEqual((int(status["CapPrm"], 16), int(status["CapEff"], 16)), (kept, kept))
        self.assertEqual(int(status["CapBnd"], 16), kept)
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        path = PARENT.format(self.plugin.uid)
        self.assert_below(path, self.plugin.pid, self.plugin.container)
        self.assertEqual(machines.oom_score_adj(self.plugin.pid), -997)

    def test_updates_while_containers_are_created(self):
        """The new pod is ready beside the old one, which serves until its end; then the new one does."""
        sandbox = self.run_pod(BURSTABLE)
        path, placed, ended = self.pod_path(BURSTABLE), [], threading.Event()

        def create():
            while not ended.is_set():
                container = self.start(sandbox, BURSTABLE, "web")
                placed.append(os.path.dirname(machines.container_cgroup_of(self.cri.pid(container))))
                self.cri.stop(container)
                self.cri.remove(container)

        def wait_for(number, what):
            patience.expect(lambda: len(placed) >= number or created.done(), what)

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            created = pool.submit(create)
            try:
                old, self.plugin = self.plugin, self.plugin_type()
                self.assertEqual(self.plugin.request("/readyz").text, "standby\n")
                self.assertEqual(self.plugin.samples()[CONNECTIONS], 0)
                asked = old.samples()[CREATED]
                wait_for(len(placed) + 2, "two containers")
                self.assertGreaterEqual(old.samples()[CREATED], asked + 1)
                self.assertEqual(old.stop(), 0)
                patience.expect(lambda: self.plugin.request("/readyz").text == "ok\n", "the new one serves")
                wait_for(len(placed) + 3, "three containers more")
            finally:
                ended.set()
            created.result()
        self.assertEqual(placed, [path] * len(placed))
        self.assertGreaterEqual(self.plugin.samples()[CREATED], 2)
        self.assertEqual(self.plugin.log().count("standing by until that one ends"), 1)
        self.end(sandbox)

    def test_serves_on_when_the_new_one_has_failed(self):
        """A new pod that ends before the old one was removed."""
        new = self.plugin_type()
        self.assertEqual(new.stop(), 0)
        self.assertEqual(self.plugin.request("/readyz").text, "ok\n")
        sandbox, containers = self.run_whole(GUARANTEED)
        self.assert_pod(GUARANTEED, sandbox, containers)
        self.end(sandbox)


class Told(ContainerdCase):
    """By podqosctl on the node."""

    kind, driver, set_up = "crun", "cgroupfs", "plugin"
    plugin_type = DaemonPod
    PODS = "kubectl get pods -o wide -n kube-system -l app.kubernetes.io/name=podqos-nri"

    def says(self, *words):
        return " ".join(engine.call("podqosctl", *words, check=False).stdout.split())

    def plugin_told(self):
        """What doctor says of the plugin."""
        checks = json.loads(engine.call("podqosctl", "doctor", "-o", "json", check=False).stdout)
        (plugin,) = (each for each in checks if (each["group"], each["name"]) == ("containerd", "plugin"))
        return plugin["outcome"], plugin["text"], plugin["remedy"]

    def test_whether_it_is_connected(self):
        self.assertEqual(self.plugin_told()[:2], ("ok", "podqos-nri is connected"))
        self.plugin.stop()
        outcome, text, remedy = self.plugin_told()
        self.assertEqual((outcome, text), ("problem", "podqos-nri is not running: new containers stay unmanaged"))
        self.assertTrue(remedy.startswith(self.PODS), remedy)
        sandbox, _ = self.run_whole(BURSTABLE)
        missed = self.says("status")
        self.assertIn("podqos-nri was not connected", missed)
        self.assertIn('see the check "plugin" of podqosctl doctor, then recreate the container', missed)
        self.plugin = self.plugin_type()
        self.assertEqual(self.plugin_told()[0], "ok")
        self.assertIn("recreate the pod once podqos-nri is connected", self.says("status"))
        self.end(sandbox)

    def test_what_became_of_a_container(self):
        """One of its processes is OOM-killed, which only the plugin's round sees: the container lives on."""
        sandbox, containers = self.run_whole(BURSTABLE)
        web = containers["web"]
        pid = self.cri.pid(web)
        # As with singleProcessOOMKill.
        pathlib.Path(f"/sys/fs/cgroup{machines.cgroup_of(pid)}/memory.oom.group").write_text("0", encoding="ascii")
        with self.assertRaisesRegex(AssertionError, "exit 137"):
            self.cri.exec(web, "dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1", timeout=120)
        killed = "OOM-killed by its own limit (128Mi)"
        patience.expect(lambda: killed in self.says("events", "--wide", "--pod", BURSTABLE.uid), killed)
        self.assertEqual(self.cri.pid(web), pid)
        for words in (("why", BURSTABLE.uid), ("describe", BURSTABLE.uid)):
            self.assertIn(killed, self.says(*words), words)
        self.assertIn("1 OOM-killed", self.says("status"))
        self.assertIn("The plugin podqos-nri placed", self.says("why", BURSTABLE.uid))
        self.end(sandbox)


class SystemdDriver(ContainerdCase):
    """systemd's private socket is in the pod."""

    kind, driver, set_up = "crun", "systemd", "plugin"
    plugin_type = DaemonPod

    def test_manages_pods(self):
        sandbox, containers = self.run_whole(BURSTABLE)
        self.assert_pod(BURSTABLE, sandbox, containers)
        self.end(sandbox)


class Guest(unittest.TestCase):
    def test_in_containerd(self):
        machine = guest.Guest("systemd", root="trixie")
        machine.require()
        guest.require_tools("buildah")
        place = pathlib.Path(tempfile.mkdtemp(prefix="kubernetes-", dir=guest.BIN.resolve().parent))
        self.addCleanup(shutil.rmtree, place)
        built = kubernetes_manifests.build_image(place)
        built.rename(place / "image.tar")
        rendered = kubernetes_manifests.plain("containerd")
        (place / "containerd.json").write_text(json.dumps(rendered), encoding="utf-8")
        os.environ[BROUGHT] = str(place)
        self.addCleanup(os.environ.pop, BROUGHT)
        done = machine.run_test(__file__)
        print(done.stdout, flush=True)
        self.assertEqual(done.returncode, 0, "in the guest")


def set_up_network():
    """What a node's CNI plugin does."""
    for name in ("own-address", "loopback"):
        plugin = pathlib.Path("/usr/lib/cni", name)  # where Debian has them
        plugin.parent.mkdir(parents=True, exist_ok=True)
        plugin.write_text(NETWORK, encoding="ascii")
        plugin.chmod(0o755)
    engine.write_json(engine.WORK / "no-networks/10-own-address.conflist",
                      {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "own-address"}]})


def leave_to_a_daemon_set():
    """A node on which no podqos-nri is installed, and podqos registered by NRI alone."""
    for name in ("/usr/sbin/podqos-nri", "/usr/lib/systemd/system/podqos-nri.service"):
        pathlib.Path(name).unlink()
    engine.call("systemctl", "daemon-reload")
    config = pathlib.Path("/etc/containerd/config.toml")  # where podqosctl looks, not where this containerd does
    config.parent.mkdir(exist_ok=True)
    config.write_text("version = 2\n" + (containerd.EXAMPLES / "nri.toml").read_text(encoding="utf-8"), encoding="utf-8")


def setUpModule():
    if not guest.inside():
        return
    containerd.configure()
    set_up_network()
    leave_to_a_daemon_set()
    daemon = ContainerdCase.daemon = DaemonPod.daemon = containerd.Containerd()
    daemon.start()
    unittest.addModuleCleanup(daemon.stop)
    daemon.load_image()
    image = pathlib.Path(os.environ[BROUGHT], "image.tar")
    engine.call("ctr", "--address", containerd.SOCKET, "--namespace", "k8s.io", "image", "import", image)


if __name__ == "__main__":
    harness.main(("runc",), here=[Guest], in_guest=[DaemonSet, Told, SystemdDriver])
