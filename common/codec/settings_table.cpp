#include "common/codec/settings_table.h"

#include <array>
#include <utility>

#include "common/codec/metrics_address.h"
#include "common/core/kubernetes/cgroup_values.h"

namespace podqos::codec {

namespace {

using core::Settings;
using Form = SettingKind::Form;

constexpr std::int64_t kMillisecond = 1'000;  // in microseconds
constexpr std::int64_t kSecond = 1'000'000;

constexpr SettingKind kFlag{.form = Form::kFlag};
constexpr SettingKind kCpu{.form = Form::kCpu};
constexpr SettingKind kMemory{.form = Form::kMemory};
// The kernel takes quota periods of 1 ms to 1 s; kernel/sched/core.c, tg_set_cfs_bandwidth.
constexpr SettingKind kPeriod{.form = Form::kDuration, .min = kMillisecond, .max = kSecond};
constexpr SettingKind kDeadline{
    .form = Form::kDuration, .min = 10, .max = 60'000, .step = kMillisecond};
constexpr SettingKind kWithinAnHour{.form = Form::kDuration, .max = 3600, .step = kSecond};
constexpr SettingKind kIoWeight{
    .form = Form::kNumber, .min = core::kMinIoWeight, .max = core::kMaxIoWeight, .null = true};

constexpr SettingKind kPressure{.form = Form::kPressure, .null = true};
// As long as systemd-oomd waits for averages of pressure to fall (POST_ACTION_DELAY_USEC).
constexpr SettingKind kEvictionInterval{
    .form = Form::kDuration, .min = 15, .max = 86'400, .step = kSecond};
constexpr SettingKind kBurst{.form = Form::kPercent, .max = 100, .null = true};

constexpr SettingKind words(std::string_view words) {
  return {.form = Form::kWord, .words = words};
}

constexpr SettingKind or_null(SettingKind kind) {
  kind.null = true;
  return kind;
}

constexpr SettingKind kPolicy = words("off warn enforce");

// A member of the settings as a value, and back.

SettingValue value_of(const core::RootCpuWeight& weight) {
  using enum core::RootCpuWeight::Rule;
  if (weight.rule == kNumber) return weight.weight.value();
  return weight.rule == kKubelet ? "kubelet" : "proportional";
}
void assign(core::RootCpuWeight& weight, const SettingValue& value) {
  using enum core::RootCpuWeight::Rule;
  if (const auto* const number = std::get_if<std::int64_t>(&value))
    weight = {.rule = kNumber, .weight = CpuWeight{*number}};
  else
    weight = {.rule = value == SettingValue{"kubelet"} ? kKubelet : kProportional};
}

SettingValue value_of(const core::MetricsAddress& address) {
  return format_metrics_address(address);
}
void assign(core::MetricsAddress& address, const SettingValue& value) {
  if (auto parsed = parse_metrics_address(*std::get_if<std::string>(&value)))
    address = *std::move(parsed);
}

SettingValue value_of(const core::MemoryPressure& pressure) {
  return format_pressure(pressure);
}
void assign(core::MemoryPressure& pressure, const SettingValue& value) {
  pressure = parse_pressure(*std::get_if<std::string>(&value)).value_or(core::MemoryPressure{});
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

/// @tparam kMembers  pointers to members, each of the one before: where the value is
template <auto... kMembers>
constexpr Setting setting(std::string_view path, SettingKind kind) {
  return {.path = path,
          .kind = kind,
          .get = [](const Settings& settings) { return value_of((settings.*....*kMembers)); },
          .set = [](Settings& settings,
                    const SettingValue& value) { assign((settings.*....*kMembers), value); }};
}

constexpr std::array<Setting, 51> kTable{{
    setting<&Settings::enabled>("enabled", kFlag),
    setting<&Settings::scope>("scope", words("pods annotated all")),
    setting<&Settings::trust_annotations>("trustAnnotations", words("engine-checked all none")),
    setting<&Settings::allow_qos_override>("allowQosOverride", kFlag),
    setting<&Settings::cgroup_root>("cgroupRoot", {.form = Form::kCgroup}),
    setting<&Settings::cgroup_driver>("cgroupDriver", words("auto cgroupfs systemd")),
    setting<&Settings::on_misplaced>("placement.onMisplaced", words("rewrite fail ignore")),
    setting<&Settings::without_parent>("placement.withoutParent", or_null(words("stay place"))),
    setting<&Settings::on_error>("onError", words("admit reject")),
    setting<&Settings::node_memory>("nodeMemory", {.form = Form::kMemory, .min = 1, .null = true}),
    setting<&Settings::node_cpu>("nodeCpu", {.form = Form::kCpu, .min = 1, .null = true}),
    setting<&Settings::system_reserved, &core::Reserved::cpu>("reserved.system.cpu", kCpu),
    setting<&Settings::system_reserved, &core::Reserved::memory>("reserved.system.memory", kMemory),
    setting<&Settings::kube_reserved, &core::Reserved::cpu>("reserved.kube.cpu", kCpu),
    setting<&Settings::kube_reserved, &core::Reserved::memory>("reserved.kube.memory", kMemory),
    setting<&Settings::enforce_node_allocatable>("enforceNodeAllocatable",
                                                 {.form = Form::kEnforced}),
    setting<&Settings::root_cpu_weight>(
        "rootCpuWeight",
        {.form = Form::kNumber, .min = 1, .max = 10'000, .words = "kubelet proportional"}),
    setting<&Settings::admission, &core::AdmissionPolicies::memory>("admission.memory",
                                                                    or_null(kPolicy)),
    setting<&Settings::admission, &core::AdmissionPolicies::cpu>("admission.cpu", kPolicy),
    setting<&Settings::admission, &core::AdmissionPolicies::pids>("admission.pids", kPolicy),
    setting<&Settings::reserve_memory_percent>("qosReserved.memory",
                                               {.form = Form::kPercent, .max = 100, .null = true}),
    setting<&Settings::max_pod_claim_percent>("maxPodClaim",
                                              {.form = Form::kPercent, .min = 1, .max = 100}),
    setting<&Settings::cpu_cfs_quota>("cpuCFSQuota", kFlag),
    setting<&Settings::cpu_cfs_quota_period>("cpuCFSQuotaPeriod", kPeriod),
    setting<&Settings::cpu_burst, &core::CpuBurst::guaranteed>("cpuBurst.guaranteed", kBurst),
    setting<&Settings::cpu_burst, &core::CpuBurst::burstable>("cpuBurst.burstable", kBurst),
    setting<&Settings::cpu_idle_besteffort>("cpuIdle.bestEffort", kFlag),
    setting<&Settings::weight_formula>("weightFormula", words("auto linear log")),
    setting<&Settings::pod_pids_limit>(
        "podPidsLimit", {.form = Form::kNumber, .min = 1, .max = core::kMaxPids, .null = true}),
    setting<&Settings::io_weight, &core::IoWeights::guaranteed>("ioWeight.guaranteed", kIoWeight),
    setting<&Settings::io_weight, &core::IoWeights::burstable>("ioWeight.burstable", kIoWeight),
    setting<&Settings::io_weight, &core::IoWeights::besteffort>("ioWeight.bestEffort", kIoWeight),
    setting<&Settings::eviction, &core::Eviction::burstable>("eviction.burstable.memoryPressure",
                                                             kPressure),
    setting<&Settings::eviction, &core::Eviction::besteffort>("eviction.bestEffort.memoryPressure",
                                                              kPressure),
    setting<&Settings::eviction, &core::Eviction::interval_seconds>("eviction.interval",
                                                                    kEvictionInterval),
    setting<&Settings::swap_behavior>(
        "memorySwap.swapBehavior",
        {.form = Form::kWord, .words = "NoSwap LimitedSwap", .null = true, .blank = true}),
    setting<&Settings::single_process_oom_kill>("singleProcessOOMKill", kFlag),
    setting<&Settings::reserve_memory>("memoryReservationPolicy", words("None TieredReservation")),
    setting<&Settings::memory_throttling_thousandths>(
        "memoryThrottlingFactor", {.form = Form::kFraction, .min = 1, .max = 1000, .null = true}),
    setting<&Settings::memory_high_patience_seconds>("memoryHighPatience", kWithinAnHour),
    setting<&Settings::release_delay_seconds>("releaseDelay", kWithinAnHour),
    setting<&Settings::tier_memory_floor>("tierMemoryFloor", kMemory),
    setting<&Settings::runtimes>("runtimes", kRuntimePaths),
    setting<&Settings::charge_monitor>("chargeMonitor", kFlag),
    setting<&Settings::state_dir>("stateDir", {.form = Form::kPath}),
    setting<&Settings::lock_deadline_ms>("lockDeadline", kDeadline),
    setting<&Settings::metrics>("nri.metrics", {.form = Form::kAddress, .null = true}),
    setting<&Settings::pod_series>("metrics.pods",
                                   {.form = Form::kPods, .max = core::kMaxPodSeries}),
    setting<&Settings::log_sink>("log.sink", {.form = Form::kPath, .words = "syslog stderr none"}),
    setting<&Settings::log_level>("log.level", words("debug info warning error")),
    setting<&Settings::events_size>("events.size",
                                    {.form = Form::kMemory, .max = core::kMaxEventsSize.value()}),
}};

}  // namespace

std::span<const Setting> settings_table() {
  return kTable;
}

}  // namespace podqos::codec
