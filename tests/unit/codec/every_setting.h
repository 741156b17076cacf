#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/text.h"
#include "common/core/settings.h"

/// podqos.json with every field of podqos.json(5).
namespace podqos::codec::every_setting {

inline constexpr std::string_view kEverything = R"({
  // for people
  "enabled": false, "scope": "annotated", "trustAnnotations": "none", "allowQosOverride": true,
  "cgroupRoot": "/a/b", "cgroupDriver": "cgroupfs", "placement": {"onMisplaced": "ignore", "withoutParent": "place"}, "onError": "reject",
  "nodeMemory": "32Gi", "nodeCpu": 4, /* pinned */
  "reserved": {"system": {"cpu": "500m", "memory": "1Gi"}, "kube": {"cpu": "0.25", "memory": 1048576}},
  "enforceNodeAllocatable": ["none"], "rootCpuWeight": 300, "admission": {"memory": "enforce", "cpu": "off", "pids": "enforce"}, "qosReserved": {"memory": "50%"}, "maxPodClaim": "40%", "cpuCFSQuota": false, "cpuCFSQuotaPeriod": "5ms", "cpuBurst": {"guaranteed": "50%", "burstable": "0%"}, "cpuIdle": {"bestEffort": true}, "weightFormula": "log",
  "podPidsLimit": 1024, "ioWeight": {"guaranteed": 10000, "burstable": 100, "bestEffort": 1}, "eviction": {"burstable": {"memoryPressure": "80%/60s"}, "bestEffort": {"memoryPressure": "60%/30s"}, "interval": "5m"}, "memorySwap": {"swapBehavior": "LimitedSwap"}, "singleProcessOOMKill": true, "memoryReservationPolicy": "TieredReservation", "memoryThrottlingFactor": 0.9, "memoryHighPatience": "1m", "releaseDelay": "2m", "tierMemoryFloor": "32Mi", "runtimes": ["/opt/runc"],
  "chargeMonitor": true, "stateDir": "/run/other", "lockDeadline": "250ms",
  "nri": {"metrics": "unix:/run/other/metrics.sock"}, "log": {"sink": "/var/log/podqos.log", "level": "debug"}, "events": {"size": "1Mi"}
})";

/// What stands in kEverything.
inline core::Settings everything() {
  core::Settings out;
  out.enabled = false;
  out.scope = core::Scope::kAnnotated;
  out.trust_annotations = core::TrustAnnotations::kNone;
  out.allow_qos_override = true;
  out.cgroup_root = "/a/b";
  out.cgroup_driver = core::DriverSetting::kCgroupfs;
  out.on_misplaced = core::OnMisplaced::kIgnore;
  out.without_parent = core::WithoutParent::kPlace;
  out.on_error = core::OnError::kReject;
  out.node_memory = Bytes{34'359'738'368};
  out.node_cpu = MilliCpu{4000};
  out.system_reserved = {.cpu = MilliCpu{500}, .memory = Bytes{1'073'741'824}};
  out.kube_reserved = {.cpu = MilliCpu{250}, .memory = Bytes{1'048'576}};
  out.enforce_node_allocatable = false;
  out.root_cpu_weight = {.rule = core::RootCpuWeight::Rule::kNumber, .weight = CpuWeight{300}};
  out.admission = {.memory = core::AdmissionPolicy::kEnforce,
                   .cpu = core::AdmissionPolicy::kOff,
                   .pids = core::AdmissionPolicy::kEnforce};
  out.reserve_memory_percent = 50;
  out.max_pod_claim_percent = 40;
  out.cpu_cfs_quota = false;
  out.cpu_cfs_quota_period = Micros{5'000};
  out.cpu_burst = {.guaranteed = 50, .burstable = 0};
  out.cpu_idle_besteffort = true;
  out.weight_formula = core::WeightFormulaSetting::kLog;
  out.pod_pids_limit = 1024;
  out.io_weight = {.guaranteed = 10'000, .burstable = 100, .besteffort = 1};
  out.eviction = {{.burstable = core::MemoryPressure{.percent = 80, .seconds = 60},
                   .besteffort = core::MemoryPressure{.percent = 60, .seconds = 30}},
                  300};
  out.swap_behavior = core::SwapBehavior::kLimitedSwap;
  out.single_process_oom_kill = true;
  out.reserve_memory = true;
  out.memory_throttling_thousandths = 900;
  out.memory_high_patience_seconds = 60;
  out.release_delay_seconds = 120;
  out.tier_memory_floor = Bytes{33'554'432};
  out.runtimes = {"/opt/runc"};
  out.charge_monitor = true;
  out.state_dir = "/run/other";
  out.lock_deadline_ms = 250;
  out.metrics = core::UnixSocket{"/run/other/metrics.sock"};
  out.log_sink = "/var/log/podqos.log";
  out.log_level = core::LogLevel::kDebug;
  out.events_size = Bytes{1'048'576};
  return out;
}

/// `value` at the field's path: "log.level" gives {"log":{"level":<value>}}.
inline std::string at_path(std::string_view path, std::string_view value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return cat("{\"", path, "\":", value, "}");
  return cat("{\"", path.substr(0, dot), "\":", at_path(path.substr(dot + 1), value), "}");
}

struct Field {
  std::string path;
  std::string valid;
  /// Those that this field takes of the values that most fields refuse.
  std::vector<std::string> also = {};
};

/// Every field of podqos.json(5).
inline const std::vector<Field> kFields = {
    {"enabled", "false", {"true"}},
    {"scope", R"("all")"},
    {"trustAnnotations", R"("all")"},
    {"allowQosOverride", "false", {"true"}},
    {"cgroupRoot", R"("/a")"},
    {"cgroupDriver", R"("cgroupfs")"},
    {"placement.onMisplaced", R"("fail")"},
    {"placement.withoutParent", R"("stay")", {"null"}},
    {"onError", R"("reject")"},
    {"nodeMemory", R"("1Gi")", {"null"}},
    {"nodeCpu", "2", {"null"}},
    {"reserved.system.cpu", R"("100m")"},
    {"reserved.system.memory", R"("1Gi")"},
    {"reserved.kube.cpu", R"("100m")"},
    {"reserved.kube.memory", R"("1Gi")"},
    {"enforceNodeAllocatable", R"(["pods"])", {"[]"}},
    {"rootCpuWeight", R"("proportional")"},
    {"admission.memory", R"("off")", {"null"}},
    {"admission.cpu", R"("enforce")"},
    {"admission.pids", R"("off")"},
    {"qosReserved.memory", R"("50%")", {"null"}},
    {"maxPodClaim", R"("50%")"},
    {"cpuCFSQuota", "false", {"true"}},
    {"cpuCFSQuotaPeriod", R"("10ms")"},
    {"cpuBurst.guaranteed", R"("50%")", {"null"}},
    {"cpuBurst.burstable", R"("0%")", {"null"}},
    {"cpuIdle.bestEffort", "false", {"true"}},
    {"weightFormula", R"("log")"},
    {"podPidsLimit", "1", {"null"}},
    {"ioWeight.guaranteed", "10000", {"null"}},
    {"ioWeight.burstable", "100", {"null"}},
    {"ioWeight.bestEffort", "1", {"null"}},
    {"eviction.burstable.memoryPressure", R"("100%/1h")", {"null"}},
    {"eviction.bestEffort.memoryPressure", R"("1%/1s")", {"null"}},
    {"eviction.interval", R"("15s")"},
    {"memorySwap.swapBehavior", R"("NoSwap")", {"null", R"("")"}},
    {"singleProcessOOMKill", "false", {"true"}},
    {"memoryReservationPolicy", R"("None")"},
    {"memoryThrottlingFactor", "0.5", {"null"}},
    {"memoryHighPatience", R"("10s")"},
    {"releaseDelay", R"("1s")"},
    {"tierMemoryFloor", R"("1Mi")"},
    {"runtimes", R"(["/a"])"},
    {"chargeMonitor", "true", {"true"}},
    {"stateDir", R"("/a")"},
    {"lockDeadline", R"("1s")"},
    {"nri.metrics", R"("127.0.0.1:9464")", {"null"}},
    {"metrics.pods", R"("top:7")"},
    {"log.sink", R"("none")"},
    {"log.level", R"("error")"},
    {"events.size", R"("2Mi")"},
};

}  // namespace podqos::codec::every_setting
