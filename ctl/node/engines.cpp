#include "ctl/node/engines.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "common/base/text.h"
#include "common/store/state_directory.h"
#include "common/sys/directory.h"
#include "common/sys/process.h"
#include "ctl/node/machine_facts.h"

namespace podqos::ctl {
namespace {

/// With a program of an engine.
constexpr std::chrono::seconds kPatience{10};

/// A running process of root's of which this is true: any user can give a process a name.
template <class Condition>
std::optional<Pid> find_process(const Condition& is_wanted) {
  std::error_code error;
  for (std::filesystem::directory_iterator each{"/proc", error};
       !error && each != std::filesystem::directory_iterator{}; each.increment(error)) {
    const auto pid = parse_int(each->path().filename().native());
    const auto stat = pid ? sys::stat_of(Pid{*pid}) : fail(ErrorCode::kNotFound, "");
    if (stat && *stat && (*stat)->state != 'Z' && is_wanted(**stat) && sys::is_roots(Pid{*pid}) &&
        sys::shares_pid_namespace(Pid{*pid}))
      return Pid{*pid};
  }
  return std::nullopt;
}

/// The version of the program, or why it is not known.
Result<Version> read_version(const std::string& program, const Run& run) {
  PODQOS_ASSIGN(const auto said, run({program, "--version"}));
  if (const auto version = parse_version(said)) return *version;
  return fail(ErrorCode::kUnsupported, cat(program, " --version says: ", without_newline(said)));
}

/// Methods that the engine may be registered by, those of hooks alone that place no container left
/// out.
std::vector<Method> methods_of(const Setup& setup) {
  std::vector<Method> methods = {Method::kWrapper};
  const auto nri = setup.engine->nri;
  if (nri && setup.plugin_installed && setup.version >= nri) methods.push_back(Method::kNri);
  if (setup.is(EngineId::kPodman)) methods.push_back(Method::kHooks);
  return methods;
}

/// What `configure` would have to add, method by method.
void find_registration(const Setup& like, EngineFacts& facts) {
  std::vector<std::string> files;
  std::vector<Method> older;
  for (const Method method : methods_of(like)) {
    Setup setup{.engine = like.engine, .method = method, .version = like.version};
    const Status planned = plan(setup);
    if (planned && std::ranges::all_of(setup.changes, &FileChange::is_update)) {
      (setup.changed() ? older : facts.registered).push_back(method);
      std::ranges::move(setup.registered_in, std::back_inserter(files));
    }
    if (planned) continue;
    auto& why = planned.error().code == ErrorCode::kAlreadyExists ? facts.wrong : facts.refusal;
    why = planned.error();
  }
  // Podman's two methods share a file.
  if (like.is(EngineId::kPodman) && !facts.registered.empty()) older.clear();
  facts.outdated = !older.empty();
  std::ranges::copy(older, std::back_inserter(facts.registered));
  if (!facts.registered.empty()) facts.refusal.reset();
  if (facts.process) facts.unread = unread_file(files, *facts.process);
  const auto need = [&](Method method, std::string program) {
    if (facts.is_registered(method) && ::access(program.c_str(), X_OK) != 0)
      facts.missing.push_back(std::move(program));
  };
  need(Method::kWrapper, std::string{kWrapperPath});
  need(Method::kHooks, kHookPath);
}

/// What is known of an engine; nullopt if it is not installed.
/// @param facts  with the engine, and what is known of the plugin
std::optional<EngineFacts> read_engine(EngineFacts facts, const Units& units, const Run& run) {
  const Engine& engine = *facts.engine;
  Setup setup{.engine = &engine};
  auto program = find_program(engine);
  if (program && !*program) return std::nullopt;
  auto version = program ? read_version(**program, run) : fail(program.error());
  if (version)
    facts.version = setup.version = *version;
  else
    facts.unknown = std::move(version).error();
  if (const auto unit = units.find(engine.service); unit != units.end())
    facts.process = unit->second.process;
  // A DaemonSet installs nothing.
  setup.plugin_installed = facts.plugin || setup.files.exists(kPlugin);
  // It may be no unit of systemd's.
  if (facts.has_daemon() && !facts.process)
    facts.process =
        find_process([&](const sys::ProcStat& stat) { return stat.name == engine.program; });
  find_registration(setup, facts);
  auto settings = engine.inspect(setup);
  if (settings)
    facts.settings = *std::move(settings);
  else if (!facts.refusal)
    facts.refusal = std::move(settings).error();
  if (engine.id != EngineId::kDocker || !facts.process) return facts;
  facts.docker = ::geteuid() == 0 ? ask_docker(run)
                                  : fail(ErrorCode::kNotFound, "run as root (sudo podqosctl …)");
  if (*facts.docker) {
    facts.settings.driver = (*facts.docker)->driver == core::format_driver(core::Driver::kSystemd)
                                ? core::Driver::kSystemd
                                : core::Driver::kCgroupfs;
    facts.settings.is_default = (*facts.docker)->default_runtime == kHandler;
  }
  return facts;
}

}  // namespace

Result<std::string> run_briefly(const std::vector<std::string>& argv) {
  return run_program(argv, 0, kPatience);
}

std::vector<std::string> units_of_engines() {
  std::vector<std::string> names = {kPluginUnit};
  for (const Engine& engine : engines())
    if (!engine.service.empty()) names.emplace_back(engine.service);
  return names;
}

std::optional<PluginFacts> read_plugin(const std::string& state_dir,
                                       const std::optional<UnitState>& unit) {
  constexpr std::size_t kLongest = std::size_t{64} << 10U;
  std::optional<PluginFacts> found;
  const auto directory = sys::Directory::open(state_dir);
  if (const auto text = directory ? directory->read_file(store::kPluginFile, kLongest)
                                  : fail(directory.error())) {
    const LockFacts lock = read_lock(cat(state_dir, "/", store::kPluginFile));
    std::string_view lines = *text;
    read_until(lines, '\n');
    found = PluginFacts{};
    if (lock.holder)
      return PluginFacts{.process = lock.holder, .status = std::string{read_until(lines, '\n')}};
  }
  if (!unit || !unit->active) return found;
  return PluginFacts{.process = unit->process, .status = unit->status};
}

std::vector<EngineFacts> read_engines(const Units& units, const std::string& state_dir,
                                      const Run& run) {
  EngineFacts shared;
  if (const auto unit = units.find(kPluginUnit); unit != units.end()) shared.unit = unit->second;
  shared.plugin = read_plugin(state_dir, shared.unit);
  std::vector<EngineFacts> found;
  for (const Engine& engine : engines()) {
    shared.engine = &engine;
    if (auto facts = read_engine(shared, units, run)) found.push_back(*std::move(facts));
  }
  return found;
}

}  // namespace podqos::ctl
