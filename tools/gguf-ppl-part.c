/* gguf-ppl-part.c - a part: some chunks' scores in a file; and parts together
 *
 * A sink beside the others keeps what they make of each token, as numbers. What
 * decides digits goes into the part as settings; what is printed about models
 * and text as notes, for whoever merges it has neither.
 */
#include "config.h"
#include "tools/gguf-ppl-mpi.h"
#include "tools/common/msg.h"
#include "tools/common/paths.h"
#include "tools/common/text.h"

#include <gguf/version.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ppl_part {
    struct ppl_run *run;
    const struct ppl_side *side; /* with kld, or NULL: one model alone */
    struct gguf_part *part;
    struct gguf_sink sink;
    double *value; /* of the chunk at hand */
    size_t n, room;
    size_t n_tokens;           /* of the chunk */
    size_t n_values;           /* of a token */
    uint64_t n_bytes, n_words; /* of the chunk */
};

/* ---- settings ---- */

static enum gguf_status set(struct ppl_part *p, const char *name,
                            struct gguf_error *err, const char *fmt, ...)
    MSG_PRINTF(4, 5);

static enum gguf_status set(struct ppl_part *p, const char *name,
                            struct gguf_error *err, const char *fmt, ...)
{
    char value[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    return gguf_part_set(p->part, name, value, err);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Files that are added to the weights, by name and scale. */
static void add_scaled(struct text *t, const struct scaled_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        text_addf(t, "%s%s=%g", t->n ? " " : "", base_name(l->file[i].path),
                  (double)l->file[i].scale);
}

static enum gguf_status set_options(struct ppl_part *p, struct gguf_error *err)
{
    const struct ppl_options *o = p->run->o;
    const struct ppl_positions *pos = &o->pos;
    const struct ppl_backends *b = &p->run->own->backends;
    struct text t[4] = { { .s = NULL } };
    for (unsigned i = 0; i < b->n; i++)
        text_addf(&t[0], "%s%s", i ? " " : "", gguf_backend_name(b->list[i]));
    add_scaled(&t[1], &o->loras);
    add_scaled(&t[2], &o->controls);
    for (size_t i = 0; i < o->kv_texts.n; i++)
        text_addf(&t[3], "%s%s", i ? " " : "", o->kv_texts.arg[i]);
    const struct {
        const char *name, *value;
    } list[] = {
        { "backends", t[0].s },
        { "lora", t[1].s },
        { "control_vectors", t[2].s },
        { "override_kv", t[3].s },
        { "pre", o->pre },
        { "precision", gguf_precision_name((unsigned)o->precision) },
        { "base_precision", gguf_precision_name(p->run->own->precision) },
        { "version", gguf_version_string() },
    };
    enum gguf_status st = GGUF_OK;
    for (size_t i = 0; st == GGUF_OK && i < sizeof list / sizeof *list; i++)
        st = gguf_part_set(p->part, list[i].name,
                           list[i].value ? list[i].value : "", err);
    for (int i = 0; i < 4; i++)
        text_fini(&t[i]);
    if (st == GGUF_OK)
        st = set(p, "control_layers", err, "%" PRIu32 " to %" PRIu32,
                 o->control_first, o->control_last);
    if (st == GGUF_OK)
        st = set(p, "positions", err,
                 "base %g, scale %g, freq scale %g, scaling %d, YaRN %" PRIu32
                 " %g %g %g %g, window %" PRIu32,
                 pos->base, pos->scale, pos->freq_scale, pos->scaling,
                 pos->yarn_ctx, pos->yarn_ext, pos->yarn_attn, pos->yarn_fast,
                 pos->yarn_slow, pos->window);
    return st;
}

/* How the texts are cut into chunks, and where each of them ends. */
static enum gguf_status set_cut(struct ppl_part *p,
                                const struct gguf_scan_info *info,
                                struct gguf_error *err)
{
    struct text t = { .s = NULL };
    text_addf(&t, "%d, %" PRIu32 " from %" PRIu32 " scored, %s; texts end at",
              (int)info->cut, info->n_rows, info->first + 1,
              p->run->add_bos ? "BOS" : "no BOS");
    for (size_t i = 0; i < info->n_texts; i++)
        text_addf(&t, " %zu", info->text_end[i]);
    const enum gguf_status st = gguf_part_set(p->part, "cut", t.s, err);
    text_fini(&t);
    return st;
}

/* ---- notes ---- */

/* The members that a function writes into an object it opens, as JSON that
 * json_members() takes, at a depth. */
static char *members(const struct ppl_part *p, const char *list,
                     void (*write)(struct json *j, const struct ppl_part *p,
                                   size_t i),
                     size_t i)
{
    char *all = NULL;
    size_t size = 0;
    struct json j;
    FILE *f = msg_must(open_memstream(&all, &size));
    json_begin(&j, f);
    json_open(&j, NULL, '{');
    if (list)
        json_open(&j, list, '[');
    fflush(f);
    const size_t from = size;
    const unsigned depth = j.depth;
    write(&j, p, i);
    const bool closed = j.depth == depth;
    fclose(f);
    char *brace = strchr(msg_must(all) + from, '{');
    memmove(all, brace + 1, strlen(brace + 1) + 1);
    size_t n = strlen(all);
    if (closed) /* without the end of the object */
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
    ppl_json_model(j, "model", p->run->o, p->run->own);
}

static void write_base(struct json *j, const struct ppl_part *p, size_t i)
{
    (void)i;
    ppl_json_base(j, p->side);
}

static void write_side(struct json *j, const struct ppl_part *p, size_t i)
{
    ppl_json_model(j, NULL, p->run->o, p->side->model[i]);
}

/* A model's file, size and members, as notes NAME.file and so on. */
static enum gguf_status note_model(struct ppl_part *p, const char *name,
                                   const char *path, uint64_t size, char *json,
                                   struct gguf_error *err)
{
    char key[40], number[24];
    snprintf(key, sizeof key, "%s.file", name);
    enum gguf_status st = gguf_part_note(p->part, key, path, err);
    snprintf(key, sizeof key, "%s.size", name);
    snprintf(number, sizeof number, "%" PRIu64, size);
    if (st == GGUF_OK)
        st = gguf_part_note(p->part, key, number, err);
    snprintf(key, sizeof key, "%s.json", name);
    if (st == GGUF_OK)
        st = gguf_part_note(p->part, key, json, err);
    free(json);
    return st;
}

static enum gguf_status note_json(struct ppl_part *p, const char *name,
                                  char *json, struct gguf_error *err)
{
    const enum gguf_status st = gguf_part_note(p->part, name, json, err);
    free(json);
    return st;
}

static enum gguf_status note_all(struct ppl_part *p, struct gguf_error *err)
{
    const struct ppl_run *r = p->run;
    const struct ppl_side *s = p->side;
    const char *text = r->o->text ? r->o->text : r->o->base;
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, r->n_scored_chunk);
    enum gguf_status st = gguf_part_note(p->part, "text.file", text, err);
    if (st == GGUF_OK)
        st = gguf_part_note(p->part, "scored", number, err);
    if (st == GGUF_OK)
        st = note_json(p, "text.json", members(p, NULL, write_text, 0), err);
    if (st == GGUF_OK)
        st = note_json(p, "settings.json", members(p, NULL, write_settings, 0),
                       err);
    if (st == GGUF_OK && !s)
        st = note_model(p, "model.0", r->own->path, r->model.weight_size,
                        members(p, NULL, write_own, 0), err);
    if (st == GGUF_OK && s)
        st = note_model(p, "base", r->o->base,
                        s->base ? s->base->info.weight_size : 0,
                        members(p, NULL, write_base, 0), err);
    for (size_t i = 0; s && st == GGUF_OK && i < s->n; i++) {
        char name[32];
        snprintf(name, sizeof name, "model.%zu", i);
        st = note_model(p, name, s->model[i]->path,
                        s->model[i]->info.weight_size,
                        members(p, "models", write_side, i), err);
    }
    return st;
}

/* ---- the sink ---- */

static enum gguf_status begin(void *user, const struct gguf_scan_info *info,
                              struct gguf_error *err)
{
    struct ppl_part *p = user;
    if (p->part) /* one scan after another adds to it */
        return GGUF_OK;
    const size_t n_tokens = info->text_end[info->n_texts - 1];
    enum gguf_status st =
        gguf_part_create(&p->part, info->n_chunks, p->n_values, NULL, err);
    if (st == GGUF_OK)
        st = set(p, "ctx_size", err, "%" PRIu32, info->n_ctx);
    if (st == GGUF_OK)
        st = set(p, "stride", err, "%" PRIu32, info->stride);
    if (st == GGUF_OK)
        st = set(p, "hf", err, "%d", p->run->o->hf);
    if (st == GGUF_OK && p->side && p->side->saved) {
        char digest[33];
        gguf_baseline_digest(p->side->saved, digest);
        st = set(p, "base", err, "%s", digest);
    }
    for (unsigned i = 0; st == GGUF_OK && i < info->n_models; i++)
        st = gguf_part_tell(p->part, i, info->sessions[i], info->text,
                            n_tokens, err);
    if (st == GGUF_OK)
        st = set_cut(p, info, err);
    if (st == GGUF_OK)
        st = set_options(p, err);
    return st == GGUF_OK ? note_all(p, err) : st;
}

static enum gguf_status add_rows(void *user, const struct gguf_scan_rows *rows,
                                 struct gguf_error *err)
{
    struct ppl_part *p = user;
    uint64_t n_bytes, n_words;
    const enum gguf_status st =
        gguf_scan_count_text(rows, &n_bytes, &n_words, err);
    if (st != GGUF_OK)
        return st;
    p->n_bytes += n_bytes;
    p->n_words += n_words;
    p->value = msg_grow(p->value, &p->room, p->n + rows->n * p->n_values,
                        sizeof *p->value);
    p->n_tokens += rows->n;
    for (uint32_t i = 0; i < rows->n; i++) {
        p->value[p->n++] = 0;
        p->value[p->n++] = 0;
        if (!p->side)
            p->value[p->n++] = gguf_scan_nll(rows)[i];
        for (size_t m = 0; p->side && m < p->side->n; m++) {
            size_t n; /* the rows are its last ones */
            const struct gguf_kld_token *t =
                gguf_kld_tokens(p->side->kld[m], &n) + n - rows->n + i;
            const double v[PPL_VALUES] = { t->x, t->x_base, t->kld,
                                           t->same_top };
            memcpy(p->value + p->n, v, sizeof v);
            p->n += PPL_VALUES;
        }
    }
    return GGUF_OK;
}

static enum gguf_status end_chunk(void *user, size_t chunk,
                                  struct gguf_error *err)
{
    struct ppl_part *p = user;
    if (p->n) {
        p->value[0] = (double)p->n_bytes;
        p->value[1] = (double)p->n_words;
    }
    const enum gguf_status st =
        gguf_part_add(p->part, chunk, p->value, p->n_tokens, err);
    p->n = p->n_tokens = 0;
    p->n_bytes = p->n_words = 0;
    return st;
}

bool ppl_part_open(struct ppl_part **out, struct ppl_run *r,
                   const struct ppl_side *side)
{
    *out = NULL;
    if (!r->o->part && !r->o->mpi)
        return true;
    if (r->o->part && !r->o->force && access(r->o->part, F_OK) == 0) {
        msg_error(r->o->part, "exists (--force replaces it)");
        return false;
    }
    if (!paths_can_write(r->o->part))
        return false;
    if (r->several) {
        msg_error(r->o->part, "parts are of one text: save those of each text "
                              "by themselves");
        return false;
    }
    struct ppl_part *p = *out = msg_must(calloc(1, sizeof *p));
    p->run = r;
    p->side = side;
    p->n_values = PPL_COUNTS + (side ? PPL_VALUES * side->n : 1);
    p->sink = (struct gguf_sink)GGUF_SINK_INIT;
    p->sink.user = p;
    p->sink.begin = begin;
    p->sink.rows = add_rows;
    p->sink.chunk = end_chunk;
    return true;
}

const struct gguf_sink *ppl_part_sink(struct ppl_part *p)
{
    return &p->sink;
}

static void destroy(struct ppl_part *p)
{
    gguf_part_destroy(p->part);
    free(p->value);
    free(p);
}

bool ppl_part_close(struct ppl_part *p, bool good)
{
    struct gguf_error err;
    char seconds[32];
    if (!p)
        return good;
    if (!p->run->o->part) {
        destroy(p);
        return good;
    }
    json_format_f64(seconds, p->run->seconds);
    if (good && gguf_part_note(p->part, "seconds", seconds, &err) != GGUF_OK) {
        msg_fail(NULL, &err);
        good = false;
    }
    if (good && gguf_part_save(p->part, p->run->o->part, p->run->o->force,
                               &err) != GGUF_OK) {
        msg_fail(p->run->o->part, &err);
        good = false;
    }
    if (good && !p->run->o->quiet)
        msg_info(p->run->o->part, "part, %zu of %zu chunks",
                 gguf_part_n_done(p->part), gguf_part_n_chunks(p->part));
    destroy(p);
    return good;
}

/* ---- together with others ---- */

struct share {
    struct ppl_part *part;
    ppl_chunks_fn *evaluate;
    void *user;
};

static bool evaluate_some(void *user, size_t first, size_t n)
{
    const struct share *s = user;
    return s->evaluate(s->user, s->part, first, n);
}

static struct gguf_part *part_of(void *user)
{
    return ((struct ppl_part *)user)->part;
}

bool ppl_part_share(struct ppl_run *r, struct ppl_side *side,
                    ppl_chunks_fn *evaluate, void *user)
{
    struct share s = { .evaluate = evaluate, .user = user };
    if (!ppl_part_open(&s.part, r, side))
        return false;
    const struct ppl_share share = { r, evaluate_some, &s, part_of, s.part };
    progress_init(&r->bar, side ? "divergence" : "perplexity", "tokens",
                  r->o->quiet);
    const double begin = progress_clock();
    bool good = ppl_mpi_share(&share);
    r->seconds = progress_clock() - begin;
    progress_clear(&r->bar);
    for (size_t i = 0; side && i < side->n; i++) { /* of one share */
        gguf_kld_destroy(side->kld[i]);
        side->kld[i] = NULL;
    }
    r->n_bytes = r->n_words = 0;
    if (good && !ppl_mpi_is_helper())
        good = ppl_part_print(r, side, s.part->part);
    return ppl_part_close(s.part, good);
}
