/* SPDX-License-Identifier: MIT */
/* model_check.c - is what is planned a model?
 *
 * A folder that is put together wrongly (a config.json of another model, a
 * shard of another size) may give every tensor a place, and a file that nothing
 * opens. The header that is planned is verified as a file's is.
 */
#include "config.h"
#include "convert/convert_int.h"
#include "gguf/verify.h"

#include <stdio.h>
#include <string.h>

struct faults {
    size_t n;
    char first[400];
};

static int note_finding(void *user, const struct gguf_finding *f)
{
    struct faults *s = user;
    if (f->severity == GGUF_SEVERITY_ERROR && !s->n++)
        snprintf(s->first, sizeof s->first, "%s", f->message);
    return 0;
}

/* The metadata of the plan, with the pairs that are set in the output. */
static enum gguf_status verify_with(const struct gguf_convert *c,
                                    const struct gguf_meta *more,
                                    struct faults *s, struct gguf_error *err)
{
    struct gguf_meta *m = NULL;
    GG_TRY(gguf_meta_create(&m, c->p.allocator, err));
    enum gguf_status st = gguf_meta_copy_file(m, c->plan, err);
    for (size_t i = 0; i < gguf_meta_n_kv(more) && st == GGUF_OK; i++)
        st = gguf_meta_set_kv(m, NULL, gguf_meta_kv(more, i), err);
    if (st == GGUF_OK)
        st = gguf_file_verify_meta(c->plan, m, NULL, note_finding, s, err);
    gguf_meta_destroy(m);
    return st;
}

enum gguf_status gg_convert_check(struct gguf_convert *c,
                                  const struct gguf_meta *more,
                                  struct gguf_error *err)
{
    struct faults s = { 0, "" };
    char more_of[60] = "";
    if (c->is_adapter || c->p.any || c->is_checked)
        return GGUF_OK;
    if (!c->n_tensors)
        return gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                            "the model would not be a sound one: the folder "
                            "has none of its tensors");
    if (more)
        GG_TRY(verify_with(c, more, &s, err));
    else
        GG_TRY(gguf_file_verify(c->plan, NULL, note_finding, &s, err));
    c->is_checked = true;
    if (s.n > 1)
        snprintf(more_of, sizeof more_of, " (the first of %zu faults)", s.n);
    return s.n ? gg_error_set(err, GGUF_E_MISMATCH, GGUF_NO_OFFSET,
                              "the model would not be a sound one: %s%s",
                              s.first, more_of)
               : GGUF_OK;
}
