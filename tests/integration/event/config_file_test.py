"""The wrapper changes what it must in config.json and not a byte more, twice is once, and anew is anew."""

import json
import os
import pathlib
import shutil
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
from harness import GI, MI, container, pod  # noqa: E402

GUARANTEED = pod("guaranteed-1", container("app", limits={"cpu": "100m", "memory": "64Mi"}))
BURSTABLE = pod(
    "burstable-1",
    container("app", requests={"cpu": "250m", "memory": "1Gi"}, limits={"cpu": "500m", "memory": "2Gi"}),
)


@harness.for_each_runtime
class ConfigFile(harness.TestCase):
    """The wrapper changes what it must in config.json and not a byte more, and twice is once."""

    def test_only_what_is_podqos_own_changes(self):
        bundle = self.bundle(BURSTABLE, "app")
        before = json.loads(bundle.read())
        status = bundle.file.stat()
        name = self.container_id("app")
        self.wrapper.create(name, bundle)
        after = json.loads(bundle.read())
        self.assertTrue(after["linux"].pop("cgroupsPath").startswith(self.pod_path("burstable", "burstable-1")))
        self.assertEqual(set(after.pop("hooks")), {"createRuntime", "poststop"})
        self.assertEqual({edit["at"] for edit in after.pop("podqos.io/edits")},
                         {"/linux/cgroupsPath", "/process/oomScoreAdj", "/linux/resources/memory/limit",
                          *(f"/linux/resources/cpu/{name}" for name in ("shares", "quota", "period"))})
        self.assertEqual(after["process"].pop("oomScoreAdj"), 969)
        devices = before["linux"]["resources"]["devices"]
        self.assertEqual(after["linux"].pop("resources")["devices"], devices)
        before["linux"].pop("resources")
        self.assertEqual(after, before)
        now = bundle.file.stat()
        self.assertEqual((now.st_uid, now.st_gid, now.st_mode), (status.st_uid, status.st_gid, status.st_mode))
        self.assertEqual(sorted(p.name for p in bundle.path.iterdir() if p.name != "rootfs"), ["config.json"])
        changed = bundle.read()
        self.wrapper.delete(name)
        self.wrapper.create(name, bundle)
        self.assertEqual(bundle.read(), changed)

    def test_names_in_another_case(self):
        """runc takes "CPU" for "cpu", in its own test suite too; crun knows no such member."""
        bundle, name = self.bundle(BURSTABLE, "app"), self.container_id("app")
        bundle.resources["CPU"] = {"shares": 512}
        pid = self.wrapper.launch(name, bundle.save())
        self.assert_placed(pid, self.pod_path("burstable", "burstable-1"))
        self.assert_values(machines.cgroup_of(pid), shares=512 if self.kind == "runc" else 256, quota=50000)
        self.assertEqual(bundle.reload().resources["CPU"].get("quota"), 50000 if self.kind == "runc" else None)

    def test_a_config_of_another_name(self):
        """crun's `--config FILE`, which no engine gives, is the caller's own business; config.json is the bundle's."""
        if self.kind != "crun":
            self.skipTest("only crun has --config")
        bundle, name = self.bundle(GUARANTEED, "app"), self.container_id("app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/plain"
        file = bundle.save().file.rename(bundle.path / "mine.json")
        before = file.read_bytes()
        self.wrapper.bundles[name] = bundle
        self.wrapper.call("create", "--bundle", bundle.path, "--config", file, name)
        self.assertEqual(machines.cgroup_of(self.wrapper.pid(name)), f"{self.elsewhere}/plain")
        self.wrapper.delete(name)
        self.assertEqual(file.read_bytes(), before)
        file.rename(bundle.file)
        self.wrapper.call("create", "--bundle", bundle.path, "-f", "config.json", name)
        self.assert_placed(self.wrapper.pid(name), self.pod_path("guaranteed", "guaranteed-1"))

    # BURSTABLE with other resources.
    OTHER = pod("burstable-1", container("app", requests={"cpu": "100m", "memory": "512Mi"}, limits={"memory": "3Gi"}))

    def annotate_anew(self, bundle, manifest=OTHER):
        """As a person does: the new manifest's annotations in the file as podqos has left it."""
        bundle.reload()
        bundle.annotations.clear()
        bundle.annotations.update(self.bundle(manifest, "app").annotations)
        return bundle.save()

    def assert_is_the_other(self, name, bundle):
        """A container from BURSTABLE's bundle has the other's resources, in every value."""
        pid = self.wrapper.launch(name, bundle)
        path = self.pod_path("burstable", "burstable-1")
        self.assert_placed(pid, path)
        for cgroup in (path, machines.cgroup_of(pid)):
            self.assert_values(cgroup, shares=102, quota=None, memory=3 * GI)
        self.assert_oom(pid, 985)  # 1000 - trunc(1000 * 512Mi / 32Gi)

    def test_annotated_anew(self):
        """Also where nothing but the file itself tells what podqos has filled in."""
        for is_state_lost in (False, True):
            with self.subTest(is_state_lost=is_state_lost):
                bundle, name = self.bundle(BURSTABLE, "app"), self.container_id("app")
                pid = self.wrapper.launch(name, bundle)
                if is_state_lost:
                    shutil.rmtree(self.podqos.state)
                    os.kill(pid, signal.SIGKILL)
                self.wrapper.delete(name)
                self.assert_is_the_other(name, self.annotate_anew(bundle))
                self.wrapper.delete(name)

    def test_annotated_anew_after_a_create_that_failed(self):
        bundle, name = self.bundle(BURSTABLE, "app"), self.container_id("app")
        program, bundle.config["root"]["path"] = bundle.config["root"]["path"], "/nowhere"
        self.assertNotEqual(self.wrapper.create(name, bundle.save(), check=False).returncode, 0)
        self.assertIn(b"podqos.io/edits", bundle.read())
        self.annotate_anew(bundle).config["root"]["path"] = program
        self.assert_is_the_other(name, bundle.save())

    def check_ordinary_again(self, spoil):
        """A container of a bundle that podqos has edited, which it does not place now: its cgroup is the engine's, not the
        one of the pod before, where a runtime would make podqos's root."""
        bundle, name = self.bundle(BURSTABLE, "app"), self.container_id("app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/plain"
        self.wrapper.launch(name, bundle.save())
        self.wrapper.delete(name)
        spoil(bundle.reload())
        pid = self.wrapper.launch(name, bundle)
        self.assertEqual(machines.cgroup_of(pid), f"{self.elsewhere}/plain")
        self.assertNotIn("podqos.io/edits", bundle.reload().config)
        self.assertEqual(set(bundle.config["hooks"]), {"createRuntime", "poststop"})
        self.assertNotIn("oomScoreAdj", bundle.config["process"])
        self.assertEqual((bundle.resources["cpu"], bundle.resources["memory"]), ({}, {}))
        self.wrapper.delete(name)
        self.assert_nothing_left()

    def configure(self, **settings):
        self.podqos.settings.update(settings)
        self.podqos.config(self.kind)

    def test_not_placed_now(self):
        def annotated_wrongly(bundle):
            bundle.annotations["podqos.io/requests"] = "cpu=much"
            bundle.save()

        def no_longer_annotated(bundle):
            bundle.annotations.clear()
            bundle.save()

        for spoil in (annotated_wrongly, no_longer_annotated, lambda _: self.configure(enabled=False)):
            self.check_ordinary_again(spoil)
            self.configure(enabled=True)
        self.assertIn("cpu=much", self.podqos.log_text())

    def test_registered_by_the_hook_and_annotated_anew(self):
        """Without the wrapper the edit is for the next start: then it is the new annotations'."""
        bundle, name = self.bundle(BURSTABLE, "app"), self.container_id("app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/app"
        self.plain.launch(name, self.register_hooks(bundle))
        self.plain.delete(name)
        self.annotate_anew(bundle)
        self.plain.launch(name, bundle)
        self.plain.delete(name)
        resources = bundle.reload().resources
        self.assertEqual((resources["memory"]["limit"], resources["cpu"]["shares"]), (3 * GI, 102))
        self.assertNotIn("quota", resources["cpu"])
        self.assertEqual(bundle.config["process"]["oomScoreAdj"], 985)


if __name__ == "__main__":
    harness.main()
