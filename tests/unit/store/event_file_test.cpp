#include "common/store/event_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/codec/event_json.h"
#include "common/store/state_directory.h"
#include "tests/unit/child_process.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::store {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

core::Event event_with(std::string text) {
  return {.time = UnixMillis{1}, .kind = core::EventKind::kPlaced, .text = std::move(text)};
}

std::vector<std::string> texts_of(const EventList& list) {
  std::vector<std::string> texts;
  for (const core::Event& event : list.events)
    texts.push_back(event.text);
  return texts;
}

class EventFileTest : public ::testing::Test {
 protected:
  [[nodiscard]] sys::Directory state() const {
    auto directory = make_state_directory(temporary_.path());
    EXPECT_TRUE(directory) << directory.error().message;
    return std::move(*directory);
  }
  Status append(std::string text) { return writer_.append(state(), event_with(std::move(text))); }
  [[nodiscard]] EventList read() const {
    auto list = read_events(temporary_.path());
    EXPECT_TRUE(list) << list.error().message;
    return list.value_or(EventList{});
  }
  [[nodiscard]] struct stat status_of(std::string_view name) const {
    struct stat status{};
    EXPECT_EQ(::lstat(temporary_.path(name).c_str(), &status), 0);
    return status;
  }

  TemporaryDirectory temporary_;
  EventWriter writer_{Bytes{4 << 20}};
};

TEST_F(EventFileTest, HasTheEventsInTheirOrder) {
  ASSERT_TRUE(append("first"));
  ASSERT_TRUE(append("second"));
  EXPECT_THAT(texts_of(read()), ElementsAre("first", "second"));
  EXPECT_EQ(status_of("events").st_mode, S_IFREG | 0600U);
}

TEST_F(EventFileTest, TellsAFailureThatTwoHooksHaveOnce) {
  core::Event failure{.time = UnixMillis{1'000}, .kind = core::EventKind::kFailed, .text = "a"};
  const auto add = [&](std::int64_t time) {
    failure.time = UnixMillis{time};
    EXPECT_TRUE(writer_.append(state(), failure));
  };
  add(1'000);
  add(11'000);
  add(11'001);
  EXPECT_EQ(read().events.size(), 2U);
  failure.container_id = "other";
  add(11'002);
  failure.kind = core::EventKind::kReleased;
  add(11'003);
  add(11'004);
  EXPECT_EQ(read().events.size(), 5U);
}

TEST_F(EventFileTest, IsNotMadeWhereItsSizeIsZero) {
  EventWriter none{Bytes{0}};
  EXPECT_TRUE(none.append(state(), event_with("text")));
  EXPECT_FALSE(temporary_.has("events"));
  EXPECT_THAT(read().events, IsEmpty());
}

TEST_F(EventFileTest, IsEmptyWithoutAStateDirectory) {
  const auto list = read_events(temporary_.path("missing"));
  ASSERT_TRUE(list);
  EXPECT_THAT(list->events, IsEmpty());
}

TEST_F(EventFileTest, IsRenamedWhenItIsHalfFull) {
  writer_ = EventWriter{Bytes{2000}};
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(append(cat(i)));
  EXPECT_LE(status_of("events").st_size + status_of("events.1").st_size, 2000 + 200);
  const EventList list = read();
  EXPECT_EQ(list.damaged, 0U);
  EXPECT_GE(list.events.size(), 10U);
  // The newest ones are there, and those between them.
  for (std::size_t i = 0; i < list.events.size(); ++i)
    EXPECT_EQ(list.events[i].text, cat(100 - list.events.size() + i));
}

TEST_F(EventFileTest, IsMadeAgainWhenItWasRemoved) {
  ASSERT_TRUE(append("first"));
  ASSERT_EQ(::unlink(temporary_.path("events").c_str()), 0);
  ASSERT_TRUE(append("second"));
  EXPECT_THAT(texts_of(read()), ElementsAre("second"));
}

TEST_F(EventFileTest, LosesOneEventToAWriterThatDiedInIt) {
  ASSERT_TRUE(append("first"));
  const std::string line = codec::format_event(event_with("second"));
  temporary_.write("events", temporary_.read("events") + line.substr(0, line.size() / 2));
  ASSERT_TRUE(append("third"));
  const EventList list = read();
  EXPECT_THAT(texts_of(list), ElementsAre("first", "third"));
  EXPECT_EQ(list.damaged, 1U);
}

TEST_F(EventFileTest, MayHoldAnythingBetweenEvents) {
  const std::string line = codec::format_event(event_with("event"));
  temporary_.write("events", cat("\n\nnull\n", line, "{\"time\":\"\n", std::string(100'000, 'x'),
                                 line, std::string(100'000, '\0'), "\n", line));
  const EventList list = read();
  EXPECT_THAT(texts_of(list), ElementsAre("event", "event", "event"));
  EXPECT_EQ(list.damaged, 4U);
}

TEST_F(EventFileTest, GivesWayToAnotherWhenItIsFullOfGarbage) {
  temporary_.write("events", std::string(4 << 20, '\xff'));
  EXPECT_THAT(read().events, IsEmpty());
  ASSERT_TRUE(append("event"));
  EXPECT_THAT(texts_of(read()), ElementsAre("event"));
  EXPECT_EQ(status_of("events.1").st_size, 4 << 20);
}

TEST_F(EventFileTest, IsNotFollowedAsALink) {
  temporary_.write("target", "");
  ASSERT_EQ(::symlink("target", temporary_.path("events").c_str()), 0);
  const Status done = append("event");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr(temporary_.path("events")));
  EXPECT_EQ(temporary_.read("target"), "");
  const auto list = read_events(temporary_.path());
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().message, HasSubstr(temporary_.path("events")));
}

TEST_F(EventFileTest, DoesNotBlockAsAPipe) {
  ASSERT_EQ(::mkfifo(temporary_.path("events").c_str(), 0600), 0);
  const Status done = append("event");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kConflict);
  EXPECT_FALSE(read_events(temporary_.path()));
}

TEST_F(EventFileTest, StaysBoundedWhereItCannotBeRenamed) {
  ASSERT_EQ(::mkdir(temporary_.path("events.1").c_str(), 0700), 0);
  writer_ = EventWriter{Bytes{2000}};
  Status done;
  for (int i = 0; i < 100 && done; ++i)
    done = append(cat(i));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, StartsWith(cat("rename ", temporary_.path("events"))));
  EXPECT_LE(status_of("events").st_size, 1000 + 100);
}

TEST_F(EventFileTest, ReportsAFullFileSystem) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small file system";
  const int status = run_in_child([&] {
    ASSERT_TRUE(mount_private_tmpfs(temporary_.path().c_str(), "size=8k,mode=700"));
    Status done;
    for (int i = 0; i < 10 && done; ++i)
      done = append(std::string(3000, 'x'));
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, EndsWith("events: No space left on device"));
    EXPECT_THAT(read().events, ::testing::SizeIs(::testing::Ge(1U)));
  });
  EXPECT_EQ(status, 0);
}

TEST_F(EventFileTest, TakesEventsOfManyProcessesAtOnce) {
  constexpr int kWriters = 4;
  constexpr int kEvents = 500;
  // Each file takes some hundred events, both together all of them.
  const auto write_all = [&](int writer) {
    EventWriter own{Bytes{400'000}};
    const sys::Directory directory = state();
    for (int i = 0; i < kEvents; ++i) {
      if (!own.append(directory, event_with(cat(writer, " ", i)))) ::_exit(1);
    }
    ::_exit(0);
  };
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    children.push_back(::fork());
    if (children.back() == 0) write_all(writer);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const EventList list = read();
  EXPECT_EQ(list.damaged, 0U);
  std::vector<std::string> texts = texts_of(list);
  std::ranges::sort(texts);
  EXPECT_EQ(std::ranges::unique(texts).size(), 0U);
  EXPECT_EQ(texts.size(), std::size_t{kWriters} * kEvents);
}

TEST_F(EventFileTest, OfManyProcessesLosesOnlyTheOldest) {
  constexpr int kWriters = 4;
  constexpr int kEvents = 500;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    EventWriter own{Bytes{20'000}};
    const sys::Directory directory = state();
    for (int i = 0; i < kEvents; ++i) {
      if (!own.append(directory, event_with(cat(writer, " ", 1000 + i)))) ::_exit(1);
    }
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const EventList list = read();
  EXPECT_EQ(list.damaged, 0U);
  EXPECT_LT(list.events.size(), std::size_t{kWriters} * kEvents);
  // Of each writer those are left that it wrote last, without a gap.
  for (int writer = 0; writer < kWriters; ++writer) {
    std::vector<std::string> own;
    for (const std::string& text : texts_of(list)) {
      if (text.starts_with(cat(writer, " "))) own.push_back(text);
    }
    for (std::size_t i = 0; i < own.size(); ++i)
      EXPECT_EQ(own[i], cat(writer, " ", 1000 + kEvents - own.size() + i));
  }
  // While one program renames a full file the others write on to it, however slow that one is. The
  // programs that come after it keep to the size again.
  EventWriter later{Bytes{20'000}};
  const sys::Directory directory = state();
  for (int i = 0; i < kEvents; ++i)
    ASSERT_TRUE(later.append(directory, event_with("later")));
  EXPECT_LE(status_of("events").st_size + status_of("events.1").st_size, 20'500);
}

TEST_F(EventFileTest, IsReadOnFromWhereAReaderHasStopped) {
  auto reader = EventReader::open(temporary_.path());
  ASSERT_TRUE(reader);
  EXPECT_THAT(reader->next().value().events, IsEmpty());
  ASSERT_TRUE(append("first"));
  EXPECT_THAT(texts_of(reader->next().value()), ElementsAre("first"));
  EXPECT_THAT(reader->next().value().events, IsEmpty());
  ASSERT_TRUE(append("second"));
  const std::string line = codec::format_event(event_with("third"));
  const std::string text = temporary_.read("events");
  temporary_.write("events", text + line.substr(0, 20));
  EXPECT_THAT(texts_of(reader->next().value()), ElementsAre("second"));
  temporary_.write("events", text + line);
  EXPECT_THAT(texts_of(reader->next().value()), ElementsAre("third"));
}

TEST_F(EventFileTest, IsReadOnAfterItWasRenamed) {
  writer_ = EventWriter{Bytes{2000}};
  auto reader = EventReader::open(temporary_.path());
  ASSERT_TRUE(reader);
  std::vector<std::string> texts;
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(append(cat(i)));
    expected.push_back(cat(i));
    for (std::string& text : texts_of(reader->next().value()))
      texts.push_back(std::move(text));
  }
  EXPECT_EQ(texts, expected);
}

}  // namespace
}  // namespace podqos::store
