#pragma once

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/discovery.h"
#include "tests/unit/child_process.h"

namespace podqos::cgroup {

/// A test against the real kernel, v1, hybrid or v2, below a cgroup of its own that goes with it.
/// What it asserts it reads by itself, not through Cgroupfs.
class OwnCgroup : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "making cgroups takes root";
    Result<Cgroupfs> opened = Cgroupfs::open();
    if (!opened) GTEST_SKIP() << opened.error().message;
    cgroupfs_.emplace(std::move(*opened));
    static int count = 0;
    base_ = cat("/podqos-test-", ::getpid(), "-", ++count);
  }

  void TearDown() override {
    end_processes();
    if (!cgroupfs_) return;
    for (const Hierarchy& hierarchy : hierarchies())
      remove_tree(hierarchy.mount_point + base_);
  }

  [[nodiscard]] Cgroupfs& cgroupfs() { return *cgroupfs_; }
  /// As the next program finds the machine.
  void reopen() { cgroupfs_.emplace(std::move(*Cgroupfs::open())); }
  /// In the order of the mounts.
  [[nodiscard]] static std::vector<Hierarchy> hierarchies() {
    auto found = find_hierarchies({});
    EXPECT_TRUE(found) << found.error().message;
    std::vector<Hierarchy> usable;
    if (!found) return usable;
    for (OpenHierarchy& hierarchy : **found) {
      if (hierarchy.is_usable().value_or(false)) usable.push_back(hierarchy.description());
    }
    return usable;
  }
  /// Expects that a cgroup is in every hierarchy, or in none.
  static void expect_everywhere(const std::string& path, bool exists = true) {
    for (const Hierarchy& hierarchy : hierarchies())
      EXPECT_EQ(is_directory(hierarchy.mount_point + path), exists) << hierarchy.mount_point;
  }
  [[nodiscard]] const std::string& base() const { return base_; }
  [[nodiscard]] std::string below(std::string_view path) const { return cat(base_, "/", path); }

  /// A process that does its work, waits if there is none, and lives no longer than the test.
  [[nodiscard]] Pid start_process(void (*work)() = [] { ::pause(); }) {
    processes_.push_back(start_child(work));
    return Pid{processes_.back()};
  }
  void end_processes() {
    for (const pid_t process : std::exchange(processes_, {})) {
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
  }

  /// Makes a cgroup.
  void ensure(const std::string& path) { execute({core::EnsureCgroup{path}}); }
  Report execute(const core::Plan& plan) {
    Result<Report> report = cgroupfs().execute(plan);
    EXPECT_TRUE(report) << report.error().message;
    return report.value_or(Report{});
  }
  Error refused(const core::Plan& plan) {
    const Result<Report> report = cgroupfs().execute(plan);
    EXPECT_FALSE(report);
    return report ? Error{} : report.error();
  }

  [[nodiscard]] bool is_v2(core::Controller controller) {
    return cgroupfs().layout().version_of(controller) == core::CgroupVersion::kV2;
  }
  /// The hierarchy that carries a controller; "" as mount point where there is none.
  [[nodiscard]] Hierarchy hierarchy_with(std::string_view controller) {
    for (const Hierarchy& hierarchy : hierarchies()) {
      if (std::ranges::count(hierarchy.controllers, controller) > 0) return hierarchy;
    }
    return {};
  }
  [[nodiscard]] std::optional<Hierarchy> unified() {
    for (const Hierarchy& hierarchy : hierarchies()) {
      if (hierarchy.version == core::CgroupVersion::kV2) return hierarchy;
    }
    return std::nullopt;
  }

  [[nodiscard]] static bool is_directory(const std::string& path) {
    return std::filesystem::is_directory(path);
  }
  [[nodiscard]] static std::string content(const std::string& path) {
    std::ifstream file{path};
    std::string text{std::istreambuf_iterator<char>{file}, {}};
    while (text.ends_with('\n'))
      text.pop_back();
    return text;
  }

 private:
  static void remove_tree(const std::string& path) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator{path, ignored}) {
      if (entry.is_directory(ignored)) remove_tree(entry.path());
    }
    // The kernel finishes an ended process's leaving a little later.
    constexpr int kAttempts = 100;
    for (int i = 0; i < kAttempts && ::rmdir(path.c_str()) != 0 && errno == EBUSY; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
  }

  std::optional<Cgroupfs> cgroupfs_;
  std::string base_;
  std::vector<pid_t> processes_;
};

}  // namespace podqos::cgroup
