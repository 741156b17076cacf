#include <optional>

#include <gtest/gtest.h>

#include "common/core/kubernetes/oom.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/qos.h"
#include "common/core/kubernetes/validation.h"
#include "tests/unit/codec/vectors.h"

namespace podqos::codec {
namespace {

using nlohmann::json;

core::ResourceList list_of(const json& wanted) {
  core::ResourceList list;
  for (const auto& [name, text] : wanted.items()) {
    const auto quantity = core::Quantity::parse(text.get<std::string>());
    if (!quantity) {
      ADD_FAILURE() << quantity.error().message;
      continue;
    }
    list.emplace(name, *quantity);
  }
  return list;
}

std::optional<std::int64_t> number_of(const json& wanted) {
  if (wanted.is_null()) return std::nullopt;
  return wanted.get<std::int64_t>();
}

void expect_sums(const core::ResourceList& sums, const json& wanted) {
  EXPECT_EQ(sums, list_of(wanted.at("all")));
  const auto cpu = core::find(sums, core::kCpu);
  const auto memory = core::find(sums, core::kMemory);
  EXPECT_EQ(cpu ? std::optional{cpu->milli_value()} : std::nullopt,
            number_of(wanted.at("cpuMilli")));
  EXPECT_EQ(memory ? std::optional{memory->value()} : std::nullopt,
            number_of(wanted.at("memoryBytes")));
}

void expect_scores(const core::Pod& pod, core::QosClass qos_class, const json& row) {
  const Bytes node_memory{row.at("nodeMemoryBytes").get<std::int64_t>()};
  json scores = json::object();
  for (const auto* list : {&pod.containers, &pod.init_containers}) {
    for (const auto& container : *list) {
      scores[container.name] = core::oom_score_adj(pod, qos_class, container, node_memory);
    }
  }
  EXPECT_EQ(scores, row.at("expect").at("oomScoreAdj"));
}

TEST(PodsVectors, ClassSumsAndOomScoresAreKubernetes) {
  const auto rows = vectors::read_rows("pods");
  ASSERT_EQ(rows.size(), 437U);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const auto pod = vectors::pod_of(row.at("pod"));
    const auto& expect = row.at("expect");
    const auto verdict = core::classify(pod);
    EXPECT_EQ(core::format_qos_class(verdict.qos_class), expect.at("qosClass").get<std::string>())
        << verdict.reason;
    expect_sums(core::pod_requests(pod), expect.at("podRequests"));
    expect_sums(core::pod_limits(pod), expect.at("podLimits"));
    expect_scores(pod, verdict.qos_class, row);
  }
}

TEST(PodsVectors, EveryPodIsValid) {
  for (const auto& row : vectors::read_rows("pods")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    for (const auto& problem : core::validate(vectors::pod_of(row.at("pod")))) {
      ADD_FAILURE() << problem << "\n" << row.at("pod").dump();
    }
  }
}

TEST(PodsVectors, ASpecWrittenAndReadAgainIsTheSame) {
  for (const auto& row : vectors::read_rows("pods")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    auto pod = vectors::pod_of(row.at("pod"));
    const auto again = parse_pod_spec(format_pod_spec(pod));
    ASSERT_TRUE(again) << again.error().message;
    pod.uid = pod.name = pod.pod_namespace = "";
    pod.status_qos_class.reset();
    pod.is_static = false;
    EXPECT_EQ(*again, pod);
  }
}

}  // namespace
}  // namespace podqos::codec
