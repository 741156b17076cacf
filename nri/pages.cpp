#include "nri/pages.h"

#include <utility>

#include "common/app/node_metrics.h"
#include "common/codec/exposition.h"

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
  codec::Exposition out;
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
  app::NodeMetrics metrics = app::node_metrics(configuration_.settings());
  // Logged once per reason: pages are requested again and again.
  std::string& reason = metrics.error ? metrics.error->message : metrics.incidents;
  if (!reason.empty() && reason != last_failure_) configuration_.log().warning(reason);
  last_failure_ = std::move(reason);
  node_ = std::move(metrics.text);
  node_read_ = clock_.now();
  return node_;
}

}  // namespace podqos::nri
