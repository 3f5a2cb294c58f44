/* SPDX-License-Identifier: MIT */
/* tile_model.c - products by tile registers on any machine */
#include "config.h"
#include "tests/kern/tile_model.h"
#include "base/bytes.h"
#include "base/os/os_math.h"
#include "dtype/f16.h"
#include "kern/x86/amx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- definitions of the products ---- */

static int32_t sum_at(const struct tile *t, int row, int i)
{
    return (int32_t)gg_bytes_load32le(t->row[row] + 4 * i);
}

static void multiply_bytes_of(struct tile *c, const struct tile *a,
                              const struct tile *b, int rows, int n, int depth,
                              bool is_signed)
{
    enum { N = TILE_ROW_BYTES / 4 };
    uint32_t sum[TILE_ROWS][N] = { { 0 } }, w[N] = { 0 };
    for (int m = 0; m < rows; m++)
        for (int i = 0; i < n; i++)
            sum[m][i] = (uint32_t)sum_at(c, m, i);
    for (int k = 0; k < depth; k++) {
        for (int i = 0; i < n; i++) {
            const uint8_t byte = b->row[k / 4][4 * i + k % 4];
            w[i] = is_signed ? (uint32_t)(int8_t)byte : byte;
        }
        for (int m = 0; m < rows; m++)
            for (int i = 0; i < N; i++)
                sum[m][i] += (uint32_t)(int8_t)a->row[m][k] * w[i];
    }
    for (int m = 0; m < rows; m++)
        for (int i = 0; i < n; i++)
            gg_bytes_store32le(c->row[m] + 4 * i, sum[m][i]);
}

void tile_multiply_ss(struct tile *c, const struct tile *a,
                      const struct tile *b, int rows, int n, int depth)
{
    multiply_bytes_of(c, a, b, rows, n, depth, true);
}

void tile_multiply_su(struct tile *c, const struct tile *a,
                      const struct tile *b, int rows, int n, int depth)
{
    multiply_bytes_of(c, a, b, rows, n, depth, false);
}

static float flush_subnormal(float v)
{
    return fabsf(v) < 0x1p-126f ? copysignf(0, v) : v;
}

static float bf16_at(const struct tile *t, int row, int i)
{
    return flush_subnormal(
        gg_dtype_bf16_to_f32(gg_bytes_load16le(t->row[row] + 2 * i)));
}

void tile_multiply_bf16(struct tile *c, const struct tile *a,
                        const struct tile *b, int rows, int n, int depth)
{
    for (int m = 0; m < rows; m++)
        for (int i = 0; i < n; i++) {
            float part[2] = { 0, 0 };
            for (int k = 0; k < depth / 2; k++)
                part[k % 2] = flush_subnormal(
                    gg_os_fmaf(bf16_at(a, m, k),
                               bf16_at(b, k / 2, 2 * i + k % 2), part[k % 2]));
            const float was =
                gg_bytes_f32_from_bits((uint32_t)sum_at(c, m, i));
            const float sum = flush_subnormal(
                flush_subnormal(was) + flush_subnormal(part[0] + part[1]));
            gg_bytes_store32le(c->row[m] + 4 * i, gg_bytes_f32_bits(sum));
        }
}

#if HAVE_KERN_256
/* ---- registers ---- */

static _Thread_local struct {
    struct gg_amx_config config; /* palette 0: none */
    struct tile tile[8];
} own;

static void fault_if(bool fault, const char *what)
{
    if (fault) {
        printf("Bail out! %s would fault\n", what);
        exit(1);
    }
}

static void load_config(const struct gg_amx_config *c)
{
    fault_if(c->palette != 1 || c->start_row, "LDTILECFG");
    for (int t = 0; t < 8; t++)
        fault_if(c->row_bytes[t] > TILE_ROW_BYTES || c->rows[t] > TILE_ROWS ||
                     !c->row_bytes[t] != !c->rows[t],
                 "LDTILECFG");
    own.config = *c;
    memset(own.tile, 0, sizeof own.tile);
}

static void check_use(int t, const char *what)
{
    fault_if(own.config.palette != 1 || !own.config.rows[t], what);
}

static void zero_tile(int t)
{
    check_use(t, "TILEZERO");
    memset(&own.tile[t], 0, sizeof own.tile[t]);
}

static void load_tile(int t, const void *at, size_t stride)
{
    check_use(t, "TILELOADD");
    memset(&own.tile[t], 0, sizeof own.tile[t]);
    for (size_t r = 0; r < own.config.rows[t]; r++)
        memcpy(own.tile[t].row[r], (const char *)at + r * stride,
               own.config.row_bytes[t]);
}

static void store_tile(int t, void *at, size_t stride)
{
    check_use(t, "TILESTORED");
    for (size_t r = 0; r < own.config.rows[t]; r++)
        memcpy((char *)at + r * stride, own.tile[t].row[r],
               own.config.row_bytes[t]);
}

static void multiply_tiles(tile_multiply_fn *fn, int c, int a, int b)
{
    const struct gg_amx_config *s = &own.config;
    const char *what = "a product of tiles";
    check_use(c, what);
    check_use(a, what);
    check_use(b, what);
    fault_if(a == b || b == c || a == c || s->rows[c] != s->rows[a] ||
                 s->row_bytes[c] != s->row_bytes[b] ||
                 s->row_bytes[a] != 4 * s->rows[b],
             what);
    fn(&own.tile[c], &own.tile[a], &own.tile[b], s->rows[c],
       s->row_bytes[c] / 4, s->row_bytes[a]);
}

#undef TILES_CONFIGURE
#undef TILES_RELEASE
#undef TILE_ZERO
#undef TILE_LOAD
#undef TILE_STORE
#undef TILE_MULTIPLY_SS
#undef TILE_MULTIPLY_SU
#undef TILE_MULTIPLY_BF16
#define TILES_CONFIGURE(config)     load_config(config)
#define TILES_RELEASE()             ((void)(own.config.palette = 0))
#define TILE_ZERO(t)                zero_tile(t)
#define TILE_LOAD(t, at, stride)    load_tile(t, at, stride)
#define TILE_STORE(t, at, stride)   store_tile(t, at, stride)
#define TILE_MULTIPLY_SS(c, a, b)   multiply_tiles(tile_multiply_ss, c, a, b)
#define TILE_MULTIPLY_SU(c, a, b)   multiply_tiles(tile_multiply_su, c, a, b)
#define TILE_MULTIPLY_BF16(c, a, b) multiply_tiles(tile_multiply_bf16, c, a, b)

/* ---- kernels ---- */

static void round_steps(uint16_t *to, const float *x, size_t n)
{
    for (size_t i = 0; i < 32; i++)
        to[i] = i < n ? gg_dtype_f32_to_bf16(flush_subnormal(x[i])) : 0;
}

#include "kern/simd/vi_256.h"

#define NAME        model
#define LANES       8
#define ROUND_STEPS round_steps
#define PACK_PAIRS  gg_kern_bf16_pack_w_c
#include "kern/gemm_tiles.h"
GG_GEMM_TILES_DECLARE(model)
#include "kern/x86/amx_impl.h"

const char *tile_model_name(void)
{
    return "amx in C";
}

uint32_t tile_model_mask(void)
{
    return GG_CPU_256;
}

void tile_model_init(struct gg_kern *k)
{
    static const struct gg_kern_gemm bytes[] = { GG_GEMM_I8_ROWS_AMX(model) };
    static const struct gg_kern_gemm pairs = GG_GEMM_BF16_ROW_AMX(model);
    static struct gg_kern_gemm below[GG_LEN(bytes)];
    for (unsigned i = 0; i < GG_LEN(bytes); i++) {
        struct gg_kern_gemm *g = &k->gemm[GG_GEMM_U4_8 + i];
        below[i] = *g;
        *g = bytes[i];
        g->few = below[i].few;
        g->few_form = &below[i];
        g->kc = below[i].kc; /* steps of a sum */
    }
    k->gemm[GG_GEMM_BF16] = pairs;
}
#else
const char *tile_model_name(void)
{
    return NULL;
}

uint32_t tile_model_mask(void)
{
    return 0;
}

void tile_model_init(struct gg_kern *k)
{
    (void)k;
}
#endif
