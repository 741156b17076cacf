// One failure is one failure: whatever the machine refuses while everything is reconciled, all else
// gets what it needs, the next container is placed, and a later run makes good what is left.

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/fake_node.h"
#include "tests/unit/app/truth.h"

namespace podqos::app {
namespace {

using ::testing::Combine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::Values;

using truth::expect_truth;
using truth::kBatch;
using truth::kDatabase;
using truth::kLog;
using truth::kNext;
using truth::Known;
using truth::kWeb;
using truth::paths_of;
using truth::pod_cgroup_of;

/// Pods that have ended without an event: their processes are gone, their cgroups are not.
const Known kEnded = truth::burstable({.id = "ended", .uid = "e"}, Pid{20}, 200, 32);
const Known kForgotten = truth::guaranteed({.id = "forgotten", .uid = "f"}, Pid{21}, 1000, 64);

const std::vector<Known>& living() {
  static const std::vector<Known> kAll{kWeb, kLog, kBatch, kDatabase};
  return kAll;
}

/// Whether a change or a question is about this cgroup, a file of it, or its unit.
bool is_about(std::string_view line, const std::string& cgroup) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    if (word.empty()) continue;
    if (word == cgroup || word.substr(0, word.rfind('/')) == cgroup) return true;
    if (cgroup.ends_with(cat("/", word))) return true;
  }
  return false;
}

/// Whether it is about this pod: its cgroup, what is below it, or its process.
bool is_about_pod(const FakeNode& node, std::string_view line, const Known& pod) {
  return line.find(cat(pod_cgroup_of(node, pod), "/")) != std::string_view::npos ||
         is_about(line, pod_cgroup_of(node, pod)) || line.ends_with(cat(" of ", pod.init.value()));
}

class OneFailure : public TestWithParam<std::tuple<core::CgroupVersion, core::Driver>> {
 protected:
  /// A node on which a reconciliation finds something to do everywhere: each time a copy of the
  /// first.
  std::unique_ptr<FakeNode> prepared() {
    if (!first) first = prepare();
    return std::make_unique<FakeNode>(*first);
  }
  static std::unique_ptr<FakeNode> prepare() {
    auto node = std::make_unique<FakeNode>(std::get<0>(GetParam()), std::get<1>(GetParam()));
    for (const Known& each : living())
      node->run(each.container, each.init);
    for (const Known& ended : {kEnded, kForgotten}) {
      node->run(ended.container, ended.init);
      node->tree.make(cat(node->tree.processes.at(ended.init).cgroup, "/nested"));
      node->tree.processes.erase(ended.init);
    }
    // Lost records: of a pod that lives, and of one that does not.
    node->records.pods.erase("c");
    node->records.pods.erase("f");
    node->records.index.push_back({.name = store::index_name("ghost"), .uid = "g"});
    node->records.lose_some();
    const truth::Paths& paths = paths_of(*node);
    for (const std::string& path : {paths.root, paths.burstable, paths.besteffort,
                                    pod_cgroup_of(*node, kWeb), pod_cgroup_of(*node, kBatch)})
      node->tree.cgroups.at(path).files.at(node->share_file()) = "77";
    if (node->driver == core::Driver::kSystemd)
      node->tree.units.emplace("podqos-kubepods-burstable-podgone.slice");
    node->changes.clear();
    return node;
  }

  /// All but the cgroup that the failure is about has the values that it needs.
  static void expect_others_right(const FakeNode& node, std::string_view failure) {
    const auto expect_shares = [&](const std::string& path, std::int64_t milli_cpu) {
      if (!is_about(failure, path)) truth::expect_shares(node, path, milli_cpu);
    };
    for (const Known& each : {kWeb, kBatch, kDatabase, kNext}) {
      if (!is_about_pod(node, failure, each))
        expect_shares(pod_cgroup_of(node, each), each.milli_cpu);
    }
    // What cannot be known to have ended still counts.
    if (!is_about_pod(node, failure, kEnded))
      expect_shares(paths_of(node).burstable, kWeb.milli_cpu + kNext.milli_cpu);
    expect_shares(paths_of(node).besteffort, 0);
  }

  static void expect_mended(FakeNode& node) {
    const auto report = node.reconcile();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_THAT(report->failed, IsEmpty());
    std::vector<Known> all = living();
    all.push_back(kNext);
    expect_truth(node, all);
  }

  /// Refuses each change of the machine that a reconciliation makes, in turn, during `event`.
  void refuse_each_change(const std::function<void(FakeNode&, const std::string& change)>& event) {
    const auto whole = prepared();
    ASSERT_TRUE(whole->reconcile());
    std::set<std::string> changes{whole->changes.begin(), whole->changes.end()};
    changes.erase("record");
    EXPECT_GE(changes.size(), 10U);
    for (const std::string& change : changes) {
      SCOPED_TRACE(change);
      const auto node = prepared();
      node->refuses = [&](const std::string& each) { return each == change; };
      event(*node, change);
      expect_others_right(*node, change);
      node->refuses = {};
      expect_mended(*node);
      if (HasFailure()) return;
    }
  }

  std::unique_ptr<const FakeNode> first;
};

TEST_P(OneFailure, OfAChangeLeavesAllElseToAReconciliation) {
  refuse_each_change([](FakeNode& node, const std::string& change) {
    const auto report = node.reconcile();
    ASSERT_TRUE(report) << report.error().message;
    // The copies of the records matter after a loss of the state only.
    if (!change.starts_with("attr ")) {
      EXPECT_THAT(report->failed, Not(IsEmpty()));
    }
    node.run(kNext.container, kNext.init);
  });
}

TEST_P(OneFailure, OfAChangeKeepsNoContainerFromItsPod) {
  refuse_each_change([](FakeNode& node, const std::string&) {
    node.run(kNext.container, kNext.init);
    EXPECT_FALSE(node.records.dirty);
  });
}

TEST_P(OneFailure, OfARecordLeavesAllElseToAReconciliation) {
  const auto whole = prepared();
  ASSERT_TRUE(whole->reconcile());
  for (std::size_t at = 0; at < whole->changes.size(); ++at) {
    if (whole->changes[at] != "record") continue;
    SCOPED_TRACE(at);
    const auto node = prepared();
    node->fail_once_after(static_cast<int>(at));
    const bool done = node->reconcile().has_value();
    node->allow_all();
    EXPECT_TRUE(done || node->records.dirty);
    node->run(kNext.container, kNext.init);
    expect_others_right(*node, "");
    expect_mended(*node);
    if (HasFailure()) return;
  }
}

TEST_P(OneFailure, OfAQuestionLeavesAllElseToAReconciliation) {
  const auto count_questions = [](FakeNode& node, int failing, std::string& failed) {
    int count = 0;
    node.tree.on_read = [&, failing](const std::string& what) -> Status {
      if (count++ != failing) return {};
      failed = what;
      return fail(ErrorCode::kIo, cat(what, ": input/output error"));
    };
    const auto report = node.reconcile();
    EXPECT_TRUE(report) << failed << ": " << report.error().message;
    node.tree.on_read = {};
    return count;
  };
  std::string failed;
  const int questions = count_questions(*prepared(), -1, failed);
  ASSERT_GT(questions, 10);
  for (int failing = 0; failing < questions; ++failing) {
    const auto node = prepared();
    count_questions(*node, failing, failed);
    SCOPED_TRACE(cat("question ", failing, ": ", failed));
    node->run(kNext.container, kNext.init);
    expect_others_right(*node, failed);
    expect_mended(*node);
    if (HasFailure()) return;
  }
}

/// A container's end during which one question is answered with an error, or one change refused:
/// where its pod counts still, later events come back to it.
TEST_P(OneFailure, OfAnEndIsLeftToLaterEvents) {
  for (const bool is_question : {true, false}) {
    for (int failing = 0;; ++failing) {
      FakeNode node{std::get<0>(GetParam()), std::get<1>(GetParam())};
      node.run(kWeb.container, kWeb.init);
      node.run(kBatch.container, kBatch.init);
      node.tree.end(kWeb.init);
      int count = 0;
      std::string failed;
      const auto answer = [&](const std::string& what) -> Status {
        if (count++ != failing) return {};
        failed = what;
        return fail(ErrorCode::kIo, cat(what, ": too many open files"));
      };
      if (is_question)
        node.tree.on_read = answer;
      else
        node.fail_once_after(failing);
      // As the hook does, which tries again.
      if (!node.end(kWeb.container)) static_cast<void>(node.end(kWeb.container).has_value());
      node.tree.on_read = {};
      const bool has_failed = is_question ? !failed.empty() : !node.failing;
      node.allow_all();
      if (!has_failed) {
        EXPECT_GT(failing, 3);
        break;
      }
      SCOPED_TRACE(cat(is_question ? "question " : "change ", failing, ": ", failed));
      node.run(kNext.container, kNext.init);
      for (const core::PodRow& row : node.begin().node().rows) {
        EXPECT_TRUE(row.uid.view() != kWeb.container.uid || row.counts == 0 ||
                    row.due != core::kNever || row.being_changed != 0);
      }
      if (HasFailure()) return;
    }
  }
}

/// A podqos of a newer version has written it: that pod keeps what it has, and what it counts.
TEST_P(OneFailure, OfAVersionLeavesAllElseToAReconciliation) {
  const auto node = prepared();
  ASSERT_TRUE(node->reconcile());
  const std::string before = node->records.pods.at("a");
  std::string& text = node->records.pods.at("a");
  text.replace(text.find("\"version\":1"), 11, "\"version\":2");
  const std::string newer = text;
  const core::NodeState state = node->records.node;
  for (const std::string& path : {paths_of(*node).burstable, pod_cgroup_of(*node, kBatch)})
    node->tree.cgroups.at(path).files.at(node->share_file()) = "77";
  for (const int run : {1, 2}) {
    SCOPED_TRACE(run);
    const auto report = node->reconcile();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_THAT(report->failed, ElementsAre(HasSubstr("record of version 2")));
    EXPECT_EQ(node->records.node, state);
    EXPECT_EQ(node->records.pods.at("a"), newer);
    EXPECT_FALSE(node->records.dirty);
  }
  node->run(kNext.container, kNext.init);
  expect_others_right(*node, "");
  node->records.pods.at("a") = before;
  expect_mended(*node);
}

INSTANTIATE_TEST_SUITE_P(Machines, OneFailure,
                         Combine(Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                                 Values(core::Driver::kCgroupfs, core::Driver::kSystemd)),
                         [](const TestParamInfo<OneFailure::ParamType>& row) {
                           const bool v1 = std::get<0>(row.param) == core::CgroupVersion::kV1;
                           const bool systemd = std::get<1>(row.param) == core::Driver::kSystemd;
                           return cat(v1 ? "OnV1" : "OnV2", systemd ? "WithSystemd" : "");
                         });

}  // namespace
}  // namespace podqos::app
