#include "common/app/log.h"

#include <array>
#include <utility>

#include <spdlog/logger.h>

#include "common/app/log_sinks.h"
#include "common/base/text.h"
#include "common/store/state_directory.h"
#include "common/sys/clock.h"

namespace podqos::app {

namespace {

/// The fields of an event in the journal; those without a value are left out.
std::string journal_fields(const core::Event& event) {
  std::string fields;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) fields += cat(name, "=", one_line(value), "\n");
  };
  add("PODQOS_EVENT", core::format_event_kind(event.kind));
  add("PODQOS_ENGINE", event.engine);
  add("PODQOS_NAMESPACE", event.pod_namespace);
  add("PODQOS_POD_NAME", event.pod_name);
  add("PODQOS_POD", event.uid);
  add("PODQOS_CONTAINER", event.container);
  add("PODQOS_CONTAINER_ID", event.container_id);
  if (event.qos_class) add("PODQOS_QOS_CLASS", core::format_qos_class(*event.qos_class));
  return fields;
}

void fill(std::string& text, const std::string& from) {
  if (text.empty()) text = from;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  for (const char& c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == '\x7f';
    control ? out += printable({&c, 1}) : out += c;
  }
  return out;
}

Log::Log(std::string program, const core::Settings& settings)
    : program_(std::move(program)),
      sink_name_(settings.log_sink),
      threshold_(settings.log_level),
      state_dir_(settings.state_dir),
      events_(settings.events_size) {}

void Log::write(core::LogLevel level, std::string_view line, const core::Event* event) {
  if (level < threshold_ || sink_name_ == "none") return;
  if (!logger_) {
    sink_ = open_sink(sink_name_);
    logger_ = std::make_shared<spdlog::logger>(program_, sink_);
    logger_->set_level(spdlog::level::trace);
  }
  constexpr std::array kLevels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                               spdlog::level::err};
  const std::string shown = one_line(line);
  sink_->set_fields(event != nullptr ? journal_fields(*event) : "");
  logger_->log(kLevels.at(static_cast<std::size_t>(level)),
               spdlog::string_view_t{shown.data(), shown.size()});
}

void Log::event(core::LogLevel level, core::Event event, std::string_view context,
                const sys::Directory* state) {
  write(level, cat(context, event.text), &event);
  if (state != nullptr) record(std::move(event), *state);
}

void Log::record(core::Event event, const sys::Directory& state) {
  event.time = sys::wall_clock();
  event.program = program_;
  if (const auto recorded = events_.append(state, event); !recorded)
    warning(cat("event not recorded: ", recorded.error().message));
}

void Log::failure(core::Event event, std::string_view context) {
  fill(event.engine, subject_.engine);
  fill(event.pod_namespace, subject_.pod_namespace);
  fill(event.pod_name, subject_.pod_name);
  fill(event.uid, subject_.uid);
  fill(event.container, subject_.container);
  fill(event.container_id, subject_.container_id);
  write(core::LogLevel::kError, cat(context, event.text), &event);
  if (!events_.is_on()) return;
  // An error of the state directory is what the failure is about, or comes again.
  const auto state = makes_state_ ? store::make_state_directory(state_dir_)
                                  : store::open_state_directory(state_dir_);
  if (state) record(std::move(event), *state);
}

}  // namespace podqos::app
