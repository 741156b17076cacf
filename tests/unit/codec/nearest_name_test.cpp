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

TEST(NearestName, FindsTypingMistakesAndShortenedNames) {
  const std::vector<std::string_view> known = {
      "enabled", "scope",       "runtimes",          "onError", "cgroupDriver", "nodeMemory",
      "nodeCpu", "cpuCFSQuota", "cpuCFSQuotaPeriod", "system",  "log"};
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
      {"nodeMem", "nodeMemory"},          // a beginning
      {"memory", "nodeMemory"},           // an end
      {"quota", "cpuCFSQuota"},           // of several the shortest
      {"cpuQuota", "cpuCFSQuota"},        // a piece left out
      {"sys", "system"},                  // three letters are enough
      {"sy", ""},                         // two are not
      {"foo", ""},                        // two mistakes in three letters make anything
      {"nmy", ""},                        // letters that happen to follow each other
      {"loh", "log"},                     // one mistake
      {"nodeMemoryAndMore", ""},          // longer than the name
      {"qqqqqq", ""},
      {"popes", ""},
      {"", ""},
      {"ea", ""},
  };
  for (const auto& [name, nearest] : cases)
    EXPECT_EQ(nearest_name(name, known), nearest) << name;
  EXPECT_EQ(nearest_name("sco", {"enabled", "runtimes"}), "");
  EXPECT_EQ(nearest_name("enabled", {}), "");
}

TEST(NearestName, PrefersTheNearer) {
  EXPECT_EQ(nearest_name("limit", {"limbs", "limits"}), "limits");
  EXPECT_EQ(nearest_name("limit", {"limits", "limbs"}), "limits");
}

TEST(HintFor, NamesTheNearestOrAll) {
  const std::vector<std::string_view> known = {"kube", "system"};
  EXPECT_EQ(hint_for("sys", known, "reserved."), "; did you mean reserved.system?");
  EXPECT_EQ(hint_for("xyz", known, "reserved."), "; expected one of kube, system");
  EXPECT_EQ(hint_for("xyz", {}), "");
}

TEST(NearestName, LooksAtNoNameThatIsTooLong) {
  const std::string longest(64, 'x');
  EXPECT_EQ(nearest_name(longest, {longest}), longest);
  const std::string longer(65, 'x');
  EXPECT_EQ(nearest_name(longer, {longer}), "");
}

}  // namespace
}  // namespace podqos::codec
