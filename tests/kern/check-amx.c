/* SPDX-License-Identifier: MIT */
/* check-amx.c - products by tile registers
 *
 * Whole products of bytes have the bits of vectors of 256 bits, for every type
 * and any number of columns, with the kernels of amx on registers in C
 * (tile_model.c). Where the machine has AMX, its instructions give the bits of
 * that model. check-int.c, check-bf16.c and check-int-products.c test both
 * further.
 */
#include "config.h"
#include "base/barrier.h"
#include "base/bytes.h"
#include "base/compiler.h"
#include "cpu/matmul.h"
#include "gguf/pool.h"
#include "kern/gemm_tiles.h"
#include "kern/x86/amx.h"
#include "tests/kern/activations.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <string.h>

/* ---- whole products ---- */

struct product {
    struct gg_cpu_gemm_args args;
    struct gg_barrier barrier;
    void *work;
};

static void run_product(void *user, unsigned ith, unsigned nth)
{
    struct product *p = user;
    gg_cpu_gemm_run(&p->args, ith, nth, p->work, &p->barrier);
}

static void multiply_all(struct product *p, const struct gg_kern *kern,
                         float *y, struct gguf_pool *pool)
{
    const unsigned nth = gguf_pool_n_threads(pool);
    p->args.kern = kern;
    p->args.y = y;
    p->work =
        activations_must(malloc(gg_cpu_gemm_work_size(&p->args, nth) + 1));
    if (gg_barrier_init(&p->barrier, nth, 0, NULL)) {
        printf("Bail out! no barrier\n");
        exit(1);
    }
    gguf_pool_run(pool, (struct gguf_pool_callback){ run_product, p });
    gg_barrier_fini(&p->barrier);
    free(p->work);
}

/* Products of m rows of a type by n columns of k steps. */
static bool same_product(const struct gg_kern *a, const struct gg_kern *b,
                         enum gg_kern_gemm_form form, int dtype, size_t m,
                         size_t n, size_t k, struct gguf_pool *pool)
{
    const struct gguf_dtype_info *dt = gg_dtype_by_index(dtype);
    const size_t size = k / dt->block_len * dt->block_size;
    unsigned char *w = activations_must(malloc(m * size));
    float *x = activations_must(malloc(n * k * sizeof *x));
    float *y = activations_must(malloc(2 * n * m * sizeof *y));
    for (size_t i = 0; i < m * size; i++)
        w[i] = (unsigned char)rnd_below(0x60); /* finite scales */
    activations_fill(x, n * k, ACTS_NORMAL);
    struct product p = { .args = { .form = form,
                                   .dtype_index = dtype,
                                   .w = w,
                                   .w_stride = size,
                                   .x = x,
                                   .x_stride = k * sizeof *x,
                                   .y_stride = m * sizeof *y,
                                   .m = (int64_t)m,
                                   .n = (int64_t)n,
                                   .k = (int64_t)k } };
    memset(y, 0x5a, 2 * n * m * sizeof *y);
    multiply_all(&p, a, y, pool);
    multiply_all(&p, b, y + n * m, pool);
    const bool same = !memcmp(y, y + n * m, n * m * sizeof *y);
    if (!same)
        printf("# %zu x %zu x %zu\n", m, n, k);
    free(w);
    free(x);
    free(y);
    return same;
}

static void check_type(const struct gg_kern *a, const struct gg_kern *b,
                       enum gg_kern_gemm_form form, int dtype,
                       struct gguf_pool *const pool[2])
{
    static const size_t shapes[][3] = {
        { 32, 32, 256 },  { 33, 9, 512 },    { 7, 16, 768 },
        { 70, 17, 1280 }, { 129, 33, 2304 }, { 31, 70, 4608 },
    };
    const struct gguf_dtype_info *dt = gg_dtype_by_index(dtype);
    bool same = true;
    for (size_t i = 0; i < GG_LEN(shapes); i++)
        for (size_t less = 0; less < 2; less++) {
            size_t k = shapes[i][2];
            if (less && dt->block_len < ACTS_STEPS) /* a block with a tail */
                k -= dt->block_len;
            same = same && same_product(a, b, form, dtype, shapes[i][0],
                                        shapes[i][1], k, pool[less]);
        }
    ok(same, "%s: products have the bits of vectors", dt->name);
}

static void check_products(void)
{
    static struct gg_kern vectors, tiles;
    struct gguf_pool *pool[2];
    if (!tile_model_name() || !(gg_kern_cpu_detect() & tile_model_mask())) {
        skip("no vectors of 256 bits");
        return;
    }
    for (unsigned t = 0; t < 2; t++) {
        struct gguf_pool_params params = GGUF_INIT(struct gguf_pool_params);
        params.n_threads = 1 + 2 * t;
        if (gguf_pool_create(&pool[t], &params, NULL)) {
            printf("Bail out! no threads\n");
            exit(1);
        }
    }
    gg_kern_init(&vectors, tile_model_mask());
    tiles = vectors;
    tile_model_init(&tiles);
    vectors.precision = tiles.precision = GG_PRECISION_INT8;
    for (int t = 0; t < GG_N_DTYPES; t++) {
        const enum gg_kern_gemm_form form = gg_kern_gemm_form_of(&vectors, t);
        if (vectors.gemm[form].ints.width == 1)
            check_type(&tiles, &vectors, form, t, pool);
    }
    for (unsigned t = 0; t < 2; t++)
        gguf_pool_destroy(pool[t]);
}

/* ---- instructions ---- */

#if HAVE_X86_AMX
enum { ROUNDS = 200 };

static void fill_tile(struct tile *t, bool bf16)
{
    for (int r = 0; r < TILE_ROWS; r++)
        for (int i = 0; i < TILE_ROW_BYTES; i += 2) {
            uint16_t v = (uint16_t)rnd_below(65536);
            /* exponents of sums that stay finite, and subnormal numbers */
            if (bf16)
                v = (uint16_t)((v & 0x807f) |
                               (rnd_below(8) ? 100 + rnd_below(56) : 0) << 7);
            gg_bytes_store16le(t->row[r] + i, v);
        }
}

/* Sums as 32-bit integers or floats. */
static void fill_sums(struct tile *t, bool bf16)
{
    fill_tile(t, false);
    for (int r = 0; r < TILE_ROWS && bf16; r++)
        for (int i = 0; i < TILE_ROW_BYTES; i += 4)
            gg_bytes_store32le(t->row[r] + i, gg_bytes_f32_bits(rnd_f32()));
}

#define ON_HARDWARE(OP)                                                       \
    do {                                                                      \
        TILES_CONFIGURE(&config);                                             \
        TILE_LOAD(0, &c, 64);                                                 \
        TILE_LOAD(1, &a, 64);                                                 \
        TILE_LOAD(2, &b, 64);                                                 \
        OP(0, 1, 2);                                                          \
        TILE_STORE(0, &got, 64);                                              \
        TILES_RELEASE();                                                      \
    } while (0)

static void check_instruction(int which, tile_multiply_fn *model,
                              const char *name)
{
    static struct tile a, b, c, got;
    bool same = true;
    for (int round = 0; round < ROUNDS; round++) {
        const unsigned rows = 1 + rnd_below(16), n = 1 + rnd_below(16);
        const unsigned depth = 4 * (1 + rnd_below(16));
        struct gg_amx_config config = { .palette = 1 };
        config.rows[0] = config.rows[1] = (uint8_t)rows;
        config.row_bytes[0] = config.row_bytes[2] = (uint16_t)(4 * n);
        config.row_bytes[1] = (uint16_t)depth;
        config.rows[2] = (uint8_t)(depth / 4);
        fill_tile(&a, which == 2);
        fill_tile(&b, which == 2);
        fill_sums(&c, which == 2);
        if (which == 0)
            ON_HARDWARE(TILE_MULTIPLY_SS);
        else if (which == 1)
            ON_HARDWARE(TILE_MULTIPLY_SU);
        else
            ON_HARDWARE(TILE_MULTIPLY_BF16);
        model(&c, &a, &b, (int)rows, (int)n, (int)depth);
        for (unsigned r = 0; r < rows; r++)
            same = same && !memcmp(got.row[r], c.row[r], (size_t)4 * n);
    }
    ok(same, "%s gives the bits of the model", name);
}
#endif

static void check_instructions(void)
{
#if HAVE_X86_AMX
    if (gg_kern_cpu_request(gg_kern_cpu_detect()) & GG_CPU_AMX) {
        check_instruction(0, tile_multiply_ss, "TDPBSSD");
        check_instruction(1, tile_multiply_su, "TDPBSUD");
        check_instruction(2, tile_multiply_bf16, "TDPBF16PS");
        return;
    }
#endif
    skip("no AMX in the processor, the system or this build");
}

int main(int argc, char **argv)
{
    rnd_seed(argc, argv);
    check_products();
    check_instructions();
    return done_testing();
}
