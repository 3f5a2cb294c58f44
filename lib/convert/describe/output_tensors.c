/* SPDX-License-Identifier: MIT */
/* output_tensors.c - the tensors of the output, once they are described */
#include "config.h"
#include "convert/convert_int.h"

#include <string.h>

const struct gguf_convert_tensor *
gg_convert_find_tensor(const struct gguf_convert *c, const char *name)
{
    for (size_t i = 0; i < c->out.n_tensors; i++)
        if (!strcmp(c->out.tensor[i].name, name))
            return &c->out.tensor[i];
    return NULL;
}
