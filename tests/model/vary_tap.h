/* SPDX-License-Identifier: MIT */
/* vary_tap.h - tests of two variants of a model (vary.h), for a program's one
 * file that has tests/tap.h
 */
#ifndef TESTS_MODEL_VARY_TAP_H
#define TESTS_MODEL_VARY_TAP_H

#include "tests/model/vary.h"
#include "tests/tap.h"

/* Their outputs are the same to this bound. */
static inline void vary_same(const char *name, vary_fn *a, vary_fn *b,
                             double most, const char *what)
{
    const double d = vary_apart(name, a, b, VARY_N, VARY_N);
    ok(d <= most, "%s: %s: %.2g", name, what, d);
}

/* They are others, by more than that. */
static inline void vary_by(const char *name, vary_fn *a, vary_fn *b,
                           double least, const char *what)
{
    const double d = vary_apart(name, a, b, VARY_N, VARY_N);
    ok(d > least && d < 9, "%s: %s: %.2g", name, what, d);
}

/* By what a change that counts makes; rounding makes less than 1e-10. */
static inline void vary_counts(const char *name, vary_fn *a, vary_fn *b,
                               const char *what)
{
    vary_by(name, a, b, 2e-3, what);
}

/* Opening one fails and says so. */
static inline void vary_refused(const char *name, vary_fn *change,
                                const char *says)
{
    static float out[VARY_N * VARY_V];
    struct gguf_error err;
    const bool opens = vary_outputs(name, change, VARY_N, VARY_N, out, &err);
    ok(!opens && strstr(err.message, says), "%s: %s", name,
       opens ? "is evaluated" : err.message);
}

#endif
