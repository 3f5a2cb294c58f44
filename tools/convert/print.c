/* SPDX-License-Identifier: MIT */
/* print.c - printing what each tensor is made of */
#include "config.h"
#include "tools/convert/convert.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/common/table.h"

#include <gguf/text.h>

#include <inttypes.h>
#include <string.h>

static const char *type_name(uint32_t dtype)
{
    const struct gguf_dtype_info *t = gguf_dtype_find(dtype);
    return t ? t->name : "?";
}

void print_sources(const struct convert_options *o)
{
    static const char *const heads[] = { "tensor", "type", "made of", "how" };
    const struct gguf_convert *c = o->from;
    struct table t;
    table_init(&t, "llll", 0);
    table_add_row(&t, heads);
    for (size_t i = 0; i < gguf_convert_n_tensors(c); i++) {
        const struct gguf_convert_tensor *x = gguf_convert_tensor(c, i);
        table_add_strz(&t, x->name);
        table_add(&t, type_name(x->dtype));
        table_add_strz(&t, x->from);
        if (x->n_from > 1)
            table_addf(&t, "%s; one of %zu", x->how, x->n_from);
        else
            table_add(&t, x->how);
    }
    table_show(&t, "3/1");
    for (size_t i = 0; i < gguf_convert_n_omitted(c); i++) {
        char name[512];
        const char *left = gguf_convert_omitted(c, i);
        gguf_text_escape(name, sizeof name,
                         (struct gguf_str){ left, strlen(left) });
        printf("left out: %s\n", name);
    }
}

static void json_sources(struct json *j, const struct convert_options *o)
{
    const struct gguf_convert *c = o->from;
    json_open(j, "tensors", '[');
    for (size_t i = 0; i < gguf_convert_n_tensors(c); i++) {
        const struct gguf_convert_tensor *x = gguf_convert_tensor(c, i);
        json_open(j, NULL, '{');
        json_strz(j, "name", x->name);
        json_i64s(j, "dims", x->n_dims, x->ne);
        json_strz(j, "type", type_name(x->dtype));
        json_open(j, "from", x->n_from > 1 ? '[' : '(');
        for (size_t k = 0; k < x->n_from; k++)
            json_strz(j, NULL, gguf_convert_source(c, i, k));
        json_close(j);
        json_strz(j, "how", x->how);
        json_close(j);
    }
    json_close(j);
    json_open(j, "left_out", '[');
    for (size_t i = 0; i < gguf_convert_n_omitted(c); i++)
        json_strz(j, NULL, gguf_convert_omitted(c, i));
    json_close(j);
}

void print_kind(const struct convert_options *o)
{
    const struct gguf_convert_summary *s = gguf_convert_summary(o->from);
    const char *an = strchr("aeiou", *s->kind) ? "an" : "a";
    char name[200], reason[200], left[80] = "";
    gguf_text_escape(
        name, sizeof name,
        (struct gguf_str){ s->class_name, strlen(s->class_name) });
    gguf_text_escape(reason, sizeof reason,
                     (struct gguf_str){ s->reason, strlen(s->reason) });
    if (s->n_tokens_left)
        snprintf(left, sizeof left, "; %zu token%s left out", s->n_tokens_left,
                 s->n_tokens_left > 1 ? "s" : "");
    msg_info(o->q.in, "taken for %s %s by %s (%s)%s", an, s->kind, reason,
             name, left);
    if (s->n_projector && !o->projector.arg)
        msg_info(o->q.in,
                 "%zu tensors that see or hear are left out: --mmproj makes a "
                 "file of them, --mmproj-output OUT both files",
                 s->n_projector);
}

static void json_kind(struct json *j, const struct convert_options *o)
{
    const struct gguf_convert_summary *s = gguf_convert_summary(o->from);
    json_open(j, "model", '{');
    json_strz(j, "kind", s->kind);
    json_strz(j, "class", s->class_name);
    json_strz(j, "reason", s->reason);
    json_u64(j, "tokens_left_out", s->n_tokens_left);
    json_u64(j, "projector_tensors_left_out", s->n_projector);
    json_close(j);
}

static void json_verify(struct json *j, const struct verify *v, size_t i)
{
    json_open(j, "verify", '{');
    json_strz(j, "text", v->text);
    json_u64(j, "n_ctx", v->n_ctx);
    json_u64(j, "n_chunks", v->n_chunks);
    json_u64(j, "n_tokens", v->sums[i].n);
    json_f64(j, "perplexity", gguf_ppl_value(&v->sums[i]));
    json_f64(j, "error", gguf_ppl_error(&v->sums[i]));
    json_f64(j, "limit", v->max);
    json_close(j);
}

static void json_output(struct json *j, const struct target *t,
                        const struct verify *v, size_t no)
{
    json_target(j, t);
    if (v)
        json_verify(j, v, no);
    json_close(j);
}

void print_convert_json(const struct convert_options *o, double seconds)
{
    struct json j;
    json_begin_object(&j, stdout);
    json_strz(&j, "input", o->q.in);
    json_bool(&j, "written", seconds >= 0);
    if (seconds >= 0)
        json_f64(&j, "seconds", seconds);
    json_kind(&j, o);
    json_sources(&j, o);
    json_open(&j, "outputs", '[');
    for (size_t i = 0; i < o->q.n_targets; i++)
        json_output(&j, &o->q.targets[i],
                    o->verify.text && seconds >= 0 ? &o->verify : NULL, i);
    if (o->projector.arg)
        json_output(&j, &o->projector.target, NULL, 0);
    json_close(&j);
    json_end(&j);
}
