#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/settings_json.h"

namespace podqos::codec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SalvageRuntimes, FindsThemWhateverElseIsWrong) {
  const std::vector<std::string> cases = {
      R"({"runtimes": ["/usr/bin/crun", "/b"]})",
      R"({"logLevel": "debug", "runtimes": ["/usr/bin/crun", "/b"]})",
      R"({"runtimes": ["/usr/bin/crun", "/b"], "runtime": ["/usr/bin/runc"]})",
      R"({"qosReserved": {"memory": "150%"}, "runtimes": ["/usr/bin/crun", "/b"]})",
      R"({"enabled": true, "enabled": true, "runtimes": ["/usr/bin/crun", "/b"]})",
      R"({"runtimes": ["/usr/bin/crun", "/b"], "enabled": })",
      R"({"runtimes": ["/usr/bin/crun", "/b"], "log": {"level")",
      R"({"runtimes": ["/usr/bin/crun", "/b"],})",
      R"({"runtimes": ["/usr/bin/crun", "/b"])",
      R"({"runtimes": ["/usr/bin/crun", "/b"]} x)",
      "// \"runtimes\": [\"/usr/bin/runc\"]\n{\"runtimes\": [\"/usr/bin/crun\", \"/b\"] \"a\": 1}",
      R"({"\u0072untimes": ["/usr/bin/crun", "/b"], "stateDir": 7})",
  };
  for (const std::string& text : cases) {
    const auto runtimes = salvage_runtimes(text);
    ASSERT_TRUE(runtimes) << text << runtimes.error().message;
    ASSERT_TRUE(*runtimes) << text;
    EXPECT_THAT(**runtimes, ElementsAre("/usr/bin/crun", "/b")) << text;
  }
}

TEST(SalvageRuntimes, KnowsWhenTheyAreLeftOut) {
  const std::vector<std::string> cases = {
      "{}",
      "{ // \"runtimes\": [\"/usr/bin/crun\"]\n}",
      R"({"onErorr": "reject"})",
      R"({"statedir": "/run/other", "cgroupRooot": "/x", "logSink": "/var/log/podqos"})",
      R"({"log": {"sink": 7, "levell": "debug"}, "comment": "of the node's owner"})",
      R"({"qosReserved": {"memory": "150%"}, "enabled": "yes"})",
  };
  for (const std::string& text : cases) {
    const auto runtimes = salvage_runtimes(text);
    ASSERT_TRUE(runtimes) << text << runtimes.error().message;
    EXPECT_FALSE(*runtimes) << text;
  }
}

struct Doubt {
  std::string text;
  std::string word;  ///< in the message
};

TEST(SalvageRuntimes, RefusesWhatMayBeMeantOtherwise) {
  const std::vector<Doubt> cases = {
      {"", "malformed JSON"},
      {"[]", "object"},
      {"enabled: true", "malformed JSON"},
      {R"({"scope": )", "malformed JSON"},
      {R"({"enabled": true)", "malformed JSON"},
      {R"({"enabled": true "runtimes": ["/usr/bin/crun"]})", "malformed JSON"},
      {R"({"runtimes": ["/usr/bin/crun")", "malformed JSON"},
      {R"({"runtimes": ["/usr/bin/crun" "/usr/bin/runc"]})", "malformed JSON"},
      {R"({"runtimes": ["/usr/bin/crun"], x, "runtimes": ["/usr/bin/runc"]})", "malformed JSON"},
      {R"({"runtimes": ["/usr/bin/crun"] "runtimes": ["/usr/bin/runc"]})", "malformed JSON"},
      {R"({"runtimes": ["/usr/bin/crun"], "runtimes": ["/usr/bin/runc" x]})", "malformed JSON"},
      {R"({"log": {"level": "debug", "runtimes": ["/usr/bin/crun"]})", "malformed JSON"},
      {R"({"runtimes": ["/usr/bin/crun"], "runtimes": ["/usr/bin/crun"]})", "repeated"},
      {R"({"runtimes": "/usr/bin/crun"})", "runtimes: expected a list of 1 to 64 absolute paths"},
      {R"({"runtimes": null})", "runtimes: expected a list of 1 to 64 absolute paths"},
      {R"({"runtimes": []})", "runtimes: expected a list of 1 to 64 absolute paths"},
      {R"({"runtimes": ["crun"]})",
       "runtimes: [0]: expected an absolute path without \"..\", found \"crun\""},
      {R"({"runtimes": ["/usr/bin/crun", 7]})", "runtimes: [1]"},
      {R"({"runtime": ["/usr/bin/crun"]})", "runtime may be meant as runtimes"},
      {R"({"Runtimes": ["/usr/bin/crun"]})", "Runtimes may be meant as runtimes"},
      {R"({"runtmies": "/usr/bin/crun"})", "runtmies may be meant as runtimes"},
      {R"({"binaries": ["/usr/bin/crun"]})", "binaries may be meant as runtimes"},
      {R"({"ociBinary": "/usr/bin/crun"})", "ociBinary may be meant as runtimes"},
      {R"({"nri": {"runtimes": ["/usr/bin/crun"]}})", "runtimes may be meant as runtimes"},
      {std::string("{\"runtimes\": [\"/usr/bin/crun\"]}\0", 32), "NUL"},
  };
  for (const auto& [text, word] : cases) {
    const auto runtimes = salvage_runtimes(text);
    ASSERT_FALSE(runtimes) << text;
    EXPECT_EQ(runtimes.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(runtimes.error().message, HasSubstr(word)) << text;
  }
}

}  // namespace
}  // namespace podqos::codec
