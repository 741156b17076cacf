// A container with realtimeRuntime, which the kernel refuses in a pod's cgroup of v1, on a machine
// in memory.

#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using containers::kLogContainer;
using containers::kWebContainer;
using ::testing::AllOf;
using ::testing::HasSubstr;

FakeContainer realtime(FakeContainer container) {
  container.resources.cpu_realtime_runtime = 9500;
  return container;
}

class Realtime : public ::testing::Test {
 protected:
  Realtime() {
    node_.run(kLogContainer, Pid{10});
    node_.tree.start(Pid{99}, "/");
    before_ = node_.records;
    changes_ = node_.changes.size();
  }

  /// Nothing has changed for the other container of the pod.
  void expect_nothing_kept() const {
    EXPECT_EQ(node_.changes.size(), changes_);
    EXPECT_EQ(node_.records.tiers, before_.tiers);
    EXPECT_EQ(node_.records.pods, before_.pods);
    EXPECT_EQ(node_.records.index, before_.index);
    EXPECT_FALSE(node_.records.dirty);
  }

  /// createRuntime of a container that its engine has placed; `registered` is told of it.
  Status create_runtime(const FakeContainer& container, Pid init, bool& registered) {
    core::ContainerFacts facts;
    facts.id = container.id;
    facts.bundle = "/run/" + container.id;
    facts.annotations = container.annotations;
    facts.annotations["podqos.io/pod-uid"] = container.uid;
    const std::string& cgroup = node_.tree.processes.at(init).cgroup;
    auto request = admission_request(std::move(facts), node_.settings, cgroup);
    if (!request) return fail(std::move(request).error());
    Transaction transaction = node_.begin();
    const Init started{.process = {init, StartTime{init.value() * 10}}, .cgroup = cgroup};
    const auto confirmed =
        confirm_started(transaction, (*request)->facts, started, Reporter::kHook);
    EXPECT_TRUE(confirmed && !*confirmed);
    (*request)->facts.resources = container.resources;
    return register_started(transaction, std::move(**request), started, Reporter::kHook,
                            [&](const Admission&) {
                              registered = true;
                              return Status{};
                            });
  }

  FakeNode node_{core::CgroupVersion::kV1};
  FakeRecords before_;
  std::size_t changes_ = 0;
};

TEST_F(Realtime, IsNotAdmittedAndNothingOfItIsKept) {
  const auto admission = node_.admit(realtime(kWebContainer), Pid{99}, "/engine/web");
  ASSERT_FALSE(admission);
  EXPECT_EQ(admission.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(admission.error().message,
              AllOf(HasSubstr("pod a: "), HasSubstr("realtimeRuntime 9500"),
                    HasSubstr("/podqos/kubepods/burstable/poda")));
  expect_nothing_kept();
}

TEST_F(Realtime, ThatRunsElsewhereIsNotRegistered) {
  node_.tree.make("/engine");
  node_.tree.make("/engine/web");
  node_.tree.start(Pid{20}, "/engine/web");
  changes_ = node_.changes.size();
  bool registered = false;
  const auto done = create_runtime(realtime(kWebContainer), Pid{20}, registered);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("realtimeRuntime 9500"));
  EXPECT_FALSE(registered);
  expect_nothing_kept();
}

TEST_F(Realtime, InAKubeletsPodIsCounted) {
  const auto admission =
      node_.admit(realtime(FakeContainer{.id = "web", .uid = "k"}), Pid{99}, "/kubepods/podk/web");
  ASSERT_TRUE(admission) << admission.error().message;
  EXPECT_TRUE((*admission)->record.adopted);
}

TEST(RealtimeOnV2, IsPlaced) {
  FakeNode node{core::CgroupVersion::kV2};
  node.run(realtime(kWebContainer), Pid{10});
  EXPECT_EQ(node.tree.processes.at(Pid{10}).cgroup, "/podqos/kubepods/burstable/poda/web");
}

}  // namespace
}  // namespace podqos::app
