"""The RPM packages: what is in them, and what becomes of living pods when they are upgraded and removed.

Here they are built with Debian's rpmbuild from the programs of PODQOS_BIN and looked at. The life of an installed one
passes in a guest, where this file runs again: real rpm with a database of its own, and real runc.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402
import oci  # noqa: E402
from package_case import (  # noqa: E402
    BUILD, CONFIGURATION, DROP_IN, HOOK, KEPT, STATE, VERSION, WORK, WRAPPER, BuiltCase, LifeCase, RemovalCase, boot, output)

PODMAN = """Name: podman
Epoch: 4
Version: {}
Release: 1
Summary: Stands in for Podman
License: Apache-2.0
BuildArch: noarch
%description
%install
install -D /dev/null %{{buildroot}}/usr/bin/podman
%files
/usr/bin/podman
"""

class Package(BuiltCase):
    """The packages as files."""

    build_program, release_option = "rpm/build", "--release"
    more = ("/usr/lib/systemd/system-preset/90-podqos.preset", "/usr/share/doc/podqos/CHANGELOG.md",
            "/usr/share/doc/podqos/docs/configuration.md", "/usr/share/licenses/podqos/LICENSE")

    @classmethod
    def setUpClass(cls):
        guest.require_tools("rpmbuild", "cmake", "ninja")
        cls.make_packages()

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

    def unpack(self, package, directory):
        archive = subprocess.run(["rpm2cpio", package], check=True, capture_output=True).stdout
        subprocess.run(["cpio", "--extract", "--quiet", "--make-directories"], check=True, input=archive, cwd=directory)

    def test_name_and_version(self):
        architecture = os.uname().machine
        self.assertEqual([self.package.name, self.plugin.name],
                         [f"podqos-{VERSION}-1.{architecture}.rpm", f"podqos-nri-{VERSION}-1.{architecture}.rpm"])
        self.assertEqual(self.ask(self.package, "%{NAME} %{VERSION} %{RELEASE} %{LICENSE}"), f"podqos {VERSION} 1 Apache-2.0")

    def test_needs(self):
        """No library: all are linked in."""
        for package in (self.package, self.plugin):
            self.assertNotIn(".so", self.ask(package, "[%{REQUIRENAME}\n]"))
        self.assertIn("diffutils", self.ask(self.package, "[%{REQUIRENAME}\n]").split())

    def test_architectures(self):
        """Those with integers of 128 bits."""
        done = subprocess.run([harness.REPOSITORY / "packaging/rpm/build", "--target", "i686", self.place], text=True,
                              capture_output=True, check=False, env={**os.environ, "PODQOS_BUILT": str(BUILD)})
        self.assertIn("Architecture is not included: i686", done.stderr)

    def test_services_are_enabled(self):
        """By presets, where the distribution's enable nothing."""
        place = self.place / "enabled"
        place.mkdir()
        for package in (self.package, self.plugin):
            self.unpack(package, place)
        (place / "usr/lib/systemd/system-preset/99-default.preset").write_text("disable *\n", encoding="ascii")
        units = ("podqos-reconcile.timer", "podqos-nri.service", "podqos-metrics.timer")
        output("systemctl", f"--root={place}", "preset", *units)
        found = {unit: subprocess.run(["systemctl", f"--root={place}", "is-enabled", unit], capture_output=True, text=True,
                                      check=False).stdout.strip() for unit in units}
        self.assertEqual(found, dict(zip(units, ("enabled", "enabled", "disabled"), strict=True)))

    def test_configuration_belongs_to_the_operator(self):
        listed = output("rpm", "--query", "--package", "--configfiles", self.package).split()
        self.assertEqual(listed, [str(CONFIGURATION)])

    def test_sbom(self):
        self.sbom(self.package, "podqos", "podqos-hook", "podqosctl")

    def test_rpmlint(self):
        if not shutil.which("rpmlint"):
            self.skipTest("rpmlint is not installed")
        self.check_with("rpmlint", "--strict", "--config", harness.REPOSITORY / "packaging/rpm/rpmlint.toml")

    def test_life(self):
        self.check_life(__file__, "v2")


class Life(LifeCase, RemovalCase):
    """An installed package; each test begins and ends without it."""

    @classmethod
    def setUpClass(cls):
        if oci.runtime_path(cls.kind) is None:
            raise unittest.SkipTest(f"{cls.kind} is not installed")
        cls.first, cls.second = sorted(pathlib.Path(os.environ["PODQOS_PACKAGES"]).glob("podqos-[0-9]*.rpm"))
        WORK.mkdir(exist_ok=True)
        tempfile.tempdir = str(WORK)
        # What scripts of packages ask rpm is answered from here, too.
        os.environ["HOME"] = str(WORK)
        (WORK / ".rpmmacros").write_text(f"%_dbpath {WORK}/rpm\n%_topdir {WORK}/rpmbuild\n", encoding="utf-8")

    def setUp(self):
        super().setUp()
        self.addCleanup(self.clean_up)
        self.said = self.put(self.first)

    def rpm(self, *words, refused=False):
        """Debian's packages are not known to rpm, so that nothing is there to depend on."""
        done = subprocess.run(["rpm", "--nodeps", *words], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode != 0, refused, f"rpm {words}\n{done.stdout}")
        return done.stdout

    def put(self, package, refused=False):
        """rpm wants to be asked twice for an older one."""
        return self.rpm("--upgrade", "--oldpackage", package, refused=refused)

    def take(self):
        return self.rpm("--erase", "podqos")

    def verify(self):
        """What is not as the package has it."""
        return self.rpm("--verify", "podqos")

    def release(self):
        return output("rpm", "--query", "--queryformat", "%{RELEASE}", "podqos")

    def put_podman(self, version):
        spec = WORK / "podman.spec"
        spec.write_text(PODMAN.format(version), encoding="utf-8")
        output("rpmbuild", "-bb", spec)
        self.put(WORK / f"rpmbuild/RPMS/noarch/podman-{version}-1.noarch.rpm")

    def take_podman(self):
        if os.path.exists("/usr/bin/podman"):
            self.rpm("--erase", "podman")

    def assert_gone(self):
        self.assertEqual(self.machine.directories("/podqos"), [])
        boot()
        self.assertEqual([path for path in (HOOK, WRAPPER, KEPT, DROP_IN) if os.path.lexists(path)], [])

    def clean_up(self):
        self.delete_all()
        if pathlib.Path("/usr/bin/podqosctl").exists():
            self.take()
        self.assert_gone()
        shutil.rmtree("/etc/podqos", ignore_errors=True)
        shutil.rmtree(STATE, ignore_errors=True)

    def test_installation(self):
        self.assertRegex(self.said, r"(?m)^podqos: registered: /usr/share/.*; to undo: .*rpm --erase podqos.*$")
        self.assertIn(VERSION, output("podqosctl", "version"))
        self.assertIn("ok", output("podqosctl", "config", "check"))
        self.assertEqual(output(WRAPPER, "--version"), output(oci.runtime_path(self.kind), "--version"))
        self.take()
        self.assert_gone()
        self.assertFalse(CONFIGURATION.exists())

    def test_engines_that_still_call_it_are_named(self):
        engine = pathlib.Path("/etc/docker/daemon.json")
        engine.parent.mkdir(exist_ok=True)
        self.addCleanup(engine.unlink)
        engine.write_text(f'{{"runtimes": {{"podqos": {{"path": "{WRAPPER}"}}}}}}', encoding="utf-8")
        self.assertIn(f"podqos: {engine} still names podqos-runtime", self.rpm("--erase", "podqos"))


if __name__ == "__main__":
    harness.main(("runc",), here=[Package], in_guest=[Life])
