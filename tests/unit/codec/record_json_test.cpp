#include "common/codec/record_json.h"

#include <array>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::codec {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

core::PodRecord example_record() {
  core::PodRecord record;
  record.pod.uid = "42";
  record.pod.containers = {
      {.name = "a",
       .kind = core::ContainerKind::kApp,
       .resources = {.requests = {{"cpu", core::Quantity::from_milli(250)}}, .limits = {}}}};
  record.qos_class = core::QosClass::kBurstable;
  record.class_source = core::ClassSource::kShortForms;
  record.cgroup = "/kubepods/burstable/pod42";
  record.claimed = {.pods = 1, .cpu = MilliCpu{250}, .memory = Bytes{0}};
  record.granted = record.claimed;
  record.containers = {{.id = "c1",
                        .bundle = "/b",
                        .name = "a",
                        .state = core::ContainerState::kLive,
                        .pid = Pid{7},
                        .start_time = StartTime{99},
                        .cgroup = "/kubepods/burstable/pod42/c1"}};
  return record;
}

TEST(FormatPodRecord, WritesCompactJsonWithTheVersionFirst) {
  EXPECT_EQ(
      format_pod_record(example_record()),
      "{\"version\":1,\"writer\":\"" PODQOS_VERSION
      "\","
      R"("pod":{"uid":"42","name":"","namespace":"","containers":[{"name":"a","kind":"app",)"
      R"("resources":{"requests":{"cpu":"0.25"},"limits":{}}}],"initContainers":[],"ephemeralContainers":[],)"
      R"("overhead":{},"priorityClassName":"","static":false},"complete":false,"class":"Burstable",)"
      R"("classSource":"short-forms","uidSource":"engine","adopted":false,"sandboxId":"","cgroup":"/kubepods/burstable/pod42",)"
      R"("claimed":{"pods":1,"cpuMilli":250,"memoryBytes":0},"granted":{"pods":1,"cpuMilli":250,"memoryBytes":0},)"
      R"("containers":[{"id":"c1","bundle":"/b","name":"a","state":"live","pid":7,)"
      R"("startTime":99,"cgroup":"/kubepods/burstable/pod42/c1","sandbox":false}]})");
}

/// The words are part of the file format.
TEST(FormatPodRecord, NamesEveryEnumerator) {
  const auto expect_words = [](auto& field, const core::PodRecord& record,
                               const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      field = static_cast<std::remove_reference_t<decltype(field)>>(i);
      EXPECT_THAT(format_pod_record(record), HasSubstr(cat(":\"", words[i], "\""))) << i;
      EXPECT_EQ(*parse_pod_record(format_pod_record(record)), record) << words[i];
    }
  };
  core::PodRecord record = example_record();
  expect_words(record.containers[0].state, record, {"pending", "live"});
  expect_words(record.pod.containers[0].kind, record, {"app", "init", "sidecar", "ephemeral"});
  expect_words(record.qos_class, record, {"Guaranteed", "Burstable", "BestEffort"});
  expect_words(
      record.class_source, record,
      {"engine", "pod-annotation", "qos-annotation", "short-forms", "cri-sums", "inference"});
  expect_words(record.uid_source, record, {"engine", "cgroup", "annotation", "sandbox", "lone"});
}

TEST(FormatPodRecord, KeepsWhatBacksTheClaims) {
  core::PodRecord record = example_record();
  record.containers.front().backed_memory = Bytes{0};
  EXPECT_THAT(format_pod_record(record), HasSubstr(R"("sandbox":false,"backedMemoryBytes":0})"));
  EXPECT_EQ(*parse_pod_record(format_pod_record(record)), record);
}

TEST(FormatPodRecord, KeepsWhatTheEngineSaysOfThePod) {
  core::PodRecord record = example_record();
  record.sums = {
      .resources = {.requests = {}, .limits = {{"memory", core::Quantity::from_units(4096)}}},
      .enforced = true};
  EXPECT_EQ(*parse_pod_record(format_pod_record(record)), record);
}

TEST(FormatTiers, KeepsTheFormulaOfTheRuntime) {
  core::TiersRecord record;
  EXPECT_THAT(format_tiers(record), Not(HasSubstr("weightFormula")));
  record.weight_formula = core::WeightFormula::kLog;
  EXPECT_THAT(format_tiers(record), HasSubstr(R"("weightFormula":"log")"));
  EXPECT_EQ(*parse_tiers(format_tiers(record)), record);
  record.weight_formula = core::WeightFormula::kLinear;
  EXPECT_THAT(format_tiers(record), HasSubstr(R"("weightFormula":"linear")"));
  EXPECT_EQ(*parse_tiers(format_tiers(record)), record);
}

TEST(ParseTiers, RefusesAFormulaThatItDoesNotKnow) {
  std::string text = format_tiers({});
  text.insert(text.size() - 1, R"(,"weightFormula":"cubic")");
  const auto parsed = parse_tiers(text);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(parsed.error().message, HasSubstr("\"cubic\": unknown value"));
}

/// Random values of every field, the ugly ones first.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  unsigned below(unsigned end) { return static_cast<unsigned>(engine_() % end); }
  bool flag() { return below(2) == 0; }
  std::int64_t number() {
    constexpr std::array<std::int64_t, 6> kNumbers{0, 1, -1, kInt64Max, kInt64Min, 4096};
    return below(2) == 0 ? kNumbers.at(below(kNumbers.size()))
                         : static_cast<std::int64_t>(engine_());
  }
  std::string text() {
    constexpr std::array<std::string_view, 9> kPieces{
        "a", "/", "\"\\", "\n", "\xc3\xa9", "\xf4\x8f\xbf\xbf", "\x7f"};
    std::string out;
    for (unsigned i = below(5); i > 0; --i)
      out += kPieces.at(below(kPieces.size()));
    if (below(10) == 0) out += '\0';
    return out;
  }
  core::ResourceList list() {
    constexpr std::array<std::string_view, 6> kQuantities{
        "0", "-0.000000001", "123456789.987654321", "99999999999999999999999999999", "7Ei", "250m"};
    core::ResourceList out;
    for (unsigned i = below(4); i > 0; --i) {
      out.emplace(text(), core::Quantity::parse(kQuantities.at(below(kQuantities.size()))).value());
    }
    return out;
  }
  core::Resources resources() { return {.requests = list(), .limits = list()}; }
  std::vector<core::Container> containers() {
    std::vector<core::Container> out(below(4));
    for (auto& container : out) {
      container = {.name = text(),
                   .kind = static_cast<core::ContainerKind>(below(4)),
                   .resources = resources()};
    }
    return out;
  }
  core::QosClass qos_class() { return static_cast<core::QosClass>(below(3)); }
  core::Pod pod() {
    core::Pod out;
    out.uid = text();
    out.name = text();
    out.pod_namespace = text();
    out.containers = containers();
    out.init_containers = containers();
    out.ephemeral_containers = containers();
    if (flag()) out.resources = resources();
    out.overhead = list();
    if (flag()) out.priority = number();
    out.priority_class_name = text();
    if (flag()) out.status_qos_class = qos_class();
    out.is_static = flag();
    return out;
  }
  core::TierSum sum() {
    return {.pods = number(), .cpu = MilliCpu{number()}, .memory = Bytes{number()}};
  }
  core::ContainerRecord container_record() {
    core::ContainerRecord out;
    out.id = text();
    out.bundle = text();
    out.name = text();
    out.state = static_cast<core::ContainerState>(below(2));
    out.pid = Pid{number()};
    out.start_time = StartTime{number()};
    out.cgroup = text();
    out.sandbox = flag();
    if (flag()) out.backed_memory = Bytes{number()};
    return out;
  }
  core::PodRecord pod_record() {
    core::PodRecord out;
    out.pod = pod();
    out.complete = flag();
    if (!out.complete) out.pod.resources.reset();
    if (flag()) out.sums = {.resources = resources(), .enforced = flag()};
    out.qos_class = qos_class();
    out.class_source = static_cast<core::ClassSource>(below(6));
    out.uid_source = static_cast<core::IdentitySource>(below(5));
    out.adopted = flag();
    out.sandbox_id = text();
    out.cgroup = text();
    out.claimed = sum();
    out.granted = sum();
    for (unsigned i = below(4); i > 0; --i)
      out.containers.push_back(container_record());
    if (flag()) out.released_at = BootSeconds{number()};
    return out;
  }
  core::TiersRecord tiers() {
    core::TiersRecord out;
    out.sums = {.guaranteed = sum(), .burstable = sum(), .besteffort = sum()};
    out.sums.requested = sum();
    out.sums.adopted = {.pods = number(), .cpu = MilliCpu{number()}, .memory = Bytes{number()}};
    for (unsigned i = below(4); i > 0; --i) {
      out.pending.push_back({.uid = text(),
                             .id = text(),
                             .bundle = text(),
                             .pid = Pid{number()},
                             .start_time = StartTime{number()}});
    }
    for (unsigned i = below(4); i > 0; --i)
      out.retained.push_back({.uid = text(), .until = BootSeconds{number()}, .cgroup = text()});
    for (unsigned i = below(4); i > 0; --i)
      out.cut.push_back({.uid = text(), .cpu = MilliCpu{number()}, .memory = Bytes{number()}});
    for (unsigned i = below(4); i > 0; --i)
      out.uncounted.push_back(text());
    for (unsigned i = below(3); i > 0; --i) {
      core::TreeRecord tree{.kubepods = text(), .top = text()};
      tree.sums = {.guaranteed = sum(), .burstable = sum(), .besteffort = sum()};
      out.trees.push_back(std::move(tree));
    }
    if (flag())
      out.weight_formula = flag() ? core::WeightFormula::kLinear : core::WeightFormula::kLog;
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

TEST(RecordProperty, EveryFieldSurvives) {
  constexpr unsigned kRuns = 500;
  for (unsigned seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    Random random{seed};
    const core::PodRecord record = random.pod_record();
    const std::string text = format_pod_record(record);
    const auto parsed = parse_pod_record(text);
    ASSERT_TRUE(parsed) << parsed.error().message << "\n" << text;
    ASSERT_EQ(*parsed, record) << text;
    ASSERT_EQ(format_pod_record(*parsed), text);

    const core::TiersRecord tiers = random.tiers();
    ASSERT_EQ(*parse_tiers(format_tiers(tiers)), tiers);
  }
}

TEST(RecordProperty, DamageFailsCleanlyOrParses) {
  const std::string whole = format_pod_record(example_record());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto parsed = parse_pod_record(std::string_view{whole}.substr(0, size));
    ASSERT_FALSE(parsed) << size;
    ASSERT_EQ(parsed.error().code, ErrorCode::kCorrupt) << size;
  }
  constexpr std::array<char, 9> kBytes{'\0', '"', '{', ']', '9', '-', ',', 'x', '\xff'};
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char byte : kBytes) {
      std::string damaged = whole;
      damaged[at] = byte;
      const auto parsed = parse_pod_record(damaged);
      const bool clean = parsed || parsed.error().code == ErrorCode::kCorrupt ||
                         parsed.error().code == ErrorCode::kUnsupported;
      ASSERT_TRUE(clean) << damaged;
    }
  }
}

TEST(CheckRecordSize, BoundsWhatAPodDescribes) {
  core::PodRecord record = example_record();
  core::Container& container = record.pod.containers.front();
  for (int i = 0; i < 50; ++i)
    container.resources.requests.emplace(cat("example.com/", i),
                                         core::Quantity::parse("1E").value());
  EXPECT_TRUE(check_record_size(record));
  record.pod.containers.resize(200, core::Container{container});
  const auto checked = check_record_size(record);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(checked.error().message, HasSubstr("bytes"));
}

TEST(CheckRecordSize, BoundsTheContainersThatLive) {
  core::PodRecord record = example_record();
  record.containers.front().bundle = std::string(100, 'b');
  record.containers.resize(200, core::ContainerRecord{record.containers.front()});
  EXPECT_TRUE(check_record_size(record));
  record.containers.resize(1000, core::ContainerRecord{record.containers.front()});
  EXPECT_FALSE(check_record_size(record));
}

struct RecordRefusal {
  std::string text;
  ErrorCode code;
  std::string message;
};

TEST(ParsePodRecord, SaysWhatIsWrong) {
  const std::string deep = std::string(5000, '[');
  const std::vector<RecordRefusal> cases = {
      {"", ErrorCode::kCorrupt, "malformed JSON"},
      {"[]", ErrorCode::kCorrupt, "version"},
      {"{}", ErrorCode::kCorrupt, "version: expected a number, found nothing"},
      {R"({"version":0})", ErrorCode::kCorrupt, "version 0 is invalid"},
      {R"({"version":1})", ErrorCode::kCorrupt, "pod: expected an object, found nothing"},
      {R"({"version":"1"})", ErrorCode::kCorrupt, "version: expected a number, found string"},
      {R"({"version":2,"writer":"9.9.9","pod":[]})", ErrorCode::kUnsupported,
       "written by podqos 9.9.9"},
      {R"({"version":2})", ErrorCode::kUnsupported, "use the newer release"},
      {deep, ErrorCode::kCorrupt, "nested"},
      {std::string(kMaxRecordSize + 1, ' '), ErrorCode::kCorrupt, "bytes"},
  };
  for (const auto& [text, code, message] : cases) {
    const auto parsed = parse_pod_record(text);
    ASSERT_FALSE(parsed) << text.substr(0, 80);
    EXPECT_EQ(parsed.error().code, code) << text.substr(0, 80);
    EXPECT_THAT(parsed.error().message, HasSubstr(message));
  }
}

TEST(ParsePodRecord, RefusesWhatACrashLeftBehindTheText) {
  // A file system may bring a file back at its old length, zeros in place of what was lost.
  const std::string whole = format_pod_record(example_record());
  for (const std::string& tail : {std::string(1, '\0'), std::string(512, '\0'), cat(" ", whole)}) {
    const auto parsed = parse_pod_record(whole + tail);
    ASSERT_FALSE(parsed) << tail.size();
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
  }
}

TEST(ParsePodRecord, PassesOverMembersThatItDoesNotKnow) {
  const core::PodRecord record = example_record();
  std::string text = format_pod_record(record);
  text.insert(text.size() - 1, R"(,"later":{"a":[1,2]})");
  EXPECT_EQ(parse_pod_record(text), record);
}

TEST(ParseTiers, RefusesRepeatedMembers) {
  EXPECT_FALSE(parse_tiers(R"({"version":1,"pending":[],"pending":[]})"));
  EXPECT_FALSE(parse_tiers(R"({"version":1,"retained":["a"]})"));
}

}  // namespace
}  // namespace podqos::codec
