#include "ctl/configure/engine.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

/// NRI by containerd's release notes of 1.7 and CRI-O's of 1.26.
constexpr std::array kEngines = {
    EngineFacts{.name = "containerd",
                .title = "containerd",
                .program = "containerd",
                .service = "containerd.service",
                .nri = Version{.major = 1, .minor = 7}},
    EngineFacts{.name = "crio",
                .title = "CRI-O",
                .program = "crio",
                .service = "crio.service",
                .nri = Version{.major = 1, .minor = 26}},
    EngineFacts{.name = "podman", .title = "Podman", .program = "podman", .service = ""},
    EngineFacts{
        .name = "docker", .title = "Docker", .program = "dockerd", .service = "docker.service"},
};
static_assert(kEngines.size() == static_cast<std::size_t>(Engine::kDocker) + 1);

constexpr std::array<std::string_view, 3> kMethods = {"wrapper", "nri", "hooks"};
static_assert(kMethods.size() == static_cast<std::size_t>(Method::kHooks) + 1);

/// The number at the beginning of `text`, which it is taken off.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<Version> version_of_word(std::string_view word) {
  if (word.starts_with('v')) word.remove_prefix(1);
  const auto major = take_number(word);
  if (!major || !word.starts_with('.')) return std::nullopt;
  word.remove_prefix(1);
  const auto minor = take_number(word);
  return minor ? std::optional{Version{.major = *major, .minor = *minor}} : std::nullopt;
}

}  // namespace

const EngineFacts& facts_of(Engine engine) {
  return kEngines.at(static_cast<std::size_t>(engine));
}

std::optional<Engine> parse_engine(std::string_view name) {
  const auto found = std::ranges::find(kEngines, name, &EngineFacts::name);
  if (found == kEngines.end()) return std::nullopt;
  return static_cast<Engine>(found - kEngines.begin());
}

std::span<const EngineFacts> engines() {
  return kEngines;
}

std::string_view format_method(Method method) {
  return kMethods.at(static_cast<std::size_t>(method));
}

std::optional<Method> parse_method(std::string_view word) {
  const auto found = std::ranges::find(kMethods, word);
  if (found == kMethods.end()) return std::nullopt;
  return static_cast<Method>(found - kMethods.begin());
}

std::optional<Version> parse_version(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  for (std::size_t at = text.find_first_not_of(kSpace); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    if (const auto version = version_of_word(text.substr(at, end - at))) return version;
    at = text.find_first_not_of(kSpace, end);
  }
  return std::nullopt;
}

std::string format_version(const Version& version) {
  return cat(version.major, ".", version.minor);
}

Method best_method(Engine engine, const std::optional<Version>& version, bool plugin_installed) {
  const auto nri = facts_of(engine).nri;
  if (nri && plugin_installed && version && *version >= *nri) return Method::kNri;
  return engine == Engine::kPodman ? Method::kHooks : Method::kWrapper;
}

Status check_method(Engine engine, Method method, const std::optional<Version>& version) {
  const EngineFacts& facts = facts_of(engine);
  const auto refuse = [&](std::string_view why, std::string_view instead) {
    return fail(ErrorCode::kUnsupported, cat(facts.title, why, "; use --method ", instead));
  };
  const bool is_podman = engine == Engine::kPodman;
  switch (method) {
    case Method::kWrapper: break;
    case Method::kNri:
      if (!facts.nri) return refuse(" has no NRI", is_podman ? "hooks or wrapper" : "wrapper");
      if (version && *version < *facts.nri)
        return refuse(cat(" ", format_version(*version), " has no NRI, which came with ",
                          format_version(*facts.nri)),
                      "wrapper");
      break;
    case Method::kHooks:
      if (!is_podman && engine != Engine::kCrio)
        return refuse(" reads no directory of hooks, and hooks alone cannot place containers",
                      "wrapper");
  }
  return {};
}

}  // namespace podqos::ctl
