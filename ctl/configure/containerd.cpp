#include <algorithm>
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
/// containerd reads imports of imports; this many files are nobody's intention.
constexpr std::size_t kMaxImports = 256;

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

/// The files that the imports of a document name.
/// @param directory  is set to the first of which every *.toml is read, unless it is set already
Result<std::vector<std::string>> expand_imports(const TomlDocument& document,
                                                const EngineFiles& files,
                                                std::optional<std::string>& directory) {
  std::vector<std::string> found;
  const TomlValue imports = document.at("imports");
  if (!imports) return found;
  if (!imports.node->is_array())
    return fail(ErrorCode::kInvalidArgument, cat(imports.place, ": imports is not a list"));
  for (const toml::node& each : *imports.node->as_array()) {
    const std::string pattern = each.value_exact<std::string>().value_or("");
    const std::string path =
        pattern.starts_with('/') ? pattern : cat(kContainerdDirectory, "/", pattern);
    const std::string parent = path.substr(0, path.rfind('/'));
    const std::string name = path.substr(parent.size() + 1);
    if (name.empty() || parent.find_first_of("*?[\\") != std::string::npos)
      return fail(ErrorCode::kUnsupported,
                  cat(imports.place, ": cannot follow the import \"", printable(pattern), "\""));
    if (!directory && (name == "*.toml" || name == "*")) directory = parent;
    PODQOS_ASSIGN(const auto entries, files.list(parent));
    std::ranges::copy_if(entries, std::back_inserter(found), [&](const std::string& entry) {
      return ::fnmatch(path.c_str(), entry.c_str(), FNM_PATHNAME) == 0;
    });
  }
  return found;
}

/// Reads config.toml and all that it imports.
Result<ContainerdFiles> read_all_documents(const EngineFiles& files) {
  ContainerdFiles found;
  std::vector<std::string> paths = {kContainerdConfig};
  std::optional<std::string> of_imported;  // podqos's drop-in is one that config.toml imports
  for (std::size_t next = 0; next < paths.size(); ++next) {
    PODQOS_ASSIGN(auto document, read_others(files, paths[next]));
    PODQOS_ASSIGN(
        const auto imports,
        expand_imports(document, files, next == 0 ? found.drop_in_directory : of_imported));
    for (const std::string& each : imports)
      if (std::ranges::find(paths, each) == paths.end()) paths.push_back(each);
    if (paths.size() > kMaxImports)
      return fail(ErrorCode::kTooLarge,
                  cat(kContainerdConfig, ": imports more than ", kMaxImports, " files"));
    found.documents.push_back(std::move(document));
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
    return fail(ErrorCode::kUnsupported,
                cat(version.place,
                    ": config version 1 is not supported: run `containerd config migrate`, "
                    "or write \"version = 2\" into the first line of a file without tables"));
  const std::int64_t newest = !found.merges() ? 2 : found.version >= kFormat4 ? 4 : 3;
  if (format >= 2 && format <= newest) return format;
  return fail(
      ErrorCode::kUnsupported,
      cat(version.place, ": unsupported config version ", format, " (containerd ",
          format_version(found.version), ": ", newest == 2 ? "2" : cat("2 to ", newest),
          "); if its tables have the same names, ", by_hand(handler_lines(newest, false, true))));
}

/// Fails if disabled_plugins switches one of these off.
Status check_enabled(const ContainerdFiles& found, std::initializer_list<std::string_view> names,
                     std::string_view remedy) {
  for (const TomlDocument& document : found.documents) {
    const TomlValue disabled = document.at("disabled_plugins");
    for (const std::string_view name : names)
      if (disabled.lists(name))
        return fail(ErrorCode::kUnsupported,
                    cat(disabled.place, ": \"", name, "\" is disabled", remedy));
  }
  return {};
}

Result<ContainerdFiles> read_containerd(const Registration& registration) {
  if (!registration.version)
    return fail(ErrorCode::kInvalidArgument,
                "containerd's version is unknown; set it with --engine-version");
  PODQOS_ASSIGN(auto found, read_all_documents(registration.files));
  found.version = *registration.version;
  // Docker's package of containerd comes so.
  PODQOS_TRY(check_enabled(found, {"cri", kCriPlugin2, kCriPlugin3},
                           ", and this containerd starts no pods: remove it from "
                           "disabled_plugins, or for Docker run `podqosctl configure docker`"));
  PODQOS_ASSIGN(const auto state, registration.files.read(kContainerdConfig));
  PODQOS_ASSIGN(found.format, format_of(found, state.exists(), registration.method));
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
Status add_containerd_lines(Registration& registration, const ContainerdFiles& found,
                            const std::string& table, std::string text) {
  const bool is_nri = registration.method == Method::kNri;
  const std::string version = cat("version = ", found.format, "\n");
  const std::string block = is_nri ? "nri" : "wrapper";
  const std::string what = is_nri ? "table for NRI" : "handler \"podqos\"";
  PODQOS_ASSIGN(const auto config, registration.files.read(kContainerdConfig));
  if (found.drop_in_directory && (is_nri || found.merges()) && !has_block(config.text, block))
    return add_lines(registration, {.path = cat(*found.drop_in_directory,
                                                is_nri ? kContainerdNriDropIn : kHandlerDropIn),
                                    .text = cat(version, "\n", text),
                                    .what = what});
  return add_lines(registration, {.path = kContainerdConfig,
                                  .text = std::move(text),
                                  .what = what,
                                  .block = block,
                                  .base = version,
                                  .place = found.main().at(table).place});
}

Status plan_handler(Registration& registration, const ContainerdFiles& found) {
  const std::string runtimes = cat(found.cri(), "/runtimes");
  const std::string handler = cat(runtimes, "/", kHandler);
  PODQOS_ASSIGN(const bool there,
                is_there_by_hand(registration, found.documents, handler, "/options/BinaryName"));
  if (there) return {};
  const bool with_runc = found.format == 2 && !last_of(found.documents, runtimes);
  std::string lines = handler_lines(found.format, with_runc, uses_systemd(found));
  // containerd 1.x: an imported table of CRI is the whole one.
  const TomlValue last = last_of(found.documents, cat("plugins/", kCriPlugin2));
  if (!found.merges() && last && last.file != kContainerdConfig)
    return fail(ErrorCode::kConflict,
                cat(last.place, ": replaces table \"", kCriPlugin2, "\" of ", kContainerdConfig,
                    " (containerd 1.x does not merge imports); ", by_hand(lines)));
  return add_containerd_lines(registration, found, handler, std::move(lines));
}

Status plan_containerd_nri(Registration& registration, const ContainerdFiles& found) {
  PODQOS_TRY(check_enabled(found, {"nri", kNriPlugin}, ": remove it from disabled_plugins"));
  const std::string path = cat("plugins/", kNriPlugin);
  const TomlValue table = last_of(found.documents, path);
  PODQOS_TRY(check_nri(found.documents, path,
                       {{.key = "disable", .wanted = false, .unset = !table || found.merges()},
                        {.key = "disable_connections", .wanted = false}}));
  if (!table && !found.merges())
    return add_containerd_lines(registration, found, path, std::string{kContainerdNri});
  note_nri(registration, kContainerdConfig, table);
  return {};
}

}  // namespace

Status plan_containerd(Registration& registration) {
  PODQOS_ASSIGN(const auto found, read_containerd(registration));
  return registration.method == Method::kNri ? plan_containerd_nri(registration, found)
                                             : plan_handler(registration, found);
}

Status plan_containerd_removal(Registration& registration) {
  PODQOS_ASSIGN(const auto found, read_all_documents(registration.files));
  for (const std::string_view plugin : {kCriPlugin2, kCriPlugin3})
    PODQOS_TRY(check_not_default(found.documents,
                                 cat("plugins/", plugin, "/containerd/default_runtime_name")));
  PODQOS_TRY(remove_lines(registration, kContainerdConfig));
  // The first is where containerd's own default looks, whatever "imports" says today.
  std::set<std::string> directories = {kContainerdDropIns};
  if (found.drop_in_directory) directories.insert(*found.drop_in_directory);
  for (const std::string& directory : directories) {
    for (const std::string_view name : {kHandlerDropIn, kContainerdNriDropIn})
      PODQOS_TRY(remove_lines(registration, cat(directory, name)));
    registration.registered_in.push_back(directory);
  }
  registration.registered_in.emplace_back(kContainerdConfig);
  return {};
}

}  // namespace podqos::ctl
