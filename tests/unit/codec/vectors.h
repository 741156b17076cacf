#pragma once

#include <fstream>
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

/// The row's pod manifest as the API server would hold it, defaults applied.
inline core::Pod pod_of(const nlohmann::json& manifest) {
  auto pod = parse_pod(manifest.dump());
  if (!pod) {
    ADD_FAILURE() << pod.error().message;
    return {};
  }
  return core::with_api_defaults(*std::move(pod));
}

}  // namespace podqos::codec::vectors
