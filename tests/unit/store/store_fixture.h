#pragma once

#include <sys/stat.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "common/store/store.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::store {

inline core::PodRecord record_of(std::string uid) {
  core::PodRecord record;
  record.pod.uid = std::move(uid);
  record.qos_class = core::QosClass::kBurstable;
  record.cgroup = "/podqos/kubepods/burstable/pod" + record.pod.uid;
  record.capped_request = {.pods = 1, .cpu = MilliCpu{250}, .memory = Bytes{1 << 20}};
  record.counted_request = record.capped_request;
  return record;
}

inline IndexEntry entry_of(std::string_view id, std::string uid) {
  return {.name = index_name(id), .uid = std::move(uid)};
}

/// A state directory of the test's own at <temporary>/state, not made yet.
class StoreTest : public ::testing::Test {
 protected:
  [[nodiscard]] Result<Store> open() const { return Store::open(options_); }
  [[nodiscard]] Store opened() const {
    auto store = open();
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  /// A state with one pod and its container, closed cleanly.
  void make_state() const {
    Store store = opened();
    EXPECT_TRUE(store.begin("pod-1"));
    EXPECT_TRUE(store.put_entry(entry_of("c1", "pod-1")));
    EXPECT_TRUE(store.put_pod(record_of("pod-1")));
    store.node().trees = {{.kubepods = "/podqos/kubepods"}};
    EXPECT_TRUE(store.commit());
  }
  [[nodiscard]] std::string path(std::string_view name) const {
    return options_.path + "/" + std::string{name};
  }
  void write(std::string_view name, std::string_view content) const {
    temporary_.write("state/" + std::string{name}, content);
  }
  [[nodiscard]] std::string read(std::string_view name) const {
    return temporary_.read("state/" + std::string{name});
  }
  [[nodiscard]] bool has(std::string_view name) const {
    return temporary_.has("state/" + std::string{name});
  }
  [[nodiscard]] mode_t mode_of(std::string_view name) const {
    struct stat found{};
    EXPECT_EQ(::stat(path(name).c_str(), &found), 0) << name;
    return found.st_mode & 07777U;
  }
  /// Raises the version of a file's record to one that is not known yet.
  /// @return its content now
  std::string make_newer(std::string_view name) const {
    std::string text = read(name);
    const std::string version = "\"version\":1";
    const auto at = text.find(version);
    if (at == std::string::npos) ADD_FAILURE() << text;
    write(name, text.replace(at, version.size(), "\"version\":2"));
    return text;
  }
  /// All is compared with what there is.
  void compare() const {
    Store store = opened();
    EXPECT_TRUE(store.dirty());
    store.compared();
    EXPECT_TRUE(store.commit());
    EXPECT_FALSE(store.dirty());
  }

  TemporaryDirectory temporary_;
  StoreOptions options_{.path = temporary_.path("state"),
                        .lock_timeout = std::chrono::milliseconds{20}};
};

}  // namespace podqos::store
