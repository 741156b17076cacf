#!/usr/bin/env python3
"""podqosctl config, the words that all subcommands share, and what status shows of the configuration.

Run with PODQOS_BIN naming the directory of the programs, or with --bin DIR.
"""

import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

from podqosctl import BIN, ROOT, config_file, ctl  # noqa: E402


class Metrics(unittest.TestCase):
    """podqosctl metrics: the file is as node_exporter wants it, or as it was."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="podqos-test-")))
        self.place = self.folder / "textfile"
        self.place.mkdir()
        self.config = self.enterContext(config_file(stateDir=str(self.folder / "state")))

    def metrics(self, *words):
        done = ctl("--config", self.config, "metrics", *words, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_textfile_is_replaced(self):
        file = self.place / "podqos.prom"
        for before in (None, "old"):
            if before:
                file.write_text(before, encoding="ascii")
                file.chmod(0o600)
            with self.subTest(before):
                self.assertEqual(self.metrics("--textfile", self.place), (0, "", ""))
                self.assertEqual(file.stat().st_mode & 0o7777, 0o644)
                self.assertEqual(self.metrics(), (0, file.read_text(encoding="utf-8"), ""))
                self.assertIn("\npodqos_collector_success 1\n", file.read_text(encoding="utf-8"))
        self.assertEqual(os.listdir(self.place), ["podqos.prom"])

    def test_says_that_pods_cannot_be_read(self):
        (self.folder / "state").write_text("no directory", encoding="ascii")
        status, text, error = self.metrics()
        self.assertEqual(status, 1)
        self.assertIn("\npodqos_collector_success 0\n", text)
        self.assertRegex(error, f"^podqosctl: metrics omit pods and tiers: .*{self.folder}/state.*\n$")
        self.assertEqual(self.metrics("--textfile", self.place), (1, "", error))
        self.assertEqual((self.place / "podqos.prom").read_text(encoding="utf-8"), text)

    def test_says_what_else_is_wrong(self):
        """An error in the configuration is in the metrics; a journal that cannot be read fails as the state does."""
        self.assertIn("\npodqos_configuration_errors 0\n", self.metrics()[1])
        with config_file(nodememory=1, stateDir=str(self.folder / "state")) as wrong:
            done = ctl("--config", wrong, "metrics", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("\npodqos_configuration_errors 1\n", done.stdout)
        state = self.folder / "state"
        state.mkdir(mode=0o700)
        os.mkfifo(state / "events")
        status, text, error = self.metrics()
        self.assertEqual(status, 1)
        self.assertIn("\npodqos_collector_success 1\n", text)
        self.assertNotIn("podqos_recent_events", text)
        self.assertRegex(error, rf"^podqosctl: metrics omit events: .*{state}/events.*\n$")

    def test_others_cannot_be_in_the_way(self):
        """Neither by a lock on the directory, which takes no right but to read it, nor by a file."""
        held = os.open(self.place, os.O_RDONLY)
        self.addCleanup(os.close, held)
        fcntl.flock(held, fcntl.LOCK_EX)
        for name in ("podqos.prom", "node.html"):
            (self.place / f".{name}.podqos-tmp").mkdir()
        self.assertEqual(self.metrics("--textfile", self.place), (0, "", ""))
        done = ctl("--config", self.config, "report", "--output", self.place / "node.html", check=False)
        self.assertNotIn(str(self.place), done.stderr)
        self.assertEqual(sorted(os.listdir(self.place)),
                         [".node.html.podqos-tmp", ".podqos.prom.podqos-tmp", "node.html", "podqos.prom"])

    def test_no_directory(self):
        absent = f"{self.folder}/absent"
        self.assertEqual(self.metrics("--textfile", absent),
                         (1, "", f"podqosctl: open {absent}: No such file or directory\n"))
        done = ctl("report", "--output", f"{self.folder}/", check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--output: expected the name of a file", done.stderr)


class Configuration(unittest.TestCase):
    """config check says ok or names file and field; config show prints every field."""

    def test_check_and_show(self):
        with tempfile.TemporaryDirectory(prefix="podqos-test-") as directory:
            good, bad = pathlib.Path(directory) / "good.json", pathlib.Path(directory) / "bad.json"
            good.write_text('{"cgroupRoot": "/x" /* ours */}')
            bad.write_text('{"cgroupRot": "/x"}')
            for file in (good, bad):
                file.chmod(0o644)
            done = ctl("config", "check", str(good), str(bad), check=False)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout, f"{good}: ok\n")
            self.assertIn("bad.json", done.stderr)
            self.assertIn("cgroupRoot", done.stderr)
            for text, position in (('{\n  // ours\n  "enabled": ,\n}\n', "malformed JSON at line 3, column 14: "),
                                   ('{\n  // ours\n  "enable": true,\n}\n', "line 3, column 3: unknown field enable; ")):
                bad.write_text(text)
                self.assertIn(f"bad.json: {position}", ctl("config", "check", str(bad), check=False).stderr)
            shown = json.loads(ctl("config", "show", "--config", str(good)).stdout)
            self.assertEqual(shown["cgroupRoot"], "/x")
            self.assertEqual(json.loads(ctl("--config", str(good), "config", "show").stdout), shown)

    def test_each_line_of_the_shipped_file_can_be_uncommented(self):
        shipped = (ROOT / "packaging/podqos.json").read_text(encoding="utf-8")
        fields = [line for line in shipped.splitlines() if line.startswith('  // "') and '": ' in line]
        self.assertGreaterEqual(len(fields), 9)
        for field in fields:
            with config_file() as file:
                pathlib.Path(file).write_text(shipped.replace(field, field.replace("// ", "")), encoding="utf-8")
                self.assertEqual(ctl("config", "check", file).stdout, f"{file}: ok\n", field)

    def test_errors_do_not_hide_the_pods(self):
        with config_file(nodememory=1, podPidsLimt=2) as file:
            for view in ("status", "tree"):
                done = ctl("--config", file, view, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stdout, r"^error: .*nodeMemory\?\nerror: .*podPidsLimit\?\nwarning: (?s:.*)\nno pods\n$")
                shown = json.loads(ctl("--config", file, view, "-o", "json", check=False).stdout)
                self.assertEqual(len(shown["errors"]), 2)
            checked = ctl("config", "check", file, check=False)
            self.assertEqual((checked.returncode, len(checked.stderr.splitlines())), (1, 2))

    def test_switched_off_is_said(self):
        with config_file(enabled=False) as file:
            done = ctl("--config", file, "status", check=False)
            self.assertEqual(done.returncode, 1)
            self.assertTrue(done.stdout.startswith('warning: podqos is switched off by "enabled": false'), done.stdout)
            self.assertFalse(json.loads(ctl("--config", file, "status", "-o", "json", "--exit-zero").stdout)["enabled"])
            self.assertRegex(ctl("config", "check", file).stdout, r"^.*: ok\npodqos is switched off by ")

    def test_a_user_namespace_is_said(self):
        namespace = ["unshare", "--user", "--map-root-user"]
        if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no user namespaces")
        with config_file() as file:
            for command in ("status", "doctor"):
                done = subprocess.run([*namespace, BIN / "podqosctl", "--config", file, command], capture_output=True,
                                      text=True, check=False)
                self.assertIn("in which podqos manages nothing", " ".join(done.stdout.split()))
                self.assertEqual(done.returncode, 1)

    @unittest.skipUnless(os.geteuid() == 0, "is about users other than root")
    def test_other_users_are_told_who_may(self):
        with tempfile.TemporaryDirectory(prefix="podqos-test-") as directory:
            os.chmod(directory, 0o755)
            state, file = pathlib.Path(directory) / "state", pathlib.Path(directory) / "podqos.json"
            state.mkdir(mode=0o700)
            file.write_text(json.dumps({"stateDir": str(state)}))
            file.chmod(0o644)
            program = shutil.copy(BIN / "podqosctl", directory)
            for command in ("status", "tree", "reconcile"):
                done = subprocess.run([program, "--config", str(file), command], capture_output=True, text=True,
                                      check=False, user=65534, group=65534, extra_groups=[])
                self.assertEqual(done.returncode, 1)
                self.assertIn("Permission denied; run it as root (sudo podqosctl …)", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "mounts")
    def test_directory_of_a_config_map(self):
        """As a kubelet mounts it: root's, open to all by its mode, and read-only."""
        script = """mount -t tmpfs none /etc
            mkdir -p /etc/podqos/conf.d/..data
            echo '{"podPidsLimit": 7}' >/etc/podqos/conf.d/..data/10.json
            ln -s ..data/10.json /etc/podqos/conf.d/10.json
            chmod 1777 /etc/podqos/conf.d
            ! "$0" config check || exit 3
            mount -o remount,ro /etc
            "$0" config check"""
        done = subprocess.run(["unshare", "--mount", "sh", "-ec", script, BIN / "podqosctl"], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "/etc/podqos/conf.d/10.json: ok\n"), done.stderr)
        self.assertIn("/etc/podqos/conf.d: writable by group or others: run chmod go-w", done.stderr)

    def test_no_state_means_no_pods(self):
        with config_file() as file:
            for command in ("status", "tree"):
                self.assertTrue(ctl(command, "--config", file).stdout.endswith("no pods\n"))
                got = json.loads(ctl(command, "--config", file, "-o", "json").stdout)
                self.assertEqual(got["pods"], [])
            self.assertEqual(os.listdir(os.path.dirname(file)), ["podqos.json"])

    def test_unknown_commands_are_named(self):
        for args, word in ((["bogus"], 'unknown command "bogus"; expected one of explain, annotate, '),
                           (["explian", "-f", "x"], 'unknown command "explian"; did you mean explain?'),
                           (["--config", "/x", "stat"], 'unknown command "stat"; did you mean status?'),
                           (["config", "showw"], 'unknown command "showw"; did you mean show?')):
            with self.subTest(args):
                done = ctl(*args, check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(word, done.stderr)
        for args, said in ((["--bogus"], 'unknown option "--bogus"; use --help to list the options'),
                           (["tree", "--bogus"], 'unknown option "--bogus"; use --help to list the options'),
                           (["tree", "a\033b"], 'unexpected argument "a\\x1bb"; use --help to list the options'),
                           (["explain"], "-f, --bundle or a pod is required; use --help to list the options")):
            with self.subTest(args):
                done = ctl(*args, check=False)
                self.assertEqual((done.returncode, done.stderr), (2, f"podqosctl: {said}\n"))

    def test_empty_values_are_refused(self):
        for words, wanted in ((("metrics", "--textfile", ""), "--textfile: expected DIR"),
                              (("report", "--output", ""), "--output: expected FILE"),
                              (("--config", "", "status"), "--config: expected FILE"),
                              (("describe", ""), "POD: expected TEXT")):
            done = ctl(*words, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", f"podqosctl: {wanted}, found \"\"; use --help to list the options\n"))

    def test_a_file_is_named_once(self):
        for args in (["explain", "-f"], ["annotate", "-f"], ["config", "check"], ["config", "show", "--config"]):
            with self.subTest(args):
                self.assertEqual(ctl(*args, "/nonexist", check=False).stderr,
                                 "podqosctl: open /nonexist: No such file or directory\n")

    def test_help(self):
        for args in (["explain"], ["status"], ["describe"], ["tree"], ["top"], ["why"], ["metrics"], ["doctor"],
                     ["report"], ["reconcile"], ["resize"], ["config"], ["config", "show"]):
            with self.subTest(args):
                self.assertIn("--config", ctl(*args, "--help").stdout)
        for args in (["annotate"], ["version"]):
            with self.subTest(args):
                self.assertNotIn("--config", ctl(*args, "--help").stdout)
        done = ctl("annotate", "--config", "/dev/null", "-f", "-", stdin="kind: Pod", check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("podqosctl annotate reads no configuration", done.stderr)
        for kind in ("PodTemplate", "ReplicationController", "List"):
            self.assertIn(kind, ctl("annotate", "--help").stdout)
        self.assertIn("log where no container has told it yet", " ".join(ctl("explain", "--help").stdout.split()))

    def test_help_fits_a_terminal(self):
        calls = [[]]
        for args in calls:
            text = ctl(*args, "--help").stdout
            self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])
            listed = text.partition("\nSubcommands:\n")[2]
            calls += [[*args, name] for name in re.findall(r"^  (\w+) ", listed, re.MULTILINE)]
        self.assertEqual([" ".join(args) for args in calls],
                         ["", "explain", "annotate", "status", "describe", "tree", "top", "events", "why", "metrics",
                          "doctor", "report", "reconcile", "resize", "configure", "config", "version", "config show",
                          "config check", "config runtimes"])

    def test_a_full_disk_is_a_failure(self):
        for args in (["--version"], ["version"], ["--help"]):
            with self.subTest(args), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([BIN / "podqosctl", *args], stdout=full, stderr=subprocess.PIPE, check=False)
                self.assertEqual(done.returncode, 1)

    def test_version(self):
        first = ctl("--version").stdout
        self.assertRegex(first, r"^podqosctl \d+\.\d+\.\d+\n$")
        self.assertRegex(ctl("version").stdout, rf"^{first}podqos-hook \S+\npodqos-nri \S+\n$")
        self.assertEqual(list(json.loads(ctl("version", "-o", "json").stdout)), ["podqosctl", "podqos-hook", "podqos-nri"])


if __name__ == "__main__":
    unittest.main()
