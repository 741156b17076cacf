#pragma once

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cgroup/systemd.h"
#include "tests/unit/cgroup/fake_systemd.h"
#include "tests/unit/temporary_directory.h"

/// What systemd hears of each call.
namespace podqos::cgroup::calls {

inline constexpr const char* kManager =
    "org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager.";

/// Goes before the first call on systemd's own socket; see AShortFirstCallIsNotAlone.
inline constexpr const char* kPing = "- / org.freedesktop.DBus.Peer.Ping  \n";

inline SystemdOptions only(const FakeSystemd& fake, Peer peer = Peer::kSystemd) {
  return {.addresses = {{.address = fake.address(), .peer = peer}},
          .restart = std::chrono::milliseconds{0}};
}

class SystemdCalls : public ::testing::Test {
 protected:
  /// What systemd is told when `call` is made.
  template <class Call>
  std::string told(Call call) const {
    FakeSystemd fake{directory_.path("private"), kAnswersJobs};
    {
      Systemd systemd{only(fake)};
      const auto done = call(systemd);
      EXPECT_TRUE(done) << done.error().message;
      EXPECT_EQ(systemd.round_trips(), 1);
    }
    const std::string heard = fake.heard();
    EXPECT_THAT(heard, ::testing::StartsWith(kPing));
    return heard.substr(heard.find('\n') + 1);
  }

  TemporaryDirectory directory_;
};

}  // namespace podqos::cgroup::calls
