// The systemd that runs this machine, and no other: what it does with what it is told.

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/cgroup/node.h"
#include "common/cgroup/systemd.h"
#include "tests/unit/child_process.h"

namespace podqos::cgroup {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Way {
  const char* name;
  SystemdAddress address;
  friend void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
};

/// Once over systemd's own socket, once over the bus.
class SystemdHere : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (machine_driver() != core::Driver::kSystemd)
      GTEST_SKIP() << "systemd does not run this machine";
    if (::geteuid() != 0) GTEST_SKIP() << "only root may make units";
    const std::string socket = GetParam().address.address.substr(sizeof "unix:path=" - 1);
    if (::access(socket.c_str(), F_OK) != 0) GTEST_SKIP() << "there is no " << socket;
    if (!std::ifstream{"/sys/fs/cgroup/cgroup.controllers"})
      GTEST_SKIP() << "the values are read from cgroup v2, and this machine has v1";
  }
  void TearDown() override {
    if (IsSkipped()) return;
    for (const std::string& unit : {scope_, slice_}) {
      static_cast<void>(systemd().stop(unit));
      static_cast<void>(systemd().reset_failed(unit));
    }
  }

  [[nodiscard]] static Systemd systemd() {
    return Systemd{{.addresses = {GetParam().address}, .deadline = 20s}};
  }

  [[nodiscard]] std::string directory() const { return "/sys/fs/cgroup/" + slice_; }

  /// The content of one of the slice's cgroup files; the job that makes it may take a moment.
  [[nodiscard]] std::string file(const std::string& name, const std::string& wanted) const {
    std::string content;
    for (int i = 0; i < 200 && content != wanted; ++i) {
      std::ifstream file{directory() + "/" + name};
      content = {std::istreambuf_iterator<char>{file}, {}};
      if (content != wanted) std::this_thread::sleep_for(50ms);
    }
    return content;
  }

  // Of this test only: systemd may be at removing those of the test before. Without a '-', which
  // would make parents that stay.
  static inline int made = 0;
  std::string unit_ = cat("podqos_test_", ::getpid(), "_", ++made);
  std::string slice_ = unit_ + ".slice";
  std::string scope_ = unit_ + ".scope";
};

TEST_P(SystemdHere, MakesASliceWithItsPropertiesChangesAndStopsIt) {
  Systemd manager = systemd();
  const auto made =
      manager.start_transient(slice_, {{"Description", std::string{"podqos \xe2\x80\x93 test"}},
                                       {"DefaultDependencies", false},
                                       {"Before", std::vector<std::string>{"shutdown.target"}},
                                       {"CPUWeight", std::uint64_t{79}},
                                       {"CPUQuotaPerSecUSec", std::uint64_t{250'000}},
                                       {"MemoryMax", std::uint64_t{67'108'864}},
                                       {"TasksMax", std::uint64_t{100}}});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(file("cpu.weight", "79\n"), "79\n");
  EXPECT_EQ(file("cpu.max", "25000 100000\n"), "25000 100000\n");
  EXPECT_EQ(file("memory.max", "67108864\n"), "67108864\n");
  EXPECT_EQ(file("pids.max", "100\n"), "100\n");

  const auto again = manager.start_transient(slice_, {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kAlreadyExists) << again.error().message;

  const auto set = manager.set_properties(
      slice_, {{"CPUWeight", std::uint64_t{200}}, {"MemoryMax", std::uint64_t{33'554'432}}});
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(file("cpu.weight", "200\n"), "200\n");
  EXPECT_EQ(file("memory.max", "33554432\n"), "33554432\n");

  const auto units = manager.list(unit_ + "*.slice");
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_EQ(units->size(), 1U);
  EXPECT_EQ(units->front().name, slice_);
  EXPECT_EQ(units->front().active_state, "active");

  const auto properties = manager.properties(slice_);
  ASSERT_TRUE(properties) << properties.error().message;
  ASSERT_TRUE(*properties);
  for (const auto& [name, value] :
       std::map<std::string, std::uint64_t>{{"CPUWeight", 200},
                                            {"CPUQuotaPerSecUSec", 250'000},
                                            {"MemoryMax", 33'554'432},
                                            {"TasksMax", 100}})
    EXPECT_EQ((*properties)->at(name), core::UnitValue{value}) << name;
  EXPECT_EQ(manager.properties(cat("no-", slice_)).value(), std::nullopt);

  ASSERT_TRUE(manager.stop(slice_));
  for (int i = 0; i < 200 && ::access(directory().c_str(), F_OK) == 0; ++i)
    std::this_thread::sleep_for(50ms);
  EXPECT_NE(::access(directory().c_str(), F_OK), 0);
}

TEST_P(SystemdHere, PutsAProcessIntoAScope) {
  const pid_t child = start_child([] { ::pause(); });
  Systemd manager = systemd();
  ASSERT_TRUE(manager.start_transient(slice_, {}));
  const auto made = manager.start_transient(
      scope_, {{"Slice", slice_},
               {"Delegate", true},
               {"PIDs", std::vector<std::uint32_t>{static_cast<std::uint32_t>(child)}}});
  EXPECT_TRUE(made) << made.error().message;
  const std::string wanted = cat(child, "\n");
  EXPECT_EQ(file(scope_ + "/cgroup.procs", wanted), wanted);
  ::kill(child, SIGKILL);
  static_cast<void>(wait_for(child));
}

TEST_P(SystemdHere, SaysWhatIsWrong) {
  Systemd manager = systemd();
  ASSERT_TRUE(manager.start_transient(slice_, {}));
  const auto unknown = manager.set_properties(slice_, {{"NoSuchProperty", std::uint64_t{1}}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(unknown.error().message,
              HasSubstr("Cannot set property NoSuchProperty, or unknown property."));
  const auto invalid = manager.start("podqos/test.slice");
  ASSERT_FALSE(invalid);
  EXPECT_THAT(invalid.error().message, HasSubstr("Unit name podqos/test.slice is not valid."));
  const auto absent = manager.start("podqos_test_absent.service");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound) << absent.error().message;
}

// Its server overlooks a short call that arrives together with the end of the authentication. What
// is not loaded is stopped already.
TEST_P(SystemdHere, AnswersAShortFirstCall) {
  for (int i = 0; i < 50; ++i) {
    const auto reset = systemd().reset_failed("podqos_test_absent.slice");
    ASSERT_TRUE(reset) << "call " << i << ": " << reset.error().message;
  }
  EXPECT_TRUE(systemd().reset_failed("podqos_test_absent.scope"));
  for (const char* unit : {"podqos_test_absent.slice", "podqos_test_absent.scope"}) {
    const auto stopped = systemd().stop(unit);
    EXPECT_TRUE(stopped) << stopped.error().message;
  }
}

TEST_P(SystemdHere, RefusesOthersThanRoot) {
  expect_in_child([&] {
    ASSERT_EQ(::setuid(65534), 0);
    const auto refused = systemd().start_transient(slice_, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kPermission) << refused.error().message;
    EXPECT_THAT(refused.error().message, HasSubstr("run as root"));
  });
}

INSTANTIATE_TEST_SUITE_P(
    Ways, SystemdHere,
    ::testing::Values(Way{"OwnSocket", {"unix:path=/run/systemd/private", Peer::kSystemd}},
                      Way{"Bus", {"unix:path=/run/dbus/system_bus_socket", Peer::kMessageBus}}),
    [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace podqos::cgroup
