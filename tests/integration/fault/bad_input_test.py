"""Bad input under admit and under reject: a clear error, nothing written, nothing lost."""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import oci  # noqa: E402
from harness import MI, container, pod  # noqa: E402

POLICIES = ("admit", "reject")
NEIGHBOUR = pod("neighbour-1", container("app", requests={"cpu": "100m", "memory": "1Gi"}))

# One of each kind: what is read of each annotation, state object and configuration, the unit tests have.
# Annotations that cannot be carried out; each with a word that the error must contain.
BAD_ANNOTATIONS = [
    ("uid that climbs", {"podqos.io/pod-uid": "../../x"}, "../../x"),
    ("uid with a NUL", {"podqos.io/pod-uid": "a\0b"}, "pod-uid"),
    ("pod cut short", {"podqos.io/pod": '{"containers": [{"name"', "podqos.io/pod-uid": "bad-1"}, "podqos.io/pod"),
    ("quantity that is none", {"podqos.io/requests": "cpu=lots", "podqos.io/pod-uid": "bad-1"}, "lots"),
    ("unknown annotation", {"podqos.io/podd-uid": "x", "podqos.io/pod-uid": "bad-1"}, "podd-uid"),
]
# State objects on a hook's stdin.
BAD_STATES = [
    ("empty", b""),
    ("cut short", b'{"ociVersion": "1.0.2", "id": "x", "pi'),
    ("no id", b'{"ociVersion": "1.0.2", "pid": 1, "bundle": "/tmp"}'),
    ("deeply nested", b'{"id": "x", "pid": 1, "a": ' + b"[" * 100000 + b"]" * 100000 + b"}"),
    ("larger than 1 MiB", b'{"id": "x", "pid": 1, "a": "' + b"a" * (2 * MI) + b'"}'),
    ("bytes that are no UTF-8", b'{"id": "\xff\xfe", "pid": 1, "bundle": "/tmp"}'),
]
# Configuration files, NAMED being the field that names the runtime; each with a word that the error must contain.
NAMED = '"runtimes": ["%s"]'
BAD_CONFIGURATIONS = [
    ("cut short behind it", f'{{{NAMED}, "enabled": true', ""),
    ("unknown field", f'{{"onErorr": "reject", {NAMED}}}', "onError"),
    ("relative state directory", f'{{{NAMED}, "stateDir": "run"}}', "stateDir"),
]
# What cannot be decided is never guessed.
UNDECIDABLE_CONFIGURATIONS = [
    ("cut short within it", f'{{{NAMED[:-1]}', ""),
    ("repeated", f'{{{NAMED}, {NAMED}}}', "runtimes"),
]


class BadInput(harness.TestCase):
    """A pod lives beside; whatever comes, its cgroups, values and records stay as they are."""

    def setUp(self):
        super().setUp()
        self.neighbour, self.neighbour_pid = self.launch(NEIGHBOUR, "app")

    def set_policy(self, policy):
        self.podqos.settings["onError"] = policy
        self.podqos.ctl("reconcile", kind=self.kind)  # so that the state has the new settings

    def truth(self):
        paths = [self.tier_path("burstable"), self.tier_path("besteffort"), self.pod_path("burstable", "neighbour-1")]
        return {
            "state": self.podqos.state_bytes(),
            "cgroups": sorted(self.machine.leftovers(self.root)),
            "values": [self.machine.snapshot(p) for p in paths],
        }

    def check_refused(self, bundle, policy, words=(), dress=lambda file: None):
        """The bundle, with its config.json dressed, under the wrapper: unchanged and started, or refused; one line of
        error; the truth as before."""
        name = self.container_id("bad")
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/bad"
        dress(bundle.save().file)
        content, truth = bundle.read(), self.truth()
        done = self.wrapper.create(name, bundle, check=False)
        lines = [line for line in done.stderr.splitlines() if "podqos" in line]
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertIn(str(word), lines[0])
        self.assertEqual(bundle.read(), content)
        self.assertEqual(self.truth(), truth)
        state = self.plain.state(name)
        if policy == "reject":
            self.assertEqual(done.returncode, 1)
            self.assertIsNone(state)
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(machines.cgroup_of(state["pid"]), f"{self.elsewhere}/bad")
        self.plain.delete(name)
        self.assertEqual(self.truth(), truth)


@harness.for_each_runtime
class Annotations(BadInput):
    """Annotations come from pod authors: each is checked, and the error names container, annotation and value."""

    def test_each_under_each_policy(self):
        for policy in POLICIES:
            self.set_policy(policy)
            for label, annotations, word in BAD_ANNOTATIONS:
                with self.subTest(policy=policy, annotations=label):
                    bundle = self.bundle()
                    bundle.annotations.update({"podqos.io/container": "app", **annotations})
                    self.check_refused(bundle, policy, [word])


@harness.for_each_runtime
class ConfigJson(BadInput):
    """A config.json that is no config is the runtime's to refuse; podqos writes nothing."""

    CHANGES = {
        "empty": lambda text: b"",
        "cut short": lambda text: text[: len(text) // 2],
        "an array": lambda text: b"[]",
        "trailing garbage": lambda text: text + b"}",
        "no UTF-8": lambda text: text.replace(b"bad-1", b"\xff\xfe"),
        "not there": None,
    }

    def make(self):
        bundle = self.bundle()
        bundle.annotations.update({"podqos.io/pod-uid": "bad-1", "podqos.io/requests": "cpu=1"})
        return bundle.save()

    @staticmethod
    def lead_elsewhere(file):
        file.symlink_to(file.rename(file.with_name("elsewhere.json")))

    @staticmethod
    def lengthen(file):
        file.write_bytes(file.read_bytes() + b" " * (9 * MI))

    def test_good_but_not_for_podqos(self):
        """The runtime would take it."""
        for policy in POLICIES:
            self.set_policy(policy)
            for dress in (self.lead_elsewhere, self.lengthen):
                with self.subTest(policy=policy, config=dress.__name__):
                    bundle = self.make()
                    self.check_refused(bundle, policy, [bundle.file], dress)
                    self.assertEqual(bundle.file.is_symlink(), dress == self.lead_elsewhere)

    def test_bundle_whose_path_is_no_utf8(self):
        """No record could name it, so it is not taken for a container that podqos has nothing to do with."""
        # crun cannot write such a path into its own state.
        for policy in POLICIES if self.kind == "runc" else ("reject",):
            self.set_policy(policy)
            with self.subTest(policy=policy):
                bundle = self.make()
                bundle.path = bundle.path.rename(os.fsdecode(os.fsencode(bundle.path) + b"\xff"))
                self.check_refused(bundle, policy, ["not UTF-8"])

    def test_malformed(self):
        for policy in POLICIES:
            self.set_policy(policy)
            for label, change in self.CHANGES.items():
                with self.subTest(policy=policy, config=label):
                    bundle, name, truth = self.make(), self.container_id("bad"), self.truth()
                    before = change and change(bundle.read())
                    if change:
                        bundle.file.write_bytes(before)
                    else:
                        bundle.file.unlink()
                    done = self.wrapper.create(name, bundle, check=False)
                    if self.plain.state(name):
                        self.plain.delete(name)
                    elif policy == "reject":
                        self.assertEqual(done.returncode, 1)
                    self.assertEqual(bundle.read() if bundle.file.exists() else None, before)
                    self.assertEqual(self.truth(), truth)


@harness.runc_only
class HookState(BadInput):
    """A hook's stdin: admit warns and lets the container pass, reject refuses it; poststop always passes."""

    def test_each_under_each_policy(self):
        for policy, status in zip(POLICIES, (0, 1)):
            self.set_policy(policy)
            for label, state in BAD_STATES:
                for stage in ("createRuntime", "poststop"):
                    with self.subTest(policy=policy, state=label, stage=stage):
                        truth = self.truth()
                        done = self.podqos.hook(stage, state, check=False)
                        self.assertEqual(done.returncode, status if stage == "createRuntime" else 0, done.stderr)
                        self.assertEqual(done.stdout, "")
                        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                        self.assertEqual(self.truth(), truth)

    def test_read_to_the_end(self):
        """By a hook that has nothing to do with it, too: crun fails a container whose hook ends before it has its state."""
        state = json.dumps({"ociVersion": "1.0.2", "id": "large", "annotations": {"other": "a" * (2 * MI)}}).encode()
        configurations = {"broken": "perhaps", "good": "admit"}
        for label, policy in configurations.items():
            self.set_policy(policy)
            for stage in ("createRuntime", "poststop", "precreate"):
                for unshare in ((), ("unshare", "--user", "--map-root-user")):
                    command = [*unshare, harness.HOOK, "--config", self.podqos.config(self.kind), stage]
                    with self.subTest(configuration=label, stage=stage, unshare=unshare):
                        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL) as hook:
                            self.assertEqual(hook.stdin.write(state), len(state))
                            hook.stdin.flush()
                            hook.stdin.close()

    def test_precreate_echoes_or_refuses(self):
        bad = b'{"annotations": {"podqos.io/pod-uid": "a/b"}}'
        for text in (b"podqos.io/", bad, bad[:-1] + b', "linux": 7}', bad + b" " * (8 * MI)):
            for policy in POLICIES:
                with self.subTest(policy=policy, text=text[:60]):
                    done = self.precreate(policy, text)
                    if policy == "admit":
                        self.assertEqual((done.returncode, done.stdout.encode()), (0, text))
                    else:
                        self.assertEqual(done.returncode, 1)

    def test_precreate_echoes_what_is_none_of_podqos(self):
        """As the wrapper does: what has no podqos annotation, and no engine's of a pod, is not even parsed."""
        for text in (b"", b"hello", b"[]", b'{"linux": 7}', b'{"x": "' + b"y" * (9 * MI) + b'"}'):
            for policy in POLICIES:
                with self.subTest(policy=policy, text=text[:60]):
                    done = self.precreate(policy, text)
                    self.assertEqual((done.returncode, done.stdout.encode(), done.stderr), (0, text, ""))

    def test_precreate_without_a_sandbox(self):
        """A host that refuses capset(2): under admit the container starts from its own config.json."""
        text = b'{"annotations": {"podqos.io/pod-uid": "sandbox-1", "podqos.io/requests": "cpu=1"}}'
        for policy in POLICIES:
            self.set_policy(policy)
            done = subprocess.run(
                ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=capset", "-e", "inject=capset:error=EPERM",
                 str(harness.HOOK), "--config", str(self.podqos.config(self.kind)), "precreate"], input=text,
                capture_output=True, check=False, cwd=self.tmp)
            self.assertIn(b"Operation not permitted", done.stderr)
            self.assertEqual((done.returncode, done.stdout), (0, text) if policy == "admit" else (1, b""))

    def precreate(self, policy, text):
        self.set_policy(policy)
        truth = self.truth()
        done = self.podqos.hook("precreate", text, check=False, cwd=self.tmp)
        self.assertEqual(self.truth(), truth)
        return done

    def test_usage(self):
        for args in ((), ("noSuchStage",), ("createRuntime", "poststop"), ("--config",)):
            with self.subTest(args=args):
                done = subprocess.run([harness.HOOK, *args], capture_output=True, stdin=subprocess.DEVNULL, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)

    def test_help_fits_a_terminal(self):
        done = subprocess.run([harness.HOOK, "--help"], capture_output=True, text=True, check=True)
        self.assertEqual([line for line in done.stdout.splitlines() if len(line) > 80], [])


@harness.runc_only
class HookThatWaits(harness.TestCase):
    """A hook ends after 30 s, whatever it waits for, by a timer that no runtime can block; here its time is poked to 1 s."""

    TIME = "00" * 16 + "0100000000000000" + "00" * 8

    def traced(self, stage, stdin, *options):
        """(exit status, calls that make the timer)"""
        trace = pathlib.Path(self.podqos.directory, f"{stage}.trace")
        command = ["strace", "-f", "-e", "trace=timer_create,timer_settime", *options, "-o", trace,
                   harness.HOOK, "--config", self.podqos.config(self.kind), stage]
        # As crun starts it: with all signals blocked.
        with subprocess.Popen(command, stdin=stdin, stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.pthread_sigmask(
                signal.SIG_BLOCK, signal.valid_signals())) as process:
            return process.wait(), trace.read_text(encoding="utf-8")

    def assert_ends(self, stage, stdin):
        poke = f"inject=timer_settime:poke_enter=@arg3={self.TIME}"
        self.assertEqual(self.traced(stage, stdin, "-e", poke)[0], -signal.SIGKILL)

    def test_time(self):
        calls = self.traced("poststop", subprocess.DEVNULL)[1]
        self.assertRegex(calls, r"timer_create\(CLOCK_MONOTONIC, \{.*sigev_signo=SIGKILL, sigev_notify=SIGEV_SIGNAL")
        self.assertRegex(calls, r"timer_settime\(.*it_value=\{tv_sec=30, tv_nsec=0\}")

    def test_for_the_state(self):
        """A writer that leaves the pipe open: one line, and what onError says."""
        for policy, status in (("admit", 0), ("reject", 1)):
            self.podqos.settings["onError"] = policy
            command = [harness.HOOK, "--config", self.podqos.config(self.kind), "createRuntime"]
            read, write = os.pipe()
            done = subprocess.run(command, stdin=read, capture_output=True, text=True, check=False,
                                  timeout=harness.CALL_TIMEOUT)
            os.close(read)
            os.close(write)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (status, 1), done.stderr)
            self.assertIn("OCI state on stdin", done.stderr)

    def test_for_the_lock(self):
        """Which it waits for with a timer of its own."""
        self.podqos.settings["lockDeadline"] = "60s"
        name, _ = self.launch(harness.pod("waits", harness.container("app", limits={"cpu": "100m"})), "app")
        state = self.tmp / "state.json"
        state.write_text(json.dumps({"ociVersion": "1.0.2", "id": name, "status": "stopped",
                                     "bundle": str(self.wrapper.bundles[name].path)}), encoding="utf-8")
        with open(self.podqos.state / "lock", encoding="utf-8") as lock, open(state, encoding="utf-8") as stdin:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assert_ends("poststop", stdin)
        self.wrapper.delete(name)


@harness.for_each_runtime
class Configuration(harness.TestCase):
    """Broken since the boot means built-in admit: every container runs unchanged, under the runtime that it names."""

    def setUp(self):
        super().setUp()
        self.file = self.tmp / "broken.json"
        self.path = oci.runtime_path(self.kind)
        self.command = [str(harness.RUNTIME), "--config", str(self.file), "--root", str(self.wrapper.root)]

    def write(self, text):
        self.file.write_text(text.replace("%s", self.path).replace("%%", "%"), encoding="utf-8")

    def plain_bundle(self):
        bundle = self.bundle()
        bundle.annotations.update({"podqos.io/pod-uid": "config-1", "podqos.io/requests": "cpu=1"})
        bundle.config["linux"]["cgroupsPath"] = f"{self.elsewhere}/config"
        return bundle.save()

    def check_refused(self, *words, limit=()):
        """Nothing is run for any verb: the error names the file, and what lives goes on living, what is written stays."""
        bundle, name = self.plain_bundle(), self.container_id("refused")
        before, log = bundle.read(), self.tmp / "runtime.log"
        living = self.container_id("living")
        pid = self.plain.launch(living, bundle)
        calls = (["create", "--bundle", bundle.path, name], ["run", "--bundle", bundle.path, name], ["state", living],
                 ["kill", living, "KILL"], ["delete", "--force", living], ["list"], ["--version"])
        for call in calls:
            log.unlink(missing_ok=True)
            argv = [*limit, *self.command, "--log", str(log), *call]
            done = self.wrapper.call(argv=argv, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""), call)
            for text in (done.stderr, log.read_text(encoding="utf-8") if not limit else str(self.file)):
                self.assertIn(str(self.file), text)
            for word in words:
                self.assertIn(word, done.stderr)
        self.assertIsNone(self.plain.state(name))
        self.assertEqual(self.plain.pid(living), pid)
        self.assertEqual(bundle.read(), before)
        self.plain.delete(living)

    def test_each(self):
        system = [path for path in ("/kubepods", "/podqos") if self.machine.exists(path)]
        for label, text, word in BAD_CONFIGURATIONS:
            with self.subTest(configuration=label):
                self.write(text)
                bundle, name = self.plain_bundle(), self.container_id("config")
                before = bundle.read()
                done = self.wrapper.call(argv=[*self.command, "create", "--bundle", bundle.path, name])
                self.assertIn(word, done.stderr)
                self.assertIn(str(self.file), done.stderr)
                self.assertEqual(bundle.read(), before)
                self.assertEqual(machines.cgroup_of(self.plain.pid(name)), f"{self.elsewhere}/config")
                # Of the other runtime's containers a runtime knows nothing.
                self.wrapper.call(argv=[*self.command, "delete", "--force", name])
                self.assertIsNone(self.plain.state(name))
                self.check_told(word)
                self.assertEqual(self.runtimes(), [self.path])
        self.assertEqual([path for path in ("/kubepods", "/podqos") if self.machine.exists(path)], system)

    def runtimes(self):
        """What `config runtimes` prints; None where it fails."""
        command = [harness.CTL, "--config", self.file, "config", "runtimes"]
        done = subprocess.run(command, capture_output=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def check_told(self, word):
        command = [harness.CTL, "--config", self.file, "config", "check"]
        check = subprocess.run(command, capture_output=True, check=False)
        self.assertNotEqual(check.returncode, 0)
        self.assertIn(word, check.stderr.decode() + check.stdout.decode())

    def test_no_other_runtime_is_run(self):
        for label, text, word in UNDECIDABLE_CONFIGURATIONS:
            with self.subTest(configuration=label):
                self.write(text)
                self.check_refused(word)
                self.check_told(word)
                self.assertIsNone(self.runtimes())

    def test_file_that_is_missing_or_may_not_be_believed(self):
        self.check_refused("No such file")
        self.write(f"{{{NAMED}}}")
        self.file.chmod(0o666)
        self.check_refused("chmod go-w")

    def test_no_descriptor_is_left(self):
        self.write(f"{{{NAMED}}}")
        self.check_refused("Too many open files", limit=("prlimit", "--nofile=3:3"))

    def test_first_runtime_that_cannot_be_looked_at(self):
        """EACCES, EIO …: whether it is there is not known, so the second is not run in its place."""
        loop = self.tmp / "loop"
        loop.symlink_to(loop)
        self.file.write_text(json.dumps({"runtimes": [str(loop), self.path]}), encoding="utf-8")
        bundle, name = self.plain_bundle(), self.container_id("loop")
        argv = [*self.command, "create", "--bundle", bundle.path, name]
        done = self.wrapper.call(argv=argv, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(loop), done.stderr)
        self.assertIsNone(self.plain.state(name))


# As runc checks a cgroupsPath under --systemd-cgroup: libcontainer/specconv/spec_linux.go, CreateCgroupConfig.
RUNC_WITH_SYSTEMD = """#!/usr/bin/python3
import json, pathlib, sys
bundle = sys.argv[sys.argv.index("--bundle") + 1]
path = json.loads(pathlib.Path(bundle, "config.json").read_text())["linux"].get("cgroupsPath", "")
if "--systemd-cgroup" in sys.argv and path and len(path.split(":")) != 3:
    sys.exit(f"expected cgroupsPath to be of format \\"slice:prefix:name\\" for systemd cgroups, got {path!r} instead")
"""


class PathThatTheRuntimeRefuses(harness.TestCase):
    """`admit` means that the container starts: also where its runtime takes no path but podqos's."""

    def setUp(self):
        super().setUp()
        self.fake = self.tmp / "runc"
        self.fake.write_text(RUNC_WITH_SYSTEMD, encoding="utf-8")
        self.fake.chmod(0o755)
        self.podqos.settings["runtimes"] = [str(self.fake)]
        self.podqos.config()

    def containerds(self, annotations, path="/k8s.io/c1"):
        """A pod without cgroup parent, as containerd 1.7 describes it, for a handler with SystemdCgroup = true."""
        bundle = self.bundle()
        bundle.annotations.update({"io.kubernetes.cri.container-type": "container",
                                   "io.kubernetes.cri.sandbox-id": "s1",
                                   "io.kubernetes.cri.sandbox-uid": "admit-1", **annotations})
        bundle.config["linux"]["cgroupsPath"] = path
        return bundle.save()

    def create(self, bundle, *flags):
        return self.wrapper.call(*flags, "create", "--bundle", bundle.path, "c1", check=False)

    def config_but_for_the_path(self, bundle):
        config = bundle.reload().config
        noted = config.pop("podqos.io/edits", [])
        self.assertEqual([edit["at"] for edit in noted], ["/linux/cgroupsPath"] * len(noted))
        return config["linux"].pop("cgroupsPath"), config

    def test_starts_where_an_annotation_is_misspelt(self):
        bundle = self.containerds({"podqos.io/request": "cpu=1"})
        _, before = self.config_but_for_the_path(bundle)
        done = self.create(bundle, "--systemd-cgroup")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("podqos.io/request", done.stderr)
        path, after = self.config_but_for_the_path(bundle)
        self.assertEqual(path, "system.slice:podqos:c1")
        self.assertEqual(after, before)
        for where in (done.stderr, self.podqos.log_text()):
            self.assertIn(path, where)
        self.assertEqual(self.podqos.records(), [])

    def test_starts_where_the_configuration_is_broken(self):
        bundle = self.containerds({})
        config = self.podqos.config()
        config.write_text(config.read_text(encoding="utf-8").replace('"stateDir"', '"stateDri"'), encoding="utf-8")
        done = self.wrapper.call(argv=[harness.RUNTIME, "--config", config, "--systemd-cgroup", "create", "--bundle",
                                       bundle.path, "c1"], check=False)
        # Whichever runtime a broken configuration leaves: none may see a path that it refuses.
        self.assertEqual(self.config_but_for_the_path(bundle)[0], "system.slice:podqos:c1", done.stderr)

    def test_keeps_a_path_that_the_runtime_takes(self):
        for flags, path in ((["--systemd-cgroup"], "system.slice:cri-containerd:c1"), ([], "/k8s.io/c1")):
            with self.subTest(path=path):
                bundle = self.containerds({"podqos.io/request": "cpu=1"}, path)
                content = bundle.read()
                self.assertEqual(self.create(bundle, *flags).returncode, 0)
                self.assertEqual(bundle.read(), content)


if __name__ == "__main__":
    harness.main()
