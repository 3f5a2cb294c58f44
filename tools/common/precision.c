/* precision.c - precisions of products, as options name them */
#include "config.h"
#include "tools/common/precision.h"

#include <gguf/gguf.h>

const struct opt_word precision_words[] = {
    { "exact", GGUF_PRECISION_EXACT },
    { "int16", GGUF_PRECISION_INT16 },
    { "int8", GGUF_PRECISION_INT8 },
    { NULL, 0 },
};

const char *precision_says(unsigned precision)
{
    static const char *const texts[] = {
        [GGUF_PRECISION_EXACT] = "weights decoded to f32, f32 activations",
        [GGUF_PRECISION_INT16] =
            "integers of quantized weights, activations of 16 bits",
        [GGUF_PRECISION_INT8] =
            "integers of quantized weights, activations of 8 bits",
    };
    return texts[precision];
}
