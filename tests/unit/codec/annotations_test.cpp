#include "common/codec/annotations.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::codec {
namespace {

using core::Annotations;
using core::Quantity;
using testing::HasSubstr;

core::ResourceList list(
    std::initializer_list<std::pair<const std::string, std::string_view>> items) {
  core::ResourceList out;
  for (const auto& [name, quantity] : items)
    out.emplace(name, Quantity::parse(quantity).value());
  return out;
}

TEST(IsKnownAnnotation, TakesOurs) {
  for (const std::string_view key :
       {"podqos.io/pod", "podqos.io/limits.web", "podqos.io/typo", "podqos.io/", "memory"})
    EXPECT_TRUE(is_known_annotation(key)) << key;
  for (const std::string_view key :
       {"", "podqos.io", "xpodqos.io/pod", "podqos.iz/pod", "org.opencontainers.image.title"})
    EXPECT_FALSE(is_known_annotation(key)) << key;
}

TEST(ParseShortForm, ReadsResources) {
  EXPECT_EQ(parse_short_form("cpu=250m,memory=1Gi"), list({{"cpu", "250m"}, {"memory", "1Gi"}}));
  EXPECT_EQ(parse_short_form(" cpu = 1 , hugepages-2Mi=4Mi "),
            list({{"cpu", "1"}, {"hugepages-2Mi", "4Mi"}}));
  EXPECT_EQ(parse_short_form("memory=0"), list({{"memory", "0"}}));
}

struct ShortFormRefusal {
  std::string text;
  std::string message;
};

TEST(ParseShortForm, RefusesOtherThings) {
  const std::vector<ShortFormRefusal> cases = {
      {"", "expected name=quantity"},
      {"cpu=1,", "expected name=quantity"},
      {"cpu", "expected name=quantity"},
      {"nvidia.com/gpu=1", "\"nvidia.com/gpu\": expected one of cpu, memory, hugepages-<size>"},
      {"CPU=1", "\"CPU\": expected one of"},
      {"=1", "expected one of"},
      {"hugepages-x=1", "hugepages-x"},
      {"cpu=", "cpu: "},
      {"cpu=1=2", "cpu: "},
      {"memory=-1", "memory=-1 is negative"},
      {"cpu=1,cpu=1", "cpu is repeated"},
      {"memory=256m", "memory=256m is 0.256 bytes: did you mean 256Mi?"},
      {"memory=1500m", "memory=1500m is 1.5 bytes: did you mean 1.5Gi?"},
      {"memory=1.5", "memory=1.5 is 1.5 bytes: did you mean 1.5Gi?"},
      {"memory=1u", "memory=1u is 0.000001 bytes: expected whole bytes, such as 256Mi"},
      {"hugepages-2Mi=4m", "hugepages-2Mi=4m is 0.004 bytes: did you mean 4Mi?"},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = parse_short_form(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr(message)) << text;
  }
}

TEST(ParsePodqosAnnotations, ReadsIdentity) {
  const auto parsed = parse_podqos_annotations({{"podqos.io/pod-uid", "1-2.A"},
                                                {"podqos.io/container", "My_web.1"},
                                                {"podqos.io/qos-class", "Burstable"},
                                                {"podqos.io/ignore", "false"}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->pod_uid, "1-2.A");
  EXPECT_EQ(parsed->container, "My_web.1");
  EXPECT_EQ(parsed->qos_class, core::QosClass::kBurstable);
  EXPECT_FALSE(parsed->ignore);
  EXPECT_TRUE(parsed->any_identity_or_resource());
}

TEST(ParsePodqosAnnotations, ReadsWhatAPodAsksForOfTheCpu) {
  for (const auto& [value, percent] : std::vector<std::pair<const char*, std::int64_t>>{
           {"0", 0}, {"0%", 0}, {"25%", 25}, {"100%", 100}}) {
    const auto parsed =
        parse_podqos_annotations({{"podqos.io/cpu-burst", value}, {"podqos.io/cpu-idle", "true"}});
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->cpu_burst, percent) << value;
    EXPECT_TRUE(parsed->cpu_idle);
    EXPECT_FALSE(parsed->any_identity_or_resource());
  }
  for (const char* value : {"", "%", "1", "-0%", "-1%", "101%", "5.5%", " 5%", "50 %", "half"}) {
    const auto parsed = parse_podqos_annotations({{"podqos.io/cpu-burst", value}});
    ASSERT_FALSE(parsed) << value;
    EXPECT_THAT(
        parsed.error().message,
        HasSubstr("expected \"0\" or a percentage of the CPU limit from \"0%\" to \"100%\""));
  }
  EXPECT_FALSE(parse_podqos_annotations({{"podqos.io/cpu-idle", "yes"}}));
}

TEST(ParsePodqosAnnotations, FindsNoneInOtherKeysAndTheOptOut) {
  for (const bool ignore : {false, true}) {
    Annotations annotations{{"a", ""}, {"podqos", ""}, {"podqos.iz/x", ""}};
    if (ignore) annotations.emplace("podqos.io/ignore", "true");
    const auto parsed = parse_podqos_annotations(annotations);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->ignore, ignore);
    EXPECT_FALSE(parsed->any_identity_or_resource());
  }
}

TEST(ParsePodqosAnnotations, DefaultsThePodsRequests) {
  const auto parsed = parse_podqos_annotations(
      {{"podqos.io/pod",
        R"({"containers":[{"name":"a","resources":{"limits":{"cpu":"1","memory":"1Gi"}}}]})"}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->pod->containers.size(), 1U);
  EXPECT_EQ(parsed->pod->containers[0].resources.requests, list({{"cpu", "1"}, {"memory", "1Gi"}}));
}

struct PodLevelCase {
  Annotations annotations;
  core::ResourceList requests;
  core::ResourceList limits;
};

TEST(ParsePodqosAnnotations, ReadsAmountsOfThePod) {
  const std::vector<PodLevelCase> cases = {
      {{{"podqos.io/limits", "cpu=2,memory=2Gi"}, {"podqos.io/requests", "cpu=1"}},
       list({{"cpu", "1"}}),
       list({{"cpu", "2"}, {"memory", "2Gi"}})},
      {{{"podqos.io/cpu-request", "100m"},
        {"podqos.io/memory-request", " 64Mi "},
        {"podqos.io/cpu-limit", "2"},
        {"podqos.io/memory-limit", "1Gi"}},
       list({{"cpu", "100m"}, {"memory", "64Mi"}}),
       list({{"cpu", "2"}, {"memory", "1Gi"}})},
      {{{"podqos.io/requests", "cpu=100m"}, {"podqos.io/memory-request", "64Mi"}},
       list({{"cpu", "100m"}, {"memory", "64Mi"}}),
       {}},
  };
  for (const auto& [annotations, requests, limits] : cases) {
    const auto parsed = parse_podqos_annotations(annotations);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->pod_level->requests, requests);
    EXPECT_EQ(parsed->pod_level->limits, limits);
  }
}

TEST(ParsePodqosAnnotations, ReadsAmountsOfContainers) {
  const auto parsed = parse_podqos_annotations(
      {{"podqos.io/limits.web", "cpu=500m"}, {"podqos.io/requests.a_b", "memory=64Mi"}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->containers.size(), 2U);
  EXPECT_EQ(parsed->containers.at("web").requests, list({{"cpu", "500m"}}));
  EXPECT_EQ(parsed->containers.at("web").limits, list({{"cpu", "500m"}}));
  EXPECT_EQ(parsed->containers.at("a_b").requests, list({{"memory", "64Mi"}}));
}

struct AnnotationRefusal {
  std::string key;
  std::string value;
  std::string message;
};

TEST(ParsePodqosAnnotations, RefusesAnAmountThatIsSetTwice) {
  const auto both = [](std::string_view list, std::string_view one) {
    const auto parsed = parse_podqos_annotations(
        {{cat("podqos.io/", list), "cpu=1,memory=1Gi"}, {cat("podqos.io/", one), "1"}});
    return parsed ? std::string{} : parsed.error().message;
  };
  EXPECT_EQ(both("requests", "cpu-request"),
            "annotation podqos.io/requests = \"cpu=1,memory=1Gi\": cpu is set by annotation "
            "podqos.io/cpu-request too: remove one");
  EXPECT_EQ(both("limits", "memory-limit"),
            "annotation podqos.io/memory-limit = \"1\": memory is set by annotation "
            "podqos.io/limits too: remove one");
  EXPECT_EQ(both("requests", "ignore"),
            "annotation podqos.io/ignore = \"1\": expected \"true\" or \"false\"");
}

TEST(ParsePodqosAnnotations, NamesWhatItRefuses) {
  const std::vector<AnnotationRefusal> cases = {
      {"podqos.io/ignore", "yes",
       "annotation podqos.io/ignore = \"yes\": expected \"true\" or \"false\""},
      {"podqos.io/ignore", "", "podqos.io/ignore"},
      {"podqos.io/pod-uid", "../x", "podqos.io/pod-uid = \"../x\""},
      {"podqos.io/pod-uid", "", "podqos.io/pod-uid"},
      {"podqos.io/pod-uid", std::string(300, 'a'), "podqos.io/pod-uid"},
      {"podqos.io/pod-uid", "a\nb", "podqos.io/pod-uid = \"a\\x0ab\""},
      {"podqos.io/container", "-a", "container name \"-a\""},
      {"podqos.io/container", "a/b", "container name \"a/b\""},
      {"podqos.io/container", std::string(64, 'a'), "container name"},
      {"podqos.io/qos-class", "burstable", "expected Guaranteed, Burstable or BestEffort"},
      {"podqos.io/pod", "{", "annotation podqos.io/pod"},
      {"podqos.io/pod", "{}", "annotation podqos.io/pod"},
      {"podqos.io/pod", R"({"containers":[]})", "annotation podqos.io/pod"},
      {"podqos.io/pod", "[]", "annotation podqos.io/pod"},
      {"podqos.io/pod",
       R"({"containers":[{"name":"a","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"2"}}}]})",
       "annotation podqos.io/pod"},
      {"podqos.io/pod", R"({"containers":[{"name":"a","resources":{"limits":{"memory":"256m"}}}]})",
       "container \"a\": memory limit is 0.256 bytes: did you mean 256Mi?"},
      {"podqos.io/memory-limit", "64m", "memory=64m is 0.064 bytes: did you mean 64Mi?"},
      {"podqos.io/memory-limit", "-1", "memory=-1 is negative"},
      {"podqos.io/cpu-request", "", "annotation podqos.io/cpu-request = \"\": cpu: "},
      {"podqos.io/cpu-request", "cpu=1", "annotation podqos.io/cpu-request = \"cpu=1\": cpu: "},
      {"podqos.io/cpu-requests", "1", "did you mean podqos.io/cpu-request?"},
      {"podqos.io/limits", "cpu=x", "annotation podqos.io/limits = \"cpu=x\": cpu: "},
      {"podqos.io/limits", "", "annotation podqos.io/limits = \"\""},
      {"podqos.io/requests", "gpu=1", "annotation podqos.io/requests = \"gpu=1\""},
      {"podqos.io/requests", "memory=-1", "memory=-1 is negative"},
      {"podqos.io/requests.web", "cpu=1,cpu=2", "podqos.io/requests.web"},
      {"podqos.io/limits.web", "1Gi", "annotation podqos.io/limits.web = \"1Gi\""},
      {"podqos.io/requests.", "cpu=1", "container name \"\""},
      {"podqos.io/requests.\xc3\xa9", "cpu=1", "container name"},
      {"podqos.io/limits.", "cpu=1", "container name \"\""},
      {"podqos.io/limits.a b", "cpu=1", "container name \"a b\""},
      {"podqos.io/limit", "cpu=1", "unknown annotation; did you mean podqos.io/limits?"},
      {"podqos.io/QoSClass", "", "did you mean podqos.io/qos-class?"},
      {"podqos.io/", "", "unknown annotation"},
      {"podqos.io/something-else-entirely", "", "unknown annotation"},
  };
  for (const auto& [key, value, message] : cases) {
    const auto parsed = parse_podqos_annotations({{key, value}});
    ASSERT_FALSE(parsed) << key << "=" << value;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument) << key;
    EXPECT_THAT(parsed.error().message, HasSubstr(message)) << key;
  }
}

TEST(ParsePodqosAnnotations, TakesTheLongestNames) {
  const std::string uid(128, 'a');
  const std::string name(63, 'a');
  const auto parsed = parse_podqos_annotations({{"podqos.io/pod-uid", uid},
                                                {"podqos.io/container", name},
                                                {cat("podqos.io/requests.", name), "cpu=1"}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->pod_uid, uid);
  EXPECT_EQ(parsed->container, name);
  EXPECT_TRUE(parsed->containers.contains(name));
  EXPECT_FALSE(parse_podqos_annotations({{"podqos.io/pod-uid", cat(uid, "a")}}));
  EXPECT_FALSE(parse_podqos_annotations({{"podqos.io/container", cat(name, "a")}}));
  EXPECT_FALSE(parse_podqos_annotations({{cat("podqos.io/requests.", name, "a"), "cpu=1"}}));
}

TEST(ParsePodqosAnnotations, RefusesAllForOneThatIsWrongOrARequestAboveItsLimit) {
  const std::vector<Annotations> cases = {
      {{"podqos.io/ignore", "true"}, {"podqos.io/limits", "cpu=1"}, {"podqos.io/zzz", ""}},
      {{"podqos.io/ignore", "true"}, {"podqos.io/pod", "{"}},
      {{"podqos.io/limits", "cpu=1"}, {"podqos.io/requests", "cpu=1001m"}},
      {{"podqos.io/limits.a", "memory=1"}, {"podqos.io/requests.a", "memory=2"}}};
  for (const Annotations& annotations : cases)
    EXPECT_FALSE(parse_podqos_annotations(annotations)) << annotations.rbegin()->first;
  EXPECT_TRUE(parse_podqos_annotations(
      {{"podqos.io/limits.a", "memory=2"}, {"podqos.io/requests.a", "memory=2"}}));
}

}  // namespace
}  // namespace podqos::codec
