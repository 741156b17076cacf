#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/engine_events.h"
#include "common/store/store.h"
#include "common/sys/process.h"
#include "nri/facts.h"
#include "tests/unit/nri/plugin_fixture.h"

namespace podqos::nri {
namespace {

using std::chrono::milliseconds;
using test::kSmall;
using test::PluginTest;
using ::testing::HasSubstr;
using ::testing::Not;

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
    return {.facts = std::move(*facts),
            .process = {.init = init, .runtime = init, .start_time = **started}};
  }
  [[nodiscard]] app::Synchronization::Failed failed() {
    return [this](const Error& error) { configuration().log().error(error.message); };
  }
  [[nodiscard]] Result<bool> resume(app::Synchronization& taking, milliseconds at_most = kOneOnly) {
    return taking.resume(settings(), configuration().log(), {.pid = Pid{::getpid()}, .ids = {}},
                         at_most, {.clock = &clock()});
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
  const auto done = taking.run_pod(settings(), configuration().log(),
                                   {.pid = Pid{::getpid()}, .ids = {}}, "sandbox-3");
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

}  // namespace
}  // namespace podqos::nri
