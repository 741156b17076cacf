"""A first managed pod by nothing but `podqosctl configure ENGINE --restart`, under systemd.

Here the packages are built, and guests of Debian 12, 13 and testing are booted: containerd 1.6, 1.7 and 2.1, Docker 28.
There this file runs again, with the services of the engines as Debian ships them.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import containerd  # noqa: E402
import cri  # noqa: E402
import docker  # noqa: E402
import engine  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import patience  # noqa: E402
import podman  # noqa: E402

SOCKET = pathlib.Path("/run/containerd/containerd.sock")
CONFIG = pathlib.Path("/etc/containerd/config.toml")
SPEC = {"podqos.io/pod": json.dumps({"containers": [harness.container(
    "web", requests={"cpu": "100m", "memory": "64Mi"}, limits={"cpu": "200m", "memory": "128Mi"})]})}


def configure(*words):
    return json.loads(engine.call("podqosctl", "configure", *words, "-o", "json").stdout)


def doctor(group):
    """{name: check} of what podqosctl doctor says of an engine; it fails if one of these is a problem."""
    done = engine.call("podqosctl", "doctor", "-o", "json", check=False)
    checks = {check["name"]: check for check in json.loads(done.stdout) if check["group"] == group}
    if any(check["outcome"] == "problem" for check in checks.values()) and done.returncode != 1:
        raise engine.Failed(f"doctor ends with {done.returncode}: {checks}")
    return checks


def configured_docker(**more):
    """Docker's configuration, whose bytes these are: podqos is not registered."""
    docker.configure("systemd")
    text = json.loads(docker.CONFIG.read_text(encoding="utf-8"))
    del text["runtimes"]
    engine.write_json(docker.CONFIG, {**text, **more})
    return docker.CONFIG.read_bytes()


def state(unit):
    return subprocess.run(["systemctl", "is-active", unit], capture_output=True, text=True, check=False).stdout.strip()


def unmask(*units):
    """The guest masks all services but its own (tests/guest/inside/systemd.sh)."""
    for unit in units:
        for directory in ("/etc/systemd/system", "/run/systemd/system"):
            pathlib.Path(directory, unit).unlink(missing_ok=True)
    engine.call("systemctl", "daemon-reload")


def start_containerd_service():
    # What installed forbids, so that no service starts by itself.
    pathlib.Path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)
    # The guest's root is an overlay, on which containerd's own cannot stand.
    pathlib.Path("/var/lib/containerd").mkdir(exist_ok=True)
    engine.call("mount", "-t", "tmpfs", "tmpfs", "/var/lib/containerd")
    unmask("containerd.service")
    engine.call("systemctl", "start", "containerd.service")


@functools.cache
def client_of_containerd():
    """Starts containerd.service, with an image, once in a guest."""
    start_containerd_service()
    client = cri.Client(SOCKET)
    client.wait()
    containerd.load_image(client, SOCKET, containerd.pause_image())
    return client


class Containerd(unittest.TestCase):
    """In the guest: containerd.service."""

    @classmethod
    def setUpClass(cls):
        cls.cri = client_of_containerd()

    def setUp(self):
        # All tests together restart it too often for systemd.
        engine.call("systemctl", "reset-failed", "containerd.service", check=False)

    def run_pod(self, handler, parent=""):
        """Where its container is; afterwards nothing of the pod is left."""
        sandbox = self.cri.run_pod(cri.sandbox("web", "web-1", parent, SPEC), handler)
        container = self.cri.create(sandbox, cri.container("web", engine.IMAGE))
        self.cri.start(container)
        path = machines.cgroup_of(self.cri.pid(container))
        self.cri.stop_pod(sandbox)
        self.cri.remove_pod(sandbox)
        return path

    def check_named_parent(self, parent):
        """containerd makes the tree itself, for the sandbox: it is podqos's all the same, and goes with the pod."""
        self.assertFalse(pathlib.Path("/sys/fs/cgroup/podqos").exists())
        sandbox = self.cri.run_pod(cri.sandbox("web", "web-1", parent, SPEC), "")
        container = self.cri.create(sandbox, cri.container("web", engine.IMAGE))
        self.cri.start(container)
        self.assertTrue(machines.cgroup_of(self.cri.pid(container)).startswith(f"{parent}/"))
        status = json.loads(engine.call("podqosctl", "status", "-o", "json", "--exit-zero").stdout)
        ((pod,), (tree,)) = status["pods"], status["trees"]
        # 100m are 102 shares: 1 + (102 - 2) * 9999 / 262142.
        self.assertEqual((pod["kubeletsOwn"], pod["cpuWeight"], pod["memoryLimitBytes"]), (False, 4, 128 << 20))
        # The guest's one CPU.
        self.assertEqual((tree["top"]["cgroup"], tree["top"]["cpuWeight"]), ("/podqos", 39))
        self.cri.stop_pod(sandbox)
        self.cri.remove_pod(sandbox)
        patience.expect(lambda: not pathlib.Path("/sys/fs/cgroup/podqos").exists(), "the end of the tree")

    def wait(self):
        self.cri.wait()

    def test_a_container_that_was_there_before(self):
        """It lives on through each change, where it was."""
        sandbox = self.cri.run_pod(cri.sandbox("customer", "customer-1"), "")
        customer = self.cri.create(sandbox, cri.container("customer", engine.IMAGE))
        self.cri.start(customer)
        init = self.cri.pid(customer)
        cgroup = machines.cgroup_of(init)
        for method in ("nri", "wrapper"):
            for change in (("--method", method), ("--undo",)):
                configure("containerd", *change, "--restart")
                self.wait()
                self.assertEqual((self.cri.pid(customer), machines.cgroup_of(init)), (init, cgroup))
                self.cri.exec(customer, "sleep", "0")
        self.cri.stop_pod(sandbox)
        self.cri.remove_pod(sandbox)
        # The plugin, which is gone, has counted it.
        engine.call("podqosctl", "reconcile")

    def test_wrapper(self):
        stock = CONFIG.read_bytes()
        said = configure("containerd", "--method", "wrapper", "--restart")
        self.assertEqual((said["checked"], said["restarted"], len(said["changes"])), (True, True, 1))
        self.wait()
        self.assertIn("burstable", self.run_pod("podqos"))
        self.assertNotIn("kubepods", self.run_pod(""))
        self.assertTrue(configure("containerd", "--undo", "--restart")["restarted"])
        self.wait()
        self.assertEqual(CONFIG.read_bytes(), stock)
        with self.assertRaises(cri.Failed):
            self.run_pod("podqos")

    def test_the_default_is_nri(self):
        """The package podqos-nri is installed: no pod has to ask for anything."""
        stock = CONFIG.read_bytes()
        # As where the package was installed long before: the plugin looks for a runtime every few seconds only.
        engine.call("systemctl", "enable", "--now", "podqos-nri.service")
        time.sleep(7)
        said = configure("containerd", "--restart")
        self.assertEqual((said["method"], said["pluginEnabled"], said["pluginConnected"]), ("nri", False, True))
        self.wait()
        self.assertEqual(state("podqos-nri.service"), "active")
        self.assertIn("burstable", self.run_pod(""))
        self.check_named_parent("/podqos/kubepods/burstable/podweb-1")
        again = configure("containerd", "--restart")
        self.assertEqual((again["restarted"], again["pluginEnabled"], again["pluginConnected"], again["next"]),
                         (False, False, True, []))
        self.undo(stock)
        said = configure("containerd", "--restart")
        self.assertEqual((said["pluginEnabled"], said["pluginConnected"]), (True, True))
        self.undo(stock)

    def undo(self, stock):
        self.assertTrue(configure("containerd", "--undo", "--restart")["pluginDisabled"])
        self.assertEqual(state("podqos-nri.service"), "inactive")
        self.wait()
        self.assertEqual(CONFIG.read_bytes(), stock)

    def check_forgotten_restart(self, *words):
        """The file is right, and containerd has not read it."""
        stock = CONFIG.read_bytes()
        engine.call("systemctl", "reset-failed", "containerd.service", check=False)
        self.assertEqual(len(configure("containerd", *words)["changes"]), 1)
        said = engine.call("podqosctl", "configure", "containerd", *words).stdout
        self.assertIn(f"containerd.service has not been restarted since {CONFIG} changed", said)
        self.assertIn("next: systemctl restart containerd.service", said)
        self.assertNotIn("nothing to do", said)
        said = configure("containerd", *words, "--restart")
        self.assertEqual((said["changes"], said["checked"], said["restarted"], said["stale"]), ([], True, True, False))
        self.wait()
        said = configure("containerd", *words, "--restart")
        self.assertEqual((said["checked"], said["restarted"], said["stale"]), (False, False, False))
        configure("containerd", "--undo")
        self.assertTrue(configure("containerd", "--undo")["stale"])
        said = configure("containerd", "--undo", "--restart")
        self.assertEqual((said["changes"], said["restarted"]), ([], True))
        self.assertEqual(CONFIG.read_bytes(), stock)
        self.assertFalse(configure("containerd", "--undo")["stale"])
        self.wait()

    def test_a_forgotten_restart(self):
        self.check_forgotten_restart("--method", "wrapper")
        # containerd 2 has NRI switched on: there is no file to be read.
        if configure("containerd", "--method", "nri", "--dry-run")["changes"]:
            self.check_forgotten_restart("--method", "nri")

    def test_a_service_that_does_not_start(self):
        """containerd's own check accepts it; then all is as before, and containerd runs."""
        stock = CONFIG.read_text(encoding="utf-8")
        self.addCleanup(CONFIG.write_text, stock, encoding="utf-8")
        unit = pathlib.Path("/run/systemd/system/containerd.service.d/fail.conf")
        unit.parent.mkdir(parents=True, exist_ok=True)
        unit.write_text("[Service]\nExecStartPre=/bin/sh -c '! grep -q podqos /etc/containerd/config.toml'\n",
                        encoding="ascii")
        engine.call("systemctl", "daemon-reload")
        self.addCleanup(engine.call, "systemctl", "daemon-reload")
        self.addCleanup(unit.unlink)
        done = engine.call("podqosctl", "configure", "containerd", "--method", "wrapper", "--restart", check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("changes rolled back", done.stderr)
        self.assertEqual(CONFIG.read_text(encoding="utf-8"), stock)
        self.assertEqual(os.listdir(CONFIG.parent), ["config.toml"])
        self.assertEqual(state("containerd.service"), "active")
        self.wait()


class Doctor(unittest.TestCase):
    """In the guest: a registration that is broken, for real, and the remedies that doctor names."""

    @classmethod
    def setUpClass(cls):
        cls.cri = client_of_containerd()

    def setUp(self):
        engine.call("systemctl", "reset-failed", "containerd.service", check=False)
        self.addCleanup(configure, "containerd", "--undo", "--restart")

    def outcome(self, name, outcome, *words):
        """Of one check; its remedy."""
        check = doctor("containerd")[name]
        self.assertEqual(check["outcome"], outcome, check)
        for word in words:
            self.assertIn(word, check["text"])
        return check["remedy"]

    def test_a_forgotten_restart(self):
        self.assertEqual(self.outcome("registered", "skipped"), "podqosctl configure containerd --restart")
        configure("containerd", "--method", "wrapper")
        remedy = self.outcome("known", "problem", f"since before {CONFIG} changed")
        engine.call("sh", "-c", remedy)
        self.cri.wait()
        self.outcome("known", "ok")
        self.outcome("registered", "ok", "wrapper")
        self.outcome("used", "warning", "no running container")
        wrapper = pathlib.Path("/usr/bin/podqos-runtime")
        away = wrapper.rename("/usr/bin/away")
        self.addCleanup(lambda: away.exists() and away.rename(wrapper))
        self.outcome("programs", "problem", str(wrapper))
        away.rename(wrapper)

    def test_a_plugin_that_is_away(self):
        configure("containerd", "--restart")
        self.outcome("plugin", "ok", "connected")
        engine.call("systemctl", "stop", "podqos-nri.service")
        engine.call("sh", "-c", self.outcome("plugin", "problem", "not running"))
        patience.expect(lambda: doctor("containerd")["plugin"]["outcome"] == "ok", "the plugin")

    def test_another_program_of_podqos_name(self):
        stock = CONFIG.read_bytes()
        self.addCleanup(CONFIG.write_bytes, stock)
        with CONFIG.open("a", encoding="ascii") as file:
            file.write('[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.podqos.options]\n'
                       'BinaryName = "/usr/bin/runc"\n')
        self.outcome("registered", "problem", str(CONFIG), "does not call /usr/bin/podqos-runtime")
        CONFIG.write_bytes(stock)


class Crio(unittest.TestCase):
    """In the guest: a stand-in for CRI-O, which Debian does not have, as crio.service; its files are CRI-O's own."""

    PROGRAM = pathlib.Path("/usr/local/bin/crio")

    def setUp(self):
        self.PROGRAM.write_text("#!/bin/sh\ncase $1 in --version) echo crio version 1.27.0 ;; esac\n", encoding="ascii")
        self.PROGRAM.chmod(0o755)
        self.addCleanup(self.PROGRAM.unlink)
        unit = pathlib.Path("/run/systemd/system/crio.service")
        unit.write_text("[Service]\nExecStart=/bin/sleep infinity\n", encoding="ascii")
        engine.call("systemctl", "daemon-reload")
        engine.call("systemctl", "start", unit.name)
        self.addCleanup(engine.call, "systemctl", "stop", unit.name)

    def drop_in(self, text, path="/etc/crio/crio.conf.d/70-other"):
        """A file of the operator's, which CRI-O reads whatever its name."""
        file = pathlib.Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        self.addCleanup(file.unlink, missing_ok=True)
        file.write_text(text, encoding="ascii")
        return file

    def assert_check(self, name, outcome, words):
        check = doctor("crio")[name]
        self.assertEqual(check["outcome"], outcome, check)
        self.assertIn(words, check["text"])
        return check["remedy"]

    def test_what_doctor_checks(self):
        """Each is broken in CRI-O's files, and mended."""
        self.addCleanup(configure, "crio", "--undo")
        self.assertEqual(self.assert_check("registered", "skipped", "not registered"),
                         "podqosctl configure crio --restart")
        configure("crio", "--method", "wrapper")
        engine.call("sh", "-c", self.assert_check("known", "problem", "since before /etc/crio/crio.conf.d/50-podqos.conf"))
        self.assert_check("known", "ok", "")
        self.assert_check("registered", "ok", "by wrapper")
        self.assert_check("used", "warning", "no running container")
        self.assertNotIn("hooks", doctor("crio"))
        self.drop_in("{}", "/usr/share/containers/oci/hooks.d/other.json")
        left_out = self.drop_in('[crio.runtime]\nhooks_dir = ["/var/empty"]\ndefault_runtime = "podqos"\n')
        self.assert_check("hooks", "warning", f"{left_out}:2: hooks_dir leaves out")
        self.assert_check("used", "ok", "podqos is the default runtime")
        left_out.unlink()
        precreate = pathlib.Path("/usr/share/podqos/podman-hooks.d/50-podqos-precreate.json").read_text(encoding="utf-8")
        wrong = self.drop_in(precreate, "/usr/share/containers/oci/hooks.d/50-podqos-precreate.json")
        engine.call("sh", "-c", self.assert_check("hooks", "problem", f"{wrong}: CRI-O does not know the stage precreate"))
        self.assertNotIn("hooks", doctor("crio"))
        engine.write_json(pathlib.Path("/etc/podqos/conf.d/zz-driver.json"), {"cgroupDriver": "systemd"})
        self.addCleanup(pathlib.Path("/etc/podqos/conf.d/zz-driver.json").unlink)
        self.assertNotIn("driver", doctor("crio"))
        other = self.drop_in('[crio.runtime]\ncgroup_manager = "cgroupfs"\n')
        self.assertEqual(self.assert_check("driver", "problem", "cgroupDriver"), "set cgroupDriver to auto")
        other.write_text('[crio.runtime.runtimes.podqos]\nruntime_path = "/usr/bin/runc"\n', encoding="ascii")
        self.assert_check("registered", "problem", str(other))
        other.write_text("[crio.runtime\n", encoding="ascii")
        self.assert_check("registered", "warning", str(other))
        other.unlink()
        self.PROGRAM.write_text("#!/bin/sh\necho crio\n", encoding="ascii")
        self.assert_check("version", "problem", f"{self.PROGRAM} --version says: crio")

    def test_a_forgotten_restart(self):
        words = ("crio", "--method", "wrapper")
        self.assertEqual(len(configure(*words)["changes"]), 1)
        said = configure(*words)
        self.assertEqual((said["stale"], said["next"]), (True, ["systemctl restart crio.service"]))
        self.assertTrue(configure(*words, "--restart")["restarted"])
        self.assertFalse(configure(*words)["stale"])
        configure("crio", "--undo")
        living = pathlib.Path("/run/podqos-runc/0123abcd")
        living.mkdir(parents=True)
        refused = engine.call("podqosctl", "configure", "crio", "--undo", "--restart", check=False)
        self.assertIn("1 container of the runtime", refused.stderr)
        self.assertTrue(configure("crio", "--undo")["stale"])
        living.rmdir()
        self.assertTrue(configure("crio", "--undo", "--restart")["restarted"])
        self.assertEqual(configure("crio", "--undo")["stale"], False)


class Docker(unittest.TestCase):
    """In the guest: dockerd's own check, and a container."""

    def test_first_pod(self):
        before = configured_docker()
        said = configure("docker")
        self.assertEqual((said["checked"], len(said["changes"])), (True, 1))
        daemon = docker.Docker()
        daemon.start()
        self.addCleanup(daemon.stop)
        daemon.load_image()
        container = daemon.run("--annotation", "podqos.io/pod-uid=web-1")
        self.assertIn("besteffort", machines.cgroup_of(daemon.pid(container)))
        daemon("rm", "--force", container)
        configure("docker", "--undo")
        self.assertEqual(docker.CONFIG.read_bytes(), before)


class DockerService(unittest.TestCase):
    """In the guest: docker.service, with a container of somebody else's that is to live on."""

    @classmethod
    def setUpClass(cls):
        start_containerd_service()
        unmask("docker.service", "docker.socket")

    def start(self, **more):
        """The service with these settings and such a container; the configuration's bytes."""
        before = configured_docker(**more)
        engine.call("systemctl", "reset-failed", "docker.service", check=False)
        engine.call("systemctl", "start", "docker.service")
        self.addCleanup(engine.call, "systemctl", "stop", "docker.service", "docker.socket")
        self.docker = docker.Docker()
        self.docker.load_image()
        self.customer = self.docker.run(runtime="runc")
        self.addCleanup(self.docker.remove_all)
        self.init = self.docker.pid(self.customer)
        return before

    def knows(self):
        return "podqos" in json.loads(self.docker("info", "--format", "{{json .Runtimes}}"))

    def check_lives(self):
        self.assertEqual(self.docker.pid(self.customer), self.init)
        self.assertTrue(pathlib.Path(f"/proc/{self.init}").exists())

    def register(self):
        """A reload is enough."""
        self.assertFalse(self.knows())
        self.assertEqual(configure("docker")["next"][0], "systemctl reload docker.service")
        self.assertFalse(self.knows())
        self.assertEqual(doctor("docker")["known"]["remedy"], "systemctl reload docker.service")
        said = configure("docker", "--restart")
        self.assertEqual((said["changes"], said["reloaded"], said["restarted"], said["stale"]),
                         ([], True, False, False))
        self.assertTrue(self.knows())
        self.check_lives()
        container = self.docker.run("--annotation", "podqos.io/pod-uid=web-1")
        self.assertIn("besteffort", machines.cgroup_of(self.docker.pid(container)))
        self.docker("rm", "--force", container)
        said = configure("docker", "--restart")
        self.assertEqual((said["reloaded"], said["restarted"], said["stale"]), (False, False, False))
        self.assertEqual(doctor("docker")["known"]["outcome"], "ok")

    def check_a_daemon_that_hangs(self):
        """It is a line of doctor's output, and no more."""
        engine.call("systemctl", "kill", "--signal=STOP", "docker.service")
        known = doctor("docker")["known"]
        engine.call("systemctl", "kill", "--signal=CONT", "docker.service")
        self.assertEqual(known["outcome"], "skipped")
        self.assertRegex(known["text"], "cannot be asked: .*timed out")

    def test_an_undo_leaves_the_restart_to_its_operator(self):
        before = self.start()
        self.register()
        said = configure("docker", "--undo", "--restart")
        self.assertEqual((said["reloaded"], said["restarted"], said["stale"]), (True, False, True))
        self.assertEqual(said["next"][0], "systemctl restart docker.service (stops 1 running container: "
                                          "live-restore is off; --restart=force does the same)")
        self.assertEqual(docker.CONFIG.read_bytes(), before)
        self.check_lives()
        self.assertIn("stops 1 running", configure("docker", "--undo", "--restart")["next"][0])
        self.check_lives()
        said = engine.call("podqosctl", "configure", "docker", "--undo", "--restart=force").stdout
        self.assertIn("docker.service restarted, which stopped 1 running container: live-restore is off", said)
        self.assertFalse(self.knows())
        self.assertEqual(self.docker("inspect", "--format", "{{.State.Status}}", self.customer), "exited")

    def test_an_undo_beside_another_runtime(self):
        """A reload forgets podqos where the file has others."""
        before = self.start(runtimes={"other": {"path": "/usr/bin/runc"}})
        self.register()
        said = configure("docker", "--undo", "--restart")
        self.assertEqual((said["reloaded"], said["restarted"], said["stale"]), (True, False, False))
        self.assertFalse(self.knows())
        self.check_lives()
        self.assertEqual(docker.CONFIG.read_bytes(), before)

    def test_an_undo_with_live_restore(self):
        self.start(**{"live-restore": True})
        self.register()
        self.check_a_daemon_that_hangs()
        said = configure("docker", "--undo", "--restart")
        self.assertEqual((said["restarted"], said["stale"]), (True, False))
        self.assertFalse(self.knows())
        self.check_lives()


class ThreeEngines(unittest.TestCase):
    """In the guest: Podman and Docker with systemd's driver, containerd with cgroupfs, as Debian 13 has them."""

    TREES = ["/podqos.slice/podqos-kubepods.slice", "/podqos/kubepods"]

    @classmethod
    def setUpClass(cls):
        cls.cri = client_of_containerd()
        configure("containerd", "--method", "wrapper", "--restart")
        cls.cri.wait()
        podman.configure_podman()
        cls.podman = podman.Podman("crun", "systemd")
        docker.configure("systemd")
        cls.docker = docker.Docker()
        cls.docker.start()
        cls.addClassCleanup(cls.docker.stop)
        cls.docker.load_image()

    def status(self):
        return json.loads(engine.call("podqosctl", "status", "-o", "json", "--exit-zero").stdout)

    def ended_by(self, end):
        """Also where the test fails: the next one begins without containers."""
        self.addCleanup(end)
        return end

    def start_containerd(self):
        sandbox = self.cri.run_pod(cri.sandbox("web", "web-c", "", SPEC), "podqos")
        container = self.cri.create(sandbox, cri.container("web", engine.IMAGE, memory_limit_in_bytes=128 << 20))
        self.cri.start(container)
        self.assertRegex(machines.cgroup_of(self.cri.pid(container)), "^/podqos/kubepods/burstable/podweb-c/")
        return self.ended_by(lambda: (self.cri.stop_pod(sandbox), self.cri.remove_pod(sandbox)))

    def start_docker(self):
        container = self.docker.run("--annotation", "podqos.io/pod-uid=web-d",
                                    "--annotation", "podqos.io/limits=cpu=200m,memory=128Mi")
        self.assertIn("/podqos-kubepods.slice/podqos-kubepods-podweb_d.slice/",
                      machines.cgroup_of(self.docker.pid(container)))
        return self.ended_by(lambda: self.docker("rm", "--force", container))

    def start_podman(self):
        container = self.podman.run("--annotation", "podqos.io/pod-uid=web-p",
                                    "--annotation", "podqos.io/requests=cpu=100m,memory=64Mi")
        self.assertIn("/podqos-kubepods-burstable-podweb_p.slice/", machines.cgroup_of(self.podman.pid(container)))
        return self.ended_by(lambda: self.podman("rm", "--force", "--ignore", "--time", "0", container))

    def check_all(self):
        """One set of sums; what is reserved for Guaranteed pods is kept from both trees."""
        status = self.status()
        print(engine.call("podqosctl", "status", "--exit-zero").stdout, flush=True)
        self.assertEqual(status["warnings"], [])
        self.assertEqual(sorted(pod["uid"] for pod in status["pods"]), ["web-c", "web-d", "web-p"])
        self.assertEqual([tree["kubepods"] for tree in status["trees"]], self.TREES)
        counted = [[tier["requests"]["cpuMilli"] for tier in tree["tiers"]] for tree in status["trees"]]
        self.assertEqual(counted, [[200, 100, 0], [0, 100, 0]])
        for tree in status["trees"]:
            self.assertEqual(tree["tiers"][1]["memoryLimitBytes"], engine.NODE_MEMORY - (128 << 20))
            self.assertEqual(tree["tiers"][1]["rule"]["cpuShares"], 102)
            self.assertEqual(tree["tiers"][2]["memoryLimitBytes"], engine.NODE_MEMORY - (256 << 20))

    def check_trees(self, *roots):
        patience.expect(lambda: [tree["kubepods"] for tree in self.status()["trees"]] == list(roots),
                        f"trees {roots}")
        for root in self.TREES:
            self.assertEqual(pathlib.Path(f"/sys/fs/cgroup{root}").exists(), root in roots, root)

    def test_a_container_of_podman_lives_on(self):
        """Through each change of `configure`; it starts again afterwards."""
        customer = engine.call("podman", "run", "--detach", engine.IMAGE).stdout.strip()
        self.addCleanup(engine.call, "podman", "rm", "--force", "--time", "0", customer)
        init = self.podman.pid(customer)
        for change in ("--set-as-default", "--undo"):
            self.assertNotEqual(configure("podman", change)["changes"], [])
            engine.call("podman", "exec", customer, "sleep", "0")
            self.assertEqual(self.podman.pid(customer), init)
            engine.call("podman", "restart", "--time", "0", customer)
            init = self.podman.pid(customer)
        configure("podman")  # for the other tests

    def test_systemd_first(self):
        ends = [self.start_podman(), self.start_docker()]
        self.check_trees(self.TREES[0])
        end = self.start_containerd()
        self.check_all()
        end()
        self.check_trees(self.TREES[0])
        for end in ends:
            end()
        self.check_trees()

    def test_cgroupfs_first(self):
        end = self.start_containerd()
        self.check_trees(self.TREES[1])
        ends = [self.start_docker(), self.start_podman()]
        self.check_all()
        for each in ends:
            each()
        self.check_trees(self.TREES[1])
        end()
        self.check_trees()


def setUpModule():
    if guest.inside():
        engine.configure()


def of(root, *names):
    return guest.Guest("systemd", root=root), __file__, *names


if __name__ == "__main__":
    harness.main(("runc",), in_guest=[Containerd, Crio, Doctor, Docker, DockerService, ThreeEngines], here=[guest.cases({
        "debian_12": of("bookworm", "Containerd.test_wrapper"),  # containerd 1.6, which knows no NRI
        "debian_13": of("trixie", "Containerd", "Crio", "Doctor"),
        "three_engines": of("trixie", "ThreeEngines"),
        "docker_service": of("trixie", "DockerService"),
        "debian_testing": of("testing", "Containerd", "Docker")})])
