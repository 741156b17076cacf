"""Random events under real runc and crun; after each the kernel must hold exactly what an oracle predicts.

PODQOS_SOAK_EVENTS (2000) is their number; tests/lib/soak.py has the other variables.
"""

import functools
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import oci  # noqa: E402
import oracle  # noqa: E402
import soak  # noqa: E402
import units  # noqa: E402
from harness import container, pod  # noqa: E402

EVENTS = int(os.environ.get("PODQOS_SOAK_EVENTS", "2000"))
MOST_CONTAINERS = 12
# System calls that the wrapper and the poststop hook make at most: the longest talk with systemd.
WRAPPER_CALLS, POSTSTOP_CALLS = (480, 290) if soak.ON_SYSTEMD else (400, 140)

# A hook named podqos-hook: the wrapper adds none of its own then. What it is to do once stands in a file beside it.
STUB = """#!/bin/sh
for stage; do :; done
order=run
[ -f "{folder}/$stage" ] && read -r order turn <"{folder}/$stage"
case $order in
  lose) exec cat >/dev/null ;;
  keep) exec cat >"{folder}/kept" ;;
  kill) exec "{stepper}" all every "$turn" - "{hook}" "$@" ;;
  *) exec "{hook}" "$@" ;;
esac
"""


def resources(cpu=None, memory=None):
    return {k: v for k, v in (("cpu", cpu), ("memory", memory)) if v}


def big(uid):
    return pod(uid, container("app", resources("2", "2Gi"), resources("3", "3Gi")), container("log", resources("10m")))


# uid: its manifests. With two, the pod comes back with other resources.
MANIFESTS = {
    "one": [pod("one", container("app", limits=resources("100m", "64Mi")))],
    "two": [pod("two", container("web", limits=resources("20m", "128Mi")),
                container("log", limits=resources("30m", "64Mi")), overhead=resources("10m", "8Mi"))],
    "both": [pod("both", container("web", resources("100m", "1Gi"), resources("200m", "2Gi")),
                 container("log", limits=resources("50m", "128Mi")))],
    "odd": [pod("odd", container("app", resources("333m", "100M")),
                container("more", resources("100500u", "77777777")))],
    "init": [pod("init", container("app", resources("100m", "64Mi"), resources("200m", "256Mi")),
                 initContainers=[container("side", resources("50m", "32Mi"), resources("70m", "96Mi"),
                                           restartPolicy="Always"),
                                 container("setup", resources("400m", "1Gi"), resources("500m", "1Gi"))])],
    "none": [pod("none", container("app"), container("more"))],
    "level": [pod("level", container("app", resources("10m", "64Mi")), container("more"),
                  resources={"requests": resources("1", "1Gi"), "limits": resources("2", "2Gi")})],
    "again": [pod("again", container("app", limits=resources("250m", "1Gi"))), big("again"),
              pod("again", container("app", resources("1m")), container("log"))],
    # Without limits: in a bundle that is used again those of podqos's own would be the engine's.
    "cri": [pod("cri", container("app", resources("150m", "512Mi"), resources("300m")),
                container("more", resources("1", "1Gi"))),
            pod("cri", container("app", resources("2", "2Gi")), container("log", resources("10m")))],
}
# Pods by short annotations alone. Each container of a partial pod tells of itself; of a whole one all say the same.
PARTIAL = {
    "part": [pod("part", container("a", resources("100m", "64Mi"), resources("200m", "128Mi")),
                 container("b", resources("50m", "32Mi"), resources("300m", "256Mi")),
                 container("c", resources("7m")))],
    "free": [pod("free", container("a"), container("b", resources("500m", "1Gi")))],
}
WHOLE = {
    "whole": [pod("whole", container("a"), container("b"),
                  resources={"requests": resources("300m", "256Mi"), "limits": resources("600m", "512Mi")})],
    "exact": [pod("exact", container("a"), container("b"), resources={"limits": resources("80m", "128Mi")})],
}
PODS = {**MANIFESTS, **PARTIAL, **WHOLE}
SANDBOX = "(sandbox)"


def short_form(values):
    return ",".join(f"{name}={value}" for name, value in values.items())


def on_some(**chosen):
    """An event of one of the instances; where there is none, one is created."""
    def decorate(event):
        @functools.wraps(event)
        def wrapped(self):
            instance = self.pick(**chosen)
            if instance is None:
                return self.event_create()
            self.note(str(instance))
            return event(self, instance)
        return wrapped
    return decorate


class Soak(soak.SoakCase):
    """2,000 random events, and an oracle that knows only runtimes, processes and manifests."""

    settings = {"nodeMemory": "64Gi", "nodeCpu": "64"}
    partial = PARTIAL
    # No limit that its engine enforces backs the claims of the pod that comes by CRI.
    unbacked = {"cri"}

    def setUp(self):
        super().setUp()
        self.kept = []  # states of poststop hooks that are still to come
        self.cache = {}
        self.counts = {}
        self.serial = 0
        self.serial = 0
        self.folder = self.tmp / "stub"
        self.folder.mkdir()
        self.stepper = self.folder / "stepper"
        oracle.build_stepper(self.stepper)
        self.stub = self.folder / "podqos-hook"
        self.stub.write_text(STUB.format(folder=self.folder, stepper=self.stepper, hook=harness.HOOK), encoding="ascii")
        self.stub.chmod(0o755)

    def reconcile(self):
        self.podqos.ctl("reconcile")

    # What an engine does.

    def annotations(self, manifest, name):
        """As an engine hands them to this container; a manifest is annotated once."""
        uid = manifest["metadata"]["uid"]
        key = json.dumps(manifest), name
        if key not in self.cache:
            self.cache[key] = self._annotations(uid, manifest, name)
        found = dict(self.cache[key])
        if uid == "cri":
            kind = "sandbox" if name == SANDBOX else "container"
            found |= {"io.kubernetes.cri.container-type": kind, "io.kubernetes.cri.sandbox-uid": uid,
                      "io.kubernetes.cri.sandbox-id": f"sandbox-{self.random.randrange(3)}"}
        return found

    def _annotations(self, uid, manifest, name):
        spec = manifest["spec"]
        own = {"podqos.io/pod-uid": uid, "podqos.io/container": name}
        if uid in WHOLE:
            return own | {f"podqos.io/{f}": short_form(v) for f, v in spec["resources"].items()}
        if uid in PARTIAL:
            given = next(c for c in spec["containers"] if c["name"] == name)["resources"]
            return own | {f"podqos.io/{f}.{name}": short_form(v) for f, v in given.items()}
        if name == SANDBOX:
            found = self.podqos.annotations(manifest, spec["containers"][0]["name"])
            del found["podqos.io/container"]
            return found
        return self.podqos.annotations(manifest, name)

    def names_in(self, manifest):
        spec = manifest["spec"]
        names = [c["name"] for c in spec["containers"] + spec.get("initContainers", [])]
        return names + [SANDBOX] * (manifest["metadata"]["uid"] == "cri")

    def free_containers(self):
        """(uid, name) that no instance stands for now."""
        taken = {(i.uid, i.name) for i in self.instances.values()}
        found = [(uid, name) for uid, manifests in PODS.items() for m in manifests for name in self.names_in(m)]
        return [f for f in dict.fromkeys(found) if f not in taken]

    def choose_manifest(self, uid, name):
        return self.random.choice([m for m in PODS[uid] if name in self.names_in(m)])

    def new_instance(self, uid=None, name=None, stubbed=None, twin=None):
        """An instance with a new bundle; with `twin`, under the other runtime and of the same id."""
        if name is None:
            # Two of one id in one pod would share a cgroup: crun's delete kills what runs in it, and nobody is told.
            uid, name = self.random.choice([f for f in self.free_containers() if twin is None or f[0] != twin.uid])
        manifest = self.choose_manifest(uid, name)
        kinds = [k for k in self.runtimes for _ in range(3 if k == "crun" else 1)]
        kind = self.random.choice([k for k in kinds if twin is None or k != twin.runtime.kind])
        self.serial += 1
        identifier = twin.id if twin else f"{self.root[1:]}-{self.serial}"
        bundle = oci.Bundle(self.tmp / "bundles" / str(self.serial), kind)
        bundle.config["linux"]["cgroupsPath"] = self.engine_path(kind, identifier)
        bundle.annotations.update(self.annotations(manifest, name))
        stubbed = self.random.random() < 0.5 if stubbed is None else stubbed
        if stubbed:
            for stage in ("createRuntime", "poststop"):
                bundle.add_hook(stage, self.stub, [*self.podqos.hook_command(kind), stage])
        bundle.save()
        made = soak.Instance(uid, manifest, name, self.runtimes[kind], identifier, bundle, stubbed)
        self.note(str(made))
        return made

    def create(self, instance, must=True):
        """Runs `create`; afterwards the instance is one of ours if the runtime lists it."""
        self.instances[instance.key] = instance
        done = instance.runtime.call("create", "--bundle", instance.bundle.path, instance.id, check=must)
        self.settle(instance)
        instance.shaped_by = instance.shaped_by or self.truth.description(instance.uid) or instance.manifest["spec"]
        return done

    def create_again(self, instance):
        """From the same bundle, unless its limits are those of another pod than the one that lives now."""
        self.observe()
        if self.truth.description(instance.uid) in (None, instance.shaped_by) and instance.fits():
            self.note("created again")
            self.create(instance)
        else:
            self.forget(instance)

    def settle(self, instance):
        if not any(e["id"] == instance.id for e in instance.runtime.list()):
            self.forget(instance)

    def order(self, stage, text):
        (self.folder / stage).write_text(text + "\n", encoding="ascii")

    def end_order(self, stage):
        (self.folder / stage).unlink()

    def pick(self, stubbed=False, alive=False):
        """Some instance, or None."""
        found = [i for i in self.instances.values() if i.stubbed or not stubbed]
        if alive:
            there = {i.key for i, _ in self.living()}
            found = [i for i in found if i.key in there]
        return self.random.choice(found) if found else None

    # Events. Each returns True if podqos cannot have heard of all of it.

    def event_create(self):
        if len(self.instances) >= MOST_CONTAINERS:
            return self.event_delete()
        self.create(self.new_instance())
        return False

    def event_equal_id(self):
        others = [i for i in self.instances.values() if not any(
            (kind, i.id) in self.instances for kind in self.runtimes if kind != i.runtime.kind)]
        if not others or len(self.runtimes) < 2 or len(self.instances) >= MOST_CONTAINERS:
            return self.event_delete()
        self.create(self.new_instance(twin=self.random.choice(others)))
        return False

    def harmless_instance(self, **options):
        """One whose announcement alone changes nothing: its create is going to fail."""
        free = [f for f in self.free_containers() if self.truth.knows(*f)]
        uid, name = self.random.choice(free)
        return self.new_instance(uid, name, **options)

    def event_failed_create(self):
        instance = self.harmless_instance()
        spoil = self.random.choice(("args", "rootfs"))
        if spoil == "args":
            instance.bundle.config["process"]["args"] = ["/no/such/program"]
        else:
            instance.bundle.config["root"]["path"] = "/no/such/rootfs"
        instance.bundle.save()
        self.note(spoil)
        if self.create(instance, must=False).returncode == 0:
            self.fail(f"a spoilt container was created{self.report()}")
        # crun runs no poststop hook then, and runc none before it has a container.
        return instance.runtime.kind == "crun" or spoil == "rootfs"

    def event_start(self):
        created = [(r, e["id"]) for r in self.runtimes.values() for e in r.list() if e["status"] == "created"]
        if not created:
            return self.event_create()
        runtime, identifier = self.random.choice(created)
        self.note(f"{runtime.kind} {identifier}")
        runtime.start(identifier)
        return False

    @on_some()
    def event_delete(self, instance):
        self.delete(instance)
        self.forget(instance)
        return False

    @on_some(alive=True)
    def event_kill(self, instance):
        self.kill(instance)
        return True

    @on_some(alive=True)
    def event_kill_and_replace(self, instance):
        """The next attempt of a container comes before anybody has cleaned up behind the last one."""
        self.kill(instance)
        self.create(self.new_instance(instance.uid, instance.name))
        return True

    @on_some()
    def event_restart(self, instance):
        """The same id from the same bundle, which the wrapper has edited already."""
        self.delete(instance)
        self.create_again(instance)
        return False

    def lose_poststop(self, instance, order):
        """The container ends, and may be there again before podqos hears of its end, if it does."""
        self.order("poststop", order)
        self.delete(instance)
        self.end_order("poststop")
        if order == "keep":
            self.kept.append((self.folder / "kept").read_text(encoding="utf-8"))
        if self.random.random() < 0.5:
            self.create_again(instance)
        else:
            self.forget(instance)
        return True

    @on_some(stubbed=True)
    def event_lost_poststop(self, instance):
        return self.lose_poststop(instance, "lose")

    @on_some(stubbed=True)
    def event_keep_poststop(self, instance):
        return self.lose_poststop(instance, "keep")

    def event_late_poststop(self):
        if not self.kept:
            return self.event_keep_poststop()
        state = self.kept.pop(self.random.randrange(len(self.kept)))
        self.note(f"of {json.loads(state)['id']}")
        self.podqos.hook("poststop", state)
        return False

    @on_some()
    def event_double_poststop(self, instance):
        state = instance.state()
        self.delete(instance)
        self.podqos.hook("poststop", state, kind=instance.runtime.kind)
        self.forget(instance)
        return False

    @on_some(alive=True)
    def event_poststop_of_the_living(self, instance):
        self.podqos.hook("poststop", instance.state(), kind=instance.runtime.kind)
        return False

    def event_kill_wrapper(self):
        if len(self.instances) >= MOST_CONTAINERS:
            return self.event_delete()
        instance, turn = self.harmless_instance(), self.random.randint(1, WRAPPER_CALLS)
        self.note(f"wrapper killed at call {turn}")
        self.instances[instance.key] = instance
        command = instance.runtime.command("create", "--bundle", instance.bundle.path, instance.id)
        instance.runtime.call(argv=[self.stepper, "all", "every", turn, "-", *command], check=False)
        self.settle(instance)
        return True

    def event_kill_create_hook(self):
        if len(self.instances) >= MOST_CONTAINERS:
            return self.event_delete()
        instance, turn = self.harmless_instance(stubbed=True), self.random.randint(1, 120)
        self.note(f"hook killed at call {turn}")
        self.order("createRuntime", f"kill {turn}")
        self.create(instance, must=False)
        self.end_order("createRuntime")
        return True

    @on_some(stubbed=True)
    def event_kill_poststop_hook(self, instance):
        turn = self.random.randint(1, POSTSTOP_CALLS)
        self.note(f"hook killed at call {turn}")
        self.order("poststop", f"kill {turn}")
        instance.runtime.call("delete", "--force", instance.id, check=False)
        self.end_order("poststop")
        self.settle(instance)
        return True

    def event_daemon_reload(self):
        """systemd forgets all that it was not told as a unit's property."""
        units.call("daemon-reload")
        return False

    def event_new_sandbox(self):
        """The pod ends in any order and is there again at once, under the same UID but perhaps with other resources."""
        uid = self.random.choice([u for u, manifests in PODS.items() if len(manifests) > 1])
        ended = [i for i in self.instances.values() if i.uid == uid]
        self.random.shuffle(ended)
        keep = self.random.random() < 0.3  # its predecessor's last container lives on for a while
        for instance in ended[1:] if keep else ended:
            self.note(f"end {instance}")
            self.delete(instance)
            self.forget(instance)
            self.observe()
        free = [name for u, name in self.free_containers() if u == uid]
        self.create(self.new_instance(uid, self.random.choice(free)))
        if keep and ended:
            self.observe()
            self.delete(ended[0])
            self.forget(ended[0])
        return False

    WEIGHTS = {
        event_create: 30, event_delete: 12, event_start: 8, event_failed_create: 6, event_kill: 5, event_restart: 8,
        event_kill_and_replace: 4, event_equal_id: 6, event_lost_poststop: 4, event_keep_poststop: 3,
        event_late_poststop: 4, event_double_poststop: 4, event_poststop_of_the_living: 3, event_kill_wrapper: 5,
        event_kill_create_hook: 4, event_kill_poststop_hook: 4, event_new_sandbox: 4,
    }

    if soak.ON_SYSTEMD:
        WEIGHTS[event_daemon_reload] = 8

    def test_every_event_leaves_the_truth(self):
        print(f"{EVENTS} events, PODQOS_SOAK_SEED={soak.SEED}", flush=True)
        events, weights = list(self.WEIGHTS), list(self.WEIGHTS.values())
        for number in range(EVENTS):
            event = self.random.choices(events, weights)[0]
            self.counts[event.__name__] = self.counts.get(event.__name__, 0) + 1
            self.history.append(f"{number}: {event.__name__}")
            try:
                unheard = event(self)
            except oci.Failed as error:
                self.fail(f"{error}{self.report()}")
            if unheard:
                self.reconcile()
            self.check()
        self.history.append("end")
        for instance in list(self.instances.values()):
            self.delete(instance)
            self.forget(instance)
            self.check()
        if soak.ON_SYSTEMD:
            self.assert_no_unit_left()
        self.assert_nothing_left()
        print(", ".join(f"{name.removeprefix('event_')} {n}" for name, n in sorted(self.counts.items())))


if __name__ == "__main__":
    soak.main()
