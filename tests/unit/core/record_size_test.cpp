#include "common/core/pods/record_size.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/core/pods/merge.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using pod_text::container;
using pod_text::list;
using ::testing::HasSubstr;

/// A claim that names containers [begin, end).
PodClaim claim_naming(std::size_t begin, std::size_t end, const ResourceList& requests = {}) {
  PodClaim claim;
  claim.known = true;
  claim.pod = pod_text::pod({});
  claim.pod.uid = "42";
  for (std::size_t i = begin; i < end; ++i)
    claim.pod.containers.push_back(container(cat("c", i).c_str(), requests));
  return claim;
}

Result<MergedPod> merged(const std::optional<PodRecord>& existing, const PodClaim& claim) {
  return merge_claim(existing, facts::identity(IdentitySource::kAnnotation), claim, {});
}

PodRecord living_pod(const PodClaim& claim) {
  auto joined = merged(std::nullopt, claim);
  EXPECT_TRUE(joined) << joined.error().message;
  joined->record.containers.emplace_back().id = "first";
  return std::move(joined->record);
}

TEST(JoinPodSize, BoundsTheContainersThatOneNames) {
  EXPECT_TRUE(merged(std::nullopt, claim_naming(0, kMaxPartialContainers)));
  const auto joined = merged(std::nullopt, claim_naming(0, kMaxPartialContainers + 1));
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(joined.error().message, HasSubstr("257 containers"));
}

TEST(JoinPodSize, BoundsTheContainersThatAllName) {
  const PodRecord record = living_pod(claim_naming(0, kMaxPartialContainers));
  EXPECT_TRUE(merged(record, claim_naming(0, kMaxPartialContainers)));
  const auto joined =
      merged(record, claim_naming(kMaxPartialContainers, kMaxPartialContainers + 1));
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, ErrorCode::kTooLarge);
}

TEST(JoinPodSize, LeavesAWholePodToItsOwnBound) {
  PodClaim claim = claim_naming(0, 1000);
  claim.complete = true;
  EXPECT_TRUE(merged(std::nullopt, claim));
}

TEST(JoinPodSize, BoundsWhatAPodDescribes) {
  ResourceList many;
  for (int i = 0; i < 50; ++i)
    many.emplace(cat("example.com/", i), Quantity::parse("1E").value());
  PodClaim claim = claim_naming(0, 200, many);
  claim.complete = true;
  const auto joined = merged(std::nullopt, claim);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(joined.error().message, HasSubstr("bytes"));
}

TEST(JoinPodSize, BoundsTheContainersThatLive) {
  PodRecord record = living_pod(claim_naming(0, 1));
  record.containers.front().bundle = std::string(100, 'b');
  record.containers.resize(200, record.containers.front());
  EXPECT_TRUE(merged(record, claim_naming(0, 1)));
  record.containers.resize(1000, record.containers.front());
  EXPECT_FALSE(merged(record, claim_naming(0, 1)));
}

}  // namespace
}  // namespace podqos::core
