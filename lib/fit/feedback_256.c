/* SPDX-License-Identifier: MIT */
/* feedback_256.c - the kernels of feedback_kern.h for AVX2 */
#include "config.h"
#include "fit/feedback_kern.h"
#include "base/compiler.h"
#include "kern/simd/pair_256.h"

#include <math.h>

#define FN(name)        name##_256
#define PRODUCT_VECTORS 1
#define PRODUCT_COLUMNS 4
#include "fit/feedback_impl.h"
#include "fit/feedback_words_impl.h"
#include "fit/feedback_descent_impl.h"
