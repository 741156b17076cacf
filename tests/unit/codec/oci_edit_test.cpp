#include "common/codec/oci_edit.h"

#include <array>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"

namespace podqos::codec {
namespace {

using nlohmann::json;

const HookRegistration kHooks{.path = "/usr/libexec/podqos-hook", .args = {"--config", "/x.json"}};
constexpr std::string_view kCreateHook =
    R"({"path":"/usr/libexec/podqos-hook","args":["podqos-hook","--config","/x.json","createRuntime"]})";
constexpr std::string_view kPoststopHook =
    R"({"path":"/usr/libexec/podqos-hook","args":["podqos-hook","--config","/x.json","poststop"]})";

Result<std::string> recorded(std::string_view text, const core::ConfigEdit& edit,
                             const std::optional<HookRegistration>& hooks = std::nullopt) {
  const auto config = OciConfig::parse(text);
  if (!config) return fail(config.error());
  const auto splices = plan_splices(*config, edit, hooks);
  if (!splices) return fail(splices.error());
  return apply_splices(text, *splices);
}

/// The edited text without the record of the edit, which is the root's last member.
Result<std::string> edited(std::string_view text, const core::ConfigEdit& edit,
                           const std::optional<HookRegistration>& hooks = std::nullopt) {
  auto result = recorded(text, edit, hooks);
  const std::size_t begin = result ? result->find(",\"podqos.io/edits\":") : std::string::npos;
  if (begin != std::string::npos) result->erase(begin, result->find(']', begin) + 1 - begin);
  return result;
}

struct EditCase {
  std::string name;
  std::string before;
  core::ConfigEdit edit;
  std::string after;
};

class PlanSplices : public testing::TestWithParam<EditCase> {};

TEST_P(PlanSplices, ChangesOnlyWhatIsAsked) {
  const auto& [name, before, edit, after] = GetParam();
  const auto result = edited(before, edit);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(*result, after);
  EXPECT_EQ(edited(*result, edit), *result);
}

INSTANTIATE_TEST_SUITE_P(
    Table, PlanSplices,
    testing::Values(
        EditCase{"NothingAsked", "{ }", {}, "{ }"},
        EditCase{"ReplacesAValueInPlace",
                 R"({"linux" : {"resources":{"cpu":{"shares" : 2 , "burst":1e2}}}})",
                 {.values = {.cpu_shares = CpuShares{512}}},
                 R"({"linux" : {"resources":{"cpu":{"shares" : 512 , "burst":1e2}}}})"},
        EditCase{"ReplacesNull",
                 R"({"linux":{"resources":{"memory":{"limit":null}}}})",
                 {.values = {.memory_limit = Bytes{4096}}},
                 R"({"linux":{"resources":{"memory":{"limit":4096}}}})"},
        EditCase{"AddsAMemberBehindTheLast",
                 "{\"linux\":{\"resources\":{\"cpu\":{\n  \"shares\":2\n}}}}",
                 {.values = {.cpu_quota = Micros{50'000}, .cpu_period = Micros{100'000}}},
                 "{\"linux\":{\"resources\":{\"cpu\":{\n  "
                 "\"shares\":2,\"quota\":50000,\"period\":100000\n}}}}"},
        EditCase{"FillsAnEmptyObject",
                 R"({"process":{ }})",
                 {.oom_score_adj = -997},
                 R"({"process":{"oomScoreAdj":-997 }})"},
        EditCase{"AddsMissingObjects",
                 R"({"linux":{"x":[]}})",
                 {.values = {.cpu_shares = CpuShares{512}}},
                 R"({"linux":{"x":[],"resources":{"cpu":{"shares":512}}}})"},
        EditCase{"ReplacesANullObject",
                 R"({"a":0,"linux":null,"b":0})",
                 {.values = {.pids_limit = 7}},
                 R"({"a":0,"linux":{"resources":{"pids":{"limit":7}}},"b":0})"},
        EditCase{"StartsFromNothing",
                 "{}",
                 {.cgroups_path = "/kubepods/pod1/c", .oom_score_adj = 1000},
                 R"({"linux":{"cgroupsPath":"/kubepods/pod1/c"},"process":{"oomScoreAdj":1000}})"},
        EditCase{"EscapesThePath",
                 R"({"linux":{"cgroupsPath":"/a"}})",
                 {.cgroups_path = "/\"\\\xc3\xa9"},
                 "{\"linux\":{\"cgroupsPath\":\"/\\\"\\\\\xc3\xa9\"}}"},
        EditCase{"KeepsAPathThatIsTheSame",
                 R"({"linux":{"cgroupsPath":"\/a\u0062"}})",
                 {.cgroups_path = "/ab"},
                 R"({"linux":{"cgroupsPath":"\/a\u0062"}})"},
        EditCase{
            "AppendsHugePages",
            R"({"linux":{"resources":{"hugepageLimits":[{"pageSize":"2MB","limit":1}]}}})",
            {.values = {.hugepages = {{"1GB", Bytes{8}}, {"2MB", Bytes{9}}}}},
            R"({"linux":{"resources":{"hugepageLimits":[{"pageSize":"2MB","limit":1},{"pageSize":"1GB","limit":8}]}}})"},
        EditCase{
            "AppendsUnifiedValues",
            R"({"linux":{"resources":{"unified":{"memory.oom.group":"0"}}}})",
            {.values = {.unified = {{"memory.oom.group", "1"}, {"memory.swap.max", "0"}}}},
            R"({"linux":{"resources":{"unified":{"memory.oom.group":"0","memory.swap.max":"0"}}}})"},
        EditCase{
            "MakesTheUnifiedValues",
            R"({"linux":{"resources":{"unified":null}}})",
            {.values = {.unified = {{"memory.oom.group", "1"}, {"memory.swap.max", "0"}}}},
            R"({"linux":{"resources":{"unified":{"memory.oom.group":"1","memory.swap.max":"0"}}}})"},
        EditCase{
            "MakesTheHugePageList",
            R"({"linux":{"resources":{}}})",
            {.values = {.hugepages = {{"1GB", Bytes{8}}, {"2MB", Bytes{9}}}}},
            R"({"linux":{"resources":{"hugepageLimits":[{"pageSize":"1GB","limit":8},{"pageSize":"2MB","limit":9}]}}})"}),
    [](const auto& instance) { return instance.param.name; });

TEST(PlanSplicesRecord, TellsWhatWasFilledInAndWhatStoodThere) {
  EXPECT_EQ(
      recorded(R"({"linux":{"cgroupsPath":"/a","resources":{"cpu":{"shares":0},"memory":{}}}})",
               {.cgroups_path = "/b",
                .values = {.cpu_shares = CpuShares{102},
                           .memory_limit = Bytes{4096},
                           .hugepages = {{"2MB", Bytes{9}}},
                           .unified = {{"memory.swap.max", "0"}}}}),
      R"({"linux":{"cgroupsPath":"/b","resources":{"cpu":{"shares":102},"memory":{"limit":4096},)"
      R"("unified":{"memory.swap.max":"0"},"hugepageLimits":[{"pageSize":"2MB","limit":9}]}},)"
      R"("podqos.io/edits":[{"at":"/linux/cgroupsPath","is":"/b","was":"/a"},)"
      R"({"at":"/linux/resources/cpu/shares","is":102,"was":0},)"
      R"({"at":"/linux/resources/memory/limit","is":4096},)"
      R"({"at":"/linux/resources/hugepageLimits/2MB","is":9},)"
      R"({"at":"/linux/resources/unified/memory.swap.max","is":"0"}]})");
}

TEST(PlanSplicesForHooks, AppendsBehindThoseThatAreThere) {
  const auto result =
      edited(R"({"hooks":{"createRuntime":[{"path":"/a"}],"poststop":[ ]}})", {}, kHooks);
  EXPECT_EQ(result, cat(R"({"hooks":{"createRuntime":[{"path":"/a"},)", kCreateHook,
                        R"(],"poststop":[)", kPoststopHook, " ]}}"));
}

TEST(PlanSplicesForHooks, MakesTheLists) {
  const std::string lists =
      cat(R"({"poststop":[)", kPoststopHook, R"(],"createRuntime":[)", kCreateHook, "]}");
  EXPECT_EQ(edited("{}", {}, kHooks), cat(R"({"hooks":)", lists, "}"));
  EXPECT_EQ(edited(R"({"hooks":null})", {}, kHooks), cat(R"({"hooks":)", lists, "}"));
}

TEST(PlanSplicesForHooks, LeavesRegisteredOnesAlone) {
  const std::string registered =
      R"({"hooks":{"prestart":[{"path":"/opt/podqos-hook"}],"poststop":[{"path":"/opt/podqos-hook"}]}})";
  EXPECT_EQ(edited(registered, {}, kHooks), registered);
}

TEST(PlanSplicesRefusal, RefusesTextThatParseWouldRefuse) {
  const auto config = OciConfig::parse("{}");
  EXPECT_FALSE(plan_splices(*config, {.cgroups_path = "/\xff"}, std::nullopt));
  EXPECT_FALSE(plan_splices(*config, {.cgroups_path = "/a\nb"}, std::nullopt));
  EXPECT_FALSE(plan_splices(*config, {}, HookRegistration{.path = "/\xc0\x80", .args = {}}));
}

TEST(ApplySplices, RefusesDisorder) {
  EXPECT_EQ(apply_splices("abcd", {{1, 2, "X"}, {2, 2, "Y"}, {4, 4, "Z"}}), "aXYcdZ");
  EXPECT_FALSE(apply_splices("abcd", {{2, 3, ""}, {1, 2, ""}}));
  EXPECT_FALSE(apply_splices("abcd", {{1, 3, ""}, {2, 4, ""}}));
  EXPECT_FALSE(apply_splices("abcd", {{3, 2, ""}}));
  EXPECT_FALSE(apply_splices("abcd", {{4, 5, ""}}));
}

/// Writes random configs: valid, but with all the liberties that JSON allows.
class ConfigWriter {
 public:
  explicit ConfigWriter(unsigned seed) : random_(seed) {}

  bool chance(unsigned percent) { return below(100) < percent; }
  unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }

  std::string config() {
    return cat(
        space(),
        object({maybe("process", process()), maybe("linux", linux_part()), maybe("hooks", hooks()),
                maybe("annotations", object({maybe("podqos.io/pod", string()), any_member()}))}),
        space());
  }

 private:
  std::string space() {
    constexpr std::array<std::string_view, 6> kSpaces{"", "", "", " ", "\n\t", " \r\n  "};
    return std::string{kSpaces.at(below(kSpaces.size()))};
  }
  std::string string() {
    constexpr std::array<std::string_view, 9> kPieces{"a",       "\\\"",           "\\\\",
                                                      "\\u00e9", "\\ud83d\\ude00", "\xc3\xa9",
                                                      "\\n\\/",  "{\\\"cpu\\\":",  "}],"};
    std::string text = "\"";
    for (unsigned i = below(4); i > 0; --i)
      text += kPieces.at(below(kPieces.size()));
    return text + "\"";
  }
  std::string path() {
    constexpr std::array<std::string_view, 4> kPaths{R"("")", R"("\/a\u0062")", R"("/\"\\")",
                                                     "\"/\xc3\xa9\""};
    return std::string{kPaths.at(below(kPaths.size()))};
  }
  std::string number() {
    constexpr std::array<std::string_view, 9> kNumbers{
        "0", "-0", "1e2", "1.50", "18446744073709551616", "-17", "1E+3", "9007199254740993", "0.1"};
    return std::string{kNumbers.at(below(kNumbers.size()))};
  }
  std::string any(unsigned depth = 0) {
    switch (below(depth < 3 ? 8 : 5)) {
      case 0: return string();
      case 1: return number();
      case 2: return "null";
      case 3: return "true";
      case 4: return "false";
      case 5: return cat("[", space(), any(depth + 1), space(), ",", any(depth + 1), "]");
      // Members of the names that matter, where they do not matter.
      case 6:
        return object({cat(R"("cpu":)", any(depth + 1)), cat(R"("shares":)", any(depth + 1))});
      default:
        return object({cat(R"("linux":)", any(depth + 1)), cat(R"("limit":)", any(depth + 1))});
    }
  }
  std::string any_member() {
    return chance(50) ? cat("\"x", below(1000), "\"", space(), ":", space(), any()) : "";
  }
  std::string maybe(std::string_view name, const std::string& value) {
    if (chance(30)) return "";
    return cat("\"", name, "\"", space(), ":", space(),
               chance(10) && !name.contains('/') ? "null" : value);
  }
  std::string object(std::vector<std::string> members) {
    members.insert(members.begin() + below(static_cast<unsigned>(members.size()) + 1),
                   any_member());
    std::string text = cat("{", space());
    bool first = true;
    for (const std::string& member : members) {
      if (member.empty()) continue;
      text += cat(first ? "" : ",", space(), member, space());
      first = false;
    }
    return text + "}";
  }
  std::string count() {
    constexpr std::array<std::string_view, 5> kCounts{"0", "-0", "1", "512", "9223372036854775808"};
    return std::string{kCounts.at(below(kCounts.size()))};
  }
  std::string process() {
    return object({maybe("oomScoreAdj", count()), maybe("args", "[\"sh\"]")});
  }
  std::string hook_list() {
    constexpr std::array<std::string_view, 5> kLists{"[]", "[ ]", R"([{"path":"/a"}])",
                                                     R"([{"path":"/podqos-hook"} ])",
                                                     R"([{"args":["x"],"path":"/b"},{}])"};
    return std::string{kLists.at(below(kLists.size()))};
  }
  std::string hooks() {
    return object({maybe("prestart", hook_list()), maybe("createRuntime", hook_list()),
                   maybe("poststop", hook_list())});
  }
  std::string linux_part() {
    return object({maybe("cgroupsPath", path()), maybe("resources", resources())});
  }
  std::string resources() {
    const std::string pages = chance(50) ? "[ ]" : R"([{"pageSize":"2MB" ,"limit":0}])";
    return object(
        {maybe("cpu", object({maybe("shares", count()), maybe("quota", count()),
                              maybe("period", count())})),
         maybe("memory", object({maybe("limit", count()), maybe("reservation", count())})),
         maybe("pids", object({maybe("limit", count())})), maybe("hugepageLimits", pages)});
  }

  std::mt19937 random_;
};

core::ConfigEdit random_edit(ConfigWriter& writer) {
  core::ConfigEdit edit;
  if (writer.chance(60)) edit.cgroups_path = "/kubepods/pod1/\"c\"";
  if (writer.chance(60)) edit.values.cpu_shares = CpuShares{512};
  if (writer.chance(60)) edit.values.cpu_quota = Micros{-1};
  if (writer.chance(60)) edit.values.cpu_period = Micros{100'000};
  if (writer.chance(60)) edit.values.memory_limit = Bytes{1LL << 40U};
  if (writer.chance(60)) edit.values.pids_limit = 99;
  if (writer.chance(60))
    edit.values.hugepages = {{"1GB", Bytes{1LL << 30U}}, {"2MB", Bytes{2LL << 20U}}};
  if (writer.chance(60)) edit.oom_score_adj = -998;
  return edit;
}

/// The object or array at `name`, made where absent or null.
json& made(json& parent, const char* name, json empty = json::object()) {
  json& value = parent[name];
  if (value.is_null()) value = std::move(empty);
  return value;
}

/// The same edit on a document, by other means.
json edited_document(json document, const core::ConfigEdit& edit, const OciConfig& config) {
  const auto resources = [&]() -> json& { return made(made(document, "linux"), "resources"); };
  if (edit.cgroups_path) made(document, "linux")["cgroupsPath"] = *edit.cgroups_path;
  if (edit.values.cpu_shares) made(resources(), "cpu")["shares"] = edit.values.cpu_shares->value();
  if (edit.values.cpu_quota) made(resources(), "cpu")["quota"] = edit.values.cpu_quota->value();
  if (edit.values.cpu_period) made(resources(), "cpu")["period"] = edit.values.cpu_period->value();
  if (edit.values.memory_limit)
    made(resources(), "memory")["limit"] = edit.values.memory_limit->value();
  if (edit.values.pids_limit) made(resources(), "pids")["limit"] = *edit.values.pids_limit;
  if (edit.oom_score_adj) made(document, "process")["oomScoreAdj"] = *edit.oom_score_adj;
  for (const auto& [size, limit] : edit.values.hugepages) {
    if (config.facts.resources.hugepages.contains(size)) continue;
    made(resources(), "hugepageLimits", json::array())
        .push_back({{"pageSize", size}, {"limit", limit.value()}});
  }
  if (!config.has_create_hook) {
    made(made(document, "hooks"), "createRuntime", json::array())
        .push_back(json::parse(kCreateHook));
  }
  if (!config.has_poststop_hook) {
    made(made(document, "hooks"), "poststop", json::array()).push_back(json::parse(kPoststopHook));
  }
  return document;
}

json without_record(const std::string& text) {
  json document = json::parse(text);
  document.erase(std::string{kEditRecord});
  return document;
}

/// The result with each splice's text taken back out for the bytes that it replaced.
std::string undone(const std::string& before, const std::string& after,
                   const std::vector<Splice>& splices) {
  std::string text;
  std::size_t at_before = 0;
  std::size_t at_after = 0;
  for (const Splice& splice : splices) {
    const std::size_t kept = splice.begin - at_before;
    text += after.substr(at_after, kept);
    text += before.substr(splice.begin, splice.end - splice.begin);
    at_after += kept + splice.text.size();
    at_before = splice.end;
  }
  return text + after.substr(at_after);
}

TEST(PlanSplicesProperty, KeepsEveryOtherByteAndReachesTheValues) {
  constexpr unsigned kRuns = 2000;
  for (unsigned seed = 1; seed <= kRuns; ++seed) {
    ConfigWriter writer{seed};
    const std::string before = writer.config();
    SCOPED_TRACE(cat("seed ", seed, ": ", before));
    const core::ConfigEdit edit = random_edit(writer);
    const auto config = OciConfig::parse(before);
    ASSERT_TRUE(config) << config.error().message;
    const auto splices = plan_splices(*config, edit, kHooks);
    ASSERT_TRUE(splices) << splices.error().message;
    const auto after = apply_splices(before, *splices);
    ASSERT_TRUE(after) << after.error().message;

    ASSERT_EQ(undone(before, *after, *splices), before);
    ASSERT_EQ(without_record(*after), edited_document(json::parse(before), edit, *config))
        << *after;
    const auto again = OciConfig::parse(*after);
    ASSERT_TRUE(again) << again.error().message;
    ASSERT_EQ(plan_splices(*again, edit, kHooks)->size(), 0U) << *after;
  }
}

TEST(PlanSplicesProperty, HoldsForConfigsOfRealEngines) {
  for (const std::string name :
       {"runc.json", "runc_rootless.json", "crun.json", "containerd.json"}) {
    SCOPED_TRACE(name);
    std::ifstream file{cat(PODQOS_TEST_DATA "/bundles/", name)};
    const std::string before{std::istreambuf_iterator<char>{file}, {}};
    const core::ConfigEdit edit{.cgroups_path = "/kubepods/burstable/pod1/c",
                                .values = {.cpu_shares = CpuShares{102},
                                           .memory_limit = Bytes{1 << 30U},
                                           .hugepages = {{"2MB", Bytes{0}}}},
                                .oom_score_adj = 999};
    const auto config = OciConfig::parse(before);
    ASSERT_TRUE(config) << config.error().message;
    const auto splices = plan_splices(*config, edit, kHooks);
    const auto after = apply_splices(before, *splices);
    ASSERT_TRUE(after) << after.error().message;
    EXPECT_EQ(undone(before, *after, *splices), before);
    EXPECT_EQ(without_record(*after), edited_document(json::parse(before), edit, *config));
    EXPECT_EQ(recorded(*after, edit, kHooks), *after);
  }
}

}  // namespace
}  // namespace podqos::codec
