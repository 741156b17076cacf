"""CRI-O's pods, as CRI-O 1.36 describes them: container.go and sandbox_run_linux.go under internal/factory and server."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402

UID = "0c5d3c4e-6a51-4ad2-8f41-0a5a3a4b7d11"


class CrioCase(harness.TestCase):
    """`self.metadata` is what the client has named; `self.parent` is the pod's cgroup parent, if there is one.

    Each container has a memory limit of 1 GiB from the client.
    """

    parent = None

    def setUp(self):
        machine = machines.Machine()
        if not machine.exists("/crio"):
            # Runs last: when the containers have gone.
            self.addCleanup(machine.remove, "/crio")
        super().setUp()
        self.metadata = ("web", "default", UID)
        self.pod_annotations = {"podqos.io/requests": "cpu=150m,memory=1Gi"}
        self.sandbox = self.container_id("sandbox")
        self.identifiers = {}  # of what launch_pod has launched, by name

    def sandbox_bundle(self):
        """server/sandbox_run_linux.go, runPodSandbox: populateSandboxLabels completes the client's labels."""
        name, namespace, uid = self.metadata
        labels = {"io.kubernetes.container.name": "POD", "io.kubernetes.pod.name": name,
                  "io.kubernetes.pod.namespace": namespace, "io.kubernetes.pod.uid": uid}
        bundle = self.bundle(label="sandbox")
        bundle.annotations.update({
            "io.container.manager": "cri-o",
            "io.kubernetes.cri-o.Annotations": json.dumps(self.pod_annotations),
            "io.kubernetes.cri-o.CgroupParent": self.parent or "",
            "io.kubernetes.cri-o.ContainerID": self.sandbox,
            "io.kubernetes.cri-o.ContainerType": "sandbox",
            "io.kubernetes.cri-o.KubeName": name,
            "io.kubernetes.cri-o.Labels": json.dumps(labels),
            "io.kubernetes.cri-o.Namespace": namespace,
            "io.kubernetes.cri-o.PodLinuxResources": "null",
            "io.kubernetes.cri-o.SandboxID": self.sandbox,
            "io.kubernetes.cri-o.SandboxName": self.sandbox_name(),
        })
        bundle.annotations.update(self.pod_annotations)
        bundle.annotations.update(labels)
        storage = "/run/containers/storage/overlay-containers"
        bundle.annotations["io.kubernetes.cri-o.HostnamePath"] = f"{storage}/{self.sandbox}/userdata/hostname"
        bundle.config["process"]["oomScoreAdj"] = max(-998, machines.lowest_oom_score())
        bundle.resources.setdefault("cpu", {})["shares"] = 2
        bundle.config["linux"]["cgroupsPath"] = self.cgroups_path(self.sandbox, sandbox=True)
        return bundle.save()

    def app_bundle(self, identifier, container="app"):
        """internal/factory/container/container.go, SpecAddAnnotations, for a client that sends no labels."""
        bundle = self.bundle(label=container)
        bundle.annotations.update(self.pod_annotations)
        bundle.annotations.update({
            "io.container.manager": "cri-o",
            "io.kubernetes.cri-o.ContainerID": identifier,
            "io.kubernetes.cri-o.ContainerType": "container",
            "io.kubernetes.cri-o.Labels": "null",
            "io.kubernetes.cri-o.Name": f"k8s_{container}_{'_'.join(self.metadata)}_0",
            "io.kubernetes.cri-o.SandboxID": self.sandbox,
            "io.kubernetes.cri-o.SandboxName": self.sandbox_name(),
        })
        bundle.resources.setdefault("memory", {})["limit"] = harness.GI
        bundle.config["linux"]["cgroupsPath"] = self.cgroups_path(identifier)
        return bundle.save()

    def sandbox_name(self):
        return f"k8s_{'_'.join(self.metadata)}_0"

    def cgroups_path(self, identifier, sandbox=False):
        """internal/config/cgmgr/cgroupfs_linux.go: only containers have a parent where the client names none."""
        if self.parent is None and sandbox:
            return f"crio-{identifier}"
        return f"{self.parent or '/crio'}/crio-{identifier}"

    def launch_pod(self, *containers):
        """The pids of the sandbox and of the containers."""
        return [self.wrapper.launch(self.sandbox, self.sandbox_bundle()), *map(self.launch, containers)]

    def launch(self, name):
        """The pid of one more container."""
        self.identifiers[name] = self.container_id(name)
        return self.wrapper.launch(self.identifiers[name], self.app_bundle(self.identifiers[name], name))

    def pods(self):
        return [name for name in self.podqos.records() if name.startswith("pods/")]


@harness.for_each_runtime
class WithoutLabels(CrioCase):
    """Sandbox and containers are one pod, whose requests count once."""

    def setUp(self):
        super().setUp()
        self.parent = self.elsewhere

    def test_names_tell_the_pod(self):
        """Those that CRI-O makes; where they do not, the sandbox leads to it."""
        for name in ("web", "web_front"):
            with self.subTest(name):
                self.metadata = (name, "default", UID)
                pids = self.launch_pod("app", "log")
                self.assertEqual(self.pods(), [f"pods/{UID}.json"])
                for pid in pids:
                    self.assert_placed(pid, self.pod_path("burstable", UID))
                # 150m are 153 shares; 100 % of 32Gi are reserved, of which the pod has requested one.
                self.assert_values(self.tier_path("burstable"), shares=153)
                self.assert_values(self.tier_path("besteffort"), memory=31 * harness.GI)
                self.wrapper.delete_all()
                self.assert_nothing_left()

    def test_what_limits_back_counts_while_their_containers_live(self):
        """A pod's author writes its annotations: memory is kept for it as far as the engine's limits back the claim. The
        sandbox backs nothing; before a container has come, what their limits back is not known."""
        self.pod_annotations = {"podqos.io/requests": "cpu=16,memory=32Gi"}
        self.launch_pod()
        self.assertEqual(self.warnings(), [])
        self.launch("app")
        self.assertEqual(len(self.warnings()), 1)
        self.assertEqual(self.podqos.log_text().count("is reserved, the sum"), 1)
        self.launch("log")
        self.assert_values(self.tier_path("besteffort"), memory=30 * harness.GI)
        self.podqos.ctl("reconcile")
        self.assert_values(self.tier_path("besteffort"), memory=30 * harness.GI)
        self.wrapper.delete(self.identifiers["log"])
        self.assert_values(self.tier_path("besteffort"), memory=31 * harness.GI)
        self.assertEqual(len(self.warnings()), 1)

    def warnings(self):
        return [warning for warning in self.podqos.ctl_json("status")["warnings"] if "is reserved, the sum" in warning]


@harness.for_each_runtime
class StaysAtCrio(CrioCase):
    """The client names no cgroup parent: CRI-O puts the containers into /crio, and looks for them there. By default such a
    pod stays there, is counted, and has the values of its containers."""

    def setUp(self):
        super().setUp()
        self.pod_annotations["podqos.io/limits"] = "memory=2Gi"

    def assert_stays(self, pid, identifier):
        self.assertEqual(machines.cgroup_of(pid), f"/crio/crio-{identifier}")

    def test_the_wrapper_leaves_the_path(self):
        name = self.container_id("app")
        pid = self.wrapper.launch(name, self.app_bundle(name))
        self.assert_stays(pid, name)
        self.assertEqual(self.pods(), [f"pods/{UID}.json"])
        self.assert_values(self.tier_path("burstable"), shares=153)
        self.assert_values(self.tier_path("besteffort"), memory=31 * harness.GI)
        self.assert_told(name)
        self.assertEqual(self.podqos.log_text().count("no cgroup parent"), 1)
        self.assertNotIn("the runtime put it into", self.podqos.log_text())

    def assert_told(self, name):
        """What to do is in the log, and in what status says."""
        warnings = self.podqos.ctl_json("status")["warnings"]
        for text in (self.podqos.log_text(), "\n".join(warnings)):
            self.assertIn(f"the cgroup parent {self.pod_path('burstable', UID)}", text)
        self.assertTrue(any(name in warning and "/crio/crio-" in warning for warning in warnings), warnings)

    def test_the_hooks_leave_it_there(self):
        """Whatever onMisplaced says: it is not misplaced."""
        for policy in ("rewrite", "fail"):
            with self.subTest(onMisplaced=policy):
                self.podqos.settings["placement"] = {"onMisplaced": policy}
                name = self.container_id("app")
                bundle = self.app_bundle(name)
                path = self.register_hooks(bundle).config["linux"]["cgroupsPath"]
                pid = self.plain.launch(name, bundle)
                self.assert_stays(pid, name)
                self.assertEqual(bundle.reload().config["linux"]["cgroupsPath"], path)
                self.assertEqual(self.pods(), [f"pods/{UID}.json"])
                self.plain.delete(name)

    def test_a_cgroup_parent_is_the_remedy(self):
        self.parent = self.pod_path("burstable", UID)
        name = self.container_id("app")
        self.assert_placed(self.wrapper.launch(name, self.app_bundle(name)), self.parent)
        self.assertEqual(self.podqos.ctl_json("status")["warnings"], [])


if __name__ == "__main__":
    harness.main()
