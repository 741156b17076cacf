#include <csignal>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "ctl/configure/lines.h"
#include "tests/unit/child_process.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::ctl {
namespace {

using testing::HasSubstr;

// The first lines of what the programs of Debian 12, 13 and testing and of docker.com print.
TEST(ParseVersion, FindsTheFirstNumber) {
  for (const auto& [text, want] :
       {std::pair{"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3\n",
                  std::optional{Version{1, 6}}},
        {"containerd github.com/containerd/containerd/v2 2.1.9+ds1 2.1.9+ds1-5\n", Version{2, 1}},
        {"containerd containerd.io v1.7.27 05044ec0a9a75232cad458027\n", Version{1, 7}},
        {"podman version 4.3.1\n", Version{4, 3}},
        {"Docker version 28.5.2+dfsg4, build 89c5e8f\n", Version{28, 5}},
        {"crio version 1.30.0\nVersion:        1.30.0\n", Version{1, 30}},
        {"segmentation fault\n", std::nullopt},
        {"", std::nullopt},
        {"x 99999999999999999999.1\n", std::nullopt}})
    EXPECT_EQ(parse_version(text), want) << text;
}

TEST(BestMethod, IsNriWhereVersionAndPluginHaveIt) {
  using enum EngineId;
  for (const auto& [id, version, plugin, method] :
       {std::tuple{kContainerd, std::optional{Version{1, 6}}, true, Method::kWrapper},
        {kContainerd, Version{1, 7}, true, Method::kNri},
        {kContainerd, Version{2, 1}, false, Method::kWrapper},
        {kContainerd, std::nullopt, true, Method::kWrapper},
        {kCrio, Version{1, 25}, true, Method::kWrapper},
        {kCrio, Version{1, 26}, true, Method::kNri},
        {kDocker, Version{28, 5}, true, Method::kWrapper},
        {kPodman, Version{4, 3}, true, Method::kHooks}}) {
    const Engine& engine = engines()[static_cast<std::size_t>(id)];
    EXPECT_EQ(best_method({.engine = &engine, .version = version, .plugin_installed = plugin}),
              method)
        << engine.name;
  }
}

const std::string kRemark = " (podqosctl configure writes these lines anew; --undo removes them)\n";

TEST(EditBlocks, AppendsAndReplacesInPlace) {
  const auto first = edit_blocks("a = 1\n", "f", "x", "b = 2\n");
  EXPECT_EQ(first, "a = 1\n# podqos: begin x" + kRemark + "b = 2\n# podqos: end x\n");
  const auto second = edit_blocks(*first + "c = 3\n", "f", "x", "b = 4\n");
  EXPECT_EQ(second, "a = 1\n# podqos: begin x" + kRemark + "b = 4\n# podqos: end x\nc = 3\n");
  const auto both = edit_blocks(*second, "f", "y", "d = 5\n");
  EXPECT_EQ(edit_blocks(*both, "f"), "a = 1\nc = 3\n");
  EXPECT_EQ(edit_blocks("a = 1\n", "f"), "a = 1\n");
}

TEST(EditBlocks, EndsLinesAsTheFileDoes) {
  EXPECT_EQ(edit_blocks("a = 1\r\nb = 2", "f", "x", "c = 3\n"),
            "a = 1\r\nb = 2\r\n# podqos: begin x" + kRemark.substr(0, kRemark.size() - 1) +
                "\r\nc = 3\r\n# podqos: end x\r\n");
}

TEST(TomlDocument, KnowsValuesAndLines) {
  const auto document = TomlDocument::parse(
      "\xef\xbb\xbfversion = 2\r\n[a.\"b.c\"]\r\n  d = [\"x\", 1.5, 1979-05-27]\r\n", "f");
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_TRUE(document->at("a/b.c/d").lists("x"));
  EXPECT_FALSE(document->at("a/b.c/d").lists("y"));
  EXPECT_EQ(document->at("version").text(), "");
  EXPECT_EQ(document->at("a/b.c/d").place, "f:3");
  EXPECT_EQ(document->at("a/b.c/e").place, "f:2");
  EXPECT_EQ(document->at("x").place, "f:1");
}

TEST(TomlDocument, RefusesKeysAndValuesThatAreNestedTooDeeply) {
  const auto nested = [](std::size_t levels, std::string_view level) {
    std::string text;
    for (std::size_t each = 0; each < levels; ++each)
      text += level;
    return text;
  };
  EXPECT_TRUE(
      TomlDocument::parse(nested(64, "a.") + "a = " + nested(64, "[") + nested(64, "]"), "f"));
  EXPECT_TRUE(
      TomlDocument::parse(nested(32, nested(64, "a.") + "a = [\n{") + nested(32, "}]"), "f"));
  const std::string many = nested(9999, ".[");
  for (const std::string& text :
       {"# \"" + many, "x = \"" + many + "\" # " + many, "x = \"\\\\\" # \"" + many,
        "x = \"\\\"" + many + "\"", "x = '\\' # '" + many, "x.\"=" + many + "\" = 1",
        "x = '''\n'" + many + "''''' # '" + many, "x = \"\" # " + many})
    EXPECT_TRUE(TomlDocument::parse(text, "f")) << text.substr(0, 10);
  for (const std::string& text :
       {"\n[" + nested(1025, "a.") + "a]\n", "\n" + nested(100'000, "a.") + "a = 1\n",
        "\n[" + nested(1025, "'='.") + "a]\n",
        "\n" + nested(20, nested(1024, "a.") + "a = [\n{") + nested(20, "}]") + "\n",
        "\nb = " + nested(1000, "[") + nested(1000, "]") + "\n",
        "\nb = " + nested(100'000, "{a = ") + "\n"}) {
    const auto document = TomlDocument::parse(text, "f");
    ASSERT_FALSE(document) << text;
    EXPECT_THAT(document.error().message, testing::StartsWith("f:2: "));
  }
}

TEST(TomlDocument, NamesTheLineOfTheMistake) {
  EXPECT_THAT(TomlDocument::parse("[a]\nb = 1\n[a]\n", "f").error().message, HasSubstr("f:3: "));
  EXPECT_THAT(TomlDocument::parse("a = 1\nb = \n", "f").error().message, HasSubstr("f:2: "));
  EXPECT_FALSE(TomlDocument::parse("a = \"\xff\"\n", "f"));
  for (const char* name : {"[=]", "[[[a]]]", "[.a]", "[#]", "[ =]", "[\n]", "[", "[[", "a.", "[]"})
    EXPECT_FALSE(TomlDocument::parse(name, "f")) << name;
  EXPECT_FALSE(TomlDocument::parse(std::string(100'000, '[') + "\n", "f"));
  EXPECT_FALSE(TomlDocument::parse("a = " + std::string(100'000, '[') + "\n", "f"));
}

TEST(RunProgram, SaysWhyAProgramDoesNotRun) {
  const TemporaryDirectory directory;
  directory.write("program", "no program");
  const std::string path = directory.path("program");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  EXPECT_EQ(run_program({path}).error().message, "run " + path + ": Exec format error");
}

TEST(RunProgram, SaysWhatAProgramSaysThatFails) {
  const auto done = run_program({"/bin/sh", "-c", "printf 'no \"unit\"\nat all'; exit 1"});
  EXPECT_EQ(done.error().message, "no \"unit\"; at all");
}

// Docker's client warns of a damaged config.json there, and answers all the same.
TEST(RunProgram, TakesStandardOutputForTheAnswer) {
  EXPECT_EQ(run_program({"/bin/sh", "-c", "echo WARNING >&2; echo answer"}), "answer");
  // containerd and CRI-O print the configuration before they say what is wrong with it.
  EXPECT_EQ(run_program({"/bin/sh", "-c", "echo all; echo why >&2; exit 1"}).error().message,
            "why");
}

TEST(RunProgram, DoesNotWaitForWhatAProgramLeavesBehind) {
  const auto left = run_program({"/bin/sh", "-c", "sleep 1000 & echo $!"});
  ASSERT_TRUE(left) << left.error().message;
  const auto pid = parse_int(*left);
  ASSERT_TRUE(pid);
  EXPECT_EQ(::kill(static_cast<pid_t>(*pid), SIGKILL), 0);
}

// As the caller of podqosctl may have left it.
TEST(RunProgram, KnowsTheExitStatusWhereSigchldIsIgnored) {
  expect_in_child([] {
    static_cast<void>(std::signal(SIGCHLD, SIG_IGN));
    EXPECT_FALSE(run_program({"/bin/sh", "-c", "exit 1"}));
    static_cast<void>(std::signal(SIGCHLD, SIG_IGN));
    EXPECT_TRUE(run_program({"/bin/sh", "-c", "exit 0"}));
  });
}

std::string diff_of(const std::string& before, const FileState& after, const std::string& root,
                    ColourMode mode = ColourMode::kPlain) {
  const FileState none;
  Setup setup{.engine = &engines()[0], .dry_run = true, .root = root};
  setup.changes = {
      {.path = "/etc/f", .before = before.empty() ? none : none.with(before), .after = after}};
  return format_text(setup, mode).value_or("no diff");
}

TEST(FormatText, ShowsAUnifiedDiffOfADryRun) {
  EXPECT_EQ(
      diff_of("1\n2\n3\n4\n5\n6\n7\n8\n9", FileState{}.with("1\n2\n3\n4\nfive\n6\n7\n8\n9"),
              "/tree"),
      "--- /tree/etc/f\n+++ /tree/etc/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
  EXPECT_EQ(diff_of("", {.kind = FileState::Kind::kLink, .text = "/t"}, ""),
            "--- /dev/null\n+++ /etc/f\n@@ -0,0 +1 @@\n+-> /t\n");
  EXPECT_EQ(diff_of("a", FileState{}.with("a\n"), ""),
            "--- /etc/f\n+++ /etc/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
  EXPECT_THAT(diff_of("", FileState{}.with("a\n"), "", ColourMode::kColoured),
              HasSubstr("\x1b[32m+a"));
}

}  // namespace
}  // namespace podqos::ctl
