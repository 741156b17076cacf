#include "common/codec/oci_state.h"

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/annotations.h"

namespace podqos::codec {
namespace {

using testing::HasSubstr;

TEST(ParseOciState, ReadsTheStateOfRunc) {
  const auto state =
      parse_oci_state(R"({"ociVersion":"1.0.2-dev","id":"c1","status":"creating","pid":4242,
      "bundle":"/run/b\u00fcndle","annotations":{"podqos.io/container":"web","org.other":"x"}})");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->id, "c1");
  EXPECT_EQ(state->pid, Pid{4242});
  EXPECT_EQ(state->bundle, "/run/b\xc3\xbcndle");
  EXPECT_EQ(state->annotations, (core::Annotations{{"podqos.io/container", "web"}}));
}

TEST(ParseOciState, ReadsTheStateOfCrunAtPoststop) {
  const auto state = parse_oci_state(
      R"({"ociVersion":"1.0","id":"c1","pid":0,"root":"/r","bundle":"/b","status":"stopped"})");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->pid, std::nullopt);
  EXPECT_EQ(state->bundle, "/b");
  EXPECT_TRUE(state->annotations.empty());
}

TEST(ParseOciState, TakesNullForAbsent) {
  const auto state = parse_oci_state(R"({"id":"c1","pid":null,"bundle":null,"annotations":null})");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->pid, std::nullopt);
  EXPECT_EQ(state->bundle, "");
}

TEST(ParseOciState, PassesOverWhatItDoesNotKnow) {
  const auto state = parse_oci_state(
      R"({"x":{"id":"no","pid":[1,{"id":2}]},"id":"c1","x":1,"status":7,"annotations":{"other":"1","other":{"id":[]}}})");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->id, "c1");
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
      {R"({"id":"a","pid":"1"})", "expected an integer from 0 to 2147483647, found string"},
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

/// As runc 1.1 and crun 1.8 wrote them.
const std::array<std::string, 2> kRealStates = {
    R"({"ociVersion":"1.0.2-dev","id":"c1","status":"creating","pid":4242,"bundle":"/run/bundle",)"
    R"("annotations":{"io.kubernetes.cri.sandbox-id":"5a","podqos.io/limits":"cpu=1,memory=1Gi"}})",
    R"({"ociVersion":"1.0","id":"c1","pid":0,"root":"/run/bundle/rootfs","bundle":"/run/bundle",)"
    R"("status":"stopped"})"};

TEST(ParseOciState, RefusesEveryCutState) {
  for (const std::string& whole : kRealStates) {
    ASSERT_TRUE(parse_oci_state(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto cut = parse_oci_state(std::string_view{whole}.substr(0, size));
      ASSERT_FALSE(cut) << size;
      EXPECT_EQ(cut.error().code, ErrorCode::kInvalidArgument) << size;
      EXPECT_THAT(cut.error().message, HasSubstr("malformed JSON at byte ")) << size;
    }
  }
}

TEST(ParseOciState, TakesADamagedStateOnlyIfItIsOne) {
  constexpr std::string_view kBytes{"\0\"{}[]\\,:9-x \x7f\xc3\xff", 17};
  unsigned taken = 0;
  for (const std::string& whole : kRealStates) {
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const char byte : kBytes) {
        std::string damaged = whole;
        damaged[at] = byte;
        const auto state = parse_oci_state(damaged);
        if (!state) {
          ASSERT_EQ(state.error().code, ErrorCode::kInvalidArgument) << damaged;
          continue;
        }
        ++taken;
        const auto document = nlohmann::json::parse(damaged, nullptr, false);
        ASSERT_TRUE(document.is_object()) << damaged;
        ASSERT_EQ(document.at("id"), state->id) << damaged;
      }
    }
  }
  EXPECT_GT(taken, 100U);
}

TEST(ParseOciState, BoundsEverything) {
  const auto with_id = [](std::size_t size) {
    return parse_oci_state(cat(R"({"id":")", std::string(size, 'a'), "\"}"));
  };
  EXPECT_TRUE(with_id(1024));
  EXPECT_FALSE(with_id(1025));
  const auto padded = [](std::size_t size) {
    const std::string text = R"({"id":"a"})";
    return parse_oci_state(text + std::string(size - text.size(), ' '));
  };
  EXPECT_TRUE(padded(kMaxStateSize));
  ASSERT_FALSE(padded(kMaxStateSize + 1));
  EXPECT_EQ(padded(kMaxStateSize + 1).error().code, ErrorCode::kTooLarge);
  const auto annotated = [](std::size_t size) {
    return parse_oci_state(
        cat(R"({"id":"a","annotations":{"podqos.io/pod":")", std::string(size, 'x'), "\"}}"));
  };
  EXPECT_TRUE(annotated(kMaxAnnotationSize));
  ASSERT_FALSE(annotated(kMaxAnnotationSize + 1));
  EXPECT_EQ(annotated(kMaxAnnotationSize + 1).error().code, ErrorCode::kTooLarge);
  const auto deep =
      parse_oci_state(cat(R"({"id":"a","x":)", std::string(100, '['), std::string(100, ']'), "}"));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().code, ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace podqos::codec
