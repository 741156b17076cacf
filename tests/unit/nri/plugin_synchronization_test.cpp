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
#include <string_view>
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
#include "tests/unit/nri/plugin_fixture.h"
#include "tests/unit/test_clock.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::event_of;
using test::kNoBudget;
using test::kSmall;
using test::PluginTest;
using test::text_of;
using ::testing::HasSubstr;
using ::testing::Not;

/// What the runtime lists is taken in.
class ListedTest : public PluginTest {
 protected:
  void take_in(const std::vector<api::PodSandbox>& pods,
               const std::vector<api::Container>& containers = {}) {
    const auto answer = plugin().synchronize(state_of(pods, containers));
    ASSERT_TRUE(answer) << answer.error().message;
    housekeep();
  }
  /// A container of pod_ that runs where podqos has not placed it.
  [[nodiscard]] api::Container elsewhere(const std::string& name = "app") {
    auto running = app(kSmall, name);
    run_in(below("engine"), running);
    return running;
  }
};

TEST_F(ListedTest, IsTakenInWhereItLives) {
  pod_ = pod("1", start_process(), kSmall);
  const auto listed = elsewhere();
  ASSERT_TRUE(plugin().synchronize(state_of({pod_}, {listed})));
  EXPECT_FALSE(is_known("1"));
  housekeep();
  EXPECT_TRUE(is_known("1"));
  expect_pod(kSmall);
  EXPECT_THAT(log(), HasSubstr("app-of-1"));
}

/// Whatever is to become of one that starts in the wrong place.
TEST_F(ListedTest, IsLeftAsItIs) {
  for (const char* policy : {"rewrite", "fail"}) {
    reconfigure(cat(R"(, "placement": {"onMisplaced": ")", policy, R"("})"));
    pod_ = pod(policy, start_process(), kSmall);
    const auto listed = elsewhere();
    const Pid init{static_cast<pid_t>(listed.pid())};
    const auto score = sys::oom_score_adj_of(init);
    take_in({pod_}, {listed});
    EXPECT_THAT(record(policy), HasSubstr(listed.id()));
    EXPECT_EQ(cgroupfs().cgroup_of(init), below("engine"));
    EXPECT_NE(memory(below("engine")), "134217728");
    EXPECT_EQ(sys::oom_score_adj_of(init), score);
  }
}

TEST_F(ListedTest, LacksWhatIsReleased) {
  run_pod(kSmall);
  EXPECT_TRUE(is_known("1"));
  end_processes();
  take_in({});
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(has_cgroup(pod_path("burstable", "1")));
}

TEST_F(ListedTest, IsTakenInBesideWhatIsBroken) {
  take_in({annotated(pod("1", start_process()), "{"), pod("2", start_process(), kSmall)});
  EXPECT_FALSE(is_known("1"));
  EXPECT_TRUE(is_known("2"));
  EXPECT_THAT(log(), HasSubstr("podqos.io/pod"));
  EXPECT_THAT(text_of(metrics()), HasSubstr("podqos_errors_total{code=\"invalid-argument\"} 1\n"));
}

TEST_F(ListedTest, HasTheAnnotationsOfItsPod) {
  pod_ = annotated(pod("1", start_process(), kSmall), "true", "podqos.io/ignore");
  const auto ignored = elsewhere();
  auto other = elsewhere("other");
  (*other.mutable_annotations())["podqos.io/ignore"] = "false";
  take_in({pod_}, {ignored, other});
  EXPECT_THAT(record(), HasSubstr("other-of-1"));
  EXPECT_THAT(record(), Not(HasSubstr("app-of-1")));
}

/// Without what it says it would be a pod of its own.
TEST_F(ListedTest, IsNotTakenInWhereItsIdentityCannotBeRead) {
  reconfigure(R"(, "scope": "all")");
  pod_ = pod("1", start_process(), kSmall);
  pod_.set_name("a/b");
  take_in({pod_, pod("2", start_process(), kSmall)}, {elsewhere()});
  EXPECT_TRUE(is_known("2"));
  const std::filesystem::directory_iterator records{temporary().path("state/pods")};
  EXPECT_EQ(std::distance(begin(records), end(records)), 1);
  EXPECT_THAT(log(), HasSubstr("the runtime's pod name"));
}

TEST_F(ListedTest, SaysWhenEverythingIsKnown) {
  const auto known = HasSubstr("\npodqos_last_reconcile_timestamp_seconds ");
  // Everything is compared, but nobody has told what runs.
  ASSERT_TRUE(ask(kRunPodSandbox, pod("2", start_process(), kSmall)));
  housekeep();
  ASSERT_TRUE(plugin().synchronize(state_of({pod("1", start_process(), kSmall)})));
  EXPECT_THAT(text_of(metrics()), Not(known));
  housekeep();
  EXPECT_THAT(text_of(metrics()), known);
  EXPECT_THAT(log(), HasSubstr("synchronized 1 sandboxes and containers"));
}

TEST_F(ListedTest, IsTendedInTurn) {
  constexpr int kMany = 150;
  std::vector<api::PodSandbox> sandboxes;
  for (int i = 0; i < kMany; ++i)
    sandboxes.push_back(pod(std::to_string(1000 + i), Pid{::getpid()}));
  sandboxes.push_back(pod("2000", start_process(), kSmall));
  take_in(sandboxes);
  EXPECT_TRUE(is_known("2000"));
  end_processes();
  int rounds = 0;
  while (is_known("2000") && rounds < 10) {
    housekeep();
    ++rounds;
  }
  EXPECT_LE(rounds, 3);
}

TEST_F(ListedTest, IsTendedWhereAnEarlierOneHasTakenItIn) {
  run_pod(kSmall);
  Plugin next{configuration(), metrics()};
  ASSERT_TRUE(next.synchronize(state_of({pod_})));
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
    auto facts = sandbox_facts(event_of(pod(uid, init, kSmall)).pod);
    EXPECT_TRUE(facts);
    const auto started = sys::start_time_of(init);
    EXPECT_TRUE(started && *started);
    return {.facts = std::move(*facts),
            .init = {.pid = init, .start_time = **started},
            .sandbox = "sandbox-" + uid};
  }
  /// The pods with these uids, to be taken in.
  template <class... Uid>
  [[nodiscard]] app::Synchronization taking(const Uid&... uids) {
    return {std::vector{told(uids)...},
            [this](const Error& error) { configuration().log().error(error.message); }};
  }
  [[nodiscard]] Result<bool> resume(app::Synchronization& taking,
                                    std::optional<milliseconds> at_most = kOneOnly,
                                    std::string_view sandbox = {}) {
    return taking.resume(settings(), configuration().log(),
                         {.ids = {}, .listener = {Pid{::getpid()}, {}}},
                         {.at_most = at_most, .sandbox = sandbox, .timeouts = {.clock = &clock()}});
  }
  /// The same, which is to be the last piece.
  void finish(app::Synchronization& taking) {
    const auto done = resume(taking, milliseconds{60'000});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(*done);
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
      expect_pod(kSmall, uid);
    }
    auto store = lock();
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_FALSE(store->dirty());
    EXPECT_EQ(store->node().sums.burstable.pods, uids.size());
  }
};

TEST_F(SynchronizationTest, LetsOthersInBetweenTwoPieces) {
  auto three = taking("1", "2", "3");
  std::vector<std::string> known;
  for (const char* uid : {"1", "2", "3"}) {
    const auto done = resume(three);
    ASSERT_TRUE(done) << done.error().message;
    known.emplace_back(uid);
    EXPECT_EQ(*done, known.size() == three.size());
    expect_known(known);
  }
  EXPECT_EQ(three.size(), 3U);
}

TEST_F(SynchronizationTest, TakesAllAtOnceWhereThereIsTime) {
  auto three = taking("1", "2", "3");
  finish(three);
  expect_known({"1", "2", "3"});
}

TEST_F(SynchronizationTest, PassesOverWhatHasEndedMeanwhile) {
  auto three = taking("1", "2", "3");
  ASSERT_TRUE(resume(three));
  // One before, one behind what comes next.
  for (const char* gone : {"sandbox-1", "sandbox-2", "sandbox-of-another"})
    three.forget(gone);
  finish(three);
  expect_known({"1", "3"});
}

TEST_F(SynchronizationTest, ReleasesFirstWhatIsGone) {
  auto before = taking("1");
  ASSERT_TRUE(resume(before));
  end_processes();
  auto later = taking("2", "3");
  // It looks which pods there are, and at each of them, before it takes in others.
  for (int piece = 0; piece < 2; ++piece)
    ASSERT_TRUE(resume(later));
  EXPECT_FALSE(is_known("1"));
  EXPECT_FALSE(is_known("2"));
  ASSERT_TRUE(resume(later));
  expect_known({"2"});
}

TEST_F(SynchronizationTest, FailsForThePodAloneWhoseRecordCannotBeRead) {
  auto four = taking("1", "2", "3", "4");
  ASSERT_TRUE(resume(four));
  const std::filesystem::path in_the_way = temporary().path("state/pods/2.json");
  std::filesystem::create_directory(in_the_way);
  while (true) {
    const auto done = resume(four);
    ASSERT_TRUE(done) << done.error().message;
    if (*done) break;
  }
  std::filesystem::remove(in_the_way);
  EXPECT_THAT(log(), HasSubstr("sandbox-2"));
  EXPECT_THAT(log(), Not(HasSubstr("interrupted")));
  EXPECT_TRUE(is_known("4"));
  auto store = lock();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_FALSE(store->dirty());
  EXPECT_THAT(store->take_interrupted(), IsEmpty());
}

TEST_F(SynchronizationTest, TakesOnePodBeforeTheOthers) {
  auto four = taking("1", "2", "3", "4");
  ASSERT_TRUE(resume(four));
  EXPECT_TRUE(four.awaits("sandbox-3"));
  const auto done = resume(four, std::nullopt, "sandbox-3");
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_FALSE(*done);
  EXPECT_FALSE(four.awaits("sandbox-3"));
  expect_known({"1", "3"});
  EXPECT_FALSE(is_known("2"));
}

TEST_F(SynchronizationTest, GoesOnAfterALockThatWasNotToBeHad) {
  auto two = taking("1", "2");
  ASSERT_TRUE(resume(two));
  {
    const auto held = lock();
    ASSERT_TRUE(held);
    const auto refused = resume(two);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kTimeout);
  }
  finish(two);
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
    ASSERT_TRUE(tell_contended(kRunPodSandbox, pod("other", start_process(), kSmall)));
  }
  [[nodiscard]] bool tell_contended(Request request, const api::PodSandbox& pod,
                                    const api::Container& container = {}) {
    return contended().handle(request, event_of(pod, container), kNoBudget).has_value();
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
                                                         const api::Container& app) {
    EXPECT_TRUE(contended().synchronize(state_of({pod_})));
    return waited(time, [&] { EXPECT_TRUE(tell_contended(kStartContainer, pod_, app)); });
  }

 private:
  ContendedClock clock_;
  std::optional<Plugin> contended_;
};

constexpr auto kForEver = std::chrono::hours{24};

/// The runtime waits 2 s for each request, and half of that is for the work.
TEST_F(DeadlineTest, OfAStartIncludesTheSynchronizationOfItsPod) {
  pod_ = pod("1", start_process(), kSmall);
  auto running = at(pod_path("burstable", "1") + "/app-of-1", app(kSmall));
  run(running);
  EXPECT_EQ(waited_at_start(600ms, running), 1s);
}

TEST_F(DeadlineTest, OfAStartHoldsWhereTheLockIsNeverFree) {
  pod_ = pod("1", start_process(), kSmall);
  auto running = app(kSmall);
  running.set_pid(static_cast<std::uint32_t>(start_process().value()));
  EXPECT_EQ(waited_at_start(kForEver, running), 1s);
}

TEST_F(DeadlineTest, OfARemovedSandboxIncludesItsContainers) {
  for (const char* name : {"app", "log", "probe"})
    ASSERT_TRUE(tell_contended(kCreateContainer, pod_, app(kSmall, name)));
  EXPECT_EQ(waited(400ms, [&] { EXPECT_TRUE(tell_contended(kRemovePodSandbox, pod_)); }), 1s);
}

class HousekeepingDeadlineTest : public DeadlineTest {
 protected:
  void SetUp() override {
    DeadlineTest::SetUp();
    if (IsSkipped()) return;
    housekeep(contended());
    for (int i = 0; i < 16; ++i)
      ASSERT_TRUE(tell_contended(kRunPodSandbox, pod(std::to_string(i), start_process(), kSmall)));
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
