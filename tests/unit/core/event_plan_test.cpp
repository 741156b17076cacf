#include "common/core/event_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::core {
namespace {

using ::testing::ElementsAre;

PodRecord pod_of_two() {
  PodRecord record;
  record.pod.uid = "u-1";
  record.containers.resize(2);
  record.containers[0].id = "a";
  record.containers[0].bundle = "/run/a";
  record.containers[1].id = "b";
  record.containers[1].bundle = "/run/b";
  return record;
}

const IndexEntry kA{.id = "a", .bundle = "/run/a", .uid = "u-1"};
const IndexEntry kB{.id = "b", .bundle = "/run/b", .uid = "u-1"};

TEST(PlanRenaming, KeepsTheOldEntryUntilTheRecordIsSaved) {
  const PodRecord record = pod_of_two();
  const IndexEntry old{.id = "a", .bundle = "", .uid = "u-1"};
  EXPECT_THAT(plan_renaming(record, record.containers[0], old),
              ElementsAre(EventStep{SaveIndexEntry{kA}}, EventStep{SaveRecord{record}},
                          EventStep{EraseIndexEntry{old}}));
}

TEST(PlanRestoration, SavesAllEntriesBeforeTheRecord) {
  const PodRecord record = pod_of_two();
  EXPECT_THAT(plan_restoration(record),
              ElementsAre(EventStep{SaveIndexEntry{kA}}, EventStep{SaveIndexEntry{kB}},
                          EventStep{SaveRecord{record}}));
}

TEST(PlanErasure, ErasesTheRecordBeforeItsEntries) {
  EXPECT_THAT(plan_erasure(pod_of_two()),
              ElementsAre(EventStep{EraseRecord{"u-1"}}, EventStep{EraseIndexEntry{kA}},
                          EventStep{EraseIndexEntry{kB}}));
}

}  // namespace
}  // namespace podqos::core
