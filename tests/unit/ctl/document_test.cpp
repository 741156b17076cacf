#include "ctl/explain/document.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/text.h"
#include "ctl/explain/manifest.h"

namespace podqos::ctl {
namespace {

codec::JsonTree tree_of(std::string_view text) {
  return codec::parse_json_tree(text).value_or(codec::JsonTree{});
}

// encoding/json, which Kubernetes uses, keeps the last of several.
TEST(JsonAt, IsTheLastOfSeveral) {
  const auto several = tree_of(R"({"a": 1, "b": 1, "a": 2.0 , "b": null})");
  EXPECT_EQ(json_at(several, "a")->raw, "2.0");
  for (const char* absent : {"b", "c", "a.b.0"})
    EXPECT_EQ(json_at(several, absent), nullptr) << absent;
  EXPECT_EQ(json_at(tree_of(R"({"a": {"b": [true]}})"), "a.b.0")->raw, "true");
  EXPECT_EQ(json_at(tree_of("[1]"), "a"), nullptr);
}

TEST(JsonShown, FitsOneLine) {
  EXPECT_EQ(json_shown(tree_of("\"a\\u0000b\"")), "\"a\\x00b\"");
  EXPECT_EQ(json_shown(tree_of("12")), "12");
}

TEST(JsonQuote, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(json_quote("a\"b\\\n"), R"("a\"b\\\n")");
  EXPECT_EQ(json_quote("\xff"), "\"\xef\xbf\xbd\"");
}

/// The members that are inserted, as JSON and as lines of YAML.
const Json kMembers = {{"k", "{\"it's\"}"}, {"u", "1"}};
const std::string kJson = R"("k":"{\"it's\"}","u":"1")";
std::string lines(const std::string& indent) {
  return cat(indent, "k: '{\"it''s\"}'\n", indent, "u: '1'\n");
}

/// The document with the members inserted; else the error.
std::string inserted(const std::string& text, const std::string& path) {
  const auto documents = parse_manifest(text);
  if (!documents) return documents.error().message;
  const Insertion insertion{.path = path, .members = kMembers};
  const auto edited = insert_members(documents->at(0), {&insertion, 1});
  return edited ? *edited : edited.error().message;
}

struct InsertCase {
  std::string text;
  std::string want;
  std::string path = "metadata.annotations";
};

TEST(InsertMembers, ChangesNoOtherByte) {
  const std::string block = "  annotations:\n" + lines("    ");
  const std::string flow = "annotations\":{" + kJson + "}";
  for (const InsertCase& each : std::vector<InsertCase>{
           // JSON.
           {"{\n  \"metadata\": {\n    \"name\": \"a\"\n  }, \"n\": 1.0}\n",
            "{\n  \"metadata\": {\n    \"" + flow + ",\n    \"name\": \"a\"\n  }, \"n\": 1.0}\n"},
           {R"({"m": {"k": "old", "x": "y"}})", R"({"m": {"u":"1", "k": "{\"it's\"}", "x": "y"}})",
            "m"},
           {R"({"m": {"u": "1", "k": "{\"it's\"}" }})", R"({"m": {"u": "1", "k": "{\"it's\"}" }})",
            "m"},
           {R"({"items": [{}, {"a": 1}]})", R"({"items": [{}, {)" + kJson + R"(, "a": 1}]})",
            "items.1"},
           // null stands for an absent object.
           {R"({"metadata": null})", R"({"metadata": {)" + kJson + "}}", "metadata"},
           {R"({"metadata": null})", R"({"metadata": {"a":{)" + kJson + "}}}", "metadata.a"},
           // Comments and layout of YAML.
           {"metadata:\n    name: \xc3\xbc  # a name\nspec: {}\n",
            "metadata:\n    annotations:\n" + lines("      ") +
                "    name: \xc3\xbc  # a name\nspec: {}\n"},
           {"spec: {} # \xc3\xbc\r\nmetadata:\r\n  name: \xc3\xbc\r\n",
            "spec: {} # \xc3\xbc\r\nmetadata:\r\n  annotations:\r\n    k: '{\"it''s\"}'\r\n"
            "    u: '1'\r\n  name: \xc3\xbc\r\n"},
           {"metadata: {name: \"\xc3\xbc\"}\nspec: {}\n",
            "metadata: {\"" + flow + ", name: \"\xc3\xbc\"}\nspec: {}\n"},
           {"{metadata: {annotations: {}, name: \xc3\xbc}, spec: {}}",
            "{metadata: {annotations: {" + kJson + "}, name: \xc3\xbc}, spec: {}}"},
           {"metadata: {\n  name: a }\n", "metadata: {\n  \"" + flow + ",\n  name: a }\n"},
           {"metadata: { # mine\n  name: a }\n",
            "metadata: { # mine\n  \"" + flow + ", name: a }\n"},
           // Before a merge key and behind an anchor.
           {"x: &x {b: 1}\nmetadata:\n  <<: *x\n  name: a\n",
            "x: &x {b: 1}\nmetadata:\n" + block + "  <<: *x\n  name: a\n"},
           {"metadata: &m\n  name: a\n", "metadata: &m\n" + block + "  name: a\n"},
           // An earlier value is replaced.
           {"metadata:\n  annotations:\n    k: old # mine\n    x: z\n",
            "metadata:\n  annotations:\n    u: '1'\n    k: '{\"it''s\"}' # mine\n    x: z\n"},
           {"metadata: {annotations: {k: [old]}}\n",
            "metadata: {annotations: {\"u\":\"1\", k: '{\"it''s\"}'}}\n"},
           {"spec: {}\n", "metadata:\n" + block + "spec: {}\n"},
           {"items:\n- metadata: {a: b}\n- metadata:\n    a: b\n",
            "items:\n- metadata: {a: b}\n- metadata:\n" + lines("    ") + "    a: b\n",
            "items.1.metadata"},
       })
    EXPECT_EQ(inserted(each.text, each.path), each.want);
}

TEST(InsertMembers, RefusesWhatHasNoPlace) {
  EXPECT_EQ(inserted(R"({"metadata": [1]})", "metadata"),
            "metadata: expected an object, found [1]");
  for (const char* text :
       {"metadata:\n", "metadata:\n  annotations:\n", "x: &a {}\nmetadata: *a\n",
        "x: &a\n  b: 1\nmetadata: *a\n", "x: &a {metadata: {b: 1}}\n<<: *a\n",
        "metadata:\n  annotations:\n    k: |\n      two\n      lines\n    u: '1'\n",
        "- metadata: {}\n"}) {
    const std::string why = inserted(text, "metadata.annotations");
    EXPECT_TRUE(why == "no line can be inserted" ||
                why == "the edited document has another value" ||
                why.contains("expected an object"))
        << text << why;
  }
}

}  // namespace
}  // namespace podqos::ctl
