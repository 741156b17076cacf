#include "common/codec/settings_table.h"

#include <array>
#include <functional>
#include <utility>

#include "common/codec/setting_types.h"
#include "common/codec/settings_words.h"
#include "common/core/kernel_bounds.h"
#include "common/core/pod_config.h"

namespace podqos::codec {

namespace {

using core::Settings;

constexpr std::int64_t kMillisecond = 1'000;  // in microseconds
constexpr std::int64_t kSecond = 1'000'000;
// The kernel takes quota periods of 1 ms to 1 s; kernel/sched/core.c, tg_set_cfs_bandwidth.
constexpr DurationRange kPeriodRange{.min = kMillisecond, .max = kSecond, .step = 1};
constexpr DurationRange kDeadlineRange{
    .min = 10 * kMillisecond, .max = 60 * kSecond, .step = kMillisecond};
constexpr DurationRange kReleaseRange{.min = 0, .max = 3600 * kSecond, .step = kSecond};

/// The row of a field of type `Type` (setting_types.h).
/// @tparam kField  its place in the settings: a pointer to the member, or what returns a reference
template <class Type, auto kField>
constexpr Setting setting(std::string_view path, std::string_view help) {
  return {.path = path,
          .help = help,
          .expected = [] { return Type::expected(); },
          .read = [](const JsonNode& node, Settings& settings) -> Status {
            PODQOS_ASSIGN(auto value, Type::read(node));
            std::invoke(kField, settings) = std::move(value);
            return {};
          },
          .format =
              [](const Settings& settings) { return Type::format(std::invoke(kField, settings)); }};
}

using IoWeight = OrNull<WholeNumber<core::kMinIoWeight, core::kMaxIoWeight>>;

constexpr std::array<Setting, 40> kTable{{
    setting<Flag, &Settings::enabled>(
        "enabled",
        "*false* stops new placements. Containers that podqos placed before are still "
        "released when they end."),
    setting<OneOf<kScopeWords>, &Settings::scope>(
        "scope",
        "Which containers are managed. *pods*: those that belong to a pod, by a podqos.io "
        "annotation, a CRI or Podman sandbox, or a pod cgroup that contains them. "
        "*annotated*: only those with a podqos.io identity or resource annotation. *all*: a "
        "container without a pod is a pod of its own. Every other container is left "
        "unchanged to the byte."),
    setting<OneOf<kTrustWords>, &Settings::trust_annotations>(
        "trustAnnotations",
        "Whose resource annotations are believed. *engine-checked*: those that do not "
        "contradict what the engine has set for the container; others are ignored with a "
        "warning. *all*: every one, for nodes where only the operator writes annotations. "
        "*none*: no resource annotation and no podqos.io/pod-uid counts. Under a CRI engine "
        "podqos.io/ignore does not count either, and invalid annotations are ignored. For a "
        "pod of a kubelet they only state what it requests: its values are the kubelet's."),
    setting<Flag, &Settings::allow_qos_override>(
        "allowQosOverride",
        "Whether podqos.io/qos-class may raise a pod's class. Without it the annotation can "
        "only lower it."),
    setting<CgroupPath, &Settings::cgroup_root>(
        "cgroupRoot",
        "The cgroup that contains *kubepods* with the pods that podqos makes. Living pods "
        "stay where they are when it changes. A directory of this path that podqos makes "
        "gets the share of all pods together: of the node's allocatable CPU, beside a "
        "kubelet's pods in proportion to what both request; an existing one is left as it is. "
        "If it contains a *kubepods* that podqos did not make, containers that need a place there "
        "are handled as **onError** says. *\"/\"* states that no kubelet uses */kubepods* on this "
        "machine: podqos does not look for one."),
    setting<OneOf<kDriverWords>, &Settings::cgroup_driver>(
        "cgroupDriver",
        "What makes the cgroups of this node: the runtimes themselves, or systemd, with "
        "pods as slices (*podqos-kubepods.slice*). *auto* takes the driver of each "
        "container's runtime, found by its flags, else by the form of cgroupsPath: the pods of "
        "each driver have a tree of their own. *cgroupfs* and *systemd* make a container of "
        "the other driver an error. All containers of a pod use one driver."),
    setting<OneOf<kMisplacedWords>, &Settings::on_misplaced>(
        "placement.onMisplaced",
        "What createRuntime does with a container outside its pod's cgroup, which only hooks "
        "have seen. *rewrite*: correct the bundle's config.json for the next create, set the "
        "container's limits where it is, and warn: the wrapper or *precreate* would have "
        "placed it. *fail*: refuse it. *ignore*: count it only."),
    setting<OrNull<OneOf<kWithoutParentWords>>, &Settings::without_parent>(
        "placement.withoutParent",
        "Where the containers of a pod go for which the engine names no cgroup parent, as "
        "it may be where no kubelet runs. *place*: into the pod's cgroup, as all others. "
        "*stay*: where CRI-O (*/crio*, *system.slice*) or, with the cgroupfs driver, "
        "containerd (*/k8s.io*) puts them. Their own values are set there and the pod "
        "counts, but the pod's limits do not bound them; the log and **podqosctl status** "
        "name the cgroup parent to give the pod, so that it is placed. Other engines know "
        "no cgroup parent of a pod: their containers are placed. null: *stay* under CRI-O, "
        "*place* elsewhere. What *place* costs under CRI-O up to 1.36: it looks for the "
        "statistics of such a pod below its own parent, so that they are empty, and 1.35 "
        "and 1.36 crash when they are asked for them (PodSandboxStats, or "
        "*collection_period* of *[crio.stats]*); mended in 1.37 and in later releases of "
        "1.33 and 1.34."),
    setting<OneOf<kErrorWords>, &Settings::on_error>(
        "onError",
        "Whether a container starts although podqos failed. *admit*: it starts as the engine "
        "configured it, and a line on standard error and in the log says why. *reject*: its "
        "creation fails with that line."),
    setting<OrNull<Positive<MemoryAmount>>, &Settings::node_memory>(
        "nodeMemory", "Capacity of the node. null: the machine's memory."),
    setting<OrNull<Positive<CpuAmount>>, &Settings::node_cpu>(
        "nodeCpu", "Capacity of the node. null: the machine's online CPUs."),
    setting<CpuAmount, [](auto& s) -> auto& { return s.system_reserved.cpu; }>(
        "reserved.system.cpu", "CPU reserved for the system. It reduces what pods can be granted."),
    setting<MemoryAmount, [](auto& s) -> auto& { return s.system_reserved.memory; }>(
        "reserved.system.memory",
        "Memory reserved for the system. The tiers' limits are computed from what remains "
        "of the capacity."),
    setting<CpuAmount, [](auto& s) -> auto& { return s.kube_reserved.cpu; }>(
        "reserved.kube.cpu",
        "CPU reserved for the daemons of Kubernetes. It reduces what pods can be granted."),
    setting<MemoryAmount, [](auto& s) -> auto& { return s.kube_reserved.memory; }>(
        "reserved.kube.memory",
        "Memory reserved for the daemons of Kubernetes. The tiers' limits are computed from "
        "what remains of the capacity."),
    setting<EnforcedCgroups, &Settings::enforce_node_allocatable>(
        "enforceNodeAllocatable",
        "What the node's allocatable resources bound, as the kubelet's setting of this name. "
        "*[\"pods\"]*: the pods of a tree together have a memory limit, the capacity less the "
        "reserves and less what pods outside the tree request, and a limit of processes, the "
        "kernel's *pid_max*. The memory limit is never set below what they use. *[]* or "
        "*[\"none\"]*: neither. Cgroups for the reserves themselves are the operator's."),
    setting<RootWeight, &Settings::root_cpu_weight>(
        "rootCpuWeight",
        "The CPU weight of all pods together, which stands against that of *system.slice* and of "
        "the node's other cgroups. *kubelet*: the shares of the CPUs that are allocatable, as "
        "the root of a kubelet has; on large nodes that leaves the system little under "
        "contention. *proportional*: to the weight of *system.slice* as what is allocatable to "
        "what is reserved (**reserved.system.cpu** and **reserved.kube.cpu**; without either as "
        "*kubelet*). Beside the pods of a kubelet both stand to each other as what they request. "
        "A number is the weight itself (cpu.weight; on cgroup v1 the shares that become it), "
        "also beside a kubelet."),
    setting<OneOf<kAdmissionWords>, [](auto& s) -> auto& { return s.admission.memory; }>(
        "admission.memory",
        "What is done about a pod that requests more memory than is free: the capacity less the "
        "reserves, less what other pods have requested. *warn*: the log and **podqosctl status** "
        "say so, and only the part that is free counts. *enforce*: its container is refused before "
        "it is created, whatever **onError** says; the error names the pods that have most. One "
        "that runs already, as for the hook *createRuntime*, is only warned of. *off*: neither. "
        "What a pod that counts has requested before always fits, so that its containers start "
        "again; so do BestEffort pods, and the pods of a kubelet are never refused."),
    setting<OneOf<kAdmissionWords>, [](auto& s) -> auto& { return s.admission.cpu; }>(
        "admission.cpu", "The same for CPU."),
    setting<OneOf<kAdmissionWords>, [](auto& s) -> auto& { return s.admission.pids; }>(
        "admission.pids",
        "The same for processes and threads, of which pods have a limit but request none: the "
        "number of podqos's own pods times **podPidsLimit** must not exceed the kernel's "
        "*pid_max*. Without **podPidsLimit** every pod fits."),
    setting<OrNull<Percentage<0>>, &Settings::reserve_memory_percent>(
        "qosReserved.memory",
        "How much of the requests of higher classes the lower tiers must leave free: the "
        "limit of the Burstable tier is what is allocatable less this part of the "
        "Guaranteed requests; that of the BestEffort tier is lower by this part of the "
        "Burstable requests as well. null: the tiers get no memory limits. \"0%\": both get "
        "all that is allocatable as their limit.\n\n"
        "Only what is backed is kept free: under a CRI engine (containerd, CRI-O), where "
        "annotations are written by the pod's author, a request counts up to the memory "
        "limits that the engine itself enforces on the pod's containers, and the overhead "
        "that it tells. What Podman, Docker or a plain runtime starts was claimed by its "
        "operator: it counts in full, as do the pods of a kubelet."),
    setting<Percentage<1>, &Settings::max_pod_claim_percent>(
        "maxPodClaim",
        "How much of the allocatable CPU and memory one pod may claim. What a pod requests "
        "beyond that counts in no tier; the pod gets the CPU shares of this part, and OOM "
        "scores as a Burstable pod without priority. It does not bound the pods of a "
        "kubelet. **podqosctl status** names the pods that it bounds."),
    setting<Flag, &Settings::cpu_cfs_quota>(
        "cpuCFSQuota",
        "Whether CPU limits are enforced. *false*: the quota is unlimited where one would "
        "be set."),
    setting<Duration<kPeriodRange, Micros>, &Settings::cpu_cfs_quota_period>(
        "cpuCFSQuotaPeriod", "Period of the CPU quotas."),
    setting<OneOf<kFormulaWords>, &Settings::weight_formula>(
        "weightFormula",
        "How shares become cpu.weight on cgroup v2. *linear* is the formula of the kubelet "
        "and of older runtimes (1 CPU is 39), *log* that of runc since 1.3.2 and crun since "
        "1.23 (1 CPU is 100). *auto* is the one that the node's runtime was observed to "
        "use, else *log*."),
    setting<OrNull<WholeNumber<1, core::kMaxPids>>, &Settings::pod_pids_limit>(
        "podPidsLimit",
        "Limit of processes and threads for each pod, except for the pods of a kubelet, "
        "which has its own. null: none."),
    setting<IoWeight, [](auto& s) -> auto& { return s.io_weight.guaranteed; }>(
        "ioWeight.guaranteed",
        "The I/O weight of each Guaranteed pod. Disks are shared in proportion to the "
        "weights of these pods and the two tiers; 100 is what the kernel gives a cgroup. "
        "The pods of a kubelet get none. null: podqos sets none; a weight that it set before "
        "goes back to 100 at the next **podqosctl reconcile**.\n\n"
        "On cgroup v2 podqos enables the io controller for the root and above where a weight "
        "is set, and writes io.weight and io.bfq.weight; on v1 blkio.bfq.weight and "
        "blkio.weight, in the ranges of these files; whichever the kernel has. The kernel "
        "goes by a weight only where its cost model (io.cost.qos) or the scheduler BFQ is on "
        "for the disk. If it has none of the files, the log says so when the root is made."),
    setting<IoWeight, [](auto& s) -> auto& { return s.io_weight.burstable; }>(
        "ioWeight.burstable",
        "The I/O weight of the Burstable tier, which its pods share, as above."),
    setting<IoWeight, [](auto& s) -> auto& { return s.io_weight.besteffort; }>(
        "ioWeight.bestEffort",
        "The I/O weight of the BestEffort tier, which its pods share, as above."),
    setting<OrNull<Swap>, &Settings::swap_behavior>(
        "memorySwap.swapBehavior",
        "How much a container of a pod may swap on cgroup v2, if the kernel counts swap and "
        "the engine has not set it (the kubelet's setting of this name). *NoSwap*: nothing. "
        "*LimitedSwap*: a container of a Burstable pod may swap the share of the node's "
        "swap that its memory request has of the node's memory, less if the node could not "
        "grant the pod all that it requests; a container whose request equals its limit, "
        "and one of a critical or static pod, nothing. null: whatever the engine says; also "
        "for nodes on which another NRI plugin sets memory.swap.max, because two plugins "
        "that set it fail the container. \"\" is *NoSwap*."),
    setting<Flag, &Settings::single_process_oom_kill>(
        "singleProcessOOMKill",
        "On cgroup v2 the kernel's OOM killer ends all processes of a container at once "
        "(the kubelet's setting of this name), unless the engine has set memory.oom.group "
        "itself. *true*: podqos does not set it."),
    setting<Duration<kReleaseRange>, &Settings::release_delay_seconds>(
        "releaseDelay",
        "How long the cgroup of an ended pod stays while tmpfs memory is still charged to "
        "it. If the kernel's figures by kind (memory.stat) are out of date, it stays for "
        "the three seconds after which they are reliable."),
    setting<MemoryAmount, &Settings::tier_memory_floor>(
        "tierMemoryFloor",
        "A tier's memory limit is never set below this, whatever the rule says: at 0 every "
        "start in the tier would fail. **podqosctl status** shows both values."),
    setting<RuntimePaths, &Settings::runtimes>(
        "runtimes",
        "The candidates of **podqos-runtime**(8); the first that is executable is run. The "
        "field counts even if something else in the configuration is wrong; where it cannot "
        "be determined, **podqos-runtime** refuses every call."),
    setting<Flag, &Settings::charge_monitor>(
        "chargeMonitor",
        "Whether the engine's own process beside a container (conmon, a containerd shim) is "
        "moved into the pod's cgroup, as *podqos-monitor*, so that the pod is charged for "
        "it. Memory that it had before stays charged where it was. Leave it off where the "
        "engine does this itself (CRI-O's *conmon_cgroup = \"pod\"*, containerd's "
        "*ShimCgroup*); pods of a kubelet are left alone."),
    setting<AbsolutePath, &Settings::state_dir>(
        "stateDir",
        "The shared state. All programs of a node must use the same. It must not survive a "
        "reboot. It must belong to root, as each directory above it, and only root may "
        "write to them; a sticky directory such as */tmp* may be above it."),
    setting<Duration<kDeadlineRange>, &Settings::lock_deadline_ms>(
        "lockDeadline",
        "How long to wait for the lock on the state while one and the same process holds "
        "it; up to 20 s while it passes from one process to the next. A container's start waits "
        "5 s in all, whatever it waits for; with a longer lockDeadline as long as that, at most "
        "25 s. Waiting processes get the lock in their order. A lock that is not available in "
        "this time is an error. **podqos-nri**(8) waits no longer than its runtime does."),
    setting<OrNull<MetricsListener>, &Settings::metrics>(
        "nri.metrics",
        "Where **podqos-nri**(8) serves metrics and health over HTTP: *\"unix:PATH\"*, or a "
        "loopback address with its port, *\"127.0.0.1:9464\"* or *\"[::1]:9464\"*; in a pod with "
        "a network of its own also *\"0.0.0.0:9464\"* or *\"[::]:9464\"*, which other machines "
        "can reach. Names and other addresses are refused. null: nowhere; no port is opened by "
        "default. A change "
        "takes effect with a restart of the plugin."),
    setting<LogSink, &Settings::log_sink>("log.sink",
                                          "Where the log goes. *stderr* is for **podqos-nri**(8) "
                                          "in a pod; lines that its reader has no "
                                          "room for are dropped."),
    setting<OneOf<kLevelWords>, &Settings::log_level>(
        "log.level",
        "The least severe lines that are logged. At *info* there is one line for each pod "
        "and change."),
}};

}  // namespace

std::span<const Setting> settings_table() {
  return kTable;
}

}  // namespace podqos::codec
