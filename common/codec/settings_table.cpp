#include "common/codec/settings_table.h"

#include <array>
#include <functional>
#include <utility>

#include "common/core/kubernetes/cgroup_values.h"

namespace podqos::codec {

namespace {

using core::Settings;
using Form = SettingKind::Form;

constexpr std::int64_t kMillisecond = 1'000;  // in microseconds
constexpr std::int64_t kSecond = 1'000'000;

constexpr SettingKind kFlag{.form = Form::kFlag};
// The kernel takes quota periods of 1 ms to 1 s; kernel/sched/core.c, tg_set_cfs_bandwidth.
constexpr SettingKind kPeriod{.form = Form::kDuration, .min = kMillisecond, .max = kSecond};
constexpr SettingKind kDeadline{
    .form = Form::kDuration, .min = 10, .max = 60'000, .step = kMillisecond};
constexpr SettingKind kReleaseDelay{.form = Form::kDuration, .max = 3600, .step = kSecond};
constexpr SettingKind kIoWeight{
    .form = Form::kNumber, .min = core::kMinIoWeight, .max = core::kMaxIoWeight, .null = true};

constexpr SettingKind words(std::string_view words) {
  return {.form = Form::kWord, .words = words};
}

constexpr SettingKind or_null(SettingKind kind) {
  kind.null = true;
  return kind;
}

// A member of the settings as a value, and back.

SettingValue value_of(const core::RootCpuWeight& weight) {
  using enum core::RootCpuWeight::Rule;
  if (weight.rule == kNumber) return weight.weight.value();
  return weight.rule == kKubelet ? "kubelet" : "proportional";
}
void assign(core::RootCpuWeight& weight, const SettingValue& value) {
  using enum core::RootCpuWeight::Rule;
  const auto* const word = std::get_if<std::string>(&value);
  const auto* const number = std::get_if<std::int64_t>(&value);
  weight = {.rule = number != nullptr    ? kNumber
                    : *word == "kubelet" ? kKubelet
                                         : kProportional,
            .weight = CpuWeight{number != nullptr ? *number : 0}};
}

SettingValue value_of(const core::MetricsAddress& address) {
  return core::format_metrics_address(address);
}
void assign(core::MetricsAddress& address, const SettingValue& value) {
  if (auto parsed = core::parse_metrics_address(*std::get_if<std::string>(&value)))
    address = *std::move(parsed);
}

template <class T>
SettingValue value_of(const T& member) {
  if constexpr (requires { member.has_value(); })
    return member ? value_of(*member) : SettingValue{};
  else if constexpr (requires { member.value(); })
    return member.value();
  else if constexpr (requires { member.size(); })
    return member;
  else
    return static_cast<std::int64_t>(member);
}
template <class T>
void assign(T& member, const SettingValue& value) {
  if constexpr (requires { member.has_value(); }) {
    member.reset();
    if (!std::holds_alternative<std::monostate>(value)) assign(member.emplace(), value);
  } else if constexpr (requires { member.size(); }) {
    member = *std::get_if<T>(&value);
  } else {
    member = static_cast<T>(*std::get_if<std::int64_t>(&value));
  }
}

/// @tparam kMember  in the settings: a pointer to a member, or what returns a reference to it
template <auto kMember>
constexpr Setting setting(std::string_view path, SettingKind kind, std::string_view help) {
  return {.path = path,
          .kind = kind,
          .help = help,
          .get = [](const Settings& settings) { return value_of(std::invoke(kMember, settings)); },
          .set = [](Settings& settings,
                    const SettingValue& value) { assign(std::invoke(kMember, settings), value); }};
}

constexpr std::array<Setting, 40> kTable{{
    setting<&Settings::enabled>(
        "enabled", kFlag,
        "*false* stops new placements. Containers that podqos placed before are still "
        "released when they end."),
    setting<&Settings::scope>(
        "scope", words("pods annotated all"),
        "Which containers are managed. *pods*: those that belong to a pod, by a podqos.io "
        "annotation, a CRI or Podman sandbox, or a pod cgroup that contains them. "
        "*annotated*: only those with a podqos.io identity or resource annotation. *all*: a "
        "container without a pod is a pod of its own. Every other container is left "
        "unchanged to the byte."),
    setting<&Settings::trust_annotations>(
        "trustAnnotations", words("engine-checked all none"),
        "Whose resource annotations are believed. *engine-checked*: those that do not "
        "contradict what the engine has set for the container; others are ignored with a "
        "warning. *all*: every one, for nodes where only the operator writes annotations. "
        "*none*: no resource annotation and no podqos.io/pod-uid counts. Under a CRI engine "
        "podqos.io/ignore does not count either, and invalid annotations are ignored. For a "
        "pod of a kubelet they only state what it requests: its values are the kubelet's."),
    setting<&Settings::allow_qos_override>(
        "allowQosOverride", kFlag,
        "Whether podqos.io/qos-class may raise a pod's class. Without it the annotation can "
        "only lower it."),
    setting<&Settings::cgroup_root>(
        "cgroupRoot", {.form = Form::kCgroup},
        "The cgroup that contains *kubepods* with the pods that podqos makes. Living pods "
        "stay where they are when it changes. A directory of this path that podqos makes "
        "gets the share of all pods together: of the node's allocatable CPU, beside a "
        "kubelet's pods in proportion to what both request; an existing one is left as it is. "
        "If it contains a *kubepods* that podqos did not make, containers that need a place there "
        "are handled as **onError** says. *\"/\"* states that no kubelet uses */kubepods* on this "
        "machine: podqos does not look for one."),
    setting<&Settings::cgroup_driver>(
        "cgroupDriver", words("auto cgroupfs systemd"),
        "What makes the cgroups of this node: the runtimes themselves, or systemd, with "
        "pods as slices (*podqos-kubepods.slice*). *auto* takes the driver of each "
        "container's runtime, found by its flags, else by the form of cgroupsPath: the pods of "
        "each driver have a tree of their own. *cgroupfs* and *systemd* make a container of "
        "the other driver an error. All containers of a pod use one driver."),
    setting<&Settings::on_misplaced>(
        "placement.onMisplaced", words("rewrite fail ignore"),
        "What createRuntime does with a container outside its pod's cgroup, which only hooks "
        "have seen. *rewrite*: correct the bundle's config.json for the next create, set the "
        "container's limits where it is, and warn: the wrapper or *precreate* would have "
        "placed it. *fail*: refuse it. *ignore*: count it only."),
    setting<&Settings::without_parent>(
        "placement.withoutParent", or_null(words("stay place")),
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
    setting<&Settings::on_error>(
        "onError", words("admit reject"),
        "Whether a container starts although podqos failed. *admit*: it starts as the engine "
        "configured it, and a line on standard error and in the log says why. *reject*: its "
        "creation fails with that line."),
    setting<&Settings::node_memory>("nodeMemory", {.form = Form::kMemory, .min = 1, .null = true},
                                    "Capacity of the node. null: the machine's memory."),
    setting<&Settings::node_cpu>("nodeCpu", {.form = Form::kCpu, .min = 1, .null = true},
                                 "Capacity of the node. null: the machine's online CPUs."),
    setting<[](auto& s) -> auto& { return s.system_reserved.cpu; }>(
        "reserved.system.cpu", {.form = Form::kCpu},
        "CPU reserved for the system. It reduces what pods can be granted."),
    setting<[](auto& s) -> auto& { return s.system_reserved.memory; }>(
        "reserved.system.memory", {.form = Form::kMemory},
        "Memory reserved for the system. The tiers' limits are computed from what remains "
        "of the capacity."),
    setting<[](auto& s) -> auto& { return s.kube_reserved.cpu; }>(
        "reserved.kube.cpu", {.form = Form::kCpu},
        "CPU reserved for the daemons of Kubernetes. It reduces what pods can be granted."),
    setting<[](auto& s) -> auto& { return s.kube_reserved.memory; }>(
        "reserved.kube.memory", {.form = Form::kMemory},
        "Memory reserved for the daemons of Kubernetes. The tiers' limits are computed from "
        "what remains of the capacity."),
    setting<&Settings::enforce_node_allocatable>(
        "enforceNodeAllocatable", {.form = Form::kEnforced},
        "What the node's allocatable resources bound, as the kubelet's setting of this name. "
        "*[\"pods\"]*: the pods of a tree together have a memory limit, the capacity less the "
        "reserves and less what pods outside the tree request, and a limit of processes, the "
        "kernel's *pid_max*. The memory limit is never set below what they use. *[]* or "
        "*[\"none\"]*: neither. Cgroups for the reserves themselves are the operator's."),
    setting<&Settings::root_cpu_weight>(
        "rootCpuWeight",
        {.form = Form::kWordOrNumber, .min = 1, .max = 10'000, .words = "kubelet proportional"},
        "The CPU weight of all pods together, which stands against that of *system.slice* and of "
        "the node's other cgroups. *kubelet*: the shares of the CPUs that are allocatable, as "
        "the root of a kubelet has; on large nodes that leaves the system little under "
        "contention. *proportional*: to the weight of *system.slice* as what is allocatable to "
        "what is reserved (**reserved.system.cpu** and **reserved.kube.cpu**; without either as "
        "*kubelet*). Beside the pods of a kubelet both stand to each other as what they request. "
        "A number is the weight itself (cpu.weight; on cgroup v1 the shares that become it), "
        "also beside a kubelet."),
    setting<[](auto& s) -> auto& { return s.admission.memory; }>(
        "admission.memory", words("off warn enforce"),
        "What is done about a pod that requests more memory than is free: the capacity less the "
        "reserves, less what other pods have requested. *warn*: the log and **podqosctl status** "
        "say so, and only the part that is free counts. *enforce*: its container is refused before "
        "it is created, whatever **onError** says; the error names the pods that have most. One "
        "that runs already, as for the hook *createRuntime*, is only warned of. *off*: neither. "
        "What a pod that counts has requested before always fits, so that its containers start "
        "again; so do BestEffort pods, and the pods of a kubelet are never refused."),
    setting<[](auto& s) -> auto& { return s.admission.cpu; }>(
        "admission.cpu", words("off warn enforce"), "The same for CPU."),
    setting<[](auto& s) -> auto& { return s.admission.pids; }>(
        "admission.pids", words("off warn enforce"),
        "The same for processes and threads, of which pods have a limit but request none: the "
        "number of podqos's own pods times **podPidsLimit** must not exceed the kernel's "
        "*pid_max*. Without **podPidsLimit** every pod fits."),
    setting<&Settings::reserve_memory_percent>(
        "qosReserved.memory", {.form = Form::kPercent, .max = 100, .null = true},
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
    setting<&Settings::max_pod_claim_percent>(
        "maxPodClaim", {.form = Form::kPercent, .min = 1, .max = 100},
        "How much of the allocatable CPU and memory one pod may claim. What a pod requests "
        "beyond that counts in no tier; the pod gets the CPU shares of this part, and OOM "
        "scores as a Burstable pod without priority. It does not bound the pods of a "
        "kubelet. **podqosctl status** names the pods that it bounds."),
    setting<&Settings::cpu_cfs_quota>(
        "cpuCFSQuota", kFlag,
        "Whether CPU limits are enforced. *false*: the quota is unlimited where one would "
        "be set."),
    setting<&Settings::cpu_cfs_quota_period>("cpuCFSQuotaPeriod", kPeriod,
                                             "Period of the CPU quotas."),
    setting<&Settings::weight_formula>(
        "weightFormula", words("auto linear log"),
        "How shares become cpu.weight on cgroup v2. *linear* is the formula of the kubelet "
        "and of older runtimes (1 CPU is 39), *log* that of runc since 1.3.2 and crun since "
        "1.23 (1 CPU is 100). *auto* is the one that the node's runtime was observed to "
        "use, else *log*."),
    setting<&Settings::pod_pids_limit>(
        "podPidsLimit", {.form = Form::kNumber, .min = 1, .max = core::kMaxPids, .null = true},
        "Limit of processes and threads for each pod, except for the pods of a kubelet, "
        "which has its own. null: none."),
    setting<[](auto& s) -> auto& { return s.io_weight.guaranteed; }>(
        "ioWeight.guaranteed", kIoWeight,
        "The I/O weight of each Guaranteed pod. Disks are shared in proportion to the "
        "weights of these pods and the two tiers; 100 is what the kernel gives a cgroup. "
        "The pods of a kubelet get none. null: podqos sets none; a weight that it set before "
        "goes back to 100 at the next **podqosctl reconcile**.\n\n"
        "On cgroup v2 podqos enables the io controller for the root and above where a weight "
        "is set, and writes io.weight and io.bfq.weight; on v1 blkio.bfq.weight and "
        "blkio.weight, in the ranges of these files; whichever the kernel has. The kernel "
        "goes by a weight only where its cost model (io.cost.qos) or the scheduler BFQ is on "
        "for the disk. If it has none of the files, the log says so when the root is made."),
    setting<[](auto& s) -> auto& { return s.io_weight.burstable; }>(
        "ioWeight.burstable", kIoWeight,
        "The I/O weight of the Burstable tier, which its pods share, as above."),
    setting<[](auto& s) -> auto& { return s.io_weight.besteffort; }>(
        "ioWeight.bestEffort", kIoWeight,
        "The I/O weight of the BestEffort tier, which its pods share, as above."),
    setting<&Settings::swap_behavior>(
        "memorySwap.swapBehavior",
        {.form = Form::kWord, .words = "NoSwap LimitedSwap", .null = true, .blank = true},
        "How much a container of a pod may swap on cgroup v2, if the kernel counts swap and "
        "the engine has not set it (the kubelet's setting of this name). *NoSwap*: nothing. "
        "*LimitedSwap*: a container of a Burstable pod may swap the share of the node's "
        "swap that its memory request has of the node's memory, less if the node could not "
        "grant the pod all that it requests; a container whose request equals its limit, "
        "and one of a critical or static pod, nothing. null: whatever the engine says; also "
        "for nodes on which another NRI plugin sets memory.swap.max, because two plugins "
        "that set it fail the container. \"\" is *NoSwap*."),
    setting<&Settings::single_process_oom_kill>(
        "singleProcessOOMKill", kFlag,
        "On cgroup v2 the kernel's OOM killer ends all processes of a container at once "
        "(the kubelet's setting of this name), unless the engine has set memory.oom.group "
        "itself. *true*: podqos does not set it."),
    setting<&Settings::release_delay_seconds>(
        "releaseDelay", kReleaseDelay,
        "How long the cgroup of an ended pod stays while tmpfs memory is still charged to "
        "it. If the kernel's figures by kind (memory.stat) are out of date, it stays for "
        "the three seconds after which they are reliable."),
    setting<&Settings::tier_memory_floor>(
        "tierMemoryFloor", {.form = Form::kMemory},
        "A tier's memory limit is never set below this, whatever the rule says: at 0 every "
        "start in the tier would fail. **podqosctl status** shows both values."),
    setting<&Settings::runtimes>(
        "runtimes", kRuntimePaths,
        "The candidates of **podqos-runtime**(8); the first that is executable is run. The "
        "field counts even if something else in the configuration is wrong; where it cannot "
        "be determined, **podqos-runtime** refuses every call."),
    setting<&Settings::charge_monitor>(
        "chargeMonitor", kFlag,
        "Whether the engine's own process beside a container (conmon, a containerd shim) is "
        "moved into the pod's cgroup, as *podqos-monitor*, so that the pod is charged for "
        "it. Memory that it had before stays charged where it was. Leave it off where the "
        "engine does this itself (CRI-O's *conmon_cgroup = \"pod\"*, containerd's "
        "*ShimCgroup*); pods of a kubelet are left alone."),
    setting<&Settings::state_dir>(
        "stateDir", {.form = Form::kPath},
        "The shared state. All programs of a node must use the same. It must not survive a "
        "reboot. It must belong to root, as each directory above it, and only root may "
        "write to them; a sticky directory such as */tmp* may be above it."),
    setting<&Settings::lock_deadline_ms>(
        "lockDeadline", kDeadline,
        "How long to wait for the lock on the state while one and the same process holds "
        "it; up to 20 s while it passes from one process to the next. A container's start waits "
        "5 s in all, whatever it waits for; with a longer lockDeadline as long as that, at most "
        "25 s. Waiting processes get the lock in their order. A lock that is not available in "
        "this time is an error. **podqos-nri**(8) waits no longer than its runtime does."),
    setting<&Settings::metrics>(
        "nri.metrics", {.form = Form::kAddress, .null = true},
        "Where **podqos-nri**(8) serves metrics and health over HTTP: *\"unix:PATH\"*, or a "
        "loopback address with its port, *\"127.0.0.1:9464\"* or *\"[::1]:9464\"*; in a pod with "
        "a network of its own also *\"0.0.0.0:9464\"* or *\"[::]:9464\"*, which other machines "
        "can reach. Names and other addresses are refused. null: nowhere; no port is opened by "
        "default. A change "
        "takes effect with a restart of the plugin."),
    setting<&Settings::log_sink>("log.sink", {.form = Form::kSink, .words = "syslog stderr none"},
                                 "Where the log goes. *stderr* is for **podqos-nri**(8) "
                                 "in a pod; lines that its reader has no "
                                 "room for are dropped."),
    setting<&Settings::log_level>(
        "log.level", words("debug info warning error"),
        "The least severe lines that are logged. At *info* there is one line for each pod "
        "and change."),
}};

}  // namespace

std::span<const Setting> settings_table() {
  return kTable;
}

}  // namespace podqos::codec
