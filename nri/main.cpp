#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "common/base/text.h"
#include "nri/configuration.h"
#include "nri/connect.h"
#include "nri/http_server.h"
#include "nri/listener.h"
#include "nri/metrics.h"
#include "nri/notify.h"
#include "nri/options.h"
#include "nri/pages.h"
#include "nri/plugin.h"
#include "nri/privileges.h"
#include "nri/service.h"
#include "nri/signals.h"
#include "nri/single_instance.h"

namespace {

using podqos::Error;
using podqos::Status;
namespace nri = podqos::nri;

/// Exit statuses; 2, usage error, comes from parse_options().
constexpr int kDone = 0;
constexpr int kFailed = 1;

/// How long a plugin that a runtime has started waits for a previous one to exit, which notices the
/// end of its runtime only after answering the last request. Below the 5 s that the runtime grants
/// for the registration.
constexpr std::chrono::milliseconds kLaunchPatience{3000};

/// Writes to a standard stream; an error is ignored, because it cannot be reported anywhere.
void print(std::FILE* stream, std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stream));
}

/// Reports an error to standard error, for a start by hand, and to the log, since a runtime that
/// starts the plugin discards standard error.
int report_failure(podqos::app::Log& log, const Error& error) {
  print(stderr, podqos::cat("podqos-nri: ", podqos::app::one_line(error.message), "\n"));
  log.error(error.message);
  return kFailed;
}

/// Handles SIGHUP.
void reload(nri::Configuration& configuration) {
  if (auto done = configuration.reload(); done)
    configuration.log().info("configuration reloaded");
  else
    configuration.log().error(podqos::cat("configuration not reloaded, keeping the previous one: ",
                                          done.error().message));
}

/// Opens the listener for metrics; after an error the plugin runs without.
std::optional<nri::Listener> listen(const std::optional<podqos::core::MetricsAddress>& address,
                                    podqos::app::Log& log) {
  if (!address) return std::nullopt;
  auto listener = nri::Listener::open(*address);
  if (listener) return std::move(*listener);
  log.error(podqos::cat("metrics are disabled: ", listener.error().message));
  return std::nullopt;
}

/// Sets up the plugin and serves runtimes until it is told to stop.
Status run(const nri::Options& options, nri::Configuration& configuration) {
  std::optional<podqos::sys::UniqueFd> launched;
  if (!options.socket) {
    PODQOS_ASSIGN(launched, nri::inherited_socket());
  }
  nri::ConnectionOptions identity;
  identity.index = options.index;
  identity.name = options.name;
  const std::string& state_dir = configuration.settings().state_dir;
  PODQOS_ASSIGN(auto only, nri::SingleInstance::open(state_dir));
  // One that a runtime has started registers in time or never.
  if (launched) PODQOS_TRY(only.hold(kLaunchPatience));
  PODQOS_ASSIGN(const auto notify, nri::Notify::open());
  PODQOS_ASSIGN(auto signals, nri::Signals::open());

  // A new address requires a restart: the sandbox forbids bind(2).
  const auto address = options.metrics ? options.metrics : configuration.settings().metrics;
  const auto listener = listen(address, configuration.log());
  nri::HttpServer http{listener ? listener->fd() : -1};
  nri::Metrics metrics;
  nri::Plugin plugin{configuration, metrics};
  nri::Pages pages{configuration, metrics};
  nri::Service service{
      {.session = std::move(identity),
       .socket = options.socket.value_or(nri::kDefaultSocket),
       .times = {}},
      {.handler = plugin,
       .signals = signals,
       .notify = notify,
       .log = configuration.log(),
       .reload = [&] { reload(configuration); },
       .hold = [&, stood_by = false]() mutable -> Status {
         Status held = only.hold({});
         // The one that has ended had this address.
         if (held && stood_by && address && !listener) {
           return fail(podqos::ErrorCode::kConflict,
                       "another podqos-nri has ended: exiting, so that metrics are enabled when "
                       "this one is started again");
         }
         stood_by = stood_by || !held;
         return held;
       },
       .housekeep = [&] { return plugin.housekeep(); },
       .http = http,
       .page = [&](std::string_view path,
                   const nri::ConnectionStatus& status) { return pages.answer(path, status); }}};
  PODQOS_TRY(nri::join_cgroup_namespace());
  PODQOS_TRY(nri::enter_sandbox());
  return launched ? service.run_launched(std::move(*launched)) : service.run();
}

/// Parses the command line, loads the configuration and runs the plugin.
/// @return the exit status.
int start(int argc, char** argv) {
  const auto parsed = nri::parse_options(argc, argv);
  if (const auto* answer = std::get_if<nri::Answer>(&parsed)) {
    print(answer->status == 0 ? stdout : stderr, answer->text);
    return answer->status;
  }
  const auto& options = std::get<nri::Options>(parsed);
  auto configuration = nri::Configuration::load(options.config);
  if (!configuration) {
    podqos::app::Log log{"podqos-nri", {}};
    return report_failure(log, configuration.error());
  }
  const auto ran = run(options, *configuration);
  return ran ? kDone : report_failure(configuration->log(), ran.error());
}

}  // namespace

int main(int argc, char** argv) {
  ::umask(S_IRWXG | S_IRWXO);
  try {
    return start(argc, argv);
  } catch (const std::exception& exception) {
    print(stderr, podqos::cat("podqos-nri: ", exception.what(), "\n"));
    return kFailed;
  }
}
