#!/usr/bin/env python3
"""What bash, zsh and fish offer behind podqosctl, in the shells themselves.

Run with PODQOS_BIN naming the directory of the programs, or with --bin DIR.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

from podqosctl import BIN, ROOT, ctl  # noqa: E402

SCRIPTS = ROOT / "packaging" / "completion"

BASH = r"""
source "$1"; COMP_LINE=$2; COMP_POINT=${#2}
complete -p podqosctl >/dev/null || exit 1
part=${COMP_LINE##*[ =:]}
_podqosctl podqosctl "$part"
printf '%s\n' "${COMPREPLY[@]}"
"""
# The functions of zsh's completion system that need a terminal are played.
ZSH = r"""
script=$1; line=$2
words=("${(z)line}"); [[ $line == *' ' ]] && words+=("")
CURRENT=$#words; PREFIX=$words[-1]
compset() { [[ $PREFIX == --*=* ]] && PREFIX=${PREFIX#*=} }
_files() { print -l -- ${PREFIX}*(${1:+/}N) }
_describe() { print -l -- "${found[@]%%:*}" }
complete_it() { source $script }
complete_it
"""
FISH = r"""
source $argv[1]; complete -C "$argv[2]" | string replace -r '\t.*' ''
"""
SHELLS = {"bash": (["bash", "-c", BASH, "bash"], "podqosctl.bash"), "zsh": (["zsh", "-f", "-c", ZSH, "zsh"], "_podqosctl"),
          "fish": (["fish", "--no-config", "-c", FISH], "podqosctl.fish")}


class Completion(unittest.TestCase):
    """What may come next is what --help says; --driver=x and file names are each shell's own matter."""

    def offered(self, shell, line):
        with tempfile.TemporaryDirectory(prefix="podqos-test-") as directory:
            for name in ("pod.yaml", "bundle/config.json"):
                path = pathlib.Path(directory) / name
                path.parent.mkdir(exist_ok=True)
                path.touch()
            command, script = SHELLS[shell]
            environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": directory}
            done = subprocess.run([*command, SCRIPTS / script, line], capture_output=True, text=True, check=False,
                                  cwd=directory, env=environment)
        # fish and zsh end with that of their last command, which may have found nothing.
        self.assertEqual((done.stderr, done.returncode in (0, 1)), ("", True))
        return done.stdout.split()

    def each_shell(self, line, *want):
        for shell in SHELLS:
            with self.subTest(shell=shell, line=line):
                if not shutil.which(shell):
                    self.skipTest(f"{shell} is not installed")
                self.assertEqual(sorted(self.offered(shell, line)), sorted(want))

    def test_words(self):
        self.each_shell("podqosctl expl", "explain")
        self.each_shell("podqosctl config ", "show", "check", "runtimes")
        self.each_shell("podqosctl configure do", "docker")
        self.each_shell("podqosctl explain --node", "--node-memory")
        self.each_shell("podqosctl --config /x annotate -o ", "manifest", "annotations")

    def test_files(self):
        self.each_shell("podqosctl explain -f pod", "pod.yaml")
        self.each_shell("podqosctl --config po", "pod.yaml")

    def test_value_behind_an_equals_sign(self):
        for shell, want in (("bash", ["systemd"]), ("zsh", ["--driver=systemd"]), ("fish", ["--driver=systemd"])):
            with self.subTest(shell):
                if not shutil.which(shell):
                    self.skipTest(f"{shell} is not installed")
                self.assertEqual(self.offered(shell, "podqosctl explain --driver=s"), want)

    def test_directories(self):
        for shell, want in (("bash", ["bundle"]), ("zsh", ["bundle"]), ("fish", ["bundle/"])):
            with self.subTest(shell):
                if not shutil.which(shell):
                    self.skipTest(f"{shell} is not installed")
                self.assertEqual(self.offered(shell, "podqosctl annotate --bundle "), want)

    def test_it_is_no_command(self):
        self.assertNotIn("__complete", ctl("--help").stdout)
        self.assertEqual(ctl("__complete", "bogus", "s").stdout, "")


if __name__ == "__main__":
    unittest.main()
