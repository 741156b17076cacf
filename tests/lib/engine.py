"""What tests of container engines share, in a guest: podqos's configuration, an image, and what is left at the end.

An engine is one program, with podqos registered by the files of its installed package. All this writes to /etc and /run
of the whole machine, so it refuses to run anywhere but in a guest, which is thrown away afterwards.
"""

import hashlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import tarfile

import guest
import harness
import machine as machines
import patience

WORK = pathlib.Path("/run/podqos-test")  # a tmpfs: the guest's root is an overlay, on which no other can stand
STATE = pathlib.Path("/run/podqos")
LOG = WORK / "podqos.log"
IMAGE = "localhost/busybox:1"
NODE_MEMORY = 2 << 30
# Names of cgroups, and of units; the services of podqos itself are neither's.
CONTAINER_OR_POD = re.compile(r"kubepods|podqos(?!-(nri\.service|reconcile\.))|(libpod|cri-containerd|docker)-[0-9a-f]{64}")
APPLETS = ("sh", "sleep", "cat", "dd", "true")
SETTINGS = {
    "nodeMemory": str(NODE_MEMORY),
    "qosReserved": {"memory": "100%"},
    "weightFormula": "linear",
    "releaseDelay": "0s",
    "log": {"sink": str(LOG), "level": "debug"},
}


def annotated(uid, requests, limits):
    """The flags of `docker run` and `podman run` for a container of a pod."""
    said = (("pod-uid", uid), ("requests", requests), ("limits", limits))
    return [word for key, value in said for word in ("--annotation", f"podqos.io/{key}={value}")]


BURSTABLE = annotated("web-1", "cpu=250m,memory=128Mi", "cpu=500m,memory=256Mi")
GUARANTEED = annotated("web-2", "cpu=250m,memory=256Mi", "cpu=250m,memory=256Mi")


def cells(module, *rows):
    """Classes of tests with names like AllClasses_wrapper_crun: (classes, {attribute: value}) each."""
    made = []
    for classes, members in rows:
        for cls in classes:
            name = "_".join((cls.__name__, *members.values()))
            made.append(type(name, (cls,), {**members, "__doc__": cls.__doc__, "__module__": module}))
    return made


def guests(file, tests):
    """A test case that runs these classes of a file in Debian 13 under systemd, in a guest for each of the runtimes, with
    whose names theirs end; both at once."""
    return guest.cases({kind: (guest.Guest("systemd", root="trixie"), file,
                               *(cls.__name__ for cls in tests if cls.__name__.endswith(kind)))
                        for kind in harness.KINDS}, at_a_time=2)


class Failed(AssertionError):
    """A command that a test expected to succeed."""


def call(*command, check=True, **options):
    """Runs a command; CompletedProcess with text."""
    command = list(map(str, command))
    options = {"stdin": subprocess.DEVNULL, "cwd": WORK, **options}
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
    """podqos, and the image as a file."""
    if not guest.inside():
        raise RuntimeError("this configures the whole machine: only in a guest")
    WORK.mkdir(parents=True)
    write_json(pathlib.Path("/etc/podqos/conf.d/test.json"), SETTINGS)
    write_image(WORK / "image.tar")


def choose_runtime(kind):
    """Puts a runtime first among those that podqos-runtime starts."""
    write_json(pathlib.Path("/etc/podqos/conf.d/runtime.json"), {"runtimes": [shutil.which(kind)]})


def records():
    """What is registered: empty when no pod is."""
    return sorted(f"{path.parent.name}/{path.name}" for path in STATE.glob("*/*"))


def leftovers():
    """Cgroups and units that podqos or a container has made. systemd ends a unit when it has time: it gets some."""
    for _ in patience.turns():
        found = [str(path) for path in pathlib.Path("/sys/fs/cgroup").rglob("*")
                 if path.is_dir() and CONTAINER_OR_POD.match(path.name)]
        if pathlib.Path("/run/systemd/system").exists():
            listing = ("systemctl", "list-units", "--all", "--plain", "--no-legend")
            listed = call(*listing, "kubepods*", "podqos*", "libpod-*", "cri-containerd-*").stdout.splitlines()
            found += [line for line in listed if CONTAINER_OR_POD.match(line)]
        if not found:
            break
    return found


class EngineCase(harness.CgroupCase):
    """Pods that an engine runs with one of its runtimes and one cgroup driver, and what shall hold of them."""

    kind, driver = "crun", "systemd"

    def setUp(self):
        self.machine = machines.Machine()

    # Names, as the kubelet gives them.

    def tier_path(self, tier):
        top = "/podqos/kubepods" if self.driver == "cgroupfs" else machines.slice_of("/podqos/kubepods")
        return top if tier == "guaranteed" else machines.child_cgroup(top, tier)

    def path_of(self, tier, uid):
        """The cgroup of a pod."""
        return machines.child_cgroup(self.tier_path(tier), f"pod{uid}")

    # What holds.

    def assert_tiers(self, guaranteed_memory=0, burstable_memory=0, burstable_shares=2):
        """The tiers' weights by the requests in them, and what the classes above leave of the memory."""
        burstable = NODE_MEMORY - guaranteed_memory
        self.assert_values(self.tier_path("burstable"), shares=burstable_shares, memory=burstable)
        self.assert_values(self.tier_path("besteffort"), shares=2, memory=burstable - burstable_memory)

    def known(self, missed=()):
        """{name of the pod, or its uid: what podqosctl says of it}; no container is missed but these."""
        view = json.loads(call("podqosctl", "status", "-o", "json", "--exit-zero").stdout)
        self.assertEqual([each["container"]["id"] for each in view["notManaged"]], list(missed))
        return {pod.get("name") or pod["uid"]: pod for pod in view["pods"]}

    def assert_nothing_left(self):
        self.assertEqual(records(), [])
        self.assertEqual(leftovers(), [])
