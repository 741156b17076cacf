#include "common/cgroup/cgroup_usage.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/value.h"

namespace podqos::cgroup {
namespace {

using core::CgroupVersion;

/// More than memory.stat has of all kernels; what is beyond is left out.
constexpr std::size_t kBuffer = 16'384;

std::optional<std::int64_t> number_in(std::string_view text) {
  return parse_int(without_newline(text));
}

template <class Strong>
std::optional<Strong> amount_of(std::optional<std::int64_t> number) {
  return number ? std::optional{Strong{*number}} : std::nullopt;
}

void parse_cpuacct(std::string_view text, CgroupUsage& usage) {
  if (const auto nanos = number_in(text)) usage.cpu = Micros{*nanos / kNanosPerMicro};
}
/// cgroup v1 has no usage in it.
void parse_cpu_stat(std::string_view text, CgroupUsage& usage) {
  if (const auto micros = find_key(text, "usage_usec")) usage.cpu = Micros{*micros};
  usage.periods = find_key(text, "nr_periods");
  usage.throttled_periods = find_key(text, "nr_throttled");
}
void parse_cpu_pressure(std::string_view text, CgroupUsage& usage) {
  usage.cpu_pressure = parse_pressure(text);
}
void parse_memory(std::string_view text, CgroupUsage& usage) {
  usage.memory = amount_of<Bytes>(number_in(text));
}
void parse_memory_stat_v1(std::string_view text, CgroupUsage& usage) {
  // Those of the cgroup alone come first, then those with the cgroups below it.
  text.remove_prefix(std::min(text.find("\ntotal_") + 1, text.size()));
  usage.swap = amount_of<Bytes>(find_key(text, "total_swap"));
  usage.inactive_file = amount_of<Bytes>(find_key(text, "total_inactive_file"));
}
void parse_memory_stat_v2(std::string_view text, CgroupUsage& usage) {
  usage.inactive_file = amount_of<Bytes>(find_key(text, "inactive_file"));
}
void parse_swap(std::string_view text, CgroupUsage& usage) {
  usage.swap = amount_of<Bytes>(number_in(text));
}
void parse_oom_kills(std::string_view text, CgroupUsage& usage) {
  usage.oom_kills = find_key(text, "oom_kill");
}
void parse_memory_pressure(std::string_view text, CgroupUsage& usage) {
  usage.memory_pressure = parse_pressure(text);
}
void parse_pids(std::string_view text, CgroupUsage& usage) {
  usage.pids = number_in(text);
}

}  // namespace

struct UsageFile {
  core::CgroupVersion version;
  std::string_view controller;  ///< of whose hierarchy it is
  std::string_view name;
  void (*parse)(std::string_view text, CgroupUsage& usage);
};

namespace {

constexpr std::array kUsageFiles = {
    UsageFile{CgroupVersion::kV1, "cpuacct", "cpuacct.usage", parse_cpuacct},
    UsageFile{CgroupVersion::kV1, "cpu", "cpu.stat", parse_cpu_stat},
    UsageFile{CgroupVersion::kV1, "memory", "memory.usage_in_bytes", parse_memory},
    UsageFile{CgroupVersion::kV1, "memory", "memory.stat", parse_memory_stat_v1},
    UsageFile{CgroupVersion::kV1, "memory", "memory.oom_control", parse_oom_kills},
    UsageFile{CgroupVersion::kV1, "pids", "pids.current", parse_pids},
    UsageFile{CgroupVersion::kV2, "cpu", "cpu.stat", parse_cpu_stat},
    UsageFile{CgroupVersion::kV2, "cpu", "cpu.pressure", parse_cpu_pressure},
    UsageFile{CgroupVersion::kV2, "memory", "memory.current", parse_memory},
    UsageFile{CgroupVersion::kV2, "memory", "memory.stat", parse_memory_stat_v2},
    UsageFile{CgroupVersion::kV2, "memory", "memory.swap.current", parse_swap},
    UsageFile{CgroupVersion::kV2, "memory", "memory.events", parse_oom_kills},
    UsageFile{CgroupVersion::kV2, "memory", "memory.pressure", parse_memory_pressure},
    UsageFile{CgroupVersion::kV2, "pids", "pids.current", parse_pids},
};

}  // namespace

void parse_usage(core::CgroupVersion version, std::string_view file, std::string_view text,
                 CgroupUsage& usage) {
  const auto found = std::ranges::find_if(kUsageFiles, [&](const UsageFile& each) {
    return each.version == version && each.name == file;
  });
  if (found != kUsageFiles.end()) found->parse(text, usage);
}

Result<UsageReader> UsageReader::open(std::size_t most_files, const CgroupfsOptions& options) {
  PODQOS_ASSIGN(auto hierarchies, find_hierarchies(options));
  return UsageReader{std::move(hierarchies), most_files};
}

UsageReader::UsageReader(Hierarchies hierarchies, std::size_t most_files)
    : hierarchies_(std::move(hierarchies)), buffer_(kBuffer) {
  for (OpenHierarchy& hierarchy : *hierarchies_) {
    if (!hierarchy.is_usable().value_or(false)) continue;
    for (const UsageFile& file : kUsageFiles)
      if (file.version == hierarchy.description().version && hierarchy.has(file.controller))
        sources_.push_back({.file = &file, .hierarchy = &hierarchy});
  }
  most_kept_ = most_files / std::max<std::size_t>(sources_.size(), 1);
}

UsageReader::Files UsageReader::open_files(const std::string& cgroup) {
  Files files{.opened = std::vector<sys::UniqueFd>(sources_.size())};
  const OpenHierarchy* opened = nullptr;
  Result<sys::Directory> directory = fail(ErrorCode::kNotFound, cgroup);
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    // Those of one hierarchy stand together.
    if (source.hierarchy != std::exchange(opened, source.hierarchy))
      directory = source.hierarchy->directory(cgroup);
    if (!directory) continue;
    auto file = directory->open_any(source.file->name, O_RDONLY | O_NOFOLLOW);
    if (file) files.opened[i] = *std::move(file);
  }
  return files;
}

std::optional<CgroupUsage> UsageReader::read(const Files& files) {
  CgroupUsage usage{.at = std::chrono::steady_clock::now()};
  bool any = false;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (!files.opened[i].valid()) continue;
    const ssize_t size = ::pread(files.opened[i].get(), buffer_.data(), buffer_.size(), 0);
    // The kernel answers so for a file of a cgroup that has been removed.
    if (size < 0 && errno == ENODEV) return std::nullopt;
    if (size < 0) continue;
    any = true;
    sources_[i].file->parse({buffer_.data(), static_cast<std::size_t>(size)}, usage);
  }
  return any ? std::optional{usage} : std::nullopt;
}

std::optional<CgroupUsage> UsageReader::read(const std::string& cgroup) {
  if (const auto kept = kept_.find(cgroup); kept != kept_.end()) {
    kept->second.is_read = true;
    if (auto usage = read(kept->second)) return usage;
    // There may be another one of this name.
    kept_.erase(kept);
  }
  Files files = open_files(cgroup);
  auto usage = read(files);
  if (usage && kept_.size() < most_kept_) kept_.emplace(cgroup, std::move(files));
  return usage;
}

void UsageReader::close_unread() {
  std::erase_if(kept_, [](const auto& kept) { return !kept.second.is_read; });
  for (auto& [cgroup, files] : kept_)
    files.is_read = false;
}

}  // namespace podqos::cgroup
