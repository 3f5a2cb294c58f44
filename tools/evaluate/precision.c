/* SPDX-License-Identifier: MIT */
/* precision.c - words and descriptions of --precision */
#include "config.h"
#include "tools/evaluate/options.h"

const struct opt_word ev_precision_words[] = {
    { "exact", GGUF_PRECISION_EXACT },
    { "int16", GGUF_PRECISION_INT16 },
    { "int8", GGUF_PRECISION_INT8 },
    { NULL, 0 },
};

const char *ev_describe_precision(unsigned precision)
{
    static const char *const texts[] = {
        [GGUF_PRECISION_EXACT] = "weights and activations in f32",
        [GGUF_PRECISION_INT16] = "integer weights, 16-bit activations",
        [GGUF_PRECISION_INT8] = "integer weights, 8-bit activations",
    };
    return texts[precision];
}
