#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/app/admission.h"
#include "common/codec/annotations.h"
#include "common/core/identity.h"

namespace podqos::app {

Result<std::optional<AdmissionRequest>> admission_request(core::ContainerFacts facts,
                                                          const core::Settings& settings,
                                                          std::optional<std::string> placed_at) {
  auto podqos = codec::parse_podqos_annotations(facts.annotations);
  return admission_request(std::move(facts), std::move(podqos), settings, std::move(placed_at));
}

Result<std::optional<AdmissionRequest>> admission_request(core::ContainerFacts&& facts,
                                                          Result<core::PodqosAnnotations>&& podqos,
                                                          const core::Settings& settings,
                                                          std::optional<std::string> placed_at) {
  auto engine =
      facts.engine ? Result<core::EngineAnnotations>{*std::exchange(facts.engine, {})}
                   : codec::parse_engine_annotations(
                         facts.annotations,
                         {.id = facts.id, .cgroup = placed_at ? std::string_view{*placed_at} : ""});
  if (!engine) return fail(std::move(engine).error());
  // Under a CRI engine annotations are those of the pod's author.
  if (!podqos && engine->cri && settings.trust_annotations == core::TrustAnnotations::kNone)
    podqos = core::PodqosAnnotations{};
  if (!podqos) return fail(std::move(podqos).error());
  if (!core::concerns_podqos(*podqos, *engine, settings, placed_at)) return std::nullopt;
  Result<std::optional<AdmissionRequest>> found{std::in_place, std::in_place};
  (*found)->facts = std::move(facts);
  (*found)->annotations = {.podqos = std::move(*podqos), .engine = std::move(*engine)};
  (*found)->placed_at = std::move(placed_at);
  (*found)->on_misplaced = settings.on_misplaced;
  return found;
}

}  // namespace podqos::app
