"""Docker in the guest, with podqos as a runtime of its daemon.json, and an image made of busybox.

    docker.configure("systemd")                # once for each cgroup driver
    daemon = docker.Docker()
    daemon.start()
    container = daemon.run("--memory", "64m")  # by podqos-runtime
    daemon("pause", container)

It configures the whole machine, as engine.py says. Containers have no network, and the daemon touches none.
"""

import json
import pathlib
import signal
import subprocess

import engine
import patience
from engine import IMAGE, WORK, call

CONFIG = pathlib.Path("/etc/docker/daemon.json")
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/docker/daemon.json"
LOG = WORK / "docker.log"


def configure(driver):
    """The shipped example in the daemon's configuration, beside what an administrator has set there."""
    own = {"exec-opts": [f"native.cgroupdriver={driver}"], "data-root": str(WORK / "docker"), "bridge": "none",
           "iptables": False, "ip6tables": False, "storage-driver": "vfs", "features": {"containerd-snapshotter": False}}
    engine.write_json(CONFIG, {**own, **json.loads(EXAMPLE.read_text(encoding="utf-8"))})


class Docker:
    """The daemon, and its client."""

    def __init__(self):
        self.process = None

    def start(self):
        with LOG.open("a", encoding="utf-8") as log:
            # pylint: disable-next=consider-using-with  # stop() ends it
            self.process = subprocess.Popen(["dockerd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=WORK)
        come = patience.until(lambda: self.process.poll() is not None or call("docker", "version", check=False).returncode == 0)
        if not come or self.process.poll() is not None:
            raise engine.Failed(f"dockerd does not answer:\n{LOG.read_text(encoding='utf-8')[-3000:]}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def load_image(self):
        self("load", "--quiet", "--input", WORK / "image.tar")

    def __call__(self, *args, **options):
        """Runs docker with these arguments; its standard output, stripped."""
        return call("docker", *args, **options).stdout.strip()

    def run(self, *args, runtime="podqos"):
        """`docker run -d IMAGE` with further flags; the container's id."""
        return self("run", "--detach", "--network", "none", "--runtime", runtime, *args, IMAGE)

    def pid(self, container):
        """The container's init."""
        return int(self("inspect", "--format", "{{.State.Pid}}", container))

    def remove_all(self):
        for container in self("ps", "--all", "--quiet").split():
            self("rm", "--force", container)
