"""Many want the lock at once: all get it, however busy the node's state is."""

import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import player  # noqa: E402
from harness import container, pod  # noqa: E402


class Queue(player.Case):
    """Wrappers that start at once beside reconciliations without a pause."""

    settings = {**player.Case.settings, "nodeCpu": "10000", "nodeMemory": "512Gi", "lockDeadline": "2s"}
    WRAPPERS = 64

    def reconcile_on_and_on(self, done):
        while not done.is_set():
            subprocess.run([harness.CTL, "--config", self.config, "reconcile"], capture_output=True, check=False)

    def test_all_are_managed(self):
        made = [self.container(pod(f"crowd-{n}", container("app", requests={"cpu": "10m", "memory": "16Mi"})), "app")
                for n in range(self.WRAPPERS)]
        done = threading.Event()
        busy = [threading.Thread(target=self.reconcile_on_and_on, args=(done,)) for _ in range(2)]
        for thread in busy:
            thread.start()
        try:
            started = [subprocess.Popen([harness.RUNTIME, "--config", self.config, "create", "--bundle",
                                         str(each.bundle.path), each.id], stdin=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE) for each in made]
            complaints = [process.communicate(timeout=300)[1].decode() for process in started]
        finally:
            done.set()
            for thread in busy:
                thread.join()
        self.assertEqual([line for line in complaints if line], [])
        # Their creators have gone without a container.
        self.reconcile()


if __name__ == "__main__":
    harness.main(("runc",))
