#!/usr/bin/env python3
"""podqosctl explain and annotate answer as Kubernetes would: every row of the vectors, through the program.

Run with PODQOS_BIN naming the directory of the programs, or with --bin DIR.
"""

import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

from podqosctl import BIN, ROOT, config_file, ctl  # noqa: E402

VECTORS = ROOT / "tests" / "data" / "kubernetes"


def rows(name, count):
    """The rows of a vector file, which must have as many as expected: an empty file proves nothing."""
    found = [json.loads(line) for line in (VECTORS / f"{name}.jsonl").read_text().splitlines()]
    assert len(found) == count, f"{name}: {len(found)} rows"
    return found


def batch(lines):
    """The answers to JSON objects, one for each line."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    answers = [json.loads(line) for line in ctl("explain", "--batch", stdin=text).stdout.splitlines()]
    assert len(answers) == len(lines), f"{len(answers)} answers to {len(lines)} lines"
    return answers


def explain(pod, *options, check=True):
    """`explain` of one pod."""
    return ctl("explain", "-f", "-", *options, stdin=json.dumps(pod), check=check)


def pod_with(*containers, **spec):
    """POD with other containers and further fields of its spec."""
    return {**POD, "spec": {"containers": list(containers), **spec}}


def sums(expected):
    return {"cpuMilli": expected["cpuMilli"], "memoryBytes": expected["memoryBytes"]}


def annotated(pod, /, **annotations):
    """The pod with podqos.io/ annotations, whose names have "_" for "-"."""
    keys = {f"podqos.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return {**pod, "metadata": {**pod["metadata"], "annotations": keys}}


class Pods(unittest.TestCase):
    """Every value of every pod equals what Kubernetes 1.36's own code gave."""

    maxDiff = None

    def test_all_rows(self):
        vectors = rows("pods", 437)
        asked = [{k: row[k] for k in ("id", "pod", "nodeMemoryBytes", "params")} for row in vectors]
        for row, got in zip(vectors, batch(asked)):
            want = row["expect"]
            with self.subTest(row["id"]):
                self.assertNotIn("error", got)
                self.assertEqual(got["id"], row["id"])
                for name in ("qosClass", "cpuShares", "cpuQuotaUs", "cpuPeriodUs", "memoryLimitBytes", "hugetlb",
                             "unified", "oomScoreAdj", "cgroupfs", "systemd"):
                    self.assertEqual(got[name], want[name], name)
                weights = {"linear": want["cpuWeightLinear"], "log": want["cpuWeightLog"]}
                self.assertEqual(got["cpuWeight"], weights)
                self.assertEqual(got["podRequests"], sums(want["podRequests"]))
                self.assertEqual(got["podLimits"], sums(want["podLimits"]))

    def test_each_containers_own_values(self):
        """0 stands for "none" in the vectors. Whether pages are limited to nothing or not at all, they do not tell."""
        vectors = [row for row in rows("containers", 200) if row["valid"]]
        asked = [{"id": row["id"], "pod": row["pod"], "nodeMemoryBytes": row["nodeMemoryBytes"],
                  "params": {"enforceCPULimits": row["params"]["cpuCFSQuota"], "podPidsLimit": 77}} for row in vectors]
        self.assertGreater(len(asked), 100)
        for row, got in zip(vectors, batch(asked)):
            with self.subTest(row["id"]):
                self.assertNotIn("error", got)
                want = row["expectContainersDefaulted"]
                self.assertEqual(set(got["containers"]), set(want))
                for name, values in got["containers"].items():
                    self.assertEqual(values["cpuShares"], want[name]["cpuShares"])
                    self.assertEqual(values["cpuQuotaUs"], want[name]["cpuQuotaUs"] or None)
                    self.assertEqual(values["cpuPeriodUs"], want[name]["cpuPeriodUs"] if values["cpuQuotaUs"] else None)
                    self.assertEqual(values["memoryLimitBytes"], want[name]["memoryLimitBytes"] or None)
                    self.assertEqual(values["pidsLimit"], 77)
                    self.assertEqual({size: values["hugetlb"].get(size, 0) for size in ("2MB", "1GB")},
                                     want[name]["hugepages"])

    def test_what_the_api_server_refuses(self):
        vectors = rows("pods_invalid", 40)
        for row, got in zip(vectors, batch(vectors)):
            with self.subTest(row["id"]):
                self.assertEqual(set(got), {"id", "error"})
                self.assertEqual(got["id"], row["id"])
                self.assertTrue(got["error"])

    def test_tiers(self):
        vectors = rows("tiers", 100)
        for row, got in zip(vectors, batch(vectors)):
            want = row["expect"]
            with self.subTest(row["id"]):
                self.assertNotIn("error", got)
                for tier in ("burstable", "besteffort"):
                    limit = want[f"{tier}MemoryLimit"]
                    self.assertEqual(got["tiers"][tier], {
                        "cpuShares": want[f"{tier}CpuShares"],
                        "memoryLimitBytes": None if limit is None else max(limit, 0)})
                self.assertEqual(got["memoryQoSUnified"], want["memoryQoSUnified"])


POD = {"kind": "Pod", "metadata": {"name": "p", "namespace": "default", "uid": "u-1"},
       "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}}}]}}


class Batch(unittest.TestCase):
    """A line that cannot be answered gets an error of its own, in its place, and the run goes on."""

    def test_order_ids_and_errors(self):
        """In the order of the lines, with the id byte for byte, and an error that names what is wrong."""
        good = {"pod": POD, "nodeMemoryBytes": 1 << 33}
        tier = {"pods": [], "reservePercent": 50, "allocatableMemoryBytes": 1}
        page_size = "hugePageSizes: expected a page size as in the kernel's file names, such as 2MB, found "
        json_ = "the line: malformed JSON at byte "
        cases = [
            ('{"id": {"x": [1.0e2, null]}, "pod": 5, "nodeMemoryBytes": 1}', '{"x": [1.0e2, null]}', "expected"),
            ("", "null", json_ + "1: "), ("nonsense", "null", json_ + "1: "), ("{", "null", json_ + "2: "),
            ('{"id": 1,}', "null", json_ + "10: "), ('{"id":"\xff' + "x" * 100, "null", json_),
            ("[" * 100_000, "null", "the line: JSON nested deeper than 64 levels at byte 65"),
            (good, "null", None), ({"id": 1, **good}, "1", None)]
        cases += [(line, "null", error) for line, error in (
            ({"pod": POD}, "nodeMemoryBytes is missing"),
            ({**good, "nodeMemoryBytes": 0}, "nodeMemoryBytes: expected a whole number of at least 1, found 0"),
            ({"ok": 1}, 'expected an object with "pod" or "pods"'), ({"pods": {}}, "pods: expected a list"),
            ({**good, "pod": {**POD, "metadata": {"uid": "../../etc"}}}, "metadata.uid"),
            ({**good, "pod": {**POD, "spec": {"containers": []}}}, "spec.containers: "),
            ({**good, "pod": {**POD, "spec": {}}}, "spec.containers: "),
            ({"pods": [], "reservePercent": 50}, "allocatableMemoryBytes is missing"),
            ({**tier, "allocatableMemoryBytes": -1}, "allocatableMemoryBytes: expected a whole number of at least 0, found -1"),
            ({**tier, "reservePercent": 101}, "reservePercent: expected a whole number from 0 to 100, found 101"))]
        cases += [({**good, "params": params}, "null", error) for params, error in (
            ([], "params: expected an object"), ({"cgroupRoot": 1}, "cgroupRoot: expected a string, found 1"),
            ({"memoryReservationPolicy": "Some"}, "memoryReservationPolicy: expected one of"),
            ({"hugePageSizes": "2MB"}, 'like ["2MB"], found "2MB"'), ({"hugePageSizes": [2]}, page_size + "2"),
            ({"cpuPeriodus": 1}, "unknown member cpuPeriodus; did you mean cpuPeriodUs?"),
            ({"xyzzy": 1}, "unknown member xyzzy; expected one of cgroupRoot, "),
            ({"podPidsLimit": "many"}, 'whole number of 64 bits, found "many"'),
            *(({"hugePageSizes": [size]}, f'{page_size}"{size}"') for size in ("2M", "../../x", "0MB", "1024KB", "B")))]
        lines = [line if isinstance(line, str) else json.dumps(line) for line, _, _ in cases]
        done = ctl("explain", "--batch", stdin="".join(line + "\n" for line in lines))
        for line, (_, given, error), answer in zip(lines, cases, done.stdout.splitlines(), strict=True):
            with self.subTest(line[:80]):
                self.assertTrue(answer.startswith(f'{{"id":{given},'), answer)
                self.assertIn(error or "cpuShares", json.loads(answer).get("error", answer))

    def test_memory_that_nobody_knows_reserves_nothing(self):
        got = batch([{"id": 1, "pods": [], "allocatableMemoryBytes": None, "reservePercent": 50}])[0]
        self.assertIsNone(got["tiers"]["burstable"]["memoryLimitBytes"])

    def test_the_last_line_needs_no_newline(self):
        done = ctl("explain", "--batch", stdin=json.dumps({"id": 7, "pod": POD, "nodeMemoryBytes": 1 << 33}))
        self.assertEqual(json.loads(done.stdout)["qosClass"], "Guaranteed")

    def test_lines_up_to_four_mebibytes(self):
        line = json.dumps({"id": 1, "pod": POD, "nodeMemoryBytes": 1 << 33})
        fits = line + " " * ((4 << 20) - len(line))
        too_long = json.dumps({"id": "x" * (5 << 20)})
        done = ctl("explain", "--batch", stdin=f"{fits}\n{too_long}\n{line}\n")
        answers = [json.loads(answer) for answer in done.stdout.splitlines()]
        self.assertEqual([("error" in a) for a in answers], [False, True, False])

    def test_each_answer_comes_at_once(self):
        with subprocess.Popen([BIN / "podqosctl", "explain", "--batch"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process:
            for number in range(3):
                process.stdin.write(json.dumps({"id": number, "pod": POD, "nodeMemoryBytes": 1 << 33}) + "\n")
                process.stdin.flush()
                self.assertEqual(json.loads(process.stdout.readline())["id"], number)
            process.stdin.close()
            self.assertEqual(process.wait(), 0)

    def test_hugepage_sizes_and_weight_formula(self):
        params = {"hugePageSizes": ["64KB"], "weightFormula": "log", "podPidsLimit": 10}
        got = batch([{"id": 1, "pod": POD, "nodeMemoryBytes": 1 << 33, "params": params}])[0]
        self.assertEqual(got["writes"]["cgroupfs"], {
            "cpu.weight": "17", "cpu.max": "10000 100000", "memory.max": "1073741824", "pids.max": "10",
            "hugetlb.64KB.max": "0", "hugetlb.64KB.rsvd.max": "0"})


YAML = """\
# a comment that is worth keeping
apiVersion: v1
kind: ConfigMap
metadata: {name: other, labels: {answer: "yes"}}
data:
  script: |
    ---not a separator
    echo hi
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    metadata:
      # why this label
      labels: {app: web}
    spec:
      containers:
      - name: web
        args: ["1", "true", 'it''s']
        resources:
          requests: {cpu: 0.1, memory: 1e9}   # numbers, no strings
          limits: {memory: 2G}
"""


class Explain(unittest.TestCase):
    """For people: the class and why, each value with its rule and source, the writes."""

    def test_json_of_yaml(self):
        done = ctl("explain", "-f", "-", "-o", "json", "--node-memory", "8Gi", "--cgroup-version", "2", stdin=YAML)
        got = json.loads(done.stdout)
        self.assertEqual(got["qosClass"], "Burstable")
        self.assertEqual(got["podRequests"], {"cpuMilli": 100, "memoryBytes": 10**9})
        self.assertIsNone(got["cgroupfs"])
        self.assertEqual(got["writes"]["cgroupfs"]["memory.max"], str(2 * 10**9))

    def test_rows(self):
        """Of a pod with these settings and options, and what is in none. What a container has none of is said, too."""
        main, gibi = {"name": "main"}, {"name": "a", "resources": {"requests": {"memory": "1Gi"}}}
        helper = {"name": "helper", "resources": {"limits": {"cpu": "50m", "memory": "32Mi", "hugepages-2Mi": "4Mi"}}}
        side = {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"memory": "16Mi"}}}
        of_pod = r" +=.*of spec\.resources: the container has none"
        share = ((3 << 30) - (1 << 30) - (16 << 20)) // 2
        score = 1000 - 1000 * ((1 << 30) + share) // (8 << 30)
        oom = rf" +{score} += 1000 - 1000 \* \(1Gi \+ 1016Mi\) / 8Gi, clamped to \[3, 999\]"
        memory_qos = {"memoryReservationPolicy": "TieredReservation", "memoryThrottlingFactor": 0.9}
        v2_files = r"oom\.group|swap\.max"
        for pod, settings, options, rows_of, absent in (
                (POD, {}, ["1"], ["class +Guaranteed ", r"cpu\.shares +102 += floor\(100m \* 1024 / 1000\).*MilliCPUToShares",
                                  "oom_score_adj a +-997 ", "mkdir  /podqos/kubepods/podu-1",
                                  r"write  /podqos/kubepods/podu-1/cpu\.shares = 102"], f"\x1b|{v2_files}"),
                (POD, {}, ["2", "--driver=systemd"],
                 ["property  MemoryMax = 1073741824", r"slice +/podqos\.slice/podqos-kubepods\.slice/podqos-kubepods-podu_1\.slice"], ""),
                (pod_with(main, helper), {"podPidsLimit": 77}, ["2"], [
                    r"cpu\.shares main +2 ", r"cpu quota main +none +=", r"memory limit main +none +=", r"pids\.max main +77 ",
                    r"cpu\.shares helper +51 ", r"cpu quota helper +5000us per 100000us ",
                    r"memory limit helper +32Mi", r"hugetlb 2MB helper +4Mi ", r"pids\.max helper +77 "], ""),
                # Pod-level resources are the one way in which a container gets a limit that it does not have.
                (pod_with(main, resources={"limits": {"cpu": "1", "memory": "1Gi"}}), {}, ["2"], [
                    "cpu quota main +100000us per 100000us" + of_pod, rf"memory limit main +1Gi{of_pod}"], ""),
                (POD, {"cpuCFSQuota": False}, ["2"], ["cpu quota +unlimited += cpuCFSQuota is off"], ""),
                (pod_with(helper), {"cpuBurst": {"guaranteed": "40%"}}, ["2"], [
                    r"cpu burst +2000us +=", r"cpu burst helper +2000us +=", r"write  /podqos.*/cpu\.max\.burst = 2000"],
                 "cpu.idle"),
                (pod_with(main), {"cpuIdle": {"bestEffort": True}}, ["2"], [r"cpu\.idle +1 for the tier +="], "burst"),
                # Annotations ask for less, and for nothing else.
                (annotated(pod_with(helper), cpu_burst="20%", cpu_idle="true"), {"cpuBurst": {"guaranteed": "40%"}}, ["2"], [
                    r"cpu burst +1000us += .*20%\), by podqos\.io/cpu-burst", r"cpu burst helper +1000us +=",
                    r"cpu\.shares +2 += .*podqos\.io/cpu-idle", r"cpu\.idle +1 += podqos\.io/cpu-idle",
                    r"cpu\.shares helper +51 ", r"write  /podqos.*/cpu\.idle = 1", r"write  /podqos.*/cpu\.max\.burst = 1000"], ""),
                (annotated(pod_with(helper), cpu_burst="80%", cpu_idle="false"), {"cpuBurst": {"guaranteed": "40%"}}, ["2"],
                 [r"cpu burst +2000us += .*40%\), by cpuBurst of the configuration", r"cpu\.shares +51 "], "cpu.idle"),
                (annotated(pod_with(helper), cpu_burst="20%"), {}, ["2"], [r"cpu quota +5000us "], "burst"),
                (annotated(pod_with(helper), cpu_burst="20%", cpu_idle="true"),
                 {"cpuBurst": {"guaranteed": "40%"}, "trustAnnotations": "none"}, ["2"], [r"cpu burst +2000us +="], "cpu.idle"),
                (pod_with(gibi, initContainers=[side], resources={"requests": {"memory": "3Gi"}}), {}, ["2"],
                 ["oom_score_adj a" + oom, "oom_score_adj side" + oom], ""),
                (pod_with(gibi), {}, ["2"], [r"memory\.oom\.group a +1 +=", r"memory\.swap\.max a +0 += NoSwap"], ""),
                (POD, {"memorySwap": {"swapBehavior": None}, "singleProcessOOMKill": True}, ["2"], [], v2_files),
                # KEP-2570; the limit of a container without one is what is allocatable, 8Gi: 7.3 * 2^30 is 7838315315.2.
                (pod_with(gibi), memory_qos, ["2"], [
                    r"memory\.low +1073741824 ", r"memory\.low a +1073741824 +=.*TieredReservation",
                    r"memory\.high a +7838314496 += request \+ \(allocatable memory - request\) \* 0\.9"], ""),
                (pod_with(gibi), memory_qos, ["1"], [], r"memory\.(low|high)")):
            with self.subTest(settings=settings, options=options), config_file(**settings) as file:
                text = explain(pod, "--config", file, "--node-memory=8Gi", "--cgroup-version", *options).stdout
                for row in rows_of:
                    self.assertRegex(text, f"(?m)^{row}")
                if absent:
                    self.assertNotRegex(text, absent)

    def test_priority_of_a_class_that_every_cluster_has(self):
        """Admission fills it in, so that a manifest need not name it."""
        def score(name):
            pod = pod_with({"name": "a", "resources": {"requests": {"memory": "48Mi"}}}, priorityClassName=name)
            return json.loads(explain(pod, "-o", "json", "--node-memory", "8Gi").stdout)["oomScoreAdj"]["a"]
        # pkg/kubelet/qos/policy.go has -997 for node-critical pods alone; 48Mi of 8Gi are 5 thousandths.
        self.assertEqual([score(name) for name in ("system-node-critical", "system-cluster-critical", "high")],
                         [-997, 995, 995])

    def test_refusals_and_usage(self):
        done = explain(pod_with({"name": "a", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cpu", done.stderr)
        self.assertEqual(ctl("explain", check=False).returncode, 2)
        self.assertEqual(ctl("explain", "--driver", "magic", "-f", "-", check=False).returncode, 2)
        self.assertEqual(ctl(check=False).returncode, 2)
        self.assertEqual(ctl("explain", "--help").returncode, 0)
        self.assertEqual(ctl("explain", "-f", "/nonexistent", check=False).returncode, 1)
        done = explain(POD, "--driver=systemd", "--cgroup-version=1", check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        for option in ("--output=json", "--driver=systemd", "--cgroup-version=2", "--node-memory=1Gi",
                       "--weight-formula=log", "--color=always"):
            done = ctl("explain", "--batch", option, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), option)
            self.assertIn("--batch", done.stderr)

    def test_warns_of_mistakes_that_kubernetes_accepts(self):
        text = ("kind: Pod\nmetadata: {name: a, annotations: {podqos.io/request: cpu=1}}\n"
                "spec: {containers: [{name: c, resources: {limit: {cpu: 1}, limits: {memory: 256m}}}]}\n")
        for command in (("explain", "-f", "-"), ("explain", "-o", "json", "-f", "-"), ("annotate", "-f", "-"),
                        ("annotate", "-o", "annotations", "-f", "-")):
            with self.subTest(command):
                done = ctl(*command, stdin=text)
                self.assertEqual([line.partition("Pod a: ")[2] for line in done.stderr.splitlines()], [
                    'unknown field "spec.containers[0].resources.limit"; did you mean limits?',
                    'annotation podqos.io/request = "cpu=1": unknown annotation; did you mean podqos.io/requests?',
                    'container "c": memory limit is 0.256 bytes: did you mean 256Mi? Kubernetes rounds it up to '
                    'whole bytes'])
        # Rounded as Kubernetes does: podqos refuses a fraction in an annotation.
        done = ctl("annotate", "-o", "annotations", "-f", "-", stdin=text)
        spec = json.loads(json.loads(done.stdout)["podqos.io/pod"])
        self.assertEqual(spec["containers"][0]["resources"], {"requests": {"memory": "1"}, "limits": {"memory": "1"}})

    def test_annotations_count_before_the_spec(self):
        """As a container with them, which `podman kube play` makes of the manifest, is placed."""
        spec = {"name": "a", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
        other = json.dumps({"containers": [{"name": "a", "resources": {"requests": {"cpu": "100m"}}}]})
        for annotations, want, warning in (
                ({"requests": "cpu=250m,memory=64Mi", "limits": "memory=256Mi"},
                 ("Burstable", "podqos.io/requests, limits", 250, 64 << 20), ""),
                ({"requests.a": "cpu=250m"}, ("Burstable", "podqos.io/requests, limits", 250, None), ""),
                ({"cpu_request": "250m"}, ("Burstable", "podqos.io/requests, limits", 250, 1 << 30), ""),
                ({"qos_class": "BestEffort"}, ("BestEffort", "podqos.io/qos-class", 1000, 1 << 30), ""),
                ({"requests": "cpu=250m", "qos_class": "Guaranteed"},
                 ("Burstable", "podqos.io/requests, limits", 250, 1 << 30), "podqos.io/qos-class \"Guaranteed\" refused"),
                ({"pod": other, "requests": "cpu=250m"}, ("Burstable", "podqos.io/pod", 100, None),
                 "run podqosctl annotate on the manifest again"),
                # More than the engine gives it counts for nothing.
                ({"requests.a": "memory=2Gi"}, ("Burstable", "inference", 1000, 1 << 30), "exceeds the engine's limit"),
                ({"limits": "memory=64"}, ("Burstable", "podqos.io/requests, limits", 1000, 64), "did you mean 64Mi?"),
        ):
            with self.subTest(annotations):
                done = explain(annotated(pod_with(spec), **annotations), "-o", "json")
                got = json.loads(done.stdout)
                self.assertEqual((got["qosClass"], got["source"], got["podRequests"]["cpuMilli"],
                                  got["podRequests"]["memoryBytes"]), want)
                self.assertIn(warning, done.stderr)
                self.assertEqual(bool(warning), bool(done.stderr), done.stderr)

    def test_node_memory_must_be_above_zero(self):
        for amount, why in (("0", ""), ("-1Gi", ""), ("32m", "32m is 0.032 bytes: did you mean 32Mi?")):
            done = explain(POD, f"--node-memory={amount}", check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"--node-memory: {why}", done.stderr)
            self.assertNotIn("nodeMemoryBytes", done.stderr)

    def test_a_list_is_its_items(self):
        text = json.dumps({"kind": "List", "items": [POD, {"kind": "Service"}, {**POD, "metadata": {"name": "q"}}]})
        got = json.loads(ctl("explain", "-f", "-", "-o", "json", stdin=text).stdout)
        self.assertEqual([one["qosClass"] for one in got], ["Guaranteed", "Guaranteed"])
        self.assertIn("Pod q", ctl("explain", "-f", "-", stdin=text).stdout)

    def test_no_colour_on_a_dumb_terminal(self):
        for term, coloured in (("dumb", False), ("xterm", True)):
            shown, terminal = os.openpty()
            environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
            subprocess.run([BIN / "podqosctl", "explain", "-f", "-", "--cgroup-version", "2"], stdout=terminal,
                           input=json.dumps(POD).encode(), env={**environment, "TERM": term}, check=True)
            with self.subTest(term):
                self.assertEqual(b"\x1b[" in os.read(shown, 1 << 16), coloured)
            os.close(shown)
            os.close(terminal)

    def test_hostile_yaml(self):
        for text in ("a: &a [x]\n" + "b: [*a, *a]\n" * 50_000, "a: " + "[" * 10_000, "<<: a"):
            with self.subTest(text[:20]):
                done = ctl("explain", "-f", "-", stdin=text, check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertTrue(done.stderr.startswith("podqosctl: standard input: "), done.stderr)


class Annotate(unittest.TestCase):
    """The manifest stays what it was, but for the annotations."""

    def annotated(self, text):
        return ctl("annotate", "-f", "-", stdin=text).stdout

    def test_yaml_keeps_comments_and_other_documents(self):
        out = self.annotated(YAML)
        lines = out.splitlines()
        added = [line for line in lines if line not in YAML.splitlines()]
        self.assertEqual([line for line in lines if line not in added], YAML.splitlines())
        self.assertEqual(len(added), 2)
        self.assertEqual(added[0], "      annotations:")
        key, value = added[1].strip().split(": ", 1)
        self.assertEqual(key, "podqos.io/pod")
        spec = json.loads(value.strip("'"))
        self.assertEqual(spec["containers"][0]["resources"]["limits"]["memory"], "2000000000")
        self.assertEqual(self.annotated(out), out)

    def test_each_item_of_a_list(self):
        value = {"kind": "List", "apiVersion": "v1", "items": [POD, {"kind": "Service", "spec": {}}, POD]}
        for text in (json.dumps(value, indent=2), "# pods\nkind: List\nitems:\n- " + json.dumps(POD) + "\n"):
            out = self.annotated(text)
            self.assertEqual(out.count("podqos.io/pod-uid"), text.count('"Pod"'))
            self.assertEqual(self.annotated(out), out)
        one = json.dumps({"kind": "List", "items": [POD]})
        got = json.loads(ctl("annotate", "-f", "-", "-o", "annotations", stdin=one).stdout)
        self.assertEqual(got["podqos.io/pod-uid"], "u-1")
        two = ctl("annotate", "-f", "-", "-o", "annotations", stdin=json.dumps(value), check=False)
        self.assertIn("exactly one pod", two.stderr)

    def test_what_cannot_be_edited_is_refused_with_the_lines(self):
        text = ("x: &m {name: p}\nkind: Pod\nmetadata: *m\nspec: {containers: [{name: a}]}\n")
        done = ctl("annotate", "-f", "-", stdin=text, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("Pod p: cannot be edited in place", done.stderr)
        self.assertTrue(done.stderr.endswith(
            "by hand:\nmetadata.annotations:\n  podqos.io/pod: '{\"metadata\":{\"name\":\"p\"},"
            "\"containers\":[{\"name\":\"a\"}]}'\n"), done.stderr)

    def test_annotations_for_one_container(self):
        """A pod without uid is known by namespace and name, but not in a manifest: its engine gives it one."""
        pod = {"kind": "Pod", "spec": {"containers": [{"name": "a"}, {"name": "b"}]}}
        for metadata, container, uid, error in (
                ({"name": "p", "uid": "u-1"}, "a", "u-1", None), ({"name": "web"}, "b", "default.web", None),
                ({"name": "web.1", "namespace": "shop"}, "a", "shop.web.1", None),
                ({"name": "p", "uid": "u-1"}, "c", "", "no container c; expected one of a, b"),
                ({}, "a", "", "metadata.name"), ({"namespace": "shop"}, "a", "", "metadata.name"),
                ({"name": "a_b"}, "a", "", "metadata.uid"), ({"name": "n" * 200}, "a", "", "metadata.uid"),
                ({"name": "web", "namespace": "a.b"}, "a", "", "namespace")):
            with self.subTest(metadata=metadata, container=container):
                text = json.dumps({**pod, "metadata": metadata})
                done = ctl("annotate", "-f", "-", "--container", container, "-o", "annotations", stdin=text, check=not error)
                if error:
                    self.assertEqual((done.returncode, done.stdout), (1, ""))
                    self.assertIn(error, done.stderr)
                else:
                    got = json.loads(done.stdout)
                    self.assertEqual((got["podqos.io/pod-uid"], got["podqos.io/container"]), (uid, container))
                    self.assertEqual(json.loads(got["podqos.io/pod"])["metadata"],
                                     {"name": metadata["name"], "namespace": metadata.get("namespace", "default")})
        self.assertNotIn("podqos.io/pod-uid", self.annotated(json.dumps({**pod, "metadata": {"name": "web"}})))

    def test_less_of_the_cpu(self):
        """What an author asks for is in the bundle, too; in a manifest it stays where it is."""
        asks = {"podqos.io/cpu-burst": "20%", "podqos.io/cpu-idle": "true"}
        text = json.dumps(annotated(POD, cpu_burst="20%", cpu_idle="true", qos_class="Burstable"))
        got = json.loads(ctl("annotate", "-f", "-", "-o", "annotations", stdin=text).stdout)
        self.assertEqual({key: got.get(key) for key in asks}, asks)
        self.assertEqual(set(got) - set(asks), {"podqos.io/pod", "podqos.io/pod-uid"})
        kept = json.loads(self.annotated(text))["metadata"]["annotations"]
        self.assertEqual({key: kept.get(key) for key in asks}, asks)
        done = ctl("annotate", "-f", "-", stdin=json.dumps(annotated(POD, cpu_burst="1.5")))
        self.assertIn('expected "0" or a percentage of the CPU limit', done.stderr)

    def test_a_bundle_is_for_one_container(self):
        pod = json.dumps({"kind": "Pod", "metadata": {"name": "web"},
                          "spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}})
        with tempfile.TemporaryDirectory(prefix="podqos-test-") as bundle:
            config = pathlib.Path(bundle) / "config.json"
            config.write_text('{"ociVersion": "1.0.2"}')
            done = ctl("annotate", "-f", "-", "--bundle", bundle, stdin=pod, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("--container", done.stderr)
            self.assertIn("a, i", done.stderr)
            done = ctl("annotate", "-f", "-", "--bundle", bundle, "--container", "x", stdin=pod, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no container x", done.stderr)
            self.assertEqual(config.read_text(), '{"ociVersion": "1.0.2"}')
            ctl("annotate", "-f", "-", "--bundle", bundle, "--container", "i", stdin=pod)
            self.assertEqual(json.loads(config.read_text())["annotations"]["podqos.io/container"], "i")

    def test_bundle_in_place(self):
        with tempfile.TemporaryDirectory(prefix="podqos-test-") as bundle:
            config = pathlib.Path(bundle) / "config.json"
            config.write_text('{\n\t"ociVersion": "1.0.2",\n\t"process": {"oomScoreAdj": -0},\n'
                              '\t"annotations": {"mine": "1e400"}\n}\n')
            config.chmod(0o640)
            ctl("annotate", "-f", "-", "--container", "a", "--bundle", bundle, stdin=json.dumps(POD))
            text = config.read_text()
            self.assertIn('"oomScoreAdj": -0', text)
            self.assertEqual(set(json.loads(text)["annotations"]),
                             {"mine", "podqos.io/pod", "podqos.io/pod-uid", "podqos.io/container"})
            self.assertEqual(stat.S_IMODE(config.stat().st_mode), 0o640)
            self.assertEqual(os.listdir(bundle), ["config.json"])
            ctl("annotate", "-f", "-", "--container", "a", "--bundle", bundle, stdin=json.dumps(POD))
            self.assertEqual(config.read_text(), text)
            other = {**POD, "metadata": {**POD["metadata"], "uid": "u-2"}}
            done = ctl("annotate", "-f", "-", "--bundle", bundle, stdin=json.dumps(other), check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("podqos.io/pod-uid", done.stderr)
            self.assertEqual(config.read_text(), text)
            for text in ("[]", "{"):
                config.write_text(text)
                done = ctl("annotate", "-f", "-", "--bundle", bundle, stdin=json.dumps(POD), check=False)
                self.assertEqual((done.returncode, config.read_text()), (1, text))

    def test_podman_before_5_takes_63_characters(self):
        tiny = "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n"
        # No place is left for the pod's name.
        self.assertEqual(ctl("annotate", "--for", "podman4", "-f", "-", stdin=tiny).stdout,
                         ctl("annotate", "-f", "-", stdin=tiny).stdout.replace(r'\"metadata\":{\"name\":\"a\"},', ""))
        done = ctl("annotate", "--for", "podman4", "-f", "-", stdin=json.dumps(POD), check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^podqosctl: standard input: Pod default/p: annotation podqos.io/pod has \d+ "
                         r"characters, but Podman before 5.0 accepts 63: annotate the pod with "
                         r'podqos.io/cpu-request: "100m", podqos.io/memory-request: "1Gi", '
                         r'podqos.io/cpu-limit: "100m", podqos.io/memory-limit: "1Gi"\n$')


if __name__ == "__main__":
    unittest.main()
