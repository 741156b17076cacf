#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/admission.h"

namespace podqos::app {
namespace {

using ::testing::HasSubstr;

core::ContainerFacts with_invalid_annotation(bool cri) {
  core::ContainerFacts facts;
  facts.id = "c1";
  facts.annotations = {{"podqos.io/requests", "cpu=x"}};
  facts.engine.emplace();
  facts.engine->cri = cri;
  facts.engine->pod_uid = "42";
  return facts;
}

TEST(AdmissionRequestOf, AnInvalidAnnotationIsRefused) {
  const auto request = admission_request(with_invalid_annotation(true), {}, std::nullopt);
  ASSERT_FALSE(request);
  EXPECT_THAT(request.error().message, HasSubstr("\"x\" is not a quantity"));
}

TEST(AdmissionRequestOf, AnAuthorsInvalidAnnotationIsIgnoredUnderTrustAnnotationsNone) {
  core::Settings settings;
  settings.trust_annotations = core::TrustAnnotations::kNone;
  const auto request = admission_request(with_invalid_annotation(true), settings, std::nullopt);
  ASSERT_TRUE(request) << request.error().to_string();
  EXPECT_TRUE(request->has_value());
}

/// Who runs Podman or Docker is the operator, and wants to hear of it.
TEST(AdmissionRequestOf, AnOperatorsInvalidAnnotationIsAlwaysRefused) {
  core::Settings settings;
  settings.trust_annotations = core::TrustAnnotations::kNone;
  EXPECT_FALSE(admission_request(with_invalid_annotation(false), settings, std::nullopt));
}

}  // namespace
}  // namespace podqos::app
