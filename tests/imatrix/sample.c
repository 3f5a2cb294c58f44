/* SPDX-License-Identifier: MIT */
/* sample.c - writes importance data without the library */
#include "config.h"
#include "tests/imatrix/sample.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS = 8, CHUNK_SIZE = 64, N_LAYERS = 4 };

/* Tensors of a layer in the order of names, and one after them. */
static const struct kind {
    const char *name;
    uint32_t n_cols, n_mats;
} kinds[] = {
    { "attn_k.weight", 256, 1 },       { "attn_output.weight", 256, 1 },
    { "attn_q.weight", 256, 1 },       { "attn_v.weight", 256, 1 },
    { "ffn_down.weight", 768, 1 },     { "ffn_gate.weight", 256, 1 },
    { "ffn_gate_exps.weight", 64, 4 }, { "ffn_up.weight", 256, 1 },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };
enum { N_ENTRIES = N_LAYERS * N_KINDS + 1 };

static struct kind entry_name(unsigned i, char name[64])
{
    if (i == N_ENTRIES - 1) {
        strcpy(name, "output.weight");
        return (struct kind){ name, 256, 1 };
    }
    snprintf(name, 64, "blk.%u.%s", i / N_KINDS, kinds[i % N_KINDS].name);
    return kinds[i % N_KINDS];
}

/* Number of tokens that a matrix got. */
static float count_rows(const struct kind *k, uint32_t mat)
{
    static const float experts[4] = { 200, 100, 24, 188 };
    return k->n_mats > 1 ? experts[mat] : CHUNKS * CHUNK_SIZE;
}

static uint32_t n_calls(const struct kind *k)
{
    return ((uint32_t)count_rows(k, 0) + CHUNK_SIZE - 1) / CHUNK_SIZE;
}

/* Sum of squares of a column. */
static float sum_of(unsigned i, uint32_t at)
{
    uint32_t x = (i * 7919 + at + 1) * UINT32_C(2654435761);
    x ^= x >> 15;
    return (float)(1 + x % 100003) * 0x1p-6f;
}

static FILE *f;

static void put_bytes(uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        fputc((int)(v >> 8 * i & 255), f);
}

static void put_float(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, 4);
    put_bytes(bits, 4);
}

/* A text after its length in size bytes. */
static void put_text(const char *s, int size)
{
    put_bytes(strlen(s), size);
    fputs(s, f);
}

bool write_sample_dat(const char *path)
{
    f = fopen(path, "wb");
    if (!f)
        return false;
    put_bytes(N_ENTRIES, 4);
    for (unsigned i = 0; i < N_ENTRIES; i++) {
        char name[64];
        const struct kind k = entry_name(i, name);
        put_text(name, 4);
        put_bytes(n_calls(&k), 4);
        put_bytes(k.n_cols * k.n_mats, 4);
        for (uint32_t c = 0; c < k.n_cols * k.n_mats; c++) {
            const float mean = sum_of(i, c) / count_rows(&k, c / k.n_cols);
            put_float(mean * (float)n_calls(&k));
        }
    }
    put_bytes(CHUNKS, 4);
    put_text("made.txt", 4);
    return fclose(f) == 0;
}

/* Entry of a tensor in the file's header. */
static uint64_t put_info(const char *name, const char *suffix, uint32_t ne0,
                         uint32_t ne1, uint64_t off)
{
    put_bytes(strlen(name) + strlen(suffix), 8);
    fprintf(f, "%s%s", name, suffix);
    put_bytes(ne1 > 1 ? 2 : 1, 4);
    put_bytes(ne0, 8);
    if (ne1 > 1)
        put_bytes(ne1, 8);
    put_bytes(0, 4); /* F32 */
    put_bytes(off, 8);
    return off + (4 * (uint64_t)ne0 * ne1 + 31) / 32 * 32;
}

static void pad_file(void)
{
    while (ftell(f) % 32)
        fputc(0, f);
}

static void put_meta(void)
{
    fputs("GGUF", f);
    put_bytes(3, 4);
    put_bytes(2 * N_ENTRIES, 8);
    put_bytes(4, 8);
    put_text("general.type", 8);
    put_bytes(8, 4);
    put_text("imatrix", 8);
    put_text("imatrix.datasets", 8);
    put_bytes(9, 4);
    put_bytes(8, 4);
    put_bytes(1, 8);
    put_text("made.txt", 8);
    put_text("imatrix.chunk_count", 8);
    put_bytes(4, 4);
    put_bytes(CHUNKS, 4);
    put_text("imatrix.chunk_size", 8);
    put_bytes(4, 4);
    put_bytes(CHUNK_SIZE, 4);
}

bool write_sample_gguf(const char *path)
{
    uint64_t off = 0;
    f = fopen(path, "wb");
    if (!f)
        return false;
    put_meta();
    for (unsigned i = 0; i < N_ENTRIES; i++) {
        char name[64];
        const struct kind k = entry_name(i, name);
        off = put_info(name, ".in_sum2", k.n_cols, k.n_mats, off);
        off = put_info(name, ".counts", 1, k.n_mats, off);
    }
    for (unsigned i = 0; i < N_ENTRIES; i++) {
        char name[64];
        const struct kind k = entry_name(i, name);
        pad_file();
        for (uint32_t c = 0; c < k.n_cols * k.n_mats; c++)
            put_float(sum_of(i, c));
        pad_file();
        for (uint32_t m = 0; m < k.n_mats; m++)
            put_float(count_rows(&k, m));
    }
    pad_file();
    return fclose(f) == 0;
}
