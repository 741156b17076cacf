#include "common/app/log.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "tests/unit/child_process.h"

namespace podqos::app {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

TEST(OneLine, EscapesControlBytesOnly) {
  EXPECT_EQ(one_line(""), "");
  EXPECT_EQ(one_line("pod \"a\\b\" – ü"), "pod \"a\\b\" – ü");
  EXPECT_EQ(one_line("\nforged\x1b[2J\x7f"), "\\x0aforged\\x1b[2J\\x7f");
}

/// With a pipe as standard error; `body` gets the end to read.
template <class Body>
void with_error_pipe(Body body) {
  const int status = run_in_child([&] {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ASSERT_EQ(::dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    ::close(ends[1]);
    body(ends[0]);
  });
  EXPECT_EQ(status, 0);
}

core::Settings to_standard_error() {
  core::Settings settings;
  settings.log_sink = "stderr";
  return settings;
}

TEST(StandardError, GetsALine) {
  with_error_pipe([](int reader) {
    Log log{"podqos-nri", to_standard_error()};
    log.warning("pod 42:\nrefused");
    std::array<char, 256> line{};
    ASSERT_GT(::read(reader, line.data(), line.size() - 1), 0);
    EXPECT_THAT(line.data(),
                EndsWith(cat(" podqos-nri[", ::getpid(), "] warning: pod 42:\\x0arefused\n")));
  });
}

TEST(StandardError, IsNotWaitedFor) {
  with_error_pipe([](int reader) {
    Log log{"podqos-nri", to_standard_error()};
    for (int i = 0; i < 100; ++i)
      log.info(std::string(2000, 'x'));  // a pipe holds 65536 bytes
    ::close(reader);
    log.info("nobody reads");  // and SIGPIPE ends nobody
  });
}

/// In a /dev of its own, with a log daemon's socket in it.
template <class Body>
void with_log_socket(Body body) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can put a /dev/log of its own in place";
  const int status = run_in_child([&] {
    ASSERT_TRUE(mount_private_tmpfs("/dev", "size=64k"));
    const int daemon = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    ASSERT_EQ(::bind(daemon, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    body(daemon);
  });
  EXPECT_EQ(status, 0);
}

TEST(Syslog, GetsALineWithItsPriority) {
  with_log_socket([](int daemon) {
    Log log{"podqos-hook", {}};
    log.warning("pod 42:\nrefused");
    std::array<char, 256> line{};
    ASSERT_GT(::read(daemon, line.data(), line.size() - 1), 0);
    // LOG_DAEMON | LOG_WARNING, RFC 3164: 3 * 8 + 4.
    EXPECT_THAT(line.data(), StartsWith(cat("<28>podqos-hook[", ::getpid(), "]: ")));
    EXPECT_THAT(line.data(), EndsWith("]: pod 42:\\x0arefused"));
  });
}

TEST(Syslog, FindsTheDaemonAgainThatWasStartedAnew) {
  with_log_socket([](int daemon) {
    Log log{"podqos-nri", {}};
    log.info("first");
    ::close(daemon);
    ASSERT_EQ(::unlink("/dev/log"), 0);
    log.info("nobody is there");
    const int next = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    ASSERT_EQ(::bind(next, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    log.info("second");
    std::array<char, 256> line{};
    ASSERT_GT(::read(next, line.data(), line.size() - 1), 0);
    EXPECT_THAT(line.data(), EndsWith("]: second"));
  });
}

TEST(Syslog, DoesNotWaitForADaemonThatHangs) {
  with_log_socket([](int) {
    ::alarm(20);  // ends the child if it waits
    Log log{"podqos-hook", {}};
    for (int line = 0; line < 10'000; ++line)
      log.error("nobody reads this");
  });
}

TEST(Syslog, IsNotMissedWhereThereIsNone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can hide /dev/log";
  const int status = run_in_child([] {
    ASSERT_TRUE(mount_private_tmpfs("/dev", "size=64k"));
    Log log{"podqos-hook", {}};
    log.error("nobody is there");
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace podqos::app
