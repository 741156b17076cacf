"""What a kubelet does to an engine and to the node's cgroups; a real one is not in Debian.

    node = kubelet.Kubelet(engine, handler, libcontainer.Systemd())
    node.start()                                   # kubepods and the tiers; what it does not know there goes
    node.run(kubelet.Pod("web", {"containers": [harness.container("app", limits={"cpu": "1", "memory": "64Mi"})]}))
    node.update_tiers()                            # it does this once a minute
    node.resize("web", {...})                      # another spec
    node.remove("web")

It follows Kubernetes 1.36 with its defaults on cgroup v2: pkg/kubelet/cm makes the cgroups, pkg/kubelet/kuberuntime
talks to the engine, pkg/kubelet/qos scores. kubelet_test.py compares what is set with podqos and without; whether the
figures are Kubernetes' own is a matter of podqos's code and of oracle.py.
"""

import pathlib
import uuid

import cri
import engine
import oracle
import patience

MEMORY = 8 << 30  # bytes of the node
CPUS = 2
CRITICAL_SCORE, BESTEFFORT_SCORE, LOWEST_SCORE, HIGHEST_SCORE = -997, 1000, 3, 999
STATIC = {"kubernetes.io/config.source": "file", "kubernetes.io/config.seen": "2026-01-01T00:00:00.000000000Z"}
TIERS = ("guaranteed", "burstable", "besteffort")


def linux_resources(request, cpu_limit, memory_limit):
    """LinuxContainerResources as calculateLinuxResources makes them; a request of None defaults to the limit."""
    shares = oracle.shares_for(oracle.milli(cpu_limit if request is None else request))
    quota = oracle.quota_for(oracle.milli(cpu_limit)) if cpu_limit else 0
    found = {"cpu_shares": shares, "cpu_period": oracle.PERIOD}
    bounds = {"cpu_quota": quota, "memory_limit_in_bytes": oracle.ceil(memory_limit)}
    return {**found, **{name: value for name, value in bounds.items() if value}}  # CRI does not send what is 0


class Pod:
    """A pod of the API server or of a file, and what a kubelet makes of it."""

    def __init__(self, name, spec, annotations=None):
        self.name, self.annotations = name, annotations or {}
        self.uid = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        self.resize(spec)

    def resize(self, spec):
        self.spec, self.truth = spec, oracle.Pod(spec)
        self.containers = {each.name: each for each in self.truth.containers}

    @property
    def qos_class(self):
        return self.truth.qos_class

    def values(self):
        """Of the pod's cgroup: shares, quota, memory."""
        return self.truth.values()

    def score(self, name):
        """oom_score_adj of a container (pkg/kubelet/qos/policy.go, but for sidecars and resources of the pod itself)."""
        if self.qos_class == "guaranteed" or self.spec.get("priorityClassName") == "system-node-critical":
            return CRITICAL_SCORE
        if self.qos_class == "besteffort":
            return BESTEFFORT_SCORE
        request = oracle.ceil(self.containers[name].requests.get("memory", 0))
        return min(max(1000 - int(1000 * request / MEMORY), LOWEST_SCORE), HIGHEST_SCORE)

    def resources(self, name):
        """A container's LinuxContainerResources; without a limit of its own it gets that of the pod level."""
        container, level = self.containers[name], self.truth.level or ({}, {})
        limits = (container.limits.get(each) or level[1].get(each, 0) for each in oracle.RESOURCES)
        found = linux_resources(container.requests.get("cpu"), *limits)
        return {**found, "oom_score_adj": self.score(name), "unified": {"memory.oom.group": "1", "memory.swap.max": "0"}}

    def sums(self):
        """Of all containers, for the sandbox, without the pod's overhead."""
        bare = oracle.Pod({**self.spec, "overhead": {}})
        limits = bare.limits()
        return linux_resources(bare.requests().get("cpu"), limits.get("cpu", 0), limits.get("memory", 0))

    def overhead(self):
        cpu, memory = (self.truth.overhead.get(each, 0) for each in oracle.RESOURCES)
        return linux_resources(cpu, cpu, memory) if cpu or memory else {}


class Running:
    """A pod whose sandbox runs: (id, configuration), and the id of each container that has been created."""

    def __init__(self, pod, sandbox):
        self.pod, self.sandbox, self.containers, self.attempts = pod, sandbox, {}, {}


class Kubelet:
    """One on this node. Each method is one thing that it does, to its end."""

    def __init__(self, client, handler, driver):
        self.client, self.handler, self.driver = client, handler, driver
        self.running = {}  # name: Running

    # Cgroups (pkg/kubelet/cm).

    def tier_path(self, tier):
        return self.driver.path("kubepods", *(() if tier == "guaranteed" else (tier,)))

    def pod_path(self, pod):
        return self.driver.path(*(("kubepods", f"pod{pod.uid}") if pod.qos_class == "guaranteed" else
                                  ("kubepods", pod.qos_class, f"pod{pod.uid}")))

    def start(self):
        """Makes what is not there, and writes its own values to what is."""
        pids = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))
        node = {"shares": oracle.shares_for(CPUS * 1000), "memory": MEMORY, "pids": pids}
        for tier, values in zip(TIERS, (node, {}, {"shares": oracle.MIN_SHARES})):
            path = self.tier_path(tier)
            (self.driver.update if self.driver.exists(path) else self.driver.create)(path, **values)
        self.update_tiers()
        self.sweep()

    def update_tiers(self):
        """Once a minute, and before it makes the cgroup of a pod (qos_container_manager_linux.go)."""
        pods = [each.pod for each in self.running.values()]
        requested = sum(pod.truth.claims()[0] for pod in pods if pod.qos_class == "burstable")
        shares = {"burstable": oracle.shares_for(requested), "besteffort": oracle.MIN_SHARES, "guaranteed": None}
        for tier, value in shares.items():
            self.driver.update(self.tier_path(tier), shares=value)

    def sweep(self):
        """Every two seconds: ends and removes the pod cgroups below its kubepods that it does not know."""
        known = {self.pod_path(each.pod) for each in self.running.values()}
        for tier in TIERS:
            for folder in self.driver.folder(self.tier_path(tier)).iterdir():
                path = f"{self.tier_path(tier)}/{folder.name}"
                if folder.is_dir() and "pod" in folder.name.removeprefix("kubepods") and path not in known:
                    self.driver.destroy(path)

    # Pods (pkg/kubelet/kuberuntime).

    def run(self, pod):
        """Its cgroup, its sandbox, and its containers in their order: those that set it up end before the next."""
        running = Running(pod, None)
        self.running[pod.name] = running
        self.update_tiers()
        self.driver.create(self.pod_path(pod), **pod.values())
        running.sandbox = self.client.run_pod(self._sandbox_config(pod), self.handler)
        for name, container in pod.containers.items():
            self._launch(running, name)
            if container.is_init:
                self._wait_for_end(running.containers[name])
        return running

    def _labels(self, pod):
        return {"io.kubernetes.pod.name": pod.name, "io.kubernetes.pod.namespace": "default",
                "io.kubernetes.pod.uid": pod.uid}

    def _sandbox_config(self, pod):
        config = cri.sandbox(pod.name, pod.uid, self.pod_path(pod), pod.annotations)
        config["labels"] = self._labels(pod)
        config["linux"].update(resources=pod.sums(), overhead=pod.overhead())
        return config

    def _launch(self, running, name):
        """Creates and starts it."""
        pod, attempt = running.pod, running.attempts.get(name, -1) + 1
        running.attempts[name] = attempt
        config = cri.container(name, engine.IMAGE, ("true",) if pod.containers[name].is_init else ("sleep", "1000000"),
                               {"io.kubernetes.container.restartCount": str(attempt)}, **pod.resources(name))
        config["metadata"]["attempt"] = attempt
        config["labels"] = {**self._labels(pod), "io.kubernetes.container.name": name}
        running.containers[name] = self.client.create(running.sandbox, config)
        self.client.start(running.containers[name])

    def _wait_for_end(self, identifier):
        patience.expect(lambda: self.client.containers()[identifier] == cri.EXITED, f"container {identifier} has ended")

    def restart(self, name, container):
        """A container has ended, and the next of its name takes its place."""
        running = self.running[name]
        ended = running.containers[container]
        self._insist(self.client.stop, ended)
        self._launch(running, container)
        self._insist(self.client.remove, ended)

    def resize(self, name, spec):
        """In place: of memory, then of the CPU, first what grows of the pod, its containers, then what shrinks."""
        running = self.running[name]
        pod, before = running.pod, running.pod.values()
        sent = {each: pod.resources(each) for each in pod.containers}
        pod.resize(spec)
        after, path = pod.values(), self.pod_path(pod)
        self._tell_sandbox(running)
        for fields, resources in ((("memory",), ("memory_limit_in_bytes", "oom_score_adj")),
                                  (("quota", "shares"), ("cpu_quota", "cpu_shares"))):
            changed = [each for each in fields if after[each] is not None and after[each] != before[each]]
            grown = [each for each in changed if after[each] > (before[each] or 0)]
            for each in grown:
                self.driver.update(path, **{each: after[each]})
            for container, old in sent.items():
                new = {**old, **{each: value for each, value in pod.resources(container).items() if each in resources}}
                if new != old and not pod.containers[container].is_init:
                    self.client.update(running.containers[container], **new)
                    sent[container] = new
            for each in reversed([each for each in changed if each not in grown]):
                self.driver.update(path, **{each: after[each]})

    def _tell_sandbox(self, running):
        """An engine of today is told of the pod as a whole; containerd 1.7 has no such call."""
        try:
            self.client.call("UpdatePodSandboxResources", pod_sandbox_id=running.sandbox[0],
                             resources=running.pod.sums(), overhead=running.pod.overhead())
        except cri.Failed as refused:
            if refused.status != cri.UNIMPLEMENTED:
                raise

    def remove(self, name):
        """Ends its containers, removes it from the engine, and then its cgroup."""
        running = self.running[name]
        for container, identifier in running.containers.items():
            if not running.pod.containers[container].is_init:
                self._insist(self.client.stop, identifier)
        self._insist(self.client.stop_pod, running.sandbox)
        self._insist(self.client.remove_pod, running.sandbox)
        del self.running[name]
        self.driver.destroy(self.pod_path(running.pod))

    @staticmethod
    def _insist(call, subject):
        """An engine on a busy machine gives up on an end; a kubelet asks again."""
        for _ in patience.turns(length=0.5):
            try:
                return call(subject)
            except cri.Failed as refused:
                last = refused
        raise last

    # What others need to know.

    def names(self):
        """{id of a sandbox or container: how it is called}."""
        found = {}
        for name, each in self.running.items():
            found[each.sandbox[0]] = f"<{name}>"
            found.update({identifier: f"<{name} {container}>" for container, identifier in each.containers.items()})
        return found
