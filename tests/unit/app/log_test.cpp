#include "common/app/log.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "tests/unit/child_process.h"

namespace podqos::app {
namespace {

using ::testing::EndsWith;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

TEST(OneLine, EscapesControlBytesOnly) {
  EXPECT_EQ(one_line(""), "");
  EXPECT_EQ(one_line("pod \"a\\b\" – ü"), "pod \"a\\b\" – ü");
  EXPECT_EQ(one_line("\nforged\x1b[2J\x7f"), "\\x0aforged\\x1b[2J\\x7f");
}

std::string read_line(int fd) {
  std::array<char, 256> line{};
  EXPECT_GT(::read(fd, line.data(), line.size() - 1), 0);
  return line.data();
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
    const std::string line = read_line(reader);
    EXPECT_THAT(line, MatchesRegex("2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]"
                                   "\\.[0-9]{3}Z podqos-nri.*\n"));
    EXPECT_THAT(line,
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

/// In a /dev and /run of its own, without a log daemon's socket.
template <class Body>
void with_own_dev(Body body) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can put a /dev of its own in place";
  const int status = run_in_child([&] {
    ASSERT_TRUE(mount_private_tmpfs("/dev", "size=64k"));
    ASSERT_TRUE(mount_private_tmpfs("/run", "size=64k"));
    body();
  });
  EXPECT_EQ(status, 0);
}

int listen_at(std::string_view path) {
  const int daemon = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::bind(daemon, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return daemon;
}
int listen_as_daemon() {
  return listen_at("/dev/log");
}

std::string read_datagram(int fd) {
  std::array<char, 1024> text{};
  const ssize_t size = ::read(fd, text.data(), text.size());
  EXPECT_GT(size, 0);
  return {text.data(), static_cast<std::size_t>(size)};
}

TEST(Syslog, GetsALineWithItsPriority) {
  with_own_dev([] {
    const int daemon = listen_as_daemon();
    Log log{"podqos-hook", {}};
    log.warning("pod 42:\nrefused");
    const std::string line = read_line(daemon);
    // LOG_DAEMON | LOG_WARNING, RFC 3164: 3 * 8 + 4.
    EXPECT_THAT(line, StartsWith(cat("<28>podqos-hook[", ::getpid(), "]: ")));
    EXPECT_THAT(line, EndsWith("]: pod 42:\\x0arefused"));
  });
}

TEST(Syslog, FindsTheDaemonAgainThatWasStartedAnew) {
  with_own_dev([] {
    const int daemon = listen_as_daemon();
    Log log{"podqos-nri", {}};
    log.info("first");
    ::close(daemon);
    ASSERT_EQ(::unlink("/dev/log"), 0);
    log.info("nobody is there");
    const int next = listen_as_daemon();
    log.info("second");
    EXPECT_THAT(read_line(next), EndsWith("]: second"));
  });
}

TEST(Syslog, DoesNotWaitForADaemonThatHangs) {
  with_own_dev([] {
    listen_as_daemon();
    ::alarm(60);  // ends the child if it waits
    Log log{"podqos-hook", {}};
    // Many times what the kernel queues for the daemon.
    for (int line = 0; line < 1'000; ++line)
      log.error("nobody reads this");
  });
}

/// systemd, docs/JOURNAL_NATIVE_PROTOCOL.md
TEST(Journal, GetsALineWithWhatTheEventIsAbout) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can put a /run of its own in place";
  expect_in_child([] {
    ASSERT_TRUE(mount_private_tmpfs("/run", "size=64k"));
    ASSERT_EQ(::mkdir("/run/systemd", 0755), 0);
    ASSERT_EQ(::mkdir("/run/systemd/journal", 0755), 0);
    const int journal = listen_at("/run/systemd/journal/socket");
    Log log{"podqos-hook", {}};
    log.event(core::LogLevel::kWarning,
              {.kind = core::EventKind::kMisplaced,
               .engine = "docker",
               .pod_namespace = "web",
               .pod_name = "front",
               .uid = "42",
               .container = "a\nPODQOS_POD=43",
               .container_id = "8f27",
               .qos_class = core::QosClass::kBurstable,
               .text = "runs elsewhere"},
              "pod 42: ", nullptr);
    EXPECT_EQ(
        read_datagram(journal),
        cat("PRIORITY=4\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=podqos-hook\nSYSLOG_PID=", ::getpid(),
            "\nPODQOS_EVENT=misplaced\nPODQOS_ENGINE=docker\nPODQOS_NAMESPACE=web\n"
            "PODQOS_POD_NAME=front\nPODQOS_POD=42\nPODQOS_CONTAINER=a\\x0aPODQOS_POD=43\n"
            "PODQOS_CONTAINER_ID=8f27\nPODQOS_QOS_CLASS=Burstable\n"
            "MESSAGE=pod 42: runs elsewhere\n"));
    log.info("reloaded");
    EXPECT_EQ(read_datagram(journal),
              cat("PRIORITY=6\nSYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER=podqos-hook\nSYSLOG_PID=",
                  ::getpid(), "\nMESSAGE=reloaded\n"));
  });
}

TEST(Syslog, IsNotMissedWhereThereIsNone) {
  with_own_dev([] {
    Log log{"podqos-hook", {}};
    log.error("nobody is there");
  });
}

}  // namespace
}  // namespace podqos::app
