"""The package's programs beside the libraries of each release of Debian that podqos is for, on this machine's own kernel.

A libc of another release makes other syscalls, and the programs' filters kill for one that they do not know: a guest would
not show it, for user-mode-linux has no seccomp.
"""

import os
import pathlib
import pty
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import guest  # noqa: E402
import harness  # noqa: E402

CHROOTED = harness.REPOSITORY / "tests/guest/chrooted"
TIMEOUT = 300
SETTINGS = f'{{"cgroupRoot": "/podqos-test-{os.getpid()}"}}'
# One line each: status and command.
SCRIPT = r"""
set -e
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
dpkg --force-unsafe-io --no-triggers --install "$1"/*.deb >/tmp/said 2>&1 || { cat /tmp/said; exit 1; }
printf '%s' "$2" >/etc/podqos/conf.d/test.json
set +e
while read -r command; do
  $command </dev/null
  echo "
status $? of $command"
done <<'END'
podqosctl status
podqosctl tree
podqosctl reconcile
podqosctl config check
podqosctl config show
podqosctl version
podqosctl --help
podqosctl explain -f MANIFEST
podqosctl annotate -f MANIFEST
podqosctl status -o json
/usr/libexec/oci/hooks.d/podqos-hook --help
/usr/libexec/oci/hooks.d/podqos-hook --version
podqos-nri --help
podqos-nri --version
podqos-runtime --version
END
dpkg --purge podqos-nri podqos 2>&1 | grep -i -e warning -e error
echo purged
"""


class Programs(unittest.TestCase):
    def run_in(self, suite, terminal):
        """What all of them print."""
        root, reason = guest.made_root(suite)
        if reason:
            self.skipTest(reason)
        script = SCRIPT.replace("MANIFEST", str(harness.REPOSITORY / "examples/pod.yaml"))
        # On its standard input: a process with podqos-runtime in its arguments keeps a removal from being complete.
        command = list(map(str, [CHROOTED, root, harness.REPOSITORY, "sh", "-s", guest.packages(), SETTINGS]))
        if not terminal:
            done = subprocess.run(command, input=script, capture_output=True, text=True, check=False, timeout=TIMEOUT)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout
        leader, follower = pty.openpty()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=follower, stderr=follower) as process:
            os.close(follower)
            process.stdin.write(script.encode())
            process.stdin.close()
            said = b""
            try:
                while part := os.read(leader, 4096):
                    said += part
            except OSError:  # all who write to it have ended
                pass
            self.assertEqual(process.wait(TIMEOUT), 0, said)
        os.close(leader)
        return said.decode().replace("\r\n", "\n")

    def check(self, suite):
        for terminal in (False, True):
            with self.subTest(terminal=terminal):
                said = self.run_in(suite, terminal)
                statuses = [line for line in said.splitlines() if line.startswith("status ")]
                self.assertEqual(len(statuses), 15, said)
                self.assertEqual([line for line in statuses if not line.startswith("status 0 of")], [], said)
                # Nor has dpkg anything to say when all goes again.
                self.assertRegex(said, r"\nstatus 0 of podqos-runtime --version\npurged\n$")

    def test_debian_12(self):
        self.check("bookworm")

    def test_debian_13(self):
        self.check("trixie")

    def test_debian_testing(self):
        self.check("testing")


if __name__ == "__main__":
    harness.main(("runc",))
