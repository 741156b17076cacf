"""Random events of containers under real runtimes, and an oracle that knows what must be: what soak and churn share.

PODQOS_SOAK_SEED replays a run: it is printed at the start and in a failure. PODQOS_SOAK_LOG names a file that keeps
podqos's log of a failed run. PODQOS_SOAK_DRIVER is cgroupfs or systemd; the latter runs in a guest only.
"""

import os
import random
import shutil
import sys

import guest
import harness
import machine as machines
import oci
import oracle
import patience
import units

SEED = int(os.environ.get("PODQOS_SOAK_SEED", random.SystemRandom().randrange(1 << 32)))
ON_SYSTEMD = os.environ.get("PODQOS_SOAK_DRIVER") == "systemd"
KEPT_LOG = os.environ.get("PODQOS_SOAK_LOG")
HISTORY = 25  # events shown when one fails
LINES = 12  # of the log, shown with them


class Runtime(oci.Runtime):
    """Asks the real runtime for its list once after each call that may change it; who lives, /proc tells at any time."""

    listed = None

    def call(self, *args, **options):
        self.listed = None
        return super().call(*args, **options)

    def list(self):
        if self.listed is None:
            self.listed = oci.Runtime(self.kind, self.root).list()
        return self.listed


class Instance:
    """One container that a runtime was asked to create, from a bundle of its own."""

    def __init__(self, uid, manifest, name, runtime, identifier, bundle, stubbed=False):
        self.uid, self.manifest, self.name = uid, manifest, name
        self.runtime, self.id, self.bundle, self.stubbed = runtime, identifier, bundle, stubbed
        self.shaped_by = None  # the pod whose limits its config.json has by now

    @property
    def key(self):
        return self.runtime.kind, self.id

    def state(self):
        return {"ociVersion": "1.0.2", "id": self.id, "status": "stopped", "pid": 0, "bundle": str(self.bundle.path),
                "annotations": self.bundle.config["annotations"]}

    def fits(self):
        """A pod that begins with it is described by its own manifest."""
        return self.shaped_by == self.manifest["spec"]

    def __str__(self):
        return f"{self.uid}/{self.name} as {self.runtime.kind} {self.id}{' (stub)' if self.stubbed else ''}"


class SoakCase(harness.TestCase):
    """Containers of both runtimes through the wrapper, and the truth about them."""

    node_memory = 64 * harness.GI
    partial = unbacked = frozenset()  # uids, see oracle.Truth

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        kubepods = f"{self.root}/kubepods"
        self.truth = oracle.Truth(machines.slice_of(kubepods) if ON_SYSTEMD else kubepods, self.node_memory,
                                  self.unbacked, self.features())
        self.units = f"*{self.root[1:].replace('-', '?')}"  # how the names of our slices and scopes begin
        flags = ["--systemd-cgroup"] if ON_SYSTEMD else []
        self.runtimes = {kind: Runtime(kind, self.tmp / f"runtime-{kind}", self.podqos.prefix(kind) + flags)
                         for kind in harness.KINDS if oci.runtime_path(kind)}
        self.addCleanup(lambda: [runtime.delete_all() for runtime in self.runtimes.values()])
        self.instances = {}  # (kind, id) -> Instance
        self.history = []

    def features(self):
        """What the settings ask for beside what Kubernetes does by default."""
        return oracle.Features()

    # What is there.

    def living(self):
        """[(instance, pid)] of every container whose runtime lists it and whose process lives."""
        found = []
        for kind, runtime in self.runtimes.items():
            for entry in runtime.list():
                if entry["status"] != "stopped" and machines.alive(entry["pid"]):
                    found.append((self.instances[kind, entry["id"]], entry["pid"]))
        return found

    def observe(self):
        living = self.living()
        self.truth.observe([(i.uid, i.name, i.manifest["spec"], i.uid in self.partial) for i, _ in living])
        return living

    def check(self):
        for _ in patience.turns() if ON_SYSTEMD else (None,):
            if not (wrong := self.differences()):
                return
        if wrong:
            inside = self.machine.processes(self.truth.kubepods)
            wrong += [f"process {pid} in {machines.cgroups_of(pid)}: {oracle.describe(pid)}" for pid in sorted(inside)]
            self.fail("\n".join(wrong) + self.report())

    def differences(self):
        """Between the machine and the truth: one sentence each."""
        living = self.observe()
        wrong = oracle.differences(self.machine, self.truth)
        for instance, pid in living:
            found, wanted = machines.container_cgroup_of(pid), self.truth.path(instance.uid)
            if os.path.dirname(found) != wanted:
                wrong.append(f"{instance} is in {found}, should be below {wanted}")
            wrong += self.container_differences(instance, found)
        if ON_SYSTEMD:
            wrong += oracle.unit_differences(self.truth, self.units, [pid for _, pid in living])
        return wrong

    def container_differences(self, _instance, _path):
        return []

    def report(self):
        if KEPT_LOG and self.podqos.log.exists():
            shutil.copy(self.podqos.log, KEPT_LOG)
        last = "\n".join(self.history[-HISTORY:])
        lines = self.podqos.log.read_text(encoding="utf-8").splitlines() if self.podqos.log.exists() else []
        told = "\n".join([line for line in lines if "] debug: " not in line][-LINES:])
        return (f"\nPODQOS_SOAK_SEED={SEED}, the last of {len(self.history)} events:\n{last}\n"
                f"the last lines of podqos's log:\n{told}\n")

    def assert_no_unit_left(self):
        """The slice above kubepods is the administrator's: podqos leaves it."""
        units.call("stop", os.path.basename(machines.slice_of(self.root)))
        for _ in patience.turns():
            if not (left := units.loaded(f"{self.units}*") + units.kept(self.units)):
                break
        self.assertEqual(left + units.cgroups(self.units), [])

    def _clean_up(self):
        super()._clean_up()
        if ON_SYSTEMD:
            units.clear(self.units)

    def note(self, text):
        self.history[-1] += f"; {text}"

    # What an engine does.

    def engine_path(self, kind, identifier):
        """Where an engine would have it. Names of scopes are the machine's, so that they differ for equal ids."""
        if ON_SYSTEMD:
            return f"{os.path.basename(machines.slice_of(self.elsewhere))}:{kind}:{identifier}"
        return f"{self.elsewhere}/{identifier}"

    def forget(self, instance):
        self.instances.pop(instance.key, None)
        shutil.rmtree(instance.bundle.path, ignore_errors=True)

    def delete(self, instance):
        """Again where runc gave up: it waits 10 s for the init to end, which are too few beside much other work."""
        for last in (False, False, True):
            done = instance.runtime.call("delete", "--force", instance.id, check=last)
            if done.returncode == 0:
                return
            self.assertIn("container init still running", done.stderr)

    def kill(self, instance):
        pid = next((p for i, p in self.living() if i is instance), None)
        instance.runtime.call("kill", instance.id, "KILL")
        # Newer kernels let a zombie out of its cgroup only once it has left its processor for good.
        for _ in patience.turns(length=0.002):
            if not machines.alive(pid) and pid not in self.machine.processes(self.truth.kubepods):
                break
        else:
            self.fail(f"process {pid} does not end")
        self.observe()


def main():
    """See harness.main()."""
    if guest.inside():
        os.environ.setdefault("GOGC", "off")  # page faults are dear in there: a third of the time of each runc
    if ON_SYSTEMD and not (guest.inside() and units.runs()):
        print("skipped: the systemd driver is tested only in a guest that has systemd")
        sys.exit(harness.SKIPPED)
    if os.geteuid() == 0:
        harness.cover_unified()  # for crun; runc gets along without it
    if not guest.inside():
        machines.reap_orphans()
    harness.main()
