#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/grants.h"
#include "tests/unit/core/byte_units.h"

namespace podqos::core {
namespace {

using byte_units::kGi;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TierSum sum(std::int64_t milli_cpu, std::int64_t memory) {
  return {.pods = 1, .cpu = MilliCpu{milli_cpu}, .memory = Bytes{memory}};
}

PodRecord claiming(const std::string& uid, const TierSum& claimed, const TierSum& granted) {
  PodRecord record;
  record.pod.uid = uid;
  record.qos_class = QosClass::kBurstable;
  record.claimed = claimed;
  record.granted = granted;
  return record;
}

CutEntry entry(const std::string& uid, std::int64_t milli_cpu, std::int64_t memory) {
  return {.uid = uid, .cpu = MilliCpu{milli_cpu}, .memory = Bytes{memory}};
}

TEST(NoteCut, ListsWhatIsStillToBeGranted) {
  TiersRecord tiers;
  note_cut(tiers, claiming("a", sum(500, kGi), sum(100, kGi)), {});
  note_cut(tiers, claiming("b", sum(500, 2 * kGi), sum(500, kGi)), {});
  note_cut(tiers, claiming("c", sum(500, kGi), sum(500, kGi)), {});
  EXPECT_THAT(tiers.cut, ElementsAre(entry("a", 400, 0), entry("b", 0, kGi)));
}

TEST(NoteCut, KeepsThePlaceOfAPodUntilAllIsGranted) {
  TiersRecord tiers;
  tiers.cut = {entry("a", 400, 0), entry("b", 0, kGi)};
  note_cut(tiers, claiming("a", sum(500, kGi), sum(200, kGi)), {});
  EXPECT_THAT(tiers.cut, ElementsAre(entry("a", 300, 0), entry("b", 0, kGi)));
  note_cut(tiers, claiming("a", sum(500, kGi), sum(500, kGi)), {});
  EXPECT_THAT(tiers.cut, ElementsAre(entry("b", 0, kGi)));
}

TEST(NoteCut, ForgetsAReleasedPod) {
  TiersRecord tiers;
  tiers.cut = {entry("a", 400, 0)};
  PodRecord released = claiming("a", sum(500, kGi), sum(100, kGi));
  released.released_at = UnixSeconds{1};
  note_cut(tiers, released, {});
  EXPECT_THAT(tiers.cut, IsEmpty());
}

/// Only overhead can give a BestEffort pod requests.
TEST(NoteCut, LeavesOutWhatDoesNotCount) {
  TiersRecord tiers;
  PodRecord record = claiming("a", sum(500, kGi), sum(0, 0));
  record.qos_class = QosClass::kBestEffort;
  note_cut(tiers, record, {});
  record = claiming("b", sum(500, kGi), sum(500, 0));
  record.containers.emplace_back().backed_memory = Bytes{0};
  Settings reserving;
  reserving.reserve_memory_percent = 100;
  note_cut(tiers, record, reserving);
  EXPECT_THAT(tiers.cut, IsEmpty());
  note_cut(tiers, record, {});
  EXPECT_THAT(tiers.cut, ElementsAre(entry("b", 0, kGi)));
}

/// It is written with each event.
TEST(NoteCut, KeepsTheListShort) {
  TiersRecord tiers;
  for (int n = 0; n < 100; ++n)
    note_cut(tiers, claiming(std::to_string(n), sum(500, 0), sum(100, 0)), {});
  EXPECT_THAT(tiers.cut, SizeIs(64));
}

/// A node of 4 CPUs and 8 GiB, of which pods have 3 CPUs and 8 GiB.
class Grantable : public ::testing::Test {
 protected:
  Grantable() { tiers_.sums.guaranteed = sum(3000, 8 * kGi); }
  [[nodiscard]] std::vector<std::string> uids() const {
    return grantable(tiers_, {}, {.memory = Bytes{8 * kGi}, .cpu = MilliCpu{4000}});
  }
  TiersRecord tiers_;
};

TEST_F(Grantable, AreThoseThatLackWhatIsFree) {
  tiers_.cut = {entry("a", 0, kGi), entry("b", 600, kGi), entry("c", 0, kGi), entry("d", 600, 0),
                entry("e", 100, 0)};
  EXPECT_THAT(uids(), ElementsAre("b", "d"));
  tiers_.sums.adopted = sum(1000, 0);
  EXPECT_THAT(uids(), IsEmpty());
}

TEST_F(Grantable, AreFourAtMost) {
  for (const char* uid : {"f", "e", "d", "c", "b"})
    tiers_.cut.push_back(entry(uid, 100, 0));
  EXPECT_THAT(uids(), ElementsAre("f", "e", "d", "c"));
}

}  // namespace
}  // namespace podqos::core
