/* SPDX-License-Identifier: MIT */
/* feedback_avx2.c - the kernels of feedback_kern.h for AVX2 */
#include "config.h"
#include "fit/feedback_kern.h"
#include "base/compiler.h"
#include "kern/x86/pair_avx2.h"

#include <math.h>

#define FN(name)        name##_avx2
#define PRODUCT_VECTORS 1
#define PRODUCT_COLUMNS 4
#include "fit/feedback_impl.h"
#include "fit/feedback_words_impl.h"
#include "fit/feedback_descent_impl.h"
