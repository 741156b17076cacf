"""What the kernel says: the cgroup hierarchies of this machine, read without podqos.

Nothing here shares code with the product: a test that read the kernel through podqos could not find podqos wrong.
"""

import contextlib
import ctypes
import dataclasses
import fcntl
import functools
import math
import os
import pathlib
import signal
import socket
import struct
import subprocess

import patience

UNLIMITED_V1 = 1 << 62  # cgroup v1 shows "no limit" as LONG_MAX cut to a page; nothing real is that large.

# What a cgroup has: controller, file on v1, file on v2. Times in microseconds, sizes in bytes.
VALUES = {
    "shares": ("cpu", "cpu.shares", None),
    "weight": ("cpu", None, "cpu.weight"),
    "quota": ("cpu", "cpu.cfs_quota_us", "cpu.max"),
    "period": ("cpu", "cpu.cfs_period_us", "cpu.max"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.max"),
    "usage": ("memory", "memory.usage_in_bytes", "memory.current"),
    "pids": ("pids", "pids.max", "pids.max"),
    "burst": ("cpu", "cpu.cfs_burst_us", "cpu.max.burst"),
    "idle": ("cpu", "cpu.idle", "cpu.idle"),
    "min": ("memory", None, "memory.min"),
    "low": ("memory", None, "memory.low"),
    "high": ("memory", None, "memory.high"),
    "io": ("io", None, "io.weight"),
}


@dataclasses.dataclass(frozen=True)
class Hierarchy:
    """One mounted hierarchy: version 1 or 2, its controllers ("name=systemd" included) and its mount point."""

    version: int
    controllers: tuple
    mount: str


def linear_weight(shares):
    """cpu.weight as the kubelet converts shares for tiers and pods: [2, 262144] to [1, 10000]."""
    return 10000 if shares >= 262144 else 1 + (shares - 2) * 9999 // 262142


def logarithmic_weight(shares):
    """cpu.weight as runc since 1.3.2 and crun since 1.23 convert the shares of a container."""
    if shares <= 2 or shares >= 262144:
        return 1 if shares <= 2 else 10000
    power = math.log2(shares)
    return math.ceil(10 ** ((power * power + 125 * power) / 612 - 7 / 34))


def _unescape(text):
    return text.encode().decode("unicode_escape") if "\\" in text else text


def _mounts():
    """(mount point, fs type, super options) of every mount, a later mount on the same point hiding the earlier."""
    visible = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        left, right = line.split(" - ", 1)
        fields, tail = left.split(), right.split()
        visible[_unescape(fields[4])] = (tail[0], tail[2] if len(tail) > 2 else "")
    return visible


class Machine:
    """The cgroup side of this machine. Paths are absolute below the mounts: "/podqos-test-1/kubepods"."""

    def __init__(self):
        self.hierarchies = []
        for mount, (kind, options) in _mounts().items():
            if kind == "cgroup":
                wanted = [o for o in options.split(",") if o not in ("rw", "ro", "xattr", "clone_children")]
                names = tuple(o for o in wanted if not o.startswith("release_agent"))
                self.hierarchies.append(Hierarchy(1, names, mount))
            elif kind == "cgroup2":
                names = pathlib.Path(mount, "cgroup.controllers").read_text(encoding="utf-8").split()
                self.hierarchies.append(Hierarchy(2, tuple(names), mount))

    @property
    def mode(self):
        """"v1", "hybrid" or "v2"."""
        versions = {h.version for h in self.hierarchies}
        return {frozenset({1}): "v1", frozenset({2}): "v2"}.get(frozenset(versions), "hybrid")

    @property
    def unified_with_controllers(self):
        """The mount point of a hybrid machine's v2 side that carries controllers (crun refuses that), else None."""
        if self.mode != "hybrid":
            return None
        return next((h.mount for h in self.hierarchies if h.version == 2 and h.controllers), None)

    def hierarchy(self, controller):
        """The hierarchy that carries a controller, or None."""
        return next((h for h in self.hierarchies if controller in h.controllers), None)

    def version(self, controller):
        found = self.hierarchy(controller)
        return found.version if found else None

    def directories(self, path):
        """The directories of one cgroup path in every hierarchy where it exists."""
        candidates = (pathlib.Path(h.mount + path) for h in self.hierarchies)
        return [d for d in candidates if d.is_dir()]

    def exists(self, path):
        """Is there a cgroup of this path in any hierarchy?"""
        return bool(self.directories(path))

    def file(self, path, controller, name):
        """Raw text of one file, stripped; None when the cgroup, the file or the controller is not there."""
        found = self.hierarchy(controller)
        try:
            return pathlib.Path(found.mount + path, name).read_text(encoding="utf-8").strip() if found else None
        except OSError:
            return None

    def read(self, path, what):
        """One of VALUES in the same form on v1 and v2; None where there is no limit or no such cgroup."""
        controller, name_v1, name_v2 = VALUES[what]
        name = name_v1 if self.version(controller) == 1 else name_v2
        words = (name and self.file(path, controller, name) or "max").split()
        word = words[what in ("period", "io") and len(words) == 2]  # cpu.max has both, io.weight says "default 100"
        return None if word in ("max", "-1") or int(word) >= UNLIMITED_V1 else int(word)

    def has(self, path, what):
        """Does the kernel have the file of this value, and the cgroup?"""
        controller, *names = VALUES[what]
        found = self.hierarchy(controller)
        name = found and names[found.version - 1]
        return name is not None and pathlib.Path(found.mount + path, name).exists()

    def write(self, path, what, value):
        """Writes one of VALUES, which has a file of its own, as another program may."""
        controller, *names = VALUES[what]
        found = self.hierarchy(controller)
        pathlib.Path(found.mount + path, names[found.version - 1]).write_text(str(value), encoding="ascii")

    def expected_share(self, shares):
        """What share() must give for cpu shares under the linear formula: ("shares", n) or ("weight", n)."""
        if self.version("cpu") == 1:
            return "shares", shares
        return "weight", linear_weight(shares)

    def share(self, path):
        """("shares", n) on v1, ("weight", n) on v2."""
        what = "shares" if self.version("cpu") == 1 else "weight"
        return what, self.read(path, what)

    def snapshot(self, path):
        """Every value of read() for one cgroup, as a dictionary: two snapshots compare with ==."""
        names = ("shares", "weight", "quota", "period", "memory", "pids")
        return {name: self.read(path, name) for name in names} if self.exists(path) else None

    def leftovers(self, root):
        """Every directory beneath `root` (not root itself) in every hierarchy, deepest first."""
        found = []
        for top in self.directories(root):
            for directory, _, _ in os.walk(top, topdown=False):
                if pathlib.Path(directory) != top:
                    found.append(directory)
        return found

    def processes(self, path):
        """Pids in this cgroup and below, in any hierarchy."""
        pids = set()
        for top in self.directories(path):
            for directory, _, _ in os.walk(top):
                try:
                    pids.update(map(int, pathlib.Path(directory, "cgroup.procs").read_text(encoding="utf-8").split()))
                except OSError:
                    pass
        return pids

    def enter(self, pid, path):
        """Puts a process into a cgroup of every hierarchy, as a runtime does; what is missing of the path is made."""
        for hierarchy in self.hierarchies:
            folder = pathlib.Path(hierarchy.mount)
            for part in path.strip("/").split("/"):
                parent, folder = folder, folder / part
                if hierarchy.version == 2 and not folder.exists():
                    controllers = (parent / "cgroup.controllers").read_text(encoding="ascii").split()
                    enabled = " ".join(f"+{controller}" for controller in controllers)
                    (parent / "cgroup.subtree_control").write_text(enabled, encoding="ascii")
                folder.mkdir(exist_ok=True)
                if hierarchy.version == 1 and "cpuset" in hierarchy.controllers:
                    self._fill_cpuset(parent, folder)
            (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")

    @staticmethod
    def _fill_cpuset(parent, folder):
        """A process enters a cpuset of v1 only once it has processors and memory nodes."""
        for file in ("cpuset.cpus", "cpuset.mems"):
            if not (folder / file).read_text(encoding="ascii").strip():
                (folder / file).write_text((parent / file).read_text(encoding="ascii"), encoding="ascii")

    def remove(self, path):
        """Removes a cgroup, whose last process may still be on its way out, from every hierarchy."""
        for folder in self.directories(path):
            if not patience.until(lambda folder=folder: removed(folder), length=0.002):
                os.rmdir(folder)

    def sweep(self, root):
        """Kills and removes what is beneath `root`, which must be a test's own, and `root` itself."""
        if not root.startswith(("/podqos-test-", "/podqos-demo-")):
            raise ValueError(f"{root} is not a test's own cgroup")
        patience.until(lambda: self.killed(root) and all([*map(removed, (*self.leftovers(root), *self.directories(root)))]))

    def killed(self, root):
        """Kills what is in this cgroup and below; False if anything was: it may just have forked."""
        pids = self.processes(root)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids


def removed(directory):
    """Removes the directory of a cgroup; False while it is in use."""
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


def child_cgroup(parent, name):
    """The cgroup `name` of podqos below another: a slice below a slice, as systemd and the kubelet name it."""
    if not parent.endswith(".slice"):
        return f"{parent}/{name}"
    return f"{parent}/{os.path.basename(parent).removesuffix('.slice')}-{name.replace('-', '_')}.slice"


def slice_of(path):
    """The slice that stands for a cgroupfs path: "/a-b/c" is /a_b.slice/a_b-c.slice."""
    first, *rest = path.strip("/").split("/")
    return functools.reduce(child_cgroup, rest, f"/{first.replace('-', '_')}.slice")


def cgroups_of(pid):
    """{controllers: path} of a process, as in /proc/PID/cgroup."""
    lines = pathlib.Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    return {line.split(":", 2)[1]: line.split(":", 2)[2] for line in lines}


def cgroup_of(pid):
    """Path of a process in the hierarchy that carries memory: named or the unified one."""
    paths = cgroups_of(pid)
    for names, path in paths.items():
        if "memory" in names.split(","):
            return path
    return paths.get("", "")


def container_cgroup_of(pid):
    """The cgroup that is a container's: with systemd crun puts the process into one more below the scope."""
    scope, inner, rest = cgroup_of(pid).partition(".scope/container")
    return f"{scope}.scope" if inner and not rest else scope


def oom_score_adj(pid):
    return int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="utf-8"))


def lowest_oom_score():
    """The lowest oom_score_adj that root may give here: a score is lowered only with CAP_SYS_RESOURCE (bit 24)."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return -1000 if int(effective.split()[1], 16) >> 24 & 1 else oom_score_adj("self")


def alive(pid):
    """Is the process there and not a zombie?"""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def reap_orphans():
    """Goes on in a child; this process reaps what is orphaned below it until that ends, and ends as it does.

    An engine's monitor reaps a container's process at once, and with it what a removed cgroup of v1 holds of its quota;
    whoever is PID 1 of a machine for tests may take seconds.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    pr_set_child_subreaper = 36
    if libc.prctl(pr_set_child_subreaper, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become a subreaper")
    child = os.fork()
    if child == 0:
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.kill(child, number))
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


@contextlib.contextmanager
def held_at_exit(pid):
    """Kills a process, which is held on its way out until the block ends, as a kernel that is slow to end it does."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    ptrace_seize, ptrace_cont, trace_exit, wait_for_all = 0x4206, 7, 0x40, 0x40000000
    if libc.ptrace(ptrace_seize, pid, None, trace_exit) != 0:
        raise OSError(ctypes.get_errno(), f"cannot trace process {pid}")
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, wait_for_all)
    if not os.WIFSTOPPED(status):
        raise RuntimeError(f"process {pid} ended with status {status:#x}")
    try:
        yield
    finally:
        libc.ptrace(ptrace_cont, pid, None, None)
        os.waitpid(pid, wait_for_all)


def private_mounts():
    """Puts this process into a mount namespace of its own: nobody else sees what it changes."""
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newns, ms_rec, ms_private = 0x20000, 0x4000, 0x40000
    if libc.unshare(clone_newns) != 0 or libc.mount(b"none", b"/", None, ms_rec | ms_private, None) != 0:
        raise OSError(ctypes.get_errno(), "no private mount namespace")


@contextlib.contextmanager
def private_network():
    """This thread, and what it starts, has a network of its own, which is a loopback interface."""
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newnet, set_flags, is_up = 0x40000000, 0x8914, 1
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.unshare(clone_newnet) != 0:
            raise OSError(ctypes.get_errno(), "no private network")
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, set_flags, struct.pack("16sH14x", b"lo", is_up))
        yield
    finally:
        libc.setns(before, clone_newnet)
        os.close(before)


def cover_unified():
    """Puts this process into a private mount namespace with a tmpfs over the v2 side of a hybrid machine.

    crun 1.8 refuses a hybrid machine whose v2 side has controllers. Call it before the first cgroup is made: podqos, in
    the same namespace, then sees the same hierarchies as crun. Does nothing where there is no such mount.
    """
    mount = Machine().unified_with_controllers
    if mount is None:
        return
    private_mounts()
    subprocess.run(["mount", "-n", "-t", "tmpfs", "-o", "mode=755", "tmpfs", mount], check=True)
