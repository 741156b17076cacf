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

/// The bytes at the place where a value was found.
inline std::string_view value_text(std::string_view text, const OciConfig& config,
                                   std::string_view pointer) {
  const auto& value = config.place(pointer).value;
  return value ? text.substr(value->begin, value->end - value->begin) : "(absent)";
}

}  // namespace podqos::codec::bundle_text
