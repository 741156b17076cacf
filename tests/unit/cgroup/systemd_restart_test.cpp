#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cgroup/systemd.h"
#include "tests/unit/cgroup/fake_systemd.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/test_clock.h"

namespace podqos::cgroup {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

/// The next connection ends without an answer to its first call.
template <class Accept>
void hang_up(Accept& accept) {
  Session session = accept();
  session.authenticate();
  static_cast<void>(session.receive());
}

/// As systemd does when it executes itself anew: it leaves its clients in the middle of a call, and
/// comes back.
class SystemdRestart : public ::testing::Test {
 protected:
  [[nodiscard]] SystemdOptions options(const FakeSystemd& fake) const {
    return {.addresses = {{.address = fake.address()}}, .clock = &clock_};
  }
  [[nodiscard]] std::string path() const { return directory_.path("private"); }

  SharedClock clock_;  ///< which nothing but a pause lets pass
  TemporaryDirectory directory_;
};

TEST_F(SystemdRestart, ACallIsMadeAgain) {
  const FakeSystemd fake{path(), [](auto accept) {
                           hang_up(accept);
                           kAnswersJobs(accept);
                         }};
  Systemd systemd{options(fake)};
  const auto done = systemd.start("a.slice");
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(systemd.round_trips(), 2);
}

TEST_F(SystemdRestart, WhatWasAnsweredIsNotToldAgain) {
  FakeSystemd fake{path(), [](auto accept) {
                     {
                       Session session = accept();
                       session.authenticate();
                       const auto first = session.receive();
                       static_cast<void>(session.receive());
                       session.answer_job(first.get());
                     }
                     kAnswersJobs(accept);
                   }};
  {
    Systemd systemd{options(fake)};
    const std::vector<Status> set = systemd
                                        .set_and_find({{.path = "/a.slice", .properties = {}},
                                                       {.path = "/b.slice", .properties = {}}},
                                                      {})
                                        .set;
    ASSERT_EQ(set.size(), 2U);
    EXPECT_TRUE(set[0]) << set[0].error().message;
    EXPECT_TRUE(set[1]) << set[1].error().message;
    EXPECT_EQ(systemd.round_trips(), 2);
  }
  const std::string heard = fake.heard();
  const std::string told_again = heard.substr(heard.rfind("org.freedesktop.DBus.Peer.Ping"));
  EXPECT_THAT(told_again, HasSubstr("\"b.slice\""));
  EXPECT_THAT(told_again, Not(HasSubstr("\"a.slice\"")));
}

TEST_F(SystemdRestart, BetweenTwoCalls) {
  const auto start = clock_.now();
  const FakeSystemd fake{path(), [this](auto accept) {
                           {
                             Session session = accept();
                             session.authenticate();
                             session.answer_job(session.receive().get());
                           }
                           clock_.pass(1ms);
                           kAnswersJobs(accept);
                         }};
  Systemd systemd{options(fake)};
  EXPECT_TRUE(systemd.start("a.slice"));
  while (clock_.now() == start)
    ::usleep(1000);
  const auto done = systemd.stop("a.slice");
  EXPECT_TRUE(done) << done.error().message;
}

/// Nobody has systemd's name on the bus yet when it is asked again.
TEST_F(SystemdRestart, ACallIsMadeUntilSystemdIsBack) {
  const FakeSystemd fake{path(), [](auto accept) {
                           hang_up(accept);
                           {
                             Session session = accept();
                             session.authenticate();
                             session.refuse(session.receive().get(),
                                            "org.freedesktop.DBus.Error.NameHasNoOwner", "nobody");
                           }
                           kAnswersJobs(accept);
                         }};
  Systemd systemd{options(fake)};
  const auto done = systemd.start("a.slice");
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(systemd.round_trips(), 3);
}

TEST_F(SystemdRestart, ACallIsNotMadeForEver) {
  const FakeSystemd fake{path(), [](auto accept) {
                           while (true)
                             static_cast<void>(accept().line());
                         }};
  Systemd systemd{{.addresses = {{.address = fake.address()}}, .restart = 100ms, .clock = &clock_}};
  const auto start = clock_.now();
  EXPECT_FALSE(systemd.start("a.slice"));
  EXPECT_EQ(clock_.now() - start, 100ms);
  EXPECT_GT(systemd.round_trips(), 1);
}

}  // namespace
}  // namespace podqos::cgroup
