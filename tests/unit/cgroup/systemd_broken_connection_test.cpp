#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "common/cgroup/systemd.h"
#include "tests/unit/cgroup/fake_systemd.h"
#include "tests/unit/cgroup/systemd_faults.h"

namespace podqos::cgroup {
namespace {

using faults::kUnknown;
using faults::SystemdFaults;

constexpr const char* kUnanswered = "before the reply";

TEST_F(SystemdFaults, GoneAtOnce) {
  expect_broken([](auto accept) { accept(); }, kUnknown);
}
TEST_F(SystemdFaults, GoneInTheAuthentication) {
  expect_broken([](auto accept) { static_cast<void>(accept().line()); }, kUnknown);
}
TEST_F(SystemdFaults, RefusingWhoWeAre) {
  expect_broken(
      [](auto accept) {
        Session session = accept();
        static_cast<void>(session.line());
        session.send("REJECTED EXTERNAL\r\n");
        session.wait();
      },
      kUnknown);
}
TEST_F(SystemdFaults, GarbageInsteadOfAuthentication) {
  expect_broken(
      [](auto accept) {
        Session session = accept();
        static_cast<void>(session.line());
        // Longer than any line of the authentication.
        session.send(std::string(20'000, '\xff'));
        session.wait();
      },
      kUnknown);
}
TEST_F(SystemdFaults, GoneInMidCall) {
  expect_broken(
      [](auto accept) {
        Session session = accept();
        session.authenticate();
        static_cast<void>(session.receive());
      },
      kUnanswered);
}
TEST_F(SystemdFaults, GarbageInsteadOfAnAnswer) {
  expect_broken(
      [](auto accept) {
        Session session = accept();
        session.authenticate();
        static_cast<void>(session.receive());
        session.send(std::string(64, '\xff'));
        session.wait();
      },
      kUnanswered);
}
TEST_F(SystemdFaults, AnAnswerThatIsTooLarge) {
  expect_broken(
      [](auto accept) {
        Session session = accept();
        session.authenticate();
        static_cast<void>(session.receive());
        // A little-endian reply whose body has 32 MiB.
        session.send(std::string_view{"l\2\1\1\0\0\0\2\1\0\0\0\0\0\0\0", 16});
        session.wait();
      },
      kUnanswered);
}

}  // namespace
}  // namespace podqos::cgroup
