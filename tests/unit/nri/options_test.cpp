#include "nri/options.h"

#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/temporary_variable.h"

namespace podqos::nri {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::variant<Options, Answer> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "podqos-nri");
  return parse_options(static_cast<int>(words.size()), words.data());
}

/// What a command line is answered with; nothing for one that is good.
Answer answer_to(const std::vector<const char*>& words) {
  const auto parsed = parse(words);
  const auto* answer = std::get_if<Answer>(&parsed);
  return answer == nullptr ? Answer{.status = -1, .text = ""} : *answer;
}

TEST(ParseOptions, NeedsNone) {
  const auto options = std::get<Options>(parse({}));
  EXPECT_EQ(options, Options{});
  EXPECT_EQ(options.name, "podqos");
  EXPECT_EQ(options.index, "10");
}

TEST(ParseOptions, TakesThemAll) {
  const Options want{.socket = "/run/s",
                     .config = "/c.json",
                     .index = "07",
                     .name = "aZ0_.+-",
                     .metrics = core::UnixSocket{"/run/m"}};
  EXPECT_EQ(std::get<Options>(parse({"--socket", "/run/s", "--config=/c.json", "--index", "07",
                                     "--name", "aZ0_.+-", "--metrics", "unix:/run/m"})),
            want);
}

TEST(ParseOptions, PrintsVersionAndHelp) {
  EXPECT_EQ(answer_to({"--version"}),
            (Answer{.status = 0, .text = "podqos-nri " PODQOS_VERSION "\n"}));
  const Answer help = answer_to({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.text,
              AllOf(HasSubstr("--socket PATH"), HasSubstr("/var/run/nri/nri.sock"),
                    HasSubstr("--config FILE"), HasSubstr("--index NN"), HasSubstr("--name NAME"),
                    HasSubstr("--metrics ADDRESS"), HasSubstr("podqos-nri(8)")));
  std::istringstream lines{help.text};
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 80U) << line;
}

TEST(ParseOptions, RefusesWithTheWordAndTheReason) {
  struct Wrong {
    std::vector<const char*> words;
    std::string want;
  };
  const std::string index = "--index: expected a plugin index of two digits, found ";
  const std::string name = "--name: expected a plugin name of letters, digits and _.+-, found ";
  const std::string unexpected = "The following argument was not expected: ";
  for (const auto& [words, want] : std::vector<Wrong>{
           {{"--index", "7"}, index + "\"7\""},
           {{"--index", "100"}, index + "\"100\""},
           {{"--index", "1x"}, index + "\"1x\""},
           {{"--name", ""}, name + "\"\""},
           {{"--name", "a/b"}, name + "\"a/b\""},
           {{"--socket", "x"},
            "--socket: \"x\" is not a socket address: expected an absolute path"},
           {{"--metrics", "9464"},
            "--metrics: \"9464\" is not a metrics address: expected one of "
            "unix:/run/podqos/metrics.sock, 127.0.0.1:9464, [::1]:9464"},
           {{"--sokcet=/x"}, unexpected + "--sokcet=/x"},
           {{"start"}, unexpected + "start"},
       }) {
    EXPECT_EQ(answer_to(words),
              (Answer{.status = 2,
                      .text = "podqos-nri: " + want + "; use --help to list the options\n"}));
  }
}

}  // namespace
}  // namespace podqos::nri
