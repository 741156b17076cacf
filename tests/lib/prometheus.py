"""A Prometheus of Debian, for tests: it is fetched once (19 MB, 96 MB in build/guest-root) and not installed, since its
package starts a service.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

import patience

CACHE = pathlib.Path(__file__).resolve().parents[2] / "build/guest-root/prometheus"
PROGRAMS = ("prometheus", "promtool")


def programs():
    """The directory that has prometheus and promtool; skips the test where they cannot be had."""
    if shutil.which("prometheus") and shutil.which("promtool"):
        return pathlib.Path(shutil.which("promtool")).parent
    if not CACHE.exists():
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE.parent, prefix="prometheus.part.") as part:
            os.chmod(part, 0o755)
            fetch = ("apt-get download -q prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb |"
                     " tar -x ./usr/bin/prometheus ./usr/bin/promtool")
            done = subprocess.run(["sh", "-c", fetch], cwd=part, capture_output=True, text=True, check=False)
            if not all(pathlib.Path(part, "usr/bin", name).exists() for name in PROGRAMS):
                raise unittest.SkipTest(f"prometheus cannot be fetched: {done.stderr.strip()}")
            with contextlib.suppress(OSError):  # another test was faster
                pathlib.Path(part, "usr/bin").rename(CACHE)
    return CACHE


def yaml_of(path):
    import yaml  # here, for the guest's root has none
    return yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8"))


def promtool(*words, **more):
    """What promtool says; its exit status has to be 0."""
    done = subprocess.run([programs() / "promtool", *words], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"promtool {words}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class Server:
    """A Prometheus that scrapes and evaluates rules once a second, in a directory of its own."""

    def __init__(self, folder, scrape_configs, rules):
        self.folder = pathlib.Path(folder)
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                  "rule_files": [str(rules)], "scrape_configs": scrape_configs}
        # JSON is YAML.
        (self.folder / "prometheus.yaml").write_text(json.dumps(config), encoding="utf-8")
        promtool("check", "config", self.folder / "prometheus.yaml")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [programs() / "prometheus", f"--config.file={self.folder}/prometheus.yaml",
                 f"--storage.tsdb.path={self.folder}/data", f"--web.listen-address={self.address}"],
                stdout=log, stderr=log)
        patience.expect(self.is_ready, "Prometheus is ready")

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError((self.folder / "log").read_text(encoding="utf-8"))
        url = f"http://{self.address}/-/ready"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=patience.PATIENCE) as answer:
            return answer.status == 200
        return False

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def get(self, path, **query):
        """The "data" of an answer of its API; its error is one of the test."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=patience.PATIENCE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{query or path}: {error.read().decode()}") from error
