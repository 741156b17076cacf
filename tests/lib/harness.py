"""The ground of the integration tests: podqos configured for one test, pods, and a TestCase that cleans up.

A test file ends with `harness.main()` and holds classes like

    @harness.for_each_runtime
    class Placement(harness.TestCase):
        '''What promise of podqos this class proves.'''
        def test_pod_values(self):
            pod = harness.pod("uid-1", harness.container("app", limits={"cpu": "100m"}))
            name, pid = self.launch(pod, "app")  # an annotated bundle, started through the wrapper
            self.assert_placed(pid, self.pod_path("burstable", "uid-1"))

Per test there are: self.tmp (directory), self.root (cgroup root of its own, "/podqos-test-<pid>-<n>"), self.elsewhere
(a cgroup for containers where an engine would place them), self.machine (machine.Machine), self.podqos (Podqos),
self.kind, self.wrapper (oci.Runtime through podqos-runtime) and self.plain (the same runtime and state directory
without podqos). Afterwards it deletes the containers and then fails the test if a cgroup is left beneath the root in
any hierarchy or a record in the state directory.

Programs are taken from PODQOS_BIN (build/release/bin). Classes are made once per runtime; on a hybrid machine whose v2
side has controllers main() runs the crun classes in a second process with that mount covered (crun 1.8 refuses it).
A file exits 77 if everything in it was skipped.
"""

import collections
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

import guest
import machine as machines
import oci
import patience
import rows

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PODQOS_BIN", REPOSITORY / "build/release/bin"))
HOOK, RUNTIME, CTL = BIN / "podqos-hook", BIN / "podqos-runtime", BIN / "podqosctl"
KINDS = ("runc", "crun")
SKIPPED, EMPTY = 77, 78  # exit statuses: all tests skipped; no test in this process
GI, MI = 1 << 30, 1 << 20
CALL_TIMEOUT = patience.PATIENCE

_counter = itertools.count(1)
cover_unified = machines.cover_unified


def container(name, requests=None, limits=None, **fields):
    """A container of a manifest; requests and limits like {"cpu": "100m", "memory": "1Gi"}."""
    resources = {k: v for k, v in (("requests", requests), ("limits", limits)) if v is not None}
    return {"name": name, "image": "busybox", "resources": resources, **fields}


def pod(uid, *containers, **spec):
    """A pod manifest with that UID; `spec` adds fields such as initContainers or overhead."""
    meta = {"name": f"pod-{uid[:40]}", "namespace": "default", "uid": uid}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": list(containers), **spec}}


def unnamed(manifest):
    """A manifest with a uid, without name and namespace."""
    uid = manifest["metadata"].get("uid")
    return {**manifest, "metadata": {"uid": uid}} if uid else manifest


class Podqos:
    """podqos with a configuration, a state directory and a log below one temporary directory."""

    def __init__(self, directory, root, **settings):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.root = root
        self.state = self.directory / "state"
        self.log = self.directory / "podqos.log"
        self.settings = {
            "stateDir": str(self.state),
            "cgroupRoot": root,
            "nodeMemory": "32Gi",
            "nodeCpu": "16",
            "qosReserved": {"memory": "100%"},
            "weightFormula": "linear",
            "releaseDelay": "0s",
            "log": {"sink": str(self.log), "level": "debug"},
            **settings,
        }

    def config(self, kind="runc"):
        """Writes the configuration for one real runtime; returns its path. Call again after changing `settings`."""
        path = self.directory / f"podqos-{kind}.json"
        given = {"runtimes": [oci.runtime_path(kind)], **self.settings}
        path.write_text(json.dumps({k: v for k, v in given.items() if v is not None}), encoding="utf-8")
        return path

    def prefix(self, kind):
        """argv of the wrapper in place of the runtime."""
        return [str(RUNTIME), "--config", str(self.config(kind))]

    def ctl(self, *args, check=True, kind="runc", stdin=None):
        """podqosctl; returns CompletedProcess with text output."""
        config = [] if args[0] in ("annotate", "version") else ["--config", self.config(kind)]
        if args == ("status",) or args[:2] == ("status", "-o"):
            args = (*args, "--exit-zero")  # what a test asks for is what it looks at
        return oci.call([CTL, *config, *args], check, stdin)

    def ctl_json(self, *args, **options):
        """podqosctl ... -o json, parsed."""
        return json.loads(self.ctl(*args, "-o", "json", **options).stdout)

    def hook(self, stage, stdin, check=True, kind="runc", cwd=None):
        """podqos-hook with `stdin` (text, bytes or an object that becomes JSON)."""
        if not isinstance(stdin, (str, bytes)):
            stdin = json.dumps(stdin)
        return oci.call([HOOK, "--config", self.config(kind), stage], check, stdin, cwd)

    def hook_command(self, kind="runc"):
        """The args of an OCI hook entry, without the stage."""
        return ["podqos-hook", "--config", str(self.config(kind))]

    def annotations(self, manifest, name):
        """What `podqosctl annotate` gives for one container of a pod, which output knows by its uid alone."""
        file = self.directory / "manifest.json"
        file.write_text(json.dumps(unnamed(manifest)), encoding="utf-8")
        done = self.ctl("annotate", "-f", file, "--container", name, "-o", "annotations")
        return json.loads(done.stdout)

    def records(self):
        """Names of the pods and index entries in the state directory: empty when nothing is registered."""
        names = []
        for folder in ("pods", "containers"):
            directory = self.state / folder
            names += sorted(f"{folder}/{f.name}" for f in directory.iterdir()) if directory.is_dir() else []
        return names

    def state_bytes(self):
        """{path: content} of the state directory, lock and events excepted: two of them compare with ==. Of the rows
        those that pods have: where they stand, and which are free, tells nothing."""
        left_out = {"lock", "events", "events.1"}
        files = sorted(p for p in self.state.rglob("*") if (p.is_symlink() or p.is_file()) and p.name not in left_out)
        found = {str(p.relative_to(self.state)): os.readlink(p).encode() if p.is_symlink() else p.read_bytes()
                 for p in files}
        if "rows" in found:
            found["rows"] = b"".join(sorted(rows.pieces(found["rows"])))
        return found

    def events(self):
        """The journal of events, read without podqosctl."""
        files = [self.state / name for name in ("events.1", "events")]
        return [json.loads(line) for file in files if file.exists() for line in file.read_text("utf-8").splitlines()]

    def log_text(self):
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""


class CgroupCase(unittest.TestCase):
    """What self.machine shall say of a cgroup."""

    maxDiff = 4000

    def assert_values(self, path, **wanted):
        """shares (compared as weight on v2), quota, period, memory, pids of a cgroup; None is unlimited."""
        self.assertTrue(self.machine.exists(path), f"no cgroup {path}")
        if "shares" in wanted:
            expected = self.machine.expected_share(wanted.pop("shares"))
            self.assertEqual(self.machine.share(path), expected, f"cpu share of {path}")
        for what, value in wanted.items():
            self.assertEqual(self.machine.read(path, what), value, f"{what} of {path}")

    def assert_container_share(self, path, shares):
        """A container's cpu share, which the runtime converts: either weight formula on v2."""
        if self.machine.version("cpu") == 1:
            self.assertEqual(self.machine.read(path, "shares"), shares)
            return
        accepted = (machines.linear_weight(shares), machines.logarithmic_weight(shares))
        self.assertIn(self.machine.read(path, "weight"), accepted)

    def assert_unified(self, path):
        """What a kubelet sets on v2 without being asked: no swap, and the container ends as a whole."""
        if self.machine.version("memory") == 2:
            found = {file: self.machine.file(path, "memory", file) for file in ("memory.swap.max", "memory.oom.group")}
            self.assertEqual(found, {"memory.swap.max": "0", "memory.oom.group": "1"}, path)

    def expect_frozen(self, path, frozen):
        """This cgroup is really frozen, by whichever above it, or not: the kernel takes a moment, and crun does not wait."""
        patience.expect(lambda: self.is_frozen(path) == frozen, f"{path}: frozen {frozen}")

    def is_frozen(self, path):
        if self.machine.hierarchy("freezer"):
            return self.machine.file(path, "freezer", "freezer.state") == "FROZEN"
        return "frozen 1" in self.machine.file(path, "memory", "cgroup.events").splitlines()


class TestCase(CgroupCase):
    """A test with a cgroup root, a podqos and a runtime of its own; see the head of this file."""

    kind = "runc"
    settings = {}  # laid over the configuration of Podqos

    def setUp(self):
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="podqos-test-"))
        self.root = f"/podqos-test-{os.getpid()}-{next(_counter)}"
        self.elsewhere = f"{self.root}-engine"
        self.machine = machines.Machine()
        self.podqos = Podqos(self.tmp / "podqos", self.root, **self.settings)
        self.wrapper = oci.Runtime(self.kind, self.tmp / "runtime", self.podqos.prefix(self.kind))
        self.plain = oci.Runtime(self.kind, self.tmp / "runtime")
        self._names = collections.Counter()
        self.addCleanup(self._clean_up)

    def _clean_up(self):
        """A clean-up, not tearDown: it must run also when the setUp of a test class fails half-way."""
        self.plain.bundles.update(self.wrapper.bundles)
        self.plain.delete_all()
        self._wait_for_memory()
        left = self.machine.leftovers(self.root)
        records = self.podqos.records()
        self.machine.sweep(self.root)
        self.machine.sweep(self.elsewhere)
        log = self.podqos.log_text()[-3000:]
        shutil.rmtree(self.tmp, ignore_errors=True)
        if self._outcome_failed():
            sys.stderr.write(f"--- log of podqos in {self.id()}\n{log}\n")
            return
        self.assertEqual(left, [], f"cgroups left beneath {self.root}\n{log}")
        self.assertEqual(records, [], f"records left in the state directory\n{log}")

    def _wait_for_memory(self):
        """The cgroup of a pod that has ended stays for three seconds where the kernel has not added up its memory yet:
        the next event, or reconcile, removes it then."""
        for _ in patience.turns():
            pods = (self.podqos.state / name for name in self.podqos.records() if name.startswith("pods/"))
            if not any(b'"releasedAt"' in pod.read_bytes() for pod in pods):
                return
            self.podqos.ctl("reconcile", check=False)

    def _outcome_failed(self):
        outcome = getattr(self, "_outcome", None)
        if outcome is None:
            return False
        result = outcome.result
        return any(getattr(test, "test_case", test) is self for test, _ in result.failures + result.errors)

    def pod_path(self, tier, uid):
        """Cgroup of a pod: tier is "guaranteed", "burstable" or "besteffort"."""
        middle = "" if tier == "guaranteed" else f"/{tier}"
        return f"{self.root}/kubepods{middle}/pod{uid}"

    def tier_path(self, tier):
        return f"{self.root}/kubepods/{tier}"

    def bundle(self, manifest=None, name=None, args=("sleep", "1000"), label=None):
        """A saved bundle; with a manifest, annotated for its container `name`. `label` names the directory."""
        label = label or name or "plain"
        self._names[label] += 1
        made = oci.Bundle(self.tmp / "bundles" / f"{label}-{self._names[label]}", self.kind, args)
        if manifest is not None:
            made.annotations.update(self.podqos.annotations(manifest, name))
        return made.save()

    def register_hooks(self, bundle, stages=("createRuntime", "poststop")):
        """Registers podqos's hooks in the bundle, as an engine does; saves it."""
        for stage in stages:
            bundle.add_hook(stage, HOOK, [*self.podqos.hook_command(self.kind), stage])
        return bundle.save()

    def container_id(self, label):
        """An id that is unique on this machine and names the test's root."""
        self._names["id " + label] += 1
        return f"{self.root[1:]}-{label}-{self._names['id ' + label]}"

    def launch(self, manifest, name, runtime=None, args=("sleep", "1000")):
        """Creates and starts one container of a pod through the wrapper; returns (id, pid of its init)."""
        identifier = self.container_id(name)
        pid = (runtime or self.wrapper).launch(identifier, self.bundle(manifest, name, args))
        return identifier, pid

    def assert_placed(self, pid, pod_path):
        """The process lives in a child of `pod_path`, in every hierarchy that runtimes use; returns the path."""
        path = machines.cgroup_of(pid)
        self.assertEqual(os.path.dirname(path), pod_path)
        for controllers, where in machines.cgroups_of(pid).items():
            if controllers:
                self.assertEqual(where, path, f"hierarchy {controllers}")
        return path

    def assert_oom(self, pid, score):
        """oom_score_adj of a process; where this machine lets nobody lower a score, the lowest that it allows."""
        score = max(score, machines.lowest_oom_score())
        self.assertEqual(machines.oom_score_adj(pid), score, f"oom_score_adj of process {pid}")

    def assert_nothing_left(self):
        """No cgroup beneath the root and no record: what holds when the last pod has gone."""
        self.assertEqual(self.machine.leftovers(self.root), [])
        self.assertEqual(self.podqos.records(), [])


def active_kinds():
    """The runtimes that this process tests."""
    named = os.environ.get("PODQOS_TEST_KINDS")
    return tuple(named.split(",")) if named else KINDS


def for_each_runtime(cls):
    """Class decorator: one class per active runtime (Name_runc, Name_crun) in place of the given one."""
    module = sys.modules[cls.__module__]
    for kind in active_kinds():
        members = {"kind": kind, "__doc__": cls.__doc__, "__module__": cls.__module__}
        made = type(f"{cls.__name__}_{kind}", (cls,), members)
        if oci.runtime_path(kind) is None:
            made = unittest.skip(f"{kind} is not installed")(made)
        setattr(module, made.__name__, made)


def runc_only(cls):
    """Class decorator: a class that needs no second runtime runs with runc alone."""
    return cls if "runc" in active_kinds() else None


def main(kinds=KINDS, here=None, in_guest=None):
    """Runs the tests of the calling file; see the head of this file for processes and exit status.

    A file that runs itself in guests says which classes are for here, and which are for there: all, if it does not.
    """
    if os.geteuid() != 0:
        print("skipped: only root can make cgroups and containers")
        sys.exit(SKIPPED)
    missing = [str(p) for p in (HOOK, RUNTIME, CTL) if not p.exists()]
    if missing:
        sys.exit(f"programs are missing: {', '.join(missing)} (PODQOS_BIN names their directory)")
    split = "crun" in kinds and machines.Machine().unified_with_controllers is not None
    if split and "PODQOS_TEST_KINDS" not in os.environ:
        sys.exit(_run_each_alone(kinds))
    if active_kinds() == ("crun",):
        cover_unified()
    module = sys.modules["__main__"]
    if guest.inside() and in_guest or not guest.inside() and here:
        module = types.SimpleNamespace(**{cls.__name__: cls for cls in (in_guest if guest.inside() else here)})
    done = unittest.main(module=module, verbosity=2, exit=False).result
    if not done.wasSuccessful():
        sys.exit(1)
    if done.testsRun == 0:
        sys.exit(EMPTY)
    sys.exit(SKIPPED if len(done.skipped) == done.testsRun else 0)


def _run_each_alone(kinds):
    flags = [a for a in sys.argv[1:] if a.startswith("-")]
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    statuses = []
    for kind in kinds:
        # Classes of crun end in "_crun", every other class is in the process of runc.
        named = [n for n in names if n.split(".")[0].endswith("_crun") == (kind == "crun")]
        if named or not names:
            print(f"--- {kind}", flush=True)
            statuses.append(subprocess.run([sys.executable, sys.argv[0], *flags, *named], check=False,
                                           env={**os.environ, "PODQOS_TEST_KINDS": kind}).returncode)
    ran = [s for s in statuses if s != EMPTY]
    if any(s not in (0, SKIPPED) for s in ran):
        return 1
    return SKIPPED if ran and all(s == SKIPPED for s in ran) else 0
