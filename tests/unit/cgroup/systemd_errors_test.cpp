#include <string_view>

#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/cgroup/systemd.h"
#include "tests/unit/cgroup/fake_systemd.h"
#include "tests/unit/cgroup/systemd_calls.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::cgroup {
namespace {

using calls::only;
using calls::SystemdCalls;

struct ErrorCase {
  const char* name;
  const char* dbus_name;
  ErrorCode code;
  const char* remedy;
};

class SystemdErrors : public ::testing::TestWithParam<ErrorCase> {
 protected:
  TemporaryDirectory directory_;
};

TEST_P(SystemdErrors, AreToldApartAndQuoted) {
  FakeSystemd fake{directory_.path("private"), [&](auto accept) {
                     Session session = accept();
                     session.authenticate();
                     while (true) {
                       session.refuse(session.receive().get(), GetParam().dbus_name,
                                      "Unit a.slice\nis special.");
                     }
                   }};
  Systemd systemd{only(fake)};
  // An error is an answer, the connection goes on; unless it says that systemd has left it.
  const std::string_view said = GetParam().dbus_name;
  const bool left = said.ends_with(".NoReply") || said.ends_with(".ServiceUnknown") ||
                    said.ends_with(".NameHasNoOwner");
  for (int i = 0; i < (left ? 1 : 2); ++i) {
    const auto refused = systemd.start_transient("a.slice", {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, GetParam().code) << refused.error().message;
    EXPECT_EQ(refused.error().message, cat("StartTransientUnit a.slice at ", fake.address(),
                                           ": Unit a.slice\\x0ais special. (", GetParam().dbus_name,
                                           ")", GetParam().remedy));
  }
}

constexpr const char* kRoot = "; run as root, or allow the call in the bus policy";
constexpr const char* kHangs =
    "; the timeout is 2000 ms; if systemd hangs, check `systemctl is-system-running` and the "
    "journal of PID 1";

INSTANTIATE_TEST_SUITE_P(
    Table, SystemdErrors,
    ::testing::ValuesIn<ErrorCase>({
        {"UnitExists", "org.freedesktop.systemd1.UnitExists", ErrorCode::kAlreadyExists, ""},
        {"NoSuchUnit", "org.freedesktop.systemd1.NoSuchUnit", ErrorCode::kNotFound, ""},
        {"AccessDenied", "org.freedesktop.DBus.Error.AccessDenied", ErrorCode::kPermission, kRoot},
        {"Interactive", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
         ErrorCode::kPermission, kRoot},
        {"NoReply", "org.freedesktop.DBus.Error.NoReply", ErrorCode::kTimeout, kHangs},
        {"Timeout", "org.freedesktop.DBus.Error.Timeout", ErrorCode::kTimeout, kHangs},
        {"NoSystemdOnTheBus", "org.freedesktop.DBus.Error.NameHasNoOwner", ErrorCode::kNotFound,
         kNoSystemdRemedy},
        {"UnknownOnTheBus", "org.freedesktop.DBus.Error.ServiceUnknown", ErrorCode::kNotFound,
         kNoSystemdRemedy},
        {"NotStartedByTheBus", "org.freedesktop.DBus.Error.Spawn.ChildExited", ErrorCode::kNotFound,
         kNoSystemdRemedy},
        {"Masked", "org.freedesktop.systemd1.UnitMasked", ErrorCode::kConflict,
         "; `systemctl unmask` it unless it was masked deliberately"},
        {"ReadOnly", "org.freedesktop.DBus.Error.PropertyReadOnly", ErrorCode::kUnsupported, ""},
    }),
    [](const auto& param) { return param.param.name; });

TEST_F(SystemdCalls, StoppingWhatIsNotLoadedIsFine) {
  FakeSystemd fake{directory_.path("private"), [](auto accept) {
                     Session session = accept();
                     session.authenticate();
                     while (true) {
                       session.refuse(session.receive().get(),
                                      "org.freedesktop.systemd1.NoSuchUnit",
                                      "Unit a.slice not loaded.");
                     }
                   }};
  Systemd systemd{only(fake)};
  EXPECT_TRUE(systemd.stop("a.slice"));
  EXPECT_TRUE(systemd.reset_failed("a.slice"));
  const auto start = systemd.start("a.slice");
  ASSERT_FALSE(start);
  EXPECT_EQ(start.error().code, ErrorCode::kNotFound);
  const auto set = systemd.set_properties("a.slice", {});
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace podqos::cgroup
