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

using codec::former_config;
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
  EXPECT_TRUE(bundle.error().message.contains(directory_.path("nowhere")));
  directory_.write("file", "");
  EXPECT_FALSE(Bundle::open(directory_.path("file")));
}

TEST_F(BundleTest, ReplacesTheConfigKeepingOwnerAndMode) {
  const bool root = ::geteuid() == 0;
  const std::string file = directory_.path("b/config.json");
  directory_.write("b/config.json", "before");
  ASSERT_EQ(::chmod(file.c_str(), 0604), 0);
  if (root) {
    ASSERT_EQ(::chown(file.c_str(), 1234, 4321), 0);
  }
  Bundle bundle = open();
  ASSERT_TRUE(bundle.read_config());
  EXPECT_EQ(bundle.config(), "before");
  ASSERT_TRUE(bundle.write_config("after"));
  EXPECT_EQ(directory_.read("b/config.json"), "after");
  struct stat status{};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0604U);
  EXPECT_EQ(status.st_uid, root ? 1234U : ::geteuid());
  EXPECT_EQ(status.st_gid, root ? 4321U : ::getegid());
  std::filesystem::remove(file);
  EXPECT_TRUE(std::filesystem::is_empty(path())) << "something is left beside it";
}

TEST_F(BundleTest, RestoresWhatAnotherProcessHasChanged) {
  directory_.write("b/config.json", "before");
  Bundle bundle = open();
  ASSERT_TRUE(bundle.read_config());
  const auto inode = [&] {
    struct stat status{};
    EXPECT_EQ(::stat(directory_.path("b/config.json").c_str(), &status), 0);
    return status.st_ino;
  };
  const auto unchanged = inode();
  ASSERT_TRUE(bundle.restore_config());
  EXPECT_EQ(inode(), unchanged);
  {
    Bundle child = open();
    ASSERT_TRUE(child.read_config());
    ASSERT_TRUE(child.write_config("edited"));
  }
  ASSERT_TRUE(bundle.restore_config());
  EXPECT_EQ(directory_.read("b/config.json"), "before");
  std::filesystem::remove(directory_.path("b/config.json"));
  EXPECT_FALSE(bundle.restore_config());
}

TEST_F(BundleTest, RefusesWhatIsNoFileOfItsOwn) {
  const std::string config = directory_.path("b/config.json");
  const auto code = [&] { return open().read_config().error().code; };
  EXPECT_EQ(code(), ErrorCode::kNotFound);
  directory_.write("secret", "secret");
  std::filesystem::create_symlink(directory_.path("secret"), config);
  EXPECT_FALSE(open().read_config());
  std::filesystem::remove(config);
  ASSERT_EQ(::mkfifo(config.c_str(), 0600), 0);
  EXPECT_FALSE(open().read_config());
  std::filesystem::remove(config);
  directory_.write("b/config.json", std::string(codec::kMaxConfigSize + 1, ' '));
  EXPECT_EQ(code(), ErrorCode::kTooLarge);
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

TEST_F(BundleTest, IsNamedByItsPathWithoutLinksIfItIsOne) {
  EXPECT_EQ(canonical_bundle("/nowhere/at/all"), "/nowhere/at/all");
  for (const std::string& none : {std::string{}, std::string{"/"}, path()})
    EXPECT_EQ(canonical_bundle(none), "") << none;
  directory_.write("b/config.json", "{}");
  EXPECT_EQ(canonical_bundle(path() + "/../b/"), path());
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
  return codec::edit_config(*config, edit, std::nullopt).value();
}

TEST(FormerConfig, IsToTheByteWhatWasEdited) {
  for (const std::string before :
       {// Empty, unset, with what others have set, with names in any case, and with escapes.
        R"({"process":{},"linux":{ "resources": {"cpu":{},"memory":{ },)"
        R"("pids":{},"hugepageLimits":[],"unified":{}}}})",
        R"({"process":{"oomScoreAdj":0},"linux":{"cgroupsPath":null,"resources":)"
        R"({"cpu":{"shares":0,"quota":null,"period" : 0},"memory":{"limit":null},)"
        R"("pids":{"limit":0},"hugepageLimits":[],"unified":{}}}})",
        R"({"process":{"args":["a\"}"]},"linux":{"resources":{"cpu":{"burst":1},)"
        R"("memory":{"swap":-1},"pids":{"x":[{}]},)"
        R"("hugepageLimits":[{"limit":1,"pageSize":"64KB"}],)"
        R"("unified":{"memory.max":"0"} },"cgroupsPath":"/\u0061"}})",
        R"({"Process":{"oomscoreadj":0},"LINUX":{"Resources":{"CPU":{"Burst":1,)"
        R"("Shares":0},"Memory":{},"Pids":{},"HugepageLimits":[],"Unified":{}}}})",
        R"({"process":{"oomScoreAdj":1},"Process":{"oomScoreAdj":0},"linux":{"cgroupsPath":"/a",)"
        R"("resources":{"cpu":{"shares":2}}},"Linux":{"resources":{"CPU":{},"cpu":{"x":1},)"
        R"("memory":{"x":1},"Memory":{ },"pids":{},"hugepageLimits":[],"unified":{},)"
        R"("Unified":{}}}})",
        R"({"pro\u0063ess":{},"l\u0069nux":{"re\u0073ources":{"c\u0070u":{},"memory":{},)"
        R"("pids":{},"hugepage\u004cimits":[],"uni\u0066ied":{}}}})"}) {
    const std::string after = edited(before);
    ASSERT_NE(after, before);
    EXPECT_EQ(former_config(after), before);
    EXPECT_EQ(former_config(before), std::nullopt);
    // The same in another format.
    const json document = json::parse(before);
    const std::string formatted = json::parse(edited(document.dump())).dump(3);
    EXPECT_EQ(json::parse(former_config(formatted).value()), document);
  }
}

TEST(FormerConfig, TakesObjectsThatHadToBeMadeForEmptyOnes) {
  const json former = json::parse(former_config(edited("{}", kAll)).value());
  EXPECT_EQ(former, json::parse(R"({"process":{},"linux":{"resources":{"cpu":{},"memory":{},)"
                                R"("pids":{},"hugepageLimits":[],"unified":{}}}})"));
}

TEST(FormerConfig, LeavesWhatHasChangedSince) {
  std::string text =
      edited(R"({"linux":{"resources":{"memory":{},"cpu":{}}}})",
             {.values = {.cpu_shares = CpuShares{102}, .memory_limit = Bytes{4096}}});
  text.replace(text.find("4096"), 4, "8192");
  EXPECT_EQ(former_config(text), R"({"linux":{"resources":{"memory":{"limit":8192},"cpu":{}}}})");
}

TEST(FormerConfig, ChangesNothingElseOnTheWordOfARecord) {
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

TEST(FormerConfig, TakesOutARecordThatIsLongerThanItsOwnCanBe) {
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

TEST(FormerConfig, LeavesTextThatIsNoConfigAlone) {
  for (const char* text : {"", "[", R"({"podqos.io/edits":[)", R"({"podqos.io/edits":})",
                           R"({"podqos.io/edits":[],"podqos.io/edits":[]})"})
    EXPECT_EQ(former_config(text), std::nullopt) << text;
}

}  // namespace
}  // namespace podqos::hook
