"""With the systemd driver systemd-oomd evicts: what systemd knows of tiers, critical pods and their containers.

Whether systemd-oomd then kills is its own matter; here it is looked at what it goes by: the properties of units, and
the attribute of cgroups that systemd makes of ManagedOOMPreference. In a guest with systemd, which this file boots.
"""

import dataclasses
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import node_case  # noqa: E402
import units  # noqa: E402
from harness import container, pod  # noqa: E402
from node_case import BESTEFFORT, BURSTABLE  # noqa: E402

CGROUPS = "/sys/fs/cgroup"
CRITICAL = dataclasses.replace(BESTEFFORT, uid="vital-4",
                               manifest=pod("vital-4", container("app"), priority=2_000_000_000))
KILL = {"ManagedOOMMemoryPressure": "kill", "ManagedOOMMemoryPressureLimit": str(round(0.6 * (2**32 - 1)))}
NONE = {"ManagedOOMMemoryPressure": "auto", "ManagedOOMMemoryPressureLimit": "0"}
DURATION = "ManagedOOMMemoryPressureDurationUSec"  # since systemd 257


class Oomd(node_case.NodeCase):
    """Placed by the wrapper and confirmed by the hook, as where the package is installed."""

    kind, driver, hooked = "crun", "systemd", True
    settings = {**node_case.NodeCase.settings, "eviction": {"besteffort": {"memoryPressure": "60%/30s"}}}

    def setUp(self):
        super().setUp()
        self.runtime = self.wrapper

    def shown(self, cgroup, names):
        found, = units.show([os.path.basename(cgroup)], names)
        return found

    def tier(self, name):
        return self.shown(self.tier_path(name), NONE)

    def attribute(self, cgroup):
        """What systemd-oomd reads."""
        try:
            return os.getxattr(f"{CGROUPS}{cgroup}", "user.oomd_avoid").decode()
        except OSError:
            return None

    def preference(self, cgroup):
        """What systemd says, and what systemd-oomd reads."""
        return self.shown(cgroup, ["ManagedOOMPreference"])["ManagedOOMPreference"], self.attribute(cgroup)

    def assert_preference(self, cgroup, *wanted):
        self.assertEqual(self.preference(cgroup), wanted, cgroup)

    def candidate(self, box):
        """What systemd-oomd would kill of a container: the first that ends as a whole, else the leaf."""
        path = f"/{self.tier_path(box.expected.tier).strip('/')}"
        while path != box.cgroup:
            path = f"{path}/{box.cgroup.removeprefix(path + '/').partition('/')[0]}"
            if self.machine.file(path, "memory", "memory.oom.group") == "1":
                break
        return path

    def assert_spared(self, box, *wanted):
        """As systemd says of the container's scope, and as systemd-oomd finds it."""
        scope = os.path.dirname(box.cgroup)  # crun's process is below it
        self.assert_preference(scope, *wanted)
        self.assertEqual(self.attribute(self.candidate(box)), wanted[1])

    def configure(self, **eviction):
        self.podqos.settings["eviction"] = eviction or None
        self.podqos.config(self.kind)

    def reconcile(self):
        self.podqos.ctl("reconcile", kind=self.kind)

    def test_tiers_and_critical_pods(self):
        boxes = [self.start(self.container(each, "app")) for each in (BESTEFFORT, CRITICAL, BURSTABLE)]
        plain, vital = boxes[:2]
        self.assertEqual(self.tier("besteffort"), KILL)
        self.assertEqual(self.tier("burstable"), NONE)
        if self.shown(self.tier_path("besteffort"), [DURATION]):
            self.assertEqual(self.shown(self.tier_path("besteffort"), [DURATION]), {DURATION: "30s"})
        self.assert_spared(vital, "avoid", "1")
        self.assert_preference(self.pod_cgroup(CRITICAL), "avoid", "1")
        self.assert_spared(plain, "none", None)
        self.assert_preference(self.pod_cgroup(BESTEFFORT), "none", None)
        subprocess.run(["systemctl", "daemon-reload"], check=True)
        self.assertEqual(self.tier("besteffort"), KILL)
        shown = self.podqos.ctl("status", kind=self.kind).stdout
        runs = subprocess.run(["systemctl", "--quiet", "is-active", "systemd-oomd"], check=False).returncode == 0
        self.assertIn(f"eviction from {self.tier_path('besteffort')}: at 60%/30s by systemd-oomd"
                      f"{'' if runs else ', which does not run'}\n", shown)
        self.configure()
        self.reconcile()
        self.assertEqual(self.tier("besteffort"), NONE)
        self.assert_spared(vital, "none", "0")
        self.assert_preference(self.pod_cgroup(CRITICAL), "none", "0")
        self.configure(burstable={"memoryPressure": "60%/30s"})
        self.reconcile()
        self.assertEqual((self.tier("besteffort"), self.tier("burstable")), (NONE, KILL))
        for box in boxes:
            self.end(box)
        self.check_nothing_left()

    def test_nothing_is_told_without_the_setting(self):
        self.configure()
        boxes = [self.start(self.container(each, "app")) for each in (CRITICAL, BURSTABLE)]
        self.assertEqual((self.tier("besteffort"), self.tier("burstable")), (NONE, NONE))
        self.assert_preference(self.pod_cgroup(CRITICAL), "none", None)
        self.reconcile()
        self.assertEqual([path for path in units.kept("kubepods") if "ManagedOOM" in path], [])
        for box in boxes:
            self.end(box)


if __name__ == "__main__":
    harness.main(("runc",), in_guest=[Oomd],
                 here=[guest.cases({"systemd": (guest.Guest("systemd"), __file__)})])
