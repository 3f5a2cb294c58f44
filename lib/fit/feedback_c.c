/* SPDX-License-Identifier: MIT */
/* feedback_c.c - the kernels of feedback_kern.h in C */
#include "config.h"
#include "fit/feedback_kern.h"
#include "base/compiler.h"
#include "fit/pair_c.h"

#include <math.h>

#define FN(name)        name##_c
#define PRODUCT_VECTORS 1
#define PRODUCT_COLUMNS 4
#include "fit/feedback_impl.h"
#include "fit/feedback_words_impl.h"
#include "fit/feedback_descent_impl.h"
