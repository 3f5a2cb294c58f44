/* SPDX-License-Identifier: MIT */
/* rows.c - what a model gives for tokens, saved row after row */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/msg.h"
#include "tools/common/paths.h"

#include <gguf/outfile.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Pieces of at least so many tokens: shorter ones may be summed in another
 * order (gguf/session.h), and no digit is to depend on --batch-size. */
enum { LEAST_PIECE = 64 };

void ppl_check_local(const struct ppl_options *o)
{
    for (size_t i = 0; i < o->models.n; i++)
        paths_local(o->models.arg[i]);
    paths_local(o->base);
    paths_local(o->tokens);
    for (size_t i = 0; i < o->text_args.n; i++)
        paths_local(o->text_args.arg[i]);
}

static void note_reads(struct gguf_paths *p, const struct ppl_options *o)
{
    for (size_t i = 0; i < o->models.n; i++)
        paths_read_model(p, o->models.arg[i], NULL, "--model");
    if (o->base && o->base_is_saved)
        paths_read(p, o->base, "--base");
    else if (o->base)
        paths_read_model(p, o->base, NULL, "--base");
    paths_read(p, o->tokens, "--tokens");
    for (size_t i = 0; i < o->n_files; i++)
        paths_read(p, o->files[i], "--file");
    for (size_t i = 0; i < o->loras.n; i++)
        paths_read(p, o->loras.file[i].path, "--lora");
    for (size_t i = 0; i < o->controls.n; i++)
        paths_read(p, o->controls.file[i].path, "--control-vector");
}

void ppl_check_paths(const struct ppl_options *o, char **parts, int n_parts)
{
    const struct {
        const char *path, *what;
    } out[] = {
        { o->logits, "--save-logits" },
        { o->save_base, "--save-base" },
        { o->embeddings, "--save-embeddings" },
        { o->each, "--per-token" },
        { o->plot, "--plot" },
        { o->html, "--html" },
        { o->part, "--save-part" },
    };
    const size_t n = sizeof out / sizeof *out;
    bool writes = false;
    for (size_t i = 0; i < n; i++)
        writes |= out[i].path != NULL;
    if (!writes)
        return;
    struct gguf_paths *p = paths_new();
    note_reads(p, o);
    for (int i = 0; i < n_parts; i++)
        paths_read(p, parts[i], "part");
    for (size_t i = 0; i < n; i++)
        paths_write(p, out[i].path, out[i].what);
    gguf_paths_destroy(p);
}

bool ppl_check_ids(const struct ppl_run *r, const struct ppl_ids *ids)
{
    const uint32_t n_ctx = r->o->n_ctx;
    if (!ids->n) {
        msg_error(r->o->tokens, "there are no token ids in it");
        return false;
    }
    if (ids->n > n_ctx) {
        msg_error(r->o->tokens,
                  "%zu tokens are more than the context of %" PRIu32
                  "; -c makes it longer",
                  ids->n, n_ctx);
        return false;
    }
    return true;
}

/* ---- saving ---- */

struct saving {
    struct ppl_run *run;
    struct gguf_session *session;
    struct gguf_outfile *file;
    size_t n_tokens, n_done;
    uint8_t *bytes; /* of one row */
    struct gguf_error err;
};

static bool fail_saving(const struct saving *s, const char *file)
{
    return progress_fail(&s->run->bar, file, &s->err);
}

static void store_le(uint8_t *out, const float *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &row[i], sizeof u);
        for (int k = 0; k < 4; k++)
            out[4 * i + (size_t)k] = (uint8_t)(u >> (8 * k));
    }
}

static bool save_row(struct saving *s, const float *row)
{
    const size_t n = s->run->width;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(row[i]))
            continue;
        progress_clear(&s->run->bar);
        msg_error(s->run->o->model,
                  "%s %zu of token %zu is not a finite number",
                  s->run->model.has_logits ? "logit" : "state", i, s->n_done);
        return false;
    }
    store_le(s->bytes, row, n);
    if (gguf_outfile_write(s->file, s->bytes, 4 * (uint64_t)n, &s->err) !=
        GGUF_OK)
        return fail_saving(s, s->run->o->logits);
    s->n_done++;
    return true;
}

/* Rows first to first + n - 1 of the batch that was computed last. */
static enum gguf_status rows_of(struct saving *s, size_t first, size_t n,
                                const float **rows)
{
    return s->run->model.has_logits
               ? gguf_session_logits(s->session, first, n, rows, &s->err)
               : gguf_session_states(s->session, first, n, rows, &s->err);
}

static bool save_outputs(struct saving *s)
{
    const size_t n = gguf_session_n_outputs(s->session);
    const size_t most = gguf_session_max_logits(s->session);
    for (size_t first = 0, k; first < n; first += k) {
        const float *rows;
        k = n - first < most ? n - first : most;
        if (rows_of(s, first, k, &rows) != GGUF_OK)
            return fail_saving(s, s->run->o->model);
        for (size_t i = 0; i < k; i++)
            if (!save_row(s, rows + i * s->run->width))
                return false;
        progress_report(&s->run->bar, s->n_done, s->n_tokens);
    }
    return true;
}

/* How many of the n tokens that are left go together. */
static size_t piece_size(const struct ppl_run *r, size_t n)
{
    const size_t most =
        r->o->n_batch > LEAST_PIECE ? r->o->n_batch : LEAST_PIECE;
    return r->model.is_whole || n < most + LEAST_PIECE ? n : most;
}

/* An encoder has the ids, too, if a decoder is to have them. */
static bool encode_first(struct saving *s, const struct ppl_ids *ids)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    b.n = ids->n;
    b.token = ids->id;
    return !s->run->model.encodes_first ||
           gguf_session_encode(s->session, &b, &s->err) == GGUF_OK ||
           fail_saving(s, s->run->o->model);
}

static bool save_all(struct saving *s, const struct ppl_ids *ids)
{
    uint8_t *all = msg_must(malloc(ids->n));
    bool good = true;
    memset(all, 1, ids->n);
    good = encode_first(s, ids);
    for (size_t i = 0, n; good && i < ids->n; i += n) {
        struct gguf_batch b = GGUF_BATCH_INIT;
        n = piece_size(s->run, ids->n - i);
        b.n = n;
        b.token = ids->id + i;
        b.want = all;
        if (gguf_session_decode(s->session, &b, &s->err) != GGUF_OK)
            good = fail_saving(s, s->run->o->model);
        good = good && save_outputs(s);
    }
    free(all);
    return good;
}

bool ppl_save_rows(struct ppl_run *r, struct gguf_session *session,
                   const struct ppl_ids *ids)
{
    struct saving s = { .run = r, .session = session, .n_tokens = ids->n };
    const double begin = progress_clock();
    r->n_tokens = r->n_rows = ids->n;
    r->width = r->model.has_logits ? r->model.n_vocab : r->model.n_embd;
    /* they can be computed again: what is there is replaced, when all are */
    if (gguf_outfile_open(&s.file, r->o->logits, 1, NULL, &s.err) != GGUF_OK)
        return fail_saving(&s, r->o->logits);
    s.bytes = msg_must(malloc(4 * r->width));
    progress_init(&r->bar, "saving", "tokens", r->o->quiet);
    bool good = save_all(&s, ids);
    progress_clear(&r->bar);
    if (good && gguf_outfile_commit(s.file, &s.err) != GGUF_OK)
        good = fail_saving(&s, r->o->logits);
    r->seconds = progress_clock() - begin;
    r->timings = *gguf_session_get_timings(session);
    gguf_outfile_destroy(s.file);
    free(s.bytes);
    if (good)
        ppl_print_rows(r);
    return good;
}
