/* SPDX-License-Identifier: MIT */
/* adapters.c - opening and printing the adapters of a model */
#include "config.h"
#include "tools/evaluate/model.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/common/paths.h"
#include "tools/common/text.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool open_one(struct gguf_adapter **out, const struct gguf_model *model,
                     const struct ev_options *o, const char *path,
                     bool control)
{
    struct gguf_adapter_params p = GGUF_ADAPTER_PARAMS_INIT;
    struct gguf_file *file;
    struct gguf_error err;
    p.first_layer = o->control_first;
    p.last_layer = o->control_last;
    enum gguf_status st = gguf_file_open(&file, path, NULL, &err);
    if (st == GGUF_OK) {
        st = gguf_adapter_create(out, model, file, &p, &err);
        gguf_file_close(file);
    }
    if (st != GGUF_OK)
        return msg_fail(path, &err);
    const struct gguf_adapter_info *info = gguf_adapter_info(*out);
    if (info->n_left_out && !o->quiet)
        msg_warn(path,
                 "%zu norm%s of the adapter %s no effect, as in llama.cpp",
                 info->n_left_out, text_s(info->n_left_out),
                 info->n_left_out == 1 ? "has" : "have");
    if (control == (info->n_directions > 0))
        return true;
    return msg_error(
        path, control ? "is a LoRA adapter, expected a control vector: use "
                        "--lora"
                      : "is a control vector, expected a LoRA adapter: use "
                        "--control-vector");
}

/* Open the files of a list and append them to the adapters. */
static bool open_list(struct ev_adapters *l, const struct ev_options *o,
                      const struct gguf_model *model,
                      const struct scaled_list *s, bool control)
{
    for (size_t i = 0; i < s->n; i++) {
        struct gguf_adapter **a = &l->adapter[l->n];
        if (!open_one(a, model, o, s->file[i].path, control)) {
            gguf_adapter_destroy(*a);
            return false;
        }
        l->use[l->n].adapter = *a;
        l->use[l->n++].scale = s->file[i].scale;
    }
    return true;
}

bool ev_adapters_open(struct ev_model *m, const struct ev_options *o)
{
    struct ev_adapters *l = &m->adapters;
    const size_t n = o->loras.n + o->controls.n;
    if (!n)
        return true;
    l->use = msg_must(calloc(n, sizeof *l->use));
    l->adapter = msg_must(calloc(n, sizeof(struct gguf_adapter *)));
    return open_list(l, o, m->model, &o->loras, false) &&
           open_list(l, o, m->model, &o->controls, true);
}

void ev_add_adapter_inputs(struct gguf_paths *p, const struct ev_options *o)
{
    for (size_t i = 0; i < o->loras.n; i++)
        paths_read_model(p, o->loras.file[i].path, NULL, "--lora");
    for (size_t i = 0; i < o->controls.n; i++)
        paths_read_model(p, o->controls.file[i].path, NULL,
                         "--control-vector");
}

static void print_one(const struct scaled *s,
                      const struct gguf_adapter_info *info)
{
    char name[256];
    gguf_text_escape(name, sizeof name,
                     (struct gguf_str){ s->path, strlen(s->path) });
    if (info->n_directions)
        wrap_printf("control %s: %zu layer%s", name, info->n_directions,
                    text_s(info->n_directions));
    else
        wrap_printf("lora    %s: %zu weight%s, rank %" PRId64, name,
                    info->n_weights, text_s(info->n_weights), info->rank_min);
    if (info->rank_max > info->rank_min)
        wrap_printf(" to %" PRId64, info->rank_max);
    wrap_printf(", scale %g\n", (double)s->scale);
}

void ev_print_adapters(const struct ev_options *o, const struct ev_adapters *l)
{
    for (size_t i = 0; i < l->n; i++)
        print_one(i < o->loras.n ? &o->loras.file[i]
                                 : &o->controls.file[i - o->loras.n],
                  gguf_adapter_info(l->adapter[i]));
}

static void json_list(struct json *j, const char *key,
                      const struct scaled_list *s)
{
    json_open(j, key, '[');
    for (size_t i = 0; i < s->n; i++) {
        json_open(j, NULL, '{');
        json_strz(j, "file", s->file[i].path);
        json_f64(j, "scale", (double)s->file[i].scale);
        json_close(j);
    }
    json_close(j);
}

void ev_json_adapters(struct json *j, const struct ev_options *o,
                      const struct ev_adapters *l)
{
    static const struct scaled_list none = { NULL, 0 };
    json_list(j, "lora", l->n ? &o->loras : &none);
    json_list(j, "control_vectors", l->n ? &o->controls : &none);
}
