#include "ctl/inventory_view.h"

#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <memory>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/store/memory_store.h"
#include "common/store/state_copy.h"
#include "ctl/inventory.h"

namespace podqos::ctl {
namespace {

/// The ownership marks on cgroups are trusted.* attributes, readable with this capability only
/// (xattr(7)).
constexpr std::array kKept = {CAP_SYS_ADMIN};

/// Reads the records under the lock, which is held no longer, so that a slow terminal delays no
/// container.
Result<NodeRecords> read_records(const core::Settings& settings) {
  PODQOS_ASSIGN(
      auto copy,
      store::copy_state({.path = settings.state_dir,
                         .lock_timeout = std::chrono::milliseconds{settings.lock_deadline_ms}}));
  NodeRecords records;
  if (!copy) return records;
  store::MemoryStore store{copy->records, [](const auto&) -> Status { return {}; }};
  copy->lock.reset();
  PODQOS_ASSIGN(auto uids, store.pod_uids());
  for (const std::string& uid : uids) {
    auto pod = store.pod(uid);
    if (!pod) {
      records.warnings.push_back(pod.error().message);
    } else if (*pod) {
      records.pods.push_back(std::move(**pod));
    }
  }
  records.tiers = store.tiers();
  if (store.dirty())
    records.warnings.emplace_back(
        "the last transaction was interrupted and the sums may be wrong: run podqosctl reconcile");
  std::ranges::copy(store.incidents(), std::back_inserter(records.warnings));
  return records;
}

/// What is wrong with the configuration, the view, and what is wrong with the pods.
std::string view_text(const app::ConfigurationReport& configuration, const Json& view,
                      TextOfView text, ColourMode mode) {
  std::string out = cat(format_notices(configuration, mode), text(view, mode));
  for (const Json& warning : view.at("warnings"))
    out += cat(paint(cell("warning: ", Colour::kRed), mode), warning.get_ref<const std::string&>(),
               "\n");
  return out;
}

}  // namespace

Result<Json> read_inventory(const app::ConfigurationReport& configuration) {
  PODQOS_ASSIGN(auto records, read_records(configuration.settings));
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  return inventory_json(configuration, std::move(records), cgroups);
}

std::string format_notices(const app::ConfigurationReport& configuration, ColourMode mode) {
  std::string out;
  for (const std::string& error : configuration.errors)
    out += cat(paint(cell("error: ", Colour::kRed), mode), error, "\n");
  const std::string warning = paint(cell("warning: ", Colour::kRed), mode);
  if (!configuration.errors.empty())
    out += cat(warning,
               "with errors in the configuration, podqos-hook and podqos-runtime leave new "
               "containers unmanaged\n");
  for (const std::string& ignored : configuration.ignored)
    out += cat(warning, ignored, ": not read: the names of files in conf.d end in .json\n");
  if (!configuration.settings.enabled) out += cat(warning, kSwitchedOff, "\n");
  return out;
}

Command add_view(CLI::App& app, const Globals& globals, TextOfView text, const std::string& name,
                 const std::string& description) {
  auto options = std::make_shared<OutputOptions>();
  CLI::App* sub = app.add_subcommand(name, description);
  add_coloured_output(*sub, *options);
  return {.app = sub, .run = [options, &globals, text]() -> Result<int> {
            // Nothing untrusted is parsed before the restriction.
            PODQOS_TRY(narrow(kKept));
            const app::ConfigurationReport configuration =
                app::inspect_configuration(globals.config);
            const auto view = read_inventory(configuration);
            if (!view) {
              std::ranges::for_each(configuration.errors, warn);
              return fail(for_root(view.error()));
            }
            const int status = finish(
                print(options->is_json() ? dump(*view) + "\n"
                                         : view_text(configuration, *view, text, options->mode())));
            return configuration.errors.empty() ? status : kRefused;
          }};
}

std::string pod_title(const Json& pod) {
  const std::string& name = text_in(pod, "name");
  const std::string& space = text_in(pod, "namespace");
  if (name.empty()) return printable(text_in(pod, "uid"));
  return cat(printable(space), space.empty() ? "" : "/", printable(name));
}

const std::string& text_in(const Json& object, const char* key) {
  return object.at(key).get_ref<const std::string&>();
}

std::string number_in(const Json& object, const char* key) {
  return object.at(key).is_null() ? "-" : object.at(key).dump();
}

std::string bytes_in(const Json& object, const char* key) {
  const Json& value = object.at(key);
  return value.is_null() ? "-" : format_bytes(Bytes{value.get<std::int64_t>()});
}

}  // namespace podqos::ctl
