#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <malloc.h>

#include "common/base/text.h"
#include "common/store/state_directory.h"
#include "nri/http_server.h"
#include "nri/notify.h"
#include "nri/options.h"
#include "nri/pages.h"
#include "nri/plugin.h"
#include "nri/plugin_configuration.h"
#include "nri/plugin_metrics.h"
#include "nri/plugin_process.h"
#include "nri/service.h"
#include "nri/sockets.h"

namespace {

using podqos::Error;
using podqos::Status;
namespace nri = podqos::nri;

/// Exit statuses; 2, usage error, comes from parse_options().
constexpr int kDone = 0;
constexpr int kFailed = 1;

/// Writes to a standard stream; an error is ignored, because it cannot be reported anywhere.
void print(std::FILE* stream, const std::string& text) {
  static_cast<void>(std::fputs(text.c_str(), stream));
}

/// Reports an error to standard error, for a start by hand, and to the log.
int report_failure(podqos::app::Log& log, const Error& error) {
  print(stderr, podqos::cat("podqos-nri: ", podqos::app::one_line(error.message), "\n"));
  log.error(error.message);
  return kFailed;
}

/// Opens the socket for metrics; after an error the plugin runs without.
podqos::sys::UniqueFd listen(const std::optional<podqos::core::MetricsAddress>& address,
                             podqos::app::Log& log) {
  if (!address) return {};
  auto listener = nri::listen_at(*address);
  if (listener) return std::move(*listener);
  log.error(podqos::cat("metrics are disabled: ", listener.error().message));
  return {};
}

/// @return kUnsupported if a runtime has started this program, of those in its directory of plugins
///         (containerd/nri, pkg/api/plugin.go)
Status check_starter() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the plugin has one thread
  if (std::getenv("NRI_PLUGIN_SOCKET") == nullptr) return {};
  return fail(podqos::ErrorCode::kUnsupported,
              "NRI_PLUGIN_SOCKET is set, as by a runtime for what is in its directory of plugins: "
              "remove podqos-nri from there (/opt/nri/plugins) and run `systemctl enable --now "
              "podqos-nri.service`");
}

/// Sets up the plugin and serves runtimes until it is told to stop.
Status run(const nri::Options& options, nri::Configuration& configuration) {
  PODQOS_TRY(check_starter());
  const std::string state_dir = configuration.settings().state_dir;
  std::optional<podqos::sys::FileLock> only;
  // A state directory of no use fails the start, not a service that is up.
  PODQOS_TRY(podqos::store::make_state_directory(state_dir));
  PODQOS_ASSIGN(const auto notify, nri::Notify::open());
  PODQOS_ASSIGN(const auto signals, nri::open_signals());

  // A new address requires a restart: the sandbox forbids bind(2).
  const auto address = options.metrics ? options.metrics : configuration.settings().metrics;
  const auto listener = listen(address, configuration.log());
  nri::HttpServer http{listener.get()};
  nri::Metrics metrics;
  nri::Plugin plugin{configuration, metrics};
  nri::Pages pages{configuration, metrics};
  const auto hold = [&, stood_by = false]() mutable -> Status {
    auto lock = nri::lock_single_instance(state_dir);
    // The one that has ended had this address.
    if (lock && stood_by && address && !listener.valid()) {
      return fail(podqos::ErrorCode::kConflict,
                  "another podqos-nri has ended: exiting, so that metrics are enabled when this "
                  "one is started again");
    }
    stood_by = true;
    PODQOS_ASSIGN(only, std::move(lock));
    return {};
  };
  nri::Service service{
      {.session = {.index = options.index, .name = options.name},
       .socket = options.socket.value_or(nri::kDefaultSocket),
       .times = {}},
      {.handler = plugin,
       .signals = signals.get(),
       .notify = notify,
       .log = configuration.log(),
       .reload = [&] { configuration.reload(); },
       .hold = hold,
       // Without it podqosctl says less.
       .record =
           [&](std::string_view text) {
             static_cast<void>(nri::write_status(state_dir, text).has_value());
           },
       .housekeep = [&] { return plugin.housekeep(); },
       .http = http,
       .page = [&](std::string_view path,
                   const nri::ConnectionStatus& status) { return pages.answer(path, status); }}};
  PODQOS_TRY(nri::join_cgroup_namespace());
  PODQOS_TRY(nri::enter_sandbox());
  const auto ran = service.run();
  // While it is open, no other plugin has replaced its file.
  const auto* socket = address ? std::get_if<podqos::core::UnixSocket>(&*address) : nullptr;
  if (socket != nullptr && listener.valid())
    static_cast<void>(::unlinkat(AT_FDCWD, socket->path.c_str(), 0));
  return ran;
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
  ::umask(S_IWGRP | S_IWOTH);
  // Blocks of this size are returned when they are freed; by default each raises the limit for the
  // next ones, and a Synchronize stays resident.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the plugin has one thread
  static_cast<void>(::mallopt(M_MMAP_THRESHOLD, 128 << 10));
  try {
    return start(argc, argv);
  } catch (const std::exception& exception) {
    print(stderr, podqos::cat("podqos-nri: ", exception.what(), "\n"));
    return kFailed;
  }
}
