/* SPDX-License-Identifier: MIT */
/* feedback_avx512.c - the kernels of feedback_kern.h for AVX-512 */
#include "config.h"
#include "fit/feedback_kern.h"
#include "base/compiler.h"
#include "kern/x86/pair_avx512.h"

#include <math.h>

#define FN(name)        name##_avx512
#define PRODUCT_VECTORS 1
#define PRODUCT_COLUMNS 8
#include "fit/feedback_impl.h"
#include "fit/feedback_words_impl.h"
#include "fit/feedback_descent_impl.h"
