#include "ctl/cli/completion.h"

#include <gtest/gtest.h>

namespace podqos::ctl {
namespace {

/// A command line with one of each.
class Completions : public ::testing::Test {
 protected:
  Completions() {
    app_.add_option("--config", "Configuration")->type_name("FILE");
    CLI::App* show = app_.add_subcommand("show", "Show it");
    show->add_option("-o,--output", "text or json")->check(CLI::IsMember({"text", "json"}));
    show->add_option("--bundle", "Where")->type_name("DIR");
    show->add_option("--seconds", "Duration");
    show->add_flag_callback("--all", [] {}, "Everything");
    app_.add_subcommand("hidden", "For scripts")->group("");
    CLI::App* set = app_.add_subcommand("set", "Set it");
    set->add_option("ENGINE", "Of which")->check(CLI::IsMember({"podman", "docker"}));
    set->add_option("FILE", "Where")->expected(0, 1);
  }

  CLI::App app_{"", "program"};
};

TEST_F(Completions, OfferSubcommandsThatHelpShows) {
  EXPECT_EQ(completions(app_, {""}), "show\tShow it\nset\tSet it\n");
  EXPECT_EQ(completions(app_, {"sh"}), "show\tShow it\n");
  EXPECT_EQ(completions(app_, {"show", "x", "bogus"}), "");
}

TEST_F(Completions, OfferOptionsOfTheCommandAndOfThoseAboveIt) {
  EXPECT_EQ(completions(app_, {"show", "--"}),
            "--help\tPrint this help message and exit\n--output\ttext or json\n--bundle\tWhere\n"
            "--seconds\tDuration\n--all\tEverything\n--config\tConfiguration\n");
  EXPECT_EQ(completions(app_, {"--config", "x", "show", "--o"}), "--output\ttext or json\n");
}

TEST_F(Completions, OfferAnOptionsValues) {
  EXPECT_EQ(completions(app_, {"show", "-o", "j"}), "json\n");
  EXPECT_EQ(completions(app_, {"show", "--output=t"}), "--output=text\n");
  EXPECT_EQ(completions(app_, {"show", "--bundle", "/x"}), ":dir\n");
  EXPECT_EQ(completions(app_, {"show", "--config="}), ":file\n");
  EXPECT_EQ(completions(app_, {"show", "--seconds", ""}), "");
}

TEST_F(Completions, TellValuesFromCommands) {
  EXPECT_EQ(completions(app_, {"--config", "show", "se"}), "set\tSet it\n");
  EXPECT_EQ(completions(app_, {"show", "--all", "-o", ""}), "text\njson\n");
}

TEST_F(Completions, OfferArgumentsInTheirOrder) {
  EXPECT_EQ(completions(app_, {"set", "d"}), "docker\n");
  EXPECT_EQ(completions(app_, {"set", "docker", ""}), ":file\n");
}

}  // namespace
}  // namespace podqos::ctl
