#include "common/codec/json_place.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace podqos::codec {
namespace {

using Kind = JsonNode::Kind;

constexpr std::string_view kText = R"({"a":{"list":[{"n":1},{"n":2.5}],"no":null},"s":"t"})";

class JsonPlaceTest : public testing::Test {
 protected:
  JsonTree tree_ = parse_json_tree(kText).value();
  JsonPlace root_{tree_, "file.json", kText};
};

TEST_F(JsonPlaceTest, ReadsMembersThatAreThere) {
  const auto object = root_.member("a", Kind::kObject).value();
  const auto list = object.member("list", Kind::kArray).value();
  ASSERT_EQ(list.children().size(), 2U);
  EXPECT_EQ(list.child(list.children()[0]).integer("n"), 1);
  std::string text = "kept";
  EXPECT_TRUE(root_.read_text("t", text));
  EXPECT_EQ(text, "kept");
  EXPECT_TRUE(root_.read_text("s", text));
  EXPECT_EQ(text, "t");
}

TEST_F(JsonPlaceTest, FindsNothingBelowWhatIsAbsentOrNull) {
  const auto object = root_.member("a").value();
  for (const char* name : {"no", "nothing"}) {
    const auto absent = object.member(name, Kind::kObject).value();
    EXPECT_FALSE(absent) << name;
    EXPECT_EQ(absent.text(), "");
    EXPECT_TRUE(absent.children().empty());
    EXPECT_EQ(absent.integer("n"), std::nullopt);
    EXPECT_FALSE(absent.member("x").value().member("y", Kind::kArray).value());
  }
}

TEST_F(JsonPlaceTest, NamesPathPositionAndWhatItFound) {
  const auto object = root_.member("a").value();
  const auto list = object.member("list").value();
  EXPECT_EQ(list.child(list.children()[1]).integer("n").error().message,
            "a.list[1].n at byte 28: expected an integer, found 2.5");
  EXPECT_EQ(root_.member("s", Kind::kObject).error().message,
            "s at byte 49: expected an object, found \"t\"");
  EXPECT_EQ(root_.expect(Kind::kArray).error().message,
            "file.json at byte 1: expected an array, found object");
  EXPECT_EQ(object.member("no").value().expect(Kind::kString).error().message,
            "a.no: expected a string, found nothing");
  EXPECT_EQ(list.child(list.children()[0]).integer("n", 2, 9).error().message,
            "a.list[0].n at byte 20: expected an integer from 2 to 9, found 1");
  EXPECT_EQ(JsonPlace{tree_}.expect(Kind::kArray).error().message,
            "expected an array, found object");
}

TEST(JsonPlace, RefusesMembersThatAreRepeated) {
  constexpr std::string_view kTwice = R"({"d":1,"d":1,"e":null,"E":2})";
  const auto tree = parse_json_tree(kTwice).value();
  EXPECT_EQ(JsonPlace(tree, {}, kTwice).member("d").error().message,
            "d at byte 8: member is repeated");
  EXPECT_TRUE(JsonPlace(tree).member("e"));
  const auto folded = JsonPlace(tree, {}, {}, MemberNames::kAnyCase).member("e");
  ASSERT_FALSE(folded);
  EXPECT_EQ(folded.error().message, "e: member is repeated");
}

TEST(JsonPlace, ReadsIntegersOf64Bits) {
  const auto read = [](std::string_view number, std::int64_t least = kInt64Min) {
    const std::string text = R"({"n":)" + std::string{number} + "}";
    const auto tree = parse_json_tree(text).value();
    return JsonPlace{tree}.integer("n", least);
  };
  EXPECT_EQ(read("-9223372036854775808"), kInt64Min);
  EXPECT_EQ(read("9223372036854775807"), kInt64Max);
  EXPECT_EQ(read("-1", 0).error().message, "n: expected a non-negative integer, found -1");
  for (const char* wrong : {"9223372036854775808", "1.0", "1e2", R"("1")", "true"})
    EXPECT_FALSE(read(wrong)) << wrong;
}

}  // namespace
}  // namespace podqos::codec
