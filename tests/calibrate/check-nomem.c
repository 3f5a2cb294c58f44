/* SPDX-License-Identifier: MIT */
/* check-nomem.c - a failing allocation in each step of a stage */
#include "config.h"
#include "base/error.h"
#include "calibrate/stage_encode.h"
#include "dtype/dtype_int.h"
#include "tests/calibrate/stage_text.h"
#include "tests/failalloc.h"

enum { DTYPE = GG_DT_F16 };

static const float *matrix;
static unsigned char *bytes;

static enum gguf_status read_rows(void *user, size_t first, size_t n_rows,
                                  float *dst, struct gguf_error *err)
{
    const size_t n = *(const size_t *)user;
    (void)err;
    memcpy(dst, matrix + first * n, n_rows * n * sizeof *dst);
    return GGUF_OK;
}

static enum gguf_status encode_rows(void *user, const struct gg_targets *t,
                                    const float *curvature,
                                    const float *target, size_t n_rows,
                                    void *to, struct gguf_error *err)
{
    (void)user;
    (void)curvature;
    (void)target;
    (void)err;
    memset(to, 0x11, n_rows * t->n * 2);
    return GGUF_OK;
}

static enum gguf_status encode_matrix(const struct stage_text *s,
                                      struct gg_moments *m,
                                      struct gg_linalg *la,
                                      struct gguf_error *err)
{
    const struct gg_targets_params p = { .n_rows = 1, .keep_s = true };
    const struct gg_stage_encode_job x = { .dtype_index = DTYPE,
                                           .outer_scale = 1,
                                           .expert = s->n_used ? 1 : SIZE_MAX,
                                           .reader = { read_rows,
                                                       (void *)&s->n },
                                           .encoder = { encode_rows, NULL },
                                           .bytes = bytes };
    struct gg_stage_encode_result result;
    struct gg_targets *t;
    GG_TRY(gg_targets_create(&t, la, m, x.expert, &p, err));
    const enum gguf_status st =
        gg_stage_encode_matrix(t, m, la, &x, &result, err);
    gg_targets_destroy(t);
    return st;
}

/* All steps of a stage in one call. */
static enum gguf_status run_stage(const struct stage_text *s,
                                  const struct gguf_allocator *a,
                                  struct gguf_error *err)
{
    const struct gg_moments_product product = { s->m, !s->n_used, 1 };
    struct gg_moments_params p = { .n = s->n,
                                   .product = &product,
                                   .n_products = 1,
                                   .n_experts = s->n_experts,
                                   .n_used = s->n_used,
                                   .allocator = a };
    const float *r[] = { s->r }, *rq[] = { s->rq };
    const struct gg_moments_batch b = { .n_tokens = s->n_tokens,
                                        .x = s->x,
                                        .xq = s->xq,
                                        .x_stride = s->n,
                                        .xq_stride = s->n,
                                        .ids = s->ids,
                                        .ids_q = s->ids_q,
                                        .ids_stride = s->n_used,
                                        .ids_q_stride = s->n_used,
                                        .r = r,
                                        .rq = rq,
                                        .r_stride = s->m,
                                        .rq_stride = s->m };
    struct gg_linalg la;
    struct gg_moments *m;
    gg_heldout_init(&p.heldout, s->n_tokens, s->n_ctx, 64);
    GG_TRY(gg_moments_create(&m, &p, err));
    gg_linalg_init(&la, NULL, a);
    enum gguf_status st = gg_moments_add(m, &la, &b, err);
    if (!st) {
        gg_moments_finish(m, &la);
        st = encode_matrix(s, m, &la, err);
    }
    gg_moments_destroy(m);
    gg_linalg_fini(&la);
    return st;
}

static void check_failures(const struct stage_text *s, const char *what)
{
    struct failalloc fa;
    struct gguf_error err;
    bool good = true, kept = true;
    unsigned n = 0;
    for (;; n++) {
        memset(bytes, 7, s->m * s->n * 2);
        const enum gguf_status st = run_stage(s, failalloc_init(&fa, n), &err);
        good &= fa.live == 0;
        if (fa.calls <= n) {
            good &= st == GGUF_OK;
            break;
        }
        good &= st == GGUF_E_NOMEM && err.status == GGUF_E_NOMEM;
        kept &= bytes[0] == 7 && bytes[s->m * s->n * 2 - 1] == 7;
    }
    ok(good && n > 20, "%s: each of %u failing calls is reported", what, n);
    ok(kept, "%s: the plain bytes stay", what);
}

int main(void)
{
    struct stage_text dense = {
        .n_tokens = 160, .n_ctx = 20, .n = 20, .m = 6, .factor = 1
    };
    struct stage_text experts = { .n_tokens = 400,
                                  .n_ctx = 20,
                                  .n = 20,
                                  .m = 6,
                                  .n_used = 2,
                                  .n_experts = 3,
                                  .factor = 1 };
    stage_fill(&dense);
    stage_fill(&experts);
    matrix = dense_random(20 * 6);
    bytes = dense_alloc(20 * 6, 2);
    check_failures(&dense, "dense");
    check_failures(&experts, "experts");
    stage_free(&dense);
    stage_free(&experts);
    free((void *)matrix);
    free(bytes);
    return done_testing();
}
