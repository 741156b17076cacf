#include "ctl/explain_batch.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr std::string_view kPod = R"({
  "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "u-1"},
  "spec": {"containers": [{"name": "app", "image": "x", "resources": {
    "requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}}]}})";

std::string line_with(std::string_view id) {
  return json{
      {"id", "ID"}, {"pod", json::parse(kPod)}, {"params", {{"nodeMemoryBytes", 34359738368}}}}
      .dump()
      .replace(7, 4, id);
}

// 1000 shares a CPU and 1024 of the kernel's make 512; 500 ms of CPU in 100 ms periods is a quota
// of 100000 for the limit of one CPU; 1000 - 1000 * 1Gi / 32Gi is 969.
TEST(AnswerLine, GivesThePodsValues) {
  const json answer = json::parse(answer_line(line_with("7")));
  ASSERT_FALSE(answer.contains("error")) << answer.dump();
  EXPECT_EQ(answer["id"], 7);
  EXPECT_EQ(answer["qosClass"], "Burstable");
  EXPECT_EQ(answer["cpuShares"], 512);
  EXPECT_EQ(answer["cpuQuotaUs"], 100000);
  EXPECT_EQ(answer["memoryLimitBytes"], 2147483648);
  EXPECT_EQ(answer["oomScoreAdj"]["app"], 969);
  EXPECT_EQ(answer["containers"]["app"]["cpuPeriodUs"], 100000);
  EXPECT_EQ(answer["podRequests"]["cpuMilli"], 500);
}

TEST(AnswerLine, RepeatsTheIdByteForByte) {
  for (const std::string_view id : {"1.0e2", R"("a\u0041")", R"({"n": [1]})"})
    EXPECT_THAT(answer_line(line_with(id)), HasSubstr(cat(R"({"id":)", id, ",")));
}

TEST(AnswerLine, GivesTheTiersOfANode) {
  const std::string line =
      cat(R"({"id": 1, "pods": [)", kPod,
          R"(], "allocatableMemoryBytes": 34359738368, "reservePercent": 100})");
  const json tiers = json::parse(answer_line(line))["tiers"];
  EXPECT_EQ(tiers["burstable"]["cpuShares"], 512);
  EXPECT_EQ(tiers["besteffort"]["cpuShares"], 2);
  EXPECT_EQ(tiers["burstable"]["memoryLimitBytes"], 34359738368);
  EXPECT_EQ(tiers["besteffort"]["memoryLimitBytes"], 33285996544);
}

TEST(AnswerLine, NamesWhatItRefuses) {
  const auto refusal = [](const Result<std::string>& line) {
    return json::parse(answer_line(line))["error"].get<std::string>();
  };
  EXPECT_THAT(refusal("{"), HasSubstr("byte 2"));
  EXPECT_THAT(refusal(R"({"id": 1})"), HasSubstr("pod"));
  EXPECT_THAT(refusal(R"({"pods": {}})"), HasSubstr("expected a list"));
  EXPECT_THAT(refusal(R"({"pods": [], "reservePercent": 101})"), HasSubstr("found 101"));
  EXPECT_EQ(refusal(fail(ErrorCode::kTooLarge, "line 3 is too long")), "line 3 is too long");
}

}  // namespace
}  // namespace podqos::ctl
