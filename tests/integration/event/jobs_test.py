"""A pod that nobody has described: a container that stays, and beside it many that end or never start."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402

JOBS, FAILURES = 256, 20
ONE = {"shares": 102, "quota": 10_000, "memory": 64 * harness.MI}
# MilliCPUToShares of 200m, which the kubelet rounds down.
TWO = {"shares": 204, "quota": 20_000, "memory": 128 * harness.MI}


@harness.runc_only
class Jobs(harness.TestCase):
    """What has ended no longer counts: the pod needs what ran at once."""

    def job(self, label, *args):
        """A bundle as Podman and Docker make it: its pod and its own limits, but no name in the pod."""
        bundle = self.bundle(label=label, args=args)
        bundle.annotations["podqos.io/pod-uid"] = "jobs"
        bundle.resources.update({"cpu": {"shares": 102, "quota": 10_000, "period": 100_000},
                                 "memory": {"limit": 64 * harness.MI}})
        return bundle.save()

    def setUp(self):
        super().setUp()
        self.pod = self.pod_path("burstable", "jobs")
        self.stays = self.container_id("stays")
        self.assert_placed(self.wrapper.launch(self.stays, self.job("stays", "sleep", "1000")), self.pod)
        self.assert_pod(ONE)

    def assert_pod(self, values):
        self.assert_values(self.pod, **values)
        self.assert_values(self.tier_path("burstable"), shares=values["shares"])

    def assert_one_more_fits(self):
        last = self.container_id("last")
        self.assert_placed(self.wrapper.launch(last, self.job("last", "sleep", "1000")), self.pod)
        self.assert_pod(TWO)
        self.wrapper.delete(last)
        self.wrapper.delete(self.stays)
        self.assert_nothing_left()

    def end_in_turn(self, bundle, number, label):
        """Containers that their runtime starts, or fails to create, one after another."""
        for _ in range(number):
            name = self.container_id(label)
            self.wrapper.create(name, bundle.save(), check=False)
            if self.plain.state(name):
                self.wrapper.start(name)
                self.wrapper.delete(name)

    def test_quota_of_no_whole_millicpu(self):
        """As of `docker run --cpus 0.3333`. cgroup v1 refuses a quota above the pod's."""
        bundle, name = self.job("third", "sleep", "1000"), self.container_id("third")
        bundle.annotations["podqos.io/pod-uid"] = "third"
        bundle.resources["cpu"]["quota"] = 33_330
        pod = self.pod_path("burstable", "third")
        path = self.assert_placed(self.wrapper.launch(name, bundle.save()), pod)
        self.assert_values(path, quota=33_330)
        self.assert_values(pod, quota=33_400)

    def test_one_after_another(self):
        self.end_in_turn(self.job("job", "true"), JOBS, "job")
        self.assert_pod(TWO)
        record = json.loads((self.podqos.state / "pods/jobs.json").read_text(encoding="utf-8"))
        self.assertEqual([each["id"] for each in record["containers"]], [self.stays])
        self.assertEqual(self.podqos.ctl_json("status")["warnings"], [])
        self.assert_one_more_fits()

    def test_programs_that_do_not_exist(self):
        """Their runtime has called createRuntime before it finds out: each ran, and alone."""
        self.end_in_turn(self.job("broken", "/no/such/program"), FAILURES, "broken")
        self.assert_one_more_fits()

    def test_creations_that_fail_before_there_is_a_process(self):
        bundle = self.job("rootless", "true")
        bundle.config["root"]["path"] = "/no/such/root"
        self.end_in_turn(bundle, FAILURES, "rootless")
        self.podqos.ctl("reconcile")
        self.assert_pod(ONE)
        self.assert_one_more_fits()


if __name__ == "__main__":
    harness.main()
