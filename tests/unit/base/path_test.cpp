#include "common/base/path.h"

#include <gtest/gtest.h>

namespace podqos {
namespace {

TEST(Path, HasAParentAndALeaf) {
  EXPECT_EQ(parent_of("/a/b/c"), "/a/b");
  EXPECT_EQ(parent_of("/a"), "/");
  EXPECT_EQ(parent_of("/"), "/");
  EXPECT_EQ(parent_of(""), "/");
  EXPECT_EQ(leaf_of("/a/b"), "b");
  EXPECT_EQ(leaf_of("b"), "b");
  EXPECT_EQ(leaf_of("/"), "");
}

TEST(IsBelow, ComparesWholeComponents) {
  struct Case {
    const char* path;
    const char* top;
    bool below;
    bool at;
  };
  for (const auto& [path, top, below, at] :
       {Case{"/a/b", "/a/b", false, true}, Case{"/a/b/c", "/a", true, false},
        Case{"/a", "/a/b", false, false}, Case{"/ab", "/a", false, false},
        Case{"/a", "/", true, false}, Case{"/", "/", false, true}, Case{"/", "/a", false, false},
        Case{"/a", "", false, false}, Case{"", "", false, false}}) {
    EXPECT_EQ(is_below(path, top), below) << path << " and " << top;
    EXPECT_EQ(is_at_or_below(path, top), below || at) << path << " and " << top;
  }
}

}  // namespace
}  // namespace podqos
