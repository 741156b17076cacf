#include "nri/deferred_events.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using test::kLarge;
using test::kSmall;
using test::PluginTest;
using test::tell;
using test::text_of;
using test::Told;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DeferredEventsTest : public ::testing::Test {
 protected:
  using Kind = DeferredEvent::Kind;

  static DeferredEvent event(Kind kind, const std::string& id) {
    DeferredEvent event{.kind = kind, .event = {}};
    event.event.facts.id = id;
    return event;
  }
  /// A start of "a", a change of "b" and an end of "c".
  void defer_each() {
    events_.defer(event(Kind::kStarted, "a"));
    events_.defer(event(Kind::kChanged, "b"));
    events_.defer(event(Kind::kEnded, "c"));
  }
  /// Applies what is deferred, each with the same result.
  bool apply(const Result<bool>& result) {
    result_ = result;
    return events_.apply({.deadline = clock_.now() + at_most_});
  }
  /// Defers a change with an annotation of this length.
  void defer(const std::string& id, std::size_t length) {
    DeferredEvent annotated = event(Kind::kChanged, id);
    annotated.event.facts.annotations.emplace("podqos.io/pod", std::string(length, 'x'));
    events_.defer(annotated);
  }

  LeapingClock clock_;
  Result<bool> result_ = true;
  DeferredEvents events_{clock_,
                         [this](const DeferredEvent& event, const app::Timeouts&) {
                           const auto& facts = event.event.facts;
                           applied_.push_back(facts.id);
                           shares_.push_back(facts.resources.cpu_shares.value_or(0));
                           clock_.pass(takes_);
                           return result_;
                         },
                         [this](const DeferredEvent& event, const Error& error) {
                           dropped_.push_back(event.event.facts.id);
                           reason_ = error.message;
                         }};
  std::chrono::milliseconds takes_{0};
  std::chrono::milliseconds at_most_{500};
  std::vector<std::string> applied_;
  std::vector<std::int64_t> shares_;
  std::vector<std::string> dropped_;
  std::string reason_;  ///< of the last one that was dropped
};

TEST_F(DeferredEventsTest, AreAppliedInTheirOrderOnce) {
  defer_each();
  events_.defer(event(Kind::kEnded, "c"));
  EXPECT_TRUE(apply(true));
  EXPECT_TRUE(apply(true));
  EXPECT_THAT(applied_, ElementsAre("a", "b", "c"));
}

TEST_F(DeferredEventsTest, WaitBehindOneThatHasWaitedInVain) {
  events_.defer(event(Kind::kStarted, "a"));
  events_.defer(event(Kind::kEnded, "b"));
  for (int i = 0; i < 30; ++i)
    EXPECT_FALSE(apply(fail(ErrorCode::kTimeout, "locked")));
  EXPECT_THAT(dropped_, ElementsAre("a"));
  EXPECT_FALSE(apply(fail(ErrorCode::kTimeout, "locked")));
  EXPECT_EQ(applied_.back(), "b");
}

TEST_F(DeferredEventsTest, AreNotTriedAgainAfterAnotherErrorUnlessTheyAreEnds) {
  events_.defer(event(Kind::kChanged, "a"));
  events_.defer(event(Kind::kEnded, "b"));
  EXPECT_TRUE(apply(fail(ErrorCode::kIo, "broken")));
  EXPECT_THAT(dropped_, ElementsAre("a"));
  for (int i = 1; i < 30; ++i)
    EXPECT_TRUE(apply(fail(ErrorCode::kIo, "broken")));
  EXPECT_THAT(dropped_, ElementsAre("a", "b"));
}

TEST_F(DeferredEventsTest, OfWhatHasEndedAreDroppedWithoutAWord) {
  events_.defer(event(Kind::kChanged, "a"));
  EXPECT_TRUE(apply(fail(ErrorCode::kNotFound, "gone")));
  EXPECT_TRUE(apply(true));
  EXPECT_THAT(applied_, ElementsAre("a"));
  EXPECT_TRUE(dropped_.empty());
}

TEST_F(DeferredEventsTest, WaitForTheNextRoundAfterTheDeadline) {
  takes_ = std::chrono::milliseconds{100};
  at_most_ = std::chrono::milliseconds{150};
  defer_each();
  EXPECT_FALSE(apply(true));
  EXPECT_THAT(applied_, ElementsAre("a", "b"));
  EXPECT_TRUE(apply(true));
  EXPECT_THAT(applied_, ElementsAre("a", "b", "c"));
}

TEST_F(DeferredEventsTest, AreKeptHoweverManyThereAre) {
  for (int i = 0; i < 300; ++i)
    defer(std::to_string(i), 1'000);
  defer("large", 256 << 10U);
  EXPECT_TRUE(apply(true));
  EXPECT_EQ(applied_.size(), 301U);
}

TEST_F(DeferredEventsTest, TakeNoMoreMemoryForLongAnnotationsThanIsGivenForThem) {
  for (int i = 0; i < 31; ++i)
    defer(cat("large", i), 256 << 10U);
  EXPECT_THAT(dropped_, IsEmpty());
  defer("one too many", 256 << 10U);
  defer("small", 1'000);
  EXPECT_THAT(dropped_, ElementsAre("one too many"));
  EXPECT_THAT(reason_, AllOf(HasSubstr("one too many"), HasSubstr("262157 bytes")));
}

TEST_F(DeferredEventsTest, AreReportedIfTheyFailBeforeALaterOne) {
  for (const Result<bool>& result : {Result<bool>{true},
                                     {fail(ErrorCode::kNotFound, "gone")},
                                     {fail(ErrorCode::kIo, "broken")}}) {
    EXPECT_THAT(dropped_, IsEmpty());
    events_.defer(event(Kind::kStarted, "a"));
    result_ = result;
    ASSERT_TRUE(events_.apply_before(event(Kind::kChanged, "a"), {}));
  }
  EXPECT_THAT(dropped_, ElementsAre("a"));
}

/// The lock is still held when the start is tried again, so that it stays.
TEST_F(DeferredEventsTest, AreOneOfAKindForEachContainer) {
  events_.defer(event(Kind::kStarted, "a"));
  result_ = fail(ErrorCode::kTimeout, "locked");
  for (const std::int64_t shares : {2, 102, 204}) {
    DeferredEvent change = event(Kind::kChanged, "a");
    change.event.facts.resources.cpu_shares = shares;
    ASSERT_FALSE(events_.apply_before(change, {}));
    events_.defer(change);
  }
  events_.defer(event(Kind::kChanged, "b"));
  applied_.clear();
  shares_.clear();
  EXPECT_TRUE(apply(true));
  EXPECT_THAT(applied_, ElementsAre("a", "a", "b"));
  EXPECT_THAT(shares_, ElementsAre(0, 204, 0));
}

TEST_F(DeferredEventsTest, OfAContainerThatDoesNotEndAreReported) {
  events_.defer(event(Kind::kEnded, "a"));
  for (int i = 0; i < 30; ++i)
    EXPECT_TRUE(apply(false));
  EXPECT_EQ(reason_, "container a has not ended");
}

/// All that runs is reported anew, and what ended is missing there; of changes nothing is said.
TEST_F(DeferredEventsTest, GiveWayToASynchronizationButForChanges) {
  defer_each();
  events_.keep_changes();
  EXPECT_TRUE(apply(true));
  EXPECT_THAT(applied_, ElementsAre("b"));
}

/// Another process holds the lock, for longer than the plugin waits.
class LockedPluginTest : public PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    if (IsSkipped()) return;
    // Makes the state directory.
    ASSERT_TRUE(ask(kRunPodSandbox, pod("other", start_process(), kSmall)));
    lock();
  }
  void TearDown() override {
    unlock();
    PluginTest::TearDown();
  }
  void lock() {
    file_ = ::open(temporary().path("state/lock").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file_, 0);
    ASSERT_EQ(::flock(file_, LOCK_EX | LOCK_NB), 0);
  }
  void unlock() {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }
  /// What happens before the lock is taken. A process that starts then does not inherit it.
  template <class Work>
  auto before_lock(Work work) {
    unlock();
    auto done = work();
    lock();
    return done;
  }
  /// A container of pod_ that has started.
  [[nodiscard]] api::Container started_before_lock() {
    return before_lock([this] { return started(app(kSmall)); });
  }
  /// One that runs in its place, of which nothing is known.
  [[nodiscard]] api::Container running_before_lock(const Told& told,
                                                   std::string_view tier = "burstable") {
    return before_lock([&] {
      auto running = at(pod_path(tier, "1") + "/app-of-1", app(told));
      run(running);
      return running;
    });
  }
  void unlock_and_housekeep() {
    unlock();
    housekeep();
  }

 private:
  int file_ = -1;
};

TEST_F(LockedPluginTest, AnswersLongBeforeTheRuntimeGivesUpOrAsSoonAsItIsToldTo) {
  const auto begun = clock().now();
  const auto answer = create(pod_, app(kSmall));
  EXPECT_EQ(clock().now() - begun, 1s);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->ByteSizeLong(), 0U);
  EXPECT_THAT(log(), HasSubstr(temporary().path("state/lock")));
  reconfigure(R"(, "lockDeadline": "50ms", "onError": "reject")");
  const auto again = clock().now();
  const auto refused = create(pod_, app(kSmall));
  EXPECT_EQ(clock().now() - again, 50ms);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTimeout);
}

TEST_F(LockedPluginTest, FollowsAnUpdateOnceItCan) {
  ASSERT_TRUE(update(started_before_lock(), kLarge));
  expect_pod(kSmall);
  unlock_and_housekeep();
  expect_pod(kLarge);
}

TEST_F(LockedPluginTest, CountsAContainerOnceItCan) {
  ASSERT_TRUE(ask(kStartContainer, running_before_lock(kSmall)));
  unlock();
  EXPECT_FALSE(is_known("1"));
  housekeep();
  EXPECT_TRUE(is_known("1"));
}

TEST_F(LockedPluginTest, CountsAContainerWithLongAnnotationsOnceItCan) {
  pod_ = annotated(pod_, cat(R"({"containers": [{"name": "app", "args": [")",
                             std::string(100'000, 'x'), R"("]}]})"));
  ASSERT_TRUE(ask(kStartContainer, running_before_lock({}, "besteffort")));
  unlock_and_housekeep();
  EXPECT_TRUE(is_known("1"));
}

TEST_F(LockedPluginTest, ReportsAStartThatFailsBeforeALaterEvent) {
  const auto running = running_before_lock(kSmall);
  // What cannot be read does not matter until somebody is trusted.
  reconfigure(R"(, "trustAnnotations": "none")");
  ASSERT_TRUE(ask(kStartContainer, annotated(pod_, "{"), running));
  unlock();
  reconfigure("");
  ASSERT_TRUE(update(running, kLarge));
  EXPECT_THAT(log(), HasSubstr("error: deferred event: container app-of-1: "));
  EXPECT_THAT(text_of(metrics()),
              AllOf(HasSubstr("podqos_errors_total{code=\"invalid-argument\"} 1\n"),
                    HasSubstr("\npodqos_nri_dropped_events_total 1\n")));
}

/// Starts that wait for the lock have more annotations than are kept: 33 times 255 KiB.
TEST_F(LockedPluginTest, SaysAndCountsWhatItCannotKeep) {
  reconfigure(R"(, "lockDeadline": "10ms")");
  std::string containers =
      cat(R"({"name": "app0", "args": [")", std::string(255 << 10U, 'x'), "\"]}");
  for (int i = 1; i < 33; ++i)
    containers += cat(R"(,{"name":"app)", i, "\"}");
  pod_ = annotated(pod_, cat("{\"containers\":[", containers, "]}"));
  const Pid process = before_lock([this] { return start_process(); });
  for (int i = 0; i < 33; ++i) {
    auto running = app({}, cat("app", i));
    running.set_pid(static_cast<std::uint32_t>(process.value()));
    ASSERT_TRUE(ask(kStartContainer, running));
  }
  EXPECT_THAT(log(), AllOf(HasSubstr("deferred event: container app32-of-1: its annotations have"),
                           Not(HasSubstr("deferred event: container app31-of-1"))));
  EXPECT_THAT(text_of(metrics()), HasSubstr("\npodqos_nri_dropped_events_total 1\n"));
}

TEST_F(LockedPluginTest, LeavesWhatTheRuntimeHasNotDone) {
  const auto running = started_before_lock();
  reconfigure(R"(, "lockDeadline": "50ms", "onError": "reject")");
  ASSERT_FALSE(update(running, kLarge));
  unlock_and_housekeep();
  expect_pod(kSmall);
}

TEST_F(LockedPluginTest, RemovesTheEventsOfWhatHasEnded) {
  const auto running = started_before_lock();
  ASSERT_TRUE(update(running, kLarge));
  end_processes();
  ASSERT_TRUE(ask(kRemoveContainer, running));
  unlock_and_housekeep();
  EXPECT_FALSE(is_known("1"));
  EXPECT_THAT(log(), Not(HasSubstr("deferred event")));
}

/// An update says nothing of the start that came before it.
TEST_F(LockedPluginTest, KeepsTheStartThatAnUpdateFollows) {
  const auto running = before_lock([this] {
    auto created = placed(app(kSmall));
    run(created);
    return created;
  });
  ASSERT_TRUE(ask(kStartContainer, running));
  ASSERT_TRUE(update(running, kLarge));
  unlock_and_housekeep();
  expect_pod(kLarge);
  EXPECT_THAT(record(),
              AllOf(HasSubstr(cat("\"pid\":", running.pid())), Not(HasSubstr("pending"))));
}

/// A start says nothing of the update that came before it to one that is known.
TEST_F(LockedPluginTest, KeepsTheUpdateThatAStartFollows) {
  auto created = before_lock([this] { return placed(app(kSmall)); });
  ASSERT_TRUE(update(created, kLarge));
  unlock();
  run(created);
  tell(*created.mutable_linux()->mutable_resources(), kLarge);
  ASSERT_TRUE(ask(kStartContainer, created));
  housekeep();
  expect_pod(kLarge);
}

/// CRI-O starts a container also where the plugin answers its start with an error
/// (server/container_start.go: "NRI start failed for container", a warning).
TEST_F(LockedPluginTest, CountsWhatStartsInSpiteOfARefusal) {
  const auto running = before_lock([this] {
    run_pod(R"({"containers": [{"name": "app"}]})");
    reconfigure(R"(, "lockDeadline": "50ms", "onError": "reject")");
    auto created = placed(app());
    run(created);
    return created;
  });
  EXPECT_FALSE(ask(kStartContainer, running));
  unlock_and_housekeep();
  EXPECT_THAT(record(), HasSubstr(cat("\"pid\":", running.pid())));
}

}  // namespace
}  // namespace podqos::nri
