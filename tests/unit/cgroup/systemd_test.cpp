#include "common/cgroup/systemd.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "tests/unit/cgroup/fake_systemd.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/test_clock.h"

namespace podqos::cgroup {
namespace {

using core::UnitProperty;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;
using namespace std::chrono_literals;

constexpr const char* kManager =
    "org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager.";

/// Goes before the first call on systemd's own socket; see AShortFirstCallIsNotAlone.
constexpr const char* kPing = "- / org.freedesktop.DBus.Peer.Ping  \n";

SystemdOptions only(const FakeSystemd& fake, Peer peer = Peer::kSystemd) {
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

// Signatures and meaning of the arguments: org.freedesktop.systemd1(5).
TEST_F(SystemdCalls, StartTransientUnitSendsEachTypeOfProperty) {
  EXPECT_EQ(told([](Systemd& systemd) {
              return systemd.start_transient(
                  "kubepods-burstable.slice",
                  {{"DefaultDependencies", false},
                   {"Delegate", true},
                   {"CPUWeight", std::uint64_t{79}},
                   {"MemoryMax", std::numeric_limits<std::uint64_t>::max()},
                   {"Description", std::string{"Pods \xe2\x89\xa0 \"guaranteed\""}},
                   {"Before", std::vector<std::string>{"shutdown.target", "umount.target"}},
                   {"After", std::vector<std::string>{}},
                   {"PIDs", std::vector<std::uint32_t>{1, 4'294'967'295}}});
            }),
            std::string{kManager} +
                "StartTransientUnit ssa(sv)a(sa(sv)) \"kubepods-burstable.slice\" \"replace\" "
                "[(\"DefaultDependencies\" <b:0>) (\"Delegate\" <b:1>) (\"CPUWeight\" <t:79>) "
                "(\"MemoryMax\" <t:18446744073709551615>) "
                "(\"Description\" <\"Pods \xe2\x89\xa0 \"guaranteed\"\">) "
                "(\"Before\" <[\"shutdown.target\" \"umount.target\"]>) (\"After\" <[]>) "
                "(\"PIDs\" <[u:1 u:4294967295]>)] []\n");
}

TEST_F(SystemdCalls, StartTransientUnitWithoutProperties) {
  EXPECT_EQ(told([](Systemd& systemd) { return systemd.start_transient("a.slice", {}); }),
            std::string{kManager} +
                "StartTransientUnit ssa(sv)a(sa(sv)) \"a.slice\" \"replace\" [] []\n");
}

TEST_F(SystemdCalls, StartUnitReplacesTheJobUnderWay) {
  EXPECT_EQ(told([](Systemd& systemd) { return systemd.start("a\\x2d@b:c.slice"); }),
            std::string{kManager} + "StartUnit ss \"a\\x2d@b:c.slice\" \"replace\"\n");
}

TEST_F(SystemdCalls, SetUnitPropertiesUntilTheNextBoot) {
  EXPECT_EQ(told([](Systemd& systemd) {
              return systemd.set_properties("a.slice", {{"TasksMax", std::uint64_t{100}}});
            }),
            std::string{kManager} +
                "SetUnitProperties sba(sv) \"a.slice\" b:1 [(\"TasksMax\" <t:100>)]\n");
}

TEST_F(SystemdCalls, StopUnit) {
  EXPECT_EQ(told([](Systemd& systemd) { return systemd.stop("a.slice"); }),
            std::string{kManager} + "StopUnit ss \"a.slice\" \"replace\"\n");
}

TEST_F(SystemdCalls, ResetFailedUnit) {
  EXPECT_EQ(told([](Systemd& systemd) { return systemd.reset_failed("a.scope"); }),
            std::string{kManager} + "ResetFailedUnit s \"a.scope\"\n");
}

TEST_F(SystemdCalls, OneConnectionServesAllCallsInOrder) {
  FakeSystemd fake{directory_.path("private"), kAnswersJobs};
  {
    Systemd systemd{only(fake)};
    EXPECT_EQ(systemd.round_trips(), 0);
    EXPECT_TRUE(systemd.start("a.slice"));
    EXPECT_TRUE(systemd.stop("b.slice"));
    EXPECT_EQ(systemd.round_trips(), 2);
    Systemd moved = std::move(systemd);
    EXPECT_TRUE(moved.stop("c.slice"));
    EXPECT_EQ(moved.round_trips(), 3);
  }
  EXPECT_EQ(fake.heard(), std::string{kPing} + kManager + "StartUnit ss \"a.slice\" \"replace\"\n" +
                              kManager + "StopUnit ss \"b.slice\" \"replace\"\n" + kManager +
                              "StopUnit ss \"c.slice\" \"replace\"\n");
}

struct HolderCase {
  const char* name;
  const char* holder;  ///< what GetUnitByControlGroup answers; nullptr: NoSuchUnit
  const char* unit;    ///< what GetUnit does
  bool holds;
};

class SystemdHolds : public SystemdCalls, public ::testing::WithParamInterface<HolderCase> {};

TEST_P(SystemdHolds, WhereBothAnswersNameOneObject) {
  FakeSystemd fake{directory_.path("private"), [](auto accept) {
                     Session session = accept();
                     session.authenticate();
                     for (const char* path : {GetParam().holder, GetParam().unit}) {
                       const auto call = session.receive();
                       if (path == nullptr) {
                         session.refuse(call.get(), "org.freedesktop.systemd1.NoSuchUnit", "No.");
                         continue;
                       }
                       const TestMessage reply{dbus_message_new_method_return(call.get())};
                       dbus_message_append_args(reply.get(), DBUS_TYPE_OBJECT_PATH, &path,
                                                DBUS_TYPE_INVALID);
                       session.send(reply.get());
                     }
                     session.wait();
                   }};
  const auto holds = Systemd{only(fake)}.holds("/a.slice/c.scope");
  ASSERT_TRUE(holds) << holds.error().message;
  EXPECT_EQ(*holds, GetParam().holds);
  EXPECT_THAT(fake.heard(), StartsWith(cat(kPing, kManager, "GetUnitByControlGroup s ",
                                           "\"/a.slice/c.scope\"\n")));
}

INSTANTIATE_TEST_SUITE_P(Table, SystemdHolds,
                         ::testing::ValuesIn<HolderCase>({
                             {"Same", "/unit/c_2escope", "/unit/c_2escope", true},
                             {"Another", "/unit/d_2escope", "/unit/c_2escope", false},
                             {"NotLoaded", "/unit/d_2escope", nullptr, false},
                             {"NoUnit", nullptr, nullptr, false},
                         }),
                         [](const auto& param) { return param.param.name; });

TEST_F(SystemdCalls, ABusIsGreetedFirst) {
  FakeSystemd fake{directory_.path("bus"), [](auto accept) {
                     Session session = accept();
                     session.authenticate();
                     const auto hello = session.receive();
                     const TestMessage welcome{dbus_message_new_method_return(hello.get())};
                     const char* name = ":1.7";
                     dbus_message_append_args(welcome.get(), DBUS_TYPE_STRING, &name,
                                              DBUS_TYPE_INVALID);
                     session.send(welcome.get());
                     while (true)
                       session.answer_job(session.receive().get());
                   }};
  {
    Systemd systemd{only(fake, Peer::kMessageBus)};
    EXPECT_TRUE(systemd.start("a.slice"));
    EXPECT_EQ(systemd.round_trips(), 2);
    EXPECT_TRUE(systemd.start("b.slice"));
    EXPECT_EQ(systemd.round_trips(), 3);
  }
  EXPECT_EQ(
      fake.heard(),
      std::string{"org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus.Hello  \n"} +
          kManager + "StartUnit ss \"a.slice\" \"replace\"\n" + kManager +
          "StartUnit ss \"b.slice\" \"replace\"\n");
}

/// A unit as ListUnitsByPatterns describes it.
void append_unit(DBusMessageIter& array, const char* name, const char* load, const char* active) {
  DBusMessageIter unit{};
  dbus_message_iter_open_container(&array, DBUS_TYPE_STRUCT, nullptr, &unit);
  const char* path = "/org/freedesktop/systemd1/unit/x";
  const std::uint32_t job = 0;
  for (const char* text : {name, "some description", load, active, "sub-state", ""})
    dbus_message_iter_append_basic(&unit, DBUS_TYPE_STRING, &text);
  dbus_message_iter_append_basic(&unit, DBUS_TYPE_OBJECT_PATH, &path);
  dbus_message_iter_append_basic(&unit, DBUS_TYPE_UINT32, &job);
  const char* kind = "";
  const char* none = "/";
  dbus_message_iter_append_basic(&unit, DBUS_TYPE_STRING, &kind);
  dbus_message_iter_append_basic(&unit, DBUS_TYPE_OBJECT_PATH, &none);
  dbus_message_iter_close_container(&array, &unit);
}

TEST_F(SystemdCalls, ListUnitsByPatterns) {
  FakeSystemd fake{directory_.path("private"), [](auto accept) {
                     Session session = accept();
                     session.authenticate();
                     const auto call = session.receive();
                     const TestMessage reply{dbus_message_new_method_return(call.get())};
                     DBusMessageIter place{};
                     DBusMessageIter array{};
                     dbus_message_iter_init_append(reply.get(), &place);
                     dbus_message_iter_open_container(&place, DBUS_TYPE_ARRAY, "(ssssssouso)",
                                                      &array);
                     append_unit(array, "kubepods.slice", "loaded", "active");
                     append_unit(array, "kubepods-pod1.slice", "not-found", "deactivating");
                     dbus_message_iter_close_container(&place, &array);
                     session.send(reply.get());
                     session.wait();
                   }};
  {
    Systemd systemd{only(fake)};
    const auto units = systemd.list("kubepods*.slice");
    ASSERT_TRUE(units) << units.error().message;
    ASSERT_THAT(*units, SizeIs(2));
    EXPECT_EQ((*units)[0].name, "kubepods.slice");
    EXPECT_EQ((*units)[0].active_state, "active");
    EXPECT_EQ((*units)[1].name, "kubepods-pod1.slice");
    EXPECT_EQ((*units)[1].active_state, "deactivating");
  }
  EXPECT_EQ(fake.heard(),
            std::string{kPing} + kManager + "ListUnitsByPatterns asas [] [\"kubepods*.slice\"]\n");
}

TEST_F(SystemdCalls, AListOfAnotherShapeIsAnError) {
  FakeSystemd fake{directory_.path("private"), kAnswersJobs};
  const auto units = Systemd{only(fake)}.list("*");
  ASSERT_FALSE(units);
  EXPECT_EQ(units.error(),
            (Error{ErrorCode::kIo, "ListUnitsByPatterns *: unexpected reply of type \"o\""}));
}

TEST_F(SystemdCalls, SignalsBeforeTheAnswerAreSkipped) {
  FakeSystemd fake{directory_.path("private"), [](auto accept) {
                     Session session = accept();
                     session.authenticate();
                     while (true) {
                       const auto call = session.receive();
                       for (int i = 0; i < 1000; ++i) {
                         session.send(TestMessage{
                             dbus_message_new_signal("/org/freedesktop/systemd1",
                                                     "org.freedesktop.systemd1.Manager", "JobNew")}
                                          .get());
                       }
                       session.answer_job(call.get());
                     }
                   }};
  Systemd systemd{only(fake)};
  EXPECT_TRUE(systemd.start("a.slice"));
  EXPECT_TRUE(systemd.start("a.slice"));
}

/// systemd's server leaves unread what came in one piece with BEGIN, up to 256 bytes in all.
TEST_F(SystemdCalls, AShortFirstCallIsNotAlone) {
  FakeSystemd fake{directory_.path("private"), [](auto accept) {
                     Session session = accept();
                     session.authenticate();
                     session.need(257);
                     while (true)
                       session.answer_job(session.receive().get());
                   }};
  Systemd systemd{only(fake)};
  const auto done = systemd.reset_failed("a.slice");
  EXPECT_TRUE(done) << done.error().message;
}

struct BadCase {
  const char* name;
  std::string unit;
  std::vector<UnitProperty> properties;
  const char* message;
};

class SystemdInput : public ::testing::TestWithParam<BadCase> {};

// libdbus would end the process.
TEST_P(SystemdInput, IsCheckedBeforeItIsSent) {
  Systemd systemd{{.addresses = {}}};
  for (const auto& refused : {systemd.start_transient(GetParam().unit, GetParam().properties),
                              systemd.set_properties(GetParam().unit, GetParam().properties)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << refused.error().message;
    EXPECT_THAT(refused.error().message, HasSubstr(GetParam().message));
  }
  EXPECT_EQ(systemd.round_trips(), 0);
}

constexpr const char* kNoUnit =
    " is not a systemd unit name: expected 1 to 255 letters, digits and ";

INSTANTIATE_TEST_SUITE_P(
    Table, SystemdInput,
    ::testing::ValuesIn<BadCase>({
        {"EmptyUnit", "", {}, kNoUnit},
        {"UnitOf256Bytes", std::string(256, 'a'), {}, kNoUnit},
        {"UnitWithASlash", "a/b.slice", {}, "\"a/b.slice\" is not a systemd unit name"},
        {"UnitWithANul",
         std::string{"a\0.slice", 8},
         {},
         "\"a\\x00.slice\" is not a systemd unit name"},
        {"UnitThatIsNoUtf8", "a\xff.slice", {}, "\"a\\xff.slice\" is not a systemd unit name"},
        {"EmptyProperty", "a.slice", {{"", true}}, " a.slice: \"\" is not a unit property name"},
        {"PropertyWithASpace", "a.slice", {{"a b", true}}, "\"a b\" is not a unit property name"},
        {"TextThatIsNoUtf8",
         "a.slice",
         {{"Description", std::string{"\xc3("}}},
         " a.slice: Description: \"\\xc3(\" is not UTF-8"},
        {"TextWithANul",
         "a.slice",
         {{"Description", std::string{"a\0b", 3}}},
         "Description: \"a\\x00b\" is not UTF-8"},
        {"TextTooLong",
         "a.slice",
         {{"Description", std::string(4097, 'x')}},
         "Description: 4097 bytes, at most 4096"},
        {"ElementThatIsNoUtf8",
         "a.slice",
         {{"Before", std::vector<std::string>{"good", "\xff"}}},
         "Before: \"\\xff\" is not UTF-8"},
        {"TooManyElements",
         "a.slice",
         {{"Before", std::vector<std::string>(257, "x")}},
         "Before: 257 elements, at most 256"},
        {"TooManyNumbers",
         "a.slice",
         {{"PIDs", std::vector<std::uint32_t>(257, 1)}},
         "PIDs: 257 elements, at most 256"},
        {"TooManyProperties", "a.slice", std::vector<UnitProperty>(257, {"A", true}),
         "properties: 257 elements, at most 256"},
    }),
    [](const auto& param) { return param.param.name; });

TEST(SystemdNames, AreCheckedByEveryCall) {
  Systemd systemd{{.addresses = {}}};
  for (const auto& refused :
       {systemd.start("\xff"), systemd.stop("\xff"), systemd.reset_failed("\xff")}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  }
  const auto list = systemd.list("\xff");
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(list.error().message,
              AllOf(StartsWith("ListUnitsByPatterns"), HasSubstr("is not UTF-8")));
}

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
