#include "common/codec/event_json.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/json_text.h"

namespace podqos::codec {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

core::Event placed() {
  return {.time = UnixMillis{482196050520},
          .kind = core::EventKind::kPlaced,
          .program = "podqos-hook",
          .engine = "docker",
          .pod_namespace = "web",
          .pod_name = "front",
          .uid = "42",
          .container = "app",
          .container_id = "8f27",
          .qos_class = core::QosClass::kBurstable,
          .cgroup = "/podqos/kubepods/burstable/pod42/8f27",
          .text = "Burstable, cpu 100m"};
}

TEST(FormatEvent, IsALineOfJson) {
  EXPECT_EQ(format_event(placed()),
            R"({"time":"1985-04-12T23:20:50.520Z","event":"placed","program":"podqos-hook",)"
            R"("engine":"docker","namespace":"web","name":"front","uid":"42",)"
            R"("container":{"id":"8f27","name":"app"},"class":"Burstable",)"
            R"("cgroup":"/podqos/kubepods/burstable/pod42/8f27","text":"Burstable, cpu 100m"})"
            "\n");
}

TEST(FormatEvent, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(format_event({.kind = core::EventKind::kReleased, .uid = "42"}),
            R"({"time":"1970-01-01T00:00:00.000Z","event":"released","uid":"42"})"
            "\n");
}

TEST(FormatEvent, IsOneLineWhateverTheTextHas) {
  core::Event event = placed();
  event.pod_name = "a\nb\x1b[2J";
  event.text = "forged\n{\"time\":\"1985\" \xff";
  const std::string line = format_event(event);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_TRUE(is_utf8(line));
  const auto parsed = parse_event(line);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->pod_name, "a\\x0ab\\x1b[2J");
  EXPECT_EQ(parsed->text, R"(forged\x0a{\"time\":\"1985\" \xff)");
  EXPECT_EQ(line.rfind(kEventStart), 0U);
}

TEST(FormatEvent, CutsTheTextWhereTheLineIsTooLong) {
  core::Event event = placed();
  for (const char* piece : {"x", "\"", "ü", "\n"}) {
    event.text.clear();
    for (int i = 0; i < 5000; ++i)
      event.text += piece;
    const std::string line = format_event(event);
    EXPECT_LE(line.size(), kMaxEventLine) << piece;
    EXPECT_GT(line.size(), kMaxEventLine - 16) << piece;
    EXPECT_THAT(line, EndsWith("…\"}\n"));
    const auto parsed = parse_event(line);
    ASSERT_TRUE(parsed) << piece;
    EXPECT_EQ(parsed->uid, "42");
  }
}

TEST(FormatEvent, CutsNamesAndPaths) {
  core::Event event = placed();
  for (std::string* value : {&event.program, &event.engine, &event.pod_namespace, &event.pod_name,
                             &event.uid, &event.container, &event.container_id, &event.cgroup})
    *value = std::string(5000, '"');
  const std::string line = format_event(event);
  // Each character takes two bytes: 2 · (7 · 256 + 1024) of them exceed the line without a text.
  EXPECT_THAT(line, Not(HasSubstr("text")));
  event.cgroup = "/a";
  EXPECT_LE(format_event(event).size(), kMaxEventLine);
}

TEST(ParseEvent, ReadsWhatIsFormatted) {
  EXPECT_EQ(parse_event(format_event(placed())), placed());
  const core::Event least{.time = UnixMillis{1}, .kind = core::EventKind::kReleased};
  EXPECT_EQ(parse_event(format_event(least)), least);
}

TEST(ParseEvent, IgnoresMembersThatItDoesNotKnow) {
  const auto event = parse_event(
      R"({"time":"1985-04-12T23:20:50.520Z","event":"moved","uid":"42","next":{"uid":"43"}})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, core::EventKind::kMoved);
  EXPECT_EQ(event->uid, "42");
}

TEST(ParseEvent, TakesNothingElse) {
  for (const char* line : {"", "{", "{}", "null", R"({"time":"1985-04-12T23:20:50.520Z"})",
                           R"({"time":"yesterday","event":"placed"})",
                           R"({"time":"1985-04-12T23:20:50.520Z","event":"celebrated"})",
                           R"({"time":"1985-04-12T23:20:50.520Z","event":"placed"}{)"})
    EXPECT_EQ(parse_event(line), std::nullopt) << line;
}

}  // namespace
}  // namespace podqos::codec
