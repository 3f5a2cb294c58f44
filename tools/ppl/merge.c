/* SPDX-License-Identifier: MIT */
/* merge.c - the result of an evaluation from its parts
 *
 * Models and texts are not opened: the notes of the first part describe them.
 */
#include "config.h"
#include "tools/ppl/part.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct merged {
    struct ppl_run run;
    struct ev_model base, *model;
    struct ppl_side side;
    const struct ppl_measure *measure;
    struct gguf_part *part;
    size_t n_parts;
};

static const char *get_note(const struct gguf_part *p, const char *name)
{
    const char *s = gguf_part_note(p, name);
    return s ? s : "";
}

static uint64_t get_number(const struct gguf_part *p, const char *name)
{
    return strtoull(get_note(p, name), NULL, 10);
}

/* Value of a setting; "" if the part lacks it. */
static const char *get_setting(const struct gguf_part *p, const char *name)
{
    const char *value, *s;
    for (size_t i = 0; (s = gguf_part_setting(p, i, &value)); i++)
        if (!strcmp(s, name))
            return value;
    return "";
}

static uint64_t get_setting_number(const struct gguf_part *p, const char *name)
{
    return strtoull(get_setting(p, name), NULL, 10);
}

/* ---- parts ---- */

static bool load_all(struct merged *m, char **paths, int n)
{
    struct gguf_error err;
    for (int i = 0; i < n; i++) {
        struct gguf_part *one;
        if (gguf_part_load(&one, paths[i], NULL, &err) != GGUF_OK)
            return msg_fail(paths[i], &err);
        if (!ppl_part_check(paths[i], one)) {
            gguf_part_destroy(one);
            return false;
        }
        enum gguf_status st = GGUF_OK;
        m->run.e.seconds += strtod(get_note(one, "seconds"), NULL);
        if (m->part) {
            st = gguf_part_merge(m->part, one, &err);
            gguf_part_destroy(one);
        } else {
            m->part = one;
        }
        if (st != GGUF_OK)
            return msg_fail(paths[i], &err);
    }
    m->n_parts = (size_t)n;
    return true;
}

/* Set the measure, and the number of models, which follows from the number of
 * values in a row. */
static bool choose_measure(struct merged *m, struct ppl_options *o)
{
    const struct ppl_measure *x = ppl_part_find_measure(m->part);
    m->measure = x;
    if (!x)
        return false;
    if (x->task && (o->plot || o->html))
        return msg_error(o->plot ? o->plot : o->html,
                         "parts of tasks have no picture and no page");
    m->side.n = x->side ? gguf_part_n_row_values(m->part) / x->n_values : 0;
    o->task = x->task;
    return true;
}

/* Choose the chunks of --chunks, or all chunks of the text. Fails if the parts
 * lack one. */
static bool choose_chunks(struct merged *m, const struct ppl_options *o)
{
    const size_t all = gguf_part_n_chunks(m->part);
    const char *what = o->task ? "tasks" : "chunks";
    struct ppl_run *r = &m->run;
    size_t n;
    if (o->ev.first_chunk >= all)
        return msg_error(NULL,
                         "--chunks: the first is %" PRIu64
                         ", counted from 0, but the text has only %zu %s",
                         o->ev.first_chunk, all, what);
    r->e.first_chunk = (size_t)o->ev.first_chunk;
    r->e.n_chunks = all - r->e.first_chunk;
    if (o->ev.n_chunks && o->ev.n_chunks < r->e.n_chunks)
        r->e.n_chunks = (size_t)o->ev.n_chunks;
    const size_t end = r->e.first_chunk + r->e.n_chunks;
    for (size_t i = r->e.first_chunk; i < end; i++) {
        if (gguf_part_row_values(m->part, i, &n))
            continue;
        size_t last = i;
        while (last + 1 < end && !gguf_part_row_values(m->part, last + 1, &n))
            last++;
        return msg_error(
            NULL,
            "%s %zu..%zu of %zu are in no part: add parts that have them, or "
            "select others with --chunks A..B",
            what, i, last + 1, all);
    }
    r->e.n_scored_chunk = get_number(m->part, "scored");
    return true;
}

/* ---- models ---- */

static void get_model(struct ev_model *to, const struct gguf_part *p,
                      const char *name)
{
    char key[6][48];
    static const char *const what[6] = { "file", "json",   "name",
                                         "size", "params", "digest" };
    for (int i = 0; i < 6; i++)
        snprintf(key[i], sizeof key[i], "%s.%s", name, what[i]);
    to->path = get_note(p, key[0]);
    to->part_json = get_note(p, key[1]);
    to->part_name = get_note(p, key[2]);
    to->info.weight_size = get_number(p, key[3]);
    to->info.n_params = get_number(p, key[4]);
    to->has_digest = ev_parse_digest(get_note(p, key[5]), &to->digest);
}

static void get_models(struct merged *m, struct ppl_options *o)
{
    struct ppl_side *s = &m->side;
    const size_t n = s->n ? s->n : 1;
    char name[32];
    m->model = msg_must(calloc(n, sizeof *m->model));
    s->model = msg_must(calloc(n, sizeof(struct ev_model *)));
    s->kld = msg_must(calloc(n, sizeof(struct gguf_kld *)));
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "model.%zu", i);
        get_model(&m->model[i], m->part, name);
        s->model[i] = &m->model[i];
    }
    get_model(&m->base, m->part, "base");
    s->base = &m->base;
    s->run = &m->run;
    m->run.e.own = &m->model[0];
    o->base = m->base.path;
    o->ev.key_dtype = (uint32_t)get_number(m->part, "cache_k");
    o->ev.value_dtype = (uint32_t)get_number(m->part, "cache_v");
    m->run.settings_json = get_note(m->part, "settings.json");
}

/* ---- texts ---- */

/* Position in the text of a note. */
struct cursor {
    const char *p, *end;
};

/* Parse a number and the blank after it. */
static bool parse_size(struct cursor *c, size_t *out)
{
    uint64_t n;
    if (!ppl_parse_number(&c->p, SIZE_MAX / 2, &n) || *c->p++ != ' ')
        return false;
    *out = (size_t)n;
    return true;
}

/* Parse a name of n bytes and the line end after it. Free the result with
 * free(). Returns NULL if the note is shorter. */
static char *parse_name(struct cursor *c, size_t n)
{
    if (n >= (size_t)(c->end - c->p) || c->p[n] != '\n')
        return NULL;
    char *name = msg_must(calloc(n + 1, 1));
    memcpy(name, c->p, n);
    c->p += n + 1;
    return name;
}

/* Set the texts of r from a note, like ev_read_texts(), but without tokens. */
static bool get_texts(struct ppl_run *r, const char *text)
{
    struct cursor c = { text, text + strlen(text) };
    while (c.p < c.end) {
        struct ev_text t = { .sums = GGUF_PPL_INIT };
        size_t n;
        char digest[96];
        if (!parse_size(&c, &n) || !parse_size(&c, &t.size) ||
            !parse_size(&c, &t.n_tokens) || !parse_size(&c, &t.n_chunks))
            return false;
        const size_t k = strcspn(c.p, " ");
        if (!text_copy(digest, sizeof digest, c.p, k) || c.p[k] != ' ')
            return false;
        c.p += k + 1;
        t.has_digest = ev_parse_digest(digest, &t.digest);
        t.first_chunk = r->e.n_texts ? ev_count_chunks(&r->e) : 0;
        if (t.n_chunks > SIZE_MAX / 2 - t.first_chunk ||
            !(t.name = parse_name(&c, n)))
            return false;
        r->e.texts = msg_grow(r->e.texts, &r->e.room_texts, r->e.n_texts + 1,
                              sizeof *r->e.texts);
        r->e.texts[r->e.n_texts++] = t;
    }
    return true;
}

static bool get_files(struct ppl_options *o, const char *text)
{
    struct cursor c = { text, text + strlen(text) };
    while (c.p < c.end) {
        size_t n;
        char *name = parse_size(&c, &n) ? parse_name(&c, n) : NULL;
        if (!name)
            return false;
        o->texts.path = msg_grow(o->texts.path, &o->texts.room, o->texts.n + 1,
                                 sizeof *o->texts.path);
        o->texts.path[o->texts.n++] = name;
    }
    return true;
}

/* Set text, options and texts from the notes. Fails if the texts do not have
 * all chunks together. */
static bool get_text(struct merged *m, struct ppl_options *o)
{
    struct ppl_run *r = &m->run;
    const struct gguf_part *p = m->part;
    o->text = *get_note(p, "text.file") ? get_note(p, "text.file") : NULL;
    o->ev.n_ctx = (uint32_t)get_setting_number(p, "ctx_size");
    o->stride = (uint32_t)get_setting_number(p, "stride");
    o->hf = get_setting_number(p, "hf") != 0;
    o->compat = get_setting_number(p, "compat") != 0;
    r->e.several = get_setting(p, "texts")[0] != 0;
    r->e.n_skipped = (size_t)get_number(p, "skipped");
    r->n_tasks_read = (size_t)get_number(p, "tasks");
    r->e.text_size = (size_t)get_number(p, "text.size");
    r->n_done_tokens = (uint64_t)o->ev.n_ctx * r->e.n_chunks;
    r->text_json = get_note(p, "text.json");
    r->e.has_digest =
        ev_parse_digest(get_note(p, "text.digest"), &r->e.digest);
    ppl_set_run(r, o);
    const size_t all = gguf_part_n_chunks(p);
    if (get_files(o, get_note(p, "files")) &&
        get_texts(r, get_note(p, "texts")) &&
        (!r->e.n_texts || ev_count_chunks(&r->e) == all))
        return true;
    return msg_error(NULL, "the notes of texts do not add up to %zu chunks",
                     all);
}

/* ---- the whole ---- */

static void print_head(const struct merged *m, const struct ppl_options *o)
{
    char name[256];
    if (m->side.n)
        wrap_printf("base    %s\n", ev_escape(name, o->base));
    for (size_t i = 0; i < (m->side.n ? m->side.n : 1); i++)
        wrap_printf("model   %s\n", ev_escape(name, m->model[i].path));
    if (m->run.e.several)
        wrap_printf("texts   %zu\n", m->run.e.n_texts);
    else
        wrap_printf("%s   %s\n", o->task ? "tasks" : "text ",
                    ev_escape(name, o->text ? o->text : o->base));
    wrap_printf("parts   %zu: %zu %s", m->n_parts, m->run.e.n_chunks,
                o->task ? "tasks" : "chunks");
    if (m->run.e.first_chunk)
        wrap_printf(" from %zu on", m->run.e.first_chunk);
    if (!o->task)
        wrap_printf(", %" PRIu64 " token%s of each scored",
                    m->run.e.n_scored_chunk, text_s(m->run.e.n_scored_chunk));
    wrap_printf("\n");
    if (m->side.n == 1)
        ppl_print_side_columns();
}

bool ppl_merge(struct ppl_options *o, char **paths, int n)
{
    struct merged m = { .run = { .o = o, .total = GGUF_PPL_INIT } };
    struct ppl_outputs x = { .per_token = NULL };
    ppl_check_paths(o, paths, n);
    bool good = load_all(&m, paths, n) && choose_measure(&m, o) &&
                choose_chunks(&m, o);
    struct ppl_side *side = m.side.n ? &m.side : NULL;
    if (good)
        get_models(&m, o);
    good = good && get_text(&m, o) && ppl_outputs_open(&x, &m.run, NULL, side);
    if (good && !o->ev.json)
        print_head(&m, o);
    good = good && m.measure->print(&m.run, side, m.part, &x);
    for (size_t i = 0; i < m.side.n && m.side.kld; i++)
        gguf_kld_destroy(m.side.kld[i]);
    ev_free_texts(&m.run.e);
    gguf_part_destroy(m.part);
    free(m.side.kld);
    free(m.side.model);
    free(m.model);
    free(m.run.sums);
    return good;
}
