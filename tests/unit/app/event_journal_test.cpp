// Which events the journal has of what happens on a node.

#include <sys/stat.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/core/events/event.h"
#include "common/store/event_file.h"
#include "common/store/state_directory.h"
#include "tests/unit/app/fake_node.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::app {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using enum core::EventKind;

auto event(core::EventKind kind, const std::string& text) {
  return AllOf(Field(&core::Event::kind, kind), Field(&core::Event::text, HasSubstr(text)));
}

const FakeContainer kJournaled{
    .id = "web", .uid = "a", .annotations = {{"podqos.io/requests.web", "cpu=100m,memory=64Mi"}}};

class EventJournal : public ::testing::Test {
 protected:
  EventJournal() {
    auto opened = store::make_state_directory(temporary_.path());
    EXPECT_TRUE(opened);
    state_.push_back(std::move(*opened));
    node_.state = state_.data();
  }
  [[nodiscard]] std::vector<core::Event> journal() const {
    const auto list = store::read_events(temporary_.path());
    EXPECT_TRUE(list) << list.error().message;
    return list ? list->events : std::vector<core::Event>{};
  }
  /// Those since the last call.
  [[nodiscard]] std::vector<core::Event> news() {
    const std::vector<core::Event> all = journal();
    std::vector<core::Event> found{all.begin() + static_cast<std::ptrdiff_t>(seen_), all.end()};
    seen_ = all.size();
    return found;
  }

  TemporaryDirectory temporary_;
  std::vector<sys::Directory> state_;
  FakeNode node_{core::CgroupVersion::kV2};
  std::size_t seen_ = 0;
};

TEST_F(EventJournal, TellsThePlacingAndTheReleaseOfAPod) {
  node_.run(kJournaled, Pid{10});
  node_.stop(kJournaled, Pid{10});
  const auto events = journal();
  ASSERT_THAT(events, ElementsAre(event(kPlaced,
                                        "Burstable, cpu 100m, memory 64Mi requested, at "
                                        "/podqos/kubepods/burstable/poda/web"),
                                  event(kReleased, "released, Burstable: cpu 100m, memory 64Mi")));
  EXPECT_GT(events[0].time, UnixMillis{0});
  EXPECT_EQ(events[0].program, "test");
  EXPECT_EQ(events[0].uid, "a");
  EXPECT_EQ(events[0].container, "web");
  EXPECT_EQ(events[0].container_id, "web");
  EXPECT_EQ(events[0].qos_class, core::QosClass::kBurstable);
  EXPECT_EQ(events[0].cgroup, "/podqos/kubepods/burstable/poda/web");
  EXPECT_EQ(events[1].cgroup, "/podqos/kubepods/burstable/poda");
  EXPECT_EQ(events[1].container, "");
}

/// As where no cgroup can be made: whoever called tells why.
TEST_F(EventJournal, TellsOfNoReleaseOfAPodThatWasNeverPlaced) {
  node_.refuses = [](const std::string& change) {
    return change == "mkdir  /podqos/kubepods/burstable/poda";
  };
  ASSERT_FALSE(node_.admit(kJournaled));
  EXPECT_THAT(journal(), IsEmpty());
}

TEST_F(EventJournal, TellsOfAContainerThatStartedElsewhere) {
  node_.tree.make("/elsewhere");
  node_.tree.start(Pid{10}, "/elsewhere");
  ASSERT_TRUE(node_.report_start(kJournaled, node_.started(Pid{10}), Reporter::kHook));
  EXPECT_THAT(journal(), ElementsAre(event(kRegistered, "Burstable"),
                                     event(kMisplaced,
                                           "runs in cgroup /elsewhere, not in /podqos/kubepods/"
                                           "burstable/poda/web: register podqos-runtime")));
}

TEST_F(EventJournal, TellsOfAContainerThatItsRuntimePutElsewhere) {
  ASSERT_TRUE(node_.admit(kJournaled));
  node_.tree.make("/elsewhere");
  node_.tree.start(Pid{10}, "/elsewhere");
  ASSERT_TRUE(node_.confirm(kJournaled, Pid{10}));
  EXPECT_THAT(journal(), ElementsAre(event(kPlaced, ""), event(kMisplaced,
                                                               "the runtime put it into cgroup "
                                                               "/elsewhere")));
}

TEST_F(EventJournal, TellsOnceOfWhatAReconciliationFindsEachTime) {
  node_.run(kJournaled, Pid{10});
  node_.tree.make("/mine");
  node_.tree.processes.at(Pid{10}).cgroup = "/mine";
  seen_ = journal().size();
  ASSERT_TRUE(node_.reconcile());
  ASSERT_TRUE(node_.reconcile());
  const auto found = news();
  ASSERT_THAT(found, ElementsAre(event(kMoved, "moved container web to cgroup /mine")));
  EXPECT_EQ(found[0].container_id, "web");
}

TEST_F(EventJournal, TellsWhichValueWasCorrected) {
  node_.run(kJournaled, Pid{10});
  seen_ = journal().size();
  ASSERT_TRUE(node_.reconcile());
  EXPECT_THAT(news(), IsEmpty());
  node_.tree.cgroups.at("/podqos/kubepods/burstable/poda").files.at("cpu.weight") = "7";
  ASSERT_TRUE(node_.reconcile());
  EXPECT_THAT(news(), ElementsAre(event(kCorrected, "cpu.weight: 7 → 4")));
}

TEST_F(EventJournal, TellsOfAPodWhoseEndWasMissed) {
  node_.run(kJournaled, Pid{10});
  node_.tree.end(Pid{10});
  seen_ = journal().size();
  ASSERT_TRUE(node_.reconcile());
  EXPECT_THAT(news(), ElementsAre(event(kReleased, "its end was not reported")));
}

TEST_F(EventJournal, HasNothingOfAPreview) {
  node_.run(kJournaled, Pid{10});
  node_.tree.end(Pid{10});
  seen_ = journal().size();
  const auto preview = node_.preview();
  ASSERT_TRUE(preview);
  EXPECT_EQ(preview->report.released, 1);
  EXPECT_THAT(news(), IsEmpty());
}

TEST_F(EventJournal, DoesNotKeepAContainerFromStarting) {
  node_.settings.log_sink = temporary_.path("log");
  ASSERT_EQ(::mkdir(temporary_.path("events").c_str(), 0700), 0);
  node_.run(kJournaled, Pid{10});
  EXPECT_THAT(temporary_.read("log"),
              HasSubstr(cat("warning: event not recorded: open ", temporary_.path("events"))));
}

TEST_F(EventJournal, IsNotWrittenWhereItIsSwitchedOff) {
  node_.settings.events_size = Bytes{0};
  node_.run(kJournaled, Pid{10});
  EXPECT_FALSE(temporary_.has("events"));
}

core::Settings settings_in(const TemporaryDirectory& temporary) {
  core::Settings settings;
  settings.state_dir = temporary.path("state");
  settings.log_sink = temporary.path("log");
  return settings;
}

TEST(LogFailure, MakesTheStateDirectoryAndTellsWhatIsKnownOfTheContainer) {
  const TemporaryDirectory temporary;
  Log log{"podqos-hook", settings_in(temporary)};
  log.set_subject({.pod_name = "front", .uid = "42", .container_id = "other"});
  log.failure({.kind = kRefused, .container_id = "c1", .text = "no room"}, "container c1: ");
  const auto list = store::read_events(temporary.path("state"));
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_THAT(list->events, ElementsAre(event(kRefused, "no room")));
  EXPECT_EQ(list->events[0].pod_name, "front");
  EXPECT_EQ(list->events[0].uid, "42");
  EXPECT_EQ(list->events[0].container_id, "c1");
  EXPECT_THAT(temporary.read("log"), HasSubstr("error: container c1: no room\n"));
}

TEST(LogFailure, MakesNothingWhereTheConfigurationIsNotKnown) {
  const TemporaryDirectory temporary;
  Log log{"podqos-hook", settings_in(temporary)};
  log.use_existing_state();
  log.failure({.kind = kFailed, .text = "broken"});
  EXPECT_FALSE(temporary.has("state"));
  ASSERT_TRUE(store::make_state_directory(temporary.path("state")));
  log.failure({.kind = kFailed, .text = "broken"});
  EXPECT_TRUE(temporary.has("state/events"));
}

TEST(LogFailure, IsOnlyLoggedWhereOthersOwnTheStateDirectory) {
  const TemporaryDirectory temporary;
  ASSERT_EQ(::mkdir(temporary.path("state").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(temporary.path("state").c_str(), 0777), 0);
  Log log{"podqos-hook", settings_in(temporary)};
  log.failure({.kind = kFailed, .text = "refused"});
  EXPECT_FALSE(temporary.has("state/events"));
  EXPECT_THAT(temporary.read("log"), HasSubstr("error: refused\n"));
}

}  // namespace
}  // namespace podqos::app
