/* SPDX-License-Identifier: MIT */
/* mutate.c - changes of texts for libFuzzer: numbers and words
 *
 * In half of its changes a number of the text is replaced by one at a limit, or
 * a word or a line is removed or doubled. libFuzzer makes the other changes,
 * byte by byte.
 */
#include "config.h"
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned int seed);

static const char *const numbers[] = {
    "0",          "1",
    "-1",         "2",
    "3",          "7",
    "16",         "1000",
    "65537",      "16777217",
    "2147483647", "2147483648",
    "4294967296", "9223372036854775807",
    "0.5",        "1e30",
    "1e308",      "-0.0",
    "null",       "true",
    "[]",         "{}",
    "\"x\"",      "[1,2]",
};

static bool is_of_number(uint8_t c)
{
    return (c >= '0' && c <= '9') || c == '.';
}

/* Replace the bytes from begin to end by n others, unless the result is longer
 * than max_size. Returns the size. */
static size_t replace_bytes(uint8_t *data, size_t size, size_t max_size,
                            size_t begin, size_t end, const void *by, size_t n)
{
    if (size - (end - begin) + n > max_size)
        return size;
    memmove(data + begin + n, data + end, size - end);
    memmove(data + begin, by, n);
    return size - (end - begin) + n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned int seed)
{
    uint64_t r = seed * UINT64_C(0x9e3779b97f4a7c15);
    r ^= r >> 29;
    if (!size || r & 1)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t begin = (size_t)((r >> 8) % size), end;
    if (r & 6) { /* the next number */
        while (begin < size && !is_of_number(data[begin]))
            begin++;
        while (begin && is_of_number(data[begin - 1]))
            begin--;
        for (end = begin; end < size && is_of_number(data[end]);)
            end++;
        const char *by =
            numbers[(r >> 40) % (sizeof numbers / sizeof *numbers)];
        return replace_bytes(data, size, max_size, begin, end, by, strlen(by));
    }
    /* the line or, in JSON, the member */
    const uint8_t stop = r & 8 ? '\n' : ',';
    while (begin && data[begin - 1] != stop)
        begin--;
    for (end = begin; end < size && data[end] != stop;)
        end++;
    end += end < size;
    if (r & 16)
        return replace_bytes(data, size, max_size, begin, end, "", 0);
    return replace_bytes(data, size, max_size, end, end, data + begin,
                         end - begin);
}
