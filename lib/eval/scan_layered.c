/* SPDX-License-Identifier: MIT */
/* scan_layered.c - scan layer by layer
 *
 * All groups of chunks for which memory is allowed go through one layer before
 * the next (gguf_session_decode_layered()), and are sent to the sinks after
 * the last one. */
#include "config.h"
#include "eval/scan.h"

#include "base/compiler.h"
#include "base/error.h"
#include "run/session_int.h"

static enum gguf_status send_layered(void *user, size_t g,
                                     struct gguf_error *err)
{
    struct gguf_scan *j = user;
    const size_t chunk = j->at + g * j->group;
    return gg_scan_send_group(j, chunk, gg_scan_group_size(j, chunk), err);
}

/* Tokens of the first n of the current groups. */
static uint64_t tokens_of(const struct gguf_scan *j, size_t n)
{
    uint64_t sum = 0;
    for (size_t g = 0; g < n; g++)
        sum += j->batch[g].n;
    return sum;
}

/* Report the current groups in proportion to their layers that are done. */
static bool report_layered(void *user, uint64_t done, uint64_t total)
{
    const struct gguf_scan *j = user;
    const double n = (double)tokens_of(j, j->n_filled);
    const double part = (double)done / (double)total;
    return gg_scan_report(j, j->n_done + (uint64_t)(n * part), NULL) !=
           GGUF_OK;
}

enum gguf_status gg_scan_run_layered(struct gguf_scan *j,
                                     struct gguf_error *err)
{
    const struct gguf_scan_info *info = &j->info;
    for (j->at = info->begin; j->at < info->end;) {
        size_t g = 0, chunk = j->at;
        for (; g < j->n_groups && chunk < info->end; g++) {
            const uint32_t n = gg_scan_group_size(j, chunk);
            gg_scan_fill_batch(j, g, chunk, n);
            chunk += n;
        }
        j->n_filled = g;
        GG_TRY(gguf_session_decode_layered(
            info->session, j->list, g,
            (struct gguf_session_outputs_callback){ send_layered, j },
            (struct gguf_progress_callback){ report_layered, j }, err));
        j->n_done += tokens_of(j, g);
        j->at = chunk;
    }
    return GGUF_OK;
}

/* Fill a batch with the group that has the most tokens, and so needs the most
 * memory. */
static void fill_largest(struct gguf_scan *j)
{
    size_t largest = j->info.begin;
    uint64_t most = 0;
    for (size_t i = j->info.begin; i < j->info.end;
         i += gg_scan_group_size(j, i)) {
        uint64_t n = 0;
        for (uint32_t q = 0; q < gg_scan_group_size(j, i); q++)
            n += gg_window_at(&j->windows, i + q).n;
        largest = n > most ? i : largest;
        most = GG_MAX(most, n);
    }
    gg_scan_fill_batch(j, 0, largest, gg_scan_group_size(j, largest));
}

enum gguf_status gg_scan_plan_layered(struct gguf_scan *j,
                                      struct gguf_error *err)
{
    const uint64_t most = j->p->max_stored;
    const size_t first = j->info.begin, n = j->info.end - first;
    uint64_t size;
    if (j->n_models > 1)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "layer by layer: %zu models, expected one",
                            j->n_models);
    fill_largest(j);
    GG_TRY(gguf_session_layered_size(j->info.session, j->batch, &size, err));
    if (size > most)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "chunks that are computed together leave %" PRIu64
                            " bytes for the next layer, at most %" PRIu64
                            " may be stored",
                            size, most);
    const uint64_t fit = size ? most / size : n;
    j->n_groups = (size_t)GG_MIN(fit, (uint64_t)(n - 1) / j->group + 1);
    gg_scan_free_batches(j, j->info.session->allocator);
    return gg_scan_make_batches(j, err);
}
