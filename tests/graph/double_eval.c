/* SPDX-License-Identifier: MIT */
/* double_eval.c - operations by their definitions, see double_eval.h */
#include "config.h"
#include "tests/graph/double_eval.h"
#include "kern/kern.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct gguf_tensor tensor;

/* --- elements ------------------------------------------------------------- */

static const tensor *root_of(const tensor *t)
{
    return t->view_src ? t->view_src : t;
}

/* Address of an element by its indices. */
static double *element_at(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                          int64_t i3)
{
    const struct gguf_dtype_info *info = gguf_dtype_find(t->dtype);
    const int64_t nb0 = (int64_t)info->block_size;
    int64_t at = (int64_t)t->view_off / nb0;
    at += (i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3]) / nb0;
    at = at * (int64_t)info->block_len +
         i0 * (t->nb[0] / nb0); /* blocks: rows are contiguous */
    return (double *)root_of(t)->extra + at;
}

double *deval_at(const tensor *t, int64_t i)
{
    const int64_t a = t->ne[0], b = a * t->ne[1], c = b * t->ne[2];
    return element_at(t, i % a, i % b / a, i % c / b, i / c);
}

#define EACH(t)                                                               \
    for (int64_t i3 = 0; i3 < (t)->ne[3]; i3++)                               \
        for (int64_t i2 = 0; i2 < (t)->ne[2]; i2++)                           \
            for (int64_t i1 = 0; i1 < (t)->ne[1]; i1++)                       \
                for (int64_t i0 = 0; i0 < (t)->ne[0]; i0++)
#define EACH_ROW(t)                                                           \
    for (int64_t i3 = 0; i3 < (t)->ne[3]; i3++)                               \
        for (int64_t i2 = 0; i2 < (t)->ne[2]; i2++)                           \
            for (int64_t i1 = 0; i1 < (t)->ne[1]; i1++)
#define Y (*element_at(t, i0, i1, i2, i3))
#define A (*element_at(a, i0, i1, i2, i3))
/* element of the second source, repeated */
#define B                                                                     \
    (*element_at(b, i0 % b->ne[0], i1 % b->ne[1], i2 % b->ne[2],              \
                 i3 % b->ne[3]))

static float param_of(const tensor *t, int i)
{
    float x;
    memcpy(&x, (const char *)t->op_params + 4 * i, sizeof x);
    return x;
}

/* Index in a tensor of integers. */
static int64_t index_at(const tensor *t, int64_t i0, int64_t i1, int64_t i2)
{
    return (int64_t)*element_at(t, i0, i1, i2, 0);
}

/* --- functions of one element --------------------------------------------- */

static double soft_plus(double x)
{
    return log(1 + exp(x));
}

static double apply_unary(const tensor *t, double x)
{
    const double p0 = (double)param_of(t, 0), p1 = (double)param_of(t, 1);
    const double p2 = (double)param_of(t, 2), p3 = (double)param_of(t, 3);
    switch (t->op) {
    case GGUF_OP_SCALE: return p0 * x;
    case GGUF_OP_SILU: return x / (1 + exp(-x));
    case GGUF_OP_GELU:
        return x / 2 *
               (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case GGUF_OP_GELU_ERF: return x / 2 * (1 + erf(x / sqrt(2)));
    case GGUF_OP_GELU_QUICK: return x / (1 + exp(-1.702 * x));
    case GGUF_OP_RELU: return fmax(x, 0);
    case GGUF_OP_SIGMOID: return 1 / (1 + exp(-x));
    case GGUF_OP_TANH: return tanh(x);
    case GGUF_OP_RELU_SQR: return fmax(x, 0) * fmax(x, 0);
    case GGUF_OP_LEAKY_RELU: return x > 0 ? x : p0 * x;
    case GGUF_OP_ELU: return x > 0 ? x : exp(x) - 1;
    case GGUF_OP_SOFTPLUS: return soft_plus(x);
    case GGUF_OP_NEG: return -x;
    case GGUF_OP_ABS: return fabs(x);
    case GGUF_OP_SQR: return x * x;
    case GGUF_OP_SQRT: return sqrt(x);
    case GGUF_OP_EXP: return exp(x);
    case GGUF_OP_LOG: return log(x);
    case GGUF_OP_SIN: return sin(x);
    case GGUF_OP_COS: return cos(x);
    case GGUF_OP_CLAMP: return fmin(fmax(x, p0), p1);
    case GGUF_OP_XIELU:
        return x > 0 ? soft_plus(p1) * x * x + p2 * x
                     : (p2 + soft_plus(p0)) * (exp(fmin(x, p3)) - 1 - x) +
                           p2 * x;
    default: return NAN;
    }
}

static double apply_binary(const tensor *t, double x, double y)
{
    const double p0 = (double)param_of(t, 0), p1 = (double)param_of(t, 1);
    switch (t->op) {
    case GGUF_OP_SWIGLU: return x / (1 + exp(-x)) * y;
    case GGUF_OP_GEGLU:
        return x / 2 *
               (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))) * y;
    case GGUF_OP_GEGLU_ERF: return x / 2 * (1 + erf(x / sqrt(2))) * y;
    case GGUF_OP_GEGLU_QUICK: return x / (1 + exp(-1.702 * x)) * y;
    case GGUF_OP_REGLU: return fmax(x, 0) * y;
    case GGUF_OP_SWIGLU_OAI:
        x = fmin(x, p1);
        y = fmin(fmax(y, -p1), p1);
        return x / (1 + exp(-p0 * x)) * (y + 1);
    case GGUF_OP_ADD: return x + y;
    case GGUF_OP_SUB: return x - y;
    case GGUF_OP_MUL: return x * y;
    case GGUF_OP_DIV: return x / y;
    default: return NAN;
    }
}

/* --- rows ----------------------------------------------------------------- */

static void run_norm(const tensor *t)
{
    const tensor *a = t->src[0];
    const double eps = (double)param_of(t, 0), n = (double)t->ne[0];
    EACH_ROW(t)
    {
        double mean = 0, sum = 0, by;
        for (int64_t i0 = 0; t->op == GGUF_OP_NORM && i0 < t->ne[0]; i0++)
            mean += A / n;
        for (int64_t i0 = 0; i0 < t->ne[0]; i0++)
            sum += (A - mean) * (A - mean);
        by = t->op == GGUF_OP_L2_NORM ? fmax(sqrt(sum), eps)
                                      : sqrt(sum / n + eps);
        for (int64_t i0 = 0; i0 < t->ne[0]; i0++)
            Y = (A - mean) / by;
    }
}

/* ALiBi's slopes (arXiv 2108.12409), for powers of two and the authors' way
 * between them. */
static double slope_of(double max_bias, int64_t h, int64_t n_head)
{
    int64_t n = 1;
    if (max_bias <= 0)
        return 1;
    while (2 * n <= n_head)
        n *= 2;
    return h < n
               ? pow(2, -max_bias * (double)(h + 1) / (double)n)
               : pow(2, -max_bias / 2 * (double)(2 * (h - n) + 1) / (double)n);
}

/* Softmax of n scores, with one more if sink is not NULL. */
static void soften_row(double *x, int64_t n, const double *sink)
{
    double max = sink ? *sink : -INFINITY, sum;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, x[i]);
    sum = sink ? exp(*sink - max) : 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - max);
    for (int64_t i = 0; i < n; i++)
        x[i] = max == -INFINITY ? 0 : exp(x[i] - max) / sum;
}

static void run_soft_max(const tensor *t)
{
    const tensor *a = t->src[0], *mask = t->src[1], *sinks = t->src[2];
    double *x = malloc((size_t)(t->ne[0] + 1) * sizeof *x);
    EACH_ROW(t)
    {
        const double slope = slope_of((double)param_of(t, 1), i2, t->ne[2]);
        for (int64_t i0 = 0; i0 < t->ne[0]; i0++) {
            x[i0] = (double)param_of(t, 0) * A;
            if (mask)
                x[i0] += slope * *element_at(mask, i0, i1, i2 % mask->ne[2],
                                             i3 % mask->ne[3]);
        }
        soften_row(x, t->ne[0], sinks ? element_at(sinks, i2, 0, 0, 0) : NULL);
        for (int64_t i0 = 0; i0 < t->ne[0]; i0++)
            Y = x[i0];
    }
    free(x);
}

/* Heads of a mask: none, one, those of keys, or those of queries. */
static double mask_at(const tensor *mask, int64_t key, int64_t tok, int64_t h,
                      int64_t n_head, int64_t seq)
{
    if (!mask)
        return 0;
    return *element_at(mask, key, tok, h / (n_head / mask->ne[2]),
                       seq % mask->ne[3]);
}

static void run_attention(const tensor *t)
{
    const tensor *q = t->src[0], *k = t->src[1], *v = t->src[2];
    const int64_t n = k->ne[1], n_head = q->ne[2], r = n_head / k->ne[2];
    const double scale = (double)param_of(t, 0), cap = (double)param_of(t, 2);
    double *x = malloc((size_t)(n + 1) * sizeof *x);
    for (int64_t s = 0; s < q->ne[3]; s++)
        for (int64_t h = 0; h < n_head; h++)
            for (int64_t tok = 0; tok < q->ne[1]; tok++) {
                for (int64_t j = 0; j < n; j++) {
                    double sum = 0;
                    for (int64_t i = 0; i < q->ne[0]; i++)
                        sum += *element_at(q, i, tok, h, s) *
                               *element_at(k, i, j, h / r, s);
                    sum *= scale;
                    if (cap != 0)
                        sum = cap * tanh(sum / cap);
                    x[j] = sum + slope_of((double)param_of(t, 1), h, n_head) *
                                     mask_at(t->src[3], j, tok, h, n_head, s);
                }
                soften_row(x, n,
                           t->src[4] ? element_at(t->src[4], h, 0, 0, 0)
                                     : NULL);
                for (int64_t i = 0; i < v->ne[0]; i++) {
                    double sum = 0;
                    for (int64_t j = 0; j < n; j++)
                        sum += x[j] * *element_at(v, i, j, h / r, s);
                    *element_at(t, i, h, tok, s) = sum;
                }
            }
    free(x);
}

/* Turns of YaRN: the pair that makes n turns in the original context. */
static double pair_of_turns(const struct gguf_rope *p, double n)
{
    return p->n_dims * log(p->n_ctx_orig / (n * 2 * acos(-1))) /
           (2 * log((double)p->freq_base));
}

/* Angle of pair i, and the factor of the magnitude. */
static double angle_of(const struct gguf_rope *p, int i, double pos,
                       double factor, double *magnitude)
{
    const double theta =
        pos * pow((double)p->freq_base, -2.0 * i / p->n_dims) / factor;
    double g = 0;
    *magnitude = (double)p->attn_factor;
    if (p->ext_factor != 0) {
        const double low =
            fmax(0, floor(pair_of_turns(p, (double)p->beta_fast)));
        const double high =
            fmin(p->n_dims - 1, ceil(pair_of_turns(p, (double)p->beta_slow)));
        const double ramp =
            fmin(1, fmax(0, (i - low) / fmax(0.001, high - low)));
        g = (double)p->ext_factor * (1 - ramp);
        *magnitude *= 1 + 0.1 * log(1 / (double)p->freq_scale);
    }
    return (1 - g) * (double)p->freq_scale * theta + g * theta;
}

/* NORM and NEOX, on one axis. */
static void run_rope(const tensor *t)
{
    const tensor *a = t->src[0], *pos = t->src[1], *ff = t->src[2];
    struct gguf_rope p;
    memcpy(&p, t->op_params, sizeof p);
    EACH_ROW(t)
    {
        for (int64_t i0 = 0; i0 < t->ne[0]; i0++)
            Y = A;
        for (int i = 0; i < p.n_dims / 2; i++) {
            const int64_t u = p.kind == GGUF_ROPE_NORM ? 2 * i : i;
            const int64_t w =
                p.kind == GGUF_ROPE_NORM ? 2 * i + 1 : i + p.n_dims / 2;
            double m;
            const double angle =
                angle_of(&p, i, (double)index_at(pos, i2, 0, 0),
                         ff ? *element_at(ff, i, 0, 0, 0) : 1, &m);
            const double x = *element_at(a, u, i1, i2, i3);
            const double y = *element_at(a, w, i1, i2, i3);
            *element_at(t, u, i1, i2, i3) =
                m * (x * cos(angle) - y * sin(angle));
            *element_at(t, w, i1, i2, i3) =
                m * (x * sin(angle) + y * cos(angle));
        }
    }
}

static void run_sums(const tensor *t)
{
    const tensor *a = t->src[0];
    double all = 0;
    EACH_ROW(a)
    {
        double sum = 0;
        for (int64_t i0 = 0; i0 < a->ne[0]; i0++) {
            sum += A;
            if (t->op == GGUF_OP_CUMSUM)
                Y = sum;
        }
        all += sum;
        if (t->op == GGUF_OP_SUM_ROWS || t->op == GGUF_OP_MEAN)
            *element_at(t, 0, i1, i2, i3) =
                t->op == GGUF_OP_MEAN ? sum / (double)a->ne[0] : sum;
    }
    if (t->op == GGUF_OP_SUM)
        *element_at(t, 0, 0, 0, 0) = all;
}

/* Number of elements that stand before each: smaller or larger, or equal and
 * earlier. */
static void run_argsort(const tensor *t)
{
    const tensor *a = t->src[0];
    EACH(t)
    {
        int64_t before = 0;
        for (int64_t k = 0; k < t->ne[0]; k++) {
            const double x = *element_at(a, k, i1, i2, i3);
            before += x == A ? k < i0 : t->op_params[0] ? x > A : x < A;
        }
        *element_at(t, before, i1, i2, i3) = (double)i0;
    }
}

/* --- products ------------------------------------------------------------- */

static void run_matmul(const tensor *t)
{
    const tensor *a = t->src[0], *b = t->src[1];
    EACH(t)
    {
        const int64_t a2 = i2 / (b->ne[2] / a->ne[2]);
        const int64_t a3 = i3 / (b->ne[3] / a->ne[3]);
        double sum = 0;
        for (int64_t p = 0; p < a->ne[0]; p++)
            sum +=
                *element_at(a, p, i0, a2, a3) * *element_at(b, p, i1, i2, i3);
        Y = sum;
    }
}

static void run_matmul_id(const tensor *t)
{
    const tensor *a = t->src[0], *b = t->src[1], *ids = t->src[2];
    EACH(t)
    {
        double sum = 0;
        for (int64_t p = 0; p < a->ne[0]; p++)
            sum += *element_at(a, p, i0, index_at(ids, i1, i2, 0), 0) *
                   *element_at(b, p, i1 % b->ne[1], i2, 0);
        Y = sum;
    }
}

static void run_out_prod(const tensor *t)
{
    const tensor *a = t->src[0], *b = t->src[1];
    EACH(t)
    {
        const int64_t a2 = i2 / (b->ne[2] / a->ne[2]);
        const int64_t a3 = i3 / (b->ne[3] / a->ne[3]);
        double sum = 0;
        for (int64_t p = 0; p < a->ne[1]; p++)
            sum +=
                *element_at(a, i0, p, a2, a3) * *element_at(b, i1, p, i2, i3);
        Y = sum;
    }
}

/* --- copies --------------------------------------------------------------- */

static void copy_in_order(const tensor *t)
{
    const tensor *a = t->src[0];
    for (int64_t i = 0; i < gguf_tensor_n_elements(a); i++)
        *deval_at(t, i) = *deval_at(a, i);
}

static void run_set_rows(const tensor *t)
{
    const tensor *s = t->src[1], *ids = t->src[2];
    EACH(s)
    {
        const int64_t k = index_at(ids, i1, i2 % ids->ne[1], i3 % ids->ne[2]);
        *element_at(t, i0, k, i2, i3) = *element_at(s, i0, i1, i2, i3);
    }
}

static void run_concat(const tensor *t)
{
    const tensor *a = t->src[0], *b = t->src[1];
    EACH(a)
    {
        Y = A;
    }
    int64_t off[4] = { 0, 0, 0, 0 };
    off[t->op_params[0]] = a->ne[t->op_params[0]];
    EACH(b)
    {
        *element_at(t, i0 + off[0], i1 + off[1], i2 + off[2], i3 + off[3]) =
            *element_at(b, i0, i1, i2, i3);
    }
}

static int64_t wrap_index(int64_t i, int64_t n)
{
    return (i % n + n) % n;
}

/* Elements from other places of the same tensor. */
static void move_elements(const tensor *t)
{
    const tensor *a = t->src[0];
    const int32_t *p = t->op_params;
    EACH(t)
    {
        switch (t->op) {
        case GGUF_OP_GET_ROWS:
            Y = *element_at(a, i0, index_at(t->src[1], i1, i2, i3), i2, i3);
            break;
        case GGUF_OP_REPEAT:
            Y = *element_at(a, i0 % a->ne[0], i1 % a->ne[1], i2 % a->ne[2],
                            i3 % a->ne[3]);
            break;
        case GGUF_OP_PAD:
            Y = i0 < a->ne[0] && i1 < a->ne[1] && i2 < a->ne[2] &&
                        i3 < a->ne[3]
                    ? A
                    : 0;
            break;
        case GGUF_OP_ROLL:
            Y = *element_at(a, wrap_index(i0 - p[0], t->ne[0]),
                            wrap_index(i1 - p[1], t->ne[1]),
                            wrap_index(i2 - p[2], t->ne[2]),
                            wrap_index(i3 - p[3], t->ne[3]));
            break;
        case GGUF_OP_DIAG_MASK_INF: Y = i0 > p[0] + i1 ? -INFINITY : A; break;
        default: Y = i0 > p[0] + i1 ? 0 : A;
        }
    }
}

/* --- a node --------------------------------------------------------------- */

static bool run_node(const tensor *t)
{
    const tensor *a = t->n_src ? t->src[0] : NULL;
    const tensor *b = t->n_src > 1 ? t->src[1] : NULL;
    if (t->op >= GGUF_OP_SCALE && t->op <= GGUF_OP_XIELU) {
        EACH(t)
        {
            Y = apply_unary(t, A);
        }
        return true;
    }
    if ((t->op >= GGUF_OP_ADD && t->op <= GGUF_OP_DIV) ||
        (t->op >= GGUF_OP_SWIGLU && t->op <= GGUF_OP_SWIGLU_OAI)) {
        EACH(t)
        {
            Y = apply_binary(t, A, B);
        }
        return true;
    }
    switch (t->op) {
    case GGUF_OP_NONE:
    case GGUF_OP_RESHAPE:
    case GGUF_OP_VIEW:
    case GGUF_OP_PERMUTE:
    case GGUF_OP_TRANSPOSE: return true;
    case GGUF_OP_DUP:
    case GGUF_OP_CPY: copy_in_order(t); return true;
    case GGUF_OP_SET_ROWS: run_set_rows(t); return true;
    case GGUF_OP_CONCAT: run_concat(t); return true;
    case GGUF_OP_GET_ROWS:
    case GGUF_OP_REPEAT:
    case GGUF_OP_PAD:
    case GGUF_OP_ROLL:
    case GGUF_OP_DIAG_MASK_INF:
    case GGUF_OP_DIAG_MASK_ZERO: move_elements(t); return true;
    case GGUF_OP_SUM:
    case GGUF_OP_SUM_ROWS:
    case GGUF_OP_MEAN:
    case GGUF_OP_CUMSUM: run_sums(t); return true;
    case GGUF_OP_ARGSORT: run_argsort(t); return true;
    case GGUF_OP_NORM:
    case GGUF_OP_RMS_NORM:
    case GGUF_OP_L2_NORM: run_norm(t); return true;
    case GGUF_OP_SOFT_MAX: run_soft_max(t); return true;
    case GGUF_OP_ATTENTION: run_attention(t); return true;
    case GGUF_OP_ROPE: run_rope(t); return true;
    case GGUF_OP_MATMUL: run_matmul(t); return true;
    case GGUF_OP_MATMUL_ID: run_matmul_id(t); return true;
    case GGUF_OP_OUT_PROD: run_out_prod(t); return true;
    default: printf("# no definition of %s\n", gguf_op_name(t->op));
    }
    return false;
}

bool deval_run_moved(struct gguf_graph *g, const struct deval_move *moves,
                     size_t n, double h)
{
    for (size_t i = 0; i < gguf_graph_n_nodes(g); i++) {
        const tensor *t = gguf_graph_node(g, i);
        if (!run_node(t))
            return false;
        for (size_t k = 0; k < n; k++)
            for (int64_t e = 0;
                 moves[k].node == t && e < gguf_tensor_n_elements(t); e++)
                *deval_at(t, e) += h * moves[k].by[e];
    }
    return true;
}

bool deval_run(struct gguf_graph *g)
{
    return deval_run_moved(g, NULL, 0, 0);
}

/* --- leaves --------------------------------------------------------------- */

/* Values of a contiguous leaf. */
static bool load_leaf(tensor *t)
{
    struct gg_kern kern;
    const int64_t n = gguf_tensor_n_elements(t);
    double *to = t->extra;
    const int index = gg_dtype_index(t->dtype);
    if (!t->data)
        return true; /* set later */
    if (t->dtype == GGUF_DTYPE_I32) {
        for (int64_t i = 0; i < n; i++)
            to[i] = ((const int32_t *)t->data)[i];
        return true;
    }
    gg_kern_init(&kern, 0);
    gg_codec_kern_set_native_order(kern.codec);
    if (index < 0 || !kern.codec[index].decode)
        return false;
    float *row = malloc((size_t)(t->ne[0] + 1) * sizeof *row);
    for (int64_t r = 0; row && r < gguf_tensor_n_rows(t); r++) {
        kern.codec[index].decode((const char *)t->data + r * t->nb[1], row,
                                 (size_t)t->ne[0]);
        for (int64_t i = 0; i < t->ne[0]; i++)
            to[r * t->ne[0] + i] = (double)row[i];
    }
    free(row);
    return row != NULL;
}

static bool give_array(tensor *t, bool is_leaf)
{
    if (t->view_src)
        return true;
    t->extra = calloc((size_t)gguf_tensor_n_elements(t) + 1, sizeof(double));
    return t->extra && (!is_leaf || load_leaf(t));
}

bool deval_begin(struct gguf_graph *g)
{
    bool good = true;
    for (size_t i = 0; i < gguf_graph_n_leaves(g); i++)
        good = give_array(gguf_graph_leaf(g, i), true) && good;
    for (size_t i = 0; i < gguf_graph_n_nodes(g); i++)
        good = give_array(gguf_graph_node(g, i), false) && good;
    return good;
}

void deval_end(struct gguf_graph *g)
{
    for (size_t i = 0; i < gguf_graph_n_leaves(g); i++)
        free(gguf_graph_leaf(g, i)->extra);
    for (size_t i = 0; i < gguf_graph_n_nodes(g); i++)
        free(gguf_graph_node(g, i)->extra);
}
