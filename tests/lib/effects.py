"""What podqosctl reconcile does to cgroups and records, in the words of its dry run: read from its system calls."""

import re
import subprocess

import harness
import machine as machines

CALLS = "mkdirat,unlinkat,write,renameat,renameat2,lsetxattr"
LINE = re.compile(r'^\d+ +(\w+)\((.*)\) = (\d+)$')
PLACE = re.compile(r'^\d+<([^>]*)>, "((?:[^"\\]|\\.)*)"')
MOVED = re.compile(r'"[^"]*", \d+<([^>]*)>, "([^"]*)"')
ATTRIBUTE = re.compile(r'^"([^"]*)", "([^"]*)"')
# What follows from making a cgroup, and what a dry run does not show.
QUIET_FILES = ("cpuset.cpus", "cpuset.mems", "cgroup.subtree_control")
COPY = "trusted.podqos.record"


class Effects:
    """The changes of one run."""

    def __init__(self, podqos, machine):
        self.state, self.mounts, self.lines = str(podqos.state), [h.mount for h in machine.hierarchies], []
        trace = podqos.directory / "effects"
        command = ["strace", "-f", "-y", "-s", "65536", "-e", f"trace={CALLS}", "-e", "signal=none", "-o", trace,
                   harness.CTL, "--config", podqos.config(), "reconcile"]
        done = subprocess.run(list(map(str, command)), capture_output=True, check=False)
        if done.returncode != 0 or done.stderr:
            raise RuntimeError(f"reconcile: exit {done.returncode}: {done.stderr.decode()}")
        self.report = done.stdout.decode().splitlines()
        for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
            if match := LINE.match(line):
                self._note(match[1], match[2])
        trace.unlink()

    def _cgroup(self, path):
        """The cgroup of a directory; None outside of all hierarchies."""
        mount = next((m for m in sorted(self.mounts, key=len, reverse=True) if path.startswith(f"{m}/")), None)
        return mount and path[len(mount):]

    def _note(self, call, arguments):
        if call == "lsetxattr":
            path, name = ATTRIBUTE.match(arguments).groups()
            if name != COPY:
                self._add(f"attr   {self._cgroup(path)} {name}")
            return
        if call.startswith("renameat"):
            if match := MOVED.search(arguments):
                self._note_file("save", f"{match[1]}/{match[2]}")
            return
        match = PLACE.match(arguments)
        if call == "write":
            self._note_write(*match.groups())
        elif call == "mkdirat":
            self._note_cgroup("mkdir", f"{match[1]}/{match[2]}")
        elif "AT_REMOVEDIR" in arguments:
            self._note_cgroup("rmdir", f"{match[1]}/{match[2]}")
        else:
            self._note_file("erase", f"{match[1]}/{match[2]}")

    def _note_cgroup(self, verb, path):
        if cgroup := self._cgroup(path):
            self._add(f"{verb}  {cgroup}")

    def _note_write(self, path, text):
        cgroup = self._cgroup(path)
        if cgroup and not cgroup.endswith(QUIET_FILES):
            self._add(f"write  {cgroup} = {text}")

    def _note_file(self, verb, path):
        name = path.removeprefix(f"{self.state}/pods/")
        if name != path and name.endswith(".json"):
            self._add(f"{verb:<7}record of pod {name.removesuffix('.json')}")

    def _add(self, line):
        """Once, where one change is made in each hierarchy."""
        if line not in self.lines:
            self.lines.append(line)


def told(plan):
    """The plan's lines about what Effects sees: without reasons, and without what is below a removed cgroup."""
    lines = (line.split("  # ")[0].removesuffix(" and all below") for line in plan)
    return [line for line in lines if not re.match(r"(save|erase)  +(index|node)|(start|set|stop) ", line)]


def without_way(lines):
    """Of cgroups that are made on the way to another one, a plan names the last."""
    made = [line.split()[1] for line in lines if line.startswith("mkdir ")]
    return [line for line in lines if not (line.startswith("mkdir ") and any(
        path.startswith(f"{line.split()[1]}/") for path in made))]


def compare(case, podqos):
    """Runs dry, runs, and compares; returns the report's lines of the run. `case` is a harness.TestCase."""
    before = podqos.state_bytes()
    plan = podqos.ctl_json("reconcile", "-n")["plan"]
    case.assertEqual(podqos.state_bytes(), before, "a dry run has changed the state")
    index = index_of(podqos)
    done = Effects(podqos, machines.Machine())
    case.assertEqual(without_way(told(plan)), without_way(done.lines))
    changed = sorted([f"save   index entry of pod {uid}" for _, uid in index_of(podqos) - index]
                     + [f"erase  index entry of pod {uid}" for _, uid in index - index_of(podqos)])
    case.assertEqual(sorted(line for line in plan if "index entry" in line), changed)
    after = podqos.state_bytes()
    case.assertEqual("save   node" in plan, any(before.get(name) != after.get(name) for name in ("node.json", "rows")))
    case.assertEqual(podqos.ctl_json("reconcile", "-n")["plan"], [])
    return done.report


def index_of(podqos):
    """The entries of the index: (name, uid)."""
    folder = podqos.state / "containers"
    entries = folder.iterdir() if folder.is_dir() else ()
    return {(entry.name, uid) for entry in entries for uid in str(entry.readlink()).split("/")}
