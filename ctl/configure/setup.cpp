#include "ctl/configure/setup.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace podqos::ctl {
namespace {

using enum EngineId;

/// NRI by containerd's release notes of 1.7 and CRI-O's of 1.26. All check without the path of the
/// file: one that does not exist is an error where it is named.
constexpr std::array kEngines = {
    Engine{kContainerd, "containerd", "containerd", "containerd", "containerd",
           "/etc/containerd/config.toml", "--config", "config dump", "containerd.service",
           "crictl runp --runtime podqos …", Version{.major = 1, .minor = 7}, plan_containerd,
           inspect_containerd},
    Engine{kCrio, "crio", "cri-o", "CRI-O", "crio", "/etc/crio/crio.conf", "--config", "config",
           "crio.service", "crictl runp --runtime podqos …", Version{.major = 1, .minor = 26},
           plan_crio, inspect_crio},
    Engine{kPodman, "podman", "podman", "Podman", "podman", "/etc/containers/containers.conf", "",
           "info", "", "podman --runtime podqos run …", std::nullopt, plan_podman, inspect_podman},
    Engine{kDocker, "docker", "docker", "Docker", "dockerd", "/etc/docker/daemon.json",
           "--config-file", "--validate", "docker.service",
           "docker run --runtime podqos --annotation podqos.io/pod-uid=… …", std::nullopt,
           plan_docker, inspect_docker},
};

}  // namespace

std::span<const Engine> engines() {
  return kEngines;
}

Result<std::optional<std::string>> find_program(const Engine& engine) {
  std::optional<std::string> found;
  for (const char* directory : {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/"}) {
    std::string path = cat(directory, engine.program);
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    if (found && !std::filesystem::equivalent(*found, path, error))
      return refuse("found two binaries (", *found, ", ", path, "): choose one with --program");
    if (!found) found = std::move(path);
  }
  return found;
}

std::optional<Version> parse_version(std::string_view text) {
  for (std::string_view word : parts_of(text, ' ')) {
    if (word.starts_with('v')) word.remove_prefix(1);
    if (word.empty() || !is_digit(word.front())) continue;
    const auto major = parse_int(read_until(word, '.'));
    const auto minor = parse_int(word.substr(0, word.find_first_not_of("0123456789")));
    if (major && minor) return Version{.major = *major, .minor = *minor};
  }
  return std::nullopt;
}

std::string format_version(const Version& version) {
  return cat(version.major, ".", version.minor);
}

TomlValue Setup::at(std::string_view path) const {
  TomlValue last;
  for (const TomlDocument& document : documents)
    if (TomlValue found = document.at(path)) last = std::move(found);
  return last;
}

Method best_method(const Setup& setup) {
  const auto nri = setup.engine->nri;
  if (nri && setup.version >= nri && setup.plugin_installed) return Method::kNri;
  return setup.is(kPodman) ? Method::kHooks : Method::kWrapper;
}

Status plan(Setup& setup) {
  const Engine& engine = *setup.engine;
  std::string why;
  if (setup.method == Method::kNri && !engine.nri)
    why = " has no NRI";
  else if (setup.method == Method::kNri && setup.version && setup.version < engine.nri)
    why = cat(" ", format_version(*setup.version), " has no NRI, which came with ",
              format_version(*engine.nri));
  else if (setup.method == Method::kHooks && (setup.is(kContainerd) || setup.is(kDocker)))
    why = " reads no directory of hooks, and hooks alone cannot place containers";
  if (setup.set_default && setup.method != Method::kWrapper)
    return refuse("--set-as-default is for --method wrapper: with ",
                  kMethods.at(static_cast<std::size_t>(setup.method)),
                  " podqos sees all containers without it");
  if (!setup.config.empty() && engine.config_option.empty())
    return refuse(engine.title,
                  " has no option for another configuration file: leave --config "
                  "out");
  if (setup.undo || why.empty()) return engine.plan(setup);
  return refuse(engine.title, why, "; use --method ",
                setup.is(kPodman) ? "hooks or wrapper" : "wrapper");
}

}  // namespace podqos::ctl
