#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/configure/engine_service.h"

namespace podqos::ctl {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

/// What systemctl(1) prints of containerd.service and podqos-nri.service.
struct FakeSystemd {
  int process = 0;
  std::string plugin_status = {};
  bool installed = true;

  Result<ProgramEnd> run(const std::vector<std::string>& argv) const {
    if (!installed) return fail(ErrorCode::kNotFound, "no systemctl");
    if (argv == std::vector<std::string>{"/usr/bin/systemctl", "show", "--property=MainPID",
                                         "--value", "containerd.service"})
      return ProgramEnd{.status = 0, .output = std::to_string(process)};
    if (argv == std::vector<std::string>{"/usr/bin/systemctl", "show", "--property=StatusText",
                                         "--value", "podqos-nri.service"})
      return ProgramEnd{.status = 0, .output = plugin_status};
    ADD_FAILURE() << argv.at(1);
    return ProgramEnd{.status = 1, .output = ""};
  }

  [[nodiscard]] EngineService service() const {
    return EngineService{[this](const auto& argv) { return run(argv); }, "containerd.service",
                         milliseconds{0}};
  }
};

TEST(EngineService, HasThePluginThatServesItsPresentProcess) {
  const std::string status = "synchronized with the runtime at /var/run/nri/nri.sock (process 12)";
  EXPECT_TRUE((FakeSystemd{.process = 12, .plugin_status = status}.service().has_plugin()));
  // The status is the one from before a restart.
  for (const int process : {0, 2, 112, 13})
    EXPECT_FALSE((FakeSystemd{.process = process, .plugin_status = status}.service().has_plugin()))
        << process;
  for (const char* other : {"", "waiting for a runtime at /var/run/nri/nri.sock",
                            "connected to the runtime at /var/run/nri/nri.sock (process 12)"})
    EXPECT_FALSE((FakeSystemd{.process = 12, .plugin_status = other}.service().has_plugin()))
        << other;
}

TEST(EngineService, SaysWhatThePluginSaysIfItDoesNotConnect) {
  const FakeSystemd systemd{.process = 12, .plugin_status = "another podqos-nri has taken over"};
  const Status waited = systemd.service().wait_for_plugin();
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(waited.error().message,
              AllOf(HasSubstr("podqos-nri.service has not connected to containerd.service"),
                    HasSubstr("another podqos-nri has taken over"),
                    HasSubstr("journalctl -u podqos-nri.service")));
}

TEST(EngineService, IsOlderThanWhatChangedSinceItsStart) {
  using std::chrono::hours;
  using std::chrono::system_clock;
  // This process has run for no hour, and not since a moment ago.
  const auto service = FakeSystemd{.process = ::getpid()};
  const auto now = system_clock::now();
  EXPECT_TRUE(service.service().is_older_than(now));
  EXPECT_FALSE(service.service().is_older_than(now - hours{1}));
  // The clock was set back: nothing can be said.
  EXPECT_FALSE(service.service().is_older_than(now + hours{1}));
  EXPECT_FALSE(FakeSystemd{}.service().is_older_than(now));
}

TEST(EngineService, HasNoProcessWithoutSystemd) {
  EXPECT_EQ((FakeSystemd{.process = 12}.service().process()), Pid{12});
  EXPECT_EQ((FakeSystemd{.process = 12, .installed = false}.service().process()), std::nullopt);
  EXPECT_EQ((FakeSystemd{}.service().process()), std::nullopt);
}

}  // namespace
}  // namespace podqos::ctl
