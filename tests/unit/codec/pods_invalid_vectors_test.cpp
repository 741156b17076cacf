#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/kubernetes/validation.h"
#include "tests/unit/codec/vectors.h"

namespace podqos::codec {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// What one message of the API server says: whose resource, and both values.
struct Refusal {
  std::string owner;
  std::string resource;
  std::string value;
  std::string bound;
};

std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const auto start = text.find(before);
  if (start == std::string::npos) return {};
  const auto from = start + before.size();
  return text.substr(from, text.find(after, from) - from);
}

/// "1500m" → "1.5", as podqos writes values.
std::string decimal(const std::string& text) {
  const auto quantity = core::Quantity::parse(text);
  return quantity ? quantity->format_decimal() : cat("malformed ", text);
}

std::string name_at(const json& list, const std::string& index) {
  return cat("container \"", list.at(std::stoul(index)).at("name").get<std::string>(), "\"");
}

Refusal read_refusal(const std::string& message, const json& spec) {
  Refusal refusal;
  refusal.value = decimal(between(message, "Invalid value: \"", "\""));
  refusal.bound = decimal(message.substr(message.rfind(' ') + 1));
  if (message.starts_with("spec.resources.containers[")) {
    refusal.owner = name_at(spec.at("containers"), between(message, "containers[", "]"));
    refusal.resource = between(message, "][", "]");
    return refusal;
  }
  refusal.resource = between(message, "less than or equal to ", " limit of");
  if (message.starts_with("spec.containers[")) {
    refusal.owner = name_at(spec.at("containers"), between(message, "containers[", "]"));
  } else if (message.starts_with("spec.initContainers[")) {
    refusal.owner =
        cat("init ", name_at(spec.at("initContainers"), between(message, "initContainers[", "]")));
  } else {
    refusal.owner = "pod";
  }
  return refusal;
}

bool reports(const std::vector<std::string>& problems, const Refusal& refusal) {
  return std::ranges::any_of(problems, [&](const std::string& problem) {
    return problem.starts_with(cat(refusal.owner, ": ", refusal.resource, " ")) &&
           problem.contains(cat(" ", refusal.value, " ")) &&
           problem.ends_with(cat(" ", refusal.bound));
  });
}

/// The rows hold only "must be less than or equal" of what the API server says, so podqos may say
/// more.
TEST(PodsInvalidVectors, EveryRefusalOfKubernetesIsReported) {
  const auto rows = vectors::read_rows("pods_invalid");
  ASSERT_EQ(rows.size(), 40U);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const auto problems = core::validate(vectors::pod_of(row.at("pod")));
    for (const auto& error : row.at("errors")) {
      const auto message = error.get<std::string>();
      EXPECT_TRUE(reports(problems, read_refusal(message, row.at("pod").at("spec"))))
          << message << "\n"
          << testing::PrintToString(problems);
    }
  }
}

}  // namespace
}  // namespace podqos::codec
