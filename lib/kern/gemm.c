/* SPDX-License-Identifier: MIT */
/* gemm.c - choosing the kernels of dense products; weights by way of floats */
#include "config.h"
#include "kern/gemm.h"

#include "base/compiler.h"
#include "kern/few_columns.h"
#include "kern/gemm_bf16.h"
#include "kern/gemm_i8.h"
#include "kern/gemm_int.h"
#include "kern/gemm_tiles.h"
#include "kern/kern.h"

#include <assert.h>
#include <string.h>

/* Members that follow from the shape of a tile and the name of a level. */
#define EXACT(NAME, LEVEL)                                                    \
    .mr = GG_GEMM_MR_##LEVEL, .nr = GG_GEMM_NR_##LEVEL, .k_block = 1,         \
    .w_block = GG_GEMM_MR_##LEVEL * sizeof(float),                            \
    .x_block = GG_GEMM_NR_##LEVEL * sizeof(float), .kc = GG_GEMM_KC_##LEVEL,  \
    .mc = GG_GEMM_MC_##LEVEL, .round = GG_GEMM_ROUND_##LEVEL,                 \
    .narrow = GG_GEMM_NARROW, .buf_size = GG_GEMM_BUF_SIZE,                   \
    .pack_rows = gg_kern_gemm_pack_decoded,                                   \
    .pack_w = gg_kern_gemm_pack_w_##NAME,                                     \
    .pack_wt = gg_kern_gemm_pack_wt_##NAME,                                   \
    .pack_x = gg_kern_gemm_pack_x_##NAME, .tile = gg_kern_gemm_tile_##NAME,   \
    .dot = gg_kern_gemm_dot_decoded

/* kc makes panels of bf16 as large as exact panels. */
#define BF16(NAME, LEVEL, STEPS)                                              \
    .mr = GG_GEMM_MR_##LEVEL, .nr = GG_GEMM_NR_##LEVEL, .k_block = STEPS,     \
    .w_block = GG_GEMM_MR_##LEVEL * STEPS * sizeof(uint16_t),                 \
    .x_block = GG_GEMM_NR_##LEVEL * STEPS * sizeof(uint16_t),                 \
    .kc = 2 * GG_GEMM_KC_##LEVEL, .mc = GG_GEMM_MC_##LEVEL,                   \
    .round = GG_GEMM_ROUND_##LEVEL, .narrow = GG_GEMM_NARROW,                 \
    .buf_size = GG_GEMM_BUF_SIZE, .pack_rows = gg_kern_gemm_pack_decoded,     \
    .pack_w = gg_kern_bf16_pack_w_##NAME,                                     \
    .pack_x = gg_kern_bf16_pack_x_##NAME, .tile = gg_kern_bf16_tile_##NAME,   \
    .dot = gg_kern_gemm_dot_decoded

#define PACK_GROUPS_c       NULL
#define PACK_GROUPS_256     gg_kern_int_pack_groups_256
#define PACK_GROUPS_dotprod gg_kern_int_pack_groups_256
#define PACK_GROUPS_i8mm    gg_kern_i8_pack_groups_i8mm
#define PACK_X_c            gg_kern_i8_pack_x_c
#define PACK_X_256          gg_kern_i8_pack_x_256
#define PACK_X_dotprod      gg_kern_i8_pack_pairs_256
#define PACK_X_i8mm         gg_kern_i8_pack_pairs_256
/* Order of bytes; what unsigned weights have more as a bias. */
#define ORDER_c           GG_GEMM_I8_BY_QUADS
#define ORDER_256         GG_GEMM_I8_BY_QUADS
#define ORDER_dotprod     GG_GEMM_I8_BY_PAIRS
#define ORDER_i8mm        GG_GEMM_I8_BY_MATRICES
#define LESS_c(TOP)       0
#define LESS_256(TOP)     0
#define LESS_dotprod(TOP) ((TOP) < 127 ? 0 : ((TOP) + 1) / 2)
#define LESS_i8mm(TOP)    LESS_dotprod(TOP)
/* Integer forms have 256 steps a block. kc makes their panels as large as the
 * exact ones. */
#define I16(SCALES, MINS, MOST, LEVEL, PACK, TILE)                            \
    {                                                                         \
        .mr = GG_GEMM_MR_##LEVEL, .nr = GG_GEMM_NR_##LEVEL,                   \
        .k_block = GG_GEMM_INT_STEPS,                                         \
        .w_block = GG_GEMM_INT_W_BLOCK(GG_GEMM_MR_##LEVEL, SCALES, MINS),     \
        .x_block = GG_GEMM_INT_X_BLOCK(GG_GEMM_NR_##LEVEL, MINS),             \
        .kc = 2 * GG_GEMM_KC_##LEVEL, .mc = GG_GEMM_MC_##LEVEL,               \
        .round = GG_GEMM_ROUND_##LEVEL, .buf_size = GG_GEMM_BUF_SIZE,         \
        .pack_rows = gg_kern_gemm_pack_ints, .pack_w = gg_kern_i16_pack_w_c,  \
        .pack_groups = PACK_GROUPS_##PACK,                                    \
        .pack_x = gg_kern_i16_pack_x_##PACK,                                  \
        .tile = gg_kern_i16_tile_##SCALES##_##MINS##_##TILE,                  \
        .ints = { .width = 2,                                                 \
                  .n_scales = SCALES,                                         \
                  .n_mins = MINS,                                             \
                  .most = GG_GEMM_INT_LIMIT(MOST) },                          \
    }
#define I8(SCALES, MINS, BIAS, TOP, LEVEL, PACK, TILE)                        \
    {                                                                         \
        .mr = GG_GEMM_MR_##LEVEL, .nr = GG_GEMM_NR_##LEVEL,                   \
        .k_block = GG_GEMM_INT_STEPS,                                         \
        .w_block = GG_GEMM_I8_W_BLOCK(GG_GEMM_MR_##LEVEL, SCALES, MINS),      \
        .x_block = GG_GEMM_I8_X_BLOCK(GG_GEMM_NR_##LEVEL, SCALES, MINS),      \
        .kc = 4 * GG_GEMM_KC_##LEVEL, .mc = GG_GEMM_MC_##LEVEL,               \
        .round = GG_GEMM_ROUND_##LEVEL, .buf_size = GG_GEMM_BUF_SIZE,         \
        .pack_rows = gg_kern_gemm_pack_ints, .pack_w = gg_kern_i8_pack_w_c,   \
        .pack_groups = PACK_GROUPS_##PACK, .pack_x = PACK_X_##PACK,           \
        .tile = TILE,                                                         \
        .ints = { .width = 1,                                                 \
                  .n_scales = SCALES,                                         \
                  .n_mins = MINS,                                             \
                  .bias = (BIAS)-LESS_##PACK(TOP),                            \
                  .top = (TOP)-LESS_##PACK(TOP),                              \
                  .order = ORDER_##PACK },                                    \
    }
/* TILE(bits, scales, minima) */
#define I8_FORMS(LEVEL, PACK, TILE)                                           \
    I8(8, 0, 8, 15, LEVEL, PACK, TILE(4, 8, 0)),                              \
        I8(8, 0, 16, 31, LEVEL, PACK, TILE(5, 8, 0)),                         \
        I8(8, 0, 64, 127, LEVEL, PACK, TILE(7, 8, 0)),                        \
        I8(8, 0, 128, 255, LEVEL, PACK, TILE(8, 8, 0)),                       \
        I8(8, 8, 0, 15, LEVEL, PACK, TILE(4, 8, 8)),                          \
        I8(8, 8, 0, 31, LEVEL, PACK, TILE(5, 8, 8)),                          \
        I8(16, 0, 32, 63, LEVEL, PACK, TILE(6, 16, 0)),                       \
        I8(16, 0, 64, 127, LEVEL, PACK, TILE(7, 16, 0)),                      \
        I8(1, 0, 8, 15, LEVEL, PACK, TILE(4, 1, 0)),                          \
        I8(1, 0, 128, 255, LEVEL, PACK, TILE(8, 1, 0)),                       \
        I8(1, 0, 127, 255, LEVEL, PACK, TILE(8, 1, 0)),                       \
        I8(1, 16, 0, 63, LEVEL, PACK, TILE(6, 1, 16))
#define TILE_C(BITS, SCALES, MINS) gg_kern_i8_tile_##SCALES##_##MINS##_c
#define TILE_AVXVNNI(BITS, SCALES, MINS)                                      \
    gg_kern_i8_tile_##SCALES##_##MINS##_avxvnni
#define TILE_VNNI512(BITS, SCALES, MINS)                                      \
    gg_kern_i8_tile_##SCALES##_##MINS##_vnni512
#define TILE_DOTPROD(BITS, SCALES, MINS)                                      \
    gg_kern_i8_tile_##SCALES##_##MINS##_dotprod
#define TILE_I8MM(BITS, SCALES, MINS) gg_kern_i8_tile_##SCALES##_##MINS##_i8mm
/* Without VNNI, of less than 8 bits. */
#define TILE_256(BITS, SCALES, MINS)    TILE_U##BITS(SCALES, MINS, 256)
#define TILE_AVX512(BITS, SCALES, MINS) TILE_U##BITS(SCALES, MINS, avx512)
#define TILE_U4(S, M, LEVEL)            gg_kern_u4_tile_##S##_##M##_##LEVEL
#define TILE_U5(S, M, LEVEL)            gg_kern_u5_tile_##S##_##M##_##LEVEL
#define TILE_U6(S, M, LEVEL)            gg_kern_u6_tile_##S##_##M##_##LEVEL
#define TILE_U7(S, M, LEVEL)            gg_kern_u7_tile_##S##_##M##_##LEVEL
#define TILE_U8(S, M, LEVEL)            NULL
#define I16_C(S, M, Q, TILE)            I16(S, M, Q, C, c, TILE),
#define I16_256(S, M, Q, TILE)          I16(S, M, Q, 256, 256, TILE),
#define I16_AVX512(S, M, Q, TILE)       I16(S, M, Q, INT512, 256, TILE),

/* In the order of their enumerators. */
enum {
    N_I16 = GG_GEMM_I16_1_16 - GG_GEMM_I16_8 + 1,
    N_I8 = GG_GEMM_U6_1_16 - GG_GEMM_U4_8 + 1
};

/* Rows of the levels. No row: the level below does it. */
static const struct gg_kern_gemm exact_c = { EXACT(c, C) };
static const struct gg_kern_gemm bf16_c = { BF16(c, C, 2) };
/* clang-format off */
static const struct gg_kern_gemm i16_c[] = { GG_GEMM_I16_FORMS(I16_C, c) };
static const struct gg_kern_gemm i8_c[] = { I8_FORMS(C, c, TILE_C) };
#if HAVE_KERN_256
static const struct gg_kern_gemm exact_256 = { EXACT(256, 256) };
static const struct gg_kern_gemm i16_256[] = {
    GG_GEMM_I16_FORMS(I16_256, 256)
};
static const struct gg_kern_gemm i8_256[] = { I8_FORMS(256, 256, TILE_256) };
#endif
#if HAVE_X86_AVXVNNI
static const struct gg_kern_gemm i16_avxvnni[] = {
    GG_GEMM_I16_FORMS(I16_256, avxvnni)
};
static const struct gg_kern_gemm i8_avxvnni[] = {
    I8_FORMS(256, 256, TILE_AVXVNNI)
};
#endif
#if HAVE_X86_AVX512
static gg_kern_panel_fn *const panel_avx512[GG_N_DTYPES] = {
#define X(TYPE, NAME) [GG_DT_##TYPE] = gg_kern_panel_##NAME##_avx512,
    GG_KERN_PANELS(X)
#undef X
};
static const struct gg_kern_gemm exact_avx512 = {
    EXACT(avx512, AVX512), .panel = panel_avx512
};
static const struct gg_kern_gemm i16_avx512[] = {
    GG_GEMM_I16_FORMS(I16_AVX512, avx512)
};
static const struct gg_kern_gemm i8_avx512[] = {
    I8_FORMS(INT512, 256, TILE_AVX512)
};
#endif
#if HAVE_X86_VNNI512
static const struct gg_kern_gemm i16_vnni512[] = {
    GG_GEMM_I16_FORMS(I16_AVX512, vnni512)
};
static const struct gg_kern_gemm i8_vnni512[] = {
    I8_FORMS(INT512, 256, TILE_VNNI512)
};
#endif
#if HAVE_ARM_DOTPROD
static const struct gg_kern_gemm i8_dotprod[] = {
    I8_FORMS(DOTPROD, dotprod, TILE_DOTPROD)
};
#endif
#if HAVE_ARM_I8MM
static const struct gg_kern_gemm i8_i8mm[] = {
    I8_FORMS(DOTPROD, i8mm, TILE_I8MM)
};
#endif
#if HAVE_X86_AVX512BF16
static const struct gg_kern_gemm bf16_avx512bf16 = {
    BF16(avx512bf16, AVX512, 2)
};
#endif
#if HAVE_ARM_BF16
static const struct gg_kern_gemm bf16_bf16 = { BF16(bf16, 256, 4) };
#endif
#if HAVE_X86_AMX
static const struct gg_kern_gemm i8_amx[] = { GG_GEMM_I8_ROWS_AMX(amx) };
static const struct gg_kern_gemm bf16_amx = GG_GEMM_BF16_ROW_AMX(amx);
#endif
/* clang-format on */

static const struct {
    const struct gg_kern_gemm *exact;
    const struct gg_kern_gemm *bf16; /* NULL: exact is faster */
    const struct gg_kern_gemm *i16;  /* [N_I16] */
    /* [N_I8]. A form without a tile uses that of the level below, except
     * C's. */
    const struct gg_kern_gemm *i8;
} levels[GG_N_LEVELS] = {
    [GG_LEVEL_C] = { &exact_c, &bf16_c, i16_c, i8_c },
#if HAVE_KERN_256
    [GG_LEVEL_256] = { &exact_256, NULL, i16_256, i8_256 },
#endif
#if HAVE_X86_AVXVNNI
    [GG_LEVEL_AVXVNNI] = { NULL, NULL, i16_avxvnni, i8_avxvnni },
#endif
#if HAVE_X86_AVX512
    [GG_LEVEL_AVX512] = { &exact_avx512, NULL, i16_avx512, i8_avx512 },
#endif
#if HAVE_X86_VNNI512
    [GG_LEVEL_VNNI512] = { NULL, NULL, i16_vnni512, i8_vnni512 },
#endif
#if HAVE_X86_AVX512BF16
    [GG_LEVEL_AVX512BF16] = { NULL, &bf16_avx512bf16, NULL, NULL },
#endif
#if HAVE_ARM_DOTPROD
    [GG_LEVEL_DOTPROD] = { NULL, NULL, NULL, i8_dotprod },
#endif
#if HAVE_ARM_I8MM
    [GG_LEVEL_I8MM] = { NULL, NULL, NULL, i8_i8mm },
#endif
#if HAVE_ARM_BF16
    [GG_LEVEL_BF16] = { NULL, &bf16_bf16, NULL, NULL },
#endif
#if HAVE_X86_AMX
    [GG_LEVEL_AMX] = { NULL, &bf16_amx, NULL, i8_amx },
#endif
};

/* A form of integers of a level. */
static void take_form(struct gg_kern_gemm *to, const struct gg_kern_gemm *form,
                      unsigned level)
{
    *to = *form;
    to->few = gg_kern_few_table(level, form->ints.width);
}

void gg_kern_gemm_init(struct gg_kern_gemm *k, uint32_t cpu)
{
    for (unsigned l = 0; l < GG_N_LEVELS; l++) {
        if (!gg_kern_cpu_has_level(cpu, l))
            continue;
        /* Where it is built, AVX2 takes nothing from C. */
        const bool own = l == GG_LEVEL_256 && levels[l].exact;
        if (levels[l].exact)
            k[GG_GEMM_EXACT] = *levels[l].exact;
        if (levels[l].bf16)
            k[GG_GEMM_BF16] = *levels[l].bf16;
        else if (own)
            k[GG_GEMM_BF16] = (struct gg_kern_gemm){ 0 };
        for (unsigned i = 0; levels[l].i16 && i < N_I16; i++)
            take_form(&k[GG_GEMM_I16_8 + i], &levels[l].i16[i], l);
        for (unsigned i = 0; levels[l].i8 && i < N_I8; i++)
            if (levels[l].i8[i].tile || own)
                take_form(&k[GG_GEMM_U4_8 + i], &levels[l].i8[i], l);
#if HAVE_X86_AMX
        for (unsigned i = 0; l == GG_LEVEL_AMX && i < N_I8; i++)
            k[GG_GEMM_U4_8 + i].few_form = &i8_vnni512[i];
#endif
    }
}

/* ---- weights by way of floats ---- */

enum { ROW_HEADER = 8, PART_BYTES = 4096 }; /* most of a header; of a part */

/* Decode elements [at, at + n) of a row. A type with a row header decodes from
 * the first element only, so a later part is decoded from a copy that begins
 * with the header. */
static void decode_part(gg_kern_decode_fn *decode,
                        const struct gguf_dtype_info *dt,
                        const unsigned char *row, size_t at, size_t n,
                        float *dst)
{
    const size_t head = dt->row_header, off = at / dt->block_len;
    if (!head || !at) {
        decode(row + off * dt->block_size, dst, n);
        return;
    }
    unsigned char part[ROW_HEADER + PART_BYTES];
    const size_t most = PART_BYTES / dt->block_size * dt->block_len;
    for (size_t i = 0, k; i < n; i += k) {
        k = GG_MIN(n - i, most);
        memcpy(part, row, head);
        memcpy(part + head,
               row + head + (at + i) / dt->block_len * dt->block_size,
               k / dt->block_len * dt->block_size);
        decode(part, dst + i, k);
    }
}

void gg_kern_gemm_prefetch(const void *p, size_t n)
{
    /* their address may be beyond the tensor: asking does no harm */
    const uintptr_t next = (uintptr_t)p + n;
    for (size_t i = 0; i < n; i += 64)
        GG_PREFETCH((const void *)(next + i));
}

static void pack_some(const struct gg_kern *kern, const struct gg_kern_gemm *g,
                      const struct gg_kern_gemm_rows *w, size_t first,
                      size_t n, size_t k, void *panel, float *buf)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(w->dtype_index);
    gg_kern_decode_fn *decode = kern->codec[w->dtype_index].decode;
    gg_kern_panel_fn *direct =
        g->panel && n == GG_GEMM_PANEL_ROWS ? g->panel[w->dtype_index] : NULL;
    for (size_t p = 0; p < k; p += GG_GEMM_BUF_LEN) {
        const size_t len = GG_MIN(k - p, (size_t)GG_GEMM_BUF_LEN);
        const size_t size = len / dt->block_len * dt->block_size;
        const size_t at = w->first + p,
                     off = at / dt->block_len * dt->block_size;
        const unsigned char *row = w->at;
        unsigned char *to = (unsigned char *)panel + gg_kern_gemm_w_size(g, p);
        for (size_t r = 0; r < n; r++, row += w->stride) {
            gg_kern_gemm_prefetch(row + off, size);
            if (!at) /* prefetch the next rows */
                gg_kern_gemm_prefetch(row + n * w->stride - size, size);
            if (!direct)
                decode_part(decode, dt, row, at, len,
                            buf + r * GG_GEMM_BUF_STRIDE);
        }
        if (direct)
            direct((const unsigned char *)w->at + off, w->stride,
                   (float *)(void *)to + first, g->mr, len);
        else
            g->pack_w(g, to, first, buf, GG_GEMM_BUF_STRIDE, n, len);
    }
}

void gg_kern_gemm_pack_panels(const struct gg_kern *kern,
                              const struct gg_kern_gemm *g,
                              const struct gg_kern_gemm_rows *w, size_t n_rows,
                              size_t k, void *panels, void *buf,
                              gg_kern_gemm_pack_some_fn *some)
{
    const size_t size = gg_kern_gemm_w_size(g, k);
    unsigned char *panel = panels;
    struct gg_kern_gemm_rows part = *w;
    for (size_t i = 0; i < n_rows; i += g->mr, panel += size) {
        const size_t rows = GG_MIN((size_t)g->mr, n_rows - i);
        if (rows < g->mr)
            memset(panel, 0, size);
        for (size_t r = 0; r < rows; r += GG_GEMM_BUF_ROWS) {
            part.at = (const unsigned char *)w->at + (i + r) * w->stride;
            some(kern, g, &part, r, GG_MIN(rows - r, (size_t)GG_GEMM_BUF_ROWS),
                 k, panel, buf);
        }
    }
}

void gg_kern_gemm_pack_decoded(const struct gg_kern *kern,
                               const struct gg_kern_gemm *g,
                               const struct gg_kern_gemm_rows *w,
                               size_t n_rows, size_t k, void *panels,
                               void *buf)
{
    gg_kern_gemm_pack_panels(kern, g, w, n_rows, k, panels, buf, pack_some);
}

enum {
    DOT_LEN = 1024, /* floats of a row at a time, 4 KB of L1 */
    /* Distance in bytes of the prefetch. The best of 2, 4, 8 and 16 KB for Q8_0
     * and Q6_K on a Zen 5. */
    DOT_AHEAD = 4096
};

/* Weights are multiplied where they lie, with the same bits as decoded ones. */
static void dot_direct(gg_kern_dots_fn *dots,
                       const struct gg_kern_gemm_rows *w, size_t m,
                       const float *x, size_t x_stride, size_t n, size_t k,
                       float *y, size_t y_stride)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(w->dtype_index);
    const size_t size = dt->block_size, block_len = dt->block_len;
    const unsigned char *row =
        (const unsigned char *)w->at + w->first / block_len * size;
    for (size_t i = 0; i < m; i++, row += w->stride) {
        float acc[GG_GEMM_NARROW] = { 0 }, sum[GG_GEMM_NARROW];
        for (size_t p = 0; p < k; p += DOT_LEN) {
            const size_t len = GG_MIN(k - p, (size_t)DOT_LEN);
            const unsigned char *src = row + p / block_len * size;
            gg_kern_gemm_prefetch(src + DOT_AHEAD, len / block_len * size);
            dots(sum, src, x + p, x_stride, n, len);
            for (size_t j = 0; j < n; j++)
                acc[j] += sum[j];
        }
        for (size_t j = 0; j < n; j++)
            y[j * y_stride + i] = acc[j];
    }
}
static_assert((int)GG_GEMM_NARROW == (int)GG_KERN_DOTS_COLS + 1,
              "as many columns as narrow products have");

void gg_kern_gemm_dot_decoded(const struct gg_kern *kern,
                              const struct gg_kern_gemm_rows *w, size_t m,
                              const float *x, size_t x_stride, size_t n,
                              size_t k, float *y, size_t y_stride)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(w->dtype_index);
    gg_kern_decode_fn *decode = kern->codec[w->dtype_index].decode;
    gg_vec_dot_fn *dot = kern->vec.dot;
    gg_kern_dots_fn *dots = kern->codec[w->dtype_index].dots;
    _Alignas(64) float row[DOT_LEN];
    if (dots && n) {
        dot_direct(dots, w, m, x, x_stride, n, k, y, y_stride);
        return;
    }
    for (size_t i = 0; i < m; i++) {
        const unsigned char *src =
            (const unsigned char *)w->at + i * w->stride;
        float acc[GG_GEMM_NARROW] = { 0 };
        for (size_t p = 0; p < k; p += DOT_LEN) {
            const size_t len = GG_MIN(k - p, (size_t)DOT_LEN);
            decode_part(decode, dt, src, w->first + p, len, row);
            for (size_t j = 0; j < n; j++)
                acc[j] += dot(row, x + j * x_stride + p, len);
        }
        for (size_t j = 0; j < n; j++)
            y[j * y_stride + i] = acc[j];
    }
}
