#pragma once

#include <sys/types.h>

#include <string_view>

namespace podqos::store {

constexpr mode_t kDirectoryMode = 0700;  ///< of the state's directory and those in it

// In the directory of the state.
constexpr std::string_view kTiersName = "tiers.json";
constexpr std::string_view kPodsName = "pods";  ///< <uid>.json each
constexpr std::string_view kRecordSuffix = ".json";
constexpr std::string_view kContainersName = "containers";  ///< files named by index_name()

}  // namespace podqos::store
