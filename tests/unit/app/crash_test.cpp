// Crash safety: each event is cut off after each of its changes; the next event has to find the way
// back to what the machine's living containers need.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/cgroups/layout.h"
#include "tests/unit/app/fake_node.h"
#include "tests/unit/app/truth.h"

namespace podqos::app {
namespace {

using ::testing::IsEmpty;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;

using truth::expect_truth;
using truth::kBatch;
using truth::kDatabase;
using truth::kLog;
using truth::kNext;
using truth::Known;
using truth::kWeb;
using truth::paths_of;

/// An event that is cut off, and the containers that run afterwards.
struct Scenario {
  const char* name;
  std::vector<Known> before;               ///< containers that run when the event comes
  std::function<void(FakeNode&)> prepare;  ///< what else has happened before
  std::function<void(FakeNode&)> event;    ///< fails where it is cut off
  std::function<void(FakeNode&)> after;    ///< what becomes of the machine then
  std::vector<Known> living;               ///< containers that run in the end
};

constexpr Pid kCreator{2000};

/// The hook, or the wrapper, that admits the container was killed: its runtime fails.
void creator_ends(FakeNode& node) {
  node.tree.end(kCreator);
}
void nothing(FakeNode& /*node*/) {}

std::function<void(FakeNode&)> admission_of(const Known& known) {
  return [known](FakeNode& node) {
    static_cast<void>(node.admit(known.container, kCreator).has_value());
  };
}

std::function<void(FakeNode&)> end_of(const Known& known) {
  return [known](FakeNode& node) {
    node.tree.end(known.init);
    static_cast<void>(node.end(known.container).has_value());
  };
}

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> kAll = {
      {"AdmissionOfTheFirstPod", {}, nothing, admission_of(kWeb), creator_ends, {}},
      {"AdmissionOfASecondContainer", {kWeb}, nothing, admission_of(kLog), creator_ends, {kWeb}},
      {"AdmissionOfASecondPod", {kWeb}, nothing, admission_of(kDatabase), creator_ends, {kWeb}},
      {"AdmissionOfABestEffortPod",
       {kDatabase},
       nothing,
       admission_of(kBatch),
       creator_ends,
       {kDatabase}},
      {"Confirmation",
       {kWeb},
       [](FakeNode& node) {
         const auto admission = node.admit(kLog.container, kCreator);
         ASSERT_TRUE(admission) << admission.error().message;
         node.tree.start(kLog.init, (*admission)->container.cgroup);
         node.tree.end(kCreator);
       },
       [](FakeNode& node) { static_cast<void>(node.confirm(kLog.container, kLog.init)); },
       nothing,
       {kWeb, kLog}},
      {"EndOfOneContainerOfTwo", {kWeb, kLog}, nothing, end_of(kLog), nothing, {kWeb}},
      {"EndOfOnePodOfTwo", {kWeb, kDatabase}, nothing, end_of(kWeb), nothing, {kDatabase}},
      {"EndOfTheLastPod", {kWeb}, nothing, end_of(kWeb), nothing, {}},
      {"ReconcileAfterAnEnd",
       {kWeb, kBatch},
       nothing,
       [](FakeNode& node) {
         node.tree.end(kWeb.init);
         static_cast<void>(node.reconcile().has_value());
       },
       nothing,
       {kBatch}},
      {"ReconcileAfterTheLossOfTheState",
       {kWeb, kLog, kBatch},
       nothing,
       [](FakeNode& node) {
         node.records = {};
         static_cast<void>(node.reconcile().has_value());
       },
       nothing,
       {kWeb, kLog, kBatch}},
  };
  return kAll;
}

class Crash : public TestWithParam<std::tuple<core::CgroupVersion, core::Driver, std::size_t>> {
 protected:
  /// The node on which the event comes: each time a copy of the first.
  std::unique_ptr<FakeNode> prepared() {
    if (!first) first = prepare();
    return std::make_unique<FakeNode>(*first);
  }
  static std::unique_ptr<FakeNode> prepare() {
    auto node = std::make_unique<FakeNode>(std::get<0>(GetParam()), std::get<1>(GetParam()));
    for (const Known& each : scenario().before)
      node->run(each.container, each.init);
    scenario().prepare(*node);
    return node;
  }
  static const Scenario& scenario() { return scenarios()[std::get<2>(GetParam())]; }

  /// The node after an event that was cut off.
  std::unique_ptr<FakeNode> cut_off_after(int changes) {
    auto node = prepared();
    node->allow(changes);
    scenario().event(*node);
    node->allow_all();
    scenario().after(*node);
    return node;
  }

  /// Calls `check` with each number of changes from `least` that may be made of those of the event,
  /// and with the next one.
  void at_each_change(int least,
                      const std::function<void(int allowed, const std::string& next)>& check) {
    const auto whole = prepared();
    const auto before = static_cast<std::ptrdiff_t>(whole->changes.size());
    scenario().event(*whole);
    const std::vector<std::string> changes{whole->changes.begin() + before, whole->changes.end()};
    ASSERT_GT(changes.size(), 1U);
    for (std::size_t allowed = static_cast<std::size_t>(least); allowed <= changes.size();
         ++allowed) {
      const std::string next = allowed == changes.size() ? "" : changes[allowed];
      SCOPED_TRACE(cat("cut off after ", allowed, " of ", changes.size(), " changes: ", next));
      check(static_cast<int>(allowed), next);
      if (HasFailure()) return;
    }
  }
  static void reconcile(FakeNode& node) {
    const auto report = node.reconcile();
    EXPECT_TRUE(report) << report.error().message;
  }

  std::unique_ptr<const FakeNode> first;
};

TEST_P(Crash, TheNextContainerFindsTheTruth) {
  std::vector<Known> living = scenario().living;
  living.push_back(kNext);
  // An event that has changed nothing is as good as lost, which only a reconciliation notices.
  at_each_change(1, [&](int allowed, const std::string&) {
    const auto node = cut_off_after(allowed);
    node->run(kNext.container, kNext.init);
    expect_truth(*node, living);
  });
}

TEST_P(Crash, ReconcileFindsTheTruth) {
  at_each_change(0, [this](int allowed, const std::string&) {
    const auto node = cut_off_after(allowed);
    reconcile(*node);
    expect_truth(*node, scenario().living);
  });
}

/// A change that is refused ends neither the program nor what comes after it.
TEST_P(Crash, OneRefusedChangeIsMadeGood) {
  at_each_change(0, [this](int allowed, const std::string& refused) {
    const auto node = prepared();
    // Above its root podqos leaves what it cannot remove: another program uses it.
    if (refused.empty() || refused == cat("rmdir  ", paths_of(*node).top)) return;
    node->fail_once_after(allowed);
    scenario().event(*node);
    node->allow_all();
    scenario().after(*node);
    reconcile(*node);
    expect_truth(*node, scenario().living);
  });
}

/// The preview is what a reconciliation then does to the machine, in this order, and it changes
/// nothing.
TEST_P(Crash, ThePreviewIsWhatReconcileDoes) {
  at_each_change(0, [this](int allowed, const std::string&) {
    const auto node = cut_off_after(allowed);
    const auto preview = node->preview();
    ASSERT_TRUE(preview) << preview.error().message;
    node->changes.clear();
    reconcile(*node);
    std::erase_if(node->changes, [](const std::string& line) {
      return line == "record" || line.ends_with(core::kRecordAttribute);
    });
    std::vector<std::string> planned = preview->plan;
    std::erase_if(planned, [](const std::string& line) {
      return line.starts_with("save ") || line.starts_with("erase ");
    });
    EXPECT_EQ(planned, node->changes);
    const auto again = node->preview();
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_THAT(again->plan, IsEmpty());
  });
}

/// The plugin goes on after a piece that failed: that piece is done again.
TEST(ReconcilerInPieces, DoesAgainWhatWasRefused) {
  for (int allowed = 0; allowed < 30; ++allowed) {
    SCOPED_TRACE(cat("refused after ", allowed, " changes"));
    FakeNode node{core::CgroupVersion::kV2};
    node.run(kWeb.container, kWeb.init);
    node.run(kDatabase.container, kDatabase.init);
    node.tree.end(kDatabase.init);
    Reconciler all{Warnings::kLogged};
    node.fail_once_after(allowed);
    for (int piece = 0; piece < 10 && !all.is_done(); ++piece) {
      Transaction transaction = node.begin();
      static_cast<void>(all.step(transaction).has_value());
    }
    node.allow_all();
    EXPECT_TRUE(all.is_done());
    expect_truth(node, {kWeb});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Events, Crash,
    ::testing::Combine(::testing::Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                       ::testing::Values(core::Driver::kCgroupfs, core::Driver::kSystemd),
                       ::testing::Range(std::size_t{0}, scenarios().size())),
    [](const TestParamInfo<Crash::ParamType>& row) {
      const bool v1 = std::get<0>(row.param) == core::CgroupVersion::kV1;
      const bool systemd = std::get<1>(row.param) == core::Driver::kSystemd;
      return cat(scenarios()[std::get<2>(row.param)].name, v1 ? "OnV1" : "OnV2",
                 systemd ? "WithSystemd" : "");
    });

}  // namespace
}  // namespace podqos::app
