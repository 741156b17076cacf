"""The systemd cgroup driver, for tests that run with either: `class OnSystemd(SystemdDriver, Tests, harness.TestCase)`."""

import machine as machines


class SystemdDriver:
    """Runtimes that leave their cgroups to systemd, and where pods and tiers lie then."""

    def use_driver(self):
        flag = {"runc": "--systemd-cgroup", "crun": "--cgroup-manager=systemd"}[self.kind]
        for runtime in (self.plain, self.wrapper):
            runtime.prefix.append(flag)

    def pod_path(self, tier, uid):
        return machines.child_cgroup(self.tier_path(tier), f"pod{uid}")

    def tier_path(self, tier):
        kubepods = machines.slice_of(f"{self.root}/kubepods")
        return kubepods if tier == "guaranteed" else machines.child_cgroup(kubepods, tier)
