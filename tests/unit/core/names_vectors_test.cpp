// names.jsonl: cgroup names as Kubernetes 1.36's own code forms and reads them.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/cgroups/naming.h"
#include "tests/unit/codec/vectors.h"

namespace podqos::core {
namespace {

namespace vectors = codec::vectors;

using nlohmann::json;

/// A row where upstream's recognition is wrong.
struct UpstreamMistake {
  std::string_view row;  ///< driver and path
  std::string_view reason;
  std::optional<std::string_view> our_uid = std::nullopt;
};

constexpr std::array<UpstreamMistake, 3> kUpstreamMistakes = {{
    {.row = "cgroupfs /other/burstable/pod11111111-2222-3333-4444-555555555555",
     .reason = "no kubepods above it: upstream counts components and never looks at the parents"},
    {.row = "cgroupfs /kubepods/burstable/pod",
     .reason = "a pod without a UID; upstream takes the empty one"},
    {.row = "cgroupfs /kubepods/burstable/podxpody",
     .reason = "a UID may contain \"pod\"; upstream splits there and loses its own pod",
     .our_uid = "xpody"},
}};

const UpstreamMistake* mistake_in(const json& row) {
  const std::string key =
      row.at("driver").get<std::string>() + " " + row.at("in").get<std::string>();
  const auto* found = std::ranges::find(kUpstreamMistakes, key, &UpstreamMistake::row);
  return found == kUpstreamMistakes.end() ? nullptr : found;
}

void check_convert(const json& row) {
  const auto name = row.at("name").get<std::vector<std::string>>();
  if (name.front().empty()) return;  // the root, which no program asks for
  if (row.contains("error")) {
    EXPECT_FALSE(format_systemd(name));
    return;
  }
  const json& expect = row.at("expect");
  EXPECT_EQ(format_systemd(name), expect.at("systemd").get<std::string>());
}

void check_expand_slice(const json& row) {
  const auto path = expand_slice(row.at("in").get<std::string>());
  if (row.contains("error")) {
    ASSERT_FALSE(path);
    EXPECT_EQ(path.error().to_string(), row.at("error").get<std::string>());
    return;
  }
  EXPECT_EQ(path, row.at("expect").get<std::string>());
}

void check_root(const json& row) {
  const Driver driver = row.at("driver") == "systemd" ? Driver::kSystemd : Driver::kCgroupfs;
  EXPECT_EQ(root_path(row.at("root").get<std::string>(), driver),
            row.at("expect").get<std::string>());
}

/// Upstream asks one driver about one path; ours finds either form, below the pod too.
std::optional<std::string> recognised_uid(const json& row) {
  const auto found = find_pod_cgroup(row.at("in").get<std::string>());
  if (!found || found->pod_path != row.at("in").get<std::string>()) return std::nullopt;
  if (format_driver(driver_of(found->pod_path)) != row.at("driver").get<std::string>())
    return std::nullopt;
  return found->uid;
}

void check_is_pod(const json& row) {
  const json& expect = row.at("expect");
  const auto want = expect.at("isPod").get<bool>()
                        ? std::optional{expect.at("uid").get<std::string>()}
                        : std::nullopt;
  if (const UpstreamMistake* mistake = mistake_in(row); mistake != nullptr) {
    EXPECT_EQ(recognised_uid(row), mistake->our_uid) << mistake->reason;
    return;
  }
  EXPECT_EQ(recognised_uid(row), want);
}

void check_row(const json& row) {
  const auto op = row.at("op").get<std::string>();
  if (op == "convert") {
    check_convert(row);
  } else if (op == "expandSlice") {
    check_expand_slice(row);
  } else if (op == "isPodCgroup") {
    check_is_pod(row);
  } else if (op == "nodeAllocatableRoot") {
    check_root(row);
  } else {
    // No program reads names back into components.
    ASSERT_TRUE(op == "parseCgroupfs" || op == "parseSystemd") << op;
  }
}

TEST(NamesVectors, AgreeExceptWhereUpstreamIsWrong) {
  const auto rows = vectors::read_rows("names");
  ASSERT_EQ(rows.size(), 90U);
  std::size_t mistakes = 0;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.dump());
    check_row(row);
    if (row.at("op") == "isPodCgroup" && mistake_in(row) != nullptr) ++mistakes;
  }
  EXPECT_EQ(mistakes, kUpstreamMistakes.size()) << "a listed mistake is in no row";
}

}  // namespace
}  // namespace podqos::core
