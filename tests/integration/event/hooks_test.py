"""podqos as OCI hooks and as precreate, without the wrapper."""

import concurrent.futures
import fcntl
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
from harness import GI, container, pod  # noqa: E402

POD = pod(
    "hooks-1",
    container("app", requests={"cpu": "250m", "memory": "1Gi"}, limits={"cpu": "500m", "memory": "2Gi"}),
)


class HookCase(harness.TestCase):
    """Bundles whose config.json registers the hooks, placed by an "engine" outside podqos's cgroups."""

    def hooked_bundle(self, stages=("createRuntime", "poststop")):
        bundle = self.bundle(POD, "app")
        self.engine_path = f"{self.elsewhere}/{bundle.path.name}"
        bundle.config["linux"]["cgroupsPath"] = self.engine_path
        return self.register_hooks(bundle, stages)

    def launch_hooked(self, stages=("createRuntime", "poststop")):
        bundle, name = self.hooked_bundle(stages), self.container_id("app")
        return name, self.plain.launch(name, bundle), bundle

    def poststop_state(self, name, bundle):
        return {"ociVersion": "1.0.2", "id": name, "status": "stopped", "bundle": str(bundle.path),
                "annotations": bundle.annotations}


@harness.for_each_runtime
class Rewrite(HookCase):
    """onMisplaced "rewrite": this container stays and gets its limits where it is, the next one is placed right.
    matrix_test.py has it with createRuntime."""

    settings = {"placement": {"onMisplaced": "rewrite"}}

    def test_prestart_is_the_same_stage(self):
        name, pid, bundle = self.launch_hooked(stages=("prestart", "poststop"))
        path = self.pod_path("burstable", "hooks-1")
        self.assertEqual(machines.cgroup_of(pid), self.engine_path)
        self.assert_values(self.engine_path, quota=50000, memory=2 * GI)
        self.assert_oom(pid, 969)
        self.assert_values(path, shares=256)
        self.assertIn("warn", self.podqos.log_text().lower())
        self.plain.delete(name)
        self.assert_nothing_left()
        self.assert_placed(self.plain.launch(name, bundle), path)


@harness.runc_only
class SharedCgroup(HookCase):
    """A runtime that was told to make no cgroup leaves the container in its caller's: nothing is written there."""

    def enter(self):
        for controller in ("cpu", "memory"):
            procs = pathlib.Path(self.machine.hierarchy(controller).mount + self.elsewhere, "cgroup.procs")
            procs.write_text("0", encoding="ascii")

    def test_limits_stay_away(self):
        for hierarchy in self.machine.hierarchies:
            os.makedirs(hierarchy.mount + self.elsewhere, exist_ok=True)
        before = self.machine.snapshot(self.elsewhere)
        bundle, name = self.hooked_bundle(), self.container_id("app")
        with subprocess.Popen(["sleep", "1000"], preexec_fn=self.enter) as container_process:
            state = {"ociVersion": "1.0.2", "id": name, "status": "creating", "pid": container_process.pid,
                     "bundle": str(bundle.path), "annotations": bundle.annotations}
            command = [harness.HOOK, "--config", self.podqos.config(), "createRuntime"]
            done = subprocess.run(command, input=json.dumps(state).encode(), capture_output=True, check=False,
                                  preexec_fn=self.enter)
            container_process.kill()
        self.assertEqual(self.machine.snapshot(self.elsewhere), before)
        self.assertIn(f"cgroup {self.elsewhere} is the runtime's own", done.stderr.decode())
        self.podqos.hook("poststop", self.poststop_state(name, bundle))
        self.assert_nothing_left()


@harness.for_each_runtime
class Poststop(HookCase):
    """poststop may come for a container that nobody knows, or before the process has ended; soak_test.py has the rest."""

    def test_of_an_unknown_container_waits_for_nobody(self):
        """Nor does it leave anything."""
        name, _, _ = self.launch_hooked()
        state = {"ociVersion": "1.0.2", "id": "nobody-knows-me", "status": "stopped", "pid": 0, "bundle": "/nowhere"}
        with open(self.podqos.state / "lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = self.podqos.hook("poststop", state, kind=self.kind)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.plain.delete(name)
        self.assert_nothing_left()

    def test_waits_for_a_process_that_is_slow_to_end(self):
        """Its runtime has killed it and waits no longer; what is left of it still counts for its pod."""
        name, pid, bundle = self.launch_hooked(stages=("createRuntime",))
        with concurrent.futures.ThreadPoolExecutor() as others:
            with machines.held_at_exit(pid):
                done = others.submit(self.podqos.hook, "poststop", self.poststop_state(name, bundle), kind=self.kind)
                self.assertRaises(concurrent.futures.TimeoutError, done.result, timeout=1)
            self.assertEqual(done.result().stderr, "")
        self.assertEqual(self.podqos.records(), [])
        self.plain.delete(name)
        self.assert_nothing_left()

    def test_ends_a_container_whose_process_never_ends(self):
        """A runtime waits for its hook, and kills it at last: before that the container is taken out of its pod."""
        bundle, name = self.bundle(POD, "app"), self.container_id("app")
        pid = self.wrapper.launch(name, bundle)
        with machines.held_at_exit(pid):
            done = self.podqos.hook("poststop", self.poststop_state(name, bundle), kind=self.kind)
            self.assertEqual(done.stderr, "")
            counted = [pod["containers"] for pod in self.podqos.ctl_json("status", kind=self.kind)["pods"]]
            self.assertEqual(counted, [[]])
        self.plain.delete(name)
        self.podqos.ctl("reconcile", kind=self.kind)
        self.assert_nothing_left()


@harness.runc_only
class RootAsBundle(harness.TestCase):
    """crun tells hooks of a container with user namespace and devices that its bundle is "/" (crun#2025)."""

    settings = {"onError": "reject"}

    def test_is_known_by_its_id(self):
        name, pid = self.launch(POD, "app")
        state = {"ociVersion": "1.0.2", "id": name, "status": "created", "pid": pid, "bundle": "/",
                 "annotations": self.podqos.annotations(POD, "app")}
        self.podqos.hook("createRuntime", state, kind=self.kind)
        [known] = self.podqos.ctl_json("status")["pods"]
        self.assertEqual([c["id"] for c in known["containers"]], [name])
        self.plain.delete(name)
        self.podqos.hook("poststop", {**state, "status": "stopped", "pid": 0}, kind=self.kind)
        self.assert_nothing_left()


@harness.for_each_runtime
class Precreate(HookCase):
    """precreate edits the config on its way from stdin to stdout, before a runtime acts: Podman's way."""

    def test_payload_of_a_split_cgroup(self):
        """`--cgroups=split`, Quadlet's default: createRuntime confirms the container by the id in the leaf's name."""
        bundle, name = self.hooked_bundle(), self.container_id("app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/libpod-payload-{name}"
        bundle.save()
        done = self.podqos.hook("precreate", bundle.read(), kind=self.kind, cwd=self.tmp)
        bundle.file.write_text(done.stdout, encoding="utf-8")
        pid = self.plain.launch(name, bundle)
        self.assert_placed(pid, self.pod_path("burstable", "hooks-1"))
        [known] = self.podqos.ctl_json("status")["pods"]
        self.assertEqual([c["id"] for c in known["containers"]], [name])
        self.plain.delete(name)
        self.assert_nothing_left()


if __name__ == "__main__":
    harness.main()
