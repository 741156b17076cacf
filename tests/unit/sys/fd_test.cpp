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

TEST(UniqueFd, ClosesWhatItStillOwns) {
  const UniqueFd none;
  EXPECT_FALSE(none.valid());
  EXPECT_EQ(none.get(), -1);
  int closed = -1;
  int released = -1;
  {
    const UniqueFd fd = open_null();
    ASSERT_TRUE(fd.valid());
    closed = fd.get();
    EXPECT_TRUE(is_open(closed));
    UniqueFd other = open_null();
    released = other.release();
    EXPECT_FALSE(other.valid());
  }
  EXPECT_FALSE(is_open(closed));
  EXPECT_TRUE(is_open(released));
  const UniqueFd closes_it{released};
}

TEST(UniqueFd, MovesItsDescriptorAndClosesTheOldOne) {
  UniqueFd first = open_null();
  const int number = first.get();
  UniqueFd second = std::move(first);
  EXPECT_EQ(first.get(), -1);  // NOLINT(bugprone-use-after-move): what is asserted
  EXPECT_EQ(second.get(), number);
  EXPECT_TRUE(is_open(number));
  UniqueFd target = open_null();
  const int old = target.get();
  target = std::move(second);
  EXPECT_EQ(target.get(), number);
  EXPECT_FALSE(is_open(old));
  EXPECT_TRUE(is_open(number));
}

}  // namespace
}  // namespace podqos::sys
