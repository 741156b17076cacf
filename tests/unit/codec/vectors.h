#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/pod_json.h"
#include "common/core/kubernetes/pod_resources.h"

namespace podqos::codec::vectors {

/// All rows of tests/data/kubernetes/<name>.jsonl, values that Kubernetes 1.36's own code gave.
/// A missing, empty or malformed file fails the test.
inline std::vector<nlohmann::json> read_rows(const std::string& name) {
  const std::string path = cat(PODQOS_TEST_DATA "/kubernetes/", name, ".jsonl");
  std::ifstream file{path};
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(file, line);) {
    auto row = nlohmann::json::parse(line, nullptr, false);
    if (row.is_discarded()) {
      ADD_FAILURE() << path << ": malformed line " << rows.size() + 1;
      return {};
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) ADD_FAILURE() << path << ": missing or empty";
  return rows;
}

/// A pod as its manifest has it.
inline core::Pod plain_pod(const nlohmann::json& manifest) {
  const std::string text = manifest.dump();
  const auto tree = parse_json_tree(text);
  auto pod = tree ? parse_pod(*tree) : fail(tree.error());
  if (pod) return *std::move(pod);
  ADD_FAILURE() << pod.error().message;
  return {};
}

/// The same as the API server would hold it, defaults applied.
inline core::Pod pod_of(const nlohmann::json& manifest) {
  return core::with_api_defaults(plain_pod(manifest));
}

inline std::optional<std::int64_t> number_or_null(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional{value.get<std::int64_t>()};
}

}  // namespace podqos::codec::vectors
