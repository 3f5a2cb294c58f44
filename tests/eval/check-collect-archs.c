/* SPDX-License-Identifier: MIT */
/* check-collect-archs.c - importance data of every architecture
 *
 * The right matrices have data, and each expert has the sums of its own rows.
 * Digits do not depend on how the text is cut. Nothing is computed after the
 * last product that is collected.
 */
#include "config.h"
#include "base/compiler.h"
#include "eval/collect_int.h"
#include "gguf/collect.h"
#include "gguf/op.h"
#include "run/session_int.h"
#include "tests/model/run.h"
#include "tests/family/skeleton.h"
#include "tests/tap.h"

#include <math.h>

enum { CTX = 32, MOST = 256 };

/* ---- inputs of a graph's products, added up by a loop ---- */

struct sums {
    char name[64];
    int64_t n_cols, n_mats;
    double *sum;
    uint64_t *n;
};

struct loop {
    struct sums list[MOST];
    size_t n;
    unsigned n_nodes;  /* nodes of all graphs, without views */
    unsigned n_needed; /* nodes before the last product, or before the last row
                        * stored for the next pass */
};

static struct sums *find_sums(struct loop *l, const struct gguf_tensor *w)
{
    size_t i = 0;
    while (i < l->n && strcmp(l->list[i].name, w->name) != 0)
        i++;
    struct sums *s = &l->list[i];
    if (i < l->n || i == MOST)
        return i < l->n ? s : NULL;
    l->n++;
    memcpy(s->name, w->name, sizeof s->name);
    s->n_cols = w->ne[0];
    s->n_mats = w->ne[2] * w->ne[3];
    s->sum = calloc((size_t)(s->n_cols * s->n_mats), sizeof *s->sum);
    s->n = calloc((size_t)s->n_mats, sizeof *s->n);
    return s;
}

static float element_at(const struct gguf_tensor *t, int64_t i, int64_t j,
                        int64_t k, int64_t l)
{
    float v;
    memcpy(&v,
           (const char *)t->data + i * t->nb[0] + j * t->nb[1] + k * t->nb[2] +
               l * t->nb[3],
           sizeof v);
    return v;
}

static void add_row(struct sums *s, int64_t mat, const struct gguf_tensor *x,
                    int64_t j, int64_t k, int64_t l)
{
    for (int64_t i = 0; i < s->n_cols; i++) {
        const double v = (double)element_at(x, i, j, k, l);
        s->sum[mat * s->n_cols + i] += v * v;
    }
    s->n[mat]++;
}

static bool wants_node(void *user, const struct gguf_tensor *t)
{
    const struct gguf_tensor *w = t->src[0];
    (void)user;
    return (t->op == GGUF_OP_MATMUL || t->op == GGUF_OP_MATMUL_ID) &&
           !w->view_src && strstr(w->name, ".weight");
}

static bool see_node(void *user, struct gguf_tensor *t)
{
    const bool chosen = t->op == GGUF_OP_MATMUL_ID;
    const struct gguf_tensor *w = t->src[0], *x = t->src[1];
    struct sums *s = find_sums(user, w);
    if (!s)
        return false;
    if (!chosen) {
        for (int64_t l = 0; l < x->ne[3]; l++)
            for (int64_t k = 0; k < x->ne[2]; k++)
                for (int64_t j = 0; j < x->ne[1]; j++)
                    add_row(s, k * w->ne[2] / x->ne[2], x, j, k, l);
        return false;
    }
    const struct gguf_tensor *ids = t->src[2];
    for (int64_t tok = 0; tok < ids->ne[1]; tok++)
        for (int64_t u = 0; u < ids->ne[0]; u++) {
            int32_t mat;
            memcpy(&mat,
                   (const char *)ids->data + u * ids->nb[0] + tok * ids->nb[1],
                   sizeof mat);
            add_row(s, mat, x, u % x->ne[1], tok, 0);
        }
    return false;
}

static bool is_weight(const struct gguf_tensor *t)
{
    return t->buffer && gguf_buffer_usage(t->buffer) == GGUF_USAGE_WEIGHTS;
}

static bool on_graph(void *user, struct gguf_graph *graph,
                     struct gguf_sched *sched)
{
    struct loop *l = user;
    unsigned n = 0, needed = 0;
    for (size_t i = 0; i < gguf_graph_n_nodes(graph); i++) {
        const struct gguf_tensor *t = gguf_graph_node(graph, i);
        if (gguf_op_is_view(t->op))
            continue;
        if ((t->op == GGUF_OP_MATMUL || t->op == GGUF_OP_MATMUL_ID) &&
            is_weight(t->src[0]))
            needed = n;
        n++;
        if (t->view_src && !t->view_src->op)
            needed = n;
    }
    l->n_nodes += n;
    l->n_needed += needed;
    const struct gguf_sched_eval eval = { wants_node, see_node, user };
    return gguf_sched_set_eval(sched, eval, NULL) != GGUF_OK;
}

/* ---- an architecture ---- */

static bool on_op(void *user)
{
    ++*(unsigned *)user;
    return false;
}

static bool open_session(struct run *r, const void *file, size_t size,
                         unsigned n_threads, uint32_t n_ubatch,
                         struct loop *loop, unsigned *n_asked)
{
    struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
    struct gguf_cpu_params cp = GGUF_CPU_PARAMS_INIT;
    cp.n_threads = n_threads;
    cp.abort.fn = on_op;
    cp.abort.user = n_asked;
    p.n_ctx = CTX;
    p.n_ubatch = n_ubatch;
    p.on_graph.fn = loop ? on_graph : NULL;
    p.on_graph.user = loop;
    return run_open_cpu(r, file, size, NULL, &cp, &p);
}

struct how {
    unsigned n_threads;
    uint32_t n_ubatch;
    bool layered;
    const char
        *only; /* collect matrices with this in their names; NULL: all */
};

/* Collect importance data. *n_asked: operations that were computed. */
static struct gguf_collect *
collect_model(const void *file, size_t size, const struct how *h,
              const gguf_token *tok, unsigned *n_asked, struct gguf_error *err)
{
    struct gguf_collect_params p = GGUF_COLLECT_PARAMS_INIT;
    struct gguf_collect_run_params cr = GGUF_COLLECT_RUN_PARAMS_INIT;
    struct gguf_collect *c = NULL;
    struct run r;
    p.n_ctx = CTX;
    p.include = &h->only;
    p.n_include = h->only ? 1 : 0;
    *n_asked = 0;
    bool good =
        open_session(&r, file, size, h->n_threads, h->n_ubatch, NULL, n_asked);
    if (good && gguf_model_info(r.model)->is_whole && h->n_ubatch < CTX) {
        run_close(&r); /* the sequence cannot be cut */
        good = open_session(&r, file, size, h->n_threads, CTX, NULL, n_asked);
    }
    *err = r.err;
    cr.pool = r.pool;
    cr.max_stored = h->layered ? UINT64_MAX : 0;
    good = good && !gguf_collect_create(&c, &p, err) &&
           !gguf_collect_run(c, r.session, tok, SKELETON_TOKENS, &cr, err);
    run_close(&r);
    if (good)
        return c;
    gguf_collect_destroy(c);
    return NULL;
}

/* Does b have every entry of a, with the same digits? */
static bool same_sums(const struct gguf_collect *a,
                      const struct gguf_collect *b)
{
    if (!a || !b || !a->n_entries)
        return false;
    for (size_t k = 0; k < a->n_entries; k++) {
        const struct gg_collect_entry *x = a->entries[k];
        const struct gg_collect_entry *y =
            gg_collect_find(b, (struct gguf_str){ x->name, strlen(x->name) });
        if (!y || memcmp(x->count, y->count, 8 * (size_t)x->n_mats) != 0) {
            printf("# counts of '%s' differ\n", x->name);
            return false;
        }
        for (uint64_t i = 0; i < x->n_cols * x->n_mats; i++)
            if (gg_collect_total_value(&x->total, i) !=
                gg_collect_total_value(&y->total, i)) {
                printf("# column %u of '%s' differs\n", (unsigned)i, x->name);
                return false;
            }
    }
    return true;
}

/* Do entries, counts and sums agree with the loop's? */
static bool as_loop(const struct gguf_collect *c, const struct loop *l)
{
    bool good = c->n_entries >= l->n && l->n;
    for (size_t k = 0; k < l->n && good; k++) {
        const struct sums *s = &l->list[k];
        const struct gg_collect_entry *e =
            gg_collect_find(c, (struct gguf_str){ s->name, strlen(s->name) });
        good = e && e->n_cols == (uint64_t)s->n_cols &&
               e->n_mats == (uint64_t)s->n_mats &&
               !memcmp(e->count, s->n, 8 * (size_t)s->n_mats);
        for (int64_t i = 0; good && i < s->n_cols * s->n_mats; i++)
            good = fabs(gg_collect_total_value(&e->total, (uint64_t)i) -
                        s->sum[i]) <= 1e-8 * s->sum[i];
        if (!good)
            printf("# '%s'\n", s->name);
    }
    return good;
}

static bool run_loop(struct loop *l, const void *file, size_t size,
                     const gguf_token *tok)
{
    struct run r;
    bool want[CTX];
    struct gguf_batch b = GGUF_BATCH_INIT;
    unsigned n_asked = 0;
    bool good = open_session(&r, file, size, 1, CTX, l, &n_asked);
    memset(want, 1, sizeof want);
    b.n = CTX;
    b.want = want;
    for (int k = 0; k < SKELETON_TOKENS / CTX && good; k++) {
        b.token = tok + k * CTX;
        good = !gguf_session_clear(r.session, &r.err) &&
               !gguf_session_decode(r.session, &b, &r.err);
    }
    run_close(&r);
    return good && n_asked == l->n_nodes;
}

/* Collecting layer 0 alone computes nothing that only other layers need. a has
 * the data of all layers. */
static void check_some(const char *name, const void *file, size_t size,
                       const gguf_token *tok, const struct gguf_collect *a)
{
    static const struct how ways[] = { { 1, 10, false, "blk.0." },
                                       { 1, CTX, true, "blk.0." } };
    size_t n = 0;
    for (size_t k = 0; a && k < a->n_entries; k++)
        n += strstr(a->entries[k]->name, "blk.0.") != NULL;
    for (size_t i = 0; i < GG_LEN(ways) && n; i++) {
        struct gguf_error err;
        unsigned n_asked;
        struct gguf_collect *c =
            collect_model(file, size, &ways[i], tok, &n_asked, &err);
        ok(c ? same_sums(c, a) && c->n_entries == n
             : err.status == GGUF_E_UNSUPPORTED && ways[i].layered,
           "%s: %zu matrices of the first layer%s", name, n,
           ways[i].layered ? ", layer by layer" : "");
        gguf_collect_destroy(c);
    }
}

static unsigned n_layered, n_alike;

/* The data of entry i alone. Free them with gguf_imatrix_destroy(). */
static struct gguf_imatrix *take_one(const struct gguf_imatrix *im, size_t i)
{
    struct gguf_imatrix_entry e = GGUF_IMATRIX_ENTRY_INIT;
    struct gguf_imatrix *one = NULL;
    static float sums[1 << 16], counts[256];
    if (gguf_imatrix_entry(im, i, &e, NULL) || e.n_values > GG_LEN(sums) ||
        e.n_mats > GG_LEN(counts) ||
        gguf_imatrix_sums(im, i, 0, (size_t)e.n_values, sums, NULL))
        return NULL;
    for (size_t k = 0; k < e.n_mats; k++)
        counts[k] = 1;
    if (gguf_imatrix_create(&one, NULL, NULL) ||
        gguf_imatrix_add(one, e.name, e.n_values / e.n_mats, e.n_mats, sums,
                         counts, NULL)) {
        gguf_imatrix_destroy(one);
        return NULL;
    }
    return one;
}

/* Matrices that share importance data have equal sums. */
static void check_alike(const char *name, struct gguf_collect *c)
{
    struct gguf_imatrix *im = NULL;
    static float a[1 << 16], b[1 << 16];
    bool good = c && !gguf_collect_result(c, &im, NULL);
    const size_t n = good ? gguf_imatrix_n_entries(im) : 0;
    unsigned n_pairs = 0;
    for (size_t i = 0; i < n && good; i++) {
        struct gguf_imatrix *one = take_one(im, i);
        good = one != NULL;
        for (size_t k = 0, at; k < n && good; k++) {
            struct gguf_imatrix_entry e = GGUF_IMATRIX_ENTRY_INIT;
            good = !gguf_imatrix_entry(im, k, &e, NULL);
            const size_t size = (size_t)e.n_values;
            const struct gguf_str s = { e.name, strlen(e.name) };
            if (k == i || !gguf_imatrix_find_for_matrix(one, s, size, &at))
                continue;
            n_pairs++;
            good = !gguf_imatrix_sums(im, i, 0, size, a, NULL) &&
                   !gguf_imatrix_sums(im, k, 0, size, b, NULL) &&
                   !memcmp(a, b, size * sizeof *a);
            if (!good)
                printf("# '%s' is not as others of its layer\n", e.name);
        }
        gguf_imatrix_destroy(one);
    }
    gguf_imatrix_destroy(im);
    n_alike += n_pairs;
    ok(good, "%s: %u pairs of matrices of one input", name, n_pairs);
}

static void check_arch(const char *name)
{
    static struct loop l;
    struct skeleton s;
    struct gguf_error err;
    gguf_token tok[SKELETON_TOKENS];
    size_t size = 0;
    unsigned n_asked, n_other;
    static const struct how ways[] = { { .n_threads = 2, .n_ubatch = CTX },
                                       { .n_threads = 1, .n_ubatch = 10 },
                                       { 2, 10, true, NULL } };
    if (!skeleton_open(&s, name) || !s.n_rows || strstr(s.run, "encode+")) {
        skeleton_close(&s);
        return; /* not evaluated, or has two texts */
    }
    skeleton_tokens_of(&s, tok);
    void *file = gen_file(&s.g, GGUF_DTYPE_F32, &size);
    l.n = l.n_nodes = l.n_needed = 0;
    gguf_error_clear(&err);
    struct gguf_collect *a =
        collect_model(file, size, &ways[0], tok, &n_asked, &err);
    struct gguf_collect *b =
        collect_model(file, size, &ways[1], tok, &n_other, &err);
    ok(same_sums(a, b) && a->n_entries == b->n_entries,
       "%s: %zu matrices, the same digits in pieces%s%s", name,
       a ? a->n_entries : 0, err.status ? ": " : "", err.message);
    gguf_collect_destroy(b);
    b = collect_model(file, size, &ways[2], tok, &n_other, &err);
    ok(b ? same_sums(a, b) && a->n_entries == b->n_entries
         : err.status == GGUF_E_UNSUPPORTED,
       "%s: and layer by layer%s%s", name, err.status ? ": " : "",
       err.message);
    n_layered += b != NULL;
    check_some(name, file, size, tok, a);
    check_alike(name, a);
    ok(a && run_loop(&l, file, size, tok) && as_loop(a, &l),
       "%s: the sums of a loop over its graphs", name);
    ok(l.n_needed < l.n_nodes && n_asked == l.n_needed,
       "%s: %u of %u operations are computed", name, n_asked, l.n_nodes);
    for (size_t k = 0; k < l.n; k++) {
        free(l.list[k].sum);
        free(l.list[k].n);
    }
    gguf_collect_destroy(a);
    gguf_collect_destroy(b);
    free(file);
    skeleton_close(&s);
}

int main(int argc, char **argv)
{
    static char names[200][64];
    const size_t n = skeleton_names(names, GG_LEN(names));
    for (size_t i = 0; i < n; i++)
        if (argc < 2 || !strcmp(argv[1], names[i]))
            check_arch(names[i]);
    ok(argc > 1 || n_layered > 100, "%u architectures layer by layer",
       n_layered);
    ok(argc > 1 || n_alike > 2000, "%u pairs of matrices of one input",
       n_alike);
    return done_testing();
}
