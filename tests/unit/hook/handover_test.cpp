#include "hook/handover.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/json_text.h"
#include "common/store/store.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::hook {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr std::string_view kConfigToPlace =
    R"({"process":{"args":["sh"],"oomScoreAdj":0},"hooks":{"createRuntime":[]},)"
    R"("linux":{"cgroupsPath":"/system/c1","resources":{"memory":{"limit":null}},)"
    R"("namespaces":[{"type":"pid"}]}})";

codec::HookRegistration configured_hooks() {
  return {.path = "/usr/bin/podqos-hook", .args = {"--config", "/etc/podqos/x.json"}};
}

/// Replaces the first `old` of the config by `text`; an empty `old` inserts in front of the config.
codec::Splice replace_first(std::string_view old, std::string text) {
  const std::size_t begin = kConfigToPlace.find(old);
  EXPECT_NE(begin, std::string_view::npos) << old;
  return {.begin = begin, .end = begin + old.size(), .text = std::move(text)};
}

/// Inserts `text` behind the first `before` of the config.
codec::Splice insert_behind_first(std::string_view before, std::string text) {
  const std::size_t at = kConfigToPlace.find(before) + before.size();
  return {.begin = at, .end = at, .text = std::move(text)};
}

std::string number(std::uint64_t value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

constexpr std::uint64_t kMagicNumber = 0x71736f70;

std::string text(std::string_view value) {
  return number(value.size()).append(value);
}

Status check_placement_of(const std::vector<codec::Splice>& splices,
                          const std::string& cgroups_path = "/kubepods/burstable/pod42/c1",
                          const core::Settings& settings = {}) {
  return check_placement({.cgroups_path = cgroups_path, .splices = splices},
                         EditPlaces{kConfigToPlace}, allowed_roots(settings), configured_hooks());
}

TEST(Handover, CarriesAPlacement) {
  const std::string binary{"a\0\"b\n", 5};
  const Handover sent = app::ConfigChange{
      .cgroups_path = "/kubepods/pod1/c",
      .splices = {{.begin = 3, .end = 9, .text = binary}, {.begin = 10, .end = 10, .text = ""}}};
  const auto received = parse_handover(format_handover(sent));
  ASSERT_TRUE(received);
  ASSERT_TRUE(*received);
  ASSERT_TRUE(**received);
  EXPECT_EQ((**received)->cgroups_path, "/kubepods/pod1/c");
  ASSERT_EQ((**received)->splices.size(), 2U);
  EXPECT_EQ((**received)->splices[0], (codec::Splice{.begin = 3, .end = 9, .text = binary}));
  EXPECT_EQ((**received)->splices[1], (codec::Splice{.begin = 10, .end = 10, .text = ""}));
}

TEST(Handover, CarriesNothingToDo) {
  const auto received = parse_handover(format_handover(std::nullopt));
  ASSERT_TRUE(received);
  ASSERT_TRUE(*received);
  EXPECT_FALSE(**received);
}

TEST(Handover, CarriesEveryErrorCode) {
  for (unsigned code = 0; code <= static_cast<unsigned>(ErrorCode::kIo); ++code) {
    const Error error{static_cast<ErrorCode>(code), "pod 42: broken"};
    const auto received = parse_handover(format_handover(fail(error)));
    ASSERT_TRUE(received);
    ASSERT_FALSE(*received);
    EXPECT_EQ(received->error(), error);
  }
}

TEST(ParseHandover, RefusesEveryTruncation) {
  for (const Handover& sent :
       {Handover{app::ConfigChange{.cgroups_path = "/kubepods/pod1/c",
                                   .splices = {{.begin = 3, .end = 9, .text = "x"}}}},
        Handover{std::nullopt}, Handover{fail(ErrorCode::kBusy, "why")}}) {
    const std::string whole = format_handover(sent);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto received = parse_handover(std::string_view{whole}.substr(0, size));
      ASSERT_FALSE(received) << size;
      EXPECT_EQ(received.error().code, ErrorCode::kCorrupt);
    }
  }
}

TEST(ParseHandover, PutsAnErrorOnOneLine) {
  const auto received = parse_handover(
      format_handover(fail(ErrorCode::kBusy, "one\ntwo\r\x1b[2J" + std::string{"\0", 1})));
  ASSERT_TRUE(received);
  ASSERT_FALSE(*received);
  EXPECT_EQ(received->error().message, "one two  [2J ");
}

struct Garbage {
  const char* name;
  std::string bytes;
};
class ParseHandoverGarbage : public TestWithParam<Garbage> {};

TEST_P(ParseHandoverGarbage, IsRefused) {
  const auto received = parse_handover(GetParam().bytes);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code, ErrorCode::kCorrupt);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ParseHandoverGarbage,
    ValuesIn<Garbage>({
        {"Nothing", ""},
        {"AnotherMagic", number(kMagicNumber + 1) + number(0)},
        {"AnUnknownKind", number(kMagicNumber) + number(3)},
        {"AKindBeyond32Bits", number(kMagicNumber) + number(std::uint64_t{1} << 32U)},
        {"BytesBehindNothing", number(kMagicNumber) + number(0) + "x"},
        {"BytesBehindAPlacement",
         number(kMagicNumber) + number(1) + text("/p") + number(0) + number(0)},
        {"AnErrorCodeBeyondTheLast", number(kMagicNumber) + number(2) + number(12) + text("m")},
        {"AnErrorCodeBeyond8Bits", number(kMagicNumber) + number(2) + number(256) + text("m")},
        {"ATextLongerThanTheRest",
         number(kMagicNumber) + number(1) + number(~std::uint64_t{0}) + "/p"},
        {"MoreSplicesThanAllowed",
         number(kMagicNumber) + number(1) + text("/p") + number(65) + std::string(65 * 24, '\0')},
        {"FewerSplicesThanPromised",
         number(kMagicNumber) + number(1) + text("/p") + number(2) + std::string(24, '\0')},
        {"AHugeCount", number(kMagicNumber) + number(1) + text("/p") + number(~std::uint64_t{0})},
        {"MoreThanTheLimit", format_handover(fail(ErrorCode::kIo, std::string(262'144, 'x')))},
    }),
    [](const TestParamInfo<Garbage>& row) { return std::string{row.param.name}; });

TEST(CheckPlacement, TakesWhatPodqosWrites) {
  EXPECT_TRUE(
      check_placement_of({replace_first("0", "-997"),
                          replace_first(R"("/system/c1")", R"("/kubepods/burstable/pod42/c1")"),
                          replace_first("null", "1073741824")}));
  EXPECT_TRUE(check_placement_of({insert_behind_first(
      R"("createRuntime":[)",
      R"({"path":"/usr/bin/podqos-hook","args":["podqos-hook","--config","/etc/podqos/x.json",)"
      R"("createRuntime"]})")}));
  EXPECT_TRUE(check_placement_of({insert_behind_first(
      R"("limit":null})",
      R"(,"hugepageLimits":[{"pageSize":"2MB","limit":4194304}],"pids":{"limit":512})")}));
  EXPECT_TRUE(check_placement_of({}));
}

TEST(CheckPlacement, LetsAnAdoptedContainerStayOutsideTheRoot) {
  EXPECT_TRUE(check_placement_of({replace_first("null", "1048576")},
                                 "/elsewhere/kubepods/burstable/pod42/c1"));
}

TEST(CheckPlacement, RefusesWhatPodqosNeverWrites) {
  const auto refused =
      check_placement_of({insert_behind_first(R"("createRuntime":[)", R"({"path":"/tmp/evil"})")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
}

struct Place {
  const char* name;
  const char* cgroup_root;
  std::string path;
  bool allowed;
};
class CheckPlacementPath : public TestWithParam<Place> {};

TEST_P(CheckPlacementPath, KeepsToTheRoot) {
  core::Settings settings;
  settings.cgroup_root = GetParam().cgroup_root;
  const std::string& path = GetParam().path;
  const auto checked = check_placement_of(
      {replace_first(R"("/system/c1")", codec::quote_json(path))}, path, settings);
  EXPECT_EQ(checked.has_value(), GetParam().allowed);
  if (!GetParam().allowed && !checked) {
    EXPECT_THAT(checked.error().message, HasSubstr("cgroupsPath"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, CheckPlacementPath,
    ValuesIn<Place>({
        {"APod", "/", "/kubepods/pod42/c1", true},
        {"APodsSlice", "/", "kubepods-pod42.slice:libpod:c1", true},
        {"APodsSliceOfTheDefaultRoot", "/podqos", "podqos-kubepods-pod42.slice:x:c1", true},
        {"AnotherSlice", "/", "system.slice:libpod:c1", false},
        {"NoSlice", "/", "kubepods:libpod:c1", false},
        {"TheDefaultRoot", "/podqos", "/podqos/kubepods/besteffort/pod42/c1", true},
        {"TheDefaultRootOfBefore", "/podqos", "/kubepods/besteffort/pod42/c1", true},
        {"ASliceOfTheDefaultRootOfBefore", "/podqos", "kubepods-pod42.slice:x:c1", true},
        {"TheDefaultRootUnderAnother", "/", "/podqos/kubepods/besteffort/pod42/c1", false},
        {"BeneathAnotherRoot", "/a/b", "/a/b/kubepods/pod42/c1", true},
        {"OutsideAnotherRoot", "/a/b", "/kubepods/pod42/c1", false},
        {"TheHostsRoot", "/", "/", false},
        {"TheRootItself", "/", "/kubepods", false},
        {"TheRootWithASlash", "/", "/kubepods/", false},
        {"ANameThatBeginsLikeTheRoot", "/", "/kubepods2/pod42/c1", false},
        {"SystemdsTree", "/", "/system.slice/c1", false},
        {"UpAndOut", "/", "/kubepods/../system.slice/c1", false},
        {"ADot", "/", "/kubepods/./c1", false},
        {"AnEmptyComponent", "/", "/kubepods//c1", false},
        {"ANewline", "/", "/kubepods/pod42/c\n1", false},
        {"ARelativePath", "/", "kubepods/pod42/c1", false},
        {"ABackslash", "/", R"(/kubepods/pod42/a\x2dc1)", true},
        {"AQuote", "/", R"(/../"/c1)", false},
    }),
    [](const TestParamInfo<Place>& row) { return std::string{row.param.name}; });

/// In which pods stay when cgroupRoot changes.
TEST(AllowedRoots, ContainTheOneInUse) {
  const TemporaryDirectory directory;
  core::Settings settings;
  settings.cgroup_root = "/new";
  settings.state_dir = directory.path() + "/state";
  EXPECT_THAT(allowed_roots(settings),
              ElementsAre("/new/kubepods", "/new.slice/new-kubepods.slice"));
  {
    auto store = store::Store::open({.path = settings.state_dir});
    ASSERT_TRUE(store) << store.error().to_string();
    store->tiers().trees = {{.kubepods = "/old/kubepods"}};
    ASSERT_TRUE(store->commit());
  }
  EXPECT_THAT(allowed_roots(settings), Contains("/old/kubepods"));
}

TEST(CheckPlacement, RefusesAPathThatIsNotTheAnnouncedOne) {
  EXPECT_FALSE(check_placement_of({replace_first(R"("/system/c1")", R"("/kubepods/pod7/c1")")}));
}

/// Escapes would lead out of the root once the runtime has read them.
TEST(CheckPlacement, RefusesAPathThatIsEscapedOtherwise) {
  const std::string path = R"(/kubepods/\u002e\u002e\u002fsystem.slice)";
  EXPECT_FALSE(check_placement_of({replace_first(R"("/system/c1")", "\"" + path + "\"")}, path));
}

}  // namespace
}  // namespace podqos::hook
