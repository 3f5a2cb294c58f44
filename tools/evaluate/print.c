/* SPDX-License-Identifier: MIT */
/* print.c - model, text and settings, as lines of text and as JSON */
#include "config.h"
#include "tools/evaluate/run.h"
#include "tools/common/msg.h"
#include "tools/common/table.h"
#include "tools/common/text.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *ev_escape(char out[256], const char *s)
{
    gguf_text_escape(out, 256, (struct gguf_str){ s, strlen(s) });
    return out;
}

/* ---- text ---- */

void ev_print_model(const char *label, const struct ev_options *o,
                    const struct ev_model *m)
{
    const struct gguf_model_info *model = &m->info;
    char name[256], arch[64], size[24], count[24];
    gguf_text_escape(arch, sizeof arch, model->arch);
    wrap_printf("%-7s %s: %s%s%s, %s parameters, %s\n", label,
                ev_escape(name, m->path), arch, model->as ? " as " : "",
                model->as ? model->as : "",
                table_count(count, model->n_params),
                table_size(size, model->weight_size));
    ev_print_adapters(o, &m->adapters);
}

static void print_texts(const struct ev_run *r)
{
    wrap_printf("texts   %zu: %zu bytes, %zu tokens", r->n_texts, r->text_size,
                r->n_tokens);
    if (r->n_skipped)
        wrap_printf(", %zu left out", r->n_skipped);
    wrap_printf("\n");
}

static void print_cut(const struct ev_run *r)
{
    const struct gguf_scan_params *c = &r->scan;
    wrap_printf("%s %zu", c->stride ? "windows" : "chunks ", r->n_chunks);
    if (r->first_chunk)
        wrap_printf(" from %zu on", r->first_chunk);
    wrap_printf(" of %" PRIu32 " tokens, ", c->n_ctx);
    if (c->stride)
        wrap_printf("a stride of %" PRIu32 ", ", c->stride);
    wrap_printf("%" PRIu32 " together, ", r->n_seq);
    if (c->cut == GGUF_SCAN_SLIDING)
        wrap_printf("each token%s scored once",
                    c->stride < c->n_ctx ? "" : " but the first of each");
    else
        wrap_printf("the last %" PRIu64 " of each scored%s", r->n_scored_chunk,
                    c->stride ? " (compat)" : "");
    wrap_printf("%s\n", r->add_bos ? ", BOS first" : "");
}

void ev_print_text(const struct ev_run *r)
{
    char name[256];
    ev_escape(name, r->text ? r->text : r->tokens_file);
    if (r->several)
        print_texts(r);
    else if (r->text)
        wrap_printf("text    %s: %zu bytes, %zu tokens\n", name, r->text_size,
                    r->n_tokens);
    else
        wrap_printf("text    that of %s: %zu tokens\n", name, r->n_tokens);
    print_cut(r);
}

/* Name of the highest instruction set in use, which includes the others. */
static const char *get_highest_level(void)
{
    const uint32_t have = gguf_cpu_levels();
    const char *last = "c";
    for (unsigned i = 0; gguf_cpu_level_name(i); i++)
        if (have >> i & 1)
            last = gguf_cpu_level_name(i);
    return last;
}

static void print_backend(const struct gguf_backend *b, const char *lead)
{
    wrap_printf("%s%s (%s)", lead, gguf_backend_name(b),
                gguf_device_description(gguf_backend_device(b)));
}

void ev_print_mode(const struct ev_run *r)
{
    const struct ev_options *o = r->o;
    const unsigned own = r->own->precision;
    const unsigned kind = (unsigned)o->precision;
    wrap_printf("mode    %s (%s), %" PRIu32 " thread%s, %s\n",
                gguf_precision_name(kind), ev_describe_precision(kind),
                o->n_threads, text_s(o->n_threads), get_highest_level());
    if (own != kind)
        wrap_printf("base    %s (%s)\n", gguf_precision_name(own),
                    ev_describe_precision(own));
    if (o->key_dtype != GGUF_DTYPE_F32 || o->value_dtype != GGUF_DTYPE_F32 ||
        o->unified || o->full_windows)
        wrap_printf("cache   keys in %s, values in %s%s%s\n",
                    gguf_dtype_find(o->key_dtype)->name,
                    gguf_dtype_find(o->value_dtype)->name,
                    o->unified ? ", unified" : "",
                    o->full_windows ? ", windows in full" : "");
    if (r->own->backends.n > 1) {
        wrap_printf("backend ");
        for (unsigned i = 0; i < r->own->backends.n; i++)
            print_backend(r->own->backends.list[i], i ? ", then " : "");
        wrap_printf("\n");
    }
}

void ev_print_head(const struct ev_run *r)
{
    ev_print_model("model", r->o, r->own);
    ev_print_text(r);
    ev_print_mode(r);
    msg_flush();
}

/* ---- JSON ---- */

void ev_json_model(struct json *j, const char *key, const struct ev_options *o,
                   const struct ev_model *m)
{
    const struct gguf_model_info *model = &m->info;
    json_open(j, key, '{');
    if (m->part_json) {
        json_members(j, m->part_json);
        return;
    }
    json_strz(j, "file", m->path);
    json_str(j, "name", ev_model_name(m));
    ev_json_digest(j, "digest", m->has_digest ? &m->digest : NULL);
    json_str(j, "architecture", model->arch);
    if (model->as)
        json_strz(j, "evaluated_as", model->as);
    json_u64(j, "parameters", model->n_params);
    json_u64(j, "size", model->weight_size);
    ev_json_tokenizer(j, o, m);
    ev_json_adapters(j, o, &m->adapters);
}

void ev_json_text(struct json *j, const struct ev_run *r, const char *unit,
                  uint64_t n)
{
    json_open(j, "text", '{');
    json_strz(j, "file", r->text ? r->text : r->tokens_file);
    json_u64(j, "size", r->text_size);
    ev_json_digest(j, "digest", r->has_digest ? &r->digest : NULL);
    json_u64(j, unit, n);
    json_close(j);
}

/* Write the names of the instruction sets in use, separated by spaces, after
 * "c". */
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

void ev_json_settings(struct json *j, const struct ev_run *r)
{
    const struct ev_options *o = r->o;
    char cpu[64];
    json_open(j, "settings", '{');
    json_strz(j, "version", gguf_version_string());
    json_strz(j, "precision", gguf_precision_name((unsigned)o->precision));
    if (r->has_base)
        json_strz(j, "base_precision", gguf_precision_name(r->own->precision));
    json_strz(j, "mode", r->mode ? r->mode : ev_cut_name(r));
    json_u64(j, "ctx_size", o->n_ctx);
    json_u64(j, "batch_size", o->n_batch);
    json_u64(j, "sequences", r->n_seq);
    json_u64(j, "ubatch_size", o->n_ubatch);
    json_u64(j, "threads", o->n_threads);
    json_strz(j, "cpu", list_levels(cpu));
    json_open(j, "backends", '(');
    for (unsigned i = 0; i < r->own->backends.n; i++)
        json_strz(j, NULL, gguf_backend_name(r->own->backends.list[i]));
    json_close(j);
    json_strz(j, "cache_type_k", gguf_dtype_find(o->key_dtype)->name);
    json_strz(j, "cache_type_v", gguf_dtype_find(o->value_dtype)->name);
    json_bool(j, "unified", o->unified);
    json_bool(j, "full_windows", o->full_windows);
    json_bool(j, "add_bos", r->add_bos);
    json_u64(j, "stride", r->scan.stride);
    json_bool(j, "hf", r->hf);
    ev_json_overrides(j, o);
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

void ev_json_timings(struct json *j, const struct gguf_session_timings *t)
{
    json_open(j, "timings", '{');
    json_f64(j, "create", t->create);
    json_stage(j, "plan", "graphs", NULL, &t->plan);
    json_stage(j, "prompt", "tokens", "passes", &t->prompt);
    json_stage(j, "single", "tokens", "passes", &t->single);
    json_stage(j, "logits", "rows", "passes", &t->logits);
    json_stage(j, "encode", "tokens", "passes", &t->encode);
    json_close(j);
}
