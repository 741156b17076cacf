#include "common/codec/record_json.h"

#include <array>
#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
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
  record.capped_request = {.pods = 1, .cpu = MilliCpu{250}, .memory = Bytes{0}};
  record.counted_request = record.capped_request;
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
      R"("classSource":"short-forms","uidSource":"engine","kubeletsOwn":false,"sandboxId":"","cgroup":"/kubepods/burstable/pod42",)"
      R"("cappedRequest":{"pods":1,"cpuMilli":250,"memoryBytes":0},"countedRequest":{"pods":1,"cpuMilli":250,"memoryBytes":0},)"
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
  expect_words(record.engine.emplace(), record, {"podman", "docker", "containerd", "cri-o"});
}

/// Releases before this one did not write them.
TEST(ParsePodRecord, TakesOneWithoutEngineAndPodId) {
  core::PodRecord record = example_record();
  record.engine = core::Engine::kPodman;
  record.pod_id = "2f61";
  std::string text = format_pod_record(record);
  const std::string added = R"("podId":"2f61","engine":"podman",)";
  ASSERT_THAT(text, HasSubstr(added));
  text.erase(text.find(added), added.size());
  EXPECT_EQ(*parse_pod_record(text), example_record());
}

/// 0 differs from nothing.
TEST(FormatPodRecord, KeepsWhatBacksTheClaims) {
  core::PodRecord record = example_record();
  record.containers.front().backed_memory = Bytes{0};
  EXPECT_THAT(format_pod_record(record), HasSubstr(R"("sandbox":false,"backedMemoryBytes":0})"));
}

TEST(FormatNode, KeepsTheFormulaOfTheRuntime) {
  EXPECT_THAT(format_node({}), Not(HasSubstr("weightFormula")));
  for (const auto& [formula, word] : {std::pair{core::WeightFormula::kLog, "log"},
                                      std::pair{core::WeightFormula::kLinear, "linear"}}) {
    core::NodeState record;
    record.weight_formula = formula;
    EXPECT_THAT(format_node(record), HasSubstr(cat(R"("weightFormula":")", word, "\"")));
    EXPECT_EQ(*parse_node(format_node(record)), record);
  }
}

TEST(ParseNode, RefusesAFormulaThatItDoesNotKnow) {
  std::string text = format_node({});
  text.insert(text.size() - 1, R"(,"weightFormula":"cubic")");
  const auto parsed = parse_node(text);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(parsed.error().message, HasSubstr("\"cubic\": unknown value"));
}

/// Gives every field a random value, ugly ones among them.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  template <class... Fields>
  void fill(Fields&... fields) {
    (set(fields), ...);
  }

 private:
  unsigned below(unsigned end) { return static_cast<unsigned>(engine_() % end); }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + below(static_cast<unsigned>(values.size())));
  }

  void set(bool& out) { out = below(2) == 0; }
  void set(std::int64_t& out) {
    out = static_cast<std::int64_t>(engine_());
    if (below(2) == 0) out = one_of<std::int64_t>({0, 1, -1, kInt64Max, kInt64Min, 4096});
  }
  void set(std::string& out) {
    for (unsigned i = below(5); i > 0; --i)
      out += one_of<std::string>({"a", "/", "\"\\", "\n", "\xc3\xa9", "\xf4\x8f\xbf\xbf", "\x7f"});
    if (below(10) == 0) out += '\0';
  }
  void set(core::ResourceList& out) {
    for (unsigned i = below(4); i > 0; --i) {
      std::string name;
      set(name);
      out.emplace(name, core::Quantity::parse(
                            one_of<std::string>({"0", "-0.000000001", "123456789.987654321",
                                                 "99999999999999999999999999999", "7Ei", "250m"}))
                            .value());
    }
  }
  void set(core::ContainerState& out) { out = static_cast<core::ContainerState>(below(2)); }
  void set(core::ContainerKind& out) { out = static_cast<core::ContainerKind>(below(4)); }
  void set(core::QosClass& out) { out = static_cast<core::QosClass>(below(3)); }
  void set(core::ClassSource& out) { out = static_cast<core::ClassSource>(below(6)); }
  void set(core::IdentitySource& out) { out = static_cast<core::IdentitySource>(below(5)); }
  void set(core::Engine& out) { out = static_cast<core::Engine>(below(4)); }
  void set(core::WeightFormula& out) { out = static_cast<core::WeightFormula>(below(2)); }
  template <class Tag>
  void set(Unit<Tag>& out) {
    std::int64_t value = 0;
    set(value);
    out = Unit<Tag>{value};
  }
  template <class T>
  void set(std::optional<T>& out) {
    out.reset();
    if (below(2) == 0) set(out.emplace());
  }
  template <class T>
  void set(std::vector<T>& out) {
    out.resize(below(4));
    for (T& each : out)
      set(each);
  }

  // Each names all fields: a new one does not compile until it is filled too.
  void set(core::Resources& out) {
    auto& [requests, limits] = out;
    fill(requests, limits);
  }
  void set(core::EngineSums& out) {
    auto& [resources, enforced] = out;
    fill(resources, enforced);
  }
  void set(core::Container& out) {
    auto& [name, kind, resources] = out;
    fill(name, kind, resources);
  }
  void set(core::Pod& out) {
    auto& [uid, name, space, app, init, ephemeral, resources, overhead, priority, priority_class,
           status, is_static] = out;
    fill(uid, name, space, app, init, ephemeral, resources, overhead, priority, priority_class,
         status, is_static);
  }
  void set(core::TierSum& out) {
    auto& [pods, cpu, memory] = out;
    fill(pods, cpu, memory);
  }
  void set(core::ContainerRecord& out) {
    auto& [id, bundle, name, state, pid, start_time, pending_since, cgroup, sandbox, backed,
           memory_qos, throttling, stated] = out;
    auto& [min, low, high] = memory_qos;
    fill(id, bundle, name, state, pid, start_time, pending_since, cgroup, sandbox, backed, min, low,
         high, throttling, stated);
  }
  void set(core::OomLook& out) {
    auto& [node, at] = out;
    fill(node, at);
  }
  void set(core::OomKills& out) {
    auto& [reported, counted] = out;
    fill(reported, counted);
  }
  void set(core::Throttling& out) {
    auto& [events, since, last, raised] = out;
    fill(events, since, last, raised);
  }
  void set(core::PodRecord& out) {
    auto& [pod, complete, sums, qos_class, class_source, taken_back, uid_source, kubelets_own,
           cpu_burst, cpu_idle, sandbox_id, pod_id, engine, cgroup, capped, counted, containers,
           released_at, due, resizing, oom_look, oom_kills] = out;
    fill(pod, complete, sums, qos_class, class_source, taken_back, uid_source, kubelets_own,
         cpu_burst, cpu_idle, sandbox_id, pod_id, engine, cgroup, capped, counted, containers,
         released_at, due, resizing, oom_look, oom_kills);
  }
  void set(core::ResizedAmounts& out) {
    auto& [resources, sums, backed_memory] = out;
    fill(resources, sums, backed_memory);
  }
  void set(core::Resizing& out) {
    auto& [container, before, raised, after] = out;
    fill(container, before, raised, after);
  }
  void set(core::TreeRecord& out) {
    auto& [kubepods, top, sums, reserves, unfinished] = out;
    fill(kubepods, top, reserves, unfinished);
  }
  void set(core::NodeState& out) {
    auto& [sums, rows, trees, formula, eviction, oom_look, settings] = out;
    fill(trees, formula, eviction, oom_look, settings);
  }
  void set(core::Settings& out) {
    out.enabled = engine_() % 2 == 0;
    out.max_pod_claim_percent = static_cast<std::int64_t>(engine_() % 100) + 1;
  }
  void set(core::DyingContainer& out) {
    auto& [cgroup, init] = out;
    auto& [pid, start_time] = init;
    fill(cgroup, pid, start_time);
  }
  void set(core::EvictionRecord& out) {
    auto& [at, killing] = out;
    fill(at, killing);
  }

  std::mt19937_64 engine_;
};

TEST(RecordProperty, EveryFieldSurvives) {
  constexpr unsigned kRuns = 500;
  for (unsigned seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    core::PodRecord record;
    core::NodeState tiers;
    Random{seed}.fill(record, tiers);
    const std::string text = format_pod_record(record);
    const auto parsed = parse_pod_record(text);
    ASSERT_TRUE(parsed) << parsed.error().message << "\n" << text;
    ASSERT_EQ(*parsed, record) << text;
    ASSERT_EQ(format_pod_record(*parsed), text);

    ASSERT_EQ(*parse_node(format_node(tiers)), tiers);
  }
}

TEST(RecordProperty, DamageFailsCleanlyOrParses) {
  const std::string whole = format_pod_record(example_record());
  constexpr std::array<char, 9> kBytes{'\0', '"', '{', ']', '9', '-', ',', 'x', '\xff'};
  for (std::size_t at = 0; at < whole.size(); ++at) {
    ASSERT_EQ(parse_pod_record(whole.substr(0, at)).error().code, ErrorCode::kCorrupt) << at;
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
  EXPECT_TRUE(check_record_size(format_pod_record(record)));
  record.pod.containers.resize(200, core::Container{container});
  const auto checked = check_record_size(format_pod_record(record));
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(checked.error().message, HasSubstr("bytes"));
}

TEST(CheckRecordSize, BoundsTheContainersThatLive) {
  core::PodRecord record = example_record();
  record.containers.front().bundle = std::string(100, 'b');
  record.containers.resize(200, core::ContainerRecord{record.containers.front()});
  EXPECT_TRUE(check_record_size(format_pod_record(record)));
  record.containers.resize(1000, core::ContainerRecord{record.containers.front()});
  EXPECT_FALSE(check_record_size(format_pod_record(record)));
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
      {R"({"version":"1"})", ErrorCode::kCorrupt, "version: expected a number, found \"1\""},
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

TEST(ParseNode, RefusesRepeatedMembers) {
  EXPECT_FALSE(parse_node(R"({"version":1,"trees":[],"trees":[]})"));
  EXPECT_FALSE(parse_node(R"({"version":1,"trees":["a"]})"));
}

}  // namespace
}  // namespace podqos::codec
