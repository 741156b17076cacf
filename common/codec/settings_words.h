#pragma once

#include <array>

#include "common/codec/words.h"
#include "common/core/settings.h"

namespace podqos::codec {

constexpr std::array<Word<core::Scope>, 3> kScopeWords{{{"pods", core::Scope::kPods},
                                                        {"annotated", core::Scope::kAnnotated},
                                                        {"all", core::Scope::kAll}}};
constexpr std::array<Word<core::TrustAnnotations>, 3> kTrustWords{
    {{"engine-checked", core::TrustAnnotations::kEngineChecked},
     {"all", core::TrustAnnotations::kAll},
     {"none", core::TrustAnnotations::kNone}}};
constexpr std::array<Word<core::DriverSetting>, 3> kDriverWords{
    {{"auto", core::DriverSetting::kAuto},
     {"cgroupfs", core::DriverSetting::kCgroupfs},
     {"systemd", core::DriverSetting::kSystemd}}};
constexpr std::array<Word<core::OnMisplaced>, 3> kMisplacedWords{
    {{"rewrite", core::OnMisplaced::kRewrite},
     {"fail", core::OnMisplaced::kFail},
     {"ignore", core::OnMisplaced::kIgnore}}};
constexpr std::array<Word<core::WithoutParent>, 2> kWithoutParentWords{
    {{"stay", core::WithoutParent::kStay}, {"place", core::WithoutParent::kPlace}}};
constexpr std::array<Word<core::OnError>, 2> kErrorWords{
    {{"admit", core::OnError::kAdmit}, {"reject", core::OnError::kReject}}};
constexpr std::array<Word<core::AdmissionPolicy>, 3> kAdmissionWords{
    {{"off", core::AdmissionPolicy::kOff},
     {"warn", core::AdmissionPolicy::kWarn},
     {"enforce", core::AdmissionPolicy::kEnforce}}};
constexpr std::array<Word<core::WeightFormulaSetting>, 3> kFormulaWords{
    {{"auto", core::WeightFormulaSetting::kAuto},
     {"linear", core::WeightFormulaSetting::kLinear},
     {"log", core::WeightFormulaSetting::kLog}}};
constexpr std::array<Word<core::SwapBehavior>, 2> kSwapWords{
    {{"NoSwap", core::SwapBehavior::kNoSwap}, {"LimitedSwap", core::SwapBehavior::kLimitedSwap}}};
constexpr std::array<Word<core::LogLevel>, 4> kLevelWords{{{"debug", core::LogLevel::kDebug},
                                                           {"info", core::LogLevel::kInfo},
                                                           {"warning", core::LogLevel::kWarning},
                                                           {"error", core::LogLevel::kError}}};

}  // namespace podqos::codec
