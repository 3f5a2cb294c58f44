/* SPDX-License-Identifier: MIT */
/* side_by_side.c - models evaluated in step with a base */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/digest.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tokens of a file of logits that are tokenized again, at most. */
enum { LOOK_AT = 1024 };

/* ---- models ---- */

bool ppl_side_open_saved(struct ppl_side *s, struct ppl_options *o)
{
    struct gguf_error err;
    if (gguf_baseline_open(&s->saved, o->base, NULL, &err) != GGUF_OK)
        return msg_fail(o->base, &err);
    const uint32_t n_ctx = gguf_baseline_n_ctx(s->saved);
    if (o->ev.n_ctx && o->ev.n_ctx != n_ctx)
        return msg_error(o->base,
                         "has chunks of %" PRIu32 " tokens, expected %" PRIu32
                         " (-c): leave out -c",
                         n_ctx, o->ev.n_ctx);
    o->ev.n_ctx = n_ctx;
    ev_choose_ubatch(&o->ev);
    if (!(o->ev.json || o->html || o->part) || o->ev.no_digest)
        return true;
    s->has_digest =
        digest_path(o->base, GGUF_DIGEST_XXH64, &s->digest, &err) == GGUF_OK;
    return s->has_digest || progress_fail(NULL, o->base, &err);
}

/* Is the model's tokenizer that of the file of logits? The file does not name
 * it, so the text of its tokens is tokenized again. Only the first half must be
 * the same: at the end a token may have been cut off. */
static bool same_tokenizer(const struct ppl_side *s,
                           const struct ppl_options *o,
                           const struct gguf_tokens *tokens)
{
    const struct gguf_vocab *v = gguf_model_vocab(s->model[0]->model);
    struct gguf_tokens again = GGUF_TOKENS_INIT;
    const unsigned flags = GGUF_DETOKENIZE_STRIP;
    const size_t n = tokens->n < LOOK_AT ? tokens->n : LOOK_AT;
    const size_t size =
        gguf_vocab_detokenize(v, tokens->id, n, flags, NULL, 0);
    char *text = msg_must(malloc(size + 1));
    size_t i = 0;
    (void)gguf_vocab_detokenize(v, tokens->id, n, flags, text, size);
    if (gguf_vocab_tokenize(v, text, size, GGUF_TOKENIZE_ADD_SPECIAL, &again,
                            NULL) == GGUF_OK)
        while (i < n && i < again.n && again.id[i] == tokens->id[i])
            i++;
    if (i < n / 2)
        msg_error(o->base,
                  "comes from another tokenizer than that of %s: token %zu is "
                  "%" PRIi32 ", but another one if its text is tokenized "
                  "again; --force skips this check",
                  s->model[0]->path, i + 1, tokens->id[i]);
    gguf_tokens_fini(&again);
    free(text);
    return i >= n / 2;
}

bool ppl_side_copy_tokens(const struct ppl_side *s,
                          const struct ppl_options *o,
                          struct gguf_tokens *tokens)
{
    const size_t n =
        gguf_baseline_n_chunks(s->saved) * gguf_baseline_n_ctx(s->saved);
    gguf_tokens_fini(tokens);
    tokens->id = msg_must(malloc(n * sizeof *tokens->id));
    memcpy(tokens->id, gguf_baseline_tokens(s->saved), n * sizeof *tokens->id);
    tokens->n = tokens->cap = n;
    return o->ev.force || same_tokenizer(s, o, tokens);
}

/* Does the vocabulary have the size of the base's? Checked before weights are
 * read; the scan compares the texts of tokens. */
static bool has_vocabulary(const struct ev_model *m,
                           const struct ev_model *base)
{
    struct gguf_error err;
    if (m->info.n_vocab == base->info.n_vocab ||
        gguf_scan_compare_vocab(base->model, m->model, &err) == GGUF_OK)
        return true;
    return msg_fail(m->path, &err);
}

bool ppl_side_open(struct ppl_side *s, const struct ppl_options *o,
                   struct ev_model *own)
{
    const size_t n = o->models.n;
    s->model = msg_must(calloc(n, sizeof(struct ev_model *)));
    s->kld = msg_must(calloc(n, sizeof(struct gguf_kld *)));
    s->list = msg_must(calloc(n, sizeof *s->list));
    s->base = s->saved ? NULL : own;
    if (s->saved)
        s->model[s->n++] = own;
    while (s->n < n) {
        struct ev_model *m = &s->list[s->n_list++];
        const char *path = o->models.arg[s->n];
        s->model[s->n++] = m;
        if (!ev_model_open(m, path, &o->ev) || !ev_adapters_open(m, &o->ev) ||
            !has_vocabulary(m, own))
            return false;
    }
    return true;
}

bool ppl_side_load_weights(struct ppl_side *s, const struct ppl_run *r,
                           struct gguf_pool *pool)
{
    s->pool = pool;
    for (size_t i = 0; i < s->n_list; i++)
        if (!ev_model_load_weights(&s->list[i], r->e.o, r->e.wants_digest,
                                   pool))
            return false;
    return true;
}

bool ppl_side_begin_sessions(struct ppl_side *s, const struct ppl_options *o,
                             const struct gguf_session_params *params,
                             struct gguf_pool *pool)
{
    for (size_t i = 0; i < s->n_list; i++)
        if (!ev_model_open_backends(&s->list[i], &o->ev, pool) ||
            !ev_model_begin_session(&s->list[i], &o->ev, params, false))
            return false;
    return true;
}

void ppl_side_close(struct ppl_side *s)
{
    for (size_t i = 0; i < s->n; i++)
        gguf_kld_destroy(s->kld[i]);
    for (size_t i = 0; i < s->n_list; i++)
        ev_model_close(&s->list[i]);
    gguf_baseline_close(s->saved);
    free(s->list);
    free(s->model);
    free(s->kld);
}

/* ---- rows ---- */

bool ppl_find_prediction(const struct ev_model *m, double *kld)
{
    const struct gguf_kv *kv =
        m->file ? gguf_file_kv_find(m->file, "quantize.predicted_kld") : NULL;
    return gguf_kv_get_float(kv, kld, NULL) == GGUF_OK && *kld > 0 &&
           isfinite(*kld);
}

const struct gguf_kld_token *ppl_side_last_tokens(const struct ppl_side *s,
                                                  size_t i, size_t n)
{
    size_t all;
    const struct gguf_kld_token *t = gguf_kld_tokens(s->kld[i], &all);
    return t + all - n;
}

struct ppl_rows ppl_convert_rows(const struct gguf_scan_rows *rows,
                                 const struct ppl_side *side)
{
    return (struct ppl_rows){ .chunk = rows->chunk,
                              .text = rows->text,
                              .first = rows->first,
                              .n = rows->n,
                              .token = rows->token,
                              .nll = side ? NULL : gguf_scan_nll(rows) };
}

/* ---- the run ---- */

/* Show the divergence so far beside the progress bar; of several models, its
 * range. */
static void show_divergence(struct ppl_side *s)
{
    struct progress *bar = &s->run->e.bar;
    double low = INFINITY, high = -INFINITY, error = NAN;
    for (size_t i = 0; bar->on && i < s->n; i++) {
        struct gguf_kld_stats k = GGUF_KLD_STATS_INIT;
        if (gguf_kld_means(s->kld[i], &k, NULL) != GGUF_OK)
            return;
        low = fmin(low, k.kld.value);
        high = fmax(high, k.kld.value);
        error = k.kld.error;
    }
    char from[32], to[32];
    snprintf(bar->note, sizeof bar->note, "%s %s %s",
             text_format_number(from, low, 3), s->n == 1 ? "+/-" : "to",
             s->n == 1 ? text_format_number(to, error, 2)
                       : text_format_number(to, high, 3));
}

static bool on_chunk(void *user, size_t chunk, size_t n_chunks,
                     const struct gguf_kld *kld)
{
    struct ppl_side *s = user;
    struct ppl_run *r = s->run;
    (void)n_chunks;
    if (kld != s->kld[s->n - 1])
        return false;
    r->n_done =
        chunk - r->e.first_chunk + 1; /* chunks that all models evaluated */
    show_divergence(s);
    if (!r->o->ev.json) {
        progress_clear(&r->e.bar);
        ppl_print_side_chunk(s, chunk);
    }
    return false;
}

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    struct ppl_side *s = user;
    if (s->run->o->mpi)
        return ppl_report_share_progress(s->run, done);
    s->run->n_done_tokens = done;
    return progress_report(&s->run->e.bar, done, total);
}

/* Sink that counts scored bytes and words. */
static enum gguf_status count_text(void *user,
                                   const struct gguf_scan_rows *rows,
                                   struct gguf_error *err)
{
    struct ppl_run *r = user;
    uint64_t n_bytes, n_words;
    enum gguf_status st = gguf_scan_count_text(rows, &n_bytes, &n_words, err);
    if (st != GGUF_OK)
        return st;
    r->n_bytes += n_bytes;
    r->n_words += n_words;
    if (r->e.n_texts) {
        struct gguf_ppl *p = &r->e.texts[rows->text].sums;
        p->n += rows->n;
        p->n_bytes += n_bytes;
        p->n_words += n_words;
    }
    return st;
}

/* Evaluate n chunks from first on with all models. more: n_more sinks that run
 * after those of divergences. */
static enum gguf_status scan_models(struct ppl_side *s, size_t first, size_t n,
                                    const struct gguf_sink *const *more,
                                    size_t n_more,
                                    const struct gguf_tokens *tokens,
                                    struct gguf_error *err)
{
    struct gguf_scan_params p = ev_scan_params(&s->run->e);
    struct gguf_session **all = msg_must(calloc(s->n + 1, sizeof *all));
    const struct gguf_sink **sinks =
        msg_must(calloc(s->n + 1 + n_more, sizeof *sinks));
    struct gguf_sink counter = GGUF_SINK_INIT;
    enum gguf_status st = GGUF_OK;
    size_t n_all = 0, n_sinks = s->n;
    if (s->base)
        all[n_all++] = s->base->session;
    for (size_t i = 0; i < s->n && st == GGUF_OK; i++) {
        struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
        kp.model = i;
        kp.baseline = s->saved;
        kp.pool = s->pool;
        kp.on_chunk.fn = s->run->o->mpi ? NULL : on_chunk;
        kp.on_chunk.user = s;
        gguf_kld_destroy(s->kld[i]); /* made for an earlier share */
        s->kld[i] = NULL;
        st = gguf_kld_create(&s->kld[i], &kp, err);
        all[n_all++] = s->model[i]->session;
        sinks[i] = st == GGUF_OK ? gguf_kld_sink(s->kld[i]) : NULL;
    }
    counter.user = s->run;
    counter.rows = count_text;
    sinks[n_sinks++] = &counter;
    for (size_t i = 0; i < n_more; i++)
        sinks[n_sinks++] = more[i];
    p.first_chunk = first;
    p.max_chunks = n;
    p.pool = s->pool;
    p.progress.fn = on_progress;
    p.progress.user = s;
    if (st == GGUF_OK)
        st = gguf_scan_run_models(all, n_all, tokens->id, tokens->n, &p, sinks,
                                  n_sinks, err);
    free(all);
    free(sinks);
    return st;
}

bool ppl_side_report(const struct ppl_side *s, struct ppl_report *pages)
{
    struct gguf_kld_stats *stats = msg_must(calloc(s->n, sizeof *stats));
    struct gguf_error err;
    bool good = true;
    for (size_t i = 0; good && i < s->n; i++) {
        stats[i].struct_size = sizeof stats[i];
        good = gguf_kld_stats(s->kld[i], &stats[i], &err) == GGUF_OK;
    }
    if (!good)
        msg_fail(NULL, &err);
    good = ppl_report_close(pages, good, stats);
    if (good && s->run->o->ev.json)
        ppl_print_side_json(s, stats, stdout);
    else if (good)
        ppl_print_side_end(s, stats);
    free(stats);
    return good;
}

static bool report_failure(const struct ppl_side *s,
                           const struct gguf_error *err)
{
    return progress_fail(NULL,
                         s->saved    ? s->run->o->base
                         : s->n == 1 ? s->model[0]->path
                                     : NULL,
                         err);
}

struct share {
    struct ppl_side *side;
    const struct gguf_tokens *tokens;
};

/* Callback of ppl_part_share(). */
static bool evaluate_share(void *user, struct ppl_part *part, size_t first,
                           size_t n)
{
    const struct share *x = user;
    const struct gguf_sink *const more[] = { ppl_part_sink(part) };
    struct gguf_error err;
    const enum gguf_status st =
        scan_models(x->side, first, n, more, 1, x->tokens, &err);
    if (st == GGUF_E_CANCELLED && !progress_stopped())
        return false; /* another rank printed its error */
    return st == GGUF_OK || report_failure(x->side, &err);
}

bool ppl_side_run(struct ppl_side *s, struct ppl_run *r,
                  const struct gguf_tokens *tokens)
{
    struct gguf_error err;
    struct ppl_per_token *per_token;
    struct ppl_report *pages;
    struct ppl_part *part;
    const struct gguf_sink *more[3];
    size_t n_more = 0;
    s->run = r;
    if (r->o->mpi) {
        struct share x = { s, tokens };
        if (!r->o->ev.json)
            ppl_print_side_head(s);
        return ppl_part_share(r, s, evaluate_share, &x, tokens);
    }
    if (!ppl_part_open(&part, r, s))
        return false;
    bool good = ppl_per_token_open(&per_token, r,
                                   gguf_model_vocab(s->model[0]->model), s);
    if (!ppl_report_open(&pages, r, s) || !good) {
        ppl_report_close(pages, false, NULL);
        ppl_part_close(part, false);
        return ppl_per_token_close(per_token, false);
    }
    if (per_token)
        more[n_more++] = ppl_per_token_sink(per_token);
    if (pages)
        more[n_more++] = ppl_report_sink(pages);
    if (part)
        more[n_more++] = ppl_part_sink(part);
    if (!r->o->ev.json)
        ppl_print_side_head(s);
    ev_begin_work(&r->e, "divergence", "tokens");
    const enum gguf_status st = scan_models(s, r->e.first_chunk, r->e.n_chunks,
                                            more, n_more, tokens, &err);
    ev_end_work(&r->e);
    const char *per_token_file = ppl_per_token_failed_file(per_token);
    good = ppl_per_token_close(per_token, st == GGUF_OK);
    good = ppl_part_close(part, good);
    if (good && ppl_layer_map_measure(pages, tokens))
        return ppl_side_report(s, pages);
    ppl_report_close(pages, false, NULL);
    if (good)
        progress_raise();
    if (per_token_file)
        msg_fail(per_token_file, &err);
    return !per_token_file && st != GGUF_OK && report_failure(s, &err);
}
