/* gguf-ppl-merge.c - parts of an evaluation, put together and printed
 *
 * Scores are added up chunk by chunk in the order of the text, as they are
 * where one process has them all: the same digits.
 */
#include "config.h"
#include "tools/gguf-ppl.h"
#include "tools/common/msg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool fail(const char *file, const struct gguf_error *err)
{
    msg_fail(file, err);
    return false;
}

/* ---- sums ---- */

/* Perplexity of the part's chunks, printed as they are added. */
static bool add_ppl(struct ppl_run *r, const struct gguf_part *p)
{
    struct gguf_error err;
    const size_t step = gguf_part_n_values(p);
    if (!r->sums)
        r->sums = msg_must(calloc(r->n_chunks, sizeof *r->sums));
    for (size_t i = 0; i < r->n_chunks; i++) {
        struct gguf_ppl one = GGUF_PPL_INIT;
        size_t n = 0;
        const double *x = gguf_part_chunk(p, r->first_chunk + i, &n);
        for (size_t k = 0; k < n; k++, x += step) {
            one.n_bytes += (uint64_t)x[0];
            one.n_words += (uint64_t)x[1];
            one.sum += x[PPL_COUNTS];
            one.sum_sq += x[PPL_COUNTS] * x[PPL_COUNTS];
        }
        one.n = n;
        r->sums[i] = one;
        r->n_done = i + 1;
        if (gguf_ppl_add(&r->total, &one, &err) != GGUF_OK)
            return fail(NULL, &err);
        if (!r->o->json)
            ppl_print_chunk(r);
    }
    if (r->o->json)
        ppl_print_json(r, stdout);
    else
        ppl_print_end(r);
    return true;
}

/* The tokens of model m in a chunk. */
static bool add_tokens(struct gguf_kld *kld, const struct gguf_part *p,
                       size_t chunk, size_t m, struct gguf_error *err)
{
    const size_t step = gguf_part_n_values(p);
    size_t n = 0;
    const double *v = gguf_part_chunk(p, chunk, &n);
    struct gguf_kld_token *t = msg_must(calloc(n + 1, sizeof *t));
    for (size_t i = 0; i < n; i++) {
        const double *w = v + i * step + PPL_COUNTS + m * PPL_VALUES;
        t[i] = (struct gguf_kld_token){ w[0], w[1], w[2], w[3] > 0 };
    }
    const enum gguf_status st = gguf_kld_add(kld, t, n, err);
    free(t);
    return st == GGUF_OK;
}

static bool add_side(struct ppl_run *r, struct ppl_side *s,
                     const struct gguf_part *p)
{
    struct gguf_error err;
    struct gguf_kld_params kp = GGUF_KLD_PARAMS_INIT;
    for (size_t m = 0; m < s->n; m++)
        if (gguf_kld_create(&s->kld[m], &kp, &err) != GGUF_OK)
            return fail(NULL, &err);
    for (size_t i = 0; i < r->n_chunks; i++) {
        for (size_t m = 0; m < s->n; m++)
            if (!add_tokens(s->kld[m], p, r->first_chunk + i, m, &err))
                return fail(NULL, &err);
        size_t n = 0;
        const double *v = gguf_part_chunk(p, r->first_chunk + i, &n);
        for (size_t k = 0; k < n; k++, v += gguf_part_n_values(p)) {
            r->n_bytes += (uint64_t)v[0];
            r->n_words += (uint64_t)v[1];
        }
        r->n_done = i + 1;
        if (!r->o->json)
            ppl_print_side_chunk(s, r->first_chunk + i);
    }
    return ppl_side_report(s, NULL);
}

bool ppl_part_print(struct ppl_run *r, struct ppl_side *side,
                    const struct gguf_part *p)
{
    return side ? add_side(r, side, p) : add_ppl(r, p);
}

/* ---- parts ---- */

/* What is known of models that others evaluated. */
struct merged {
    struct ppl_run run;
    struct ppl_model base, *model;
    struct ppl_side side;
    struct ppl_text text; /* which has all chunks */
    struct gguf_part *part;
    size_t n_parts;
};

static const char *note(const struct gguf_part *p, const char *name)
{
    const char *s = gguf_part_get_note(p, name);
    return s ? s : "";
}

/* A number that a setting is; 0 without one. */
static uint64_t setting(const struct gguf_part *p, const char *name)
{
    const char *value, *s;
    for (size_t i = 0; (s = gguf_part_setting(p, i, &value)); i++)
        if (!strcmp(s, name))
            return strtoull(value, NULL, 10);
    return 0;
}

static bool load_all(struct merged *m, char **paths, int n)
{
    struct gguf_error err;
    for (int i = 0; i < n; i++) {
        struct gguf_part *one;
        if (gguf_part_load(&one, paths[i], NULL, &err) != GGUF_OK)
            return fail(paths[i], &err);
        enum gguf_status st = GGUF_OK;
        m->run.seconds += strtod(note(one, "seconds"), NULL);
        if (m->part) {
            st = gguf_part_merge(m->part, one, &err);
            gguf_part_destroy(one);
        } else {
            m->part = one;
        }
        if (st != GGUF_OK)
            return fail(paths[i], &err);
    }
    m->n_parts = (size_t)n;
    return true;
}

/* Which chunks: those that --chunks names, or all of the text; every one of
 * them must be there. */
static bool choose_chunks(struct merged *m, const struct ppl_options *o)
{
    const size_t all = gguf_part_n_chunks(m->part);
    struct ppl_run *r = &m->run;
    size_t n;
    if (o->first_chunk >= all) {
        msg_error(NULL,
                  "--chunks: the text has %zu chunks, none from %" PRIu64
                  " on",
                  all, o->first_chunk);
        return false;
    }
    r->first_chunk = (size_t)o->first_chunk;
    r->n_chunks = all - r->first_chunk;
    if (o->n_chunks && o->n_chunks < r->n_chunks)
        r->n_chunks = (size_t)o->n_chunks;
    const size_t end = r->first_chunk + r->n_chunks;
    for (size_t i = r->first_chunk; i < end; i++) {
        if (gguf_part_chunk(m->part, i, &n))
            continue;
        size_t last = i;
        while (last + 1 < end && !gguf_part_chunk(m->part, last + 1, &n))
            last++;
        msg_error(NULL,
                  "chunks %zu..%zu of %zu are in no part; --chunks A..B says "
                  "which are wanted",
                  i, last + 1, all);
        return false;
    }
    r->n_scored_chunk = strtoull(note(m->part, "scored"), NULL, 10);
    return true;
}

static void get_model(struct ppl_model *to, const struct gguf_part *p,
                      const char *name)
{
    char key[48];
    snprintf(key, sizeof key, "%s.file", name);
    to->path = note(p, key);
    snprintf(key, sizeof key, "%s.json", name);
    to->noted = note(p, key);
    snprintf(key, sizeof key, "%s.size", name);
    to->info.weight_size = strtoull(note(p, key), NULL, 10);
}

/* Models, and how they lie in the part. */
static bool get_models(struct merged *m, struct ppl_options *o)
{
    const size_t n_values = gguf_part_n_values(m->part);
    struct ppl_side *s = &m->side;
    char name[32];
    s->n = n_values > PPL_COUNTS ? (n_values - PPL_COUNTS) / PPL_VALUES : 0;
    if (n_values != PPL_COUNTS + (s->n ? s->n * PPL_VALUES : 1)) {
        msg_error(NULL, "%zu numbers for each token are of no evaluation",
                  n_values);
        return false;
    }
    m->model = msg_must(calloc(s->n + 1, sizeof *m->model));
    s->model = msg_must(calloc(s->n + 1, sizeof(struct ppl_model *)));
    s->kld = msg_must(calloc(s->n + 1, sizeof(struct gguf_kld *)));
    for (size_t i = 0; i < (s->n ? s->n : 1); i++) {
        snprintf(name, sizeof name, "model.%zu", i);
        get_model(&m->model[i], m->part, name);
        s->model[i] = &m->model[i];
    }
    get_model(&m->base, m->part, "base");
    s->base = &m->base;
    s->run = &m->run;
    m->run.own = &m->model[0];
    o->base = m->base.path;
    o->n_ctx = (uint32_t)setting(m->part, "ctx_size");
    o->stride = (uint32_t)setting(m->part, "stride");
    o->hf = setting(m->part, "hf") != 0;
    m->run.n_done_tokens = (uint64_t)o->n_ctx * m->run.n_chunks;
    o->text = note(m->part, "text.file");
    m->run.texts = &m->text;
    m->run.n_texts = 1;
    m->run.text_json = note(m->part, "text.json");
    m->run.settings_json = note(m->part, "settings.json");
    return true;
}

static const char *escaped(char out[256], const char *s)
{
    gguf_text_escape(out, 256, (struct gguf_str){ s, strlen(s) });
    return out;
}

static void print_head(const struct merged *m, const struct ppl_options *o)
{
    char name[256];
    if (m->side.n)
        printf("base    %s\n", escaped(name, o->base));
    for (size_t i = 0; i < (m->side.n ? m->side.n : 1); i++)
        printf("model   %s\n", escaped(name, m->model[i].path));
    printf("text    %s\n", escaped(name, o->text));
    printf("parts   %zu: %zu chunks", m->n_parts, m->run.n_chunks);
    if (m->run.first_chunk)
        printf(" from %zu on", m->run.first_chunk);
    printf(", %" PRIu64 " tokens of each scored\n", m->run.n_scored_chunk);
    if (m->side.n == 1)
        ppl_print_side_columns();
}

bool ppl_merge(struct ppl_options *o, char **paths, int n)
{
    struct merged m = { .run = { .o = o, .total = GGUF_PPL_INIT } };
    bool good =
        load_all(&m, paths, n) && choose_chunks(&m, o) && get_models(&m, o);
    if (good && !o->json)
        print_head(&m, o);
    good = good && ppl_part_print(&m.run, m.side.n ? &m.side : NULL, m.part);
    for (size_t i = 0; i < m.side.n; i++)
        gguf_kld_destroy(m.side.kld[i]);
    gguf_part_destroy(m.part);
    free(m.side.kld);
    free(m.side.model);
    free(m.model);
    free(m.run.sums);
    return good;
}
