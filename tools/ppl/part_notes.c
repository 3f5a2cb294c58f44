/* SPDX-License-Identifier: MIT */
/* part_notes.c - the settings and notes of a part
 *
 * Settings are everything that decides digits. Notes are everything that is
 * printed about models and texts, because --merge-parts opens neither.
 */
#include "config.h"
#include "tools/ppl/part.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"

#include <gguf/version.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

static enum gguf_status set_setting(struct ppl_part *p, const char *name,
                                    struct gguf_error *err, const char *fmt,
                                    ...) MSG_PRINTF(4, 5);

static enum gguf_status set_setting(struct ppl_part *p, const char *name,
                                    struct gguf_error *err, const char *fmt,
                                    ...)
{
    char value[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    return gguf_part_set_setting(p->part, name, value, err);
}

/* Add the names and scales of adapters. */
static void add_scaled(struct text *t, const struct scaled_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        text_addf(t, "%s%s=%g", t->n ? " " : "",
                  text_base_name(l->file[i].path), (double)l->file[i].scale);
}

static enum gguf_status set_options(struct ppl_part *p, struct gguf_error *err)
{
    const struct ppl_options *o = p->run->o;
    const struct ev_positions *pos = &o->ev.pos;
    const struct ev_backends *b = &p->run->e.own->backends;
    struct text t[4] = { { .s = NULL } };
    for (unsigned i = 0; i < b->n; i++)
        text_addf(&t[0], "%s%s", i ? " " : "", gguf_backend_name(b->list[i]));
    add_scaled(&t[1], &o->ev.loras);
    add_scaled(&t[2], &o->ev.controls);
    for (size_t i = 0; i < o->ev.kv_texts.n; i++)
        text_addf(&t[3], "%s%s", i ? " " : "", o->ev.kv_texts.arg[i]);
    const struct {
        const char *name, *value;
    } list[] = {
        { "backends", t[0].s },
        { "lora", t[1].s },
        { "control_vectors", t[2].s },
        { "override_kv", t[3].s },
        { "pre", o->ev.pre },
        { "as", o->ev.as },
        { "precision", gguf_precision_name((unsigned)o->ev.precision) },
        { "base_precision", gguf_precision_name(p->run->e.own->precision) },
        { "version", gguf_version_string() },
    };
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; st == GGUF_OK && i < sizeof list / sizeof *list; i++)
        st = gguf_part_set_setting(p->part, list[i].name,
                                   list[i].value ? list[i].value : "", err);
    for (int i = 0; i < 4; i++)
        text_fini(&t[i]);
    if (st == GGUF_OK)
        st = set_setting(p, "control_layers", err, "%" PRIu32 " to %" PRIu32,
                         o->ev.control_first, o->ev.control_last);
    if (st == GGUF_OK)
        st = set_setting(
            p, "positions", err,
            "base %g, scale %g, freq scale %g, scaling %d, YaRN %" PRIu32
            " %g %g %g %g, window %" PRIu32,
            pos->base, pos->scale, pos->freq_scale, pos->scaling,
            pos->yarn_ctx, pos->yarn_ext, pos->yarn_attn, pos->yarn_fast,
            pos->yarn_slow, pos->window);
    return st;
}

/* Set the setting of how texts are cut into chunks, and where each text
 * ends. */
static enum gguf_status set_cut(struct ppl_part *p,
                                const struct gguf_scan_info *info,
                                struct gguf_error *err)
{
    struct text t = { .s = NULL };
    text_addf(&t, "%d, %" PRIu32 " from %" PRIu32 " scored, %s; texts end at",
              (int)info->params->cut, info->n_rows, info->first + 1,
              p->run->e.add_bos ? "BOS" : "no BOS");
    for (size_t i = 0; i < info->n_texts; i++)
        text_addf(&t, " %zu", info->text_end[i]);
    const enum gguf_status st =
        gguf_part_set_setting(p->part, "cut", t.s, err);
    text_fini(&t);
    return st;
}

/* Set the setting of several texts: their number, and a digest of the tokens of
 * each. */
static enum gguf_status set_texts(struct ppl_part *p,
                                  const struct gguf_scan_info *info,
                                  struct gguf_error *err)
{
    struct text t = { .s = NULL };
    enum gguf_status st = GGUF_OK;
    text_addf(&t, "%zu:", info->n_texts);
    for (size_t i = 0, at = 0; st == GGUF_OK && i < info->n_texts; i++) {
        const size_t n = info->text_end[i] - at;
        uint8_t *bytes = msg_must(malloc(4 * n + 1));
        struct gguf_digest d;
        char hex[65];
        for (size_t k = 0; k < 4 * n; k++)
            bytes[k] =
                (uint8_t)((uint32_t)info->text[at + k / 4] >> 8 * (k % 4));
        st = gguf_digest_bytes(&d, GGUF_DIGEST_XXH64, bytes, 4 * n, err);
        free(bytes);
        if (st == GGUF_OK)
            gguf_digest_format(&d, hex);
        text_addf(&t, " %s", st == GGUF_OK ? hex : "");
        at = info->text_end[i];
    }
    if (st == GGUF_OK)
        st = gguf_part_set_setting(p->part, "texts", t.s, err);
    text_fini(&t);
    return st;
}

/* ---- notes ---- */

/* Return the members that put() adds to an object that it opens, as text for
 * json_members(). list: name of an array to write into, for the indentation, or
 * NULL. Free the result with free(). */
static char *write_members(const struct ppl_part *p, const char *list,
                           void (*put)(struct json *j,
                                       const struct ppl_part *p, size_t i),
                           size_t i)
{
    char *all = NULL;
    size_t size = 0;
    struct json j;
    FILE *f = msg_open_memory(&all, &size);
    json_begin_object(&j, f);
    if (list)
        json_open(&j, list, '[');
    fflush(f);
    const size_t from = (size_t)ftell(f);
    const unsigned depth = j.depth;
    put(&j, p, i);
    const bool closed = j.depth == depth;
    msg_close_memory(f, &all, &size);
    char *brace = strchr(all + from, '{');
    memmove(all, brace + 1, strlen(brace + 1) + 1);
    size_t n = strlen(all);
    if (closed) /* cut off the end of the object */
        for (n--; n && (all[n - 1] == ' ' || all[n - 1] == '\n');)
            n--;
    all[n] = 0;
    return all;
}

static void write_text(struct json *j, const struct ppl_part *p, size_t i)
{
    (void)i;
    ppl_json_text(j, p->run);
}

static void write_settings(struct json *j, const struct ppl_part *p, size_t i)
{
    (void)i;
    ppl_json_settings(j, p->run);
}

static void write_own(struct json *j, const struct ppl_part *p, size_t i)
{
    (void)i;
    ev_json_model(j, "model", &p->run->o->ev, p->run->e.own);
}

static void write_base(struct json *j, const struct ppl_part *p, size_t i)
{
    (void)i;
    ppl_json_base(j, p->side);
}

static void write_side(struct json *j, const struct ppl_part *p, size_t i)
{
    ev_json_model(j, NULL, &p->run->o->ev, p->side->model[i]);
}

static enum gguf_status set_note(struct ppl_part *p, struct gguf_error *err,
                                 const char *value, const char *fmt, ...)
    MSG_PRINTF(4, 5);

/* Set a note. fmt and following: its name. */
static enum gguf_status set_note(struct ppl_part *p, struct gguf_error *err,
                                 const char *value, const char *fmt, ...)
{
    char name[40];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    return gguf_part_set_note(p->part, name, value, err);
}

/* Set the notes NAME.file, NAME.size and so on, which pages and tables need of
 * a model. m is NULL for a file of logits. Frees json. */
static enum gguf_status set_model_notes(struct ppl_part *p, const char *name,
                                        const char *path,
                                        const struct ev_model *m,
                                        const struct gguf_digest *digest,
                                        char *json, struct gguf_error *err)
{
    char size[24], params[24], hex[96], *title;
    const struct gguf_str s =
        m ? ev_model_name(m) : (struct gguf_str){ path, strlen(path) };
    snprintf(size, sizeof size, "%" PRIu64, m ? m->info.weight_size : 0);
    snprintf(params, sizeof params, "%" PRIu64, m ? m->info.n_params : 0);
    title = msg_must(calloc(s.size + 1, 1));
    for (size_t i = 0; i < s.size;
         i++) /* cut at a NUL, which notes cannot have */
        title[i] = s.data[i];
    const struct {
        const char *what, *value;
    } list[] = { { "file", path },
                 { "size", size },
                 { "params", params },
                 { "name", title },
                 { "digest", ev_format_digest(hex, digest) },
                 { "json", json } };
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; st == GGUF_OK && i < sizeof list / sizeof *list; i++)
        st = set_note(p, err, list[i].value, "%s.%s", name, list[i].what);
    free(title);
    free(json);
    return st;
}

static enum gguf_status set_json_note(struct ppl_part *p, const char *name,
                                      char *json, struct gguf_error *err)
{
    const enum gguf_status st = gguf_part_set_note(p->part, name, json, err);
    free(json);
    return st;
}

/* Set the notes of texts and files. A text is a line of the length of its name,
 * other numbers, and the name. */
static enum gguf_status set_text_notes(struct ppl_part *p,
                                       struct gguf_error *err)
{
    const struct ppl_run *r = p->run;
    struct text t = { .s = NULL };
    char hex[96];
    for (size_t i = 0; i < r->e.n_texts; i++) {
        const struct ev_text *x = &r->e.texts[i];
        text_addf(&t, "%zu %zu %zu %zu %s ", strlen(x->name), x->size,
                  x->n_tokens, x->n_chunks,
                  ev_format_digest(hex, x->has_digest ? &x->digest : NULL));
        text_addz(&t, x->name);
        text_addz(&t, "\n");
    }
    enum gguf_status st = set_note(p, err, t.s ? t.s : "", "texts");
    text_clear(&t);
    for (size_t i = 0; i < r->o->texts.n; i++) {
        text_addf(&t, "%zu ", strlen(r->o->texts.path[i]));
        text_addz(&t, r->o->texts.path[i]);
        text_addz(&t, "\n");
    }
    if (st == GGUF_OK)
        st = set_note(p, err, t.s ? t.s : "", "files");
    text_fini(&t);
    return st;
}

/* Set the notes that are numbers. */
static enum gguf_status set_number_notes(struct ppl_part *p,
                                         struct gguf_error *err)
{
    const struct ppl_run *r = p->run;
    const struct {
        const char *name;
        uint64_t value;
    } list[] = {
        { "scored", r->e.n_scored_chunk }, { "skipped", r->e.n_skipped },
        { "cache_k", r->o->ev.key_dtype }, { "cache_v", r->o->ev.value_dtype },
        { "tasks", r->n_tasks_read },      { "text.size", r->e.text_size },
    };
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; st == GGUF_OK && i < sizeof list / sizeof *list; i++) {
        char number[24];
        snprintf(number, sizeof number, "%" PRIu64, list[i].value);
        st = set_note(p, err, number, "%s", list[i].name);
    }
    return st;
}

static enum gguf_status set_all_model_notes(struct ppl_part *p,
                                            struct gguf_error *err)
{
    const struct ppl_run *r = p->run;
    const struct ppl_side *s = p->side;
    const struct ev_model *base = s ? s->base : NULL;
    const struct gguf_digest *d =
        r->e.own->has_digest ? &r->e.own->digest : NULL;
    if (!s)
        return set_model_notes(p, "model.0", r->e.own->path, r->e.own, d,
                               write_members(p, NULL, write_own, 0), err);
    d = base && base->has_digest ? &base->digest
        : !base && s->has_digest ? &s->digest
                                 : NULL;
    enum gguf_status st =
        set_model_notes(p, "base", r->o->base, base, d,
                        write_members(p, NULL, write_base, 0), err);
    for (size_t i = 0; st == GGUF_OK && i < s->n; i++) {
        const struct ev_model *m = s->model[i];
        char name[32];
        snprintf(name, sizeof name, "model.%zu", i);
        st = set_model_notes(p, name, m->path, m,
                             m->has_digest ? &m->digest : NULL,
                             write_members(p, "models", write_side, i), err);
    }
    return st;
}

static enum gguf_status set_notes(struct ppl_part *p, struct gguf_error *err)
{
    const struct ppl_run *r = p->run;
    char hex[96];
    enum gguf_status st =
        set_note(p, err, r->o->text ? r->o->text : "",
                 "text.file"); /* "": tokens come from the base */
    if (st == GGUF_OK)
        st = set_note(
            p, err,
            ev_format_digest(hex, r->e.has_digest ? &r->e.digest : NULL),
            "text.digest");
    if (st == GGUF_OK)
        st = set_number_notes(p, err);
    if (st == GGUF_OK)
        st = set_text_notes(p, err);
    if (st == GGUF_OK)
        st = set_json_note(p, "text.json",
                           write_members(p, NULL, write_text, 0), err);
    if (st == GGUF_OK)
        st = set_json_note(p, "settings.json",
                           write_members(p, NULL, write_settings, 0), err);
    return st == GGUF_OK ? set_all_model_notes(p, err) : st;
}

/* ---- all settings and notes ---- */

/* Set the settings of a scan of texts. */
static enum gguf_status set_scan(struct ppl_part *p,
                                 const struct gguf_scan_info *info,
                                 struct gguf_error *err)
{
    enum gguf_status st =
        set_setting(p, "ctx_size", err, "%" PRIu32, info->params->n_ctx);
    if (st == GGUF_OK)
        st = set_setting(p, "stride", err, "%" PRIu32, info->params->stride);
    if (st == GGUF_OK)
        st = set_setting(p, "hf", err, "%d", p->run->o->hf);
    if (st == GGUF_OK && p->side && p->side->saved) {
        char digest[33];
        gguf_baseline_digest(p->side->saved, digest);
        st = set_setting(p, "base", err, "%s", digest);
    }
    if (st == GGUF_OK && p->run->e.several)
        st = set_texts(p, info, err);
    for (unsigned i = 0; st == GGUF_OK && i < info->n_models; i++)
        st = gguf_part_set_model(p->part, i, info->sessions[i], info->text,
                                 info->text_end[info->n_texts - 1], err);
    return st == GGUF_OK ? set_cut(p, info, err) : st;
}

enum gguf_status ppl_part_begin_text(struct ppl_part *p,
                                     const struct gguf_scan_info *info,
                                     struct gguf_error *err)
{
    enum gguf_status st = ppl_part_create(p, info->n_chunks, err);
    if (st == GGUF_OK)
        st = set_scan(p, info, err);
    if (st == GGUF_OK)
        st = set_options(p, err);
    return st == GGUF_OK ? set_notes(p, err) : st;
}

enum gguf_status ppl_part_begin_tasks(struct ppl_part *p,
                                      const struct gguf_session *session,
                                      struct gguf_error *err)
{
    const struct ppl_run *r = p->run;
    char hex[96];
    enum gguf_status st =
        ppl_part_create(p, gguf_tasks_n_tasks(r->tasks), err);
    if (st == GGUF_OK)
        st = gguf_part_set_model(p->part, 0, session, NULL, 0, err);
    if (st == GGUF_OK) /* digest of the file, instead of tokens */
        st = set_setting(p, "text", err, "%s",
                         ev_format_digest(hex, &r->tasks_digest));
    if (st == GGUF_OK)
        st = set_setting(p, "tasks", err, "%zu of %zu",
                         gguf_tasks_n_tasks(r->tasks), r->n_tasks_read);
    if (st == GGUF_OK)
        st = set_setting(p, "compat", err, "%d", r->o->compat);
    if (st == GGUF_OK)
        st = set_options(p, err);
    return st == GGUF_OK ? set_notes(p, err) : st;
}
