#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "ctl/cli/table.h"
#include "ctl/node/engines.h"

// What follows from the facts of an engine.
namespace podqos::ctl {
namespace {

using enum Outcome;

/// The pods of packaging/kubernetes.
constexpr const char* kDaemonSet = " -n kube-system -l app.kubernetes.io/name=podqos-nri";

/// Collects the checks of one engine.
class EngineChecks {
 public:
  explicit EngineChecks(const EngineFacts& facts) : facts_(facts), engine_(*facts.engine) {}

  Findings check() {
    check_version();
    check_registered();
    for (const std::string& program : facts_.missing)
      add("programs", kProblem, cat(program, " is registered and does not exist"),
          "install the package podqos again");
    if (facts_.registered.empty()) return std::move(checks_);
    check_known();
    if (facts_.is_registered(Method::kNri)) check_plugin();
    check_default();
    std::ranges::copy(facts_.settings.checks, std::back_inserter(checks_));
    return std::move(checks_);
  }

 private:
  void add(const char* name, Outcome outcome, std::string text, std::string remedy = {}) {
    checks_.push_back({.group = std::string{engine_.name},
                       .name = name,
                       .outcome = outcome,
                       .text = std::move(text),
                       .remedy = std::move(remedy)});
  }

  [[nodiscard]] std::string configure(std::string_view words) const {
    return cat("podqosctl configure ", engine_.name, engine_.service.empty() ? "" : words);
  }

  void check_version() {
    if (!facts_.unknown) return;
    const auto& [code, why] = *facts_.unknown;
    const bool is_slow = code == ErrorCode::kTimeout;
    add("version", is_slow ? kSkipped : kProblem, shorten(why, 500),
        is_slow                        ? ""
        : code == ErrorCode::kConflict ? "remove the one that does not run"
                                       : cat("run `", engine_.program, " --version`"));
  }

  void check_registered() {
    if (facts_.wrong)
      add("registered", kProblem, facts_.wrong->message, "");
    else if (facts_.outdated)
      add("registered", kWarning, cat("by ", registered_by(facts_), "; its lines are out of date"),
          configure(" --restart"));
    else if (!facts_.registered.empty())
      add("registered", kOk, cat("by ", registered_by(facts_)));
    else if (facts_.refusal)
      add_refusal(*facts_.refusal);
    else
      add("registered", kSkipped, "not registered: its containers stay unmanaged",
          configure(" --restart"));
  }

  /// The lines to be written by hand, which may follow the first, are said by `configure`.
  void add_refusal(const Error& refusal) {
    std::string_view rest = refusal.message;
    const std::string_view first = read_until(rest, '\n');
    // The engine itself cannot read such a file at its next start.
    add("registered", refusal.code == ErrorCode::kInvalidArgument ? kWarning : kSkipped,
        std::string{first}, rest.empty() ? "" : configure(""));
  }

  void check_known() {
    if (!facts_.has_daemon()) return;
    if (!facts_.process) return add("known", kSkipped, "the daemon does not run");
    if (facts_.docker && !*facts_.docker) {
      const Error& why = facts_.docker->error();
      // Without a client, or where that is slow, the daemon may well be in order.
      if (why.code == ErrorCode::kNotFound || why.code == ErrorCode::kTimeout)
        return add("known", kSkipped, cat("the daemon cannot be asked: ", why.message));
      return add("known", kProblem, cat("the daemon does not answer: ", shorten(why.message, 300)),
                 cat("systemctl status ", engine_.service));
    }
    if (facts_.known() != false) return add("known", kOk, "to the daemon that runs");
    if (facts_.docker)
      return add("known", kProblem, "the daemon has not read the runtime \"podqos\" yet",
                 cat("systemctl reload ", engine_.service));
    add("known", kProblem, cat("the daemon runs since before ", *facts_.unread, " changed"),
        cat("systemctl restart ", engine_.service));
  }

  void check_plugin() {
    if (!facts_.process) return;
    if (facts_.is_connected()) return add("plugin", kOk, "podqos-nri is connected");
    if (!facts_.unit && !facts_.plugin)
      return add("plugin", kSkipped, "systemd cannot be asked about the plugin");
    const UnitState unit = facts_.unit.value_or(UnitState{});
    const bool runs = facts_.plugin && facts_.plugin->process;
    // Beside the wrapper only one that is to run.
    const Outcome bad = facts_.registered.size() == 1         ? kProblem
                        : runs || unit.enabled || unit.failed ? kWarning
                                                              : kSkipped;
    // A DaemonSet's, where systemd has none.
    const bool in_pod = runs ? facts_.plugin->process != unit.process : !unit.installed;
    const std::string name = in_pod ? "podqos-nri" : kPluginUnit;
    if (!runs)
      return add("plugin", bad,
                 cat(name, unit.failed ? " has failed" : " is not running",
                     ": new containers stay unmanaged"),
                 in_pod ? cat("kubectl get pods -o wide", kDaemonSet,
                              "; if it was removed for good, remove nri.lock from stateDir")
                        : cat("systemctl enable --now ", kPluginUnit));
    add("plugin", bad,
        cat(name, in_pod ? cat(" (process ", facts_.plugin->process->value(), ")") : "",
            " is not connected: ", shorten(facts_.plugin->status, 300)),
        in_pod ? cat("kubectl logs", kDaemonSet) : cat("journalctl -u ", kPluginUnit));
  }

  /// Whether containers use the runtime that is registered.
  void check_default() {
    if (!facts_.is_registered(Method::kWrapper) || facts_.is_registered(Method::kNri) ||
        facts_.is_registered(Method::kHooks))
      return;
    if (facts_.settings.is_default) return add("used", kOk, "podqos is the default runtime");
    if (facts_.pods.value_or(1) > 0)
      return add("used", kOk, "by containers that ask for the runtime podqos");
    add("used", kWarning, "no running container has asked for the runtime podqos",
        std::string{engine_.start});
  }

  const EngineFacts& facts_;
  const Engine& engine_;
  Findings checks_;
};

}  // namespace

bool EngineFacts::is_registered(Method method) const {
  return std::ranges::find(registered, method) != registered.end();
}

bool EngineFacts::is_connected() const {
  return plugin && plugin->process && process && served_process(plugin->status) == process;
}

std::optional<bool> EngineFacts::known() const {
  if (!process || registered.empty()) return std::nullopt;
  if (docker) return *docker ? std::optional{(*docker)->knows_podqos} : std::nullopt;
  return !unread || is_connected();
}

Findings check_engine(const EngineFacts& facts) {
  return EngineChecks{facts}.check();
}

std::string registered_by(const EngineFacts& facts) {
  std::vector<std::string> names;
  names.reserve(facts.registered.size());
  for (const Method method : facts.registered)
    names.emplace_back(kMethods.at(static_cast<std::size_t>(method)));
  return join(names, " and ");
}

}  // namespace podqos::ctl
