"""What is in force stays in force: an error in a configuration file changes nothing of what lives, and no start fails."""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import oci  # noqa: E402

# What is made of a valid file, which begins with its state directory and ends with the runtime, and a word of the error.
BREAKS = [
    ("syntax", lambda text: text.replace(', "cgroupRoot"', ',\n, "cgroupRoot"'), "malformed JSON at line 2, column 1"),
    ("unknown field", lambda text: text[:-1] + ',\n"podPidsLimits": 5}', "podPidsLimit"),
    ("value", lambda text: text[:-1] + ',\n"maxPodClaim": "150%"}', "maxPodClaim"),
]
LIVING = harness.pod("lives-1", harness.container("app", limits={"cpu": "500m", "memory": "256Mi"}))


@harness.for_each_runtime
class LastValidSettings(harness.TestCase):
    """They stay in force: values, placing, releasing, and the runtime that is run."""

    settings = {"reserved": {"system": {"cpu": "2", "memory": "1Gi"}}, "podPidsLimit": 64}

    def setUp(self):
        super().setUp()
        self.file = self.podqos.config(self.kind)
        fields = json.loads(self.file.read_text(encoding="utf-8"))
        fields["runtimes"] = fields.pop("runtimes")
        self.write(json.dumps(fields))
        self.valid = json.dumps(fields)

    def write(self, text):
        self.file.write_text(text, encoding="utf-8")

    def launch_living(self):
        """A pod that an event has found with the valid file."""
        bundle, name = self.bundle(LIVING, "app"), self.container_id("lives")
        self.write(self.valid)
        return name, self.wrapper.launch(name, bundle)

    def each_break(self):
        """Words of the errors; the file has each meanwhile."""
        for _, spoil, word in BREAKS:
            self.write(spoil(self.valid))
            yield word
        self.write(self.valid)

    def ctl(self, *words):
        done = subprocess.run([harness.CTL, "--config", self.file, *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def assert_says(self, said, *words):
        for word in words:
            self.assertIn(word, " ".join(said.split()))

    def values(self):
        """Of all that a living pod's values follow from."""
        paths = [self.root, f"{self.root}/kubepods", self.tier_path("burstable"), self.tier_path("besteffort"),
                 self.pod_path("guaranteed", "lives-1")]
        return [self.machine.snapshot(path) for path in paths]

    def test_container_that_lives(self):
        name, _ = self.launch_living()
        for word in self.each_break():
            self.assertIn(word, self.wrapper.exec(name, "echo", word).stdout)
            self.wrapper.pause(name)
            self.wrapper.resume(name)
            self.assertEqual(self.wrapper.state(name)["status"], "running")
        self.write(BREAKS[0][1](self.valid))
        self.wrapper.delete(name)
        self.assertIsNone(self.plain.state(name))
        self.assertEqual(self.ctl("reconcile")[0], 0)

    def test_container_of_no_pod(self):
        self.launch_living()
        for _ in self.each_break():
            bundle, name = self.bundle(), self.container_id("ordinary")
            before = bundle.read()
            self.wrapper.launch(name, bundle)
            self.assertEqual(bundle.read(), before)
            self.wrapper.delete(name)

    def test_container_of_no_pod_before_any_pod(self):
        """Where the file names no runtime, the first of the built-in ones is run."""
        if self.kind != "runc":
            self.skipTest("runc is the first")
        self.valid = self.valid[:self.valid.index(', "runtimes"')] + "}"
        for _ in self.each_break():
            name = self.container_id("ordinary")
            self.wrapper.launch(name, self.bundle())
            self.wrapper.delete(name)

    def test_events_of_other_pods_change_no_value(self):
        """A pod comes and goes by the settings that were valid."""
        coming = [self.register_hooks(self.bundle(harness.pod("comes-1", harness.container("app")), "app")) for _ in BREAKS]
        self.launch_living()
        before, records = self.values(), self.podqos.records()
        for word in self.each_break():
            name = self.container_id("comes")
            pid = self.wrapper.launch(name, coming.pop())
            self.assert_placed(pid, self.pod_path("besteffort", "comes-1"))
            self.assert_values(self.pod_path("besteffort", "comes-1"), pids=64)
            self.assertEqual(self.values(), before)
            self.assert_says(self.podqos.log_text(), f"error: {self.file}: ", word)
            self.wrapper.delete(name)
            self.assertEqual(self.podqos.records(), records)
            self.assertEqual(self.values(), before)

    def test_podqosctl_goes_on_with_them_and_says_so(self):
        in_force = "the last valid settings stay in force"
        self.launch_living()
        before = self.values()
        for word in self.each_break():
            status, said = self.ctl("status", "--wide")
            self.assertEqual(status, 1)
            self.assert_says(said, f"error: {self.file}: ", word, f"until it is corrected, {in_force}", "reserved 2 1Gi")
            self.assert_says(self.ctl("doctor")[1], word, in_force)
            status, said = self.ctl("config", "check")
            self.assertEqual(status, 1)
            self.assert_says(said, word, in_force)
            status, said = self.ctl("reconcile")
            self.assertEqual(status, 0, said)
            self.assert_says(said, word, in_force)
            self.assertEqual(self.values(), before)
            self.assertEqual(json.loads(self.ctl("config", "runtimes")[1]), [oci.runtime_path(self.kind)])

    def test_corrected_file_counts_at_once(self):
        self.launch_living()
        self.write(BREAKS[0][1](self.valid))
        self.ctl("reconcile")
        self.write(self.valid.replace('"podPidsLimit": 64', '"podPidsLimit": 32'))
        self.assertEqual(self.ctl("reconcile")[0], 0)
        self.assert_values(self.pod_path("guaranteed", "lives-1"), pids=32)


if __name__ == "__main__":
    harness.main()
