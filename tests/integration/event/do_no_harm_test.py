"""Do no harm: what has nothing to do with podqos is to the byte what it is without it."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import oci  # noqa: E402
from harness import MI, container, pod  # noqa: E402

# What a process inside sees of its surroundings.
PROBE = """env | sort; umask; ls /proc/self/fd; cat /proc/self/oom_score_adj; cat /proc/self/limits; id
grep -E '^(Cap|Seccomp|NoNewPrivs|Sig(Q|Pnd|Blk|Ign|Cgt)|ShdPnd|Uid|Gid|Groups|Umask)' /proc/self/status | grep -v SigQ
cat /proc/self/cgroup"""


def capabilities(config, *names):
    for kind in ("bounding", "effective", "permitted"):
        config["process"]["capabilities"][kind] = list(names)


def seccomp(config):
    rule = {"names": ["mkdirat", "mkdir"], "action": "SCMP_ACT_ERRNO"}
    config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [rule]}


# Label, what differs from the runtime's own default config, exit status of the container.
ORDINARY = [
    ("default", lambda c, base: None, 0),
    ("exit-status", lambda c, base: None, 42),
    ("cgroups-path", lambda c, base: c["linux"].update(cgroupsPath=f"{base}/a/b"), 0),
    ("memory", lambda c, base: c["linux"]["resources"].update(memory={"limit": 64 * MI}), 0),
    ("swap", lambda c, base: c["linux"]["resources"].update(memory={"limit": 64 * MI, "swap": 64 * MI}), 0),
    ("shares", lambda c, base: c["linux"]["resources"].update(cpu={"shares": 512}), 0),
    ("quota", lambda c, base: c["linux"]["resources"].update(cpu={"quota": 20000, "period": 50000}), 0),
    ("pids", lambda c, base: c["linux"]["resources"].update(pids={"limit": 20}), 0),
    ("oom-score", lambda c, base: c["process"].update(oomScoreAdj=500), 3),
    ("oom-score-zero", lambda c, base: c["process"].update(oomScoreAdj=0), 0),
    ("environment", lambda c, base: c["process"]["env"].append("PODQOS=no such thing"), 0),
    ("user", lambda c, base: c["process"]["user"].update(uid=1000, gid=1000, additionalGids=[7, 8]), 0),
    ("umask", lambda c, base: c["process"]["user"].update(umask=0o27), 0),
    ("capabilities", lambda c, base: capabilities(c, "CAP_NET_RAW", "CAP_CHOWN"), 0),
    ("new-privileges", lambda c, base: c["process"].update(noNewPrivileges=False), 0),
    ("seccomp", lambda c, base: seccomp(c), 0),
    ("annotations", lambda c, base: c.update(annotations={"com.example.pod": "x", "podqos.io.example": "y"}), 0),
    ("ignored", lambda c, base: c.update(
        annotations={"podqos.io/ignore": "true", "podqos.io/requests": "cpu=1", "podqos.io/pod-uid": "ignored-1"}), 0),
    ("rlimits", lambda c, base: c["process"].update(rlimits=[{"type": "RLIMIT_NOFILE", "hard": 99, "soft": 88}]), 0),
    ("no-hostname", lambda c, base: c.pop("hostname"), 0),
]


@harness.for_each_runtime
class Ordinary(harness.TestCase):
    """An ordinary container under wrapper and hooks equals the same one without them, inside and outside."""

    def make(self, directory, label, change, status):
        """The same bundle directory twice gives the same bytes; `directory` is made anew."""
        shutil.rmtree(directory, ignore_errors=True)
        bundle = oci.Bundle(directory, self.kind, ("sh", "-c", f"{PROBE}\nexit {status}"))
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/{label}"
        change(bundle.config, self.elsewhere)
        return bundle.save()

    def observe(self, runtime, name, bundle):
        """Everything that could tell the two runs apart."""
        before = bundle.read()
        runtime.create(name, bundle)
        pid = runtime.pid(name)
        seen = {
            "cgroups": machines.cgroups_of(pid),
            "values": self.machine.snapshot(machines.cgroup_of(pid)),
            "oom": machines.oom_score_adj(pid),
        }
        runtime.delete(name)
        done = runtime.run(name, bundle, check=False)
        seen |= {"status": done.returncode, "inside": done.stdout, "errors": done.stderr}
        self.assertEqual(bundle.read(), before, "config.json changed")
        return seen

    def test_equal_with_and_without(self):
        self.assertEqual(len(ORDINARY), 20)
        for label, change, status in ORDINARY:
            with self.subTest(container=label):
                name, directory = f"{self.root[1:]}-{label}", self.tmp / "ordinary"
                without = self.observe(self.plain, name, self.make(directory, label, change, status))
                self.assertEqual(without["status"], status)
                self.assertIn("NoNewPrivs", without["inside"])
                bundle = self.make(directory, label, change, status)
                self.register_hooks(bundle)
                self.assertEqual(self.observe(self.wrapper, name, bundle), without)
        self.assertEqual((self.podqos.state_bytes(), self.podqos.events()), ({}, []))
        self.assertFalse(self.machine.exists(self.root), "podqos made a cgroup")

    def test_without_a_cgroups_path(self):
        bundle, name = self.bundle(), self.container_id("unset")
        before = bundle.read()
        pid = self.plain.launch(name, bundle)
        without = machines.cgroups_of(pid)
        self.plain.delete(name)
        pid = self.wrapper.launch(name, bundle)
        self.assertEqual(machines.cgroups_of(pid), without)
        self.assertEqual(bundle.read(), before)
        self.wrapper.delete(name)
        self.assertEqual((self.podqos.state_bytes(), self.podqos.events()), ({}, []))


@harness.for_each_runtime
class Disabled(harness.TestCase):
    """enabled: false places nothing, and still releases what lives."""

    def test_disabled(self):
        manifest = pod("disabled-1", container("app", requests={"cpu": "100m"}))
        name, _ = self.launch(manifest, "app")
        self.podqos.settings["enabled"] = False
        self.podqos.config(self.kind)
        bundle = self.bundle(manifest, "app")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/x"
        before = bundle.save().read()
        pid = self.wrapper.launch(self.container_id("other"), bundle)
        self.assertEqual(machines.cgroup_of(pid), f"{self.elsewhere}/x")
        self.assertEqual(bundle.read(), before)
        self.wrapper.delete(name)
        self.assert_nothing_left()


@harness.runc_only
class BrokenConfiguration(harness.TestCase):
    """Engines read what state, list and ps print, standard error included: podqos adds nothing to it."""

    def test_other_verbs_stay_quiet(self):
        broken = self.tmp / "broken.json"
        broken.write_text('{"scope": "everything"}', encoding="utf-8")
        runtime = oci.Runtime(self.kind, self.tmp / "runtime", [str(harness.RUNTIME), "--config", str(broken)])
        for verb in (["list", "--format", "json"], ["--version"], ["state", "none"]):
            through, plain = runtime.call(*verb, check=False), self.plain.call(*verb, check=False)
            self.assertEqual((through.returncode, through.stdout), (plain.returncode, plain.stdout))
            self.assertNotIn("broken.json", through.stderr)


@harness.runc_only
class AnotherUser(harness.TestCase):
    """A caller that is not root on the host, to whom the package's configuration file belongs to nobody."""

    USER = 1234
    PLAIN = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--")
    ROOTLESS = (*PLAIN, "unshare", "--user", "--map-root-user", "--")

    def setUp(self):
        super().setUp()
        if subprocess.run([*self.ROOTLESS, "true"], check=False, capture_output=True).returncode != 0:
            self.skipTest("an ordinary user cannot make a user namespace here")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="podqos-test-user-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.folder.chmod(0o755)
        # The tree may be where only root can look, such as root's home.
        self.hook, self.wrapper_program = (pathlib.Path(shutil.copy(path, self.folder))
                                           for path in (harness.HOOK, harness.RUNTIME))
        runtime = self.folder / "runtime"
        runtime.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n", encoding="ascii")
        runtime.chmod(0o755)
        self.log = self.folder / "log"
        self.log.touch()
        self.log.chmod(0o666)
        self.settings = {**self.podqos.settings, "runtimes": [str(runtime)], "onError": "reject",
                         "log": {"sink": str(self.log), "level": "debug"}}
        self.config = self.folder / "podqos.json"
        self.bundle_path = self.folder / "bundle"
        bundle = oci.Bundle(self.bundle_path, self.kind)
        bundle.annotations["podqos.io/requests"] = "cpu=100m"
        bundle.save()
        shutil.chown(self.bundle_path, self.USER, self.USER)
        shutil.chown(bundle.file, self.USER, self.USER)
        self.text = bundle.read().decode()

    def call(self, caller, program, *args, stdin=""):
        return subprocess.run([*caller, str(program), "--config", str(self.config), *args], input=stdin, check=False,
                              capture_output=True, encoding="utf-8")

    def assert_passed_through(self, caller):
        done = self.call(caller, self.wrapper_program, "create", "--bundle", str(self.bundle_path), "c1")
        given = f"create\n--bundle\n{self.bundle_path}\nc1\n"
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, given, ""))
        state = json.dumps({"ociVersion": "1.0.2", "id": "c1", "status": "created", "pid": 1,
                            "bundle": str(self.bundle_path), "annotations": {"podqos.io/requests": "cpu=100m"}})
        for stage, stdin, stdout in (("createRuntime", state, ""), ("prestart", state, ""), ("poststop", state, ""),
                                     ("precreate", self.text, self.text)):
            with self.subTest(stage=stage):
                done = self.call(caller, self.hook, stage, stdin=stdin)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, stdout, ""))
        self.assertEqual((self.bundle_path / "config.json").read_text(encoding="utf-8"), self.text)
        self.assertEqual((self.podqos.state_bytes(), self.podqos.events()), ({}, []))

    def test_passes_through(self):
        self.config.write_text(json.dumps(self.settings), encoding="utf-8")
        for caller in (self.PLAIN, self.ROOTLESS):
            with self.subTest(caller=caller):
                self.log.write_text("", encoding="ascii")
                self.assert_passed_through(caller)
                lines = self.log.read_text(encoding="utf-8").splitlines()
                self.assertEqual(len(lines), 5, lines)  # one for each call
                for line in lines:
                    self.assertIn("not root on the host", line)

    def test_passes_through_with_a_broken_configuration(self):
        self.config.write_text(json.dumps({**self.settings, "scope": "everything"}), encoding="utf-8")
        self.assert_passed_through(self.ROOTLESS)


@harness.for_each_runtime
class NoMoreRestricted(harness.TestCase):
    """The wrapper's sandbox is the wrapper's alone: a container it placed can do all it could do without."""

    MANIFEST = pod("free-1", container("app", limits={"cpu": "200m", "memory": "64Mi"}))
    INSIDE = """grep -E '^(Cap|Seccomp|NoNewPrivs|Sig(Blk|Ign|Cgt)|Umask)' /proc/self/status
umask; ls /proc/self/fd; env | sort"""

    def output(self, runtime, bundle):
        return runtime.run(self.container_id("free"), bundle).stdout

    def test_status_is_the_same(self):
        for label, change in (("default", lambda c: None), ("all", lambda c: _all_privileges(c))):
            with self.subTest(config=label):
                bundles = []
                for _ in range(2):
                    bundle = self.bundle(self.MANIFEST, "app", args=("sh", "-c", self.INSIDE))
                    change(bundle.config)
                    bundles.append(bundle.save())
                without = self.output(self.plain, bundles[0])
                self.assertIn("Seccomp:\t0", without)
                self.assertEqual(self.output(self.wrapper, bundles[1]), without)

    def test_descriptors_and_signals_reach_the_runtime(self):
        """The runtime after execv sees the descriptors, the mask, the umask and the cwd that the wrapper was given."""
        seen = {}
        for runtime in (self.plain, self.wrapper):
            log = self.tmp / f"trace-{len(seen)}"
            fake = self.tmp / "fake-runtime"
            # The shell looks at itself: around a fork it blocks more signals.
            fake.write_text("#!/bin/bash\n{ while read -r line; do\n"
                            "case $line in Sig[BIP]*|Shd*|Cap*|Seccomp*|NoNew*) echo \"$line\";; esac\n"
                            "done </proc/$$/status; umask; pwd; ls /proc/$$/fd; env | sort\n"
                            f"printf '%s\\n' \"$@\"; }} >{log}\n", encoding="utf-8")
            fake.chmod(0o755)
            self.podqos.settings["runtimes"] = [str(fake)]
            prefix = [str(fake)] if runtime is self.plain else self.podqos.prefix(self.kind)
            bundle = self.bundle(self.MANIFEST, "app")
            command = [*map(str, prefix), "create", "--bundle", str(bundle.path), "fake"]
            script = 'trap "" USR1; umask 031; exec 7</dev/null; exec env -i A=1 B=2 "$@"'
            subprocess.run(["bash", "-c", script, "-", *command], cwd=self.tmp, check=True)
            text = log.read_text(encoding="utf-8")
            seen[runtime is self.plain] = re.sub(r"bundles/app-\d+", "bundles/app", text)
        self.assertEqual(seen[False], seen[True])
        self.podqos.settings.pop("runtimes")
        self.podqos.ctl("reconcile", kind=self.kind)


def _all_privileges(config):
    text = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    bits = int(re.search(r"CapEff:\s*([0-9a-f]+)", text)[1], 16)
    names = {0: "CAP_CHOWN", 1: "CAP_DAC_OVERRIDE", 7: "CAP_SETUID", 21: "CAP_SYS_ADMIN", 24: "CAP_SYS_RESOURCE"}
    capabilities(config, *[name for bit, name in names.items() if bits >> bit & 1])
    config["process"]["noNewPrivileges"] = False


if __name__ == "__main__":
    harness.main()
