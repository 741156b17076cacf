#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/oci_config.h"

namespace podqos::codec {
namespace {

using testing::HasSubstr;

struct StateCase {
  std::string text;
  std::optional<Pid> pid;
  std::string bundle;
  core::Annotations annotations;
};

TEST(ParseOciState, ReadsStatesOfRuncAndCrun) {
  const std::vector<StateCase> cases = {
      {R"({"ociVersion":"1.0.2-dev","id":"c1","status":"creating","pid":4242,)"
       R"("bundle":"/run/b\u00fcndle","annotations":{"podqos.io/container":"web","org.other":"x"}})",
       Pid{4242},
       "/run/b\xc3\xbcndle",
       {{"podqos.io/container", "web"}}},
      // crun at poststop.
      {R"({"ociVersion":"1.0","id":"c1","pid":0,"root":"/r","bundle":"/b","status":"stopped"})",
       std::nullopt,
       "/b",
       {}},
      {R"({"id":"c1","pid":null,"bundle":null,"annotations":null})", std::nullopt, "", {}},
      // What is not known.
      {R"({"x":{"id":"no","pid":[1,{"id":2}]},"id":"c1","x":1,"status":7,)"
       R"("annotations":{"other":"1","other":{"id":[]}}})",
       std::nullopt,
       "",
       {}},
  };
  for (const auto& [text, pid, bundle, annotations] : cases) {
    const auto state = parse_oci_state(text);
    ASSERT_TRUE(state) << text << state.error().message;
    EXPECT_EQ(state->id, "c1") << text;
    EXPECT_EQ(state->pid, pid) << text;
    EXPECT_EQ(state->bundle, bundle) << text;
    EXPECT_EQ(state->annotations, annotations) << text;
  }
}

struct StateRefusal {
  std::string text;
  std::string message;
};

TEST(ParseOciState, RefusesWhatIsMalformed) {
  const std::vector<StateRefusal> cases = {
      {"", "OCI state: malformed JSON at byte 1"},
      {"{\"id\":\"c1\"", "malformed JSON"},
      {"{\"id\":\"c1\"}x", "malformed JSON"},
      {"{\"id\":\"\xff\"}", "malformed JSON"},
      {std::string("{\"id\":\"c1\"}\0", 12), "malformed JSON at byte 12"},
      {std::string("{\"id\":\"c1\"}\0,\"id\":\"c2\"}", 22), "malformed JSON at byte 12"},
      {"[]", "expected an object"},
      {"\"c1\"", "expected an object"},
      {"{}", "id is missing or empty"},
      {R"({"id":""})", "id is missing or empty"},
      {R"({"id":null})", "id is missing or empty"},
      {R"({"id":"a\u0000b"})", "unprintable"},
      {R"({"id":"a\n"})", "unprintable"},
      {R"({"id":"\u00e9"})", "unprintable"},
      {R"({"id":1})", "OCI state: id at byte 7: expected a string, found 1"},
      {R"({"id":"a","id":"a"})", "id at byte 11: member is repeated"},
      {R"({"id":"a","pid":1,"pid":1})", "pid at"},
      {R"({"id":"a","bundle":"/a","bundle":"/b"})", "bundle at"},
      {R"({"id":"a","annotations":{},"annotations":{}})", "annotations at"},
      {R"({"id":"a","annotations":{"podqos.io/pod":"","podqos.io/pod":""}})",
       "annotations.podqos.io/pod at byte 45: member is repeated"},
      {R"({"id":"a","annotations":{"podqos.io/pod":1}})",
       "podqos.io/pod at byte 42: expected a string"},
      {R"({"id":"a","annotations":{"podqos.io/pod":{}}})", "expected a string"},
      {R"({"id":"a","annotations":[]})", "annotations at byte 25: expected an object, found array"},
      {R"({"id":"a","pid":"1"})", "expected an integer from 0 to 2147483647, found \"1\""},
      {R"({"id":"a","pid":-1})", "expected an integer from 0 to 2147483647"},
      {R"({"id":"a","pid":2147483648})", "expected an integer from 0 to 2147483647"},
      {R"({"id":"a","pid":1e3})",
       "pid at byte 17: expected an integer from 0 to 2147483647, found 1e3"},
      {R"({"id":"a","bundle":"/a\u0000"})", "NUL"},
  };
  for (const auto& [text, message] : cases) {
    const auto state = parse_oci_state(text);
    ASSERT_FALSE(state) << text;
    EXPECT_EQ(state.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(state.error().message, HasSubstr(message)) << text;
  }
}

TEST(ParseOciState, BoundsEverything) {
  const auto code = [](const std::string& text) {
    const auto state = parse_oci_state(text);
    return state ? std::nullopt : std::optional{state.error().code};
  };
  const auto with = [](std::string_view before, std::size_t size, std::string_view after) {
    return cat(before, std::string(size, 'a'), after);
  };
  EXPECT_EQ(code(with(R"({"id":")", 1024, "\"}")), std::nullopt);
  EXPECT_EQ(code(with(R"({"id":")", 1025, "\"}")), ErrorCode::kInvalidArgument);
  const std::string path = R"({"id":"a","bundle":")";
  EXPECT_EQ(code(with(path, 4096, "\"}")), std::nullopt);
  EXPECT_EQ(code(with(path, 4097, "\"}")), ErrorCode::kInvalidArgument);
  const std::string pod = R"({"id":"a","annotations":{"podqos.io/pod":")";
  EXPECT_EQ(code(with(pod, kMaxAnnotationSize, "\"}}")), std::nullopt);
  EXPECT_EQ(code(with(pod, kMaxAnnotationSize + 1, "\"}}")), ErrorCode::kTooLarge);
  const std::string small = R"({"id":"a"})";
  EXPECT_EQ(code(small + std::string(kMaxStateSize - small.size(), ' ')), std::nullopt);
  EXPECT_EQ(code(small + std::string(kMaxStateSize + 1 - small.size(), ' ')), ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace podqos::codec
