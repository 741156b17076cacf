#include "common/base/recent.h"

#include <string>

#include <gtest/gtest.h>

namespace podqos {
namespace {

TEST(RecentTest, KeepsThoseThatWereAskedForLast) {
  Recent<std::string, int> recent{2};
  EXPECT_EQ(recent.find("a"), nullptr);
  recent.put("a", 1);
  recent.put("b", 2);
  ASSERT_NE(recent.find("a"), nullptr);
  EXPECT_EQ(*recent.find("a"), 1);
  recent.put("c", 3);
  EXPECT_EQ(recent.find("b"), nullptr);
  ASSERT_NE(recent.find("a"), nullptr);
  ASSERT_NE(recent.find("c"), nullptr);
}

TEST(RecentTest, HasOneValueOfAKey) {
  Recent<std::string, int> recent{2};
  recent.put("a", 1);
  recent.put("b", 2);
  recent.put("a", 3);
  ASSERT_NE(recent.find("a"), nullptr);
  EXPECT_EQ(*recent.find("a"), 3);
  EXPECT_NE(recent.find("b"), nullptr);
}

}  // namespace
}  // namespace podqos
