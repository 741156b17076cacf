"""What becomes of pods and containers that podqos-nri hears of late, twice or never, and of those that change."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))

import harness  # noqa: E402
import machine as machines  # noqa: E402
import nri_case  # noqa: E402
import nri_peer  # noqa: E402
import patience  # noqa: E402
from harness import GI, MI  # noqa: E402
from nri_case import CREATED, RUNNING, Container, Pod  # noqa: E402

SMALL = {"shares": 102, "quota": 20000, "memory": 128 * MI}
LARGE = {"shares": 1024, "quota": 100000, "memory": 512 * MI}
HELD = 64  # MiB that a container holds; what is written below them kills it on cgroup v2


def annotations(requests=None, limits=None):
    """podqos.io/pod of a pod whose only container is "app"."""
    return {"podqos.io/pod": json.dumps({"containers": [harness.container("app", requests, limits)]})}


class Restart(nri_case.Case):
    """The runtime or the plugin dies; what the runtime lists after that is the truth."""

    def test_created_and_not_started(self):
        """One creation is still under way, the other has failed without a word."""
        self.connect()
        kept, lost = (Container(Pod(uid), **SMALL) for uid in ("life-1", "life-2"))
        for box in (kept, lost):
            self.create(box)
        self.come_back(kept.pod, kept)
        self.assert_released("life-2")
        self.assertEqual(self.states("life-1").get(kept.id), "pending")
        self.start(kept)
        self.assertEqual(self.states("life-1").get(kept.id), "live")

    def test_sandbox_without_pid_and_listed_no_more(self):
        """Some runtimes tell no sandbox's pid, or make no process for it."""
        self.connect()
        self.ask("RunPodSandbox", Pod("life-1", sums=SMALL))
        self.come_back()
        self.assert_released("life-1")

    def test_started_unheard(self):
        self.connect()
        box = Container(Pod("life-1"), **SMALL)
        self.create(box)
        box.state = RUNNING
        self.enter(box, box.cgroup)
        self.come_back(box.pod, box)
        self.assertEqual(self.states("life-1").get("life-1-app"), "live")
        self.die(box)
        self.come_back()
        self.assert_released("life-1")

    def test_plugin_dies_between_create_and_start(self):
        self.connect()
        boxes = [Container(Pod(uid), **SMALL) for uid in ("life-1", "life-2")]
        for box in boxes:
            self.create(box)
        self.stop_plugin()
        self.start_plugin()
        self.synchronize(*(box.pod for box in boxes), *boxes)
        for box in boxes:
            self.assertEqual(self.states(box.pod.uid).get(box.id), "pending")
            self.start(box)
            self.assertEqual(self.states(box.pod.uid).get(box.id), "live")
            self.assert_values(self.pod_path("burstable", box.pod.uid), shares=102, quota=20000, memory=128 * MI)

    def test_sandbox_that_has_ended(self):
        """After a boot containerd lists the sandboxes of before; the kubelet makes new ones of the same pods."""
        old = Pod("life-1", sums=SMALL, name="old")
        self.connect(old)
        theirs = f"{self.elsewhere}/kubepods/burstable/podlife-1"
        pod = self.enter(Pod("life-1", sums=SMALL), f"{theirs}/sandbox")
        self.ask("RunPodSandbox", pod)
        box = Container(pod, cgroup=f"{theirs}/app", **SMALL)
        self.assertFalse(self.create(box), f"{box.cgroup} for a container of the kubelet's pod {theirs}")
        self.assertNotIn(old.id, self.states("life-1"))


class FullNode(nri_case.Case):
    """Taking in all that runs on a node may take longer than a runtime waits for an answer."""

    PODS, TRIES = 1000, 3

    def setUp(self):
        super().setUp()
        holder = self.enter(Pod("holder"), f"{self.elsewhere}/holder")
        self.pods = [Pod(f"full-{number}", sums=SMALL) for number in range(self.PODS)]
        for pod in self.pods:
            pod.pid, pod.cgroup = holder.pid, holder.cgroup

    def known_pods(self):
        return {pod["uid"] for pod in self.podqos.ctl_json("status")["pods"]}

    def assert_taken(self, before):
        patience.wait_for(lambda: self.stocks() > before, 4 * nri_case.SOON, f"{self.PODS} pods are known")

    def test_is_served_meanwhile(self):
        """It cannot be told how far the plugin is; a test that was put to sleep in between tries again."""
        self.connect()
        for number in range(self.TRIES):
            self.come_back()
            before = self.stocks()
            self.come_back(*self.pods, wait=False)
            box = Container(Pod(f"new-{number}"), **SMALL)
            self.assertTrue(self.create(box), "the plugin chooses no cgroup")
            meanwhile = self.stocks() == before
            self.assert_taken(before)
            self.assertEqual(self.known_pods(), {pod.uid for pod in self.pods} | {box.pod.uid})
            self.start(box)
            self.assertEqual(self.states(box.pod.uid).get(box.id), "live")
            self.die(box)
            if meanwhile:
                return
        self.fail(f"{self.TRIES} times nothing of the node was left to be taken in")

    def test_pod_that_is_yet_to_come(self):
        """The last of all has a new container; what the whole pod may use its sandbox has told."""
        last = self.pods[-1]
        self.connect(*self.pods, wait=False)
        box = Container(last, shares=2, quota=20000, memory=128 * MI)
        self.assertTrue(self.create(box), "the plugin chooses no cgroup")
        self.assertEqual(box.cgroup, f"{self.pod_path('burstable', last.uid)}/{box.id}")
        self.assert_taken(0)
        self.assert_values(self.pod_path("burstable", last.uid), shares=102, quota=20000, memory=128 * MI)
        self.assertEqual(self.known_pods(), {pod.uid for pod in self.pods})


class Annotated(nri_case.Case):
    """The authors of pods, with annotations of any length, do not take the plugin's memory: a DaemonSet's is bounded."""

    PODS, CONTAINERS, SIZE, MOST = 10, 50, 250 << 10, 64 * MI
    settings = {"placement": {"onMisplaced": "ignore"}}

    def test_long_ones_of_pods_with_many_containers(self):
        """What the runtime sends of them once takes no multiple of it, whoever is trusted."""
        app = {**harness.container("app"), "args": ["x" * self.SIZE]}
        pods = [Pod(f"long-{number}", annotations={"podqos.io/pod": json.dumps({"containers": [app]})})
                for number in range(self.PODS)]
        holder = self.enter(Pod("holder"), f"{self.elsewhere}/holder")
        boxes = [Container(pod, f"app-{number}") for pod in pods for number in range(self.CONTAINERS)]
        for each in (*pods, *boxes):
            each.pid, each.cgroup = holder.pid, holder.cgroup
        for trusted in ("engine-checked", "none"):
            self.configure(trustAnnotations=trusted)
            self.connect(*pods, *boxes)
            self.assertEqual(len(self.states("long-9")), 1 + self.CONTAINERS)
            status = pathlib.Path(f"/proc/{self.plugin.pid}/status").read_text(encoding="ascii")
            self.stop_plugin()
            self.assertLess(int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024, self.MOST, trusted)


class Unbacked(nri_case.Case):
    """Where memory is reserved: the limit that podqos fills in does not back the claim that it comes from."""

    def test_its_own_limit_keeps_nothing_from_others(self):
        self.connect()
        pod = self.enter(Pod("greedy-1", annotations=annotations(limits={"cpu": "200m", "memory": "16Gi"})),
                         f"{self.elsewhere}/sandbox")
        self.ask("RunPodSandbox", pod)
        box = Container(pod)
        self.assertTrue(self.create(box))
        self.start(box)
        self.assert_values(self.pod_path("guaranteed", "greedy-1"), memory=16 * GI)
        for tier in ("burstable", "besteffort"):
            self.assert_values(self.tier_path(tier), memory=32 * GI)


class Described(nri_case.Case):
    """A pod that its annotation tells all of: no value changes with a container, which is noted before it exists."""

    settings = {"qosReserved": {"memory": None}}

    def setUp(self):
        super().setUp()
        self.connect()
        limits = {"cpu": "200m", "memory": "128Mi"}
        self.pod = self.enter(Pod("seen-1", annotations=annotations(limits=limits)), f"{self.elsewhere}/sandbox")
        self.ask("RunPodSandbox", self.pod)
        self.box = Container(self.pod)
        self.assertTrue(self.create(self.box))
        self.assertEqual(self.box.cgroup, f"{self.pod_path('guaranteed', 'seen-1')}/{self.box.id}")
        self.assert_noted("pending")

    def assert_noted(self, state):
        self.assertEqual(self.states("seen-1"), {self.pod.id: "live", **({self.box.id: state} if state else {})})

    def end(self):
        self.die(self.pod)
        self.ask("StopPodSandbox", self.pod)
        self.assert_released("seen-1")

    def test_life(self):
        self.start(self.box)
        self.assert_noted("live")
        self.assert_values(self.pod_path("guaranteed", "seen-1"), shares=204, quota=20000, memory=128 * MI)
        self.die(self.box)
        self.ask("StopContainer", self.box)
        self.assert_noted(None)
        self.end()

    def test_never_started(self):
        self.ask("StopContainer", self.box)
        self.ask("RemoveContainer", self.box)
        self.assert_noted(None)
        self.end()

    def test_plugin_dies_before_it_starts(self):
        self.stop_plugin()
        self.start_plugin()
        self.synchronize(self.pod, self.box)
        self.assert_noted("pending")
        self.start(self.box)
        self.assert_noted("live")

    def test_started_unheard(self):
        self.stop_plugin()
        self.enter(self.box, self.box.cgroup)
        self.box.state = RUNNING
        self.start_plugin()
        self.synchronize(self.pod, self.box)
        self.assert_noted("live")
        self.assertNotIn("counted but not moved", self.podqos.log_text().split("seen-1-app", 1)[1])


class NeverStarted(nri_case.Case):
    """Containers that are placed and never start leave nothing behind once their sandboxes are removed."""

    PODS = 20

    def test_sandboxes_are_removed(self):
        self.connect()
        pods = [Pod(f"idle-{number}") for number in range(self.PODS)]
        for pod in pods:
            self.assertTrue(self.create(Container(pod, **SMALL)))
        self.assertEqual(self.known("idle-0")["containers"][0]["state"], "pending")
        self.assert_values(self.tier_path("burstable"), shares=2048)  # of 100m each
        for pod in pods:
            self.ask("StopPodSandbox", pod)
            self.ask("RemovePodSandbox", pod)
        self.assert_nothing_left()


class Formula(nri_case.Case):
    """On cgroup v2 the weight of a container tells how its runtime converts shares; all weights follow it then."""

    settings = {"weightFormula": "auto"}

    def setUp(self):
        super().setUp()
        if self.machine.version("cpu") == 1:
            self.skipTest("cgroup v1 has no weights")
        self.connect()
        limits = {"cpu": "200m", "memory": "128Mi"}
        self.pod = self.enter(Pod("formula-1", annotations=annotations(limits=limits)), f"{self.elsewhere}/sandbox")
        self.ask("RunPodSandbox", self.pod)

    def start_with(self, shares, weight):
        """A container for which the engine has set the shares, and the runtime the weight."""
        box = Container(self.pod, shares=shares)
        self.assertTrue(self.create(box))
        self.enter(box, box.cgroup)
        mount = self.machine.hierarchy("cpu").mount
        pathlib.Path(mount + box.cgroup, "cpu.weight").write_text(str(weight), encoding="ascii")
        self.ask("StartContainer", box)

    def weight(self):
        return self.machine.read(self.pod_path("guaranteed", "formula-1"), "weight")

    def test_linear(self):
        self.assertEqual(self.weight(), machines.logarithmic_weight(204))
        self.start_with(shares=204, weight=machines.linear_weight(204))
        self.assertEqual(self.weight(), machines.linear_weight(204))

    def test_other_shares_than_the_annotation_has(self):
        self.start_with(shares=102, weight=machines.linear_weight(204))
        self.assertEqual(self.weight(), machines.logarithmic_weight(204))


class Older(nri_case.Case):
    """A container that was there before podqos stays as it is, and is counted."""

    def check_untouched(self):
        box = Container(Pod("old-1", annotations=annotations(limits={"cpu": "500m", "memory": "16Mi"})))
        self.enter(box, f"{self.elsewhere}/app", memory=HELD)
        box.state = RUNNING
        before, score = self.machine.snapshot(box.cgroup), machines.oom_score_adj(box.pid)
        self.connect(box.pod, box)
        self.assert_lives(box)
        self.assertEqual(machines.cgroup_of(box.pid), box.cgroup)
        self.assertEqual(self.machine.snapshot(box.cgroup), before)
        self.assertEqual(machines.oom_score_adj(box.pid), score)
        self.assertEqual(self.states("old-1").get("old-1-app"), "live")

    def test_rewrite(self):
        self.check_untouched()

    def test_fail(self):
        self.configure(placement={"onMisplaced": "fail"})
        self.check_untouched()


class Update(nri_case.Case):
    """The engine resizes a pod: the values of pod and tier follow, the class stays, and nobody dies of it."""

    def assert_pod(self, tier, shares, quota, memory):
        """The tiers have no other pod."""
        self.assert_values(self.pod_path(tier, "size-1"), shares=shares, quota=quota, memory=memory)
        if tier != "guaranteed":
            self.assert_values(self.tier_path(tier), shares=shares)

    def test_only_container_takes_no_time(self):
        """Between what it had and what it gets the pod is not without containers, so there is no end to wait for."""
        self.connect()
        box = self.launch(Container(Pod("size-1"), shares=2))
        self.assert_answered_within(0.3, "UpdateContainer", box, {"shares": 2})

    def test_only_container_keeps_its_class(self):
        self.connect()
        box = self.launch(Container(Pod("size-1"), shares=2))
        self.ask("UpdateContainer", box, {"shares": 512, "memory": 256 * MI})
        self.assertEqual(self.known("size-1")["cgroup"], self.pod_path("besteffort", "size-1"))
        self.assertFalse(self.machine.exists(self.pod_path("burstable", "size-1")))
        self.die(box)
        self.ask("StopContainer", box)
        self.assert_released("size-1")
        self.assert_nothing_left()

    def test_memory_below_what_is_in_use(self):
        self.connect()
        box = self.launch(Container(Pod("size-1"), **SMALL), memory=HELD)
        self.ask("UpdateContainer", box, {"memory": 16 * MI})
        self.assert_lives(box)
        self.assertGreaterEqual(self.machine.read(self.pod_path("burstable", "size-1"), "memory"), HELD * MI)
        self.assertEqual(self.states("size-1"), {"size-1-app": "live"})

    def test_pod_with_the_engines_sums(self):
        self.connect()
        pod = self.enter(Pod("size-1", sums=SMALL), f"{self.elsewhere}/sandbox")
        self.ask("RunPodSandbox", pod)
        self.launch(Container(pod, **SMALL))
        self.assert_pod("burstable", **SMALL)
        self.ask("UpdatePodSandbox", pod, LARGE)
        self.assert_pod("burstable", **LARGE)
        self.ask("UpdatePodSandbox", pod, SMALL)
        self.assert_pod("burstable", **SMALL)

    def test_container_of_a_pod_with_the_engines_sums(self):
        """No runtime before NRI 0.10 tells of the pod."""
        self.connect()
        pod = self.enter(Pod("size-1", sums=SMALL), f"{self.elsewhere}/sandbox")
        self.ask("RunPodSandbox", pod)
        box = self.launch(Container(pod, **SMALL))
        self.ask("UpdateContainer", box, LARGE)
        self.assert_pod("burstable", **LARGE)

    def test_annotated_pod(self):
        self.connect()
        pod = Pod("size-1", annotations=annotations(limits={"cpu": "500m", "memory": "256Mi"}))
        box = self.launch(Container(pod, shares=512, quota=50000, memory=256 * MI))
        self.assert_pod("guaranteed", 512, 50000, 256 * MI)
        self.ask("UpdateContainer", box, LARGE)
        self.assert_pod("guaranteed", **LARGE)
        self.ask("UpdateContainer", box, SMALL)
        self.assert_pod("guaranteed", **SMALL)
        self.assertEqual(self.known("size-1")["qosClass"], "Guaranteed")


class Replaced(nri_case.Case):
    """A container that comes after one that was resized has the values of that, and so has the pod's sum."""

    MAIN, GROWN, HELPER = ({"shares": 102, "quota": quota, "memory": memory * MI}
                           for quota, memory in ((20000, 100), (30000, 128), (10000, 32)))
    SUMS = {"shares": 204, "quota": 30000, "memory": 132 * MI}

    def setUp(self):
        super().setUp()
        self.connect()

    def check(self, pod, tier="burstable", updated=True):
        main = self.launch(Container(pod, "main", **self.MAIN))
        self.launch(Container(pod, "helper", **self.HELPER))
        path = self.pod_path(tier, pod.uid)
        self.assert_values(path, quota=30000, memory=132 * MI)
        if updated:
            self.ask("UpdateContainer", main, self.GROWN)
            self.assert_values(path, quota=40000, memory=160 * MI)
        self.die(main)
        main.state = nri_case.STOPPED
        self.ask("StopContainer", main)
        main_again = Container(pod, "main", **self.GROWN)
        main_again.id += "-again"
        main_again.cgroup += "-again"
        self.assertTrue(self.create(main_again))
        self.assert_values(path, quota=40000, memory=160 * MI)
        self.ask("RemoveContainer", main)
        self.start(main_again)
        self.assert_values(path, quota=40000, memory=160 * MI)
        self.podqos.ctl("reconcile")
        self.assert_values(path, quota=40000, memory=160 * MI)

    def sandbox(self, pod):
        self.enter(pod, f"{self.elsewhere}/sandbox")
        self.ask("RunPodSandbox", pod)
        return pod

    def test_of_a_pod_without_sums(self):
        self.check(Pod("again-1"))

    def test_of_a_pod_without_sums_unheard(self):
        self.check(Pod("again-2"), updated=False)

    def test_of_a_sandbox(self):
        self.check(self.sandbox(Pod("again-3")))

    def test_of_a_pod_with_the_engines_sums(self):
        self.check(self.sandbox(Pod("again-4", sums=self.SUMS)))

    def test_of_a_pod_with_the_engines_sums_unheard(self):
        self.check(self.sandbox(Pod("again-5", sums=self.SUMS)), updated=False)

    def described(self):
        limits = ({"cpu": "200m", "memory": "100Mi"}, {"cpu": "100m", "memory": "32Mi"})
        containers = [harness.container(name, limits=each) for name, each in zip(("main", "helper"), limits)]
        return {"podqos.io/pod": json.dumps({"containers": containers})}

    def test_of_an_annotated_pod(self):
        self.check(self.sandbox(Pod("again-6", annotations=self.described())), "guaranteed")

    def test_init_containers_that_have_ended_count_no_more(self):
        """They are in the engine's sums already, as far as they are more than what runs after them."""
        pod = self.sandbox(Pod("again-7", sums=self.SUMS))
        path = self.pod_path("burstable", pod.uid)
        for name, resources in (("first", self.MAIN), ("second", self.GROWN)):
            box = self.launch(Container(pod, name, **resources))
            self.assert_values(path, quota=30000, memory=132 * MI)
            self.die(box)
            box.state = nri_case.STOPPED
            self.ask("StopContainer", box)
        self.launch(Container(pod, "main", **self.MAIN))
        self.launch(Container(pod, "helper", **self.HELPER))
        self.assert_values(path, quota=30000, memory=132 * MI)


class NoRoom(nri_case.Case):
    """A node of 150m, and two pods that request 100m each."""

    settings = {"nodeCpu": "150m"}
    REFUSAL = (r"pod life-2: requests cpu 100m, of which 50m is free: 150m is allocatable, and other pods have 100m, "
               r"most of it pod life-1 \(default/pod-life-1\) with 100m; end pods, lower requests, or set adm")

    def run_pod(self, uid):
        pod = self.enter(Pod(uid, sums=SMALL), f"{self.elsewhere}/{uid}")
        self.ask("RunPodSandbox", pod)
        return pod

    def test_warns(self):
        self.connect()
        self.run_pod("life-1")
        self.launch(Container(self.run_pod("life-2"), **SMALL))
        self.assertIn("pod life-2 (default/pod-life-2) requests cpu 100m, of which 50m counts", self.podqos.log_text())

    def test_resize_makes_room(self):
        self.connect()
        first = self.run_pod("life-1")
        self.launch(Container(self.run_pod("life-2"), **SMALL))
        self.assertIn("of which 50m counts", self.podqos.ctl("status").stdout)
        self.ask("UpdatePodSandbox", first, {**SMALL, "shares": 51})
        self.assertNotIn("of which", self.podqos.ctl("status").stdout)

    def test_refuses_memory_that_nothing_backs_yet(self):
        """A sandbox has no limit: with qosReserved nothing of its pod's request counts."""
        self.configure(nodeMemory="1Gi", qosReserved={"memory": "100%"}, admission={"memory": "enforce"})
        self.connect()
        first, second = (self.enter(Pod(uid, annotations=annotations(requests={"memory": "600Mi"})),
                                    f"{self.elsewhere}/{uid}") for uid in ("life-1", "life-2"))
        self.ask("RunPodSandbox", first)
        with self.assertRaisesRegex(nri_peer.Refused, "RunPodSandbox: .*requests memory 600Mi, of which 424Mi is free"):
            self.ask("RunPodSandbox", second)

    def test_refuses(self):
        self.configure(admission={"cpu": "enforce"})
        self.connect()
        first = self.run_pod("life-1")
        before = self.podqos.state_bytes()
        with self.assertRaisesRegex(nri_peer.Refused, "RunPodSandbox: .*" + self.REFUSAL):
            self.run_pod("life-2")
        # The runtime undoes it, and says so or does not.
        second = self.running[-1]
        self.die(second)
        self.ask("StopPodSandbox", second)
        self.ask("RemovePodSandbox", second)
        # A sandbox without a process counts from its first container on.
        with self.assertRaisesRegex(nri_peer.Refused, "CreateContainer: .*" + self.REFUSAL):
            self.create(Container(Pod("life-2", sums=SMALL, name="again"), **SMALL))
        self.assertEqual(self.podqos.state_bytes(), before)
        self.launch(Container(first, **SMALL))
        # Listed after the runtime's crash: it runs, and is counted.
        late = self.enter(Pod("life-3", sums=SMALL), f"{self.elsewhere}/life-3")
        self.come_back(first, late)
        self.assertTrue(self.known("life-3"))


class OtherWaysIn(nri_case.Case):
    """The wrapper and the hooks see what the plugin sees: each container is one, in the cgroup that came first."""

    settings = {"onError": "reject"}

    def made(self, runtime, subject, hooked=False):
        """The runtime makes it as containerd would have it, with `cgroup` in its spec."""
        kind, pod = ("sandbox", subject) if isinstance(subject, Pod) else ("container", subject.pod)
        said = {"container-type": kind, "sandbox-id": pod.id, "sandbox-uid": pod.uid, "sandbox-name": f"pod-{pod.uid}",
                "sandbox-namespace": "default", "container-name": subject.name,
                "sandbox-cpu-shares": str(SMALL["shares"]), "sandbox-memory": str(SMALL["memory"])}
        bundle = self.bundle(label=subject.name)
        bundle.annotations.update({f"io.kubernetes.cri.{key}": value for key, value in said.items()})
        bundle.annotations.update(pod.annotations)
        bundle.config["linux"]["cgroupsPath"] = subject.cgroup
        bundle.resources.update(cpu={"shares": SMALL["shares"]}, memory={"limit": SMALL["memory"]})
        for stage in ("createRuntime", "poststop") if hooked else ():
            bundle.add_hook(stage, harness.HOOK, [*self.podqos.hook_command(), stage])
        runtime.create(subject.id, bundle.save())
        subject.pid = runtime.pid(subject.id)
        subject.cgroup = machines.cgroup_of(subject.pid)

    def check_container(self, runtime, hooked):
        self.connect()
        box = Container(Pod("both-1"), cgroup=f"{self.elsewhere}/app", **SMALL)
        self.assertTrue(self.create(box))
        chosen = box.cgroup
        self.made(runtime, box, hooked)
        self.assertEqual(box.cgroup, chosen)
        self.ask("StartContainer", box)
        self.assertEqual(self.states("both-1"), {box.id: "live"})
        runtime.start(box.id)
        self.ask("UpdateContainer", box, SMALL)
        self.assertEqual(self.states("both-1"), {box.id: "live"})
        runtime.delete(box.id)
        box.pid = 0
        self.ask("StopContainer", box)
        self.ask("RemoveContainer", box)
        self.assert_released("both-1")

    def test_wrapper(self):
        self.check_container(self.wrapper, hooked=False)

    def test_hooks(self):
        self.check_container(self.plain, hooked=True)

    def check_foreseen(self, runtime, hooked):
        """Who comes first writes it down, and that is not the plugin."""
        self.connect()
        pod = self.enter(Pod("both-1", annotations=annotations(limits={"cpu": "200m", "memory": "128Mi"})),
                         f"{self.elsewhere}/sandbox")
        self.ask("RunPodSandbox", pod)
        box = Container(pod, cgroup=f"{self.elsewhere}/app", **SMALL)
        self.assertTrue(self.create(box))
        chosen = box.cgroup
        self.made(runtime, box, hooked)
        self.assertEqual(box.cgroup, chosen)
        self.assertEqual(self.states("both-1"), {pod.id: "live", box.id: "live"})
        self.ask("StartContainer", box)
        self.assertEqual(self.states("both-1"), {pod.id: "live", box.id: "live"})
        runtime.start(box.id)
        runtime.delete(box.id)
        self.assertEqual(self.states("both-1"), {pod.id: "live"})
        box.pid = 0
        self.ask("RemoveContainer", box)
        self.die(pod)
        self.ask("StopPodSandbox", pod)
        self.assert_released("both-1")

    def test_wrapper_of_a_foreseen_container(self):
        self.check_foreseen(self.wrapper, hooked=False)

    def test_hooks_of_a_foreseen_container(self):
        self.check_foreseen(self.plain, hooked=True)

    def test_sandbox_of_the_wrapper(self):
        self.connect()
        pod = Pod("both-1", sums=SMALL)
        pod.cgroup = f"{self.elsewhere}/sandbox"
        self.made(self.wrapper, pod)
        for told in ("RunPodSandbox", "UpdatePodSandbox"):
            self.ask(told, pod)
            self.assertEqual(self.states("both-1"), {pod.id: "live"})
        self.wrapper.delete(pod.id)
        pod.pid = 0
        self.ask("StopPodSandbox", pod)
        self.assert_released("both-1")


if __name__ == "__main__":
    nri_case.main()
