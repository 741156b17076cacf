"""containerd in the guest, driven through CRI, with podqos registered in each of the ways that it knows.

    containerd.configure()                         # once in a guest, with the installed package
    daemon = containerd.Containerd()
    daemon.start()
    pod = daemon.cri.run_pod(cri.sandbox("web", "web-1"), containerd.handler("wrapper", "runc", "cgroupfs"))
    daemon.restart()                               # what runs goes on

It configures the whole machine, as engine.py says. Pods use the machine's own network, so that no plugin for networks
is needed; the image is podqos's own of busybox, and the pods' own container is made of it too.
"""

import functools
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import cri
import engine
import patience
from engine import IMAGE, WORK, call

SOCKET = WORK / "containerd.sock"
NRI_SOCKET = pathlib.Path("/run/nri/nri.sock")  # where each side looks for the other unless it is told otherwise
METRICS = f"unix:{WORK}/metrics.sock"
PLUGIN_LOG = WORK / "plugin.log"
PLUGIN = "/usr/sbin/podqos-nri"
KNOWN = " sandboxes and containers"  # what podqos-nri says after a synchronization
LOG = WORK / "containerd.log"
CONFIG = WORK / "containerd.toml"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/containerd"
HOOKED_SPEC = WORK / "hooked.json"
WRAPPER = "/usr/bin/podqos-runtime"
RUNTIMES, DRIVERS = ("runc", "crun"), ("cgroupfs", "systemd")
# What a handler of containerd has of podqos: the wrapper as its runtime, hooks in the spec that containers start from,
# podqos's annotations passed on. Beside these there is "example", which is for the systemd driver: the file that podqos
# ships, word for word.
WAYS = {
    "plain": (),
    "wrapper": ("wrapper", "annotations"),
    "bare-wrapper": ("wrapper",),
    "hooks": ("hooks", "annotations"),
    "both": ("wrapper", "hooks", "annotations"),
}
# Not loaded, which saves a second of each start.
UNUSED = ("io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing", "io.containerd.snapshotter.v1.aufs",
          "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.btrfs",
          "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.native",
          "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp")


@functools.cache
def config_version():
    """That of the configuration which the installed containerd writes: 2 for 1.x, 3 for 2.x."""
    said = call("containerd", "--version", cwd="/").stdout
    return 2 if re.search(r" v?(\d+)\.", said)[1] == "1" else 3


def cri_table():
    """The name of the table for pods in that configuration."""
    return {2: 'plugins."io.containerd.grpc.v1.cri"', 3: 'plugins."io.containerd.cri.v1.runtime"'}[config_version()]


def handler(way, kind, driver):
    """The name of a handler, as a RuntimeClass would give it."""
    return "podqos" if way == "example" else f"{way}-{kind}-{driver}"


def _handler_text(way, kind, driver):
    """A handler in containerd's configuration. The wrapper finds its runtime in podqos's own (choose_runtime)."""
    parts = WAYS[way]
    table = f"{cri_table()}.containerd.runtimes.{handler(way, kind, driver)}"
    lines = [f"[{table}]", 'runtime_type = "io.containerd.runc.v2"']
    if "annotations" in parts:
        lines += ['pod_annotations = ["podqos.io/*"]', 'container_annotations = ["podqos.io/*"]']
    if "hooks" in parts:
        lines.append(f'base_runtime_spec = "{HOOKED_SPEC}"')
    binary = WRAPPER if "wrapper" in parts else shutil.which(kind)
    lines += [f"[{table}.options]", f'BinaryName = "{binary}"', f"SystemdCgroup = {str(driver == 'systemd').lower()}"]
    return "\n".join(lines)


def example():
    """The shipped example for such a configuration."""
    return (EXAMPLES / f"config-v{config_version()}.toml").read_text(encoding="utf-8")


def _image_and_nri_text():
    """2.x has the image of a pod's own container elsewhere, and NRI switched on without a word."""
    if config_version() == 3:
        return f"""
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{IMAGE}"
"""
    return f"""
[{cri_table()}]
sandbox_image = "{IMAGE}"
[plugins."io.containerd.nri.v1.nri"]
disable = false
socket_path = "{NRI_SOCKET}"
"""


def _config_text():
    handlers = [_handler_text(*each) for each in itertools.product(WAYS, RUNTIMES, DRIVERS)]
    return "\n".join([f"""\
version = {config_version()}
root = "{WORK}/containerd/root"
state = "{WORK}/containerd/state"
disabled_plugins = {json.dumps(UNUSED)}
[grpc]
address = "{SOCKET}"
[ttrpc]
address = "{SOCKET}.ttrpc"
[{cri_table()}.containerd]
default_runtime_name = "{handler("plain", "runc", "cgroupfs")}"
[{cri_table()}.cni]
conf_dir = "{WORK}/no-networks"
""", _image_and_nri_text(), *handlers, example(), ""])


def _write_hooked_spec():
    """containerd's own spec with the hooks of the example in it, for containerd reads no directory of hooks."""
    spec = json.loads(call("ctr", "oci", "spec").stdout)
    spec["hooks"] = json.loads((EXAMPLES.parent / "runc/hooks.json").read_text(encoding="utf-8"))
    engine.write_json(HOOKED_SPEC, spec)


def configure():
    """containerd beside the installed package, with a handler for each way in, runtime and driver."""
    engine.configure()
    CONFIG.write_text(_config_text(), encoding="utf-8")
    _write_hooked_spec()


def pause_image():
    """What a configuration that says nothing of it names for a pod's own container."""
    dumped = call("containerd", "config", "dump").stdout
    return re.search(r"""^\s*sandbox(?:_image)? = ["']([^"']+)["']$""", dumped, re.MULTILINE)[1]


def load_image(client, socket, *names):
    """The image, by further names too. CRI hears of them by events, a moment after they are there."""
    ctr = ("ctr", "--address", socket, "--namespace", "k8s.io", "image")
    call(*ctr, "import", WORK / "image.tar")
    for name in names:
        call(*ctr, "tag", IMAGE, name)
    for name in (IMAGE, *names):
        patience.expect(lambda name=name: client.has_image(name), f"image {name}")


def log_text():
    """The end of what containerd said."""
    return LOG.read_text(encoding="utf-8", errors="replace")[-3000:] if LOG.exists() else ""


class Containerd:
    """The daemon. Its shims and their containers outlive it, as they do where systemd starts it (KillMode=process)."""

    def __init__(self):
        self.cri = cri.Client(SOCKET)
        self.process = None

    def start(self):
        """Until it answers."""
        with LOG.open("ab") as log:
            self.process = subprocess.Popen(["containerd", "--config", CONFIG], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd="/")
        try:
            self.cri.wait()
        except cri.Failed as refused:
            raise AssertionError(f"containerd does not answer: {refused}\n{log_text()}") from refused

    def load_image(self):
        load_image(self.cri, SOCKET)

    def stop(self, number=signal.SIGTERM):
        os.kill(self.process.pid, number)
        self.process.wait()

    def restart(self, number=signal.SIGTERM):
        self.stop(number)
        self.start()

    def remove_all(self):
        """After a test that failed half-way."""
        for identifier in self.cri.pods():
            pod = (identifier, None)
            for step in (self.cri.stop_pod, self.cri.remove_pod):
                try:
                    step(pod)
                except cri.Failed as refused:
                    print(f"clean-up: {refused}", flush=True)


class Plugin:
    """podqos-nri, connected to containerd while the object is not stopped."""

    def __init__(self):
        PLUGIN_LOG.unlink(missing_ok=True)
        self.start()

    def start(self):
        """Until containerd has told it what there is."""
        before = self.synchronized()
        self.launch()
        self.wait(before + 1)

    def launch(self):
        with PLUGIN_LOG.open("ab") as log:
            self.process = subprocess.Popen([PLUGIN, "--socket", NRI_SOCKET, "--metrics", METRICS],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")

    @property
    def pid(self):
        return self.process.pid

    def has_ended(self):
        return self.process.poll() is not None

    def synchronized(self):
        """How often it has been told so far."""
        return self.said(KNOWN)

    def said(self, text):
        """How often podqos's log says so."""
        return engine.LOG.read_text(encoding="utf-8").count(text) if engine.LOG.exists() else 0

    def wait(self, times, text=KNOWN):
        """Until the log says so, so many times."""
        patience.until(lambda: self.said(text) >= times or self.has_ended())
        if self.said(text) < times:
            said = PLUGIN_LOG.read_text(encoding="utf-8", errors="replace") if PLUGIN_LOG.exists() else ""
            raise AssertionError(f"podqos-nri has not said {text!r}: {said}\n{engine.log_text()}")

    def stop(self, number=signal.SIGTERM):
        """Its exit status; negative for a signal."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        return self.process.wait()


class Service(Plugin):
    """The same as the package's service, which systemd runs."""

    UNIT = "podqos-nri.service"

    def launch(self):
        call("systemctl", "start", self.UNIT)

    def show(self, name):
        """A property of the unit."""
        return call("systemctl", "show", "--property", name, "--value", self.UNIT).stdout.strip()

    @property
    def pid(self):
        return int(self.show("MainPID"))

    def has_ended(self):
        return self.show("ActiveState") == "failed"

    def reload(self):
        before = self.said("configuration reloaded")
        call("systemctl", "reload", self.UNIT)
        self.wait(before + 1, "configuration reloaded")

    def stop(self, number=signal.SIGTERM):
        """Whether it has failed."""
        call("systemctl", "stop", self.UNIT)
        return int(self.show("Result") != "success")


def bundle(identifier):
    """Where containerd's shim keeps the bundle of a container."""
    return pathlib.Path(WORK, "containerd/state/io.containerd.runtime.v2.task/k8s.io", identifier)


def shim(pid):
    """The pid of the shim that holds a container with this init."""
    parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])
    name = pathlib.Path(f"/proc/{parent}/comm").read_text(encoding="utf-8").strip()
    if name != "containerd-shim":
        raise AssertionError(f"the parent of process {pid} is {name}, and no shim")
    return parent
