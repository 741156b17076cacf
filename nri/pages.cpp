#include "nri/pages.h"

#include <utility>

#include "common/app/node_figures.h"
#include "common/base/text.h"
#include "common/store/store.h"

namespace podqos::nri {

namespace {

/// How long metrics of the node are reused, so that frequent scrapes do not delay the runtime.
constexpr std::chrono::milliseconds kNodeLifetime{1000};
/// The content type of Prometheus' text format.
constexpr const char* kExposition = "text/plain; version=0.0.4; charset=utf-8";

/// A page of one line.
HttpAnswer text(std::string_view status, std::string body) {
  return {.status = status, .body = std::move(body) + "\n"};
}

}  // namespace

HttpAnswer Pages::answer(std::string_view path, const ConnectionStatus& status) {
  if (path == "/metrics") return metrics(status);
  if (path == "/healthz") return text(kHttpOk, "ok");
  if (path == "/readyz" && status.standby) return text(kHttpOk, "standby");
  if (path == "/readyz")
    return status.synchronized ? text(kHttpOk, "ok") : text(kHttpUnavailable, status.obstacle);
  return text(kHttpNotFound, "not found: expected one of /metrics, /healthz, /readyz");
}

HttpAnswer Pages::metrics(const ConnectionStatus& status) {
  Exposition out;
  out.metric("gauge", "podqos_build_info", "1, with the version of podqos-nri as a label.");
  out.sample({{"version", PODQOS_VERSION}}, 1);
  out.single("gauge", "podqos_nri_connected", "Whether podqos-nri has a connection to the runtime.",
             status.connected ? 1 : 0);
  out.single("gauge", "podqos_nri_synchronized",
             "1 if synchronized with the runtime, which sends it each container.",
             status.synchronized ? 1 : 0);
  out.single("counter", "podqos_nri_connections_total",
             "Connections to the runtime since podqos-nri started.",
             static_cast<double>(status.connections));
  metrics_.write(out);
  return {
      .status = kHttpOk, .content_type = kExposition, .body = std::move(out).release() + node()};
}

const std::string& Pages::node() {
  const auto now = clock_.now();
  if (node_read_ && now - *node_read_ < kNodeLifetime) return node_;
  const auto read = [&]() -> Result<app::NodeFigures> {
    const core::Settings& settings = configuration_.settings();
    // Without state there are no pods yet: all counts are 0.
    PODQOS_ASSIGN(auto records,
                  store::Store::open({.path = settings.state_dir}, store::Opening::kReadUnlocked));
    return app::node_figures(settings, records);
  };
  auto figures = read();
  const std::string reason =
      figures ? figures->incidents : cat("metrics omit pods and tiers: ", figures.error().message);
  // Logged once per reason: pages are requested again and again.
  if (!reason.empty() && reason != last_failure_) configuration_.log().warning(reason);
  last_failure_ = reason;
  Exposition out;
  write_node_metrics(figures ? std::optional{std::move(*figures)} : std::nullopt, out);
  node_ = std::move(out).release();
  node_read_ = clock_.now();
  return node_;
}

}  // namespace podqos::nri
