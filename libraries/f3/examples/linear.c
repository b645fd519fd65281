/* A linear series of 64-bit integers, described by its rows, first value and step. Payload: u32 rows, u64 first, u64 step. */
#include "interface.h"

enum { PAYLOAD_BYTES = 20, MOST_ROWS = 1 << 26 };

EXPORT("decode_general_ffi") i32 decode_general(const u8 *payload, u32 bytes, struct result *result) {
    if (bytes != PAYLOAD_BYTES)
        return failed(result, "a linear series has 20 bytes");
    u32 rows = *(const u32_at *)payload;
    u64 value = *(const u64_at *)(payload + 4), step = *(const u64_at *)(payload + 12);
    if (rows > MOST_ROWS)
        return failed(result, "a linear series of too many rows");
    u64 *values = alloc((size_t)rows * 8, LINE);
    for (u32 row = 0; row < rows; row++, value += step)
        values[row] = value;
    return answer(result, 0, 0, (u8 *)values, rows * 8, 0, 0);
}
