#include <gtest/gtest.h>

#include "common/store/store.h"

namespace podqos::store {
namespace {

// Published test values of the 64-bit FNV-1a.
TEST(IndexName, IsFnv1aAsHex) {
  EXPECT_EQ(index_name(""), "cbf29ce484222325");
  EXPECT_EQ(index_name("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(index_name("b"), "af63df4c8601f1a5");
  EXPECT_EQ(index_name("foobar"), "85944171f73967e8");
}

TEST(IsIndexName, AcceptsOnlyWholeNames) {
  EXPECT_TRUE(is_index_name("85944171f73967e8"));
  EXPECT_FALSE(is_index_name("85944171F73967E8"));
  EXPECT_FALSE(is_index_name("85944171f73967e"));
  EXPECT_FALSE(is_index_name(".85944171f73967e8.podqos-tmp"));
  EXPECT_FALSE(is_index_name("85944171f73967e8.corrupt-1"));
}

}  // namespace
}  // namespace podqos::store
