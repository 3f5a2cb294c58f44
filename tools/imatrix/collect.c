/* SPDX-License-Identifier: MIT */
/* collect.c - collecting importance data of a model on a text */
#include "config.h"
#include "tools/imatrix/imatrix.h"
#include "tools/common/load.h"
#include "tools/common/msg.h"
#include "tools/common/paths.h"
#include "tools/common/progress.h"
#include "tools/common/ranks.h"
#include "tools/common/text.h"
#include "tools/common/textfile.h"
#include "base/os/os.h"
#include "base/os/os_path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gguf/sensitivity.h>

/* Open objects, in the order in which they are destroyed. */
struct job {
    const struct im_options *o;
    struct gguf_collect *c;
    struct ev_model m;
    struct gguf_pool *pool;
    struct gguf_tokens tokens;
    char *text;
    struct text part; /* path of the part or of the checkpoint */
    uint64_t n_since; /* chunks since the last checkpoint */
    bool save_failed;
    size_t n_skipped;
    struct progress bar;
    struct im_share *share; /* NULL: not an MPI job */
};

/* ---- preparation ---- */

/* Set path to that of the part or of the checkpoint. */
static void name_part(struct text *path, const struct im_options *o)
{
    if (o->part)
        text_addf(path, "%s", o->part);
    else if (o->out)
        text_addf(path, "%s.part", o->out);
}

/* Check before hours of work that an output does not exist. */
static bool check_absent(const char *path, bool may_exist)
{
    if (!path || may_exist || gg_os_find(path) != 0)
        return true;
    return msg_error(path, "exists (--force replaces it)");
}

static bool check_outputs(const struct job *j)
{
    const struct im_options *o = j->o;
    const bool keeps = o->part || o->save_every || o->resume;
    if (!paths_can_write(o->out) || !paths_can_write(o->part) ||
        !check_absent(o->out, o->ev.force))
        return false;
    if (!keeps || o->resume || o->ev.force || gg_os_find(j->part.s) != 0)
        return true;
    return msg_error(j->part.s,
                     "exists (--resume continues it, --force replaces it)");
}

static bool open_model(struct job *j)
{
    const struct ev_options *o = &j->o->ev;
    return ev_pool_open(&j->pool, o) && ev_model_open(&j->m, j->o->model, o) &&
           ev_model_load_weights(&j->m, o, false, j->pool);
}

size_t im_count_chunks(const struct im_options *o, size_t n_tokens)
{
    struct gguf_scan_params p = GGUF_SCAN_PARAMS_INIT;
    p.n_ctx = o->ev.n_ctx;
    return gguf_scan_n_chunks(n_tokens, &p);
}

/* Print that the text, of size bytes, has too few chunks. */
static void report_short_text(const struct job *j, size_t size)
{
    const struct im_options *o = j->o;
    const size_t n = j->tokens.n, n_chunks = im_count_chunks(o, n);
    if (size == 0)
        msg_error(o->text, "the text is empty");
    else if (n_chunks == 0)
        msg_error(o->text,
                  "%zu token%s, expected at least a chunk of %" PRIu32
                  ": give a smaller -c",
                  n, text_s(n), o->ev.n_ctx);
    else
        msg_error(o->text,
                  "%zu chunk%s with -c %" PRIu32 ", and the first %" PRIu64
                  " are skipped (--chunks, --from-chunk)",
                  n_chunks, text_s(n_chunks), o->ev.n_ctx, o->ev.first_chunk);
}

static bool read_tokens(struct job *j)
{
    const struct im_options *o = j->o;
    struct gguf_error err;
    size_t size;
    const unsigned flags =
        (unsigned)GGUF_TOKENIZE_ADD_SPECIAL |
        (o->parse_special ? (unsigned)GGUF_TOKENIZE_PARSE_SPECIAL : 0u);
    if (!textfile_read(o->text, o->ev.max_text, &j->text, &size) ||
        (!o->ev.force && !textfile_check(o->text, j->text, size)))
        return false;
    if (!o->ev.quiet)
        textfile_warn(o->text, j->text, size);
    /* like llama.cpp, drop the newline that editors add at the end */
    if (size && j->text[size - 1] == '\n')
        size--;
    if (gguf_vocab_tokenize(gguf_model_vocab(j->m.model), j->text, size, flags,
                            &j->tokens, &err) != GGUF_OK)
        return msg_fail(o->text, &err);
    if (im_count_chunks(o, j->tokens.n) > o->ev.first_chunk)
        return true;
    report_short_text(j, size);
    return false;
}

static bool open_session(struct job *j)
{
    const struct ev_options *o = &j->o->ev;
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    sp.n_seq = 1;
    /* sensitivities need a chunk in one micro-batch */
    const bool whole = j->m.info.is_whole || j->o->sensitivity;
    sp.n_ubatch = whole || o->n_ubatch > o->n_ctx ? o->n_ctx : o->n_ubatch;
    return ev_model_open_backends(&j->m, o, j->pool) &&
           ev_model_begin_session(&j->m, o, &sp, j->o->sensitivity);
}

/* Create a collection with the settings of the command line. With --resume, add
 * the sums of the checkpoint. */
static bool begin_collection(struct job *j)
{
    const struct im_options *o = j->o;
    struct gguf_collect_params p = GGUF_COLLECT_PARAMS_INIT;
    struct gguf_collect *before = NULL;
    struct gguf_error err;
    p.n_ctx = o->ev.n_ctx;
    p.output = o->output;
    p.include = o->include.arg;
    p.n_include = o->include.n;
    p.exclude = o->exclude.arg;
    p.n_exclude = o->exclude.n;
    p.precision = gguf_precision_name((unsigned)o->ev.precision);
    if (gguf_collect_create(&j->c, &p, &err) != GGUF_OK)
        return msg_fail(NULL, &err);
    if (!o->resume || gg_os_find(j->part.s) != 0)
        return true;
    enum gguf_status st =
        gguf_collect_load(&before, j->part.s, &o->files, &err);
    if (st == GGUF_OK)
        st = gguf_collect_merge(j->c, before, &err);
    gguf_collect_destroy(before);
    return st == GGUF_OK || msg_fail(j->part.s, &err);
}

/* ---- the work ---- */

static bool save_part(struct job *j)
{
    struct gguf_error err;
    j->n_since = 0;
    if (gguf_collect_save(j->c, j->part.s, true, &err) == GGUF_OK)
        return true;
    progress_clear(&j->bar);
    return msg_fail(j->part.s, &err);
}

static bool on_chunk(void *user, const struct gguf_collect_chunk *chunk)
{
    struct job *j = user;
    if (chunk->bad && !j->share) { /* rank 0 warns for all ranks */
        progress_clear(&j->bar);
        j->n_skipped++;
        msg_warn(j->o->text,
                 "chunk %zu is left out: the input of '%s' is NaN or "
                 "infinite",
                 chunk->chunk, chunk->bad);
    }
    if (j->o->save_every && ++j->n_since >= j->o->save_every &&
        chunk->n_done < chunk->n_all)
        j->save_failed = !save_part(j);
    return j->save_failed;
}

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    struct job *j = user;
    return j->share ? im_report_share_progress(j->share, done)
                    : progress_report(&j->bar, done, total);
}

/* The name of the text that the data record. */
static const char *dataset_name(const struct im_options *o)
{
    return o->keep_paths ? o->text : gg_os_path_name(o->text);
}

/* Evaluate n chunks from first on; n 0: all chunks from first on. */
static enum gguf_status run_range(struct job *j, size_t first, size_t n,
                                  struct gguf_error *err)
{
    const struct im_options *o = j->o;
    struct gguf_collect_run_params r = GGUF_COLLECT_RUN_PARAMS_INIT;
    r.dataset = dataset_name(o);
    r.first_chunk = first;
    r.max_chunks = n;
    r.pool = j->pool;
    r.on_chunk = (struct gguf_collect_chunk_callback){ on_chunk, j };
    r.progress = (struct gguf_progress_callback){ on_progress, j };
    enum gguf_status st = GGUF_OK;
    if (o->ev.layer_major)
        st = ev_layer_major_budget(&o->ev, j->m.session, &r.max_stored, err);
    if (st == GGUF_OK)
        st = gguf_collect_run(j->c, j->m.session, j->tokens.id, j->tokens.n,
                              &r, err);
    return st;
}

/* Callback of im_share(). */
static bool run_share(void *user, size_t first, size_t n)
{
    struct job *j = user;
    struct gguf_error err;
    const enum gguf_status st = run_range(j, first, n, &err);
    if (st == GGUF_E_CANCELLED) {
        progress_raise();
        return false; /* another rank printed its error */
    }
    return st == GGUF_OK || msg_fail(j->o->model, &err);
}

static bool run_shared(struct job *j)
{
    struct im_share s = { .o = j->o,
                          .c = j->c,
                          .session = j->m.session,
                          .tokens = &j->tokens,
                          .bar = &j->bar,
                          .evaluate = run_share,
                          .user = j };
    progress_init(&j->bar, "importance", "tokens", j->o->ev.quiet);
    j->share = &s;
    const bool good = im_share(&s);
    j->share = NULL;
    return good;
}

static bool run_collection(struct job *j)
{
    const struct im_options *o = j->o;
    struct gguf_error err;
    if (o->mpi)
        return run_shared(j);
    progress_init(&j->bar, "importance", "tokens", o->ev.quiet);
    const enum gguf_status st =
        run_range(j, (size_t)o->ev.first_chunk, (size_t)o->ev.n_chunks, &err);
    progress_clear(&j->bar);
    if (st == GGUF_E_CANCELLED && progress_stopped()) {
        if (o->part || o->save_every)
            (void)save_part(j);
        progress_raise();
    }
    if (j->save_failed)
        return false;
    return st == GGUF_OK ||
           msg_fail(st == GGUF_E_MISMATCH ? j->part.s : o->model, &err);
}

static bool finish_collection(struct job *j, struct gguf_imatrix **im)
{
    const struct im_options *o = j->o;
    struct gguf_error err;
    struct gguf_collect_info info = GGUF_COLLECT_INFO_INIT;
    if (gguf_collect_info(j->c, &info, &err) != GGUF_OK)
        return msg_fail(NULL, &err);
    /* a part may have no data: other parts may have */
    const bool part = o->part && !o->out && !info.n_done && info.n_skipped;
    if ((o->part || o->save_every) && !save_part(j))
        return false;
    if (o->part && !o->ev.quiet)
        msg_info(o->part, "part, %zu of %zu chunks, precision %s", info.n_done,
                 info.n_chunks, info.precision);
    return gguf_collect_result(j->c, im, &err) == GGUF_OK || part ||
           msg_fail(o->text ? o->text : NULL, &err);
}

/* Measure sensitivities. *out stays NULL if they are not wanted. */
static bool measure_sensitivities(struct job *j, struct gguf_imatrix **out)
{
    const struct im_options *o = j->o;
    struct gguf_sensitivity_params p = GGUF_SENSITIVITY_PARAMS_INIT;
    struct gguf_error err;
    if (!o->sensitivity)
        return true;
    p.n_ctx = o->ev.n_ctx;
    p.n_tokens = o->sensitivity_tokens;
    p.pool = j->pool;
    p.progress = (struct gguf_progress_callback){ on_progress, j };
    p.include = o->include.arg;
    p.n_include = o->include.n;
    progress_init(&j->bar, "sensitivity", "tokens", o->ev.quiet);
    enum gguf_status st = gguf_imatrix_create(out, NULL, &err);
    if (st == GGUF_OK)
        st = gguf_sensitivity_run(*out, j->m.session, j->tokens.id,
                                  j->tokens.n, &p, &err);
    progress_clear(&j->bar);
    if (st == GGUF_E_CANCELLED && progress_stopped())
        progress_raise();
    return st == GGUF_OK || msg_fail(o->model, &err);
}

/* Add sensitivities to the data; NULL: none. */
static bool add_sensitivities(struct gguf_imatrix *im,
                              const struct gguf_imatrix *sensitivities)
{
    struct gguf_error err;
    return !im || !sensitivities ||
           gguf_imatrix_merge(im, sensitivities, &err) == GGUF_OK ||
           msg_fail(NULL, &err);
}

static void close_job(struct job *j)
{
    gguf_collect_destroy(j->c);
    ev_model_close(&j->m);
    gguf_pool_destroy(j->pool);
    gguf_tokens_fini(&j->tokens);
    free(j->text);
    text_fini(&j->part);
}

bool im_collect(struct gguf_imatrix **im, const struct im_options *o)
{
    struct job j = { .o = o, .tokens = GGUF_TOKENS_INIT };
    const bool given = *im != NULL;
    struct gguf_imatrix *sensitivities = NULL;
    name_part(&j.part, o);
    bool good = check_outputs(&j) && begin_collection(&j) && open_model(&j) &&
                read_tokens(&j) && open_session(&j);
    progress_catch_signals();
    good = good && measure_sensitivities(&j, &sensitivities);
    if (!given)
        good = good && run_collection(&j) &&
               (ranks_is_worker() || finish_collection(&j, im));
    good = good && add_sensitivities(*im, sensitivities);
    gguf_imatrix_destroy(sensitivities);
    close_job(&j);
    return good;
}

void im_remove_checkpoint(const struct im_options *o)
{
    struct text path = { NULL, 0, 0 };
    if (o->part || !(o->save_every || o->resume))
        return;
    name_part(&path, o);
    (void)gg_os_remove(path.s);
    text_fini(&path);
}

/* ---- parts ---- */

bool im_merge_parts(struct gguf_imatrix **im, const struct im_options *o,
                    char **paths, int n)
{
    struct job j = { .o = o, .tokens = GGUF_TOKENS_INIT };
    struct gguf_error err;
    name_part(&j.part, o);
    bool good = !o->part || check_absent(o->part, o->ev.force);
    for (int i = 0; i < n && good; i++) {
        struct gguf_collect *one;
        enum gguf_status st =
            gguf_collect_load(&one, paths[i], &o->files, &err);
        if (st == GGUF_OK && !j.c) {
            j.c = one;
            continue;
        }
        if (st == GGUF_OK) {
            st = gguf_collect_merge(j.c, one, &err);
            gguf_collect_destroy(one);
        }
        good = st == GGUF_OK || msg_fail(paths[i], &err);
    }
    struct gguf_collect_info info = GGUF_COLLECT_INFO_INIT;
    if (good && gguf_collect_info(j.c, &info, NULL) == GGUF_OK &&
        info.n_done + info.n_skipped < info.n_chunks && !o->ev.quiet)
        msg_warn(NULL, "the parts have %zu of the text's %zu chunks",
                 info.n_done + info.n_skipped, info.n_chunks);
    good = good && finish_collection(&j, im);
    close_job(&j);
    return good;
}
