/* SPDX-License-Identifier: MIT */
/* ops.h - operations of the CPU backend compared with formulas in double
 * precision
 *
 * A case builds one node over sources of given shapes, types and layouts. Each
 * element of the result is compared with a formula. The result must have the
 * same bytes with 1, 2, 3 and 8 threads, and in the memory of any source that
 * it may overwrite.
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

enum { N_TEAMS = 4 }; /* 1, 2, 3 and 8 threads */
extern struct gguf_pool *ops_pools[N_TEAMS];
extern struct gguf_backend *ops_backends[N_TEAMS];
extern struct gg_kern ops_kern; /* kernels in plain C */

/* Call the first at the beginning of main() and the second at its end. The
 * second is a test, too: for each operation, a case was large enough for
 * several threads. */
void ops_begin(void);
#define ops_end() ok(ops_finish(), "operations were shared among threads")
bool ops_finish(void);

/* Create a context with room for tensors' data. Ends the program if memory
 * runs out. */
ctx_t *new_ctx(void);

/* --- sources -------------------------------------------------------------- */

enum layout {
    PLAIN,      /* contiguous */
    PADDED,     /* rows longer than used; begins inside its memory */
    SWAPPED,    /* dimensions 1 and 2 exchanged; rows are contiguous */
    TRANSPOSED, /* elements of a row are apart */
    N_LAYOUTS
};
extern const char *const layout_names[N_LAYOUTS];

enum { N_FLOATS = 3 };
extern const uint32_t float_types[N_FLOATS]; /* F32, F16, BF16 */

enum { N_SHAPES = 7 };
extern const int64_t shapes[N_SHAPES][4]; /* two of them are empty */

/* Fill with random values in [-3, 3); I32: in [0, 1000). */
void fill(tensor *t);
tensor *source(ctx_t *c, uint32_t dtype, enum layout layout, int64_t n0,
               int64_t n1, int64_t n2, int64_t n3);
/* An F32 source with values in [low, high). */
tensor *between(ctx_t *c, enum layout layout, int64_t n0, int64_t n1,
                int64_t n2, int64_t n3, double low, double high);
/* Fill a contiguous I32 tensor with numbers in [0, below). */
void set_ids(tensor *ids, int64_t below);

const char *type_name(const tensor *t);

/* Element of any type as a double. */
double at(const tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3);
/* Element i in memory order. */
double linear(const tensor *t, int64_t i);
/* Element of source k, which is broadcast. */
double src_at(const tensor *t, int k, int64_t i0, int64_t i1, int64_t i2,
              int64_t i3);
#define A src_at(t, 0, i0, i1, i2, i3)
#define B src_at(t, 1, i0, i1, i2, i3)

/* Unit in the last place of a float of that size; of a half if t is F16. */
double ulp(const tensor *t, double v);

/* --- running -------------------------------------------------------------- */

/* Expected element (i0, i1, i2, i3) of t; *tolerance receives the largest
 * allowed error. Elements are asked for in order, so a formula may keep sums
 * of the row that i0 = 0 began. */
typedef double formula(const tensor *t, int64_t i0, int64_t i1, int64_t i2,
                       int64_t i3, double *tolerance);

/* Compute t and compare it with formula f. Prints one test, named by the
 * format. */
#define run_case(c, t, f, ...)                                                \
    ok(ops_case(c, t, f, __VA_ARGS__), "%s", ops_text)
bool ops_case(ctx_t *c, tensor *t, formula *f, const char *name, ...)
    GGUF_PRINTF(4, 5);
extern char ops_text[512]; /* name of the last test */

/* A formula with a tolerance of ulps units in the last place of the result. */
#define FORMULA(name, ulps, expr)                                             \
    static double f_##name(const tensor *t, int64_t i0, int64_t i1,           \
                           int64_t i2, int64_t i3, double *tol)               \
    {                                                                         \
        double v = (expr);                                                    \
        *tol = ulp(t, v) * (ulps);                                            \
        return v;                                                             \
    }

/* ALiBi's slope of a head, by the paper. */
double slope_of(double max_bias, int64_t head, int64_t n_head);

/* Check that call, a builder, fails with that status and a message with all
 * the pieces that follow. Prints one test. Resets the context. */
#define refused(c, call, status, ...)                                         \
    ok(ops_refused(c, call, status,                                           \
                   (const char *const[]){ __VA_ARGS__, NULL }),               \
       "%s: %s", #call, ops_text)
bool ops_refused(ctx_t *c, const tensor *t, enum gguf_status status,
                 const char *const *pieces);

#endif
