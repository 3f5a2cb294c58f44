/* SPDX-License-Identifier: MIT */
/* calibrate_record.c - results of the tensors of a calibration
 *
 * A tensor's result is a note of the improver, so that a resumed run reports
 * the tensors of the interrupted one. */
#include "config.h"
#include "calibrate/calibrate_int.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"
#include "fit/form.h"

#include <math.h>
#include <string.h>

/* ---- notes ---- */

/* Result of a tensor in the journal, for the same machine. */
struct note {
    double strength, error_before, error_after;
    double divergence; /* divergence_before of the run */
    double untuned;    /* divergence before the tuning */
    uint32_t n_matrices, n_new, n_tuned;
    uint8_t use;
};
_Static_assert(sizeof(struct note) <= GGUF_QUANT_NOTE_SIZE, "note too long");

static void store_note(struct gg_calibrate_job *j,
                       const struct gg_calibrate_record *r)
{
    const struct gguf_calibrate_tensor *t = &r->result;
    struct note n = { .strength = t->strength,
                      .error_before = t->error_before,
                      .error_after = t->error_after,
                      .divergence = j->result.divergence_before,
                      .n_matrices = (uint32_t)t->n_matrices,
                      .n_new = (uint32_t)t->n_new,
                      .untuned = j->divergence_untuned,
                      .n_tuned = (uint32_t)r->n_tuned,
                      .use = (uint8_t)t->use };
    gguf_quant_improver_set_note(j->improver, t->tensor, &n, sizeof n);
}

static void load_note(struct gg_calibrate_job *j,
                      struct gg_calibrate_record *r)
{
    struct gguf_calibrate_tensor *t = &r->result;
    struct note n;
    memcpy(&n, gguf_quant_improver_note(j->improver, t->tensor), sizeof n);
    t->strength = n.strength;
    t->error_before = n.error_before;
    t->error_after = n.error_after;
    t->n_matrices = n.n_matrices;
    t->n_new = n.n_new;
    t->use = n.use ? GGUF_CALIBRATE_FEEDBACK : GGUF_CALIBRATE_PLAIN;
    t->note = t->n_new ? NULL : "an interrupted run kept it";
    j->result.divergence_before = n.divergence;
    r->n_tuned = n.n_tuned;
    if (n.n_tuned)
        j->divergence_untuned = n.untuned;
}

/* ---- records ---- */

static struct gguf_str record_name(const void *user, uint32_t id)
{
    return gg_str_z(
        ((const struct gg_calibrate_job *)user)->record[id].result.name);
}

enum gguf_status gg_calibrate_records_init(struct gg_calibrate_job *j,
                                           struct gguf_error *err)
{
    const struct gguf_quant *q = gguf_quant_improver_job(j->improver);
    const size_t n = gguf_quant_n_tensors(q);
    j->record = gg_mem_alloc_zero(j->allocator, n, sizeof *j->record);
    if (!j->record)
        return gg_error_set_nomem(err, n * sizeof *j->record);
    j->n_records = n;
    GG_TRY(gg_index_init(&j->index, j->allocator, (uint32_t)n, record_name, j,
                         err));
    for (size_t i = 0; i < n; i++) {
        const struct gguf_quant_tensor *t = gguf_quant_tensor(q, i);
        struct gg_calibrate_record *r = &j->record[i];
        uint32_t other;
        r->result =
            (struct gguf_calibrate_tensor){ .tensor = i,
                                            .name = t->name,
                                            .error_before = (double)NAN,
                                            .error_after = (double)NAN };
        if (!t->copied && gg_dtype_index(t->to) >= 0)
            r->form = gg_form_of(gg_dtype_index(t->to));
        j->result.n_tensors += r->form != NULL;
        if (gguf_quant_improver_is_replaced(j->improver, i))
            load_note(j, r);
        if (t->merged)
            return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                                "calibration: an adapter is merged into '%s', "
                                "and the original model is without it",
                                t->name);
        GG_TRY(gg_index_add(&j->index, (uint32_t)i, &other, err));
    }
    return GGUF_OK;
}

void gg_calibrate_records_fini(struct gg_calibrate_job *j)
{
    gg_index_fini(&j->index);
    gg_mem_free(j->allocator, j->record);
}

struct gg_calibrate_record *
gg_calibrate_find_record(const struct gg_calibrate_job *j, const char *name)
{
    const uint32_t id = gg_index_find(&j->index, gg_str_z(name));
    return id == GG_INDEX_NONE ? NULL : &j->record[id];
}

/* ---- results ---- */

void gg_calibrate_add_result(struct gg_calibrate_record *r,
                             const struct gg_stage_encode_result *result)
{
    struct gguf_calibrate_tensor *t = &r->result;
    t->n_matrices++;
    if (result->used) {
        t->n_new++;
        r->strength += (double)result->strength;
    }
    t->note = result->note;
    r->error_before += result->error_before;
    r->error_after += result->error_after;
    r->power += result->power;
}

static enum gguf_status report_tensor(struct gg_calibrate_job *j,
                                      struct gg_calibrate_record *r,
                                      struct gguf_error *err)
{
    r->done = true;
    j->result.n_new += r->result.n_new > 0;
    if (j->p->on_tensor.fn &&
        j->p->on_tensor.fn(j->p->on_tensor.user, &r->result))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}

size_t gg_calibrate_find_in_file(const struct gg_calibrate_job *j,
                                 const char *name)
{
    const struct gguf_tensor_info *t = gguf_file_tensor_find(j->file, name);
    return t ? t->index : SIZE_MAX;
}

/* Copy new bytes to a weight that does not lie in the file. */
static enum gguf_status update_weight(const struct gg_calibrate_job *j,
                                      const char *name, const void *bytes,
                                      uint64_t size, struct gguf_error *err)
{
    const size_t i = gg_calibrate_find_in_file(j, name);
    const struct gguf_tensor *t = gguf_model_tensor(j->quantized, i);
    if (!t || t->data == gguf_file_tensor_data(j->file, i))
        return GGUF_OK;
    return gguf_tensor_set((struct gguf_tensor *)t, bytes, 0, size, err);
}

enum gguf_status gg_calibrate_finish_tensor(struct gg_calibrate_job *j,
                                            struct gg_calibrate_record *r,
                                            const void *bytes,
                                            struct gguf_error *err)
{
    struct gguf_calibrate_tensor *t = &r->result;
    const uint64_t size =
        gguf_quant_tensor(gguf_quant_improver_job(j->improver), t->tensor)
            ->to_size;
    if (t->n_new) {
        t->use = GGUF_CALIBRATE_FEEDBACK;
        t->strength = r->strength / (double)t->n_new;
        t->note = NULL;
    } else {
        bytes = NULL;
    }
    if (r->power > 0) {
        t->error_before = r->error_before / r->power;
        t->error_after = r->error_after / r->power;
    }
    store_note(j, r);
    GG_TRY(
        gguf_quant_improver_replace(j->improver, t->tensor, bytes, size, err));
    if (bytes)
        GG_TRY(update_weight(j, t->name, bytes, size, err));
    return report_tensor(j, r, err);
}

enum gguf_status gg_calibrate_restore_tensor(struct gg_calibrate_job *j,
                                             struct gg_calibrate_record *r,
                                             const char *note,
                                             struct gguf_error *err)
{
    struct gguf_calibrate_tensor *t = &r->result;
    const size_t i = gg_calibrate_find_in_file(j, t->name);
    const uint64_t size =
        gguf_quant_tensor(gguf_quant_improver_job(j->improver), t->tensor)
            ->to_size;
    GG_TRY(gguf_quant_improver_restore(j->improver, t->tensor, err));
    if (i != SIZE_MAX)
        GG_TRY(update_weight(j, t->name, gguf_file_tensor_data(j->file, i),
                             size, err));
    t->use = GGUF_CALIBRATE_PLAIN;
    t->n_new = 0;
    t->strength = 0;
    t->error_after = t->error_before;
    t->note = note;
    return report_tensor(j, r, err);
}

enum gguf_status gg_calibrate_replace_tuned(struct gg_calibrate_job *j,
                                            struct gg_calibrate_record *r,
                                            const void *bytes, uint64_t size,
                                            size_t n_tuned,
                                            struct gguf_error *err)
{
    r->n_tuned = n_tuned;
    store_note(j, r);
    return gguf_quant_improver_replace(j->improver, r->result.tensor, bytes,
                                       size, err);
}

enum gguf_status gg_calibrate_keep_tensor(struct gg_calibrate_job *j,
                                          struct gg_calibrate_record *r,
                                          const char *note,
                                          struct gguf_error *err)
{
    if (r->done)
        return GGUF_OK;
    if (!r->result.n_matrices)
        r->result.note = note;
    return report_tensor(j, r, err);
}

enum gguf_status gg_calibrate_add_progress(struct gg_calibrate_job *j,
                                           uint64_t work,
                                           struct gguf_error *err)
{
    j->done = GG_MIN(j->done + work, j->total);
    if (j->p->progress.fn &&
        j->p->progress.fn(j->p->progress.user, j->done, j->total))
        return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                            "cancelled");
    return GGUF_OK;
}
