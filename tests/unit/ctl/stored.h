#pragma once

#include <utility>

#include <gtest/gtest.h>

#include "common/core/settings.h"
#include "common/store/store.h"
#include "ctl/node/records.h"

namespace podqos::ctl {

/// Writes records into the state directory, where a second look finds them.
inline void store_records(const core::Settings& settings, const NodeRecords& records) {
  auto store = store::Store::open({.path = settings.state_dir, .lock_timeout = {}});
  ASSERT_TRUE(store) << store.error().message;
  store->node().trees = records.node.trees;
  for (const core::PodRecord& pod : records.pods)
    ASSERT_TRUE(store->put_pod(pod));
  ASSERT_TRUE(store->commit());
}

}  // namespace podqos::ctl
