/* SPDX-License-Identifier: MIT */
/* calibration_share.c - one calibration by the ranks of an MPI job
 *
 * Each rank has an output of its own with the plain bytes: rank 0 the one that
 * gets a name, the others one without a name in TMPDIR. Ranks share the
 * computation of chunks and the encoding of rows, exchange the results, and
 * write the same bytes. Before that, the others receive the tensors that an
 * interrupted run of rank 0 has replaced.
 */
#include "config.h"
#include "tools/quantize/calibration.h"
#include "tools/common/msg.h"
#include "tools/common/ranks.h"
#include "tools/common/text.h"
#include "base/os/os.h"
#include "base/os/os_program.h"

#include <gguf/digest.h>
#include <gguf/improve.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Let all ranks have the size bytes of rank 0. */
static void copy_from_first(void *data, size_t size)
{
    uint64_t *off = msg_must(calloc(ranks_count() + 1, sizeof *off));
    for (size_t r = 1; r <= ranks_count(); r++)
        off[r] = size;
    ranks_exchange(data, off);
    free(off);
}

/* A tensor that rank 0 keeps of an interrupted run. */
static enum gguf_status copy_tensor(struct gguf_quant_improver *h, size_t i,
                                    struct gguf_error *err)
{
    const struct gguf_file *f = gguf_quant_improver_file(h);
    const struct gguf_quant_tensor *t =
        gguf_quant_tensor(gguf_quant_improver_job(h), i);
    const struct gguf_tensor_info *info = gguf_file_tensor_find(f, t->name);
    uint8_t note[GGUF_QUANT_NOTE_SIZE];
    enum gguf_status st = GGUF_OK;
    uint8_t *bytes = msg_must(malloc((size_t)t->to_size + 1));
    memcpy(note, gguf_quant_improver_note(h, i), sizeof note);
    if (!ranks_is_worker())
        memcpy(bytes, gguf_file_tensor_data(f, info->index),
               (size_t)t->to_size);
    copy_from_first(bytes, (size_t)t->to_size);
    copy_from_first(note, sizeof note);
    if (ranks_is_worker()) {
        gguf_quant_improver_set_note(h, i, note, sizeof note);
        st = gguf_quant_improver_replace(h, i, bytes, t->to_size, err);
    }
    free(bytes);
    return st;
}

static enum gguf_status copy_replaced(struct gguf_quant_improver *h,
                                      struct gguf_error *err)
{
    const size_t n = gguf_quant_n_tensors(gguf_quant_improver_job(h));
    enum gguf_status st = GGUF_OK;
    uint8_t *have = msg_must(calloc(n + 1, 1));
    for (size_t i = 0; i < n; i++)
        have[i] = gguf_quant_improver_is_replaced(h, i);
    copy_from_first(have, n);
    for (size_t i = 0; i < n && st == GGUF_OK; i++)
        if (have[i])
            st = copy_tensor(h, i, err);
    free(have);
    return st;
}

/* Check that all ranks have the same tokens and the same bytes. */
static enum gguf_status compare_ranks(const struct options *o,
                                      struct gguf_quant_improver *h,
                                      struct gguf_error *err)
{
    struct gguf_digest_params p = GGUF_DIGEST_PARAMS_INIT;
    struct gguf_digest d;
    struct {
        uint8_t tokens[16], model[16];
    } own = { { 0 }, { 0 } }, first;
    memset(&d, 0, sizeof d);
    p.pool = o->params.pool;
    const enum gguf_status st =
        gguf_digest_tensors(gguf_quant_improver_file(h), &p, NULL, &d, err);
    if (st != GGUF_OK)
        return st;
    memcpy(own.tokens, o->improve_digest, sizeof own.tokens);
    memcpy(own.model, d.bytes, sizeof own.model);
    first = own;
    copy_from_first(&first, sizeof first);
    const bool same_tokens = !memcmp(own.tokens, first.tokens, 16);
    if (same_tokens && !memcmp(own.model, first.model, 16))
        return GGUF_OK;
    snprintf(err->message, sizeof err->message,
             "the %s of rank %zu differ from those of rank 0",
             same_tokens ? "quantized tensors" : "texts or options",
             ranks_own());
    return err->status = GGUF_E_MISMATCH;
}

enum gguf_status calibration_begin_share(const struct options *o,
                                         struct gguf_quant_improver *h,
                                         struct gguf_error *err)
{
    if (!o->mpi)
        return GGUF_OK;
    const enum gguf_status st = copy_replaced(h, err);
    return st == GGUF_OK ? compare_ranks(o, h, err) : st;
}

/* ---- ranks that write nothing ---- */

/* Give up the outputs, which have been calibrated. */
static enum gguf_status give_up_output(void *user, size_t job,
                                       const struct gguf_file *output,
                                       struct gguf_error *err)
{
    struct options *o = user;
    (void)job, (void)output;
    o->gave_up = true;
    snprintf(err->message, sizeof err->message, "is written by rank 0");
    return err->status = GGUF_E_CANCELLED;
}

void calibration_begin_rank(struct options *o)
{
    if (!o->mpi || !ranks_is_worker() || o->dry_run)
        return;
    for (size_t i = 0; i < o->n_targets; i++) {
        struct text path = { NULL, 0, 0 };
        text_addf(&path, "%s/gguf-quantize-%ld-%zu.gguf",
                  gg_os_temporary_folder(), gg_os_process_id(), i);
        o->targets[i].path = o->targets[i].rank_path = path.s;
    }
    o->quiet = true;
    o->json = o->verbose = o->explain = o->resume = o->force = false;
    o->report = NULL;
    o->check = (struct gguf_quant_check_callback){ give_up_output, o };
}

enum gguf_status calibration_end_rank(const struct options *o,
                                      enum gguf_status st)
{
    return o->gave_up && st == GGUF_E_CANCELLED ? GGUF_OK : st;
}
