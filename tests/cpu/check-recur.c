/* SPDX-License-Identifier: MIT */
/* check-recur.c - state space models and linear attention
 *
 * Formulas of op_recur.h are evaluated in double precision for all tokens at
 * once, and again on the magnitudes of all terms. The bound is that sum times
 * the epsilon of F32 times the number of operations on an element's longest
 * path.
 */
#include "config.h"
#include "tests/cpu/ops.h"

/* A value, and the sum of the magnitudes of its terms. */
struct num {
    double v, size;
};

static struct num N(double v) {
    return (struct num){ v, fabs(v) };
}

static struct num
add(struct num a, struct num b)
{
    return (struct num){ a.v + b.v, a.size + b.size };
}

static struct num mul(struct num a, struct num b)
{
    return (struct num){ a.v * b.v, a.size * b.size };
}

/* Results and states of the case. steps: operations on the longest path. */
static struct {
    struct num *y, *s;
    double steps;
} ref;

static struct num *make_numbers(int64_t n)
{
    struct num *p = calloc((size_t)n + 1, sizeof *p);
    if (!p) {
        printf("Bail out! out of memory\n");
        exit(99);
    }
    return p;
}

static struct num read_input(const tensor *t, int src, int64_t i0, int64_t i1,
                             int64_t i2, int64_t i3)
{
    return N(src_at(t, src, i0, i1, i2, i3));
}

static double f_of(const tensor *t, const struct num *n, int64_t i0,
                   int64_t i1, int64_t i2, int64_t i3, double *tol)
{
    n += ((i3 * t->ne[2] + i2) * t->ne[1] + i1) * t->ne[0] + i0;
    *tol = ref.steps * 0x1p-24 * n->size + 1e-37;
    return n->v;
}

static double f_y(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                  int64_t i3, double *tol)
{
    return f_of(t, ref.y, i0, i1, i2, i3, tol);
}

static double f_state(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                      int64_t i3, double *tol)
{
    return f_of(t, ref.s, i0, i1, i2, i3, tol);
}

/* --- linear attention ----------------------------------------------------- */

/* One token of head h: state S[j, i] at s[i * n + j], result y. */
typedef void ref_fn(const tensor *t, struct num *s, struct num *y, int64_t n,
                    int64_t h, int64_t tok, int64_t seq);
#define IN(src, i)  read_input(t, src, i, h, tok, seq)
#define S(j, i)     s[n * (i) + (j)]
#define FOR_EACH(i) for (int64_t i = 0; i < n; i++)

static void wkv6(const tensor *t, struct num *s, struct num *y, int64_t n,
                 int64_t h, int64_t tok, int64_t seq)
{
    FOR_EACH (j) {
        y[j] = N(0);
        FOR_EACH (i) {
            struct num kv = mul(IN(1, i), IN(2, j));
            y[j] = add(y[j], mul(IN(0, i), add(mul(IN(3, i), kv), S(j, i))));
            S(j, i) = add(mul(IN(4, i), S(j, i)), kv);
        }
    }
}

static void wkv7(const tensor *t, struct num *s, struct num *y, int64_t n,
                 int64_t h, int64_t tok, int64_t seq)
{
    FOR_EACH (i) {
        struct num e = N(0);
        FOR_EACH (j)
            e = add(e, mul(S(j, i), IN(4, j)));
        y[i] = N(0);
        FOR_EACH (j) {
            S(j, i) = add(mul(IN(3, j), S(j, i)),
                          add(mul(IN(1, j), IN(2, i)), mul(IN(5, j), e)));
            y[i] = add(y[i], mul(S(j, i), IN(0, j)));
        }
    }
}

static void gla(const tensor *t, struct num *s, struct num *y, int64_t n,
                int64_t h, int64_t tok, int64_t seq)
{
    float scale;
    memcpy(&scale, t->op_params, sizeof scale);
    FOR_EACH (j) {
        y[j] = N(0);
        FOR_EACH (i) {
            S(j, i) = add(mul(IN(3, i), S(j, i)), mul(IN(1, i), IN(2, j)));
            y[j] = add(y[j], mul(mul(N((double)scale), IN(0, i)), S(j, i)));
        }
    }
}

static void delta(const tensor *t, struct num *s, struct num *y, int64_t n,
                  int64_t h, int64_t tok, int64_t seq)
{
    FOR_EACH (i) {
        struct num e = N(src_at(t, 2, i, h, tok, seq));
        FOR_EACH (j)
            S(j, i) = mul(N(exp(IN(3, j).v)), S(j, i));
        FOR_EACH (j)
            e = add(e, mul(N(-1), mul(S(j, i), IN(1, j))));
        e = mul(e, IN(4, 0));
        y[i] = N(0);
        FOR_EACH (j) {
            S(j, i) = add(S(j, i), mul(IN(1, j), e));
            y[i] = add(y[i], mul(S(j, i), IN(0, j)));
        }
        y[i] = mul(y[i], N(1 / sqrt((double)n)));
    }
}

/* Compare node t with its reference. k: index of the state among the sources.
 */
static void compare_reference(const tensor *t, int k, ref_fn *fn)
{
    const tensor *v = t->src[2];
    const int64_t n = v->ne[0], heads = v->ne[1], tok = v->ne[2];
    ref.y = make_numbers(gguf_tensor_n_elements(v));
    ref.s = make_numbers(n * n * heads * v->ne[3]);
    ref.steps = (double)((tok + 1) * (n + 16));
    for (int64_t seq = 0; seq < v->ne[3]; seq++)
        for (int64_t h = 0; h < heads; h++) {
            struct num *s = ref.s + (seq * heads + h) * n * n;
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++)
                    s[i * n + j] = read_input(t, k, j, i, h, seq);
            for (int64_t p = 0; p < tok; p++)
                fn(t, s, ref.y + ((seq * tok + p) * heads + h) * n, n, h, p,
                   seq);
        }
}

/* Shapes of a case. */
struct shape {
    int64_t s, heads, tok, seqs, heads_k; /* heads_k: for gated_delta only */
};
static const struct shape cases[] = {
    { 8, 4, 5, 2, 2 },  { 16, 3, 1, 1, 1 }, { 33, 2, 6, 1, 2 },
    { 64, 8, 3, 1, 4 }, { 4, 2, 0, 2, 1 },  { 4, 2, 3, 0, 1 },
    { 0, 2, 3, 1, 2 },  { 5, 0, 3, 1, 0 },  { 18, 4, 19, 2, 1 },
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* A source shaped like v, with values in [low, high). */
static tensor *like_v(ctx_t *c, enum layout l, const struct shape *n,
                      double low, double high)
{
    return between(c, l, n->s, n->heads, n->tok, n->seqs, low, high);
}

typedef tensor *build_fn(ctx_t *c, enum layout l, const struct shape *n,
                         tensor *state, tensor **new_state);

static tensor *build_wkv6(ctx_t *c, enum layout l, const struct shape *n,
                          tensor *state, tensor **new_state)
{
    return gguf_op_rwkv_wkv6(
        c, like_v(c, l, n, -1, 1), like_v(c, PLAIN, n, -1, 1),
        like_v(c, l, n, -1, 1), between(c, l, n->s, n->heads, 1, 1, -1, 1),
        like_v(c, l, n, 0.5, 1), state, new_state);
}

static tensor *build_wkv7(ctx_t *c, enum layout l, const struct shape *n,
                          tensor *state, tensor **new_state)
{
    /* keeps S bounded under the delta rule */
    double small = 1 / sqrt((double)n->s + 1);
    return gguf_op_rwkv_wkv7(
        c, like_v(c, l, n, -1, 1), like_v(c, PADDED, n, -1, 1),
        like_v(c, l, n, -1, 1), like_v(c, PLAIN, n, 0.5, 1),
        like_v(c, l, n, -small, small), like_v(c, l, n, -small, small), state,
        new_state);
}

static tensor *build_gla(ctx_t *c, enum layout l, const struct shape *n,
                         tensor *state, tensor **new_state)
{
    return gguf_op_gated_linear_attn(
        c, like_v(c, l, n, -1, 1), like_v(c, SWAPPED, n, -1, 1),
        like_v(c, l, n, -1, 1), like_v(c, l, n, 0.5, 1), state, 0.25f,
        new_state);
}

/* gate: number of elements of g. */
static tensor *build_gate(ctx_t *c, enum layout l, const struct shape *n,
                          int64_t gate, tensor *state, tensor **new_state)
{
    double small = 1 / sqrt((double)n->s + 1);
    tensor *q = between(c, l, n->s, n->heads_k, n->tok, n->seqs, -1, 1);
    tensor *k =
        between(c, l, n->s, n->heads_k, n->tok, n->seqs, -small, small);
    return gguf_op_gated_delta(
        c, q, k, like_v(c, PLAIN, n, -1, 1),
        between(c, l, gate, n->heads, n->tok, n->seqs, -1, 0),
        between(c, l, 1, n->heads, n->tok, n->seqs, 0, 1), state, new_state);
}

static tensor *build_delta(ctx_t *c, enum layout l, const struct shape *n,
                           tensor *state, tensor **new_state)
{
    return build_gate(c, l, n, 1, state, new_state);
}

static tensor *build_delta_each(ctx_t *c, enum layout l, const struct shape *n,
                                tensor *state, tensor **new_state)
{
    return build_gate(c, l, n, n->s, state, new_state);
}

static const struct {
    const char *name;
    build_fn *build;
    ref_fn *ref;
    int state; /* index of the state among the sources */
} attns[] = {
    { "rwkv_wkv6", build_wkv6, wkv6, 5 },
    { "rwkv_wkv7", build_wkv7, wkv7, 6 },
    { "gated_linear_attn", build_gla, gla, 4 },
    { "gated_delta", build_delta, delta, 5 },
    { "gated_delta, a gate each", build_delta_each, delta, 5 },
};
enum { N_ATTNS = sizeof attns / sizeof *attns };

static void check_attns(void)
{
    for (int v = 0; v < N_ATTNS * N_CASES * N_LAYOUTS; v++) {
        const int k = v / N_CASES / N_LAYOUTS;
        const struct shape *n = &cases[v / N_LAYOUTS % N_CASES];
        enum layout l = (enum layout)(v % N_LAYOUTS);
        if (!n->heads_k && attns[k].ref == delta)
            continue;
        ctx_t *c = new_ctx();
        tensor *after = NULL;
        tensor *state = between(c, l, n->s, n->s, n->heads, n->seqs, -1, 1);
        tensor *y = attns[k].build(c, l, n, state, &after);
        if (y)
            compare_reference(y->src[0], attns[k].state, attns[k].ref);
        run_case(c, y, f_y, "%s %s, case %d", attns[k].name, layout_names[l],
                 v / N_LAYOUTS % N_CASES);
        run_case(c, after, f_state, "%s %s, case %d: the state", attns[k].name,
                 layout_names[l], v / N_LAYOUTS % N_CASES);
        free(ref.y);
        free(ref.s);
        gguf_ctx_destroy(c);
    }
}

/* Tokens in two parts, the second starting from the first one's state, give
 * the bits of all tokens at once. */
static void check_parts(void)
{
    for (int k = 0; k < N_ATTNS; k++) {
        struct shape n = { 24, 1, 7, 1, 1 }, part = n;
        ctx_t *c = new_ctx();
        tensor *after[3], *y[3],
            *state = between(c, PLAIN, 24, 24, 1, 1, -1, 1);
        bool good = true;
        for (int p = 0; p < 3; p++) {
            part.tok = p == 0 ? 7 : p == 1 ? 4 : 3;
            y[p] = attns[k].build(c, PLAIN, &part, p == 2 ? after[1] : state,
                                  &after[p]);
        }
        for (int p = 1; p < 3; p++)
            for (int i = 0; i < attns[k].state; i++) {
                const tensor *from = y[0]->src[0]->src[i];
                tensor *to = y[p]->src[0]->src[i];
                size_t skip =
                    from->ne[2] > 1 && p == 2 ? 4 * (size_t)from->nb[2] : 0;
                memcpy(to->view_src ? to->view_src->data : to->data,
                       (char *)(from->view_src ? from->view_src->data
                                               : from->data) +
                           skip,
                       (size_t)gguf_tensor_size(to->view_src ? to->view_src
                                                             : to));
            }
        struct gguf_graph *g = gguf_graph_create(c, 32);
        gguf_graph_add(g, y[0]);
        gguf_graph_add(g, after[0]);
        gguf_graph_add(g, y[1]);
        gguf_graph_add(g, after[2]);
        good = good && gguf_graph_finish(c, g, y[2], NULL) == GGUF_OK &&
               gguf_backend_compute(ops_backends[1], g, NULL) == GGUF_OK;
        good = good && !memcmp(y[0]->data, y[1]->data, 4 * 24 * 4) &&
               !memcmp((float *)y[0]->data + 4 * 24, y[2]->data, 3 * 24 * 4) &&
               !memcmp(after[0]->data, after[2]->data, 24 * 24 * 4);
        ok(good, "%s: tokens in two parts give the bits of one",
           attns[k].name);
        gguf_ctx_destroy(c);
    }
}

/* --- state spaces --------------------------------------------------------- */

static double f_ssm_conv(const tensor *t, int64_t i, int64_t tok, int64_t seq,
                         int64_t i3, double *tol)
{
    const tensor *x = t->src[0], *k = t->src[1];
    double v = 0, sum = 0;
    (void)i3;
    for (int64_t j = 0; j < k->ne[0]; j++) {
        double p = at(k, j, i, 0, 0) * at(x, tok + j, i, seq, 0);
        v += p;
        sum += fabs(p);
    }
    *tol = (double)(k->ne[0] + 1) * 0x1p-24 * sum;
    return v;
}

static void check_conv(void)
{
    static const int64_t sizes[][4] = {
        /* n_conv, n, n_tok, n_seq */
        { 4, 33, 7, 2 }, { 4, 300, 1, 1 },  { 3, 16, 40, 3 },
        { 1, 5, 3, 1 },  { 4, 8, 0, 2 },    { 4, 0, 3, 1 },
        { 2, 8, 3, 0 },  { 4, 1100, 2, 1 }, { 600, 40, 2, 1 },
    };
    for (int v = 0; v < 9 * N_LAYOUTS * N_FLOATS; v++) {
        const int64_t *n = sizes[v / N_LAYOUTS / N_FLOATS];
        ctx_t *c = new_ctx();
        tensor *x = source(c, float_types[v / N_LAYOUTS % N_FLOATS],
                           (enum layout)(v % N_LAYOUTS), n[0] - 1 + n[2], n[1],
                           n[3], 1);
        tensor *k = source(c, float_types[v % 2],
                           (enum layout)(v / 2 % N_LAYOUTS), n[0], n[1], 1, 1);
        run_case(c, gguf_op_ssm_conv(c, x, k), f_ssm_conv,
                 "ssm_conv %s %s by %s, case %d", layout_names[v % N_LAYOUTS],
                 type_name(x), type_name(k), v / N_LAYOUTS / N_FLOATS);
        gguf_ctx_destroy(c);
    }
}

static void scan_reference(const tensor *t)
{
    const tensor *state = t->src[0], *x = t->src[1], *b = t->src[4];
    const int64_t n = state->ne[0], dim = x->ne[0], heads = x->ne[1];
    ref.y = make_numbers(gguf_tensor_n_elements(x));
    ref.s = make_numbers(n * dim * heads * x->ne[3]);
    ref.steps = (double)(6 * x->ne[2] + n + 16);
    for (int64_t seq = 0; seq < x->ne[3]; seq++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t p = 0; p < dim; p++) {
                struct num *s = ref.s + ((seq * heads + h) * dim + p) * n;
                int64_t id = (int64_t)at(t->src[6], seq, 0, 0, 0);
                int64_t g = h / (heads / b->ne[1]);
                for (int64_t i = 0; i < n; i++)
                    s[i] = read_input(t, 0, i, p, h, id);
                for (int64_t k = 0; k < x->ne[2]; k++) {
                    double d = log1p(exp(at(t->src[2], h, k, seq, 0)));
                    struct num y = N(0);
                    for (int64_t i = 0; i < n; i++) {
                        double a = src_at(t, 3, i, h, 0, 0);
                        s[i] =
                            add(mul(s[i], N(exp(d * a))),
                                mul(mul(N(d), read_input(t, 4, i, g, k, seq)),
                                    read_input(t, 1, p, h, k, seq)));
                        y = add(y, mul(s[i], read_input(t, 5, i, g, k, seq)));
                    }
                    ref.y[((seq * x->ne[2] + k) * heads + h) * dim + p] = y;
                }
            }
}

static void check_scan(void)
{
    static const int64_t sizes[][7] = {
        /* d_state, head_dim, n_head, n_group, n_tok, n_seq, a's d_state */
        { 16, 1, 40, 1, 6, 2, 16 }, /* Mamba-1 */
        { 16, 8, 6, 2, 5, 3, 1 },   /* Mamba-2 */
        { 128, 64, 2, 1, 3, 1, 1 }, { 7, 5, 3, 3, 4, 2, 7 },
        { 16, 4, 6, 2, 0, 2, 1 },   { 0, 4, 6, 2, 3, 2, 1 },
        { 16, 4, 6, 2, 3, 0, 1 },   { 16, 0, 6, 2, 3, 1, 1 },
    };
    for (int v = 0; v < 8 * N_LAYOUTS; v++) {
        const int64_t *n = sizes[v / N_LAYOUTS];
        enum layout l = (enum layout)(v % N_LAYOUTS);
        ctx_t *c = new_ctx();
        tensor *ids = gguf_tensor_create_1d(c, GGUF_DTYPE_I32, n[5]), *after;
        set_ids(ids, 4);
        tensor *y = gguf_op_ssm_scan(
            c, between(c, l, n[0], n[1], n[2], 4, -1, 1),
            between(c, l, n[1], n[2], n[4], n[5], -1, 1),
            between(c, l, n[2], n[4], n[5], 1, -2, 2),
            between(c, l, n[6], n[2], 1, 1, -2, 0),
            between(c, l, n[0], n[3], n[4], n[5], -1, 1),
            between(c, l, n[0], n[3], n[4], n[5], -1, 1), ids, &after);
        if (y)
            scan_reference(y->src[0]);
        run_case(c, y, f_y, "ssm_scan %s, case %d", layout_names[l],
                 v / N_LAYOUTS);
        run_case(c, after, f_state, "ssm_scan %s, case %d: the state",
                 layout_names[l], v / N_LAYOUTS);
        free(ref.y);
        free(ref.s);
        gguf_ctx_destroy(c);
    }
}

/* --- refusals ------------------------------------------------------------- */

static tensor *scan_with(ctx_t *c, int64_t groups, int64_t a0, int64_t n_ids)
{
#define F32(...) gguf_tensor_create_4d(c, GGUF_DTYPE_F32, __VA_ARGS__)
    tensor *after = F32(1, 1, 1, 1);
    tensor *y = gguf_op_ssm_scan(
        c, F32(16, 4, 6, 2), F32(4, 6, 3, 2), F32(6, 3, 2, 1),
        F32(a0, 6, 1, 1), F32(16, groups, 3, 2), F32(16, groups, 3, 2),
        gguf_tensor_create_1d(c, GGUF_DTYPE_I32, n_ids), &after);
    return y ? y : after; /* both are NULL after a failure */
}

static void check_refused(void)
{
    ctx_t *c = new_ctx();
    tensor *s;
    refused(c, scan_with(c, 4, 1, 2), GGUF_E_SHAPE, "ssm_scan",
            "6 heads in 4 groups");
    refused(c, scan_with(c, 2, 8, 2), GGUF_E_SHAPE, "source 3 should be [16",
            "[8, 6]");
    refused(c, scan_with(c, 2, 1, 3), GGUF_E_SHAPE, "source 6 should be [2");
    refused(c, gguf_op_ssm_conv(c, F32(2, 8, 1, 1), F32(4, 8, 1, 1)),
            GGUF_E_SHAPE, "ssm_conv", "needs 3 elements");
    refused(c, gguf_op_ssm_conv(c, F32(9, 8, 1, 1), F32(4, 7, 1, 1)),
            GGUF_E_SHAPE, "channels", "[9, 8]", "[4, 7]");
    s = F32(8, 2, 3, 1);
    refused(c, gguf_op_rwkv_wkv6(c, s, s, s, s, s, F32(8, 8, 2, 1), NULL),
            GGUF_E_SHAPE, "rwkv_wkv6", "source 3 should be [8, 2, 1, 1]");
    s = F32(8, 2, 3, 1);
    refused(c, gguf_op_rwkv_wkv7(c, s, s, s, s, s, s, F32(8, 8, 3, 1), NULL),
            GGUF_E_SHAPE, "source 6 should be [8, 8, 2, 1]");
    s = F32(8, 2, 3, 1);
    refused(c,
            gguf_op_gated_linear_attn(
                c, s, s, s,
                gguf_tensor_create_4d(c, GGUF_DTYPE_I32, 8, 2, 3, 1),
                F32(8, 8, 2, 1), 1, NULL),
            GGUF_E_TYPE, "gated_linear_attn", "source 3 must be a float");
    s = F32(8, 3, 3, 1);
    refused(c,
            gguf_op_gated_delta(c, s, s, F32(8, 4, 3, 1), s, s,
                                F32(8, 8, 4, 1), NULL),
            GGUF_E_SHAPE, "gated_delta", "4 heads over 3");
#undef F32
    gguf_ctx_destroy(c);
}

static void check_bad_number(void)
{
    struct gguf_error err = { 0 };
    ctx_t *c = new_ctx();
    tensor *y = scan_with(c, 2, 1, 2);
    bool all = true;
    /* the first of two states, or none */
    for (int32_t bad = -1; bad < 3; bad += 3) {
        int32_t *ids = y->src[0]->src[6]->data;
        ids[0] = 1;
        ids[1] = bad;
        struct gguf_graph *g = gguf_graph_create(c, 16);
        all = all && gguf_graph_finish(c, g, y, &err) == GGUF_OK;
        for (int i = 0; i < N_TEAMS; i++)
            all = all && gguf_backend_compute(ops_backends[i], g, &err) ==
                             GGUF_E_INVALID;
    }
    ok(all, "a number that is not a state's: %s", err.message);
    gguf_ctx_destroy(c);
}

int main(void)
{
    ops_begin();
    check_attns();
    check_parts();
    check_conv();
    check_scan();
    check_refused();
    check_bad_number();
    ops_end();
    return done_testing();
}
