"""The examples for containerd at the end of the very config.toml that Debian's containerd comes with.

For each release one guest is booted with its containerd: 1.6 in Debian 12, 1.7 in Debian 13, 2.1 in testing. There this
file runs again, and what asks for podqos starts as well as what has never heard of it.
"""

import pathlib
import re
import sys
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import containerd  # noqa: E402
import cri  # noqa: E402
import engine  # noqa: E402
import guest  # noqa: E402
import harness  # noqa: E402
import machine as machines  # noqa: E402
from containerd_case import BURSTABLE, ContainerdCase  # noqa: E402

STOCK = pathlib.Path("/etc/containerd/config.toml")
SANDBOX_IMAGE = re.compile(r"""^\s*sandbox(?:_image)? = ["']([^"']+)["']$""", re.MULTILINE)


class Stock(ContainerdCase):
    """In the guest: the file as the package has put it there, and the example appended to it as the example says."""

    kind, driver, set_up = "runc", "systemd", "example"

    @classmethod
    def setUpClass(cls):
        engine.configure()
        text = STOCK.read_text(encoding="utf-8")
        version = tomllib.loads(text)["version"]
        parts = [text, (containerd.EXAMPLES / f"config-v{version}.toml").read_text(encoding="utf-8")]
        if containerd.config_version() == 2:
            parts.append((containerd.EXAMPLES / "nri.toml").read_text(encoding="utf-8"))
        STOCK.write_text("".join(parts), encoding="utf-8")
        cls.daemon = containerd.Containerd("--address", containerd.SOCKET, "--root", engine.WORK / "containerd/root",
                                           "--state", engine.WORK / "containerd/state")
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.stop)
        cls.daemon.load_image(SANDBOX_IMAGE.search(engine.call("containerd", "config", "dump").stdout)[1])

    def run_in_default_handler(self):
        """A pod as one asks for it who knows nothing of handlers; its container."""
        sandbox = self.cri.run_pod(cri.sandbox("plain", "plain-1"), "")
        container = self.cri.create(sandbox, cri.container("app", engine.IMAGE))
        self.cri.start(container)
        self.assertEqual(self.cri.containers()[container], cri.RUNNING)
        self.assertEqual(machines.cgroup_of(self.cri.pid(container)), f"/k8s.io/{container}")
        return sandbox

    def test_each_handler_starts(self):
        plain = self.run_in_default_handler()
        self.assertEqual(engine.records(), [])
        sandbox = self.run_pod(BURSTABLE)
        container = self.start(sandbox, BURSTABLE, "web")
        self.assert_below(self.pod_path(BURSTABLE), self.cri.pid(container), container)
        self.assert_values(self.pod_path(BURSTABLE), quota=BURSTABLE.quota, memory=BURSTABLE.memory)
        self.assert_known_as(BURSTABLE, "Burstable", "podqos.io/pod")
        for each in (sandbox, plain):
            self.remove(each)
        self.assert_nothing_left()

    def test_what_the_file_said_still_holds(self):
        dumped = tomllib.loads(engine.call("containerd", "config", "dump").stdout)["plugins"]
        networks = next(table["cni"] for table in dumped.values() if "cni" in table)
        self.assertIn("/usr/lib/cni", (networks["bin_dir"], *networks.get("bin_dirs", ())))
        if "io.containerd.nri.v1.nri" in dumped:  # 1.6 has none
            self.assertTrue(containerd.NRI_SOCKET.is_socket())


if __name__ == "__main__":
    harness.main(("runc",), in_guest=[Stock], here=[guest.cases({
        root: (guest.Guest("systemd", root=root), __file__) for root in ("bookworm", "trixie", "testing")})])
