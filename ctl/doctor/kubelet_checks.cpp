#include <array>
#include <string>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_tree.h"
#include "common/codec/settings_json.h"
#include "ctl/doctor/doctor_checks.h"
#include "ctl/explain/document.h"

namespace podqos::ctl {
namespace {

using enum Outcome;

/// A field of a KubeletConfiguration and the setting that has the same meaning.
/// @note k8s.io/kubelet/config/v1beta1/types.go
struct Field {
  const char* kubelet;
  const char* setting;
};
constexpr std::array kFields = {
    Field{"systemReserved.cpu", "reserved.system.cpu"},
    Field{"systemReserved.memory", "reserved.system.memory"},
    Field{"kubeReserved.cpu", "reserved.kube.cpu"},
    Field{"kubeReserved.memory", "reserved.kube.memory"},
    Field{"cpuCFSQuota", "cpuCFSQuota"},
    Field{"cpuCFSQuotaPeriod", "cpuCFSQuotaPeriod"},
    Field{"podPidsLimit", "podPidsLimit"},
    Field{"qosReserved.memory", "qosReserved.memory"},
    Field{"memorySwap.swapBehavior", "memorySwap.swapBehavior"},
    Field{"memoryReservationPolicy", "memoryReservationPolicy"},
    Field{"memoryThrottlingFactor", "memoryThrottlingFactor"},
    Field{"singleProcessOOMKill", "singleProcessOOMKill"},
};

/// {"reserved": {"system": {"cpu": VALUE}}} of "reserved.system.cpu".
Json nested(std::string_view path, Json value) {
  const auto keys = parts_of(path, '.');
  for (auto key = keys.rbegin(); key != keys.rend(); ++key)
    value = Json{{*key, std::move(value)}};
  return value;
}

}  // namespace

Findings check_kubelet(std::string_view file, const std::optional<std::string>& text,
                       const core::Settings& settings) {
  if (!text) return {{"configuration", "kubelet", kSkipped, cat("no ", file)}};
  const auto documents = parse_yaml(*text);
  if (!documents || documents->empty())
    return {{"configuration", "kubelet", kSkipped,
             cat(file, ": ", documents ? "is empty" : documents.error().message)}};
  const codec::JsonNode& kubelet = documents->front().tree;
  Findings checks;
  for (const Field& field : kFields) {
    const codec::JsonNode* const node = json_at(kubelet, field.kubelet);
    if (node == nullptr) continue;
    // Of numbers and booleans, for which YAML has more words, the text is as JSON has it.
    const bool is_text = node->kind == codec::JsonNode::Kind::kString;
    const Json value = is_text ? Json(node->text) : Json::parse(node->text, nullptr, false);
    const Json wanted = nested(field.setting, value);
    // What podqos does not take, such as a limit of -1, says nothing.
    const auto merged = codec::merge_settings(settings, dump(wanted));
    if (!merged || *merged == settings) continue;
    checks.push_back({"configuration", "kubelet", kWarning,
                      cat(file, " has ", field.kubelet, " ", json_shown(*node), ", podqos's ",
                          field.setting, " differs"),
                      cat("add ", dump(wanted), " to /etc/podqos/podqos.json")});
  }
  const codec::JsonNode* const root = json_at(kubelet, "cgroupRoot");
  std::string_view kubelets_root = root == nullptr ? "/" : std::string_view{root->text};
  if (kubelets_root.empty()) kubelets_root = "/";
  if (kubelets_root == settings.cgroup_root)
    checks.push_back({"configuration", "kubelet", kProblem,
                      cat("cgroupRoot is the kubelet's, ", settings.cgroup_root,
                          ": it kills pods in it that it does not know"),
                      "set cgroupRoot to /podqos"});
  if (checks.empty())
    checks.push_back({"configuration", "kubelet", kOk, cat("as ", file, " has it")});
  return checks;
}

}  // namespace podqos::ctl
