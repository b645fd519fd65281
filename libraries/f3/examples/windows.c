/* Repeated windows of 128 integers of 32 bits. Every distinct window is stored once. Payload: u32 number of windows,
 * u32 number of distinct windows, for each window the u8 number of its distinct window, u32 values of the distinct
 * windows. */
#include "interface.h"

enum { WINDOW_BYTES = 512, MOST_WINDOWS = 1 << 19 };

EXPORT("decode_general_ffi") i32 decode_general(const u8 *payload, u32 bytes, struct result *result) {
    if (bytes < 8)
        return failed(result, "repeated windows begin with two numbers");
    u32 windows = *(const u32_at *)payload, distinct = *(const u32_at *)(payload + 4);
    if (windows > MOST_WINDOWS || distinct > 256 || bytes != 8 + windows + distinct * WINDOW_BYTES)
        return failed(result, "repeated windows do not have the bytes that they say");
    const u8 *numbers = payload + 8, *texts = numbers + windows;
    for (u32 window = 0; window < windows; window++)
        if (numbers[window] >= distinct)
            return failed(result, "a window that there is none of");
    u8 *values = alloc((size_t)windows * WINDOW_BYTES, LINE);
    for (u32 window = 0; window < windows; window++)
        memcpy(values + window * WINDOW_BYTES, texts + numbers[window] * WINDOW_BYTES, WINDOW_BYTES);
    return answer(result, 0, 0, values, windows * WINDOW_BYTES, 0, 0);
}
