#include "common/app/node_figures.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/codec/record_json.h"
#include "common/core/cgroups/plan.h"
#include "common/core/kubernetes/quantity.h"
#include "common/store/dry_run_files.h"
#include "common/store/state_files.h"
#include "tests/unit/app/fake_files.h"

namespace podqos::app {
namespace {

using ::testing::IsEmpty;

core::PodRecord pod(std::string uid, std::string cgroup, core::QosClass qos_class) {
  core::PodRecord record;
  record.pod.uid = std::move(uid);
  record.cgroup = std::move(cgroup);
  record.qos_class = qos_class;
  record.counted_request = {.pods = 1, .cpu = MilliCpu{250}, .memory = Bytes{1 << 20}};
  return record;
}

void put(FakeRecords& state, const core::PodRecord& record) {
  state.pods.emplace(record.pod.uid, codec::format_pod_record(record));
  state.put(core::row_of(record));
}

/// Of what a kubelet's pod requests nothing counts in podqos's tiers.
core::PodRecord of_kubelet(core::PodRecord record) {
  record.kubelets_own = true;
  record.capped_request = std::exchange(record.counted_request, {});
  return record;
}

Result<NodeFigures> figures_of(FakeRecords& records, const core::Settings& settings = {}) {
  const auto refuse = [] { return fail(ErrorCode::kIo, "changed"); };
  PODQOS_ASSIGN(auto store, store::Store::over(std::make_unique<store::DryRunFiles>(
                                std::make_unique<FakeFiles>(records, refuse))));
  return node_figures(settings, store);
}

TEST(NodeFigures, CountsByClassAndOwner) {
  FakeRecords state;
  put(state, pod("a", "/kubepods/burstable/poda", core::QosClass::kBurstable));
  put(state, pod("b", "/kubepods/burstable/podb", core::QosClass::kBurstable));
  put(state, of_kubelet(pod("c", "/kubepods/podc", core::QosClass::kGuaranteed)));
  auto released = pod("d", "/kubepods/besteffort/podd", core::QosClass::kBestEffort);
  released.released_at = BootSeconds{7};
  put(state, released);
  state.pods.emplace("e", "{");
  state.lose_some();
  const auto figures = figures_of(state);
  if (!figures) GTEST_SKIP() << figures.error().message;
  EXPECT_EQ(figures->own.burstable,
            (core::TierSum{.pods = 2, .cpu = MilliCpu{500}, .memory = Bytes{2 << 20}}));
  EXPECT_EQ(figures->own.besteffort, core::TierSum{});
  EXPECT_EQ(figures->kubelets.guaranteed,
            (core::TierSum{.pods = 1, .cpu = MilliCpu{250}, .memory = Bytes{1 << 20}}));
  EXPECT_TRUE(figures->interrupted);
  EXPECT_EQ(figures->unreadable, 1U);
}

TEST(NodeFigures, HasNoTiersBeforeTheFirstPod) {
  FakeRecords none;
  const auto figures = figures_of(none);
  ASSERT_TRUE(figures);
  EXPECT_THAT(figures->tiers, IsEmpty());
}

/// Against the kernel, in roots of the test's own.
class NodeFiguresLive : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "making cgroups takes root";
    auto opened = cgroup::Cgroupfs::open();
    if (!opened) GTEST_SKIP() << opened.error().message;
    cgroups_.emplace(std::move(*opened));
  }
  void TearDown() override {
    if (!cgroups_) return;
    for (const std::string& path :
         {own_ + "/kubepods/burstable", own_ + "/kubepods/besteffort", own_ + "/kubepods",
          own_ + "/theirs/kubepods/burstable", own_ + "/theirs/kubepods", own_ + "/theirs", own_})
      static_cast<void>(cgroups_->execute({core::RemoveCgroup{.path = path}}));
  }
  void make(const std::string& path) {
    const auto made = cgroups_->execute({core::EnsureCgroup{.path = path}});
    ASSERT_TRUE(made) << made.error().message;
  }

  std::optional<cgroup::Cgroupfs> cgroups_;
  std::string own_ = cat("/podqos-test-", ::getpid(), "-figures");
};

TEST_F(NodeFiguresLive, HasAsManyPodsAsTheSettingSays) {
  FakeRecords state;
  auto first = pod("a", own_ + "/poda", core::QosClass::kBestEffort);
  first.pod.name = "web";
  first.pod.pod_namespace = "shop";
  core::Container& app = first.pod.containers.emplace_back();
  app.name = "app";
  app.resources.requests.emplace("cpu", *core::Quantity::parse("250m"));
  for (const char* id : {"x", "y", "sandbox"}) {
    core::ContainerRecord& container = first.containers.emplace_back();
    container.id = id;
    container.name = "app";
    container.cgroup = cat(own_, "/poda/", id);
    container.sandbox = container.id == "sandbox";
  }
  put(state, first);
  put(state, pod("b", own_ + "/podb", core::QosClass::kBestEffort));
  core::Settings settings;
  EXPECT_THAT(figures_of(state, settings)->pods, IsEmpty());
  settings.pod_series = core::kMaxPodSeries;
  EXPECT_EQ(figures_of(state, settings)->pods.size(), 2U);
  // Where none is charged with more memory, by uid.
  settings.pod_series = 1;
  const auto one = figures_of(state, settings);
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_EQ(one->pods.size(), 1U);
  const PodFigures& found = one->pods.front();
  EXPECT_EQ(found.uid, "a");
  EXPECT_EQ(found.name, "web");
  EXPECT_EQ(found.pod_namespace, "shop");
  EXPECT_EQ(found.cpu_request, MilliCpu{250});
  EXPECT_EQ(found.memory_request, std::nullopt);
  ASSERT_EQ(found.quotas.size(), 2U);
  EXPECT_EQ(found.quotas.at("app").path(), own_ + "/poda/y");
}

TEST_F(NodeFiguresLive, ReadsTheTiersOfPodqosAndOfAKubelet) {
  for (const char* tier : {"/kubepods/burstable", "/kubepods/besteffort"})
    make(own_ + tier);
  make(own_ + "/theirs/kubepods/burstable");
  FakeRecords state;
  state.node.trees = {{.kubepods = own_ + "/kubepods"}};
  auto reserving = pod("g", own_ + "/kubepods/podg", core::QosClass::kGuaranteed);
  reserving.counted_request.memory = Bytes{1LL << 30};
  put(state, reserving);
  put(state,
      of_kubelet(pod("x", own_ + "/theirs/kubepods/burstable/podx", core::QosClass::kBurstable)));
  core::Settings settings;
  settings.node_memory = Bytes{4LL << 30};
  settings.reserve_memory_percent = 100;
  const auto figures = figures_of(state, settings);
  ASSERT_TRUE(figures) << figures.error().message;
  ASSERT_EQ(figures->tiers.size(), 5U);  // a kubelet's BestEffort tier is not there
  EXPECT_EQ(figures->tiers[0].cgroup.path(), own_ + "/kubepods");
  EXPECT_EQ(figures->tiers[0].wanted_memory_limit, Bytes{4LL << 30});
  EXPECT_EQ(figures->tiers[1].cgroup.path(), own_ + "/kubepods/burstable");
  EXPECT_EQ(figures->tiers[1].wanted_memory_limit, Bytes{3LL << 30});
  EXPECT_EQ(figures->tiers[4].cgroup.path(), own_ + "/theirs/kubepods/burstable");
  EXPECT_FALSE(figures->tiers[4].wanted_memory_limit);
}

}  // namespace
}  // namespace podqos::app
