"""The worst values that a pod's author or its engine can give harm that pod alone.

In each round a container has one such value, in a pod of its own, under real runc. It starts where it starts without
podqos; a pod beside it has the values that it always has, for as many system calls; and nothing of it is left.
PODQOS_HOSTILE_ROUNDS (1) is how often it comes: the state is afterwards as it was before.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
from harness import GI, MI  # noqa: E402

ROUNDS = int(os.environ.get("PODQOS_HOSTILE_ROUNDS", "1"))
INT64, UINT64 = (1 << 63) - 1, (1 << 64) - 1
ENFORCED = 64 * MI  # the memory limit that the engine gives the hostile container, where that is not the value
CRI = "io.kubernetes.cri."
GOOD_UID, GOOD_ID = "good-1", "a" * 64
GOOD_MEMORY = 32 * MI
# The journal has no other event of a container that comes and goes.
EVENTS = {"placed", "failed", "refused", "released", "oom-killed"}
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


# change(config, annotations, resources); words of the one line that says why the container is not managed; whether it
# starts, None: as it does without podqos.
Case = collections.namedtuple("Case", "label change words starts", defaults=((), None))


class Raw(str):
    """JSON that json.dumps() would not write."""


def dumped(config):
    """The text of a config.json; lone surrogates stand for bytes that are no UTF-8."""
    kept = []

    def keep(value):
        if isinstance(value, Raw):
            kept.append(value)
            return f"@{len(kept) - 1}@"
        if isinstance(value, dict):
            return {key: keep(each) for key, each in value.items()}
        return [keep(each) for each in value] if isinstance(value, list) else value

    text = json.dumps(keep(config), ensure_ascii=False)
    return re.sub(r'"@(\d+)@"', lambda found: kept[int(found[1])], text).encode("utf-8", "surrogateescape")


@harness.runc_only
class HostileCase(harness.TestCase):
    """A hostile container of containerd's, a good pod of Podman's that comes and goes beside it, and one that lives on."""

    def setUp(self):
        super().setUp()
        self.podqos.config(self.kind)
        self.good = self.bundle()
        self.good.annotations.update({
            "podqos.io/pod-uid": GOOD_UID, "podqos.io/requests": f"cpu=100m,memory={GOOD_MEMORY}",
            "podqos.io/limits": "cpu=200m,memory=64Mi"})
        self.good.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/libpod-{GOOD_ID}"
        self.good.save()
        lasting = harness.pod("lasting-1", harness.container("app", requests={"cpu": "100m", "memory": str(GOOD_MEMORY)}))
        self.lasting, _ = self.launch(lasting, "app")

    # The hostile pod.

    def hostile(self, change):
        """Its bundle, as containerd writes one for a container of a pod; change(config, annotations, resources)."""
        made = self.bundle()
        for key, text in (("container-type", "container"), ("sandbox-id", "hostile-sandbox"), ("sandbox-uid", "hostile-1"),
                          ("sandbox-name", "hostile"), ("sandbox-namespace", "default"), ("container-name", "app")):
            made.annotations[CRI + key] = text
        made.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/hostile"
        made.config["linux"]["resources"] = {"devices": [{"allow": False, "access": "rwm"}], "cpu": {"shares": 102},
                                             "memory": {"limit": ENFORCED}}
        change(made.config, made.annotations, made.resources)
        made.file.write_bytes(dumped(made.config))
        return made

    def starts_without_podqos(self, change):
        name = self.container_id("plain")
        done = self.plain.create(name, self.hostile(change), check=False)
        self.plain.delete(name, check=False)
        return done.returncode == 0

    def create(self, name, change, starts=True, words=()):
        """Through the wrapper; what is not managed is said in one line."""
        made = self.hostile(change)
        done = self.wrapper.create(name, made, check=False)
        self.assertEqual(done.returncode == 0, starts, done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.startswith("podqos")]
        self.assertEqual(len(lines), 1 if words else 0, done.stderr)
        for word in (*words, name, str(made.path)) if words else ():
            self.assertIn(word, lines[0])
        self.assertNotRegex("".join(lines), CONTROL)

    # The good one.

    def counted(self, stdin, *words):
        """How many system calls the hook makes."""
        file = self.tmp / "calls"
        done = subprocess.run(
            ["strace", "-f", "-c", "-U", "calls,name", "-o", file, harness.HOOK, "--config",
             self.podqos.directory / "podqos-runc.json", *words], input=stdin, cwd=self.good.path, capture_output=True,
            check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        calls = re.findall(r"^ *(\d+) (\w+)$", file.read_text(encoding="ascii"), re.MULTILINE)
        # Whether the heap grows depends on what was allocated before.
        return sum(int(count) for count, name in calls if name not in ("brk", "total")), done.stdout

    def good_round(self):
        """(what the good pod has, what it costs at each of its events); it is gone afterwards."""
        placed, text = self.counted(self.good.read(), "precreate")
        config = json.loads(text)
        path = config["linux"]["cgroupsPath"]
        process = subprocess.Popen(["/bin/sleep", "1000"], stdin=subprocess.DEVNULL)
        try:
            self.machine.enter(process.pid, path)
            state = {"ociVersion": "1.0.2", "id": GOOD_ID, "status": "creating", "pid": process.pid,
                     "bundle": str(self.good.path), "annotations": config["annotations"]}
            started, _ = self.counted(json.dumps(state).encode(), "createRuntime")
            besteffort = self.machine.read(self.tier_path("besteffort"), "memory")
            self.assertGreaterEqual(besteffort, 32 * GI - 2 * GOOD_MEMORY - ENFORCED, "of what the engine does not back")
            values = {"path": path, "resources": config["linux"]["resources"], "score": machines.oom_score_adj(process.pid),
                      "pod": self.machine.snapshot(os.path.dirname(path)), "container": self.machine.snapshot(path)}
        finally:
            process.kill()
            process.wait()
        self.machine.remove(path)
        ended, _ = self.counted(json.dumps({**state, "status": "stopped", "pid": 0}).encode(), "poststop")
        return values, (placed, started, ended)

    def assert_as_ever(self, usual):
        values, costs = self.good_round()
        self.assertEqual(values, usual[0])
        for event, cost, expected in zip(("precreate", "createRuntime", "poststop"), costs, usual[1]):
            self.assertLessEqual(cost, expected * 1.1, f"system calls of {event}")

    def check(self, usual, case):
        starts = self.starts_without_podqos(case.change) if case.starts is None else case.starts
        for number in range(ROUNDS):
            name = self.container_id("hostile")
            try:
                self.create(name, case.change, starts, case.words)
                if number == ROUNDS - 1:
                    if not starts:
                        self.good_round()  # whose events remove what was placed and never created
                    self.assert_as_ever(usual)
            finally:
                self.wrapper.delete(name, check=False)
        self._wait_for_memory()

    def check_all(self, cases):
        usual = self.usual()
        alone = self.kept()
        for case in cases:
            with self.subTest(case.label):
                self.check(usual, case)
                self.assertEqual(self.kept(), alone)
        found = self.podqos.events()
        self.assertLessEqual({event["event"] for event in found}, EVENTS)
        for event in found:
            self.assertNotRegex(event["text"], CONTROL)
        self.wrapper.delete(self.lasting)
        self.assert_nothing_left()

    def kept(self):
        """The state, but for where the kernel's log has been read up to, and all cgroups."""
        state = self.podqos.state_bytes()
        state["node.json"] = re.sub(rb'"oomLook":{[^}]*},', b"", state["node.json"])
        return state, sorted(self.machine.leftovers(self.root))

    def usual(self):
        """The good pod's beside a harmless one."""
        self.create("harmless", lambda config, annotations, resources: None)
        usual = self.good_round()
        self.wrapper.delete("harmless")
        return usual


def annotated(key, text, *words, starts=True):
    """An annotation, which no runtime reads."""
    return Case(f"{key} = {text[:60]!r}", lambda config, annotations, resources: annotations.update({key: text}),
                words, starts)


def resource(path, value, *words, starts=None):
    """A value of linux.resources; the line of one that podqos cannot read names its member."""
    def change(config, annotations, resources):
        *parents, last = path.split(".")
        for name in parents:
            resources = resources.setdefault(name, {})
        resources[last] = value
    return Case(f"{path} = {str(value)[:60]}", change, words, starts)


def refused(key, *texts):
    """What podqos refuses of the author's, and says so with pod and annotation."""
    return [annotated(key, text, "pod hostile-1: ", f"annotation {key}") for text in texts]


POD = "podqos.io/pod"
AMOUNTS = ("-1", "1e400", "", "nan", "9" * 5000, "1\0", "\udcff")
REFUSED = [
    *(case for amount in AMOUNTS for case in refused("podqos.io/requests", f"cpu={amount}")),
    *refused("podqos.io/requests", "memory=0.5", "cpu=1,cpu=2", "=", "ephemeral-storage=1", "x" * 70000),
    *refused("podqos.io/limits", "memory=-1", "cpu=0x10"), *refused("podqos.io/memory-limit", *AMOUNTS[:2]),
    *refused("podqos.io/pod-uid", "", "..", "../../x", "x" * 300, "a\nb", "%s%n", "\udcff"),
    annotated("podqos.io/pod-uid", GOOD_UID, 'contradicts the engine\'s pod uid "hostile-1"'),
    *refused("podqos.io/container", "", "..", "x" * 300, "a\nb"),
    *refused("podqos.io/requests.../x", "cpu=1"), *refused("podqos.io/edits", "[]"),
    *refused("podqos.io/qos-class", "guaranteed", ""), *refused("podqos.io/cpu-burst", "101%", "-1", "9" * 400),
    *refused("podqos.io/cpu-idle", "TRUE"), *refused("podqos.io/ignore", "maybe"),
    *refused(POD, "", "{}", "[" * 100_000, '{"containers": [{"name": "a\\u0000"}]}',
             '{"containers": [{"name": "app"}, {"name": "app"}]}',
             '{"containers": [{"name": "app"}], "overhead": {"cpu": "-1"}}',
             '{"containers": [{"name": "app", "resources": {"limits": {"cpu": 1e400}}}]}',
             '{"containers": [{"name": "app", "resources": {"limits": {"cpu": "1"}, "limits": {"cpu": "2"}}}]}'),
]
UNFIT = "pod hostile-1: requests memory "
CLAIMED = [
    *(annotated("podqos.io/requests", f"cpu={amount}") for amount in ("0", "1n", str(INT64), "1\n")),
    annotated("podqos.io/requests", "memory=1"),
    *(annotated("podqos.io/requests", f"memory={amount}", UNFIT, starts=False) for amount in (UINT64, "1Ti")),
    annotated("podqos.io/limits", "cpu=1n"), annotated("podqos.io/limits", "memory=0"),
    annotated("podqos.io/limits", f"cpu={INT64}", "pod hostile-1: ", "exceeds the kernel's maximum"),
    annotated("podqos.io/limits", f"memory={UINT64}", "pod hostile-1: ", "exceeds the kernel's maximum"),
    annotated("podqos.io/limits", "memory=4Ki", starts=False),
    annotated("podqos.io/requests.nosuch", "cpu=16,memory=20Gi"),
    annotated("podqos.io/qos-class", "Guaranteed"), annotated("podqos.io/qos-class", "BestEffort"),
    annotated("podqos.io/cpu-burst", "100%"), annotated("podqos.io/cpu-idle", "true"), annotated("podqos.io/ignore", "true"),
    annotated(POD, json.dumps({"containers": [{"name": f"c{number}"} for number in range(300)]})),
    annotated(POD, '{"containers": [{"name": "app", "resources": {"limits": {"memory": "20Gi", "cpu": "16"}}}]}'),
    annotated(POD, '{"containers": [{"name": "app", "resources": {"limits": {"memory": "4Ki"}}}]}', starts=False),
    annotated(POD, '{"containers": [{"name": "app"}], "overhead": {"cpu": "16", "memory": "20Gi"}}'),
    annotated(POD, '{"containers": [{"name": "app"}], "priority": 2000000000, "priorityClassName": "system-node-critical"}'),
    Case("claims of a sandbox", lambda config, annotations, resources: annotations.update(
        {CRI + "container-type": "sandbox", "podqos.io/requests": "cpu=16,memory=20Gi"})),
    Case("sums of a sandbox", lambda config, annotations, resources: annotations.update(
        {CRI + "container-type": "sandbox", CRI + "sandbox-cpu-shares": str(INT64), CRI + "sandbox-cpu-quota": "-1",
         CRI + "sandbox-cpu-period": "0", CRI + "sandbox-memory": str(INT64)})),
]
NAMES = [
    *(annotated(CRI + key, text, CRI + key) for key in ("sandbox-name", "sandbox-namespace", "container-name", "sandbox-id")
      for text in ("../../x", "\0", "\udcff")),
    *(annotated(CRI + "sandbox-uid", text, CRI + "sandbox-uid") for text in ("..", "a\nb", "\x1b[31m", "x" * 300)),
]
NOT_READ = "expected a"  # "an integer", "a non-negative integer", "an object", "a string"
RESOURCES = [
    *(resource("memory.limit", value) for value in (0, -1, -2, 1, 4096, INT64, None)), resource("memory.limit", UINT64),
    *(resource("memory.limit", value, "memory.limit", NOT_READ) for value in (1.5, Raw("1e3"), "1")),
    *(resource("memory.reservation", value) for value in (-2, 1, INT64)), resource("memory", {"reservation": 20 * GI}),
    *(resource("memory.swap", value) for value in (1, -1, INT64)), resource("memory.swappiness", 101),
    resource("memory.disableOOMKiller", True), resource("memory", [], "memory", NOT_READ),
    *(resource("cpu.shares", value) for value in (0, 1, 2, 262145, UINT64)), resource("cpu.shares", -1, "shares", NOT_READ),
    *(resource("cpu.quota", value) for value in (-2, 1, 1000)),
    resource("cpu.quota", INT64, "pod hostile-1: ", "exceeds the kernel's maximum"),
    *(resource("cpu.period", value) for value in (0, 1, 1_000_001, UINT64)),
    *(resource("cpu", {"quota": quota, "period": period})
      for quota, period in ((33_333, 99_999), (1_000_001, 1_000_000), (12_345, 67_891))),
    *(resource("cpu", {"quota": 10_000, "period": 100_000, "burst": burst}) for burst in (20_000, UINT64)),
    *(resource("cpu.idle", value) for value in (1, 2, -5)),
    *(resource("cpu.cpus", value) for value in ("9999", "a", "0-99999999999")), resource("cpu.mems", "9"),
    *(resource("pids.limit", value) for value in (0, 1, -1, -2, INT64)),
    *(resource("hugepageLimits", [{"pageSize": size, "limit": limit}])
      for size, limit in (("2MB", 0), ("3MB", 0), ("../../x", 0), ("2MB", UINT64))),
    *(resource("blockIO.weight", value) for value in (1, 10, 1001, 65535)), resource("rdma", {"none": {"hcaHandles": 1}}),
    resource("blockIO.throttleReadBpsDevice", [{"major": 999, "minor": 0, "rate": 1}]),
    resource("devices", None), resource("devices", []), resource("devices", [{"allow": False, "type": "z", "access": "q"}]),
    *(resource("unified", {file: value}) for file, value in (
        ("memory.high", "0"), ("memory.max", "4096"), ("memory.min", "max"), ("../x", "1"),
        ("cgroup.subtree_control", "-memory"), ("cgroup.freeze", "0"), ("cgroup.type", "threaded"), ("cpu.max", "1 1"),
        ("cpu.weight", "10001"), ("cpu.max.burst", "999999999"), ("pids.max", "1"), ("a\nb", "1\n2"), ("", ""))),
]


def of_config(label, change, *words, starts=None):
    return Case(label, lambda config, annotations, resources: change(config), words, starts)


def path_of(path, *words, starts=None):
    return of_config(f"cgroupsPath = {path[:60]!r}", lambda config: config["linux"].update(cgroupsPath=path), *words,
                     starts=starts)


REST = [
    *(of_config(f"oomScoreAdj = {score}", lambda config, score=score: config["process"].update(oomScoreAdj=score))
      for score in (-1001, 1001, 1000, INT64)),
    of_config("oomScoreAdj = 1.5", lambda config: config["process"].update(oomScoreAdj=1.5), "oomScoreAdj", NOT_READ),
    path_of("/" + "x" * 256, starts=True),
    path_of("a\nb", "cgroupsPath", "control bytes"), path_of("a\0b", "cgroupsPath", "control bytes"),
    path_of("/" + "x/" * 3000, "cgroupsPath", "too long"), path_of(Raw("7"), "cgroupsPath", NOT_READ),
    of_config("resources twice", lambda config: config["linux"].update(resources=Raw(
        '{"memory": {"limit": 67108864}}, "resources": {"memory": {"limit": 4096}}'))),
    of_config("no namespaces", lambda config: config["linux"].update(namespaces=[])),
    of_config("hostname", lambda config: config.update(hostname="a\nb")),
    of_config("a hook that fails", lambda config: config.update(hooks={"createRuntime": [{"path": "/bin/false"}]})),
    of_config("a program that is not there", lambda config: config["process"].update(args=["/none"])),
    of_config("forged edits", lambda config: config.update({"podqos.io/edits": [
        {"at": "/linux/cgroupsPath", "was": "/", "now": config["linux"]["cgroupsPath"]}, {"at": "/../..", "x": 1}]})),
    of_config("100,001 annotations", lambda config: config["annotations"].update(
        {f"x{number}": "" for number in range(100_001)}), "more than 100000 values"),
]


class OfTheAuthor(HostileCase):
    """Annotations, and names."""

    def test_refused(self):
        self.check_all(REFUSED)

    def test_claims(self):
        self.check_all(CLAIMED)

    def test_names(self):
        self.check_all(NAMES)


class OfTheEngine(HostileCase):
    """What it makes of limits, flags and names."""

    def test_resources(self):
        self.check_all(RESOURCES)

    def test_rest(self):
        self.check_all(REST)


if __name__ == "__main__":
    harness.main(kinds=("runc",))
