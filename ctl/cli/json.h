#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/base/units.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/memory_qos.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/tier.h"

namespace podqos {

/// For nlohmann: the number of a unit.
template <class Tag>
void to_json(nlohmann::ordered_json& json, const Unit<Tag>& amount) {
  json = amount.value();
}

}  // namespace podqos

namespace podqos::ctl {

/// What podqosctl prints for programs: members keep the order in which they are added.
using Json = nlohmann::ordered_json;

/// In one line, without spaces. Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] inline std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
/// `text` as a JSON string.
[[nodiscard]] inline std::string json_quote(std::string_view text) {
  return dump(text);
}

/// null for nullopt.
template <class T>
[[nodiscard]] Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// {"cpuMilli": 500, "memoryBytes": null}; null for what the list does not name.
[[nodiscard]] Json json_of(const core::ResourceList& list);
[[nodiscard]] Json json_of(const core::TierSum& sum);

/// {"memoryMinBytes": …, "memoryLowBytes", "memoryHighBytes"}; null for what is unset or not known,
/// and for "max".
[[nodiscard]] Json json_of(const core::MemoryQos& qos);

/// {"cpuShares": …, "cpuQuotaUs", "cpuPeriodUs", "cpuBurstUs", "memoryLimitBytes", "pidsLimit"};
/// null for what is unset, and for limits that are 0 or negative, which means unlimited.
[[nodiscard]] Json limits_json(const core::CgroupValues& values);

}  // namespace podqos::ctl
