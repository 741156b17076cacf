#include "common/sys/fd.h"

#include <fcntl.h>

#include <utility>

#include <gtest/gtest.h>

namespace podqos::sys {
namespace {

UniqueFd open_null() {
  return UniqueFd{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
}
bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(UniqueFd, IsNoneByDefault) {
  const UniqueFd none;
  EXPECT_FALSE(none.valid());
  EXPECT_EQ(none.get(), -1);
}

TEST(UniqueFd, ClosesOnDestruction) {
  int number = -1;
  {
    const UniqueFd fd = open_null();
    ASSERT_TRUE(fd.valid());
    number = fd.get();
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, MoveHandsTheDescriptorOver) {
  UniqueFd first = open_null();
  const int number = first.get();
  const UniqueFd second = std::move(first);
  EXPECT_EQ(first.get(), -1);  // NOLINT(bugprone-use-after-move): what is asserted
  EXPECT_EQ(second.get(), number);
  EXPECT_TRUE(is_open(number));
}

TEST(UniqueFd, MoveAssignmentClosesTheOldDescriptor) {
  UniqueFd target = open_null();
  const int old = target.get();
  UniqueFd source = open_null();
  const int number = source.get();
  target = std::move(source);
  EXPECT_EQ(target.get(), number);
  EXPECT_FALSE(is_open(old));
  EXPECT_TRUE(is_open(number));
}

TEST(UniqueFd, ReleaseLeavesItOpen) {
  int number = -1;
  {
    UniqueFd fd = open_null();
    number = fd.release();
    EXPECT_FALSE(fd.valid());
  }
  EXPECT_TRUE(is_open(number));
  const UniqueFd closes_it{number};
}

}  // namespace
}  // namespace podqos::sys
