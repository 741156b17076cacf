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

TEST(UnixAddressMake, TakesAPathWithItsEndAndAnAbstractNameWithout) {
  for (const auto& [name, want] :
       {std::pair{"/run/x", std::string{"/run/x\0", 7}}, {"@run", std::string{"\0run", 4}}}) {
    const auto made = UnixAddress::make(name);
    ASSERT_TRUE(made) << made.error().message;
    const auto& address = *reinterpret_cast<const sockaddr_un*>(made->get());
    EXPECT_EQ(made->size(), kFamilySize + want.size());
    EXPECT_EQ(address.sun_family, AF_UNIX);
    EXPECT_EQ(std::string_view(address.sun_path, want.size()), want);
  }
}

TEST(UnixAddressMake, IsWhatTheKernelTakes) {
  const TemporaryDirectory temporary;
  const auto made = UnixAddress::make(temporary.path("socket"));
  ASSERT_TRUE(made);
  const UniqueFd fd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  EXPECT_EQ(::bind(fd.get(), made->get(), made->size()), 0);
  EXPECT_TRUE(temporary.has("socket"));
}

TEST(UnixAddressMake, RefusesWhatIsNoAddress) {
  EXPECT_TRUE(UnixAddress::make("/" + std::string(106, 'a')));
  for (const auto& [name, want] :
       {std::pair{"/" + std::string(107, 'a'), ": 108 bytes, at most 107"},
        {std::string{}, "\"\" is not a socket address: expected an absolute path"},
        {std::string{"run/x"}, "\"run/x\" is not a socket address: expected an absolute path"},
        {std::string{"/a\0b", 4},
         "\"/a\\x00b\" is not a socket address: it contains a zero byte"}}) {
    const auto refused = UnixAddress::make(name);
    ASSERT_FALSE(refused) << want;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << want;
    EXPECT_THAT(refused.error().message, HasSubstr(want));
  }
}

}  // namespace
}  // namespace podqos::sys
