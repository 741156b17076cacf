#pragma once

#include <string_view>

namespace podqos::codec {

/// Whether parse_engine_annotations() (annotations.h) reads `key`.
[[nodiscard]] bool is_engine_annotation(std::string_view key);

}  // namespace podqos::codec
