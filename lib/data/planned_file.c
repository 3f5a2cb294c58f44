/* SPDX-License-Identifier: MIT */
/* planned_file.c - the header of a file that a list would become */
#include "config.h"
#include "data/planned_file.h"

#include "base/mem.h"
#include "file/file_int.h"

#include <string.h>

enum gguf_status gg_data_plan(struct gguf_file **plan, struct gguf_file **out,
                              const struct gg_data *list,
                              const struct gguf_meta *meta,
                              const struct gguf_allocator *a,
                              struct gguf_error *err)
{
    const size_t n = gg_data_n_tensors(list);
    struct gguf_file *like = gg_mem_alloc_zero(a, 1, sizeof *like);
    *out = like;
    *plan = NULL;
    if (!like)
        return gg_error_set_nomem(err, sizeof *like);
    like->allocator = a;
    like->map.fd = -1;
    like->version = 3;
    like->tensor = gg_mem_alloc_zero(a, n, sizeof *like->tensor);
    if (!like->tensor)
        return gg_error_set_nomem(err, n * sizeof *like->tensor);
    like->n_tensors = like->tensor_room = n;
    for (size_t i = 0; i < n; i++) {
        struct gg_data_info info;
        struct gguf_tensor_info *t = &like->tensor[i];
        gg_data_info(list, i, &info);
        t->name = info.name;
        t->dtype = info.dtype;
        t->n_dims = info.n_dims;
        memcpy(t->ne, info.ne, sizeof t->ne);
        t->n_elements = info.n_elements;
        t->size = info.size;
        t->index = (uint32_t)i;
    }
    return gg_file_plan(plan, like, meta, a, err);
}

void gg_data_plan_close(struct gguf_file *plan, struct gguf_file *like,
                        const struct gguf_allocator *a)
{
    gguf_file_close(plan);
    if (like)
        gg_mem_free(a, like->tensor);
    gg_mem_free(a, like);
}
