// What may have become of records, cgroups and values of a node that works: one reconciliation
// mends it, a dry run has told each change before, and nothing is left for a second one.

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/node.h"
#include "tests/unit/app/fake_node.h"
#include "tests/unit/app/truth.h"

namespace podqos::app {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::UnorderedElementsAreArray;

using truth::expect_truth;
using truth::kBatch;
using truth::kDatabase;
using truth::kLog;
using truth::Known;
using truth::kWeb;
using truth::paths_of;
using truth::pod_cgroup_of;

/// Whether a line of a plan is about the state, not the machine.
bool is_of_state(std::string_view line) {
  return line.starts_with("save ") || line.starts_with("erase ");
}

/// The lines of the machine's changes; not of the copies of records, which a dry run leaves out.
std::vector<std::string> machine_lines(const std::vector<std::string>& lines) {
  std::vector<std::string> out;
  for (const std::string& line : lines) {
    const bool is_copy = line.starts_with("attr ") && line.ends_with("trusted.podqos.record");
    if (line != "record" && !is_of_state(line) && !is_copy) out.push_back(line);
  }
  return out;
}

/// What a dry run is to say of what has become of records, index and sums.
std::vector<std::string> state_lines(const FakeRecords& before, const FakeRecords& after) {
  std::vector<std::string> out;
  for (const auto& [uid, text] : after.pods) {
    const auto old = before.pods.find(uid);
    if (old == before.pods.end() || old->second != text)
      out.push_back(cat("save   record of pod ", uid));
  }
  for (const auto& [uid, text] : before.pods) {
    if (!after.pods.contains(uid)) out.push_back(cat("erase  record of pod ", uid));
  }
  const auto note = [&](const char* verb, const auto& entries, const auto& others) {
    for (const store::IndexEntry& entry : entries) {
      if (std::ranges::find(others, entry) == others.end())
        out.push_back(cat(verb, "index entry of pod ", entry.uid));
    }
  };
  note("save   ", after.index, before.index);
  note("erase  ", before.index, after.index);
  if (before.node != after.node) out.emplace_back("save   node");
  return out;
}

struct Damage {
  const char* name;
  std::function<void(FakeNode&)> spoil;
  std::vector<Known> living = {kWeb, kLog, kBatch, kDatabase};
};

/// All processes are moved away by hand, and what is there of these cgroups is removed.
void remove_all_below(FakeNode& node, const std::string& path) {
  for (auto& [pid, process] : node.tree.processes) {
    if (is_at_or_below(process.cgroup, path)) process.cgroup = "/";
  }
  for (auto each = node.tree.cgroups.begin(); each != node.tree.cgroups.end();) {
    const bool is_removed = is_at_or_below(each->first, path);
    if (is_removed) node.tree.units.erase(std::string{leaf_of(each->first)});
    each = is_removed ? node.tree.cgroups.erase(each) : std::next(each);
  }
}

/// They are moved back, as the reconciliation has told the operator.
void move_back(FakeNode& node, const std::vector<Known>& all) {
  for (const Known& each : all) {
    cgroup::FakeProcess& process = node.tree.processes.at(each.init);
    if (process.cgroup != "/") continue;
    process.cgroup = cat(pod_cgroup_of(node, each), "/", each.container.id);
    node.tree.make(process.cgroup);
  }
}

const std::vector<Damage>& damages() {
  static const std::vector<Damage> kAll = {
      {"Nothing", [](FakeNode&) {}},
      {"RecordLost", [](FakeNode& node) { node.records.pods.erase("a"); }},
      {"RecordAndIndexLost",
       [](FakeNode& node) {
         node.records.pods.erase("a");
         std::erase_if(node.records.index, [](const auto& entry) { return entry.uid == "a"; });
       }},
      {"IndexLost", [](FakeNode& node) { node.records.index.clear(); }},
      {"IndexOfNoContainer",
       [](FakeNode& node) {
         node.records.index.push_back({.name = store::index_name("gone"), .uid = "a"});
       }},
      {"StateLost", [](FakeNode& node) { node.records = {}; }},
      {"RowWrong",
       [](FakeNode& node) {
         core::PodRow row = node.records.node.rows.front();
         row.counted_cpu = MilliCpu{5};
         node.records.put(row);
       }},
      {"RecordLostAndPodEnded",
       [](FakeNode& node) {
         node.tree.end(kDatabase.init);
         node.records.pods.erase("c");
       },
       {kWeb, kLog, kBatch}},
      {"PodEnded", [](FakeNode& node) { node.tree.end(kDatabase.init); }, {kWeb, kLog, kBatch}},
      {"RecordWithoutCgroup",
       [](FakeNode& node) {
         const std::string pod = pod_cgroup_of(node, kDatabase);
         node.tree.end(kDatabase.init);
         node.tree.cgroups.erase(pod);
         node.tree.units.erase(pod.substr(pod.rfind('/') + 1));
       },
       {kWeb, kLog, kBatch}},
      {"AllEnded",
       [](FakeNode& node) {
         for (const Known& each : {kWeb, kLog, kBatch, kDatabase})
           node.tree.end(each.init);
       },
       {}},
      {"NeverStarted",
       [](FakeNode& node) {
         node.fail_to_create({.id = "late", .uid = "e"});
         node.fail_to_create({.id = "late-log", .uid = "c"}, Pid{1101});
       }},
      {"NeverStartedWithACgroup",
       [](FakeNode& node) {
         node.fail_to_create({.id = "late", .uid = "e"});
         node.tree.make(cat(pod_cgroup_of(node, {{.id = "late", .uid = "e"}, Pid{}}), "/late"));
       }},
      {"ContainerKilledWithACgroup",
       [](FakeNode& node) { node.tree.processes.erase(kLog.init); },
       {kWeb, kBatch, kDatabase}},
      {"PodCgroupRemoved",
       [](FakeNode& node) { remove_all_below(node, pod_cgroup_of(node, kDatabase)); }},
      {"TierRemoved", [](FakeNode& node) { remove_all_below(node, paths_of(node).burstable); }},
      {"RootRemoved", [](FakeNode& node) { remove_all_below(node, paths_of(node).root); }},
      {"TreeRemoved", [](FakeNode& node) { remove_all_below(node, paths_of(node).top); }},
      {"RecordLostWhileValuesWereRefused",
       [](FakeNode& node) {
         node.refuses = [](const std::string& change) { return change.contains("podc/cpu."); };
         node.settings.cpu_cfs_quota = false;
         ASSERT_TRUE(node.reconcile());
         node.refuses = {};
         node.settings.cpu_cfs_quota = true;
         node.records = {};
       }},
  };
  return kAll;
}

/// A node with three pods.
class MendedNode {
 protected:
  MendedNode(core::CgroupVersion version, core::Driver driver) : node_{version, driver} {
    node_.settings.reserve_memory_percent = 100;
    for (const Known& each : {kWeb, kLog, kBatch, kDatabase})
      node_.run(each.container, each.init);
  }

  /// As a dry run tells it.
  void reconcile_as_told() {
    const FakeRecords before = node_.records;
    const auto preview = node_.preview();
    ASSERT_TRUE(preview) << preview.error().message;
    node_.changes.clear();
    const auto report = node_.reconcile();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_THAT(report->failed, IsEmpty());
    EXPECT_THAT(machine_lines(preview->plan), ElementsAreArray(machine_lines(node_.changes)));
    std::vector<std::string> of_state;
    std::ranges::copy_if(preview->plan, std::back_inserter(of_state), is_of_state);
    EXPECT_THAT(of_state, UnorderedElementsAreArray(state_lines(before, node_.records)));
    const auto again = node_.preview();
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_THAT(again->plan, IsEmpty());
  }

  FakeNode node_;
};

class Mending : public MendedNode,
                public TestWithParam<std::tuple<core::CgroupVersion, core::Driver, std::size_t>> {
 protected:
  Mending() : MendedNode{std::get<0>(GetParam()), std::get<1>(GetParam())} {}
};

TEST_P(Mending, IsAsADryRunTells) {
  const Damage& damage = damages()[std::get<2>(GetParam())];
  damage.spoil(node_);
  reconcile_as_told();
  move_back(node_, damage.living);
  for (const std::string& made : {paths_of(node_).top, paths_of(node_).root}) {
    if (!damage.living.empty()) {
      EXPECT_EQ(node_.tree.cgroups.at(made).attributes["trusted.podqos.made"], "1") << made;
    }
  }
  reconcile_as_told();
  expect_truth(node_, damage.living);
}

INSTANTIATE_TEST_SUITE_P(
    , Mending,
    ::testing::Combine(::testing::Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                       ::testing::Values(core::Driver::kCgroupfs, core::Driver::kSystemd),
                       ::testing::Range(std::size_t{0}, damages().size())),
    [](const TestParamInfo<Mending::ParamType>& row) {
      return cat(damages()[std::get<2>(row.param)].name,
                 std::get<0>(row.param) == core::CgroupVersion::kV1 ? "V1" : "V2",
                 std::get<1>(row.param) == core::Driver::kSystemd ? "Systemd" : "");
    });

using Files = std::map<std::string, std::map<std::string, std::string, std::less<>>>;

class ChangedValues : public MendedNode,
                      public TestWithParam<std::tuple<core::CgroupVersion, core::Driver>> {
 protected:
  ChangedValues() : MendedNode{std::get<0>(GetParam()), std::get<1>(GetParam())} {}

  [[nodiscard]] Files files() const {
    Files all;
    for (const auto& [path, cgroup] : node_.tree.cgroups)
      all[path] = cgroup.files;
    return all;
  }
  /// On cgroup v1 there is more than one way to write "no limit".
  void expect_files(const Files& wanted) {
    for (auto& [path, cgroup] : node_.tree.cgroups) {
      const auto memory = cgroup.files.find("memory.limit_in_bytes");
      if (memory != cgroup.files.end() && memory->second == "-1")
        memory->second = "9223372036854771712";
    }
    EXPECT_EQ(files(), wanted);
  }
};

INSTANTIATE_TEST_SUITE_P(
    , ChangedValues,
    ::testing::Combine(::testing::Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                       ::testing::Values(core::Driver::kCgroupfs, core::Driver::kSystemd)),
    [](const TestParamInfo<ChangedValues::ParamType>& row) {
      return cat(std::get<0>(row.param) == core::CgroupVersion::kV1 ? "V1" : "V2",
                 std::get<1>(row.param) == core::Driver::kSystemd ? "Systemd" : "");
    });

/// Each value that podqos writes, in each cgroup that it makes. Those above the root of the pods
/// have shares alone, which that root has not.
TEST_P(ChangedValues, BehindItsBackAreWrittenAgain) {
  const std::map<std::string_view, std::string> spoiled{
      {"cpu.shares", "777"},     {"cpu.weight", "77"},   {"cpu.cfs_quota_us", "900"},
      {"cpu.max", "900 100000"}, {"memory.max", "4096"}, {"memory.limit_in_bytes", "4096"},
      {"pids.max", "7"},         {"cpu.idle", "1"}};
  const auto& paths = paths_of(node_);
  ASSERT_TRUE(node_.reconcile());
  expect_files(files());
  const Files before = files();
  for (const std::string& path :
       {paths.top, paths.root, paths.burstable, paths.besteffort, pod_cgroup_of(node_, kWeb),
        pod_cgroup_of(node_, kBatch), pod_cgroup_of(node_, kDatabase)}) {
    for (const auto& [file, value] : spoiled) {
      const bool is_share = file == node_.share_file();
      if (!before.at(path).contains(file) || (path == paths.root && is_share) ||
          (path == paths.top && !is_share && file != "cpu.idle"))
        continue;
      SCOPED_TRACE(cat(path, "/", file));
      node_.tree.cgroups.at(path).files.find(file)->second = value;
      if (file == "cpu.idle") node_.tree.show_idle(path);
      reconcile_as_told();
      expect_files(before);
    }
  }
}

/// A setting, and what follows from it on v1 and v2; "" where there is nothing to be seen.
struct SettingCase {
  const char* name;
  std::function<void(FakeNode&)> change;
  std::function<std::string(const FakeNode&)> cgroup;
  const char* v1_file;
  const char* v1;
  const char* v2_file;
  const char* v2;
};

std::string root_of(const FakeNode& node) {
  return paths_of(node).root;
}
std::string top_of(const FakeNode& node) {
  return paths_of(node).top;
}
std::string burstable_of(const FakeNode& node) {
  return paths_of(node).burstable;
}
/// Guaranteed, with one CPU and 1 GiB on a node of 8 CPUs and 16 GiB.
std::string database_of(const FakeNode& node) {
  return pod_cgroup_of(node, kDatabase);
}

const std::vector<SettingCase>& settings_cases() {
  static const std::vector<SettingCase> kAll = {
      {"cpuCFSQuota", [](FakeNode& node) { node.settings.cpu_cfs_quota = false; }, database_of,
       "cpu.cfs_quota_us", "-1", "cpu.max", "max 100000"},
      {"cpuCFSQuotaPeriod",
       [](FakeNode& node) { node.settings.cpu_cfs_quota_period = Micros{50'000}; }, database_of,
       "cpu.cfs_quota_us", "50000", "cpu.max", "50000 50000"},
      {"podPidsLimit", [](FakeNode& node) { node.settings.pod_pids_limit = 64; }, database_of,
       "pids.max", "64", "pids.max", "64"},
      // 800m of 8 CPUs.
      {"maxPodClaim", [](FakeNode& node) { node.settings.max_pod_claim_percent = 10; }, database_of,
       "cpu.shares", "819", "cpu.weight", "32"},
      {"weightFormula",
       [](FakeNode& node) { node.settings.weight_formula = core::WeightFormulaSetting::kLog; },
       database_of, "cpu.shares", "1024", "cpu.weight", "100"},
      // 16 GiB less half of the Guaranteed pod's 1 GiB.
      {"qosReserved", [](FakeNode& node) { node.settings.reserve_memory_percent = 50; },
       burstable_of, "memory.limit_in_bytes", "16642998272", "memory.max", "16642998272"},
      {"qosReservedOff", [](FakeNode& node) { node.settings.reserve_memory_percent.reset(); },
       burstable_of, "memory.limit_in_bytes", "-1", "memory.max", "max"},
      {"tierMemoryFloor",
       [](FakeNode& node) { node.settings.tier_memory_floor = Bytes{20LL << 30U}; }, burstable_of,
       "memory.limit_in_bytes", "21474836480", "memory.max", "21474836480"},
      {"systemReservedMemory",
       [](FakeNode& node) { node.settings.system_reserved.memory = Bytes{1LL << 30U}; }, root_of,
       "memory.limit_in_bytes", "16106127360", "memory.max", "16106127360"},
      {"kubeReservedCpu", [](FakeNode& node) { node.settings.kube_reserved.cpu = MilliCpu{2000}; },
       top_of, "cpu.shares", "6144", "cpu.weight", "235"},
      {"enforceNodeAllocatable",
       [](FakeNode& node) { node.settings.enforce_node_allocatable = false; }, root_of, "pids.max",
       "max", "pids.max", "max"},
      {"nodeMemory", [](FakeNode& node) { node.capacity.memory = Bytes{8LL << 30U}; }, root_of,
       "memory.limit_in_bytes", "8589934592", "memory.max", "8589934592"},
  };
  return kAll;
}

TEST_P(ChangedValues, OfASettingAreWrittenAndTakenBack) {
  ASSERT_TRUE(node_.reconcile());
  expect_files(files());
  const Files before = files();
  const core::Settings settings = node_.settings;
  const core::NodeCapacity capacity = node_.capacity;
  for (const SettingCase& row : settings_cases()) {
    SCOPED_TRACE(row.name);
    row.change(node_);
    reconcile_as_told();
    const bool v2 = node_.tree.is_v2();
    EXPECT_EQ(node_.file(row.cgroup(node_), v2 ? row.v2_file : row.v1_file), v2 ? row.v2 : row.v1);
    node_.settings = settings;
    node_.capacity = capacity;
    reconcile_as_told();
    expect_files(before);
  }
}

/// The wrapper's event, beforehand: for a pod that lives, and for the first one of a node.
class Placement : public MendedNode,
                  public TestWithParam<std::tuple<core::CgroupVersion, core::Driver>> {
 protected:
  Placement() : MendedNode{std::get<0>(GetParam()), std::get<1>(GetParam())} {}

  void place_as_told(FakeNode& node, const char* uid) {
    FakeContainer late{.id = "late",
                       .uid = uid,
                       .annotations = {{"podqos.io/requests.late", "cpu=250m,memory=64Mi"}}};
    late.resources.cpu_shares = 512;
    const std::string config =
        cat(R"({"annotations":{"podqos.io/container":"late",)",
            R"("podqos.io/requests.late":"cpu=250m,memory=64Mi",)", R"("podqos.io/pod-uid":")", uid,
            R"("},)", R"("linux":{"resources":{"cpu":{"shares":512}}}})");
    const auto preview = preview_place(node.settings,
                                       {.id = "late",
                                        .bundle = "/run/late",
                                        .config = config,
                                        .creator = Pid{::getpid()},
                                        .driver = node.driver,
                                        .hooks = {}},
                                       node.view());
    ASSERT_TRUE(preview) << preview.error().message;
    ASSERT_TRUE(*preview);
    node.changes.clear();
    const auto admission = node.admit(late);
    ASSERT_TRUE(admission) << admission.error().message;
    EXPECT_THAT(machine_lines((*preview)->plan), ElementsAreArray(machine_lines(node.changes)));
    EXPECT_EQ((*preview)->admission.container.cgroup, (*admission)->container.cgroup);
    EXPECT_EQ((*preview)->admission.missing, (*admission)->missing);
    EXPECT_THAT((*preview)->config, HasSubstr(R"("at":"/linux/cgroupsPath")"));
    EXPECT_THAT((*preview)->config, Not(HasSubstr(R"("at":"/linux/resources/cpu/shares")")));
  }
};

TEST_P(Placement, IsAsAPreviewTells) {
  if (!cgroup::owns_host()) GTEST_SKIP() << "only root on the host places containers";
  place_as_told(node_, kWeb.container.uid.c_str());
  FakeNode empty{std::get<0>(GetParam()), std::get<1>(GetParam())};
  empty.tree.make("/system");  // which tells what files a new cgroup has
  place_as_told(empty, "first");
}

INSTANTIATE_TEST_SUITE_P(
    , Placement,
    ::testing::Combine(::testing::Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                       ::testing::Values(core::Driver::kCgroupfs, core::Driver::kSystemd)));

}  // namespace
}  // namespace podqos::app
