#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fnmatch.h>

#include "common/base/text.h"
#include "ctl/configure/lines.h"
#include "podqos_examples.h"

namespace podqos::ctl {
namespace {

constexpr const char* kContainerdDirectory = "/etc/containerd";
constexpr const char* kContainerdConfig = "/etc/containerd/config.toml";
constexpr const char* kContainerdDropIns = "/etc/containerd/conf.d";
constexpr std::string_view kHandlerDropIn = "/50-podqos.toml";
constexpr std::string_view kContainerdNriDropIn = "/60-podqos-nri.toml";
constexpr std::string_view kNriPlugin = "io.containerd.nri.v1.nri";
/// The plugin that starts pods, in a configuration of version 2 and 3.
constexpr std::string_view kCriPlugin2 = "io.containerd.grpc.v1.cri";
constexpr std::string_view kCriPlugin3 = "io.containerd.cri.v1.runtime";
/// From this version on files that "imports" names are merged table by table; before it a plugin's
/// table in one of them replaces that of config.toml (containerd #5837).
constexpr Version kMerging{.major = 2, .minor = 0};
/// From this version on a configuration may be of version 4, with the tables of version 3.
constexpr Version kFormat4{.major = 2, .minor = 3};
/// containerd's configuration as its owner wrote it, without podqos's lines.
struct ContainerdFiles {
  Version version;
  std::int64_t format = 0;                       ///< "version"
  std::vector<TomlDocument> documents;           ///< config.toml, then what it imports, in order
  std::optional<std::string> drop_in_directory;  ///< the first that "imports" reads *.toml from

  [[nodiscard]] const TomlDocument& main() const { return documents.front(); }
  [[nodiscard]] bool merges() const { return version >= kMerging; }
  /// The path of CRI's table "containerd".
  [[nodiscard]] std::string cri() const {
    return cat("plugins/", format == 2 ? kCriPlugin2 : kCriPlugin3, "/containerd");
  }
};

/// Reads config.toml and all that it and its imports import.
Result<ContainerdFiles> read_all_documents(const EngineFiles& files) {
  ContainerdFiles found;
  std::vector<std::string> paths = {kContainerdConfig};
  for (std::size_t next = 0; next < paths.size(); ++next) {
    PODQOS_ASSIGN(found.documents.emplace_back(), read_others(files, paths[next]));
    const TomlValue imports = found.documents.back().at("imports");
    const auto patterns = imports.strings();
    if (imports && !patterns) return refuse(imports.place, ": imports is not a list");
    for (const std::string& each : patterns.value_or(std::vector<std::string>{})) {
      const std::filesystem::path pattern = std::filesystem::path{kContainerdDirectory} / each;
      const std::string parent = pattern.parent_path();
      if (!pattern.has_filename() || parent.find_first_of("*?[\\") != std::string::npos)
        return refuse(imports.place, ": cannot follow the import \"", printable(each), "\"");
      const bool is_any = pattern.filename() == "*.toml" || pattern.filename() == "*";
      if (next == 0 && is_any && !found.drop_in_directory) found.drop_in_directory = parent;
      PODQOS_ASSIGN(const auto entries, files.list(parent));
      for (const std::string& entry : entries)
        if (::fnmatch(pattern.c_str(), entry.c_str(), FNM_PATHNAME) == 0 &&
            std::ranges::find(paths, entry) == paths.end())
          paths.push_back(entry);
    }
  }
  return found;
}

/// The handler's tables, as examples/containerd has them.
/// @param with_runc  containerd 1.x knows only handlers that are named as soon as one is
std::string handler_lines(std::int64_t format, bool with_runc, bool systemd_driver) {
  constexpr std::string_view kSystemd = "SystemdCgroup = true";
  std::string text{format == 2 ? kContainerdHandler2 : kContainerdHandler3};
  if (!with_runc) text.erase(0, text.rfind('[', text.find(cat(".", kHandler, "]"))));
  if (!systemd_driver) text.replace(text.find(kSystemd), kSystemd.size(), "SystemdCgroup = false");
  return text;
}

/// "version" of config.toml, within what this containerd and podqos know.
Result<std::int64_t> format_of(const ContainerdFiles& found, bool exists, Method method) {
  // NRI is on, and needs no table of any version.
  if (found.merges() && (!exists || method == Method::kNri)) return 3;
  if (!exists) return 2;
  const TomlValue version = found.main().at("version");
  const std::int64_t format = version ? version.node->value_exact<std::int64_t>().value_or(1) : 1;
  if (format == 1)
    return refuse(version.place,
                  ": config version 1 is not supported: run `containerd config migrate`, "
                  "or write \"version = 2\" into the first line of a file without tables");
  const std::int64_t newest = !found.merges() ? 2 : found.version >= kFormat4 ? 4 : 3;
  if (format >= 2 && format <= newest) return format;
  return refuse(version.place, ": unsupported config version ", format, " (containerd ",
                format_version(found.version), ": ", newest == 2 ? "2" : cat("2 to ", newest),
                "); if its tables have the same names, ",
                by_hand(handler_lines(newest, false, true)));
}

/// Fails if disabled_plugins switches one of these off.
Status check_enabled(const ContainerdFiles& found, std::initializer_list<std::string_view> names,
                     std::string_view remedy) {
  for (const TomlDocument& document : found.documents) {
    const TomlValue disabled = document.at("disabled_plugins");
    for (const std::string_view name : names)
      if (disabled.lists(name))
        return refuse(disabled.place, ": \"", name, "\" is disabled", remedy);
  }
  return {};
}

Result<ContainerdFiles> read_containerd(const Setup& setup) {
  if (!setup.version)
    return refuse("containerd's version is unknown; set it with --engine-version");
  PODQOS_ASSIGN(auto found, read_all_documents(setup.files));
  found.version = *setup.version;
  // Docker's package of containerd comes so.
  PODQOS_TRY(check_enabled(found, {"cri", kCriPlugin2, kCriPlugin3},
                           ", and this containerd starts no pods: remove it from "
                           "disabled_plugins, or for Docker run `podqosctl configure docker`"));
  PODQOS_ASSIGN(const auto state, setup.files.read(kContainerdConfig));
  PODQOS_ASSIGN(found.format, format_of(found, state.exists(), setup.method));
  return found;
}

/// Whether containerd's default handler uses systemd's driver; without a word about it, it does
/// not.
bool uses_systemd(const ContainerdFiles& found) {
  const TomlValue name = last_of(found.documents, cat(found.cri(), "/default_runtime_name"));
  return last_of(found.documents, cat(found.cri(), "/runtimes/", name ? name.text() : "runc",
                                      "/options/SystemdCgroup"))
      .flag()
      .value_or(false);
}

/// Plans a file of podqos's own if containerd merges one, else a block in config.toml; there, too,
/// if it stands there already.
Status add_containerd_lines(Setup& setup, const ContainerdFiles& found, const std::string& table,
                            std::string text) {
  const bool is_nri = setup.method == Method::kNri;
  const std::string version = cat("version = ", found.format, "\n");
  const std::string block = is_nri ? "nri" : "wrapper";
  const std::string what = is_nri ? "table for NRI" : "handler \"podqos\"";
  PODQOS_ASSIGN(const auto config, setup.files.read(kContainerdConfig));
  const bool is_there = config.text.contains(cat("# podqos: begin ", block));
  if (found.drop_in_directory && (is_nri || found.merges()) && !is_there)
    return add_lines(setup, {.path = cat(*found.drop_in_directory,
                                         is_nri ? kContainerdNriDropIn : kHandlerDropIn),
                             .text = cat(version, "\n", text),
                             .what = what});
  return add_lines(setup, {.path = kContainerdConfig,
                           .text = std::move(text),
                           .what = what,
                           .block = block,
                           .base = version,
                           .place = found.main().at(table).place});
}

Status plan_handler(Setup& setup, const ContainerdFiles& found) {
  const std::string runtimes = cat(found.cri(), "/runtimes");
  const std::string handler = cat(runtimes, "/", kHandler);
  PODQOS_ASSIGN(const bool there,
                is_there_by_hand(setup, found.documents, handler, "/options/BinaryName"));
  if (there) return {};
  const bool with_runc = found.format == 2 && !last_of(found.documents, runtimes);
  std::string lines = handler_lines(found.format, with_runc, uses_systemd(found));
  // containerd 1.x: an imported table of CRI is the whole one.
  const TomlValue last = last_of(found.documents, cat("plugins/", kCriPlugin2));
  if (!found.merges() && last && last.file != kContainerdConfig)
    return refuse(last.place, ": replaces table \"", kCriPlugin2, "\" of ", kContainerdConfig,
                  " (containerd 1.x does not merge imports); ", by_hand(lines));
  return add_containerd_lines(setup, found, handler, std::move(lines));
}

Status plan_containerd_nri(Setup& setup, const ContainerdFiles& found) {
  PODQOS_TRY(check_enabled(found, {"nri", kNriPlugin}, ": remove it from disabled_plugins"));
  const std::string path = cat("plugins/", kNriPlugin);
  const TomlValue table = last_of(found.documents, path);
  PODQOS_TRY(check_nri(found.documents, path,
                       {{.key = "disable", .wanted = false, .unset = !table || found.merges()},
                        {.key = "disable_connections", .wanted = false}}));
  if (!table && !found.merges())
    return add_containerd_lines(setup, found, path, std::string{kContainerdNri});
  note_nri(setup, kContainerdConfig, table);
  return {};
}

Status plan_containerd_removal(Setup& setup) {
  PODQOS_ASSIGN(const auto found, read_all_documents(setup.files));
  for (const std::string_view plugin : {kCriPlugin2, kCriPlugin3})
    PODQOS_TRY(check_not_default(found.documents,
                                 cat("plugins/", plugin, "/containerd/default_runtime_name")));
  PODQOS_TRY(remove_lines(setup, kContainerdConfig));
  // The first is where containerd's own default looks, whatever "imports" says today.
  std::set<std::string> directories = {kContainerdDropIns};
  if (found.drop_in_directory) directories.insert(*found.drop_in_directory);
  for (const std::string& directory : directories) {
    for (const std::string_view name : {kHandlerDropIn, kContainerdNriDropIn})
      PODQOS_TRY(remove_lines(setup, cat(directory, name)));
    setup.registered_in.push_back(directory);
  }
  setup.registered_in.emplace_back(kContainerdConfig);
  return {};
}

}  // namespace

Status plan_containerd(Setup& setup) {
  if (setup.undo) return plan_containerd_removal(setup);
  PODQOS_ASSIGN(const auto found, read_containerd(setup));
  return setup.method == Method::kNri ? plan_containerd_nri(setup, found)
                                      : plan_handler(setup, found);
}

}  // namespace podqos::ctl
