/* SPDX-License-Identifier: MIT */
/* share.c - sharing chunks among the ranks of an MPI job
 *
 * Sums are large and merge exactly (gguf/collect.h). So each rank adds up its
 * own, and sends them once at the end, in the form of --save-part. During the
 * work ranks exchange a part without scores, which has the settings and the
 * evaluated chunks.
 */
#include "config.h"
#include "tools/imatrix/imatrix.h"
#include "tools/common/msg.h"
#include "tools/common/ranks.h"
#include "tools/common/text.h"
#include "base/os/os.h"
#include "base/os/os_program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gguf/version.h>

/* ---- settings ---- */

static void add_texts(struct text *t, char sign, const struct opt_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        text_addf(t, "%c%s\n", sign, l->arg[i]);
}

static bool set_settings(struct im_share *s)
{
    const struct im_options *o = s->o;
    struct gguf_error err;
    struct text filter = { .s = NULL }, ctx = { .s = NULL };
    add_texts(&filter, '+', &o->include);
    add_texts(&filter, '-', &o->exclude);
    text_addf(&ctx, "%u", (unsigned)o->ev.n_ctx);
    const struct {
        const char *name, *value;
    } list[] = {
        { "ctx_size", ctx.s },
        { "output", o->output ? "1" : "0" },
        { "filter", filter.s ? filter.s : "" },
        { "precision", gguf_precision_name((unsigned)o->ev.precision) },
        { "version", gguf_version_string() },
    };
    enum gguf_status st = gguf_part_create(
        &s->part, im_count_chunks(o, s->tokens->n), 0, 1, NULL, &err);
    for (size_t i = 0; st == GGUF_OK && i < sizeof list / sizeof *list; i++)
        st = gguf_part_set_setting(s->part, list[i].name, list[i].value, &err);
    if (st == GGUF_OK)
        st = gguf_part_set_model(s->part, 0, s->session, s->tokens->id,
                                 s->tokens->n, &err);
    text_fini(&filter);
    text_fini(&ctx);
    return st == GGUF_OK || msg_fail(NULL, &err);
}

/* ---- sums, as bytes ---- */

/* Create a private folder and return the path of a file in it, for
 * remove_file(). Returns NULL after it printed a message. */
static char *create_file(void)
{
    struct text t = { .s = NULL };
    text_addf(&t, "%s/gguf-imatrix-XXXXXX", gg_os_temporary_folder());
    if (gg_os_make_private_folder(t.s) != 0) {
        msg_error(t.s, "cannot be created: %s", strerror(errno));
        text_fini(&t);
        return NULL;
    }
    text_addz(&t, "/sums");
    return t.s;
}

static void remove_file(char *path)
{
    (void)gg_os_remove(path);
    *strrchr(path, '/') = '\0';
    (void)gg_os_remove_folder(path);
    free(path);
}

static bool read_file(const char *path, void **data, size_t *size)
{
    FILE *f = gg_os_stream_open(path, "rb");
    char *p = NULL;
    long n = -1;
    if (f && fseek(f, 0, SEEK_END) == 0)
        n = ftell(f);
    if (n >= 0 && fseek(f, 0, SEEK_SET) == 0) {
        p = msg_must(malloc((size_t)n + 1));
        *size = fread(p, 1, (size_t)n, f);
    }
    const bool good = p && *size == (size_t)n;
    if (!good)
        msg_error(path, "cannot be read: %s", strerror(errno));
    if (f)
        (void)fclose(f);
    *data = p;
    return good;
}

static bool write_file(const char *path, const void *data, size_t size)
{
    FILE *f = gg_os_stream_open(path, "wb");
    bool good = f && fwrite(data, 1, size, f) == size;
    good = f && fclose(f) == 0 && good;
    if (!good)
        msg_error(path, "cannot be written: %s", strerror(errno));
    return good;
}

static bool get_extra(void *user, void **data, size_t *size)
{
    const struct im_share *s = user;
    struct gguf_error err;
    *data = NULL;
    *size = 0;
    if (!gguf_part_n_done(s->part)) /* this rank got no chunk */
        return true;
    char *path = create_file();
    if (!path)
        return false;
    const bool good = (gguf_collect_save(s->c, path, true, &err) == GGUF_OK ||
                       msg_fail(path, &err)) &&
                      read_file(path, data, size);
    remove_file(path);
    return good;
}

static bool put_extra(void *user, const void *data, size_t size)
{
    const struct im_share *s = user;
    struct gguf_collect *other = NULL;
    struct gguf_error err;
    char *path = create_file();
    if (!path)
        return false;
    bool good = write_file(path, data, size);
    if (good && gguf_collect_load(&other, path, &s->o->files, &err) != GGUF_OK)
        good = msg_fail(path, &err);
    if (good && gguf_collect_merge(s->c, other, &err) != GGUF_OK)
        good = msg_fail(NULL, &err);
    gguf_collect_destroy(other);
    remove_file(path);
    return good;
}

/* ---- the work ---- */

static bool evaluate_chunks(void *user, size_t first, size_t n)
{
    struct im_share *s = user;
    struct gguf_error err;
    if (!s->evaluate(s->user, first, n))
        return false;
    for (size_t i = first; i < first + n; i++)
        if (gguf_part_add_chunk(s->part, i, NULL, NULL, 0, &err) != GGUF_OK)
            return msg_fail(NULL, &err);
    return true;
}

static struct gguf_part *get_part(void *user)
{
    return ((struct im_share *)user)->part;
}

int im_report_share_progress(struct im_share *s, uint64_t done)
{
    for (size_t i = 0; i < ranks_count(); i++)
        done += s->done[i] * s->o->ev.n_ctx;
    return !ranks_poll() ||
           progress_report(s->bar, done, s->n_chunks * s->o->ev.n_ctx);
}

static void show_waiting(void *user)
{
    (void)im_report_share_progress(user, 0);
}

/* Warn of skipped chunks, which one process does during the work. */
static void warn_skipped(const struct im_share *s)
{
    for (size_t i = 0; i < gguf_part_n_chunks(s->part); i++)
        if (gguf_collect_chunk_state(s->c, i) == GGUF_COLLECT_SKIPPED)
            msg_warn(s->o->text,
                     "chunk %zu is left out: an input is NaN or infinite", i);
}

bool im_share(struct im_share *s)
{
    const size_t all = im_count_chunks(s->o, s->tokens->n);
    const size_t first = (size_t)s->o->ev.first_chunk, left = all - first;
    s->n_chunks = s->o->ev.n_chunks && s->o->ev.n_chunks < left
                      ? (size_t)s->o->ev.n_chunks
                      : left;
    s->done = msg_must(calloc(ranks_count() + 1, sizeof *s->done));
    const struct ranks_work work = { .first = first,
                                     .n = s->n_chunks,
                                     .together = 1,
                                     .done = s->done,
                                     .evaluate = evaluate_chunks,
                                     .part = get_part,
                                     .get_extra = get_extra,
                                     .put_extra = put_extra,
                                     .waiting = show_waiting,
                                     .user = s };
    const bool good = set_settings(s) && ranks_share(&work);
    progress_clear(s->bar);
    if (good && !ranks_is_worker())
        warn_skipped(s);
    gguf_part_destroy(s->part);
    free(s->done);
    return good;
}
