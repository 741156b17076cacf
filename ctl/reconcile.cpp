#include "common/app/reconcile.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/app/configuration.h"
#include "common/app/log.h"
#include "common/app/preview.h"
#include "common/base/text.h"
#include "ctl/command.h"
#include "ctl/json.h"

namespace podqos::ctl {
namespace {

/// CAP_DAC_OVERRIDE is for cgroup files that belong to other users, CAP_SYS_RESOURCE lowers OOM
/// scores, CAP_SYS_ADMIN accesses trusted.* attributes, CAP_SYS_PTRACE shows processes where /proc
/// is mounted with hidepid. The v1 cpuset controller requires CAP_SYS_NICE to move a monitor out of
/// an ended pod.
constexpr std::array kKeptCapabilities = {CAP_DAC_OVERRIDE, CAP_SYS_RESOURCE, CAP_SYS_ADMIN,
                                          CAP_SYS_PTRACE, CAP_SYS_NICE};

/// Values of the command line options.
struct ReconcileOptions {
  OutputOptions output;
  bool dry_run = false;
  bool quiet = false;
};

/// Pods and records for which a reconciliation fails.
std::vector<std::string> failures_of(const app::ReconcileReport& report) {
  std::vector<std::string> failures = report.unreadable;
  failures.insert(failures.end(), report.failed.begin(), report.failed.end());
  return failures;
}

/// @param plan  of a dry run, one line each
std::string format_json(const app::ReconcileReport& report, const std::vector<std::string>* plan) {
  Json json = {{"pods", report.pods},          {"containers", report.containers},
               {"released", report.released},  {"repaired", report.repaired},
               {"changes", report.changes},    {"warnings", report.warnings},
               {"failed", failures_of(report)}};
  if (plan != nullptr) json["plan"] = *plan;
  return dump(json) + "\n";
}

/// "12 pods, 30 containers; 1 pod released, 0 records restored".
std::string format_totals(const app::ReconcileReport& report, std::string_view released,
                          std::string_view restored) {
  return cat(format_count(report.pods, "pod"), ", ", format_count(report.containers, "container"),
             "; ", format_count(report.released, "pod"), " ", released, ", ",
             format_count(report.repaired, "record"), " ", restored, "\n");
}

/// The report for people: changes, and unless `quiet` warnings and totals, one a line.
std::string format_text(const app::ReconcileReport& report, bool quiet) {
  std::string out;
  for (const std::string& change : report.changes)
    out += cat(change, "\n");
  if (quiet) return out;
  for (const std::string& warning : report.warnings)
    out += cat("warning: ", warning, "\n");
  return out + format_totals(report, "released", "restored");
}

/// The plan for people, with the reasons as comments in front of it.
std::string format_text(const app::ReconcilePreview& preview) {
  const app::ReconcileReport& report = preview.report;
  std::string out;
  for (const std::string& change : report.changes)
    out += cat("# ", change, "\n");
  // Names of cgroups may have been chosen by others.
  for (const std::string& line : preview.plan)
    out += cat(app::one_line(line), "\n");
  for (const std::string& warning : report.warnings)
    out += cat("warning: ", warning, "\n");
  for (const std::string& failure : failures_of(report))
    out += cat("error: ", failure, "\n");
  return cat(out, "dry run: would make ", format_count(std::ssize(preview.plan), "change"), "; ",
             format_totals(report, "to release", "to restore"));
}

/// Prints what a reconciliation would do.
Result<int> run_preview(const ReconcileOptions& options, const core::Settings& settings) {
  PODQOS_ASSIGN(const auto preview, app::preview_reconcile(settings));
  const int status =
      finish(print(options.output.is_json() ? format_json(preview.report, &preview.plan)
                                            : format_text(preview)));
  return status == kDone && !failures_of(preview.report).empty() ? kRefused : status;
}

/// Whether standard error leads to the journal and the log does as well: what is in the log would
/// be there twice, as under podqos-reconcile.service.
/// @note systemd.exec(5), $JOURNAL_STREAM: device and inode of the stream
bool logs_to_the_same_journal(const core::Settings& settings) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): podqosctl has one thread
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat file{};
  return settings.log_sink == "syslog" && stream != nullptr && ::fstat(STDERR_FILENO, &file) == 0 &&
         stream == cat(file.st_dev, ":", file.st_ino);
}

/// Drops all capabilities but kKeptCapabilities, then reconciles under the lock.
Result<int> run_reconcile(const ReconcileOptions& options, const Globals& globals) {
  PODQOS_TRY(narrow(kKeptCapabilities));
  PODQOS_ASSIGN(const auto settings, app::load_settings(globals.config));
  if (options.dry_run) return run_preview(options, settings);
  app::Log log{"podqosctl", settings};
  const auto report = app::reconcile(
      settings, log, options.quiet ? app::Warnings::kReported : app::Warnings::kLogged);
  if (!report) return fail(for_root(report.error()));
  const int status = finish(print(options.output.is_json() ? format_json(*report, nullptr)
                                                           : format_text(*report, options.quiet)));
  if (!logs_to_the_same_journal(settings)) {
    for (const std::string& failure : failures_of(*report))
      log_failure({ErrorCode::kIo, failure});
  }
  return status == kDone && !failures_of(*report).empty() ? kRefused : status;
}

}  // namespace

Command add_reconcile(CLI::App& app, const Globals& globals) {
  auto options = std::make_shared<ReconcileOptions>();
  CLI::App* sub =
      app.add_subcommand("reconcile", "Make state and cgroups match the running containers");
  add_output(*sub, options->output);
  auto* dry_run =
      sub->add_flag("-n,--dry-run", options->dry_run, "Print the changes without making them");
  sub->add_flag("-q,--quiet", options->quiet, "Print and log only changes and failures")
      ->excludes(dry_run);
  return {.app = sub, .run = [options, &globals] { return run_reconcile(*options, globals); }};
}

}  // namespace podqos::ctl
