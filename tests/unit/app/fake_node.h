// A node in memory, with the events of its containers' life.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/app/admission.h"
#include "common/app/container_start.h"
#include "common/app/departure.h"
#include "common/app/log.h"
#include "common/app/reconcile.h"
#include "common/app/transaction.h"
#include "tests/unit/app/fake_files.h"
#include "tests/unit/cgroup/fake_machine.h"

namespace podqos::app {

/// A container that a test's runtime creates.
struct FakeContainer {
  std::string id;
  std::string uid;                       ///< of its pod
  core::Annotations annotations = {};    ///< beside podqos.io/pod-uid and podqos.io/container
  core::EngineResources resources = {};  ///< linux.resources, as its engine wrote them
  std::optional<std::int64_t> oom_score = std::nullopt;  ///< process.oomScoreAdj
  bool named = true;  ///< podqos.io/container is its id unless a test says otherwise
};

/// A fake machine, records in memory, and the runtime's part in each event.
class FakeNode {
 public:
  explicit FakeNode(core::CgroupVersion version, core::Driver driver = core::Driver::kCgroupfs)
      : tree{version}, driver{driver} {
    settings.log_sink = "none";
    settings.weight_formula = core::WeightFormulaSetting::kLinear;
    settings.release_delay_seconds = 0;
  }

  /// Lets the program make this many changes; every one after it fails, as after a kill -9.
  void allow(int count) { changes_left = count; }
  void allow_all() {
    changes_left = std::numeric_limits<int>::max();
    failing = false;
  }
  /// Refuses one change, the one behind this many others, as a full disk may that has room again.
  void fail_once_after(int count) {
    changes_left = count;
    failing = true;
  }

  /// A transaction on this node.
  Transaction begin() {
    log = std::make_unique<Log>("test", settings);
    const auto spend = [this](const std::string& change) -> Status {
      if (changes_left == 0) {
        if (std::exchange(failing, false)) {
          allow_all();
          return fail(ErrorCode::kIo, "no space left on device");
        }
        return fail(ErrorCode::kIo, "the program was killed");
      }
      --changes_left;
      if (refuses && refuses(change)) return fail(ErrorCode::kTimeout, cat(change, ": no reply"));
      if (on_change) on_change(change);
      changes.push_back(change);
      return {};
    };
    auto store = store::Store::over(
        std::make_unique<FakeFiles>(records, [spend] { return spend("record"); }));
    EXPECT_TRUE(store) << store.error().message;
    return {settings, *log, std::make_unique<store::Store>(std::move(*store)),
            std::make_unique<cgroup::FakeMachine>(tree, spend), capacity};
  }

  /// A runtime is about to create the container: its process `creator` runs the hook or wrapper.
  /// @param placed_at  the cgroup that its engine names
  Result<std::optional<Admission>> admit(const FakeContainer& container, Pid creator,
                                         std::optional<std::string> placed_at = std::nullopt) {
    core::ContainerFacts facts;
    facts.id = container.id;
    facts.bundle = "/run/" + container.id;
    facts.annotations = container.annotations;
    facts.annotations["podqos.io/pod-uid"] = container.uid;
    if (container.named) facts.annotations.try_emplace("podqos.io/container", container.id);
    facts.resources = container.resources;
    facts.oom_score_adj = container.oom_score;
    auto request = admission_request(std::move(facts), settings, std::move(placed_at));
    if (!request) return fail(std::move(request).error());
    (*request)->driver = driver;
    (*request)->pid = creator;
    (*request)->start_time = tree.processes.at(creator).start_time;
    Transaction transaction = begin();
    auto admission = app::admit(transaction, std::move(**request));
    if (!admission) return admission;
    if (auto done = transaction.finish(); !done) return fail(std::move(done).error());
    return admission;
  }

  /// createRuntime of a container that was placed: its init runs in its cgroup.
  Status confirm(const FakeContainer& container, Pid init) {
    core::ContainerFacts facts;
    facts.id = container.id;
    facts.bundle = "/run/" + container.id;
    facts.annotations["podqos.io/pod-uid"] = container.uid;
    const std::string& cgroup = tree.processes.at(init).cgroup;
    auto request = admission_request(std::move(facts), settings, cgroup);
    if (!request) return fail(std::move(request).error());
    Transaction transaction = begin();
    const auto confirmed = confirm_started(
        transaction, (*request)->facts,
        {.process = {init, tree.processes.at(init).start_time}, .cgroup = cgroup}, Reporter::kHook);
    if (confirmed && !*confirmed) return fail(ErrorCode::kNotFound, "container is not known");
    return confirmed ? Status{} : fail(confirmed.error());
  }

  /// NRI's StartContainer of a process that started then; of a placed container or another.
  Status report_start(const FakeContainer& container, Pid init, StartTime start_time) {
    core::ContainerFacts facts;
    facts.id = container.id;
    facts.annotations = container.annotations;
    facts.annotations["podqos.io/pod-uid"] = container.uid;
    const std::string& cgroup = tree.processes.at(init).cgroup;
    auto request = admission_request(std::move(facts), settings, cgroup);
    if (!request) return fail(std::move(request).error());
    Transaction transaction = begin();
    const Init started{.process = {init, start_time}, .cgroup = cgroup};
    const auto confirmed =
        confirm_started(transaction, (*request)->facts, started, Reporter::kPlugin);
    if (!confirmed) return fail(confirmed.error());
    if (*confirmed) return {};
    return register_started(transaction, std::move(**request), started, Reporter::kPlugin);
  }

  /// Creates, starts and confirms the container as process `init`.
  void run(const FakeContainer& container, Pid init) {
    const Pid creator{init.value() + 1000};
    tree.start(creator, "/");
    const auto admission = admit(container, creator);
    ASSERT_TRUE(admission) << admission.error().message;
    ASSERT_TRUE(*admission);
    tree.start(init, (*admission)->container.cgroup);
    update(init, container.resources);
    tree.end(creator);
    const auto confirmed = confirm(container, init);
    ASSERT_TRUE(confirmed) << confirmed.error().message;
  }

  /// A runtime sets resources of a container, when it creates it or in `runc update`. Weights are
  /// those of the linear formula.
  void update(Pid init, const core::EngineResources& resources) {
    auto& files = tree.cgroups.at(tree.processes.at(init).cgroup).files;
    const auto set = [&](const char* file, const std::optional<std::int64_t>& value) {
      if (value) files.at(file) = std::to_string(*value);
    };
    if (!tree.is_v2()) {
      set("cpu.shares", resources.cpu_shares);
      set("cpu.cfs_period_us", resources.cpu_period);
      set("cpu.cfs_quota_us", resources.cpu_quota);
      set("memory.limit_in_bytes", resources.memory_limit);
      return;
    }
    if (resources.cpu_shares) set("cpu.weight", 1 + ((*resources.cpu_shares - 2) * 9999 / 262142));
    const auto max = [](std::int64_t value) {
      return value < 0 ? std::string{"max"} : std::to_string(value);
    };
    if (resources.cpu_quota)
      files.at("cpu.max") =
          cat(max(*resources.cpu_quota), " ", resources.cpu_period.value_or(100'000));
    if (resources.memory_limit) files.at("memory.max") = max(*resources.memory_limit);
  }

  /// poststop of a container.
  Result<Ended> end(const FakeContainer& container) {
    Transaction transaction = begin();
    return end_container(transaction,
                         {.id = container.id, .bundle = "/run/" + container.id, .caller = {}},
                         OnEnding::kDrop);
  }

  Result<ReconcileReport> reconcile() {
    Transaction transaction = begin();
    auto report = recompute(transaction, Warnings::kLogged, follow_runtime);
    if (!report) return report;
    if (auto done = transaction.finish(); !done) return fail(std::move(done).error());
    std::ranges::copy(transaction.failures(), std::back_inserter(report->failed));
    for (const Refusal& unfinished : transaction.unfinished())
      report->failed.push_back(unfinished.error.message);
    return report;
  }

  /// What reconcile() would do.
  Result<ReconcilePreview> preview() {
    const auto refuse = [](const std::string& change) -> Status {
      return fail(ErrorCode::kIo, cat("a preview has made a change: ", change));
    };
    return preview_reconcile(settings,
                             std::make_unique<FakeFiles>(records, [&] { return refuse("record"); }),
                             std::make_unique<cgroup::FakeMachine>(tree, refuse), capacity);
  }

  /// Content of a control file; "" if it does not exist.
  [[nodiscard]] std::string file(const std::string& path, const std::string& name) const {
    const auto cgroup = tree.cgroups.find(path);
    if (cgroup == tree.cgroups.end() || !cgroup->second.files.contains(name)) return "";
    return cgroup->second.files.at(name);
  }

  cgroup::FakeTree tree;
  core::Driver driver;  ///< of the node's runtimes
  FakeRecords records;
  core::Settings settings;
  core::NodeCapacity capacity{.memory = Bytes{16LL << 30U}, .cpu = MilliCpu{8000}, .pids = 32'768};
  std::unique_ptr<Log> log;
  std::function<void(const std::string& change)> on_change;  ///< called before each change
  /// Changes that are refused each time, as by a systemd that does not answer.
  std::function<bool(const std::string& change)> refuses;
  int changes_left = std::numeric_limits<int>::max();
  bool failing = false;  ///< the next change that is refused is the only one
  std::vector<std::string>
      changes;  ///< made so far: those of the machine as cgroup::FakeMachine names them
};

}  // namespace podqos::app
