"""docs/engines: the commands of "From nothing to the first managed pod" are run, and end with a managed pod; the runtime
that another vendor has made the default one of containerd and Docker is called with the same before, during and after.

A guest each of Debian 13 and testing is booted, with the engines as Debian ships them, under systemd; this file runs
again in there, and apt installs the packages that are built here. What a guest lacks is a network, a disk that overlays can stand
on, and crictl: so the images are there before, the storage is in memory or copied, and tests/lib/crictl.py plays
crictl's part.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import containerd  # noqa: E402
import cri  # noqa: E402
import crictl  # noqa: E402
import engine  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
import neighbours  # noqa: E402
from engine import WORK, call  # noqa: E402
from tutorial_test import steps  # noqa: E402

PAGES = harness.REPOSITORY / "docs/engines"
SECTION = re.compile(r"^## From nothing to the first managed pod\n(.*?)^## ", re.MULTILINE | re.DOTALL)
IMAGE = "docker.io/library/busybox:latest"
PLACE = WORK / "downloads"
CRICTL = pathlib.Path("/usr/local/bin/crictl")
MASKS = ("/etc/systemd/system", "/run/systemd/system")


def commands(page):
    """What the page says to run, as one script."""
    section = SECTION.search((PAGES / page).read_text(encoding="utf-8"))
    return "".join(block for _, block, _ in steps(section[1]))


def start(*units):
    """As on a machine of its own; the guest masks all services but these of its own (tests/guest/inside/systemd.sh)."""
    for unit in units:
        for directory in MASKS:
            pathlib.Path(directory, unit).unlink(missing_ok=True)
    # The guest's root is an overlay, on which containerd's own cannot stand.
    images = pathlib.Path("/var/lib/containerd")
    images.mkdir(exist_ok=True)
    if not images.is_mount():
        call("mount", "-t", "tmpfs", "tmpfs", images)
    call("systemctl", "daemon-reload")
    call("systemctl", "start", *units)


def remove_pods(client):
    """All that containerd runs."""
    for pod in client.pods():
        client.stop_pod((pod, None))
        client.remove_pod((pod, None))


class Pages(unittest.TestCase):
    """In the guest. No engine was ever told of podqos before."""

    @classmethod
    def setUpClass(cls):
        PLACE.mkdir(parents=True)
        engine.write_image(WORK / "image.tar")
        for package in pathlib.Path(os.environ["PODQOS_PACKAGES"]).glob("*.deb"):
            # Under the names that packaging/deb/build gives them.
            fields = call("dpkg-deb", "--show", "--showformat", "${Package}_${Version}_${Architecture}", package)
            shutil.copy(package, PLACE / f"{fields.stdout}.deb")
        pathlib.Path("/etc/dpkg/dpkg.cfg.d/unsafe").write_text("force-unsafe-io\n", encoding="ascii")
        pathlib.Path("/etc/apt/apt.conf.d/99yes").write_text('APT::Get::Assume-Yes "true";\n', encoding="ascii")

    def setUp(self):
        self.addCleanup(self.remove_packages)

    def remove_packages(self):
        call("dpkg", "--purge", "podqos-nri", "podqos")
        # Else podqosctl would miss a plugin until the machine boots.
        self.assertFalse(pathlib.Path("/run/podqos/nri.lock").exists())

    def run_script(self, script):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(["bash", "-euxc", script], cwd=PLACE, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout, flush=True)
        self.assertEqual(done.returncode, 0)
        return done.stdout

    def follow(self, page, installed=lambda: None):
        """Runs the page's commands, and calls `installed` after the first, which installs the packages."""
        install, _, rest = commands(page).partition("\n")
        self.run_script(install)
        installed()
        # 100m of a CPU are 102 shares.
        self.assertIn("(102)", self.run_script(rest).rpartition("podqosctl tree")[2])

    def assert_placed(self, pid, engine_name):
        """In the cgroup of the page's pod; with systemd that is a slice, in whose name a hyphen of the uid is escaped."""
        self.assertRegex(machines.cgroup_of(pid), rf"kubepods.*burstable.*podweb(-|\\x2d|_){engine_name}[./]")

    def test_podman(self):
        pathlib.Path("/etc/containers").mkdir(exist_ok=True)
        pathlib.Path("/etc/containers/storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{WORK}/images"\nrunroot = "{WORK}/run"\n', encoding="ascii")
        pathlib.Path("/etc/containers/containers.conf").write_text('[containers]\nnetns = "host"\n', encoding="ascii")
        call("podman", "load", "--quiet", "--input", WORK / "image.tar")
        call("podman", "tag", engine.IMAGE, IMAGE)
        self.addCleanup(call, "podman", "rm", "--force", "--ignore", "--time", "0", "web")
        self.follow("podman.md")
        self.assert_placed(int(call("podman", "inspect", "--format", "{{.State.Pid}}", "web").stdout), "podman")

    def test_containerd(self):
        """Beside NVIDIA's runtime, which is the default one before, during and after."""
        neighbours.register_runtime()
        config = pathlib.Path("/etc/containerd/config.toml")
        with config.open("a", encoding="utf-8") as file:
            file.write(neighbours.CONTAINERD)
        own = config.read_bytes()
        start("containerd.service")
        CRICTL.write_text(f"#!/bin/sh\nexec python3 {harness.REPOSITORY}/tests/lib/crictl.py \"$@\"\n", encoding="ascii")
        CRICTL.chmod(0o755)
        client = cri.Client(crictl.SOCKET)
        client.wait()
        containerd.load_image(client, crictl.SOCKET, containerd.pause_image(), IMAGE)
        self.addCleanup(remove_pods, client)

        def plain():
            """What NVIDIA's runtime is told of a pod."""
            client.wait()
            sandbox = client.run_pod(cri.sandbox("plain", "plain-1"), "")
            client.start(client.create(sandbox, cri.container("app", IMAGE)))
            remove_pods(client)
            return neighbours.told()

        before = plain()
        self.assertEqual([words.split()[0] for words, _, _ in before], [str(neighbours.NVIDIA_RUNTIME)] * 2)
        # podqos-nri is the registration itself where NRI is switched on, as in containerd 2.
        self.run_script("apt install ./podqos_*.deb")
        self.assertEqual(plain(), before)
        self.follow("containerd.md")
        (container,) = client.containers()
        self.assert_placed(client.pid(container), "containerd")
        # The pod and its container of the page, too, were made by NVIDIA's runtime.
        self.assertEqual([words for words, _, _ in neighbours.told()], [words for words, _, _ in before])
        remove_pods(client)
        call("systemctl", "disable", "--now", "podqos-nri.service")
        call("podqosctl", "configure", "containerd", "--undo", "--restart")
        self.assertEqual(config.read_bytes(), own)
        self.assertEqual(plain(), before)

    def test_docker(self):
        """Beside NVIDIA's runtime, which is the default one before, during and after."""
        neighbours.register_runtime()
        config = pathlib.Path("/etc/docker/daemon.json")
        engine.write_json(config, {
            "data-root": str(WORK / "docker"), "bridge": "none", "iptables": False, "ip6tables": False,
            "storage-driver": "vfs", "features": {"containerd-snapshotter": False}, **neighbours.DOCKER})
        own = config.read_bytes()
        start("containerd.service", "docker.socket", "docker.service")
        call("docker", "load", "--quiet", "--input", WORK / "image.tar")
        call("docker", "tag", engine.IMAGE, "busybox:latest")
        self.addCleanup(call, "docker", "rm", "--force", "web", check=False)

        def plain():
            """What NVIDIA's runtime is told of a container."""
            call("docker", "run", "--rm", "--network", "none", "busybox", "true")
            return neighbours.told()

        before = plain()
        self.assertEqual([words.split()[0] for words, _, _ in before], [str(neighbours.NVIDIA_RUNTIME)])
        self.follow("docker.md", lambda: self.assertEqual(plain(), before))
        self.assert_placed(int(call("docker", "inspect", "--format", "{{.State.Pid}}", "web").stdout), "docker")
        self.assertEqual(plain(), before)
        call("docker", "rm", "--force", "web")
        call("podqosctl", "configure", "docker", "--undo", "--restart")
        self.assertEqual(config.read_bytes(), own)
        self.assertEqual(plain(), before)


class Guests(guest.cases({root: (guest.Guest("systemd", root=root), __file__) for root in ("trixie", "testing")},
                         installed=False)):
    """Here, with the packages for those there."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["PODQOS_PACKAGES"] = str(guest.packages())


class Sections(unittest.TestCase):
    def test_each_engine_has_one(self):
        """What stands in other blocks than those would not be run."""
        for page in ("podman.md", "containerd.md", "docker.md"):
            self.assertTrue(commands(page).startswith("apt install "), page)


if __name__ == "__main__":
    harness.main(("runc",), here=[Guests, Sections], in_guest=[Pages])
