#include "common/codec/oci_edit.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "tests/unit/codec/bundle_text.h"

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
  PODQOS_ASSIGN(const auto config, OciConfig::parse(text));
  return edit_config(config, edit, hooks);
}

/// The edited text without the record of the edit, which is the root's last member.
Result<std::string> edited(std::string_view text, const core::ConfigEdit& edit,
                           const std::optional<HookRegistration>& hooks = std::nullopt) {
  auto result = recorded(text, edit, hooks);
  const std::size_t begin = result ? result->find(",\"podqos.io/edits\":") : std::string::npos;
  if (begin != std::string::npos) result->erase(begin, result->find(']', begin) + 1 - begin);
  return result;
}

std::string in_resources(std::string_view members) {
  return cat(R"({"linux":{"resources":{)", members, "}}}");
}

struct EditCase {
  std::string name;
  std::string before;
  core::ConfigEdit edit;
  std::string after;
};

TEST(PlanSplices, ChangesOnlyWhatIsAsked) {
  const std::vector<EditCase> cases = {
      {"NothingAsked", "{ }", {}, "{ }"},
      {"ReplacesAValueInPlace",
       R"({"linux" : {"resources":{"cpu":{"shares" : 2 , "burst":1e2}}}})",
       {.values = {.cpu_shares = CpuShares{512}}},
       R"({"linux" : {"resources":{"cpu":{"shares" : 512 , "burst":1e2}}}})"},
      {"ReplacesNull",
       in_resources(R"("memory":{"limit":null})"),
       {.values = {.memory_limit = Bytes{4096}}},
       in_resources(R"("memory":{"limit":4096})")},
      {"AddsAMemberBehindTheLast",
       "{\"linux\":{\"resources\":{\"cpu\":{\n  \"shares\":2\n}}}}",
       {.values = {.cpu_quota = Micros{50'000}, .cpu_period = Micros{100'000}}},
       "{\"linux\":{\"resources\":{\"cpu\":{\n  "
       "\"shares\":2,\"quota\":50000,\"period\":100000\n}}}}"},
      {"FillsAnEmptyObject",
       R"({"process":{ }})",
       {.oom_score_adj = -997},
       R"({"process":{"oomScoreAdj":-997 }})"},
      {"AddsMissingObjects",
       R"({"linux":{"x":[]}})",
       {.values = {.cpu_shares = CpuShares{512}}},
       R"({"linux":{"x":[],"resources":{"cpu":{"shares":512}}}})"},
      {"ReplacesANullObject",
       R"({"a":0,"linux":null,"b":0})",
       {.values = {.pids_limit = 7}},
       R"({"a":0,"linux":{"resources":{"pids":{"limit":7}}},"b":0})"},
      {"ReplacesTheSpellingThatCounts",
       in_resources(R"("cpu":{"shares":2,"quota":1},"CPU":{"shares":3})"),
       {.values = {.cpu_shares = CpuShares{512}, .cpu_quota = Micros{50'000}}},
       in_resources(R"("cpu":{"shares":2,"quota":50000},"CPU":{"shares":512})")},
      {"AddsToTheLastSpelling",
       in_resources(R"("cpu":{"quota":1},"CPU":{ },"pids":{},"Pids":{"x":0})"),
       {.values = {.cpu_shares = CpuShares{512}, .pids_limit = 7}},
       in_resources(
           R"("cpu":{"quota":1},"CPU":{"shares":512 },"pids":{},"Pids":{"x":0,"limit":7})")},
      {"AddsObjectsToTheLastSpelling",
       R"({"linux":{"resources":{"cpu":{}}},"Linux":{"x":0}})",
       {.values = {.cpu_shares = CpuShares{512}, .pids_limit = 7}},
       R"({"linux":{"resources":{"cpu":{"shares":512},"pids":{"limit":7}}},"Linux":{"x":0}})"},
      {"StartsFromNothing",
       "{}",
       {.cgroups_path = "/kubepods/pod1/c", .oom_score_adj = 1000},
       R"({"process":{"oomScoreAdj":1000},"linux":{"cgroupsPath":"/kubepods/pod1/c"}})"},
      {"EscapesThePath",
       R"({"linux":{"cgroupsPath":"/a"}})",
       {.cgroups_path = "/\"\\\xc3\xa9"},
       "{\"linux\":{\"cgroupsPath\":\"/\\\"\\\\\xc3\xa9\"}}"},
      {"KeepsAPathThatIsTheSame",
       R"({"linux":{"cgroupsPath":"\/a\u0062"}})",
       {.cgroups_path = "/ab"},
       R"({"linux":{"cgroupsPath":"\/a\u0062"}})"},
      {"AppendsHugePages",
       in_resources(R"("hugepageLimits":[{"pageSize":"2MB","limit":1}])"),
       {.values = {.hugepages = {{"1GB", Bytes{8}}, {"2MB", Bytes{9}}}}},
       in_resources(
           R"("hugepageLimits":[{"pageSize":"2MB","limit":1},{"pageSize":"1GB","limit":8}])")},
      {"AppendsUnifiedValues",
       in_resources(R"("unified":{"memory.oom.group":"0"})"),
       {.values = {.unified = {{"memory.oom.group", "1"}, {"memory.swap.max", "0"}}}},
       in_resources(R"("unified":{"memory.oom.group":"0","memory.swap.max":"0"})")},
      {"MakesTheUnifiedValues",
       in_resources(R"("unified":null)"),
       {.values = {.unified = {{"memory.oom.group", "1"}, {"memory.swap.max", "0"}}}},
       in_resources(R"("unified":{"memory.oom.group":"1","memory.swap.max":"0"})")},
      {"MakesTheHugePageList",
       in_resources(R"()"),
       {.values = {.hugepages = {{"1GB", Bytes{8}}, {"2MB", Bytes{9}}}}},
       in_resources(
           R"("hugepageLimits":[{"pageSize":"1GB","limit":8},{"pageSize":"2MB","limit":9}])")}};
  for (const auto& [name, before, edit, after] : cases) {
    SCOPED_TRACE(name);
    EXPECT_EQ(edited(before, edit), after);
    EXPECT_EQ(edited(after, edit), after);
  }
}

TEST(PlanSplices, TellsWhatWasFilledInAndWhatStoodThere) {
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

TEST(PlanSplices, RegistersHooksThatAreMissing) {
  EXPECT_EQ(edited(R"({"hooks":{"createRuntime":[{"path":"/a"}],"poststop":[ ]}})", {}, kHooks),
            cat(R"({"hooks":{"createRuntime":[{"path":"/a"},)", kCreateHook, R"(],"poststop":[)",
                kPoststopHook, " ]}}"));
  const std::string made =
      cat(R"({"hooks":{"poststop":[)", kPoststopHook, R"(],"createRuntime":[)", kCreateHook, "]}}");
  EXPECT_EQ(edited("{}", {}, kHooks), made);
  EXPECT_EQ(edited(R"({"hooks":null})", {}, kHooks), made);
  const std::string registered =
      R"({"hooks":{"prestart":[{"path":"/opt/podqos-hook"}],"poststop":[{"path":"/opt/podqos-hook"}]}})";
  EXPECT_EQ(edited(registered, {}, kHooks), registered);
}

TEST(PlanSplices, RefusesTextThatParseWouldRefuse) {
  const auto config = OciConfig::parse("{}");
  EXPECT_FALSE(plan_splices(*config, {.cgroups_path = "/\xff"}, std::nullopt));
  EXPECT_FALSE(plan_splices(*config, {.cgroups_path = "/a\nb"}, std::nullopt));
  EXPECT_FALSE(plan_splices(*config, {}, HookRegistration{.path = "/\xc0\x80", .args = {}}));
  // A runtime could not execute it.
  EXPECT_FALSE(plan_splices(*config, {}, HookRegistration{.path = "", .args = {}}));
}

TEST(ApplySplices, RefusesDisorder) {
  EXPECT_EQ(apply_splices("abcd", {{1, 2, "X"}, {2, 2, "Y"}, {4, 4, "Z"}}), "aXYcdZ");
  EXPECT_FALSE(apply_splices("abcd", {{2, 3, ""}, {1, 2, ""}}));
  EXPECT_FALSE(apply_splices("abcd", {{1, 3, ""}, {2, 4, ""}}));
  EXPECT_FALSE(apply_splices("abcd", {{3, 2, ""}}));
  EXPECT_FALSE(apply_splices("abcd", {{4, 5, ""}}));
}

/// Configs with all the liberties that JSON allows: for a name in angle brackets stands one of its
/// texts, chosen at random.
const std::map<std::string_view, std::vector<std::string_view>> kGrammar = {
    {"config",
     {"<s>{<s>}", R"(<s>{<s>"x":<any><process><linux><x><hooks><notes><s>}<s>)",
      R"({"linux"<s>:<s><linux object><hooks><x><process> })"}},
    {"process",
     {"", R"(,"process":null)", R"(,<s>"process"<s>:<s>{<s>})",
      R"(,"process":{"args":["sh"]<x>,<s>"oomScoreAdj"<s>:<s><count><s>})",
      R"(,"process":{<s>"oomScoreAdj":<count>,"args" : [ "sh" ]})"}},
    {"linux", {"", R"(,"linux" : null)", R"(,<s>"linux":<s><linux object>)"}},
    {"linux object",
     {"{<s>}", R"({"x":<any><path><resources><s>})", R"({ "cgroupsPath":"/\"\\"<resources><x>})"}},
    {"path",
     {"", R"(,"cgroupsPath":null)", R"(,<s>"cgroupsPath"<s>:<s>"")",
      R"(,"cgroupsPath":"\/a\u0062")", ",\"cgroupsPath\":\"/\xc3\xa9\""}},
    {"resources",
     {"", R"(,"resources":null)", R"(,"resources":{<s>})",
      R"(,<s>"resources" : {"x":<any><cpu><memory><pids><pages>})"}},
    {"cpu",
     {"", R"(,"cpu":null)", R"(,"cpu":{<s>"shares":<count><s>,<s>"quota":<count>})",
      R"(,"cpu":{"period" :<count><x>})", R"(,"cpu":{"x":<any>,"shares":null<s>})"}},
    {"memory",
     {"", R"(,"memory":{<s>"limit":<count><s>})", R"(,"memory" :<s>{"reservation":<count><x>})"}},
    {"pids", {"", R"(,"pids":{"limit"<s>:<count>})", R"(,"pids":{<s>})"}},
    {"pages",
     {"", R"(,"hugepageLimits":null)", R"(,"hugepageLimits":[<s>])",
      R"(,"hugepageLimits":[{"pageSize":"2MB" ,"limit":0}])"}},
    {"hooks",
     {"", R"(,"hooks":null)",
      R"(,"hooks":{<s>"prestart":<list>,"createRuntime":<list>,"poststop":<list><s>})",
      R"(,"hooks" : {"poststop"<s>:<list><x>})"}},
    {"list",
     {"null", "[<s>]", R"([{"path":"/a"}])", R"([{"path":"/podqos-hook"} ])",
      R"([{"args":["x"],"path":"/b"},{}])"}},
    {"notes", {"", R"(,"annotations":{"podqos.io/pod":<string><x>})"}},
    {"count", {"0", "-0", "1", "512", "9223372036854775808"}},
    {"x", {"", R"(,"x1"<s>:<s><any>)"}},
    // Members of the names that matter, where they do not matter.
    {"any",
     {"<string>", "<number>", "null", "true", "false", "[<s><any><s>,<any>]",
      R"({"cpu":<any>,"shares":<any>})", R"({"linux":<any><x>})"}},
    {"number",
     {"0", "-0", "1e2", "1.50", "18446744073709551616", "-17", "1E+3", "9007199254740993", "0.1"}},
    {"string",
     {R"("")", R"("a\"\\")", R"("\u00e9\ud83d\ude00")", "\"\xc3\xa9\\n\\/\"", R"("{\"cpu\":}],")"}},
    {"s", {"", "", "", " ", "\n\t", " \r\n  "}}};

/// One text of a name.
std::string written(std::string_view name, std::mt19937& random) {
  const auto& texts = kGrammar.at(name);
  std::string_view rest = texts.at(random() % texts.size());
  std::string text{read_until(rest, '<')};
  while (!rest.empty()) {
    text += written(read_until(rest, '>'), random);
    text += read_until(rest, '<');
  }
  return text;
}

core::ConfigEdit random_edit(std::mt19937& random) {
  const auto chosen = [&] { return random() % 10 < 6; };
  core::ConfigEdit edit;
  if (chosen()) edit.cgroups_path = "/kubepods/pod1/\"c\"";
  if (chosen()) edit.values.cpu_shares = CpuShares{512};
  if (chosen()) edit.values.cpu_quota = Micros{-1};
  if (chosen()) edit.values.cpu_period = Micros{100'000};
  if (chosen()) edit.values.memory_limit = Bytes{1LL << 40U};
  if (chosen()) edit.values.pids_limit = 99;
  if (chosen()) edit.values.hugepages = {{"1GB", Bytes{1LL << 30U}}, {"2MB", Bytes{2LL << 20U}}};
  if (chosen()) edit.oom_score_adj = -998;
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

/// Every other byte stays, the values are reached, and a second edit changes nothing.
void expect_edited(const std::string& before, const core::ConfigEdit& edit) {
  const auto config = OciConfig::parse(before);
  ASSERT_TRUE(config) << config.error().message;
  const auto splices = plan_splices(*config, edit, kHooks);
  ASSERT_TRUE(splices) << splices.error().message;
  const auto after = apply_splices(before, *splices);
  ASSERT_TRUE(after) << after.error().message;
  ASSERT_EQ(undone(before, *after, *splices), before);
  ASSERT_EQ(without_record(*after), edited_document(json::parse(before), edit, *config)) << *after;
  EXPECT_EQ(recorded(*after, edit, kHooks), *after);
}

TEST(PlanSplicesProperty, HoldsForRandomConfigs) {
  constexpr unsigned kRuns = 2000;
  for (unsigned seed = 1; seed <= kRuns && !HasFailure(); ++seed) {
    std::mt19937 random{seed};
    const std::string before = written("config", random);
    SCOPED_TRACE(cat("seed ", seed, ": ", before));
    expect_edited(before, random_edit(random));
  }
}

TEST(PlanSplicesProperty, HoldsForConfigsOfRealEngines) {
  for (const std::string name :
       {"runc.json", "runc_rootless.json", "crun.json", "containerd.json"}) {
    SCOPED_TRACE(name);
    expect_edited(bundle_text::read_bundle(name), {.cgroups_path = "/kubepods/burstable/pod1/c",
                                                   .values = {.cpu_shares = CpuShares{102},
                                                              .memory_limit = Bytes{1 << 30U},
                                                              .hugepages = {{"2MB", Bytes{0}}}},
                                                   .oom_score_adj = 999});
  }
}

}  // namespace
}  // namespace podqos::codec
