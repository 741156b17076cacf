"""What goes wrong on a node, and the one command that tells of it, as a new operator would go about it.

In a guest of Debian 13 with the packages, and with containerd, Docker and Podman as Debian ships them. The commands of
docs/troubleshooting.md are run there as they stand.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import configure_guest_test as services  # noqa: E402
import docker  # noqa: E402
import engine  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
import podman  # noqa: E402
import terminal  # noqa: E402
from harness import MI  # noqa: E402

COLUMNS = 80  # of the terminal
HOG = "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done"
BUSY = "while :; do :; done"
ROOT = "/podqos.slice/podqos-kubepods.slice"
SINK = pathlib.Path("/etc/podqos/conf.d/zz-sink.json")
GUIDE = harness.REPOSITORY / "docs/troubleshooting.md"
COMMAND = re.compile(r"^    (?:sudo )?(.+)$|`(?:sudo )?([^`\n]+)`", re.MULTILINE)
PROGRAMS = ("podqosctl", "journalctl", "systemctl", "docker", "podman", "chrt")


def shell(command):
    return engine.call("sh", "-c", command, check=False)


class Case(unittest.TestCase):
    def says(self, command, *words, status=0):
        """What a command prints, whose lines fit the terminal."""
        ended, text = terminal.run(["sh", "-c", command], COLUMNS)
        text = terminal.plain(text)
        print(text, flush=True)
        self.assertEqual(ended, status)
        folded = " ".join(text.split())
        for word in words:
            self.assertRegex(folded, word)
        self.assertEqual([line for line in text.splitlines() if len(line) > COLUMNS], [])
        return text


class Engines(Case):
    """An engine that does not do what its operator believes."""

    @classmethod
    def setUpClass(cls):
        cls.cri = services.client_of_containerd()

    def setUp(self):
        self.addCleanup(services.configure, "containerd", "--undo", "--restart")
        engine.call("systemctl", "reset-failed", "containerd.service", check=False)

    def mend(self, printed, name):
        """Runs the remedy that doctor prints below a check."""
        below = printed.partition(f" {name} ")[2].splitlines()[1:]
        remedy = next(line.strip() for line in below if line.strip().startswith("fix: "))
        engine.call("sh", "-c", remedy.removeprefix("fix: "))

    def wait_for(self, name):
        patience.expect(lambda: services.doctor("containerd")[name]["outcome"] == "ok", name)

    def test_registered_wrongly(self):
        stock = services.CONFIG.read_bytes()
        self.addCleanup(services.CONFIG.write_bytes, stock)
        with services.CONFIG.open("a", encoding="ascii") as file:
            file.write('[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.podqos.options]\n'
                       'BinaryName = "/usr/bin/runc"\n')
        self.says("podqosctl doctor", "FAIL registered .* does not call /usr/bin/podqos-runtime: correct or remove it",
                  status=1)
        services.CONFIG.write_bytes(stock)

    def test_not_restarted(self):
        services.configure("containerd", "--method", "wrapper")
        printed = self.says("podqosctl doctor", "FAIL known .* fix: systemctl restart containerd.service", status=1)
        self.mend(printed, "known")
        self.wait_for("known")

    def test_plugin_that_is_down(self):
        services.configure("containerd", "--restart")
        engine.call("systemctl", "stop", "podqos-nri.service")
        printed = self.says("podqosctl doctor", "FAIL plugin .* fix: systemctl enable --now podqos-nri.service",
                            status=1)
        self.mend(printed, "plugin")
        self.wait_for("plugin")


class PodmanCase(Case):
    podman = podman.Podman("crun", "systemd")

    def setUp(self):
        self.machine = machines.Machine()

    def run_pod(self, uid, script, *words):
        """A pod of one container with podqos's annotations, each KEY=VALUE."""
        said = [part for each in (f"pod-uid={uid}", *words) for part in ("--annotation", f"podqos.io/{each}")]
        identifier = self.podman("run", "--detach", "--name", uid, *said, engine.IMAGE, "sh", "-c", script)
        self.addCleanup(self.podman, "rm", "--force", "--time", "0", "--ignore", uid)
        return identifier

    def kill(self, uid, *words, cgroup=None):
        """A pod that takes all memory; meanwhile this cgroup has a lower limit than by the rule."""
        self.run_pod(uid, f"while ! [ -e /go ]; do sleep 0.1; done; {HOG}", *words)
        if cgroup is not None:
            self.machine.write(cgroup, "memory", 32 * MI)
        self.podman("exec", uid, "sh", "-c", "echo >/go")
        self.podman("wait", uid)


class Containers(PodmanCase):
    """A container that podqos misses, that the kernel throttles, or that another program moves."""

    def test_misspelt_annotation(self):
        self.run_pod("misspelt", "sleep 1000", "limit=cpu=200m")
        self.says("podqosctl why misspelt", r"podqos\.io/limit\b.*podqos\.io/limits")

    def test_hog(self):
        self.run_pod("hog", BUSY, "limits=cpu=100m,memory=64Mi", "requests=cpu=50m,memory=32Mi")
        self.says("podqosctl top --once", r"hog \d+m \d{3}% \d{2,3}% \d{2,3}% ")  # of request and limit
        self.says("podqosctl why hog", "CPU limit made it wait in")

    def test_moved_by_hand(self):
        pid = self.podman.pid(self.run_pod("moved", "sleep 1000", "limits=memory=64Mi"))
        pathlib.Path("/sys/fs/cgroup/podqos-test-elsewhere").mkdir()
        self.addCleanup(pathlib.Path("/sys/fs/cgroup/podqos-test-elsewhere").rmdir)
        self.addCleanup(self.podman, "rm", "--force", "--time", "0", "--ignore", "moved")
        pathlib.Path("/sys/fs/cgroup/podqos-test-elsewhere/cgroup.procs").write_text(str(pid), encoding="ascii")
        self.says("podqosctl status", "another program moved container .*: restart it", status=1)
        self.says("podqosctl doctor", "(FAIL|WARN) places .*moved", status=1)
        self.says("podqosctl why moved", "another program moved")


class Broken(PodmanCase):
    """What doctor checks beside that, each broken for real."""

    def settings(self, **settings):
        path = pathlib.Path("/etc/podqos/conf.d/zzz.json")
        engine.write_json(path, settings)
        self.addCleanup(path.unlink, missing_ok=True)

    def assert_check(self, group, name, outcome, words, returned="remedy"):
        checks = services.doctor(group)
        self.assertIn(name, checks, checks)
        self.assertEqual(checks[name]["outcome"], outcome, checks[name])
        self.assertRegex(checks[name]["text"], words)
        return checks[name][returned]

    def replace(self, path, old, new):
        """In a file that the test does not keep."""
        before = path.read_bytes() if path.exists() else None
        self.addCleanup(lambda: path.unlink() if before is None else path.write_bytes(before))
        text = (before or b"").decode()
        self.assertIn(old, text)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(old, new), encoding="utf-8")

    def test_settings(self):
        self.settings(eviction={"besteffort": {"memoryPressure": "60%/30s"}})
        self.assert_check("kernel", "pressure", "warning", "PSI is off: podqos-nri evicts by the working set")
        self.settings(cgroupDriver="cgroupfs")
        self.assert_check("podman", "driver", "problem", "cgroupDriver")
        self.settings(enabled=False)
        self.assert_check("configuration", "enabled", "problem", "switched off")

    def test_kubelet(self):
        kubelets = pathlib.Path("/var/lib/kubelet/config.yaml")
        self.replace(kubelets, "", "kind: KubeletConfiguration\npodPidsLimit: 77\n")
        self.assert_check("configuration", "kubelet", "warning", "podPidsLimit")
        kubelets.write_text("kind: KubeletConfiguration\ncgroupRoot: /podqos\n", encoding="utf-8")
        self.assert_check("configuration", "kubelet", "problem", "cgroupRoot is the kubelet's, /podqos: it kills pods")

    def test_file_that_is_not_read(self):
        path = pathlib.Path("/etc/podqos/conf.d/zzz.yaml")
        path.write_text("{}", encoding="utf-8")
        self.addCleanup(path.with_suffix(".json").unlink)
        shell(self.assert_check("configuration", "files", "warning", f"{path} is not read"))
        self.assert_check("configuration", "files", "ok", "zzz.json")

    def test_weights(self):
        self.settings(weightFormula="auto")
        self.run_pod("weighed", "sleep 1000", "container=app", "requests.app=cpu=150m")
        used = self.assert_check("configuration", "weights", "ok", "the runtime's formula: l(inear|og)$", "text").split()
        self.settings(weightFormula="log" if used[-1] == "linear" else "linear")
        self.assert_check("configuration", "weights", "warning", f"gives containers weights by the {used[-1]} formula")

    def test_timer(self):
        self.addCleanup(engine.call, "systemctl", "disable", "--now", "podqos-reconcile.timer")
        engine.call("systemctl", "mask", "podqos-reconcile.timer")
        shell(self.assert_check("services", "timer", "warning", "is masked: nothing corrects values"))
        shell(self.assert_check("services", "timer", "warning", "does not run: nothing corrects values"))
        self.assert_check("services", "timer", "ok", "runs")

    def test_controllers(self):
        self.run_pod("bare", "sleep 1000", "requests=cpu=150m")
        for path, *_ in os.walk(f"/sys/fs/cgroup{ROOT}", topdown=False):
            pathlib.Path(path, "cgroup.subtree_control").write_text("-pids", encoding="ascii")
        shell(self.assert_check("pods", "controllers", "problem", f"{ROOT} have no values of pids"))
        self.assert_check("pods", "controllers", "ok", "all trees have their controllers")

    def test_state_directory(self):
        engine.call("mount", "-t", "tmpfs", "-o", "mode=0700,size=64k", "tmpfs", engine.STATE)
        self.addCleanup(engine.call, "umount", engine.STATE)
        engine.call("dd", "if=/dev/zero", f"of={engine.STATE}/filled", "bs=4k", check=False)
        self.assert_check("state", "directory", "problem", "has no room")
        engine.call("mount", "-o", "remount,ro", engine.STATE)
        self.assert_check("state", "directory", "problem", "is mounted read-only")

    def test_requests(self):
        self.run_pod("large", "sleep 1000", "requests=cpu=64")
        self.assert_check("pods", "requests", "warning", "of which 1 counts: the node has no more allocatable")

    def test_limit_above_its_pod(self):
        self.run_pod("raised", "sleep 1000", "limits=memory=64Mi")
        self.podman("update", "--memory", "128m", "raised")
        self.assert_check("pods", "limits", "warning", "is above its pod's")

    def test_hooks(self):
        last = pathlib.Path("/etc/containers/containers.conf.d/zzz.conf")
        self.replace(last, "", '[engine]\nhooks_dir = ["/var/empty", {append=false}]\n')
        self.assert_check("podman", "hooks", "problem", "hooks_dir")

    def test_annotations(self):
        self.addCleanup(services.configure, "containerd", "--undo")
        services.configure("containerd", "--method", "wrapper")
        written = services.CONFIG.read_text(encoding="utf-8")
        own = re.sub(r"(?m)^#.*\n| *pod_annotations = .*\n", "", written)  # lines that an operator has written
        self.replace(services.CONFIG, written, own)
        self.assert_check("containerd", "annotations", "problem", "pod_annotations")


class Kills(PodmanCase):
    """An OOM kill by each kind of limit."""

    def told(self, uid, words):
        for command in (f"podqosctl why {uid}", f"podqosctl events --wide --pod {uid}"):
            done = shell(command)
            self.assertIn(words, " ".join(done.stdout.split()), command)

    def test_own_limit(self):
        self.kill("own", "container=app", "limits.app=memory=24Mi", "limits.log=memory=64Mi")
        self.told("own", "OOM-killed by its own limit (24Mi)")

    def test_limit_of_the_pod(self):
        self.kill("whole", "limits=memory=24Mi")
        self.told("whole", "OOM-killed by the limit of its pod (24Mi)")

    def test_limit_of_the_tier(self):
        self.kill("tier", cgroup=f"{ROOT}/podqos-kubepods-besteffort.slice")
        self.told("tier", "OOM-killed by the limit of tier besteffort (32Mi)")

    def test_limit_of_all_pods(self):
        self.kill("all", "requests=memory=16Mi", cgroup=ROOT)
        self.told("all", "OOM-killed by the limit of all pods")


class Guide(PodmanCase):
    """Each command of docs/troubleshooting.md does what it is there for."""

    @classmethod
    def setUpClass(cls):
        services.client_of_containerd()
        services.unmask("docker.service", "docker.socket", "podqos-reconcile.timer", "podqos-nri.service")
        services.configured_docker()
        engine.call("systemctl", "start", "docker.service")
        daemon = docker.Docker()
        daemon.load_image()
        cls.container = daemon.run(runtime="runc")
        cls.addClassCleanup(daemon.remove_all)

    def commands(self):
        found = []
        for block, inline in COMMAND.findall(GUIDE.read_text(encoding="utf-8")):
            words = (block or inline).split()
            if words[0] in PROGRAMS and len(words) > 2 and words not in found:
                found.append(words)
        return [" ".join(words) for words in found]

    def test_commands(self):
        manifest = engine.WORK / "pod.json"
        engine.write_json(manifest, harness.pod("web", harness.container("web", {"cpu": "100m"})))
        self.kill("guide", "limits=memory=24Mi")  # which the journal tells of
        self.addCleanup(engine.call, "systemctl", "disable", "--now", "podqos-reconcile.timer")
        commands = self.commands()
        self.assertGreater(len(commands), 20)
        ended = self.podman("inspect", "--format", "{{.Id}}", "guide")
        values = {"DIR": f"{engine.WORK}/images/overlay-containers/{ended}/userdata",
                  "--program FILE": "--program /usr/sbin/dockerd", "ENGINE": "docker", "FILE": str(manifest),
                  "NAME": self.container, "ID": "guide", "SLICE": "system.slice",
                  "PID": str(self.spawned())}
        for command in commands:
            with self.subTest(command):
                for word, value in values.items():
                    command = re.sub(rf"(?<!\w){word}\b", value, command)
                done = shell(command)
                print(f"{done.returncode} {command}", flush=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def spawned(self):
        child = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child.pid


def setUpModule():
    if guest.inside():
        engine.configure()
        podman.configure_podman()
        SINK.write_text(json.dumps({"log": {"sink": "syslog", "level": "info"}}), encoding="utf-8")


if __name__ == "__main__":
    harness.main(("runc",), in_guest=[Engines, Containers, Broken, Kills, Guide], here=[guest.cases({
        "debian_13": (guest.Guest("systemd", root="trixie"), __file__)})])
