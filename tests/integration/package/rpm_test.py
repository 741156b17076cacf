"""The RPM packages: what is in them, and what becomes of living pods when they are upgraded and removed.

Here they are built with Debian's rpmbuild from the programs of PODQOS_BIN and looked at. The life of an installed one
passes in a guest, where this file runs again: real rpm with a database of its own, and real runc.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import oci  # noqa: E402
import spdx  # noqa: E402
from package_case import (  # noqa: E402
    CONFIGURATION, HOOK, KEPT, PROGRAM, STATE, VERSION, WORK, WRAPPER, LifeCase, RemovalCase, boot, output)

BUILD = harness.BIN.parent
DROP_IN = pathlib.Path("/etc/containers/containers.conf.d/zz-podqos.conf")
FILES = {  # mode of what must be there
    "/etc/podqos/podqos.json": "-rw-r--r--",
    "/etc/podqos/conf.d": "drwxr-xr-x",
    "/usr/bin/podqosctl": "-rwxr-xr-x",
    "/usr/libexec/podqos/hand-over": "-rwxr-xr-x",
    "/usr/libexec/podqos/podqos-hook": "-rwxr-xr-x",
    "/usr/libexec/podqos/put-in-place": "-rwxr-xr-x",
    "/usr/libexec/podqos/removed-hook": "-rwxr-xr-x",
    "/usr/lib/systemd/system-preset/90-podqos.preset": "-rw-r--r--",
    "/usr/lib/systemd/system/podqos-reconcile.service": "-rw-r--r--",
    "/usr/lib/systemd/system/podqos-reconcile.timer": "-rw-r--r--",
    "/usr/lib/tmpfiles.d/podqos.conf": "-rw-r--r--",
    "/usr/share/bash-completion/completions/podqosctl": "-rw-r--r--",
    "/usr/share/containers/oci/hooks.d/50-podqos-createruntime.json": "-rw-r--r--",
    "/usr/share/containers/oci/hooks.d/50-podqos-poststop.json": "-rw-r--r--",
    "/usr/share/doc/podqos/CHANGELOG.md": "-rw-r--r--",
    "/usr/share/doc/podqos/docs/configuration.md": "-rw-r--r--",
    "/usr/share/doc/podqos/podqos.spdx.json": "-rw-r--r--",
    "/usr/share/licenses/podqos/LICENSE": "-rw-r--r--",
    "/usr/share/man/man1/podqosctl.1.gz": "-rw-r--r--",
    "/usr/share/man/man8/podqos-runtime.8.gz": "-rw-r--r--",
    "/usr/share/podqos/containers.conf.d/zz-podqos.conf": "-rw-r--r--",
    "/usr/share/podqos/podman-hooks.d/50-podqos-precreate.json": "-rw-r--r--",
}
PLUGIN_FILES = {
    "/usr/lib/systemd/system/podqos-nri.service": "-rw-r--r--",
    "/usr/sbin/podqos-nri": "-rwxr-xr-x",
    "/usr/share/doc/podqos-nri/podqos-nri.spdx.json": "-rw-r--r--",
    "/usr/share/doc/podqos-nri/examples/systemd/metrics-over-tcp.conf": "-rw-r--r--",
    "/usr/share/man/man8/podqos-nri.8.gz": "-rw-r--r--",
}


class Package(unittest.TestCase):
    """The packages as files."""

    @classmethod
    def setUpClass(cls):
        lacking = [tool for tool in ("rpmbuild", "cmake", "ninja") if not shutil.which(tool)]
        if lacking:
            raise unittest.SkipTest(f"these are not installed: {', '.join(lacking)}")
        place = tempfile.TemporaryDirectory(prefix="podqos-test-rpm-")
        cls.addClassCleanup(place.cleanup)
        cls.place = pathlib.Path(place.name)
        cls.package, cls.plugin = cls.build("1", "packages")
        cls.build("2", "packages")

    @classmethod
    def build(cls, release, folder, *prefix):
        """Both packages of that release."""
        printed = output(*prefix, harness.REPOSITORY / "packaging/rpm/build", "--release", release, cls.place / folder,
                         env={**os.environ, "PODQOS_BUILT": str(BUILD)})
        return sorted(map(pathlib.Path, printed.splitlines()))

    @staticmethod
    def ask(package, pattern):
        return output("rpm", "--query", "--package", package, "--queryformat", pattern)

    def contents(self, package):
        """{path: mode} of a package whose files are all root's."""
        lines = self.ask(package, "[%{FILENAMES} %{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME}\n]").splitlines()
        found = {}
        for line in lines:
            path, found[path], *owner = line.split()
            self.assertEqual(owner, ["root", "root"], path)
        return found

    def test_name_and_version(self):
        architecture = os.uname().machine
        self.assertEqual([self.package.name, self.plugin.name],
                         [f"podqos-{VERSION}-1.{architecture}.rpm", f"podqos-nri-{VERSION}-1.{architecture}.rpm"])
        self.assertEqual(self.ask(self.package, "%{NAME} %{VERSION} %{RELEASE} %{LICENSE}"), f"podqos {VERSION} 1 Apache-2.0")

    def test_contents(self):
        for package, files in ((self.package, FILES), (self.plugin, PLUGIN_FILES)):
            found = self.contents(package)
            self.assertEqual({path: found.get(path) for path in files}, files)
        self.assertEqual([path for path in self.contents(self.package) if "nri" in path], [])
        self.assertEqual({str(HOOK), str(WRAPPER)} & set(self.contents(self.package)), set())

    def test_needs(self):
        """No library: all are linked in."""
        for package in (self.package, self.plugin):
            self.assertNotIn(".so", self.ask(package, "[%{REQUIRENAME}\n]"))
        self.assertIn("diffutils", self.ask(self.package, "[%{REQUIRENAME}\n]").split())

    def test_configuration_belongs_to_the_operator(self):
        listed = output("rpm", "--query", "--package", "--configfiles", self.package).split()
        self.assertEqual(listed, [str(CONFIGURATION)])

    def test_programs_are_those_that_were_tested(self):
        unpacked = self.place / "files"
        unpacked.mkdir()
        archive = subprocess.run(["rpm2cpio", self.package], check=True, capture_output=True, timeout=60).stdout
        subprocess.run(["cpio", "--extract", "--quiet", "--make-directories"], check=True, input=archive, cwd=unpacked,
                       timeout=60)
        self.assertEqual((unpacked / str(PROGRAM).lstrip("/")).read_bytes(), (BUILD / "bin/podqos-hook").read_bytes())
        document = json.loads((unpacked / "usr/share/doc/podqos/podqos.spdx.json").read_text(encoding="utf-8"))
        self.assertEqual(spdx.problems(document), [])
        self.assertEqual(spdx.related(document, "Package-podqos", "CONTAINS"),
                         {"podqos-hook": f"{VERSION}-1", "podqosctl": f"{VERSION}-1"})

    def test_same_tree_gives_same_packages(self):
        """Whatever the umask, the locale, the place and the time."""
        again = self.build("1", "again", "env", "LC_ALL=C.UTF-8", "TZ=Asia/Tokyo", f"TMPDIR={self.place}", "sh", "-c",
                           'umask 077; exec "$@"', "sh")
        for one, other in zip(again, (self.package, self.plugin), strict=True):
            # Not both in one list: to tell how two of megabytes differ takes unittest hours.
            self.assertEqual(one.read_bytes(), other.read_bytes(), one.name)

    def test_rpmlint(self):
        if not shutil.which("rpmlint"):
            self.skipTest("rpmlint is not installed")
        done = subprocess.run(["rpmlint", "--strict", "--config", harness.REPOSITORY / "packaging/rpm/rpmlint.toml",
                               self.package, self.plugin], capture_output=True, text=True, check=False, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_life(self):
        with unittest.mock.patch.dict(os.environ, PODQOS_PACKAGES=str(self.package.parent)):
            done = guest.Guest("v2", timeout=600).run_test(__file__, show=True, installed=False)
        self.assertEqual(done.returncode, 0, "in the guest")


class Life(LifeCase, RemovalCase):
    """An installed package; each test begins and ends without it."""

    @classmethod
    def setUpClass(cls):
        if oci.runtime_path(cls.kind) is None:
            raise unittest.SkipTest(f"{cls.kind} is not installed")
        cls.first, cls.second = sorted(pathlib.Path(os.environ["PODQOS_PACKAGES"]).glob("podqos-[0-9]*.rpm"))
        WORK.mkdir(exist_ok=True)
        tempfile.tempdir = str(WORK)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.clean_up)
        self.said = self.put(self.first)

    def rpm(self, *words, refused=False):
        """Debian's packages are not known to rpm, so that nothing is there to depend on."""
        done = subprocess.run(["rpm", "--dbpath", WORK / "rpm", "--nodeps", *words], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, timeout=120)
        self.assertEqual(done.returncode != 0, refused, f"rpm {words}\n{done.stdout}")
        return done.stdout

    def put(self, package, refused=False):
        """rpm wants to be asked twice for an older one."""
        return self.rpm("--upgrade", "--oldpackage", package, refused=refused)

    def take(self):
        return self.rpm("--erase", "podqos")

    def release(self):
        return output("rpm", "--dbpath", WORK / "rpm", "--query", "--queryformat", "%{RELEASE}", "podqos")

    def assert_gone(self):
        self.assertEqual(self.machine.directories("/podqos"), [])
        boot()
        self.assertEqual([path for path in (HOOK, WRAPPER, KEPT, DROP_IN) if os.path.lexists(path)], [])

    def clean_up(self):
        self.delete_all()
        if PROGRAM.exists():
            self.take()
        self.assert_gone()
        shutil.rmtree("/etc/podqos", ignore_errors=True)
        shutil.rmtree(STATE, ignore_errors=True)

    def test_installation(self):
        self.assertRegex(self.said, r"(?m)^podqos: registered by itself: /usr/share/.*; to undo: .*rpm --erase podqos.*$")
        self.assertIn(VERSION, output("podqosctl", "version"))
        self.assertIn("ok", output("podqosctl", "config", "check"))
        self.assertEqual(output(WRAPPER, "--version"), output(oci.runtime_path(self.kind), "--version"))
        self.assertTrue(DROP_IN.is_symlink() and DROP_IN.exists())
        self.take()
        self.assert_gone()
        self.assertFalse(CONFIGURATION.exists())

    def test_upgrade_with_a_pod_alive(self):
        DROP_IN.unlink()  # whoever takes podqos away from Podman need not do so again
        super().test_upgrade_with_a_pod_alive()
        self.assertFalse(os.path.lexists(DROP_IN))

    def test_downgrade_unasked(self):
        self.rpm("--upgrade", self.second)
        self.assertIn("is already installed", self.rpm("--upgrade", self.first, refused=True))

    def test_engines_that_still_call_it_are_named(self):
        engine = pathlib.Path("/etc/docker/daemon.json")
        engine.parent.mkdir(exist_ok=True)
        self.addCleanup(engine.unlink)
        engine.write_text(f'{{"runtimes": {{"podqos": {{"path": "{WRAPPER}"}}}}}}', encoding="utf-8")
        self.assertIn(f"podqos: {engine} still names podqos-runtime", self.rpm("--erase", "podqos"))


if __name__ == "__main__":
    harness.main(("runc",), here=[Package], in_guest=[Life])
