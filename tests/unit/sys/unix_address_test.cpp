#include "common/sys/unix_address.h"

#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sys/fd.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::sys {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kFamilySize = offsetof(sockaddr_un, sun_path);

const sockaddr_un& unix_part(const UnixAddress& address) {
  return *reinterpret_cast<const sockaddr_un*>(address.get());
}

TEST(UnixAddressMake, TakesAPathWithItsEnd) {
  const auto made = UnixAddress::make("/run/x");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->size(), kFamilySize + 7);
  EXPECT_EQ(unix_part(*made).sun_family, AF_UNIX);
  EXPECT_STREQ(unix_part(*made).sun_path, "/run/x");
}

TEST(UnixAddressMake, TakesAnAbstractNameWithoutEnd) {
  const auto made = UnixAddress::make("@run");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->size(), kFamilySize + 4);
  EXPECT_EQ(std::string_view(unix_part(*made).sun_path, 4), std::string_view("\0run", 4));
}

TEST(UnixAddressMake, IsWhatTheKernelTakes) {
  const TemporaryDirectory temporary;
  const auto made = UnixAddress::make(temporary.path("socket"));
  ASSERT_TRUE(made);
  const UniqueFd fd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  EXPECT_EQ(::bind(fd.get(), made->get(), made->size()), 0);
  EXPECT_TRUE(temporary.has("socket"));
}

TEST(UnixAddressMake, TakesWhatJustFits) {
  EXPECT_TRUE(UnixAddress::make("/" + std::string(106, 'a')));
  const auto refused = UnixAddress::make("/" + std::string(107, 'a'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("108 bytes, at most 107"));
}

TEST(UnixAddressMake, RefusesWhatIsNoAddress) {
  EXPECT_EQ(UnixAddress::make("").error().message,
            "\"\" is not a socket address: expected an absolute path");
  EXPECT_EQ(UnixAddress::make("run/x").error().message,
            "\"run/x\" is not a socket address: expected an absolute path");
  EXPECT_EQ(UnixAddress::make(std::string_view{"/a\0b", 4}).error().message,
            "\"/a\\x00b\" is not a socket address: it contains a zero byte");
}

}  // namespace
}  // namespace podqos::sys
