"""protobuf's wire format for messages that a table describes: no generated code, and no library in the guest's root.

    schema = {"Pod": {"name": (1, "text"), "containers": (2, "*Container"), "labels": (3, "map")}, "Container": {...}}
    encode(schema, "Pod", {"name": "web"})      # bytes; what is not there is not sent
    decode(schema, "Pod", b"...")               # every field of the table; fields that it lacks are passed over

A type is "int" (any integer, enumeration or bool that is no "sint"), "text", "bytes", "map" (text to text), or the name
of a message; "*" before it is repeated.
"""

ENTRY = {"key": (1, "text"), "value": (2, "text")}  # a map is repeated pairs
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
DEFAULTS = {"int": 0, "text": "", "bytes": b""}


def varint(number):
    number &= (1 << 64) - 1  # a negative one is sent as what it is modulo 2^64
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(encoded + bytes([number]))


def _read_varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return number, at


def _encode_fields(schema, fields, values):
    encoded = b""
    for name, value in values.items():
        number, kind = fields[name]
        if kind == "map":
            entries = [{"key": key, "value": text} for key, text in value.items()]
            pieces = [(LENGTH, _encode_fields(schema, ENTRY, entry)) for entry in entries]
        elif kind.startswith("*"):
            pieces = [_encode_value(schema, kind[1:], entry) for entry in value]
        else:
            pieces = [_encode_value(schema, kind, value)]
        for wire_type, piece in pieces:
            length = varint(len(piece)) if wire_type == LENGTH else b""
            encoded += varint(number << 3 | wire_type) + length + piece
    return encoded


def _encode_value(schema, kind, value):
    if kind == "int":
        return VARINT, varint(value)
    if kind in ("text", "bytes"):
        return LENGTH, value.encode() if kind == "text" else value
    return LENGTH, _encode_fields(schema, schema[kind], value)


def encode(schema, message, values):
    """The bytes of a message; `values` may hold dictionaries and lists of its like."""
    return _encode_fields(schema, schema[message], values)


def pieces(data):
    """(field number, value or bytes) of every field."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        if tag & 7 == VARINT:
            value, at = _read_varint(data, at)
        else:
            length = {FIXED64: 8, FIXED32: 4}.get(tag & 7)
            if length is None:
                length, at = _read_varint(data, at)
            value, at = data[at:at + length], at + length
        yield tag >> 3, value


def _decode_value(schema, kind, value):
    if kind == "int":
        return value - (1 << 64) if value >> 63 else value
    if kind in ("text", "bytes"):
        return value.decode() if kind == "text" else value
    return _decode_fields(schema, schema[kind], value)


def _decode_fields(schema, fields, data):
    decoded = {name: {} if kind == "map" else [] if kind.startswith("*") else DEFAULTS.get(kind)
               for name, (_, kind) in fields.items()}
    names = {number: (name, kind) for name, (number, kind) in fields.items()}
    for number, value in pieces(data):
        if number not in names:
            continue
        name, kind = names[number]
        if kind == "map":
            entry = _decode_fields(schema, ENTRY, value)
            decoded[name][entry["key"]] = entry["value"]
        elif kind.startswith("*"):
            decoded[name].append(_decode_value(schema, kind[1:], value))
        else:
            decoded[name] = _decode_value(schema, kind, value)
    return decoded


def decode(schema, message, data):
    """{field: value}; absent ones have protobuf's defaults, an absent message is None."""
    return _decode_fields(schema, schema[message], data)
