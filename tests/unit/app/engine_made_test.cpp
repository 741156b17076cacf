// Cgroups below podqos's root that an engine has made, because podqos named a pod's path to it.

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/record_json.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

const FakeContainer kFirstContainer{
    .id = "web", .uid = "a", .annotations = {{"podqos.io/requests", "cpu=500m,memory=64Mi"}}};
const FakeContainer kNextContainer{.id = "next", .uid = "b"};

constexpr const char* kPod = "/podqos/kubepods/burstable/poda";
constexpr const char* kPodSlice =
    "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-burstable.slice/"
    "podqos-kubepods-burstable-poda.slice";

/// What an engine has in the pod's cgroup before the first container comes.
struct Layout {
  const char* name;
  core::Driver driver;
  std::vector<std::string> empty;  ///< cgroups without processes, below the pod's
  std::vector<std::string> used;   ///< cgroups with one
};

const std::vector<Layout> kLayouts = {
    {"CrioWithoutInfraContainer", core::Driver::kSystemd, {"/crio-sandbox"}, {}},
    {"CrioWithConmonInThePod", core::Driver::kSystemd, {}, {"/crio-conmon-sandbox.scope"}},
    {"PauseOfCrunUnderSystemd",
     core::Driver::kSystemd,
     {},
     {"/cri-containerd-sandbox.scope/container"}},
    {"CrioWithoutInfraContainerCgroupfs", core::Driver::kCgroupfs, {"/crio-sandbox"}, {}},
    {"PauseOfRuncCgroupfs", core::Driver::kCgroupfs, {}, {"/sandbox"}},
    {"NothingButThePod", core::Driver::kCgroupfs, {""}, {}},
};

class EngineMade : public TestWithParam<Layout> {
 protected:
  void SetUp() override {
    for (const std::string& below : GetParam().empty)
      node_.tree.make(pod_ + below);
    for (const std::string& below : GetParam().used)
      node_.tree.start(Pid{50}, pod_ + below);
  }

  FakeNode node_{core::CgroupVersion::kV2, GetParam().driver};
  std::string pod_ = GetParam().driver == core::Driver::kSystemd ? kPodSlice : kPod;
};

INSTANTIATE_TEST_SUITE_P(Layouts, EngineMade, ValuesIn(kLayouts),
                         [](const TestParamInfo<Layout>& row) { return row.param.name; });

TEST_P(EngineMade, IsPodqossToTheEnd) {
  const bool slices = GetParam().driver == core::Driver::kSystemd;
  const std::string leaf = slices ? "/crio-web.scope" : "/web";
  const auto admission = node_.admit(kFirstContainer, Pid{1010}, pod_ + leaf);
  ASSERT_TRUE(admission) << admission.error().message;
  ASSERT_TRUE(*admission);
  EXPECT_FALSE((*admission)->record.kubelets_own);
  EXPECT_EQ((*admission)->record.cgroup, pod_);
  // 500m are 512 shares: 1 + (512 - 2) * 9999 / 262142; /podqos beside the other pods of the node.
  EXPECT_EQ(node_.file(pod_, "cpu.weight"), "20");
  const std::string top = slices ? "/podqos.slice" : "/podqos";
  EXPECT_EQ(node_.tree.cgroups.at(top).attributes.at("trusted.podqos.made"), "1");
  EXPECT_EQ(node_.records.node.trees.at(0).top, top);
  node_.tree.start(Pid{10}, (*admission)->container.cgroup);
  ASSERT_TRUE(node_.confirm(kFirstContainer, Pid{10}));
  node_.tree.end(Pid{1010});
  node_.run(kNextContainer, Pid{11});
  if (!GetParam().used.empty()) node_.tree.end(Pid{50});
  node_.stop(kFirstContainer, Pid{10});
  node_.stop(kNextContainer, Pid{11});
  EXPECT_THAT(node_.tree.cgroups, ElementsAre(Key("/")));
}

TEST(PodCgroup, IsNotAnothersBecauseItCannotBeRead) {
  FakeNode node{core::CgroupVersion::kV2};
  node.run(kNextContainer, Pid{11});
  node.tree.on_read = [](const std::string& what) {
    return what == cat("attribute ", kPod, " trusted.podqos.record") ? fail(ErrorCode::kIo, what)
                                                                     : Status{};
  };
  const auto admission = node.admit(kFirstContainer);
  ASSERT_FALSE(admission);
  EXPECT_THAT(admission.error().message, HasSubstr("attribute "));
}

/// Refuses a root that another program uses, as what is made in it shows.
void expect_foreign(const std::function<void(cgroup::FakeTree&)>& make) {
  FakeNode node{core::CgroupVersion::kV2};
  make(node.tree);
  const auto before = node.tree.cgroups.size();
  const auto admission = node.admit(kFirstContainer);
  ASSERT_FALSE(admission);
  EXPECT_THAT(admission.error().message, HasSubstr("exists but was not created by podqos"));
  EXPECT_EQ(node.tree.cgroups.size(), before);
  // Nor does a container that the engine puts there make it podqos's: its pod is a kubelet's.
  node.tree.make(kPod);
  const auto kubelets = node.admit(kFirstContainer, Pid{99}, std::string{kPod} + "/web");
  ASSERT_TRUE(kubelets) << kubelets.error().message;
  EXPECT_TRUE((*kubelets)->record.kubelets_own);
}

TEST(ForeignRoot, IsRefusedForWhatItIs) {
  for (const char* theirs : {"/podqos/kubepods/theirs", "/podqos/kubepods/burstable/theirs"}) {
    SCOPED_TRACE(theirs);
    expect_foreign([&](cgroup::FakeTree& tree) { tree.make(theirs); });
  }
  {
    SCOPED_TRACE("a process");
    expect_foreign([](cgroup::FakeTree& tree) { tree.start(Pid{50}, "/podqos/kubepods"); });
  }
  for (const auto& [cgroup, file, value] :
       {std::tuple{"/podqos/kubepods", "memory.max", "1000000000"},
        std::tuple{"/podqos/kubepods/besteffort", "cpu.weight", "1"}}) {
    SCOPED_TRACE(file);
    expect_foreign([&](cgroup::FakeTree& tree) {
      tree.make(cgroup);
      tree.cgroups.at(cgroup).files.at(file) = value;
    });
  }
}

}  // namespace
}  // namespace podqos::app
