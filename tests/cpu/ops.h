/* SPDX-License-Identifier: MIT */
/* ops.h - operations of the CPU backend against plain loops
 *
 * A case builds one node over sources of some shapes, types and layouts. The
 * result is compared with what a formula in double makes of the sources,
 * element by element; its bytes must be the same for 1 to 8 threads, and when
 * it lies where a source lies that it may take over.
 */
#ifndef TESTS_CPU_OPS_H
#define TESTS_CPU_OPS_H

#include "base/compiler.h"
#include "gguf/cpu.h"
#include "gguf/graph.h"
#include "kern/kern.h"
#include "tests/tap.h"

#include <math.h>
#include <stdbool.h>

typedef struct gguf_tensor tensor;
typedef struct gguf_ctx ctx_t;

enum { N_TEAMS = 4 }; /* of 1, 2, 3 and 8 threads */
extern struct gguf_pool *ops_pools[N_TEAMS];
extern struct gguf_backend *ops_backends[N_TEAMS];
extern struct gg_kern ops_kern; /* of plain C */

/* First and last in main. The last is a test too: each operation of the
 * cases had one that was large enough to be shared among threads. */
void ops_begin(void);
#define ops_end() ok(ops_finish(), "operations were shared among threads")
bool ops_finish(void);

/* A context that tensors' data fit in; a bail-out if there is no memory. */
ctx_t *new_ctx(void);

/* --- sources -------------------------------------------------------------- */

enum layout {
    PLAIN,      /* contiguous */
    PADDED,     /* rows longer than used, begin inside */
    SWAPPED,    /* dimensions 1 and 2 exchanged: rows contiguous */
    TRANSPOSED, /* elements of a row apart */
    N_LAYOUTS
};
extern const char *const layout_names[N_LAYOUTS];

enum { N_FLOATS = 3 };
extern const uint32_t float_types[N_FLOATS]; /* f32, f16, bf16 */

enum { N_SHAPES = 7 };
extern const int64_t shapes[N_SHAPES][4]; /* among them two of nothing */

/* Random values in [-3, 3); i32: in [0, 1000). */
void fill(tensor *t);
tensor *source(ctx_t *c, uint32_t dtype, enum layout layout, int64_t n0,
               int64_t n1, int64_t n2, int64_t n3);
/* An f32 source of values in [low, high). */
tensor *between(ctx_t *c, enum layout layout, int64_t n0, int64_t n1,
                int64_t n2, int64_t n3, double low, double high);
/* Numbers in [0, below) into a contiguous i32 tensor. */
void set_ids(tensor *ids, int64_t below);

const char *type_name(const tensor *t);

/* Element of any type, as a double. */
double at(const tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3);
/* Element number i, in order. */
double linear(const tensor *t, int64_t i);
/* Element of source k that broadcasts. */
double src_at(const tensor *t, int k, int64_t i0, int64_t i1, int64_t i2,
              int64_t i3);
#define A src_at(t, 0, i0, i1, i2, i3)
#define B src_at(t, 1, i0, i1, i2, i3)

/* A unit in the last place of a float (or half, for t's type) of that size. */
double ulp(const tensor *t, double v);

/* --- running -------------------------------------------------------------- */

/* What element (i0, i1, i2, i3) of t should be, give or take *tolerance. The
 * elements are asked for in order, so that a formula may keep what it knows
 * of the row that i0 = 0 began. */
typedef double formula(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                       int64_t i3, double *tolerance);

/* Compute t and compare: one test, of the name that a format gives. */
#define run_case(c, t, f, ...)                                                \
    ok(ops_case(c, t, f, __VA_ARGS__), "%s", ops_text)
bool ops_case(ctx_t *c, tensor *t, formula *f, const char *name, ...)
    __attribute__((format(printf, 4, 5)));
extern char ops_text[512]; /* of the last test */

/* Tolerance: ulps of the result. */
#define FORMULA(name, ulps, expr)                                             \
    static double f_##name(const tensor *t, int64_t i0, int64_t i1,           \
                           int64_t i2, int64_t i3, double *tol)               \
    {                                                                         \
        double v = (expr);                                                    \
        *tol = ulp(t, v) * (ulps);                                            \
        return v;                                                             \
    }

/* Slope of a head for ALiBi, by the paper. */
double slope_of(double max_bias, int64_t head, int64_t n_head);

/* call, a builder, fails with that status, and its message has all the pieces
 * that follow: one test. The context is empty again. */
#define refused(c, call, status, ...)                                         \
    ok(ops_refused(c, call, status,                                           \
                   (const char *const[]){ __VA_ARGS__, NULL }),               \
       "%s: %s", #call, ops_text)
bool ops_refused(ctx_t *c, const tensor *t, enum gguf_status status,
                 const char *const *pieces);

#endif
