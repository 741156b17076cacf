#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "common/base/text.h"
#include "ctl/view/top_view.h"

namespace podqos::ctl {
namespace {

constexpr char kEscapeByte = '\x1b';
constexpr std::size_t kMaxTyped = 64;  ///< characters at a prompt

/// What follows "ESC [" or "ESC O".
constexpr std::array kSequences = {
    std::pair{std::string_view{"A"}, TopKey::kUp},
    std::pair{std::string_view{"B"}, TopKey::kDown},
    std::pair{std::string_view{"C"}, TopKey::kRight},
    std::pair{std::string_view{"D"}, TopKey::kLeft},
    std::pair{std::string_view{"H"}, TopKey::kHome},
    std::pair{std::string_view{"F"}, TopKey::kEnd},
    std::pair{std::string_view{"1~"}, TopKey::kHome},
    std::pair{std::string_view{"4~"}, TopKey::kEnd},
    std::pair{std::string_view{"5~"}, TopKey::kPageUp},
    std::pair{std::string_view{"6~"}, TopKey::kPageDown},
};

/// Takes a sequence from the front: parameters, intermediate bytes, a final one.
/// @return nullopt for a key that has no meaning here
std::optional<TopKey> take_sequence(std::string_view& rest) {
  const auto final_byte = std::ranges::find_if(rest, [](char c) { return c >= '@' && c <= '~'; });
  const auto size = static_cast<std::size_t>(final_byte - rest.begin());
  const std::string_view sequence = rest.substr(0, size + 1);
  rest.remove_prefix(sequence.size());
  const auto* const found =
      std::ranges::find(kSequences, sequence, &decltype(kSequences)::value_type::first);
  return found == kSequences.end() ? std::nullopt : std::optional{found->second};
}

/// The column `steps` to the right of the one that sorts. The name comes before the first, and
/// after the last.
std::optional<std::size_t> column_at(const std::optional<std::size_t>& sort, std::size_t steps) {
  const std::size_t next = ((sort ? *sort + 1 : 0) + steps) % (top_columns().size() + 1);
  return next == 0 ? std::nullopt : std::optional{next - 1};
}
std::optional<std::size_t> next_column(const std::optional<std::size_t>& sort) {
  return column_at(sort, 1);
}
std::optional<std::size_t> previous_column(const std::optional<std::size_t>& sort) {
  return column_at(sort, top_columns().size());
}

/// All classes, then one after the other.
std::optional<core::QosClass> next_tier(const std::optional<core::QosClass>& tier) {
  if (!tier) return core::QosClass::kGuaranteed;
  if (*tier == core::QosClass::kGuaranteed) return core::QosClass::kBurstable;
  return *tier == core::QosClass::kBurstable ? std::optional{core::QosClass::kBestEffort}
                                             : std::nullopt;
}

/// A key at a prompt.
TopAction type(const KeyPress& press, TopView& view) {
  if (press.key == TopKey::kCharacter && view.input.size() < kMaxTyped) {
    view.input += press.character;
  } else if (press.key == TopKey::kBackspace && !view.input.empty()) {
    view.input.pop_back();
  } else if (press.key == TopKey::kEscape) {
    view.mode = TopMode::kRows;
  } else if (press.key == TopKey::kEnter) {
    view.mode = TopMode::kRows;
    view.filter.text = view.input;
    view.first = 0;
  }
  return TopAction::kDraw;
}

void scroll(TopKey key, std::size_t page, TopView& view) {
  const auto up = [&](std::size_t rows) { view.first -= std::min(view.first, rows); };
  switch (key) {
    case TopKey::kUp: return up(1);
    case TopKey::kPageUp: return up(page);
    case TopKey::kHome: view.first = 0; return;
    case TopKey::kDown: ++view.first; return;
    case TopKey::kPageDown: view.first += page; return;
    case TopKey::kEnd: view.first = std::numeric_limits<std::size_t>::max() / 2; return;
    case TopKey::kLeft: view.sort = previous_column(view.sort); return;
    case TopKey::kRight: view.sort = next_column(view.sort); return;
    case TopKey::kEscape: view.filter = {}; return;
    case TopKey::kCharacter:
    case TopKey::kEnter:
    case TopKey::kBackspace: return;
  }
}

/// Keys that sort: as in top, and further ones.
constexpr std::array kSortKeys = {
    std::pair{'P', std::string_view{"cpu"}}, std::pair{'M', std::string_view{"memory"}},
    std::pair{'T', std::string_view{"throttled"}}, std::pair{'O', std::string_view{"oom"}},
    std::pair{'N', std::string_view{"name"}}};

}  // namespace

bool is_cut_off(std::string_view bytes) {
  const std::size_t escape = bytes.rfind(kEscapeByte);
  if (escape == std::string_view::npos) return false;
  bytes.remove_prefix(escape + 1);
  if (!bytes.starts_with('[') && !bytes.starts_with('O')) return bytes.empty();
  return std::ranges::none_of(bytes.substr(1), [](char c) { return c >= '@' && c <= '~'; });
}

std::vector<KeyPress> parse_keys(std::string_view bytes) {
  std::vector<KeyPress> keys;
  while (!bytes.empty()) {
    const char byte = bytes.front();
    bytes.remove_prefix(1);
    if (byte == kEscapeByte && (bytes.starts_with('[') || bytes.starts_with('O'))) {
      bytes.remove_prefix(1);
      if (const auto key = take_sequence(bytes)) keys.push_back({.key = *key});
    } else if (byte == kEscapeByte) {
      keys.push_back({.key = TopKey::kEscape});
    } else if (byte == '\r' || byte == '\n') {
      keys.push_back({.key = TopKey::kEnter});
    } else if (byte == '\b' || byte == '\x7f') {
      keys.push_back({.key = TopKey::kBackspace});
    } else if (byte >= ' ' && byte <= '~') {
      keys.push_back({.key = TopKey::kCharacter, .character = byte});
    }
  }
  return keys;
}

TopAction apply_key(const KeyPress& press, std::size_t page, TopView& view) {
  if (view.mode == TopMode::kHelp) {
    view.mode = TopMode::kRows;
    return TopAction::kDraw;
  }
  if (view.mode != TopMode::kRows) return type(press, view);
  const auto* const sort =
      std::ranges::find(kSortKeys, press.character, &decltype(kSortKeys)::value_type::first);
  if (sort != kSortKeys.end()) view.sort = find_column(sort->second);
  switch (press.character) {
    case 'q': return TopAction::kQuit;
    case ' ': return TopAction::kSample;
    case '<': view.sort = previous_column(view.sort); break;
    case '>': view.sort = next_column(view.sort); break;
    case 'R':
    case 'r': view.reversed = !view.reversed; break;
    case 't': view.tree = !view.tree; break;
    case 'c': view.filter.tier = next_tier(view.filter.tier); break;
    case 'h':
    case '?': view.mode = TopMode::kHelp; break;
    case '/':
      view.mode = TopMode::kFilterPrompt;
      view.input.clear();
      break;
    default: scroll(press.key, page, view);
  }
  return TopAction::kDraw;
}

}  // namespace podqos::ctl
