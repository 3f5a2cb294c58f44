/* SPDX-License-Identifier: MIT */
/* text_view.c - the text view: plain text and Markdown */
#include "config.h"
#include "tools/info/info.h"
#include "tools/common/markdown.h"
#include "tools/common/style.h"
#include "base/os/os_program.h"

#include <gguf/text.h>

#include <inttypes.h>
#include <string.h>

void info_table(struct table *t, const struct info_options *o)
{
    if (o->markdown)
        table_markdown(t, stdout);
    else {
        if (style_on_terminal() && !o->limits_given)
            t->columns = style_columns(GG_OS_STDOUT);
        table_print(t, stdout);
    }
    table_fini(t);
}

void info_heading(const char *text, const struct info_options *o)
{
    if (o->markdown)
        printf("\n## %s\n\n", text);
    else
        printf("\n%s%s%s\n", style(STYLE_HEADING), text, style(STYLE_PLAIN));
}

/* ---- summary ---- */

static void add_kv(struct table *t, const char *label,
                   const struct gguf_kv *kv)
{
    static const struct text_limits limits = { 8, 100 };
    struct text s = { NULL, 0, 0 };
    if (!kv)
        return;
    text_add_kv(&s, kv, &limits);
    table_add(t, label);
    table_add(t, s.s ? s.s : "");
    text_fini(&s);
}

/* Add a row such as "tool_use (120 bytes), rag (80 bytes)". */
static void add_named_templates(struct table *t, const struct gguf_file *f)
{
    static const char prefix[] = "tokenizer.chat_template.";
    const size_t n = strlen(prefix);
    struct text s = { NULL, 0, 0 };
    for (size_t i = 0; i < gguf_file_n_kv(f); i++) {
        const struct gguf_kv *kv = gguf_file_kv(f, i);
        struct gguf_str text, name = kv->key;
        if (name.size <= n || memcmp(name.data, prefix, n) != 0 ||
            gguf_kv_get_str(kv, &text, NULL) != GGUF_OK)
            continue;
        name.data += n;
        name.size -= n;
        if (s.n)
            text_addz(&s, ", ");
        text_add_esc(&s, name, 100);
        text_addf(&s, " (%zu bytes)", text.size);
    }
    if (s.n) {
        table_add(t, "named templates");
        table_add(t, s.s);
    }
    text_fini(&s);
}

/* Add rows for rope scaling ("yarn, 4 times 32768 tokens") and chat templates,
 * if the file has them. */
static void add_parts(struct table *t, const struct info *info)
{
    static const struct text_limits limits = { 1, 40 };
    struct text s = { NULL, 0, 0 };
    struct gguf_str template;
    const struct gguf_file *f = info->load->file;
    const struct gguf_kv *type = info_hparam(info, "rope.scaling.type");
    const struct gguf_kv *by = info_hparam(info, "rope.scaling.factor");
    const struct gguf_kv *of =
        info_hparam(info, "rope.scaling.original_context_length");
    if (type || by) {
        if (type)
            text_add_kv(&s, type, &limits);
        if (by) {
            text_addf(&s, "%s%s", s.n ? ", " : "", of ? "" : "by ");
            text_add_kv(&s, by, &limits);
        }
        if (by && of) {
            text_addz(&s, " times ");
            text_add_kv(&s, of, &limits);
            text_addz(&s, " tokens");
        }
        table_add(t, "rope scaling");
        table_add(t, s.s);
    }
    if (gguf_kv_get_str(gguf_file_kv_find(f, "tokenizer.chat_template"),
                        &template, NULL) == GGUF_OK) {
        table_add(t, "chat template");
        table_addf(t, "%zu bytes", template.size);
    }
    add_named_templates(t, f);
    text_fini(&s);
}

/* Add a row such as "F16 11.0 MiB, F32 13.0 KiB". */
static void add_types(struct table *t, const struct info *info)
{
    struct text s = { NULL, 0, 0 };
    char out[24], name[32];
    for (size_t i = 0; i < info->n_types; i++)
        text_addf(&s, "%s%s %s", i ? ", " : "",
                  info_type_name(info->types[i].id, name),
                  table_size(out, info->types[i].size));
    if (info->n_types) {
        table_add(t, "tensor types");
        table_add(t, s.s);
    }
    text_fini(&s);
}

static void add_sizes(struct table *t, const struct info *info)
{
    char out[24], name[32];
    table_add(t, "size");
    table_addf(t, "%s (%" PRIu64 " bytes%s)", table_size(out, info->file_size),
               info->file_size,
               gguf_file_n_shards(info->load->file) > 1 ? ", all files" : "");
    if (info->file_type) {
        table_add(t, "quantization");
        table_add(t, info->file_type);
    } else if (info->n_types) {
        table_add(t, "quantization");
        table_addf(t, "mostly %s", info_type_name(info->types[0].id, name));
    }
    add_types(t, info);
    table_add(t, "parameters");
    table_addf(t, "%s (%" PRIu64 ")", table_count(out, info->n_elements),
               info->n_elements);
    table_add(t, "bits per weight");
    table_addf(t, "%.3f", info_bits(info->data_size, info->n_elements));
}

static void print_summary(const struct info *info,
                          const struct info_options *o)
{
    struct table t;
    const struct gguf_file *f = info->load->file;
    table_init(&t, "ll", o->markdown ? 0 : 2);
    t.drop = "";
    if (o->markdown) {
        table_add(&t, "property");
        table_add(&t, "value");
    }
    table_add(&t, "format");
    table_addf(&t, "GGUF v%" PRIu32 ", %s-endian, alignment %" PRIu32,
               gguf_file_version(f),
               gguf_file_is_big_endian(f) ? "big" : "little",
               gguf_file_alignment(f));
    if (gguf_file_n_shards(info->load->file) > 1) {
        table_add(&t, "files");
        table_addf(&t, "%zu", gguf_file_n_shards(info->load->file));
    }
    add_kv(&t, "architecture", gguf_file_kv_find(f, "general.architecture"));
    add_kv(&t, "name", gguf_file_kv_find(f, "general.name"));
    add_kv(&t, "licence", gguf_file_kv_find(f, "general.license"));
    add_sizes(&t, info);
    const struct gguf_hparam *h;
    for (size_t i = 0; (h = gguf_hparam_at(i)) != NULL; i++)
        if (h->flags & GGUF_HPARAM_SUMMARY)
            add_kv(&t, h->label, info_hparam(info, h->key));
    info_projector_rows(&t, info);
    if (info_n_vocab(info)) {
        table_add(&t, "vocabulary");
        table_addf(&t, "%" PRIu64 " tokens", info_n_vocab(info));
    }
    add_kv(&t, "tokenizer", gguf_file_kv_find(f, "tokenizer.ggml.model"));
    add_parts(&t, info);
    info_add_embedding(&t, info);
    info_table(&t, o);
}

/* ---- metadata ---- */

/* Is the terminal so narrow that types of values are left out? Keys and values
 * matter more. */
static bool is_narrow(const struct info_options *o)
{
    return !o->markdown && !o->limits_given && style_on_terminal() &&
           style_columns(GG_OS_STDOUT) < 60;
}

static void print_metadata(const struct info *info,
                           const struct info_options *o)
{
    struct table t;
    struct text s = { NULL, 0, 0 };
    const struct gguf_file *f = info->load->file;
    char head[64];
    snprintf(head, sizeof head, "Metadata: %zu key%s", gguf_file_n_kv(f),
             text_s(gguf_file_n_kv(f)));
    info_heading(head, o);
    const bool typed = !is_narrow(o);
    table_init(&t, typed ? "lll" : "ll", o->markdown ? 0 : 2);
    t.drop = typed ? NULL : "";
    if (o->markdown) {
        table_add(&t, "type");
        table_add(&t, "key");
        table_add(&t, "value");
    }
    for (size_t i = 0; i < gguf_file_n_kv(f); i++) {
        const struct gguf_kv *kv = gguf_file_kv(f, i);
        if (typed && kv->type == GGUF_VAL_ARR)
            table_addf(&t, "%s[%" PRIu64 "]",
                       gguf_val_type_name(kv->elem_type), kv->n);
        else if (typed)
            table_add(&t, gguf_val_type_name(kv->type));
        table_add_str(&t, kv->key);
        text_clear(&s);
        text_add_kv(&s, kv, &o->limits);
        table_add(&t, s.s ? s.s : "");
    }
    text_fini(&s);
    info_table(&t, o);
}

/* ---- tensors ---- */

static void print_tensors(const struct info *info,
                          const struct info_options *o)
{
    struct table t;
    struct text s = { NULL, 0, 0 };
    char head[96], name[32], out[24];
    bool many = gguf_file_n_shards(info->load->file) > 1;
    size_t n = gguf_file_n_tensors(info->load->file);
    if (info->n_list == n)
        snprintf(head, sizeof head, "Tensors: %zu", n);
    else
        snprintf(head, sizeof head, "Tensors: %zu of %zu", info->n_list, n);
    info_heading(head, o);
    table_init(&t, many ? "lllrrr" : "lllrr", o->markdown ? 0 : 2);
    t.drop = many ? "45/31" : "4/31";
    if (info->n_list) {
        table_add(&t, "name");
        table_add(&t, "shape");
        table_add(&t, "type");
        table_add(&t, "size");
        table_add(&t, "offset");
        if (many)
            table_add(&t, "file");
    }
    for (size_t i = 0; i < info->n_list; i++) {
        const struct gguf_file *file = info->load->file;
        const struct gguf_tensor_info *x =
            gguf_file_tensor(file, info->list[i]);
        const uint64_t data_off =
            gguf_file_data_off(gguf_file_shard(file, x->shard));
        table_add_str(&t, x->name);
        table_add_shape(&t, x->n_dims, x->ne);
        table_add(&t, info_type_name(x->dtype, name));
        table_add(&t, table_size(out, x->size));
        table_addf(&t, "%" PRIu64, data_off + x->off);
        if (many)
            table_addf(&t, "%" PRIu32, x->shard + 1);
    }
    text_fini(&s);
    info_table(&t, o);
}

static void print_types(const struct info *info, const struct info_options *o)
{
    struct table t;
    char name[32], out[24];
    info_heading("Tensor types", o);
    table_init(&t, "lrrrrr", o->markdown ? 0 : 2);
    t.drop = "542";
    if (info->n_types) {
        table_add(&t, "type");
        table_add(&t, "tensors");
        table_add(&t, "elements");
        table_add(&t, "size");
        table_add(&t, "share");
        table_add(&t, "bits");
    }
    for (size_t i = 0; i < info->n_types; i++) {
        const struct info_type *x = &info->types[i];
        table_add(&t, info_type_name(x->id, name));
        table_addf(&t, "%" PRIu64, x->n_tensors);
        table_addf(&t, "%" PRIu64, x->n_elements);
        table_add(&t, table_size(out, x->size));
        table_addf(&t, "%.1f%%",
                   info->data_size
                       ? 100.0 * (double)x->size / (double)info->data_size
                       : 0);
        table_addf(&t, "%.3f", info_bits(x->size, x->n_elements));
    }
    info_table(&t, o);
}

void info_title(const char *path, const struct info_options *o)
{
    struct text s = { NULL, 0, 0 };
    text_add_esc(&s, (struct gguf_str){ path, strlen(path) }, UINT64_MAX);
    if (o->markdown) {
        fputs("# ", stdout);
        markdown_put(stdout, s.s, false);
        fputs("\n\n", stdout);
    } else {
        printf("%s%s%s\n", style(STYLE_TITLE), s.s, style(STYLE_PLAIN));
    }
    text_fini(&s);
}

bool info_text(const struct info *info, const struct info_options *o)
{
    /* a manifest has no title */
    if (o->show == SHOW_HASH)
        return info_hash(NULL, info, o);
    info_title(info->load->path, o);
    if (o->show & SHOW_SUMMARY) {
        print_summary(info, o);
        info_inferred(NULL, info, o);
    }
    if (o->show & SHOW_METADATA)
        print_metadata(info, o);
    if (o->show & SHOW_TENSORS)
        print_tensors(info, o);
    if (o->show & SHOW_TYPES)
        print_types(info, o);
    if (o->show & SHOW_MEMORY)
        info_memory(NULL, info, o);
    bool good = !(o->show & SHOW_STATS) || info_stats(NULL, info, o);
    if (o->show & SHOW_HASH) {
        info_heading("Checksums", o);
        fputs(o->markdown ? "```\n" : "", stdout);
        good &= info_hash(NULL, info, o);
        fputs(o->markdown ? "```\n" : "", stdout);
    }
    if (o->show & SHOW_CHECK)
        good &= info_check(NULL, info, o);
    return good;
}

/* ---- one value ---- */

/* Print a string: escaped on a terminal, otherwise its bytes. */
static void put_raw(struct gguf_str v, struct text *s)
{
    if (style_on_terminal()) {
        text_clear(s);
        text_add_esc(s, v, UINT64_MAX);
        fputs(s->s, stdout);
    } else {
        fwrite(v.data, 1, v.size, stdout);
    }
    putchar('\n');
}

static void put_value(const struct gguf_kv *kv, const struct text_limits *lim,
                      struct text *s)
{
    struct gguf_str v;
    if (kv->type == GGUF_VAL_STR && gguf_kv_get_str(kv, &v, NULL) == GGUF_OK) {
        put_raw(v, s);
        return;
    }
    text_clear(s);
    text_add_kv(s, kv, lim);
    puts(s->s ? s->s : "");
}

bool info_key(const struct load *load, const struct info_options *o)
{
    static const struct text_limits all = { UINT64_MAX, UINT64_MAX };
    struct gguf_error err;
    const struct gguf_kv *kv;
    if (gguf_file_kv_get(load->file, o->key, &kv, &err) != GGUF_OK) {
        struct gguf_suggestion near;
        char hint[GGUF_SUGGESTION_SIZE];
        gguf_suggestion_init(&near,
                             (struct gguf_str){ o->key, strlen(o->key) });
        for (size_t i = 0; i < gguf_file_n_kv(load->file); i++)
            gguf_suggestion_try(&near, gguf_file_kv(load->file, i)->key);
        return msg_error(load->path, "%s%s", err.message,
                         gguf_suggestion_text(&near, hint));
    }
    uint64_t max =
        o->limits_given & INFO_ARRAYS ? o->limits.elems : UINT64_MAX;
    if (o->raw) {
        struct gguf_str v;
        if (gguf_kv_get_str(kv, &v, &err) == GGUF_OK)
            fwrite(v.data, 1, v.size, stdout);
        else
            msg_fail(load->path, &err);
        return kv->type == GGUF_VAL_STR;
    }
    if (o->json) {
        struct json j;
        json_begin(&j, stdout);
        info_json_value(&j, kv, max);
        json_end(&j);
        return true;
    }
    struct text s = { NULL, 0, 0 };
    if (kv->type == GGUF_VAL_ARR) {
        struct gguf_kv_iter it;
        struct gguf_kv e;
        gguf_kv_iter_init(&it, kv);
        for (uint64_t i = 0; i < max && gguf_kv_iter_next(&it, &e); i++)
            put_value(&e, &all, &s);
    } else {
        put_value(kv, &all, &s);
    }
    text_fini(&s);
    return true;
}
