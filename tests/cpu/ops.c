/* SPDX-License-Identifier: MIT */
/* ops.c - sources, teams of threads, comparison: see ops.h */
#include "config.h"
#include "tests/cpu/ops.h"
#include "graph/op_table.h"

#include <stdarg.h>

static const unsigned threads[N_TEAMS] = { 1, 2, 3, 8 };
struct gguf_pool *ops_pools[N_TEAMS];
struct gguf_backend *ops_backends[N_TEAMS];
struct gg_kern ops_kern;
char ops_text[512];

const char *const layout_names[N_LAYOUTS] = { "plain", "padded", "swapped",
                                              "transposed" };
const uint32_t float_types[N_FLOATS] = { GGUF_DTYPE_F32, GGUF_DTYPE_F16,
                                         GGUF_DTYPE_BF16 };
const int64_t shapes[N_SHAPES][4] = {
    { 1, 1, 1, 1 }, { 7, 1, 1, 1 },    { 64, 5, 1, 1 }, { 33, 12, 6, 2 },
    { 0, 3, 1, 1 }, { 130, 40, 1, 1 }, { 5, 0, 2, 1 },
};

static void bail_out(const char *why)
{
    printf("Bail out! %s\n", why);
    exit(99);
}

void ops_begin(void)
{
    struct gguf_error err;
    gg_kern_init(&ops_kern, 0);
    gg_codec_kern_set_native_order(ops_kern.codec);
    for (int i = 0; i < N_TEAMS; i++) {
        struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
        struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
        pp.n_threads = threads[i];
        if (gguf_pool_create(&ops_pools[i], &pp, &err) != GGUF_OK)
            bail_out(err.message);
        cp.pool = ops_pools[i];
        if (gguf_cpu_backend_create(&ops_backends[i], &cp, &err) != GGUF_OK)
            bail_out(err.message);
    }
}

/* seen: the operation had a case; shared: one that several threads computed,
 * as lib/cpu/graph_run.c decides. */
static bool seen[GGUF_N_OPS], shared[GGUF_N_OPS];

static void note_case(const tensor *t)
{
    const tensor *n = gg_op_row(t->op)->flags & GG_OP_VIEW ? t->view_src : t;
    seen[n->op] = true;
    shared[n->op] =
        shared[n->op] || (gg_op_row(n->op)->cost(n) > 2048 &&
                          (gguf_tensor_n_rows(n) > 1 || !n->src[0] ||
                           gguf_tensor_n_rows(n->src[0]) > 1));
}

bool ops_finish(void)
{
    bool all = true;
    for (int i = 0; i < N_TEAMS; i++) {
        gguf_backend_destroy(ops_backends[i]);
        gguf_pool_destroy(ops_pools[i]);
    }
    for (uint32_t op = 1; op < GGUF_N_OPS; op++)
        if (seen[op] && !shared[op]) {
            printf("# %s: all cases are small\n", gguf_op_name(op));
            all = false;
        }
    return all;
}

ctx_t *new_ctx(void)
{
    struct gguf_ctx_params p = GGUF_CTX_PARAMS_INIT;
    struct gguf_error err;
    ctx_t *c;
    p.mem_size = 16 << 20;
    if (gguf_ctx_create(&c, &p, &err) != GGUF_OK)
        bail_out(err.message);
    return c;
}

static void *must_alloc(size_t size)
{
    void *p = malloc(size + 1);
    if (!p)
        bail_out("out of memory");
    return p;
}

/* --- sources -------------------------------------------------------------- */

void fill(tensor *t)
{
    int64_t n = gguf_tensor_n_elements(t);
    int i = gg_dtype_index(t->dtype);
    int64_t ne0 = t->ne[0];
    if (t->dtype == GGUF_DTYPE_I32) {
        for (int64_t k = 0; k < n; k++)
            ((int32_t *)t->data)[k] = (int32_t)rnd_below(1000);
        return;
    }
    float *row = must_alloc(sizeof *row * (size_t)ne0);
    for (int64_t r = 0; ne0 && r < n / ne0; r++) {
        for (int64_t k = 0; k < ne0; k++)
            row[k] = 3 * rnd_f32();
        ops_kern.codec[i].encode(row, (char *)t->data + r * t->nb[1], 1,
                                 (size_t)ne0, NULL);
    }
    free(row);
}

tensor *source(ctx_t *c, uint32_t dtype, enum layout layout, int64_t n0,
               int64_t n1, int64_t n2, int64_t n3)
{
    tensor *t;
    int64_t pad = gguf_dtype_find(dtype)->block_len;
    switch (layout) {
    case PADDED:
        t = gguf_tensor_create_4d(c, dtype, n0 + 2 * pad, n1 + 1, n2, n3);
        fill(t);
        /* an empty tensor has no inside */
        return gguf_op_view_4d(c, t, n0, n1, n2, n3, t->nb[1], t->nb[2],
                               t->nb[3], n2 && n3 ? (uint64_t)t->nb[0] : 0);
    case SWAPPED:
        t = gguf_tensor_create_4d(c, dtype, n0, n2, n1, n3);
        fill(t);
        return gguf_op_permute(c, t, 0, 2, 1, 3);
    case TRANSPOSED:
        t = gguf_tensor_create_4d(c, dtype, n1, n0, n2, n3);
        fill(t);
        return gguf_op_transpose(c, t);
    default:
        t = gguf_tensor_create_4d(c, dtype, n0, n1, n2, n3);
        fill(t);
        return t;
    }
}

tensor *between(ctx_t *c, enum layout layout, int64_t n0, int64_t n1,
                int64_t n2, int64_t n3, double low, double high)
{
    tensor *t = source(c, GGUF_DTYPE_F32, layout, n0, n1, n2, n3);
    tensor *root = t->view_src ? t->view_src : t;
    float *x = root->data;
    for (int64_t i = 0; i < gguf_tensor_n_elements(root); i++)
        x[i] = (float)(low + (high - low) * ((double)rnd_f32() + 1) / 2);
    return t;
}

void set_ids(tensor *ids, int64_t below)
{
    for (int64_t i = 0; i < gguf_tensor_n_elements(ids); i++)
        ((int32_t *)ids->data)[i] = (int32_t)rnd_below((uint64_t)below);
}

const char *type_name(const tensor *t)
{
    return gguf_dtype_find(t->dtype)->name;
}

double at(const tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3)
{
    const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
    const char *p =
        (const char *)t->data + i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3];
    if (t->dtype == GGUF_DTYPE_I32) {
        int32_t v;
        memcpy(&v, p + i0 * t->nb[0], sizeof v);
        return v;
    }
    float block[256];
    ops_kern.codec[gg_dtype_index(t->dtype)].decode(
        p + i0 / info->block_len * t->nb[0], block, info->block_len);
    return (double)block[i0 % info->block_len];
}

double linear(const tensor *t, int64_t i)
{
    int64_t a = t->ne[0], b = a * t->ne[1], d = b * t->ne[2];
    return at(t, i % a, i % b / a, i % d / b, i / d);
}

double src_at(const tensor *t, int k, int64_t i0, int64_t i1, int64_t i2,
              int64_t i3)
{
    const tensor *s = t->src[k];
    return at(s, i0 % s->ne[0], i1 % s->ne[1], i2 % s->ne[2], i3 % s->ne[3]);
}

double ulp(const tensor *t, double v)
{
    double e = t->dtype == GGUF_DTYPE_F16    ? 0x1p-10
               : t->dtype == GGUF_DTYPE_BF16 ? 0x1p-7
                                             : 0x1p-23;
    return e * fabs(v) + (t->dtype == GGUF_DTYPE_F16 ? 0x1p-24 : 1e-38);
}

double slope_of(double max_bias, int64_t head, int64_t n_head)
{
    if (max_bias <= 0)
        return 1;
    int64_t n = 1;
    while (2 * n <= n_head)
        n *= 2;
    return head < n ? pow(2, -max_bias * (double)(head + 1) / (double)n)
                    : pow(2, -max_bias / 2 * (double)(2 * (head - n) + 1) /
                                 (double)n);
}

/* --- running -------------------------------------------------------------- */

/* Largest error divided by the tolerance; 0: every element is within it. */
static double compare_formula(const tensor *t, formula *f)
{
    double worst = 0, tol = 0;
    for (int64_t i3 = 0; i3 < t->ne[3]; i3++)
        for (int64_t i2 = 0; i2 < t->ne[2]; i2++)
            for (int64_t i1 = 0; i1 < t->ne[1]; i1++)
                for (int64_t i0 = 0; i0 < t->ne[0]; i0++) {
                    double want = f(t, i0, i1, i2, i3, &tol);
                    double is = at(t, i0, i1, i2, i3);
                    double d = is == want ? 0 : fabs(is - want);
                    if (!(d <= tol))
                        worst = fmax(worst, d / (tol > 0 ? tol : 1e-300));
                    if (d != d)
                        worst = INFINITY;
                }
    return worst;
}

/* Memory of the result: before any run, and after the first team's. */
struct memory {
    void *data;
    size_t size;
    char *before, *first;
};

/* Restore all sources before each team runs: operations may write into them. */
static enum gguf_status run_teams(struct memory *m, struct gguf_graph *g,
                                  bool *same, struct gguf_error *err)
{
    memcpy(m->before, m->data, m->size);
    for (int k = 0; k < N_TEAMS; k++) {
        memcpy(m->data, m->before, m->size);
        enum gguf_status st = gguf_backend_compute(ops_backends[k], g, err);
        if (st != GGUF_OK)
            return st;
        if (!k)
            memcpy(m->first, m->data, m->size);
        *same = *same && !memcmp(m->first, m->data, m->size);
    }
    return GGUF_OK;
}

/* Does t have the same bits in the memory of its source i? */
static bool same_in_place(tensor *t, int i, const struct memory *m,
                          struct gguf_graph *g)
{
    tensor *s = t->src[i];
    void *data = t->data, *kept = must_alloc(m->size);
    memcpy(kept, s->data, m->size);
    t->data = s->data;
    bool same = gguf_backend_compute(ops_backends[2], g, NULL) == GGUF_OK &&
                !memcmp(m->first, s->data, m->size);
    memcpy(s->data, kept, m->size);
    t->data = data;
    free(kept);
    return same;
}

static bool all_in_place(tensor *t, const struct memory *m,
                         struct gguf_graph *g)
{
    for (int i = 0; i < GGUF_TENSOR_SRC; i++)
        if (gg_op_row(t->op)->inplace >> i & 1 && t->src[i] &&
            !t->src[i]->view_src && gguf_tensor_same_layout(t, t->src[i]) &&
            !same_in_place(t, i, m, g)) {
            printf("# differs where source %d lies\n", i);
            return false;
        }
    return true;
}

bool ops_case(ctx_t *c, tensor *t, formula *f, const char *name, ...)
{
    struct gguf_error err;
    tensor *root = t && t->view_src ? t->view_src : t;
    struct gguf_graph *g = gguf_graph_create(c, 32);
    va_list ap;
    va_start(ap, name);
    vsnprintf(ops_text, sizeof ops_text, name, ap);
    va_end(ap);
    if (gguf_graph_finish(c, g, t, &err) != GGUF_OK) {
        printf("# %s: %s\n", ops_text, err.message);
        return false;
    }
    if (!gguf_backend_supports_op(ops_backends[0], t)) {
        printf("# %s: not supported\n", ops_text);
        return false;
    }
    note_case(t);
    struct memory m = { .data = root->data,
                        .size = (size_t)gguf_tensor_size(root) };
    m.before = must_alloc(m.size);
    m.first = must_alloc(m.size);
    bool same = true, good = false;
    if (run_teams(&m, g, &same, &err) != GGUF_OK) {
        printf("# %s: %s\n", ops_text, err.message);
    } else {
        double worst = compare_formula(t, f);
        good = !(worst > 0) && same && all_in_place(t, &m, g);
        if (!good)
            printf("# %s: %g of the tolerance, %s bits\n", ops_text, worst,
                   same ? "equal" : "different");
    }
    free(m.before);
    free(m.first);
    return good;
}

bool ops_refused(ctx_t *c, const tensor *t, enum gguf_status status,
                 const char *const *pieces)
{
    struct gguf_error err = { 0 };
    bool good = gguf_ctx_status(c, &err) == status && !t;
    for (; *pieces; pieces++)
        good = good && strstr(err.message, *pieces);
    snprintf(ops_text, sizeof ops_text, "%s", err.message);
    gguf_ctx_reset(c);
    return good;
}
