"""The worked example of memory reservation: 8G allocatable, everything that is requested is reserved."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
from harness import container, pod  # noqa: E402

G = 10**9


@harness.for_each_runtime
class WorkedExample(harness.TestCase):
    """Tiers give way to the requests above them as pods come, and get it back as they go."""

    # 9G of memory, of which 1G is the system's and the node's: 8G to allocate.
    settings = {
        "nodeMemory": "9G",
        "reserved": {"system": {"memory": "600M"}, "kube": {"memory": "400M"}},
        "qosReserved": {"memory": "100%"},
    }

    def tiers(self):
        return tuple(self.machine.read(self.tier_path(tier), "memory") for tier in ("burstable", "besteffort"))

    def assert_tiers(self, burstable, besteffort):
        """v1 and v2 keep memory limits in whole pages: rounded down."""
        page = 4096
        self.assertEqual(self.tiers(), (burstable // page * page, besteffort // page * page))

    def test_guaranteed_then_burstable_then_none(self):
        guaranteed = pod("example-g", container("app", limits={"cpu": "100m", "memory": "1G"}))
        burstable = pod("example-b", container("app", requests={"memory": "2G"}))
        first, _ = self.launch(guaranteed, "app")
        self.assert_tiers(7 * G, 7 * G)
        second, _ = self.launch(burstable, "app")
        self.assert_tiers(7 * G, 5 * G)
        self.wrapper.delete(second)
        self.assert_tiers(7 * G, 7 * G)
        self.wrapper.delete(first)
        self.assert_nothing_left()

    def test_the_other_way_round(self):
        besteffort = pod("example-e", container("app"))
        burstable = pod("example-b", container("app", requests={"memory": "2G"}))
        guaranteed = pod("example-g", container("app", limits={"cpu": "100m", "memory": "1G"}))
        last, _ = self.launch(besteffort, "app")
        self.assert_tiers(8 * G, 8 * G)
        second, _ = self.launch(burstable, "app")
        self.assert_tiers(8 * G, 6 * G)
        first, _ = self.launch(guaranteed, "app")
        self.assert_tiers(7 * G, 5 * G)
        self.wrapper.delete(first)
        self.wrapper.delete(second)
        self.assert_tiers(8 * G, 8 * G)
        self.wrapper.delete(last)
        self.assert_nothing_left()


@harness.for_each_runtime
class Half(harness.TestCase):
    """A reservation of 50 % takes half of each sum, cut to whole bytes."""

    settings = {"nodeMemory": "8Gi", "qosReserved": {"memory": "50%"}}

    def test_half(self):
        self.launch(pod("half-g", container("app", limits={"cpu": "100m", "memory": "2Gi"})), "app")
        self.launch(pod("half-b", container("app", requests={"memory": "3Gi"})), "app")
        self.assert_values(self.tier_path("burstable"), memory=7 << 30)
        self.assert_values(self.tier_path("besteffort"), memory=(7 << 30) - (3 << 29))


@harness.for_each_runtime
class NoReservation(harness.TestCase):
    """Without qosReserved no tier has a memory limit."""

    settings = {"qosReserved": None}

    def test_no_limit(self):
        self.launch(pod("none-g", container("app", limits={"cpu": "100m", "memory": "1Gi"})), "app")
        self.launch(pod("none-b", container("app", requests={"cpu": "100m", "memory": "2Gi"})), "app")
        self.assert_values(self.tier_path("burstable"), shares=102, memory=None)
        self.assert_values(self.tier_path("besteffort"), shares=2, memory=None)


if __name__ == "__main__":
    harness.main()
