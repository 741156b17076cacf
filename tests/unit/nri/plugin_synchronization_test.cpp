// What a runtime has, taken in beside its requests and within their time.

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/engine_events.h"
#include "common/base/text.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "common/sys/fd.h"
#include "common/sys/process.h"
#include "nri/plugin.h"
#include "tests/unit/nri/metrics_text.h"
#include "tests/unit/nri/plugin_fixture.h"
#include "tests/unit/test_clock.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(PluginTest, TakesInWhatLivesAtTheSynchronization) {
  const auto sandbox = pod("1", start_process(), kSmall);
  auto app = container(sandbox, "app", kSmall);
  run_in(below("engine"), app);
  const auto answer = plugin().synchronize(state_of({sandbox}, {app}));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_FALSE(is_known("1"));
  housekeep();
  EXPECT_TRUE(is_known("1"));
  EXPECT_EQ(memory(pod_path("burstable", "1")), "134217728");
  EXPECT_THAT(log(), HasSubstr("app-of-1"));
}

/// Whatever is to become of one that starts in the wrong place.
TEST_F(PluginTest, LeavesWhatRanBeforeItAsItIs) {
  for (const char* policy : {"rewrite", "fail"}) {
    reconfigure(cat(R"(, "placement": {"onMisplaced": ")", policy, R"("})"));
    const auto sandbox = pod(policy, start_process(), kSmall);
    auto app = container(sandbox, "app", kSmall);
    const Pid init = run_in(below("engine"), app);
    const auto score = sys::oom_score_adj_of(init);
    ASSERT_TRUE(plugin().synchronize(state_of({sandbox}, {app})));
    housekeep();
    EXPECT_THAT(temporary().read(cat("state/pods/", policy, ".json")), HasSubstr(app.id()));
    EXPECT_EQ(cgroupfs().cgroup_of(init), below("engine"));
    EXPECT_NE(memory(below("engine")), "134217728");
    EXPECT_EQ(sys::oom_score_adj_of(init), score);
  }
}

TEST_F(PluginTest, ReleasesAtTheSynchronizationWhatIsGone) {
  ASSERT_TRUE(ask(kRunPodSandbox, pod("1", start_process(), kSmall)));
  EXPECT_TRUE(is_known("1"));
  end_processes();
  ASSERT_TRUE(plugin().synchronize(NodeState{}));
  housekeep();
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(has_cgroup(pod_path("burstable", "1")));
}

TEST_F(PluginTest, SynchronizesTheOthersWhenOneIsBroken) {
  const auto odd = broken(pod("1", start_process()));
  const auto good = pod("2", start_process(), kSmall);
  ASSERT_TRUE(plugin().synchronize(state_of({odd, good})));
  housekeep();
  EXPECT_FALSE(is_known("1"));
  EXPECT_TRUE(is_known("2"));
  EXPECT_THAT(log(), HasSubstr("podqos.io/pod"));
  EXPECT_THAT(test::text_of(metrics()),
              HasSubstr("podqos_errors_total{code=\"invalid-argument\"} 1\n"));
}

TEST_F(PluginTest, TakesInContainersWithTheAnnotationsOfTheirPod) {
  auto ignored = pod("1", start_process(), kSmall);
  (*ignored.mutable_annotations())["podqos.io/ignore"] = "true";
  auto app = container(ignored, "app", kSmall);
  auto other = container(ignored, "other", kSmall);
  (*other.mutable_annotations())["podqos.io/ignore"] = "false";
  run_in(below("engine"), app);
  run_in(below("engine"), other);
  ASSERT_TRUE(plugin().synchronize(state_of({ignored}, {app, other})));
  housekeep();
  EXPECT_THAT(temporary().read("state/pods/1.json"), HasSubstr("other-of-1"));
  EXPECT_THAT(temporary().read("state/pods/1.json"), Not(HasSubstr("app-of-1")));
}

/// Without what it says it would be a pod of its own.
TEST_F(PluginTest, TakesNothingInOfWhichItCannotReadTheIdentity) {
  reconfigure(R"(, "scope": "all")");
  auto odd = pod("1", start_process(), kSmall);
  odd.set_name("a/b");
  auto app = container(odd, "app", kSmall);
  run_in(below("engine"), app);
  const auto good = pod("2", start_process(), kSmall);
  ASSERT_TRUE(plugin().synchronize(state_of({odd, good}, {app})));
  housekeep();
  EXPECT_TRUE(is_known("2"));
  const std::filesystem::directory_iterator records{temporary().path("state/pods")};
  EXPECT_EQ(std::distance(begin(records), end(records)), 1);
  EXPECT_THAT(log(), HasSubstr("the runtime's pod name"));
}

TEST_F(PluginTest, SaysWhenEverythingIsKnown) {
  const auto shown = [&] { return test::text_of(metrics()); };
  const auto known = HasSubstr("\npodqos_last_reconcile_timestamp_seconds ");
  // Everything is recomputed, but nobody has told what runs.
  ASSERT_TRUE(ask(kRunPodSandbox, pod("2", start_process(), kSmall)));
  housekeep();
  ASSERT_TRUE(plugin().synchronize(state_of({pod("1", start_process(), kSmall)})));
  EXPECT_THAT(shown(), Not(known));
  housekeep();
  EXPECT_THAT(shown(), known);
  EXPECT_THAT(log(), HasSubstr("synchronized 1 sandboxes and containers"));
}

TEST_F(PluginTest, TendsManySandboxesInTurn) {
  constexpr int kMany = 150;
  const Pid lives{::getpid()};
  std::vector<api::PodSandbox> sandboxes;
  for (int i = 0; i < kMany; ++i)
    sandboxes.push_back(pod(std::to_string(1000 + i), lives));
  sandboxes.push_back(pod("2000", start_process(), kSmall));
  ASSERT_TRUE(plugin().synchronize(state_of(sandboxes)));
  housekeep();
  EXPECT_TRUE(is_known("2000"));
  end_processes();
  int rounds = 0;
  while (is_known("2000") && rounds < 10) {
    housekeep();
    ++rounds;
  }
  EXPECT_LE(rounds, 3);
}

TEST_F(PluginTest, TendsThoseThatAnEarlierOneHasTakenIn) {
  const auto sandbox = ran(pod("1", start_process(), kSmall));
  Plugin next{configuration(), metrics()};
  ASSERT_TRUE(next.synchronize(state_of({sandbox})));
  end_processes();
  housekeep(next);
  EXPECT_FALSE(is_known("1"));
}

/// What a runtime has, taken in as if each pod took longer than all may take at a time.
class SynchronizationTest : public PluginTest {
 protected:
  static constexpr milliseconds kOneOnly{0};

  [[nodiscard]] app::ContainerEvent told(const std::string& uid) {
    const Pid init = start_process();
    auto facts = sandbox_facts(event(pod(uid, init, kSmall)).pod);
    EXPECT_TRUE(facts);
    const auto started = sys::start_time_of(init);
    EXPECT_TRUE(started && *started);
    return {.facts = std::move(*facts), .init = {.pid = init, .start_time = **started}};
  }
  [[nodiscard]] app::Synchronization::Failed failed() {
    return [this](const Error& error) { configuration().log().error(error.message); };
  }
  [[nodiscard]] Result<bool> resume(app::Synchronization& taking,
                                    std::optional<milliseconds> at_most = kOneOnly,
                                    std::string_view sandbox = {}) {
    return taking.resume(settings(), configuration().log(),
                         {.ids = {}, .listener = {Pid{::getpid()}, {}}},
                         {.at_most = at_most, .sandbox = sandbox, .timeouts = {.clock = &clock()}});
  }
  [[nodiscard]] core::Settings settings() {
    core::Settings settings = configuration().settings();
    settings.lock_deadline_ms = 10;
    return settings;
  }
  [[nodiscard]] Result<store::Store> lock() {
    return store::Store::open(
        {.path = settings().state_dir, .lock_timeout = milliseconds{settings().lock_deadline_ms}});
  }
  /// Pods, and the tiers with their sums, are what they are to be so far.
  void expect_known(const std::vector<std::string>& uids) {
    for (const std::string& uid : uids) {
      EXPECT_TRUE(is_known(uid)) << uid;
      EXPECT_EQ(memory(pod_path("burstable", uid)), "134217728") << uid;
    }
    auto store = lock();
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_FALSE(store->dirty());
    EXPECT_EQ(store->tiers().sums.burstable.pods, uids.size());
  }
};

TEST_F(SynchronizationTest, LetsOthersInBetweenTwoPieces) {
  app::Synchronization taking{{told("1"), told("2"), told("3")}, failed()};
  std::vector<std::string> known;
  for (const char* uid : {"1", "2", "3"}) {
    const auto done = resume(taking);
    ASSERT_TRUE(done) << done.error().message;
    known.emplace_back(uid);
    EXPECT_EQ(*done, known.size() == taking.size());
    expect_known(known);
  }
  EXPECT_EQ(taking.size(), 3U);
}

TEST_F(SynchronizationTest, TakesAllAtOnceWhereThereIsTime) {
  app::Synchronization taking{{told("1"), told("2"), told("3")}, failed()};
  const auto done = resume(taking, milliseconds{60'000});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(*done);
  expect_known({"1", "2", "3"});
}

TEST_F(SynchronizationTest, PassesOverWhatHasEndedMeanwhile) {
  app::Synchronization taking{{told("1"), told("2"), told("3")}, failed()};
  ASSERT_TRUE(resume(taking));
  // One before, one behind what comes next.
  taking.forget("sandbox-1");
  taking.forget("sandbox-2");
  taking.forget("sandbox-of-somebody");
  const auto done = resume(taking);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(*done);
  expect_known({"1", "3"});
}

TEST_F(SynchronizationTest, ReleasesFirstWhatIsGone) {
  app::Synchronization before{{told("1")}, failed()};
  ASSERT_TRUE(resume(before));
  end_processes();
  app::Synchronization taking{{told("2"), told("3")}, failed()};
  ASSERT_TRUE(resume(taking));
  EXPECT_FALSE(is_known("1"));
  expect_known({"2"});
}

TEST_F(SynchronizationTest, LeavesWhatFailsToTheEventAfterIt) {
  app::Synchronization taking{{told("1"), told("2"), told("3"), told("4")}, failed()};
  ASSERT_TRUE(resume(taking));
  const std::filesystem::path in_the_way = temporary().path("state/pods/2.json");
  std::filesystem::create_directory(in_the_way);
  while (true) {
    const auto done = resume(taking);
    ASSERT_TRUE(done) << done.error().message;
    if (*done) break;
  }
  std::filesystem::remove(in_the_way);
  EXPECT_THAT(log(), HasSubstr("sandbox-2"));
  EXPECT_THAT(log(), Not(HasSubstr("interrupted")));
  EXPECT_TRUE(is_known("4"));
  auto store = lock();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_TRUE(store->dirty());
}

TEST_F(SynchronizationTest, TakesOnePodBeforeTheOthers) {
  auto box = told("3");
  box.sandbox = "sandbox-3";
  app::Synchronization taking{{told("1"), told("2"), std::move(box), told("4")}, failed()};
  ASSERT_TRUE(resume(taking));
  EXPECT_TRUE(taking.awaits("sandbox-3"));
  const auto done = resume(taking, std::nullopt, "sandbox-3");
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_FALSE(*done);
  EXPECT_FALSE(taking.awaits("sandbox-3"));
  expect_known({"1", "3"});
  EXPECT_FALSE(is_known("2"));
}

TEST_F(SynchronizationTest, GoesOnAfterALockThatWasNotToBeHad) {
  app::Synchronization taking{{told("1"), told("2")}, failed()};
  ASSERT_TRUE(resume(taking));
  {
    const auto held = lock();
    ASSERT_TRUE(held);
    const auto refused = resume(taking);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kTimeout);
  }
  const auto done = resume(taking);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(*done);
  expect_known({"1", "2"});
}

/// A clock by which, from hold() on, another process has the lock whenever podqos asks for it, and
/// releases it after a while. A wait that ends earlier is in vain.
class ContendedClock final : public sys::Clock {
 public:
  void hold(const std::string& lock, std::chrono::nanoseconds time) {
    file_ = sys::UniqueFd{::open(lock.c_str(), O_RDWR | O_CLOEXEC)};
    ASSERT_TRUE(file_.valid());
    time_ = time;
  }
  [[nodiscard]] TimePoint now() const override {
    // In vain while podqos has it.
    if (file_.valid()) static_cast<void>(::flock(file_.get(), LOCK_EX | LOCK_NB));
    return clock_.now();
  }
  [[nodiscard]] int poll(std::span<pollfd> polled,
                         std::optional<TimePoint> deadline) const override {
    return clock_.poll(polled, deadline);
  }
  [[nodiscard]] std::chrono::nanoseconds time_until(TimePoint deadline) const override {
    if (!file_.valid() || deadline - clock_.now() < time_) return clock_.time_until(deadline);
    clock_.pass(time_);
    static_cast<void>(::flock(file_.get(), LOCK_UN));
    return 1us;
  }

 private:
  mutable LeapingClock clock_;
  sys::UniqueFd file_;
  std::chrono::nanoseconds time_{0};
};

class DeadlineTest : public PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    if (IsSkipped()) return;
    contended_.emplace(configuration(), metrics(), clock_);
    // Makes the state directory.
    ASSERT_TRUE(contended().handle(Request::kRunPodSandbox,
                                   event(pod("other", start_process(), kSmall)), kNoBudget));
  }
  [[nodiscard]] Plugin& contended() { return *contended_; }
  /// What podqos waits for the lock that another process holds for `time` each time.
  template <class Call>
  [[nodiscard]] std::chrono::nanoseconds waited(std::chrono::nanoseconds time, Call call) {
    clock_.hold(temporary().path("state/lock"), time);
    const auto begun = clock_.now();
    call();
    return clock_.now() - begun;
  }
  /// The same of a container's start, where the plugin has been told of its sandbox just before.
  [[nodiscard]] std::chrono::nanoseconds waited_at_start(std::chrono::nanoseconds time,
                                                         const api::PodSandbox& sandbox,
                                                         const api::Container& app) {
    EXPECT_TRUE(contended().synchronize(state_of({sandbox})));
    return waited(time, [&] {
      EXPECT_TRUE(contended().handle(Request::kStartContainer, event(sandbox, app), kNoBudget));
    });
  }

 private:
  ContendedClock clock_;
  std::optional<Plugin> contended_;
};

constexpr auto kForEver = std::chrono::hours{24};

/// The runtime waits 2 s for each request, and half of that is for the work.
TEST_F(DeadlineTest, OfAStartIncludesTheSynchronizationOfItsPod) {
  const auto sandbox = pod("1", start_process(), kSmall);
  auto app = container(sandbox, "app", kSmall);
  app.mutable_linux()->set_cgroups_path(pod_path("burstable", "1") + "/app-of-1");
  run(app);
  EXPECT_EQ(waited_at_start(600ms, sandbox, app), 1s);
}

TEST_F(DeadlineTest, OfAStartHoldsWhereTheLockIsNeverFree) {
  const auto sandbox = pod("1", start_process(), kSmall);
  auto app = container(sandbox, "app", kSmall);
  app.set_pid(static_cast<std::uint32_t>(start_process().value()));
  EXPECT_EQ(waited_at_start(kForEver, sandbox, app), 1s);
}

TEST_F(DeadlineTest, OfARemovedSandboxIncludesItsContainers) {
  const auto sandbox = pod("1");
  for (const char* name : {"app", "log", "probe"}) {
    ASSERT_TRUE(contended().handle(Request::kCreateContainer,
                                   event(sandbox, container(sandbox, name, kSmall)), kNoBudget));
  }
  const auto remove = [&] {
    EXPECT_TRUE(contended().handle(Request::kRemovePodSandbox, event(sandbox), kNoBudget));
  };
  EXPECT_EQ(waited(400ms, remove), 1s);
}

class HousekeepingDeadlineTest : public DeadlineTest {
 protected:
  void SetUp() override {
    DeadlineTest::SetUp();
    if (IsSkipped()) return;
    housekeep(contended());
    for (int i = 0; i < 16; ++i) {
      const auto sandbox = pod(std::to_string(i), start_process(), kSmall);
      ASSERT_TRUE(contended().handle(Request::kRunPodSandbox, event(sandbox), kNoBudget));
    }
    end_processes();
  }
  [[nodiscard]] auto round() {
    return [this] { EXPECT_FALSE(contended().housekeep()); };
  }
};

/// A request that arrives meanwhile has a second of its own, of the two that the runtime grants.
TEST_F(HousekeepingDeadlineTest, HoldsForAllThatWaitsALittle) {
  EXPECT_LE(waited(90ms, round()), 500ms);
  EXPECT_FALSE(is_known("0"));
  EXPECT_LE(waited(90ms, round()), 500ms) << "what the first round has left";
}

TEST_F(HousekeepingDeadlineTest, EndsAtTheFirstWaitInVain) {
  EXPECT_EQ(waited(kForEver, round()), 100ms);
  EXPECT_EQ(waited(kForEver, round()), 100ms) << "what is deferred then";
}

TEST_F(HousekeepingDeadlineTest, LeavesNothingUndone) {
  constexpr int kRounds = 16;
  static_cast<void>(waited(90ms, [&] {
    for (int i = 0; i < kRounds; ++i)
      round()();
  }));
  for (int i = 0; i < 16; ++i)
    EXPECT_FALSE(is_known(std::to_string(i))) << i;
}

}  // namespace
}  // namespace podqos::nri
