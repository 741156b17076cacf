#pragma once

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "common/cgroup/systemd.h"
#include "tests/unit/cgroup/fake_systemd.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/test_clock.h"

/// Servers in systemd's place that do not answer as systemd does.
namespace podqos::cgroup::faults {

/// When a connection ended of which it was not known yet who is there.
inline constexpr const char* kUnknown = "during authentication";

inline constexpr auto kDeadline = std::chrono::milliseconds{200};

/// @param clock  one that stands still: no time passes but that which a server takes
inline SystemdOptions only(const FakeSystemd& fake, const sys::Clock& clock) {
  return {.addresses = {{.address = fake.address()}},
          .deadline = kDeadline,
          .restart = std::chrono::milliseconds{0},
          .clock = &clock};
}

/// Serves one connection after the other.
template <class Serve>
auto for_ever(Serve serve) {
  return [serve](auto accept) {
    while (true) {
      try {
        serve(accept);
      } catch (const Session::Gone&) {
        continue;
      }
    }
  };
}

class SystemdFaults : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return directory_.path("private"); }

  /// Expects that the server keeps a call waiting until its deadline. That it is not for longer is
  /// that this returns.
  template <class Serve>
  void expect_timeout(Serve serve) const {
    const FakeSystemd fake{path(), serve};
    Systemd systemd{only(fake, clock_)};
    const auto start = clock_.now();
    const auto done = systemd.start("a.slice");
    const auto took = clock_.now() - start;
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error(),
              (Error{ErrorCode::kTimeout,
                     "StartUnit a.slice at " + fake.address() +
                         ": no reply before the deadline (org.freedesktop.DBus.Error.NoReply); the "
                         "timeout is 200 ms; if systemd hangs, check `systemctl "
                         "is-system-running` and the journal of PID 1"}));
    EXPECT_GE(took, kDeadline);
  }

  /// Expects that the connection to such a server ends, `when`, each time that it is made.
  template <class Serve>
  void expect_broken(Serve serve, const char* when) const {
    const FakeSystemd fake{path(), for_ever(serve)};
    Systemd systemd{only(fake, clock_)};
    const auto done = systemd.start("a.slice");
    ASSERT_FALSE(done);
    EXPECT_EQ(
        done.error(),
        (Error{ErrorCode::kIo, "StartUnit a.slice at " + fake.address() + ": connection closed " +
                                   when + " (org.freedesktop.DBus.Error.Disconnected)"}));
  }

  SharedClock clock_;
  TemporaryDirectory directory_;
};

}  // namespace podqos::cgroup::faults
