#pragma once

#include <array>

#include "common/codec/words.h"
#include "common/core/record.h"

namespace podqos::codec {

/// Enumerators as they are spelled in records. The words are part of the file format: a record of
/// an earlier release must stay readable, so none may change or go.
constexpr std::array<Word<core::ContainerState>, 2> kStateWords{
    {{"pending", core::ContainerState::kPending}, {"live", core::ContainerState::kLive}}};
constexpr std::array<Word<core::ContainerKind>, 4> kKindWords{
    {{"app", core::ContainerKind::kApp},
     {"init", core::ContainerKind::kInit},
     {"sidecar", core::ContainerKind::kSidecar},
     {"ephemeral", core::ContainerKind::kEphemeral}}};
constexpr std::array<Word<core::QosClass>, 3> kClassWords{
    {{"Guaranteed", core::QosClass::kGuaranteed},
     {"Burstable", core::QosClass::kBurstable},
     {"BestEffort", core::QosClass::kBestEffort}}};
constexpr std::array<Word<core::ClassSource>, 6> kSourceWords{
    {{"engine", core::ClassSource::kEngine},
     {"pod-annotation", core::ClassSource::kPodAnnotation},
     {"qos-annotation", core::ClassSource::kQosAnnotation},
     {"short-forms", core::ClassSource::kShortForms},
     {"cri-sums", core::ClassSource::kCriSums},
     {"inference", core::ClassSource::kInference}}};
constexpr std::array<Word<core::IdentitySource>, 5> kIdentityWords{
    {{"engine", core::IdentitySource::kEngine},
     {"cgroup", core::IdentitySource::kCgroup},
     {"annotation", core::IdentitySource::kAnnotation},
     {"sandbox", core::IdentitySource::kSandbox},
     {"lone", core::IdentitySource::kLone}}};
constexpr std::array<Word<core::WeightFormula>, 2> kWeightFormulaWords{
    {{"linear", core::WeightFormula::kLinear}, {"log", core::WeightFormula::kLog}}};

}  // namespace podqos::codec
