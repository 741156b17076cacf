"""SIGKILL of podqos at every system call: what comes next reaches the exact truth.

The first recovery of each sweep is tried for every system call; further ones for those before which something outside
the process may have changed since the last.
"""

import itertools
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import player  # noqa: E402
from harness import container, pod  # noqa: E402

BURSTABLE = pod(
    "first",
    container("a", requests={"cpu": "250m", "memory": "1Gi"}, limits={"cpu": "500m", "memory": "2Gi"}),
    container("b", requests={"cpu": "100m", "memory": "64Mi"}),
)
GUARANTEED = pod("second", container("app", limits={"cpu": "300m", "memory": "512Mi"}))
THIRD = pod("third", container("app", requests={"cpu": "700m", "memory": "3Gi"}))
FEWEST = {"every": 60, "effects": 8}  # a sweep of fewer system calls did not do what it should


class KillCase(player.Case):
    """Goes through the system calls of one program."""

    def sweep(self, strike, *recoveries):
        """strike(which, N) -> (what is to be recovered, was it killed?) for N = 1, 2, ... until nothing is killed."""
        for recover, which in zip(recoveries, itertools.chain(["every"], itertools.repeat("effects"))):
            for turn in itertools.count(1):
                with self.subTest(recovery=recover.__name__, which=which, call=turn):
                    made, killed = strike(which, turn)
                    recover(made)
                if self._outcome_failed():
                    return
                shutil.rmtree(made.bundle.path)
                if not killed:
                    break
            self.assertGreater(turn, FEWEST[which])


class BesideAPod(KillCase):
    """A second container is killed on its way in or out while a pod lives."""

    def setUp(self):
        super().setUp()
        self.alive = self.create(self.container(BURSTABLE, "a"))
        self.check(self.alive)

    def tearDown(self):
        if self.alive.process:
            self.delete(self.alive)
        super().tearDown()

    # Recoveries. Each ends with the first container alone.

    def by_reconcile(self, made):
        self.end(made)
        self.reconcile()
        self.check(self.alive)

    def by_the_next_event(self, made):
        self.end(made)
        other = self.create(self.container(THIRD, "app"))
        self.check(self.alive, other)
        self.delete(other)
        self.check(self.alive)

    def by_another_attempt(self, made):
        self.end(made)
        self.create(made)
        self.check(self.alive, made)
        self.delete(made)
        self.check(self.alive)

    def by_poststop(self, made):
        """What runc does when a hook fails."""
        self.delete(made)
        self.check(self.alive)

    def by_living_on(self, made):
        """A container whose hook was killed lives all the same: it counts."""
        self.reconcile()
        self.check(self.alive, made)
        self.delete(made)
        self.check(self.alive)

    def by_the_next_event_or_reconcile(self, made):
        """Who was killed before the first change has left no trace: nothing may be half done, though."""
        other = self.create(self.container(THIRD, "app"))
        if self.wrong(self.alive, made, other):
            self.check(self.alive, other)
        self.reconcile()
        self.check(self.alive, other)
        self.delete(other)
        self.check(self.alive)

    # Strikes.

    def placing(self, manifest, name, whom):
        def strike(which, turn):
            made = self.container(manifest, name)
            killed = self.place(made, (whom, which, turn))
            json.loads(made.bundle.read())  # the old one or the new one, never a part
            return made, killed
        return strike

    def confirming(self, manifest, name):
        def strike(which, turn):
            made = self.container(manifest, name)
            self.place(made)
            self.start(made)
            return made, self.hook("createRuntime", made, ("all", which, turn))
        return strike

    def releasing(self, manifest, name):
        def strike(which, turn):
            made = self.create(self.container(manifest, name))
            self.end(made)
            return made, self.hook("poststop", made, ("all", which, turn))
        return strike

    def test_wrapper_with_a_new_pod(self):
        self.sweep(self.placing(GUARANTEED, "app", "all"), self.by_reconcile, self.by_the_next_event,
                   self.by_another_attempt)

    def test_wrapper_with_the_same_pod(self):
        self.sweep(self.placing(BURSTABLE, "b", "all"), self.by_reconcile)

    def test_one_process_of_the_wrapper(self):
        self.sweep(self.placing(GUARANTEED, "app", "one"), self.by_reconcile, self.by_the_next_event)

    def test_create_hook_with_a_new_pod(self):
        self.sweep(self.confirming(GUARANTEED, "app"), self.by_reconcile, self.by_poststop, self.by_living_on)

    def test_create_hook_with_the_same_pod(self):
        self.sweep(self.confirming(BURSTABLE, "b"), self.by_reconcile)

    def test_poststop_of_another_pod(self):
        self.sweep(self.releasing(GUARANTEED, "app"), self.by_reconcile, self.by_poststop,
                   self.by_the_next_event_or_reconcile)

    def test_poststop_of_the_same_pod(self):
        self.sweep(self.releasing(BURSTABLE, "b"), self.by_reconcile)


class Unplaced(BesideAPod):
    """Hooks alone: the create hook makes everything, and sets the values where the process is."""

    def test_create_hook(self):
        def strike(which, turn):
            made = self.container(GUARANTEED, "app")
            self.start(made)
            return made, self.hook("createRuntime", made, ("all", which, turn))
        self.sweep(strike, self.by_reconcile, self.by_poststop)


for _name in [n for n in vars(BesideAPod) if n.startswith("test_")]:
    setattr(Unplaced, _name, None)  # they have run already


class Alone(KillCase):
    """The first container of all, which makes the whole tree, and the last, which removes it."""

    def by_reconcile(self, made):
        self.end(made)
        self.reconcile()
        self.check()

    def by_the_next_event(self, made):
        other = self.create(self.container(THIRD, "app"))
        self.check(other)
        self.delete(other)
        self.check()

    def by_poststop(self, made):
        self.hook("poststop", made)
        self.check()

    def test_wrapper(self):
        def strike(which, turn):
            made = self.container(GUARANTEED, "app")
            return made, self.place(made, ("all", which, turn))
        self.sweep(strike, self.by_reconcile, self.by_the_next_event)

    def test_poststop(self):
        def strike(which, turn):
            made = self.create(self.container(GUARANTEED, "app"))
            self.end(made)
            return made, self.hook("poststop", made, ("all", which, turn))
        self.sweep(strike, self.by_reconcile, self.by_poststop)


class Reconcile(KillCase):
    """podqosctl reconcile itself, killed while it restores a state that was lost."""

    def test_at_every_call(self):
        first, second = self.create(self.container(BURSTABLE, "a")), self.create(self.container(GUARANTEED, "app"))
        command = [str(harness.CTL), "--config", self.config, "reconcile"]
        for turn in itertools.count(1):
            shutil.rmtree(self.podqos.state)
            with self.subTest(call=turn):
                killed = self.run_podqos(command, b"", ("all", "every", turn))
                self.reconcile()
                self.check(first, second)
            if not killed or self._outcome_failed():
                break
        self.assertGreater(turn, FEWEST["every"])
        self.delete(first)
        self.delete(second)
        self.check()


if __name__ == "__main__":
    harness.main(("runc",))
