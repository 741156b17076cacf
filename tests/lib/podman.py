"""Podman in the guest, with podqos registered by the files of its package, and an image made of busybox.

    podman.install(package)                    # once in a guest
    engine = podman.Podman("crun", "systemd")  # or "runc", "cgroupfs"
    container = engine.run("--memory", "64m")
    engine("pause", container)

It configures the whole machine, so it refuses to run anywhere but in a guest, which is thrown away afterwards.
"""

import hashlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import tarfile
import time

import guest

WORK = pathlib.Path("/run/podqos-test")  # a tmpfs: the guest's root is an overlay, on which no other can stand
STATE = pathlib.Path("/run/podqos")
LOG = WORK / "podqos.log"
IMAGE = "localhost/busybox:1"
NO_HOOKS = WORK / "no-hooks"  # for --hooks-dir: then only the wrapper is left
NODE_MEMORY = 2 << 30
TIMEOUT = 120  # seconds for one command; most take two
APPLETS = ("sh", "sleep", "cat", "dd", "true")
SETTINGS = {
    "nodeMemory": str(NODE_MEMORY),
    "qosReserved": {"memory": "100%"},
    "weightFormula": "linear",
    "releaseDelay": "0s",
    "log": {"sink": str(LOG), "level": "debug"},
}


class Failed(AssertionError):
    """A command that a test expected to succeed."""


def call(*command, check=True, **options):
    """Runs a command; CompletedProcess with text."""
    command = list(map(str, command))
    options = {"stdin": subprocess.DEVNULL, "cwd": WORK, "timeout": TIMEOUT, **options}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}{done.stdout}\n{log_text()}")
    return done


def log_text():
    """The end of podqos's log."""
    return LOG.read_text(encoding="utf-8", errors="replace")[-3000:] if LOG.exists() else ""


def _archive(files):
    """A tar of {name: bytes, or the target of a link as text}."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode = 0o755
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                tar.addfile(entry)
            else:
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def write_image(path):
    """An image archive as `docker save` writes it, of busybox alone. It is killed: as PID 1 a sleep ignores SIGTERM."""
    layer = _archive({"bin/busybox": pathlib.Path("/bin/busybox").read_bytes(),
                      **{f"bin/{applet}": "busybox" for applet in APPLETS}, "etc/passwd": b"root:x:0:0::/:/bin/sh\n"})
    config = {"architecture": "amd64", "os": "linux",
              "config": {"Env": ["PATH=/bin"], "Cmd": ["sleep", "1000000"], "StopSignal": "SIGKILL"},
              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}}
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    path.write_bytes(_archive({"manifest.json": json.dumps(manifest).encode(),
                               "config.json": json.dumps(config).encode(), "layer.tar": layer}))


def write_json(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def configure():
    """Podman beside the installed package: storage in memory, no network, an image."""
    if not guest.inside():
        raise RuntimeError("this configures the whole machine: only in a guest")
    NO_HOOKS.mkdir(parents=True)
    write_json(pathlib.Path("/etc/podqos/conf.d/test.json"), SETTINGS)
    configuration = pathlib.Path("/etc/containers")
    (configuration / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{WORK}/images"\nrunroot = "{WORK}/run"\n', encoding="utf-8")
    (configuration / "containers.conf").write_text(
        '[containers]\nnetns = "host"\n[engine]\nevents_logger = "file"\n'
        f'infra_image = "{IMAGE}"\ninfra_command = "/bin/sleep 1000000"\n', encoding="utf-8")
    write_image(WORK / "image.tar")
    call("podman", "load", "--quiet", "--input", WORK / "image.tar")


def choose_runtime(kind):
    """Puts a runtime first among those that podqos-runtime starts."""
    write_json(pathlib.Path("/etc/podqos/conf.d/runtime.json"), {"runtimes": [shutil.which(kind)]})


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

    def pod_path(self, tier, uid):
        """The cgroup of a pod, in the words of the cgroup manager; tier as in harness.TestCase.pod_path."""
        if self.manager == "cgroupfs":
            return f"{self.tier_path(tier)}/pod{uid}"
        unit = "kubepods" if tier == "guaranteed" else f"kubepods-{tier}"
        return f"{self.tier_path(tier)}/{unit}-pod{uid.replace('-', '_')}.slice"

    def tier_path(self, tier):
        if tier == "guaranteed":
            return "/kubepods" if self.manager == "cgroupfs" else "/kubepods.slice"
        return f"/kubepods/{tier}" if self.manager == "cgroupfs" else f"/kubepods.slice/kubepods-{tier}.slice"

    def leaf(self, container):
        """The last part of a container's cgroup."""
        return f"libpod-{container}" + ("" if self.manager == "cgroupfs" else ".scope")


class Rootless:
    """Podman of an ordinary user, with storage of its own and a namespace that holds nobody else."""

    HOME, RUNTIME = WORK / "user", pathlib.Path("/run/user/1000")

    def __init__(self):
        call("useradd", "--uid", "1000", "--create-home", "--home-dir", self.HOME, "user")
        for mapping in ("/etc/subuid", "/etc/subgid"):  # they need a set-uid program, which is not there
            pathlib.Path(mapping).unlink(missing_ok=True)
        (self.RUNTIME / "tmp").mkdir(parents=True)
        call("chown", "--recursive", "1000:1000", self.RUNTIME)
        (WORK / "image.tar").chmod(0o644)
        self.flags = ["--root", self.HOME / "images", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
        self("load", "--quiet", "--input", WORK / "image.tar")

    def __call__(self, *args):
        variables = {"HOME": self.HOME, "USER": "user", "XDG_RUNTIME_DIR": self.RUNTIME, "TMPDIR": self.RUNTIME / "tmp"}
        become = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "env"]
        become += [f"{name}={value}" for name, value in variables.items()]
        return call(*become, "podman", *self.flags, *args, cwd="/").stdout.strip()


def records():
    """What is registered: empty when no pod is."""
    return sorted(f"{path.parent.name}/{path.name}" for path in STATE.glob("*/*"))


def leftovers():
    """Cgroups and units that podqos or a container has made. systemd ends a unit when it has time: it gets some."""
    deadline = time.monotonic() + 10
    while True:
        found = [str(path) for path in pathlib.Path("/sys/fs/cgroup").rglob("*")
                 if path.is_dir() and re.match(r"kubepods|podqos|libpod-[0-9a-f]{64}", path.name)]
        if pathlib.Path("/run/systemd/system").exists():
            listing = ("systemctl", "list-units", "--all", "--plain", "--no-legend")
            found += call(*listing, "kubepods*", "podqos*", "libpod-*").stdout.splitlines()
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.2)
