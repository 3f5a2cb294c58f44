/* SPDX-License-Identifier: MIT */
/* print.c - what gguf-ppl prints */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/common/precision.h"
#include "tools/common/table.h"
#include "tools/common/text.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PER_LINE = 5 }; /* fits 80 columns from chunk 1000 on, too */

/* Arithmetic of every figure below; see session.h. */
static void escape_name(char out[256], const char *s)
{
    gguf_text_escape(out, 256, (struct gguf_str){ s, strlen(s) });
}

/* The last instruction set in use, which has the others in it. */
static const char *last_level(void)
{
    const uint32_t have = gguf_cpu_levels();
    const char *last = "c";
    for (unsigned i = 0; gguf_cpu_level_name(i); i++)
        if (have >> i & 1)
            last = gguf_cpu_level_name(i);
    return last;
}

/* Instruction sets in use, separated by spaces; "c" if there are none. */
static const char *list_levels(char out[64])
{
    uint32_t have = gguf_cpu_levels();
    int n = snprintf(out, 64, "c");
    for (unsigned i = 0; gguf_cpu_level_name(i) && n < 48; i++)
        if (have >> i & 1)
            n += snprintf(out + n, (size_t)(64 - n), " %s",
                          gguf_cpu_level_name(i));
    return out;
}

static void print_backend(const struct gguf_backend *b, const char *lead)
{
    wrap_printf("%s%s (%s)", lead, gguf_backend_name(b),
                gguf_device_description(gguf_backend_device(b)));
}

void ppl_print_model(const char *label, const struct ppl_options *o,
                     const struct ppl_model *m)
{
    const struct gguf_model_info *model = &m->info;
    char name[256], arch[64], size[24], count[24];
    escape_name(name, m->path);
    gguf_text_escape(arch, sizeof arch, model->arch);
    wrap_printf("%-7s %s: %s, %s parameters, %s\n", label, name, arch,
                table_count(count, model->n_params),
                table_size(size, model->weight_size));
    ppl_print_loras(o, &m->loras);
}

/* How it is computed, and by what. */
void ppl_print_mode(const struct ppl_run *r)
{
    const unsigned own = r->own->precision;
    const unsigned kind = (unsigned)r->o->precision;
    wrap_printf("mode    %s (%s), %" PRIu32 " thread%s, %s\n",
                gguf_precision_name(kind), precision_says(kind),
                r->o->n_threads, text_s(r->o->n_threads), last_level());
    if (own != kind)
        wrap_printf("base    %s (%s)\n", gguf_precision_name(own),
                    precision_says(own));
    if (r->o->key_dtype != GGUF_DTYPE_F32 ||
        r->o->value_dtype != GGUF_DTYPE_F32 || r->o->unified ||
        r->o->full_windows)
        wrap_printf("cache   keys in %s, values in %s%s%s\n",
                    gguf_dtype_find(r->o->key_dtype)->name,
                    gguf_dtype_find(r->o->value_dtype)->name,
                    r->o->unified ? ", unified" : "",
                    r->o->full_windows ? ", windows in full" : "");
    if (r->own->backends.n > 1) {
        wrap_printf("backend ");
        for (unsigned i = 0; i < r->own->backends.n; i++)
            print_backend(r->own->backends.list[i], i ? ", then " : "");
        wrap_printf("\n");
    }
}

void ppl_print_text(const struct ppl_run *r)
{
    char name[256];
    escape_name(name, r->o->text ? r->o->text : r->o->base);
    if (r->several)
        ppl_print_texts(r);
    else if (r->o->text)
        wrap_printf("text    %s: %zu bytes, %zu tokens\n", name, r->text_size,
                    r->n_tokens);
    else
        wrap_printf("text    that of %s: %zu tokens\n", name, r->n_tokens);
    ppl_print_cut(r);
}

void ppl_print_head(const struct ppl_run *r)
{
    ppl_print_model("model", r->o, r->own);
    ppl_print_text(r);
    ppl_print_mode(r);
    msg_flush();
}

void ppl_print_chunk(struct ppl_run *r)
{
    /* whole lines only, so that the bar can stand below them */
    if (r->n_done % PER_LINE && r->n_done < r->n_chunks)
        return;
    size_t begin = (r->n_done - 1) / PER_LINE * PER_LINE;
    struct gguf_ppl sum = GGUF_PPL_INIT;
    progress_clear(&r->bar);
    for (size_t i = 0; i < r->n_done; i++) {
        (void)gguf_ppl_add(&sum, &r->sums[i], NULL);
        if (i >= begin)
            wrap_printf("[%zu]%.4f,", r->first_chunk + i + 1,
                        gguf_ppl_value(&sum));
    }
    wrap_printf("\n");
    msg_flush();
}

void ppl_print_ranks(const struct ppl_run *r)
{
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < r->n_ranks; i++) {
        const size_t n = r->rank_chunks[i];
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    if (r->n_ranks)
        wrap_printf("ranks   %zu, with %zu to %zu of the chunks\n", r->n_ranks,
                    least, most);
}

void ppl_json_ranks(struct json *j, const struct ppl_run *r)
{
    if (!r->n_ranks)
        return;
    json_open(j, "rank_chunks", '(');
    for (size_t i = 0; i < r->n_ranks; i++)
        json_u64(j, NULL, r->rank_chunks[i]);
    json_close(j);
}

void ppl_print_end(const struct ppl_run *r)
{
    double n = (double)r->n_done_tokens;
    ppl_print_text_figures(r);
    ppl_print_units(r);
    ppl_print_page(r);
    ppl_print_ranks(r);
    wrap_printf("time    %.1f s, %.0f tokens/s\n", r->seconds,
                r->seconds > 0 ? n / r->seconds : 0);
    wrap_printf("Final estimate: PPL = %.4f +/- %.5f\n",
                gguf_ppl_value(&r->total), gguf_ppl_error(&r->total));
}

/* What is cut out of the text, and scored or saved. */
static const char *mode_of(const struct ppl_options *o)
{
    return o->task         ? "tasks"
           : o->tokens     ? "tokens"
           : o->embeddings ? "lines"
                           : ppl_cut_name(o);
}

void ppl_json_settings(struct json *j, const struct ppl_run *r)
{
    char cpu[64];
    json_open(j, "settings", '{');
    if (r->settings_json) {
        json_members(j, r->settings_json);
        json_close(j);
        return;
    }
    json_strz(j, "version", gguf_version_string());
    json_strz(j, "precision", gguf_precision_name((unsigned)r->o->precision));
    if (r->o->base && !r->o->base_is_saved)
        json_strz(j, "base_precision", gguf_precision_name(r->own->precision));
    json_strz(j, "mode", mode_of(r->o));
    json_u64(j, "ctx_size", r->o->n_ctx);
    json_u64(j, "batch_size", r->o->n_batch);
    json_u64(j, "sequences", r->n_seq);
    json_u64(j, "ubatch_size", r->o->n_ubatch);
    json_u64(j, "threads", r->o->n_threads);
    json_strz(j, "cpu", list_levels(cpu));
    json_open(j, "backends", '(');
    for (unsigned i = 0; i < r->own->backends.n; i++)
        json_strz(j, NULL, gguf_backend_name(r->own->backends.list[i]));
    json_close(j);
    json_strz(j, "cache_type_k", gguf_dtype_find(r->o->key_dtype)->name);
    json_strz(j, "cache_type_v", gguf_dtype_find(r->o->value_dtype)->name);
    json_bool(j, "unified", r->o->unified);
    json_bool(j, "full_windows", r->o->full_windows);
    json_bool(j, "add_bos", r->add_bos);
    ppl_json_cut(j, r->o);
    ppl_json_changes(j, r->o);
    json_close(j);
}

void ppl_json_model(struct json *j, const char *key,
                    const struct ppl_options *o, const struct ppl_model *m)
{
    const struct gguf_model_info *model = &m->info;
    json_open(j, key, '{');
    if (m->noted) {
        json_members(j, m->noted);
        return;
    }
    json_strz(j, "file", m->path);
    json_str(j, "name", ppl_model_name(m));
    ppl_json_digest(j, "digest", m->has_digest ? &m->digest : NULL);
    json_str(j, "architecture", model->arch);
    json_u64(j, "parameters", model->n_params);
    json_u64(j, "size", model->weight_size);
    ppl_json_tokenizer(j, o, m);
    ppl_json_loras(j, o, &m->loras);
}

void ppl_json_text(struct json *j, const struct ppl_run *r)
{
    json_open(j, "text", '{');
    if (r->text_json) {
        json_members(j, r->text_json);
        json_close(j);
        return;
    }
    json_strz(j, "file", r->o->text ? r->o->text : r->o->base);
    json_u64(j, "size", r->text_size);
    ppl_json_digest(j, "digest", r->has_digest ? &r->digest : NULL);
    if (r->o->task)
        json_u64(j, "tasks", r->n_tasks_read);
    else
        json_u64(j, "tokens", r->n_tokens);
    json_close(j);
}

static void json_stage(struct json *j, const char *name, const char *unit,
                       const char *calls, const struct gguf_session_stage *s)
{
    json_open(j, name, '{');
    json_u64(j, unit, s->n);
    if (calls)
        json_u64(j, calls, s->n_calls);
    json_f64(j, "seconds", s->seconds);
    json_close(j);
}

/* Of the session's stages. */
static void json_timings(struct json *j, const struct ppl_run *r)
{
    const struct gguf_session_timings *t = &r->timings;
    json_open(j, "timings", '{');
    json_f64(j, "create", t->create);
    json_stage(j, "plan", "graphs", NULL, &t->plan);
    json_stage(j, "prompt", "tokens", "passes", &t->prompt);
    json_stage(j, "single", "tokens", "passes", &t->single);
    json_stage(j, "logits", "rows", "passes", &t->logits);
    json_stage(j, "encode", "tokens", "passes", &t->encode);
    json_close(j);
}

void ppl_print_json(const struct ppl_run *r, FILE *f)
{
    struct json j;
    double n = (double)r->n_done_tokens;
    json_begin(&j, f);
    json_open(&j, NULL, '{');
    ppl_json_model(&j, "model", r->o, r->own);
    json_close(&j);
    ppl_json_texts(&j, r);
    ppl_json_settings(&j, r);
    json_u64(&j, "tokens_per_chunk", r->n_scored_chunk);
    json_u64(&j, "first_chunk", r->first_chunk);
    json_open(&j, "chunk_nll", '(');
    for (size_t i = 0; i < r->n_done; i++)
        json_f64(&j, NULL, r->sums[i].sum);
    json_close(&j);
    ppl_json_windows(&j, r);
    json_u64(&j, "tokens_scored", r->total.n);
    json_f64(&j, "nll", r->total.sum / (double)r->total.n);
    json_f64(&j, "ppl", gguf_ppl_value(&r->total));
    json_f64(&j, "ppl_error", gguf_ppl_error(&r->total));
    ppl_json_units(&j, &r->total);
    ppl_json_ranks(&j, r);
    json_f64(&j, "seconds", r->seconds);
    json_f64(&j, "tokens_per_second", r->seconds > 0 ? n / r->seconds : 0);
    json_timings(&j, r);
    ppl_profile_json(&j, r->own->profile);
    json_close(&j);
    json_end(&j);
}

/* ---- rows that were saved ---- */

static const char *rows_of(const struct ppl_run *r)
{
    return r->o->embeddings      ? "embeddings"
           : r->model.has_logits ? "logits"
                                 : "states";
}

static const char *rows_file(const struct ppl_run *r)
{
    return r->o->embeddings ? r->o->embeddings : r->o->logits;
}

static void json_rows(const struct ppl_run *r)
{
    struct json j;
    json_begin(&j, stdout);
    json_open(&j, NULL, '{');
    ppl_json_model(&j, "model", r->o, r->own);
    json_close(&j);
    json_open(&j, "tokens", '{');
    json_strz(&j, "file", r->o->tokens ? r->o->tokens : r->o->text);
    json_u64(&j, "tokens", r->n_tokens);
    json_close(&j);
    ppl_json_settings(&j, r);
    json_open(&j, "rows", '{');
    json_strz(&j, "file", rows_file(r));
    json_strz(&j, "of", rows_of(r));
    json_u64(&j, "rows", r->n_rows);
    json_u64(&j, "width", r->width);
    if (r->pooling)
        json_strz(&j, "pooling", gguf_pooling_name(r->pooling));
    json_close(&j);
    json_f64(&j, "seconds", r->seconds);
    json_timings(&j, r);
    json_close(&j);
    json_end(&j);
}

void ppl_print_rows(const struct ppl_run *r)
{
    char name[256];
    if (r->o->json) {
        json_rows(r);
        return;
    }
    ppl_print_model("model", r->o, r->own);
    escape_name(name, r->o->tokens ? r->o->tokens : r->o->text);
    wrap_printf("tokens  %s: %zu, in a context of %" PRIu32 "\n", name,
                r->n_tokens, r->o->n_ctx);
    ppl_print_mode(r);
    if (r->pooling)
        wrap_printf("pooling %s\n", gguf_pooling_name(r->pooling));
    escape_name(name, rows_file(r));
    wrap_printf("rows    %s: %zu of %zu %s, f32, little-endian\n", name,
                r->n_rows, r->width, rows_of(r));
    wrap_printf("time    %.1f s\n", r->seconds);
}
