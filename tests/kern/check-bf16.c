/* SPDX-License-Identifier: MIT */
/* check-bf16.c - products of BF16 pairs: packers, tiles, and the levels that
 * have them
 *
 * Packed numbers have the same bits at every level. A tile is within the bound
 * of F32 sums in any order; tiles of AMX have the bits of the order that
 * gemm_tiles.h states. It has equal bits if every partial sum is exact,
 * which shows that no pair is missing. check-int-products.c tests whole
 * products.
 */
#include "config.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "base/os/os_math.h"
#include "dtype/f16.h"
#include "kern/gemm_tiles.h"
#include "tests/kern/activations.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    MAX_K = 600,
    MAX_STEPS = MAX_K + GG_GEMM_STEPS_TILES, /* whole blocks */
    MAX_ROWS = 32,
    STRIDE = MAX_K + 3,
    FILL = 0x5a
};

/* ---- packers ---- */

/* Random bits, or a number that is hard to round. */
static float any_float(void)
{
    static const uint32_t special[] = {
        0,          0x80000000, 0x7f800000, 0xff800000, /* zeros, infinities */
        0x7f800001, 0xffc12345, 0x00000001, 0x807fffff, /* NaNs, subnormals */
        0x00800000, 0x7f7fffff, 0x3f808000, 0x3f818000, /* ties */
        0x3f808001, 0x3f817fff, 0xff7f8000, 0x7f7f7fff, /* near infinity */
    };
    const unsigned i = rnd_below(2 * GG_LEN(special));
    return gg_bytes_f32_from_bits(
        i < GG_LEN(special) ? special[i]
                            : rnd_below(65536) << 16 | rnd_below(65536));
}

typedef size_t place_fn(const struct gg_kern_gemm *g, size_t p, size_t r);

static size_t of_w(const struct gg_kern_gemm *g, size_t p, size_t r)
{
    const size_t together = g->enter ? 2 : g->k_block;
    return (p / together * g->mr + r) * together + p % together;
}

static size_t of_x(const struct gg_kern_gemm *g, size_t p, size_t r)
{
    const size_t together = g->enter ? GG_GEMM_STEPS_TILES : g->k_block;
    return (p / together * g->nr + r) * together + p % together;
}

static size_t whole_blocks(const struct gg_kern_gemm *g, size_t k)
{
    return gg_kern_gemm_n_blocks(g, k) * g->k_block;
}

/* Does the packer round rows from `first' like the reference, and write
 * nothing else? */
static bool packs_rows(const struct gg_kern_gemm *g,
                       gg_kern_gemm_pack_fn *pack,
                       const struct gg_kern_gemm *ref,
                       gg_kern_gemm_pack_fn *ref_pack, place_fn *place,
                       size_t width, size_t k)
{
    static float src[MAX_ROWS * STRIDE];
    static uint16_t panel[MAX_STEPS * MAX_ROWS], one[MAX_STEPS * MAX_ROWS];
    const size_t first = rnd_below((unsigned)width),
                 n = 1 + rnd_below((unsigned)(width - first));
    for (size_t i = 0; i < GG_LEN(src); i++)
        src[i] = any_float();
    memset(panel, FILL, sizeof panel);
    pack(g, panel, first, src, STRIDE, n, k);
    for (size_t r = 0; r < width; r++) {
        const bool in = r >= first && r < first + n;
        if (in)
            ref_pack(ref, one, 0, src + (r - first) * STRIDE, STRIDE, 1, k);
        for (size_t p = 0; p < whole_blocks(g, k); p++) {
            const uint16_t want = !in             ? FILL * 0x101
                                  : p < k + k % 2 ? one[place(ref, p, 0)]
                                                  : 0;
            if (panel[place(g, p, r)] != want) {
                printf("# k %zu, row %zu, step %zu: %x, not %x\n", k, r, p,
                       (unsigned)panel[place(g, p, r)], (unsigned)want);
                return false;
            }
        }
    }
    return panel[whole_blocks(g, k) * width] == FILL * 0x101;
}

static void check_packers(const char *level, const struct gg_kern_gemm *g,
                          const struct gg_kern_gemm *ref)
{
    static const size_t lengths[] = { 1, 2, 7, 16, 31, 255, 256, 257, MAX_K };
    bool w = true, x = true;
    for (size_t i = 0; i < 20 * GG_LEN(lengths); i++) {
        const size_t k = lengths[i % GG_LEN(lengths)];
        w = w && packs_rows(g, g->pack_w, ref, ref->pack_w, of_w, g->mr, k);
        x = x && packs_rows(g, g->pack_x, ref, ref->pack_x, of_x, g->nr, k);
    }
    ok(w && x, "%s: rows and columns are rounded as the reference does",
       level);
}

static void check_rounding(const struct gg_kern_gemm *ref)
{
    static const struct {
        uint32_t from;
        uint16_t to;
    } of[] = {
        { 0x3f800000, 0x3f80 }, { 0x3f808000, 0x3f80 }, /* a tie: to even */
        { 0x3f818000, 0x3f82 }, { 0x3f808001, 0x3f81 },
        { 0x7f7fffff, 0x7f80 }, { 0xff800000, 0xff80 },
        { 0x7f800001, 0x7fc0 }, { 0x807fffff, 0x8000 }, /* subnormal */
        { 0x00800000, 0x0080 },
    };
    uint16_t panel[2 * MAX_ROWS];
    bool good = true;
    for (size_t i = 0; i < GG_LEN(of); i++) {
        const float x = gg_bytes_f32_from_bits(of[i].from);
        ref->pack_w(ref, panel, 0, &x, 1, 1, 1);
        good = good && panel[0] == of[i].to && panel[1] == 0;
    }
    ok(good, "rounding: to nearest, ties to even, subnormal numbers to 0");
}

/* ---- tiles ---- */

/* Element (i, j) of a tile in double precision, and the sum of magnitudes. */
static double expected_element(const struct gg_kern_gemm *g, const uint16_t *w,
                               const uint16_t *x, size_t n, size_t i, size_t j,
                               double *size)
{
    double sum = 0;
    *size = 0;
    for (size_t p = 0; p < n; p++) {
        const double v = (double)gg_dtype_bf16_to_f32(w[of_w(g, p, i)]) *
                         (double)gg_dtype_bf16_to_f32(x[of_x(g, p, j)]);
        sum += v;
        *size += fabs(v);
    }
    return sum;
}

/* Element (i, j) of a tile of AMX, in the order of gemm_tiles.h. */
static float tiles_element(const struct gg_kern_gemm *g, const uint16_t *w,
                           const uint16_t *x, size_t n, size_t i, size_t j)
{
    float sum = 0, part[2];
    for (size_t p = 0; p < n; p++) {
        if (p % GG_GEMM_STEPS_TILES == 0)
            part[0] = part[1] = 0;
        part[p % 2] =
            gg_os_fmaf(gg_dtype_bf16_to_f32(x[of_x(g, p, j)]),
                       gg_dtype_bf16_to_f32(w[of_w(g, p, i)]), part[p % 2]);
        if ((p + 1) % GG_GEMM_STEPS_TILES == 0)
            sum += part[0] + part[1];
    }
    return sum;
}

/* exact: small integers, whose sums are exact in any order. n: blocks */
static bool tile_good(const struct gg_kern_gemm *g, size_t n, unsigned n_cols,
                      int add, bool exact)
{
    enum { Y_STRIDE = 37, MAX_NR = 32 };
    static _Alignas(64) uint16_t w[MAX_STEPS * MAX_ROWS],
        x[MAX_STEPS * MAX_NR];
    const size_t steps = n * g->k_block;
    static float y[MAX_NR * Y_STRIDE];
    const float guard = -12345.675f;
    for (size_t i = 0; i < GG_LEN(w); i++)
        w[i] =
            gg_dtype_f32_to_bf16(exact ? (float)rnd_below(15) - 7 : rnd_f32());
    for (size_t i = 0; i < GG_LEN(x); i++)
        x[i] =
            gg_dtype_f32_to_bf16(exact ? (float)rnd_below(15) - 7 : rnd_f32());
    for (size_t i = 0; i < GG_LEN(y); i++)
        y[i] = guard;
    for (size_t j = 0; j < n_cols; j++)
        for (size_t i = 0; i < g->mr; i++)
            y[j * Y_STRIDE + i] = add ? 3 : NAN;
    acts_tile(g, w, x, n, n_cols, y, Y_STRIDE, add);
    for (size_t j = 0; j < MAX_NR; j++)
        for (size_t i = 0; i < Y_STRIDE; i++) {
            const float got = y[j * Y_STRIDE + i];
            double size;
            if (i >= g->mr || j >= n_cols) {
                if (got != guard)
                    return false;
                continue;
            }
            const double want =
                (add ? 3 : 0) + expected_element(g, w, x, steps, i, j, &size);
            const double most =
                exact ? 0 : (double)(steps + 1) * FLT_EPSILON * (size + 3);
            const float tiles = tiles_element(g, w, x, steps, i, j);
            if (!(fabs((double)got - want) <= most) ||
                (g->enter && got != (add ? 3 + tiles : tiles))) {
                printf("# [%zu][%zu] = %a, not %a\n", j, i, (double)got, want);
                return false;
            }
        }
    return true;
}

static void check_tile(const char *level, const struct gg_kern_gemm *g)
{
    bool near = true, same = true;
    for (unsigned cols = 1; cols <= g->nr; cols = acts_next_cols(g, cols))
        for (size_t n = 0; n * g->k_block < MAX_K; n = 2 * n + 1)
            for (int add = 0; add < 2; add++) {
                near = near && tile_good(g, n, cols, add, false);
                same = same && tile_good(g, n, cols, add, true);
            }
    ok(near, "%s: tiles are within the bound of any order%s", level,
       g->enter ? ", and in the order of AMX" : "");
    ok(same, "%s: sums of small integers are exact", level);
}

/* ---- forms ---- */

/* Must a level multiply pairs? C does, and so does a build for C alone. AVX2
 * takes no function from C. */
static bool has_pairs(const struct test_level *level)
{
    const uint32_t mask = level->mask;
    bool has = true;
    (void)mask; /* unused in that build */
#if HAVE_KERN_256
    has = !mask || level->name == tile_model_name();
#endif
#if HAVE_X86_AVX512BF16
    has = has || mask & GG_CPU_AVX512BF16;
#endif
#if HAVE_ARM_BF16
    has = has || mask & GG_CPU_BF16;
#endif
    return has;
}

/* int8 precision multiplies F16 and BF16 as pairs if the level has a tile. */
static void check_forms(const char *level, struct gg_kern *kern, bool has)
{
    bool good = true;
    for (unsigned p = 0; p < GG_N_PRECISIONS; p++) {
        kern->precision = (enum gg_kern_precision)p;
        const enum gg_kern_gemm_form want =
            has && p == GG_PRECISION_INT8 ? GG_GEMM_BF16 : GG_GEMM_EXACT;
        good = good && gg_kern_gemm_form_of(kern, GG_DT_F16) == want &&
               gg_kern_gemm_form_of(kern, GG_DT_BF16) == want &&
               gg_kern_gemm_form_of(kern, GG_DT_F32) == GG_GEMM_EXACT;
    }
    ok(good, "%s: F16 and BF16 are %s in int8, exact in others", level,
       has ? "pairs of bf16" : "exact");
}

int main(int argc, char **argv)
{
    static struct gg_kern kern, ref;
    struct test_level level[ACTS_LEVELS];
    rnd_seed(argc, argv);
    const unsigned n = acts_levels(level);
    gg_kern_init(&ref, 0);
    check_rounding(&ref.gemm[GG_GEMM_BF16]);
    for (unsigned i = 0; i < n; i++) {
        acts_kern_init(&kern, &level[i]);
        const struct gg_kern_gemm *g = &kern.gemm[GG_GEMM_BF16];
        check_forms(level[i].name, &kern, has_pairs(&level[i]));
        if (!g->tile)
            continue;
        check_packers(level[i].name, g, &ref.gemm[GG_GEMM_BF16]);
        check_tile(level[i].name, g);
    }
    return done_testing();
}
