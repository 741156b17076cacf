// Requests that were cut for other pods, on a machine in memory.

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/record_json.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A node of 2 CPUs, on which "first" has requested all of them.
class CutRequests : public ::testing::Test {
 protected:
  CutRequests() {
    node_.capacity.cpu = MilliCpu{2000};
    node_.run(pod("first", "2"), Pid{10});
  }
  static FakeContainer pod(const std::string& uid, const std::string& cpu) {
    return {.id = uid, .uid = uid, .annotations = {{"podqos.io/requests", "cpu=" + cpu}}};
  }
  void end(const std::string& uid, Pid init) {
    node_.tree.end(init);
    ASSERT_TRUE(node_.end({.id = uid, .uid = uid}));
  }
  /// Millicpu that are granted to each pod.
  [[nodiscard]] std::vector<std::int64_t> granted(const std::vector<std::string>& uids) const {
    std::vector<std::int64_t> found;
    for (const std::string& uid : uids)
      found.push_back(codec::parse_pod_record(node_.records.pods.at(uid))->granted.cpu.value());
    return found;
  }
  /// Millicpu that the Burstable tier counts.
  [[nodiscard]] std::int64_t counted() const {
    return node_.records.tiers.sums.burstable.cpu.value();
  }

  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(CutRequests, AreGrantedWhenAnotherPodEnds) {
  node_.run(pod("z", "1500m"), Pid{11});
  node_.run(pod("a", "1500m"), Pid{12});
  EXPECT_THAT(granted({"z", "a"}), ElementsAre(0, 0));
  end("first", Pid{10});
  EXPECT_THAT(granted({"z", "a"}), ElementsAre(1500, 500)) << "the first that asked comes first";
  EXPECT_EQ(counted(), 2000);
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable", "cpu.weight"), "79");  // of 2048 shares
  EXPECT_FALSE(node_.records.dirty);
  end("z", Pid{11});
  EXPECT_THAT(granted({"a"}), ElementsAre(1500));
  EXPECT_THAT(node_.records.tiers.cut, IsEmpty());
}

/// Its last container was not seen to end, so that no pod has left when it begins anew.
TEST_F(CutRequests, AreGrantedWhenAPodBeginsAnewWithLess) {
  node_.run(pod("other", "1"), Pid{11});
  node_.tree.end(Pid{10});
  node_.run(pod("first", "500m"), Pid{12});
  EXPECT_THAT(granted({"first", "other"}), ElementsAre(500, 1000));
  EXPECT_EQ(counted(), 1500);
}

/// What has become free is granted although the node is no longer full when the next event comes.
TEST_F(CutRequests, AreGrantedWhenTheNodeHasGrown) {
  node_.run(pod("other", "1"), Pid{11});
  node_.capacity.cpu = MilliCpu{4000};
  node_.run({.id = "batch", .uid = "batch"}, Pid{12});
  EXPECT_THAT(granted({"other"}), ElementsAre(1000));
}

/// An event costs the same with 10 pods as with 10,000.
TEST_F(CutRequests, AreGrantedToFourPodsAnEvent) {
  const std::vector<std::string> uids{"f", "e", "d", "c", "b", "a"};
  std::int64_t pid = 20;
  for (const std::string& uid : uids)
    node_.run(pod(uid, "100m"), Pid{pid++});
  end("first", Pid{10});
  EXPECT_THAT(granted(uids), ElementsAre(100, 100, 100, 100, 0, 0));
  node_.run({.id = "batch", .uid = "batch"}, Pid{11});
  EXPECT_THAT(granted(uids), ElementsAre(100, 100, 100, 100, 100, 100));
  EXPECT_EQ(counted(), 600);
}

TEST_F(CutRequests, AreGrantedToAllByAReconciliation) {
  const std::vector<std::string> uids{"f", "e", "d", "c", "b", "a"};
  std::int64_t pid = 20;
  for (const std::string& uid : uids)
    node_.run(pod(uid, "400m"), Pid{pid++});
  node_.tree.end(Pid{10});
  ASSERT_TRUE(node_.reconcile());
  EXPECT_THAT(granted(uids), ElementsAre(400, 400, 400, 400, 400, 0));
  EXPECT_THAT(node_.records.tiers.cut,
              ElementsAre(core::CutEntry{.uid = "a", .cpu = MilliCpu{400}, .memory = {}}));
}

TEST_F(CutRequests, AreForgottenWithTheirPod) {
  node_.run(pod("other", "1"), Pid{11});
  ASSERT_EQ(node_.records.tiers.cut.size(), 1U);
  end("other", Pid{11});
  EXPECT_THAT(node_.records.tiers.cut, IsEmpty());
}

/// Its record cannot be read when all is counted anew, and can be when it ends.
TEST(Sums, LoseNothingToAPodThatTheyLack) {
  FakeNode node{core::CgroupVersion::kV2};
  const auto pod = [](const char* uid, const char* cpu) {
    return FakeContainer{.id = uid, .uid = uid, .annotations = {{"podqos.io/requests", cpu}}};
  };
  node.run(pod("a", "cpu=2"), Pid{10});
  node.run(pod("unreadable", "cpu=2"), Pid{11});
  const std::string text = node.records.pods.at("unreadable");
  std::string& stored = node.records.pods.at("unreadable");
  stored.replace(stored.find("\"version\":1"), 11, "\"version\":2");
  node.records.dirty = true;
  node.run(pod("c", "cpu=1"), Pid{12});
  EXPECT_EQ(node.records.tiers.sums.burstable.cpu, MilliCpu{3000});
  stored = text;
  node.tree.end(Pid{11});
  ASSERT_TRUE(node.end({.id = "unreadable", .uid = "unreadable"}));
  EXPECT_FALSE(node.records.pods.contains("unreadable"));
  EXPECT_EQ(node.records.tiers.sums.burstable.cpu, MilliCpu{3000});
  EXPECT_EQ(node.records.tiers.sums.burstable.pods, 2);
}

}  // namespace
}  // namespace podqos::app
