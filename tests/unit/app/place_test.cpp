
#include "common/app/place.h"

#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/admission.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::app {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(MayConcern, LooksForTheNamesOfPodsUnlessAllArePods) {
  struct Case {
    const char* config;
    bool names_a_pod;
  };
  for (const auto& [config, names_a_pod] : {
           Case{R"({"process":{"args":["sh"]},"annotations":{"a/b":"c"}})", false},
           Case{"", false},
           Case{R"({"annotations":{"podqos.io/pod-uid":"42"}})", true},
           Case{R"({"annotations":{"io.kubernetes.cri.sandbox-id":"s"}})", true},
           Case{R"({"annotations":{"io.kubernetes.cri-o.SandboxID":"s"}})", true},  // Podman
           Case{R"({"linux":{"cgroupsPath":"/kubepods/pod1/c"}})", true},
           Case{R"({"linux":{"cgroupsPath":"kubepods-pod1.slice:cri:c"}})", true},
       }) {
    SCOPED_TRACE(config);
    core::Settings settings;
    for (const auto scope : {core::Scope::kPods, core::Scope::kAnnotated}) {
      settings.scope = scope;
      EXPECT_EQ(may_concern(config, settings), names_a_pod);
    }
    settings.scope = core::Scope::kAll;
    EXPECT_TRUE(may_concern(config, settings));
    settings.enabled = false;
    EXPECT_FALSE(may_concern(config, settings));
  }
}

TEST(SubjectOf, IsNotNamedByWhatIsRefused) {
  const auto subject = [](std::string uid, std::string name) {
    core::ContainerFacts facts;
    facts.id = "c1";
    facts.annotations = {{"podqos.io/pod-uid", std::move(uid)},
                         {"podqos.io/container", std::move(name)}};
    return subject_of(facts, "");
  };
  EXPECT_EQ(subject("web-1", "app").uid, "web-1");
  EXPECT_EQ(subject("web-1", "app").container, "app");
  for (const std::string& refused : {std::string{"\x1b[2J"}, std::string{"../../etc"},
                                     std::string(100'000, 'a'), std::string{"a\xe2\x80\xae"}}) {
    EXPECT_EQ(subject(refused, refused).uid, "");
    EXPECT_EQ(subject(refused, refused).container, "");
    EXPECT_EQ(subject(refused, refused).container_id, "c1");
  }
}

/// Places a container with this config.json, for which nothing may be written.
class PlaceNothing : public ::testing::Test {
 protected:
  [[nodiscard]] Result<std::optional<std::string>> place_with(const char* config) const {
    core::Settings settings;
    settings.log_sink = directory_.path("log");
    settings.log_level = core::LogLevel::kDebug;
    settings.state_dir = directory_.path("state");
    Log log{"test", settings};
    PlacementRequest request;
    request.id = "c1";
    request.bundle = directory_.path();
    request.config = config;
    request.creator = Pid{::getpid()};
    auto placed = place(settings, log, request);
    EXPECT_FALSE(directory_.has("state"));
    return placed;
  }

  TemporaryDirectory directory_;
};

TEST_F(PlaceNothing, OfAContainerThatPodqosDoesNotManage) {
  for (const char* config :
       {R"({"ociVersion":"1.0.0"})",
        R"({"annotations":{"podqos.io/pod-uid":"42","podqos.io/ignore":"true"}})"}) {
    const auto placed = place_with(config);
    ASSERT_TRUE(placed) << placed.error().message;
    EXPECT_FALSE(*placed) << config;
  }
}

TEST_F(PlaceNothing, OfAConfigThatIsRefused) {
  struct Case {
    const char* config;
    const char* says;
  };
  for (const auto& [config, says] : {
           Case{"{", ""},
           Case{"[]", ""},
           Case{R"({"annotations":{"podqos.io/pod-uid":"a/b"}})", "podqos.io/pod-uid"},
           Case{R"({"annotations":{"podqos.io/pod-uuid":"a"}})", "podqos.io/pod-uid"},
           Case{R"({"annotations":{"podqos.io/pod":"{"}})", "podqos.io/pod"},
       }) {
    SCOPED_TRACE(config);
    const auto placed = place_with(config);
    ASSERT_FALSE(placed);
    EXPECT_EQ(placed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(placed.error().message, HasSubstr(says));
  }
}

/// Under trustAnnotations "none" an author's mistake is ignored. Who runs Podman or Docker is the
/// operator, and wants to hear of it.
TEST(AdmissionRequestOf, AnInvalidAnnotationIsRefusedUnlessAuthorsAreNotTrusted) {
  for (const bool cri : {true, false}) {
    core::ContainerFacts facts;
    facts.id = "c1";
    facts.annotations = {{"podqos.io/requests", "cpu=x"}};
    facts.engine.emplace();
    facts.engine->cri = cri;
    facts.engine->pod_uid = "42";
    core::Settings settings;
    const auto request = admission_request(facts, settings, std::nullopt);
    ASSERT_FALSE(request);
    EXPECT_THAT(request.error().message, StartsWith("pod 42: annotation podqos.io/requests = "));
    EXPECT_THAT(request.error().message, HasSubstr("\"x\" is not a quantity"));
    settings.trust_annotations = core::TrustAnnotations::kNone;
    const auto ignored = admission_request(facts, settings, std::nullopt);
    EXPECT_EQ(ignored && *ignored, cri);
  }
}

}  // namespace
}  // namespace podqos::app
