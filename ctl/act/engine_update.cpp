#include "ctl/act/engine_update.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/text.h"
#include "common/codec/oci_config.h"
#include "common/codec/oci_edit.h"
#include "common/sys/directory.h"

namespace podqos::ctl {
namespace {

/// Where a container's bundle lies under engines that keep limits of their own.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kEngineCommands = {{
    {"/moby/", "docker update"},
    {"/k8s.io/", "crictl update"},
    {"/run/containers/storage/", "crictl update"},
    {"/containers/storage/", "podman update"},
    {"/io.containerd.", "nerdctl update"},
}};

/// "0.400"
std::string decimal(MilliCpu cpu) {
  constexpr std::int64_t kMilli = 1000;
  const std::string fraction = std::to_string(kMilli + cpu.value() % kMilli);
  return cat(cpu.value() / kMilli, ".", fraction.substr(1));
}

/// The options for a quota. Docker refuses --cpus of a container that was made with --cpu-quota,
/// and the reverse; with --cpus it writes a period of 100 ms.
std::string quota_options(const core::EngineResources& own, const core::CgroupValues& values,
                          bool takes_cpus) {
  const auto limit = core::milli_cpu_for_quota(*values.cpu_quota,
                                               values.cpu_period.value_or(core::kDefaultPeriod));
  if (!limit) return "";
  if (takes_cpus && own.cpu_period == core::kDefaultPeriod.value())
    return cat(" --cpus ", decimal(*limit));
  const Micros quota = core::cpu_quota_for(*limit, own.period());
  return cat(own.cpu_period ? cat(" --cpu-period ", *own.cpu_period) : "", " --cpu-quota ",
             quota.value());
}

/// Memory and swap together keep their distance from memory.
std::string memory_options(const core::EngineResources& own, Bytes limit, bool takes_swap) {
  std::string memory = cat(" --memory ", limit.value());
  if (!takes_swap || own.memory_swap.value_or(0) == 0) return memory;
  const std::int64_t swap =
      *own.memory_swap < 0 ? -1 : *own.memory_swap - *own.memory_limit + limit.value();
  return cat(memory, " --memory-swap ", swap);
}

}  // namespace

std::string_view engine_command(const core::ContainerRecord& container) {
  for (const auto& [part, command] : kEngineCommands) {
    if (container.bundle.contains(part)) return command;
  }
  return container.bundle.empty() ? "crictl update" : "";
}

std::string engine_update(const core::ContainerRecord& container, const core::EngineResources& own,
                          const core::CgroupValues& values) {
  const std::string_view command = engine_command(container);
  const bool is_cri = command.starts_with("crictl");
  std::string options;
  if (own.cpu_quota.value_or(0) > 0 && values.cpu_quota)
    options += quota_options(own, values, !is_cri);
  if (own.cpu_shares.value_or(0) > 0 && values.cpu_shares)
    options += cat(is_cri ? " --cpu-share " : " --cpu-shares ", values.cpu_shares->value());
  if (own.memory_limit.value_or(0) > 0 && values.memory_limit && values.memory_limit->value() > 0)
    options += memory_options(own, *values.memory_limit, !is_cri);
  return command.empty() || options.empty() ? ""
                                            : cat(command, options, " ", printable(container.id));
}

core::EngineResources engine_resources(const core::ContainerRecord& container, bool stated,
                                       const core::CgroupValues& values) {
  core::EngineResources own;
  if (container.bundle.empty() && !stated) {
    const auto number = [](const auto& value) {
      return value ? std::optional{value->value()} : std::nullopt;
    };
    own.cpu_shares = number(values.cpu_shares);
    own.cpu_quota = number(values.cpu_quota);
    own.cpu_period = number(values.cpu_period);
    own.memory_limit = number(values.memory_limit);
    return own;
  }
  const auto bundle = sys::Directory::open(container.bundle);
  const auto text =
      bundle ? bundle->read_file("config.json", codec::kMaxConfigSize) : fail(bundle.error());
  if (!text) return own;
  const auto former = codec::former_config(*text);
  // Podman drops the note of what podqos has filled in.
  if (!former && stated) return own;
  const auto config = codec::OciConfig::parse(former ? *former : *text);
  return config ? config->facts.resources : own;
}

}  // namespace podqos::ctl
