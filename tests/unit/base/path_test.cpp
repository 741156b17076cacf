#include "common/base/path.h"

#include <gtest/gtest.h>

namespace podqos {
namespace {

TEST(ParentOf, IsThePathWithoutItsLastComponent) {
  EXPECT_EQ(parent_of("/a/b/c"), "/a/b");
  EXPECT_EQ(parent_of("/a"), "/");
  EXPECT_EQ(parent_of("/"), "/");
  EXPECT_EQ(parent_of(""), "/");
}

TEST(LeafOf, IsTheLastComponent) {
  EXPECT_EQ(leaf_of("/a/b"), "b");
  EXPECT_EQ(leaf_of("b"), "b");
  EXPECT_EQ(leaf_of("/"), "");
}

struct BelowCase {
  const char* name;
  const char* path;
  const char* top;
  bool below;
  bool at;
};

class IsBelow : public ::testing::TestWithParam<BelowCase> {};

TEST_P(IsBelow, ComparesWholeComponents) {
  const BelowCase& each = GetParam();
  EXPECT_EQ(is_below(each.path, each.top), each.below);
  EXPECT_EQ(is_at_or_below(each.path, each.top), each.below || each.at);
}

INSTANTIATE_TEST_SUITE_P(All, IsBelow,
                         ::testing::Values(BelowCase{"At", "/a/b", "/a/b", false, true},
                                           BelowCase{"Below", "/a/b/c", "/a", true, false},
                                           BelowCase{"Above", "/a", "/a/b", false, false},
                                           BelowCase{"Beside", "/ab", "/a", false, false},
                                           BelowCase{"BelowTheRoot", "/a", "/", true, false},
                                           BelowCase{"TheRoot", "/", "/", false, true},
                                           BelowCase{"TheRootBelowNothing", "/", "/a", false,
                                                     false},
                                           BelowCase{"NoTop", "/a", "", false, false},
                                           BelowCase{"NeitherOne", "", "", false, false}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace podqos
