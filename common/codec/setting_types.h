#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/codec/json_tree.h"
#include "common/codec/words.h"
#include "common/core/metrics_address.h"
#include "common/core/settings.h"

// The types of the configuration's values. Each reads a value, writes it as JSON text, and says
// what it may be, in words that fit behind "expected": those are the same in error messages, in
// `podqosctl config fields` and in podqos.json(5). The static functions of a type:
//
// - std::string expected()
// - Result<Value> read(const JsonNode& node): kInvalidArgument with what was expected and found
// - std::string format(const Value& value): JSON text that read() accepts
namespace podqos::codec {

/// kInvalidArgument: "expected <expected>, found <the value>".
[[nodiscard]] std::unexpected<Error> unexpected_value(std::string_view expected,
                                                      const JsonNode& node);

struct Flag {
  static std::string expected() { return "true or false"; }
  static Result<bool> read(const JsonNode& node);
  static std::string format(bool value) { return value ? "true" : "false"; }
};

/// `one of "a", "b"`.
[[nodiscard]] std::string list_words(const std::vector<std::string_view>& words);

/// One of a table's words (settings_words.h).
template <const auto& kWords>
struct OneOf {
  using Value = decltype(kWords.front().value);
  static std::string expected() {
    std::vector<std::string_view> words;
    for (const auto& word : kWords)
      words.push_back(word.text);
    return list_words(words);
  }
  static Result<Value> read(const JsonNode& node) {
    for (const auto& word : kWords)
      if (node.kind == JsonNode::Kind::kString && node.text == word.text) return word.value;
    return unexpected_value(expected(), node);
  }
  static std::string format(Value value) {
    std::string text{"\""};
    text += word_for(kWords, value);
    return text += '"';
  }
};

/// A quantity of bytes, as Kubernetes writes it, that is whole, not negative, and below 2^63.
struct MemoryAmount {
  static std::string expected() { return "an amount of memory such as \"64Mi\", in whole bytes"; }
  static Result<Bytes> read(const JsonNode& node);
  static std::string format(Bytes memory);
};

/// A quantity of CPUs, as Kubernetes writes it, that is not negative; rounded up to a thousandth.
struct CpuAmount {
  static std::string expected() { return "an amount of CPU such as \"500m\""; }
  static Result<MilliCpu> read(const JsonNode& node);
  static std::string format(MilliCpu cpu);
};

/// A value of `Type`, or null.
template <class Type>
struct OrNull {
  using Value = std::optional<typename decltype(Type::read(JsonNode{}))::value_type>;
  static std::string expected() { return Type::expected() + ", or null"; }
  static Result<Value> read(const JsonNode& node) {
    if (node.is_null()) return Value{};
    auto value = Type::read(node);
    // Its own words would leave null out.
    if (!value && value.error().message.starts_with("expected "))
      return unexpected_value(expected(), node);
    if (!value) return fail(std::move(value).error());
    return Value{std::move(*value)};
  }
  static std::string format(const Value& value) { return value ? Type::format(*value) : "null"; }
};

/// An amount above 0.
template <class Type>
struct Positive {
  using Value = typename decltype(Type::read(JsonNode{}))::value_type;
  static std::string expected() { return Type::expected() + ", above 0"; }
  static Result<Value> read(const JsonNode& node) {
    auto value = Type::read(node);
    if (!value || value->value() == 0) return unexpected_value(expected(), node);
    return value;
  }
  static std::string format(const Value& value) { return Type::format(value); }
};

/// "<number>%" from "<min>%" to "100%".
template <std::int64_t kMin>
struct Percentage {
  static std::string expected() {
    return "a percentage from \"" + std::to_string(kMin) + "%\" to \"100%\"";
  }
  static Result<std::int64_t> read(const JsonNode& node);
  static std::string format(std::int64_t percent) { return '"' + std::to_string(percent) + "%\""; }
};

/// What a duration may be. All in microseconds; `step` is the finest that is kept, and the unit of
/// the value.
struct DurationRange {
  std::int64_t min;
  std::int64_t max;
  std::int64_t step;
};
[[nodiscard]] std::string expected_duration(const DurationRange& range);
[[nodiscard]] Result<std::int64_t> read_duration(const JsonNode& node, const DurationRange& range);
/// @param micros  the duration
[[nodiscard]] std::string format_duration(std::int64_t micros);

/// "<number><unit>", the unit one of us, ms, s, m, h.
/// @tparam T  what holds the number of the range's steps
template <const DurationRange& kRange, class T = std::int64_t>
struct Duration {
  static std::string expected() { return expected_duration(kRange); }
  static Result<T> read(const JsonNode& node) {
    PODQOS_ASSIGN(const auto steps, read_duration(node, kRange));
    return T{steps};
  }
  static std::string format(const T& value) {
    if constexpr (std::is_same_v<T, std::int64_t>)
      return format_duration(value * kRange.step);
    else
      return format_duration(value.value() * kRange.step);
  }
};

struct AbsolutePath {
  static std::string expected() { return "an absolute path without \"..\""; }
  static Result<std::string> read(const JsonNode& node);
  static std::string format(const std::string& path);
};

/// A path whose components are names of cgroups, for both drivers. What the systemd driver further
/// asks for is checked when a root is chosen: core::choose_root().
struct CgroupPath {
  static std::string expected() { return AbsolutePath::expected(); }
  static Result<std::string> read(const JsonNode& node);
  static std::string format(const std::string& path) { return AbsolutePath::format(path); }
};

[[nodiscard]] Result<std::int64_t> read_whole_number(const JsonNode& node);

/// From kMin to kMax.
template <std::int64_t kMin, std::int64_t kMax>
struct WholeNumber {
  static std::string expected() {
    return "a whole number from " + std::to_string(kMin) + " to " + std::to_string(kMax);
  }
  static Result<std::int64_t> read(const JsonNode& node) {
    auto number = read_whole_number(node);
    if (!number || *number < kMin || *number > kMax) return unexpected_value(expected(), node);
    return number;
  }
  static std::string format(std::int64_t number) { return std::to_string(number); }
};

/// The kubelet's memorySwap.swapBehavior: "" is NoSwap.
struct Swap {
  static std::string expected();
  static Result<core::SwapBehavior> read(const JsonNode& node);
  static std::string format(core::SwapBehavior behavior);
};

constexpr std::size_t kMaxRuntimes = 64;

struct RuntimePaths {
  static std::string expected();
  static Result<std::vector<std::string>> read(const JsonNode& node);
  static std::string format(const std::vector<std::string>& paths);
};

/// The kubelet's enforceNodeAllocatable, of which podqos has "pods": cgroups for the reserves are
/// the operator's.
struct EnforcedCgroups {
  static std::string expected() { return R"(["pods"], ["none"] or [])"; }
  static Result<bool> read(const JsonNode& node);
  static std::string format(bool pods) { return pods ? R"(["pods"])" : "[]"; }
};

struct RootWeight {
  static std::string expected() {
    return R"("kubelet", "proportional" or a weight from 1 to 10000)";
  }
  static Result<core::RootCpuWeight> read(const JsonNode& node);
  static std::string format(const core::RootCpuWeight& weight);
};

struct LogSink {
  static std::string expected() {
    return R"("syslog", "stderr", "none" or the absolute path of a file)";
  }
  static Result<std::string> read(const JsonNode& node);
  static std::string format(const std::string& sink);
};

struct MetricsListener {
  static std::string expected();
  static Result<core::MetricsAddress> read(const JsonNode& node);
  static std::string format(const core::MetricsAddress& address);
};

}  // namespace podqos::codec
