#pragma once

#include <sys/types.h>

#include <string_view>

namespace podqos::store {

constexpr mode_t kDirectoryMode = 0700;  ///< of the state directory and its subdirectories

// Names in the state directory.
constexpr const char* kLockName = "lock";
constexpr std::string_view kTiersName = "tiers.json";       ///< core::TiersRecord
constexpr const char* kMarkName = "dirty";                  ///< see RecordStore; an empty file
constexpr std::string_view kPodsName = "pods";              ///< directory of <uid>.json files
constexpr std::string_view kRecordSuffix = ".json";         ///< of a pod's record
constexpr std::string_view kContainersName = "containers";  ///< directory of index_name() links

}  // namespace podqos::store
