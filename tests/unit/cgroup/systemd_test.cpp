#include "common/cgroup/systemd.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cgroup/fake_systemd.h"
#include "tests/unit/cgroup/systemd_calls.h"

namespace podqos::cgroup {
namespace {

using calls::kManager;
using calls::kPing;
using calls::only;
using calls::SystemdCalls;
using ::testing::SizeIs;
using ::testing::StartsWith;

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

TEST_F(SystemdCalls, SeveralUnitsAreToldBeforeTheFirstAnswers) {
  FakeSystemd fake{directory_.path("private"), [](auto accept) {
                     Session session = accept();
                     session.authenticate();
                     const auto first = session.receive();
                     const auto second = session.receive();
                     const auto third = session.receive();
                     session.refuse(first.get(), "org.freedesktop.systemd1.NoSuchUnit", "No.");
                     session.answer_job(second.get());
                     session.refuse(third.get(), "org.freedesktop.systemd1.NoSuchUnit", "No.");
                     session.wait();
                   }};
  {
    Systemd systemd{only(fake)};
    const UnitAnswers answers = systemd.set_and_find(
        {{.path = "/a.slice", .properties = {{"CPUWeight", std::uint64_t{79}}}},
         {.path = "/not a unit", .properties = {}},
         {.path = "/b.slice", .properties = {{"TasksMax", std::uint64_t{100}}}}},
        {{.path = "/a.slice/c.scope", .properties = {}}});
    const std::vector<Status>& set = answers.set;
    ASSERT_THAT(set, SizeIs(3));
    ASSERT_FALSE(set[0]);
    EXPECT_EQ(set[0].error().code, ErrorCode::kNotFound);
    EXPECT_THAT(set[0].error().message, StartsWith("SetUnitProperties a.slice at "));
    ASSERT_FALSE(set[1]);
    EXPECT_EQ(set[1].error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(set[2]) << set[2].error().message;
    ASSERT_THAT(answers.held, SizeIs(1));
    ASSERT_TRUE(answers.held[0]) << answers.held[0].error().message;
    EXPECT_FALSE(*answers.held[0]);
    EXPECT_EQ(systemd.round_trips(), 1);
  }
  EXPECT_EQ(fake.heard(),
            std::string{kPing} + kManager +
                "SetUnitProperties sba(sv) \"a.slice\" b:1 [(\"CPUWeight\" <t:79>)]\n" + kManager +
                "SetUnitProperties sba(sv) \"b.slice\" b:1 [(\"TasksMax\" <t:100>)]\n" + kManager +
                "GetUnitByControlGroup s \"/a.slice/c.scope\"\n");
}

TEST_F(SystemdCalls, NoUnitIsNoCall) {
  Systemd systemd{{.addresses = {}}};
  const UnitAnswers answers = systemd.set_and_find({}, {});
  EXPECT_THAT(answers.set, SizeIs(0));
  EXPECT_THAT(answers.held, SizeIs(0));
  EXPECT_EQ(systemd.round_trips(), 0);
}

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
    EXPECT_EQ((*units)[0].load_state, "loaded");
    EXPECT_EQ((*units)[0].active_state, "active");
    EXPECT_EQ((*units)[1].name, "kubepods-pod1.slice");
    EXPECT_EQ((*units)[1].load_state, "not-found");
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

}  // namespace
}  // namespace podqos::cgroup
