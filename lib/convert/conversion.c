/* SPDX-License-Identifier: MIT */
/* conversion.c - a conversion that is asked, and closed */
#include "config.h"
#include "convert/convert_int.h"

void gguf_convert_close(struct gguf_convert *c)
{
    if (!c)
        return;
    const struct gguf_allocator *a = c->p.allocator;
    gg_data_composed_fini(&c->out.data);
    gguf_meta_destroy(c->out.meta);
    gg_folder_close(&c->folder);
    gg_mem_free(a, c->parts.item);
    gg_mem_free(a, c->parts.number);
    gg_mem_free(a, c->parts.left);
    gg_mem_free(a, c->out.made);
    gg_mem_free(a, c->out.tensor);
    gg_mem_free(a, c->out.first_item);
    gg_mem_arena_fini(&c->arena);
    gg_mem_free(a, c);
}

size_t gguf_convert_n_tensors(const struct gguf_convert *c)
{
    return c->out.n_tensors;
}

const struct gguf_convert_tensor *
gguf_convert_tensor(const struct gguf_convert *c, size_t i)
{
    return i < c->out.n_tensors ? &c->out.tensor[i] : NULL;
}

const char *gguf_convert_source(const struct gguf_convert *c, size_t i,
                                size_t no)
{
    return i < c->out.n_tensors && no < c->out.tensor[i].n_from
               ? c->folder.weights
                     ->tensor[c->parts.item[c->out.first_item[i] + no].from]
                     .name.data
               : NULL;
}

size_t gguf_convert_n_omitted(const struct gguf_convert *c)
{
    return c->parts.n_left;
}

const char *gguf_convert_omitted(const struct gguf_convert *c, size_t i)
{
    return i < c->parts.n_left
               ? c->folder.weights->tensor[c->parts.left[i]].name.data
               : NULL;
}

const struct gguf_convert_summary *
gguf_convert_summary(const struct gguf_convert *c)
{
    return &c->out.summary;
}

const struct gguf_meta *gguf_convert_meta(const struct gguf_convert *c)
{
    return c->out.meta;
}
