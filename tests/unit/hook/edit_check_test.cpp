#include "hook/edit_check.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "tests/unit/hook/own_hooks.h"

namespace podqos::hook {
namespace {

using codec::Splice;
using nlohmann::json;
using test::kContainerPath;
using test::own_hooks;
using ::testing::HasSubstr;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr std::string_view kConfig =
    R"({"process":{"args":["sh"],"user":{"uid":1000},"oomScoreAdj":0},)"
    R"("mounts":[{"destination":"/x","type":"bind","source":"/pod/evil"}],)"
    R"("hooks":{"createRuntime":[{"path":"/usr/bin/x-hook","timeout":0}],"poststop":[ ]},)"
    R"("linux":{"cgroupsPath":"/system/c1","resources":{"cpu":{"shares":512,"quota":null},)"
    R"("memory":{},"hugepageLimits":[]},"namespaces":[{"type":"pid"}],"sysctl":{"limit":0}}})";
constexpr std::string_view kCreateHook =
    R"({"path":"/usr/bin/podqos-hook","args":["podqos-hook","--config","/x.json","createRuntime"]})";
constexpr std::string_view kPoststopHook =
    R"({"path":"/usr/bin/podqos-hook","args":["podqos-hook","--config","/x.json","poststop"]})";

Status check(const std::vector<Splice>& splices, std::string_view config = kConfig,
             std::string_view path = kContainerPath) {
  return check_splices(splices, EditPlaces{config}, path, own_hooks());
}

std::size_t find(std::string_view text) {
  const std::size_t at = kConfig.find(text);
  EXPECT_NE(at, std::string_view::npos) << text;
  EXPECT_EQ(kConfig.find(text, at + 1), std::string_view::npos) << text;
  return at;
}

/// Replaces the only `old` of kConfig.
Splice replace(std::string_view old, std::string_view text) {
  const std::size_t at = find(old);
  return {.begin = at, .end = at + old.size(), .text = std::string{text}};
}

/// Replaces `old`, which stands behind the only `before` of kConfig.
Splice replace_behind(std::string_view before, std::string_view old, std::string_view text) {
  const std::size_t at = find(cat(before, old)) + before.size();
  return {.begin = at, .end = at + old.size(), .text = std::string{text}};
}

/// Inserts behind the only `before` of kConfig.
Splice insert_behind(std::string_view before, std::string_view text) {
  return replace_behind(before, "", text);
}

TEST(CheckSplices, KnowsMembersInAnyCaseUnlessTheRuntimeDoesNot) {
  constexpr std::string_view kUpper = R"({"linux":{"resources":{"CPU":{"quota":1}}}})";
  const std::size_t end = kUpper.size() - 4;
  const Splice inside{.begin = end, .end = end, .text = R"(,"shares":102)"};
  const Splice second{.begin = end + 1, .end = end + 1, .text = R"(,"cpu":{"shares":102})"};
  EXPECT_TRUE(check({inside}, kUpper));
  EXPECT_FALSE(check({second}, kUpper));
  const EditPlaces exact{kUpper, codec::MemberNames::kExact};
  EXPECT_FALSE(check_splices({inside}, exact, kContainerPath, own_hooks()));
  EXPECT_TRUE(check_splices({second}, exact, kContainerPath, own_hooks()));
}

struct Edit {
  const char* name;
  std::vector<Splice> splices;
};
class CheckSplicesSound : public TestWithParam<Edit> {};

TEST_P(CheckSplicesSound, AreTaken) {
  const auto checked = check(GetParam().splices);
  EXPECT_TRUE(checked) << checked.error().message;
  const auto after = codec::apply_splices(kConfig, GetParam().splices);
  ASSERT_TRUE(after);
  EXPECT_TRUE(json::accept(*after)) << *after;
}

INSTANTIATE_TEST_SUITE_P(
    Table, CheckSplicesSound,
    ValuesIn<Edit>({
        {"Nothing", {}},
        {"AZero", {replace_behind(R"("oomScoreAdj":)", "0", "-997")}},
        {"ANull", {replace_behind(R"("quota":)", "null", "50000")}},
        {"ThePath", {replace(R"("/system/c1")", R"("/kubepods/burstable/pod42/c1")")}},
        {"AMemberBehindAnother", {insert_behind(R"("quota":null)", R"(,"period":100000)")}},
        {"TheFirstMember", {insert_behind(R"("memory":{)", R"("limit":1073741824)")}},
        {"AnObject", {insert_behind(R"("hugepageLimits":[])", R"(,"pids":{"limit":512})")}},
        {"UnifiedValues",
         {insert_behind(R"("hugepageLimits":[])",
                        R"(,"unified":{"memory.oom.group":"1","memory.swap.max":"0"})")}},
        {"APageSize",
         {insert_behind(R"("hugepageLimits":[)", R"({"pageSize":"2MB","limit":4194304})")}},
        {"PageSizes",
         {insert_behind(R"("hugepageLimits":[)",
                        R"({"pageSize":"1GB","limit":0},{"pageSize":"64KB","limit":65536})")}},
        {"AHookBehindAnother", {insert_behind(R"("timeout":0})", cat(",", kCreateHook))}},
        {"TheFirstHook", {insert_behind(R"("poststop":[)", kPoststopHook)}},
        {"TheFirstHookBehindASpace", {insert_behind(R"("poststop":[ )", kPoststopHook)}},
        {"AllAtOnce",
         {replace_behind(R"("oomScoreAdj":)", "0", "-997"),
          insert_behind(R"("timeout":0})", cat(",", kCreateHook)),
          insert_behind(R"("poststop":[)", kPoststopHook),
          replace(R"("/system/c1")", R"("/kubepods/burstable/pod42/c1")"),
          replace_behind(R"("quota":)", "null", "50000"),
          insert_behind(R"("quota":null)", R"(,"period":100000)"),
          insert_behind(R"("memory":{)", R"("limit":1073741824)"),
          insert_behind(R"("hugepageLimits":[)", R"({"pageSize":"2MB","limit":4194304})"),
          insert_behind(R"("hugepageLimits":[])", R"(,"pids":{"limit":512})")}},
    }),
    [](const TestParamInfo<Edit>& row) { return std::string{row.param.name}; });

class CheckSplicesMisuse : public TestWithParam<Edit> {};

TEST_P(CheckSplicesMisuse, IsRefused) {
  const auto checked = check(GetParam().splices);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kConflict);
}

INSTANTIATE_TEST_SUITE_P(
    Values, CheckSplicesMisuse,
    ValuesIn<Edit>({
        {"ASetNumber", {replace_behind(R"("shares":)", "512", "2")}},
        {"ASetNumberToItself", {replace_behind(R"("shares":)", "512", "512")}},
        {"ASetNumberToNothing", {replace_behind(R"("shares":)", "512", "")}},
        {"PartOfASetNumber", {replace_behind(R"("shares":5)", "1", "")}},
        {"MoreDigits", {insert_behind(R"("shares":512)", "0")}},
        {"TheUser", {replace_behind(R"("uid":)", "1000", "0")}},
        {"TheSameNameElsewhere", {replace_behind(R"("sysctl":{"limit":)", "0", "1")}},
        {"AForeignHooksTimeout", {replace_behind(R"("timeout":)", "0", "1")}},
        {"AString", {replace_behind(R"("oomScoreAdj":)", "0", R"("0")")}},
        {"ALiteral", {replace_behind(R"("oomScoreAdj":)", "0", "true")}},
        {"AnObject", {replace_behind(R"("oomScoreAdj":)", "0", R"({"limit":1})")}},
        {"ANumberAndAMember", {replace_behind(R"("oomScoreAdj":)", "0", R"(1,"uid":0)")}},
        {"AFraction", {replace_behind(R"("oomScoreAdj":)", "0", "1.5")}},
        {"AMinusAlone", {replace_behind(R"("oomScoreAdj":)", "0", "-")}},
        {"TooManyDigits", {replace_behind(R"("oomScoreAdj":)", "0", "10000000000000000000")}},
        {"ABlank", {replace_behind(R"("oomScoreAdj":)", "0", " 1")}},
        {"Nothing", {replace_behind(R"("oomScoreAdj":)", "0", "")}},
        {"ANumberForThePath", {replace(R"("/system/c1")", "0")}},
        {"AnotherPath", {replace(R"("/system/c1")", R"("/kubepods/pod7/c1")")}},
        {"PartOfThePath", {replace("system/", "")}},
        {"DigitsInThePath", {insert_behind("/system/c", "2")}},
        {"AnArgument", {replace(R"("sh")", R"("path")")}},
        {"TheArguments", {replace(R"(["sh"])", "7")}},
    }),
    [](const TestParamInfo<Edit>& row) { return std::string{row.param.name}; });

INSTANTIATE_TEST_SUITE_P(
    Structure, CheckSplicesMisuse,
    ValuesIn<Edit>({
        {"ARenamedMember", {replace(R"("namespaces")", R"("path")")}},
        {"ARemovedMember", {replace(R"("type":"pid")", "")}},
        {"ARemovedObject", {replace(R"({"type":"pid"})", "")}},
        {"ARemovedList", {replace(R"([{"type":"pid"}])", "[]")}},
        {"ARemovedHook", {replace(R"({"path":"/usr/bin/x-hook","timeout":0})", "")}},
        {"PartOfAHooksPath", {replace("x-hook", "hook")}},
        {"ARemovedBracket", {replace_behind(R"("poststop":)", "[", "")}},
        {"ARemovedBlank", {replace_behind(R"("poststop":[)", " ", "")}},
        {"AReplacedBlank", {replace_behind(R"("poststop":[)", " ", kPoststopHook)}},
        {"AListTurnedIntoHooks", {replace(R"("namespaces":)", R"("hooks":{"poststop":)")}},
        {"UnbalancedBrackets", {insert_behind(R"("memory":{)", "}")}},
        {"BalancedBrackets", {insert_behind(R"("memory":{)", R"("limit":1},"cpu":{"shares":2)")}},
        {"ABlank", {insert_behind(R"("memory":{)", " ")}},
        {"NothingInserted", {insert_behind(R"("memory":{)", "")}},
        {"AComment", {insert_behind(R"("memory":{)", "/**/")}},
        {"ATurnedRange", {{.begin = 5, .end = 4, .text = ""}}},
        {"ARangeBeyondTheEnd", {{.begin = kConfig.size(), .end = kConfig.size() + 1, .text = ""}}},
        {"AnInsertionBeyondTheEnd",
         {{.begin = kConfig.size() + 9, .end = kConfig.size() + 9, .text = R"(,"linux":{})"}}},
        {"AnEnormousRange", {{.begin = 0, .end = ~std::size_t{0}, .text = ""}}},
        {"InFrontOfAll", {{.begin = 0, .end = 0, .text = R"("linux":{})"}}},
        {"BehindAll", {{.begin = kConfig.size(), .end = kConfig.size(), .text = ","}}},
    }),
    [](const TestParamInfo<Edit>& row) { return std::string{row.param.name}; });

INSTANTIATE_TEST_SUITE_P(
    Members, CheckSplicesMisuse,
    ValuesIn<Edit>({
        {"OneThatIsThere", {insert_behind(R"("quota":null)", R"(,"shares":2)")}},
        {"OneThatIsThereAsNull", {insert_behind(R"("quota":null)", R"(,"quota":2)")}},
        {"AnObjectThatIsThere",
         {insert_behind(R"("hugepageLimits":[])", R"(,"cpu":{"shares":2})")}},
        {"AListThatIsThere",
         {insert_behind("[ ]", cat(R"(,"createRuntime":[)", kCreateHook, "]"))}},
        {"OneTwice", {insert_behind(R"("memory":{)", R"("limit":1,"limit":2)")}},
        {"OneTwiceInANewObject",
         {insert_behind(R"("hugepageLimits":[])", R"(,"pids":{"limit":1,"limit":2})")}},
        {"OneTwiceInTwoSplices",
         {insert_behind(R"("memory":{)", R"("limit":1)"),
          insert_behind(R"("memory":{)", R"("limit":2)")}},
        {"OneFromElsewhere", {insert_behind(R"("memory":{)", R"("shares":2)")}},
        {"AUnifiedValueThatPodqosNeverWrites",
         {insert_behind(R"("hugepageLimits":[])", R"(,"unified":{"cgroup.kill":"1"})")}},
        {"AUnifiedValueThatIsNoNumber",
         {insert_behind(R"("hugepageLimits":[])", R"(,"unified":{"memory.swap.max":"max"})")}},
        {"AUnifiedNumber",
         {insert_behind(R"("hugepageLimits":[])", R"(,"unified":{"memory.swap.max":0})")}},
        {"OneThatPodqosNeverWrites", {insert_behind(R"("hugepageLimits":[])", R"(,"devices":[])")}},
        {"OneInAnotherObject", {insert_behind(R"("uid":1000)", R"(,"limit":1)")}},
        {"OneInFrontOfAnother", {insert_behind(R"("cpu":{)", R"("period":100000,)")}},
        {"OneInTheMiddle", {insert_behind(R"("shares":512)", R"(,"period":100000)")}},
        {"OneWithoutItsComma", {insert_behind(R"("quota":null)", R"("period":100000)")}},
        {"OneWithACommaTooMany", {insert_behind(R"("memory":{)", R"(,"limit":1)")}},
        {"OneWithACommaBehind", {insert_behind(R"("memory":{)", R"("limit":1,)")}},
        {"OneWithAnEscapedName", {insert_behind(R"("memory":{)", R"("l\u0069mit":1)")}},
        {"OneWithoutAValue", {insert_behind(R"("memory":{)", R"("limit")")}},
        {"OneWithoutItsEnd", {insert_behind(R"("memory":{)", R"("limi)")}},
        {"AnEmptyObject", {insert_behind(R"("hugepageLimits":[])", R"(,"pids":{})")}},
        {"AMemberInAList", {insert_behind(R"("hugepageLimits":[)", R"("limit":1)")}},
        {"AnElementInAnObject",
         {insert_behind(R"("memory":{)", R"({"pageSize":"2MB","limit":1})")}},
        {"AnUnknownPageSize",
         {insert_behind(R"("hugepageLimits":[)", R"({"pageSize":"x","limit":1})")}},
        {"APageSizeWithoutDigits",
         {insert_behind(R"("hugepageLimits":[)", R"({"pageSize":"MB","limit":1})")}},
        {"AMountOfAPageSize",
         {insert_behind(R"("source":"/pod/evil"})", R"(,{"pageSize":"2MB","limit":1})")}},
    }),
    [](const TestParamInfo<Edit>& row) { return std::string{row.param.name}; });

INSTANTIATE_TEST_SUITE_P(
    Hooks, CheckSplicesMisuse,
    ValuesIn<Edit>({
        {"AForeignHook",
         {insert_behind(R"("poststop":[)", R"({"path":"/tmp/evil","args":["podqos-hook"]})")}},
        {"AForeignArgument",
         {insert_behind(R"("poststop":[)",
                        R"({"path":"/usr/bin/podqos-hook","args":["podqos-hook","/x"]})")}},
        {"AnEnvironment",
         {insert_behind(R"("poststop":[)",
                        R"({"path":"/usr/bin/podqos-hook","env":["LD_PRELOAD=/x"]})")}},
        {"AnEscapedPath", {insert_behind(R"("poststop":[)", R"({"path":"\u002ftmp"})")}},
        {"TheHookOfAnotherStage", {insert_behind(R"("poststop":[)", kCreateHook)}},
        {"OurHookAndAForeignOne",
         {insert_behind(R"("poststop":[)", cat(kPoststopHook, R"(,{"path":"/tmp/evil"})"))}},
        {"OurHookAndMore",
         {insert_behind(R"("poststop":[)", cat(kPoststopHook, R"(],"prestart":[)"))}},
        {"OurHookWhereNoneBelongs",
         {insert_behind(R"("source":"/pod/evil"})", cat(",", kCreateHook))}},
        {"OurHookWithoutItsComma", {insert_behind(R"("timeout":0})", kCreateHook)}},
        {"AnotherStage", {insert_behind("[ ]", cat(R"(,"prestart":[)", kCreateHook, "]"))}},
        {"AMountThatBecomesAHook",
         {replace(R"("mounts":)", R"("hooks":{"poststop":)"), replace(R"("source")", R"("path")"),
          insert_behind(R"("source":"/pod/evil"}])", "}")}},
    }),
    [](const TestParamInfo<Edit>& row) { return std::string{row.param.name}; });

TEST(CheckSplices, NamesTheTextOnOneLine) {
  const auto refused = check({insert_behind(R"("memory":{)", "\"evil\n\"")});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("evil"));
  EXPECT_EQ(refused.error().message.find('\n'), std::string::npos);
}

/// In an escaped form, a path could be another one than the caller has checked.
TEST(CheckSplices, WantsThePathAsPodqosWritesIt) {
  const auto path_as = [](std::string_view literal, std::string_view path) {
    return check({replace(R"("/system/c1")", literal)}, kConfig, path).has_value();
  };
  EXPECT_TRUE(path_as(R"("/k/a\"b")", R"(/k/a"b)"));
  EXPECT_TRUE(path_as(R"("/k/a\\x2db")", R"(/k/a\x2db)"));
  EXPECT_FALSE(path_as(R"("/k/\u002e\u002e/x")", R"(/k/\u002e\u002e/x)"));
  EXPECT_FALSE(path_as(R"("/k/\u0061")", "/k/a"));
  EXPECT_FALSE(path_as(R"("\/k\/a")", "/k/a"));
}

struct Config {
  const char* name;
  const char* config;
  std::size_t begin;
  std::size_t end;
  const char* text;
  bool fits;
};
class CheckSplicesConfig : public TestWithParam<Config> {};

TEST_P(CheckSplicesConfig, LooksAtItsStructure) {
  const Config& row = GetParam();
  EXPECT_EQ(check({{.begin = row.begin, .end = row.end, .text = row.text}}, row.config).has_value(),
            row.fits);
}

constexpr const char* kProcess = R"("process":{"oomScoreAdj":5})";

INSTANTIATE_TEST_SUITE_P(
    Table, CheckSplicesConfig,
    ValuesIn<Config>({
        {"AnEmptyOne", "{}", 1, 1, kProcess, true},
        {"OneWithABlank", " { } ", 3, 3, kProcess, true},
        {"OneThatIsNull", R"({"linux":null})", 9, 13, R"({"resources":{"cpu":{"shares":2}}})",
         true},
        {"HooksThatAreNull", R"({"hooks":null})", 9, 13, R"({"hooks":{}})", false},
        {"AListThatIsNull", R"({"hooks":{"poststop":null}})", 21, 25, "[]", false},
        {"MinusZero", R"({"process":{"oomScoreAdj":-0}})", 26, 28, "7", true},
        {"AnotherZero", R"({"process":{"oomScoreAdj":0.0}})", 26, 29, "7", false},
        {"AFalse", R"({"process":{"oomScoreAdj":false}})", 26, 31, "7", false},
        {"AListInPlaceOfAnObject", R"({"process":[]})", 12, 12, R"("oomScoreAdj":5)", false},
        {"AnObjectInPlaceOfAList", R"({"hooks":{"poststop":{}}})", 22, 22, R"({"path":"/x"})",
         false},
        {"NoObject", "[]", 1, 1, kProcess, false},
        {"Nothing", "", 0, 0, kProcess, false},
        {"AnOpenObject", "{", 1, 1, kProcess, false},
        {"AnOpenString", R"({"a)", 1, 1, kProcess, false},
        {"AnEscapeAtTheEnd", R"({"a\)", 1, 1, kProcess, false},
        {"TwoValues", "{}{}", 1, 1, kProcess, false},
        {"ACommaTooMany", R"({"a":1,})", 7, 7, kProcess, false},
        {"AMissingComma", R"({"a":1"b":2})", 11, 11, kProcess, false},
        {"AMissingColon", R"({"a"1})", 5, 5, kProcess, false},
        {"ANameInsideAString", R"({"a":"{}"})", 7, 7, kProcess, false},
        {"AnEscapedQuote", R"({"a\"":{}})", 9, 9, ",\"process\":{\"oomScoreAdj\":5}", true},
    }),
    [](const TestParamInfo<Config>& row) { return std::string{row.param.name}; });

TEST(CheckSplices, EndsWhereAConfigIsNestedTooDeep) {
  const std::string deep(100'000, '[');
  EXPECT_FALSE(check({}, cat(R"({"a":)", deep)));
  std::string open = R"({"a":)";
  for (int i = 0; i < 50'000; ++i)
    open += R"({"linux":)";
  EXPECT_FALSE(check({}, open));
}

}  // namespace
}  // namespace podqos::hook
