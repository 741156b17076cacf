#include "ctl/doctor/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// A machine on which these two answer so.
Run answers(const Result<std::string>& hook, const Result<std::string>& plugin) {
  return [=](const std::vector<std::string>& argv) {
    EXPECT_EQ(argv.at(1), "--version");
    return argv.at(0) == "/usr/libexec/oci/hooks.d/podqos-hook" ? hook : plugin;
  };
}

TEST(ReadVersions, AsksTheInstalledPrograms) {
  std::vector<std::string> warnings;
  const Json versions = read_versions(
      answers("podqos-hook " PODQOS_VERSION, fail(ErrorCode::kNotFound, "not there")), warnings);
  EXPECT_EQ(versions.dump(), R"({"podqosctl":")" PODQOS_VERSION
                             R"(","podqos-hook":")" PODQOS_VERSION R"(","podqos-nri":null})");
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(ReadVersions, WarnsOfOthers) {
  std::vector<std::string> warnings;
  const Json versions =
      read_versions(answers("podqos-hook 0.0.9", fail(ErrorCode::kTimeout, "timed out")), warnings);
  EXPECT_EQ(versions["podqos-hook"], "0.0.9");
  EXPECT_EQ(versions["podqos-nri"], Json{});
  EXPECT_THAT(warnings,
              ElementsAre("/usr/libexec/oci/hooks.d/podqos-hook has version 0.0.9, "
                          "podqosctl " PODQOS_VERSION
                          ": install the packages podqos and podqos-nri in one version",
                          "cannot determine the version of /usr/sbin/podqos-nri: timed out"));
}

TEST(ReadVersions, TrustsNoReply) {
  std::vector<std::string> warnings;
  const Json versions =
      read_versions(answers("podqos-hook \x1b[2J", "Segmentation fault"), warnings);
  EXPECT_EQ(versions["podqos-hook"], "\\x1b[2J");
  EXPECT_THAT(warnings,
              ElementsAre(StartsWith("/usr/libexec/oci/hooks.d/podqos-hook has version \\x1b[2J"),
                          "cannot determine the version of /usr/sbin/podqos-nri: unexpected reply "
                          "\"Segmentation fault\""));
}

}  // namespace
}  // namespace podqos::ctl
