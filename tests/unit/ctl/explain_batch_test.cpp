#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "ctl/explanation.h"

namespace podqos::ctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr std::string_view kPod = R"({
  "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "u-1"},
  "spec": {"containers": [{"name": "app", "image": "x", "resources": {
    "requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}}]}})";

std::string line_with(std::string_view id) {
  return cat(R"({"id": )", id, R"(, "nodeMemoryBytes": 34359738368, "pod": )", kPod, "}");
}

// 500m * 1024 / 1000 shares are 512; the limit of one CPU is a quota of one whole period, 100 ms;
// 1000 - 1000 * 1Gi / 32Gi is 969.
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
