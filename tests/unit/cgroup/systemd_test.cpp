#include "common/cgroup/systemd.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
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

constexpr const char* kNoSuchUnitError = "org.freedesktop.systemd1.NoSuchUnit";

/// Goes before the first call on systemd's own socket; see AShortFirstCallIsNotAlone.
constexpr const char* kPing = "- / org.freedesktop.DBus.Peer.Ping  \n";

SystemdOptions only(const FakeSystemd& fake, Peer peer = Peer::kSystemd) {
  return {.addresses = {{.address = fake.address(), .peer = peer}},
          .restart = std::chrono::milliseconds{0}};
}

class SystemdCalls : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return directory_.path("private"); }
  TemporaryDirectory directory_;
};

// Signatures and meaning of the arguments: org.freedesktop.systemd1(5).
TEST_F(SystemdCalls, AreToldToItsManager) {
  const std::vector<UnitProperty> each_type{
      {"DefaultDependencies", false},
      {"Delegate", true},
      {"CPUWeight", std::uint64_t{79}},
      {"MemoryMax", std::numeric_limits<std::uint64_t>::max()},
      {"Description", std::string{"Pods \xe2\x89\xa0 \"guaranteed\""}},
      {"Before", std::vector<std::string>{"shutdown.target", "umount.target"}},
      {"After", std::vector<std::string>{}},
      {"PIDs", std::vector<std::uint32_t>{1, 4'294'967'295}}};
  FakeSystemd fake{path(), kAnswersJobs};
  {
    Systemd systemd{only(fake)};
    EXPECT_EQ(systemd.round_trips(), 0);
    EXPECT_TRUE(systemd.start_transient("kubepods-burstable.slice", each_type));
    EXPECT_TRUE(systemd.start_transient("a.slice", {}));
    EXPECT_TRUE(systemd.start("a\\x2d@b:c.slice"));
    EXPECT_TRUE(systemd.set_properties("a.slice", {{"TasksMax", std::uint64_t{100}}}));
    EXPECT_TRUE(systemd.stop("b.slice"));
    EXPECT_EQ(systemd.round_trips(), 5);
    Systemd moved = std::move(systemd);
    EXPECT_TRUE(moved.reset_failed("a.scope"));
    EXPECT_EQ(moved.round_trips(), 6);
  }
  // Over one connection, in their order.
  EXPECT_EQ(
      fake.heard(),
      cat(kPing, kManager,
          "StartTransientUnit ssa(sv)a(sa(sv)) \"kubepods-burstable.slice\" \"replace\" "
          "[(\"DefaultDependencies\" <b:0>) (\"Delegate\" <b:1>) (\"CPUWeight\" <t:79>) "
          "(\"MemoryMax\" <t:18446744073709551615>) "
          "(\"Description\" <\"Pods \xe2\x89\xa0 \"guaranteed\"\">) "
          "(\"Before\" <[\"shutdown.target\" \"umount.target\"]>) (\"After\" <[]>) "
          "(\"PIDs\" <[u:1 u:4294967295]>)] []\n",
          kManager, "StartTransientUnit ssa(sv)a(sa(sv)) \"a.slice\" \"replace\" [] []\n", kManager,
          "StartUnit ss \"a\\x2d@b:c.slice\" \"replace\"\n", kManager,
          "SetUnitProperties sba(sv) \"a.slice\" b:1 [(\"TasksMax\" <t:100>)]\n", kManager,
          "StopUnit ss \"b.slice\" \"replace\"\n", kManager, "ResetFailedUnit s \"a.scope\"\n"));
}

TEST_F(SystemdCalls, ACgroupIsAUnitsWhereBothAnswersNameOneObject) {
  struct Case {
    const char* holder;  ///< what GetUnitByControlGroup answers; nullptr: NoSuchUnit
    const char* unit;    ///< what GetUnit does
    bool holds;
  };
  for (const Case& each :
       {Case{"/unit/c_2escope", "/unit/c_2escope", true},
        Case{"/unit/d_2escope", "/unit/c_2escope", false}, Case{"/unit/d_2escope", nullptr, false},
        Case{nullptr, nullptr, false}}) {
    ::unlink(path().c_str());
    FakeSystemd fake{path(), [&](auto accept) {
                       Session session = authenticated(accept);
                       for (const char* object : {each.holder, each.unit}) {
                         const auto call = session.receive();
                         if (object == nullptr) {
                           session.refuse(call.get(), kNoSuchUnitError, "No.");
                         } else {
                           session.answer(call.get(), DBUS_TYPE_OBJECT_PATH, object);
                         }
                       }
                       session.wait();
                     }};
    const auto holds = Systemd{only(fake)}.holds("/a.slice/c.scope");
    ASSERT_TRUE(holds) << holds.error().message;
    EXPECT_EQ(*holds, each.holds);
    EXPECT_THAT(fake.heard(),
                StartsWith(cat(kPing, kManager, "GetUnitByControlGroup s \"/a.slice/c.scope\"\n")));
  }
}

/// Appends a property to a dictionary a{sv}, with what `fill` makes its value.
template <class Fill>
void append_property(DBusMessageIter& array, const char* name, const char* type, Fill fill) {
  DBusMessageIter entry{};
  DBusMessageIter value{};
  dbus_message_iter_open_container(&array, DBUS_TYPE_DICT_ENTRY, nullptr, &entry);
  dbus_message_iter_append_basic(&entry, DBUS_TYPE_STRING, static_cast<const void*>(&name));
  dbus_message_iter_open_container(&entry, DBUS_TYPE_VARIANT, type, &value);
  fill(value);
  dbus_message_iter_close_container(&entry, &value);
  dbus_message_iter_close_container(&array, &entry);
}

/// What systemd answers about a slice, but for most of its properties.
TestMessage properties_of_a_slice(DBusMessage* call, const char* state, std::uint64_t job,
                                  const char* type_of_job = "(uo)", bool is_defined = true) {
  TestMessage reply{dbus_message_new_method_return(call)};
  DBusMessageIter place{};
  DBusMessageIter array{};
  dbus_message_iter_init_append(reply.get(), &place);
  dbus_message_iter_open_container(&place, DBUS_TYPE_ARRAY, "{sv}", &array);
  append_property(array, "ActiveState", "s", [&](DBusMessageIter& value) {
    dbus_message_iter_append_basic(&value, DBUS_TYPE_STRING, static_cast<const void*>(&state));
  });
  append_property(array, "Job", type_of_job, [&](DBusMessageIter& value) {
    DBusMessageIter fields{};
    const char* object = "/";
    dbus_message_iter_open_container(&value, DBUS_TYPE_STRUCT, nullptr, &fields);
    // Little-endian: a shorter number stands at the front.
    dbus_message_iter_append_basic(&fields, type_of_job[1], &job);
    dbus_message_iter_append_basic(&fields, DBUS_TYPE_OBJECT_PATH,
                                   static_cast<const void*>(&object));
    dbus_message_iter_close_container(&value, &fields);
  });
  append_property(array, "CPUWeight", "t", [](DBusMessageIter& value) {
    const std::uint64_t weight = 79;
    dbus_message_iter_append_basic(&value, DBUS_TYPE_UINT64, &weight);
  });
  append_property(array, "MemoryAccounting", "b", [](DBusMessageIter& value) {
    const dbus_bool_t on = 1;
    dbus_message_iter_append_basic(&value, DBUS_TYPE_BOOLEAN, &on);
  });
  append_property(array, "Transient", "b", [&](DBusMessageIter& value) {
    const dbus_bool_t is_transient = is_defined ? 1 : 0;
    dbus_message_iter_append_basic(&value, DBUS_TYPE_BOOLEAN, &is_transient);
  });
  append_property(array, "FragmentPath", "s", [](DBusMessageIter& value) {
    const char* none = "";
    dbus_message_iter_append_basic(&value, DBUS_TYPE_STRING, static_cast<const void*>(&none));
  });
  append_property(array, "AllowedCPUs", "ay", [](DBusMessageIter& value) {
    DBusMessageIter bytes{};
    dbus_message_iter_open_container(&value, DBUS_TYPE_ARRAY, "y", &bytes);
    dbus_message_iter_close_container(&value, &bytes);
  });
  dbus_message_iter_close_container(&place, &array);
  return reply;
}

TEST_F(SystemdCalls, TellWhatAnActiveUnitHas) {
  FakeSystemd fake{path(), [](auto accept) {
                     Session session = authenticated(accept);
                     const auto answer = [&](auto... what) {
                       session.send(properties_of_a_slice(session.receive().get(), what...).get());
                     };
                     answer("active", 0U);
                     answer("inactive", 0U);
                     answer("active", 7U);
                     answer("active", std::uint64_t{1} << 40U, "(to)");
                     answer("active", 0U, "(uo)", false);
                     session.answer_job(session.receive().get());
                     session.refuse(session.receive().get(), kNoSuchUnitError, "No.");
                     session.wait();
                   }};
  {
    Systemd systemd{only(fake)};
    const UnitProperties wanted{{"ActiveState", std::string{"active"}},
                                {"CPUWeight", std::uint64_t{79}},
                                {"MemoryAccounting", true},
                                {"Transient", true},
                                {"FragmentPath", std::string{}}};
    EXPECT_EQ(systemd.properties("a-1b.slice").value(), std::optional{wanted});
    EXPECT_EQ(systemd.properties("inactive.slice").value(), std::nullopt);
    EXPECT_EQ(systemd.properties("to-be-stopped.slice").value(), std::nullopt);
    EXPECT_EQ(systemd.properties("odd-job.slice").value(), std::nullopt);
    EXPECT_EQ(systemd.properties("of-what-is-in-it.slice").value(), std::nullopt);
    const auto odd = systemd.properties("odd.slice");
    ASSERT_FALSE(odd);
    EXPECT_EQ(odd.error().code, ErrorCode::kIo);
    EXPECT_EQ(systemd.properties("9.slice").value(), std::nullopt);
  }
  const std::string heard = fake.heard();
  for (const char* object : {"a_2d1b_2eslice", "inactive_2eslice", "_39_2eslice"}) {
    EXPECT_THAT(heard, HasSubstr(cat("org.freedesktop.systemd1 /org/freedesktop/systemd1/unit/",
                                     object, " org.freedesktop.DBus.Properties.GetAll s \"\"\n")));
  }
}

TEST_F(SystemdCalls, ABusIsGreetedFirst) {
  FakeSystemd fake{path(), [](auto accept) {
                     Session session = authenticated(accept);
                     session.answer(session.receive().get(), DBUS_TYPE_STRING, ":1.7");
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
  FakeSystemd fake{path(), [](auto accept) {
                     Session session = authenticated(accept);
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
  FakeSystemd fake{path(), kAnswersJobs};
  const auto units = Systemd{only(fake)}.list("*");
  ASSERT_FALSE(units);
  EXPECT_EQ(units.error(),
            (Error{ErrorCode::kIo, "ListUnitsByPatterns *: unexpected reply of type \"o\""}));
}

TEST_F(SystemdCalls, SignalsBeforeTheAnswerAreSkipped) {
  FakeSystemd fake{path(), [](auto accept) {
                     Session session = authenticated(accept);
                     while (true) {
                       const auto call = session.receive();
                       for (int i = 0; i < 1000; ++i)
                         session.broadcast("JobNew");
                       session.answer_job(call.get());
                     }
                   }};
  Systemd systemd{only(fake)};
  EXPECT_TRUE(systemd.start("a.slice"));
  EXPECT_TRUE(systemd.start("a.slice"));
}

/// systemd's server leaves unread what came in one piece with BEGIN, up to 256 bytes in all.
TEST_F(SystemdCalls, AShortFirstCallIsNotAlone) {
  FakeSystemd fake{path(), [](auto accept) {
                     Session session = authenticated(accept);
                     session.need(257);
                     while (true)
                       session.answer_job(session.receive().get());
                   }};
  Systemd systemd{only(fake)};
  const auto done = systemd.reset_failed("a.slice");
  EXPECT_TRUE(done) << done.error().message;
}

// libdbus would end the process.
TEST(SystemdInput, IsCheckedBeforeItIsSent) {
  struct Case {
    std::string unit;
    std::vector<UnitProperty> properties;
    const char* message;
  };
  Systemd systemd{{.addresses = {}}};
  for (const auto& [unit, properties, message] :
       {Case{std::string{"a\0.slice", 8}, {}, "\"a\\x00.slice\" is not UTF-8 text"},
        Case{"a\xff.slice", {}, "\"a\\xff.slice\" is not UTF-8 text"},
        Case{"a.slice", {{"\xff", true}}, " a.slice: property: \"\\xff\" is not UTF-8 text"},
        Case{"a.slice",
             {{"Description", std::string{"\xc3("}}},
             " a.slice: Description: \"\\xc3(\" is not UTF-8"},
        Case{"a.slice",
             {{"Description", std::string{"a\0b", 3}}},
             "Description: \"a\\x00b\" is not UTF-8"},
        Case{"a.slice",
             {{"Before", std::vector<std::string>{"good", "\xff"}}},
             "Before: \"\\xff\" is not UTF-8"}}) {
    for (const Status& done :
         {systemd.start_transient(unit, properties), systemd.set_properties(unit, properties)}) {
      const Error refused = error_of(done);
      EXPECT_EQ(refused.code, ErrorCode::kInvalidArgument) << refused.message;
      EXPECT_THAT(refused.message, HasSubstr(message));
    }
  }
  for (const Status& done :
       {systemd.start("\xff"), systemd.stop("\xff"), systemd.reset_failed("\xff")})
    EXPECT_EQ(error_of(done).code, ErrorCode::kInvalidArgument);
  const auto list = systemd.list("\xff");
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(list.error().message,
              AllOf(StartsWith("ListUnitsByPatterns"), HasSubstr("is not UTF-8")));
  EXPECT_EQ(systemd.round_trips(), 0);
}

TEST_F(SystemdCalls, TellsErrorsApartAndQuotesThem) {
  using enum ErrorCode;
  constexpr const char* kRoot = "; run as root, or allow the call in the bus policy";
  constexpr const char* kHangs =
      "; the timeout is 2000 ms; if systemd hangs, check `systemctl is-system-running` and the "
      "journal of PID 1";
  struct Case {
    std::string_view said;
    ErrorCode code;
    const char* remedy;
  };
  for (const auto& each :
       {Case{"org.freedesktop.systemd1.UnitExists", kAlreadyExists, ""},
        Case{kNoSuchUnitError, kNotFound, ""},
        Case{"org.freedesktop.DBus.Error.AccessDenied", kPermission, kRoot},
        Case{"org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", kPermission, kRoot},
        Case{"org.freedesktop.DBus.Error.NoReply", kTimeout, kHangs},
        Case{"org.freedesktop.DBus.Error.Timeout", kTimeout, kHangs},
        Case{"org.freedesktop.DBus.Error.NameHasNoOwner", kNotFound, kNoSystemdRemedy},
        Case{"org.freedesktop.DBus.Error.ServiceUnknown", kNotFound, kNoSystemdRemedy},
        Case{"org.freedesktop.DBus.Error.Spawn.ChildExited", kNotFound, kNoSystemdRemedy},
        Case{"org.freedesktop.systemd1.UnitMasked", kConflict,
             "; `systemctl unmask` it unless it was masked deliberately"},
        Case{"org.freedesktop.DBus.Error.PropertyReadOnly", kUnsupported, ""}}) {
    ::unlink(path().c_str());
    FakeSystemd fake{path(), [&](auto accept) {
                       Session session = authenticated(accept);
                       while (true)
                         session.refuse(session.receive().get(), each.said.data(),
                                        "Unit a.slice\nis special.");
                     }};
    Systemd systemd{only(fake)};
    // An error is an answer, the connection goes on; unless it says that systemd has left it.
    const bool left = each.said.ends_with(".NoReply") || each.said.ends_with(".ServiceUnknown") ||
                      each.said.ends_with(".NameHasNoOwner");
    for (int i = 0; i < (left ? 1 : 2); ++i) {
      EXPECT_EQ(
          error_of(systemd.start_transient("a.slice", {})),
          (Error{each.code, cat("StartTransientUnit a.slice at ", fake.address(),
                                ": Unit a.slice\\x0ais special. (", each.said, ")", each.remedy)}));
    }
  }
}

TEST_F(SystemdCalls, StoppingWhatIsNotLoadedIsFine) {
  FakeSystemd fake{path(), [](auto accept) {
                     Session session = authenticated(accept);
                     while (true) {
                       session.refuse(session.receive().get(), kNoSuchUnitError,
                                      "Unit a.slice not loaded.");
                     }
                   }};
  Systemd systemd{only(fake)};
  EXPECT_TRUE(systemd.stop("a.slice"));
  EXPECT_TRUE(systemd.reset_failed("a.slice"));
  EXPECT_EQ(error_of(systemd.start("a.slice")).code, ErrorCode::kNotFound);
  EXPECT_EQ(error_of(systemd.set_properties("a.slice", {})).code, ErrorCode::kNotFound);
}

/// The next connection ends without an answer to its first call.
template <class Accept>
void hang_up(Accept& accept) {
  static_cast<void>(authenticated(accept).receive());
}

/// As systemd does when it executes itself anew: it leaves its clients in the middle of a call, and
/// comes back.
class SystemdRestart : public SystemdCalls {
 protected:
  [[nodiscard]] SystemdOptions options(const FakeSystemd& fake) const {
    return {.addresses = {{.address = fake.address()}}, .clock = &clock_};
  }

  SharedClock clock_;  ///< which nothing but a pause lets pass
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
                             Session session = authenticated(accept);
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
                             Session session = authenticated(accept);
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
