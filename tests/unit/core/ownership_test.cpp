#include "common/core/ownership.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kPod = "/podqos/kubepods/burstable/poda";

const PodCgroupSnapshot kAbsent{};
const PodCgroupSnapshot kCopied{.has_copy = true};
const PodCgroupSnapshot kNew{.exists = true, .untouched = true};
const PodCgroupSnapshot kLimited{.exists = true};

AdmissionRequest request(std::optional<std::string> uid_of_engine = std::nullopt,
                         std::optional<std::string> placed_at = std::nullopt) {
  AdmissionRequest request;
  request.annotations.engine.pod_uid = std::move(uid_of_engine);
  request.placed_at = std::move(placed_at);
  return request;
}

PodRecord record(bool adopted, const char* cgroup = kPod) {
  PodRecord record;
  record.adopted = adopted;
  record.cgroup = cgroup;
  return record;
}

TEST(IsForeignCgroup, ACopyOfARecordProvesThatPodqosMadeIt) {
  EXPECT_FALSE(is_foreign_cgroup(kPod, kCopied, record(true)));
}

TEST(IsForeignCgroup, TheRecordOfThisCgroupDecides) {
  EXPECT_FALSE(is_foreign_cgroup(kPod, kLimited, record(false)));
  EXPECT_TRUE(is_foreign_cgroup(kPod, kNew, record(true)));
  // A record with another cgroup says nothing about this one.
  EXPECT_FALSE(is_foreign_cgroup(kPod, kNew, record(true, "/elsewhere/poda")));
}

TEST(IsForeignCgroup, WithoutARecordItsValuesDecide) {
  EXPECT_TRUE(is_foreign_cgroup(kPod, kLimited, std::nullopt));
  EXPECT_FALSE(is_foreign_cgroup(kPod, kNew, std::nullopt));
  EXPECT_FALSE(is_foreign_cgroup(kPod, kAbsent, std::nullopt));
}

TEST(MustOwnCgroup, OnlyForAPodOfItsOwnThatIsNewThere) {
  EXPECT_TRUE(must_own_cgroup(std::nullopt, record(false)));
  EXPECT_TRUE(must_own_cgroup(record(true), record(false)));
  EXPECT_TRUE(must_own_cgroup(record(false, "/elsewhere/poda"), record(false)));
  EXPECT_FALSE(must_own_cgroup(record(false), record(false)));
  EXPECT_FALSE(must_own_cgroup(std::nullopt, record(true)));
}

TEST(CheckPodCgroup, AdmitsToWhatPodqosMadeOrMayMake) {
  EXPECT_TRUE(check_pod_cgroup(record(false), kAbsent, request()));
  EXPECT_TRUE(check_pod_cgroup(record(false), kCopied, request()));
  // Made by the container's runtime, because its config.json names it.
  EXPECT_TRUE(
      check_pod_cgroup(record(false), kNew, request({}, "/podqos/kubepods/burstable/poda/c")));
}

TEST(CheckPodCgroup, RefusesACgroupOfAnotherProgram) {
  for (const auto& [snapshot, placed_at] :
       {std::pair{kNew, "/elsewhere/c"}, std::pair{kLimited, "/podqos/kubepods/burstable/poda/c"},
        std::pair{kNew, "/podqos/kubepods/burstable/podab/c"}}) {
    const auto refused = check_pod_cgroup(record(false), snapshot, request({}, placed_at));
    ASSERT_FALSE(refused) << placed_at;
    EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr(kPod), HasSubstr("not created by podqos"),
                                               HasSubstr("another uid")));
  }
}

}  // namespace
}  // namespace podqos::core
