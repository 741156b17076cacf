#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cgroup/systemd.h"

namespace podqos::cgroup {
namespace {

using core::UnitProperty;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct BadCase {
  const char* name;
  std::string unit;
  std::vector<UnitProperty> properties;
  const char* message;
};

class SystemdInput : public ::testing::TestWithParam<BadCase> {};

// libdbus would end the process.
TEST_P(SystemdInput, IsCheckedBeforeItIsSent) {
  Systemd systemd{{.addresses = {}}};
  for (const auto& refused : {systemd.start_transient(GetParam().unit, GetParam().properties),
                              systemd.set_properties(GetParam().unit, GetParam().properties)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << refused.error().message;
    EXPECT_THAT(refused.error().message, HasSubstr(GetParam().message));
  }
  EXPECT_EQ(systemd.round_trips(), 0);
}

constexpr const char* kNoUnit =
    " is not a systemd unit name: expected 1 to 255 letters, digits and ";

INSTANTIATE_TEST_SUITE_P(
    Table, SystemdInput,
    ::testing::ValuesIn<BadCase>({
        {"EmptyUnit", "", {}, kNoUnit},
        {"UnitOf256Bytes", std::string(256, 'a'), {}, kNoUnit},
        {"UnitWithASlash", "a/b.slice", {}, "\"a/b.slice\" is not a systemd unit name"},
        {"UnitWithANul",
         std::string{"a\0.slice", 8},
         {},
         "\"a\\x00.slice\" is not a systemd unit name"},
        {"UnitThatIsNoUtf8", "a\xff.slice", {}, "\"a\\xff.slice\" is not a systemd unit name"},
        {"EmptyProperty", "a.slice", {{"", true}}, " a.slice: \"\" is not a unit property name"},
        {"PropertyWithASpace", "a.slice", {{"a b", true}}, "\"a b\" is not a unit property name"},
        {"TextThatIsNoUtf8",
         "a.slice",
         {{"Description", std::string{"\xc3("}}},
         " a.slice: Description: \"\\xc3(\" is not UTF-8"},
        {"TextWithANul",
         "a.slice",
         {{"Description", std::string{"a\0b", 3}}},
         "Description: \"a\\x00b\" is not UTF-8"},
        {"TextTooLong",
         "a.slice",
         {{"Description", std::string(4097, 'x')}},
         "Description: 4097 bytes, at most 4096"},
        {"ElementThatIsNoUtf8",
         "a.slice",
         {{"Before", std::vector<std::string>{"good", "\xff"}}},
         "Before: \"\\xff\" is not UTF-8"},
        {"TooManyElements",
         "a.slice",
         {{"Before", std::vector<std::string>(257, "x")}},
         "Before: 257 elements, at most 256"},
        {"TooManyNumbers",
         "a.slice",
         {{"PIDs", std::vector<std::uint32_t>(257, 1)}},
         "PIDs: 257 elements, at most 256"},
        {"TooManyProperties", "a.slice", std::vector<UnitProperty>(257, {"A", true}),
         "properties: 257 elements, at most 256"},
    }),
    [](const auto& param) { return param.param.name; });

TEST(SystemdNames, AreCheckedByEveryCall) {
  Systemd systemd{{.addresses = {}}};
  for (const auto& refused :
       {systemd.start("\xff"), systemd.stop("\xff"), systemd.reset_failed("\xff")}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  }
  const auto list = systemd.list("\xff");
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(list.error().message,
              AllOf(StartsWith("ListUnitsByPatterns"), HasSubstr("is not UTF-8")));
}

}  // namespace
}  // namespace podqos::cgroup
