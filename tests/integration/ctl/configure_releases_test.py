"""podqosctl configure in the roots of Debian 12, 13 and testing, where the engines' own programs tell the version and check
what was written. There this file runs again, chrooted.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
from engine_files import CONTAINERD, DAEMON_JSON, NVIDIA, STOCK, configure, snapshot  # noqa: E402

CHROOTED = harness.REPOSITORY / "tests/guest/chrooted"
INSIDE = "PODQOS_CONFIGURE_RELEASE"  # set in the root of a release: its name


class InRelease(unittest.TestCase):
    """In the root of a release, which is a copy: what this does goes with it."""

    release = os.environ.get(INSIDE)

    def dumped(self):
        """The configuration as containerd has understood it."""
        done = subprocess.run(["containerd", "config", "dump"], capture_output=True, text=True, check=True,
                              timeout=harness.CALL_TIMEOUT)
        return tomllib.loads(done.stdout)["plugins"]

    def runtimes(self):
        return next(table["containerd"]["runtimes"] for table in self.dumped().values()
                    if "runtimes" in table.get("containerd", {}))

    def write(self, name, change):
        """A file below /etc, and what this makes of its text; afterwards it is as it was."""
        path = pathlib.Path("/", name)
        stock = path.read_bytes()
        self.addCleanup(path.write_bytes, stock)
        path.write_bytes(change(stock.decode()).encode())

    def refused(self, engine):
        """The engine's own program refuses: the files are as they were."""
        before = snapshot(pathlib.Path("/etc"))
        self.assertIn("changes rolled back", configure(engine, "--method", "wrapper", check=1).stderr)
        self.assertEqual(snapshot(pathlib.Path("/etc")), before)

    def there_and_back(self, engine, *words, checked=True):
        """What was printed; afterwards everything is as it was."""
        before = snapshot(pathlib.Path("/etc"))
        said = json.loads(configure(engine, *words, "-o", "json").stdout)
        self.assertEqual(said["checked"], checked)
        registered = snapshot(pathlib.Path("/etc"))
        self.assertEqual(json.loads(configure(engine, *words, "-o", "json").stdout)["changes"], [])
        self.assertEqual(snapshot(pathlib.Path("/etc")), registered)
        if engine == "containerd":
            self.seen = self.dumped(), self.runtimes()
        configure(engine, "--undo")
        self.assertEqual(snapshot(pathlib.Path("/etc")), before)
        return said

    def test_containerd(self):
        """The stock file, what it prints as its default, and what others have added to it."""
        stock = pathlib.Path("/", CONTAINERD).read_text(encoding="utf-8")
        self.assertEqual(stock, STOCK.read_text(encoding="utf-8"))
        default = subprocess.run(["containerd", "config", "default"], capture_output=True, text=True, check=True,
                                 timeout=harness.CALL_TIMEOUT).stdout
        own = ('\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.own]\n'
               '  runtime_type = "io.containerd.runc.v2"\n')
        for text, others in ((stock, {"runc"}), (default, {"runc"}), (stock + own, {"own"}),
                             ("\r\n".join(stock.split("\n")), {"runc"}), (stock.rstrip("\n"), {"runc"})):
            self.write(CONTAINERD, lambda _, text=text: text)
            self.there_and_back("containerd", "--method", "wrapper")
            _, runtimes = self.seen
            self.assertGreaterEqual(set(runtimes), others | {"podqos"})
            self.assertEqual(runtimes["podqos"]["options"]["BinaryName"], "/usr/bin/podqos-runtime")
            self.assertEqual(runtimes["podqos"]["pod_annotations"], ["podqos.io/*"])

    def test_containerd_imports(self):
        self.write(CONTAINERD, lambda stock: 'imports = ["/etc/containerd/conf.d/*.toml"]\n' + stock)
        pathlib.Path("/etc/containerd/conf.d").mkdir(exist_ok=True)
        said = self.there_and_back("containerd", "--method", "wrapper")
        drop_in = "/etc/containerd/conf.d/50-podqos.toml"
        self.assertEqual(said["changes"][0]["path"], drop_in if self.release == "testing" else f"/{CONTAINERD}")
        plugins, runtimes = self.seen
        self.assertGreaterEqual(set(runtimes), {"runc", "podqos"})
        networks = next(table["cni"] for table in plugins.values() if "cni" in table)
        self.assertIn("/usr/lib/cni", (networks["bin_dir"], *networks.get("bin_dirs", ())))
        self.there_and_back("containerd", "--set-as-default")
        defaults = [table["containerd"].get("default_runtime_name") for table in self.seen[0].values() if "containerd" in table]
        self.assertIn("podqos", defaults)

    def test_containerd_nri(self):
        if self.release == "bookworm":
            self.assertIn("containerd 1.6 has no NRI", configure("containerd", "--method", "nri", check=1).stderr)
            return
        said = self.there_and_back("containerd", "--method", "nri", checked=self.release == "trixie")
        self.assertEqual(len(said["changes"]), 1 if self.release == "trixie" else 0)
        self.assertIs(self.seen[0]["io.containerd.nri.v1.nri"]["disable"], False)

    def test_containerd_refuses(self):
        """What is TOML but no configuration of containerd."""
        self.write(CONTAINERD, lambda stock: 'oom_score = "none"\n' + stock)
        self.refused("containerd")

    def test_podman(self):
        """Podman's storage cannot be on the overlay that this root is."""
        pathlib.Path("/etc/containers/storage.conf").write_text(
            '[storage]\ndriver = "vfs"\nrunroot = "/run/storage"\ngraphroot = "/run/graph"\n', encoding="ascii")
        shutil.copytree(harness.REPOSITORY / "packaging/containers.conf.d", "/usr/share/podqos/containers.conf.d",
                        dirs_exist_ok=True)
        said = self.there_and_back("podman")
        self.assertEqual(said["changes"][0]["action"], "create" if self.release == "bookworm" else "link")
        self.there_and_back("podman", "--method", "wrapper")
        # Podman looks for its default runtime.
        self.assertIn("changes rolled back", configure("podman", "--set-as-default", check=1).stderr)
        wrapper = pathlib.Path(shutil.copy("/bin/true", "/usr/bin/podqos-runtime"))
        self.addCleanup(wrapper.unlink)
        self.there_and_back("podman", "--set-as-default")

    def test_docker(self):
        if not shutil.which("dockerd"):
            self.skipTest(f"the root of {self.release} has no dockerd")
        path = pathlib.Path("/", DAEMON_JSON)
        path.parent.mkdir(exist_ok=True)
        for text in (None, "{}", json.dumps(NVIDIA, indent=4), '\ufeff{\r\n\t"log-level": "warn"\r\n}\r\n'):
            path.unlink(missing_ok=True)
            if text is not None:
                path.write_bytes(text.encode())
            self.there_and_back("docker")
        self.there_and_back("docker", "--set-as-default")
        path.write_text('{"log-level": 3}', encoding="ascii")
        self.refused("docker")


class Releases(unittest.TestCase):
    """Here."""

    def check(self, release):
        root, reason = guest.made_root(release)
        if root is None:
            self.skipTest(reason)
        environment = {**os.environ, INSIDE: release, "PODQOS_BIN": str(harness.BIN.resolve()),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([CHROOTED, root, harness.REPOSITORY, "/usr/bin/python3", __file__], env=environment,
                              capture_output=True, text=True, check=False, timeout=600)
        print(done.stdout + done.stderr, flush=True)
        self.assertEqual(done.returncode, 0, f"in the root of {release}")
        self.assertRegex(done.stderr + done.stdout, re.compile(r"^Ran \d+ tests", re.MULTILINE))

    def test_debian_12(self):
        self.check("bookworm")

    def test_debian_13(self):
        self.check("trixie")

    def test_debian_testing(self):
        self.check("testing")


if __name__ == "__main__":
    if INSIDE in os.environ:
        del Releases
    else:
        del InRelease
    harness.main(("runc",))
