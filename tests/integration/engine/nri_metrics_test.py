"""Metrics and health of podqos-nri as a process, under its own sandbox: what is shown follows the runtime, is written
as Prometheus' own parser reads it, and holds nobody up.

The runtime is scripted; pods and cgroups are real.
"""

import contextlib
import fcntl
import http.server
import itertools
import json
import os
import pathlib
import re
import signal
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
sys.path.append("/usr/lib/python3/dist-packages")  # of Debian, whichever Python this is

import machine as machines  # noqa: E402
import metrics  # noqa: E402
import nri_daemon  # noqa: E402
import patience  # noqa: E402
import prometheus  # noqa: E402
import wire  # noqa: E402

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
MANUALS = [REPOSITORY / f"packaging/man/{name}.md" for name in ("podqos-nri.8", "podqosctl.1")]
EXAMPLES = REPOSITORY / "examples"
RECORDED = REPOSITORY / "tests/data/prometheus/cgroup_v2.prom"
GI, MI = 1 << 30, 1 << 20
SCHEMA = {
    "OptionalInt64": {"value": (1, "int")},
    "LinuxMemory": {"limit": (1, "OptionalInt64")},
    "LinuxResources": {"memory": (1, "LinuxMemory")},
    "LinuxContainer": {"resources": (3, "LinuxResources"), "cgroups_path": (5, "text")},
    "Pod": {"id": (1, "text"), "name": (2, "text"), "uid": (3, "text"), "namespace": (4, "text"),
            "annotations": (6, "map"), "pid": (9, "int")},
    "Container": {"id": (1, "text"), "pod_sandbox_id": (2, "text"), "name": (3, "text"),
                  "linux": (11, "LinuxContainer"), "pid": (12, "int")},
    "Request": {"pod": (1, "Pod"), "container": (2, "Container")},
}
# Class, and the resources of the pod's one container.
PODS = {
    "Guaranteed": {"limits": {"cpu": "250m", "memory": "256Mi"}},
    "Burstable": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    "BestEffort": {},
}
# The memory limits that the runtime enforces: so much of a request is reserved.
ENFORCED = {"Guaranteed": 256 * MI, "Burstable": 128 * MI}


def count(name, **labels):
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


def pods(qos_class, owner="podqos"):
    return count("podqos_pods", qos_class=qos_class, owner=owner)


def free_port(family=socket.AF_INET, host="127.0.0.1"):
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


class MetricsCase(nri_daemon.DaemonCase):
    def setUp(self):
        super().setUp()
        self.address = f"unix:{self.folder}/metrics.sock"

    def configure(self, **settings):
        super().configure(**{"nodeMemory": "4Gi", "qosReserved": {"memory": "100%"}, "releaseDelay": "0s",
                             "placement": {"onMisplaced": "ignore"}, **settings})

    def start_shown(self, *options):
        process = self.start("--socket", self.socket, "--metrics", self.address, *options)
        self.wait_for(lambda: self.shown("/healthz") == (200, "ok\n"))
        return process

    def connected(self):
        runtime = self.listen()
        process = self.start_shown()
        return runtime, process, runtime.accept().welcome()

    def shown(self, path):
        """(status, text), or why there is none."""
        try:
            answer = metrics.request(self.address, path)
        except OSError as error:
            return None, str(error)
        return answer.status, answer.text

    def wait_for(self, condition):
        self.assertTrue(patience.until(condition, length=0.01))

    def samples(self):
        """As they are now: what the kernel says is kept for a second."""
        time.sleep(1.05)
        return metrics.samples(self.address)


class Health(MetricsCase):
    """Who asks learns how the plugin stands with the runtime."""

    def test_follows_the_runtime(self):
        process = self.start_shown()
        status, text = self.shown("/readyz")
        self.assertEqual(status, 503)
        self.assertEqual(text, f"connect to {self.socket}: No such file or directory\n")
        for times in (1, 2):
            runtime = self.listen()
            connection = runtime.accept()
            self.wait_for(lambda: "has not synchronized the plugin yet" in self.shown("/readyz")[1])
            connection.welcome()
            self.assertEqual(self.shown("/readyz"), (200, "ok\n"))
            values = metrics.samples(self.address)
            self.assertEqual(values["podqos_nri_connected"], 1)
            self.assertEqual(values["podqos_nri_synchronized"], 1)
            self.assertEqual(values["podqos_nri_connections_total"], times)
            self.assertEqual(values[count("podqos_nri_request_duration_seconds_count", request="Synchronize")], times)
            self.assertAlmostEqual(values["podqos_last_reconcile_timestamp_seconds"], time.time(), delta=patience.PATIENCE)
            runtime.stop()
            self.wait_for(lambda: self.shown("/readyz")[0] == 503)
            self.assertEqual(metrics.samples(self.address)["podqos_nri_connected"], 0)
        self.assertEqual(self.shown("/healthz"), (200, "ok\n"))
        self.stop(process)

    def test_answers_beside_connections_that_ask_for_nothing(self):
        """300 of a pod or of several, silent or with half a request, that come again as soon as they are closed."""
        for addresses in (1, 5):
            self.address = f"127.0.0.1:{free_port()}"
            process = self.start_shown()
            with metrics.idle_connections(self.address, 300, addresses) as reopened:
                for probe in range(40):
                    self.assertEqual(self.shown("/healthz"), (200, "ok\n"), (addresses, probe, reopened))
                self.wait_for(lambda: reopened)  # 256 are kept
            self.stop(process)


class Addresses(MetricsCase):
    """It listens where it was told to, on this machine alone, and nowhere without."""

    def listening(self, process):
        """Local addresses that the process listens at, from the kernel."""
        inodes = set()
        for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed since; who listens keeps its own
                inodes.add(os.readlink(link))
        found = []
        for table, state, inode in (("tcp", 3, 9), ("tcp6", 3, 9), ("unix", 3, 6)):
            for line in pathlib.Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                listens = fields[state] == ("0A" if table != "unix" else "00010000")
                if listens and f"socket:[{fields[inode]}]" in inodes:
                    found.append((table, fields[1] if table != "unix" else fields[-1]))
        return found

    def test_opens_nothing_by_itself(self):
        _, process, _ = self.plain()
        self.assertEqual(self.listening(process), [])
        self.stop(process)

    def plain(self):
        runtime = self.listen()
        process = self.start_at_socket()
        return runtime, process, runtime.accept().welcome()

    def test_unix_socket(self):
        path = pathlib.Path(self.address.removeprefix("unix:"))
        process = self.start_shown()
        self.assertEqual(path.stat().st_mode & 0o777, 0o660)
        self.assertEqual(self.listening(process), [("unix", str(path))])
        self.stop(process)
        self.assertFalse(path.exists())
        process = self.start_shown()
        process.kill()
        process.wait()
        self.assertTrue(path.exists())
        self.stop(self.start_shown())

    def test_loopback(self):
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.configure(nri={"metrics": self.address})
        process = self.start_at_socket()
        self.wait_for(lambda: self.shown("/healthz") == (200, "ok\n"))
        self.assertEqual(self.listening(process), [("tcp", f"0100007F:{port:04X}")])
        self.stop(process)
        # The connections of the first are still in TIME_WAIT.
        process = self.start_at_socket()
        self.wait_for(lambda: self.shown("/healthz") == (200, "ok\n"))
        self.stop(process)

    def test_loopback_of_version_six(self):
        try:
            port = free_port(socket.AF_INET6, "::1")
        except OSError as error:
            self.skipTest(f"no IPv6 here: {error}")
        process = self.start("--socket", self.socket, "--metrics", f"[::1]:{port}")
        self.address = f"::1:{port}"
        self.wait_for(lambda: self.shown("/healthz") == (200, "ok\n"))
        self.assertEqual(self.listening(process), [("tcp6", f"{'0' * 24}01000000:{port:04X}")])
        self.stop(process)

    def test_works_without_a_place_to_listen(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.configure(nri={"metrics": f"127.0.0.1:{taken.getsockname()[1]}"})
            _, process, connection = self.plain()
            self.wait_for_log(f"error: metrics are disabled: 127.0.0.1:{taken.getsockname()[1]}: bind: Address already in use")
            connection.ask("PostStartContainer")
            self.stop(process)

    def test_takes_a_restart_for_another(self):
        self.configure(nri={"metrics": self.address})
        process = self.start_at_socket()
        self.wait_for(lambda: self.shown("/healthz") == (200, "ok\n"))
        self.configure(nri={"metrics": f"unix:{self.folder}/other.sock"})
        process.send_signal(signal.SIGHUP)
        self.wait_for_log(f"warning: nri.metrics: keeping {self.address}; to use unix:{self.folder}/other.sock, set it")
        self.wait_for_log("configuration reloaded")
        self.assertEqual(self.shown("/healthz"), (200, "ok\n"))
        self.assertFalse((self.folder / "other.sock").exists())
        self.stop(process)


class PodsCase(MetricsCase):
    """With pods and cgroups."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("making cgroups takes root")
        super().setUp()
        self.machine = machines.Machine()
        self.addCleanup(self.machine.sweep, self.root)
        self.processes = []
        self.addCleanup(self.end_processes)

    def sleeper(self):
        process = subprocess.Popen(["sleep", "1000"])
        self.processes.append(process)
        return process.pid

    def end_processes(self):
        while self.processes:
            process = self.processes.pop()
            process.kill()
            process.wait()

    def ask(self, connection, method, qos_class, **more):
        name = qos_class.lower()
        app = {"name": "app", "resources": PODS[qos_class]}
        pod = {"id": f"sandbox-{name}", "name": name, "uid": f"uid-{name}", "namespace": "default",
               "annotations": {"podqos.io/pod": json.dumps({"containers": [app]})}, **more.get("pod", {})}
        request = {"pod": pod}
        if "container" in more:
            memory = {"limit": {"value": ENFORCED[qos_class]}} if qos_class in ENFORCED else {}
            request["container"] = {
                "id": f"app-{name}", "pod_sandbox_id": pod["id"], "name": "app",
                "linux": {"cgroups_path": "/default/app", "resources": {"memory": memory}}, **more["container"]}
        return connection.ask(method, wire.encode(SCHEMA, "Request", request))

    def start_pod(self, connection, qos_class):
        self.ask(connection, "RunPodSandbox", qos_class, pod={"pid": self.sleeper()})
        self.ask(connection, "CreateContainer", qos_class, container={})
        self.ask(connection, "StartContainer", qos_class, container={"pid": self.sleeper()})

    def end_pod(self, connection, qos_class):
        self.ask(connection, "StopContainer", qos_class, container={})
        self.ask(connection, "StopPodSandbox", qos_class)
        self.ask(connection, "RemovePodSandbox", qos_class)


class Contents(PodsCase):
    """What is counted is what the runtime asked for, and what the kernel has."""

    def operations(self, values):
        return [values[count("podqos_cgroup_manager_duration_seconds_count", operation_type=operation)]
                for operation in ("create", "update", "destroy")]

    def test_pods_and_tiers(self):
        _, process, connection = self.connected()
        for qos_class in PODS:
            self.start_pod(connection, qos_class)
        values = self.samples()
        self.assertEqual([values[pods(qos_class)] for qos_class in PODS], [1, 1, 1])
        self.assertEqual([values[pods(qos_class, "kubelet")] for qos_class in PODS], [0, 0, 0])
        self.assertEqual(values[count("podqos_pod_requests_cpu_cores", qos_class="Burstable", owner="podqos")], 0.1)
        self.assertEqual(values[count("podqos_pod_requests_cpu_cores", qos_class="Guaranteed", owner="podqos")], 0.25)
        self.assertEqual(values[count("podqos_pod_requests_memory_bytes", qos_class="Guaranteed", owner="podqos")],
                         256 * MI)
        # Guaranteed leaves 3840 MiB to the Burstable tier, and that leaves 3776 to BestEffort.
        for tier, limit in (("burstable", 4 * GI - 256 * MI), ("besteffort", 4 * GI - 320 * MI)):
            cgroup = f"{self.root}/kubepods/{tier}"
            self.assertEqual(self.machine.read(cgroup, "memory"), limit)
            self.assertEqual(values[count("podqos_tier_memory_limit_bytes", tier=tier, cgroup=cgroup)], limit)
            self.assertEqual(values[count("podqos_tier_memory_limit_wanted_bytes", tier=tier, cgroup=cgroup)], limit)
            for name in ("podqos_tier_memory_usage_bytes", "podqos_tier_cpu_usage_seconds_total"):
                self.assertIn(count(name, tier=tier, cgroup=cgroup), values)
        for name in ("podqos_tier_memory_limit_bytes", "podqos_tier_memory_limit_wanted_bytes"):
            root = count(name, tier="kubepods", cgroup=f"{self.root}/kubepods")
            self.assertEqual(values[root], 4 * GI)  # all that is allocatable
        name = "podqos_tier_cpu_shares" if self.machine.version("cpu") == 1 else "podqos_tier_cpu_weight"
        self.assertIn(count(name, tier="burstable", cgroup=f"{self.root}/kubepods/burstable"), values)
        self.assertEqual(self.operations(values), [6, 3, 0])
        self.assertEqual(values["podqos_state_interrupted"], 0)
        self.end_processes()
        for qos_class in PODS:
            self.end_pod(connection, qos_class)
        values = self.samples()
        self.assertEqual([values[pods(qos_class)] for qos_class in PODS], [0, 0, 0])
        self.assertEqual(self.operations(values), [6, 3, 9])
        self.assertEqual([name for name in values if name.startswith("podqos_tier")], [])
        self.assertEqual(sum(value for name, value in values.items() if name.startswith("podqos_errors")), 0)
        self.stop(process)
        self.assertEqual(self.machine.leftovers(self.root), [])

    def test_while_an_event_holds_the_lock(self):
        """The state is looked at without it."""
        _, process, connection = self.connected()
        self.start_pod(connection, "Burstable")
        with open(f"{self.folder}/state/lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

            def is_soon_there():
                begin = time.monotonic()
                self.assertEqual(self.samples()[pods("Burstable")], 1)
                return time.monotonic() - begin < 3

            self.assertTrue(patience.until(is_soon_there, length=0.5))
        self.end_processes()
        self.end_pod(connection, "Burstable")
        self.stop(process)

    @unittest.skipUnless(text_string_to_metric_families, "python3-prometheus-client is not installed")
    def test_form_and_names(self):
        """What Prometheus' own parser reads, and the rules for names that promtool and OpenMetrics have."""
        _, process, connection = self.connected()
        self.start_pod(connection, "Burstable")
        time.sleep(1.05)
        text = metrics.request(self.address, "/metrics").text
        families = list(text_string_to_metric_families(text))
        self.assertEqual(len({family.name for family in families}), len(families))
        manual = "".join(page.read_text(encoding="utf-8") for page in MANUALS)
        for family in families:
            with self.subTest(family.name):
                self.assertRegex(family.name, "^podqos_[a-z_]+$")
                self.assertTrue(family.documentation.endswith("."))
                self.assertIn(family.type, ("counter", "gauge", "histogram"))
                self.assertEqual(f"{family.name}_total " in text or f"{family.name}_total{{" in text,
                                 family.type == "counter")
                self.assertNotRegex(family.name, "(milli|micro|kilo|minutes|percent|_count$|_sum$|_bucket$|_info_)")
                written = family.name + ("_total" if family.type == "counter" else "")
                short = [re.sub(start, "**...", written) for start in ("^podqos_tier", "^podqos_tier(_cpu|_memory)?")]
                self.assertTrue(any(name in manual for name in (written, *short)), "no manual page tells of it")
                for sample in family.samples:
                    self.assertLessEqual(set(sample.labels), {"request", "operation_type", "code", "qos_class", "owner",
                                                              "tier", "cgroup", "resource", "version", "le", "step"})
                    self.assertNotIn("uid-burstable", str(sample))
        self.assertLess(len(text.splitlines()), 600)
        self.end_processes()
        self.end_pod(connection, "Burstable")
        self.stop(process)


def dashboard():
    return json.loads((EXAMPLES / "grafana/podqos.json").read_text(encoding="utf-8"))


class Dashboard(unittest.TestCase):
    """It is as Grafana's own definition has it (dashboard kind of @grafana/schema 13.2, which accepts it as a whole)."""

    UNITS = {"bytes", "none", "percentunit", "reqps", "s"}  # @grafana/data, valueFormats/categories.ts

    def test_panels(self):
        panels, taken = dashboard()["panels"], []
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        for panel in panels:
            place, targets = panel["gridPos"], panel.get("targets", [])
            taken += itertools.product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"]))
            with self.subTest(panel["title"]):
                self.assertIn(panel["type"], ("stat", "timeseries") if targets else ("row",))
                self.assertEqual(len({target["refId"] for target in targets}), len(targets))
                for one in (panel, *targets) if targets else ():
                    self.assertEqual(one["datasource"], {"type": "prometheus", "uid": "${datasource}"})
                if targets:
                    self.assertIn(panel["fieldConfig"]["defaults"]["unit"], self.UNITS)
        self.assertEqual(len(taken), len(set(taken)), "panels overlap")
        self.assertLess(max(x for x, _ in taken), 24)

    def test_variables(self):
        known = {variable["name"] for variable in dashboard()["templating"]["list"]}
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard())))
        self.assertEqual(used - {"__rate_interval", "__all"}, known)


class Textfile(http.server.BaseHTTPRequestHandler):
    """What node_exporter makes of a directory that podqosctl has just written to, and of one of a node that has all."""

    def do_GET(self):  # noqa: N802
        subprocess.run(self.server.command, check=True)
        file = self.server.file
        text = f'{file.read_text(encoding="utf-8")}node_textfile_mtime_seconds{{file="{file}"}} {file.stat().st_mtime}\n'
        text += RECORDED.read_text(encoding="utf-8")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class Examples(PodsCase):
    """A real Prometheus reads plugin and textfile, and runs each query of the dashboard and each alert."""

    def setUp(self):
        super().setUp()
        self.programs = prometheus.programs()
        self.alerts = EXAMPLES / "prometheus/alerts.yaml"
        # In a network of its own every address is free.
        self.enterContext(machines.private_network())

    def serve_textfile(self):
        """The address of a node_exporter, so to speak."""
        folder = self.folder / "textfile"
        folder.mkdir()
        os.chown(folder, 65534, 65534)
        server = http.server.HTTPServer(("127.0.0.1", 9100), Textfile)
        server.file = folder / "podqos.prom"
        server.command = [nri_daemon.BIN / "podqosctl", "--config", self.folder / "podqos.json", "metrics", "--textfile", folder]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return server

    def burn(self, pod):
        """A container of a pod that uses more than its quota."""
        process = subprocess.Popen(["sh", "-c", "while :; do :; done"])
        self.processes.append(process)
        self.machine.enter(process.pid, f"{self.root}/kubepods/{pod}/burns")

    def queries(self):
        """Each query of the dashboard: (where, expression, labels that are shown)."""
        board = dashboard()
        found = [(f'{panel["title"]} {target["refId"]}', target["expr"], re.findall(r"{{(\w+)}}", target["legendFormat"]))
                 for panel in board["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(found), 20)
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]).groups()
                found.append((variable["name"], metric, [label]))
        # A quota that is a pod's own has no container.
        return [(where, expression.replace("$__rate_interval", "5s").replace("$instance", ".*"), {*labels} - {"container"})
                for where, expression, labels in found]

    def lacking(self, server):
        """The queries without an answer, or with one that lacks a label."""
        lacking = []
        for where, expression, labels in self.queries():
            server.get("query", query=expression)
            # What is only shown above zero is known to be zero here.
            found = server.get("query", query=expression.removesuffix(" > 0"))["result"]
            if not found or labels - set().union(*(series["metric"] for series in found)):
                lacking.append((where, expression, labels))
        return lacking

    def check_rules(self, server):
        """They are evaluated without an error, and say all that whoever is woken needs."""
        pages = (REPOSITORY / "docs/metrics.md").read_text(encoding="utf-8")
        (group,) = server.get("rules")["groups"]
        for rule in group["rules"]:
            with self.subTest(rule["name"]):
                self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""))
                self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"))
                self.assertTrue(rule["annotations"]["summary"].endswith("."))
                page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
                self.assertEqual((page, anchor), ("file:///usr/share/doc/podqos/docs/metrics.md", rule["name"].lower()))
                self.assertIn(f"\n### {rule['name']}\n\n{rule['labels']['severity']}. ", pages)
        return {rule["name"]: rule["state"] for rule in group["rules"]}

    def test_queries_and_alerts(self):
        self.address = "127.0.0.1:9464"
        self.configure(metrics={"pods": "all"})
        _, process, connection = self.connected()
        for qos_class in PODS:
            self.start_pod(connection, qos_class)
        self.burn("poduid-guaranteed")
        textfile = self.serve_textfile()
        happened = metrics.samples("127.0.0.1:9100")
        self.assertEqual([happened[count("podqos_recent_events", event=kind)] for kind in ("placed", "failed")], [3, 0])
        self.assertEqual(textfile.file.stat().st_mode & 0o777, 0o644)
        self.assertEqual(os.listdir(textfile.file.parent), ["podqos.prom"])
        prometheus.promtool("check", "metrics", input=textfile.file.read_text(encoding="utf-8"))
        prometheus.promtool("check", "metrics", input=metrics.request(self.address, "/metrics").text)
        scraped = prometheus.yaml_of(EXAMPLES / "prometheus/scrape.yaml")["scrape_configs"]
        self.assertEqual(scraped[0]["static_configs"], [{"targets": [self.address]}])
        for config in scraped:
            config.pop("scrape_interval")
        server = prometheus.Server(self.folder, [
            *scraped, {"job_name": "node", "metrics_path": "/", "static_configs": [{"targets": ["127.0.0.1:9100"]}]}],
            self.alerts)
        self.addCleanup(server.stop)
        patience.until(lambda: not self.lacking(server), length=0.5)
        self.assertEqual(self.lacking(server), [])
        for job in ("podqos", "node"):
            throttled = f'podqos_pod_cpu_cfs_throttled_periods_total{{job="{job}"}} > 0'
            (series,) = patience.expect(lambda query=throttled: server.get("query", query=query)["result"], throttled)
            self.assertEqual({name: series["metric"][name] for name in ("namespace", "pod", "uid", "qos_class")},
                             {"namespace": "default", "pod": "guaranteed", "uid": "uid-guaranteed",
                              "qos_class": "Guaranteed"})
            self.assertNotIn("container", series["metric"])  # its own quota, not one of a container
        patience.expect(lambda: self.check_rules(server)["PodqosPodThrottled"] == "pending", "the alert is pending")
        self.end_processes()
        for qos_class in PODS:
            self.end_pod(connection, qos_class)
        self.stop(process)

    def test_alerts_fire_for_what_they_are_meant(self):
        shutil.copy(self.alerts, self.folder)
        shutil.copy(REPOSITORY / "tests/data/prometheus/alerts_test.yaml", self.folder)
        prometheus.promtool("test", "rules", self.folder / "alerts_test.yaml")


class Strangers(MetricsCase):
    """Whoever asks, however, holds up neither the runtime nor the next who asks, and costs no memory."""

    def flood(self, until):
        path = self.address.removeprefix("unix:")
        dice = 0
        while not until.is_set():
            dice += 1
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
                stranger.settimeout(0.05)
                try:
                    stranger.connect(path)
                    stranger.sendall((b"GET /metrics HTTP/1.0\r\n\r\n", b"GET /metrics HTT", b"\xff" * 5000,
                                      b"GET /metrics HTTP/1.0\r\n\r\n" * 100)[dice % 4])
                    if dice % 3 == 0:
                        stranger.recv(100)
                except OSError:
                    pass

    def slowest_probe(self):
        """How long the slowest of some probes of a kubelet took."""
        slowest = 0
        for path in ("/healthz", "/readyz") * 5:
            begin = time.monotonic()
            self.assertEqual(self.shown(path), (200, "ok\n"))
            slowest = max(slowest, time.monotonic() - begin)
        return slowest

    @staticmethod
    def hold(place, begin, begun, enough):
        """Asks for the longest page and never reads it, for as long as the server waits at most; and again."""
        enough.wait(begin)
        while not enough.is_set():
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                client.settimeout(2)
                with contextlib.suppress(OSError):
                    client.connect(place)
                    client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                begun.release()
                enough.wait(2)

    def test_pages_that_are_longer_than_what_the_kernel_takes(self):
        """Their clients never read. More of them than are served at a time and wait in the kernel come all the time."""
        if os.geteuid() != 0:
            self.skipTest("making a network takes root")
        with machines.private_network(), contextlib.ExitStack() as stack:
            pathlib.Path("/proc/sys/net/ipv4/tcp_wmem").write_text("4096 4096 4096", encoding="ascii")
            self.address = "127.0.0.1:9464"
            _, process, _ = self.connected()
            self.assertGreater(len(metrics.request(self.address, "/metrics").text), 12_288)
            begun, enough = threading.Semaphore(0), threading.Event()
            for number in range(64):
                one = threading.Thread(target=self.hold, args=(("127.0.0.1", 9464), number / 32, begun, enough))
                one.start()
                stack.callback(one.join)
            stack.callback(enough.set)
            for _ in range(64):
                begun.acquire()
            # A kubelet waits for one second, unless it is told to wait longer.
            self.assertTrue(patience.until(lambda: self.slowest_probe() < 1, length=1))
            self.stop(process)

    @staticmethod
    def slowest_of_many(connection):
        """How long the slowest answer of three seconds took."""
        slowest, asked, end = 0, 0, time.monotonic() + 3
        while time.monotonic() < end:
            begin = time.monotonic()
            connection.ask("PostStartContainer")
            slowest, asked = max(slowest, time.monotonic() - begin), asked + 1
        print(f"{asked} requests of the runtime beside the flood, the slowest in {slowest * 1000:.1f} ms", flush=True)
        return slowest

    def test_flood(self):
        _, process, connection = self.connected()
        for _ in range(200):
            metrics.request(self.address, "/metrics")
            connection.ask("PostStartContainer")
        before = int(self.status(process, "VmRSS")) * 1024
        enough = threading.Event()
        crowd = [threading.Thread(target=self.flood, args=(enough,)) for _ in range(12)]
        for one in crowd:
            one.start()
        try:
            # A runtime waits for two seconds. On a busy machine one of many may take longer than here.
            found = patience.until(lambda: self.slowest_of_many(connection) < 1, length=1)
        finally:
            enough.set()
            for one in crowd:
                one.join()
        self.assertTrue(found, "the runtime is answered within a second")
        self.wait_for(lambda: self.shown("/healthz") == (200, "ok\n"))
        self.assertLess(int(self.status(process, "VmHWM")) * 1024, before + 3 * MI)
        self.assertEqual(self.status(process, "Threads"), "1")
        self.stop(process)
        self.assertEqual(process.stderr.read(), "")


if __name__ == "__main__":
    nri_daemon.main()
