"""What the tests of the packages share: containers that call the installed programs, as engines let them."""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import unittest.mock

import guest
import harness
import machine as machines
import oci
import spdx

BUILD = harness.BIN.parent
VERSION = re.search(r"VERSION ([\d.]+) LANG", (harness.REPOSITORY / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
HOOK = pathlib.Path("/usr/libexec/oci/hooks.d/podqos-hook")
WRAPPER = pathlib.Path("/usr/bin/podqos-runtime")
REGISTRATIONS = pathlib.Path("/usr/share/containers/oci/hooks.d")
DROP_IN = pathlib.Path("/etc/containers/containers.conf.d/zz-podqos.conf")
KEPT = pathlib.Path("/usr/libexec/podqos-removed")
KEPT_UNTIL_BOOT = pathlib.Path("/usr/lib/tmpfiles.d/podqos-removed.conf")
STATE = pathlib.Path("/run/podqos")
CONFIGURATION = pathlib.Path("/etc/podqos/podqos.json")
WORK = pathlib.Path("/run/podqos-test")  # in the guest: an overlay cannot stand on the guest's root, which is one


def output(*command, **options):
    """What a command prints; it has to succeed."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def boot():
    """What a boot does to that which a removal has left: the machine's memory is empty, and systemd-tmpfiles has run."""
    shutil.rmtree(STATE, ignore_errors=True)
    if not KEPT_UNTIL_BOOT.exists():
        return
    for kind, path in re.findall(r"(?m)^([rR])! (\S+)$", KEPT_UNTIL_BOOT.read_text(encoding="utf-8")):
        place = pathlib.Path(path)
        if kind == "R":
            shutil.rmtree(place)
        elif place.is_dir() and not any(place.iterdir()):
            place.rmdir()
        elif not place.is_dir():
            place.unlink()


class Absences:
    """Sees whether a directory loses an entry, be it for a moment."""

    DELETE, MOVED_FROM, NONBLOCK = 0x200, 0x40, 0o4000

    def __init__(self, directory):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(self.NONBLOCK)
        if self.libc.inotify_add_watch(self.fd, str(directory).encode(), self.DELETE | self.MOVED_FROM) < 0:
            raise OSError(ctypes.get_errno(), f"inotify on {directory}")

    def names(self):
        found = []
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.fd, 1 << 16):
                while data:
                    length = struct.unpack_from("iIII", data)[3]
                    found.append(data[16:16 + length].rstrip(b"\0").decode())
                    data = data[16 + length:]
        os.close(self.fd)
        return found


# What must be there of either kind of package. What containers call is the package's own: rpm -V and debsums see to it, and
# fapolicyd and IMA let nothing else run.
PROGRAMS = {"podqos": ("/usr/bin/podqosctl", str(HOOK), *(f"/usr/libexec/podqos/{name}" for name in
                                                          ("hand-over", "register-with-podman", "removed-hook", "stay"))),
            "podqos-nri": ("/usr/sbin/podqos-nri",)}
FILES = {
    "podqos": (
        "/etc/podqos/podqos.json",
        "/usr/lib/systemd/system/podqos-metrics.service",
        "/usr/lib/systemd/system/podqos-metrics.timer",
        "/usr/lib/systemd/system/podqos-reconcile.service",
        "/usr/lib/systemd/system/podqos-reconcile.timer",
        "/usr/lib/tmpfiles.d/podqos.conf",
        "/usr/share/bash-completion/completions/podqosctl",
        "/usr/share/containers/oci/hooks.d/50-podqos-createruntime.json",
        "/usr/share/containers/oci/hooks.d/50-podqos-poststop.json",
        "/usr/share/doc/podqos/podqos.spdx.json",
        "/usr/share/man/man1/podqosctl.1.gz",
        "/usr/share/man/man5/podqos.json.5.gz",
        "/usr/share/man/man8/podqos-hook.8.gz",
        "/usr/share/man/man8/podqos-runtime.8.gz",
        "/usr/share/podqos/containers.conf.d/zz-podqos.conf",
        "/usr/share/podqos/podman-hooks.d/50-podqos-precreate.json",
    ),
    "podqos-nri": (
        "/usr/lib/systemd/system/podqos-nri.service",
        "/usr/share/doc/podqos-nri/examples/systemd/metrics-over-tcp.conf",
        "/usr/share/doc/podqos-nri/podqos-nri.spdx.json",
        "/usr/share/man/man8/podqos-nri.8.gz",
    ),
}


class BuiltCase(unittest.TestCase):
    """Packages as files, whichever tool they are of.

    A tool is: the program that builds, with its option for a release, contents(package) ({path: mode}, all of them
    root's) and unpack(package, directory). `more` are further files that must be there.
    """

    build_program, release_option = None, None
    more = ()

    @classmethod
    def make_packages(cls):
        cls.place = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="podqos-test-package-")))
        cls.package, cls.plugin = cls.build("1", "packages")
        cls.build("2", "packages")

    @classmethod
    def build(cls, release, folder, *prefix):
        """Both packages of that release, the plugin's behind the other."""
        printed = output(*prefix, harness.REPOSITORY / "packaging" / cls.build_program, cls.release_option, release,
                         cls.place / folder, env={**os.environ, "PODQOS_BUILT": str(BUILD)})
        return sorted(map(pathlib.Path, printed.splitlines()), key=lambda path: "nri" in path.name)

    def unpacked(self, package):
        """A directory with its files."""
        place = self.place / "unpacked" / package.name
        if not place.exists():
            place.mkdir(parents=True)
            self.unpack(package, place)
        return place

    def test_contents(self):
        for package, name, more in ((self.package, "podqos", self.more), (self.plugin, "podqos-nri", ())):
            modes = {**dict.fromkeys(PROGRAMS[name], "-rwxr-xr-x"), **dict.fromkeys((*FILES[name], *more), "-rw-r--r--")}
            found = self.contents(package)
            self.assertEqual({path: found.get(path) for path in modes}, modes)
        found = self.contents(self.package)
        self.assertEqual(found["/etc/podqos/conf.d"], "drwxr-xr-x")
        self.assertEqual([path for path in found if "nri" in path], [])
        self.assertEqual([mode for path, mode in found.items() if path.partition(" ")[0] == str(WRAPPER)], ["lrwxrwxrwx"])

    def sbom(self, package, name, *programs):
        """A package's document, in which nothing is wrong."""
        file = self.unpacked(package) / f"usr/share/doc/{name}/{name}.spdx.json"
        document = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual(spdx.problems(document), [])
        self.assertEqual(spdx.related(document, f"Package-{name}", "CONTAINS"), dict.fromkeys(programs, f"{VERSION}-1"))
        return document

    def test_programs_are_those_that_were_tested(self):
        packed = (self.unpacked(self.package) / str(HOOK).lstrip("/")).read_bytes()
        self.assertEqual(packed, (BUILD / "bin/podqos-hook").read_bytes())

    def test_same_tree_gives_same_packages(self):
        """Whatever the umask, the locale, the place, the time zone and the time."""
        again = self.build("1", "again", "env", "LC_ALL=C.UTF-8", "TZ=Asia/Tokyo", f"TMPDIR={self.place}", "sh", "-c",
                           'umask 077; exec "$@"', "sh")
        for one, other in zip(again, (self.package, self.plugin), strict=True):
            # Not both in one list: to tell how two of megabytes differ takes unittest hours.
            self.assertEqual(one.read_bytes(), other.read_bytes(), one.name)

    def check_with(self, *command):
        """What looks for faults in packages finds none."""
        done = subprocess.run([*command, self.package, self.plugin], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def check_life(self, file, flavour, *classes):
        """The file's classes in a guest."""
        with unittest.mock.patch.dict(os.environ, PODQOS_PACKAGES=str(self.package.parent)):
            done = guest.Guest(flavour).run_test(file, *classes, show=True, installed=False)
        self.assertEqual(done.returncode, 0, f"in the guest with {flavour}")


class PackageCase(unittest.TestCase):
    """In a guest: the programs at the paths of the package, and containers that call them."""

    kind = "runc"

    def setUp(self):
        self.machine = machines.Machine()
        self.wrapper = oci.Runtime(self.kind, f"/run/{self.kind}", [str(WRAPPER)])
        self.plain = oci.Runtime(self.kind, f"/run/{self.kind}")
        shutil.rmtree(WORK / "bundles", ignore_errors=True)
        for told in WORK.glob("foreign-*"):
            told.unlink()

    def delete_all(self):
        """Whatever runtime has made them."""
        self.plain.bundles.update(self.wrapper.bundles)
        self.plain.delete_all()

    def bundle(self, name, uid=None, **changes):
        """A bundle with podqos's hooks, as an engine that reads hooks.d registers them, and a foreign one behind them."""
        made = oci.Bundle(WORK / "bundles" / name, self.kind)
        if uid is not None:
            limits = {"cpu": "100m", "memory": "64Mi"}
            members = [harness.container(member, {"cpu": "50m"}, limits) for member in ("app", "log")]
            manifest = WORK / f"{uid}.json"
            manifest.write_text(json.dumps(harness.unnamed(harness.pod(uid, *members))), encoding="utf-8")
            made.annotations.update(json.loads(output("podqosctl", "annotate", "-f", manifest, "--container", name,
                                                       "-o", "annotations")))
        made.annotations.update(changes)
        for stage in ("createRuntime", "poststop"):
            made.add_hook(stage, HOOK, ["podqos-hook", stage])
        made.add_hook("poststop", "/bin/sh", ["sh", "-c", f"cat >/dev/null; echo ran >>{WORK}/foreign-{name}"])
        return made.save()

    def launch(self, name, uid=None, runtime=None):
        return (runtime or self.wrapper).launch(name, self.bundle(name, uid))

    def pod(self, uid, root="/podqos"):
        return f"{root}/kubepods/burstable/pod{uid}"

    def assert_managed(self, pid, uid, root="/podqos"):
        self.assertTrue(machines.alive(pid))
        self.assertEqual(os.path.dirname(machines.cgroup_of(pid)), self.pod(uid, root))
        self.assertEqual(self.machine.read(self.pod(uid, root), "memory"), 2 * 64 * harness.MI)
        self.assertEqual(self.machine.read(self.pod(uid, root), "quota"), 20000)

    def assert_foreign_ran(self, name):
        told = WORK / f"foreign-{name}"
        self.assertEqual(told.read_text(encoding="utf-8") if told.exists() else "", "ran\n", f"foreign hook of {name}")

    def delete_containers(self, *names):
        for name in names:
            self.wrapper.delete(name)
            self.assert_foreign_ran(name)


class LifeCase(PackageCase):
    """What becomes of living pods when a package comes, changes and goes, whichever tool it is of.

    A tool is: put(package, refused=False), which installs it or takes it in place of another, take(), which removes it,
    both of which give what was said, verify(), which says what is not as it was packed, release(), that which is installed,
    assert_gone() after a removal, and put_podman(version) and take_podman() for a package of an empty /usr/bin/podman with an
    epoch. `first` and `second` are packages of one version in that order.
    """

    def test_upgrade_with_a_pod_alive(self):
        CONFIGURATION.write_text('{"podPidsLimit": 77}', encoding="utf-8")
        pid = self.launch("app", "upgraded")
        before = self.machine.snapshot(self.pod("upgraded"))
        absences = Absences(HOOK.parent)
        registered = {file.name: file.stat().st_ino for file in REGISTRATIONS.iterdir()}
        self.assertNotIn("podqos: registered: ", self.put(self.second))
        self.assertEqual([name for name in absences.names() if name == HOOK.name], [])
        # Other files have taken their place: an engine that reads one meanwhile reads all of it.
        replaced = {file.name: file.stat().st_ino for file in REGISTRATIONS.iterdir()}
        self.assertEqual((set(replaced), set(replaced.items()) & set(registered.items())), (set(registered), set()))
        self.assertEqual(CONFIGURATION.read_text(encoding="utf-8"), '{"podPidsLimit": 77}')
        self.assert_managed(pid, "upgraded")
        self.assertEqual(self.machine.snapshot(self.pod("upgraded")), before)
        self.wrapper.exec("app", "true")
        self.assert_managed(self.launch("log", "upgraded"), "upgraded")
        self.delete_containers("app", "log")
        self.assertEqual(self.machine.directories("/podqos"), [])

    def test_downgrade_with_a_pod_alive(self):
        """A version that can read the state takes over from a newer one, any other is not installed."""
        self.put(self.second)
        pid = self.launch("app", "older")
        texts = {path: path.read_bytes() for path in STATE.rglob("*") if path.is_file()}
        texts = {path: text for path, text in texts.items() if b'"version":1,' in text}
        self.assertEqual({path.parent.name for path in texts}, {"podqos", "pods"})
        for path, text in texts.items():
            path.write_bytes(re.sub(rb'"version":1,"writer":"[^"]*"', b'"version":12,"writer":"9.8.7"', text))
        program = HOOK.read_bytes()
        said = self.put(self.first, refused=True)
        self.assertIn(f"podqos: version {VERSION} is not installed: the state in {STATE} has format 12, written by podqos "
                      "9.8.7, and this version reads formats up to 1", said)
        self.assertIn("remove podqos", said)
        self.assertEqual((HOOK.read_bytes(), self.release()), (program, "2"))
        # Nor is one that was removed put back before the containers of the newer one have ended.
        self.take()
        self.assertIn(f"version {VERSION} is not installed", self.put(self.first, refused=True))
        for path, text in texts.items():
            path.write_bytes(text)
        self.put(self.first)
        self.assert_managed(pid, "older")
        self.assert_managed(self.launch("log", "older"), "older")
        self.delete_containers("app", "log")

    def test_installation_takes_over_again(self):
        pid = self.launch("app", "again")
        self.take()
        self.put(self.first)
        self.assertIn("podqos-hook", output(HOOK, "--version"))
        self.assertFalse(KEPT.exists())
        self.assertEqual(self.verify(), "")
        self.assert_managed(pid, "again")
        self.assert_managed(self.launch("log", "again"), "again")
        self.delete_containers("app", "log")
        self.assertTrue(HOOK.exists())

    def test_podman_comes_changes_and_goes(self):
        """One before 4.8 refuses each command beside a file that appends to a list."""
        self.assertFalse(os.path.lexists(DROP_IN))
        self.addCleanup(self.take_podman)
        for version, registered in (("4.6.1", False), ("4.8.0", True), ("5.4.2", True), ("4.3.1", False), ("4.10.0", True)):
            self.put_podman(version)
            self.assertEqual((version, os.path.lexists(DROP_IN)), (version, registered))
        self.assertTrue(DROP_IN.exists())
        DROP_IN.unlink()
        DROP_IN.touch()
        self.put(self.second)
        self.put_podman("4.11.0")
        self.assertFalse(DROP_IN.is_symlink(), "an empty file keeps podqos from being registered")
        DROP_IN.unlink()
        self.put(self.first)
        self.take_podman()
        self.assertFalse(os.path.lexists(DROP_IN))

    def test_podman_that_is_there_before(self):
        self.addCleanup(self.take_podman)
        for version, registered in (("4.6.1", False), ("4.8.0", True), (None, False)):
            self.take()
            if version:
                self.put_podman(version)
            else:
                self.take_podman()
            said = self.put(self.first)
            self.assertEqual((version, os.path.lexists(DROP_IN)), (version, registered))
            # Told once, not again where a removal has left the package's configuration.
            self.assertEqual(str(DROP_IN) in said, registered and "podqos: registered: " in said, said)


class RemovalCase(PackageCase):
    """Living pods outlive the package; what they call outlives them until the boot."""

    def check_named_configuration(self):
        """Nothing new is managed by a configuration that the caller names and by which podqos is on."""
        own = WORK / "own.json"
        own.write_text(json.dumps({"runtimes": [oci.runtime_path(self.kind)]}), encoding="utf-8")
        records = sorted((STATE / "pods").iterdir())
        for name, option in (("named", ["--config", str(own)]), ("equals", [f"--config={own}"])):
            bundle = self.bundle(name, **{"podqos.io/pod-uid": name})
            bundle.config["hooks"]["createRuntime"][0]["args"] += option
            before = bundle.save().read()
            wrapper = oci.Runtime(self.kind, f"/run/{self.kind}", [str(WRAPPER), *option])
            self.assertNotIn("kubepods", machines.cgroup_of(wrapper.launch(name, bundle)))
            self.assertEqual((bundle.read(), sorted((STATE / "pods").iterdir())), (before, records), name)
            wrapper.delete(name)
            self.assert_foreign_ran(name)

    def test_removal_with_a_pod_alive(self):
        pids = [self.launch(name, "removed") for name in ("app", "log")]
        before = self.machine.snapshot(self.pod("removed"))
        said = self.take()
        self.assertIn(f"podqos: {HOOK} and {WRAPPER} stay for containers that live", said)
        for pid in pids:
            self.assert_managed(pid, "removed")
        self.assertEqual(self.machine.snapshot(self.pod("removed")), before)
        self.wrapper.exec("app", "true")

        stranger = self.wrapper.launch("stranger", self.bundle("stranger", **{"podqos.io/pod-uid": "late"}))
        self.assertNotIn("kubepods", machines.cgroup_of(stranger))
        self.check_named_configuration()
        self.delete_containers("stranger", "app")
        self.assert_managed(pids[1], "removed")
        self.delete_containers("log")
        self.assert_gone()
