/* SPDX-License-Identifier: MIT */
/* mkmodel.c - writes a small GGUF file for the tests of the tools
 *
 *   mkmodel OUT [n=TENSORS] [align=N] [rows=N] [big=1] [kv=N] [weights=1]
 *           [five=1] [gathered=1]
 *   mkmodel OUT deep=N
 *
 * Does not use the library: outputs of the tools are compared with bytes
 * written here. Tensors t0, t1 ... go through types and shapes (256 x rows),
 * in canonical layout. weights: their names are t0.weight ..., which are
 * quantized. five: 5 dimensions, 256 x rows/6 x 1 x 2 x 3. gathered: the first
 * one is per_layer_token_embd.weight. deep: a model of N layers, each with one
 * tensor, which has the wrong shape.
 */
#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *out;
static int big;
static uint64_t pos;

static void put_bytes(const void *p, size_t n)
{
    if (fwrite(p, 1, n, out) != n) {
        perror("mkmodel");
        exit(1);
    }
    pos += n;
}

static void put_number(uint64_t v, int n)
{
    unsigned char b[8];
    for (int i = 0; i < n; i++)
        b[big ? n - 1 - i : i] = (unsigned char)(v >> 8 * i);
    put_bytes(b, (size_t)n);
}

static void put_text(const char *s)
{
    put_number(strlen(s), 8);
    put_bytes(s, strlen(s));
}

static void kv_u32(const char *key, uint32_t v)
{
    put_text(key);
    put_number(4, 4);
    put_number(v, 4);
}

static void kv_str(const char *key, const char *v)
{
    put_text(key);
    put_number(8, 4);
    put_text(v);
}

/* id; elements and bytes of a block */
static const struct {
    uint32_t id, len, size;
} types[] = { { 0, 1, 4 }, { 1, 1, 2 }, { 8, 32, 34 }, { 12, 256, 144 } };

static uint64_t size_of(uint64_t i, uint64_t rows)
{
    return rows * (256 / types[i % 4].len) * types[i % 4].size;
}

static void put_padding(uint64_t align)
{
    while (pos % align)
        put_bytes("", 1);
}

static void put_metadata(uint64_t n_kv, uint32_t align)
{
    kv_str("general.architecture", "llama");
    kv_str("general.type", "adapter"); /* an adapter, which need not have all
                                        * tensors of a llama */
    kv_str("general.name", "Test \033[31m\\ model\n");
    if (align)
        kv_u32("general.alignment", align);
    kv_u32("llama.block_count", 2);
    kv_u32("llama.context_length", 4096);
    kv_u32("general.file_type", 15);
    put_text("test.big");
    put_number(10, 4);
    put_number(UINT64_MAX - 1, 8);
    put_text("test.float");
    put_number(6, 4);
    put_number(0x3dcccccd, 4); /* 0.1 */
    put_text("test.nan");
    put_number(12, 4);
    put_number(UINT64_C(0x7ff8000000000000), 8);
    put_text("test.nested");
    put_number(9, 4);
    put_number(9, 4);
    put_number(2, 8);
    put_number(5, 4);
    put_number(2, 8);
    put_number(UINT32_MAX, 4);
    put_number(7, 4);
    put_number(8, 4);
    put_number(1, 8);
    put_text("a\xff"
             "b\"");
    kv_str("tokenizer.ggml.model", "bert");
    put_text("tokenizer.ggml.tokens");
    put_number(9, 4);
    put_number(8, 4);
    put_number(8, 8);
    for (int i = 0; i < 8; i++) {
        char s[16];
        snprintf(s, sizeof s, "tok%d", i);
        put_text(s);
    }
    for (uint64_t i = 0; i < n_kv; i++) {
        char s[32];
        snprintf(s, sizeof s, "test.more.%u", (unsigned)i);
        kv_u32(s, (uint32_t)i);
    }
}

static void put_data(uint64_t n, uint64_t rows, uint64_t align)
{
    uint64_t x = UINT64_C(0x9E3779B97F4A7C15);
    unsigned char buf[4096];
    for (uint64_t i = 0; i < n; i++) {
        put_padding(align);
        for (uint64_t left = size_of(i, rows); left;) {
            size_t k = left < sizeof buf ? (size_t)left : sizeof buf;
            for (size_t b = 0; b < k; b++) {
                x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                /* exponents of 16-bit floats stay finite */
                buf[b] = (unsigned char)(x >> 56) & 0x3b;
            }
            put_bytes(buf, k);
            left -= k;
        }
    }
    put_padding(align);
}

static int deep_model(uint64_t n)
{
    put_bytes("GGUF", 4);
    put_number(3, 4);
    put_number(n, 8);
    put_number(6, 8);
    kv_str("general.architecture", "llama");
    kv_u32("llama.block_count", (uint32_t)n);
    kv_u32("llama.context_length", 64);
    kv_u32("llama.embedding_length", 8);
    kv_u32("llama.feed_forward_length", 16);
    kv_u32("llama.attention.head_count", 2);
    for (uint64_t i = 0; i < n; i++) {
        char s[40];
        snprintf(s, sizeof s, "blk.%u.attn_norm.weight", (unsigned)i);
        put_text(s);
        put_number(1, 4);
        put_number(16, 8);
        put_number(0, 4);
        put_number(i * 64, 8);
    }
    put_padding(32);
    for (uint64_t i = 0; i < n * 8; i++)
        put_number(0, 8);
    return fclose(out) != 0;
}

int main(int argc, char **argv)
{
    uint64_t n = 8, align = 0, rows = 4, n_kv = 0, deep = 0, weights = 0;
    bool five = false, gathered = false;
    out = argc > 1 ? fopen(argv[1], "wb") : NULL;
    if (!out) {
        fprintf(stderr, "mkmodel: no output\n");
        return 1;
    }
    for (int i = 2; i < argc; i++) {
        const char *eq = strchr(argv[i], '=');
        uint64_t v = eq ? strtoull(eq + 1, NULL, 10) : 0;
        switch (argv[i][0]) {
        case 'n': n = v; break;
        case 'a': align = v; break;
        case 'r': rows = v; break;
        case 'b': big = v != 0; break;
        case 'd': deep = v; break;
        case 'k': n_kv = v; break;
        case 'w': weights = v; break;
        case 'f': five = v != 0; break;
        case 'g': gathered = v != 0; break;
        default: return 2;
        }
    }
    if (deep)
        return deep_model(deep);
    put_bytes("GGUF", 4);
    put_number(3, 4);
    put_number(n, 8);
    put_number(12 + n_kv + (align != 0), 8);
    put_metadata(n_kv, (uint32_t)align);
    uint64_t real = align ? align : 32, off = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t ne[5] = { 256, five ? rows / 6 : rows, 1, 2, 3 };
        char s[32];
        snprintf(s, sizeof s, "blk.%u.t%u%s", (unsigned)(i / 4), (unsigned)i,
                 weights ? ".weight" : "");
        put_text(gathered && !i ? "per_layer_token_embd.weight" : s);
        put_number(five ? 5 : 2, 4);
        for (int d = 0; d < (five ? 5 : 2); d++)
            put_number(ne[d], 8);
        put_number(types[i % 4].id, 4);
        put_number(off, 8);
        off += (size_of(i, rows) + real - 1) / real * real;
    }
    put_data(n, rows, real);
    return fclose(out) != 0;
}
