#include "common/base/recent.h"

#include <string>

#include <gtest/gtest.h>

namespace podqos {
namespace {

template <class RecentOfTwo>
void expect_the_last(RecentOfTwo recent) {
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

TEST(RecentTest, KeepsThoseThatWereAskedForLast) {
  expect_the_last(Recent<std::string, int>{2});
  expect_the_last(RecentByName<int>{2});
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

TEST(RecentByNameTest, HasOneValueOfAName) {
  // Of some length: a short one stands in the string itself.
  const std::string name(100, 'a');
  RecentByName<std::string> recent{2};
  recent.put(name, "1");
  recent.put("b", "2");
  recent.put(name, "3");
  ASSERT_NE(recent.find(name), nullptr);
  EXPECT_EQ(*recent.find(name), "3");
  EXPECT_NE(recent.find("b"), nullptr);
}

TEST(RecentByNameTest, ForgetsOneForEachThatComes) {
  RecentByName<std::string> recent{3};
  for (int number = 0; number < 1000; ++number)
    recent.put("name of some length " + std::to_string(number), std::to_string(number));
  EXPECT_EQ(recent.find("name of some length 996"), nullptr);
  for (const char* number : {"997", "998", "999"}) {
    const std::string* value = recent.find(std::string{"name of some length "} + number);
    ASSERT_NE(value, nullptr) << number;
    EXPECT_EQ(*value, number);
  }
}

}  // namespace
}  // namespace podqos
