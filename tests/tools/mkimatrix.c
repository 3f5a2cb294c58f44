/* SPDX-License-Identifier: MIT */
/* mkimatrix.c - writes importance data in the older form, byte by byte
 *
 *   mkimatrix OUT [SCALE [COLUMNS [big]]]
 *   mkimatrix OUT layers N
 *   mkimatrix OUT tensor NAME COLUMNS
 *   mkimatrix OUT uncounted
 *   mkimatrix OUT made gguf|dat
 *
 * The tensors are blk.0.attn_q, blk.0.ffn_down with three times the columns,
 * and blk.1.attn_q, with 4 calls. Value k is SCALE * (k % 5); the defaults are
 * 1 and 64 columns. SCALE nan: every second value is NaN. big: big-endian. The
 * path of the text is in a home folder.
 *
 * layers: N layers with one tensor of one column. tensor: only this tensor.
 * uncounted: 0 calls. made: the data of tests/imatrix/sample.h.
 */
#include "tests/imatrix/sample.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *f;
static int big, calls = 4;

static void put_u32(uint32_t v)
{
    for (int i = 0; i < 4; i++)
        fputc((int)(v >> 8 * (big ? 3 - i : i) & 255), f);
}

static void put_float(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, 4);
    put_u32(bits);
}

static void put_entry(const char *name, uint32_t n, float scale)
{
    put_u32((uint32_t)strlen(name));
    fputs(name, f);
    put_u32((uint32_t)calls);
    put_u32(n);
    for (uint32_t k = 0; k < n; k++)
        put_float(4 * (k % 2 && scale != scale ? 1 : scale) * (float)(k % 5));
}

static int put_layers(unsigned n)
{
    put_u32(n);
    for (unsigned i = 0; i < n; i++) {
        char name[40];
        snprintf(name, sizeof name, "blk.%u.attn_q.weight", i);
        put_entry(name, 1, 1);
    }
    return fclose(f) != 0;
}

int main(int argc, char **argv)
{
    static const char text[] = "/home/somebody/secret/wiki.raw";
    float scale = argc > 2 ? (float)atof(argv[2]) : 1;
    uint32_t cols = argc > 3 ? (uint32_t)atoi(argv[3]) : 64;
    if (argc > 3 && !strcmp(argv[2], "made"))
        return !(argv[3][0] == 'g' ? write_sample_gguf
                                   : write_sample_dat)(argv[1]);
    big = argc > 4;
    f = argc > 1 ? fopen(argv[1], "wb") : NULL;
    if (!f)
        return 99;
    if (argc > 3 && !strcmp(argv[2], "layers"))
        return put_layers((unsigned)atoi(argv[3]));
    if (argc > 4 && !strcmp(argv[2], "tensor")) {
        put_u32(1);
        put_entry(argv[3], (uint32_t)atoi(argv[4]), 1);
        return fclose(f) != 0;
    }
    if (argc > 2 && !strcmp(argv[2], "uncounted"))
        calls = 0;
    put_u32(3);
    put_entry("blk.0.attn_q.weight", cols, scale);
    put_entry("blk.0.ffn_down.weight", 3 * cols, scale);
    put_entry("blk.1.attn_q.weight", cols, scale);
    put_u32(4); /* chunks */
    put_u32(sizeof text - 1);
    fputs(text, f);
    return fclose(f) != 0;
}
