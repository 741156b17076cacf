"""The manifests of packaging/kubernetes: as the chart makes them, held against the API's own schemas, and what they ask for.

The schemas are those of Debian's python3-kubernetes, which are made of Kubernetes' OpenAPI document (1.22).
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import kubernetes_manifests as manifests  # noqa: E402
from package_case import VERSION  # noqa: E402

MODELS = {("v1", "ConfigMap"): "V1ConfigMap", ("apps/v1", "DaemonSet"): "V1DaemonSet",
          ("node.k8s.io/v1", "RuntimeClass"): "V1RuntimeClass"}
# Fields that came later, with the model of their values: Kubernetes 1.30.
LATER = {("V1SecurityContext", "appArmorProfile"): "V1SeccompProfile"}
PLAIN = {"str": str, "int": int, "bool": bool}
UNIT = harness.REPOSITORY / "packaging/systemd/podqos-nri.service"
DEBIANS_MODULES = "/usr/lib/python3/dist-packages"


def api_models():
    """The client's, whichever Python runs this; skips the calling test where it is not installed."""
    if DEBIANS_MODULES not in sys.path:
        sys.path.append(DEBIANS_MODULES)
    try:
        from kubernetes.client import models
    except ImportError as error:
        raise unittest.SkipTest(f"python3-kubernetes: {error}") from error
    return models


def faults(kind, value, path=""):
    """What is wrong with a value of a type of the client's: its fields, their types, and those that must be there."""
    if kind in PLAIN:
        return [] if type(value) is PLAIN[kind] else [f"{path}: {value!r} is no {kind}"]
    if kind == "object":  # an IntOrString
        return [] if isinstance(value, (int, str)) else [f"{path}: {value!r} is neither a number nor a text"]
    if repeated := re.fullmatch(r"list\[(.+)\]", kind):
        return [fault for number, each in enumerate(value) for fault in faults(repeated[1], each, f"{path}[{number}]")]
    if table := re.fullmatch(r"dict\(str, (.+)\)", kind):
        return [fault for name, each in value.items() for fault in faults(table[1], each, f"{path}.{name}")]
    model = getattr(api_models(), kind)
    attributes = {field: name for name, field in model.attribute_map.items()}
    found = []
    for field, each in value.items():
        if field in attributes:
            found += faults(model.openapi_types[attributes[field]], each, f"{path}.{field}")
        elif (kind, field) in LATER:
            found += faults(LATER[kind, field], each, f"{path}.{field}")
        else:
            found.append(f"{path}.{field}: {kind} has no such field")
    try:
        model(**{attributes[field]: each for field, each in value.items() if field in attributes})
    except ValueError as refused:
        found.append(f"{path}: {refused}")
    return found


def one(objects, kind):
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


class Plain(unittest.TestCase):
    """What is applied without Helm."""

    @classmethod
    def setUpClass(cls):
        cls.runtimes = {name: manifests.plain(name) for name in ("containerd", "cri-o")}
        cls.daemon_set = one(cls.runtimes["containerd"], "DaemonSet")
        cls.pod = cls.daemon_set["spec"]["template"]["spec"]
        (cls.container,) = cls.pod["containers"]

    def test_has_what_the_api_knows(self):
        for name, objects in self.runtimes.items():
            self.assertEqual(sorted(each["kind"] for each in objects), ["ConfigMap", "DaemonSet", "RuntimeClass"])
            for each in objects:
                model = MODELS[each["apiVersion"], each["kind"]]
                self.assertEqual(faults(model, each, f"{name}: {each['kind']}"), [])

    def test_runtimes_differ_in_the_handler_only(self):
        handlers = {name: one(objects, "RuntimeClass")["handler"] for name, objects in self.runtimes.items()}
        self.assertEqual(handlers, {"containerd": "runc", "cri-o": "crun"})
        same = [[each | {"handler": None} for each in objects] for objects in self.runtimes.values()]
        self.assertEqual(same[0], same[1])
        self.assertEqual(one(self.runtimes["cri-o"], "RuntimeClass")["scheduling"]["nodeSelector"],
                         self.pod["nodeSelector"])

    def test_may_do_what_the_unit_may_and_join_the_cgroups_of_the_host(self):
        kept = re.search(r"^CapabilityBoundingSet=(.+)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)[1].split()
        self.assertEqual(self.container["securityContext"], {
            "privileged": False, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "runAsUser": 0, "runAsGroup": 0,
            "capabilities": {"drop": ["ALL"],
                             "add": sorted([*(name.removeprefix("CAP_") for name in kept), "SYS_PTRACE"])},
            "seccompProfile": {"type": "RuntimeDefault"}, "appArmorProfile": {"type": "Unconfined"},
            "seLinuxOptions": {"type": "spc_t"}})

    def test_reaches_no_more_of_the_node(self):
        """Every field of the pod that opens something."""
        self.assertEqual({name: value for name, value in self.pod.items() if name.startswith("host")}, {"hostPID": True})
        self.assertIs(self.pod["automountServiceAccountToken"], False)
        self.assertNotIn("serviceAccountName", self.pod)
        sources = {each["name"]: each.get("hostPath", {}).get("path", each.get("configMap", {}).get("name"))
                   for each in self.pod["volumes"]}
        mounts = {(sources[each["name"]], each["mountPath"], each.get("readOnly", False))
                  for each in self.container["volumeMounts"]}
        self.assertEqual(mounts, {("podqos", "/etc/podqos", True), ("/var/run/nri", "/var/run/nri", True),
                                  ("/sys/fs/cgroup", "/sys/fs/cgroup", False), ("/run/podqos", "/run/podqos", False),
                                  ("/run/systemd", "/run/systemd", False)})
        self.assertEqual({name for name, value in self.container.items() if value},
                         {"name", "image", "imagePullPolicy", "ports", "livenessProbe", "readinessProbe",
                          "resources", "securityContext", "volumeMounts"})

    def test_is_there_before_others_and_stays(self):
        self.assertEqual(self.pod["priorityClassName"], "system-node-critical")
        self.assertEqual(self.pod["tolerations"], [{"operator": "Exists"}])
        self.assertEqual(self.daemon_set["spec"]["updateStrategy"],
                         {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
        self.assertNotIn("cpu", self.container["resources"]["limits"])
        self.assertEqual(self.daemon_set["spec"]["template"]["metadata"]["annotations"]["podqos.io/ignore"], "true")

    def test_runs_the_image_that_is_built(self):
        self.assertEqual(self.container["image"], f"localhost/podqos-nri:{VERSION}")
        chart = manifests.parse((manifests.MANIFESTS / "chart/Chart.yaml").read_text(encoding="utf-8"))[0]
        self.assertEqual((chart["version"], chart["appVersion"], manifests.values()["image"]["tag"]), (VERSION,) * 3)

    def test_is_asked_where_it_answers(self):
        """Probes and the PodMonitor, whose form is the Prometheus operator's."""
        self.assertEqual(json.loads(self.config()), {"nri": {"metrics": "0.0.0.0:9464"}, "log": {"sink": "stderr"}})
        (port,) = self.container["ports"]
        self.assertEqual(port["containerPort"], 9464)
        asked = {probe: self.container[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe")}
        self.assertEqual(asked, {"livenessProbe": {"path": "/healthz", "port": port["name"]},
                                 "readinessProbe": {"path": "/readyz", "port": port["name"]}})
        (monitor,) = manifests.plain("podmonitor")
        self.assertEqual((monitor["apiVersion"], monitor["kind"]), ("monitoring.coreos.com/v1", "PodMonitor"))
        self.assertEqual(monitor["spec"]["selector"], self.daemon_set["spec"]["selector"])
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        self.assertEqual((endpoint["port"], endpoint["path"]), (port["name"], "/metrics"))

    def test_the_configuration_is_valid(self):
        """As podqosctl reads it."""
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="podqos-test-", suffix=".json") as file:
            file.write(self.config())
            file.flush()
            done = subprocess.run([guest.BIN / "podqosctl", "config", "check", file.name],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def config(self):
        return one(self.runtimes["containerd"], "ConfigMap")["data"]["podqos.json"]


class Helm(unittest.TestCase):
    """The chart, by the template engine and the functions that Helm has."""

    @classmethod
    def setUpClass(cls):
        guest.require_tools("go")
        if not pathlib.Path("/usr/share/gocode/src/github.com/Masterminds/sprig").exists():
            raise unittest.SkipTest("golang-github-masterminds-sprig-dev is not installed")
        cls.chart = manifests.Chart()
        cls.addClassCleanup(cls.chart.close)

    def test_makes_the_plain_manifests(self):
        made = {f"{name}.yaml": text for name, text in self.chart.plain().items()}
        there = {path.name: path.read_text(encoding="utf-8") for path in manifests.MANIFESTS.glob("*.yaml")}
        self.assertEqual(made, there, "the chart has changed: run tests/lib/kubernetes_manifests.py")

    def test_makes_what_is_asked_for(self):
        monitored = self.chart.render(runtimeClass={"create": False}, podMonitor={"create": True})
        self.assertEqual(sorted(each["kind"] for each in monitored), ["ConfigMap", "DaemonSet", "PodMonitor"])

    def test_every_value_counts(self):
        """Another value makes another manifest."""
        plain = self.chart.render(podMonitor={"create": True})
        given = {
            "image": [{"repository": "other/image"}, {"tag": "v2"}, {"pullPolicy": "Always"}],
            "imagePullSecrets": [[{"name": "mine"}]], "config": [{"scope": "annotated"}], "metricsPort": [9465],
            "nriDirectory": ["/run/nri"], "nodeSelector": [{"pool": "qos"}], "tolerations": [[]],
            "priorityClassName": ["mine"], "resources": [{"requests": {"cpu": "1"}}],
            "updateStrategy": [{"rollingUpdate": {"maxSurge": "10%"}}],
            "runtimeClass": [{"create": False}, {"name": "qos"}, {"handler": "kata"}],
            "podMonitor": [{"create": False}, {"create": True, "interval": "1m"}],
        }
        self.assertEqual(set(given), set(manifests.values()))
        for name, others in given.items():
            for value in others:
                rendered = self.chart.render(**{"podMonitor": {"create": True}, name: value})
                self.assertNotEqual(rendered, plain, f"{name}: {value}")

    def test_a_change_of_the_configuration_is_rolled_out(self):
        changed = self.chart.render(config={"scope": "annotated"})
        marks = {one(objects, "DaemonSet")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
                 for objects in (self.chart.render(), changed)}
        self.assertEqual(len(marks), 2)


if __name__ == "__main__":
    harness.main(("runc",))
