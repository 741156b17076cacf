#include <cstddef>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/merge.h"
#include "tests/unit/core/merging.h"

namespace podqos::core {
namespace {

using merging::full;
using merging::join;
using merging::living;
using merging::none;
using merging::partial;
using merging::some;
using merging::whole;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;
using enum QosClass;

struct FirstClass {
  const char* name;
  PodClaim claim;
  std::optional<QosClass> declared;
  bool may_raise;
  QosClass want;
  ClassSource source;
  std::size_t warnings = 0;
};
class JoinPodFirst : public TestWithParam<FirstClass> {};

TEST_P(JoinPodFirst, FixesTheClass) {
  const FirstClass& row = GetParam();
  PodClaim claim = row.claim;
  claim.declared_class = row.declared;
  Settings settings;
  settings.allow_qos_override = row.may_raise;
  const MergedPod joined = join(std::nullopt, claim, settings);
  EXPECT_EQ(joined.record.qos_class, row.want);
  EXPECT_EQ(joined.record.class_source, row.source);
  EXPECT_EQ(joined.record.complete, row.claim.complete);
  EXPECT_EQ(joined.warnings.size(), row.warnings);
}

constexpr auto kSpecified = ClassSource::kPodAnnotation;
constexpr auto kDeclared = ClassSource::kQosAnnotation;
constexpr auto kInferred = ClassSource::kInference;

INSTANTIATE_TEST_SUITE_P(
    Table, JoinPodFirst,
    ValuesIn<FirstClass>({
        {"WholeGuaranteed", whole(full("a")), {}, false, kGuaranteed, kSpecified},
        {"WholeBurstable", whole(some("a")), {}, false, kBurstable, kSpecified},
        {"WholeBestEffort", whole(none("a")), {}, false, kBestEffort, kSpecified},
        {"PartialIsNeverGuaranteed", partial(full("a")), {}, false, kBurstable, kInferred},
        {"PartialIsNotGuaranteedByOverride", partial(full("a")), {}, true, kBurstable, kInferred},
        {"PartialBurstable", partial(some("a")), {}, false, kBurstable, kInferred},
        {"PartialBestEffort", partial(none("a")), {}, false, kBestEffort, kInferred},
        {"PartialDeclaredGuaranteed", partial(full("a")), kGuaranteed, false, kGuaranteed,
         kDeclared},
        {"PartialDeclaredGuaranteedButBurstable", partial(some("a")), kGuaranteed, false,
         kBurstable, kInferred, 1},
        {"LoweredToBurstable", whole(full("a")), kBurstable, false, kBurstable, kDeclared},
        {"LoweredToBestEffort", whole(full("a")), kBestEffort, false, kBestEffort, kDeclared},
        {"RaisedToGuaranteed", whole(some("a")), kGuaranteed, false, kBurstable, kSpecified, 1},
        {"RaisedFromBestEffort", whole(none("a")), kBurstable, false, kBestEffort, kSpecified, 1},
        {"RaisedByTheOperatorsLeave", whole(none("a")), kGuaranteed, true, kGuaranteed, kDeclared},
        {"DeclaredAsItIs", whole(some("a")), kBurstable, false, kBurstable, kDeclared},
    }),
    [](const TestParamInfo<FirstClass>& row) { return std::string{row.param.name}; });

TEST(JoinPod, SaysWhyAClassIsRefused) {
  PodClaim claim = whole(some("a"));
  claim.declared_class = kGuaranteed;
  EXPECT_THAT(join(std::nullopt, claim).warnings,
              ElementsAre(AllOf(HasSubstr("podqos.io/qos-class \"Guaranteed\" refused"),
                                HasSubstr("Burstable"), HasSubstr("allowQosOverride"))));
}

TEST(JoinPod, TakesAKubeletsClassAsItIs) {
  for (const QosClass placed : {kGuaranteed, kBurstable, kBestEffort}) {
    PodClaim claim = partial(some("a"));
    claim.engine_class = placed;
    claim.declared_class = kBestEffort;
    const PodRecord record = join(std::nullopt, claim).record;
    EXPECT_EQ(record.qos_class, placed);
    EXPECT_EQ(record.class_source, ClassSource::kEngine);
  }
}

TEST(JoinPod, SaysThatTheEnginesClassCounts) {
  PodClaim claim = partial(some("a"));
  claim.engine_class = kBurstable;
  claim.declared_class = kBestEffort;
  EXPECT_THAT(join(std::nullopt, claim).warnings,
              ElementsAre(AllOf(HasSubstr("podqos.io/qos-class \"BestEffort\" refused"),
                                HasSubstr("the engine runs the pod as Burstable"))));
  claim.declared_class = kBurstable;
  EXPECT_THAT(join(std::nullopt, claim).warnings, IsEmpty());
}

TEST(JoinPod, SaysThatADeclaredClassComesTooLate) {
  PodClaim second = partial(some("b"));
  second.declared_class = kBestEffort;
  const MergedPod joined = join(living(partial(some("a"))), second);
  EXPECT_EQ(joined.record.qos_class, kBurstable);
  EXPECT_THAT(joined.warnings,
              ElementsAre(AllOf(HasSubstr("podqos.io/qos-class \"BestEffort\" is too late"),
                                HasSubstr("Burstable"))));
}

TEST(JoinPod, KeepsTheClassOfTheFirstContainer) {
  const MergedPod joined = join(living(partial(none("a"))), partial(some("b")));
  EXPECT_EQ(joined.record.qos_class, kBestEffort);
  EXPECT_THAT(joined.warnings, ElementsAre(AllOf(HasSubstr("Burstable"), HasSubstr("BestEffort"),
                                                 HasSubstr("podqosctl annotate"))));
}

}  // namespace
}  // namespace podqos::core
