"""podqosctl on living pods: status, tree, reconcile."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import terminal  # noqa: E402
from harness import GI, MI, container, pod  # noqa: E402

BURSTABLE = pod(
    "live-b",
    container("app", requests={"cpu": "250m", "memory": "1Gi"}, limits={"cpu": "500m", "memory": "2Gi"}),
)
GUARANTEED = pod("live-g", container("app", limits={"cpu": "100m", "memory": "64Mi"}))


def find(value, wanted):
    """The objects within a JSON value that have a member whose value is `wanted`."""
    if isinstance(value, dict):
        found = [value] if wanted in value.values() else []
        return found + [hit for child in value.values() for hit in find(child, wanted)]
    return [hit for child in value for hit in find(child, wanted)] if isinstance(value, list) else []


def without_usage(text):
    """What is in use changes from one look to the next, and with it the width of its column."""
    return re.sub(" +", " ", re.sub(r"\s+~?\d+(\.\d+)?[KMG]i\b", " N", text))


@harness.runc_only
class Views(harness.TestCase):
    """status and tree show what the kernel holds, for people and for programs."""

    def setUp(self):
        super().setUp()
        self.launch(BURSTABLE, "app")
        _, self.pid = self.launch(GUARANTEED, "app")

    def test_text_and_json(self):
        """Which change nothing."""
        before = self.podqos.state_bytes()
        for view, words in (("status", ("live-b", "live-g", "Burstable", "Guaranteed")),
                            ("tree", ("kubepods", "burstable", "besteffort", "podlive-b", "podlive-g"))):
            with self.subTest(view=view):
                text = self.podqos.ctl(view).stdout
                self.assertEqual([word for word in words if word not in text], [])
                self.assertNotIn("\x1b", text, "coloured although it is piped")
                value = self.podqos.ctl_json(view)
                for wanted in ("live-b", "Guaranteed", 2 * GI, 64 * MI):
                    self.assertTrue(find(value, wanted), value)
        self.assertEqual(self.podqos.state_bytes(), before)

    def test_on_a_terminal(self):
        """The C library asks the terminal behind the allow-list, each release in its own way."""
        for view in ("status", "tree"):
            with self.subTest(view=view):
                status, text = self.on_terminal(80, view)
                self.assertEqual(status, 0, text)
                self.assertIn("live-b", text)
                self.assertIn("\x1b[", text)

    def test_width(self):
        """Each line fits the terminal; with room for it, and with --wide, nothing is cut off."""
        uid = "0679360e958ab25c79753d04705ac9e53d5209fd276b025befb31acc1004a140"
        _, pid = self.launch(pod(uid, container("app", limits={"memory": "64Mi"})), "app")
        self.machine.enter(pid, self.elsewhere)
        for view in (["status"], ["tree"], ["describe", uid]):
            for columns, options, whole in ((40, [], False), (80, [], False), (200, [], True), (80, ["--wide"], True)):
                with self.subTest(view=view, columns=columns, options=options):
                    text = terminal.plain(self.on_terminal(columns, *view, *options)[1])
                    self.assertEqual(("SOURCE" if view == ["status"] else f"pod{uid}") in text, whole, text)
                    if not options:
                        self.assertEqual([line for line in text.splitlines() if len(line) > columns], [])

    def on_terminal(self, columns, *arguments):
        """Exit status and output of podqosctl on a terminal of so many columns."""
        command = [str(harness.CTL), "--config", str(self.podqos.config(self.kind)), *arguments]
        return terminal.run(command, columns)

    def test_exit_status_of_status(self):
        """1 if something is not as it should be, for those who do not say that they only look."""
        config = ["--config", str(self.podqos.config(self.kind))]
        for wrong in (0, 1):
            for options, wanted in (([], wrong), (["-o", "json"], wrong), (["--exit-zero"], 0)):
                with self.subTest(wrong=wrong, options=options):
                    done = subprocess.run([harness.CTL, *config, "status", *options], capture_output=True, text=True,
                                          check=False)
                    self.assertEqual(done.returncode, wanted, done.stdout + done.stderr)
            self.machine.enter(self.pid, self.elsewhere)

    def test_where_nothing_can_be_written(self):
        for view in ("status", "tree"):
            with self.subTest(view=view):
                done = self.call_read_only(view)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(without_usage(done.stdout), without_usage(self.podqos.ctl(view).stdout))
        done = self.call_read_only("reconcile", "--dry-run")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"{self.podqos.state} is mounted read-only", done.stderr)

    def call_read_only(self, *arguments):
        """podqosctl where the state directory is mounted read-only."""
        script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, "sh", str(self.podqos.state), str(harness.CTL),
                   "--config", str(self.podqos.config(self.kind)), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)


@harness.for_each_runtime
class Explain(harness.TestCase):
    """explain tells of a bundle what its start then does, and of what runs where each value is from."""

    def bundle_of(self, uid, shares=None, **annotations):
        bundle = self.bundle(label="app")
        bundle.annotations.update({"podqos.io/pod-uid": uid, **{
            f"podqos.io/{key.replace('_', '-')}": value for key, value in annotations.items()}})
        if shares:
            bundle.resources["cpu"] = {"shares": shares}
        return bundle.save()

    def explain(self, *arguments):
        return self.podqos.ctl_json("explain", *arguments, kind=self.kind)

    def test_bundle(self):
        bundle = self.bundle_of("short", 512, requests="cpu=250m,memory=64Mi", limits="memory=256Mi")
        name, before = self.container_id("app"), bundle.read()
        said = self.explain("--bundle", bundle.path, "--id", name)
        self.assertEqual(bundle.read(), before)
        self.assertFalse(self.machine.exists(self.root))
        self.assertFalse(self.podqos.state.exists())
        self.assertEqual((said["managed"], said["source"], said["qosClass"]),
                         (True, "podqos.io/requests, limits", "Burstable"))
        self.assertIn("/linux/resources/cpu/shares: 512, set by its engine", said["config"])
        self.assertIn("/linux/resources/memory/limit: unset → 256Mi", said["config"])
        pid = self.wrapper.launch(name, bundle)
        self.assertEqual(machines.cgroup_of(pid), said["cgroup"])
        self.assert_values(self.pod_path("burstable", "short"), shares=256, memory=256 * MI)
        # What runs already, or is podqos's doing in config.json, is not taken for the engine's.
        done = self.podqos.ctl("explain", "--bundle", bundle.path, "--id", name, kind=self.kind, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"runs already, as process {pid}", done.stderr)
        self.wrapper.delete(name)
        self.assertIn("podqos.io/edits", bundle.read().decode())
        self.assertEqual(self.explain("--bundle", bundle.path, "--id", name)["config"], said["config"])

    def test_bundle_of_others(self):
        bundle = self.bundle(label="app")
        said = self.explain("--bundle", bundle.path)
        self.assertEqual(said["managed"], False)
        self.assertIn("scope", said["reason"])
        self.assertIn("not managed", self.podqos.ctl("explain", "--bundle", bundle.path, kind=self.kind).stdout)
        for annotations, word in (({"requests": "memory=256m"}, "did you mean 256Mi?"), ({"request": "cpu=1"}, "requests")):
            bundle = self.bundle_of("wrong", **annotations)
            done = self.podqos.ctl("explain", "--bundle", bundle.path, kind=self.kind, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(word, done.stderr)
        bundle = self.bundle_of("wrong", requests="cpu=1")
        bundle.config["linux"]["cgroupsPath"] = "/a\u202eb"
        text = self.podqos.ctl("explain", "--bundle", bundle.save().path, kind=self.kind).stdout
        self.assertIn('/linux/cgroupsPath: "/a\\u202eb" → ', text)
        done = self.podqos.ctl("explain", "--bundle", "/nonexistent", kind=self.kind, check=False)
        self.assertIn("--bundle: open /nonexistent: No such file or directory", done.stderr)

    def test_bundles_of_engines(self):
        """Those that Podman 5.4, Docker 26 and containerd's CRI have made: with the ids that they have chosen."""
        for engine, end, edits in (
                ("podman", "kubepods-burstable-podweb_1.slice/libpod-ca8b620c80c1",
                 ["/linux/resources/cpu/shares: unset → 2", "/linux/resources/memory/limit: 256Mi, set by its engine"]),
                ("docker", "kubepods-burstable-podweb_1.slice/docker-c255827749cc",
                 ["/process/oomScoreAdj: 0 → 9", "/linux/resources/memory/limit: 256Mi, set by its engine"]),
                # A kubelet's: nothing is changed.
                ("containerd", "burstable/pod11111111-2222-3333-4444-555555555555/0a1b2c3d4e5f",
                 ["/linux/resources/cpu/shares: 256, set by its engine", "/process/oomScoreAdj: 984, set by its engine"])):
            with self.subTest(engine):
                bundle = self.bundle(label=engine)
                bundle.file.write_bytes((harness.REPOSITORY / f"tests/data/bundles/{engine}.json").read_bytes())
                id_ = ["--id", "0a1b2c3d4e5f"] if engine == "containerd" else []
                said = self.explain("--bundle", bundle.path, *id_)
                self.assertIn(end, said["cgroup"])
                for edit in edits:
                    self.assertTrue([line for line in said["config"] if line.startswith(edit)], said["config"])
                self.assertEqual(said["source"], "engine" if engine == "containerd" else "podqos.io/requests, limits")
                self.assertEqual(any("cgroupsPath" in line for line in said["config"]), engine != "containerd")

    def test_running(self):
        name, pid = self.launch(BURSTABLE, "app")
        path = self.pod_path("burstable", "live-b")
        memory = "memory.max" if self.machine.version("memory") == 2 else "memory.limit_in_bytes"
        said = self.explain("live-b/app")
        self.assertEqual(said, self.explain("app"))
        self.assertEqual((said["source"], said["record"]), ("podqos.io/pod", f"{self.podqos.state}/pods/live-b.json"))
        self.assertEqual([(each["cgroup"], each["container"]) for each in said["cgroups"]],
                         [(path, None), (machines.cgroup_of(pid), "app")])
        for cgroup in said["cgroups"]:
            file, = (each for each in cgroup["files"] if each["file"] == memory)
            self.assertEqual(file, {"file": memory, "rule": str(2 * GI), "kernel": str(2 * GI), "note": ""})
            self.assertEqual([each["note"] for each in cgroup["files"] if each["rule"]], [""] * sum(
                1 for each in cgroup["files"] if each["rule"]))
        score = machines.oom_score_adj(pid)
        self.assertEqual(said["cgroups"][1]["oomScoreAdj"], {"rule": said["oomScoreAdj"]["app"], "kernel": score})
        mount = self.machine.hierarchy("memory").mount
        pathlib.Path(mount + path, memory).write_text(str(3 * GI), encoding="utf-8")
        text = self.podqos.ctl("explain", "live-b", kind=self.kind).stdout
        self.assertRegex(text, rf"(?m)^{memory} +2Gi +3Gi +set by another program, or held by usage: podqosctl reconcile$")
        pathlib.Path(mount + machines.cgroup_of(pid), memory).write_text(str(GI), encoding="utf-8")
        text = self.podqos.ctl("explain", "live-b/app", kind=self.kind).stdout
        self.assertRegex(text, rf"(?m)^{memory} +2Gi +1Gi +set by its engine, its runtime or another program: podqos keeps")
        command = [str(harness.CTL), "--config", str(self.podqos.config(self.kind)), "explain"]
        for question in (["live-b"], ["--bundle", str(self.wrapper.bundles[name].path), "--id", "other"]):
            status, text = terminal.run([*command, *question], 80)
            self.assertEqual(status, 0, text)
            self.assertEqual([line for line in terminal.plain(text).splitlines() if len(line) > 80], [])


@harness.for_each_runtime
class Reconcile(harness.TestCase):
    """reconcile brings state and kernel back to the truth, and says how; from what, state_faults_test.py has."""

    def test_nothing_there(self):
        self.podqos.ctl("reconcile", kind=self.kind)
        self.assertFalse(self.machine.exists(self.root))

    def test_nothing_to_do(self):
        self.launch(BURSTABLE, "app")
        before = self.podqos.state_bytes()
        said = json.loads(self.podqos.ctl("reconcile", "-o", "json", kind=self.kind).stdout)
        self.assertEqual((said["pods"], said["containers"], said["changes"]), (1, 1, []))
        self.assert_values(self.pod_path("burstable", "live-b"), shares=256, quota=50000, memory=2 * GI)
        self.assert_values(self.tier_path("burstable"), shares=256)
        self.assertEqual(self.podqos.state_bytes(), before)
        self.assertIn("would make 0 changes", self.podqos.ctl("reconcile", "-n", kind=self.kind).stdout)

    def share_files(self):
        """The shares or weights of the pod and of its tier."""
        name = "cpu.shares" if self.machine.version("cpu") == 1 else "cpu.weight"
        mount = self.machine.hierarchy("cpu").mount
        return [pathlib.Path(mount + cgroup, name)
                for cgroup in (self.pod_path("burstable", "live-b"), self.tier_path("burstable"))]

    def test_dry_run(self):
        """It names each change that a reconciliation then makes, and makes none."""
        self.launch(BURSTABLE, "app")
        path, files = self.pod_path("burstable", "live-b"), self.share_files()
        right = "256" if files[0].name == "cpu.shares" else files[0].read_text(encoding="utf-8").strip()
        lines = [f"{path}/{files[0].name}: 77 → {right} (pod live-b)",
                 f"{self.tier_path('burstable')}/{files[0].name}: 77 → {right} (tier Burstable)"]
        for file in files:
            file.write_text("77", encoding="utf-8")
        before = self.podqos.state_bytes()
        said = self.podqos.ctl("reconcile", "--dry-run", kind=self.kind).stdout
        self.assertEqual(said.splitlines()[:2], lines)
        self.assertNotIn("write ", said)
        self.assertEqual([file.read_text(encoding="utf-8").strip() for file in files], ["77", "77"])
        self.assertEqual(self.podqos.state_bytes(), before)
        planned = json.loads(self.podqos.ctl("reconcile", "-n", "-o", "json", kind=self.kind).stdout)
        self.assertEqual([line.partition("  #")[0] for line in planned["plan"] if line.startswith("write ")],
                         [f"write  {line.partition(':')[0]} = {right}" for line in lines])
        said = self.podqos.ctl("reconcile", "--quiet", kind=self.kind).stdout
        self.assertEqual(said.splitlines(), lines)
        self.assertEqual([file.read_text(encoding="utf-8").strip() for file in files], [right, right])
        again = json.loads(self.podqos.ctl("reconcile", "-n", "-o", "json", kind=self.kind).stdout)
        self.assertEqual(again["plan"], [])

    def test_container_moved_out_of_its_pod(self):
        """It is told of and stays where it is; elsewhere in its pod it is bound as before."""
        name, pid = self.launch(BURSTABLE, "app")
        home, neighbour = machines.cgroup_of(pid), f"{self.pod_path('burstable', 'live-b')}/other"
        self.machine.enter(pid, neighbour)
        self.assert_no_stray(name)
        self.machine.enter(pid, self.elsewhere)
        said = f"({name}) to cgroup {self.elsewhere}, where its limits do not apply: restart it, or write its pids to {home}/"
        for _ in range(2):
            self.assertIn(said, self.podqos.ctl("status", kind=self.kind).stdout)
            done = self.podqos.ctl("reconcile", kind=self.kind)
            self.assertIn(said, done.stdout + done.stderr)
            self.assertEqual(machines.cgroup_of(pid), self.elsewhere)
        logged = self.podqos.log_text()
        self.assertIn(said, logged)
        done = self.podqos.ctl("reconcile", "--quiet", kind=self.kind)
        self.assertEqual((done.stdout + done.stderr, self.podqos.log_text()), ("", logged))
        self.assert_values(self.tier_path("burstable"), shares=256)
        self.machine.enter(pid, home)
        self.assert_no_stray(name)
        self.machine.remove(neighbour)

    def test_container_that_runs_elsewhere_by_its_engine(self):
        name, bundle = self.container_id("app"), self.bundle(BURSTABLE, "app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/{name}"
        command = self.podqos.hook_command(self.kind)
        for stage in ("createRuntime", "poststop"):
            bundle.add_hook(stage, harness.HOOK, [*command, stage])
        pid = self.plain.launch(name, bundle.save())
        self.assertTrue(machines.cgroup_of(pid).startswith(self.elsewhere))
        self.assert_no_stray(name)
        self.assertIn(f"container {name} runs in cgroup {self.elsewhere}/{name}, outside the pod's limits",
                      self.podqos.ctl("status", kind=self.kind).stdout)
        self.plain.delete(name)

    def assert_no_stray(self, name):
        for command in ("status", "reconcile"):
            done = self.podqos.ctl(command, kind=self.kind)
            self.assertNotIn(f"({name}) to cgroup", done.stdout + done.stderr)

    def test_one_pod_that_no_rule_fits(self):
        """A quota that was possible before: that pod alone is told of."""
        big = harness.pod("live-x", harness.container("app", limits={"cpu": "170000000"}))
        names = [self.launch(manifest, "app")[0] for manifest in (big, BURSTABLE)]
        self.podqos.settings["cpuCFSQuotaPeriod"] = "1s"
        shown = self.podqos.ctl("status", kind=self.kind).stdout
        self.assertRegex(shown, r"live-b +\S+ +Burstable")
        self.assertNotIn("the rule says unlimited", shown)
        self.assertRegex(shown, r"warning: pod .*live-x.*quota of 170000000000000 us")
        done = self.podqos.ctl("reconcile", check=False, kind=self.kind)
        self.assertEqual(done.returncode, 1)
        self.assertIn("2 pods, 2 containers", done.stdout)
        self.assertRegex(done.stderr, "live-x.*quota of 170000000000000 us")
        self.check_failure_is_once_in_the_journal()
        for name in names:
            self.wrapper.delete(name)

    def check_failure_is_once_in_the_journal(self):
        """Where standard error is the journal and the log leads there as well, only the log tells of what fails."""
        command = [str(harness.CTL), "--config", str(self.podqos.config(self.kind)), "reconcile", "--quiet"]
        for sink, to_journal, told in (("syslog", True, 0), ("syslog", False, 1), (str(self.podqos.log), True, 1)):
            with self.subTest(sink=sink, to_journal=to_journal), tempfile.TemporaryFile() as err:
                self.podqos.settings["log"] = {**self.podqos.settings.get("log", {}), "sink": sink}
                self.podqos.config(self.kind)
                # As systemd says it: the device and the inode of standard error, systemd.exec(5).
                file = os.fstat(err.fileno())
                stream = f"{file.st_dev}:{file.st_ino + (0 if to_journal else 1)}"
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=err, check=False,
                                      env={**os.environ, "JOURNAL_STREAM": stream})
                err.seek(0)
                self.assertEqual((done.returncode, done.stdout), (1, b""))
                self.assertEqual(err.read().count(b"quota of 170000000000000 us"), told)

    def test_second_create_of_a_running_container(self):
        """The runtime refuses it, and podqos's record of the first stays as it is."""
        name, pid = self.launch(BURSTABLE, "app")
        first, before = self.wrapper.bundles[name], self.podqos.state_bytes()
        other = harness.pod("live-x", harness.container("app", requests={"cpu": "1"}))
        done = self.wrapper.create(name, first, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"runs already, as process {pid}", done.stderr)
        self.assertEqual(self.podqos.state_bytes(), before)
        self.assertEqual(self.podqos.ctl_json("status", kind=self.kind)["pods"][0]["containers"][0]["state"], "live")
        # From another bundle it might be another runtime's; what it has left goes with the next event.
        self.assertNotEqual(self.wrapper.create(name, self.bundle(other, "app"), check=False).returncode, 0)
        self.wrapper.bundles[name] = first
        self.wrapper.delete(name)
        self.podqos.ctl("reconcile", kind=self.kind)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
