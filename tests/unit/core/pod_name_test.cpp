#include "common/core/pods/pod_name.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::core {
namespace {

const std::string kId = "9a97ccea661d8b9e41ca4d0880a5ac211a041c431052b728fe6a98fc7c09bcbf";
const std::string kPodmansId = "2f6100253c46d5f524cf6f2a4e5443eb2c8334a3ab4e6716bfc2061d07ad9e6d";

TEST(ShortId, CutsOnlyWhatAnEngineHasMade) {
  EXPECT_EQ(short_id(kId), "9a97ccea661d");
  EXPECT_EQ(short_id(kId + "-eebefbcdca1ef2bf"), "9a97ccea661d");  // uid of a lone container
  for (const std::string& other :
       {std::string{}, std::string{"web-1"}, kId.substr(1), "A" + kId.substr(1), "x" + kId,
        std::string{"f1a2b3c4-0000-4000-8000-123456789abc"}})
    EXPECT_EQ(short_id(other), other);
}

struct NameCase {
  std::string space;
  std::string name;
  std::string uid;
  std::optional<std::string> pod_id;
  std::string shown;
};

TEST(DisplayName, IsWhatAnOperatorKnowsThePodBy) {
  const std::vector<NameCase> cases = {
      {"default", "web", "u-1", std::nullopt, "default/web"},
      {"", "mixed", kId, kPodmansId, "mixed"},
      {"", "", kId, kPodmansId, "2f6100253c46"},  // as `podman pod ps` shows it
      {"", "", kId, std::nullopt, "9a97ccea661d"},
      {"", "", "web-1", kPodmansId, "web-1"},
      {"default", "", "web-1", std::nullopt, "web-1"},
      {"a\n", "\x1b[2J", "u", std::nullopt, R"(a\x0a/\x1b[2J)"},
  };
  for (const NameCase& each : cases) {
    PodRecord record;
    record.pod.pod_namespace = each.space;
    record.pod.name = each.name;
    record.pod.uid = each.uid;
    record.pod_id = each.pod_id;
    EXPECT_EQ(display_name(record), each.shown);
  }
}

TEST(NameOf, HasTheUidForThoseWhoLookForTheRecord) {
  PodRecord record;
  record.pod.uid = "web-1";
  EXPECT_EQ(name_of(record), "pod web-1");
  record.pod.name = "web";
  EXPECT_EQ(name_of(record), "pod web-1 (web)");
  record.pod.pod_namespace = "default";
  EXPECT_EQ(name_of(record), "pod web-1 (default/web)");
  record.pod = {};
  record.pod.uid = kId;
  EXPECT_EQ(name_of(record), "pod 9a97ccea661d");
  record.pod_id = kPodmansId;
  EXPECT_EQ(name_of(record), "pod 9a97ccea661d (2f6100253c46)");
}

TEST(DisplayName, OfAContainerIsItsNameOrItsId) {
  ContainerRecord record;
  record.id = kId;
  EXPECT_EQ(display_name(record), "9a97ccea661d");
  record.name = kId;
  EXPECT_EQ(display_name(record), "9a97ccea661d");
  record.name = "app";
  EXPECT_EQ(display_name(record), "app");
}

TEST(Engine, HasANameInBothDirections) {
  for (const auto& [engine, name] : {std::pair{Engine::kPodman, "podman"},
                                     {Engine::kDocker, "docker"},
                                     {Engine::kContainerd, "containerd"},
                                     {Engine::kCrio, "cri-o"}}) {
    EXPECT_EQ(format_engine(engine), name);
    EXPECT_EQ(parse_engine(name), engine);
  }
  EXPECT_EQ(format_engine(std::nullopt), "");
  for (const char* none : {"", "crio", "Docker", "podman docker"})
    EXPECT_EQ(parse_engine(none), std::nullopt) << none;
}

}  // namespace
}  // namespace podqos::core
