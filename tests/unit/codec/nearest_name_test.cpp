#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/codec/settings_json.h"

namespace podqos::codec {
namespace {

struct NameCase {
  std::string name;
  std::string nearest;
};

TEST(NearestName, FindsTypingMistakes) {
  const std::vector<std::string_view> known = {"enabled", "scope", "runtimes", "onError",
                                               "cgroupDriver"};
  const std::vector<NameCase> cases = {
      {"enable", "enabled"},              // a letter is missing
      {"sscope", "scope"},                // one too many
      {"scopa", "scope"},                 // another one
      {"runtmies", "runtimes"},           // two changed places
      {"SCOPE", "scope"},                 // letter case costs nothing
      {"onerr", "onError"},               // two are missing
      {"cgroup_driver", "cgroupDriver"},  // another convention
      {"group_drivers", "cgroupDriver"},  // the longer the name, the more mistakes
      {"scope", "scope"},                 // none
  };
  for (const auto& [name, nearest] : cases)
    EXPECT_EQ(nearest_name(name, known), nearest) << name;
}

TEST(NearestName, PrefersTheNearer) {
  EXPECT_EQ(nearest_name("limit", {"limbs", "limits"}), "limits");
  EXPECT_EQ(nearest_name("limit", {"limits", "limbs"}), "limits");
}

TEST(NearestName, FindsNothingFarAway) {
  for (const std::string name : {"qqqqqq", "sco", "popes", ""})
    EXPECT_EQ(nearest_name(name, {"enabled", "runtimes"}), "") << name;
  EXPECT_EQ(nearest_name("enabled", {}), "");
}

TEST(NearestName, LooksAtNoNameThatIsTooLong) {
  const std::string longest(64, 'x');
  EXPECT_EQ(nearest_name(longest, {longest}), longest);
  const std::string longer(65, 'x');
  EXPECT_EQ(nearest_name(longer, {longer}), "");
}

}  // namespace
}  // namespace podqos::codec
