"""What must be: the kubelet's own rules for pods and tiers, written a second time, in Python.

Nothing here reads podqos's state or shares code with it. A Truth is told which containers live (from the runtimes and
/proc); together with the manifests that decides every pod cgroup, every pod value and every tier value.
"""

import dataclasses
import fractions
import os
import pathlib
import re
import subprocess

import machine as machines
import units

PAGE = os.sysconf("SC_PAGE_SIZE")
MIN_SHARES, MAX_SHARES, PERIOD, MIN_QUOTA = 2, 262144, 100000, 1000
SUFFIXES = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30,
    "m": fractions.Fraction(1, 10**3), "u": fractions.Fraction(1, 10**6),
}
RESOURCES = ("cpu", "memory")
HUNDRED = 100
DEFAULT_IO = 100
FEATURES = ("burst", "idle", "min", "low", "high", "io")  # values whose files a kernel may lack


@dataclasses.dataclass(frozen=True)
class Features:
    """Settings beside what Kubernetes does by default."""

    burst: dict = dataclasses.field(default_factory=dict)  # percent of the quota, by class
    idle: bool = False  # cpuIdle.bestEffort
    reserves: bool = False  # memoryReservationPolicy
    throttling: fractions.Fraction = None  # memoryThrottlingFactor
    io: dict = dataclasses.field(default_factory=dict)  # ioWeight, by class

    def of_memory(self, qos_class, request):
        """memory.min and memory.low of a pod or container that requests so many bytes (KEP-2570)."""
        kept = request if self.reserves else 0
        return {"min": kept, "low": 0} if qos_class == "guaranteed" else {"min": 0, "low": kept}

    def of_quota(self, qos_class, quota):
        """The burst beside a quota, which may be None; kernel/sched/core.c tg_set_cfs_bandwidth()."""
        return (quota or 0) * self.burst.get(qos_class, 0) // HUNDRED

    def high(self, request, limit, allocatable):
        """memory.high of a container, or None; pkg/kubelet/kuberuntime/kuberuntime_container_linux.go, as of 1.27."""
        if self.throttling is None or request == limit:
            return None
        pages = (request + ((limit or allocatable) - request) * self.throttling) // PAGE
        return pages * PAGE if pages * PAGE > request else None


def quantity(text):
    """A Kubernetes quantity as an exact number; the API rounds up to thousandths."""
    digits = text.rstrip("kKMGimu")
    exact = fractions.Fraction(digits) * SUFFIXES[text[len(digits):]]
    return fractions.Fraction(ceil(exact * 1000), 1000)


def ceil(number):
    return -(-number.numerator // number.denominator) if isinstance(number, fractions.Fraction) else number


def milli(number):
    return ceil(number * 1000)


def shares_for(milli_cpu):
    return MIN_SHARES if milli_cpu == 0 else min(max(milli_cpu * 1024 // 1000, MIN_SHARES), MAX_SHARES)


def quota_for(milli_cpu):
    return max(milli_cpu * PERIOD // 1000, MIN_QUOTA)


def rounded_by_systemd(quota):
    """systemd keeps the quota of a second in whole 10 ms, rounded up."""
    return -(-quota // 1000) * 1000


def _quantities(resources, field):
    return {name: quantity(str(text)) for name, text in (resources.get(field) or {}).items()}


def _add(left, right):
    return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}


def _max(left, right):
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in {**left, **right}}


class Container:
    """One container of a manifest, its requests defaulted to its limits as the API server does."""

    def __init__(self, fields, is_init=False):
        resources = fields.get("resources") or {}
        self.name = fields["name"]
        self.limits = _quantities(resources, "limits")
        self.requests = {**self.limits, **_quantities(resources, "requests")}
        self.is_sidecar = is_init and fields.get("restartPolicy") == "Always"
        self.is_init = is_init and not self.is_sidecar


class Pod:
    """A pod's class and values. `spec` is that of a manifest; partial: not all of its containers are known.

    ended: of a partial pod, a container that stands for those that have ended; see together().
    """

    def __init__(self, spec, partial=False, qos_class=None, ended=None):
        self.containers = [ended] if ended else []
        self.containers += [Container(c, True) for c in spec.get("initContainers", [])]
        self.containers += [Container(c) for c in spec["containers"]]
        self.partial = partial
        self.overhead = {name: quantity(text) for name, text in spec.get("overhead", {}).items()}
        self.level = self._pod_level(spec.get("resources"))
        self.qos_class = qos_class or self.classify()

    def _pod_level(self, resources):
        """(requests, limits) of the pod itself, defaulted; None without them."""
        if resources is None:
            return None
        limits, requests = _quantities(resources, "limits"), _quantities(resources, "requests")
        if limits:
            requests = {**limits, **self.aggregate("requests"), **requests}
        return requests, limits

    def aggregate(self, field):
        """The containers' sum, or what their start needs if that is more."""
        total, sidecars, start = {}, {}, {}
        for container in self.containers:
            own = getattr(container, field)
            if container.is_init:
                start = _max(start, _add(own, sidecars))
                continue
            total = _add(total, own)
            if container.is_sidecar:
                sidecars = _add(sidecars, own)
                start = _max(start, sidecars)
        return _max(total, start)

    def requests(self):
        found = self.aggregate("requests")
        if self.level:
            found.update(self.level[0])
        return _add(found, self.overhead)

    def limits(self):
        found = self.aggregate("limits")
        if self.level:
            found.update(self.level[1])
        return {name: value + self.overhead.get(name, 0) if value else value for name, value in found.items()}

    def classify(self):
        if self.level:
            requests, limits = self.level
            candidate = not limits or all(limits.get(r) for r in RESOURCES)
        else:
            requests, limits, candidate = {}, {}, True
            for container in self.containers:
                requests, limits = _add(requests, container.requests), _add(limits, container.limits)
                candidate = candidate and all(container.limits.get(r) for r in RESOURCES)
        requests, limits = ({n: v for n, v in m.items() if v and n in RESOURCES} for m in (requests, limits))
        if not requests and not limits:
            return "besteffort"
        if candidate and requests == limits and not self.partial:
            return "guaranteed"
        return "burstable"

    def _declared(self, resource):
        """Does every container that counts have this limit? Sidecars count with those before them."""
        if self.level and self.level[1].get(resource):
            return True
        sidecars = {}
        for container in self.containers:
            own = container.limits
            if container.is_sidecar:
                own = sidecars = _add(sidecars, own)
            elif container.is_init:
                own = _add(own, sidecars)
            if not own.get(resource):
                return False
        return True

    def values(self):
        """{"shares", "quota", "memory"} of the pod cgroup, None where there is no limit."""
        found = {"shares": MIN_SHARES, "quota": None, "memory": None}
        if self.qos_class == "besteffort":
            return found
        limits = self.limits()
        found["shares"] = shares_for(milli(self.requests().get("cpu", 0)))
        if self.qos_class == "guaranteed" or self._declared("cpu"):
            found["quota"] = quota_for(milli(limits["cpu"]))
        if self.qos_class == "guaranteed" or self._declared("memory"):
            found["memory"] = ceil(limits["memory"])
        return found

    def together(self):
        """An init container as large as the pod; unlimited where the pod is."""
        found = Container({"name": ""}, True)
        found.requests = self.aggregate("requests")
        found.limits = {name: value for name, value in self.aggregate("limits").items() if self._declared(name)}
        return found

    def claims(self):
        """(milli cpu, bytes) that count for its tier."""
        if self.qos_class == "besteffort":
            return 0, 0
        requests = self.requests()
        return milli(requests.get("cpu", 0)), ceil(requests.get("memory", 0))


class Truth:
    """The pods that live, beneath one kubepods, on a node with `memory` bytes and everything reserved for requests.

    If that is a slice, so are tiers and pods. Nothing is reserved for the pods in `unbacked`.
    """

    def __init__(self, kubepods, memory, unbacked=(), features=Features()):
        self.kubepods = kubepods
        self.memory = memory
        self.unbacked = unbacked
        self.features = features
        self.pods = {}  # uid -> Pod
        self._born = {}  # uid -> what its first container said; what became known since

    def observe(self, living):
        """`living`: (uid, container name, spec, partial) of every living container.

        A pod is as its first container describes it, for as long as one of its containers lives. Of a partial pod each
        container tells about itself alone, also where several have one name: the pod is as large as its living
        containers, and as it was when the most of them lived at one time.
        """
        uids = {uid for uid, *_ in living}
        self._born = {uid: born for uid, born in self._born.items() if uid in uids}
        for uid, name, spec, partial in living:
            first = uid not in self._born
            born = self._born.setdefault(
                uid, {"spec": spec, "partial": partial, "known": {}, "ended": None, "class": None})
            if partial:
                of_pod = [(n, s) for u, n, s, _ in living if u == uid]
                names = [n for n, _ in of_pod]
                known = {(n, names[:at].count(n)): self._container(s, n) for at, (n, s) in enumerate(of_pod)}
                if not born["known"].keys() <= known.keys():
                    born["ended"] = self._pod(born).together()
                born["known"] = known
            if first:
                born["class"] = self._pod(born).qos_class
        self.pods = {uid: self._pod(born) for uid, born in self._born.items()}

    def knows(self, uid, name):
        """May a container that never lives be announced without changing what is known of its pod?"""
        born = self._born.get(uid)
        if born is None or not born["partial"]:
            return True
        known = {**born["known"], (name, "announced"): self._container(born["spec"], name)}
        now, then = self._pod(born), self._pod({**born, "known": known})
        return (now.values(), now.requests()) == (then.values(), then.requests())

    def description(self, uid):
        """The spec that a living pod goes by; None if it does not live."""
        return self._born[uid]["spec"] if uid in self._born else None

    def _pod(self, born):
        spec = {**born["spec"], "containers": list(born["known"].values())} if born["partial"] else born["spec"]
        return Pod(spec, born["partial"], born["class"], born["ended"])

    @staticmethod
    def _container(spec, name):
        return next(c for c in spec["containers"] if c["name"] == name)

    def tier(self, qos_class):
        return self.kubepods if qos_class == "guaranteed" else machines.child_cgroup(self.kubepods, qos_class)

    def path(self, uid):
        return machines.child_cgroup(self.tier(self.pods[uid].qos_class), f"pod{uid}")

    def expected(self):
        """{path: {"shares", "quota", "memory"}} of all pods and both tiers; {} when no pod lives."""
        if not self.pods:
            return {}
        cpu, memory = 0, {"guaranteed": 0, "burstable": 0, "besteffort": 0}
        for uid, pod in self.pods.items():
            milli_cpu, size = pod.claims()
            memory[pod.qos_class] += 0 if uid in self.unbacked else size
            cpu += milli_cpu if pod.qos_class == "burstable" else 0
        burstable = self.memory - memory["guaranteed"]
        found = {self.path(uid): pod.values() for uid, pod in self.pods.items()}
        found[self.tier("burstable")] = {"shares": shares_for(cpu), "quota": None, "memory": burstable}
        found[self.tier("besteffort")] = {
            "shares": MIN_SHARES, "quota": None, "memory": burstable - memory["burstable"]}
        if self.features != Features():
            self._add_features(found, memory)
        if self.kubepods.endswith(".slice"):
            for values in found.values():
                values["quota"] = values.get("quota") and rounded_by_systemd(values["quota"])
        return found

    def _add_features(self, found, requested):
        """`requested`: bytes of each class. The root gets what is allocatable, as the kubelet's has it."""
        given = self.features
        for uid, pod in self.pods.items():
            of_pod = found[self.path(uid)]
            of_pod |= given.of_memory(pod.qos_class, pod.claims()[1])
            of_pod["burst"] = given.of_quota(pod.qos_class, of_pod["quota"])
            of_pod["io"] = given.io.get("guaranteed", DEFAULT_IO) if pod.qos_class == "guaranteed" else DEFAULT_IO
        low = requested["burstable"] if given.reserves else 0
        for tier in ("burstable", "besteffort"):
            found[self.tier(tier)] |= {"min": 0, "low": low if tier == "burstable" else 0,
                                       "io": given.io.get(tier, DEFAULT_IO)}
        found[self.tier("besteffort")]["idle"] = int(given.idle)
        found[self.kubepods] = {"memory": self.memory, "low": low,
                                "min": low + requested["guaranteed"] if given.reserves else 0}

    def container(self, uid, name):
        """What the cgroup of a container holds that is in its pod's spec."""
        pod = self.pods[uid]
        one = next(c for c in pod.containers if c.name == name)
        request, memory = (ceil(of.get("memory", 0)) for of in (one.requests, one.limits))
        quota = quota_for(milli(one.limits["cpu"])) if one.limits.get("cpu") else None
        return {"quota": quota, "memory": memory or None, "burst": self.features.of_quota(pod.qos_class, quota),
                "high": self.features.high(request, memory, self.memory),
                **self.features.of_memory(pod.qos_class, request)}


def cgroups_beneath(machine, truth):
    """Pod cgroups and tiers beneath kubepods, in any hierarchy."""
    found = set()
    for tier in map(truth.tier, ("guaranteed", "burstable", "besteffort")):
        for folder in machine.directories(tier):
            found |= {f"{tier}/{entry.name}" for entry in os.scandir(folder) if entry.is_dir()}
    return found


def differences(machine, truth):
    """How the kernel differs from the truth: one sentence each, none if it does not."""
    wanted = truth.expected()
    present = cgroups_beneath(machine, truth)
    found = [f"{path} should not be there" for path in sorted(present - set(wanted))]
    if not wanted and machine.exists(truth.kubepods):
        found.append(f"{truth.kubepods} should not be there")
    for path, values in wanted.items():
        if path in present or path == truth.kubepods:
            found += _differing(machine, path, values)
        else:
            found.append(f"{path} is missing")
    return found


def container_differences(machine, truth, uid, name, path):
    """The same for a container, whose cgroup is `path`. memory.high may have been raised where it was met with."""
    values = truth.container(uid, name)
    if machine.has(path, "high") and values["high"] is not None:
        events = dict(line.split() for line in machine.file(path, "memory", "memory.events").splitlines())
        real = machine.read(path, "high")
        if int(events["high"]) > 0 and (real is None or real > values["high"]):
            del values["high"]
    return _differing(machine, path, values)


def _differing(machine, path, values):
    """`values` as this kernel shows them, against what it does."""
    wanted = {what: value for what, value in values.items() if what not in FEATURES or machine.has(path, what)}
    if machine.version("cpu") == 1 and "idle" in wanted:
        wanted["idle"] = 0  # it would weigh more than two shares
    if wanted.get("idle"):
        del wanted["shares"]  # it has WEIGHT_IDLEPRIO then, and refuses another
    if "shares" in wanted:
        wanted["shares"] = machine.expected_share(wanted["shares"])[1]
    if wanted.get("memory") is not None:
        wanted["memory"] -= wanted["memory"] % PAGE
    real = {what: machine.share(path)[1] if what == "shares" else machine.read(path, what) for what in wanted}
    return [f"{what} of {path} is {real[what]}, should be {wanted[what]}" for what in wanted
            if real[what] != wanted[what]]


def _microseconds(text):
    """systemd's "1min 2.5s"."""
    factors = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6}
    return sum(fractions.Fraction(number) * factors[unit] for number, unit in re.findall(r"([\d.]+)([a-z]+)", text))


def unit_differences(truth, prefix, pids):
    """How the units that systemd has loaded, and what it believes of them, differ from the truth.

    Looked at are those whose names begin so, but for the slice above kubepods. `pids`: of the living containers.
    """
    wanted = {os.path.basename(path): values for path, values in truth.expected().items()}
    names = {*wanted, *(os.path.basename(machines.container_cgroup_of(pid)) for pid in pids)}
    kubepods, above = (os.path.basename(path) for path in (truth.kubepods, os.path.dirname(truth.kubepods)))
    if wanted:
        names.add(kubepods)
    asked = ("ActiveState", "CPUWeight", "CPUQuotaPerSecUSec", "MemoryMax")
    loaded = {unit["Id"]: unit for unit in units.show(["--all", f"{prefix}*"], ("Id", *asked)) if unit}
    found = [f"{name} should not be loaded" for name in sorted(set(loaded) - names - {above})]
    for name in sorted(names):
        unit = loaded.get(name, {"ActiveState": "not loaded"})
        if unit["ActiveState"] != "active":
            found.append(f"{name} is {unit['ActiveState']}")
        elif name in wanted:
            found += _misbeliefs(unit, wanted[name])
    return found


def _misbeliefs(unit, values):
    """What systemd believes of a slice against what it should: it writes all that again at a daemon-reload."""
    right = {"CPUWeight": machines.linear_weight(values["shares"]), "MemoryMax": values["memory"],
             "CPUQuotaPerSecUSec": values["quota"] and values["quota"] * 10}
    read = {"CPUWeight": int, "MemoryMax": int, "CPUQuotaPerSecUSec": _microseconds}
    believed = {what: None if unit[what] == "infinity" else read[what](unit[what]) for what in right}
    return [f"{what} of {unit['Id']} is {believed[what]} to systemd, should be {right[what]}"
            for what in right if believed[what] != right[what]]


def describe(pid):
    """The state of a process, for a person."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split(" ", 4)[1:4]
    except OSError:
        return "has ended"


def build_stepper(program):
    """Compiles stepper.c, which kills a program at its N-th system call, or lets that fail."""
    source = pathlib.Path(__file__).with_name("stepper.c")
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", program, source], check=True)
