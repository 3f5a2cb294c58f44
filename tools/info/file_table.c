/* SPDX-License-Identifier: MIT */
/* file_table.c - one table with a line for each file */
#include "config.h"
#include "tools/info/info.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"

#include <inttypes.h>
#include <string.h>

static void add_kv(struct table *t, const struct gguf_kv *kv)
{
    static const struct text_limits limits = { 1, 40 };
    struct text s = { NULL, 0, 0 };
    if (kv)
        text_add_kv(&s, kv, &limits);
    table_add(t, s.s ? s.s : "");
    text_fini(&s);
}

static void add_line(struct table *t, const struct info *info)
{
    char out[24], name[32];
    const struct gguf_file *f = info->load->file;
    table_add_strz(t, info->load->path);
    add_kv(t, gguf_file_kv_find(f, "general.architecture"));
    table_add(t, table_count(out, info->n_elements));
    if (info->file_type)
        table_add(t, info->file_type);
    else
        table_add(t, info->n_types ? info_type_name(info->types[0].id, name)
                                   : "");
    table_addf(t, "%.2f", info_bits(info->data_size, info->n_elements));
    table_add(t, table_size(out, info->file_size));
    add_kv(t, info_hparam(info, "context_length"));
    table_addf(t, "%zu", gguf_file_n_tensors(info->load->file));
    table_addf(t, "%zu", gguf_file_n_shards(info->load->file));
}

bool info_lines(char *const *path, int n, const struct info_options *o,
                const struct gguf_file_params *params)
{
    static const char *const head[] = {
        "file", "architecture", "weights", "quantization", "bits",
        "size", "context",      "tensors", "files"
    };
    struct load_seen seen = { NULL, 0, 0 };
    struct table t;
    bool good = true;
    table_init(&t, "llrlrrrrr", 0);
    /* keeps file, architecture, weights and size the longest */
    t.drop = "876/54321";
    table_add_row(&t, head);
    for (int i = 0; i < n && !progress_stopped(); i++) {
        struct load l;
        struct info info;
        struct gguf_error err;
        if (load_is_duplicate(&seen, path[i]))
            continue;
        if (load_try(&l, path[i], !o->alone, params, &err)) {
            info_init(&info, &l, o);
            add_line(&t, &info);
            load_remember(&seen, &l);
            info_fini(&info);
        } else {
            msg_fail(path[i], &err);
            good = false;
        }
        load_close(&l);
    }
    load_seen_fini(&seen);
    info_table(&t, o);
    return good;
}
