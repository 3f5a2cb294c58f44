/* SPDX-License-Identifier: MIT */
/* lora.c - the adapters that a model is evaluated with */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool open_one(struct gguf_adapter **out, const struct gguf_model *model,
                     const struct ppl_options *o, const char *path,
                     bool control)
{
    struct gguf_adapter_params p = GGUF_ADAPTER_PARAMS_INIT;
    struct gguf_file *file;
    struct gguf_error err;
    p.first_layer = o->control_first;
    p.last_layer = o->control_last;
    enum gguf_status st = gguf_file_open(&file, path, NULL, &err);
    if (st == GGUF_OK) {
        st = gguf_adapter_open(out, model, file, &p, &err);
        gguf_file_close(file);
    }
    if (st != GGUF_OK) {
        msg_fail(path, &err);
        return false;
    }
    const struct gguf_adapter_info *info = gguf_adapter_get_info(*out);
    if (info->n_left_out && !o->quiet)
        msg_warn(path,
                 "%zu norm%s of the adapter %s no effect, as in llama.cpp",
                 info->n_left_out, text_s(info->n_left_out),
                 info->n_left_out == 1 ? "has" : "have");
    if (control == (info->n_directions > 0))
        return true;
    msg_error(path, control ? "this is no control vector; --lora is for it"
                            : "this is no LoRA adapter; --control-vector is "
                              "for it");
    return false;
}

/* The next of the run's adapters are those of a list. */
static bool open_list(struct ppl_loras *l, const struct ppl_options *o,
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

bool ppl_loras_open(struct ppl_loras *l, const struct ppl_options *o,
                    const struct gguf_model *model)
{
    const size_t n = o->loras.n + o->controls.n;
    if (!n)
        return true;
    l->use = msg_must(calloc(n, sizeof *l->use));
    l->adapter = msg_must(calloc(n, sizeof(struct gguf_adapter *)));
    return open_list(l, o, model, &o->loras, false) &&
           open_list(l, o, model, &o->controls, true);
}

void ppl_loras_close(struct ppl_loras *l)
{
    for (size_t i = 0; i < l->n; i++)
        gguf_adapter_destroy(l->adapter[i]);
    free(l->adapter);
    free(l->use);
    *l = (struct ppl_loras){ 0 };
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

void ppl_print_loras(const struct ppl_options *o, const struct ppl_loras *l)
{
    for (size_t i = 0; i < l->n; i++)
        print_one(i < o->loras.n ? &o->loras.file[i]
                                 : &o->controls.file[i - o->loras.n],
                  gguf_adapter_get_info(l->adapter[i]));
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

void ppl_json_loras(struct json *j, const struct ppl_options *o,
                    const struct ppl_loras *l)
{
    static const struct scaled_list none = { NULL, 0 };
    json_list(j, "lora", l->n ? &o->loras : &none);
    json_list(j, "control_vectors", l->n ? &o->controls : &none);
}
