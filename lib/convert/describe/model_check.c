/* SPDX-License-Identifier: MIT */
/* model_check.c - does a description make a sound model?
 *
 * A folder that is put together wrongly (a config.json of another model, a
 * shard of another size) may give every tensor a place, and a file that nothing
 * opens. The header that is planned is verified as a file's is.
 */
#include "config.h"
#include "convert/convert_int.h"
#include "file/file_int.h"
#include "gguf/verify.h"

#include <stdio.h>
#include <string.h>

struct faults {
    size_t n;
    char first[400];
    bool projector; /* faults of a projector */
};

/* Is a finding about a projector left to gguf-info --check? The rows of
 * conversion say which tensors a folder must have; programs may need more. */
static bool is_left_to_check(const struct gguf_finding *f)
{
    return !strcmp(f->code, "missing-key") ||
           !strcmp(f->code, "missing-tensor") ||
           !strcmp(f->code, "tensor-shape");
}

static bool note_finding(void *user, const struct gguf_finding *f)
{
    struct faults *s = user;
    if (s->projector && is_left_to_check(f))
        return 0;
    if (f->severity == GGUF_SEVERITY_ERROR && !s->n++)
        snprintf(s->first, sizeof s->first, "%s", f->message);
    return 0;
}

/* Pairs of the output: those described, and those of more. */
static enum gguf_status join_pairs(const struct gg_description *d,
                                   const struct gguf_meta *more,
                                   struct gguf_meta *to,
                                   struct gguf_error *err)
{
    for (size_t i = 0; i < gguf_meta_n_kv(d->meta); i++)
        GG_TRY(gguf_meta_set_kv(to, NULL, gguf_meta_kv(d->meta, i), err));
    for (size_t i = 0; more && i < gguf_meta_n_kv(more); i++)
        GG_TRY(gguf_meta_set_kv(to, NULL, gguf_meta_kv(more, i), err));
    return GGUF_OK;
}

static void describe_tensor(const struct gg_data *list, size_t i,
                            struct gguf_tensor_info *t)
{
    struct gg_data_info info;
    gg_data_info(list, i, &info);
    *t = (struct gguf_tensor_info){ .name = info.name,
                                    .dtype = info.dtype,
                                    .n_dims = info.n_dims,
                                    .n_elements = info.n_elements,
                                    .size = info.size,
                                    .index = (uint32_t)i };
    memcpy(t->ne, info.ne, sizeof t->ne);
}

/* Verify a header of the tensors of the list and the pairs of meta. */
static enum gguf_status verify_header(const struct gg_data *list,
                                      const struct gguf_meta *meta,
                                      const struct gguf_allocator *a,
                                      struct faults *s, struct gguf_error *err)
{
    const size_t n = gg_data_n_tensors(list);
    struct gguf_file like = { .allocator = a, .version = 3, .n_tensors = n };
    struct gguf_file *header = NULL;
    like.tensor = gg_mem_alloc_zero(a, n, sizeof *like.tensor);
    if (!like.tensor)
        return gg_error_set_nomem(err, n * sizeof *like.tensor);
    for (size_t i = 0; i < n; i++)
        describe_tensor(list, i, &like.tensor[i]);
    enum gguf_status st = gg_file_create_planned(&header, &like, meta, a, err);
    if (st == GGUF_OK)
        st = gguf_file_verify(
            header, NULL, (struct gguf_finding_callback){ note_finding, s },
            err);
    gguf_file_close(header);
    gg_mem_free(a, like.tensor);
    return st;
}

static enum gguf_status verify_description(const struct gg_description *d,
                                           const struct gguf_meta *more,
                                           const struct gguf_allocator *a,
                                           struct faults *s,
                                           struct gguf_error *err)
{
    struct gguf_meta *m = NULL;
    GG_TRY(gguf_meta_create(&m, a, err));
    enum gguf_status st = join_pairs(d, more, m, err);
    if (st == GGUF_OK)
        st = verify_header(d->list, m, a, s, err);
    gguf_meta_destroy(m);
    return st;
}

enum gguf_status gg_convert_check_model(struct gguf_convert *c,
                                        const struct gguf_meta *more,
                                        struct gguf_error *err)
{
    struct faults s = { 0, "", c->p.projector };
    char more_of[60] = "";
    if (c->is_adapter || c->image || c->p.allow_incomplete || c->is_checked)
        return GGUF_OK;
    if (!c->out.n_tensors)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "the converted model would be invalid: the "
                            "folder lacks all of its tensors");
    GG_TRY(verify_description(&c->out.description, more, c->p.allocator, &s,
                              err));
    c->is_checked = true;
    if (s.n > 1)
        snprintf(more_of, sizeof more_of, " (the first of %zu faults)", s.n);
    return s.n ? gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                              "the converted model would be invalid: %s%s",
                              s.first, more_of)
               : GGUF_OK;
}
