// A resize that the operator asks for, on a machine in memory.

#include "common/app/resize_pod.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sys/directory.h"
#include "common/sys/file_lock.h"
#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::app {
namespace {

using containers::kBurstable;
using containers::kWebPod;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t kMebibyte = 1LL << 20U;

core::ResourceList amounts(const char* cpu, const char* memory) {
  core::ResourceList list;
  list.emplace("cpu", *core::Quantity::parse(cpu));
  list.emplace("memory", *core::Quantity::parse(memory));
  return list;
}

/// On both cgroup versions: a pod of web and log, each of 250m and 64Mi, with limits of 500m and
/// 128Mi.
class ResizePod : public ::testing::TestWithParam<core::CgroupVersion> {
 protected:
  void SetUp() override {
    for (const auto& [name, pid] : {std::pair{"web", 10}, std::pair{"log", 11}}) {
      node_.run({.id = name,
                 .uid = "a",
                 .annotations = {{cat("podqos.io/requests.", name), "cpu=250m,memory=64Mi"},
                                 {cat("podqos.io/limits.", name), "cpu=500m,memory=128Mi"}}},
                Pid{pid});
      node_.update(Pid{pid}, engine_values(256, 50'000, 128));
    }
  }

  static core::EngineResources engine_values(std::int64_t shares, std::int64_t quota,
                                             std::int64_t mebibytes) {
    core::EngineResources values;
    values.cpu_shares = shares;
    values.cpu_quota = quota;
    values.cpu_period = 100'000;
    values.memory_limit = mebibytes * kMebibyte;
    return values;
  }

  /// The runtime of a container: notes that it was called, and changes the container's cgroup.
  Result<UpdateContainer> runtime_of(const core::ContainerRecord& container) {
    return [this, container](const core::EngineResources& values) -> Status {
      calls_.push_back(cat(container.id, " ", values.memory_limit.value_or(0) / kMebibyte, "Mi ",
                           values.cpu_quota.value_or(0)));
      told_ = values;
      if (on_update) PODQOS_TRY(on_update(calls_.back()));
      node_.update(container.pid, values);
      return {};
    };
  }

  Result<core::RequestedResize> resize(const char* container, core::ResourceList requests,
                                       core::ResourceList limits) {
    return resize_pod(
        [this]() -> Result<Transaction> { return node_.begin(); },
        {.uid = "a",
         .request = {.container = container,
                     .wanted = {.requests = std::move(requests), .limits = std::move(limits)}}},
        [this](const core::ContainerRecord& each) { return find ? find(each) : runtime_of(each); });
  }
  Result<core::RequestedResize> double_web() {
    return resize("web", amounts("500m", "128Mi"), amounts("1", "256Mi"));
  }

  [[nodiscard]] std::string quota(const std::string& path) const {
    return node_.tree.is_v2() ? node_.file(path, "cpu.max") : node_.file(path, "cpu.cfs_quota_us");
  }
  [[nodiscard]] std::string quota_of(std::int64_t micros) const {
    return node_.tree.is_v2() ? cat(micros, " 100000") : std::to_string(micros);
  }
  void expect_pod(std::int64_t milli, std::int64_t mebibytes) const {
    EXPECT_EQ(quota(kWebPod), quota_of(milli * 200));
    EXPECT_EQ(node_.memory(kWebPod), std::to_string(mebibytes * kMebibyte));
    for (const char* cgroup : {kWebPod, kBurstable})
      EXPECT_EQ(node_.shares(cgroup), node_.written(milli * 1024 / 1000)) << cgroup;
    EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{milli});
  }

  FakeNode node_{GetParam()};
  std::vector<std::string> calls_;
  core::EngineResources told_;  ///< to the runtime, by its last call
  std::function<Status(const std::string& call)> on_update;
  FindRuntime find;
};

/// As after `docker update --memory 128m --memory-swap 128m`. runc refuses a limit above that of
/// memory and swap together, which it takes from its own notes where the update has none.
TEST_P(ResizePod, LetsTheContainerSwapAsMuchAsBefore) {
  auto& files = node_.tree.cgroups.at(node_.tree.processes.at(Pid{10}).cgroup).files;
  if (node_.tree.is_v2())
    files["memory.swap.max"] = "0";
  else
    files["memory.memsw.limit_in_bytes"] = std::to_string(128 * kMebibyte);
  ASSERT_TRUE(double_web());
  EXPECT_EQ(told_.memory_swap, 256 * kMebibyte);
  if (!node_.tree.is_v2()) return;
  files["memory.swap.max"] = "max";
  ASSERT_TRUE(resize("web", amounts("500m", "128Mi"), amounts("1", "300Mi")));
  EXPECT_EQ(told_.memory_swap, std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(OnBothVersions, ResizePod,
                         ::testing::Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                         [](const auto& version) {
                           return version.param == core::CgroupVersion::kV1 ? "V1" : "V2";
                         });

/// doPodResizeAction: the pod is raised before the containers are told, memory before CPU.
TEST_P(ResizePod, RaisesThePodFirst) {
  expect_pod(500, 256);
  on_update = [this](const std::string& /*call*/) -> Status {
    expect_pod(750, 384);
    return {};
  };
  const auto done = double_web();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_THAT(calls_, ElementsAre("web 256Mi 50000", "web 256Mi 100000"));
  expect_pod(750, 384);
  EXPECT_EQ(done->after.counted_request.cpu, MilliCpu{750});
  EXPECT_FALSE(node_.records.dirty);
}

TEST_P(ResizePod, LowersThePodLast) {
  on_update = [this](const std::string& /*call*/) -> Status {
    expect_pod(500, 256);
    return {};
  };
  const auto done = resize("web", amounts("125m", "32Mi"), amounts("250m", "64Mi"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_THAT(calls_, ElementsAre("web 64Mi 50000", "web 64Mi 25000"));
  EXPECT_EQ(quota(kWebPod), quota_of(75'000));
  EXPECT_EQ(node_.memory(kWebPod), std::to_string(192 * kMebibyte));
  EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{375});
}

/// The kernel refuses the weight of an idle cgroup (kernel/sched/fair.c sched_group_set_shares()).
TEST_P(ResizePod, WakesAPodThatAnotherProgramHasMadeIdle) {
  node_.tree.make_idle(kWebPod);
  node_.tree.make_idle(kBurstable);
  const auto done = resize("web", amounts("500m", "64Mi"), amounts("500m", "128Mi"));
  ASSERT_TRUE(done) << done.error().message;
  for (const char* path : {kWebPod, kBurstable}) {
    EXPECT_EQ(node_.file(path, "cpu.idle"), "0") << path;
    EXPECT_EQ(node_.shares(path), node_.written(768)) << path;  // 750m
  }
}

TEST_P(ResizePod, ChangesNothingIfAllIsAsWanted) {
  const auto changes = node_.changes;
  const auto done = resize("web", amounts("250m", "64Mi"), amounts("500m", "128Mi"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->before.pod, done->after.pod);
  EXPECT_THAT(calls_, IsEmpty());
  EXPECT_EQ(node_.changes, changes);
}

// kernel/sched/core.c tg_set_cfs_bandwidth(): no quota is below 1 ms, here that of a whole CPU.
TEST_P(ResizePod, TellsNoRuntimeOfAQuotaThatStaysTheSame) {
  auto values = engine_values(256, 1'000, 128);
  values.cpu_period = 1'000;
  node_.update(Pid{10}, values);
  const auto done = resize("web", amounts("250m", "64Mi"), amounts("600m", "128Mi"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_THAT(calls_, IsEmpty());
  EXPECT_EQ(quota(kWebPod), quota_of(110'000));
}

TEST_P(ResizePod, TakesBackWhatWasDoneIfTheRuntimeFails) {
  for (const char* fails : {"web 256Mi 50000", "web 256Mi 100000"}) {
    calls_.clear();
    on_update = [&](const std::string& call) {
      return call == fails ? fail(ErrorCode::kRefused, "no such file") : Status{};
    };
    const auto pods = node_.records.pods;
    const auto done = double_web();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message,
              "container web: no such file; what was done has been taken back");
    EXPECT_EQ(calls_.back(), "web 128Mi 50000");
    expect_pod(500, 256);
    EXPECT_EQ(node_.memory(cat(kWebPod, "/web")), std::to_string(128 * kMebibyte));
    EXPECT_EQ(node_.records.pods, pods);
    EXPECT_FALSE(node_.records.dirty);
  }
}

// podqosctl is killed, before or after the runtime has changed the container.
TEST_P(ResizePod, IsCompletedByTheNextOne) {
  struct Killed {};
  const auto tree = node_.tree;
  const auto records = node_.records;
  const auto cpu_up = [&] { return resize("web", amounts("500m", "64Mi"), amounts("1", "64Mi")); };
  for (const char* last : {"web 64Mi 50000", "web 64Mi 100000"}) {
    SCOPED_TRACE(last);
    node_.tree = tree;
    node_.records = records;
    on_update = [&](const std::string& call) -> Status {
      if (call == last) throw Killed{};
      return {};
    };
    EXPECT_THROW(static_cast<void>(cpu_up().has_value()), Killed);
    on_update = {};
    ASSERT_TRUE(node_.reconcile());
    const auto done = cpu_up();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(quota(cat(kWebPod, "/web")), quota_of(100'000));
    EXPECT_EQ(node_.memory(cat(kWebPod, "/web")), std::to_string(64 * kMebibyte));
    EXPECT_EQ(quota(kWebPod), quota_of(150'000));
    EXPECT_EQ(node_.memory(kWebPod), std::to_string(192 * kMebibyte));
    calls_.clear();
    ASSERT_TRUE(cpu_up());
    EXPECT_THAT(calls_, IsEmpty());
  }
}

/// podqosctl is killed before its first call of the runtime, between its calls and after the last,
/// and nobody calls it again: the pod has what its container has, and while podqosctl runs, all
/// that it may get.
TEST_P(ResizePod, AReconciliationSettlesAnInterruptedOne) {
  struct Killed {};
  struct Case {
    const char* killed_at;  ///< the call of the runtime, and whether that has changed the container
    bool has_changed;
    std::int64_t milli, mebibytes;  ///< the pod's
  };
  const TemporaryDirectory temporary;
  const auto state = sys::Directory::open(temporary.path());
  ASSERT_TRUE(state) << state.error().message;
  node_.state = &*state;
  const auto tree = node_.tree;
  const auto records = node_.records;
  for (const auto& [killed_at, has_changed, milli, mebibytes] :
       {Case{"web 256Mi 50000", false, 500, 256}, Case{"web 256Mi 50000", true, 500, 384},
        Case{"web 256Mi 100000", false, 500, 384}, Case{"web 256Mi 100000", true, 750, 384}}) {
    SCOPED_TRACE(cat(killed_at, has_changed ? ", done" : ", not done"));
    node_.tree = tree;
    node_.records = records;
    auto lock = sys::FileLock::acquire(*state, kResizeLock, std::chrono::seconds{1});
    ASSERT_TRUE(lock) << lock.error().message;
    std::optional held{*std::move(lock)};
    on_update = [&](const std::string& call) -> Status {
      EXPECT_TRUE(node_.reconcile());
      expect_pod(750, 384);
      if (call != killed_at) return {};
      if (has_changed) node_.update(Pid{10}, told_);
      throw Killed{};
    };
    EXPECT_THROW(static_cast<void>(double_web().has_value()), Killed);
    held.reset();
    const auto report = node_.reconcile();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_THAT(report->changes, Contains(HasSubstr("a resize that was interrupted")));
    expect_pod(milli, mebibytes);
    EXPECT_THAT(node_.records.pods.at("a"), Not(HasSubstr("resizing")));
    const auto again = node_.reconcile();
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_THAT(again->changes, IsEmpty());
  }
}

TEST_P(ResizePod, SaysWhatCouldNotBeTakenBack) {
  on_update = [](const std::string& call) {
    return call == "web 256Mi 50000" ? Status{} : fail(ErrorCode::kRefused, "it has ended");
  };
  const auto done = double_web();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message,
              HasSubstr("container web: it has ended; not all that was done could be taken back: "
                        "container web: it has ended"));
  expect_pod(500, 256);
}

/// Each change of the machine and of the records fails in turn.
TEST_P(ResizePod, TakesBackWhatWasDoneWhateverFails) {
  for (int at = 0;; ++at) {
    SCOPED_TRACE(at);
    node_.fail_once_after(at);
    const auto done = double_web();
    const bool failed = !node_.failing;
    node_.allow_all();
    if (!failed) {
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_GT(at, 3);
      break;
    }
    if (done) {
      // What may fail without harm, such as the copy of a record.
      ASSERT_TRUE(resize("web", amounts("250m", "64Mi"), amounts("500m", "128Mi")));
    }
    ASSERT_TRUE(node_.reconcile());
    expect_pod(500, 256);
    EXPECT_EQ(node_.memory(cat(kWebPod, "/web")), std::to_string(128 * kMebibyte));
  }
}

/// cgroup v1 refuses a container a quota above its pod's (kernel/sched/core.c
/// tg_cfs_schedulable_down()); here both versions do.
TEST_P(ResizePod, TakesBackWhatWasLoweredWhateverFails) {
  ASSERT_TRUE(double_web());
  on_update = [this](const std::string& call) -> Status {
    const auto wanted = parse_int(call.substr(call.rfind(' ') + 1)).value_or(0);
    const bool fits = wanted <= parse_int(word_at(quota(kWebPod), 0)).value_or(0);
    return fits ? Status{} : fail(ErrorCode::kRefused, "Invalid argument");
  };
  for (int at = 0;; ++at) {
    SCOPED_TRACE(at);
    node_.fail_once_after(at);
    const auto done = resize("web", amounts("125m", "32Mi"), amounts("250m", "64Mi"));
    const bool failed = !node_.failing;
    node_.allow_all();
    if (!failed) {
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_GT(at, 3);
      break;
    }
    if (done) {
      ASSERT_TRUE(double_web());
    }
    ASSERT_TRUE(node_.reconcile());
    expect_pod(750, 384);
    EXPECT_EQ(quota(cat(kWebPod, "/web")), quota_of(100'000));
  }
}

TEST_P(ResizePod, RefusesBeforeAnythingIsWritten) {
  const auto changes = node_.changes;
  find = [](const core::ContainerRecord& /*container*/) {
    return fail(ErrorCode::kNotFound, "no runtime has it");
  };
  auto refused = double_web();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "container web: no runtime has it");
  find = nullptr;
  node_.tree.cgroups.at(cat(kWebPod, "/web")).usage = 60 * kMebibyte;
  refused = resize("web", amounts("250m", "64Mi"), amounts("500m", "64Mi"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("container web: memory limit 64Mi"),
                                             HasSubstr("60Mi is in use; ask for 76Mi")));
  EXPECT_EQ(node_.changes, changes);
  node_.settings.admission.cpu = core::AdmissionPolicy::kEnforce;
  node_.changes.clear();
  refused = resize("web", amounts("8", "64Mi"), amounts("8", "128Mi"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("requests cpu 8250m, of which 8 is free"));
  EXPECT_THAT(calls_, IsEmpty());
  EXPECT_THAT(node_.changes, Each("record"));  // the settings
}

/// While runtimes are looked for, the lock is free.
TEST_P(ResizePod, NoticesThatThePodHasChangedMeanwhile) {
  find = [this](const core::ContainerRecord& container) {
    node_.run({.id = "late", .uid = "a", .annotations = {{"podqos.io/requests.late", "cpu=1m"}}},
              Pid{12});
    return runtime_of(container);
  };
  const auto refused = double_web();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_THAT(calls_, IsEmpty());
}

TEST_P(ResizePod, KeepsAContainerThatComesWhileItIsResized) {
  bool came = false;
  on_update = [&](const std::string& /*call*/) -> Status {
    if (std::exchange(came, true)) return {};
    node_.run({.id = "late",
               .uid = "a",
               .annotations = {{"podqos.io/requests.late", "cpu=100m,memory=16Mi"},
                               {"podqos.io/limits.late", "cpu=200m,memory=32Mi"}}},
              Pid{12});
    return {};
  };
  ASSERT_TRUE(double_web());
  EXPECT_EQ(quota(kWebPod), quota_of(170'000));
  EXPECT_EQ(node_.memory(kWebPod), std::to_string(416 * kMebibyte));
  EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{850});
}

TEST_P(ResizePod, LeavesAPodThatDoesNotRun) {
  node_.tree.end(Pid{10});
  const auto refused = double_web();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("container web does not run"));
  node_.records.pods.clear();
  const auto gone = double_web();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
}

/// The same pod, whose containers may burst by their whole quota.
class ResizeBurstingPod : public ResizePod {
 protected:
  void SetUp() override {
    node_.settings.cpu_burst.burstable = 100;
    ResizePod::SetUp();
    ASSERT_TRUE(node_.reconcile());
  }
};
INSTANTIATE_TEST_SUITE_P(OnBothVersions, ResizeBurstingPod,
                         ::testing::Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                         [](const auto& version) {
                           return version.param == core::CgroupVersion::kV1 ? "V1" : "V2";
                         });

TEST_P(ResizeBurstingPod, LowersTheBurstAgainAfterAReconciliation) {
  const std::string web = cat(kWebPod, "/web");
  const char* const file = node_.tree.is_v2() ? "cpu.max.burst" : "cpu.cfs_burst_us";
  bool reconciled = false;
  on_update = [&](const std::string& call) -> Status {
    if (!std::exchange(reconciled, true)) {
      EXPECT_TRUE(node_.reconcile());
    }
    const bool lowers = call.ends_with(" 25000");
    return lowers && node_.file(web, file) != "25000"
               ? fail(ErrorCode::kRefused, "Invalid argument")
               : Status{};
  };
  const auto done = resize("web", amounts("125m", "64Mi"), amounts("250m", "128Mi"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(quota(web), quota_of(25'000));
  EXPECT_EQ(node_.file(web, file), "25000");
}

/// kernel/sched/core.c tg_set_cfs_bandwidth() refuses a quota below the burst.
TEST_P(ResizeBurstingPod, KeepsTheBurstOfAContainerWithinItsQuota) {
  const auto burst_of = [&](const std::string& path) {
    return node_.file(path, node_.tree.is_v2() ? "cpu.max.burst" : "cpu.cfs_burst_us");
  };
  const std::string web = cat(kWebPod, "/web");
  ASSERT_EQ(burst_of(web), "50000");
  std::string burst;
  on_update = [&](const std::string& /*call*/) -> Status {
    burst = burst_of(web);
    return {};
  };
  ASSERT_TRUE(double_web());
  EXPECT_EQ(burst, "50000");
  EXPECT_EQ(burst_of(web), "100000");
  EXPECT_EQ(burst_of(kWebPod), "150000");
  ASSERT_TRUE(resize("web", amounts("125m", "32Mi"), amounts("250m", "64Mi")));
  EXPECT_EQ(burst, "25000");
  EXPECT_EQ(burst_of(web), "25000");
  EXPECT_EQ(burst_of(kWebPod), "75000");
  on_update = [&](const std::string& call) {
    burst = burst_of(web);
    return call.ends_with("100000") ? fail(ErrorCode::kRefused, "no such file") : Status{};
  };
  ASSERT_FALSE(double_web());
  EXPECT_EQ(burst, "25000");
  EXPECT_EQ(burst_of(web), "25000");
  EXPECT_EQ(burst_of(kWebPod), "75000");
}

/// No burst is above the quota that a container gets back.
TEST_P(ResizeBurstingPod, TakesBackAQuotaBesideABurst) {
  const std::string web = cat(kWebPod, "/web");
  const char* const file = node_.tree.is_v2() ? "cpu.max.burst" : "cpu.cfs_burst_us";
  on_update = [&](const std::string& call) -> Status {
    const auto wanted = parse_int(call.substr(call.rfind(' ') + 1)).value_or(0);
    if (parse_int(node_.file(web, file)).value_or(0) > wanted)
      return fail(ErrorCode::kRefused, "Invalid argument");
    if (!call.ends_with(" 100000")) return {};
    node_.update(Pid{10}, told_);
    return fail(ErrorCode::kTimeout, "it did not end in time");
  };
  const auto done = double_web();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("what was done has been taken back"));
  EXPECT_EQ(quota(web), quota_of(50'000));
  EXPECT_EQ(node_.file(web, file), "50000");
  expect_pod(500, 256);
}

}  // namespace
}  // namespace podqos::app
