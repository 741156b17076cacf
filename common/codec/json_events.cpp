#include "common/codec/json_events.h"

namespace podqos::codec {

std::string_view format_json_kind(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull: return "null";
    case JsonKind::kBoolean: return "a boolean";
    case JsonKind::kInteger: return "an integer";
    case JsonKind::kFloat: return "a number with a fraction, an exponent or more than 64 bits";
    case JsonKind::kString: return "a string";
    case JsonKind::kObject: return "an object";
    case JsonKind::kArray: return "an array";
  }
  return "";
}

}  // namespace podqos::codec
