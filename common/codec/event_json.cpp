#include "common/codec/event_json.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/base/utc_time.h"
#include "common/codec/json_text.h"
#include "common/codec/json_tree.h"

namespace podqos::codec {

namespace {

constexpr std::size_t kMaxName = 256;
constexpr std::size_t kMaxPath = 1024;

/// The first bytes of a text, whole characters of UTF-8.
std::string_view cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80)
    --most;
  return text.substr(0, most);
}

/// As UTF-8 without control characters.
std::string clean(std::string_view text, std::size_t most) {
  if (plain_length(text) == text.size()) return std::string{cut(text, most)};
  if (!is_utf8(text)) return printable(text, most);
  std::string out;
  for (const char& c : cut(text, most))
    is_control(c) ? out += printable({&c, 1}) : out += c;
  return out;
}

/// Members of an object, of which those without a value are left out.
class Members {
 public:
  void add(std::string_view name, std::string_view text, std::size_t most = kMaxName) {
    if (text.empty()) return;
    add_value(name, quote_json(clean(text, most)));
  }
  void add_value(std::string_view name, std::string_view json) {
    out_ += cat(out_.empty() ? "" : ",", quote_json(name), ":", json);
  }
  [[nodiscard]] std::string object() const { return cat("{", out_, "}"); }

 private:
  std::string out_;
};

/// A text as a JSON string of at most `most` bytes, "…" at its end where it is cut.
std::string quote_cut(std::string_view text, std::size_t most) {
  std::string quoted = quote_json(text);
  while (quoted.size() > most && !text.empty()) {
    // A byte of the text takes one or two.
    const std::size_t surplus = (quoted.size() - most + 1) / 2;
    text = cut(text, text.size() - std::min(surplus, text.size()));
    quoted = quote_json(cat(text, "…"));
  }
  return quoted;
}

}  // namespace

std::string format_event(const core::Event& event) {
  Members line;
  line.add("time", format_utc(event.time));
  line.add("event", core::format_event_kind(event.kind));
  line.add("program", event.program);
  line.add("engine", event.engine);
  line.add("namespace", event.pod_namespace);
  line.add("name", event.pod_name);
  line.add("uid", event.uid);
  if (!event.container.empty() || !event.container_id.empty()) {
    Members container;
    container.add("id", event.container_id);
    container.add("name", event.container);
    line.add_value("container", container.object());
  }
  if (event.qos_class) line.add("class", core::format_qos_class(*event.qos_class));
  line.add("cgroup", event.cgroup, kMaxPath);
  constexpr std::string_view kRest = R"(,"text":)"
                                     "\n";
  const std::size_t taken = line.object().size() + kRest.size();
  if (!event.text.empty() && taken < kMaxEventLine)
    line.add_value("text", quote_cut(clean(event.text, kMaxEventLine), kMaxEventLine - taken));
  return cat(line.object(), "\n");
}

std::optional<core::Event> parse_event(std::string_view line) {
  const auto tree = parse_json_tree(line, {.bytes = kMaxEventLine});
  if (!tree) return std::nullopt;
  const auto text_of = [&](std::string_view pointer) {
    const JsonNode* node = tree->at(pointer, MemberNames::kExact);
    const bool is_text = node != nullptr && node->kind == JsonNode::Kind::kString;
    return std::string{is_text ? node->text : ""};
  };
  const auto time = parse_utc(text_of("/time"));
  const auto kind = place_of_word(core::kEventKinds, text_of("/event"));
  if (!time || !kind) return std::nullopt;
  return core::Event{.time = *time,
                     .kind = static_cast<core::EventKind>(*kind),
                     .program = text_of("/program"),
                     .engine = text_of("/engine"),
                     .pod_namespace = text_of("/namespace"),
                     .pod_name = text_of("/name"),
                     .uid = text_of("/uid"),
                     .container = text_of("/container/name"),
                     .container_id = text_of("/container/id"),
                     .qos_class = core::parse_qos_class(text_of("/class")),
                     .cgroup = text_of("/cgroup"),
                     .text = text_of("/text")};
}

}  // namespace podqos::codec
