#include "hook/bundle.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::hook {
namespace {

using nlohmann::json;

class BundleTest : public ::testing::Test {
 protected:
  BundleTest() { std::filesystem::create_directory(directory_.path("b")); }
  [[nodiscard]] std::string path() const { return directory_.path("b"); }
  [[nodiscard]] Bundle open() const {
    auto bundle = Bundle::open(path());
    if (!bundle) std::abort();
    return std::move(*bundle);
  }
  TemporaryDirectory directory_;
};

TEST_F(BundleTest, ResolvesSymlinksInItsPath) {
  std::filesystem::create_directory_symlink(path(), directory_.path("link"));
  const auto bundle = Bundle::open(directory_.path("link"));
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->canonical(), path());
}

TEST_F(BundleTest, SaysWhichBundleIsNotThere) {
  const auto bundle = Bundle::open(directory_.path("nowhere"));
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().code, ErrorCode::kNotFound);
  EXPECT_NE(bundle.error().message.find(directory_.path("nowhere")), std::string::npos);
}

TEST_F(BundleTest, IsADirectory) {
  directory_.write("file", "");
  EXPECT_FALSE(Bundle::open(directory_.path("file")));
}

TEST_F(BundleTest, ReadsAConfigThatIsNotThereAsNotFound) {
  const auto config = open().read_config();
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kNotFound);
}

TEST_F(BundleTest, ReplacesTheConfigKeepingOwnerAndMode) {
  directory_.write("b/config.json", "before");
  ASSERT_EQ(::chmod(directory_.path("b/config.json").c_str(), 0604), 0);
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::chown(directory_.path("b/config.json").c_str(), 1234, 4321), 0);
  }
  Bundle bundle = open();
  ASSERT_TRUE(bundle.read_config());
  EXPECT_EQ(bundle.config(), "before");
  ASSERT_TRUE(bundle.write_config("after"));
  EXPECT_EQ(directory_.read("b/config.json"), "after");
  struct stat status{};
  ASSERT_EQ(::stat(directory_.path("b/config.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0604U);
  if (root) {
    EXPECT_EQ(status.st_uid, 1234U);
    EXPECT_EQ(status.st_gid, 4321U);
  }
}

TEST_F(BundleTest, LeavesNothingBesideTheConfig) {
  directory_.write("b/config.json", "before");
  Bundle bundle = open();
  ASSERT_TRUE(bundle.read_config());
  ASSERT_TRUE(bundle.write_config("after"));
  int files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator{path()})
    ++files;
  EXPECT_EQ(files, 1);
}

TEST_F(BundleTest, ReadsAnotherNameToo) {
  directory_.write("b/other.json", "other");
  Bundle bundle = open();
  ASSERT_TRUE(bundle.read_config("other.json"));
  EXPECT_EQ(bundle.config(), "other");
}

TEST_F(BundleTest, FollowsNoSymlinkOutOfTheBundle) {
  directory_.write("secret", "secret");
  std::filesystem::create_symlink(directory_.path("secret"), directory_.path("b/config.json"));
  EXPECT_FALSE(open().read_config());
}

TEST_F(BundleTest, RefusesAPipe) {
  ASSERT_EQ(::mkfifo(directory_.path("b/config.json").c_str(), 0600), 0);
  EXPECT_FALSE(open().read_config());
}

TEST_F(BundleTest, RefusesAConfigBeyondTheLimit) {
  directory_.write("b/config.json", std::string(codec::kMaxConfigSize + 1, ' '));
  const auto config = open().read_config();
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kTooLarge);
}

TEST_F(BundleTest, StaysInTheDirectoryThatWasOpened) {
  directory_.write("b/config.json", "first");
  Bundle bundle = open();
  std::filesystem::rename(path(), directory_.path("moved"));
  std::filesystem::create_directory(path());
  directory_.write("b/config.json", "second");
  ASSERT_TRUE(bundle.read_config());
  EXPECT_EQ(bundle.config(), "first");
  ASSERT_TRUE(bundle.write_config("edited"));
  EXPECT_EQ(directory_.read("moved/config.json"), "edited");
  EXPECT_EQ(directory_.read("b/config.json"), "second");
}

TEST_F(BundleTest, NamesABundleThatIsGoneAsItWasNamed) {
  EXPECT_EQ(canonical_bundle("/nowhere/at/all"), "/nowhere/at/all");
  EXPECT_EQ(canonical_bundle(""), "");
  directory_.write("b/config.json", "{}");
  EXPECT_EQ(canonical_bundle(path() + "/../b/"), path());
}

TEST_F(BundleTest, KnowsNoBundleWithoutConfig) {
  EXPECT_EQ(canonical_bundle(path()), "");
  EXPECT_EQ(canonical_bundle("/"), "");
}

const core::ConfigEdit kAll{
    .cgroups_path = "/podqos/kubepods/pod1/c",
    .values = {.cpu_shares = CpuShares{102},
               .cpu_quota = Micros{50'000},
               .cpu_period = Micros{100'000},
               .memory_limit = Bytes{4096},
               .hugepages = {{"1GB", Bytes{8}}, {"2MB", Bytes{9}}},
               .pids_limit = 7,
               .unified = {{"memory.oom.group", "1"}, {"memory.swap.max", "0"}}},
    .oom_score_adj = 997};

std::string edited(const std::string& text, const core::ConfigEdit& edit = kAll) {
  const auto config = codec::OciConfig::parse(text);
  EXPECT_TRUE(config) << config.error().message;
  const auto splices = codec::plan_splices(*config, edit, std::nullopt);
  EXPECT_TRUE(splices) << splices.error().message;
  return codec::apply_splices(text, *splices).value_or("");
}

class FormerConfig : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(FormerConfig, IsToTheByteWhatWasEdited) {
  const std::string before = GetParam().second;
  const std::string after = edited(before);
  ASSERT_NE(after, before);
  EXPECT_EQ(former_config(after), before);
  EXPECT_EQ(former_config(before), std::nullopt);
}

TEST_P(FormerConfig, OutlivesAnotherFormat) {
  const json before = json::parse(GetParam().second);
  const std::string formatted = json::parse(edited(before.dump())).dump(3);
  EXPECT_EQ(json::parse(former_config(formatted).value()), before);
}

INSTANTIATE_TEST_SUITE_P(
    Table, FormerConfig,
    testing::Values(
        std::pair{"Empty", R"({"process":{},"linux":{ "resources": {"cpu":{},"memory":{ },)"
                           R"("pids":{},"hugepageLimits":[],"unified":{}}}})"},
        std::pair{"Unset",
                  R"({"process":{"oomScoreAdj":0},"linux":{"cgroupsPath":null,"resources":)"
                  R"({"cpu":{"shares":0,"quota":null,"period" : 0},"memory":{"limit":null},)"
                  R"("pids":{"limit":0},"hugepageLimits":[],"unified":{}}}})"},
        std::pair{"Others",
                  R"({"process":{"args":["a\"}"]},"linux":{"resources":{"cpu":{"burst":1},)"
                  R"("memory":{"swap":-1},"pids":{"x":[{}]},)"
                  R"("hugepageLimits":[{"limit":1,"pageSize":"64KB"}],)"
                  R"("unified":{"memory.max":"0"} },"cgroupsPath":"/\u0061"}})"},
        std::pair{"InAnyCase",
                  R"({"Process":{"oomscoreadj":0},"LINUX":{"Resources":{"CPU":{"Burst":1,)"
                  R"("Shares":0},"Memory":{},"Pids":{},"HugepageLimits":[],"Unified":{}}}})"}),
    [](const auto& instance) { return instance.param.first; });

TEST(FormerConfigOf, TakesObjectsThatHadToBeMadeForEmptyOnes) {
  const json former = json::parse(former_config(edited("{}", kAll)).value());
  EXPECT_EQ(former, json::parse(R"({"process":{},"linux":{"resources":{"cpu":{},"memory":{},)"
                                R"("pids":{},"hugepageLimits":[],"unified":{}}}})"));
}

TEST(FormerConfigOf, LeavesWhatSomebodyHasChangedSince) {
  std::string text =
      edited(R"({"linux":{"resources":{"memory":{},"cpu":{}}}})",
             {.values = {.cpu_shares = CpuShares{102}, .memory_limit = Bytes{4096}}});
  text.replace(text.find("4096"), 4, "8192");
  EXPECT_EQ(former_config(text), R"({"linux":{"resources":{"memory":{"limit":8192},"cpu":{}}}})");
}

TEST(FormerConfigOf, ChangesNothingElseOnTheWordOfARecord) {
  for (const char* edit :
       {R"({"at":"/process/user/uid","is":1})", R"({"at":"/process","is":{}})",
        R"({"at":"/process/user/uid"})", "1", R"({"at":7,"is":1})", R"({"at":"","is":1})",
        R"({"at":"/linux/resources/unified/x","is":1})"}) {
    const std::string rest =
        R"({"process":{"user":{"uid":1}},"linux":{"resources":{"unified":{"x":1}}})";
    EXPECT_EQ(former_config(cat(rest, R"(,"podqos.io/edits":[)", edit, "]}")), rest + "}") << edit;
  }
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i)
    all += cat(i == 0 ? "" : ",", text);
  return all;
}

TEST(FormerConfigOf, TakesOutARecordThatIsLongerThanItsOwnCanBe) {
  constexpr std::string_view kRest = R"({"linux":{"cgroupsPath":"/b"})";
  constexpr std::string_view kEdit = R"({"at":"/linux/cgroupsPath","is":"/b","was":"/a"})";
  const auto noted = [&](std::string_view edits) {
    return cat(kRest, R"(,"podqos.io/edits":[)", edits, "]}");
  };
  EXPECT_EQ(former_config(noted(repeated(kEdit, 32))), R"({"linux":{"cgroupsPath":"/a"}})");
  EXPECT_EQ(former_config(noted(repeated(kEdit, 33))), cat(kRest, "}"));
  EXPECT_EQ(former_config(noted(repeated("0", 4'000'000))), cat(kRest, "}"));
  const std::string path(std::size_t{64} * 1024, 'a');
  EXPECT_EQ(
      former_config(noted(cat(R"({"at":"/linux/cgroupsPath","is":"/b","was":"/)", path, R"("})"))),
      cat(kRest, "}"));
}

TEST(FormerConfigOf, LeavesTextThatIsNoConfigAlone) {
  for (const char* text : {"", "[", R"({"podqos.io/edits":[)", R"({"podqos.io/edits":})",
                           R"({"podqos.io/edits":[],"podqos.io/edits":[]})"})
    EXPECT_EQ(former_config(text), std::nullopt) << text;
}

}  // namespace
}  // namespace podqos::hook
