#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "common/base/text.h"
#include "common/codec/oci_config.h"

namespace podqos::codec::bundle_text {

/// The text of tests/data/bundles/<name>, a config.json as an engine writes it.
inline std::string read_bundle(const std::string& name) {
  std::ifstream file{cat(PODQOS_TEST_DATA "/bundles/", name)};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// The bytes of a value.
inline std::string_view value_text(const OciConfig& config, std::string_view pointer) {
  const JsonNode* const node = config.tree.at(pointer, config.names);
  return node != nullptr ? node->raw : "(absent)";
}

}  // namespace podqos::codec::bundle_text
