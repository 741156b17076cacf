"""Podman in the guest, with podqos registered by the files of its package, and an image made of busybox.

    podman.configure()                         # once in a guest
    engine = podman.Podman("crun", "systemd")  # or "runc", "cgroupfs"
    container = engine.run("--memory", "64m")
    engine("pause", container)

It configures the whole machine, as engine.py says.
"""

import json
import pathlib
import re

import engine
from engine import IMAGE, WORK, call

NO_HOOKS = WORK / "no-hooks"  # for --hooks-dir: then only the wrapper is left


def configure():
    """Podman beside the installed package, and podqos."""
    engine.configure()
    configure_podman()


def configure_podman():
    """Storage in memory, no network, an image."""
    NO_HOOKS.mkdir()
    configuration = pathlib.Path("/etc/containers")
    (configuration / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{WORK}/images"\nrunroot = "{WORK}/run"\n', encoding="utf-8")
    (configuration / "containers.conf").write_text(
        '[containers]\nnetns = "host"\n[engine]\nevents_logger = "file"\n'
        f'infra_image = "{IMAGE}"\ninfra_command = "/bin/sleep 1000000"\n', encoding="utf-8")
    call("podman", "load", "--quiet", "--input", WORK / "image.tar")


def conmon(container):
    """The pid of the process that Podman leaves beside a container."""
    return int((WORK / "run/overlay-containers" / container / "userdata/conmon.pid").read_text(encoding="utf-8"))


class Podman:
    """Podman with one runtime ("crun", "runc", or "podqos": the wrapper) and one cgroup manager."""

    def __init__(self, runtime, manager, hooks=True):
        self.manager = manager
        self.flags = ["--runtime", runtime, "--cgroup-manager", manager]
        if not hooks:
            self.flags += ["--hooks-dir", NO_HOOKS]

    def __call__(self, *args, **options):
        """Runs podman with these arguments; its standard output, stripped."""
        return call("podman", *self.flags, *args, **options).stdout.strip()

    def run(self, *args):
        """`podman run -d IMAGE` with further flags; the container's id."""
        return self("run", "--detach", *args, IMAGE)

    def play(self, manifest):
        """`podman kube play` of a YAML text; the ids of the pod's containers, in the order of the manifest."""
        printed = self("kube", "play", "-", stdin=None, input=manifest)
        return re.findall(r"^[0-9a-f]{64}$", printed, re.MULTILINE)[1:]  # the pod comes first

    @staticmethod
    def pid(container):
        """The container's init, from the file that Podman keeps."""
        return int((WORK / "run/overlay-containers" / container / "userdata/pidfile").read_text(encoding="utf-8"))

    @staticmethod
    def config(container):
        """The config.json that the runtime was given."""
        path = WORK / "images/overlay-containers" / container / "userdata/config.json"
        return json.loads(path.read_text(encoding="utf-8"))

    def sandbox(self, container):
        """What links a container to its pod."""
        return self.config(container)["annotations"]["io.kubernetes.cri-o.SandboxID"]

    def leaf(self, container):
        """The last part of a container's cgroup."""
        return f"libpod-{container}" + ("" if self.manager == "cgroupfs" else ".scope")
